"""The anthropic SDK on httpx: a format that has no dialect yet is recorded as it came."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from httpx_cassette import CassetteTransport
from httpx_cassette.stand_in import Asked, Reply, StandInServer

anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed here; nox -s sdk_old has it")

if int(anthropic.__version__.partition(".")[0]) >= 1:
    pytest.skip("anthropic 1 and later are not built on httpx", allow_module_level=True)

pytestmark = pytest.mark.loopback

ASK: dict[str, Any] = {
    "model": "stand-in-large",
    "max_tokens": 100,
    "system": "You are a careful assistant.",
    "messages": [{"role": "user", "content": "What is a café?"}],
}

MESSAGE: dict[str, Any] = {
    "id": "msg_standin1",
    "type": "message",
    "role": "assistant",
    "model": "stand-in-large",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 20, "output_tokens": 1},
}

WORDS = ["A place", " for coffee:\u2028", "東京", " has many."]

EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": MESSAGE},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    *(
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
        for word in WORDS
    ),
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 12},
    },
    {"type": "message_stop"},
]


def answer(asked: Asked, nth: int) -> Reply:
    if json.loads(asked.body).get("stream"):
        events = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in EVENTS)
        return Reply(200, events, {"content-type": "text/event-stream; charset=utf-8"})
    content = [{"type": "text", "text": f"Answer {nth}: {''.join(WORDS)}"}]
    return Reply(200, json.dumps({**MESSAGE, "content": content, "stop_reason": "end_turn"}).encode())


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    with StandInServer(answer=answer) as server:
        yield server


def client(server: StandInServer, cassette: Path, mode: str) -> Any:
    http_client = httpx.Client(transport=CassetteTransport(cassette, mode=mode))
    return anthropic.Anthropic(
        api_key="any", base_url=server.url.removesuffix("/v1"), http_client=http_client
    )


def plain(client: Any) -> Any:
    """One answer in one piece."""
    return client.messages.create(**ASK).to_dict()


def streamed(client: Any) -> Any:
    """The helper that accumulates a stream."""
    with client.messages.stream(**ASK) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert "".join(WORDS) == text == final.content[0].text
    return final.to_dict()


@pytest.mark.parametrize(("talk", "form"), [(plain, "json"), (streamed, "script")])
def test_what_was_recorded_is_replayed_without_the_server(
    server: StandInServer, cassette: Path, talk: Any, form: str
) -> None:
    """Plain or streamed, the answer is the recorded one."""
    with client(server, cassette, "record") as recorder:
        recorded = talk(recorder)
    server.close()
    with client(server, cassette, "replay") as replayer:
        replayed = talk(replayer)
    (line,) = cassette.read_text().splitlines()
    recording = json.loads(line)

    assert recorded == replayed
    assert ("generic", True) == (recording["dialect"], form in recording["response"])
    assert recording["response"].get("stored", "verbatim") == "verbatim"
