"""The table of how programs end, one line for each; ``table.txt`` is what it should be.

A run that is to print its own table keeps the lines that it has seen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.exits._programs import Ended
from tests.exits.rows import ALL, GROUPS

__all__ = ["SEEN", "line_of", "snapshot", "table"]

_LINE = "{:<34} {:>6} {:>7} {:>8}  {}"

_HEAD = _LINE.format("program", "status", "reports", "repeated", "stdout")

#: What stands instead of other lines.
_ON_OLD = "# on Python 3.10, whose tasks cannot be uncancelled"

#: The lines of this run, by the name of the program.
SEEN: dict[str, str] = {}


def line_of(name: str, ended: Ended) -> str:
    """Return the line of a program."""
    stdout = "; ".join(ended.stdout.splitlines())
    return _LINE.format(name, ended.status, ended.reports, ended.repeated, stdout).rstrip()


def table() -> Iterator[str]:
    """Yield the lines of the table of this run."""
    yield _HEAD
    for heading, rows in GROUPS.items():
        lines = [SEEN[name] for name in rows if name in SEEN]
        yield from ["", f"# {heading}", *lines] if lines else ()


def snapshot() -> dict[str, str]:
    """Return the lines of ``table.txt`` for this Python, by the name of the program.

    Raises:
        AssertionError: The table has other headings or programs than ``GROUPS``, or in another order.
    """
    text = Path(__file__).with_name("table.txt").read_text(encoding="utf-8")
    text, _, instead = text.partition(f"\n{_ON_OLD}\n")
    head, *lines = text.splitlines()
    names = [line if line.startswith("#") else line.split()[0] for line in lines if line]
    old = [line.split()[0] for line in instead.splitlines()]

    assert _HEAD == head
    expected = [each for heading, rows in GROUPS.items() for each in (f"# {heading}", *rows)]
    assert expected == names, "the headings and programs of table.txt are not those of GROUPS"
    assert [name for name in ALL if name in old] == old, f"the lines {_ON_OLD[2:]} are out of order"

    lines += instead.splitlines() if sys.version_info < (3, 11) else []
    return {line.split()[0]: line for line in lines if line and not line.startswith("#")}
