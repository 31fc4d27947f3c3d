"""AWS's binary messages, written by hand from their description and read by botocore.

Nothing here uses the package under test.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["EVENTSTREAM", "USUAL", "chunk", "event", "exception", "message", "read"]

EVENTSTREAM = "application/vnd.amazon.eventstream"

#: The headers of an event beside its type.
USUAL = {":content-type": "application/json", ":message-type": "event"}


def message(headers: Mapping[str, str] | bytes, payload: bytes) -> bytes:
    """Return one message; headers that are bytes are written as they are."""
    written = headers if isinstance(headers, bytes) else b"".join(map(_header, headers.items()))
    lengths = struct.pack("!II", len(written) + len(payload) + 16, len(written))
    body = lengths + struct.pack("!I", zlib.crc32(lengths)) + written + payload
    return body + struct.pack("!I", zlib.crc32(body))


def _header(header: tuple[str, str]) -> bytes:
    name, value = (text.encode() for text in header)
    return bytes([len(name)]) + name + b"\x07" + struct.pack("!H", len(value)) + value


def event(kind: str, members: Any, padding: str | None = "abc") -> bytes:
    """Return the message of an event as Bedrock sends it."""
    padded = {**members, "p": padding} if padding is not None and isinstance(members, dict) else members
    return message({":event-type": kind, **USUAL}, _dump(padded))


def chunk(said: Any, padding: str | None = "abc") -> bytes:
    """Return a piece of what a model says in its own format."""
    inner = said.encode() if isinstance(said, str) else _dump(said)
    return event("chunk", {"bytes": base64.b64encode(inner).decode()}, padding)


def exception(kind: str, text: str) -> bytes:
    """Return the message that ends a stream which failed."""
    headers = {":exception-type": kind, **USUAL, ":message-type": "exception"}
    return message(headers, _dump({"message": text}))


def read(body: bytes) -> list[tuple[dict[str, Any], bytes]]:
    """Return headers and payload of the messages of a body, as botocore reads them."""
    from botocore.eventstream import EventStreamBuffer

    buffer = EventStreamBuffer()
    buffer.add_data(body)
    found = [(dict(each.headers), bytes(each.payload)) for each in buffer]

    assert sum(map(len, _divide(body))) == len(body)
    return found


def _divide(body: bytes) -> Iterable[bytes]:
    """Yield the messages of a body, told by their lengths."""
    while body:
        (length,) = struct.unpack("!I", body[:4])
        yield body[:length]
        body = body[length:]


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
