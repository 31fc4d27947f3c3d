"""What a stand-in says in the formats that it does not know by itself.

Responses, Messages, Gemini, Cohere, Ollama, Workers AI, Bedrock and text generation, for
``StandInServer(answer=...)``; and chat at other paths than its own. The n-th answer is worded differently
from the one before it, so that only a replay can say the same twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from httpx_cassette._stand_in_answers import Completion, find_answer
from httpx_cassette.stand_in import Asked, Reply

from .aws_messages import EVENTSTREAM, chunk, event

__all__ = ["answer"]

_EVENTS = {"content-type": "text/event-stream"}


def answer(asked: Asked, nth: int) -> Reply | None:
    """Return the answer to a call of one of these formats, ``None`` for any other."""
    path, _, query = asked.path.partition("?")
    words = f"Venus, I would say, for the {nth}th time; ask a book."
    if path.endswith("/responses"):
        body = json.loads(asked.body)
        whole = _response(body, nth, words)
        return _reply(whole, _response_events(whole, words) if body.get("stream") else None)
    if path.endswith("/messages"):
        body = json.loads(asked.body)
        whole = _message(body, nth, words)
        return _reply(whole, _message_events(whole, words) if body.get("stream") else None)
    if path.endswith("/chat/completions"):
        # At whichever path a vendor has put it, and with a key in whichever header.
        said = find_answer("POST /v1/chat/completions", {"authorization": "any"}, asked.body, nth, words)
        assert isinstance(said, Completion)
        return _reply(said.whole(), said.events() if said.is_stream else None)
    if asked.path == "/":
        return _reply({}, _tokens(words))
    if path.startswith("/model/"):
        return _of_bedrock(path, json.loads(asked.body), nth, words)
    if path.endswith("/conversations"):
        body = json.loads(asked.body)
        return _reply(_conversation(nth, words), _conversation_events(nth, words) if body["stream"] else None)
    if path.endswith("/v2/chat"):
        body = json.loads(asked.body)
        message = {"role": "assistant", "content": [{"type": "text", "text": words}]}
        whole = {"id": f"c_{nth}", "message": message, "finish_reason": "COMPLETE", "usage": {}}
        return _reply(whole, _cohere_events(whole, words) if body.get("stream") else None)
    if path.endswith("/api/chat"):
        body = json.loads(asked.body)
        lines = _ollama_lines(body, words)
        if body.get("stream") is False:
            return _reply({**lines[-1], "message": {"role": "assistant", "content": words}}, None)
        written = (json.dumps(line).encode() + b"\n" for line in lines)
        return Reply(200, written, {"content-type": "application/x-ndjson"})
    if "/ai/run/" in path:
        body = json.loads(asked.body)
        whole = {"result": {"response": words, "usage": {}}, "success": True, "errors": [], "messages": []}
        return _reply(whole, _workers_ai_events(words) if body.get("stream") else None)
    if path.endswith(":generateContent"):
        return _reply(_candidate(words, "STOP"), None)
    if path.endswith(":streamGenerateContent") and "alt=sse" in query:
        pieces = _pieces(words)
        said = [_candidate(piece, None) for piece in pieces[:-1]] + [_candidate(pieces[-1], "STOP")]
        return _reply({}, (_event(each) for each in said))
    return None


def _reply(whole: Mapping[str, Any], events: Iterator[bytes] | None) -> Reply:
    if events is None:
        return Reply(200, json.dumps(whole).encode())
    return Reply(200, events, _EVENTS)


def _pieces(words: str) -> list[str]:
    return [f"{word} " for word in words.split(" ")[:-1]] + [words.split(" ")[-1]]


def _event(document: Mapping[str, Any], name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(document)}\n\n".encode()


# -- OpenAI's Responses --------------------------------------------------------------------------------


def _response(body: dict[str, Any], nth: int, words: str) -> dict[str, Any]:
    text = {"type": "output_text", "text": words, "annotations": [], "logprobs": []}
    item = {
        "id": f"msg_{nth}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    return {
        "id": f"resp_{nth}",
        "object": "response",
        "created_at": 1750000000,
        "status": "completed",
        "model": body["model"],
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 9,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 9,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 18,
        },
    }


def _response_events(whole: dict[str, Any], words: str) -> Iterator[bytes]:
    (item,) = whole["output"]
    (text,) = item["content"]
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    said: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        (
            "response.output_item.added",
            {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        ),
        ("response.content_part.added", {**place, "part": {**text, "text": ""}}),
        *(
            ("response.output_text.delta", {**place, "delta": piece, "logprobs": []})
            for piece in _pieces(words)
        ),
        ("response.output_text.done", {**place, "text": words, "logprobs": []}),
        ("response.content_part.done", {**place, "part": text}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]
    for number, (kind, members) in enumerate(said):
        yield _event({"type": kind, "sequence_number": number, **members}, kind)


# -- Anthropic's Messages ------------------------------------------------------------------------------


def _message(body: dict[str, Any], nth: int, words: str) -> dict[str, Any]:
    return {
        "id": f"msg_{nth}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": words}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 9, "output_tokens": 9},
    }


def _message_events(whole: dict[str, Any], words: str) -> Iterator[bytes]:
    for each in _said_of_a_message(whole, words):
        yield _event(each, each["type"])


def _said_of_a_message(whole: dict[str, Any], words: str) -> list[dict[str, Any]]:
    begun = {**whole, "content": [], "stop_reason": None, "usage": {"input_tokens": 9, "output_tokens": 1}}
    return [
        {"type": "message_start", "message": begun},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *(
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}}
            for piece in _pieces(words)
        ),
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]


# -- Gemini --------------------------------------------------------------------------------------------


def _candidate(words: str, finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [{"text": words}]}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "modelVersion": "gemini-2.5-flash",
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 9, "totalTokenCount": 18},
    }


# -- Ollama --------------------------------------------------------------------------------------------


def _ollama_lines(body: dict[str, Any], words: str) -> list[dict[str, Any]]:
    said = [
        {
            "model": body["model"],
            "created_at": f"2026-01-01T10:00:{number:02}Z",
            "message": {"role": "assistant", "content": piece},
            "done": False,
        }
        for number, piece in enumerate([*_pieces(words), ""])
    ]
    return [*said[:-1], {**said[-1], "done": True, "done_reason": "stop", "eval_count": 9}]


# -- Hugging Face's text generation --------------------------------------------------------------------


def _tokens(words: str) -> Iterator[bytes]:
    said = [
        {"index": number, "token": {"id": number, "text": piece, "logprob": -0.5, "special": False}}
        for number, piece in enumerate(_pieces(words), 1)
    ]
    said[-1] |= {
        "generated_text": words,
        "details": {"finish_reason": "length", "generated_tokens": len(said)},
    }
    for each in said:
        yield _event(each)


# -- Cohere --------------------------------------------------------------------------------------------


def _cohere_events(whole: dict[str, Any], words: str) -> Iterator[bytes]:
    begun = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    said: list[dict[str, Any]] = [
        {"type": "message-start", "id": whole["id"], "delta": {"message": begun}},
        {
            "type": "content-start",
            "index": 0,
            "delta": {"message": {"content": {"type": "text", "text": ""}}},
        },
        *(
            {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": piece}}}}
            for piece in _pieces(words)
        ),
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {}}},
    ]
    for each in said:
        yield _event(each, each["type"])
    yield b"data: [DONE]\n\n"


# -- Mistral's conversations ---------------------------------------------------------------------------

_USAGE = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}


def _conversation(nth: int, words: str) -> dict[str, Any]:
    entry = {"type": "message.output", "id": f"msg_{nth}", "role": "assistant", "content": words}
    return {
        "object": "conversation.response",
        "conversation_id": f"conv_{nth}",
        "outputs": [entry],
        "usage": _USAGE,
    }


def _conversation_events(nth: int, words: str) -> Iterator[bytes]:
    place = {"output_index": 0, "id": f"msg_{nth}", "content_index": 0, "role": "assistant"}
    said: list[dict[str, Any]] = [
        {"type": "conversation.response.started", "conversation_id": f"conv_{nth}"},
        *({"type": "message.output.delta", **place, "content": piece} for piece in _pieces(words)),
        {"type": "conversation.response.done", "usage": _USAGE},
    ]
    for each in said:
        yield _event(each, each["type"])


# -- Cloudflare's Workers AI ---------------------------------------------------------------------------


def _workers_ai_events(words: str) -> Iterator[bytes]:
    for number, piece in enumerate(_pieces(words)):
        yield _event({"response": piece, "p": "abcdefghij"[number % 7 :]})
    yield _event({"response": "", "usage": {"prompt_tokens": 27, "completion_tokens": 12}})
    yield b"data: [DONE]\n\n"


# -- Bedrock -------------------------------------------------------------------------------------------


def _of_bedrock(path: str, body: dict[str, Any], nth: int, words: str) -> Reply:
    message = _message({**body, "model": "any"}, nth, words)
    if path.endswith("/invoke"):
        return _reply(message, None)
    usage = {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}
    if path.endswith("/converse"):
        output = {"message": {"role": "assistant", "content": [{"text": words}]}}
        return _reply({"output": output, "stopReason": "end_turn", "usage": usage}, None)
    if path.endswith("/converse-stream"):
        deltas = [{"contentBlockIndex": 0, "delta": {"text": piece}} for piece in _pieces(words)]
        said = [
            event("messageStart", {"role": "assistant"}),
            *(event("contentBlockDelta", delta) for delta in deltas),
            event("messageStop", {"stopReason": "end_turn"}),
            event("metadata", {"usage": usage}),
        ]
    else:
        said = [*map(chunk, _said_of_a_message(message, words))]
    return Reply(200, said, {"content-type": EVENTSTREAM})
