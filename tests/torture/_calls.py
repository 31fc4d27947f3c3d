"""Calls as a program makes them: a client on a cassette transport, and the server behind it.

The server answers each question with the words that belong to it, so that whoever has a question can tell
whether an answer is the right one. It counts what it was paid for.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx

from httpx_cassette import Cassette, CassetteTransport

from ._store import text_of

__all__ = [
    "HOST",
    "URL",
    "Upstream",
    "answer_to",
    "ask",
    "async_client",
    "client",
    "events_of",
    "question",
    "said",
    "said_in",
    "transport",
]

HOST = "https://api.openai.com"
URL = f"{HOST}/v1/chat/completions"

#: Characters of a delta of the streams that are recorded.
_DELTA = 100


def question(words: str, *, stream: bool = False) -> dict[str, Any]:
    """Return the body of a call."""
    body: dict[str, Any] = {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": "You are a careful assistant."},
            {"role": "user", "content": words},
        ],
    }
    return {**body, "stream": True} if stream else body


def answer_to(words: str, least: int = 300, most: int = 600) -> str:
    """Return what the server says to a question."""
    return f"To {words!r}: {text_of(words.encode(), least, most)}"


def completion(text: str, **members: Any) -> dict[str, Any]:
    """Return a whole answer of the server."""
    message = {"role": "assistant", "content": text, "refusal": None, **members}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_750_000_000,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 20, "completion_tokens": 100, "total_tokens": 120},
    }


def events_of(text: str, delta: int = _DELTA) -> list[bytes]:
    """Return the events of a streamed answer, the end marker included."""
    pieces = [text[at : at + delta] for at in range(0, len(text), delta)]
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": piece}, None) for piece in pieces]
    deltas.append(({}, "stop"))
    return [*map(_event, deltas), b"data: [DONE]\n\n"]


def _event(delta: tuple[dict[str, Any], str | None]) -> bytes:
    choice = {"index": 0, "delta": delta[0], "finish_reason": delta[1], "logprobs": None}
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_750_000_000,
        "model": "gpt-4o-mini",
        "choices": [choice],
    }
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def said(response: httpx.Response) -> str:
    """Return what an answer says, streamed or not."""
    return said_in(response.content)


def said_in(content: bytes) -> str:
    """Return what the body of an answer says."""
    if not content.startswith(b"data:"):
        return str(json.loads(content)["choices"][0]["message"]["content"])
    pieces = []
    for event in content.split(b"\n\n"):
        if event.startswith(b"data: {"):
            for choice in json.loads(event[6:])["choices"]:
                pieces.append(choice["delta"].get("content") or "")
    return "".join(pieces)


class Upstream(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """The server.

    Args:
        say: What it says to a question.

    Attributes:
        paid: The questions that it was asked, in order.
    """

    def __init__(self, say: Callable[[str], str] = answer_to) -> None:
        self._say = say
        self.paid: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        text, is_stream = self._hear(request)
        if not is_stream:
            return httpx.Response(200, json=completion(text))
        return httpx.Response(200, headers=_EVENT_STREAM, content=iter(events_of(text)))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        text, is_stream = self._hear(request)
        if not is_stream:
            return httpx.Response(200, json=completion(text))
        return httpx.Response(200, headers=_EVENT_STREAM, content=_each(events_of(text)))

    def _hear(self, request: httpx.Request) -> tuple[str, bool]:
        body = json.loads(request.content)
        words = body["messages"][-1]["content"]
        self.paid.append(words)
        return self._say(words), body.get("stream") is True


_EVENT_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


async def _each(events: list[bytes]) -> AsyncIterator[bytes]:
    for event in events:
        await _checkpoint()
        yield event


async def _checkpoint() -> None:
    """Let other tasks run, under asyncio and under trio."""
    from anyio.lowlevel import checkpoint

    await checkpoint()


def client(
    source: Path | Cassette, mode: str, upstream: httpx.BaseTransport | None = None, **options: Any
) -> httpx.Client:
    """Return a client on a cassette."""
    return httpx.Client(transport=transport(source, mode, upstream, **options))


def async_client(
    source: Path | Cassette, mode: str, upstream: httpx.AsyncBaseTransport | None = None, **options: Any
) -> httpx.AsyncClient:
    """Return an async client on a cassette."""
    return httpx.AsyncClient(transport=transport(source, mode, upstream, **options))


def transport(source: Path | Cassette, mode: str, upstream: Any = None, **options: Any) -> CassetteTransport:
    """Return a transport on a cassette."""
    # Stops are looked for here, and must not turn the exit status of the trials into 2.
    return CassetteTransport(source, mode=mode, next_transport=upstream, **{"on_miss": None, **options})


def ask(asker: httpx.Client, words: str, *, stream: bool = False) -> httpx.Response:
    """Put a question and read the answer to its end."""
    return asker.post(URL, json=question(words, stream=stream))
