"""Several cassettes looked up as one: a small seed in git, the full one outside.

All are looked up, the last is written. Of several generations of one key the highest wins over all of them,
as a set with its samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._cassette import Appended, Cassette, Spot
from ._errors import CassetteChanged, CassetteDamaged
from ._recording import NewRecording, Recording

__all__ = ["Shelf"]


class Shelf:
    """The cassettes of one transport.

    Args:
        cassettes: At least one; the last is written.
    """

    def __init__(self, cassettes: Sequence[Cassette]) -> None:
        self.cassettes = tuple(cassettes)
        self.written = self.cassettes[-1]
        self._only = self.cassettes[0] if len(self.cassettes) == 1 else None

    def find(self, key: bytes, sample: int, *, exact: bool) -> Recording | None:
        """Return the recording of a key, or ``None`` where there is none.

        Args:
            key: The fingerprint, 32 bytes.
            sample: Which of several answers.
            exact: Only that sample. Otherwise the last there is, where there are fewer.

        Raises:
            CassetteDamaged: The newest generation holds that sample, and no line of it is intact.
        """
        spots = self._spots(key)
        if len(spots) == 1 and (spots[0].sample == sample or not exact):
            # Nearly every key has one line.
            return self._load(spots, key)
        if not spots:
            return None
        newest = max(spot.gen for spot in spots)
        samples = {spot.sample for spot in spots if spot.gen == newest}
        if exact and sample not in samples:
            return None
        wanted = max((there for there in samples if there <= sample), default=min(samples))
        return self._load([spot for spot in spots if spot.gen == newest and spot.sample == wanted], key)

    def newest_gen(self, key: bytes) -> int:
        """Return the highest generation of a key over all cassettes, 0 where there is none."""
        return max((spot.gen for spot in self._spots(key)), default=0)

    def refresh(self, *, reopen: bool = False) -> bool:
        """Read what others appended since; tell whether there was anything.

        Args:
            reopen: As for :meth:`Cassette.refresh`.
        """
        news = [cassette.refresh(reopen=reopen) for cassette in self.cassettes]
        return any(news)

    def append(self, new: NewRecording, *, gen: int | None) -> Appended:
        """Store a recording in the last cassette.

        Args:
            new: The exchange.
            gen: The generation that it belongs to, or ``None`` for a new one.
        """
        if gen is None:
            return self.written.append(new, supersede=True, gen_floor=self.newest_gen(new.key))
        return self.written.append(new, gen_floor=gen)

    def newest_first(self) -> Iterator[Recording]:
        """Yield every recording that can be read, the last line of the last cassette first."""
        for cassette in reversed(self.cassettes):
            yield from cassette.newest_first()

    def _spots(self, key: bytes) -> list[Spot]:
        if self._only is not None:
            return self._only.spots(key)
        return [spot for cassette in reversed(self.cassettes) for spot in cassette.spots(key)]

    def _load(self, spots: list[Spot], key: bytes) -> Recording:
        change: CassetteChanged | None = None
        for spot in spots:
            try:
                recording = spot.cassette.load(spot, key)
            except CassetteChanged as error:
                change = change or error
            else:
                if recording is not None:
                    return recording
        raise change or _damaged(spots[0])


def _damaged(spot: Spot) -> CassetteDamaged:
    path, number = spot.cassette.path, spot.line
    reason = next((found.reason for found in spot.view.index.damage if found.number == number), "damaged")
    accepted = f"accept an edit with httpx-cassette reseal {path}:{number}, "
    return CassetteDamaged(
        f"the recording is {reason}; {accepted if reason.startswith('edited') else ''}"
        "restore the file, or record the call again with HTTPX_CASSETTE_MODE=rerecord",
        path,
        number,
    )
