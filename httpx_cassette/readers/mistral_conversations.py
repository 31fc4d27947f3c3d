"""Mistral's conversations: entries in the inputs, entries in the outputs, and deltas of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, objects, part_texts, text

__all__ = ["MISTRAL_CONVERSATIONS"]

#: An entry, or a delta of one.
_CALLS = ("function.call", "function.call.delta", "tool.execution", "tool.execution.started")


def _turns(body: Members) -> Iterator[Message]:
    if body.get("instructions"):
        yield Message("system", text(body["instructions"]))
    asked = body.get("inputs")
    if isinstance(asked, str):
        yield Message("user", asked)
    for entry in objects(asked) if isinstance(asked, list) else ():
        if entry.get("type") == "function.result":
            yield Message("tool", text(entry.get("result")), answers=text(entry.get("tool_call_id")))
        elif entry.get("type") in _CALLS:
            yield Message("assistant", "", tool_calls=(_call(entry),))
        else:
            yield Message(text(entry.get("role")) or "user", "\n".join(part_texts(entry.get("content"))))


def _call(entry: Members) -> ToolCall:
    call_id = text(entry.get("tool_call_id") or entry.get("id"))
    return ToolCall(text(entry.get("name")), as_arguments(entry.get("arguments")), call_id)


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        for index, entry in enumerate(objects(document.get("outputs") or [])):
            yield from _entry(index, entry)
        if "outputs" not in document:
            yield from _entry(document.get("output_index"), document)


def _entry(index: Any, entry: Members) -> Iterator[Piece]:
    kind = entry.get("type")
    if kind in _CALLS:
        call = _call(entry)
        yield Piece(0, index, "call", call.arguments, call.name, call.id)
    elif kind in ("message.output", "message.output.delta"):
        for part in _parts(entry.get("content")):
            for thought in part_texts(part.get("thinking")) if "thinking" in part else ():
                yield Piece(0, index, "thinking", thought)
            yield from (Piece(0, index, "text", said) for said in part_texts(part))


def _parts(content: Any) -> list[Members]:
    return [{"text": content}] if isinstance(content, str) else objects(content)


#: ``/v1/conversations``.
MISTRAL_CONVERSATIONS = Reader(_turns, _pieces)
