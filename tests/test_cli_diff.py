"""``httpx-cassette diff``: two recordings, or two cassettes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from httpx_cassette.cli import main

from ._recordings import line, make_file
from .example_cassette import (
    chat,
    chat_answer,
    example_lines,
    exchange_line,
    said,
    write_changed_example,
    write_example,
)

URL = "https://api.openai.com/v1/chat/completions"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with the example cassette, and with what became of it."""
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "chat.jsonl")
    write_changed_example(tmp_path / "new.jsonl")
    return tmp_path


def differing(capsys: pytest.CaptureFixture[str], *words: str, status: int = 2) -> str:
    """Return what ``diff`` prints, and nothing else."""
    assert status == main(["diff", *words])
    out, err = capsys.readouterr()
    assert "" == err
    return out


TWO = """\
b8697e75a59f  chat.jsonl:7  2026-11-30T09:00:00Z  gpt-5
e368ccce5a90  chat.jsonl:2  2026-11-29T12:00:00Z  gpt-5-mini
  model   "gpt-5" -> "gpt-5-mini"
  answer
    -Invoice
    +Complaint
"""


def test_two_recordings_of_one_cassette(capsys: pytest.CaptureFixture[str]) -> None:
    """By the beginning of the fingerprint, or by line; of two files with both named."""
    assert TWO == differing(capsys, "chat.jsonl", "b8", "e3")
    assert TWO == differing(capsys, "chat.jsonl", ":7", ":2")
    assert TWO == differing(capsys, "chat.jsonl", "b8", "chat.jsonl", "e3")


def test_what_an_answer_and_its_outcome_say_is_compared(capsys: pytest.CaptureFixture[str]) -> None:
    """The finish reason is a field, a call of a tool has a title."""
    assert (
        "b8697e75a59f  chat.jsonl:7  2026-11-30T09:00:00Z  gpt-5\n"
        "86d3d3c14b0f  chat.jsonl:3  2026-11-29T12:00:00Z  gpt-5\n"
        '  messages[1].content   "I was charged twice for order 1042, see the invoice." -> "What became of '
        'order 1042?"\n'
        '  tools   (absent) -> [{"type": "function", "function": {"name": "find_order", "parameters": '
        '{... (1 items)\n'
        '  finish   "stop" -> "tool_calls"\n'
        "  answer\n"
        "    -Invoice\n"
        "    +[call of find_order]\n"
        '    +{"id": 1042}\n'
    ) == differing(capsys, "chat.jsonl", "b8", "86")  # fmt: skip


def test_what_does_not_differ_has_the_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    """One recording twice; one answer that was given twice."""
    assert (
        "b8697e75a59f  chat.jsonl:1  2026-11-29T12:00:00Z  gpt-5\n"
        "b8697e75a59f  chat.jsonl:8  2026-11-30T09:00:02Z  gpt-5\n"
        "nothing differs\n"
    ) == differing(capsys, "chat.jsonl", ":1", ":8", status=0)
    assert "6 recordings alike\n" == differing(capsys, "new.jsonl", "new.jsonl", status=0)


CASSETTES = """\
- b8697e75a59f  chat.jsonl:7  2026-11-30T09:00:00Z  gpt-5  I was charged twice for order 1042, see the invoice.
+ b8697e75a59f  new.jsonl:1  2026-11-29T12:00:00Z  gpt-5  I was charged twice for order 1042, see the invoice.
  answer
    -Invoice
    +Billing
    +(charged twice)
- 86d3d3c14b0f  chat.jsonl:3  2026-11-29T12:00:00Z  gpt-5  What became of order 1042?
+ 2d7c1af3cc56  new.jsonl:6  2026-11-29T12:00:00Z  gpt-5  Do you ship to Chile?
  messages[1].content   "What became of order 1042?" -> "Do you ship to Chile?"
  tools[1]   (absent) -> {"type": "function", "function": {"name": "find_order", "parameters": {"... (2 members)
  n   (absent) -> 1
  seed   (absent) -> 7
  finish   "tool_calls" -> "stop"
  answer
    -[call of find_order]
    -{"id": 1042}
    +Shipping
- 61a82813d25e  chat.jsonl:5  2026-11-29T12:05:00Z  gemini-3-flash  Where is my parcel?
+ 7a70bab1322b  new.jsonl:4  2026-11-29T12:00:00Z  gemini-3-flash  Where is my parcel?
  systemInstruction.parts[0].text
    - "You sort messages to a shop. Answer with one word."
    + "You sort messages to a shop. Answer with one word. In English."
  answer
    -Shipping
    +Delivery
- b8697e75a59f  chat.jsonl:8  2026-11-30T09:00:02Z  gpt-5  I was charged twice for order 1042, see the invoice.
3 recordings alike, 1 otherwise, 2 beside the nearest one, 1 only in chat.jsonl
"""  # noqa: E501  # as it is printed


def test_two_cassettes(capsys: pytest.CaptureFixture[str]) -> None:
    """What is alike is counted, all else shown: by fingerprint, by nearest, alone."""
    assert CASSETTES == differing(capsys, "chat.jsonl", "new.jsonl")


def test_the_facts_of_two_recordings_are_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """What is absent is left out of a change."""
    facts = json.loads(differing(capsys, "chat.jsonl", "b8", "86", "--json"))
    key = json.loads(example_lines()[6])["key"]

    assert {
        "file": "chat.jsonl", "line": 7, "fingerprint": key, "sample": 0, "at": "2026-11-30T09:00:00Z",
        "model": "gpt-5",
    } == facts["left"]  # fmt: skip
    assert ["left", "right", "request", "response", "answer"] == list(facts)
    assert [["path", "old", "new"], ["path", "new"]] == [list(change) for change in facts["request"]]
    assert [{"path": "finish", "old": "stop", "new": "tool_calls"}] == facts["response"]
    assert ["-Invoice", "+[call of find_order]", '+{"id": 1042}'] == facts["answer"]


def test_the_facts_of_two_cassettes_are_objects_in_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """One for each pair that differs; of one that is alone the other side is null."""
    facts = [json.loads(each) for each in differing(capsys, "chat.jsonl", "new.jsonl", "--json").splitlines()]
    other = [json.loads(each) for each in differing(capsys, "new.jsonl", "chat.jsonl", "--json").splitlines()]

    assert [("same", 7, 1), ("nearest", 3, 6), ("nearest", 5, 4)] == [
        (each["kind"], each["left"]["line"], each["right"]["line"]) for each in facts[:3]
    ]
    assert ["kind", "left", "right"] == list(facts[3])
    assert [("left", 8, None)] == [(each["kind"], each["left"]["line"], each["right"]) for each in facts[3:]]
    assert ("right", None, 8) == (other[3]["kind"], other[3]["left"], other[3]["right"]["line"])


def test_one_key_and_another_request_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What no key heeds is a difference all the same."""
    answer = chat_answer("gpt-5", said("a"), "stop", (1, 1))
    make_file(folder / "a.jsonl", exchange_line(URL, chat("gpt-5", "a"), answer))
    make_file(folder / "b.jsonl", exchange_line(URL, chat("gpt-5", "a", temperature=1), answer))

    lines = differing(capsys, "a.jsonl", "b.jsonl").splitlines()
    assert ["  temperature   (absent) -> 1", "0 recordings alike, 1 otherwise"] == lines[2:]


def test_what_a_terminal_obeys_is_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In fields, in answers and in questions."""
    evil = "a\x1b]0;x\x07\u202eb"
    answer = chat_answer("gpt-5", said(evil), "stop", (1, 1))
    make_file(folder / "a.jsonl", exchange_line(URL, chat("gpt-5", evil), answer))
    make_file(folder / "b.jsonl", line("a"))

    shown = differing(capsys, "a.jsonl", "b.jsonl") + differing(capsys, "a.jsonl", ":1", "chat.jsonl", ":1")
    assert shown.replace("\n", "").isprintable()


def test_damaged_lines_are_passed_over_and_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr, for each file."""
    data = (folder / "chat.jsonl").read_bytes()
    (folder / "bad.jsonl").write_bytes(data.replace(b"Complaint", b"Compliment"))

    assert 2 == main(["diff", "chat.jsonl", "bad.jsonl"])
    out, err = capsys.readouterr()
    assert "bad.jsonl: 1 damaged line left out; see httpx-cassette verify bad.jsonl\n" == err
    assert [
        "- e368ccce5a90  chat.jsonl:2  2026-11-29T12:00:00Z  gpt-5-mini  "
        "I was charged twice for order 1042, see the invoice.",
        "6 recordings alike, 1 only in chat.jsonl",
    ] == out.splitlines()


def test_empty_cassettes_are_alike(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing in which they differ."""
    make_file(folder / "a.jsonl")

    assert "0 recordings alike\n" == differing(capsys, "a.jsonl", "a.jsonl", status=0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "the following arguments are required: FILE; see httpx-cassette diff --help"),
        (
            ("chat.jsonl",),
            "two cassettes are needed, or one or two with two keys; see httpx-cassette diff --help",
        ),
        (("chat.jsonl", "b8"), "b8: there is no such file; name one that is there, or record it first"),
        (("chat.jsonl", "-"), "a cassette cannot be read from a pipe; name its file"),
        (("chat.jsonl", "."), ".: the path is a folder; name a file in it, such as chat.jsonl"),
        (
            ("chat.jsonl", "b8", "00"),
            "no recording of chat.jsonl begins with '00'; "
            "the nearest: 40f1eb55565b, 61a82813d25e, 86d3d3c14b0f",
        ),
        (("chat.jsonl", "b8", "chat.jsonl", ":9"), "line 9 of chat.jsonl is no recording"),
        (
            ("merge.jsonl", "chat.jsonl"),
            "merge.jsonl:1: an unresolved merge; keep the lines of both sides and delete the marker lines "
            "(a .gitattributes line with merge=union does that by itself)",
        ),
    ],
    ids=["nothing", "one", "no-file", "pipe", "folder", "key", "line", "merge"],
)  # fmt: skip
def test_what_cannot_be_compared_is_one_sentence(
    words: tuple[str, ...], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with the status 1."""
    (folder / "merge.jsonl").write_bytes(b"<<<<<<< HEAD\n")

    assert 1 == main(["diff", *words])
    assert ("", f"Error: {sentence}\n") == capsys.readouterr()
