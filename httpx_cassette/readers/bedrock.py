"""Amazon Bedrock's Converse, and Nova's own format, which is nearly the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, members, objects, text

__all__ = ["BEDROCK"]

_MEDIA = ("image", "document", "video", "audio")


def _turns(body: Members) -> Iterator[Message]:
    if body.get("system"):
        yield Message("system", _text_of(objects(body["system"])))
    for message in objects(body.get("messages", [])):
        blocks = objects(message.get("content", []))
        # Each result is a turn of its own, as in other formats.
        for result in (members(block, "toolResult") for block in blocks):
            if result:
                said = _text_of(objects(result.get("content", [])))
                yield Message("tool", said, answers=text(result.get("toolUseId")))
        said, thinking = _text_of(blocks), "".join(map(_thinking_of, blocks))
        calls = tuple(_call_of(block["toolUse"]) for block in blocks if members(block, "toolUse"))
        if said or thinking or calls or not blocks:
            yield Message(text(message.get("role")), said, thinking, calls)


def _text_of(blocks: Sequence[Members]) -> str:
    said = []
    for block in blocks:
        if isinstance(block.get("text"), str):
            said.append(block["text"])
        elif "json" in block:
            said.append(as_arguments(block["json"]))
        said += [f"[{kind}]" for kind in _MEDIA if kind in block]
    return "\n".join(said)


def _thinking_of(block: Members) -> str:
    return text(members(block, "reasoningContent", "reasoningText").get("text"))


def _call_of(call: Members) -> ToolCall:
    return ToolCall(text(call.get("name")), as_arguments(call.get("input")), text(call.get("toolUseId")))


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        for number, block in enumerate(objects(members(document, "output", "message").get("content", []))):
            yield from _block(number, block)
        # Nova names each event inside of it.
        event = members(document, "contentBlockStart") or members(document, "contentBlockDelta") or document
        index = event.get("contentBlockIndex")
        yield from _block(index, members(event, "start"))
        yield from _block(index, members(event, "delta"))


def _block(index: Any, block: Members) -> Iterator[Piece]:
    if isinstance(block.get("text"), str):
        yield Piece(0, index, "text", block["text"])
    # In a delta without the name in between.
    thinking = _thinking_of(block) or text(members(block, "reasoningContent").get("text"))
    if thinking:
        yield Piece(0, index, "thinking", thinking)
    if isinstance(block.get("toolUse"), dict):
        call = _call_of(block["toolUse"])
        yield Piece(0, index, "call", call.arguments, call.name, call.id)


#: ``/model/{id}/converse`` and ``/converse-stream``, and Nova's ``/invoke``.
BEDROCK = Reader(_turns, _pieces)
