"""``httpx-cassette ls``: rows, filters, order."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TypeAlias

import pytest

from httpx_cassette.cli import main

from ._recordings import line as bare_line
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said, write_example

URL = "https://api.openai.com/v1/chat/completions"

#: Runs ``ls`` and returns the lines of the recordings that it lists, in their order.
Listed: TypeAlias = Callable[..., list[int]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder with the example cassette, in which the command runs."""
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "chat.jsonl")
    return tmp_path


@pytest.fixture
def listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Listed:
    """Give what runs ``ls``."""

    def run(*words: str) -> list[int]:
        assert 0 == main(["ls", "chat.jsonl", *words, "--json"])
        return [json.loads(line)["line"] for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ((), [1, 2, 3, 4, 5, 6, 7, 8]),
        (("--model", "gpt-5"), [1, 3, 7, 8]),
        (("--model", "GPT*"), [1, 2, 3, 7, 8]),
        (("--model", "nonsense"), []),
        (("--dialect", "gemini"), [5]),
        (("--finish", "tool_calls"), [3]),
        (("--finish", "stop"), [1, 2, 5, 7, 8]),
        (("--since", "2026-11-29T12:05:00Z"), [5, 6, 7, 8]),
        (("--since", "2026-11-30"), [7, 8]),
        (("--since", "2026-11-30T10:00:00+02:00"), [7, 8]),
        (("--grep", "PARCEL"), [5, 6]),
        (("--grep", "find_order"), [3]),
        (("--grep", r"charged\s+twice\."), [4]),
        (("--grep", "embedding"), [6]),
        (("--model", "gpt-5", "--grep", "invoice", "--since", "2026-11-30"), [7, 8]),
        (("--sort", "ms"), [6, 5, 2, 7, 8, 1, 3, 4]),
        (("--sort", "out", "--reverse"), [3, 4, 2, 1, 7, 8, 5, 6]),
        (("--sort", "finish"), [5, 4, 1, 2, 7, 8, 3, 6]),
        (("--reverse",), [8, 7, 6, 5, 4, 3, 2, 1]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)  # fmt: skip
def test_recordings_are_filtered_and_sorted(words: tuple[str, ...], lines: list[int], listed: Listed) -> None:
    """Filters are joined by and; what has no value comes last."""
    assert lines == listed(*words)


def test_days_and_hours_ago_are_times(listed: Listed, folder: Path) -> None:
    """They are counted from now."""
    now = datetime.now(timezone.utc)
    answer = chat_answer("gpt-5", said("Other"), "stop", (1, 1))
    for hours in (1, 30):
        at = f"{now - timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"
        line = exchange_line(URL, chat("gpt-5", f"{hours} hours ago"), answer, at=at)
        with (folder / "ages.jsonl").open("ab") as file:
            file.write(line + b"\n")
    (folder / "ages.jsonl").replace(folder / "chat.jsonl")

    assert ([1, 2], [1], []) == (listed("--since", "2d"), listed("--since", "2h"), listed("--since", "0h"))


def test_one_row_says_what_a_recording_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Separated by tabs in a pipe; of several files the name comes first."""
    write_example(folder / "other.jsonl")
    assert 0 == main(["ls", "chat.jsonl", "other.jsonl", "--finish", "tool_calls"])

    row = "86d3d3c14b0f\t2026-11-29T12:00:00Z\topenai-chat\tgpt-5\ttool_calls\t57\t17\t1210\t966\t"
    question = "What became of order 1042?"
    assert f"chat.jsonl\t{row}{question}\nother.jsonl\t{row}{question}\n" == capsys.readouterr().out


def test_several_finish_reasons_are_one_cell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unsorted row and a sorted one alike."""
    answer = chat_answer("gpt-5", said("Other"), "stop", (1, 1))
    line = exchange_line(URL, chat("gpt-5", "a\tb\n c"), answer, finish=["stop", None, "length"])
    (folder / "a.jsonl").write_bytes(line + b"\n")
    assert 0 == main(["ls", "a.jsonl", "--sort", "finish"])

    cells = capsys.readouterr().out.rstrip("\n").split("\t")
    assert ("stop, length", "a b c") == (cells[4], cells[-1])


def test_what_is_left_out_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Damage and other key versions stand on stderr; the status is 0."""
    lines = example_lines()
    lines[1] = lines[1].replace(b"Complaint", b"Compliment")
    (folder / "a.jsonl").write_bytes(b"\n".join([*lines, bare_line("old", key_version=7), b""]))

    assert 0 == main(["ls", "a.jsonl"])
    out, err = capsys.readouterr()
    assert 7 == len(out.splitlines())
    assert (
        "a.jsonl: 1 damaged line left out; see httpx-cassette verify a.jsonl\n"
        "a.jsonl: 1 recording of key version 7 left out\n"
    ) == err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "the following arguments are required: FILE; see httpx-cassette ls --help"),
        (
            ("absent.jsonl",),
            "absent.jsonl: there is no such file; name one that is there, or record it first",
        ),
        (("-",), "a cassette cannot be read from a pipe; name its file"),
        (("none",), "none: the path is a folder; name a file in it, such as chat.jsonl"),
        (
            ("", "chat.jsonl"),
            "'' is not the path of a cassette file; write it like 'tests/cassettes/chat.jsonl'",
        ),
        (
            ("chat.jsonl", "--since", "yesterday"),
            "argument --since: 'yesterday' is no time; write 2026-11-29, or 7d for seven days ago; "
            "see httpx-cassette ls --help",
        ),
        (
            ("chat.jsonl", "--grep", "("),
            "argument --grep: '(' is no regular expression: missing ), unterminated subpattern "
            "at position 0; see httpx-cassette ls --help",
        ),
        (
            ("chat.jsonl", "--sort", "age"),
            "argument --sort: 'age' is not one of 'file', 'at', 'dialect', 'model', 'finish', 'in', 'out', "
            "'ms', 'size', 'key'; see httpx-cassette ls --help",
        ),
    ],
    ids=["nothing", "absent", "pipe", "folder", "empty", "since", "grep", "sort"],
)
def test_what_cannot_be_listed_is_one_sentence(
    words: tuple[str, ...], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is 1, and nothing else is printed."""
    (folder / "none").mkdir()

    assert 1 == main(["ls", *words])
    assert ("", f"Error: {said}\n") == capsys.readouterr()


def test_a_file_as_a_whole_that_cannot_be_trusted_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unresolved merge is named with its line."""
    (folder / "a.jsonl").write_bytes(b"<<<<<<< HEAD\n")

    assert 1 == main(["ls", "a.jsonl"])
    assert (
        "Error: a.jsonl:1: an unresolved merge; keep the lines of both sides and delete the marker lines "
        "(a .gitattributes line with merge=union does that by itself)\n"
    ) == capsys.readouterr().err


def test_a_folder_stands_for_all_cassettes_below_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With their names where there are several, and without where there is one."""
    (folder / "deeper").mkdir()
    (folder / "deeper" / "one.jsonl").write_bytes(example_lines()[0] + b"\n")

    assert 0 == main(["ls", "."])
    several = [line.partition("\t")[0] for line in capsys.readouterr().out.splitlines()]
    assert 0 == main(["ls", "deeper"])
    one = capsys.readouterr().out
    assert 0 == main(["ls", "deeper/one.jsonl"])

    assert ["./chat.jsonl"] * 8 + ["./deeper/one.jsonl"] == several
    assert one == capsys.readouterr().out
