"""Replays that are wrong on purpose: a judge that lets one of them pass judges nothing.

The transport is the real one; what it replays is falsified on the way to the SDK.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from tests import aws_messages

from ._library import CassetteTransport, http

__all__ = ["SABOTAGES", "Sabotage", "sabotaged"]

#: The parsed events of one stream; what is not JSON is left out. Changes them.
Sabotage: TypeAlias = Callable[[list[dict[str, Any]]], None]


def sabotaged(sabotage: Sabotage) -> type[CassetteTransport]:
    """Return a transport that falsifies every stream that it replays."""

    class Sabotaged(CassetteTransport):
        def handle_request(self, request: http.Request) -> http.Response:
            response = super().handle_request(request)
            is_replayed = response.extensions["httpx_cassette"].outcome == "replayed"
            if not is_replayed or "content-length" in response.headers:
                return response
            chunks = list(response.iter_raw())
            is_binary = chunks[0].startswith(b"\0")
            body = (_falsify_messages if is_binary else _falsify)(b"".join(chunks), sabotage)
            # In chunks of the same size, or one event each.
            size = 0 if all(map(_is_event, chunks)) else len(chunks[0])
            return http.Response(
                response.status_code,
                headers=response.headers,
                content=_divide(body, size),
                extensions=response.extensions,
            )

    return Sabotaged


def _falsify(body: bytes, sabotage: Sabotage) -> bytes:
    events: list[tuple[bytes, Any]] = []
    end = _end_of_event(body)
    for block in body.split(end):
        # The data come last; what the end marker has is no JSON.
        head, found, data = block.rpartition(b"data: ") if len(end) == 2 else (b"", b"", block)
        try:
            events.append((head + found, json.loads(data)))
        except ValueError:
            events.append((block, None))
    sabotage([event for _, event in events if isinstance(event, dict)])
    return end.join(head if event is None else head + json.dumps(event).encode() for head, event in events)


def _falsify_messages(body: bytes, sabotage: Sabotage) -> bytes:
    messages = [(headers, json.loads(payload)) for headers, payload in aws_messages.read(body)]
    events = [_open(headers, document) for headers, document in messages]
    sabotage(events)
    return b"".join(
        aws_messages.chunk(event, None)
        if event is not document
        else aws_messages.message(headers, json.dumps(document, separators=(",", ":")).encode())
        for event, (headers, document) in zip(events, messages, strict=True)
    )


def _open(headers: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return what an event says, out of its envelope if it is in one."""
    if headers.get(":event-type") != "chunk":
        return document
    said: dict[str, Any] = json.loads(base64.b64decode(document["bytes"]))
    return said


def _is_event(sent: bytes) -> bool:
    """Tell whether a chunk is one event, and all of it."""
    if sent.startswith(b"\0"):
        return len(sent) > 3 and len(sent) == int.from_bytes(sent[:4], "big")
    return sent.endswith(_end_of_event(sent))


def _end_of_event(body: bytes) -> bytes:
    """Return what stands between events: a blank line, or of one document a line its end."""
    return b"\n" if body.startswith(b"{") else b"\n\n"


def _divide(body: bytes, size: int) -> Iterator[bytes]:
    if size:
        for start in range(0, len(body), size):
            yield body[start : start + size]
    elif body.startswith(b"\0"):
        while body:
            length = int.from_bytes(body[:4], "big")
            yield body[:length]
            body = body[length:]
    else:
        end = _end_of_event(body)
        for event in body.split(end)[:-1]:
            yield event + end


# -- what is done to the events ------------------------------------------------------------------------


def drop_a_character(events: list[dict[str, Any]]) -> None:
    """Shorten the first text by its last character."""
    for _, holder, name in _texts(events):
        holder[name] = holder[name][:-1]
        return


def swap_two_deltas(events: list[dict[str, Any]]) -> None:
    """Exchange the first two pieces of one text that differ."""
    before: dict[str, tuple[dict[str, Any], str]] = {}
    for slot, holder, name in _texts(events):
        other, other_name = before.get(slot, (holder, name))
        if holder[name] != other[other_name]:
            holder[name], other[other_name] = other[other_name], holder[name]
            return
        before[slot] = holder, name


def repeat_a_tool_id(events: list[dict[str, Any]]) -> None:
    """Send the id of a tool call again with a later piece of its arguments, or a whole call twice."""
    for _, parts in _lists_of_parts(events):
        for part in parts:
            if "functionCall" in part:
                parts.append(part)
                return
    for message in _messages(events):
        if message.get("tool_calls"):
            message["tool_calls"] += message["tool_calls"]
            return
    ids: dict[str, str] = {}
    for event in events:
        step = event.get("step") or {}
        if step.get("id"):
            ids[f"step {event.get('index')}"] = step["id"]
        elif f"step {event.get('index')}" in ids and "delta" in event:
            event["delta"]["id"] = ids[f"step {event.get('index')}"]
            return
    for piece, name in _pieces_of_calls(events):
        if piece.get(name):
            ids[name] = piece[name]
        elif name in ids:
            piece[name] = ids[name]
            return
    for slot, call in _tool_calls(events):
        if call.get("id"):
            ids[slot] = call["id"]
        elif slot in ids:
            call["id"] = ids[slot]
            return
    _repeat_a_whole_call(events)


def _repeat_a_whole_call(events: list[dict[str, Any]]) -> None:
    for _, delta in _choices(events):
        for call in delta.get("tool_calls") or ():
            delta["tool_calls"].append(call)
            return
    # Of a conversation: every event names its call, so that another gets the name of the first.
    calls = [event for event in events if event.get("type") == "function.call.delta"]
    for call in calls:
        if call["id"] != calls[0]["id"]:
            call |= {name: calls[0][name] for name in ("id", "tool_call_id")}
            return
    # Of text generation, which has no calls: a token gets the number of the first.
    tokens = [*_tokens(events)]
    for token in tokens:
        if token["id"] != tokens[0]["id"]:
            token["id"] = tokens[0]["id"]
            return
    # Of completions, which have none either: it finishes with its first word.
    for choice in _completions(events):
        choice["finish_reason" if "text" in choice else "stop_reason"] = "tool_calls"
        return


def drop_the_usage(events: list[dict[str, Any]]) -> None:
    """Send every event without the usage."""
    for event in events:
        for holder in (event, *map(event.get, ("response", "interaction", "delta", "metadata"))):
            for name in ("usage", "usageMetadata", "eval_count", "meta"):
                if isinstance(holder, dict):
                    holder.pop(name, None)
        if "token" in event:
            event.pop("details", None)
        if "completion" in event:
            event.pop("stop", None)


SABOTAGES: dict[str, Sabotage] = {
    "drop-a-character": drop_a_character,
    "swap-two-deltas": swap_two_deltas,
    "repeat-a-tool-id": repeat_a_tool_id,
    "drop-the-usage": drop_the_usage,
}


def _choices(events: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the deltas of OpenAI's chat format, with the index of the choice."""
    for event in events:
        for choice in event.get("choices") or ():
            yield choice.get("index", 0), choice.get("delta") or {}


def _lists_of_parts(events: list[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield the parts of each candidate of Gemini's."""
    for event in events:
        for candidate in event.get("candidates") or ():
            yield candidate.get("index", 0), (candidate.get("content") or {}).get("parts") or []


def _messages(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what each line of Ollama's formats says."""
    for event in events:
        if "created_at" in event:
            yield event.get("message") or event


def _completions(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the choices of OpenAI's legacy completions, and the events of Anthropic's."""
    for event in events:
        if event.get("object") == "text_completion":
            yield from event["choices"]
        elif "completion" in event:
            yield event


def _tokens(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the tokens of Hugging Face's text generation."""
    for event in events:
        if isinstance(event.get("token"), dict):
            yield event["token"]


def _cohere_messages(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the messages in the deltas of Cohere's format."""
    for event in events:
        delta = event.get("delta")
        if isinstance(delta, dict) and isinstance(delta.get("message"), dict):
            yield delta["message"]


def _deltas_of_converse(events: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the starts and the deltas of Bedrock's format, and of Nova's own, with the index of the block."""
    for event in events:
        inner = event.get("contentBlockDelta") or event.get("contentBlockStart") or event
        for name in ("start", "delta"):
            if "contentBlockIndex" in inner and isinstance(inner.get(name), dict):
                yield inner["contentBlockIndex"], inner[name]


def _pieces_of_calls(events: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the pieces of calls in it, and what only the first of them has; in its first version the name."""
    for message in _cohere_messages(events):
        if isinstance(message.get("tool_calls"), dict):
            yield message["tool_calls"], "id"
    for event in events:
        piece = event.get("tool_call_delta") or {}
        if piece.get("name") or piece.get("parameters"):
            yield piece, "name"


def _blocks(events: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the blocks and deltas of Anthropic's format, with the index of the block."""
    for event in events:
        for name in ("content_block", "delta"):
            if "index" in event and isinstance(event.get(name), dict):
                yield event["index"], event[name]


def _tool_calls(events: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for index, delta in _choices(events):
        for call in delta.get("tool_calls") or ():
            yield f"{index} {call.get('index')}", call
    # Of a response: the item that names the call, then the pieces of its arguments.
    for event in events:
        item = event.get("item") or {}
        if "call_id" in item:
            yield f"output {event.get('output_index')}", {"id": item["call_id"]}
        elif event.get("type") == "response.function_call_arguments.delta":
            yield f"output {event.get('output_index')}", event
    for index, delta in _deltas_of_converse(events):
        use = delta.get("toolUse") or {}
        if use.get("toolUseId"):
            yield f"converse {index}", {"id": use["toolUseId"]}
        elif use:
            yield f"converse {index}", use
    for index, block in _blocks(events):
        # The first piece of the arguments is the empty one that opens them.
        if "id" in block or block.get("partial_json"):
            yield f"{index}", block


def _texts(events: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each piece of text that is not empty: its slot, and the place where it stands."""
    for index, delta in _choices(events):
        if delta.get("content"):
            yield f"{index}", delta, "content"
        for call in delta.get("tool_calls") or ():
            if (call.get("function") or {}).get("arguments"):
                yield f"{index} {call.get('index')}", call["function"], "arguments"
    # Of a response: each piece is an event of its own, and its text is the same in a later one.
    for event in events:
        if isinstance(event.get("delta"), str) and event["delta"]:
            yield f"{event.get('type')} {event.get('output_index')}", event, "delta"
    # Of a conversation.
    for event in events:
        for name in ("content", "arguments"):
            if isinstance(event.get(name), str) and event[name] and "output_index" in event:
                yield f"{event.get('id')} {name}", event, name
    for index, parts in _lists_of_parts(events):
        for part in parts:
            if part.get("text"):
                yield f"{index} {part.get('thought')}", part, "text"
    for message in _cohere_messages(events):
        call = message.get("tool_calls") or {}
        holders = (message, message.get("content"), call.get("function") if isinstance(call, dict) else None)
        for holder in holders:
            for name in ("tool_plan", "text", "thinking", "arguments"):
                if isinstance(holder, dict) and holder.get(name):
                    yield f"cohere {name}", holder, name
    for event in events:
        if event.get("event_type") == "text-generation":
            yield "cohere text", event, "text"
    for message in _messages(events):
        for name in ("content", "thinking", "response"):
            if message.get(name):
                yield name, message, name
    for choice in _completions(events):
        for name in ("text", "completion"):
            if choice.get(name):
                yield f"completion {choice.get('index')}", choice, name
    for token in _tokens(events):
        if token.get("text"):
            yield "token", token, "text"
    for index, delta in _deltas_of_converse(events):
        for holder, name in (
            (delta, "text"),
            (delta.get("reasoningContent") or {}, "text"),
            (delta.get("toolUse") or {}, "input"),
        ):
            if holder.get(name):
                yield f"converse {index} {name}", holder, name
    for index, block in _blocks(events):
        for name in ("text", "thinking", "partial_json"):
            if block.get(name):
                yield f"{index} {name}", block, name
