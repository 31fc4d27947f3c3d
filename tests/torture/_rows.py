"""The rows of the table: judged from accounts, kept in a file as they come, printed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

from ._trial import Account

__all__ = ["Origin", "Row", "as_text", "judge", "keep", "read_kept", "summary"]

HELD, FAILED, VOID, SKIPPED = "held", "failed", "proves nothing", "skipped"


class Origin(NamedTuple):
    """What a row depends on: of another one it says nothing.

    Args:
        is_short: Whether it was the short form.
        seed: Of every choice.
        python: The version of Python.
        code: A digest of the package and the trials.
    """

    is_short: bool
    seed: int
    python: str
    code: str


@dataclass(frozen=True)
class Row:
    """What became of one trial.

    Args:
        name: The family and the trial, with a slash between them.
        promise: What must hold.
        verdict: ``held``, ``failed``, ``proves nothing`` or ``skipped``.
        figure: What was counted.
        notes: What was seen that must not be, or why nothing was.
        seconds: How long it took.
        origin: Of what run it is.
    """

    name: str
    promise: str
    verdict: str
    figure: str
    notes: list[str]
    seconds: float
    origin: Origin

    @property
    def is_fine(self) -> bool:
        """Whether nothing speaks against the store."""
        return self.verdict in (HELD, SKIPPED)


def judge(account: Account) -> tuple[str, list[str]]:
    """Return the verdict on an account, and what stands below the row."""
    if account.broken:
        more = account.broken - len(account.faults)
        return FAILED, [*account.faults, *([f"and {more:,} more"] if more else [])]
    return (VOID, account.voids) if account.voids else (HELD, [])


def keep(path: Path, row: Row) -> None:
    """Add a row to the file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def read_kept(path: Path) -> list[Row]:
    """Return the rows of a file; none where it does not exist."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = map(json.loads, lines)
    return [Row(**{**row, "origin": Origin(*row["origin"])}) for row in rows]


def as_text(row: Row, width: int) -> str:
    """Return a row for people."""
    notes = "".join(f"\n    {note}" for note in row.notes)
    return f"{row.name:{width}}  {row.verdict:14}  {row.seconds:6.1f} s  {row.figure}  [{row.promise}]{notes}"


def summary(rows: Iterable[Row]) -> str:
    """Return the last line of the table."""
    rows = list(rows)
    counts = {
        verdict: sum(row.verdict == verdict for row in rows) for verdict in (HELD, FAILED, VOID, SKIPPED)
    }
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    return f"{len(rows)} rows: {listed}; {sum(row.seconds for row in rows):.0f} s"
