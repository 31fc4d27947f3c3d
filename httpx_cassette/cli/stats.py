"""``httpx-cassette stats``: what is in cassettes, what a live run of it takes, and whether it has paid.

A recording is read, and then the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from ._command import counted, say
from ._parameters import file_argument, json_option, open_cassette, read_time, tell_what_is_left_out
from ._sums import ModelSums, Sums
from ._terminal import Column, is_terminal, progress, show_json, show_lines, show_table

if TYPE_CHECKING:
    from .._opened import Recordings
    from .._price import PriceTable

__all__ = ["command"]

#: Characters of the longest bar.
_BAR = 24

_NO_PRICES = "what a live run costs is not shown; install it with: pip install 'httpx_cassette[cost]'"


@click.command(epilog="Example: httpx-cassette stats tests/cassettes/*.jsonl --runs-per-day 40")
@file_argument("files", nargs=-1, required=True)
@click.option(
    "--runs-per-day", metavar="N", type=click.FloatRange(min=0, min_open=True), default=10, show_default=True,
    help="how often all of it is replayed in a day",
)  # fmt: skip
@click.option("--until", metavar="WHEN", help="the day up to which runs are counted, instead of today")
@json_option("print the facts as one object")
def command(files: Sequence[str], runs_per_day: float, until: str | None, as_json: bool) -> int:
    """Count what is in cassettes: recordings, models, tokens, seconds, dollars.

    A live run would make each call once that is recorded and not superseded. A cassette has paid for itself
    when so many live runs would have cost as much as all that was recorded, what is superseded included.
    Costs are looked up where the extra cost is installed; of a model without a price none is guessed.
    """
    from .._price import price_table

    now = datetime.now(timezone.utc) if until is None else read_time(until)
    if now is None:
        raise click.UsageError(f"argument --until: {until!r} is no time; write 2026-11-29")
    table = price_table()
    opened = [open_cassette(path) for path in files]
    sums = Sums()
    with progress("stats", sum(recordings.size for recordings in opened)) as bar:
        for recordings in opened:
            _count(recordings, sums, table, bar.advance)
    paid = sums.paid_after(runs_per_day)
    if as_json:
        show_json(_facts(sums, table, runs_per_day, paid, now), is_indented=True)
    else:
        _show(sums, table, runs_per_day, paid, now)
    if table is None:
        say(_NO_PRICES)
    for recordings in opened:
        tell_what_is_left_out(recordings)
    return 0


def _count(recordings: Recordings, sums: Sums, table: PriceTable | None, tell: Any) -> None:
    sums.files += 1
    sums.size += recordings.size
    for exchange in recordings:
        sums.add(exchange, None if table is None else table.cost(exchange.usage, exchange.at))
        tell(exchange.size + 1)
    sums.damaged += len(recordings.damaged)


# -- showing -------------------------------------------------------------------------------------------


def _show(
    sums: Sums, table: PriceTable | None, runs_per_day: float, paid: datetime | None, now: datetime
) -> None:
    for label, text in _lines(sums, table, runs_per_day, paid, now):
        show_lines(f"{label:<12}  {text}")
    if sums.models:
        print()
        columns = _COLUMNS if is_terminal() else _COLUMNS[:-1]
        show_table(columns, (row[: len(columns)] for row in _rows(sums, table)))


def _lines(
    sums: Sums, table: PriceTable | None, runs_per_day: float, paid: datetime | None, now: datetime
) -> Iterator[tuple[str, str]]:
    total = sums.all
    yield "recordings", f"{total.recordings:,} in {counted(sums.files, 'file')} of {sums.size:,} bytes"
    yield "superseded", f"{sums.superseded:,}"
    if sums.damaged:
        yield "damaged", f"{sums.damaged:,}"
    if sums.oldest is not None and sums.newest is not None:
        days = max(0, (now - sums.oldest).days)
        yield "recorded", f"{_day(sums.oldest)} to {_day(sums.newest)}, the oldest {counted(days, 'day')} ago"
    yield "tokens", f"{total.input_tokens:,} in, {total.output_tokens:,} out"
    yield "live run", f"{total.milliseconds / 1000:,.1f} s, one call after the other"
    if table is None or not total.recordings:
        return
    known = total.recordings - total.without_price
    if not known:
        yield "", f"no price in {table.name}"
        return
    without = f", without {total.without_price:,} of {total.recordings:,} calls that it has no price for"
    yield "", f"{_dollars(total.cost)} by {table.name}{without if total.without_price else ''}"
    yield "recording", f"{_dollars(sums.recorded)}, what is superseded included"
    if paid is not None:
        has = "has paid for itself since" if paid <= now else "will have paid for itself by"
        yield "", f"{has} {_day(paid)}, at {_runs(runs_per_day)} a day"


def _runs(runs: float) -> str:
    """Return a number of runs; it may be less than one."""
    return f"{runs:g} run{'' if runs == 1 else 's'}"


def _day(time: datetime) -> str:
    return time.astimezone(timezone.utc).strftime("%Y-%m-%d")


def _dollars(cost: Decimal) -> str:
    # Small suites cost less than a cent.
    return f"${cost:,.2f}" if cost >= 1 else f"${cost:.6f}"


_COLUMNS = (
    Column("dialect", most=20, dropped=3),
    Column("model", most=32),
    Column("recordings", is_number=True),
    Column("in", is_number=True, dropped=1),
    Column("out", is_number=True, dropped=1),
    Column("seconds", is_number=True, dropped=2),
    Column("cost", is_number=True, dropped=1),
    Column(""),
)


def _rows(sums: Sums, table: PriceTable | None) -> Iterator[list[object]]:
    models = sorted(sums.models.items(), key=lambda each: (-each[1].recordings, each[0]))
    most = models[0][1].recordings
    for (dialect, name), model in models:
        cost = None if table is None or model.without_price else f"{model.cost:.6f}"
        bar = "#" * max(1, round(_BAR * model.recordings / most))
        yield [
            dialect, name, model.recordings, model.input_tokens, model.output_tokens,
            f"{model.milliseconds / 1000:.1f}", cost, bar,
        ]  # fmt: skip


# -- facts ---------------------------------------------------------------------------------------------


def _facts(
    sums: Sums, table: PriceTable | None, runs_per_day: float, paid: datetime | None, now: datetime
) -> dict[str, Any]:
    models = [
        {"dialect": dialect, "model": name, **_model_facts(model, table)}
        for (dialect, name), model in sums.models.items()
    ]
    return {
        "files": sums.files,
        "bytes": sums.size,
        **_model_facts(sums.all, table),
        "superseded": sums.superseded,
        "damaged": sums.damaged,
        "oldest": _time(sums.oldest),
        "newest": _time(sums.newest),
        "age_days": None if sums.oldest is None else max(0, (now - sums.oldest).days),
        "recording_cost": None if table is None else float(sums.recorded),
        "runs_per_day": runs_per_day,
        "paid_for_itself": _time(paid),
        "models": models,
    }


def _model_facts(model: ModelSums, table: PriceTable | None) -> dict[str, Any]:
    return {
        "recordings": model.recordings,
        "input_tokens": model.input_tokens,
        "output_tokens": model.output_tokens,
        "seconds": model.milliseconds / 1000,
        "cost": float(model.cost) if table is not None and model.without_price < model.recordings else None,
        "without_price": None if table is None else model.without_price,
    }


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
