"""One run of pytest: tells tests what they missed, and sets the exit status.

A miss fails the test in whose time it happened, whatever became of the error; and the run ends with status 2,
in place of 0, 1 and 5. Each process of pytest-xdist runs tests and hands what it counted to the controller.

What this needs is imported when something happens: that a call was counted, that something was stopped, or
that a test is marked.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from .. import _exit
from ._waking import BEFORE, ledger_if_used

if TYPE_CHECKING:
    from .._ledger import Entry
    from ._environment import Environment
    from ._hearing import Hearing
    from ._items import Items
    from ._suite import Stopped, Suite
    from ._unused import Unused

__all__ = ["Run", "ends_with_its_own_status", "name_of", "recording_command"]

#: What a miss replaces: all is well, tests failed, there were none. Not an interrupted run, which is 2 as
#: well, and neither an internal error nor a wrong command line, whose results say nothing.
_REPLACED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)

#: An internal error and a wrong command line, whose statuses stay what they are.
_KEPT = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)

#: Under this name a worker hands over what it counted.
_OUTPUT = "httpx_cassette"

#: Under this one, what it did not run.
_LEFT_OUT = "httpx_cassette-left-out"

_ITEMS = "httpx_cassette-items"


class Run:
    """The hooks of a run.

    Args:
        config: pytest's.
        hearing: What counts for it.
        environment: What it sets for all of its processes, where that is anything.
    """

    def __init__(self, config: pytest.Config, hearing: Hearing, environment: Environment | None) -> None:
        self.config = config
        self._hearing = hearing
        self._environment = environment
        self._worker: dict[str, Any] | None = getattr(config, "workeroutput", None)
        #: What of the ledger was told to a test already, by what tells its entries apart.
        self._told: Counter[tuple[int, str, str, str]] = Counter()
        # A run that was woken by a miss has told nobody of it.
        ledger = ledger_if_used() if environment is not None else None
        self._news = ledger.news() if ledger else None
        self._before = config.stash[BEFORE]
        _command_of(config)  # For workers, which are handed it.
        #: How the run ended, before a miss was looked at.
        self.status = 0
        self._status_before: int | None = None
        self.was_stopped = ""
        self.unwritten = ""
        #: When it began, as recordings say it.
        self.began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._has_said = False
        self.outcomes: dict[str, str] = {}
        #: The tests that were torn down.
        self.ended: set[str] = set()
        self.deselected = 0
        self.collected = 0
        #: Modules that were not collected, and why: skipped, or failed.
        self.not_collected: dict[str, str] = {}
        self.crashed: list[str] = []
        self._found: list[pytest.Item] = []
        #: Everything that was collected, before anybody could leave something out; where it is asked for.
        self.nodes: set[str] = set()
        #: What is unused, where it was asked for, once the tests are over.
        self.unused: Unused | None = None

    @property
    def suite(self) -> Suite:
        """What was counted."""
        return self._hearing.suite

    # -- tests -------------------------------------------------------------------------------------

    def items(self) -> Items:
        """Return what opens cassettes; it is registered when it is first asked for."""
        found: Items | None = self.config.pluginmanager.get_plugin(_ITEMS)
        if found is None:
            from ._items import Items

            found = Items(self.config, self.suite)
            self.config.pluginmanager.register(found, _ITEMS)
        return found

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fail the test in whose time something was stopped, whatever became of the error."""
        errors = sys.modules.get("httpx_cassette._errors")
        if call.excinfo is not None and errors and isinstance(call.excinfo.value, errors.CassetteStop):
            from ._telling import client_hidden

            with client_hidden(call.excinfo):
                report = yield
        else:
            report = yield
        stopped = self._new_stops(item.nodeid)
        if stopped:
            from ._telling import show_in_report

            show_in_report(report, stopped, item, call.excinfo.value if call.excinfo is not None else None)
        return report

    def _new_stops(self, test: str) -> list[Stopped]:
        """Return what was stopped in a test since this was last asked."""
        ledger = ledger_if_used()
        news = ledger.news() if ledger else None
        if ledger is None or news == self._news:
            return []
        from ._suite import merge_entries

        self._news = news
        counts: Counter[tuple[int, str, str, str]] = Counter()
        found: dict[tuple[int, str, str, str], Entry] = {}
        for entry in ledger.all_entries():
            if entry.test == test:
                counts[name_of(entry)] += entry.count
                found[name_of(entry)] = entry
        new = [entry for name, entry in found.items() if counts[name] > self._told[name]]
        self._told.update(counts - self._told)
        return merge_entries(new)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep how each test ended: its worst phase."""
        if report.when == "teardown":
            self.ended.add(report.nodeid)
        order = ("passed", "skipped", "failed")
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        known = self.outcomes.get(report.nodeid, "passed")
        # pytest-rerunfailures has a word of its own for a try that is followed by another, which counts.
        is_last_try = outcome in order
        self.outcomes[report.nodeid] = max(known, outcome, key=order.index) if is_last_try else "passed"

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Keep what there is, before a conftest file leaves something out without a word."""
        if self.wants_report:
            self._found.append(item)

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """Count what does not run."""
        self.deselected += len(list(items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not be collected."""
        if not report.passed:
            self.not_collected[report.nodeid] = report.outcome

    # -- the end of the run ------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Add what a worker of pytest-xdist counted; one that crashed hands nothing over."""
        output = getattr(node, "workeroutput", None)
        if output is None:
            self.crashed.append(str(node.gateway.id))
            return
        if output.get(_OUTPUT) is not None:
            self.suite.merge(output[_OUTPUT])
        deselected, not_collected, nodes = output.get(_LEFT_OUT, (0, {}, ()))
        # Each worker collects everything.
        self.deselected = max(self.deselected, deselected)
        self.not_collected.update(not_collected)
        self.nodes.update(nodes)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Make the status 2 if anything was stopped; a worker hands over what it counted."""
        self.status = int(session.exitstatus)
        self.collected = session.testscollected
        # By their names of now: hooks may give them others.
        self.nodes.update(item.nodeid for item in self._found)
        self._found.clear()
        self.was_stopped = str(session.shouldstop or session.shouldfail or "")
        if self._worker is not None:
            is_told = self._hearing.has_heard or ledger_if_used() is not None
            self._worker[_LEFT_OUT] = (self.deselected, self.not_collected, sorted(self.nodes))
            self._worker[_OUTPUT] = self.suite.as_plain() if is_told else None
            return
        if self._environment is not None and self._environment.used_elsewhere is not None:
            from .._used_elsewhere import read_used_elsewhere

            self.suite.add_elsewhere(read_used_elsewhere(self._environment.used_elsewhere))
        if self.stopped() and session.exitstatus in _REPLACED:
            self._status_before = int(session.exitstatus)
            session.exitstatus = _exit.EXIT_STATUS
        self._write_used(session)
        if self.wants_report:
            from ._unused import find_unused

            self.unused = find_unused(self)

    def _write_used(self, session: pytest.Session) -> None:
        name = self.config.option.cassette_used
        if name is None:
            return
        from ._suite import write_used

        try:
            write_used(self.suite, self.config.invocation_params.dir / name)
        except OSError as error:
            self.unwritten = f"--cassette-used={name} could not be written: {error.strerror}"
            if session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

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
        ledger = ledger_if_used()
        if ledger is None:
            return []
        # Another run may share the file: both may be started by one that owns it.
        is_owner, pid = ledger.is_owner(), os.getpid()
        return self.suite.stopped(
            entry
            for entry in ledger.all_entries()
            if name_of(entry) not in self._before
            and (is_owner or entry.pid == pid or entry.test in self.outcomes)
        )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was missed, what else was not recorded, and what the recordings saved.

        Not in a worker, which has a terminal as well: it knows a part of the run, and would remove what the
        other tests use.
        """
        if self._worker is not None:
            return
        stopped = self.stopped()
        if stopped or self._hearing.has_heard or self.wants_report:
            from ._telling import Teller

            self._has_said = True
            teller = Teller(terminalreporter.write_sep, terminalreporter.write_line)
            teller.tell(self, stopped, self._status_before)
        if self.unwritten:
            terminalreporter.write_line(self.unwritten, red=True)

    def end(self) -> None:
        """Give the environment back what it was, and tell what nobody was told."""
        if self._environment is not None:
            self._environment.put_back()
        if self._worker is None and not self._has_said:
            self._say_all_the_same()

    def _say_all_the_same(self) -> None:
        """Print the reports where pytest was told to print no summary."""
        stopped = self.stopped()
        if stopped or self.unused is not None:
            from ._telling import Teller

            capture: Any = self.config.pluginmanager.get_plugin("capturemanager")
            if capture is not None:
                capture.suspend_global_capture(in_=False)
            teller = Teller(_say_title, _say)
            teller.tell_unused(self.unused)
            teller.tell_stopped(stopped, self._status_before)


def name_of(entry: Entry) -> tuple[int, str, str, str]:
    """Return what tells an entry from others."""
    return entry.pid, entry.kind, entry.key, entry.test


def ends_with_its_own_status(run: Run | None) -> bool:
    """Tell whether a run ends with a status that a miss does not replace: one that says nothing of tests.

    Args:
        run: The run; ``None`` where it did not come to one.
    """
    if run is not None and run.status in _KEPT:
        return True
    # Of a command line that is refused before there is a run, pytest says nothing but this.
    error = sys.exc_info()[1]
    return isinstance(error, pytest.UsageError) or type(error).__name__ == "ConftestImportFailure"


def recording_command(config: pytest.Config, test: str) -> tuple[str, ...]:
    """Return the words that start such a run again, and have it record a test."""
    # Ids of tests are seen from the root, and arguments from where pytest was started.
    way = os.path.relpath(config.rootpath, config.invocation_params.dir)
    return (*_command_of(config), "--cassette-mode=record", test if way == "." else os.path.join(way, test))


def _command_of(config: pytest.Config) -> tuple[str, ...]:
    # Workers of pytest-xdist are handed the options, and know no command line.
    known: tuple[str, ...] | None = getattr(config.option, "cassette_command", None)
    if known is None:
        started = os.path.basename(sys.argv[0])
        words = ["python", "-m", "pytest"] if started in ("__main__.py", "-m", "-c") else ["pytest"]
        if config.option.cassette_dir is not None:
            words.append(f"--cassette-dir={config.option.cassette_dir}")
        known = config.option.cassette_command = tuple(words)
    return known


def _say(text: str, **markup: bool) -> None:
    print(text, file=sys.__stderr__)


def _say_title(separator: str, title: str, **markup: bool) -> None:
    _say(title)
