"""Two cassettes are aligned by fingerprint, then by what comes nearest."""

from __future__ import annotations

from pathlib import Path

import pytest

import httpx_cassette
from httpx_cassette import Exchange, _alignment
from httpx_cassette._alignment import align
from httpx_cassette._call import Json

from ._recordings import make_file
from .example_cassette import chat, chat_answer, exchange_line, said, write_changed_example, write_example

URL = "https://api.openai.com/v1/chat/completions"

#: A long enough prompt that most fields stay.
TURNS = ("one", "two", "three", "four")


def asked(number: int, word: str, *, tools: int = 0) -> bytes:
    """Return the recording of a conversation whose first turns tell it from others."""
    body = chat("gpt-5", word)
    turns: list[Json] = [{"role": "user", "content": f"{each} {number}"} for each in TURNS]
    body["messages"] = [*turns, {"role": "user", "content": word}]
    if tools:
        body["tools"] = [{"type": "function", "function": {"name": f"f{each}"}} for each in range(tools)]
    return exchange_line(URL, body, chat_answer("gpt-5", said(word), "stop", (1, 1)))


def aligned(left: Path, right: Path) -> list[tuple[str, int | None, int | None]]:
    """Return what is aligned, by the numbers of lines."""
    pairs = align(httpx_cassette.open(left), httpx_cassette.open(right))
    return [(each.kind, line_of(each.left), line_of(each.right)) for each in pairs]


def line_of(exchange: Exchange | None) -> int | None:
    """Return the number of a recording's line, if it is there."""
    return None if exchange is None else exchange.line


def test_one_fingerprint_comes_first_and_what_is_superseded_does_not_count(tmp_path: Path) -> None:
    """Then the nearest; the rest of each side alone. A second sample is another recording."""
    one, two = write_example(tmp_path / "a.jsonl"), write_changed_example(tmp_path / "b.jsonl")

    assert [
        ("same", 2, 2),
        ("same", 4, 3),
        ("same", 6, 5),
        ("same", 7, 1),
        ("nearest", 3, 6),
        ("nearest", 5, 4),
        ("left", 8, None),
    ] == aligned(one, two)
    assert ("right", None, 8) == aligned(two, one)[-1]


def test_each_is_the_partner_of_one_and_the_nearest_has_it(tmp_path: Path) -> None:
    """Who comes first does not take what another is nearer to; who is left looks once more."""
    left = make_file(tmp_path / "a.jsonl", asked(1, "a", tools=1), asked(1, "b"))
    right = make_file(tmp_path / "b.jsonl", asked(1, "c"), asked(1, "d", tools=3))

    assert [("nearest", 1, 2), ("nearest", 2, 1)] == aligned(left, right)


def test_what_is_not_near_stays_alone(tmp_path: Path) -> None:
    """Another wire format, or another prompt altogether."""
    lines = write_example(tmp_path / "a.jsonl").read_bytes().split(b"\n")
    left = make_file(tmp_path / "a.jsonl", lines[3], exchange_line(URL, {"a": 1, "b": 2}, {"json": {}}))
    right = make_file(tmp_path / "b.jsonl", asked(1, "a"))

    assert [("left", 1, None), ("left", 2, None), ("right", None, 1)] == aligned(left, right)


def test_of_too_many_the_nearest_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take minutes: they are told alone."""
    left, right = make_file(tmp_path / "a", asked(1, "a")), make_file(tmp_path / "b", asked(1, "b"))
    monkeypatch.setattr(_alignment, "_COMPARED", 0)

    assert [("left", 1, None), ("right", None, 1)] == aligned(left, right)
