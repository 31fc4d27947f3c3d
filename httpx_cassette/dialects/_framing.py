"""How a streamed body is divided into events, and how an event is written again.

Decides where an event begins and ends, for server-sent events (SSE), for one JSON document a line
(NDJSON), for one JSON array that grows (Google's streams without ``alt=sse``) and for AWS's binary messages,
and how the JSON in it is read and written.  Knows nothing about providers: what an event means is read
elsewhere.

- Bytes may arrive cut anywhere: inside a character, inside CRLF.  Each byte is looked at once.
- Lines end at LF, CR or CRLF and nowhere else; U+2028 and U+0085 are text.
- Comments and events without content are not events.  An unknown field is kept: servers announce a
  failure inside a 200 as ``error: {...}``, which SSE clients skip without a word.
- JSON is written so that every client reads it alike: several split their input with
  ``str.splitlines``, so the characters at which that cuts are written as escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

import orjson

from .._call import Json
from .._parsing import parse_json
from ._eventstream import MessageReader, message_writer

__all__ = [
    "FRAMINGS",
    "Event",
    "EventParser",
    "EventStreamParser",
    "Framing",
    "JsonArrayParser",
    "NdjsonParser",
    "SseParser",
    "dump_event_json",
    "load_event_json",
    "render_message",
    "render_ndjson",
    "render_sse",
]

#: The terminal marker of OpenAI's format; servers that hang up right after it often owe the blank line.
DONE = "[DONE]"

#: Largest event held in memory: an inline image or a large completed response has a few MiB.
LIMIT = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event of a stream.

    Args:
        data: The text of its data lines, joined with LF; for NDJSON the line; for a message its payload.
        event: The SSE event name, or the type of a message's event.
        id: The SSE id, where this event carried one.
        extra: Other SSE fields in the order sent, ``retry`` included; the headers of an unusual message.  An
            SSE event with ``extra`` and empty ``data`` had no data.
    """

    data: str
    event: str | None = None
    id: str | None = None
    extra: tuple[tuple[str, str], ...] = ()


class EventParser(Protocol):
    """What turns the bytes of a body into events, as they come."""

    is_text: bool
    overflowed: bool
    is_torn: bool
    is_open: bool | None
    fault: str | None

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""

    def flush(self) -> list[Event]:
        """Return what the end of the body completes."""


class SseParser:
    """Reads server-sent events.

    Attributes:
        is_text: False once the body proved not to be UTF-8, or too long for one event: what was
            returned is then not the whole truth, and the bytes themselves should be kept.
        overflowed: An event passed the limit of 64 MiB; the rest of the body was not read.
        is_torn: The body ended in the middle of an event; known once it was flushed.
        is_open: Whether the framing itself says that more must come; ``None``, because SSE has no end.
        fault: What the framing itself says of a failure; ``None``, because SSE says nothing.
    """

    is_open: bool | None = None
    fault: str | None = None

    def __init__(self) -> None:
        self.is_text = True
        self.overflowed = False
        self.is_torn = False
        self._tail = bytearray()  # the unfinished line
        self._held = 0  # bytes of the finished lines of the unfinished event
        self._at_start = True
        self._after_cr = False
        self._data: list[bytes] = []
        self._name: str | None = None
        self._id: str | None = None
        self._extra: list[tuple[str, str]] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        if self._after_cr and chunk:
            # The second half of a CRLF that was cut in two.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if self.overflowed or not chunk:
            return []
        self._tail += chunk
        if b"\n" not in chunk and b"\r" not in chunk:
            return self._check_size([])
        self._after_cr = chunk.endswith(b"\r")
        lines = bytes(self._tail).splitlines()
        self._tail = bytearray() if chunk.endswith((b"\n", b"\r")) else bytearray(lines.pop())
        return self._check_size(self._read_lines(lines))

    def flush(self) -> list[Event]:
        """Return what the end of the body completes.

        An event without its blank line was cut short and is dropped, as the SSE standard says, unless
        it says ``[DONE]`` or announces an error.
        """
        lines = [bytes(self._tail)] if self._tail else []
        self._tail = bytearray()
        events = self._read_lines(lines)
        is_owed = self._data == [DONE.encode()] or any(name == "error" for name, _ in self._extra)
        if is_owed:
            events += self._dispatch()
        self.is_torn = bool(self._data or self._extra or self._name or self._id)
        return events

    def _check_size(self, events: list[Event]) -> list[Event]:
        if self._held + len(self._tail) > LIMIT:
            self.overflowed = True
            self.is_text = False
            self._tail = bytearray()
            self._data = []
            self._extra = []
        return events

    def _read_lines(self, lines: Iterable[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            if self._at_start:
                self._at_start = False
                line = line.removeprefix(_BOM)
            if line:
                self._read_field(line)
            else:
                events += self._dispatch()
        return events

    def _read_field(self, line: bytes) -> None:
        self._held += len(line)
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = self._decode(value) or None
        elif name == b"id":
            self._id = self._decode(value)
        elif name:  # without a name it is a comment
            self._extra.append((self._decode(name), self._decode(value)))

    def _dispatch(self) -> list[Event]:
        events: list[Event] = []
        if self._data or self._extra:
            data = self._decode(b"\n".join(self._data))
            events.append(Event(data, self._name, self._id, tuple(self._extra)))
            self._data = []
            self._extra = []
        self._name = self._id = None
        self._held = 0
        return events

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.is_text = False
            return raw.decode(errors="replace")


class NdjsonParser:
    """Reads one JSON document a line.

    Attributes:
        is_text: As for :class:`SseParser`.
        overflowed: As for :class:`SseParser`.
        is_torn: The last line has no end and is no JSON; known once the body was flushed.
        is_open: As for :class:`SseParser`.
        fault: As for :class:`SseParser`.
    """

    is_open: bool | None = None
    fault: str | None = None

    def __init__(self) -> None:
        self.is_text = True
        self.overflowed = False
        self.is_torn = False
        self._tail = bytearray()

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        if self.overflowed:
            return []
        self._tail += chunk
        lines: list[bytes] = []
        if b"\n" in chunk:
            lines = bytes(self._tail).split(b"\n")
            self._tail = bytearray(lines.pop())
        if len(self._tail) > LIMIT:
            self.overflowed = True
            self.is_text = False
            self._tail = bytearray()
        return self._read_lines(lines)

    def flush(self) -> list[Event]:
        """Return what the end of the body completes: the last line needs no line end."""
        line = bytes(self._tail)
        self._tail = bytearray()
        events = self._read_lines([line])
        for event in events:
            try:
                load_event_json(event.data)
            except ValueError:
                self.is_torn = True
        return events

    def _read_lines(self, lines: Iterable[bytes]) -> list[Event]:
        stripped = (line.strip(b" \t\r") for line in lines)
        return [Event(self._decode(line)) for line in stripped if line]

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.is_text = False
            return raw.decode(errors="replace")


_STRUCTURE = re.compile(rb'["\[\]{},]')
_IN_STRING = re.compile(rb'["\\]')


class JsonArrayParser:
    """Reads the elements of one JSON array, each as it is complete.

    Attributes:
        is_text: As for :class:`SseParser`; false too for what is not one array: elements that are missing
            between commas, or something in front of it.
        overflowed: As for :class:`SseParser`.
        is_torn: The array was not closed; known once the body was flushed.
        is_open: Whether the end of the array is still to come.
        fault: As for :class:`SseParser`.
    """

    fault: str | None = None

    def __init__(self) -> None:
        self.is_text = True
        self.overflowed = False
        self.is_torn = False
        self.is_open: bool | None = True
        self._tail = bytearray()  # the unfinished element, or what stands in front of the array
        self._depth = 0  # of brackets and braces: 1 is between two elements
        self._is_string = False
        self._is_escaped = False
        self._count = 0

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the elements that this chunk completes; what comes behind the array is not read."""
        events: list[Event] = []
        start = position = 0
        while self.is_open and not self.overflowed and position < len(chunk):
            if self._is_escaped:
                self._is_escaped = False
                position += 1
                continue
            found = (_IN_STRING if self._is_string else _STRUCTURE).search(chunk, position)
            if found is None:
                break
            position = found.end()
            if self._divides(found[0]):
                events += self._take(chunk[start : position - 1], found[0])
                start = position
        if self.is_open and not self.overflowed:
            self._tail += chunk[start:]
            if len(self._tail) > LIMIT:
                self.overflowed = True
                self.is_text = False
                self._tail = bytearray()
        return events

    def flush(self) -> list[Event]:
        """Take note of the end of the body; an element that the array does not end after was cut short."""
        self.is_torn = bool(self.is_open)
        return []

    def _divides(self, mark: bytes) -> bool:
        """Take note of a mark, and tell whether it is the array's own: its brackets and its commas."""
        if self._is_string:
            self._is_escaped = mark == b"\\"
            self._is_string = self._is_escaped
        elif mark == b'"':
            self._is_string = True
        elif mark in b"[{":
            self._depth += 1
            return self._depth == 1
        elif mark in b"]}":
            self._depth -= 1
            return self._depth == 0
        else:
            return self._depth == 1
        return False

    def _take(self, rest: bytes, mark: bytes) -> list[Event]:
        """Return the element, if there is one, that stands in front of a mark of the array."""
        raw = bytes(self._tail + rest).strip(b" \t\r\n")
        self._tail = bytearray()
        if mark in b"[{":
            self.is_text = self.is_text and mark == b"[" and raw in (b"", _BOM)
            return []
        self.is_open = self._depth > 0
        if mark == b"}" or not (raw or (mark == b"]" and not self._count)):
            # No array, or nothing on one side of a comma.
            self.is_text = False
        self._count += 1
        return [Event(self._decode(raw))] if raw else []

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.is_text = False
            return raw.decode(errors="replace")


class EventStreamParser:
    """Reads AWS's binary messages.

    Attributes:
        is_text: As for :class:`SseParser`; false too for a message with a header that is no text.
        overflowed: Always false: a message that is too long is a fault.
        is_torn: The body ended in the middle of a message; known once it was flushed.
        is_open: True in the middle of a message, and otherwise ``None``.
        fault: What an exception among the messages is called, or that one cannot be read.

    Raises:
        CassetteError: botocore is not installed.
    """

    overflowed = False

    def __init__(self) -> None:
        self._reader = MessageReader()
        self.is_text = True
        self.is_torn = False
        self.is_open: bool | None = None
        self.fault: str | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the events that this chunk completes."""
        messages = self._reader.feed(chunk)
        self.is_text, self.fault = self._reader.is_text, self._reader.fault
        self.is_open = self._reader.is_in_message or None
        return [Event(data, event, None, extra) for data, event, extra in messages]

    def flush(self) -> list[Event]:
        """Take note of the end of the body; a message without its end was cut short."""
        self.is_torn = self._reader.is_in_message
        return []


_LINE_END = re.compile(r"\r\n|\r|\n")


def render_sse(event: Event) -> bytes:
    """Return the bytes of one server-sent event, its blank line included."""
    data, name, ident, extra = event
    # The common event first: it is written once for each piece of a replayed text.
    if "\n" not in data and "\r" not in data and not extra and ident is None:
        head = "" if name is None else f"event: {name}\n"
        return f"{head}data: {data}\n\n".encode()
    lines = [] if name is None else [f"event: {name}"]
    if ident is not None:
        lines.append(f"id: {ident}")
    lines += [f"{field}: {value}" for field, value in extra]
    if data or not extra:
        lines += [f"data: {line}" for line in _LINE_END.split(data)]
    return ("\n".join(lines) + "\n\n").encode()


def render_ndjson(event: Event) -> bytes:
    """Return the bytes of one NDJSON line."""
    return f"{event.data}\n".encode()


def render_bare(event: Event) -> bytes:
    """Return the bytes of one element of an array."""
    return event.data.encode()


def render_message(event: Event) -> bytes:
    """Return the bytes of one binary message."""
    return _message_writer(event)(event.data.encode())


def _message_writer(event: Event) -> Callable[[bytes], bytes]:
    return message_writer(event.event, event.extra)


class Framing(NamedTuple):
    """One way of dividing a body into events.

    Args:
        parser: Makes what divides it.
        render: Returns the bytes of one event.
        opening: What stands in front of the first event.
        separator: What stands in front of each other one.
        closing: What stands behind the last.
        writer: Returns what writes events that differ from one in their data alone, where these do not stand
            last in it, between what is always the same.
    """

    parser: Callable[[], EventParser]
    render: Callable[[Event], bytes]
    opening: bytes = b""
    separator: bytes = b""
    closing: bytes = b""
    writer: Callable[[Event], Callable[[bytes], bytes]] | None = None

    def frame(self, events: Iterator[bytes]) -> Iterator[bytes]:
        """Return the chunks of a body: its events, and what the framing adds."""
        return events if not self.opening else self._enclose(events)

    def _enclose(self, events: Iterator[bytes]) -> Iterator[bytes]:
        before = self.opening
        for event in events:
            yield before + event
            before = self.separator
        # Without events the array is empty all the same.
        yield self.closing if before is self.separator else before + self.closing


#: Every framing, by the name under which recordings have it. Google ends the line at the comma of an array.
FRAMINGS = {
    "sse": Framing(SseParser, render_sse),
    "ndjson": Framing(NdjsonParser, render_ndjson),
    "json-array": Framing(JsonArrayParser, render_bare, b"[", b",\r\n", b"]"),
    "eventstream": Framing(EventStreamParser, render_message, writer=_message_writer),
}


#: DEL and the line ends of ``str.splitlines`` that JSON leaves unescaped.
_TO_ESCAPE = "\x7f\x85\u2028\u2029"


def dump_event_json(value: Json) -> str:
    """Return compact JSON text that no client divides at the wrong place.

    Raises:
        ValueError: The value holds a number that JSON cannot hold.
    """
    try:
        text = orjson.dumps(value).decode()
    except TypeError:
        # A lone surrogate, or an integer beyond 64 bits: the standard library writes both, as ASCII.
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in _TO_ESCAPE:
        if character in text:
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def load_event_json(text: str) -> Json:
    """Return the JSON value of a text, every integer digit kept.

    Raises:
        ValueError: The text is not JSON, or JSON that no line of a cassette can hold: ``NaN``, an infinity,
            an integer of more than 1,000 digits, or nesting deeper than 100.
    """
    return parse_json(text.encode("utf-8", "surrogatepass"))
