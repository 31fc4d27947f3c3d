"""A recording: what is written on one line of a cassette, and what is read back from it.

``{"v":1,"kv":1,"key":…,"sample":0,"gen":0,"at":…,"dialect":…,"finish":…,"ms":…,"response":{…},"request":{…},
"policy":{…},"sum":…}``

The members stand in this order, so that an answer is cut out of the line without reading the request. A line
whose members stand otherwise is read all the same, only slower.
Nothing here opens a file.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from ._call import Json
from ._errors import CassetteDamaged, CassetteError
from ._fingerprint import KEY_VERSION
from ._layout import lay_out
from ._line import LINE_VERSION, Head, dump_json, dump_members, parse_line, seal
from ._parsing import NotJson, parse_json

__all__ = ["INCOMPARABLE", "NewRecording", "Recording", "StoredResponse"]


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
        response: ``status``, ``headers`` and one of ``json``, ``text``, ``base64``, ``script``; beside the
            first perhaps the ``layout`` in which it came.
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

    @property
    def body(self) -> bytes:
        """The members that do not depend on the generation, as JSON without its braces; rendered once.

        Raises:
            CassetteError: They cannot be written, or could not be read back.
        """
        # No ``cached_property``: before Python 3.12 all of a class share one lock, and a fork that finds it
        # taken leaves a child that waits for ever.
        body: bytes | None = self.__dict__.get("_body")
        if body is None:
            body = self.__dict__["_body"] = dump_members(self._members())
        return body

    def _members(self) -> dict[str, Json]:
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
        return members

    def line(self, gen: int, key_version: int) -> bytes:
        """Return the whole line without its newline.

        Args:
            gen: The generation of the recording.
            key_version: The version of the key's rules.
        """
        key, sample = self.key.hex(), self.sample
        head = f'{{"v":{LINE_VERSION},"kv":{key_version},"key":"{key}","sample":{sample},"gen":{gen},'
        return seal(head.encode() + self.body)


#: What a recording raises that is sealed, and yet holds no request that can be compared: edited by hand, or
#: imported.
INCOMPARABLE = (CassetteError, NotJson, KeyError, TypeError, ValueError, AttributeError, AssertionError)


class StoredResponse(NamedTuple):
    """The answer of a recording.

    Args:
        status: The status code.
        headers: Name and value of every header kept.
        kind: ``json``, ``text``, ``base64`` or ``script``.
        content: The body bytes; empty for a script.
        script: The events of a stream, for a script.
        framing: ``sse``, ``ndjson``, ``json-array`` or ``eventstream``, for a script.
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
        real_path: The file with links resolved, whatever folder the process works in by now.
    """

    __slots__ = ("_front", "_members", "head", "line", "number", "path", "real_path")

    def __init__(self, line: bytes, path: str, number: int, head: Head, real_path: str = "") -> None:
        self.line = line
        self.path = path
        self.real_path = real_path or path
        self.number = number
        self.head = head
        self._front = _FRONT.match(line, _KEY_END) if line.startswith(_START) else None
        self._members: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<Recording {self.head.key.hex()[:12]} {self.path}:{self.number}>"

    @property
    def members(self) -> dict[str, Any]:
        """Every member of the line, unknown ones included.

        Raises:
            CassetteDamaged: The line is sealed and yet not JSON.
        """
        if self._members is None:
            self._members = self._parse()
        return self._members

    def _parse(self) -> dict[str, Any]:
        try:
            members = parse_line(self.line)
        except NotJson as error:
            raise CassetteDamaged(f"the recording cannot be read: {error}", self.path, self.number) from error
        # The head has been read: what begins with a brace is an object.
        assert isinstance(members, dict)
        return members

    @property
    def at(self) -> str:
        """When it was recorded, as written on the line."""
        return self._front[1].decode() if self._front is not None else str(self.members.get("at", ""))

    @property
    def dialect(self) -> str:
        """The name of the wire format."""
        if self._front is not None:
            return self._front[2].decode()
        return str(self.members.get("dialect", "generic"))

    @property
    def request(self) -> dict[str, Json]:
        """The request as stored; a fresh copy each time.

        Raises:
            CassetteDamaged: There is none.
        """
        request = self._parse().get("request")
        if not isinstance(request, dict):
            raise CassetteDamaged("the recording holds no request", self.path, self.number)
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
        quick = None if self._front is None else _cut_response(self.line, self._front)
        if quick is not None:
            return quick
        members = self.members
        try:
            return _read_response(members.get("response"))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise CassetteDamaged(
                f"the recording has no answer that can be read: {error}", self.path, self.number
            ) from error


# Up to the key, every line begins alike.
_START = b'{"v":%d,"kv":%d,"key":"' % (LINE_VERSION, KEY_VERSION)
_KEY_END = len(_START) + 64

# What stands between the key and the answer, as it is written here but for finish reasons that are lists.
# Where the answer is JSON, the match ends where that begins; the last three groups are of its status, headers
# and layout.
_FRONT = re.compile(
    rb'","sample":\d+,"gen":\d+,"at":"([ !#-[\]-~]*)","dialect":"([ !#-[\]-~]*)","finish":(?:null|"[^"\\]*"),'
    rb'"ms":\d+,"response":(?:\{"status":(\d{3}),"headers":(\{(?:"[^"\\]*":"[^"\\]*",?)*\}),'
    rb'(?:"layout":"([a-z+]*)",)?"json":)?'
)
_REQUEST = b'},"request":{"method":'

#: How often ``_REQUEST`` may stand in an answer that is cut out; each time costs reading the answer so far.
_MOST_ECHOES = 4


def _cut_response(line: bytes, front: re.Match[bytes]) -> StoredResponse | None:
    """Cut a JSON answer out of a line without parsing the rest, or give up.

    The bytes of the answer are served as they stand, what they say is what was received; or in the layout in
    which they came.
    """
    _, _, status, headers, layout = front.groups()
    if status is None:
        return None
    start = front.end()
    end = line.find(_REQUEST, start)
    for _ in range(_MOST_ECHOES):
        if end == -1:
            break
        # It can stand inside the answer too, where a server echoes what it was sent; only at the right place
        # what stands before it is JSON.
        content = line[start:end]
        try:
            if layout is None:
                orjson.loads(content)
            else:
                content = lay_out(_parse_answer(content), layout.decode())
            pairs = tuple(orjson.loads(headers).items())
        except ValueError:
            end = line.find(_REQUEST, end + 1)
        else:
            return StoredResponse(int(status), pairs, "json", content, [], "", True)
    return None


def _parse_answer(content: bytes) -> Json:
    """Read JSON that was written here.

    Raises:
        ValueError: It is not JSON.
    """
    document: Json = orjson.loads(content)
    # orjson rounds long integers without a word. What it writes as it stands was read as it stands, and to
    # see that takes a fifth of the time of a look at every number.
    try:
        if orjson.dumps(document) == content:
            return document
    except TypeError:
        pass  # Nested deeper than it writes.
    return parse_json(content)


def _read_response(response: Any) -> StoredResponse:
    if not isinstance(response, dict):
        raise TypeError("it is no object")
    if "status" not in response:
        raise ValueError("it has no status")
    status, headers = (
        int(response["status"]),
        tuple((str(k), str(v)) for k, v in response.get("headers", {}).items()),
    )
    if "json" in response:
        document, layout = response["json"], response.get("layout")
        content = dump_json(document) if layout is None else lay_out(document, layout)
        return StoredResponse(status, headers, "json", content, [], "", True)
    if "text" in response:
        return StoredResponse(status, headers, "text", response["text"].encode("utf-8"), [], "", True)
    if "base64" in response:
        content = base64.b64decode(response["base64"], validate=True)
        return StoredResponse(status, headers, "base64", content, [], "", True)
    script, framing = response["script"], response.get("framing", "sse")
    if not isinstance(script, list) or framing not in ("sse", "ndjson", "json-array", "eventstream"):
        raise ValueError(f"a script with the framing {framing!r}")
    return StoredResponse(
        status, headers, "script", b"", script, framing, response.get("stored") != "verbatim"
    )
