"""What the recordings of cassettes sum up to.

Recordings are taken one by one; what is kept of them is sums, for each wire format and model.
Nothing here reads files, knows prices, or shows anything.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from ._parameters import read_time

if TYPE_CHECKING:
    from .._exchange import Exchange

__all__ = ["ModelSums", "Sums"]

#: So many milliseconds nothing takes: what is written there was edited.
_FOR_EVER = 2**53


@dataclass
class ModelSums:
    """What the recordings of one model sum up to, those left out that are superseded."""

    recordings: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: int = 0
    cost: Decimal = Decimal(0)
    without_price: int = 0

    def add(self, exchange: Exchange, cost: Decimal | None) -> None:
        """Take a recording into account."""
        usage = exchange.usage
        self.recordings += 1
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.milliseconds += exchange.ms if exchange.ms is not None and 0 <= exchange.ms < _FOR_EVER else 0
        self.cost += cost or 0
        self.without_price += cost is None


@dataclass
class Sums:
    """What all recordings sum up to."""

    files: int = 0
    size: int = 0
    superseded: int = 0
    damaged: int = 0
    recorded: Decimal = Decimal(0)
    oldest: datetime | None = None
    newest: datetime | None = None
    models: dict[tuple[str, str], ModelSums] = field(default_factory=dict)

    @property
    def all(self) -> ModelSums:
        """Those of all models."""
        total = ModelSums()
        for model in self.models.values():
            for name in vars(total):
                setattr(total, name, getattr(total, name) + getattr(model, name))
        return total

    def add(self, exchange: Exchange, cost: Decimal | None) -> None:
        """Take a recording into account."""
        self.recorded += cost or 0
        at = read_time(exchange.at)
        if at is not None:
            self.oldest = min(self.oldest or at, at)
            self.newest = max(self.newest or at, at)
        if exchange.superseded:
            self.superseded += 1
        else:
            name = exchange.dialect, exchange.model
            self.models.setdefault(name, ModelSums()).add(exchange, cost)

    def paid_after(self, runs_per_day: float) -> datetime | None:
        """Return when as many live runs were saved as all that was recorded cost, ``None`` for never."""
        run = self.all.cost
        if not run or self.oldest is None:
            return None
        try:
            return self.oldest + timedelta(days=math.ceil(self.recorded / run) / runs_per_day)
        except OverflowError:  # So seldom that it does not matter.
            return None
