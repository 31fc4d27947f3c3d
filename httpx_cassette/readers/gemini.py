"""Gemini's ``generateContent``, streamed or not, and its interactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, members, objects, part_texts, text

__all__ = ["GEMINI", "GEMINI_INTERACTIONS"]


def _either(holder: Members, *names: str) -> Any:
    """Return the first of the members that is there: Google takes each name in two spellings."""
    return next((holder[name] for name in names if holder.get(name)), None)


def _turns(body: Members) -> Iterator[Message]:
    system = _either(body, "systemInstruction", "system_instruction")
    if system is not None:
        yield Message("system", "\n".join(_texts(members(system))) or text(system))
    for content in objects(body.get("contents", [])):
        parts = objects(content.get("parts", []))
        for part in parts:
            result = members(_either(part, "functionResponse", "function_response"))
            if result:
                said = as_arguments(result.get("response"))
                yield Message("tool", said, answers=text(result.get("id") or result.get("name")))
        said, calls = "\n".join(_texts(content)), tuple(filter(None, map(_call, parts)))
        thinking = "".join(text(part.get("text")) for part in parts if part.get("thought"))
        if said or calls or thinking:
            yield Message(text(content.get("role")) or "user", said, thinking, calls)


def _texts(content: Members) -> Iterator[str]:
    for part in objects(content.get("parts", [])):
        kind = members(_either(part, "inlineData", "inline_data", "fileData", "file_data"))
        if kind:
            yield f"[{text(_either(kind, 'mimeType', 'mime_type')) or 'media'}]"
        elif isinstance(part.get("text"), str) and not part.get("thought"):
            yield part["text"]


def _call(part: Members) -> ToolCall | None:
    call = members(_either(part, "functionCall", "function_call"))
    if not call:
        return None
    return ToolCall(text(call.get("name")), as_arguments(call.get("args")), text(call.get("id")))


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    calls = 0
    for document in documents:
        for position, candidate in enumerate(objects(document.get("candidates", []))):
            index = candidate.get("index")
            choice = index if isinstance(index, int) else position
            for part in objects(members(candidate, "content").get("parts", [])):
                call = _call(part)
                if call is not None:
                    # Each comes whole, and has no place of its own.
                    yield Piece(choice, calls, "call", call.arguments, call.name, call.id)
                    calls += 1
                elif part.get("thought"):
                    yield Piece(choice, 0, "thinking", text(part.get("text")))
                else:
                    yield from (Piece(choice, 0, "text", said) for said in _texts({"parts": [part]}))


#: ``:generateContent`` and ``:streamGenerateContent``.
GEMINI = Reader(_turns, _pieces)


# -- interactions --------------------------------------------------------------------------------------


def _interaction_turns(body: Members) -> Iterator[Message]:
    if body.get("system_instruction"):
        yield Message("system", text(body["system_instruction"]))
    asked = body.get("input")
    if isinstance(asked, str):
        yield Message("user", asked)
    for step in objects(asked) if isinstance(asked, (list, dict)) else ():
        kind = text(step.get("type"))
        if kind == "function_call":
            yield Message("model", "", tool_calls=(_step_call(step),))
        elif kind == "function_result":
            said = as_arguments(step.get("result"))
            yield Message("tool", said, answers=text(step.get("call_id")))
        else:
            role = "model" if "model" in (step.get("role"), kind.partition("_")[0]) else "user"
            yield Message(role, "\n".join(part_texts(step.get("content", step))))


def _step_call(step: Members) -> ToolCall:
    return ToolCall(text(step.get("name")), as_arguments(step.get("arguments")), text(step.get("id")))


def _interaction_pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        for index, step in enumerate(objects(document.get("steps") or [])):
            yield from _step(index, step)
        if document.get("event_type") == "step.start":
            step = members(document, "step")
            empty = {"arguments": None} if not step.get("arguments") else {}
            yield from _step(document.get("index"), {**step, **empty})
        elif document.get("event_type") == "step.delta":
            yield from _step_delta(document.get("index"), members(document, "delta"))


def _step(index: Any, step: Members) -> Iterator[Piece]:
    kind = text(step.get("type"))
    if kind.endswith("_call"):
        call = _step_call(step)
        yield Piece(0, index, "call", call.arguments, call.name or kind, call.id)
    elif kind == "thought":
        yield Piece(0, index, "thinking", "\n".join(part_texts(step.get("summary"))))
    else:
        yield from (Piece(0, index, "text", said) for said in part_texts(step.get("content")))


def _step_delta(index: Any, delta: Members) -> Iterator[Piece]:
    kind = text(delta.get("type"))
    if kind.startswith("thought"):
        yield from (Piece(0, index, "thinking", said) for said in part_texts(delta.get("content")))
    elif isinstance(delta.get("text"), str):
        yield Piece(0, index, "text", delta["text"])
    elif "arguments" in delta:
        yield Piece(0, index, "call", as_arguments(delta["arguments"]))


#: ``/interactions``.
GEMINI_INTERACTIONS = Reader(_interaction_turns, _interaction_pieces)
