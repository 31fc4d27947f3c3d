"""Legacy completions, OpenAI's and Anthropic's: prompts, and texts that go on from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._said import Members, Message, Piece, Reader, objects, text

__all__ = ["ANTHROPIC_COMPLETIONS", "OPENAI_COMPLETIONS"]


def _turns(body: Members) -> Iterator[Message]:
    prompt = body.get("prompt")
    # Prompts may also be lists of tokens, which say nothing to a person.
    texts = [each for each in (prompt if isinstance(prompt, list) else [prompt]) if isinstance(each, str)]
    for each in texts:
        yield Message("user", "\n".join(filter(None, (each, text(body.get("suffix"))))))


def _pieces(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        for position, choice in enumerate(objects(document.get("choices", []))):
            index = choice.get("index")
            yield Piece(index if isinstance(index, int) else position, 0, "text", text(choice.get("text")))


def _pieces_of_one(documents: Sequence[Members]) -> Iterator[Piece]:
    for document in documents:
        yield Piece(0, 0, "text", text(document.get("completion")))


#: Anthropic's ``/v1/complete``.
ANTHROPIC_COMPLETIONS = Reader(_turns, _pieces_of_one)

#: ``/completions`` with a prompt.
OPENAI_COMPLETIONS = Reader(_turns, _pieces)
