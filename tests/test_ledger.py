"""What the ledger keeps, prints and leaves for other processes, and what ``expected_miss`` takes back."""

from __future__ import annotations

import _thread
import asyncio
import io
import json
import multiprocessing
import os
import pickle
import stat
import sys
import threading
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import _exit, _expected_miss, _hooks, _ledger, _ledger_file
from httpx_cassette._errors import CassetteMiss, CassetteStop, CassetteWriteError, SystemPromptMissing
from httpx_cassette._expected_miss import BLOCKS_VARIABLE, claim
from httpx_cassette._ledger import (
    LEDGER_VARIABLE,
    MISSES_VARIABLE,
    Entry,
    arm,
    child_entries,
    enter,
    entries,
    expected_miss,
    read_entries,
)

REPORT = "no recording for POST /v1/responses\n  fingerprint  {}"


@pytest.fixture(autouse=True)
def ledger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[_ledger._Ledger]:
    """A ledger, hooks and an environment as in a process that has just begun."""
    fresh = _ledger._Ledger()
    monkeypatch.setattr(_ledger, "_ledger", fresh)
    # What is missed here is no miss of the test that runs.
    monkeypatch.setattr(_ledger, "TEST_VARIABLE", "RUNNING_TEST")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    monkeypatch.setattr(sys, _exit._NAME, None, raising=False)
    for variable in (LEDGER_VARIABLE, MISSES_VARIABLE, BLOCKS_VARIABLE):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    yield fresh
    # The guard of this test must not end the test run.
    _ledger.clear()


def miss(key: str = "a", **facts: Any) -> CassetteMiss:
    """A miss as the flow makes it."""
    return CassetteMiss(
        REPORT.format(key), {"fingerprint": key, "method": "POST", "changed": ("model",), **facts}
    )


def ask(key: str = "a") -> None:
    """A call that misses."""
    error = miss(key)
    enter(error, key=key)
    raise error


def quietly(key: str = "a") -> CassetteMiss:
    """A call that misses, in code that swallows everything."""
    try:
        ask(key)
    except CassetteMiss as error:
        return error
    raise AssertionError  # pragma: no cover


@pytest.fixture
def older_thread() -> Iterator[ThreadPoolExecutor]:
    """A pool whose thread was there before any block of the test."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        yield pool


Older = Callable[[str], CassetteMiss]


@pytest.fixture
def older(older_thread: ThreadPoolExecutor) -> Older:
    """A quiet call in a thread that no block covers: it is entered, and then handed on."""
    return lambda key: older_thread.submit(quietly, key).result()


def as_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Make this process one that another has started."""
    path = str(tmp_path / "httpx-cassette-1-of-the-parent.jsonl")
    monkeypatch.setenv(LEDGER_VARIABLE, path)
    return path


def has_missed() -> bool:
    return _exit.guard().has_missed


# Entries


@pytest.fixture
def in_test(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Say which test is running, as pytest does."""
    return lambda name: monkeypatch.setenv("RUNNING_TEST", f"{name} (call)")


def test_a_stop_is_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """An entry holds what the stop knows, and stderr has its report."""
    enter(miss(), key="a")

    assert capsys.readouterr().err == REPORT.format("a") + "\n"
    assert entries() == (
        Entry(
            key="a",
            kind="CassetteMiss",
            report=REPORT.format("a"),
            facts={"fingerprint": "a", "method": "POST", "changed": ["model"]},
            pid=os.getpid(),
            started_in=(),
            thread="MainThread",
            count=1,
        ),
    )


def test_a_key_is_printed_once_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Retries of one call are one entry; another key is another one."""
    for key in "aaba":
        enter(miss(key), key=key)

    assert [(entry.key, entry.count) for entry in entries()] == [("a", 3), ("b", 1)]
    assert capsys.readouterr().err == REPORT.format("a") + "\n" + REPORT.format("b") + "\n"


def test_another_kind_of_stop_for_the_same_key_is_another_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """A call that missed, and whose answer could then not be stored, is reported twice."""
    enter(miss(), key="a")
    enter(CassetteWriteError("the answer could not be stored"), key="a")

    assert [(entry.kind, entry.key) for entry in entries()] == [
        ("CassetteMiss", "a"),
        ("CassetteWriteError", "a"),
    ]
    assert capsys.readouterr().err == REPORT.format("a") + "\nthe answer could not be stored\n"


def test_entries_are_limited(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Past the limit one line says that no more is said; known keys still count."""
    monkeypatch.setattr(_ledger, "ENTRY_LIMIT", 2)
    for key in "abcda":
        enter(miss(key), key=key)

    assert [(entry.key, entry.count) for entry in entries()] == [("a", 2), ("b", 1)]
    assert capsys.readouterr().err.splitlines()[-1] == (
        "httpx_cassette: 2 different calls were stopped; further ones are not reported"
    )


def test_what_does_not_count_keeps_nothing_from_the_parent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After any number of calls that may miss, one that may not is reported, and reaches the file."""
    path = as_child(monkeypatch, tmp_path)
    monkeypatch.setattr(_ledger, "ENTRY_LIMIT", 2)
    for key in "abcd":
        enter(miss(key), key=key, hooks=False)
    quietly("z")

    assert [entry.key for entry in read_entries(path)] == ["z"]
    assert capsys.readouterr().err.splitlines()[-3:] == [
        "httpx_cassette: 2 different calls were stopped with on_miss=None; further ones are not reported",
        *REPORT.format("z").splitlines(),
    ]


def test_past_the_limit_the_status_stays(monkeypatch: pytest.MonkeyPatch, older: Older) -> None:
    """Of those that were not entered none can be taken back; where none of them counts, all can."""
    monkeypatch.setattr(_ledger, "ENTRY_LIMIT", 1)
    enter(miss("a"), key="a", hooks=False)
    enter(miss("b"), key="b", hooks=False)
    for is_refused in (False, True):
        with expected_miss():
            error = older("c")
            if is_refused:
                older("d")
            raise error

        assert has_missed() is is_refused


def test_a_report_is_limited(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A long report is cut, and says so."""
    monkeypatch.setattr(_ledger, "REPORT_LIMIT", 10)
    enter(CassetteStop("x" * 12_345), key="a")

    assert capsys.readouterr().err == "xxxxxxxxxx\n  ... cut here: the report has 12,345 characters\n"


def test_a_paid_answer_is_not_written_down() -> None:
    """The answer that a write error carries may hold a secret, so the entry leaves it out."""
    facts = {"fingerprint": "a", "status": 200, "headers": (("x-key", "secret"),), "content": b"secret"}
    enter(CassetteWriteError("cannot write", facts), key="a")

    assert entries()[0].facts == {"fingerprint": "a", "status": 200}


def test_facts_are_plain_and_limited() -> None:
    """Facts become JSON: tuples are lists, other objects their ``repr``, long values are cut."""
    facts = {"path": Path("a"), "nested": {1: (1.5, None, True)}, "long": "x" * 5_000, "many": [0] * 5_000}
    enter(CassetteStop("stopped", facts), key="a")

    assert entries()[0].facts == {
        "path": repr(Path("a")),
        "nested": {"1": [1.5, None, True]},
        "long": "x" * 4_096,
        "many": [0] * 4_096,
    }


class Picky(io.StringIO):
    """A stream that takes ASCII only."""

    def write(self, text: str) -> int:
        text.encode("ascii")
        return super().write(text)


def test_a_stream_that_cannot_spell_the_report_gets_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replaced stderr with a narrow encoding still shows the report."""
    stream = Picky()
    monkeypatch.setattr(sys, "stderr", stream)
    enter(CassetteStop("größer"), key="a")

    assert stream.getvalue() == "gr\\xf6\\xdfer\n"


@pytest.mark.parametrize("stream", [pytest.param(None, id="none"), pytest.param(object(), id="not-a-stream")])
def test_a_report_that_cannot_be_printed_is_not_lost(monkeypatch: pytest.MonkeyPatch, stream: object) -> None:
    """Without a stderr the stop is listed, counts, and keeps its report in the traceback."""
    monkeypatch.setattr(sys, "stderr", stream)
    error = miss()
    enter(error, key="a")

    assert (len(entries()), has_missed()) == (1, True)
    assert _hooks.REPORTED not in error.__dict__


def test_without_hooks_nothing_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """``on_miss=None`` leaves hooks, status and environment alone; the entry is listed and printed."""
    enter(miss(), key="a", hooks=False)

    assert [entry.key for entry in entries()] == ["a"]
    assert capsys.readouterr().err == REPORT.format("a") + "\n"
    assert (_exit.existing_guard(), sys.excepthook, os.environ.get(LEDGER_VARIABLE)) == (
        None,
        sys.__excepthook__,
        None,
    )


def test_the_same_key_with_hooks_counts_later() -> None:
    """A key entered without hooks first still ends the process with 2 once it is entered with them."""
    enter(miss(), key="a", hooks=False)
    enter(miss(), key="a")

    assert has_missed()


def test_the_hooks_are_installed_once() -> None:
    """The first entry wraps the hooks, further ones leave them."""
    enter(miss("a"), key="a")
    hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook)
    enter(miss("b"), key="b")

    assert (sys.excepthook, sys.unraisablehook, threading.excepthook) == hooks
    assert sys.excepthook is not sys.__excepthook__


def test_every_process_appends_to_the_file_of_misses(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``HTTPX_CASSETTE_MISSES`` names a file of JSON lines, one per entry."""
    path = tmp_path / "misses.jsonl"
    monkeypatch.setenv(MISSES_VARIABLE, str(path))
    for key in "aab":
        enter(miss(key), key=key)

    assert [entry.key for entry in read_entries(str(path))] == ["a", "b"]
    assert [json.loads(line)["key"] for line in path.read_text().splitlines()] == ["a", "b"]


def test_a_file_that_cannot_be_written_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that does not exist loses the line, not the entry."""
    monkeypatch.setenv(MISSES_VARIABLE, str(tmp_path / "none" / "misses.jsonl"))
    enter(miss(), key="a")

    assert len(entries()) == 1


# Child processes


def test_arming_names_a_file_that_does_not_exist_yet(tmp_path: Path) -> None:
    """The variable names a path of this process that cannot be guessed; nothing is created."""
    arm()
    arm()

    path = Path(os.environ[LEDGER_VARIABLE])
    assert path.parent == tmp_path
    assert path.name.startswith(f"httpx-cassette-{os.getpid()}-")
    assert len(path.name) > 32
    assert not path.exists()
    assert child_entries() == ()


def test_arming_again_repairs_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that restores the environment does not cut off the child processes of the next one."""
    arm()
    path = os.environ.pop(LEDGER_VARIABLE)
    arm()

    assert os.environ[LEDGER_VARIABLE] == path


@pytest.mark.skipif(os.name != "posix", reason="elsewhere tempfile is asked")
@pytest.mark.parametrize("where", ["known to tempfile", "in bytes", "TMPDIR", "TEMP", "TMP", "usual"])
def test_the_file_is_named_in_the_folder_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str
) -> None:
    """What the program has set goes first, then the environment, then what is usual."""
    known = {"known to tempfile": str(tmp_path / "set"), "in bytes": os.fsencode(tmp_path / "set")}
    monkeypatch.setattr("tempfile.tempdir", known.get(where))
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    if where.isupper():
        monkeypatch.setenv(where, str(tmp_path))

    folder = tmp_path / "set" if where in known else tmp_path if where.isupper() else Path("/tmp")
    assert folder == Path(_exit.new_path()).parent


@pytest.mark.skipif(os.name != "posix", reason="elsewhere tempfile is asked")
@pytest.mark.parametrize("room", ["f_bavail", "f_favail"])
def test_a_full_folder_is_not_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, room: str) -> None:
    """No child could leave anything there: neither a file, nor what would stand in it."""
    found = dict.fromkeys(("f_bavail", "f_favail", "f_files"), 7) | {room: 0}
    monkeypatch.setattr("os.statvfs", lambda folder: types.SimpleNamespace(**found))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "found"))

    assert tmp_path / "found" == Path(_exit.new_path()).parent


def test_a_cleared_environment_is_told_the_same_file_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children that are started before, then and later all report to one file, those of a fork as well."""
    arm()
    path = os.environ[LEDGER_VARIABLE]
    named = []
    for is_fork in (False, True):
        monkeypatch.delenv(LEDGER_VARIABLE)
        if is_fork:
            _exit.guard().begin_as_child()
        named.append(_exit.arm())

    assert [path, path] == named
    assert path == os.environ[LEDGER_VARIABLE]


@pytest.mark.parametrize("name", ["absent", "file", "relative"])
def test_a_folder_that_will_not_do_is_not_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """There, ``tempfile`` finds another one."""
    (tmp_path / "file").touch()
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "found"))
    monkeypatch.setenv("TMPDIR", "." if name == "relative" else str(tmp_path / name))

    assert tmp_path / "found" == Path(_exit.new_path()).parent


def test_arming_without_a_temporary_folder_is_silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where there is no folder for the file, child processes report to nobody."""

    def fail() -> str:
        raise FileNotFoundError

    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile.gettempdir", fail)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "absent"))
    arm()

    assert LEDGER_VARIABLE not in os.environ


def test_a_child_leaves_its_entries_in_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A child appends each key once, to a file that only its user can read, and is not its owner."""
    path = as_child(monkeypatch, tmp_path)
    for key in "aab":
        enter(miss(key), key=key)

    assert [entry.key for entry in read_entries(path)] == ["a", "b"]
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert (child_entries(), _exit.guard().ledger) == ((), None)


def test_without_hooks_a_child_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What does not count for a process does not count for its parent; later, with hooks, it does."""
    path = as_child(monkeypatch, tmp_path)
    arm()
    enter(miss(), key="a", hooks=False)
    before = read_entries(path)
    enter(miss(), key="a")

    assert (before, [entry.key for entry in read_entries(path)]) == ((), ["a"])


def test_a_link_is_not_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A link that somebody put in place of the file is neither written through nor read."""
    target = tmp_path / "target"
    target.write_text("{}\n")
    path = as_child(monkeypatch, tmp_path)
    os.symlink(target, path)
    enter(miss(), key="a")
    guard = _exit.ExitGuard()
    guard.ledger = path

    assert (target.read_text(), guard._count_entries()) == ("{}\n", (0, 0))


def test_the_owner_reads_what_its_children_left() -> None:
    """Entries come back as they were entered; those taken back and torn lines are left out."""
    arm()
    path = os.environ[LEDGER_VARIABLE]
    entry = Entry("a", "CassetteMiss", "größer\n\ud800", {"model": None}, 1, ("block",), "MainThread")
    others = [Entry(key, "CassetteMiss", key, {}, pid, (), "") for pid in (1, 2) for key in "ab"]
    for each in others:
        _ledger_file.append(path, each)
    _ledger_file.take_back(path, [others[2], Entry("z", "CassetteMiss", "", {}, 1, (), "")])
    _ledger_file.append(path, entry)
    with open(path, "a") as file:
        file.write('{"unknown": 1}\n-{"unknown": 1}\n-torn\n{"key": "torn')

    assert [(each.pid, each.key) for each in child_entries()] == [(1, "a"), (1, "b"), (2, "b"), (1, "a")]
    assert child_entries()[-1] == entry


def test_a_file_that_cannot_be_read_has_no_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in place of the file is as good as no file."""
    arm()
    os.mkdir(os.environ[LEDGER_VARIABLE])

    assert child_entries() == ()


def test_a_forked_child_begins_with_an_empty_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was missed before the fork is the parent's to tell, and so is the file."""
    enter(miss(), key="a")
    block = expected_miss()
    monkeypatch.setattr(_expected_miss, "_started_in", ())
    with block:
        _exit.guard().begin_as_child()
        _ledger._begin_as_child()
        _expected_miss._begin_as_child()
        enter(miss("b"), key="b")
        left = [entry.key for entry in read_entries(os.environ[LEDGER_VARIABLE])]

    assert ([entry.key for entry in entries()], left) == (["b"], ["a", "b"])
    assert (_exit.guard().ledger, _exit.guard().pid, child_entries()) == (None, os.getpid(), ())


def test_a_fork_without_a_guard_is_harmless() -> None:
    """A process that never armed forks as before."""
    _ledger._begin_as_child()

    assert _exit.existing_guard() is None


def process_named(name: str) -> types.SimpleNamespace:
    """``multiprocessing.process`` as a worker sees it."""
    return types.SimpleNamespace(current_process=lambda: types.SimpleNamespace(name=name))


def test_without_multiprocessing_there_is_no_pool(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The package does not import multiprocessing to find out that it is not used."""
    monkeypatch.delitem(sys.modules, "multiprocessing.process")
    enter(miss(), key="a")

    assert capsys.readouterr().err == REPORT.format("a") + "\n"
    assert "multiprocessing.process" not in sys.modules


@pytest.mark.parametrize("name", ["ForkPoolWorker-1", "SpawnPoolWorker-3"])
def test_a_worker_of_a_pool_is_warned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The report of a stop that will hang its pool ends with what to use instead."""
    monkeypatch.setitem(sys.modules, "multiprocessing.process", process_named(name))
    enter(miss(), key="a")

    assert capsys.readouterr().err.splitlines()[-1] == (
        "  note         multiprocessing.Pool waits for ever for a task that is stopped:"
        " use concurrent.futures.ProcessPoolExecutor, which hands the error on"
    )


def test_a_thread_of_a_thread_pool_is_warned(capsys: pytest.CaptureFixture[str]) -> None:
    """``multiprocessing.pool.ThreadPool`` hangs in the same way."""
    from multiprocessing.dummy import DummyProcess

    thread = DummyProcess(target=quietly)
    thread.start()
    thread.join()

    assert "use concurrent.futures.ThreadPoolExecutor" in capsys.readouterr().err.splitlines()[-1]


# The exit guard


class End(Exception):
    """Stands for the end of the process."""


def guard_that_ends() -> _exit.ExitGuard:
    """The guard of this process, made to raise instead of ending it."""

    def end(status: int) -> None:
        raise End(status)

    guard = _exit.guard()
    guard._end = end
    return guard


def test_the_guard_ends_a_process_that_missed() -> None:
    """The status is 2."""
    enter(miss(), key="a")

    with pytest.raises(End, match=r"^2$"):
        guard_that_ends().finish()


@pytest.mark.parametrize(
    ("count", "line"),
    [(1, "child processes had 1 miss"), (2, "child processes had 2 different misses")],
    ids=["one", "two"],
)
def test_the_guard_counts_what_children_missed(
    capsys: pytest.CaptureFixture[str], count: int, line: str
) -> None:
    """The file is read and deleted; a key counts once, in however many children it missed."""
    arm()
    path = os.environ[LEDGER_VARIABLE]
    for pid in (1, 2):
        for key in ('"taken back", "report": ', *"ab"[:count]):
            _ledger_file.append(path, Entry(key, "CassetteMiss", "-{", {}, pid, (), ""))
    _ledger_file.take_back(path, [entry for entry in child_entries() if entry.key.startswith('"taken')])

    with pytest.raises(End):
        guard_that_ends().finish()

    assert capsys.readouterr().err == f"httpx_cassette: {line}, so the exit status is 2\n"
    assert not os.path.exists(path)


def test_a_report_that_was_captured_is_written_at_the_end(
    capsys: pytest.CaptureFixture[str], older: Older
) -> None:
    """Where ``sys.stderr`` was not that of the process, the report follows, unless it was taken back."""
    enter(miss("a"), key="a")
    with expected_miss():
        raise older("b")
    enter(miss("c"), key="c", hooks=False)
    capsys.readouterr()

    with pytest.raises(End):
        guard_that_ends().finish()

    assert capsys.readouterr().err == (
        f"httpx_cassette: the exit status is 2; reported while stderr was redirected:\n{REPORT.format('a')}\n"
        "  a miss that is meant is taken back by: with httpx_cassette.expected_miss():\n"
    )


def test_what_is_written_at_the_end_is_limited(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Past the limit one line says so."""
    monkeypatch.setattr(_ledger, "UNSEEN_LIMIT", 1)
    for key in "abc":
        enter(miss(key), key=key)

    assert [*_exit.guard().unseen.values()] == [REPORT.format("a"), "further reports are not repeated"]


def test_a_report_that_reached_stderr_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process's own stderr is enough, also as another object."""
    with open(2, "w", closefd=False) as again:
        for key, stream in (("a", sys.__stderr__), ("b", again)):
            monkeypatch.setattr(sys, "stderr", stream)
            enter(miss(key), key=key)

    assert _exit.guard().unseen == {}


def test_the_guard_leaves_other_endings_alone() -> None:
    """Nothing happens without a miss, in another process, or when somebody has taken over."""
    guard = guard_that_ends()
    guard.finish()
    enter(miss(), key="a")
    _ledger.take_over()
    guard.finish()
    _ledger.hand_back()
    guard.pid += 1
    guard.finish()
    guard.pid -= 1

    with pytest.raises(End):
        guard.finish()


def exec_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a program does that another one has made way for: with its id and its environment."""
    monkeypatch.setattr(_ledger, "_ledger", _ledger._Ledger())
    monkeypatch.setattr(sys, _exit._NAME, None)


def test_a_program_learns_what_was_missed_before_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that replaced itself by another program has missed all the same, and leaves no file."""
    enter(miss(), key="a")
    exec_again(monkeypatch)
    arm()
    capsys.readouterr()

    with pytest.raises(End, match=r"^2$"):
        guard_that_ends().finish()

    assert capsys.readouterr().err == (
        "httpx_cassette: a call was stopped before this program took the process over (exec),"
        " so the exit status is 2\n"
    )
    assert not os.path.exists(os.environ[LEDGER_VARIABLE])


@pytest.mark.parametrize("how", ["expected", "cleared", "forked"])
def test_a_program_is_not_told_what_was_taken_back(
    monkeypatch: pytest.MonkeyPatch, older: Older, how: str
) -> None:
    """Nor is a fork of it told what only its parent ran before."""
    if how == "expected":
        with expected_miss():
            raise older("a")
    quietly()
    if how != "forked":
        _ledger.clear()
    exec_again(monkeypatch)
    arm()
    if how == "forked":
        _exit.guard().begin_as_child()
        _ledger._begin_as_child()

    guard_that_ends().finish()


def test_another_copy_of_the_package_speaks_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported anew in the same process, the package finds entries of that process and no other program."""
    enter(miss(), key="a")
    monkeypatch.setattr(_ledger, "_ledger", _ledger._Ledger())
    monkeypatch.setattr(sys, _exit._NAME, _exit.ExitGuard(previous=_exit.guard()))
    arm()

    guard_that_ends().finish()


def test_the_guard_needs_no_streams() -> None:
    """A process whose streams are gone ends with 2 as well."""
    enter(miss(), key="a")
    guard = guard_that_ends()
    guard._system = {}

    with pytest.raises(End):
        guard.finish()


def test_the_guard_acts_only_when_the_interpreter_ends() -> None:
    """Deleting the attribute does not end the process; the interpreter's end does."""
    enter(miss(), key="a")
    guard = guard_that_ends()
    guard.__del__()
    guard._is_finalizing = lambda: True

    with pytest.raises(End):
        guard.__del__()
    guard._is_finalizing = lambda: False


def test_elsewhere_than_in_cpython_an_exit_handler_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where finalisers do not run at the end, ``atexit`` is the next best."""
    registered: list[Callable[[], object]] = []
    monkeypatch.setattr("atexit.register", registered.append)
    implementation = types.SimpleNamespace(name="pypy")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "implementation", implementation)
        guard = _exit.guard()

    assert registered == [guard.finish]


def test_clearing_forgets_the_misses() -> None:
    """After ``clear`` the process ends as if nothing had missed."""
    enter(miss(), key="a")
    _ledger.clear()

    assert (entries(), has_missed()) == ((), False)


# The hooks


def shown(capsys: pytest.CaptureFixture[str], error: BaseException) -> str:
    """What the hook for the main thread prints last for ``error``."""
    capsys.readouterr()
    sys.excepthook(type(error), error, error.__traceback__)
    return capsys.readouterr().err


def test_a_traceback_does_not_repeat_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """The interpreter's own hook prints the first line; the error itself keeps its report."""
    error = quietly()

    assert shown(capsys, error).splitlines()[-1] == (
        "httpx_cassette.CassetteMiss: no recording for POST /v1/responses (the report stands above)"
    )
    assert str(error) == REPORT.format("a")


def test_a_report_that_was_not_printed_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A stop that was never entered is shown whole."""
    quietly("b")

    assert shown(capsys, miss()).endswith(REPORT.format("a") + "\n")


def test_a_pickled_stop_still_knows_that_it_was_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """An error that came out of a child process is not repeated either."""
    error = pickle.loads(pickle.dumps(quietly()))

    assert "the report stands above" in shown(capsys, error)


def test_a_foreign_hook_gets_what_it_would_have_got(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook that was there before is called unchanged, report and all."""
    seen: list[str] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, value, trace: seen.append(str(value)))
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(str(args.exc_value)))
    error = quietly()
    sys.excepthook(type(error), error, None)
    threading.excepthook(threading.ExceptHookArgs((type(error), error, None, None)))

    assert seen == [REPORT.format("a")] * 2


def test_the_hook_of_the_backport_does_not_repeat_the_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On Python 3.10 the backport of exception groups has taken the place of the interpreter's hook."""

    def backport(kind: type[BaseException], value: BaseException, trace: object) -> None:
        print(value, file=sys.stderr)

    backport.__module__ = "exceptiongroup._formatting"
    monkeypatch.setattr(sys, "excepthook", backport)

    assert shown(capsys, quietly()) == "no recording for POST /v1/responses (the report stands above)\n"


def test_a_thread_does_not_repeat_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """The hook for threads prints the first line as well."""
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()

    assert capsys.readouterr().err.count("fingerprint  a") == 1


class Conversation:
    """Makes a call when it is collected."""

    def __del__(self) -> None:
        ask()


def test_a_finaliser_does_not_repeat_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does the hook for what Python cannot raise."""
    Conversation()

    assert capsys.readouterr().err.count("fingerprint  a") == 1


def test_when_the_interpreter_ends_the_report_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The names of the module may be gone by then, so the hook uses none."""
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    Conversation()

    assert capsys.readouterr().err.count("fingerprint  a") == 2


@pytest.mark.parametrize(
    ("is_uncaught", "has_prompt"),
    [(True, False), (False, False), (True, True)],
    ids=["the-end", "only-shown", "at-a-prompt"],
)
def test_an_interrupt_keeps_its_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_uncaught: bool,
    has_prompt: bool,
) -> None:
    """Ctrl-C after a miss ends the process by its signal, as a shell expects, if it does end it."""
    quietly()
    error = KeyboardInterrupt()
    if is_uncaught:
        monkeypatch.setattr(sys, "last_value", error, raising=False)
    if has_prompt:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    shown(capsys, error)

    assert _exit.guard().stands_down is (is_uncaught and not has_prompt)


def test_an_interrupt_without_a_guard_is_only_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hook may outlive its guard."""
    _hooks.install_hooks()
    error = KeyboardInterrupt()
    monkeypatch.setattr(sys, "last_value", error, raising=False)

    assert "KeyboardInterrupt" in shown(capsys, error)


class Group(Exception):
    """An exception group by shape, as the backport for Python 3.10 has it."""

    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__("a group")
        self.exceptions = exceptions


def caused_by(cause: BaseException) -> BaseException:
    """An error that was raised from ``cause``."""
    error = RuntimeError("unavailable")
    error.__cause__ = cause
    return error


def raised_while_handling(context: BaseException) -> BaseException:
    """An error that was raised while ``context`` was handled."""
    error = AssertionError("failed")
    error.__context__ = context
    return error


def test_stops_are_found_wherever_they_are() -> None:
    """Cause, context and members of groups are looked through, each error once, cycles too."""
    first, second = miss("a"), miss("b")
    first.__context__ = error = caused_by(raised_while_handling(Group(ValueError(), Group(first, second))))

    assert sorted(stop.message for stop in _hooks.stops_in(error)) == [first.message, second.message]
    assert list(_hooks.stops_in(None)) == []


def test_other_attributes_of_that_name_are_no_members() -> None:
    """An error whose ``exceptions`` are something else is not a group."""
    error = Group("not an error")  # type: ignore[arg-type] # that is the point

    assert _hooks.members(error) == ()


# expected_miss


def test_an_expected_miss_leaves_no_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """The miss is at hand, nothing is printed or listed, and the status stays."""
    with expected_miss() as expected:
        ask()

    assert (expected.fingerprint, expected.changed, expected.error.method) == ("a", ("model",), "POST")
    assert (entries(), has_missed(), capsys.readouterr().err) == ((), False, "")


def test_afterwards_a_miss_counts_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The same call outside the block is a miss like any other."""
    with expected_miss():
        ask()
    quietly()

    assert (len(entries()), has_missed(), capsys.readouterr().err) == (1, True, REPORT.format("a") + "\n")


def test_a_block_without_a_miss_fails() -> None:
    """The error says what did not happen and what to do."""
    with pytest.raises(AssertionError) as raised, expected_miss() as expected:
        pass

    assert str(raised.value) == (
        "expected_miss: no call missed in this block: each was answered from a cassette, or none was made;"
        " remove the block, or check that the call reaches the transport"
    )
    with pytest.raises(AttributeError, match="no call has missed in this expected_miss block yet"):
        _ = expected.error


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda error: error, id="as-is"),
        pytest.param(caused_by, id="caused-by"),
        pytest.param(lambda error: caused_by(caused_by(error)), id="caused-by-twice"),
        pytest.param(Group, id="group"),
        pytest.param(lambda error: Group(Group(error), caused_by(error)), id="nested-groups"),
    ],
)
def test_a_wrapped_miss_does_not_leave_the_block(wrap: Callable[[BaseException], BaseException]) -> None:
    """What was raised because of the miss alone is the miss."""
    with expected_miss() as expected:
        raise wrap(quietly())

    assert [error.fingerprint for error in expected.errors] == ["a"]


def endless() -> BaseException:
    """An error that is its own cause's cause."""
    first, second = RuntimeError(), RuntimeError()
    first.__cause__, second.__cause__ = second, first
    return first


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda error: ValueError(), id="unrelated"),
        pytest.param(raised_while_handling, id="raised-while-handling"),
        pytest.param(lambda error: Group(error, ValueError()), id="mixed-group"),
        pytest.param(lambda error: endless(), id="cycle"),
    ],
)
def test_another_error_leaves_the_block(wrap: Callable[[BaseException], BaseException]) -> None:
    """The block hides the miss, not an assertion that fails beside it."""
    error = wrap(quietly("z"))
    _ledger.clear()
    with pytest.raises(type(error)) as raised, expected_miss():
        quietly()
        raise error

    assert raised.value is error
    assert entries() == ()


def test_another_error_without_a_miss_leaves_the_block() -> None:
    """An error that came before the call is not hidden behind "no call missed"."""
    with pytest.raises(ZeroDivisionError), expected_miss():
        _ = 1 / 0


def test_a_swallowed_miss_counts() -> None:
    """The block need not raise: that a call missed is enough."""
    with expected_miss() as expected:
        quietly("a")
        quietly("b")

    assert [error.fingerprint for error in expected.errors] == ["a", "b"]


def test_other_stops_are_not_expected() -> None:
    """A missing system prompt is entered and raised as ever."""
    error = SystemPromptMissing("no system prompt")
    with pytest.raises(SystemPromptMissing), expected_miss():
        enter(error, key="a")
        raise error

    assert has_missed()


def test_a_miss_belongs_to_the_innermost_block() -> None:
    """A nested block takes its own; the outer one goes on without it."""
    with expected_miss() as outer:
        with expected_miss() as inner:
            ask("a")
        ask("b")

    assert ([inner.fingerprint], [error.fingerprint for error in outer.errors]) == (["a"], ["b"])


def test_a_miss_in_a_thread_belongs_to_the_block_it_was_started_in() -> None:
    """Of several the one that was opened last, also where another has been opened since."""
    go = threading.Event()
    with expected_miss() as expected:
        with pytest.raises(AssertionError), expected_miss():
            pass
        thread = threading.Thread(target=lambda: (go.wait(10), quietly("a")))
        thread.start()
        with expected_miss() as later:
            go.set()
            thread.join()
            quietly("b")

    assert (expected.fingerprint, later.fingerprint, entries()) == ("a", "b", ())


def test_a_thread_that_was_there_before_is_none_of_the_block(older_thread: ThreadPoolExecutor) -> None:
    """Nobody expects what somebody else's thread happens to miss meanwhile."""
    with pytest.raises(AssertionError), expected_miss():
        older_thread.submit(quietly, "older").result()

    assert [entry.key for entry in entries()] == ["older"]


def test_a_thread_takes_the_block_along_with_the_context(older_thread: ThreadPoolExecutor) -> None:
    """As ``asyncio.to_thread`` does, and anyio: then the thread may be older."""
    with expected_miss() as expected:
        older_thread.submit(copy_context().run, quietly).result()

    assert (expected.fingerprint, entries()) == ("a", ())


def test_a_thread_of_unknown_age_is_none_of_the_block() -> None:
    """One that ``threading`` did not start may have been there before."""
    done = threading.Event()
    with pytest.raises(AssertionError), expected_miss():
        _thread.start_new_thread(lambda: (quietly("a"), done.set()), ())
        done.wait(10)

    assert [entry.key for entry in entries()] == ["a"]


def test_a_task_beside_the_block_is_none_of_it() -> None:
    """A task that was created before does not have the block in its context."""

    async def sibling(opened: asyncio.Event, missed: asyncio.Event) -> None:
        await opened.wait()
        quietly("sibling")
        missed.set()

    async def main() -> None:
        opened, missed = asyncio.Event(), asyncio.Event()
        task = asyncio.ensure_future(sibling(opened, missed))
        await asyncio.sleep(0)
        with pytest.raises(AssertionError), expected_miss():
            opened.set()
            await missed.wait()
        await task

    asyncio.run(main())

    assert [entry.key for entry in entries()] == ["sibling"]


def test_what_synchronous_code_runs_is_in_its_block() -> None:
    """A fixture may be younger than the task that its test runs in, as it is under anyio."""
    loop = asyncio.new_event_loop()
    go = asyncio.Event()

    async def wait() -> None:
        await go.wait()
        quietly()

    task = loop.create_task(wait())
    loop.run_until_complete(asyncio.sleep(0))
    with expected_miss() as expected:
        go.set()
        loop.run_until_complete(task)
    loop.close()

    assert (expected.fingerprint, entries()) == ("a", ())


def test_tasks_have_blocks_of_their_own() -> None:
    """Two tasks that expect a miss at the same time get their own one each."""

    async def expect(key: str) -> str:
        with expected_miss() as expected:
            await asyncio.sleep(0.001)
            quietly(key)
            await asyncio.sleep(0.001)
        return "".join(error.fingerprint for error in expected.errors)

    async def main() -> list[str]:
        return await asyncio.gather(*(expect(key) for key in "abc"))

    assert asyncio.run(main()) == ["a", "b", "c"]


def test_a_block_that_was_closed_elsewhere_is_passed_over() -> None:
    """A task that outlives the block it was started in is not covered by it."""

    async def late(opened: asyncio.Event) -> None:
        await opened.wait()
        quietly("late")

    async def main() -> None:
        closed = asyncio.Event()
        with expected_miss():
            task = asyncio.ensure_future(late(closed))
            quietly()
        closed.set()
        await task

    asyncio.run(main())

    assert [entry.key for entry in entries()] == ["late"]


def test_a_raised_miss_is_taken_from_another_block() -> None:
    """A miss that a thread gave to the block it was started in comes back to the one that raises it."""
    results: list[CassetteMiss] = []
    first, second = expected_miss(), expected_miss()
    with pytest.raises(AssertionError):
        first.__enter__()
        with second:
            thread = threading.Thread(target=lambda: results.append(quietly()))
            thread.start()
            thread.join()
            assert first.__exit__(CassetteMiss, results[0], None)

    assert (first.errors, second.errors) == ((results[0],), ())


def test_a_raised_miss_that_was_entered_is_taken_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, older: Older
) -> None:
    """A thread that was there before misses loudly; where its future is read in the block, it is expected."""
    path = as_child(monkeypatch, tmp_path)
    misses = str(tmp_path / "misses.jsonl")
    monkeypatch.setenv(MISSES_VARIABLE, misses)
    with expected_miss():
        raise older("a")

    assert (entries(), has_missed(), read_entries(path), read_entries(misses)) == ((), False, (), ())


def test_an_earlier_miss_that_a_later_one_is_linked_to_counts() -> None:
    """A block in the ``except`` of a miss that nobody expected takes its own one only."""
    try:
        ask("before")
    except CassetteMiss:
        with expected_miss() as expected:
            ask("in it")

    assert [error.fingerprint for error in expected.errors] == ["in it"]
    assert ([entry.key for entry in entries()], has_missed()) == (["before"], True)


def test_an_earlier_miss_that_is_raised_leaves_the_block() -> None:
    """A future that missed before the block opened was not expected when it missed."""
    future = quietly()
    for error in (future, caused_by(future)):
        with pytest.raises(type(error)) as raised, expected_miss():
            raise error

        assert raised.value is error
    assert [entry.key for entry in entries()] == ["a"]


def test_an_earlier_miss_is_not_taken_from_another_block() -> None:
    """A block in the ``except`` of a miss that the block around it expects leaves that one there."""
    with expected_miss() as outer:
        try:
            ask("outer")
        except CassetteMiss:
            with expected_miss() as inner:
                ask("inner")

    assert [[error.fingerprint for error in block.errors] for block in (outer, inner)] == [
        ["outer"],
        ["inner"],
    ]


def test_a_miss_that_was_never_entered_is_hidden() -> None:
    """One that a test makes itself, to raise it from a fake, is a miss of the block."""
    with expected_miss() as expected:
        raise miss()

    assert expected.fingerprint == "a"


def test_taking_one_of_several_back_leaves_the_others(older: Older) -> None:
    """Of three misses with one key two remain, and another key remains."""
    quietly("a")
    with expected_miss():
        with expected_miss():
            first, *_ = (older("a"), older("a"), older("b"))
            raise first
        raise first  # taken back already: nothing more to take

    assert [(entry.key, entry.count) for entry in entries()] == [("a", 2), ("b", 1)]
    assert has_missed()


def test_taking_back_what_does_not_count_leaves_the_status(older_thread: ThreadPoolExecutor) -> None:
    """An entry without hooks never counted, so taking it back changes nothing else."""
    quietly("b")
    error = miss()
    with expected_miss():
        older_thread.submit(enter, error, key="a", hooks=False).result()
        raise error

    assert ([entry.key for entry in entries()], has_missed()) == (["b"], True)


def test_what_was_forgotten_is_not_taken_back_again(older: Older) -> None:
    """A block may end after the ledger was cleared in it."""
    with expected_miss() as expected:
        error = older("a")
        _ledger.clear()
        raise error

    assert (expected.errors, entries(), has_missed()) == ((error,), (), False)


def test_taking_back_needs_no_guard(older_thread: ThreadPoolExecutor) -> None:
    """Where nothing counts there is none."""
    error = miss()
    with expected_miss():
        older_thread.submit(enter, error, key="a", hooks=False).result()
        raise error

    assert (entries(), _exit.existing_guard()) == ((), None)


def left_by_a_child(key: str, *started_in: str, kind: str = "CassetteMiss") -> Entry:
    """What a child process that was started in these blocks leaves in the files."""
    facts = {"fingerprint": key, "changed": ["model"]}
    entry = Entry(key, kind, REPORT.format(key), facts, 1, started_in, "MainThread")  # type: ignore[arg-type] # JSON
    for variable in (LEDGER_VARIABLE, MISSES_VARIABLE):
        _ledger_file.append(os.environ[variable], entry)
    return entry


@pytest.fixture
def armed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process with both files."""
    monkeypatch.setenv(MISSES_VARIABLE, str(tmp_path / "misses.jsonl"))
    arm()


def left() -> list[str]:
    """The keys that child processes have left in both files."""
    keys = [entry.key for entry in child_entries()]

    assert keys == [entry.key for entry in read_entries(os.environ[MISSES_VARIABLE])]

    return keys


def blocks() -> list[str]:
    """The names of the open blocks as a process learns them that is started now."""
    return os.environ.get(BLOCKS_VARIABLE, "").split()


def test_a_miss_in_a_child_process_is_expected_too(armed: None) -> None:
    """What a child left during the block is taken back; the error is made anew from its facts."""
    with expected_miss() as expected:
        left_by_a_child("a", *blocks())
        left_by_a_child("b", *blocks())

    assert (expected.fingerprint, str(expected.error)) == ("a", REPORT.format("a"))
    assert len(expected.errors) == 2
    assert (left(), blocks()) == ([], [])


def test_a_miss_of_a_child_belongs_to_the_last_block_it_was_started_in(armed: None) -> None:
    """The one opened last, unless that is closed by now; the order of closing does not matter."""
    first, second = expected_miss(), expected_miss()
    first.__enter__()
    before = blocks()
    second.__enter__()
    both = blocks()
    left_by_a_child("first", *before)
    left_by_a_child("second", *both)
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    with expected_miss() as third:
        left_by_a_child("late", *both)
        left_by_a_child("third", *both, *blocks())

    assert [block.fingerprint for block in (first, second, third)] == ["first", "second", "third"]
    assert (left(), len(before), len(both), blocks()) == (["late"], 1, 2, [])


def test_a_miss_that_came_out_of_a_child_is_one_miss(armed: None) -> None:
    """The error that a pool hands on and the line that its worker left are the same miss."""
    with expected_miss() as expected:
        error = miss()
        claim(error)
        error.__dict__["_entered"] = (1, ("CassetteMiss", "a"), "")
        left_by_a_child("a")
        raise error

    assert (expected.errors, left()) == ((error,), [])


def test_a_miss_that_came_out_of_a_child_may_be_an_earlier_one(armed: None) -> None:
    """A worker writes a key once, and what it wrote before the block stays."""
    left_by_a_child("a")
    with expected_miss():
        error = miss()
        claim(error)
        error.__dict__["_entered"] = (1, ("CassetteMiss", "a"), "")
        raise error

    assert left() == ["a"]


def test_what_siblings_miss_is_none_of_ours(armed: None) -> None:
    """A worker that was there before is somebody else's, and a stop of another kind is not expected."""
    with expected_miss():
        left_by_a_child("older")
        left_by_a_child("of another process", "5eed" * 4)
        left_by_a_child("prompt", *blocks(), kind="SystemPromptMissing")
        ask()

    assert left() == ["older", "of another process", "prompt"]


def test_a_process_says_which_blocks_it_was_started_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By what stood in its environment then, and a fork by what was open then."""
    path = as_child(monkeypatch, tmp_path)
    monkeypatch.setattr(_expected_miss, "_started_in", ("of the parent",))
    with pytest.raises(CassetteMiss), expected_miss():
        (name,) = blocks()
        _expected_miss._begin_as_child()
        ask()

    assert [entry.started_in for entry in read_entries(path)] == [("of the parent", name)]


# Cost and pitfalls


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_fork_while_the_ledger_is_locked_does_not_hang(ledger: _ledger._Ledger) -> None:
    """The lock of the parent may be held by a thread that the child does not have."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with ledger.lock, _expected_miss._lock:
            held.set()
            release.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    process = multiprocessing.get_context("fork").Process(target=quietly)
    process.start()
    process.join(10)
    release.set()
    thread.join()

    assert process.exitcode == 0


# -- tests of pytest ---------------------------------------------------------------------------------------


def test_a_stop_is_counted_for_each_test(
    in_test: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The report of one call is printed once, and each test that made the call is listed with its count."""
    for name in ("a.py::test_b[(x)]", "a.py::test_c", "a.py::test_c"):
        in_test(name)
        enter(miss(), key="a")

    assert [("a.py::test_b[(x)]", 1), ("a.py::test_c", 2)] == [(each.test, each.count) for each in entries()]
    assert REPORT.format("a") + "\n" == capsys.readouterr().err


def test_a_miss_that_was_expected_in_one_test_stays_in_the_other(in_test: Callable[[str], None]) -> None:
    """What comes out of a block is taken back for its test alone, in the files too."""
    in_test("a.py::test_b")
    enter(miss(), key="a")
    in_test("a.py::test_c")
    with expected_miss():
        error = miss()
        thread = threading.Thread(target=enter, args=(error,), kwargs={"key": "a"})
        _expected_miss._open_blocks[-1]._others = frozenset({thread})
        thread.start()
        thread.join()

        assert ["a.py::test_b", "a.py::test_c"] == [each.test for each in entries()]

        raise error

    assert ["a.py::test_b"] == [each.test for each in entries()]
    assert ["a.py::test_b"] == [each.test for each in read_entries(os.environ[LEDGER_VARIABLE])]
    assert _exit.guard().has_missed


def test_whoever_took_over_sees_what_all_processes_missed(in_test: Callable[[str], None]) -> None:
    """Own stops and those of others stand in one list, and what is new is told without reading it."""
    arm()
    before = _ledger.news()
    in_test("a.py::test_b")
    enter(miss(), key="a")
    enter(miss("c"), key="c", hooks=False)
    after = _ledger.news()
    _ledger_file.append(
        os.environ[LEDGER_VARIABLE], Entry("b", "CassetteMiss", "", {}, 1, (), "", test="a.py::test_b")
    )

    assert ["a", "b"] == [each.key for each in _ledger.all_entries()]
    assert {"a.py::test_b"} == {each.test for each in _ledger.all_entries()}
    assert 3 == len({before, after, _ledger.news()})


def test_a_report_that_a_plugin_shows_is_not_printed_too(
    in_test: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Once somebody took over, what a test missed is theirs to show; outside of tests it is printed."""
    _ledger.take_over()
    enter(miss(), key="a")
    in_test("a.py::test_b")
    enter(miss("b"), key="b")
    _ledger.hand_back()
    enter(miss("c"), key="c")

    assert f"{REPORT.format('a')}\n{REPORT.format('c')}\n" == capsys.readouterr().err


def test_a_reader_reads_each_line_once(tmp_path: Path) -> None:
    """What was taken back since is gone, a line on its way is waited for, and a new file is begun anew."""
    path = str(tmp_path / "ledger.jsonl")
    entries = [Entry(key, "CassetteMiss", key, {}, 1, (), "") for key in "abc"]
    reader = _ledger_file.Reader(path)

    assert () == reader.read()

    _ledger_file.append(path, entries[0])
    _ledger_file.append(path, entries[1])
    assert (entries[0], entries[1]) == reader.read() == reader.read()

    _ledger_file.take_back(path, [entries[0]])
    with open(path, "ab") as file:
        file.write(b'{"pid": 1, "key": "c", "kind": "Cass')
    assert (entries[1],) == reader.read()

    os.unlink(path)
    _ledger_file.append(path, entries[2])
    assert (entries[2],) == reader.read()
