"""A server on loopback that answers in OpenAI's Responses format and is no model.

It thinks, calls the tools that it is given, and says something about their results; each answer, item and
call has an id of its own, as real ones have.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..loopback import Connection, serve

__all__ = ["ResponsesServer"]

#: Characters of a delta: they end within words, and within characters that are seen as one.
PIECE = 3


class ResponsesServer:
    """Answers as long as it runs.

    Attributes:
        calls: How many requests it got.
        url: The base URL for an SDK.
    """

    def __init__(self) -> None:
        self.calls = 0
        self.url = ""
        self._numbers = itertools.count(1)
        self._kept: dict[str, dict[str, Any]] = {}
        self._polls: dict[str, int] = {}
        self._running = contextlib.ExitStack()

    def start(self) -> None:
        """Listen."""
        url = self._running.enter_context(serve(self._answer))
        self.url = url.removesuffix("/chat/completions")

    def close(self) -> None:
        """Stop; may be called twice."""
        self._running.close()

    def _answer(self, connection: Connection) -> None:
        self.calls += 1
        head, _, body = connection.request.partition(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        parts = urlsplit(target)
        if method == "GET":
            query = parse_qs(parts.query)
            response = self._poll(parts.path.rpartition("/")[2])
            is_stream, after = query.get("stream") == ["true"], int(query.get("starting_after", ["-1"])[0])
        else:
            asked = json.loads(body)
            response = self._respond(asked)
            is_stream, after = asked.get("stream") is True, -1
        if not is_stream:
            connection.head("application/json")
            connection.chunk(json.dumps(response).encode())
        else:
            connection.head()
            for number, event in enumerate(_events(response)):
                if number > after:
                    numbered = {"type": event["type"], "sequence_number": number, **event}
                    connection.chunk(f"event: {event['type']}\ndata: {json.dumps(numbered)}\n\n".encode())
        connection.end()

    def _poll(self, name: str) -> dict[str, Any]:
        """Return a background answer: in progress when it is first asked for, then completed."""
        self._polls[name] = self._polls.get(name, 0) + 1
        response = self._kept[name]
        return {**response, "status": "in_progress", "output": []} if self._polls[name] == 1 else response

    def _respond(self, asked: dict[str, Any]) -> dict[str, Any]:
        items = (
            asked["input"]
            if isinstance(asked["input"], list)
            else [{"role": "user", "content": asked["input"]}]
        )
        results = [item["output"] for item in items if item.get("type") == "function_call_output"]
        last = items[-1]
        if asked.get("text", {}).get("format", {}).get("type") == "json_schema":
            output = [self._message(json.dumps({"city": "Paris", "degrees": 20}))]
        elif asked.get("tools") and last.get("role") == "user" and not results:
            output = [self._reasoning(), *(self._call(city) for city in ("Paris", "Oslo"))]
        elif "call_id" in last:
            output = [self._reasoning(), self._message("So: " + " ".join(results) + " 👩\u200d👧")]
        else:
            output = [self._message(f"You said: {last['content']}")]
        name = self._name("resp")
        response = {
            "id": name,
            "object": "response",
            "created_at": 1_767_225_600,
            "status": "completed",
            "background": asked.get("background", False),
            "error": None,
            "incomplete_details": None,
            "instructions": asked.get("instructions"),
            "model": asked.get("model", "stand-in"),
            "output": output,
            "parallel_tool_calls": True,
            "previous_response_id": asked.get("previous_response_id"),
            "tool_choice": "auto",
            "tools": asked.get("tools", []),
            "usage": {
                "input_tokens": 9,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 9,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 18,
            },
        }
        if asked.get("background"):
            self._kept[name] = response
            return {**response, "status": "queued", "output": []}
        return response

    def _name(self, kind: str) -> str:
        return f"{kind}_{next(self._numbers):032d}"

    def _message(self, text: str) -> dict[str, Any]:
        part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
        return {
            "type": "message",
            "id": self._name("msg"),
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }

    def _reasoning(self) -> dict[str, Any]:
        return {
            "type": "reasoning",
            "id": self._name("rs"),
            "summary": [{"type": "summary_text", "text": "**Thinking** of the weather."}],
            "encrypted_content": f"gAAAAAB{next(self._numbers)}",
        }

    def _call(self, city: str) -> dict[str, Any]:
        return {
            "type": "function_call",
            "id": self._name("fc"),
            "call_id": self._name("call"),
            "name": "get_weather",
            "arguments": json.dumps({"city": city}),
            "status": "completed",
        }


def _events(response: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer; the deltas of its calls come by turns."""
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    calls = []
    for index, item in enumerate(response["output"]):
        empty = {
            **item,
            **{name: type(item[name])() for name in ("content", "summary", "arguments") if name in item},
        }
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        if item["type"] == "function_call":
            calls.append((index, item))
            continue
        yield from _text_events(index, item)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    deltas = [
        list(_deltas("response.function_call_arguments", item["arguments"], _at(index, item)))
        for index, item in calls
    ]
    for turn in itertools.zip_longest(*deltas):
        yield from filter(None, turn)
    for index, item in calls:
        at = _at(index, item)
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


def _text_events(index: int, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    is_message = item["type"] == "message"
    kind, part = ("content", "content_part") if is_message else ("summary", "reasoning_summary_part")
    text_kind = "response.output_text" if is_message else "response.reasoning_summary_text"
    for number, whole in enumerate(item[kind]):
        at = {**_at(index, item), f"{kind}_index": number}
        yield {"type": f"response.{part}.added", **at, "part": {**whole, "text": ""}}
        more = {"logprobs": []} if is_message else {}
        yield from _deltas(text_kind, whole["text"], {**at, **more})
        yield {"type": f"{text_kind}.done", **at, **more, "text": whole["text"]}
        yield {"type": f"response.{part}.done", **at, "part": whole}


def _at(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return {"item_id": item["id"], "output_index": index}


def _deltas(kind: str, text: str, at: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(text), PIECE):
        padding = "x" * (start % 7 + 1)
        yield {"type": f"{kind}.delta", **at, "delta": text[start : start + PIECE], "obfuscation": padding}
