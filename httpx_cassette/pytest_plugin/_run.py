"""One run of pytest: tells tests what they missed, and sets the exit status.

A miss fails the test in whose time it happened, whatever became of the error; and the run ends with status 2,
in place of 0, 1 and 5. Each process of pytest-xdist runs tests and hands what it counted to the controller.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any

import pytest

from .. import _ledger
from .._exit import EXIT_STATUS, stops_in
from .._ledger import Entry
from .._listening import LISTENERS
from ._suite import Stopped, Suite, merge_entries, write_used

__all__ = ["Run"]

_MODE_VARIABLE = "HTTPX_CASSETTE_MODE"

#: What a miss replaces: all is well, tests failed, there were none. Not an interrupted run, which is 2 as
#: well, and neither an internal error nor a wrong command line, whose results say nothing.
_REPLACED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)

_KEPT = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)

#: Under this name a worker hands over what it counted.
_OUTPUT = "httpx_cassette"


class Run:
    """The hooks of a run.

    Args:
        config: pytest's.

    Raises:
        UsageError: The command line contradicts the environment.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._worker: dict[str, Any] | None = getattr(config, "workeroutput", None)
        self._mode_before = os.environ.get(_MODE_VARIABLE)
        self._set_mode(config.option.cassette_mode)
        self.suite = Suite()
        #: What of the ledger was told to a test already, by what tells its entries apart.
        self._told: Counter[tuple[int, str, str, str]] = Counter()
        self._news = _ledger.news()
        self._before = {_name(entry) for entry in _ledger.all_entries()}
        self._is_nested = not _ledger.take_over()
        self._status_before: int | None = None
        #: How the run ended, before a miss was looked at.
        self.status = 0
        self.was_stopped = ""
        self._check_used_file(config.option.cassette_used)
        self._has_said = False
        self.outcomes: dict[str, str] = {}
        self.deselected = 0
        self.crashed: list[str] = []
        LISTENERS.append(self.suite)

    def _check_used_file(self, name: str | None) -> None:
        if name is not None and not (self.config.invocation_params.dir / name).parent.is_dir():
            raise pytest.UsageError(f"--cassette-used={name}: there is no such folder")

    def _set_mode(self, mode: str | None) -> None:
        if mode is None:
            return
        if self._mode_before == "replay" and mode != "replay":
            raise pytest.UsageError(
                f"--cassette-mode={mode} under {_MODE_VARIABLE}=replay, which wins; unset the variable"
            )
        os.environ[_MODE_VARIABLE] = mode

    # -- what a test missed ------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail the test in whose time something was stopped, whatever became of the error."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        stopped = self._new_stops(item.nodeid)
        if stopped:
            from ._telling import swallowed

            text = swallowed(stopped, item, report.outcome)
            if not report.failed:
                report.outcome = "failed"
                report.longrepr = text
                vars(report).pop("wasxfail", None)
            elif not any(stops_in(error)):
                report.sections.append(("httpx_cassette", text))
        return report

    def _new_stops(self, test: str) -> list[Stopped]:
        """Return what was stopped in a test since this was last asked."""
        news = _ledger.news()
        if news == self._news:
            return []
        self._news = news
        counts: Counter[tuple[int, str, str, str]] = Counter()
        found: dict[tuple[int, str, str, str], Entry] = {}
        for entry in _ledger.all_entries():
            if entry.test == test:
                counts[_name(entry)] += entry.count
                found[_name(entry)] = entry
        new = [entry for name, entry in found.items() if counts[name] > self._told[name]]
        self._told.update(counts - self._told)
        return merge_entries(new, lambda entry: True)

    # -- the end of the run ------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Add what a worker of pytest-xdist counted; one that crashed hands nothing over."""
        plain = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if plain is None:
            self.crashed.append(str(node.gateway.id))
        else:
            self.suite.merge(plain)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep how each test ended: its worst phase."""
        order = ("passed", "skipped", "failed")
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        known = self.outcomes.get(report.nodeid, "passed")
        self.outcomes[report.nodeid] = max(known, outcome, key=order.index)

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Count what does not run."""
        self.deselected += len(list(items))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the status 2 if anything was stopped; a worker hands over what it counted."""
        self.status = int(session.exitstatus)
        self.was_stopped = str(session.shouldstop or session.shouldfail or "")
        if self._worker is not None:
            self._worker[_OUTPUT] = self.suite.as_plain()
            return
        if self.config.option.cassette_used is not None:
            write_used(self.suite, self.config.invocation_params.dir / self.config.option.cassette_used)
        if self.stopped() and session.exitstatus in _REPLACED:
            self._status_before = int(session.exitstatus)
            session.exitstatus = EXIT_STATUS

    @property
    def wants_report(self) -> bool:
        """Whether unused recordings are to be listed."""
        option = self.config.option
        return bool(option.cassette_report or option.cassette_prune)

    @property
    def prunes(self) -> bool:
        """Whether they are to be removed."""
        return bool(self.config.option.cassette_prune)

    def stopped(self) -> list[Stopped]:
        """What was stopped in this run, by any of its processes."""
        return merge_entries(_ledger.all_entries(), self._is_ours)

    def _is_ours(self, entry: Entry) -> bool:
        if _name(entry) in self._before:
            return False
        # Another run may share the file: both may be started by one that owns it.
        return entry.pid == os.getpid() or entry.test in self.outcomes or _ledger.is_owner()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was missed, what else was not recorded, and what the recordings saved.

        Not in a worker, which has a terminal as well: it knows a part of the run, and would remove what the
        other tests use.
        """
        if self._worker is not None:
            return
        stopped = self.stopped()
        if not (stopped or self.suite.totals or self.suite.lost or self.wants_report):
            return
        from ._telling import Teller

        self._has_said = True
        Teller(terminalreporter.write_sep, terminalreporter.write_line).tell(
            self, stopped, self._status_before
        )

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Give the exit hook back what may still come, and the environment what it was."""
        LISTENERS.remove(self.suite)
        if self.config.option.cassette_mode is not None:
            if self._mode_before is None:
                os.environ.pop(_MODE_VARIABLE, None)
            else:
                os.environ[_MODE_VARIABLE] = self._mode_before
        if self._worker is None and not self._has_said:
            self._say_all_the_same()
        # What a worker missed is told by the controller; and 3 and 4 stay what they are.
        if self._worker is None and not self._is_nested and self.status not in _KEPT:
            _ledger.settle()
            _ledger.hand_back()

    def _say_all_the_same(self) -> None:
        """Print the reports where pytest was told to print no summary."""
        stopped = self.stopped()
        if stopped:
            from ._telling import Teller

            capture = self.config.pluginmanager.get_plugin("capturemanager")
            if capture is not None:
                capture.suspend_global_capture(in_=False)
            Teller(_say_title, _say).tell_stopped(stopped, self._status_before)


def _name(entry: Entry) -> tuple[int, str, str, str]:
    return entry.pid, entry.kind, entry.key, entry.test


def _say(text: str, **markup: bool) -> None:
    print(text, file=sys.__stderr__)


def _say_title(separator: str, title: str, **markup: bool) -> None:
    _say(title)
