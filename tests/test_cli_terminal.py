"""What commands print: nothing that a terminal obeys, tables that fit, bars where somebody looks."""

from __future__ import annotations

import io
import sys

import pytest

from httpx_cassette.cli import _terminal
from httpx_cassette.cli._command import say, say_error
from httpx_cassette.cli._terminal import Column, progress, show_bytes, show_json, show_lines, show_table

#: What must not reach a terminal -> what is printed in its place.
HOSTILE = {
    "nul": ("a\0b", "a\\u0000b"),
    "bell": ("a\x07b", "a\\u0007b"),
    "backspace": ("a\x08b", "a\\u0008b"),
    "carriage return": ("safe\rEvil", "safe\\rEvil"),
    "colour": ("\x1b[31mred", "\\u001b[31mred"),
    "clear": ("\x1b[2J", "\\u001b[2J"),
    "title": ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
    "link": ("\x1b]8;;http://evil\x1b\\here", "\\u001b]8;;http://evil\\u001b\\here"),
    "clipboard": ("\x1b]52;c;aGk=\x07", "\\u001b]52;c;aGk=\\u0007"),
    "device control": ("\x1bP+q\x1b\\", "\\u001bP+q\\u001b\\"),
    "one byte csi": ("\x9b31m", "\\u009b31m"),
    "one byte osc": ("\x9d0;t\x9c", "\\u009d0;t\\u009c"),
    "delete": ("a\x7f", "a\\u007f"),
    "right to left": ("a\u202eb", "a\\u202eb"),
    "isolate": ("\u2066a\u2069", "\\u2066a\\u2069"),
    "mark": ("\u200ea\u061c", "\\u200ea\\u061c"),
    "zero width": ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
    "line separator": ("a\u2028b\u2029c\x85d", "a\\u2028b\\u2029c\\u0085d"),
    "tag": ("\U000e0041", "\\U000e0041"),
    "surrogate": ("\ud800", "\\ud800"),
    "markup of rich": ("[red]a[/red]", "[red]a[/red]"),
}


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def is_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Let somebody look, or not."""
    monkeypatch.setattr(_terminal, "is_terminal", lambda: request.param)
    monkeypatch.setenv("COLUMNS", "80")
    return bool(request.param)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_a_terminal_obeys_is_printed(
    name: str, is_terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cells, lines of text and styled titles are escaped; a tab or a newline in a cell, too."""
    text, shown = HOSTILE[name]
    show_lines(f"{text}\n{text}")
    show_lines(text, style="bold")
    show_table([Column("a")], [[f"{text}\t{text}\n"]])

    lines = capsys.readouterr().out.splitlines()
    assert [shown, shown, shown] == lines[:3]
    assert [*(["a"] if is_terminal else []), f"{shown}\\t{shown}\\n"] == lines[3:]


@pytest.mark.parametrize("name", HOSTILE)
def test_json_is_printed_in_ascii(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All else is escaped, as JSON can."""
    text, _ = HOSTILE[name]
    show_json({"a": text})

    shown = capsys.readouterr().out
    assert shown.rstrip("\n").isascii()
    assert shown.rstrip("\n").isprintable() or name == "delete"


def test_bytes_are_escaped_where_somebody_looks(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program gets them as they are stored."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    show_bytes("caf\u00e9\x1b[2J\n".encode())

    shown = out.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO
    assert ("caf\u00e9\\u001b[2J\n" if is_terminal else "caf\u00e9\x1b[2J\n").encode() == shown


def test_an_output_that_knows_fewer_characters_refuses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are written as escapes there."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    show_lines("caf\u00e9")
    show_table([Column("a")], [["\u6771"]])

    assert b"caf\\xe9\n\\u6771\n" == out.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO


TOKYO = "\u6771\u4eac"

COLUMNS = (
    Column("key"),
    Column("model", most=8, dropped=2),
    Column("out", is_number=True, dropped=1),
    Column("question"),
)
ROWS = [
    ["9f2c", "gpt-5", 12, "Where is my parcel, and when will it come?"],
    ["b869", "claude-sonnet-5", None, f"{TOKYO * 7}?"],
]  # fmt: skip


@pytest.mark.parametrize(
    ("width", "table"),
    [
        (
            60,
            "key   model     out  question\n"
            "9f2c  gpt-5      12  Where is my parcel, and when will it c…\n"
            f"b869  claude-…       {TOKYO * 7}?\n",
        ),
        (
            40,
            "key   out  question\n"
            "9f2c   12  Where is my parcel, and when…\n"
            f"b869       {TOKYO * 7}?\n",
        ),
        (
            20,
            "key   question\n"
            "9f2c  Where is my parcel, and…\n"
            f"b869  {TOKYO * 5}\u6771 …\n",
        ),
    ],
)  # fmt: skip
def test_a_table_fits_its_terminal(
    width: int, table: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What matters least is left out first; wide characters take the room of two."""
    monkeypatch.setattr(_terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    show_table(COLUMNS, ROWS)

    assert table == capsys.readouterr().out


def test_a_long_table_is_laid_out_in_parts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows are not kept until the last one has come."""
    monkeypatch.setattr(_terminal, "is_terminal", lambda: True)
    show_table([Column("key"), Column("text")], ([str(number), "x"] for number in range(501)))

    lines = capsys.readouterr().out.splitlines()
    assert (503, 2) == (len(lines), lines.count("key  text"))


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_moves_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands on stderr, and is gone in the end; what is shown beside it is no markup."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress("verify [red]a\x07", 2_000_000) as bar:
        for _ in range(2_000):
            bar.advance(1_000)

    assert "verify [red]a\\u0007" in terminal.getvalue()


def test_things_are_counted_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each takes its time, the bar says how many are done."""
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress("probe", 3, is_bytes=False) as bar:
        for _ in range(3):
            bar.advance(1)

    assert "3/3" in terminal.getvalue()


def test_no_bar_is_drawn_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """A log is not filled with it."""
    with progress("verify", 10) as bar:
        bar.advance(10)

    assert ("", "") == capsys.readouterr()


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_that_is_said_is_obeyed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """On stderr as well, whoever says it; lines stay lines, but for what could not be done, which is one."""
    hostile, shown = HOSTILE[name]
    say(f"{hostile}\nb")
    say_error(f"{hostile}\nb")

    assert ("", f"{shown}\nb\nError: {shown}\\nb\n") == capsys.readouterr()
