"""Bytes read as events: cut anywhere, held against a reader that takes them all at once."""

from __future__ import annotations

from httpx_cassette.dialects._framing import (
    Event,
    EventParser,
    NdjsonParser,
    SseParser,
    render_ndjson,
    render_sse,
)
from tests.plain_reader import PlainEvent, read_lines, read_sse

__all__ = ["SEEDS", "check"]

#: The first byte says which framing it is and how it is cut.
SEEDS = [
    b"\x00data: a\n\ndata: [DONE]\n\n",
    b"\x02\xef\xbb\xbfdata: a\r\n\r\n: comment\r\n\r\n"
    b"event: x\r\nid: 7\r\nretry: 9\r\ndata: b\r\ndata: c\r\n\r\n",
    b"\x04data: a\r\rerror: no\r\rdata: \xc3\xa9\xe2\x80\xa8\xff\r\r",
    b'\x03{"a":1}\n\n {"b":2}\r\n{"c":"\xc3\xa9"}',
]


def check(data: bytes) -> None:
    """Read a body in several cuts, and write what was read."""
    choice, body = data[0] if data else 0, data[1:]
    is_sse = choice % 2 == 0
    whole = parse(is_sse, [body])
    assert whole == (read_sse if is_sse else read_lines)(body), "another reader reads other events"
    sizes = (1, 2, 3, choice // 2 + 1)
    for size in sizes:
        chunks = [body[start : start + size] for start in range(0, len(body), size)]
        assert parse(is_sse, chunks) == whole, f"cut into {size} bytes the events differ"
    events, is_text = whole
    if is_text:
        # A mark of UTF-8 in the first field's name would be taken for one of the body.
        render = render_sse if is_sse else render_ndjson
        written = b"\n" + b"".join(render(Event(*event)) for event in events)
        assert parse(is_sse, [written]) == whole, "what is written is read otherwise"


def parse(is_sse: bool, chunks: list[bytes]) -> tuple[list[PlainEvent], bool]:
    parser: EventParser = SseParser() if is_sse else NdjsonParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events += parser.flush()
    return [PlainEvent(*event) for event in events], parser.is_text
