"""Canonical bytes of plain JSON. Nothing here knows about HTTP, providers or files.

Canonical bytes are RFC 8785 (JSON Canonicalization Scheme) with two extensions, because requests hold
what that standard's number and string domains do not: an integer is written as its digits, whatever its
size, and a lone surrogate is written as its lowercase escape.

There are two writers. :func:`canonical_bytes` decides: orjson wherever it gives the same bytes, else
the one written out below. ``tests/test_canonical.py`` holds them against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from ._call import Json
from ._digests import DIGEST_ABOVE, SHORT, digest_of

__all__ = ["canonical_bytes", "canonical_key_bytes", "canonical_number", "canonical_string"]


# -- canonical bytes -----------------------------------------------------------------------------------


class _NeedsCareError(Exception):
    """orjson would not give canonical bytes for this document."""


def canonical_bytes(document: Json) -> bytes:
    """Write a document as RFC 8785 does; equal documents give equal bytes.

    Args:
        document: Any JSON value. It is not changed.

    Raises:
        ValueError: It holds ``NaN`` or an infinity.
    """
    try:
        return orjson.dumps(_for_orjson(document), option=orjson.OPT_SORT_KEYS)
    except (_NeedsCareError, TypeError):
        # TypeError: integers beyond 64 bits, lone surrogates, and nesting deeper than 254.
        return "".join(_write(document)).encode("utf-8")


def _for_orjson(value: Json) -> Any:
    """Return the value with its numbers as RFC 8785 writes them, or raise where names sort otherwise."""
    if isinstance(value, dict):
        if _sorts_otherwise(value):
            raise _NeedsCareError
        return {name: _for_orjson(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_for_orjson(child) for child in value]
    return _number_for_orjson(value) if isinstance(value, float) else value


def _sorts_otherwise(members: dict[str, Json]) -> bool:
    # Above the surrogates, the order by code point (orjson) and by UTF-16 unit part company.
    names = "".join(members)
    return not names.isascii() and max(names) >= "\ue000"


#: Below this every integer is a double, and its digits are what ECMAScript prints for it.
_EXACT = 2.0**53


def _number_for_orjson(value: float) -> Any:
    """Return what orjson must be given so that it writes the float as ECMAScript does."""
    size = abs(value)
    if size < _EXACT and value.is_integer():
        return int(value)
    if 1e-4 <= size < 1e15:
        return value  # Both write the shortest digits that read back, without an exponent.
    return orjson.Fragment(canonical_number(value))


def canonical_number(value: float) -> str:
    """Write a float as ECMAScript's ``Number.prototype.toString`` does (RFC 8785, section 3.2.2.3).

    Raises:
        ValueError: It is ``NaN`` or an infinity.
    """
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"JSON cannot hold the number {value!r}")
    if value == 0:
        return "0"
    sign, value = ("-", -value) if value < 0 else ("", value)
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # ``point`` is where the decimal point stands, counted from the first digit.
    point = int(exponent or 0) + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = f"{digits[0]}{'.' if count > 1 else ''}{digits[1:]}e{point - 1:+d}"
    return sign + text


_LITERALS = {None: "null", True: "true", False: "false"}


def _write(value: Json) -> Iterator[str]:
    """Yield the pieces of the canonical text: the rules themselves, with no library's help."""
    if value is None or isinstance(value, bool):
        yield _LITERALS[value]
    elif isinstance(value, int):
        yield str(value)
    elif isinstance(value, float):
        yield canonical_number(value)
    elif isinstance(value, str):
        yield canonical_string(value)
    elif isinstance(value, list):
        yield "["
        for index, child in enumerate(value):
            if index:
                yield ","
            yield from _write(child)
        yield "]"
    else:
        yield "{"
        for index, name in enumerate(sorted(value, key=_utf16_units)):
            if index:
                yield ","
            yield canonical_string(name) + ":"
            yield from _write(value[name])
        yield "}"


def _utf16_units(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


_ESCAPED = re.compile(r'["\\\x00-\x1f\ud800-\udfff]')
_SHORT_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


def canonical_string(text: str) -> str:
    """Write a string as RFC 8785 does, a lone surrogate as its lowercase escape."""
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"


# -- for the key --------------------------------------------------------------------------------------


def canonical_key_bytes(document: dict[str, Json]) -> bytes:
    """Return the canonical bytes of a document whose long strings have become digests.

    The same as :func:`digest_long_strings` and then :func:`canonical_bytes`, in one walk: every call pays for
    this. The document is used up.

    Raises:
        ValueError: It holds ``NaN`` or an infinity.
    """
    _settle(document)
    try:
        data = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return canonical_bytes(_unsettle(document))
    # Most names are ASCII, and then nothing about them is in question.
    return (
        data if data.isascii() or not _any_sorts_otherwise(document) else canonical_bytes(_unsettle(document))
    )


def _settle(document: dict[str, Json]) -> None:
    """Make a document ready for orjson, in place: digests for long strings, numbers as RFC 8785 has them."""
    waiting: list[Any] = [document]
    for container in waiting:  # It grows while it is walked.
        for step, child in container.items() if type(container) is dict else enumerate(container):
            kind = type(child)
            if kind is str:
                if len(child) > SHORT and not (len(child) <= DIGEST_ABOVE and child.isascii()):
                    raw = child.encode("utf-8", "surrogatepass")
                    if len(raw) > DIGEST_ABOVE:
                        container[step] = digest_of(raw)
            elif kind is dict or kind is list:
                waiting.append(child)
            elif kind is float:
                container[step] = _number_for_orjson(child)


def _any_sorts_otherwise(document: dict[str, Json]) -> bool:
    waiting: list[Any] = [document]
    for container in waiting:
        if type(container) is dict:
            if _sorts_otherwise(container):
                return True
            container = container.values()
        waiting += [child for child in container if type(child) is dict or type(child) is list]
    return False


def _unsettle(value: Any) -> Any:
    """Return a settled document with its numbers as they were."""
    if isinstance(value, orjson.Fragment):
        return float(orjson.dumps(value))
    if isinstance(value, dict):
        return {name: _unsettle(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_unsettle(child) for child in value]
    return value
