"""OpenAI's chat format, as many servers speak it, Mistral's with its lists of parts too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, objects, part_texts, text

__all__ = ["CHAT", "chat_calls", "chat_message"]

#: Where servers say what a model thought: DeepSeek, Qwen and vLLM; OpenRouter and Groq; GitHub Copilot.
_THINKING = ("reasoning_content", "reasoning", "reasoning_text")


def _turns(body: Members) -> Iterator[Message]:
    for message in objects(body.get("messages")):
        yield chat_message(message)
    # Mistral's FIM.
    if isinstance(body.get("prompt"), str):
        yield Message("user", "\n".join(filter(None, (body["prompt"], text(body.get("suffix"))))))


def chat_message(message: Members) -> Message:
    """Return one message as it is sent."""
    content = message.get("content")
    thoughts = [text(message.get(name)) for name in _THINKING]
    return Message(
        text(message.get("role")),
        "\n".join(part_texts(content)),
        next(filter(None, thoughts), "") or "".join(_thoughts(content)),
        tuple(
            ToolCall(name, arguments, call_id)
            for _, call_id, name, arguments in chat_calls(message.get("tool_calls"))
        ),
        text(message.get("tool_call_id")),
    )


def chat_calls(calls: Any) -> Iterator[tuple[Any, str, str, str]]:
    """Yield place, id, name and arguments of each call, or piece of one."""
    for position, call in enumerate(objects(calls) if calls is not None else ()):
        place = call.get("index")
        function = next(filter(None, objects([call.get("function"), call.get("custom")])), {})
        arguments = function.get("arguments", function.get("input"))
        yield (
            position if place is None else place,
            text(call.get("id")),
            text(function.get("name")),
            as_arguments(arguments),
        )


def _thoughts(content: Any) -> Iterator[str]:
    """Yield what stands in Mistral's parts for thinking."""
    for part in objects(content) if isinstance(content, list) else ():
        yield from part_texts(part.get("thinking")) if "thinking" in part else ()


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        for position, choice in enumerate(objects(document.get("choices", []))):
            index = choice.get("index")
            # Perplexity has the whole answer so far beside each delta.
            said = choice.get("delta") or choice.get("message")
            if isinstance(said, dict):
                yield from _said(index if isinstance(index, int) else position, said)


def _said(index: int, said: Members) -> Iterator[Piece]:
    content = said.get("content")
    for thought in next(filter(None, ([text(said.get(name))] for name in _THINKING if said.get(name))), []):
        yield Piece(index, 0, "thinking", thought)
    for thought in _thoughts(content):
        yield Piece(index, 0, "thinking", thought)
    for part in part_texts(content):
        yield Piece(index, 0, "text", part)
    if said.get("refusal"):
        yield Piece(index, 0, "text", text(said["refusal"]))
    for place, call_id, name, arguments in chat_calls(said.get("tool_calls")):
        yield Piece(index, place, "call", arguments, name, call_id)
    for function in objects(said.get("function_call") or []):
        yield Piece(
            index, "function", "call", as_arguments(function.get("arguments")), text(function.get("name"))
        )


#: OpenAI's chat completions, and Mistral's.
CHAT = Reader(_turns, _pieces)
