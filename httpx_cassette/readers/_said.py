"""What is said in an exchange, and how it is put together from pieces.

A whole answer and the events of a stream are read alike, as pieces: those of one slot are joined in the order
of their coming. So a reader is a walk over what a format sends, and an answer that was cut anywhere, or
stored event by event, says the same.

Nothing here raises for what a server may have sent: what has another shape than expected is passed over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from .._call import Json

__all__ = [
    "Members",
    "Message",
    "Piece",
    "Reader",
    "ToolCall",
    "as_arguments",
    "join",
    "members",
    "objects",
    "part_texts",
    "text",
]

#: An object of JSON that nobody vouches for.
Members: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model asks for.

    Args:
        name: What it is called.
        arguments: Its arguments as they were written, mostly JSON.
        id: What its result is tied to it by; empty where the format has none.
    """

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Args:
        role: Who speaks, in the format's word: ``system``, ``user``, ``assistant``, ``model``, ``tool``.
        text: What is said; media stand there as ``[image]``.
        thinking: What a model thought before, as far as it is told.
        tool_calls: The tools that are asked for.
        answers: The id of the call whose result this is; empty where it is none.
    """

    role: str
    text: str
    thinking: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    answers: str = ""


class Piece(NamedTuple):
    """A piece of an answer.

    Args:
        choice: Which of several answers it belongs to.
        slot: What it is joined with: pieces of one kind and slot.
        kind: What it is.
        text: The text, or that of a call's arguments.
        name: The name of the tool that is called.
        id: The id of the call.
    """

    choice: int
    slot: Any
    kind: Literal["text", "thinking", "call"]
    text: str
    name: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """How one wire format is read.

    Args:
        turns: The messages of a request's body.
        pieces: What the documents of an answer say, one document or one for each event.
        lists_choices: Whether the elements of a document that is a list are choices, and not events.
    """

    turns: Callable[[Members], Iterable[Message]]
    pieces: Callable[[Sequence[Members]], Iterable[Piece]]
    lists_choices: bool = False


# -- joining -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Slot:
    kind: str
    name: str = ""
    id: str = ""
    texts: list[str] = field(default_factory=list)


def join(pieces: Iterable[Piece]) -> list[Message]:
    """Return a message for each choice, the first choice first."""
    choices: dict[int, dict[tuple[str, str], _Slot]] = {}
    done: dict[int, list[_Slot]] = {}
    for piece in pieces:
        slots = choices.setdefault(piece.choice, {})
        place = piece.kind, str(piece.slot)  # A server may send anything for an index.
        slot = slots.get(place)
        # Some servers send several calls in one place, each with a name and an id of its own.
        if slot is None or (piece.name and piece.id and slot.id not in ("", piece.id)):
            slot = slots[place] = _Slot(piece.kind)
            done.setdefault(piece.choice, []).append(slot)
        slot.name = slot.name or piece.name
        slot.id = slot.id or piece.id
        slot.texts.append(piece.text)
    return [_message(done[choice]) for choice in sorted(done)]


def _message(slots: list[_Slot]) -> Message:
    said = {kind: "".join(t for slot in slots if slot.kind == kind for t in slot.texts) for kind in _TEXTS}
    calls = tuple(ToolCall(slot.name, "".join(slot.texts), slot.id) for slot in slots if slot.kind == "call")
    return Message("assistant", said["text"], said["thinking"], calls)


_TEXTS = ("text", "thinking")


# -- looking into JSON ---------------------------------------------------------------------------------


def members(value: Any, *names: str) -> Members:
    """Return the object at a path of names, an empty one where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[Members]:
    """Return the objects of a list; an object alone is a list of it."""
    listed = value if isinstance(value, list) else [value]
    return [each for each in listed if isinstance(each, dict)]


def text(value: Any) -> str:
    """Return a value if it is text, else nothing."""
    return value if isinstance(value, str) else ""


def as_arguments(value: Json) -> str:
    """Return arguments as text: those that are an object are written as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def part_texts(value: Any) -> Iterator[str]:
    """Yield the text of each part of a content: a string, or a list of parts; media by their kind."""
    if isinstance(value, str):
        yield value
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str) and part is not value:
            yield part
        elif isinstance(part, dict):
            said = next((part[name] for name in ("text", "refusal") if isinstance(part.get(name), str)), None)
            kind = text(part.get("type"))
            if said is not None:
                yield said
            elif kind in _MEDIA:
                yield f"[{_MEDIA[kind]}]"


_MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "document": "document",
    "file": "file",
    "input_file": "file",
}
