"""``httpx-cassette compare``: answers to calls that differ in one field, side by side."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from httpx_cassette import _price
from httpx_cassette._call import Json
from httpx_cassette._usage import Usage
from httpx_cassette.cli import main

from ._recordings import make_file
from .example_cassette import chat, chat_answer, exchange_line, said, write_example

URL = "https://api.openai.com/v1/chat/completions"
NO_PRICES = "what the answers cost is not shown; install it with: pip install 'httpx_cassette[cost]'\n"


class Prices:
    """A cent for each token of gpt-5; other models have no price."""

    def cost(self, usage: Usage, at: str) -> Decimal | None:
        """Return what an answer cost."""
        if usage.model != "gpt-5" or usage.input_tokens is None or usage.output_tokens is None:
            return None
        return Decimal(usage.input_tokens + usage.output_tokens) / 100


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with the example cassette, without prices."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_price, "price_table", lambda: None)
    write_example(tmp_path / "chat.jsonl")
    return tmp_path


def compared(capsys: pytest.CaptureFixture[str], *words: str, says: str = NO_PRICES) -> str:
    """Return what ``compare`` prints."""
    assert 0 == main(["compare", *words])
    out, err = capsys.readouterr()
    assert says == err
    return out


def asked(model: str, system: str, answer: str = "Yes", usage: Json = None) -> bytes:
    """Return the recording of a call with a system prompt."""
    body = chat(model, "Why?")
    body["messages"] = [{"role": "system", "content": system}, {"role": "user", "content": "Why?"}]
    made = chat_answer(model, said(answer), "stop", (1, 2))
    if usage is not None:
        made = {"json": {**made["json"], "usage": usage}}  # type: ignore[dict-item]  # an object
    return exchange_line(URL, body, made, finish="stop")


def test_two_models_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each answer, then the sums for each value."""
    assert (
        "1\tgpt-5-mini\te368ccce5a90\tstop\t31\t3\t404\t\tComplaint\n"
        "1\tgpt-5\tb8697e75a59f\tstop\t31\t2\t790\t\tInvoice\n"
        "1\tgpt-5\tb8697e75a59f\tstop\t31\t2\t801\t\tBilling\n"
        "all\tgpt-5-mini\t\t\t31\t3\t404\t\t1 answer\n"
        "all\tgpt-5\t\t\t62\t4\t1591\t\t2 answers\n"
    ) == compared(capsys, "chat.jsonl", "--by", "model")


def test_costs_are_looked_up_and_never_guessed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model without a price has none; a sum of which a part is not known is not known."""
    monkeypatch.setattr(_price, "price_table", Prices)
    rows = compared(capsys, "chat.jsonl", "--by", "model", says="").splitlines()

    assert ["", "0.330000", "0.330000", "", "0.660000"] == [row.split("\t")[7] for row in rows]


def test_two_prompts_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of long values that begin alike, what differs is in sight; what was not counted is left empty."""
    same = "You are an assistant of many words who answers all that is asked "
    make_file(
        folder / "a.jsonl",
        asked("gpt-5", same + "politely, at length, and never in haste or anger."),
        asked("gpt-5", same + "tersely.", usage={}),
        asked("gpt-5", "Short."),
    )

    assert (
        "1\tYou are an assistant of many words who…\t",
        "1\tYou are an assistant of many words who…\t",
        "1\tShort.\t",
    ) == tuple(
        row[: row.index("\t", 2) + 1]
        for row in compared(capsys, "a.jsonl", "--by", "messages[0].content").splitlines()[:3]
    )
    make_file(folder / "b.jsonl", *(folder / "a.jsonl").read_bytes().split(b"\n")[:2])
    assert [
        ["1", "…at is asked politely, at length, and n…", "stop", "1", "2", "812"],
        ["1", "…at is asked tersely.", "stop", "", "", "812"],
        ["all", "…at is asked politely, at length, and n…", "", "1", "2", "812"],
        ["all", "…at is asked tersely.", "", "", "", "812"],
    ] == [
        [cell for place, cell in enumerate(row.split("\t")) if place not in (2, 7, 8)]
        for row in compared(capsys, "b.jsonl", "--by", "messages[0].content").splitlines()
    ]


def test_values_of_every_kind_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several as a list, others than text as JSON, and one that is absent."""
    lines = [
        exchange_line(URL, chat("gpt-5", "a", **options), {"json": {}})
        for options in ({}, {"seed": 7}, {"seed": {"ü": [1]}})
    ]
    make_file(folder / "a.jsonl", *lines)
    two = compared(capsys, "chat.jsonl", "--by", "model", "--by", "url").splitlines()

    assert ["(absent)", "7", '{"ü": [1]}'] == [
        row.split("\t")[1] for row in compared(capsys, "a.jsonl", "--by", "seed").splitlines()[:3]
    ]
    assert "gpt-5-mini, https://api.openai.com/v1/…" == two[0].split("\t")[1]


def test_the_facts_are_objects_in_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each group, with the answers in full."""
    monkeypatch.setattr(_price, "price_table", Prices)
    (facts,) = map(
        json.loads, compared(capsys, "chat.jsonl", "--by", "model", "--json", says="").splitlines()
    )

    assert ["group", "question", "answers"] == list(facts)
    assert {
        "values": {"model": "gpt-5"},
        "file": "chat.jsonl",
        "line": 7,
        "fingerprint": "b8697e75a59f5ee1368959f3380d54ea3ed35697675ae0d4c9498ecc536099c4",
        "sample": 0,
        "at": "2026-11-30T09:00:00Z",
        "model": "gpt-5",
        "finish": "stop",
        "input_tokens": 31,
        "output_tokens": 2,
        "ms": 790,
        "cost": 0.33,
        "answer": "Invoice",
    } == facts["answers"][1]
    assert facts["answers"][0]["cost"] is None


def test_the_page_has_all_answers(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """It is printed, to be written to a file."""
    make_file(folder / "a.jsonl", asked("gpt-5", "a", "<b>one</b>"), asked("gpt-5-mini", "a", "two"))

    assert 0 == main(["compare", "a.jsonl", "--by", "model", "--html"])
    out, err = capfdbinary.readouterr()
    assert NO_PRICES.encode() == err
    assert [b"Why?", b"gpt-5", b"&lt;b&gt;one&lt;/b&gt;", b"gpt-5-mini", b"two"] == [
        each.partition(b"</pre>")[0] for each in out.split(b"<pre>")[1:]
    ]
    assert out.endswith(b"</html>\n")


def test_what_a_terminal_obeys_is_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In values and in answers."""
    make_file(folder / "a.jsonl", asked("\x1b[2J", "a", "\x9b31m"), asked("b", "a", "\u202e"))

    shown = compared(capsys, "a.jsonl", "--by", "model")
    assert shown.replace("\n", "").replace("\t", "").isprintable()


def test_damaged_lines_are_passed_over_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr."""
    data = (folder / "chat.jsonl").read_bytes()
    (folder / "chat.jsonl").write_bytes(data.replace(b"Shipping", b"Parcels."))

    rows = compared(
        capsys, "chat.jsonl", "--by", "model",
        says=f"{NO_PRICES}chat.jsonl: 1 damaged line left out; see httpx-cassette verify chat.jsonl\n",
    ).splitlines()  # fmt: skip
    assert 5 == len(rows)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("chat.jsonl",),
            "the following arguments are required: --by; see httpx-cassette compare --help",
        ),
        (
            ("chat.jsonl", "--by", "seed", "--by", "url"),
            "chat.jsonl: no two recordings differ in 'seed' and 'url' and in nothing else",
        ),
        (
            ("chat.jsonl", "--by", "a..b"),
            "the path 'a..b' cannot be read at '..b'; write it like 'metadata.run_id' or 'messages[*].name'",
        ),
        (("-", "--by", "model"), "a cassette cannot be read from a pipe; name its file"),
        (
            ("absent.jsonl", "--by", "model"),
            "absent.jsonl: there is no such file; "
            "name one that is there, or record it first",
        ),
        (
            ("chat.jsonl", "--by", "model", "--html", "--json"),
            "--html and --json are two forms of the same; one is due; see httpx-cassette compare --help",
        ),
    ],
    ids=["nothing", "none", "path", "pipe", "absent", "forms"],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_sentence(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with the status 1."""
    assert 1 == main(["compare", *words])
    assert ("", f"Error: {sentence}\n") == capsys.readouterr()
