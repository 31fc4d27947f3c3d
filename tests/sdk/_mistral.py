"""The mistralai SDK that is installed, in one colour, and a server that talks to it.

mistralai 3 runs on httpx2 and mistralai 1 on httpx; one client has sync and async methods.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from httpx_cassette.stand_in import Asked, Reply

from ._openai import Sdk

try:
    import httpx2 as http
    from mistralai.client import Mistral

    from httpx_cassette.httpx2 import CassetteTransport as MistralTransport
except ImportError:
    import httpx as http  # type: ignore[no-redef]  # the library of the older SDK
    from mistralai import Mistral

    from httpx_cassette import CassetteTransport as MistralTransport  # type: ignore[assignment]  # as above

HARD = "A café:\u2028 東京, 👩\u200d👧, data: [DONE]\n\nevent: conversation.response.done"


class MistralSdk(Sdk):
    """Makes clients, and takes from them what they give."""

    @contextlib.asynccontextmanager
    async def client(self, mode: str, *, max_retries: int = 0, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        self.transport = MistralTransport(self.cassette, mode=mode, **options)
        make: Any = http.AsyncClient if self.is_async else http.Client
        async with self.opened(make(transport=self.transport)) as client:
            name = "async_client" if self.is_async else "client"
            yield Mistral(
                api_key="any",
                server_url=self._url.removesuffix("/v1"),
                **{name: client},  # type: ignore[arg-type]  # of either
            )

    def method(self, resource: Any, name: str) -> Any:
        """Return a method of a resource, the async one where the client is async."""
        return getattr(resource, f"{name}_async" if self.is_async else name)

    async def data(self, stream: Any) -> list[Any]:
        """Return what the events of a stream hold, read to its end."""
        return [event.data for event in await self.items(await self.result(stream))]


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer a call as Mistral would; ids and texts of each answer are its own."""
    body = json.loads(asked.body)
    if asked.path.endswith("/ocr"):
        page = {"index": 0, "markdown": f"Page {nth}.", "images": [], "dimensions": None}
        usage = {"pages_processed": 1, "doc_size_bytes": 9}
        return _plain({"pages": [page], "model": body["model"], "usage_info": usage})
    if "/conversations" in asked.path:
        return _conversation(body, nth)
    message, finish = _message(body, nth)
    whole = {
        "id": f"standin{nth}",
        "created": 1750000000,
        "model": body.get("model", "agent"),
        "usage": {"prompt_tokens": 20, "total_tokens": 32, "completion_tokens": 12},
    }
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return _plain({**whole, "object": "chat.completion", "choices": [choice]})
    return Reply(200, _written(_chunks(whole, message, finish)), {"content-type": "text/event-stream"})


def _plain(document: dict[str, Any]) -> Reply:
    return Reply(200, json.dumps(document).encode(), {"content-type": "application/json"})


def _message(body: dict[str, Any], nth: int) -> tuple[dict[str, Any], str]:
    """Return what is said in this turn: two calls, then thoughts and text, then text."""
    messages = body.get("messages") or [{"role": "user", "content": "prompt"}]
    turn = sum(message["role"] == "assistant" for message in messages)
    if turn == 0 and body.get("tools"):
        calls = [
            {
                "id": f"{city[:4]}{nth:05}",
                "function": {"name": "get_weather", "arguments": json.dumps({"city": city})},
                "index": index,
            }
            for index, city in enumerate(("Paris", "Oslo"))
        ]
        return {"role": "assistant", "content": "", "tool_calls": calls}, "tool_calls"
    if turn == 1:
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": f"It rains, {nth}."}]}
        content: Any = [{**thought, "closed": True}, {"type": "text", "text": "It rains in both."}]
        return {"role": "assistant", "content": content}, "stop"
    return {"role": "assistant", "content": f"Answer {nth}: {HARD}"}, "stop"


def _chunks(whole: dict[str, Any], message: dict[str, Any], finish: str) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a message, padded at random; the calls come with the finish reason."""
    usage = whole.pop("usage")
    whole["object"] = "chat.completion.chunk"
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    content = message["content"]
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            deltas += [{"content": piece} for piece in _pieces(part)]
        elif part["type"] == "text":
            deltas += [{"content": piece} for piece in _pieces(part["text"])]
        else:
            text = part["thinking"][0]["text"]
            pieces = [{**part, "thinking": [{"type": "text", "text": piece}]} for piece in _pieces(text)]
            deltas += [{"content": [piece]} for piece in pieces]
    for number, delta in enumerate(deltas):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield {**whole, "choices": [choice], "p": "abcdefgh"[: 1 + number * 5 % 8]}
    last = {"tool_calls": message["tool_calls"]} if "tool_calls" in message else {"content": ""}
    yield {
        **whole,
        "choices": [{"index": 0, "delta": last, "finish_reason": finish}],
        "usage": usage,
        "p": "abc",
    }


def _written(chunks: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    for chunk in chunks:
        yield f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _pieces(text: str) -> list[str]:
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def _conversation(body: dict[str, Any], nth: int) -> Reply:
    """Answer with a call where tools are offered, and with a text where not."""
    usage = {"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32}
    call = {
        "id": f"fc_{nth}",
        "name": "get_weather",
        "tool_call_id": f"call{nth:05}",
        "arguments": json.dumps({"city": "Paris"}),
    }
    if not body.get("stream"):
        said = {"type": "message.output", "content": f"Answer {nth}: {HARD}", "id": f"msg_{nth}"}
        entry = {"type": "function.call", **call} if body.get("tools") else {**said, "role": "assistant"}
        document = {"object": "conversation.response", "conversation_id": f"conv_{nth}", "usage": usage}
        return _plain({**document, "outputs": [entry]})
    events: list[dict[str, Any]] = [
        {"type": "conversation.response.started", "conversation_id": f"conv_{nth}"}
    ]
    if body.get("tools"):
        pieces = [{**call, "arguments": piece} for piece in _pieces(call["arguments"])]
        events += [{"type": "function.call.delta", "output_index": 0, **piece} for piece in pieces]
    else:
        place = {"output_index": 0, "content_index": 0, "id": f"msg_{nth}", "role": "assistant"}
        text = f"Answer {nth}: {HARD}"
        events += [
            {"type": "message.output.delta", "created_at": f"2026-08-01T10:00:{at % 60:02}Z", **place}
            | {"content": piece}
            for at, piece in enumerate(_pieces(text))
        ]
    events.append({"type": "conversation.response.done", "usage": usage})
    written = (
        f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
        for event in events
    )
    return Reply(200, written, {"content-type": "text/event-stream"})
