"""The messages of ``application/vnd.amazon.eventstream``, in which AWS frames its streams.

Decides what a message says, and writes one: its lengths with their checksum, headers, payload, and a
checksum of all that. Messages are read with botocore, which comes with the extra ``bedrock`` and is imported
when there is one to read; they are written without it, so that a replay needs nothing.
Knows nothing about providers.

- Every message seen so far has three headers (``_USUAL``); of any other one all headers are kept.
- The payload of a ``chunk`` is what a model says, in base64, which is undone: text must be seen to be joined,
  and secrets to be found. Padding beside it (``p``) is dropped.
- What is no text, or has a header that is none, is not understood: the bytes are to be kept as they came.
"""

from __future__ import annotations

import base64
import binascii
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from .._errors import CassetteError
from .._process import LOADING

__all__ = ["Message", "MessageReader", "load_reader", "message_writer"]

#: The headers of an event, beside its type.
_USUAL = ((":content-type", "application/json"), (":message-type", "event"))

#: The event whose payload is an envelope, and what may stand on it.
_ENVELOPE = "chunk"
_ON_ENVELOPE = frozenset({"bytes", "p"})

#: Two lengths and their checksum; what stands before the headers of a message.
_PRELUDE = 12
_CHECKSUM = 4
_STRING = 7

#: One byte says how long the name of a header is, two say it of a value.
_LONGEST_NAME, _LONGEST_VALUE = 255, 65_535


class Message(NamedTuple):
    """One message.

    Args:
        data: Its payload, out of its envelope if it was in one.
        event: The type of the event.
        extra: Its other headers, where they are not the usual ones or the payload of a ``chunk`` has another
            shape.
    """

    data: str
    event: str | None
    extra: tuple[tuple[str, str], ...]


def load_reader() -> Any:
    """Return botocore's class that reads messages.

    Raises:
        CassetteError: botocore is not installed.
    """
    try:
        with LOADING:
            from botocore.eventstream import EventStreamBuffer
    except ImportError as error:
        raise CassetteError(
            "botocore, which reads AWS's binary streams, is not installed: "
            "pip install 'httpx_cassette[bedrock]'"
        ) from error
    return EventStreamBuffer


class MessageReader:
    """Reads messages, as their bytes come.

    Attributes:
        is_text: False once a message was not understood.
        fault: What shows that the stream failed: an exception in it, or a message that cannot be read. What
            comes behind is not read.

    Raises:
        CassetteError: botocore is not installed.
    """

    def __init__(self) -> None:
        self._reader = load_reader()()
        self.is_text = True
        self.fault: str | None = None
        self._tail = bytearray()
        self._length = 0  # of the message that the tail begins with, once its prelude was read

    @property
    def is_in_message(self) -> bool:
        """Whether the bytes so far end in the middle of a message."""
        return bool(self._tail)

    def feed(self, chunk: bytes) -> list[Message]:
        """Return the messages that this chunk completes."""
        messages: list[Message] = []
        if self._is_over():
            return messages
        self._tail += chunk
        start = 0
        try:
            while not self._is_over() and len(self._tail) - start >= max(self._length, _PRELUDE):
                if not self._length:
                    self._begin(bytes(self._tail[start : start + _PRELUDE]))
                    continue
                messages.append(self._finish(bytes(self._tail[start + _PRELUDE : start + self._length])))
                start += self._length
                self._length = 0
        except Exception as error:  # What botocore raises on bytes that are none of its own is not told.
            self.fault = f"a message of the stream cannot be read: {type(error).__name__}"
        del self._tail[:start]
        return messages

    def _is_over(self) -> bool:
        return self.fault is not None

    def _begin(self, prelude: bytes) -> None:
        """Take the lengths of a message; botocore looks at their checksum, and whether they are possible."""
        length, of_headers = struct.unpack("!II", prelude[:8])
        self._reader.add_data(prelude)
        next(self._reader, None)
        # Behind the checksum: lengths that are damaged may be any.
        if length < _PRELUDE + of_headers + _CHECKSUM:
            raise ValueError("the headers are longer than the message")
        self._length = length

    def _finish(self, rest: bytes) -> Message:
        # At once: botocore copies all that it holds whenever it is given more.
        self._reader.add_data(rest)
        message = next(self._reader)
        headers: dict[str, object] = dict(message.headers)
        texts = tuple((name, value) for name, value in headers.items() if isinstance(value, str))
        self.is_text &= len(texts) == len(headers) and tuple(headers) != (":event-type",)
        self.fault = _exception_in(dict(texts))
        try:
            return _understand(message.payload.decode(), texts)
        except UnicodeDecodeError:
            self.is_text = False
            return Message("", None, ())


def _exception_in(headers: dict[str, str]) -> str | None:
    """Return what a message says that is no event, but says why there are no more."""
    if headers.get(":message-type") not in ("exception", "error"):
        return None
    kind = headers.get(":exception-type") or headers.get(":error-code") or "an error"
    return f"the stream carried {kind}"


def _understand(data: str, headers: tuple[tuple[str, str], ...]) -> Message:
    event = dict(headers).get(":event-type")
    extra = tuple(header for header in headers if header[0] != ":event-type")
    if event is None or dict(extra) != dict(_USUAL):
        return Message(data, event, extra)
    if event != _ENVELOPE:
        return Message(data, event, ())
    letter = _open(data)
    return Message(data, event, extra) if letter is None else Message(letter, event, ())


def _open(payload: str) -> str | None:
    """Return what is in an envelope, if it can be put there again."""
    try:
        envelope = orjson.loads(payload)
        if not isinstance(envelope, dict) or not envelope.keys() <= _ON_ENVELOPE:
            return None
        sealed = envelope["bytes"].encode("ascii")
        letter = base64.b64decode(sealed, validate=True)
        return letter.decode() if base64.b64encode(letter) == sealed else None
    except (AttributeError, KeyError, ValueError, binascii.Error):
        return None


def message_writer(event: str | None, extra: tuple[tuple[str, str], ...]) -> Callable[[bytes], bytes]:
    """Return what writes messages that differ in their data alone.

    Args:
        event: The type of the event.
        extra: Its other headers, if they are not the usual ones.

    Raises:
        ValueError: A name or a value is longer than its length can say.
    """
    headers = _write_headers(event, extra)
    is_sealed = event == _ENVELOPE and not extra

    def write(data: bytes) -> bytes:
        payload = b'{"bytes":"%s"}' % base64.b64encode(data) if is_sealed else data
        lengths = struct.pack("!II", _PRELUDE + len(headers) + len(payload) + _CHECKSUM, len(headers))
        message = lengths + struct.pack("!I", zlib.crc32(lengths)) + headers + payload
        return message + struct.pack("!I", zlib.crc32(message))

    return write


@lru_cache(maxsize=64)
def _write_headers(event: str | None, extra: tuple[tuple[str, str], ...]) -> bytes:
    named = () if event is None else ((":event-type", event),)
    return b"".join(_write_header(*header) for header in (*named, *(extra or (_USUAL if named else ()))))


def _write_header(name: str, value: str) -> bytes:
    raw_name, raw_value = name.encode(), value.encode()
    if len(raw_name) > _LONGEST_NAME or len(raw_value) > _LONGEST_VALUE:
        raise ValueError("a header of a binary message is too long")
    return struct.pack(f"!B{len(raw_name)}sBH", len(raw_name), raw_name, _STRING, len(raw_value)) + raw_value
