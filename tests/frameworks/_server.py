"""What the stand-in says to frameworks: it has their tools called, then says something about the weather.

Chat, Responses and Messages, plain and streamed, for ``StandInServer(answer=...)``; and the fields that dspy
reads from a text. The n-th answer is worded differently from the one before it, and its ids are its own, so
that only a replay can say the same twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from httpx_cassette.stand_in import Asked, Reply

__all__ = ["answer"]

CITIES = ("Paris", "Oslo")

_EVENTS = {"content-type": "text/event-stream; charset=utf-8"}

#: Characters of a delta: they end within words.
_PIECE = 5


def answer(asked: Asked, nth: int) -> str | Reply | None:
    """Return the answer to a call; ``None`` has the stand-in call the tool that was offered."""
    path = asked.path.partition("?")[0]
    if not path.endswith(("/chat/completions", "/responses", "/messages")):
        return Reply(404, b"{}")
    body = json.loads(asked.body)
    words = f"Rain, as on Venus, says answer {nth}. ☔"
    if path.endswith("/responses"):
        return _respond(body, nth, words)
    if path.endswith("/messages"):
        return _message(body, nth, words)
    if "[[ ## next_tool_name ## ]]" in str(body["messages"][0]["content"]):
        return _fields_of_a_turn(str(body["messages"][-1]["content"]))
    if "[[ ## answer ## ]]" in str(body["messages"][0]["content"]):
        return _fields({"reasoning": "I looked.", "answer": words})
    if isinstance(body.get("tool_choice"), dict):
        return _forced(body, nth)
    is_over = "tools" not in body or body["messages"][-1]["role"] == "tool"
    return words if is_over else None


def _reply(whole: dict[str, Any], events: Iterator[dict[str, Any]] | None) -> Reply:
    if events is None:
        return Reply(200, json.dumps(whole).encode())
    written = (f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events)
    return Reply(200, written, _EVENTS)


def _forced(body: dict[str, Any], nth: int) -> Reply:
    """Return a call of the function that must be called, with another city each time that one was refused."""
    refused = sum(message["role"] == "assistant" for message in body["messages"])
    parameter = next(iter(body["tools"][0]["function"]["parameters"]["properties"]))
    value = CITIES[min(refused, 1)] if parameter == "city" else f"Venus, says answer {nth}"
    function = {
        "name": body["tool_choice"]["function"]["name"],
        "arguments": json.dumps({parameter: value}),
    }
    call = {"index": 0, "id": f"call_{nth}", "type": "function", "function": function}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None}
    head = {"id": f"chatcmpl-{nth}", "created": 1_767_225_600, "model": body["model"]}
    usage = {"prompt_tokens": 20, "completion_tokens": 10 + nth, "total_tokens": 30 + nth}
    if not body.get("stream"):
        whole = {
            **head,
            "object": "chat.completion",
            "usage": usage,
            "choices": [{**choice, "message": said}],
        }
        return Reply(200, json.dumps(whole).encode())
    chunk = {**head, "object": "chat.completion.chunk", "choices": [{**choice, "delta": said}]}
    return Reply(200, f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), _EVENTS)


def _pieces(text: str) -> list[str]:
    return [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]


# -- dspy ----------------------------------------------------------------------------------------------


def _fields_of_a_turn(asked: str) -> str:
    """Return the call of a tool, and after its observation the call that ends the turns."""
    if "[[ ## observation_0 ## ]]" in asked:
        return _fields({"next_thought": "Enough.", "next_tool_name": "finish", "next_tool_args": "{}"})
    city = json.dumps({"city": CITIES[0]})
    return _fields({"next_thought": "I look.", "next_tool_name": "get_weather", "next_tool_args": city})


def _fields(values: dict[str, str]) -> str:
    written = [f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in values.items()]
    return "".join(written) + "[[ ## completed ## ]]"


# -- Anthropic's Messages ------------------------------------------------------------------------------


def _message(body: dict[str, Any], nth: int, words: str) -> Reply:
    content: list[dict[str, Any]] = [{"type": "text", "text": words}]
    is_over = not body.get("tools") or len(body["messages"]) > 1
    if not is_over:
        content = [
            {"type": "tool_use", "id": f"toolu_{nth}{city}", "name": "get_weather", "input": {"city": city}}
            for city in CITIES
        ]
    whole = {
        "id": f"msg_{nth}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "end_turn" if is_over else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 20, "output_tokens": 10 + nth},
    }
    return _reply(whole, _message_events(whole) if body.get("stream") else None)


def _message_events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 20, "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**whole, "content": [], "stop_reason": None, "usage": usage},
    }
    yield {"type": "ping"}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            opened = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        else:
            opened = {**block, "input": {}}
            pieces = ["", *_pieces(json.dumps(block["input"]))]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        yield {"type": "content_block_start", "index": index, "content_block": opened}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ends = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {
        "type": "message_delta",
        "delta": ends,
        "usage": {"output_tokens": whole["usage"]["output_tokens"]},
    }
    yield {"type": "message_stop"}


# -- OpenAI's Responses --------------------------------------------------------------------------------


def _respond(body: dict[str, Any], nth: int, words: str) -> Reply:
    is_over = any(item.get("type") == "function_call_output" for item in body["input"])
    part = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
    output: list[dict[str, Any]] = [
        {
            "type": "message",
            "id": f"msg_{nth}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
    ]
    if body.get("tools") and not is_over:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{nth}{city}",
                "call_id": f"call_{nth}{city}",
                "name": "get_weather",
                "arguments": json.dumps({"city": city}),
                "status": "completed",
            }
            for city in CITIES
        ]
    whole = {
        "id": f"resp_{nth}",
        "object": "response",
        "created_at": 1_767_225_600,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 10 + nth,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 30 + nth,
        },
    }
    return _reply(whole, _response_events(whole) if body.get("stream") else None)


def _response_events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    said: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(whole["output"]):
        emptied = {"content": []} if item["type"] == "message" else {"arguments": ""}
        opened = {**item, **emptied, "status": "in_progress"}
        said += [
            {"type": "response.output_item.added", "output_index": index, "item": opened},
            *_item_events(item, {"item_id": item["id"], "output_index": index}),
            {"type": "response.output_item.done", "output_index": index, "item": item},
        ]
    said.append({"type": "response.completed", "response": whole})
    for number, event in enumerate(said):
        yield {**event, "sequence_number": number}


def _item_events(item: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        for piece in _pieces(item["arguments"]):
            yield {"type": f"{kind}.delta", **place, "delta": piece}
        yield {"type": f"{kind}.done", **place, "arguments": item["arguments"], "name": item["name"]}
        return
    (part,) = item["content"]
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}
