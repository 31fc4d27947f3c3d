"""What differs between two JSON documents, by path.

Lists are aligned first, so that one message put into a conversation is one change and not one for each
message after it. Nothing here knows what the documents mean, nor how a change is shown.

The work is bounded by the size of the documents: common ends are cut off, then items that occur once on
both sides are anchors, and only small gaps between anchors meet a quadratic algorithm.
"""

from __future__ import annotations

import enum
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import AnyStr, Final, Literal, TypeAlias

from ._call import Json
from ._digests import is_digest
from ._parsing import is_same_json
from ._paths import render_path

__all__ = ["MISSING", "Change", "Missing", "common_prefix", "common_suffix", "count_leaves", "differences"]

# SequenceMatcher is quadratic and worse on repeated items: 100 by 100 stay below 10 ms.
_SMALL_GAP = 10_000

# Most pairs of texts part early; this many characters settle them without halving the whole length.
_EARLY = 64

_Steps: TypeAlias = "tuple[str | int, ...]"
_Pair: TypeAlias = "tuple[int | None, int | None]"
_Range: TypeAlias = tuple[int, int, int, int]


class Missing(enum.Enum):
    """What stands at a path that one of the documents does not have."""

    MISSING = "missing"


#: The one value of :class:`Missing`.
MISSING: Final[Literal[Missing.MISSING]] = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Change:
    """One place where two documents differ.

    Args:
        path: The place in the document asked for; in the recorded one for an item that was removed.
        old: What is recorded there.
        new: What was asked for.
    """

    path: str
    old: Json | Missing
    new: Json | Missing


def differences(recorded: Json, asked: Json) -> list[Change]:
    """Return every place where two documents differ, in document order.

    A member, list item or digest that only one side has is one change, whatever is below it.

    Args:
        recorded: The document that exists.
        asked: The document that was looked for.
    """
    found: list[Change] = []
    _compare(recorded, asked, (), found)
    return found


def count_leaves(value: Json | Missing) -> int:
    """Return the number of values below a value that hold no others; digests and empty ones count as one."""
    leaves, waiting = 0, [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and value and not is_digest(value):
            waiting.extend(value.values())
        elif isinstance(value, list) and value:
            waiting.extend(value)
        else:
            leaves += value is not MISSING
    return leaves


def common_prefix(left: AnyStr, right: AnyStr) -> int:
    """Return how many characters, or bytes, two texts have in common at the start."""
    low, high = 0, min(len(left), len(right))
    if left[:high] == right[:high]:
        return high
    if left[:_EARLY] != right[:_EARLY]:
        high = min(high, _EARLY)
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


def common_suffix(left: AnyStr, right: AnyStr, kept: int = 0) -> int:
    """Return how many characters, or bytes, two texts have in common at the end.

    Args:
        left: One text.
        right: The other.
        kept: How many at the start of both belong to a common prefix and do not count again.
    """
    a, b = len(left), len(right)
    low, high = 0, min(a, b) - kept
    if left[a - high :] == right[b - high :]:
        return high
    if high > _EARLY and left[a - _EARLY :] != right[b - _EARLY :]:
        high = _EARLY
    while high - low > 1:
        middle = (low + high) // 2
        if left[a - middle : a - low] == right[b - middle : b - low]:
            low = middle
        else:
            high = middle
    return low


def _compare(old: Json, new: Json, steps: _Steps, found: list[Change]) -> None:
    if isinstance(old, dict) and isinstance(new, dict) and not is_digest(old) and not is_digest(new):
        _compare_objects(old, new, steps, found)
    elif isinstance(old, list) and isinstance(new, list):
        _compare_lists(old, new, steps, found)
    elif not is_same_json(old, new):
        found.append(Change(render_path(steps), old, new))


def _compare_objects(old: dict[str, Json], new: dict[str, Json], steps: _Steps, found: list[Change]) -> None:
    for name, value in old.items():
        if name in new:
            _compare(value, new[name], (*steps, name), found)
        else:
            found.append(Change(render_path((*steps, name)), value, MISSING))
    for name, value in new.items():
        if name not in old:
            found.append(Change(render_path((*steps, name)), MISSING, value))


def _compare_lists(old: list[Json], new: list[Json], steps: _Steps, found: list[Change]) -> None:
    for i, j in _pairs(old, new):
        if i is None:
            assert j is not None  # a pair has one side at least
            found.append(Change(render_path((*steps, j)), MISSING, new[j]))
        elif j is not None:
            _compare(old[i], new[j], (*steps, j), found)
        else:
            found.append(Change(render_path((*steps, i)), old[i], MISSING))


def _pairs(old: list[Json], new: list[Json]) -> Iterator[_Pair]:
    """Yield which item of one list stands for which of the other; equal items may be left out."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and is_same_json(old[start], new[start]):
        start += 1
    end = 0
    while end < shorter - start and is_same_json(old[-1 - end], new[-1 - end]):
        end += 1
    middle = (start, len(old) - end, start, len(new) - end)
    if start == middle[1] or start == middle[3]:
        yield from _in_order(middle)
        return
    old_keys = [_identity(item) for item in old[start : middle[1]]]
    new_keys = [_identity(item) for item in new[start : middle[3]]]
    for gap in _gaps(old_keys, new_keys):
        for i1, i2, j1, j2 in _unequal(old_keys, new_keys, gap):
            yield from _by_shape(old, new, (start + i1, start + i2, start + j1, start + j2))


def _identity(item: Json) -> str:
    """Return a text that is equal for equal items; ``json`` because it takes surrogates and any integer."""
    return json.dumps(item, sort_keys=True)


def _gaps(old: Sequence[str], new: Sequence[str]) -> Iterator[_Range]:
    """Yield the stretches between anchors: items that occur once on both sides, in the same order."""
    i1 = j1 = 0
    for i, j in _anchors(old, new):
        if i > i1 or j > j1:
            yield i1, i, j1, j
        i1, j1 = i + 1, j + 1
    yield i1, len(old), j1, len(new)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest run of common unique items that rises on both sides (patience sorting)."""
    old_counts, new_counts = Counter(old), Counter(new)
    place = {key: j for j, key in enumerate(new) if new_counts[key] == 1}
    common = [(i, place[key]) for i, key in enumerate(old) if key in place and old_counts[key] == 1]
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(common):
        pile = bisect_left(tops, j)
        before.append(piles[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [j]
        piles[pile : pile + 1] = [number]
    chain: list[tuple[int, int]] = []
    number = piles[-1] if piles else -1
    while number >= 0:
        chain.append(common[number])
        number = before[number]
    return chain[::-1]


def _unequal(old: Sequence[Hashable], new: Sequence[Hashable], gap: _Range) -> Iterator[_Range]:
    """Yield the parts of a gap that have no equal items; the whole gap when it is too large to say."""
    i1, i2, j1, j2 = gap
    if (i2 - i1) * (j2 - j1) > _SMALL_GAP:
        yield gap
        return
    for tag, a, b, c, d in SequenceMatcher(None, old[i1:i2], new[j1:j2], autojunk=False).get_opcodes():
        if tag != "equal":
            yield i1 + a, i1 + b, j1 + c, j1 + d


def _by_shape(old: list[Json], new: list[Json], gap: _Range) -> Iterator[_Pair]:
    """Yield pairs of items of the same role, type or name, in order; the rest as they stand."""
    i1, i2, j1, j2 = gap
    if (i2 - i1) * (j2 - j1) > _SMALL_GAP or i2 - i1 == j2 - j1:
        yield from _in_order(gap)
        return
    shapes = [_shape(item) for item in old[i1:i2]], [_shape(item) for item in new[j1:j2]]
    for _, a, b, c, d in SequenceMatcher(None, *shapes, autojunk=False).get_opcodes():
        yield from _in_order((i1 + a, i1 + b, j1 + c, j1 + d))


def _shape(item: Json) -> Hashable:
    if not isinstance(item, dict):
        return type(item).__name__
    function = item.get("function")
    names = [item.get(name) for name in ("role", "type", "name")]
    names.append(function.get("name") if isinstance(function, dict) else None)
    return tuple(name if isinstance(name, str) else None for name in names)


def _in_order(gap: _Range) -> Iterator[_Pair]:
    i1, i2, j1, j2 = gap
    yield from zip_longest(range(i1, i2), range(j1, j2))
