"""``httpx-cassette stats``: what is in cassettes, what a live run takes, and whether it has paid."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from httpx_cassette import _price
from httpx_cassette._usage import Usage
from httpx_cassette.cli import main, stats

from ._recordings import line, make_file
from .example_cassette import chat, chat_answer, exchange_line, said, write_example

URL = "https://api.openai.com/v1/chat/completions"
NO_PRICES = "what a live run costs is not shown; install it with: pip install 'httpx_cassette[cost]'\n"
UNTIL = ("--until", "2026-12-06")


class Prices:
    """A cent for each token of models whose name begins so; others have no price."""

    name = "a table"
    known = "gpt"

    def cost(self, usage: Usage, at: str) -> Decimal | None:
        """Return what an answer cost."""
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return Decimal(tokens) / 100 if usage.model.startswith(self.known) else None


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with the example cassette, without prices."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_price, "price_table", lambda: None)
    write_example(tmp_path / "chat.jsonl")
    return tmp_path


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch) -> type[Prices]:
    """Have prices."""
    table = type("Table", (Prices,), {})
    monkeypatch.setattr(_price, "price_table", table)
    return table


def counted(capsys: pytest.CaptureFixture[str], *words: str, says: str = "") -> str:
    """Return what ``stats`` prints."""
    assert 0 == main(["stats", *words])
    out, err = capsys.readouterr()
    assert says == err
    return out


TEXT = """\
recordings    7 in 1 file of 6,831 bytes
superseded    1
recorded      2026-11-29 to 2026-11-30, the oldest 6 days ago
tokens        201 in, 34 out
live run      5.2 s, one call after the other
"""

ROWS = """\

openai-chat	gpt-5	3	119	21	2.8	{gpt}
anthropic-messages	claude-sonnet-5	1	31	9	1.5	
gemini	gemini-3-flash	1	19	1	0.3	
generic	text-embedding-3-small	1	1	0	0.1	
openai-chat	gpt-5-mini	1	31	3	0.4	{mini}
"""  # noqa: W291  # cells that are empty


def test_what_is_in_a_cassette(capsys: pytest.CaptureFixture[str]) -> None:
    """Superseded answers are counted, and not in the sums; the model with most recordings comes first."""
    assert TEXT + ROWS.format(gpt="", mini="") == counted(capsys, "chat.jsonl", *UNTIL, says=NO_PRICES)


def test_what_a_live_run_costs(capsys: pytest.CaptureFixture[str], prices: type[Prices]) -> None:
    """By the table; calls without a price are counted. What was superseded was paid for as well."""
    costs = (
        "              $1.74 by a table, without 3 of 7 calls that it has no price for\n"
        "recording     $2.07, what is superseded included\n"
        "              has paid for itself since 2026-11-29, at 10 runs a day\n"
    )
    rows = ROWS.format(gpt="1.400000", mini="0.340000")

    assert TEXT + costs + rows == counted(capsys, "chat.jsonl", *UNTIL)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--runs-per-day", "1"), "has paid for itself since 2026-12-01, at 1 run a day"),
        (("--runs-per-day", "0.25"), "will have paid for itself by 2026-12-07, at 0.25 runs a day"),
        (("--runs-per-day", "1e-9"), "$2.07, what is superseded included"),
    ],
    ids=["paid", "not-yet", "never"],
)
def test_when_it_has_paid_for_itself(
    words: tuple[str, ...], said: str, prices: type[Prices], capsys: pytest.CaptureFixture[str]
) -> None:
    """Two runs here, after the first recording; so seldom that no calendar knows the day, nothing is said."""
    lines = counted(capsys, "chat.jsonl", *UNTIL, *words).splitlines()

    assert said == lines[lines.index("") - 1][14:]


def test_prices_of_nothing_are_not_known(capsys: pytest.CaptureFixture[str], prices: type[Prices]) -> None:
    """The table is named; small prices have more digits."""
    prices.known = "other"
    none = counted(capsys, "chat.jsonl", *UNTIL).splitlines()
    prices.known = "text"
    some = counted(capsys, "chat.jsonl", *UNTIL).splitlines()

    assert ["              no price in a table", ""] == none[5:7]
    assert "              $0.010000 by a table, without 6 of 7 calls that it has no price for" == some[5]


def test_several_files_are_one_sum_and_damage_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Damaged lines are counted, and named on stderr."""
    data = (folder / "chat.jsonl").read_bytes()
    (folder / "bad.jsonl").write_bytes(data.replace(b"Shipping", b"Parcels."))
    told = "bad.jsonl: 1 damaged line left out; see httpx-cassette verify bad.jsonl\n"

    lines = counted(capsys, "chat.jsonl", "bad.jsonl", says=NO_PRICES + told).splitlines()
    assert ["recordings    13 in 2 files of 13,662 bytes", "superseded    2", "damaged       1"] == lines[:3]


def test_an_empty_cassette_and_times_that_are_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no table, and no time."""
    make_file(folder / "a.jsonl")
    made = exchange_line(URL, chat("gpt-5", "a"), chat_answer("gpt-5", said("b"), "stop", (1, 2)), at="then")
    make_file(folder / "b.jsonl", made)
    empty = (
        "recordings    0 in 1 file of 0 bytes\nsuperseded    0\ntokens        0 in, 0 out\n"
        "live run      0.0 s, one call after the other\n"
    )

    assert empty == counted(capsys, "a.jsonl", says=NO_PRICES)
    assert ["superseded    0", "tokens        1 in, 2 out"] == (
        counted(capsys, "b.jsonl", says=NO_PRICES).splitlines()[1:3]
    )


def test_times_that_nothing_takes_do_not_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Edited by hand, and sealed again: less than none, and more than there are."""
    lines = [
        exchange_line(URL, chat("gpt-5", str(taken)), {"json": {}}, milliseconds=taken)
        for taken in (-1, 10**400, 1000)
    ]
    make_file(folder / "a.jsonl", *lines)

    assert (
        "live run      1.0 s, one call after the other"
        == (counted(capsys, "a.jsonl", says=NO_PRICES).splitlines()[4])
    )


def test_a_cassette_whose_times_are_none_is_never_said_to_have_paid(
    folder: Path, capsys: pytest.CaptureFixture[str], prices: type[Prices]
) -> None:
    """The rest is told; of an empty one there is no price either."""
    made = exchange_line(URL, chat("gpt-5", "a"), chat_answer("gpt-5", said("b"), "stop", (1, 2)), at="then")
    make_file(folder / "b.jsonl", made)
    make_file(folder / "a.jsonl")

    assert (
        "recording     $0.030000, what is superseded included" == counted(capsys, "b.jsonl").splitlines()[5]
    )
    assert "live run      0.0 s, one call after the other" == counted(capsys, "a.jsonl").splitlines()[-1]


def test_bars_are_drawn_where_somebody_looks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as there are recordings."""
    shown: list[tuple[list[str], list[object]]] = []
    monkeypatch.setattr(stats, "is_terminal", lambda: True)
    monkeypatch.setattr(
        stats, "show_table",
        lambda columns, rows: shown.extend(([each.name for each in columns], row) for row in rows),
    )  # fmt: skip
    counted(capsys, "chat.jsonl", says=NO_PRICES)

    assert ["#" * 24, "#" * 8, "#" * 8, "#" * 8, "#" * 8] == [row[-1] for _, row in shown]
    assert ["dialect", "model", "recordings", "in", "out", "seconds", "cost", ""] == shown[0][0]


def test_the_facts_are_one_object(capsys: pytest.CaptureFixture[str], prices: type[Prices]) -> None:
    """All sums, and those for each model."""
    facts = json.loads(counted(capsys, "chat.jsonl", *UNTIL, "--json"))
    models = facts.pop("models")

    assert {
        "files": 1,
        "bytes": 6831,
        "recordings": 7,
        "input_tokens": 201,
        "output_tokens": 34,
        "seconds": 5.18,
        "cost": 1.74,
        "without_price": 3,
        "superseded": 1,
        "damaged": 0,
        "oldest": "2026-11-29T12:00:00Z",
        "newest": "2026-11-30T09:00:02Z",
        "age_days": 6,
        "recording_cost": 2.07,
        "runs_per_day": 10.0,
        "paid_for_itself": "2026-11-29T16:48:00Z",
    } == facts
    assert {
        "dialect": "gemini", "model": "gemini-3-flash", "recordings": 1, "input_tokens": 19,
        "output_tokens": 1, "seconds": 0.35, "cost": None, "without_price": 1,
    } == models[3]  # fmt: skip


def test_facts_that_are_not_known_are_null(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prices that are not installed, times of nothing."""
    make_file(folder / "a.jsonl")
    facts = json.loads(counted(capsys, "a.jsonl", "--json", says=NO_PRICES))

    assert [None] * 7 == [
        facts[name]
        for name in (
            "cost",
            "without_price",
            "oldest",
            "newest",
            "age_days",
            "recording_cost",
            "paid_for_itself",
        )
    ]


def test_what_a_terminal_obeys_is_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the name of a model."""
    made = exchange_line(URL, chat("\x1b[2J", "a"), chat_answer("\x1b[2J", said("b"), "stop", (1, 2)))
    make_file(folder / "a.jsonl", made, line("b"))

    shown = counted(capsys, "a.jsonl", says=NO_PRICES)
    assert shown.replace("\n", "").replace("\t", "").isprintable()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "the following arguments are required: FILE; see httpx-cassette stats --help"),
        (("-",), "a cassette cannot be read from a pipe; name its file"),
        (
            ("absent.jsonl",),
            "absent.jsonl: there is no such file; name one that is there, or record it first",
        ),
        (("chat.jsonl", "."), ".: the path is a folder; name a file in it, such as chat.jsonl"),
        (
            ("chat.jsonl", "--runs-per-day", "0"),
            "argument --runs-per-day: 0.0 is not in the range x>0; see httpx-cassette stats --help",
        ),
        (
            ("chat.jsonl", "--until", "soon"),
            "argument --until: 'soon' is no time; write 2026-11-29; see httpx-cassette stats --help",
        ),
    ],
    ids=["nothing", "pipe", "absent", "folder", "runs", "until"],
)
def test_what_cannot_be_counted_is_one_sentence(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with the status 1."""
    assert 1 == main(["stats", *words])
    assert ("", f"Error: {sentence}\n") == capsys.readouterr()
