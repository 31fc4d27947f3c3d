"""What a run of pytest says about its calls.

The order is that of a miss: what was asked, what exists, what to do. Each different miss stands once, with
the tests in whose time it happened.
"""

from __future__ import annotations

import datetime
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .._errors import is_stop
from .._exit import EXIT_STATUS
from .._hooks import stops_in
from ._suite import Stopped, Suite, Use

if TYPE_CHECKING:
    from ._run import Run
    from ._unused import Unused

__all__ = ["Teller", "client_hidden", "show_in_report", "unused_test"]

#: Where pytest looks whether a frame is shown.
_HIDE = "__tracebackhide__"

#: Tests that are named where something happened in many.
_TESTS = 10

#: Models that are named where the prices do not know them.
_MODELS = 3

_EXPECTED = "  if it is meant: with httpx_cassette.expected_miss(): ... takes it back"


@contextmanager
def client_hidden(info: Any) -> Iterator[None]:
    """Leave the frames of the client library out of a traceback within the block: none of them is the user's.

    Args:
        info: The ``pytest.ExceptionInfo`` of a stop.
    """
    modules = {id(entry.frame.f_globals): entry.frame.f_globals for entry in info.traceback}
    hidden = [
        each
        for each in modules.values()
        if each.get("__name__", "").partition(".")[0] in ("httpx", "httpx2") and _HIDE not in each
    ]
    for each in hidden:
        each[_HIDE] = is_stop
    try:
        yield
    finally:
        for each in hidden:
            del each[_HIDE]


def show_in_report(report: Any, stopped: list[Stopped], item: Any, error: BaseException | None) -> None:
    """Fail a phase of a test in whose time something was stopped.

    Args:
        report: The report of the phase; it is changed.
        stopped: What was stopped.
        item: The test.
        error: What came out of the phase.
    """
    text = swallowed(stopped, item, report)
    if not report.failed:
        report.outcome = "failed"
        report.longrepr = text
        vars(report).pop("wasxfail", None)
    elif not any(stops_in(error)):
        report.sections.append(("httpx_cassette", text))


def swallowed(stopped: Iterable[Stopped], item: Any, report: Any) -> str:
    """Return why a test fails although no error came out of it, or another one.

    Args:
        stopped: What was stopped in its time.
        item: The test.
        report: How the phase in which it was would have ended.
    """
    reports = "\n\n".join(f"{each.kind}: {each.report}" for each in stopped)
    lines = [f"a call was stopped, and {_lost_where(report)}", "", reports]
    if any(each.kind == "CassetteMiss" for each in stopped):
        lines.append(_EXPECTED)
        if _catches_with_raises(item):
            lines.append(
                "    (pytest.raises, which stands in this test, does not: a miss ends the run with 2)"
            )
    return "\n".join(lines)


def _lost_where(report: Any) -> str:
    if hasattr(report, "wasxfail"):
        return "xfail does not cover that: nobody knows whether the test would still fail"
    what = "the test" if report.when == "call" else f"the {report.when} of the test"
    ended = {"passed": "passed", "skipped": "was skipped"}.get(report.outcome, "failed for another reason")
    how = "" if report.outcome == "failed" else " all the same"
    return f"{what} {ended}{how}: its error was caught, or lost in a thread or task"


def _catches_with_raises(item: Any) -> bool:
    try:
        source = inspect.getsource(item.function)
    except (AttributeError, OSError, TypeError):
        return False
    return re.search(r"\braises\([^)]*\b(?:CassetteMiss|CassetteStop|BaseException)\b", source) is not None


def unused_test(test: str, path: str) -> str:
    """Return what is wrong with a test that was to use a cassette and made no call.

    Args:
        test: Its id.
        path: The file that it opened.
    """
    from .._patching import strangers

    others = [name for name in strangers() if name != "httpx_cassette"]
    reasons = [
        f"{name} stands in the place of the transport of httpx, and was asked instead" for name in others
    ]
    reasons += [
        "its client goes round httpx, as aiohttp, boto3 and sockets do: --cassette-guard shows who connects "
        "to another machine",
        "its client was given a transport of its own: a mock, or another CassetteTransport",
        "the calls were made by a process that the test started: it has no part in the cassette",
    ]
    listed = "\n".join(
        f"  {'perhaps' if not index else '     or'}      {reason}" for index, reason in enumerate(reasons)
    )
    return (
        f"no call of {test} came by {path}\n{listed}\n"
        "  if it makes none on purpose: @pytest.mark.cassette(allow_unused=True), or take the marker off"
    )


class Teller:
    """Writes the sections at the end of a run.

    Args:
        section: Begins a section: the character of the line, its title, and markup.
        line: Writes a line, with markup.
    """

    def __init__(self, section: Callable[..., object], line: Callable[..., object]) -> None:
        self._section = section
        self._line = line

    def tell(self, run: Run, stopped: list[Stopped], status_before: int | None) -> None:
        """Write everything."""
        suite = run.suite
        self.tell_lost(suite)
        self.tell_unused(run.unused)
        self.tell_stopped(stopped, None)
        if suite.totals or suite.uses or stopped:
            self._section("=", "httpx_cassette")
            for line in summary(suite, stopped):
                self._line(line)
            for worker in run.crashed:
                self._line(
                    f"worker {worker} crashed, and what it replayed and recorded is not counted", yellow=True
                )
        self._tell_status(stopped, status_before)

    def tell_unused(self, unused: Unused | None) -> None:
        """Write what is unused, where that was asked for, and what was removed of it."""
        if unused is not None:
            self._section("=", "httpx_cassette: unused recordings")
            for text, is_warning in unused.lines():
                self._line(text, **({"yellow": True} if is_warning else {}))

    def tell_stopped(self, stopped: list[Stopped], status_before: int | None) -> None:
        """Write each different stop once, with its tests."""
        if not stopped:
            return
        self._section("=", "httpx_cassette: calls that were stopped", red=True)
        for each in stopped:
            self._line(_where(each), bold=True)
            for line in f"{each.kind}: {each.report}".splitlines():
                self._line(f"  {line}")
        self._tell_status(stopped, status_before)

    def tell_lost(self, suite: Suite) -> None:
        """Write which real calls were made in vain."""
        if not suite.lost:
            return
        self._section("=", "httpx_cassette: real calls that were not recorded", yellow=True)
        for (test, what), count in sorted(suite.lost.items()):
            times = "" if count == 1 else f" ({count} times)"
            self._line(f"{test or 'outside of tests'}: {what}{times}")

    def _tell_status(self, stopped: list[Stopped], status_before: int | None) -> None:
        if stopped and status_before is not None:
            count = sum(each.count for each in stopped)
            calls = "1 call was stopped" if count == 1 else f"{count:,} calls were stopped"
            self._line(f"exit status {EXIT_STATUS} instead of {status_before}: {calls}", red=True)


def _where(stopped: Stopped) -> str:
    tests = [test or "outside of tests" for test in stopped.tests]
    more = f" and {len(tests) - _TESTS:,} more" if len(tests) > _TESTS else ""
    calls = "" if stopped.count == len(tests) == 1 else f" ({stopped.count:,} calls)"
    return f"{', '.join(tests[:_TESTS])}{more}{calls}"


# -- the summary ---------------------------------------------------------------------------------------


def summary(suite: Suite, stopped: Iterable[Stopped]) -> list[str]:
    """Return what the calls of a run did, and what the recordings saved, in one line or two.

    Args:
        suite: What was counted.
        stopped: What was stopped.
    """
    totals = suite.totals
    missed = sum(each.count for each in stopped if each.kind == "CassetteMiss")
    real = totals["live"] + totals["passed"]
    counts = [
        f"{totals['replayed']:,} replayed",
        f"{totals['recorded']:,} recorded",
        f"{missed:,} missed",
        f"{real:,} real {'call' if real == 1 else 'calls'}",
    ]
    lines = [", ".join(counts)]
    used = [use for use in suite.uses.values() if use.replayed]
    if used:
        lines.append(_saved(used))
    return lines


def _saved(used: list[Use]) -> str:
    from .._usage import Usage

    tokens = uncounted = 0
    seconds = 0.0
    for use in used:
        usage = Usage(*use.tokens)
        if usage.input_tokens is None and usage.output_tokens is None:
            uncounted += use.replayed
        tokens += ((usage.input_tokens or 0) + (usage.output_tokens or 0)) * use.replayed
        seconds += use.milliseconds / 1000 * use.replayed
    counted = _tokens(tokens, uncounted, sum(use.replayed for use in used))
    parts = [f"saved {counted}{_duration(seconds)}"]
    money = _money(used)
    if money:
        parts.append(money)
    oldest = min((use.at for use in used if use.at), default="")
    if oldest:
        parts.append(f"oldest recording used: {_age(oldest)}")
    return "; ".join(parts)


def _tokens(tokens: int, uncounted: int, answers: int) -> str:
    """Return what stands before the time: nothing, where no answer says what it took."""
    if uncounted == answers:
        return ""
    say = f" ({uncounted:,} {'answer says' if uncounted == 1 else 'answers say'} none)" if uncounted else ""
    return f"{tokens:,} {'token' if tokens == 1 else 'tokens'}{say} and "


def _money(used: list[Use]) -> str | None:
    from .._price import price_table
    from .._usage import Usage

    table = price_table()
    if table is None:
        return None
    total, unknown = Decimal(0), 0
    models: set[str] = set()
    for use in used:
        usage = Usage(*use.tokens)
        cost = table.cost(usage, use.at)
        if cost is None:
            unknown += use.replayed
            # Not of an answer that says nothing of tokens: its model may have a price.
            if usage.model and usage.input_tokens is not None:
                models.add(usage.model)
        else:
            total += cost * use.replayed
    calls = sum(use.replayed for use in used)
    named = _listed(sorted(models))
    which = f" ({named})" if named else ""
    without = f", without {unknown:,} of {calls:,} calls that it has no price for{which}" if unknown else ""
    # The answers of a small suite cost less than a cent.
    saved = f"${total:,.2f}" if total >= 1 else f"${total:.4f}"
    if unknown < calls:
        return f"{saved} by {table.name}{without}"
    return f"no price{f' for {named}' if named else ''} in {table.name}"


def _listed(models: list[str]) -> str:
    from .._excerpt import escape

    more = f" and {len(models) - _MODELS:,} more" if len(models) > _MODELS else ""
    # A server said the names.
    return escape(f"{', '.join(models[:_MODELS])}{more}")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _age(at: str) -> str:
    try:
        then = datetime.datetime.fromisoformat(at.replace("Z", "+00:00"))
        age = datetime.datetime.now(datetime.timezone.utc) - then
    except (TypeError, ValueError):  # Edited by hand, or imported.
        return at
    if age.days < 1:
        return "today"
    return f"{age.days:,} {'day' if age.days == 1 else 'days'} old"
