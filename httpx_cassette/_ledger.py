"""The calls that were stopped, process-wide, whatever became of the errors.

An SDK, a thread, a pool or an ``except`` may lose the error that stops a call.
So each stop is entered here just before it is raised, and its report printed:

- once per kind and key; further ones are only counted, for each test of pytest. The number of reports and
  their size are limited;
- the first entry, not the import, installs the hooks that turn the ledger into exit status 2;
- every process appends its entries to the file that ``HTTPX_CASSETTE_LEDGER`` names. The outermost process
  makes the name up, reads the file at its end and deletes it. Its own entries are for the case that it
  replaces itself by another program (``os.execv``): that one has the same id and the same environment;
- inside ``expected_miss()`` a miss is neither entered nor printed.

Nothing here raises into a call, and nothing here knows how a miss is found or what a report says.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from . import _exit, _hooks
from . import _ledger_file as ledger_file
from ._errors import CassetteMiss, CassetteStop
from ._exit import LEDGER_VARIABLE
from ._expected_miss import ExpectedMiss, claim, started_in
from ._ledger_file import Entry, read_entries
from ._process import RUN

__all__ = [
    "LEDGER_VARIABLE",
    "MISSES_VARIABLE",
    "Entry",
    "ExpectedMiss",
    "all_entries",
    "arm",
    "child_entries",
    "clear",
    "enter",
    "entries",
    "expected_miss",
    "hand_back",
    "is_owner",
    "news",
    "read_entries",
    "recording_command",
    "running_test",
    "settle",
    "take_over",
]

#: Names a file to which every process appends its entries as JSON lines.
MISSES_VARIABLE = "HTTPX_CASSETTE_MISSES"

#: Where pytest says which test is running, and in which of its phases.
TEST_VARIABLE = "PYTEST_CURRENT_TEST"

#: A run that misses more often than this is not going to be repaired report by report. Those that count for
#: the exit status have a limit of their own: no number of others may keep one from the parent process.
ENTRY_LIMIT = 1_000

#: Characters of a report that are kept and printed: several screens.
REPORT_LIMIT = 65_536

#: Reports that are kept to be written at the end; whoever needs more lets them reach stderr at once.
UNSEEN_LIMIT = 100

#: Set in the ``__dict__`` of a stop: the process and the name that it was entered with. It travels with a
#: pickled one.
_ENTERED = "_entered"

#: The kind and the key of a stop: one call may first miss, and then be answered but not stored.
_Report: TypeAlias = tuple[str, str]

_POOL_NOTE = (
    "\n  note         multiprocessing.{pool} waits for ever for a task that is stopped:"
    " use concurrent.futures.{instead}Executor, which hands the error on"
)


class _Ledger:
    """Everything that this process knows; a forked child begins with an empty one."""

    def __init__(self) -> None:
        self.file: str | None = None
        self.is_armed = False
        self.is_owner = False
        self.are_hooks_installed = False
        self.reader: ledger_file.Reader | None = None
        self.reset()

    def reset(self) -> None:
        self.lock = threading.RLock()  # re-entrant: a finaliser may make a call in the middle of an entry
        #: By test.
        self.entries: dict[_Report, dict[str, Entry]] = {}
        #: Those that count for the exit status, and the tests that they stand in the file with.
        self.binding: dict[_Report, set[str]] = {}
        self.printed: set[_Report] = set()
        self.refused: set[bool] = set()
        #: Counts every change, for whoever waits for one.
        self.changes = 0

    def arm(self) -> None:
        self.file = _exit.arm()
        self.is_owner = self.file is not None and _exit.is_named_for(self.file, os.getpid())

    def bind(self) -> None:
        """Make this process end with status 2."""
        _exit.guard().has_missed = True
        arm()
        if not self.are_hooks_installed:
            self.are_hooks_installed = True
            _hooks.install_hooks()

    def enter(self, stop: CassetteStop, key: str, hooks: bool) -> None:
        name: _Report = (type(stop).__name__, key)
        others = len(self.entries) - len(self.binding)
        is_short = name not in self.entries and (len(self.binding) if hooks else others) >= ENTRY_LIMIT
        test = running_test()
        # A test that missed is told of it, however many there were: without the report, which nobody reads.
        if is_short and not (hooks and test):
            self.refuse(hooks)
            return
        self.changes += 1
        entry = self.count(stop, name, test, hooks, is_short)
        stop.__dict__[_ENTERED] = (os.getpid(), name, test)
        if name in self.printed:
            stop.__dict__[_hooks.REPORTED] = True
        if hooks and test not in self.binding.setdefault(name, set()):
            self.binding[name].add(test)
            _append(self.file, entry)

    def count(self, stop: CassetteStop, name: _Report, test: str, hooks: bool, is_short: bool) -> Entry:
        """Return the entry of a stop; with the first of all, its report is printed."""
        tests = self.entries.setdefault(name, {})
        if test in tests:
            tests[test] = replace(tests[test], count=tests[test].count + 1)
            return tests[test]
        is_first = not tests
        # Of each test its own: a report says how to record what this one misses.
        entry = tests[test] = _entry(stop, name[1], test)
        if is_short:
            entry = tests[test] = replace(entry, report=entry.report.partition("\n")[0], facts={})
        elif is_first:
            self.say(name, tests[test].report, hooks)
        _append(os.environ.get(MISSES_VARIABLE), tests[test])
        return tests[test]

    def say(self, name: _Report, report: str, hooks: bool) -> None:
        """Print a report, unless the one who took over shows it with the test that it belongs to."""
        is_shown = _is_taken_over() and bool(running_test()) and not _is_stderr_our_own()
        if is_shown:
            return
        report += _pool_note()
        if _print(report):
            self.printed.add(name)
        if hooks and not _is_stderr_our_own():
            self.keep(name, report)

    def refuse(self, hooks: bool) -> None:
        if hooks not in self.refused:
            self.refused.add(hooks)
            which = "" if hooks else " with on_miss=None"
            _print(
                f"httpx_cassette: {ENTRY_LIMIT:,} different calls were stopped{which};"
                " further ones are not reported"
            )

    def forget(self) -> None:
        """Take everything back that counts."""
        if self.binding:
            names = [(name, test) for name, tests in self.binding.items() for test in tests]
            _take_back(self.file, [self.entries[name][test] for name, test in names])

    def keep(self, name: _Report, report: str) -> None:
        """Have a report written at the end, to the stderr of the process."""
        unseen = _exit.guard().unseen
        if len(unseen) < UNSEEN_LIMIT:
            unseen[name] = report
        else:
            unseen["", ""] = "further reports are not repeated"

    def read_on(self) -> tuple[Entry, ...]:
        """The entries of the file; what was read before is not read again."""
        if self.file is None:
            return ()
        if self.reader is None or self.reader.path != self.file:
            self.reader = ledger_file.Reader(self.file)
        with suppress(OSError):
            return self.reader.read()
        return ()

    def mark(self) -> int:
        return ledger_file.size(self.file) if self.file else 0

    def withdraw(self, miss: CassetteMiss, mark: int) -> None:
        pid, name, test = miss.__dict__.pop(_ENTERED, (0, ("", ""), ""))
        with self.lock:
            self.changes += 1
            if pid != os.getpid():
                self.withdraw_of_child((pid, *name, test), mark)
            elif test in self.entries.get(name, ()):
                self.uncount(name, test)

    def withdraw_of_child(self, head: tuple[int, str, str, str], mark: int) -> None:
        """Take back what a miss that came out of a child has left in the file."""
        found = _read(self.file, mark)
        self.take_back([each for each in found if (each.pid, each.kind, each.key, each.test) == head])

    def uncount(self, name: _Report, test: str) -> None:
        """Take one count of an entry back; the last one takes the entry with it."""
        tests, is_binding = self.entries[name], test in self.binding.get(name, ())
        entry = tests[test]
        if entry.count > 1:
            tests[test] = replace(entry, count=entry.count - 1)
            return
        del tests[test]
        if not tests:
            del self.entries[name]
            self.printed.discard(name)
            if found := _exit.existing_guard():
                found.unseen.pop(name, None)
        if not is_binding:
            _take_back(os.environ.get(MISSES_VARIABLE), [entry])
            return
        self.binding[name].remove(test)
        if not self.binding[name]:
            del self.binding[name]
        _exit.guard().has_missed = bool(self.binding) or True in self.refused
        self.take_back([entry])

    def withdraw_children(self, mark: int, is_expected: Callable[[Entry], bool]) -> list[Entry]:
        found = _read(self.file, mark)
        missed = [each for each in found if each.kind == "CassetteMiss" and is_expected(each)]
        self.take_back(missed)
        return missed

    def take_back(self, entries: list[Entry]) -> None:
        """Take back what stands in the files."""
        if entries:
            for path in (self.file, os.environ.get(MISSES_VARIABLE)):
                _take_back(path, entries)


_ledger = _Ledger()


def enter(stop: CassetteStop, *, key: str, hooks: bool = True) -> None:
    """Enter ``stop`` just before it is raised, and print its report; never raises.

    Args:
        stop: The error that is about to be raised.
        key: What makes two stops of one kind the same one: its fingerprint, where there is one.
        hooks: Whether the stop turns the exit status into 2.
    """
    with suppress(Exception):
        if claim(stop):
            return
    if hooks:
        # First of all: whatever fails below, the exit status must be right.
        with suppress(Exception):
            _ledger.bind()
    with suppress(Exception), _ledger.lock:
        _ledger.enter(stop, key, hooks)


def entries() -> tuple[Entry, ...]:
    """The stops of this process, in the order of their first entry; each once for every test."""
    with _ledger.lock:
        return tuple(entry for tests in _ledger.entries.values() for entry in tests.values())


def child_entries() -> tuple[Entry, ...]:
    """The stops that child processes have left so far; a child itself sees none."""
    found = _read(_ledger.file) if _ledger.is_owner else ()
    return tuple(entry for entry in found if entry.pid != os.getpid())


def all_entries() -> tuple[Entry, ...]:
    """The stops that count for the exit status, of this process and of all others that share its file.

    For whoever takes over from the exit guard, and tells by the tests which of them are its own.
    """
    with _ledger.lock:
        own = [
            entry
            for name, tests in _ledger.entries.items()
            for test, entry in tests.items()
            if test in _ledger.binding.get(name, ())
        ]
        others = _ledger.read_on()
    return (*own, *(entry for entry in others if entry.pid != os.getpid()))


def news() -> tuple[int, int]:
    """What differs from what it was before where ``all_entries`` may give something else. Cheap."""
    return _ledger.changes, _ledger.mark()


def arm() -> None:
    """Have child processes that are started from now on report to this one, or to its own ancestor.

    Called for every transport that is made, and therefore cheap from the second time on.
    """
    # The second half: a test may have put the environment back to what it was before.
    if _ledger.is_armed and LEDGER_VARIABLE in os.environ:
        return
    with suppress(OSError), _ledger.lock:  # no temporary folder: children report to nobody
        _ledger.arm()
    _ledger.is_armed = True


def take_over() -> bool:
    """Make the exit guard stand down: the caller reads the ledger and sets the exit status.

    The caller shows the reports of tests, too: they are not printed meanwhile where pytest captures them.

    Returns:
        ``False`` where somebody else had taken over, who is to hand back.
    """
    guard = _exit.guard()
    was_free = not guard.stands_down
    guard.stands_down = True
    return was_free


def hand_back() -> None:
    """Undo ``take_over``, for a plugin of pytest whose run ends before the process does."""
    _exit.guard().stands_down = False


def settle(*, is_forgiven: bool = False) -> None:
    """Have the exit guard not tell once more what the caller told; what comes later is told anew.

    Args:
        is_forgiven: Whether the status is the caller's affair too. Otherwise it stays 2.
    """
    with _ledger.lock:
        guard = _exit.guard()
        told = [*child_entries(), *(entry for entry in all_entries() if entry.pid == os.getpid())]
        if _ledger.is_owner and told:
            _take_back(_ledger.file, told)
        guard.has_missed = bool(guard.has_missed or told) and not is_forgiven
        guard.unseen.clear()
        _ledger.reset()


def is_owner() -> bool:
    """Whether the file of child processes is this one's, and not shared with whoever started it."""
    return _ledger.is_owner


def recording_command() -> tuple[str, ...]:
    """The command that records what the running test misses; empty where no plugin knows one."""
    test = running_test() if _is_taken_over() else ""
    if not test:
        return ()
    return RUN.recording(test) if RUN.recording else ("pytest", "--cassette-mode=record", test)


def _is_taken_over() -> bool:
    found = _exit.existing_guard()
    return found is not None and found.stands_down


def running_test() -> str:
    """The id of the test of pytest that runs in this process, or that started it; empty outside of tests."""
    # What pytest says is inherited by child processes; a test may have cleared the environment.
    return os.environ.get(TEST_VARIABLE, "").rpartition(" (")[0] or RUN.test


def clear() -> None:
    """Forget the entries of this process, those in the file too."""
    with _ledger.lock:
        _ledger.forget()
    _begin_anew()


def expected_miss() -> ExpectedMiss:
    """A block in which a call is expected to miss.

    The miss is not printed, does not count for the exit status, and does not leave the block; a miss that
    code in the block swallowed counts as well.
    Another error that the block raises is passed on, unless it was raised ``from`` the miss or is a group
    of nothing else.

    Expected is what the code in the block calls, and the tasks, threads and processes that are started in it;
    ``asyncio.to_thread`` and anyio take the context along, so that their threads may be older.
    What runs beside the block is not: a task or a thread that was started before, a ``ThreadPoolExecutor`` or
    a process pool that had its workers before, the children of a fork server that was there before.
    They miss as loudly as ever; only if the error comes out of them and is raised in the block is it taken
    back, after its report was printed.
    What was missed before the block is not taken back by it at all.

    Raises:
        AssertionError: No call missed in the block.
    """
    return ExpectedMiss(_ledger)


def _entry(stop: CassetteStop, key: str, test: str) -> Entry:
    report = str(stop)
    if len(report) > REPORT_LIMIT:
        report = f"{report[:REPORT_LIMIT]}\n  ... cut here: the report has {len(report):,} characters"
    return Entry(
        key=key,
        kind=type(stop).__name__,
        report=report,
        facts=ledger_file.plain_facts(stop),
        pid=os.getpid(),
        started_in=started_in(),
        thread=threading.current_thread().name,
        test=test,
    )


def _pool_note() -> str:
    """A line for the one place where a stop cannot be seen: a pool whose worker dies of it."""
    # Asked of what is loaded: importing multiprocessing here would register its exit handlers.
    process = sys.modules.get("multiprocessing.process")
    if process and "PoolWorker" in process.current_process().name:
        return _POOL_NOTE.format(pool="Pool", instead="ProcessPool")
    if type(threading.current_thread()).__module__ == "multiprocessing.dummy":
        return _POOL_NOTE.format(pool="pool.ThreadPool", instead="ThreadPool")
    return ""


def _print(text: str) -> bool:
    """Write to stderr if there is one that takes it: it may be None, closed, or a broken pipe."""
    stream = sys.stderr
    try:
        try:
            stream.write(text + "\n")
        except UnicodeEncodeError:
            stream.write(text.encode("ascii", "backslashreplace").decode() + "\n")
        stream.flush()
    except Exception:
        return False
    return True


def _is_stderr_our_own() -> bool:
    """Whether ``sys.stderr`` leads to where it did when the process began, wrapped or not."""
    try:
        return sys.stderr.fileno() == sys.__stderr__.fileno()  # type: ignore[union-attr]
    except Exception:  # None, closed, or held in memory
        return False


def _append(path: str | None, entry: Entry) -> None:
    if path:
        with suppress(OSError):
            ledger_file.append(path, entry)


def _take_back(path: str | None, entries: list[Entry]) -> None:
    if path:
        with suppress(OSError):
            ledger_file.take_back(path, entries)


def _read(path: str | None, offset: int = 0) -> tuple[Entry, ...]:
    with suppress(OSError):
        return read_entries(path, offset) if path else ()
    return ()


def _begin_anew() -> None:
    _ledger.reset()
    if found := _exit.existing_guard():
        found.has_missed = False
        found.unseen.clear()


def _begin_as_child() -> None:
    """After a fork: what was missed before is the parent's to tell, and so is the file."""
    _begin_anew()
    _ledger.is_owner = False


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
    os.register_at_fork(after_in_child=_begin_as_child)

# The package has armed this process; the ledger learns with which file.
arm()
