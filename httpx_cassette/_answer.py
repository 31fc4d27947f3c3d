"""What a call is answered with, as plain data; the transport makes a response of it.

Nothing here knows about httpx or files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import CassetteDamaged
from ._recording import Recording, StoredResponse
from .dialects import by_name, is_known
from .dialects._framing import FRAMINGS, Event, dump_event_json, load_event_json
from .dialects._reading import Noise, Said, StreamTable, table_reader
from .dialects._script import cut, cut_bytes, replay_verbatim

if TYPE_CHECKING:
    from ._settings import Settings
    from ._sink import Sink

__all__ = [
    "BINARY_CHUNK",
    "Forwarded",
    "Replayed",
    "Served",
    "check_answer",
    "cut_script",
    "render_script",
    "replay",
]


#: Bytes in each piece of a body that is no text, where ``wire_chunk_size`` says nothing. Speech is played
#: while it comes, and of MP3 with 128 kbit/s this is a quarter of a second.
BINARY_CHUNK = 4096


@dataclass(slots=True)
class Served:
    """What every response carries as ``response.extensions["httpx_cassette"]``.

    Args:
        outcome: ``replayed``, ``recorded``, ``live``, or ``ignored`` for a 404 that was made here. A response
            that is being recorded is ``live`` until its end has been stored.
        fingerprint: The key of the call, 64 hex digits; empty where none was computed.
        file: The cassette file, where the answer is in one.
        line: The line of it, from 1.
        sample: Which of several answers it is, from 0.
        at: When it was recorded, RFC 3339 in UTC.
    """

    outcome: str
    fingerprint: str = ""
    file: str | None = None
    line: int | None = None
    sample: int = 0
    at: str | None = None


class Replayed(NamedTuple):
    """An answer that is made here.

    Args:
        status: The status code.
        headers: Raw name and value of every header.
        content: The body, for one that is not a stream.
        chunks: Makes the chunks of a stream, one event each.
        served: Where it comes from.
        unknown: The dialect of a stream, where nobody registered it here, so that nothing says how it is cut.
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes
    chunks: Callable[[], Iterator[bytes]] | None
    served: Served
    unknown: str | None = None


class Forwarded(NamedTuple):
    """An answer of the real server, which the driver holds.

    Args:
        sink: Watches the body go by and stores it, where it is to be stored.
        served: Where it comes from.
    """

    sink: Sink | None
    served: Served


def replay(recording: Recording, served: Served, settings: Settings) -> Replayed:
    """Return the answer that a recording holds.

    Raises:
        CassetteDamaged: No answer can be made of it.
    """
    try:
        return _replay(recording.response(), recording.dialect, served, settings)
    except _NO_ANSWER as error:
        raise _damaged(recording, error) from error


def check_answer(recording: Recording) -> None:
    """Make sure that :func:`replay` has an answer, without making it.

    Raises:
        CassetteDamaged: No answer can be made of it.
    """
    try:
        stored = recording.response()
        _sent_headers(stored)
        if stored.kind == "script":
            _check_script(stored.script, stored.framing)
    except _NO_ANSWER as error:
        raise _damaged(recording, error) from error


#: What comes of a recording that is sealed, and yet of a shape that no recorder writes: edited by hand, or
#: imported.
_NO_ANSWER = (AttributeError, KeyError, TypeError, ValueError)


def _damaged(recording: Recording, error: Exception) -> CassetteDamaged:
    return CassetteDamaged(
        f"the recording has no answer that can be made: {error}", recording.path, recording.number
    )


#: Names and beginnings of names of headers that must not be sent again: of the connection or the encoding of
#: the body as received, or advice to come back later, which every replay would obey.
_OF_THE_CONNECTION = (
    "connection",
    "content-encoding",
    "content-length",
    "retry-after",
    "transfer-encoding",
    "x-ratelimit-reset",
    "x-should-retry",
)


def _replay(stored: StoredResponse, dialect: str, served: Served, settings: Settings) -> Replayed:
    headers = _sent_headers(stored)
    if stored.status >= 400:
        # Stored on request. SDKs retry 408, 409, 429 and 5xx, and would get the same answer each time.
        headers.append((b"x-should-retry", b"false"))
    if stored.kind == "script":
        _check_script(stored.script, stored.framing)
        # What is said is right all the same, and a release of before may lack what a later one has.
        unknown = dialect if stored.is_assembled and not is_known(dialect) else None
        return Replayed(
            stored.status, headers, b"", lambda: render_script(stored, dialect, settings), served, unknown
        )
    if stored.content:  # None may be what was sent to a HEAD, whose length is another's.
        headers.append((b"content-length", b"%d" % len(stored.content)))
        size = _size_of_pieces(stored, settings)
        if size is not None:
            content = stored.content
            return Replayed(stored.status, headers, b"", lambda: _in_wire_chunks((content,), size), served)
    return Replayed(stored.status, headers, stored.content, None, served)


def _sent_headers(stored: StoredResponse) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode("latin-1"), value.encode("latin-1", "replace"))
        for name, value in stored.headers
        if not name.lower().startswith(_OF_THE_CONNECTION)
    ]


def _size_of_pieces(stored: StoredResponse, settings: Settings) -> int | None:
    """Return in how many bytes at a time a whole body is sent, ``None`` for all of them at once."""
    if stored.kind == "json":
        return None  # Who reads JSON waits for its end.
    size = settings.wire_chunk_size or (BINARY_CHUNK if stored.kind == "base64" else None)
    return size if size is not None and size < len(stored.content) else None


def _check_script(script: list[Any], framing: str) -> None:
    """Meet a mistake now, not when half of the stream is with the caller."""
    write_head = FRAMINGS[framing].writer
    for event in script:
        if not isinstance(event, dict):
            raise TypeError("an event is no object")
        texts = [] if "json" in event else [("text", event.get("text"))]
        texts += [("extra field", text) for name, value in event.get("extra", ()) for text in (name, value)]
        texts += [(name, event[name]) for name in ("event", "id") if event.get(name) is not None]
        for name, text in texts:
            if not isinstance(text, str):
                raise ValueError(f"the {name} of an event is no text")
            text.encode()  # A lone surrogate, which JSON can escape, cannot be sent.
        if write_head is not None:  # Where an event has headers, they may be too long.
            write_head(Event("", event.get("event"), None, tuple(map(tuple, event.get("extra", ())))))


def render_script(stored: StoredResponse, dialect: str, settings: Settings) -> Iterator[bytes]:
    """Yield the bytes of a recorded stream, one event each, or as wire chunks of a fixed size."""
    if settings.noise:
        # Where there is no table, nothing says how such an event is cut.
        table = by_name(dialect).stream_in(stored.framing)
        chunks = _render_noisily(stored, table, settings.chunk_size)
    else:
        chunks = cut_script(stored, dialect, settings.chunk_size)
    return chunks if settings.wire_chunk_size is None else _in_wire_chunks(chunks, settings.wire_chunk_size)


def cut_script(stored: StoredResponse, dialect: str, size: int) -> Iterator[bytes]:
    """Yield the bytes of a recorded stream, one event each, texts cut into pieces of so many characters."""
    table = by_name(dialect).stream_in(stored.framing)
    if table is not None and stored.is_assembled:
        return cut_bytes(stored.script, table, size)
    framing = FRAMINGS[stored.framing]
    return framing.frame(map(framing.render, replay_verbatim(stored.script)))


#: What a client of the standard has to bear; as seen from OpenRouter, Azure and Perplexity.
_ANY_NOISE = {"sse": Noise(comments=True, crlf=True)}


def _render_noisily(stored: StoredResponse, table: StreamTable | None, size: int) -> Iterator[bytes]:
    noise = table.noise if table is not None else _ANY_NOISE.get(stored.framing, Noise())
    if table is not None and stored.is_assembled:
        events = cut(stored.script, table, size)
        if noise.empty_deltas:
            events = _with_empty_deltas(events, table)
    else:
        events = replay_verbatim(stored.script)
    if noise.pings and table is not None and table.ping is not None:
        events = _with_pings(events, table.ping)
    if noise.blanks:
        events = _with_blanks(events)
    framing = FRAMINGS[stored.framing]
    chunks = framing.frame(map(framing.render, events))
    if noise.comments:
        chunks = _with_comments(chunks)
    return (chunk.replace(b"\n", b"\r\n") for chunk in chunks) if noise.crlf else chunks


def _with_empty_deltas(events: Iterator[Event], table: StreamTable) -> Iterator[Event]:
    """Send a delta without text now and then, as servers do while a model thinks."""
    read, said = table_reader(table), Said()
    for number, event in enumerate(events):
        yield event
        try:
            value = load_event_json(event.data)
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        reading = read(value)
        is_new = said.note(reading)
        # Not where more than the text would be said twice: a finish reason, a running total, a number.
        is_plain = reading.is_divisible() and not (reading.is_ended or reading.totals or table.sequence)
        if is_plain and number % 4 == 1:
            reading.strip(table, is_new)
            yield event._replace(data=dump_event_json(value))


def _with_pings(events: Iterator[Event], ping: Event) -> Iterator[Event]:
    """Send a ping before the third event, where it mostly comes, and now and then; never first or last."""
    for number, event in enumerate(events):
        if number % 8 == 2:
            yield ping
        yield event


def _with_blanks(events: Iterator[Event]) -> Iterator[Event]:
    """Pad the data of events, each with another number of blanks."""
    for number, event in enumerate(events):
        is_object = event.data.endswith("}")
        yield event._replace(data=f"{event.data[:-1]}{' ' * (number % 14)}}}") if is_object else event


def _with_comments(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Add comments before and between events.

    Once events have come, a comment stands in front of the next one: openai's client takes comments alone,
    behind an event with an ``id``, for an event without data.
    """
    yield b": PROCESSING\n\n"
    for number, chunk in enumerate(chunks):
        yield (b": keepalive\n" if number % 8 == 3 else b"") + chunk


def _in_wire_chunks(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        rest += chunk
        whole = len(rest) - len(rest) % size
        for start in range(0, whole, size):
            yield rest[start : start + size]
        rest = rest[whole:]
    if rest:
        yield rest
