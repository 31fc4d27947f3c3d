"""Text that an answer holds in pieces: which pieces belong together, and what they say together.

A credential that is spelled in pieces is in none of them, and no pattern finds it there. Two things can be
done about it: a list of tokens is hidden as a whole, and a stream whose pieces hide something is refused.
Nothing here knows a provider, or what happens to an answer that is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from ._call import Json
from ._paths import Paths
from ._redact import Redaction
from ._rules import join_text
from .dialects._reading import StreamTable, read_text, table_reader

__all__ = ["hides_secret", "pieced_texts", "without_spelled_secrets"]

#: Places that are left out: the identity of the container, and the step in it.
_Left: TypeAlias = "frozenset[tuple[int, str | int]]"


def pieced_texts(
    script: Json, table: StreamTable | None, is_assembled: bool, opaque: Paths
) -> list[list[str]]:
    """Return the texts that the events of a script hold in two pieces or more, as their pieces.

    Pieces belong together that stand in one slot of the table, or at one place, in elements of one index
    and type. In a stream that no table explains, also those that merely stand at one place: an index may
    count the pieces. A piece can therefore be part of several texts.

    Args:
        script: The events of a stream, as they are stored or would be.
        table: The format, if it is known.
        is_assembled: Whether the table explains the stream.
        opaque: Where random characters stand, which say nothing.
    """
    events = script if isinstance(script, list) else []
    left = frozenset((id(container), step) for container, step in opaque.places(script))
    found: dict[object, list[str]] = {}
    for event in events:
        for place, exact_place, text in _texts(event, "", "", left):
            found.setdefault(exact_place, []).append(text)
            if not is_assembled:
                found.setdefault((place,), []).append(text)
    if table is not None:
        read = table_reader(table)
        for event in events:
            value = event.get("json") if isinstance(event, dict) else None
            slots = read(value).texts if isinstance(value, dict) else {}
            for slot, (holder, name) in slots.items():
                if (id(holder), name) not in left:
                    found.setdefault(slot, []).append(read_text((holder, name)))
    return [pieces for pieces in found.values() if len(pieces) > 1]


def hides_secret(pieces: list[str], redaction: Redaction) -> bool:
    """Tell whether the pieces of a text, each redacted by itself, still hold something secret."""
    told: list[str] = []
    for piece in pieces:
        # What a server repeats with every event is no piece: a credential at its end would seem to go on.
        if not (told and told[-1] == piece and redaction.text(piece) != piece):
            told.append(piece)
    whole, apart = join_text(told), join_text([*map(redaction.text, told)])
    return redaction.text(whole) not in (whole, apart) or redaction.text(apart) != apart


def _texts(value: Json, place: str, exact_place: str, left: _Left) -> Iterator[tuple[str, str, str]]:
    """Yield every string below a value: its place, the same with all that tells elements apart, itself."""
    if isinstance(value, str):
        yield place, exact_place, value
    elif isinstance(value, dict):
        told_apart = exact_place + _mark(value)
        for name, child in value.items():
            if (id(value), name) not in left:
                yield from _texts(child, f"{place}.{name}", f"{told_apart}.{name}", left)
    elif isinstance(value, list):
        for position, child in enumerate(value):
            # An element without an index is told by its position; a list of strings is one text.
            number = position if isinstance(child, dict) and "index" not in child else ""
            yield from _texts(child, f"{place}[]", f"{exact_place}[{number}]", left)


def _mark(value: dict[str, Json]) -> str:
    """Return what tells an object from others at its place: its type and its indexes."""
    return "".join(
        f"({name}={child})"
        for name, child in value.items()
        if name in ("type", "index", "event") or name.endswith("_index")
        if isinstance(child, (str, int))
    )


def without_spelled_secrets(value: Json, redaction: Redaction) -> Json:
    """Return a document in which no list spells a secret token by token, as ``logprobs`` do."""
    if isinstance(value, dict):
        return {name: without_spelled_secrets(child, redaction) for name, child in value.items()}
    if not isinstance(value, list):
        return value
    tokens = [_token_of(item) for item in value]
    pieces = [token for token in tokens if isinstance(token, str)]
    if len(pieces) > 1 and len(pieces) == len(value):
        spelled = "".join(pieces)
        if redaction.text(spelled) != spelled:
            return [_without_token(item) for item in value]
    return [without_spelled_secrets(item, redaction) for item in value]


def _token_of(item: Json) -> Json:
    """Return an element of a list, or the token that it is about: a text with a probability is one, too."""
    if not isinstance(item, dict):
        return item
    return item.get("token") if "token" in item or "logprob" not in item else item.get("text")


def _without_token(item: Json) -> Json:
    """Return an element of a list that spells a secret, without its part of it."""
    if not isinstance(item, dict):
        return "<redacted:token>"
    hidden: dict[str, Json] = {"token": "<redacted:token>", "bytes": None, "top_logprobs": []}
    if "token" not in item:
        # Its number says the same to whoever has the vocabulary.
        hidden = {"text": "<redacted:token>", "id": None}
    return {name: hidden.get(name, value) for name, value in item.items()}
