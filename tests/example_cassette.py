"""A small cassette that the pages and the tests of the command share, made anew each time, byte for byte.

Triage of messages to a shop, by several models: plain and streamed, a call of a tool, an answer that was
recorded anew, one that has two samples, and a call in no known format.
"""

from __future__ import annotations

import copy
from pathlib import Path
from urllib.parse import urlsplit

from httpx_cassette._call import Json
from httpx_cassette._fingerprint import Draft, hash_document, key_document
from httpx_cassette._policy import DEFAULT_POLICY
from httpx_cassette._recording import NewRecording
from httpx_cassette.dialects import recognise

__all__ = ["example_lines", "exchange_line", "old_line", "write_changed_example", "write_example"]

_OPENAI = "https://api.openai.com/v1/chat/completions"
_SYSTEM = "You sort messages to a shop. Answer with one word."
_INVOICE = "I was charged twice for order 1042, see the invoice."


def exchange_line(
    url: str,
    body: Json,
    answer: dict[str, Json],
    *,
    finish: Json = None,
    at: str = "2026-11-29T12:00:00Z",
    milliseconds: int = 812,
    sample: int = 0,
    gen: int = 0,
) -> bytes:
    """Return the line of an exchange under its real key, without a newline.

    Args:
        url: What was called.
        body: The JSON of the request.
        answer: ``json``, or ``script`` with its ``framing``; or another form of body.
        finish: The finish reason.
        at: When it was recorded.
        milliseconds: How long it took.
        sample: Which of several answers it is.
        gen: Its generation.
    """
    target = urlsplit(url)
    dialect = recognise(target.path, body)
    request: dict[str, Json] = {"method": "POST", "url": url, "json": body}
    draft = Draft(copy.deepcopy(request), dialect, DEFAULT_POLICY, target.hostname or "")
    kind = "text/event-stream" if "script" in answer else "application/json"
    recording = NewRecording(
        key=hash_document(key_document(draft)),
        sample=sample,
        at=at,
        dialect=dialect.name,
        finish=finish,
        milliseconds=milliseconds,
        response={"status": 200, "headers": {"content-type": kind}, **answer},
        request=request,
    )
    return recording.line(gen, 1)


def chat(model: str, user: str, **options: Json) -> dict[str, Json]:
    """Return the body of a chat call."""
    messages: Json = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": user}]
    return {"model": model, "messages": messages, **options}


def chat_answer(model: str, message: Json, finish: str, tokens: tuple[int, int]) -> dict[str, Json]:
    """Return the answer to one."""
    return {
        "json": {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]},
        }
    }


def said(text: str) -> Json:
    """Return the message of an answer."""
    return {"role": "assistant", "content": text}


_TOOL: Json = {"type": "function", "function": {"name": "find_order", "parameters": {"type": "object"}}}
_CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "find_order", "arguments": '{"id": 1042}'}}
    ],
}


def _events() -> list[Json]:
    """Return a stream of Anthropic's, assembled."""
    events: list[dict[str, Json]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5",
                "content": [], "stop_reason": None, "usage": {"input_tokens": 31, "output_tokens": 1},
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Billing: the customer was charged twice."},
        },
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]  # fmt: skip
    return [{"event": event["type"], "json": event} for event in events]


def example_lines() -> list[bytes]:
    """Return the lines of the example, without newlines."""
    gemini: Json = {
        "systemInstruction": {"parts": [{"text": _SYSTEM}]},
        "contents": [{"role": "user", "parts": [{"text": "Where is my parcel?"}]}],
    }
    gemini_answer: dict[str, Json] = {
        "json": {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [{"text": "Shipping"}]},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {"promptTokenCount": 19, "candidatesTokenCount": 1},
            "modelVersion": "gemini-3-flash",
        }
    }
    anthropic: Json = {
        "model": "claude-sonnet-5", "max_tokens": 100, "stream": True, "system": _SYSTEM,
        "messages": [{"role": "user", "content": _INVOICE}],
    }  # fmt: skip
    stream: dict[str, Json] = {"framing": "sse", "stored": "assembled", "script": _events()}
    first = chat_answer("gpt-5", said("Billing"), "stop", (31, 2))
    return [
        exchange_line(_OPENAI, chat("gpt-5", _INVOICE), first, finish="stop"),
        exchange_line(
            _OPENAI,
            chat("gpt-5-mini", _INVOICE),
            chat_answer("gpt-5-mini", said("Complaint"), "stop", (31, 3)),
            finish="stop",
            milliseconds=404,
        ),
        exchange_line(
            _OPENAI,
            chat("gpt-5", "What became of order 1042?", tools=[_TOOL]),
            chat_answer("gpt-5", _CALL, "tool_calls", (57, 17)),
            finish="tool_calls",
            milliseconds=1210,
        ),
        exchange_line(
            "https://api.anthropic.com/v1/messages", anthropic, stream, finish="end_turn", milliseconds=1530
        ),
        exchange_line(
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:generateContent",
            gemini,
            gemini_answer,
            finish="STOP",
            at="2026-11-29T12:05:00Z",
            milliseconds=350,
        ),
        exchange_line(
            "https://api.openai.com/v1/embeddings",
            {"model": "text-embedding-3-small", "input": "parcel"},
            {
                "json": {
                    "object": "list",
                    "data": [{"index": 0, "embedding": [0.25, -0.5]}],
                    "model": "text-embedding-3-small",
                    "usage": {"prompt_tokens": 1, "total_tokens": 1},
                }
            },
            at="2026-11-29T12:06:00Z",
            milliseconds=95,
        ),
        exchange_line(
            _OPENAI,
            chat("gpt-5", _INVOICE),
            chat_answer("gpt-5", said("Invoice"), "stop", (31, 2)),
            finish="stop",
            at="2026-11-30T09:00:00Z",
            milliseconds=790,
            gen=1,
        ),
        exchange_line(
            _OPENAI,
            chat("gpt-5", _INVOICE),
            chat_answer("gpt-5", said("Billing"), "stop", (31, 2)),
            finish="stop",
            at="2026-11-30T09:00:02Z",
            milliseconds=801,
            sample=1,
            gen=1,
        ),
    ]


def old_line() -> bytes:
    """Return a recording from before there was a rule for the secret in it, which is made up."""
    secret = "-".join(["AGE", "SECRET", "KEY", "1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2])[:74]
    question = f"The backup key is {secret}; write to ada@example.com."
    answer = chat_answer("gpt-5", said("Complaint"), "stop", (64, 2))
    return exchange_line(_OPENAI, chat("gpt-5", question), answer, finish="stop")


def write_example(path: Path, *more: bytes) -> Path:
    """Write the example to a file, and what else is to stand in it."""
    path.write_bytes(b"".join(line + b"\n" for line in (*example_lines(), *more)))
    return path


def write_changed_example(path: Path) -> Path:
    """Write what the example became after a prompt was changed and two calls were recorded anew."""
    lines = example_lines()
    gemini: Json = {
        "systemInstruction": {"parts": [{"text": f"{_SYSTEM} In English."}]},
        "contents": [{"role": "user", "parts": [{"text": "Where is my parcel?"}]}],
    }
    answer: dict[str, Json] = {
        "json": {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": "Delivery"}]}, "finishReason": "STOP"}
            ],
            "modelVersion": "gemini-3-flash",
        }
    }
    url = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-flash:generateContent"
    changed = [
        exchange_line(
            _OPENAI, chat("gpt-5", _INVOICE),
            chat_answer("gpt-5", said("Billing\n(charged twice)"), "stop", (31, 6)), finish="stop",
        ),
        lines[1],
        lines[3],
        exchange_line(url, gemini, answer, finish="STOP"),
        lines[5],
        exchange_line(
            _OPENAI, chat("gpt-5", "Do you ship to Chile?", tools=[_TOOL, _TOOL], n=1, seed=7),
            chat_answer("gpt-5", said("Shipping"), "stop", (40, 1)), finish="stop",
        ),
    ]  # fmt: skip
    path.write_bytes(b"".join(line + b"\n" for line in changed))
    return path
