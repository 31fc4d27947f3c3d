"""One run of pytest: tells tests what they missed, and sets the exit status.

A miss fails the test in whose time it happened, whatever became of the error; and the run ends with status 2,
in place of 0, 1 and 5. Each process of pytest-xdist runs tests and hands what it counted to the controller.

What this needs is imported when something happens: that a call was counted, that something was stopped, or
that a test is marked.
"""

from __future__ import annotations

import inspect
import os
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any

import pytest

from .. import _exit
from .._listening import LISTENERS, RUN, USED_VARIABLE
from ._environment import Environment
from ._taking_over import BEFORE, begin, command_of, ledger_if_used, name_of

if TYPE_CHECKING:
    from .._ledger import Entry
    from .._recording import Recording
    from .._used_elsewhere import UsedElsewhere
    from ._items import Items
    from ._suite import Stopped, Suite
    from ._unused import Unused

__all__ = ["Run"]

#: What a miss replaces: all is well, tests failed, there were none. Not an interrupted run, which is 2 as
#: well, and neither an internal error nor a wrong command line, whose results say nothing.
_REPLACED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)

#: Under this name a worker hands over what it counted.
_OUTPUT = "httpx_cassette"

#: Under this one, what it did not run.
_LEFT_OUT = "httpx_cassette-left-out"

_ITEMS = "httpx_cassette-items"


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
        self._environment = Environment(config)
        self._pid = os.getpid()
        self._suite: Suite | None = None
        #: What of the ledger was told to a test already, by what tells its entries apart.
        self._told: Counter[tuple[int, str, str, str]] = Counter()
        ledger = ledger_if_used()
        self._news = ledger.news() if ledger else None
        begin(config)  # Once more, for whoever loads the plugin late: a conftest file.
        self._before = config.stash[BEFORE]
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
        RUN.command = command_of(config)
        # Ids of tests are seen from the root, and arguments from where pytest was started.
        RUN.way_to_root = os.path.relpath(config.rootpath, config.invocation_params.dir)
        LISTENERS.append(self)

    # -- a listener of all sessions ----------------------------------------------------------------

    @property
    def suite(self) -> Suite:
        """What was counted."""
        if self._suite is None:
            from ._suite import Suite

            self._suite = Suite()
        return self._suite

    def counted(self, name: str) -> None:
        """Count; not what a forked child does, whose lock another thread may have held."""
        if os.getpid() == self._pid:
            self.suite.counted(name)
        elif self._is_to_write:
            self._used_elsewhere().counted(name)

    def used(self, recording: Recording, name: str) -> None:
        """Keep what is told of a recording."""
        if os.getpid() == self._pid:
            self.suite.used(recording, name)
        elif self._is_to_write:
            self._used_elsewhere().used(recording, name)

    @property
    def _is_to_write(self) -> bool:
        """Whether a forked child, which takes what it knows along, has nobody else who writes what it does.

        A worker was started with the variable, and listens for it; its children do so, too.
        """
        return self._worker is None and USED_VARIABLE in os.environ

    def _used_elsewhere(self) -> UsedElsewhere:
        from .._used_elsewhere import UsedElsewhere

        return UsedElsewhere(os.environ[USED_VARIABLE])

    def unrecorded(self, what: str) -> None:
        """Keep it for the test that runs."""
        if os.getpid() == self._pid:
            self.suite.unrecorded(what)

    # -- tests -------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """See to it that cassettes are opened, once there is a test that wants one."""
        RUN.test = item.nodeid
        wants_one = item.get_closest_marker("cassette") is not None
        wants_one = wants_one or "_open_cassette" in getattr(item, "fixturenames", ())
        if wants_one:
            self.items()

    def items(self) -> Items:
        """Return what opens cassettes; it is registered when it is first asked for."""
        found: Items | None = self.config.pluginmanager.get_plugin(_ITEMS)
        if found is None:
            from ._items import Items

            found = Items(self.config, self.suite)
            self.config.pluginmanager.register(found, _ITEMS)
        return found

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Generator[None, Any, Any]:
        """Let no miss in an async test end the event loop of the tests after it."""
        __tracebackhide__ = True
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return (yield)
        from ._coroutines import keep_stops

        return (yield from keep_stops(pyfuncitem))

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

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self) -> None:
        """Belong to no test until the next one begins."""
        RUN.test = ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        """Let no miss in a fixture end the event loop, or be lost on the next test that asks for it."""
        __tracebackhide__ = True
        from ._coroutines import keep_stops_of_fixture

        return (yield from keep_stops_of_fixture(fixturedef, request))

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
            is_told = self._suite is not None or ledger_if_used() is not None
            self._worker[_LEFT_OUT] = (self.deselected, self.not_collected, sorted(self.nodes))
            self._worker[_OUTPUT] = self.suite.as_plain() if is_told else None
            return
        if self._environment.used_elsewhere is not None:
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
        if stopped or self._suite is not None or self.wants_report:
            from ._telling import Teller

            self._has_said = True
            teller = Teller(terminalreporter.write_sep, terminalreporter.write_line)
            teller.tell(self, stopped, self._status_before)
        if self.unwritten:
            terminalreporter.write_line(self.unwritten, red=True)

    def pytest_unconfigure(self) -> None:
        """Give the exit hook back what may still come, and the environment what it was."""
        LISTENERS.remove(self)
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


def _say(text: str, **markup: bool) -> None:
    print(text, file=sys.__stderr__)


def _say_title(separator: str, title: str, **markup: bool) -> None:
    _say(title)
