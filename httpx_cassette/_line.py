"""A line of a cassette as bytes: its head, its seal, and the JSON that it is written in.

A line is one JSON object. A recording begins with ``{"v":1,"kv":…,"key":…,"sample":…,"gen":…,``, so that a
scanner finds the key without parsing, and ends with ``,"sum":"…"}``: the first 16 hex digits of SHA-256 over
the bytes before. The seal catches bit rot and edits by hand.
What a recording holds between the two is not known here, and nothing here opens a file.
"""

from __future__ import annotations

import hashlib
import json
import re
from binascii import unhexlify
from math import isfinite
from typing import NamedTuple

import orjson

from ._call import Json
from ._errors import CassetteError, CassetteVersionError
from ._parsing import MAX_DEPTH, NotJson, parse_json

__all__ = [
    "HEAD",
    "LINE_VERSION",
    "MAX_LINE",
    "MAX_NUMBER",
    "Head",
    "bare",
    "dump_json",
    "dump_members",
    "has_seal",
    "head_of",
    "is_intact",
    "is_line_of",
    "parse_line",
    "read_head",
    "seal",
    "tear_note",
    "torn_length",
]

#: The version of the line format.
LINE_VERSION = 1

#: Bytes of the longest line that is written or read.
MAX_LINE = 64 * 1024 * 1024

#: The highest sample, generation and key version: a head has nine digits for each.
MAX_NUMBER = 10**9 - 1

# A body may be nested ``MAX_DEPTH`` deep, and stands a few levels down in its line.
_LINE_DEPTH = MAX_DEPTH + 8


# -- the head ------------------------------------------------------------------------------------------


class Head(NamedTuple):
    """What the index needs of a line.

    Args:
        key: The fingerprint, 32 bytes.
        sample: Which of several answers this is, from 0.
        gen: The generation; the highest of a key wins.
        key_version: The version of the key's rules.
    """

    key: bytes
    sample: int
    gen: int
    key_version: int


#: How a recording begins that was written here; editors and other programs may order its members otherwise.
HEAD = re.compile(rb'\{"v":1,"kv":(\d{1,9}),"key":"([0-9a-f]{64})","sample":(\d{1,9}),"gen":(\d{1,9}),"')


def read_head(line: bytes) -> Head | None:
    """Return the head of a line, or ``None`` where it is no recording.

    Args:
        line: The line without its newline.

    Raises:
        CassetteVersionError: The line was written in a newer format.
    """
    match = HEAD.match(line)
    if match is not None:
        version, key, sample, gen = match.groups()
        return Head(unhexlify(key), int(sample), int(gen), int(version))
    try:
        return head_of(parse_line(line))
    except NotJson:
        return None


def head_of(members: Json) -> Head | None:
    """Return the head of a line whose members may stand in any order, or ``None`` where it is no recording.

    Raises:
        CassetteVersionError: The line was written in a newer format.
    """
    if not isinstance(members, dict) or type(version := members.get("v")) is not int:
        return None
    if version > LINE_VERSION:
        raise CassetteVersionError(
            f"the line has format {version} and this release reads up to {LINE_VERSION}; "
            "upgrade httpx_cassette"
        )
    key, numbers = members.get("key"), [members.get(name, 0) for name in ("sample", "gen", "kv")]
    if (
        version < LINE_VERSION
        or not isinstance(key, str)
        or not _KEY.fullmatch(key)
        or "response" not in members
    ):
        return None
    if not all(type(number) is int and 0 <= number <= MAX_NUMBER for number in numbers):
        return None
    sample, gen, key_version = numbers
    return Head(unhexlify(key), sample, gen, key_version)  # type: ignore[arg-type]  # as was just seen


_KEY = re.compile("[0-9a-f]{64}")


def is_line_of(line: bytes, key: bytes) -> bool:
    """Tell whether a line still looks like a recording of a key; for one whose seal was checked before."""
    if line.find(key.hex().encode(), 0, 100) == -1:  # In the usual order it stands at byte 21.
        head = read_head(line)
        if head is None or head.key != key:
            return False
    return has_seal(line)


def bare(line: bytes) -> bytes:
    """Return a line without what editors and git put round it: a UTF-8 mark before it, a CR behind."""
    return line.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r")


# -- the seal ------------------------------------------------------------------------------------------

_MARK = b',"sum":"'
_SEAL = len(_MARK) + 16 + len(b'"}')


def seal(members: bytes) -> bytes:
    """Return a line out of its members: everything before ``,"sum"``."""
    return b'%b,"sum":"%b"}' % (members, _sum(members))


def _sum(members: bytes) -> bytes:
    return hashlib.sha256(members).hexdigest()[:16].encode()


def has_seal(line: bytes) -> bool:
    """Tell whether a line ends in a seal, right or wrong."""
    return line[-_SEAL : len(_MARK) - _SEAL] == _MARK and line.endswith(b'"}')


def is_intact(line: bytes) -> bool:
    """Tell whether a line carries the seal of its own bytes."""
    return has_seal(line) and line[len(_MARK) - _SEAL : -2] == _sum(line[:-_SEAL])


# -- torn lines ----------------------------------------------------------------------------------------

_TEAR = re.compile(rb'\{"v":1,"tear":\[\d{1,18},(\d{1,18})\]\}')


def tear_note(offset: int, length: int) -> bytes:
    """Return the line that says that the bytes before it were torn off by a crash.

    Args:
        offset: Where the torn line begins, in bytes from the start of the file.
        length: How many bytes of it there are.
    """
    return b'{"v":%d,"tear":[%d,%d]}' % (LINE_VERSION, offset, length)


def torn_length(line: bytes) -> int | None:
    """Return how many bytes the line before is said to have by a tear note, or ``None`` where this is none.

    The offset in the note is for people: concatenating cassettes moves it.
    """
    match = _TEAR.fullmatch(line)
    return None if match is None else int(match[1])


# -- its JSON ------------------------------------------------------------------------------------------

# Text stays readable, but what a terminal, an editor or a line splitter acts on is written as an escape: DEL,
# C1 controls, U+2028 and U+2029, the marks that change the direction of text, and lone surrogates.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def parse_line(line: bytes) -> Json:
    """Read the JSON of a line.

    Raises:
        NotJson: It is not JSON, or beyond the limits.
    """
    return parse_json(line, _LINE_DEPTH)


def dump_json(value: Json) -> bytes:
    """Write JSON in one line of UTF-8 in which nothing acts on a terminal or an editor.

    Raises:
        ValueError: It holds ``NaN`` or an infinity, or is nested too deeply to be read back.
    """
    return _dump(value)[0]


def dump_members(members: dict[str, Json]) -> bytes:
    """Write the members of a line, without braces.

    Raises:
        CassetteError: They cannot be written, or could not be read back.
    """
    try:
        data, is_plain = _dump(members)
        if not is_plain:
            parse_line(data)
    except (ValueError, TypeError) as error:
        raise CassetteError(f"the exchange cannot be written as a line of a cassette: {error}") from error
    return data[1:-1]


def _dump(value: Json) -> tuple[bytes, bool]:
    """Return the JSON, and whether it holds nothing but what orjson can write."""
    _refuse([value], _LINE_DEPTH)
    try:
        data: bytes = orjson.dumps(value)
    except TypeError:
        # Integers beyond 64 bits, and lone surrogates.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _UNSAFE.sub(_escape, text).encode("utf-8"), False
    if not data.isascii() or b"\x7f" in data:
        data = _UNSAFE.sub(_escape, data.decode("utf-8")).encode("utf-8")
    return data, True


def _refuse(value: dict[str, Json] | list[Json], levels: int) -> None:
    """Refuse what could not be read back, and ``NaN``, for which orjson writes ``null`` without a word."""
    for child in value.values() if type(value) is dict else value:
        kind = type(child)
        if kind is dict or kind is list:
            if levels == 0:
                raise ValueError(f"nesting deeper than {_LINE_DEPTH}")
            _refuse(child, levels - 1)  # type: ignore[arg-type]  # as its type says
        elif kind is float and not isfinite(child):  # type: ignore[arg-type]  # the same
            raise ValueError("JSON cannot hold NaN or an infinity")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
