"""OpenAI's Responses: items in the input, items in the output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._said import Members, Message, Piece, Reader, ToolCall, as_arguments, members, objects, part_texts, text

__all__ = ["OPENAI_RESPONSES"]


def _turns(body: Members) -> Iterator[Message]:
    if body.get("instructions"):
        yield Message("system", text(body["instructions"]))
    asked = body.get("input")
    if isinstance(asked, str):
        yield Message("user", asked)
    for item in objects(asked) if isinstance(asked, list) else ():
        kind = text(item.get("type"))
        if item.get("role"):
            yield Message(text(item["role"]), "\n".join(part_texts(item.get("content"))))
        elif kind == "reasoning":
            yield Message("assistant", "", _thinking(item))
        elif kind.endswith("_output"):
            said = "\n".join(part_texts(item.get("output")))
            yield Message("tool", said, answers=text(item.get("call_id") or item.get("id")))
        elif kind.endswith("_call"):
            yield Message("assistant", "", tool_calls=(_call(item),))


def _thinking(item: Members) -> str:
    said = [
        text(part.get("text")) for name in ("summary", "content") for part in objects(item.get(name) or [])
    ]
    return "\n".join(said)


def _call(item: Members) -> ToolCall:
    """Return a call: of a function by its name, of a tool of the server by its kind."""
    arguments = item.get("arguments", item.get("input", item.get("action")))
    name = text(item.get("name")) or text(item.get("type"))
    return ToolCall(name, as_arguments(arguments), text(item.get("call_id") or item.get("id")))


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    wholes = [each for each in documents if "output" in each]
    wholes += [each["response"] for each in documents if members(each, "response").get("output")]
    items = objects(wholes[-1].get("output") or []) if wholes else []
    if not items:
        # Some gateways end with an answer that is empty.
        items = [
            members(each, "item") for each in documents if each.get("type") == "response.output_item.done"
        ]
    if not items:
        yield from _deltas(documents)
    for index, item in enumerate(items):
        kind = text(item.get("type"))
        if kind == "message":
            yield from (Piece(0, index, "text", said) for said in part_texts(item.get("content")))
        elif kind == "reasoning":
            yield Piece(0, index, "thinking", _thinking(item))
        elif kind.endswith("_call"):
            call = _call(item)
            yield Piece(0, index, "call", call.arguments, call.name, call.id)


def _deltas(documents: Sequence[Members]) -> Iterator[Piece]:
    """Yield what came of an answer that has no end."""
    for document in documents:
        kind, index, said = document.get("type"), document.get("output_index"), text(document.get("delta"))
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            yield Piece(0, index, "text", said)
        elif kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            yield Piece(0, index, "thinking", said)
        elif kind in ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta"):
            yield Piece(0, index, "call", said)
        elif kind == "response.output_item.added":
            call = _call(members(document, "item"))
            if text(members(document, "item").get("type")).endswith("_call"):
                yield Piece(0, index, "call", "", call.name, call.id)


#: ``/v1/responses``.
OPENAI_RESPONSES = Reader(_turns, _pieces)
