"""What a call is answered with, as plain data; the transport makes a response of it.

Nothing here knows about httpx or files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ._recording import Recording, StoredResponse
from .dialects import by_name
from .dialects._framing import render_ndjson, render_sse
from .dialects._script import cut, replay_verbatim

if TYPE_CHECKING:
    from ._settings import Settings
    from ._sink import Sink

__all__ = ["Forwarded", "Replayed", "Served", "render_script", "replay"]


@dataclass(slots=True)
class Served:
    """What every response carries as ``response.extensions["httpx_cassette"]``.

    Args:
        outcome: ``replayed``, ``recorded`` or ``live``. A response that is being recorded is ``live`` until its
            end has been stored.
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
    """

    status: int
    headers: list[tuple[bytes, bytes]]
    content: bytes
    chunks: Callable[[], Iterator[bytes]] | None
    served: Served


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
    stored = recording.response()
    headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in stored.headers]
    if stored.status >= 400:
        # Stored on request. SDKs retry 408, 409, 429 and 5xx, and would get the same answer each time.
        headers.append((b"x-should-retry", b"false"))
    if stored.kind == "script":
        return Replayed(stored.status, headers, b"", lambda: render_script(stored, recording.dialect, settings), served)
    headers.append((b"content-length", str(len(stored.content)).encode()))
    return Replayed(stored.status, headers, stored.content, None, served)


def render_script(stored: StoredResponse, dialect: str, settings: Settings) -> Iterator[bytes]:
    """Yield the bytes of a recorded stream, one event each, or as wire chunks of a fixed size."""
    table = by_name(dialect).stream
    if stored.is_assembled and table is not None:
        events = cut(stored.script, table, settings.chunk_size)
    else:
        events = replay_verbatim(stored.script)
    render = render_ndjson if stored.framing == "ndjson" else render_sse
    chunks = map(render, events)
    if settings.noise:
        chunks = _with_noise(chunks, stored.framing)
    return chunks if settings.wire_chunk_size is None else _in_wire_chunks(chunks, settings.wire_chunk_size)


def _with_noise(chunks: Iterator[bytes], framing: str) -> Iterator[bytes]:
    """Add what servers send and parsers must bear: comments before, between and behind events, CRLF.

    Comments and line ends are as seen from OpenRouter, Azure and Perplexity. NDJSON has no such thing.
    """
    if framing == "ndjson":
        yield from chunks
        return
    first = next(chunks, b"")
    yield b": PROCESSING\r\n\r\n"
    for number, chunk in enumerate(chain([first], chunks)):
        yield chunk.replace(b"\n", b"\r\n")
        if number % 8 == 3:
            yield b": keepalive\r\n\r\n"


def _in_wire_chunks(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        rest += chunk
        whole = len(rest) - len(rest) % size
        for start in range(0, whole, size):
            yield rest[start : start + size]
        rest = rest[whole:]
    if rest:
        yield rest
