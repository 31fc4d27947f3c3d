"""Canonical bytes of plain JSON, and the rules of the key that change a document.

Nothing here knows about HTTP, providers or files: a rule is given the paths or the table it works on.
Every rule works in place on a document that the caller owns, and is idempotent.

Canonical bytes are RFC 8785 (JSON Canonicalization Scheme) with two extensions, because requests hold
what that standard's number and string domains do not: an integer is written as its digits, whatever its
size, and a lone surrogate is written as its lowercase escape.

There are two writers. :func:`canonical_bytes` decides: orjson wherever it gives the same bytes, else
the one written out below. ``tests/test_canonical.py`` holds them against each other.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import orjson

from ._call import Json
from ._errors import OptionError
from ._paths import Paths, Place

__all__ = [
    "DIGEST_ABOVE",
    "MASKS",
    "Masker",
    "NotJson",
    "canonical_bytes",
    "canonical_key_bytes",
    "canonical_number",
    "digest_long_strings",
    "digest_of",
    "escape_names",
    "fold_defaults",
    "is_blank",
    "is_digest",
    "is_same_json",
    "mask_text",
    "parse_json",
    "remove_places",
    "rename_references",
    "strip_lines",
    "strip_places",
]

#: Strings of more UTF-8 bytes than this enter the key as their digest (rule 6 of the key).
DIGEST_ABOVE = 1024

#: Deeper documents are kept and keyed as text: no provider sends them, and recursion must be bounded.
MAX_DEPTH = 100

#: Longer integers are kept as text: reading them takes quadratic time, and Python refuses 4,300 digits.
MAX_DIGITS = 1000


class NotJson(ValueError):
    """The bytes are not JSON, or JSON that no document of ours can hold; the message says which."""


# -- reading -------------------------------------------------------------------------------------------


def parse_json(data: bytes) -> Json:
    """Read JSON without losing anything that it says.

    The last of duplicate names wins, as in every reader that SDKs and servers use.

    Args:
        data: UTF-8 bytes.

    Returns:
        The document. Integers keep all their digits; lone surrogates are kept.

    Raises:
        NotJson: Not UTF-8, not JSON, ``NaN``, a number that overflows a double (``1e400``), an integer of
            more than 1,000 digits, or nesting deeper than 100.
    """
    try:
        document: Json = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _parse_slowly(data)
    if _has_huge_float(document, MAX_DEPTH):
        # orjson reads 18446744073709551617 as 1.8446744073709552e+19 without a word.
        return _parse_slowly(data)
    return document


def _has_huge_float(value: Json, levels: int) -> bool:
    """Tell whether a float stands here that may have been an integer; refuse what is too deep."""
    if isinstance(value, (dict, list)):
        if levels == 0:
            raise NotJson(f"nesting deeper than {MAX_DEPTH}")
        for child in value.values() if isinstance(value, dict) else value:
            kind = type(child)
            if kind is float:
                if not -_EXACT < child < _EXACT:  # type: ignore[operator]
                    return True
            elif (kind is dict or kind is list) and _has_huge_float(child, levels - 1):
                return True
        return False
    return isinstance(value, float) and not -_EXACT < value < _EXACT


_EXACT = 2.0**63


def _parse_slowly(data: bytes) -> Json:
    try:
        document: Json = json.loads(
            data.decode("utf-8"), parse_constant=_refuse_constant, parse_int=_read_integer, parse_float=_read_float
        )
    except RecursionError:
        raise NotJson(f"nesting deeper than {MAX_DEPTH}") from None
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON at character {error.pos}: {error.msg}") from None
    _has_huge_float(document, MAX_DEPTH)
    return document


def _refuse_constant(name: str) -> Json:
    raise NotJson(f"{name} is not JSON")


def _read_integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise NotJson(f"an integer of {len(digits)} digits")
    return int(digits)


def _read_float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotJson(f"the number {text[:40]} is too large for a double")
    return value


# -- canonical bytes -----------------------------------------------------------------------------------


class _NeedsCare(Exception):
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
    except (_NeedsCare, TypeError):
        # TypeError: integers beyond 64 bits, and lone surrogates.
        return "".join(_write(document)).encode("utf-8")


def _for_orjson(value: Json) -> Any:
    """Return the value with its numbers as RFC 8785 writes them, or raise where names sort otherwise."""
    kind = type(value)
    if kind is dict:
        for name in value:  # type: ignore[union-attr]
            if not name.isascii() and max(name) >= "\ue000":  # type: ignore[union-attr]
                # Above the surrogates, the order by code point (orjson) and by UTF-16 unit part company.
                raise _NeedsCare
        return {name: _for_orjson(child) for name, child in value.items()}  # type: ignore[union-attr]
    if kind is list:
        return [_for_orjson(child) for child in value]  # type: ignore[union-attr]
    if kind is float:
        return number_for_orjson(value)  # type: ignore[arg-type]
    return value


def number_for_orjson(value: float) -> Any:
    """Return what orjson must be given so that it writes the float as ECMAScript does."""
    if value.is_integer() and -_EXACT < value < _EXACT:
        return int(value)
    if 1e-4 <= abs(value) < 1e15:
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
    mantissa, _, exponent_text = f"{value!r}e".partition("e")
    whole, _, fraction = mantissa.partition(".")
    exponent = int(exponent_text.rstrip("e") or 0)
    digits = (whole + fraction).lstrip("0")
    # ``point`` is where the decimal point stands, counted from the first digit.
    point = exponent + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        text = digits + "0" * (point - count)
    elif 0 < point <= 21:
        text = f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        power = f"{point - 1:+d}"
        text = f"{digits[0]}.{digits[1:]}e{power}" if count > 1 else f"{digits}e{power}"
    return sign + text


def _write(value: Json) -> Iterator[str]:
    """Yield the pieces of the canonical text: the rules themselves, with no library's help."""
    if value is None or isinstance(value, bool):
        yield {None: "null", True: "true", False: "false"}[value]
    elif isinstance(value, int):
        yield str(value)
    elif isinstance(value, float):
        whole = value.is_integer() and -_EXACT < value < _EXACT
        yield str(int(value)) if whole else canonical_number(value)
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
    return '"' + _ESCAPED.sub(lambda found: _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'


# -- digests -------------------------------------------------------------------------------------------


def _encode(text: str) -> bytes:
    """Return UTF-8, with a lone surrogate as the three bytes that it would have."""
    return text.encode("utf-8", "surrogatepass")


def digest_of(data: bytes | str) -> dict[str, Json]:
    """Return what stands in the key for data that are too long to stand there themselves."""
    raw = _encode(data) if isinstance(data, str) else data
    return {"$sha256": hashlib.sha256(raw).hexdigest(), "$bytes": len(raw)}


_HEX64 = re.compile(r"[0-9a-f]{64}")


def is_digest(value: Json) -> bool:
    """Tell whether a value is what :func:`digest_of` gives."""
    if not (isinstance(value, dict) and len(value) == 2):
        return False
    digest, length = value.get("$sha256"), value.get("$bytes")
    return isinstance(digest, str) and type(length) is int and _HEX64.fullmatch(digest) is not None


def digest_long_strings(value: Json) -> Json:
    """Replace, below a value and in place, every string of more than 1,024 UTF-8 bytes by its digest."""
    if isinstance(value, str):
        # No character takes more than four bytes: most strings are settled by their length.
        is_long = len(value) > DIGEST_ABOVE or (4 * len(value) > DIGEST_ABOVE and len(_encode(value)) > DIGEST_ABOVE)
        return digest_of(value) if is_long else value
    if isinstance(value, dict):
        for name, child in value.items():
            if isinstance(child, (str, dict, list)):
                value[name] = digest_long_strings(child)
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if isinstance(child, (str, dict, list)):
                value[index] = digest_long_strings(child)
    return value


def canonical_key_bytes(document: dict[str, Json]) -> bytes:
    """Return the canonical bytes of a document whose long strings have become digests.

    The same as :func:`digest_long_strings` and then :func:`canonical_bytes`, in one walk: every call pays for
    this. The document is used up.
    """
    try:
        _settle(document)
        return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    except (_NeedsCare, TypeError):
        return canonical_bytes(digest_long_strings(_unsettle(document)))


def _settle(value: Any) -> None:
    """Make a document ready for orjson, in place: long strings as digests, numbers as RFC 8785 writes them."""
    for step, child in value.items() if type(value) is dict else enumerate(value):
        kind = type(child)
        if kind is str:
            if len(child) > _SHORT and len(_encode(child)) > DIGEST_ABOVE:
                value[step] = digest_of(child)
        elif kind is dict:
            for name in child:
                if not name.isascii() and max(name) >= "\ue000":
                    raise _NeedsCare
            _settle(child)
        elif kind is list:
            _settle(child)
        elif kind is float:
            value[step] = number_for_orjson(child)


def _unsettle(value: Any) -> Any:
    """Undo what :func:`_settle` did to numbers before it gave up."""
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    if isinstance(value, dict):
        return {name: _unsettle(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_unsettle(child) for child in value]
    return value


# No character takes more than four bytes.
_SHORT = DIGEST_ABOVE // 4


# ``$sha256`` and ``$bytes`` as member names of a request would read like a digest of ours. The stored form
# escapes just those; the key document escapes every name that begins with ``$``.
_RESERVED = re.compile(r"\$+(sha256|bytes)")


def escape_names(value: Json, *, reserved_only: bool) -> Json:
    """Return the value with one more ``$`` before names that need it; digests are left as they are.

    Args:
        value: A document. It is not changed; parts without such names are shared with the result.
        reserved_only: ``True`` for a document as sent that is to be stored: only the names of a digest are
            escaped. ``False`` for a stored document that is to be hashed: all other ``$`` names are.
    """
    if isinstance(value, list):
        return [escape_names(child, reserved_only=reserved_only) for child in value]
    if not isinstance(value, dict) or (not reserved_only and is_digest(value)):
        return value
    return {
        f"${name}" if name.startswith("$") and (_RESERVED.fullmatch(name) is not None) is reserved_only else name: (
            escape_names(child, reserved_only=reserved_only)
        )
        for name, child in value.items()
    }


# -- strip ---------------------------------------------------------------------------------------------

# Only a newline cuts lines: U+00A0, U+2028, form feeds and the like are text.
_TRAILING = re.compile(r"[ \t\r]+(?=\n|\Z)")


def strip_lines(text: str) -> str:
    """Return the text without spaces, tabs and CR before each newline and at its end."""
    if " \n" in text or "\r\n" in text or "\t\n" in text or text[-1:] in _BLANKS:
        return _TRAILING.sub("", text)
    return text


_BLANKS = frozenset(" \t\r")


def strip_places(places: Iterable[Place]) -> None:
    """Strip the strings that stand at the places."""
    for container, step in places:
        text = container[step]  # type: ignore[index]
        if isinstance(text, str):
            container[step] = strip_lines(text)  # type: ignore[index]


def is_blank(text: str) -> bool:
    """Tell whether nothing visible stands in a text: white space and format characters do not count."""
    return not text.strip() or all(unicodedata.category(mark) in ("Cf", "Zs", "Cc", "Zl", "Zp") for mark in text)


# -- ignore --------------------------------------------------------------------------------------------


def remove_places(document: Json, paths: Paths) -> None:
    """Remove what stands at the paths: members of objects, elements of lists."""
    places = paths.places(document)
    # Elements go from the back, so that an index still names its element when its turn comes.
    for container, step in sorted(places, key=lambda place: place[1] if isinstance(place[1], int) else -1, reverse=True):
        if isinstance(container, dict):
            container.pop(step, None)  # type: ignore[arg-type]
        elif step < len(container):  # type: ignore[operator]
            del container[step]  # type: ignore[arg-type]


# -- mask ----------------------------------------------------------------------------------------------

#: The built-in masks: kinds of text that change from run to run.
MASKS: Mapping[str, re.Pattern[str]] = {
    "date": re.compile(
        r"\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)"
        r"|\b(?:0?[1-9]|[12]\d|3[01])\.? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?,? (?:19|20)\d\d\b"
        r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.? (?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?,? "
        r"(?:19|20)\d\d\b"
    ),
    "time": re.compile(r"(?<!\d)(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d\b|UTC\b))?"),
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    "path": re.compile(
        r"(?:/private)?/(?:tmp|var/folders|var/tmp)/[^\s\"'<>:;,]+"
        r"|/(?:home|Users|root)(?:/[^\s\"'<>:;,]+)"
        r"|[A-Za-z]:\\(?:Users|Temp|TEMP)\\[^\s\"'<>:;,]+"
    ),
    "port": re.compile(r"(?<=localhost:)\d{2,5}\b|(?<=127\.0\.0\.1:)\d{2,5}\b|(?<=\[::1\]:)\d{2,5}\b|(?<=0\.0\.0\.0:)\d{2,5}\b"),
}

#: Masks whose matches only say when: all are one. Those of the others refer to something and are numbered.
_UNNUMBERED = frozenset({"date", "time"})

# A placeholder of the redaction, or of an earlier mask, is atomic.
_PLACEHOLDER = re.compile(r"<redacted:[^<>]{1,80}>|<(?:date|time|[a-z_][a-z0-9_]*:\d+)>")


class Masker:
    """Replaces what varies from run to run, numbered by first appearance over one document.

    Args:
        masks: Names of built-in masks, or own names with their pattern, in the order they apply.
    """

    def __init__(self, masks: Mapping[str, re.Pattern[str]]) -> None:
        self._masks = masks
        self._numbers: dict[tuple[str, str], int] = {}

    def document(self, value: Json) -> Json:
        """Mask every string value below a value, in place, members in sorted order; return it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            # Sorted: an SDK that reorders its members must not renumber.
            for name in sorted(value):
                value[name] = self.document(value[name])
        elif isinstance(value, list):
            for index, child in enumerate(value):
                value[index] = self.document(child)
        return value

    def text(self, text: str) -> str:
        """Return the text with every match of every mask replaced."""
        for name, pattern in self._masks.items():
            pieces, position = [], 0
            for atom in _PLACEHOLDER.finditer(text):
                pieces += [self._replace(name, pattern, text[position : atom.start()]), atom[0]]
                position = atom.end()
            text = "".join([*pieces, self._replace(name, pattern, text[position:])])
        return text

    def _replace(self, name: str, pattern: re.Pattern[str], text: str) -> str:
        return pattern.sub(lambda found: self._placeholder(name, found[0]) if found[0] else "", text)

    def _placeholder(self, name: str, value: str) -> str:
        if name in _UNNUMBERED:
            return f"<{name}>"
        of_kind = sum(1 for kind, _ in self._numbers if kind == name)
        return f"<{name}:{self._numbers.setdefault((name, value), of_kind + 1)}>"


def mask_text(name: str, text: str) -> str:
    """Return the text with every match of one built-in mask replaced.

    Raises:
        OptionError: There is no such mask.
    """
    if name not in MASKS:
        raise OptionError(f"there is no mask {name!r}; there are {', '.join(sorted(MASKS))}")
    return Masker({name: MASKS[name]}).text(text)


# -- fold ----------------------------------------------------------------------------------------------


def is_same_json(left: Json, right: Json) -> bool:
    """Tell whether two values are the same JSON: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same_json, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same_json(child, right[name]) for name, child in left.items())
    return left == right


def fold_defaults(
    members: dict[str, Json],
    defaults: Mapping[str, Json],
    is_wanted: Callable[[str], bool] = lambda _: True,
) -> list[str]:
    """Drop members that are equal to their documented default; return the names dropped."""
    dropped = [
        name
        for name, value in members.items()
        if name in defaults and is_same_json(value, defaults[name]) and is_wanted(name)
    ]
    for name in dropped:
        del members[name]
    return dropped


# -- rename --------------------------------------------------------------------------------------------


def rename_references(places: Iterable[Place]) -> None:
    """Rename the ids at the places to ``call_1``, ``call_2`` by first appearance; an empty id stays."""
    names: dict[str, str] = {}
    for container, step in places:
        reference = container[step]  # type: ignore[index]
        if isinstance(reference, str) and reference:
            container[step] = names.setdefault(reference, f"call_{len(names) + 1}")  # type: ignore[index]
