"""The ollama SDK, in one colour, and a server that talks to it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import ollama

from httpx_cassette import CassetteTransport
from httpx_cassette.stand_in import Asked, Reply

from ._openai import Sdk

__all__ = ["HARD", "OllamaSdk", "answer"]

HARD = 'A café:\u2028 東京, 👩\u200d👧, data: [DONE]\n\n\x85{"done":true}\n'


class OllamaSdk(Sdk):
    """Makes clients, and takes from them what they give."""

    @contextlib.asynccontextmanager
    async def client(self, mode: str, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        self.transport = CassetteTransport(self.cassette, mode=mode, **options)
        make_client: Any = ollama.AsyncClient if self.is_async else ollama.Client
        client = make_client(host=self._url.removesuffix("/v1"), transport=self.transport)
        try:
            yield client
        finally:
            # Its own context manager awaits what is nothing to be awaited with the sync client.
            await self.result(client.close())


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer a call as Ollama would; ids and texts of each answer are its own."""
    body = json.loads(asked.body)
    if asked.path == "/api/embed":
        return _document({"model": body["model"], "embeddings": [[0.5, float(nth)]]})
    lines = _lines(body, nth)
    if body.get("stream") is False:
        return _document(_joined(lines))
    written = (json.dumps(line).encode() + b"\n" for line in lines)
    return Reply(200, written, {"content-type": "application/x-ndjson"})


def _document(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode(), {"content-type": "application/json; charset=utf-8"})


def _lines(body: dict[str, Any], nth: int) -> list[dict[str, Any]]:
    """Return the lines of one answer: thoughts, then what is said, then the counters."""
    counters = {"done_reason": "stop", "total_duration": 9, "prompt_eval_count": 20, "eval_count": 12}
    if "prompt" in body:
        said = [{"response": piece} for piece in _pieces(f"Answer {nth}: {HARD}")]
        last: dict[str, Any] = {"response": "", **counters, "context": [1, 2, nth]}
    else:
        said = [{"message": {"role": "assistant", **message}} for message in _messages(body["messages"], nth)]
        last = {"message": {"role": "assistant", "content": ""}, **counters}
    return [
        {
            "model": body["model"],
            "created_at": f"2026-01-01T10:00:{number % 60:02}.{nth}Z",
            **line,
            "done": line is last,
        }
        for number, line in enumerate([*said, last])
    ]


def _messages(messages: list[Any], nth: int) -> Iterator[dict[str, Any]]:
    """Yield the pieces of what is said in this turn: two calls, or a text."""
    turn = sum(message["role"] == "assistant" for message in messages)
    yield from ({"content": "", "thinking": piece} for piece in _pieces(f"Turn {turn} of {nth}."))
    if turn == 0 and messages[-1]["content"] == "How is the weather?":
        yield from ({"content": piece} for piece in _pieces("I look."))
        for index, city in enumerate(("Paris", "Oslo")):
            function = {"index": index, "name": "get_weather", "arguments": {"city": city}}
            yield {"content": "", "tool_calls": [{"id": f"call_{nth}{city}", "function": function}]}
    else:
        yield from ({"content": piece} for piece in _pieces(f"Answer {nth}: {HARD}"))


def _joined(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the one document that says what the lines do."""
    whole = dict(lines[-1])
    if "response" in whole:
        return {**whole, "response": "".join(line["response"] for line in lines)}
    message: dict[str, Any] = {"role": "assistant"}
    for line in lines:
        for name, value in line["message"].items():
            if name != "role":
                message[name] = message[name] + value if name in message else value
    return {**whole, "message": message}


def _pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]
