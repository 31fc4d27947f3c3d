"""A cassette as people and notebooks read it: an iterable of exchanges.

Reading is by line: nothing but the index stays in memory, whatever the size of the file. A line that is
damaged is named and passed over, an answer that was recorded anew since is marked as superseded.
What an exchange says is not known here.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from operator import itemgetter

from ._cassette import Cassette, Spot
from ._errors import CassetteError
from ._excerpt import cut
from ._exchange import Exchange
from ._index import Damage
from ._notebook import table_html
from ._recording import Recording

__all__ = ["Recordings", "cassette_at", "open"]

#: Rows of a cassette that a notebook shows.
_ROWS = 20

#: Digits of a whole fingerprint.
_DIGITS = 64


def open(path: str | os.PathLike[str]) -> Recordings:  # noqa: A001  # people write httpx_cassette.open
    """Open a cassette to read what is in it.

    Args:
        path: The file.

    Raises:
        CassetteError: There is no such file, or it is none.
    """
    return Recordings(cassette_at(path))


def cassette_at(path: str | os.PathLike[str]) -> Cassette:
    """Return the cassette of a file that must be there.

    Args:
        path: The file.

    Raises:
        CassetteError: There is no such file, or it is none.
    """
    cassette = Cassette(path)
    if not cassette.exists:
        raise CassetteError(
            "there is no such file; name one that is there, or record it first",
            cassette.path,
        )
    return cassette


class Recordings:
    """The recordings of a cassette, in the order of their lines; :func:`open` makes it.

    May be iterated more than once, and reads the file each time.

    Args:
        cassette: The cassette.
    """

    def __init__(self, cassette: Cassette) -> None:
        self._cassette = cassette
        self._is_read = False
        self._superseded: dict[bytes, frozenset[int]] = {}

    def __iter__(self) -> Iterator[Exchange]:
        """Yield each recording that is intact.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted.
        """
        self._superseded = {}
        for recording in self._cassette.oldest_first():
            yield Exchange(recording, self._is_superseded(recording))
        self._is_read = True

    def __repr__(self) -> str:
        return f"<Recordings {self.path}>"

    @property
    def path(self) -> str:
        """The file, as it was named."""
        return self._cassette.path

    @property
    def size(self) -> int:
        """How many bytes the file has."""
        return os.path.getsize(self._cassette.real_path)

    @property
    def damaged(self) -> list[Damage]:
        """Lines that nothing is answered from, with the reason; reads the whole file, unless it was.

        Raises:
            CassetteError: The file as a whole cannot be trusted, or cannot be read.
        """
        if not self._is_read:
            for _ in self._cassette.oldest_first():
                pass
        return self._cassette.damage

    @property
    def other_versions(self) -> dict[int, int]:
        """How many recordings there are of each other key version; they are not iterated.

        Raises:
            CassetteError: The file as a whole cannot be trusted, or cannot be read.
        """
        return self._cassette.other_versions

    @property
    def fingerprints(self) -> list[str]:
        """The fingerprint of every recording, each once, 64 hex digits; no line is read for it.

        Raises:
            CassetteError: The file as a whole cannot be trusted, or cannot be read.
        """
        return [key.hex() for key in self._cassette.all_keys()]

    def find(self, prefix: str) -> Iterator[Exchange]:
        """Yield the recordings whose fingerprint begins so, in the order of their lines, each as it is read.

        Args:
            prefix: The first hex digits of a fingerprint, or all of them.

        Raises:
            CassetteError: The file as a whole cannot be trusted, or cannot be read.
        """
        if not prefix:
            yield from self
            return
        self._superseded = {}
        spots = [
            (spot.line, spot, key) for key in self._keys(prefix.lower()) for spot in self._cassette.spots(key)
        ]
        for _, spot, key in sorted(spots, key=itemgetter(0)):
            recording = self._cassette.load(spot, key)
            if recording is not None:
                yield Exchange(recording, self._is_superseded(recording))

    def _keys(self, prefix: str) -> list[bytes]:
        if len(prefix) == _DIGITS:
            with suppress(ValueError):
                return [bytes.fromhex(prefix)]
        return [key for key in self._cassette.all_keys() if key.hex().startswith(prefix)]

    def current(self, fingerprint: str) -> list[Exchange]:
        """Return the recordings that a call is answered from, by their samples; reads no others.

        Args:
            fingerprint: The key, 64 hex digits.
        """
        key = bytes.fromhex(fingerprint)
        loaded = (self._cassette.load(spot, key) for spot in self._cassette.spots(key))
        found = [Exchange(each) for each in loaded if each is not None and not self._is_superseded(each)]
        return sorted(found, key=lambda exchange: exchange.sample)

    def _is_superseded(self, recording: Recording) -> bool:
        key = recording.head.key
        lines = self._superseded.get(key)
        if lines is None:
            spots = self._cassette.spots(key)
            if len(spots) == 1:
                return False
            # Once for each key: one that is polled has thousands of lines.
            lines = self._superseded[key] = self._superseded_lines(key, spots)
        return recording.number in lines

    def _superseded_lines(self, key: bytes, spots: list[Spot]) -> frozenset[int]:
        newest = max(spot.gen for spot in spots)
        times = Counter(spot.sample for spot in spots if spot.gen == newest)
        lines = {spot.line for spot in spots if spot.gen < newest}
        answered: set[int] = set()
        for spot in spots:
            if spot.gen < newest or times[spot.sample] == 1:
                continue
            # Of several lines of one sample and generation the last intact one counts; it comes first here.
            if spot.sample in answered:
                lines.add(spot.line)
            elif self._cassette.load(spot, key) is not None:
                answered.add(spot.sample)
        return frozenset(lines)

    def _repr_html_(self) -> str:
        rows = [
            (
                exchange.fingerprint[:12], exchange.at, exchange.dialect, exchange.model,
                cut(exchange.question, 80), cut(exchange.text, 80), exchange.finish_words,
            )
            for exchange in islice(self, _ROWS)
        ]  # fmt: skip
        names = ("fingerprint", "recorded", "dialect", "model", "question", "answer", "finish")
        count = len(self._cassette)
        more = f"the first {_ROWS} of {count:,} recordings" if count > _ROWS else ""
        return table_html(self.path, names, rows, more)
