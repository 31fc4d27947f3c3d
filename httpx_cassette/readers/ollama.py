"""Ollama's own ``/api/chat`` and ``/api/generate``: a whole answer in each line, its text in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._said import Members, Message, Piece, Reader, members, objects, text
from .chat import chat_calls, chat_message

__all__ = ["OLLAMA"]


def _turns(body: Members) -> Iterator[Message]:
    if body.get("system"):
        yield Message("system", text(body["system"]))
    for message in objects(body.get("messages", [])):
        said, thinking = chat_message(message), text(message.get("thinking"))
        yield Message(said.role, said.text + _images(message), thinking, said.tool_calls, said.answers)
    if "prompt" in body:
        yield Message("user", text(body["prompt"]) + _images(body))


def _images(holder: Members) -> str:
    images = holder.get("images")
    return "\n[image]" * len(images) if isinstance(images, list) else ""


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    calls = 0
    for document in documents:
        message = members(document, "message") or document
        yield Piece(0, 0, "thinking", text(message.get("thinking")))
        yield Piece(0, 0, "text", text(message.get("content", message.get("response"))))
        for _, call_id, name, arguments in chat_calls(message.get("tool_calls")):
            yield Piece(0, calls, "call", arguments, name, call_id)
            calls += 1


#: Ollama's own formats.
OLLAMA = Reader(_turns, _pieces)
