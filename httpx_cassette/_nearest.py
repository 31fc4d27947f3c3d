"""Which of many recordings is nearest to a call that has none.

Two passes. The first costs a few microseconds for each recording: it counts members and list items that
differ, and measures how much text is left between the common start and the common end of those. It keeps
the best few. The second compares those in full.
Nothing here reads files: recordings come lazily as plain JSON, newest first, and only the best few are held.

Nearest means, in this order: the same endpoint, the fewest differing fields, the least differing text, the
newest. The model is a field like the others: when only the model was changed, the recording to show is
that of the same prompt, not some other prompt to the new model.
"""

from __future__ import annotations

import json
import sys
import time
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple, TypeAlias

import orjson

from ._call import Json
from ._difference import MISSING, Change, Missing, common_prefix, common_suffix, count_leaves, differences

__all__ = ["Candidate", "Nearest", "nearest", "nearest_few"]

# How many recordings the second pass compares in full.
_BEST_FEW = 8

# Texts are measured by their first and last 4 KiB: beyond that the order hardly changes, and the cost does.
_MEASURED = 4096

# How many measures of the document asked for are kept: at 8 KiB each, half a megabyte.
_MEASURES = 64

# Shorter texts are compared to the byte, longer ones only where this much is equal at an end.
_SHORT = 256
_SAMPLE = 48

# How much of the middle is looked for in the other text.
_PROBE = 16

# Up to so many items that differ are measured one by one.
_FEW_ITEMS = 2

# How many characters of two texts the second pass compares: ``quick_ratio`` costs 0.1 us for each.
_COMPARED = 2000

#: Endpoint distance, fields that differ, bytes between common start and end, position.
_Score: TypeAlias = tuple[int, int, int, int]


class Candidate(NamedTuple):
    """One recording that might be the nearest; a named tuple because 100,000 of them are built.

    Args:
        where: ``FILE:LINE``.
        line: The line of it, counted from 1.
        at: When it was recorded.
        document: Its key document before long strings became digests.
    """

    where: str
    line: int
    at: str
    document: Json


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest recording, and how it differs.

    Args:
        candidate: The recording.
        changes: Every place where it differs from the call.
        fields: How many leaf fields the recorded document has.
        looked_at: How many recordings were looked at.
        is_partial: Whether time ran out before all of them were.
    """

    candidate: Candidate
    changes: tuple[Change, ...]
    fields: int
    looked_at: int
    is_partial: bool


def nearest(
    asked: Json,
    candidates: Iterable[Candidate],
    *,
    seconds: float = 0.5,
    clock: Callable[[], float] = time.monotonic,
) -> Nearest | None:
    """Return the recording nearest to a document, or ``None`` when there are no recordings.

    Args:
        asked: The document that was looked for.
        candidates: The recordings, newest first; one is drawn at a time.
        seconds: When to stop drawing. Comparing the best few in full may take half as long again.
        clock: What tells the time.
    """
    return next(iter(nearest_few(asked, candidates, 1, seconds=seconds, clock=clock)), None)


def nearest_few(
    asked: Json,
    candidates: Iterable[Candidate],
    most: int,
    *,
    seconds: float = 0.5,
    clock: Callable[[], float] = time.monotonic,
) -> list[Nearest]:
    """Return the recordings nearest to a document, the nearest first; not more than are compared in full.

    Args:
        asked: The document that was looked for.
        candidates: The recordings, newest first; one is drawn at a time.
        most: How many are returned at most.
        seconds: When to stop drawing.
        clock: What tells the time.
    """
    stop = clock() + seconds
    sketch = _Sketch(asked)
    best: list[tuple[_Score, Candidate]] = []
    looked_at, is_partial = 0, False
    for candidate in candidates:
        # Asked after drawing, so that a budget that ends with the last recording leaves nothing out.
        if looked_at and clock() >= stop:
            is_partial = True
            break
        looked_at += 1
        worst = best[-1][0] if len(best) == _BEST_FEW else None
        score = sketch.score(candidate.document, looked_at, worst)
        if score is not None:
            insort(best, (score, candidate))
            del best[_BEST_FEW:]
    ranked = _compare_best(asked, best, lambda: clock() < stop + seconds / 2)
    return [
        Nearest(candidate, tuple(changes), count_leaves(candidate.document), looked_at, is_partial)
        for candidate, changes in ranked[:most]
    ]


def _compare_best(
    asked: Json, best: list[tuple[_Score, Candidate]], has_time: Callable[[], bool]
) -> list[tuple[Candidate, list[Change]]]:
    ranked: list[tuple[tuple[int, int, float, int], Candidate, list[Change]]] = []
    for (elsewhere, _, _, position), candidate in best:
        if ranked and not has_time():
            break
        changes = differences(candidate.document, asked)
        leaves = sum(max(count_leaves(change.old), count_leaves(change.new)) for change in changes)
        ranked.append(((elsewhere, leaves, _text_cost(changes), position), candidate, changes))
    # Positions are distinct, so nothing but scores is ever compared.
    ranked.sort(key=lambda entry: entry[0])
    return [(candidate, changes) for _, candidate, changes in ranked]


def _text_cost(changes: Iterable[Change]) -> float:
    """Return about how many characters of text differ."""
    cost = 0.0
    for change in changes:
        old, new = change.old, change.new
        if isinstance(old, str) and isinstance(new, str):
            start = common_prefix(old, new)
            end = common_suffix(old, new, start)
            old, new = old[start : len(old) - end], new[start : len(new) - end]
            ratio = SequenceMatcher(None, old[:_COMPARED], new[:_COMPARED], autojunk=False).quick_ratio()
            cost += (1 - ratio) * max(len(old), len(new))
    return cost


#: What differs on both sides, and a key for the side asked for.
_Gap: TypeAlias = "tuple[_GapKey, Json | Missing, Json | Missing]"
_GapKey: TypeAlias = tuple[str, int, int]


#: The first bytes, the last bytes and the length of a serialised value.
_Measure: TypeAlias = tuple[bytes, bytes, int]


class _Sketch:
    """What is computed once about the document asked for.

    The code below is written for speed: it runs once for each recording.
    """

    def __init__(self, asked: Json) -> None:
        around: dict[str, Json] = asked if isinstance(asked, dict) else {"": asked}
        self._inside = _json_body(around)
        self._around = {name: value for name, value in around.items() if name != "body" or not self._inside}
        self._target = (around.get("method"), around.get("url"))
        self._measures: dict[_GapKey, _Measure] = {}

    def score(self, document: Json, position: int, worst: _Score | None) -> _Score | None:
        """Return the score of one recording, or ``None`` when it is no better than the worst one kept."""
        around: dict[str, Json] = document if isinstance(document, dict) else {"": document}
        inside = _json_body(around)
        gaps: list[_Gap] = []
        elsewhere = 0
        count = _compare_members("", around, self._around, "body" if self._inside else "", gaps)
        if count:
            elsewhere = _endpoint_distance((around.get("method"), around.get("url")), self._target)
        count += _compare_members(".", inside, self._inside, "", gaps)
        if worst is not None and (elsewhere > worst[0] or (elsewhere == worst[0] and count > worst[1])):
            return None
        limit = worst[2] if worst is not None and (elsewhere, count) == worst[:2] else sys.maxsize
        between = 0
        for gap in gaps:
            between += self._between(gap)
            if between >= limit:  # a tie is lost too: newer ones came first
                return None
        return elsewhere, count, between, position

    def _between(self, gap: _Gap) -> int:
        """Return about how many bytes of a gap are left between what both sides have in common."""
        key, old, new = gap
        measure = self._measures.get(key)
        if measure is None:
            if len(self._measures) >= _MEASURES:
                self._measures.clear()
            measure = self._measures[key] = _measure(new)
        head, tail, length = measure
        old_head, old_tail, old_length = _measure(old)
        shorter, longer = (length, old_length) if length < old_length else (old_length, length)
        prefix = suffix = 0
        # Unrelated long texts part at once, and a few bytes in common say nothing.
        if shorter <= _SHORT or old_head[:_SAMPLE] == head[:_SAMPLE]:
            prefix = common_prefix(old_head, head)
        if shorter <= _SHORT or old_tail[-_SAMPLE:] == tail[-_SAMPLE:]:
            suffix = min(common_suffix(old_tail, tail), shorter - prefix)
        between = longer - prefix - suffix
        # Edited at both ends: what stands in the middle of one then stands somewhere in the other.
        if 2 * between > longer > _SHORT:
            middle = len(head) // 2
            if head[middle : middle + _PROBE] in old_head:
                between //= 2
        return between


def _json_body(document: Mapping[str, Json]) -> dict[str, Json]:
    """Return the members of the JSON body of a key document; none when it has another kind of body."""
    body = document.get("body")
    inside = body.get("json", body) if isinstance(body, dict) else None
    return inside if isinstance(inside, dict) else {}


def _endpoint_distance(left: tuple[Json, Json], right: tuple[Json, Json]) -> int:
    """Return 0 for the same endpoint, 1 for its path on another host or with another query, else 2."""
    if left == right:
        return 0
    return 1 if left[0] == right[0] and _url_path(left[1]) == _url_path(right[1]) else 2


def _url_path(url: Json) -> str:
    return str(url).partition("?")[0].partition("://")[2].partition("/")[2]


def _compare_members(
    level: str, old: dict[str, Json], new: dict[str, Json], apart: str, gaps: list[_Gap]
) -> int:
    """Count what differs in two objects, but for one member, and collect the parts that hold it."""
    count = common = 0
    for name, value in new.items():
        recorded = old.get(name, MISSING)
        if recorded is not MISSING:
            common += 1
        if recorded != value:
            count += _compare_values(level + name, recorded, value, gaps)
    if common < len(old):
        for name in old.keys() - new.keys():
            if name != apart:
                count += _compare_values(level + name, old[name], MISSING, gaps)
    return count


def _compare_values(name: str, old: Json | Missing, new: Json | Missing, gaps: list[_Gap]) -> int:
    if isinstance(old, list) and isinstance(new, list):
        return _compare_items(name, old, new, gaps)
    gaps.append(((name, 0, 0), old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return sum(old.get(key, MISSING) != new.get(key, MISSING) for key in old.keys() | new.keys())
    value = new if old is MISSING else old
    return len(value) or 1 if isinstance(value, (dict, list)) else 1


def _compare_items(name: str, old: list[Json], new: list[Json], gaps: list[_Gap]) -> int:
    if len(old) == len(new):
        apart = [index for index, item in enumerate(new) if old[index] != item]
        if len(apart) <= _FEW_ITEMS:
            # One by one, so that an edit in each of two messages leaves what is common to each.
            for index in apart:
                gaps.append(((name, index, -1), old[index], new[index]))
            return len(apart)
    shorter = min(len(old), len(new))
    start = end = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old_part, new_part = old[start : len(old) - end], new[start : len(new) - end]
    gaps.append(((name, start, end), old_part, new_part))
    pairs = zip(old_part, new_part, strict=False)
    # Two edits far apart leave equal items between them, which still stand side by side.
    return max(len(old_part), len(new_part)) - sum(a == b for a, b in pairs)


def _measure(value: Json | Missing) -> _Measure:
    if value is MISSING:
        return b"", b"", 0
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, or an integer of more than 64 bits
        data = json.dumps(value, sort_keys=True).encode()
    if len(data) <= _MEASURED:
        return data, data, len(data)
    return data[:_MEASURED], data[-_MEASURED:], len(data)
