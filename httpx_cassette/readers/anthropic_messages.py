"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, members, objects, part_texts, text

__all__ = ["ANTHROPIC_MESSAGES"]

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def _turns(body: Members) -> Iterator[Message]:
    if body.get("system"):
        yield Message("system", "\n".join(part_texts(body["system"])))
    for message in objects(body.get("messages", [])):
        content = message.get("content")
        blocks = objects(content) if isinstance(content, list) else []
        # Each result is a turn of its own, as in other formats.
        for block in blocks:
            if text(block.get("type")).endswith("tool_result"):
                said = "\n".join(part_texts(block.get("content")))
                yield Message("tool", said, answers=text(block.get("tool_use_id")))
        said = "\n".join(part_texts(content))
        thinking = "".join(text(block.get("thinking")) for block in blocks)
        calls = tuple(_calls(blocks))
        if said or thinking or calls or not blocks:
            yield Message(text(message.get("role")), said, thinking, calls)


def _calls(blocks: Sequence[Members]) -> Iterator[ToolCall]:
    for block in blocks:
        if block.get("type") in _CALLS:
            yield ToolCall(text(block.get("name")), as_arguments(block.get("input")), text(block.get("id")))


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        kind = document.get("type")
        if kind == "content_block_start":
            # Its input is empty, and comes in the deltas.
            block = members(document, "content_block")
            empty = {"input": None} if not block.get("input") else {}
            yield from _block(document.get("index"), {**block, **empty})
        elif kind == "content_block_delta":
            yield from _delta(document.get("index"), members(document, "delta"))
        else:
            whole = members(document, "message") if kind == "message_start" else document
            for index, block in enumerate(objects(whole.get("content", []))):
                yield from _block(index, block)


def _block(index: Any, block: Members) -> Iterator[Piece]:
    kind = block.get("type")
    if kind == "text":
        yield Piece(0, index, "text", text(block.get("text")))
    elif kind == "thinking":
        yield Piece(0, index, "thinking", text(block.get("thinking")))
    elif kind in _CALLS:
        arguments = as_arguments(block.get("input"))
        yield Piece(0, index, "call", arguments, text(block.get("name")), text(block.get("id")))


def _delta(index: Any, delta: Members) -> Iterator[Piece]:
    if isinstance(delta.get("text"), str):
        yield Piece(0, index, "text", delta["text"])
    elif isinstance(delta.get("thinking"), str):
        yield Piece(0, index, "thinking", delta["thinking"])
    elif isinstance(delta.get("partial_json"), str):
        yield Piece(0, index, "call", delta["partial_json"])


#: ``/v1/messages``.
ANTHROPIC_MESSAGES = Reader(_turns, _pieces)
