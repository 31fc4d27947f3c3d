"""Recordings that differ in some fields only belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

import httpx_cassette
from httpx_cassette._call import Json
from httpx_cassette._errors import OptionError
from httpx_cassette._grouping import Fields, groups
from httpx_cassette._line import seal

from ._recordings import line, make_file
from .example_cassette import chat, exchange_line

URL = "https://api.openai.com/v1/chat/completions"
OTHER = "https://api.x.ai/v1/chat/completions"


def asked(
    model: str, user: str = "a", url: str = URL, gen: int = 0, sample: int = 0, **options: Json
) -> bytes:
    """Return the recording of a chat call."""
    return exchange_line(url, chat(model, user, **options), {"json": {}}, gen=gen, sample=sample)


def grouped(path: Path, *names: str) -> list[list[tuple[int, dict[str, Json]]]]:
    """Return the groups by the numbers of their lines, with the values of the fields."""
    found = groups(httpx_cassette.open(path), Fields(names))
    return [[(each.exchange.line, each.values) for each in group] for group in found]


def test_what_differs_in_a_field_alone_is_a_group(tmp_path: Path) -> None:
    """By the key: a default that is sent tells nothing apart; a call without a partner is in no group."""
    path = make_file(
        tmp_path / "a.jsonl",
        asked("gpt-5"), asked("gpt-5", "b"), asked("gpt-5-mini", temperature=1), asked("gpt-5-mini", "c"),
    )  # fmt: skip

    assert [[(1, {"model": "gpt-5"}), (3, {"model": "gpt-5-mini"})]] == grouped(path, "model")


def test_one_value_stands_together_and_superseded_answers_are_left_out(tmp_path: Path) -> None:
    """In the order in which values came first; each sample counts."""
    path = make_file(
        tmp_path / "a.jsonl",
        asked("one"), asked("two"), asked("one", gen=1), asked("two", sample=1),
        asked("one", gen=1, sample=1),
    )  # fmt: skip
    lines = [[number for number, _ in group] for group in grouped(path, "model")]

    assert [[2, 4, 3, 5]] == lines


def test_several_fields_may_differ_and_places_may_be_many(tmp_path: Path) -> None:
    """The address is a field too; what is not there is left out."""
    path = make_file(tmp_path / "a.jsonl", asked("gpt-5"), asked("grok", url=OTHER), asked("grok", user="b"))

    assert [[(1, {"model": "gpt-5", "url": URL}), (2, {"model": "grok", "url": OTHER})]] == (
        grouped(path, "url", "model")
    )
    system = "You sort messages to a shop. Answer with one word."
    assert [] == grouped(path, "model")
    assert [
        [(2, {"url": OTHER, "messages[*].content": [system, "a"]}),
         (3, {"url": URL, "messages[*].content": [system, "b"]})],
    ] == grouped(path, "url", "messages[*].content")  # fmt: skip


def test_an_absent_field_is_a_value(tmp_path: Path) -> None:
    """Beside those that have it."""
    path = make_file(tmp_path / "a.jsonl", asked("gpt-5"), asked("gpt-5", seed=7))

    assert [[(1, {}), (2, {"seed": 7})]] == grouped(path, "seed")


def test_what_is_no_request_is_in_no_group(tmp_path: Path) -> None:
    """A sealed line that holds none, and one whose policy is none, are passed over."""
    bad = seal(asked("x").rpartition(b',"sum":')[0] + b',"policy":{"ignore":7}')
    path = make_file(tmp_path / "a.jsonl", line("a"), bad, asked("gpt-5"))

    assert [] == grouped(path, "model")


def test_the_policy_of_a_line_stays_in_force(tmp_path: Path) -> None:
    """What it ignores tells nothing apart."""
    one, two = (
        seal(asked(model, user=None, seed=seed).rpartition(b',"sum":')[0] + b',"policy":{"ignore":["seed"]}')  # type: ignore[arg-type]  # any value
        for model, seed in (("a", 1), ("b", 2))
    )
    path = make_file(tmp_path / "a.jsonl", one, two)

    assert [[1, 2]] == [[number for number, _ in group] for group in grouped(path, "model")]


@pytest.mark.parametrize("name", ["", "a..b", "messages["])
def test_a_path_that_cannot_be_read_is_an_error(name: str) -> None:
    """Before anything is read."""
    with pytest.raises(OptionError):
        Fields([name])
