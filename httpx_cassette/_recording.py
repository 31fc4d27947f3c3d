"""One line of a cassette: how it is written, and how it is read back.

A line is one JSON object whose members stand in a fixed order, so that a scanner finds the key without
parsing and an answer is cut out of the line without reading the request:

``{"v":1,"kv":1,"key":…,"sample":0,"gen":0,"at":…,"dialect":…,"finish":…,"ms":…,"response":{…},"request":{…},
"policy":{…},"sum":…}``

``sum`` is the last member: the first 16 hex digits of SHA-256 over the bytes before ``,"sum"``. It catches
bit rot and edits by hand. A line whose members stand otherwise is read all the same, only slower.
Nothing here opens a file.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from ._call import Json
from ._canonical import NotJson, parse_json
from ._errors import CassetteDamaged, CassetteVersionError

__all__ = [
    "LINE_VERSION",
    "MAX_LINE",
    "Head",
    "NewRecording",
    "Recording",
    "StoredResponse",
    "dump_json",
    "read_head",
    "seal",
    "tear_note",
]

#: The version of the line format.
LINE_VERSION = 1

#: Bytes of the longest line that is written or read.
MAX_LINE = 64 * 1024 * 1024


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


@dataclass(frozen=True)
class NewRecording:
    """An exchange that is to be appended; the cassette gives it its generation.

    Args:
        key: The fingerprint, 32 bytes.
        sample: Which of several answers this is, from 0.
        at: When it was recorded, RFC 3339 in UTC.
        dialect: The wire format of the call.
        finish: The finish reason, a list when there are several choices, or ``None``.
        milliseconds: How long the exchange took.
        response: ``status``, ``headers`` and one of ``json``, ``text``, ``base64``, ``script``.
        request: The request as stored.
        policy: What the key depends on beside the request, where it is not the default.
    """

    key: bytes
    sample: int
    at: str
    dialect: str
    finish: Json
    milliseconds: int
    response: dict[str, Json]
    request: dict[str, Json]
    policy: dict[str, Json] = field(default_factory=dict)

    @cached_property
    def body(self) -> bytes:
        """The members that do not depend on the generation, as JSON without its braces."""
        members: dict[str, Json] = {
            "at": self.at,
            "dialect": self.dialect,
            "finish": self.finish,
            "ms": self.milliseconds,
            "response": self.response,
            "request": self.request,
        }
        if self.policy:
            members["policy"] = self.policy
        return dump_json(members)[1:-1]

    def line(self, gen: int, key_version: int) -> bytes:
        """Return the whole line without its newline.

        Args:
            gen: The generation of the recording.
            key_version: The version of the key's rules.
        """
        head = f'{{"v":{LINE_VERSION},"kv":{key_version},"key":"{self.key.hex()}","sample":{self.sample},"gen":{gen},'
        return seal(head.encode() + self.body)


def seal(members: bytes) -> bytes:
    """Return a line out of its members: everything before ``,"sum"``."""
    return b'%b,"sum":"%b"}' % (members, _sum(members))


def _sum(members: bytes) -> bytes:
    return hashlib.sha256(members).hexdigest()[:16].encode()


def tear_note(offset: int, length: int) -> bytes:
    """Return the line that says that the bytes before it were torn off by a crash.

    Args:
        offset: Where the torn line begins, in bytes from the start of the file.
        length: How many bytes of it there are.
    """
    return b'{"v":%d,"tear":[%d,%d]}' % (LINE_VERSION, offset, length)


# Text stays readable, but what a terminal, an editor or a line splitter acts on is written as an escape: DEL,
# C1 controls, U+2028 and U+2029, the marks that change the direction of text, and lone surrogates.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def dump_json(value: Json) -> bytes:
    """Write JSON in one line of UTF-8 in which nothing acts on a terminal or an editor.

    Raises:
        ValueError: It holds ``NaN`` or an infinity.
    """
    try:
        data: bytes = orjson.dumps(value)
    except TypeError:
        # Integers beyond 64 bits, and lone surrogates.
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return _UNSAFE.sub(_escape, text).encode("utf-8")
    if data.isascii() and b"\x7f" not in data:
        return data
    return _UNSAFE.sub(_escape, data.decode("utf-8")).encode("utf-8")


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


# -- reading -------------------------------------------------------------------------------------------

HEAD = re.compile(rb'\{"v":1,"kv":(\d{1,9}),"key":"([0-9a-f]{64})","sample":(\d{1,9}),"gen":(\d{1,9}),"')


def read_head(line: bytes) -> Head | None:
    """Return the head of a line, or ``None`` where it is no recording.

    Args:
        line: The line, or at least its first 200 bytes when it begins as usual.

    Raises:
        CassetteVersionError: The line was written in a newer format.
    """
    match = HEAD.match(line)
    if match is not None:
        version, key, sample, gen = match.groups()
        return Head(bytes.fromhex(key.decode()), int(sample), int(gen), int(version))
    return _read_odd_head(line)


def _read_odd_head(line: bytes) -> Head | None:
    """Read the head of a line whose members stand in another order, or that is no recording at all."""
    try:
        members = parse_json(line)
    except NotJson:
        return None
    if not isinstance(members, dict):
        return None
    version = members.get("v")
    if isinstance(version, int) and version > LINE_VERSION:
        raise CassetteVersionError(
            f"the line has format {version} and this release reads up to {LINE_VERSION}; upgrade httpx_cassette"
        )
    key, numbers = members.get("key"), [members.get(name, 0) for name in ("sample", "gen", "kv")]
    if not isinstance(key, str) or not re.fullmatch("[0-9a-f]{64}", key) or "response" not in members:
        return None
    if not all(type(number) is int and 0 <= number < 10**9 for number in numbers):
        return None
    sample, gen, key_version = numbers
    return Head(bytes.fromhex(key), sample, gen, key_version)  # type: ignore[arg-type]


class StoredResponse(NamedTuple):
    """The answer of a recording.

    Args:
        status: The status code.
        headers: Name and value of every header kept.
        kind: ``json``, ``text``, ``base64`` or ``script``.
        content: The body bytes; empty for a script.
        script: The events of a stream, for a script.
        framing: ``sse`` or ``ndjson``, for a script.
        is_assembled: Whether the script is assembled, or verbatim.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    kind: str
    content: bytes
    script: list[Any]
    framing: str
    is_assembled: bool


class Recording:
    """One recording, read from a line whose seal was checked.

    Args:
        line: The line without its newline.
        path: The cassette file.
        number: The line's number, from 1.
        head: What the index knows of it.
    """

    __slots__ = ("_members", "head", "line", "number", "path")

    def __init__(self, line: bytes, path: str, number: int, head: Head) -> None:
        self.line = line
        self.path = path
        self.number = number
        self.head = head
        self._members: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Recording {self.head.key.hex()[:12]} {self.path}:{self.number}>"

    @property
    def members(self) -> dict[str, Any]:
        """Every member of the line, unknown ones included."""
        if self._members is None:
            members = parse_json(self.line)
            assert isinstance(members, dict)
            self._members = members
        return self._members

    @property
    def at(self) -> str:
        """When it was recorded, as written on the line."""
        match = _AT.search(self.line, 0, 200)
        return match[1].decode() if match else str(self.members.get("at", ""))

    @property
    def dialect(self) -> str:
        """The name of the wire format."""
        return str(self.members.get("dialect", "generic"))

    @property
    def request(self) -> dict[str, Json]:
        """The request as stored; a fresh copy each time."""
        request = parse_json(self.line)["request"]  # type: ignore[index,call-overload]
        assert isinstance(request, dict)
        return request

    @property
    def policy(self) -> dict[str, Json]:
        """What the key depends on beside the request."""
        policy = self.members.get("policy", {})
        return policy if isinstance(policy, dict) else {}

    def response(self) -> StoredResponse:
        """Return the answer.

        Raises:
            CassetteDamaged: The line is sealed and yet no answer can be made of it.
        """
        quick = _cut_response(self.line)
        if quick is not None:
            return quick
        try:
            return _read_response(self.members["response"])
        except (KeyError, TypeError, ValueError, NotJson) as error:
            raise CassetteDamaged(f"the recording has no answer that can be read: {error}", self.path, self.number) from error


_AT = re.compile(rb',"at":"([^"\\]{1,64})"')
_RESPONSE = b',"response":{"status":'
_REQUEST = b'},"request":{"method":'
_JSON = b',"json":'


def _cut_response(line: bytes) -> StoredResponse | None:
    """Cut a JSON answer out of a line without parsing the rest, or give up.

    The bytes of the answer are served as they stand: a line holds JSON, and what it says is what was received.
    """
    start = line.find(_RESPONSE, 0, 400) + len(b',"response":')
    if start < len(_RESPONSE):
        return None
    # ``_REQUEST`` can stand inside the answer too, where a server echoes what it was sent; only at the
    # right one are the braces before it balanced.
    end = line.find(_REQUEST, start)
    while end != -1:
        name = line.find(_JSON, start, end)
        if name == -1:
            return None
        try:
            content = line[name + len(_JSON) : end]
            orjson.loads(content)
            head = orjson.loads(line[start:name] + b"}")
            return StoredResponse(head["status"], tuple(head["headers"].items()), "json", content, [], "", True)
        except (orjson.JSONDecodeError, KeyError, AttributeError):
            end = line.find(_REQUEST, end + 1)
    return None


def _read_response(response: Any) -> StoredResponse:
    status, headers = int(response["status"]), tuple((str(k), str(v)) for k, v in response.get("headers", {}).items())
    if "json" in response:
        return StoredResponse(status, headers, "json", dump_json(response["json"]), [], "", True)
    if "text" in response:
        return StoredResponse(status, headers, "text", response["text"].encode("utf-8"), [], "", True)
    if "base64" in response:
        content = base64.b64decode(response["base64"], validate=True)
        return StoredResponse(status, headers, "base64", content, [], "", True)
    script, framing = response["script"], response.get("framing", "sse")
    if not isinstance(script, list) or framing not in ("sse", "ndjson"):
        raise ValueError(f"a script with the framing {framing!r}")
    return StoredResponse(status, headers, "script", b"", script, framing, response.get("stored") != "verbatim")


# Bytes of ``,"sum":"<16 hex>"}``.
_SEAL = 26


def is_intact(line: bytes) -> bool:
    """Tell whether a line carries the seal of its own bytes."""
    members, mark, rest = line[:-_SEAL], line[-_SEAL:-_SEAL + 8], line[-_SEAL + 8 :]
    return mark == b',"sum":"' and rest == _sum(members) + b'"}'
