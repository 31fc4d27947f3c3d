"""The cohere SDK, in one colour, and a server that talks to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import cohere
import httpx

from httpx_cassette import CassetteTransport
from httpx_cassette.stand_in import Asked, Reply

from ._openai import Sdk

__all__ = ["HARD", "CohereSdk", "answer"]

HARD = "A café:\u2028 東京, 👩\u200d👧, data: [DONE]\n\n\x85event: message-end\n"


class CohereSdk(Sdk):
    """Makes clients, and takes from them what they give."""

    @contextlib.asynccontextmanager
    async def client(self, mode: str, *, max_retries: int = 2, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        self.transport = CassetteTransport(self.cassette, mode=mode, **options)
        make_client: Any = cohere.AsyncClientV2 if self.is_async else cohere.ClientV2
        make_http: Any = httpx.AsyncClient if self.is_async else httpx.Client
        async with self.opened(make_http(transport=self.transport)) as http:
            yield make_client(
                api_key="any",
                base_url=self._url.removesuffix("/v1"),
                max_retries=max_retries,
                httpx_client=http,
            )

    def first_version(self, client: Any) -> Any:
        """Return a client of the first version that goes through the same transport."""
        make_client: Any = cohere.AsyncClient if self.is_async else cohere.Client
        wrapped = client._client_wrapper.httpx_client.httpx_client
        return make_client(api_key="any", base_url=self._url.removesuffix("/v1"), httpx_client=wrapped)


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer a call as Cohere would; ids and texts of each answer are its own."""
    body = json.loads(asked.body)
    if asked.path == "/v2/rerank":
        found = [{"index": 0, "relevance_score": 0.5 + nth / 100}]
        return _document({"id": f"r{nth}", "results": found, "meta": {}})
    if asked.path == "/v2/embed":
        return _document({"id": f"e{nth}", "embeddings": {"float": [[0.5, float(nth)]]}, "texts": ["a"]})
    if asked.path == "/v1/chat":
        return _answer_first(body, nth)
    message, reason = _message(body["messages"], nth)
    usage = {"tokens": {"input_tokens": 20.0, "output_tokens": 12.0}}
    if body.get("stream") is not True:
        whole = {"id": f"m{nth}", "message": message, "finish_reason": reason, "usage": usage}
        return _document(whole)
    end = {"type": "message-end", "delta": {"finish_reason": reason, "usage": usage}}
    written = [
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        for event in [*_events(message, nth), end]
    ]
    return Reply(200, iter([*written, b"data: [DONE]\n\n"]), {"content-type": "text/event-stream"})


def _document(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode(), {"content-type": "application/json"})


def _message(messages: list[Any], nth: int) -> tuple[dict[str, Any], str]:
    """Return what is said in this turn: two calls, then a text with a source, then a text."""
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn == 0 and messages[-1]["content"] == "How is the weather?":
        calls = [
            {
                "id": f"get_weather_{nth}{city}",
                "type": "function",
                "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
            }
            for city in ("Paris", "Oslo")
        ]
        plan = f"I look for {nth}."
        return {"role": "assistant", "tool_plan": plan, "tool_calls": calls}, "TOOL_CALL"
    thought = {"type": "thinking", "thinking": f"Turn {turn} of {nth}."}
    content = [thought, {"type": "text", "text": f"Answer {nth}: {HARD}"}]
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if turn == 1:
        source = {"type": "tool", "id": f"get_weather_{nth}:0", "tool_output": {"content": "rain"}}
        cited = {"start": 0, "end": 6, "text": "Answer", "sources": [source], "type": "TEXT_CONTENT"}
        message["citations"] = [cited]
    return message, "COMPLETE"


def _events(message: dict[str, Any], nth: int) -> Iterator[dict[str, Any]]:
    """Yield the events in which a message is streamed, but for its end."""
    empty = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    yield {"type": "message-start", "id": f"m{nth}", "delta": {"message": empty}}
    for piece in _pieces(message.get("tool_plan", "")):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}}
    for index, call in enumerate(message.get("tool_calls", ())):
        opened = {**call, "function": {**call["function"], "arguments": ""}}
        yield _event("tool-call-start", index, {"tool_calls": opened})
        for piece in _pieces(call["function"]["arguments"]):
            yield _event("tool-call-delta", index, {"tool_calls": {"function": {"arguments": piece}}})
        yield {"type": "tool-call-end", "index": index}
    for index, content in enumerate(message.get("content", ())):
        kind = content["type"]
        yield _event("content-start", index, {"content": {"type": kind, kind: ""}})
        for piece in _pieces(content[kind]):
            yield _event("content-delta", index, {"content": {kind: piece}})
        yield {"type": "content-end", "index": index}
    for index, cited in enumerate(message.get("citations", ())):
        yield _event("citation-start", index, {"citations": cited})
        yield {"type": "citation-end", "index": index}


def _event(kind: str, index: int, message: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "index": index, "delta": {"message": message}}


def _answer_first(body: dict[str, Any], nth: int) -> Reply:
    """Answer a call of the first version."""
    text = f"Answer {nth}: {HARD}"
    said = [{"role": "USER", "message": body["message"]}, {"role": "CHATBOT", "message": text}]
    whole = {
        "text": text,
        "generation_id": f"g{nth}",
        "finish_reason": "COMPLETE",
        "chat_history": [*body.get("chat_history", ()), *said],
    }
    if body.get("stream") is not True:
        return _document(whole)
    lines = [
        {"event_type": "stream-start", "generation_id": f"g{nth}"},
        *({"event_type": "text-generation", "text": piece} for piece in _pieces(text)),
        {"event_type": "stream-end", "finish_reason": "COMPLETE", "response": whole},
    ]
    written = (json.dumps({"is_finished": line is lines[-1], **line}).encode() + b"\n" for line in lines)
    return Reply(200, written, {"content-type": "application/stream+json"})


def _pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]
