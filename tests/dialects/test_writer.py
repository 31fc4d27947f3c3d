"""Writer's chat: OpenAI's at another path, each delta said twice."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette._call import Json
from httpx_cassette.dialects import COHERE_V1, GENERIC, OLLAMA, WRITER, Dialect, recognise
from httpx_cassette.dialects._framing import Event, dump_event_json
from httpx_cassette.dialects.writer import STREAM

from ..keying import HI, call, key_of
from ..stream_proof import SIZES, WIRE_SIZES, Case, cases, check_assembled, check_cut

ASKED: dict[str, Json] = {"model": "m", "messages": [HI]}
URL = "https://api.writer.com/v1/chat"


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v1/chat", ASKED, WRITER),
        ("/v1/chat", {"messages": [HI]}, GENERIC),
        ("/v1/chat", {"model": "m", "message": "hi"}, COHERE_V1),
        ("/api/chat", ASKED, OLLAMA),
        ("/v1/chat", None, GENERIC),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """Its neighbours' calls stay theirs."""
    assert dialect is recognise(path, body)


def test_blanks_and_stream_false_are_nothing() -> None:
    """A stream, and a default that nobody documents, are something."""
    bodies: list[dict[str, Json]] = [
        ASKED,
        {**ASKED, "messages": [{"role": "user", "content": "hi  "}]},
        {**ASKED, "stream": False},
        {**ASKED, "stream": True},
        {**ASKED, "temperature": 1},
    ]
    keys = [key_of(call(body, url=URL)) for body in bodies]

    assert keys[0] == keys[1] == keys[2]
    assert 3 == len(set(keys))


def chunk(said: dict[str, Json], finish: Json = None) -> dict[str, Json]:
    """Return one event."""
    choice: dict[str, Json] = {"index": 0, "message": said, "delta": said, "finish_reason": finish}
    return {"id": "w", "choices": [choice]}


def text(content: Json, **more: Json) -> dict[str, Json]:
    return {"content": content, "role": "assistant", "tool_calls": None, **more}


def calls(arguments: Json, name: Json = None) -> dict[str, Json]:
    call: Json = {"index": 0, "id": name and "c", "function": {"name": name, "arguments": arguments}}
    return text(None, tool_calls=[call])


def event(value: Any) -> Event:
    return Event(dump_event_json(value))


CASES = [
    Case(
        "text",
        [chunk(text("Hel")), chunk(text("lo")), chunk(text("!"), "stop")],
        # The role is said again and again, as a replay says it.
        [chunk(text("Hel")), chunk(text("lo!"), "stop")],
    ),
    Case(
        "call",
        [chunk(calls(None, "look")), chunk(calls('{"a"')), chunk(calls(": 1}")), chunk(text(None), "x")],
        [chunk(calls(None, "look")), chunk(calls('{"a": 1}')), chunk(text(None), "x")],
    ),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled(case: Case, size: int) -> None:
    """The message goes on as the delta does."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut(case: Case, size: int) -> None:
    """Both are cut side by side."""
    check_cut(case, event, STREAM, size)
