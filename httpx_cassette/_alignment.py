"""Which recording of one cassette stands for which of another: by fingerprint, then by what comes nearest.

Recordings that another one supersedes are left out. What stays in memory is the index, and the fingerprints
of those that have no partner; recordings are read again where they are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ._comparison import compared_request
from ._exchange import Exchange
from ._nearest import Candidate, nearest
from ._opened import Recordings

__all__ = ["Pair", "align"]

#: Which recording: its fingerprint, and which of several answers.
_Name = tuple[str, int]

#: Pairs of recordings without a partner that are compared; with more of them, it would take minutes.
_COMPARED = 100_000

#: How often those are looked at again whose nearest one was nearer to another.
_ROUNDS = 3

#: How long one of them may look.
_SECONDS = 0.5


class Pair(NamedTuple):
    """Two recordings that stand for each other, or one that stands alone.

    Args:
        kind: ``same`` request, ``nearest`` request, or ``left`` or ``right`` alone.
        left: The recording of the first cassette.
        right: That of the second.
    """

    kind: Literal["same", "nearest", "left", "right"]
    left: Exchange | None
    right: Exchange | None


def align(left: Recordings, right: Recordings) -> Iterator[Pair]:
    """Yield the recordings of two cassettes by twos: first those of one fingerprint, in the order of lines.

    Args:
        left: One cassette.
        right: The other.

    Raises:
        CassetteDamaged: A file as a whole cannot be trusted.
    """
    left_alone: list[_Name] = []
    for exchange in left:
        if not exchange.superseded:
            other = _load(right, (exchange.fingerprint, exchange.sample))
            if other is not None:
                yield Pair("same", exchange, other)
            else:
                left_alone.append((exchange.fingerprint, exchange.sample))
    right_alone = [
        name
        for exchange in right
        if not exchange.superseded
        and _load(left, name := (exchange.fingerprint, exchange.sample)) is None
    ]  # fmt: skip
    partners = _partners(left, right, left_alone, right_alone)
    for name in left_alone:
        if name in partners:
            yield Pair("nearest", _load(left, name), _load(right, partners[name]))
    for name in left_alone:
        if name not in partners:
            yield Pair("left", _load(left, name), None)
    taken = set(partners.values())
    for name in right_alone:
        if name not in taken:
            yield Pair("right", None, _load(right, name))


def _load(recordings: Recordings, name: _Name) -> Exchange | None:
    fingerprint, sample = name
    return next((each for each in recordings.current(fingerprint) if each.sample == sample), None)


def _partners(
    left: Recordings, right: Recordings, left_alone: list[_Name], right_alone: list[_Name]
) -> dict[_Name, _Name]:
    """Return the nearest recording of each, if any comes near; each is the partner of one."""
    partners: dict[_Name, _Name] = {}
    if len(left_alone) * len(right_alone) > _COMPARED:
        return partners
    waiting, free = left_alone, dict.fromkeys(right_alone)
    for _ in range(_ROUNDS):
        found = [
            (changes, place, name, partner)
            for place, name in enumerate(waiting)
            for changes, partner in _nearest(left, right, name, free)
        ]
        # Who is nearest to its partner has it.
        for _, _, name, partner in sorted(found):
            if partner in free:
                partners[name] = partner
                del free[partner]
        waiting = [name for _, _, name, _ in found if name not in partners]
    return partners


def _nearest(
    left: Recordings, right: Recordings, name: _Name, free: dict[_Name, None]
) -> Iterator[tuple[int, _Name]]:
    """Yield the one recording that is nearest, with how many fields differ; none if that is half of them."""
    exchange = _load(left, name)
    assert exchange is not None  # it was read before
    names: dict[str, _Name] = {}
    found = nearest(
        compared_request(exchange.request),
        _candidates(right, exchange.dialect, free, names),
        seconds=_SECONDS,
    )
    if found is not None and 2 * len(found.changes) <= found.fields:
        yield len(found.changes), names[found.candidate.where]


def _candidates(
    recordings: Recordings, dialect: str, free: dict[_Name, None], names: dict[str, _Name]
) -> Iterator[Candidate]:
    for name in free:
        exchange = _load(recordings, name)
        if exchange is not None and exchange.dialect == dialect:
            where = f"{name[0]}:{name[1]}"
            names[where] = name
            yield Candidate(where, exchange.line, exchange.at, compared_request(exchange.request))
