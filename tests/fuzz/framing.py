"""Bytes read as events: cut anywhere, held against a reader that takes them all at once."""

from __future__ import annotations

import re

from httpx_cassette.dialects._framing import (
    Event,
    EventParser,
    NdjsonParser,
    SseParser,
    render_ndjson,
    render_sse,
)

__all__ = ["SEEDS", "check"]

#: The first byte says which framing it is and how it is cut.
SEEDS = [
    b"\x00data: a\n\ndata: [DONE]\n\n",
    b"\x02\xef\xbb\xbfdata: a\r\n\r\n: comment\r\n\r\nevent: x\r\nid: 7\r\nretry: 9\r\ndata: b\r\ndata: c\r\n\r\n",
    b"\x04data: a\r\rerror: no\r\rdata: \xc3\xa9\xe2\x80\xa8\xff\r\r",
    b'\x03{"a":1}\n\n {"b":2}\r\n{"c":"\xc3\xa9"}',
]


def check(data: bytes) -> None:
    """Read a body in several cuts, and write what was read."""
    choice, body = data[0] if data else 0, data[1:]
    is_sse = choice % 2 == 0
    whole = parse(is_sse, [body])
    assert whole == (_read_sse(body) if is_sse else _read_ndjson(body)), "another reader reads other events"
    sizes = (1, 2, 3, choice // 2 + 1)
    for size in sizes:
        chunks = [body[start : start + size] for start in range(0, len(body), size)]
        assert parse(is_sse, chunks) == whole, f"cut into {size} bytes the events differ"
    events, is_text = whole
    if is_text:
        # A mark of UTF-8 in the first field's name would be taken for one of the body.
        written = b"\n" + b"".join(map(render_sse if is_sse else render_ndjson, events))
        assert parse(is_sse, [written]) == whole, "what is written is read otherwise"


def parse(is_sse: bool, chunks: list[bytes]) -> tuple[list[Event], bool]:
    parser: EventParser = SseParser() if is_sse else NdjsonParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    events += parser.flush()
    return events, parser.is_text


def _read_sse(body: bytes) -> tuple[list[Event], bool]:
    """Read events as the standard says, with the exceptions that the module's docstring names."""
    lines = re.split(rb"\r\n|\r|\n", body)
    if lines[0].startswith(b"\xef\xbb\xbf"):
        lines[0] = lines[0][3:]
    is_text = True
    events: list[Event] = []
    fields: list[tuple[bytes, bytes]] = []
    rest = lines.pop()
    for line in [*lines, *([rest] if rest else []), None]:
        if line:
            name, _, value = line.partition(b":")
            fields.append((name, value[1:] if value[:1] == b" " else value))
            continue
        found = [value for name, value in fields if name == b"data"]
        extra = [field for field in fields if field[0] not in (b"", b"data", b"event", b"id")]
        used = [part for field in fields if field[0] not in (b"", b"data") for part in field]
        is_owed = line is not None or found == [b"[DONE]"] or any(name == b"error" for name, _ in extra)
        if (found or extra) and is_owed:
            used.append(b"\n".join(found))
            names = [value.decode(errors="replace") for name, value in fields if name == b"event"]
            idents = [value.decode(errors="replace") for name, value in fields if name == b"id"]
            events.append(
                Event(
                    b"\n".join(found).decode(errors="replace"),
                    names[-1] or None if names else None,
                    idents[-1] if idents else None,
                    tuple((n.decode(errors="replace"), v.decode(errors="replace")) for n, v in extra),
                )
            )
        is_text = is_text and all(map(_is_text, used))
        fields = []
    return events, is_text


def _read_ndjson(body: bytes) -> tuple[list[Event], bool]:
    lines = [line for line in (line.strip(b" \t\r") for line in body.split(b"\n")) if line]
    return [Event(line.decode(errors="replace")) for line in lines], all(map(_is_text, lines))


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
