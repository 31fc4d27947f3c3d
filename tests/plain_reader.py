"""A second reader of streams, sharing no code and no table with the package: the judge of what was stored.

It takes a body at once, and knows the chat format by heart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

__all__ = ["PlainEvent", "Said", "read_lines", "read_sse", "what_is_said"]


class PlainEvent(NamedTuple):
    """One event, its members as ``Event`` of the package has them."""

    data: str
    event: str | None = None
    id: str | None = None
    extra: tuple[tuple[str, str], ...] = ()


def read_sse(body: bytes) -> tuple[list[PlainEvent], bool]:
    """Return the events of a body, and whether all of it is text.

    As the standard says, but that unknown fields are kept, and that ``[DONE]`` and errors need no blank line.
    """
    lines = re.split(rb"\r\n|\r|\n", body.removeprefix(b"\xef\xbb\xbf"))
    rest = lines.pop()
    is_text = True
    events: list[PlainEvent] = []
    fields: list[tuple[bytes, bytes]] = []
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
            data = b"\n".join(found)
            used.append(data)
            named = {name: _text(value) for name, value in fields}
            others = tuple((_text(name), _text(value)) for name, value in extra)
            events.append(PlainEvent(_text(data), named.get(b"event") or None, named.get(b"id"), others))
        is_text = is_text and all(map(_is_text, used))
        fields = []
    return events, is_text


def read_lines(body: bytes) -> tuple[list[PlainEvent], bool]:
    """Return the lines of a body that are not blank, and whether all of it is text."""
    lines = [line for line in (line.strip(b" \t\r") for line in body.split(b"\n")) if line]
    return [PlainEvent(_text(line)) for line in lines], all(map(_is_text, lines))


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _is_text(raw: bytes) -> bool:
    return _text(raw).encode() == raw


# -- what a chat stream says ---------------------------------------------------------------------------

_CHOICE = r"choices\[[^]]*\]"
_PLACES = {
    "text": rf"{_CHOICE}\.(text|delta\.(content|refusal|reasoning|reasoning_content|reasoning_text"
    r"|function_call\.arguments|audio\.transcript|tool_calls\[[^]]*\]\.(function\.arguments|custom\.input)"
    r"|reasoning_details\[[^]]*\]\.(text|summary)))",
    "last": rf"usage|x_groq\.usage|timings|sla_metrics|{_CHOICE}\.(delta\.token_id|message\.content)",
    "padding": r"obfuscation",
    "finish": rf"{_CHOICE}\.finish_reason",
}
_TEXT, _LAST, _PADDING, _FINISH = (re.compile(pattern) for pattern in _PLACES.values())


class Said(NamedTuple):
    """What a chat stream says, however its texts are cut.

    Args:
        texts: The joined text of each place.
        last: The last of each running value.
        others: Everything else that was said at least once: an order, or a number of times, means nothing.
        ends: Finish reasons and what is no JSON object, in order.
    """

    texts: dict[str, str]
    last: dict[str, Any]
    others: set[str]
    ends: list[str]


def what_is_said(events: list[PlainEvent]) -> Said:
    """Read a chat stream without joining or comparing events."""
    said = Said({}, {}, set(), [])
    pieces: dict[str, list[str]] = {}
    for event in events:
        said.others.update(repr(field) for field in (event.event, event.id, *event.extra))
        try:
            value = json.loads(event.data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            said.ends.append(event.data if value is None else json.dumps(value))
            continue
        for place, item in _leaves("", value):
            _note(said, pieces, place, item)
    for place, found in pieces.items():
        # The halves of one character may come in two events.
        text = "".join(found).encode("utf-16-le", "surrogatepass")
        said.texts[place] = text.decode("utf-16-le", "surrogatepass")
    return said


def _note(said: Said, pieces: dict[str, list[str]], place: str, item: Any) -> None:
    if item is None or item == "" or _PADDING.fullmatch(place):
        return
    if _LAST.fullmatch(place):
        said.last[place] = item
    elif _TEXT.fullmatch(place) and isinstance(item, str):
        pieces.setdefault(place, []).append(item)
    else:
        said.others.add(f"{place} = {item!r}")
        if _FINISH.fullmatch(place):
            said.ends.append(f"{place} = {item!r}")


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and not _LAST.fullmatch(place) and not _PADDING.fullmatch(place):
        for name, child in value.items():
            yield from _leaves(f"{place}.{name}" if place else name, child)
    elif isinstance(value, list) and not _LAST.fullmatch(place):
        for position, child in enumerate(value):
            # Lists beside a text are joined, and the place of their elements says nothing.
            index = child.get("index", position) if isinstance(child, dict) else "*"
            yield from _leaves(f"{place}[{index!r}]", child)
    else:
        yield place, value
