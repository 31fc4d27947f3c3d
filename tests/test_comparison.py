"""Two recordings are compared by what was asked and what was said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import httpx_cassette
from httpx_cassette import Exchange
from httpx_cassette._call import Json
from httpx_cassette._comparison import contrast, line_diff, said_lines

from .example_cassette import chat, chat_answer, exchange_line, said

URL = "https://api.openai.com/v1/chat/completions"


def made(
    folder: Path, answer: dict[str, Json], body: Json = None, url: str = URL, finish: Json = "stop"
) -> Exchange:
    """Return a recording of an answer."""
    path = folder / "a.jsonl"
    path.write_bytes(exchange_line(url, body or chat("gpt-5", "a"), answer, finish=finish) + b"\n")
    (exchange,) = httpx_cassette.open(path)
    return exchange


def test_requests_differ_by_field_and_answers_by_line(tmp_path: Path) -> None:
    """Status and finish reason besides; ids and tokens are not told."""
    one = made(tmp_path, chat_answer("gpt-5", said("a\nb"), "stop", (1, 2)))
    body: Json = {**chat("gpt-5", "a"), "n": 2}
    two = made(tmp_path, chat_answer("gpt-5", said("a\nc"), "length", (3, 4)), body, finish="length")
    found = contrast(one, two)

    assert ["body.json.n"] == [change.path for change in found.request]
    assert [("finish", "stop", "length")] == [(each.path, each.old, each.new) for each in found.response]
    assert [" a", "-b", "+c"] == found.answer
    assert not any(contrast(one, one))


def test_an_answer_is_told_by_what_it_says(tmp_path: Path) -> None:
    """Thinking and calls of tools have a title, several answers their number."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a":\n1}'}}
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "Yes",
        "reasoning": "Hm.",
        "tool_calls": [call],
    }
    answer: dict[str, Any] = chat_answer("gpt-5", message, "stop", (1, 2))
    one = said_lines(made(tmp_path, answer))
    answer["json"]["choices"].append({"index": 1, "message": said("No"), "finish_reason": "stop"})

    assert ["[thinking]", "Hm.", "[text]", "Yes", "[call of look]", '{"a":', "1}"] == one
    assert ["[answer 1]", *one, "[answer 2]", "No"] == said_lines(made(tmp_path, answer))


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        ({"json": {"b": 1, "a": "ü"}}, ["{", '  "a": "ü",', '  "b": 1', "}"]),
        ({"text": "a\nb"}, ["a", "b"]),
        ({"base64": "AAEC"}, ["[3 bytes, sha256 ae4b3280e56e]"]),
        ({"base64": "!"}, ["[base64 that is none]"]),
    ],
    ids=["json", "text", "bytes", "no-bytes"],
)
def test_an_answer_in_no_known_format_is_told_as_it_is(
    answer: dict[str, Json], lines: list[str], tmp_path: Path
) -> None:
    """JSON with sorted names, text, and bytes by their digest."""
    assert lines == said_lines(made(tmp_path, answer, {"a": 1}, "https://api.example.com/other"))


def test_lines_that_differ_stand_among_their_neighbours() -> None:
    """Short texts as a whole, long ones with the place; very long ones are not compared line by line."""
    many = [str(number) for number in range(40)]
    long = [str(number) for number in range(2001)]

    assert [] == line_diff(many, many)
    assert ["-a", "+b"] == line_diff(["a"], ["b"])
    assert ["@@ -20,5 +20,4 @@", " 19", " 20", "-21", " 22", " 23"] == line_diff(many, many[:21] + many[22:])
    assert 2 == len([each for each in line_diff(many, ["x", *many[1:-1], "y"]) if each.startswith("@@")])
    assert [*(f"-{each}" for each in long), *(f"+{each}" for each in long[1:])] == line_diff(long, long[1:])
