"""What a trial is, and the account of what it saw. Nothing here knows about stores."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Account", "Setting", "Skipped", "Trial"]

#: Faults that are kept in full; the first says the most.
KEPT = 5


class Skipped(Exception):
    """This machine cannot run the trial; the message says why."""


class Setting(NamedTuple):
    """What a trial is given.

    Args:
        is_short: Whether to run the form for every change.
        folder: An empty folder of its own.
        random: Seeded for this trial.
    """

    is_short: bool
    folder: Path
    random: random.Random

    def of(self, short: int, full: int) -> int:
        """Return how often to try something."""
        return short if self.is_short else full


@dataclass
class Account:
    """What a trial saw.

    Attributes:
        counts: How often what was seen.
        faults: The promises that were broken, as sentences; the first few of them.
        broken: How many there were.
        voids: Why the trial proves nothing.
    """

    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    broken: int = 0
    voids: list[str] = field(default_factory=list)

    def see(self, what: str, times: int = 1) -> None:
        """Count something."""
        self.counts[what] += times

    def fault(self, sentence: str) -> None:
        """Note that a promise was broken."""
        self.broken += 1
        if len(self.faults) < KEPT:
            self.faults.append(sentence)

    def expect(self, holds: bool, sentence: str) -> None:
        """Note a fault unless something holds."""
        if not holds:
            self.fault(sentence)

    def need(self, what: str, least: float) -> None:
        """Note that the trial proves nothing unless something was seen often enough."""
        if self.counts[what] < least:
            self.voids.append(f"{what}: {self.counts[what]:,}, and at least {least:,.0f} are needed")

    def control(self, run: Callable[[Account], object]) -> None:
        """Run the same trial on a store that keeps no promise: a trial that does not notice proves nothing.

        Args:
            run: The trial on the careless store, with the account that it is to use.
        """
        other = Account()
        run(other)
        self.see("faults of a careless store seen", other.broken)
        self.need("faults of a careless store seen", 1)

    def as_data(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
        return {**vars(self), "counts": dict(self.counts)}

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> Account:
        """Return the account that ``as_data`` made data of."""
        return cls(**{**data, "counts": Counter(data["counts"])})

    def add(self, other: Account) -> None:
        """Take over what a part of the trial saw, such as one in another process."""
        self.counts.update(other.counts)
        self.broken += other.broken
        self.faults = [*self.faults, *other.faults][:KEPT]
        self.voids += other.voids


class Trial(NamedTuple):
    """One row of the table.

    Args:
        name: What is done to the store.
        promise: What must hold, for the table.
        run: Does it; raises :class:`Skipped` where it cannot.
    """

    name: str
    promise: str
    run: Callable[[Setting, Account], None]
