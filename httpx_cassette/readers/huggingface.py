"""Hugging Face's text generation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._said import Members, Message, Piece, Reader, members, text

__all__ = ["HUGGINGFACE"]


def _turns(body: Members) -> Iterator[Message]:
    if "inputs" in body:
        yield Message("user", text(body["inputs"]))


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        token = members(document, "token")
        # The last event of a stream has all of the text once more, and ends with a token that is none.
        said = "" if token.get("special") is True else token.get("text", document.get("generated_text"))
        yield Piece(0, 0, "text", text(said))


#: ``/generate``, ``/generate_stream``, and models by their names, which answer with a list: of one text, or
#: of as many as ``num_return_sequences`` asked for.
HUGGINGFACE = Reader(_turns, _pieces, lists_choices=True)
