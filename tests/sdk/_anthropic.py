"""The anthropic SDK that is installed, in one colour, and a server that talks to it.

anthropic 2 runs on httpx2 and anthropic 0 on httpx; each has a sync and an async client.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic

from httpx_cassette.stand_in import Asked, Reply

from ._openai import Sdk

#: Whether the SDK is built on httpx2.
IS_ON_HTTPX2 = int(anthropic.__version__.partition(".")[0]) >= 1

#: With what looks like the id of an AWS key, by accident.
SIGNATURE = "EqQBCkYIARgCKkAs+AKIAQ3EGRSTUVWXYZ234/+by/somebody=="

HARD = "A café:\u2028 東京, 👩\u200d👧, data: [DONE]\n\nevent: message_stop"


class AnthropicSdk(Sdk):
    """Makes clients, and takes from them what they give."""

    @contextlib.asynccontextmanager
    async def client(self, mode: str, *, max_retries: int = 2, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        self.transport = make_transport(self.cassette, mode=mode, **options)
        make_client: Any = anthropic.AsyncAnthropic if self.is_async else anthropic.Anthropic
        make_http: Any = anthropic.DefaultAsyncHttpxClient if self.is_async else anthropic.DefaultHttpxClient
        client = make_client(
            api_key="any",
            base_url=self._url.removesuffix("/v1"),
            max_retries=max_retries,
            http_client=make_http(transport=self.transport),
        )
        async with self.opened(client):
            yield client


def make_transport(cassette: Any, **options: Any) -> Any:
    """Return a transport of the library on which the SDK is built."""
    if IS_ON_HTTPX2:
        from httpx_cassette.httpx2 import CassetteTransport as Httpx2CassetteTransport

        return Httpx2CassetteTransport(cassette, **options)
    from httpx_cassette import CassetteTransport

    return CassetteTransport(cassette, **options)


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer a call as Anthropic would; ids and texts of each answer are its own."""
    body = json.loads(asked.body)
    if "count_tokens" in asked.path:
        return Reply(200, json.dumps({"input_tokens": 20 + nth}).encode())
    content, reason = _content(body["messages"], nth)
    message = {
        "id": f"msg_standin{nth}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": 12},
    }
    if not body.get("stream"):
        return Reply(200, json.dumps(message).encode(), {"content-type": "application/json"})
    return Reply(200, _written(stream_of(message)), {"content-type": "text/event-stream; charset=utf-8"})


def _content(messages: list[Any], nth: int) -> tuple[list[dict[str, Any]], str]:
    """Return what is said in this turn: two calls, then what a search found, then a text."""
    signature = f"{SIGNATURE[:-2]}{nth}=="
    turn = sum(message["role"] == "assistant" for message in messages)
    thought = {"type": "thinking", "thinking": f"Turn {turn} of {nth}.", "signature": signature}
    if turn == 0 and messages[0]["content"] == "How is the weather?":
        calls = [
            {"type": "tool_use", "id": f"toolu_{nth}{city}", "name": "get_weather", "input": {"city": city}}
            for city in ("Paris", "Oslo")
        ]
        return [thought, {"type": "text", "text": "I look."}, *calls], "tool_use"
    if turn == 1:
        found = {
            "type": "web_search_result",
            "url": "https://example.com",
            "title": "Weather",
            "encrypted_content": signature,
            "page_age": None,
        }
        cited = {
            "type": "web_search_result_location",
            "cited_text": "Rain.",
            "url": "https://example.com",
            "title": "Weather",
            "encrypted_index": signature,
        }
        search = f"srvtoolu_{nth}"
        return [
            {"type": "redacted_thinking", "data": signature},
            {"type": "server_tool_use", "id": search, "name": "web_search", "input": {"query": "rain"}},
            {"type": "web_search_tool_result", "tool_use_id": search, "content": [found]},
            {"type": "text", "text": "It rains.", "citations": [cited]},
        ], "end_turn"
    return [{"type": "text", "text": f"Answer {nth}: {HARD}"}], "end_turn"


def stream_of(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events in which a message is streamed."""
    ends = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        opened, deltas = _divided(block)
        yield {"type": "content_block_start", "index": index, "content_block": opened}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": ends, "usage": {"output_tokens": 12}}
    yield {"type": "message_stop"}


def _divided(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it is opened, and what fills it."""
    kind = block["type"]
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
        signed = {"type": "signature_delta", "signature": block["signature"]}
        return {**block, "thinking": "", "signature": ""}, [*deltas, signed]
    if kind == "text":
        cited = [{"type": "citations_delta", "citation": each} for each in block.get("citations", ())]
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        return {**block, "text": "", **({"citations": []} if cited else {})}, [*cited, *deltas]
    if kind in ("tool_use", "server_tool_use"):
        pieces = ["", *_pieces(json.dumps(block["input"]))]
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": each} for each in pieces]
    return block, []


def _pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def _written(events: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for event in events:
        yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
