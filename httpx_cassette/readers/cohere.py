"""Cohere's chat, version 2 and version 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, members, objects, part_texts, text
from .chat import chat_calls, chat_message

__all__ = ["COHERE", "COHERE_V1"]


def _turns(body: Members) -> Iterator[Message]:
    for message in objects(body.get("messages", [])):
        said = chat_message(message)
        thinking = text(message.get("tool_plan")) or said.thinking
        yield Message(said.role, said.text, thinking, said.tool_calls, said.answers)


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        message = members(document, "message") or members(document, "delta", "message")
        # Each event is of one content or one call, and says which.
        index = document.get("index")
        if message.get("tool_plan"):
            yield Piece(0, "plan", "thinking", text(message["tool_plan"]))
        content = message.get("content")
        for part in objects(content) if content else ():
            yield Piece(0, "thought", "thinking", text(part.get("thinking")))
            yield from (Piece(0, 0, "text", said) for said in part_texts(part))
        for place, call_id, name, arguments in chat_calls(message.get("tool_calls")):
            yield Piece(0, place if index is None else index, "call", arguments, name, call_id)


#: ``/v2/chat``.
COHERE = Reader(_turns, _pieces)


def _turns_v1(body: Members) -> Iterator[Message]:
    if body.get("preamble"):
        yield Message("system", text(body["preamble"]))
    for turn in objects(body.get("chat_history") or []):
        yield Message(text(turn.get("role")).lower(), text(turn.get("message")), tool_calls=_calls_v1(turn))
    if "message" in body:
        yield Message("user", text(body["message"]))


def _calls_v1(holder: Members) -> tuple[ToolCall, ...]:
    calls = objects(holder.get("tool_calls") or [])
    return tuple(ToolCall(text(call.get("name")), as_arguments(call.get("parameters"))) for call in calls)


def _pieces_v1(documents: Sequence[Members]) -> Iterator[Piece]:
    # The last event of a stream has all of it once more.
    last = next((each["response"] for each in documents if isinstance(each.get("response"), dict)), None)
    whole = [last] if last is not None else [each for each in documents if "event_type" not in each]
    for document in whole or documents:
        yield Piece(0, 0, "text", text(document.get("text")))
        for position, call in enumerate(_calls_v1(document)):
            yield Piece(0, position, "call", call.arguments, call.name)


#: ``/v1/chat``.
COHERE_V1 = Reader(_turns_v1, _pieces_v1)
