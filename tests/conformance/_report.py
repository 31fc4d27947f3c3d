"""What was found, as a table for people and as data for programs. Decides nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ._trial import Fault, Outcome

__all__ = ["FileReport", "as_data", "as_text"]

#: Faults of one exchange that are printed; the first says the most.
SHOWN = 3


@dataclass
class FileReport:
    """What became of the exchanges of one file.

    Args:
        name: The file, without its suffix.
        exchanges: How many it holds.
        outcomes: What became of those that were tried.
        not_judged: Dialect -> how many of those chosen have no judge.
    """

    name: str
    exchanges: int
    outcomes: list[Outcome] = field(default_factory=list)
    not_judged: Counter[str] = field(default_factory=Counter)

    @property
    def differing(self) -> list[Outcome]:
        """The exchanges with a fault."""
        return [outcome for outcome in self.outcomes if outcome.faults]

    @property
    def refused(self) -> Counter[str]:
        """Why exchanges were rightly not stored, with how many."""
        return Counter(outcome.refused for outcome in self.outcomes if outcome.refused)

    def named(self, stored: str) -> list[str]:
        """Return the exchanges that were stored in one way."""
        return [outcome.id for outcome in self.outcomes if outcome.stored == stored]

    def total(self, name: str, index: int) -> int:
        """Return a sum over the exchanges: ``events`` or ``bytes``, received (0) or stored (1)."""
        return sum(getattr(outcome, name)[index] for outcome in self.outcomes)

    def row(self) -> dict[str, int]:
        """Return the figures of the table."""
        equal = [outcome for outcome in self.outcomes if outcome.stored and not outcome.faults]
        return {
            "exchanges": self.exchanges,
            "tried": len(self.outcomes),
            "streams": sum(outcome.is_stream for outcome in self.outcomes),
            "equal": len(equal),
            "differing": len(self.differing),
            "verbatim": len(self.named("verbatim")),
            "refused": self.refused.total(),
            "events received": self.total("events", 0),
            "events stored": self.total("events", 1),
            "bytes received": self.total("bytes", 0),
            "bytes stored": self.total("bytes", 1),
        }

    def dropped(self) -> Counter[str]:
        """Return what a recording does not keep, with how often it was received."""
        return sum((Counter(outcome.dropped) for outcome in self.outcomes), Counter())


def as_text(reports: Sequence[FileReport]) -> str:
    """Return the table, under each row what a figure hides, and last what could not be judged."""
    judged = [report for report in reports if report.outcomes]
    width = max(len(report.name) for report in judged)
    rows = [_cells(report.row()) for report in judged]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
    lines = [" " * width + "".join(f"  {name:>{size}}" for name, size in widths.items())]
    for report, row in zip(judged, rows, strict=True):
        cells = (f"  {row[name]:>{size}}" for name, size in widths.items())
        lines.append(f"{report.name:{width}}" + "".join(cells))
        lines += (f"    {note}" for note in _notes(report))
    left = [
        f"{report.name} ({count:,} {name})" for report in reports for name, count in report.not_judged.items()
    ]
    return "\n".join([*lines, f"not judged, for want of a dialect: {', '.join(left)}"] if left else lines)


def _cells(row: dict[str, int]) -> dict[str, str]:
    cells = {name: f"{number:,}" for name, number in row.items() if " " not in name}
    for what in ("events", "bytes"):
        cells[what] = f"{row[f'{what} received']:,} -> {row[f'{what} stored']:,}"
    return cells


def _notes(report: FileReport) -> Iterator[str]:
    for what, counts in (("refused", report.refused), ("received and not kept", report.dropped())):
        if counts:
            yield f"{what}: " + ", ".join(f"{name} ({count:,})" for name, count in counts.most_common())
    if verbatim := report.named("verbatim"):
        yield f"stored event by event: {', '.join(verbatim)}"
    raised = [f"{each.id} ({each.sdk_raised})" for each in report.outcomes if each.sdk_raised and each.stored]
    if raised:
        yield f"compared without the SDK, which raises on the answer as received: {', '.join(raised)}"
    for outcome in report.differing:
        for fault in outcome.faults[:SHOWN]:
            yield f"{outcome.id}: {_sentence(fault)}"
        if len(outcome.faults) > SHOWN:
            yield f"{outcome.id}: and {len(outcome.faults) - SHOWN} more"


def _sentence(fault: Fault) -> str:
    where = f" at chunk size {', '.join(fault.settings)}" if fault.settings else ""
    return f"{fault.what}{where}: {fault.detail}"


def as_data(reports: Iterable[FileReport]) -> list[dict[str, Any]]:
    """Return everything that was found, as JSON can hold it."""
    return [
        {
            "file": report.name,
            **report.row(),
            "not judged": dict(report.not_judged),
            "refused for": dict(report.refused),
            "not kept": dict(report.dropped()),
            "stored event by event": report.named("verbatim"),
            "outcomes": [asdict(outcome) for outcome in report.outcomes],
        }
        for report in reports
    ]
