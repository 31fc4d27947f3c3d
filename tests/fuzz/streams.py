"""Chat streams that no server sends: put together from pieces, or raw; stored, replayed, and read plainly.

Texts must be equal to the character; everything else must have been said, though it may be said once where it
was said twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from httpx_cassette._live_stream import LiveStream
from httpx_cassette._redact import Redaction
from httpx_cassette.dialects import OPENAI_CHAT
from httpx_cassette.dialects._framing import Event, SseParser, render_sse
from httpx_cassette.dialects._script import assemble, cut, cut_bytes, replay_verbatim
from httpx_cassette.dialects.openai_chat import STREAM
from tests.plain_reader import PlainEvent, Said, what_is_said

__all__ = ["SEEDS", "check"]

_PLAIN = b"".join(
    b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"%b"},"finish_reason":null}]}\n\n' % text
    for text in (b"Hel", b"lo", b" \\ud83d", b"\\ude00 there")
)
_TOOLS = b"".join(
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":%b,"id":"t","function":{"name":"f",'
    b'"arguments":"%b"}}]},"finish_reason":null}],"usage":{"n":%b}}\n\n' % (index, text, index)
    for index, text in ((b"0", b"{"), (b"1", b'{\\"a'), (b"0", b"}"), (b"1", b'\\":1}'))
)
_END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

#: The first byte says whether the rest is a stream, or the numbers of the pieces of one.
SEEDS = [
    b"\0" + _PLAIN + _END,
    b"\0" + _TOOLS + _END,
    *(b"\1" + bytes((number * step + step) % 256 for number in range(200)) for step in (1, 7, 31, 101)),
]

_SIZES = (1, 3, 10**9)
_REDACTION = Redaction()


def check(data: bytes) -> None:
    """Store a stream as it would be stored, and hold every replay against what was received."""
    is_made, data = data[:1] > b"\0", data[1:]
    body = b"".join(map(render_sse, _Maker(data).events())) if is_made else data
    live = LiveStream("sse", OPENAI_CHAT)
    size = 1 + len(data) % 64
    for start in range(0, len(body), size):
        live.feed(body[start : start + size])
    live.flush()
    members = live.members(body, _REDACTION)
    if "script" not in members:
        return  # No text: its bytes are kept.
    assert live.fault is None or not live.fault.startswith("assembling it raised"), live.fault
    received = SseParser()
    events = [*received.feed(body), *received.flush()]
    done = next((number for number, event in enumerate(events) if event.data == "[DONE]"), len(events))
    events = events[: done + 1]
    script: Any = members["script"]
    expected = _said(events)
    if members["stored"] == "verbatim":
        assert _said(list(replay_verbatim(script))) == expected, "a verbatim stream says something else"
        return
    for size in _SIZES:
        pieces = list(cut(script, STREAM, size))
        assert list(cut_bytes(script, STREAM, size)) == list(map(render_sse, pieces)), "the two cuts differ"
        _compare(expected, _said(pieces), f"cut into {size}")
        assert assemble(pieces, STREAM) == script, f"cut into {size} and assembled again it differs"


def _said(events: list[Event]) -> Said:
    return what_is_said([PlainEvent(*event) for event in events])


def _compare(expected: Said, found: Said, how: str) -> None:
    for name, one, other in zip(Said._fields, expected, found, strict=True):
        if isinstance(one, set) and isinstance(other, set):
            one, other = one - other, other - one
        assert one == other, f"{how}, the {name} differ: {one!r} became {other!r}"


# -- the maker -----------------------------------------------------------------------------------------

_WORDS = (
    "a",
    "Hello",
    " ",
    "",
    "é漢",
    "\ud83d",
    "\ude00",
    '"',
    "\\",
    "\u2028",
    "@0",
    "\x01",
    "a:b",
    ":",
    "stop",
)
# One that is no integer stands for its position, for the package: no server sends such.
_INDEXES: tuple[Any, ...] = (0, 0, 0, 1, 1, 2, None, -1)
_ODD: tuple[Any, ...] = (None, 0, 1.5, True, [], {}, [None], {"index": 0}, [[]], "x")
_DELTAS = (
    "content", "content", "content", "refusal", "reasoning", "reasoning_content", "reasoning_text", "role",
    "unknown", "token_id", "annotations",
)  # fmt: skip


class _Maker:
    """Makes events of numbers: the same of the same."""

    def __init__(self, numbers: bytes) -> None:
        self._numbers = iter(numbers)
        self.is_over = False

    def _number(self, below: int) -> int:
        number = next(self._numbers, None)
        if number is None:
            self.is_over = True
            return 0
        return number % below

    def _one_of(self, choices: tuple[Any, ...]) -> Any:
        return choices[self._number(len(choices))]

    def events(self) -> Iterator[Event]:
        for _ in range(24):
            if self.is_over:
                return
            yield self._event()

    def _event(self) -> Event:
        kind = self._number(32)
        if kind == 0:
            return Event(self._one_of(("[DONE]", "7", "[]", "null", "{", "two\nlines", "", '"x"')))
        data = json.dumps(self._document(), ensure_ascii=kind % 2 == 0).encode("utf-8", "replace").decode()
        if kind == 1:
            return Event(data, self._one_of((None, "chunk", "error")), self._one_of((None, "1", "2")))
        return Event(data)

    def _document(self) -> dict[str, Any]:
        document: dict[str, Any] = {"id": self._one_of(("c", "c", "c", "c", "d"))}
        for _ in range(self._number(8) % 3):
            name = self._one_of(("usage", "obfuscation", "timings", "x_groq", "new"))
            document[name] = {"usage": {"n": self._number(4)}} if name == "x_groq" else self._one_of(_ODD)
        document["choices"] = [self._choice() for _ in range(self._one_of((1, 1, 1, 1, 0, 2)))]
        return document

    def _choice(self) -> Any:
        choice: dict[str, Any] = {"index": self._one_of(_INDEXES)}
        if choice["index"] is None:
            del choice["index"]
        choice["delta"] = self._delta()
        kind = self._number(16)
        if kind == 0:
            choice["logprobs"] = {"content": [{"token": self._one_of(_WORDS)}]}
        elif kind == 1:
            choice["text"] = self._one_of(_WORDS)
        elif kind == 2:
            choice["finish_reason"] = self._one_of(("stop", "stop", "", "length"))
        elif kind == 3:
            choice["message"] = {"content": self._one_of(_WORDS)}
        elif kind == 4:
            choice["token_ids"] = [self._number(9)]
        elif kind < 12:
            choice["finish_reason"] = None
        return choice

    def _delta(self) -> Any:
        kind = self._number(16)
        if kind == 0:
            return self._one_of(_ODD)
        delta: dict[str, Any] = {}
        if kind < 6:
            delta["tool_calls"] = [self._tool() for _ in range(1 + self._number(5) % 2)]
        if kind == 6:
            delta["reasoning_details"] = [self._detail()]
        if kind == 7:
            delta["function_call"] = {"name": self._one_of(_WORDS), "arguments": self._one_of(_WORDS)}
        if kind > 4:
            for _ in range(1 + self._number(8) % 2):
                delta[self._one_of(_DELTAS)] = self._one_of(_ODD if kind == 15 else _WORDS)
        return delta

    def _tool(self) -> Any:
        tool: dict[str, Any] = {"index": self._one_of(_INDEXES)}
        if tool["index"] is None:
            del tool["index"]
        kind = self._number(8)
        if kind < 3:
            tool["id"] = self._one_of(("t", "u"))
        if kind == 7:
            tool["custom"] = {"input": self._one_of(_WORDS)}
        else:
            tool["function"] = {"arguments": self._one_of(_WORDS)}
            if kind % 2:
                tool["function"]["name"] = self._one_of(("f", "f", "g", ""))
        return tool

    def _detail(self) -> Any:
        detail = {"index": self._one_of(_INDEXES), "type": "reasoning.text", "text": self._one_of(_WORDS)}
        if self._number(4) == 0:
            detail["signature"] = self._one_of(_WORDS)
        return detail
