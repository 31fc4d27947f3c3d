"""Reading JSON without losing anything that it says.

orjson reads; what it would round, refuse or be unsafe with is read by the standard library.
Nothing here knows what a document is for.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

from ._call import Json

__all__ = ["MAX_DEPTH", "MAX_DIGITS", "NotJson", "is_same_json", "parse_json", "parse_leniently"]

#: Deeper documents are kept and keyed as text: no provider sends them, and recursion must be bounded.
MAX_DEPTH = 100

#: Longer integers are kept as text: reading them takes quadratic time, and Python refuses 4,300 digits.
MAX_DIGITS = 1000


class NotJson(ValueError):
    """The bytes are not JSON, or JSON that no document of ours can hold; the message says which."""


def parse_json(data: bytes, max_depth: int = MAX_DEPTH) -> Json:
    """Read JSON without losing anything that it says.

    The last of duplicate names wins, as in every reader that SDKs and servers use.

    Args:
        data: UTF-8 bytes.
        max_depth: How deep it may be nested.

    Returns:
        The document. Integers keep all their digits; lone surrogates are kept.

    Raises:
        NotJson: Not UTF-8, not JSON, ``NaN``, a number that overflows a double (``1e400``), an integer of
            more than 1,000 digits, or nesting deeper than ``max_depth``.
    """
    try:
        document: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _parse_slowly(data, max_depth)
    if _has_huge_float(document, max_depth):
        # orjson reads 18446744073709551617 as 1.8446744073709552e+19 without a word.
        return _parse_slowly(data, max_depth)
    return document


#: orjson reads integers within 64 bits as such: a float below this was written as one.
_INTEGERS = 2.0**63


def _has_huge_float(document: Json, max_depth: int) -> bool:
    """Tell whether a float stands here that may have been an integer; refuse what is too deep."""
    level: list[Any] = [document] if isinstance(document, (dict, list)) else [[document]]
    for _ in range(max_depth):
        below: list[Any] = []
        for container in level:
            for child in container.values() if type(container) is dict else container:
                kind = type(child)
                if kind is str:  # Most are: asked first, because every call pays for this walk.
                    continue
                if kind is dict or kind is list:
                    below.append(child)
                elif kind is float and not -_INTEGERS < child < _INTEGERS:
                    return True
        if not below:
            return False
        level = below
    raise NotJson(f"nesting deeper than {max_depth}")


def _parse_slowly(data: bytes, max_depth: int) -> Json:
    # Before the standard library sees it: a program may have raised the recursion limit far beyond what the
    # C stack bears.
    if data.count(b"[") + data.count(b"{") > max_depth:
        _refuse_depth(data, max_depth)
    try:
        document: Json = json.loads(
            data.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_int=_read_integer,
            parse_float=_read_float,
        )
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON at character {error.pos}: {error.msg}") from None
    return document


def parse_leniently(text: str) -> tuple[Json, list[Json]]:
    """Read JSON for what its strings and names say, numbers aside, as the most lenient of readers does.

    Returns:
        The document, with a number for ``NaN`` and the like; of names that stand twice in an object the last
        one wins, and the values of the others are given apart.

    Raises:
        NotJson: It is not even that, or nested deeper than 100.
    """
    lost: list[Json] = []

    def note(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        members = dict(pairs)
        if len(members) < len(pairs):
            last = {name: position for position, (name, _) in enumerate(pairs)}
            lost.extend(value for position, (name, value) in enumerate(pairs) if last[name] != position)
        return members

    if text.count("[") + text.count("{") > MAX_DEPTH:
        _refuse_depth(text.encode("utf-8", "surrogatepass"), MAX_DEPTH)
    try:
        document: Json = json.loads(
            text, object_pairs_hook=note, parse_constant=lambda name: 0, parse_int=lambda digits: 0
        )
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON at character {error.pos}: {error.msg}") from None
    return document, lost


_STRUCTURE = re.compile(rb'["\[\]{}]|\\.', re.DOTALL)


def _refuse_depth(data: bytes, max_depth: int) -> None:
    """Raise where brackets outside strings are nested too deep, whether or not this is JSON."""
    depth = 0
    in_string = False
    for found in _STRUCTURE.finditer(data):
        mark = found[0]
        if mark == b'"':
            in_string = not in_string
        elif not in_string:
            depth += (mark in b"[{") - (mark in b"]}")
            if depth > max_depth:
                raise NotJson(f"nesting deeper than {max_depth}")


def _refuse_constant(name: str) -> Json:
    raise NotJson(f"{name} is not JSON")


def _read_integer(digits: str) -> int:
    count = len(digits.removeprefix("-"))
    if count > MAX_DIGITS:
        raise NotJson(f"an integer of {count} digits")
    return int(digits)


def _read_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotJson(f"the number {text[:40]} is too large for a double")
    return value


def is_same_json(left: Json, right: Json) -> bool:
    """Tell whether two values are the same JSON: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            is_same_json(child, right[name]) for name, child in left.items()
        )
    return left == right
