"""How many real calls a process makes, or all that share a file: never one more than the limit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from httpx_cassette import CallLimitReached, _budget, _ledger
from httpx_cassette._call import LiveHead
from httpx_cassette._errors import CassetteError
from httpx_cassette._flow import exchange

from .colours import URL, chat
from .test_flow import JSON, ME, asked, session, tell

FINGERPRINT = "9f2c" * 16


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with a process that made no call."""
    monkeypatch.setattr(_budget, "_made", 0)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Share a file with other processes."""
    path = tmp_path / "budget"
    monkeypatch.setenv("HTTPX_CASSETTE_BUDGET", str(path))
    return path


def test_a_process_counts_for_itself() -> None:
    """The limit is what is made in all, not at each look; without one all is counted and nothing refused."""
    assert [True, True, False, False] == [_budget.take(2) for _ in range(4)]
    assert [True, False, True] == [_budget.take(limit) for limit in (None, 3, 4)]


def test_a_file_is_counted_in_by_all(shared: Path) -> None:
    """What others wrote counts, a refused call leaves no line, and the lines name the calls."""
    shared.write_text(f"{FINGERPRINT}\n" * 2)

    assert [True, False, False] == [_budget.take(3) for _ in range(3)]
    assert f"{FINGERPRINT}\n{FINGERPRINT}\n{'0' * 64}\n" == shared.read_text()
    assert [FINGERPRINT, FINGERPRINT, "0" * 64] == _budget.calls_made(str(shared))
    assert ["0" * 64] == _budget.calls_made(str(shared), 130)


def test_no_file_counts_nothing(tmp_path: Path) -> None:
    """A command that made no call has left no file."""
    assert [] == _budget.calls_made(str(tmp_path / "budget"))


def test_a_limit_of_none_still_leaves_lines(shared: Path) -> None:
    """Whoever named the file wants to know what was called."""
    assert _budget.take(None, FINGERPRINT)
    assert [FINGERPRINT] == _budget.calls_made(str(shared))


def test_processes_and_threads_never_make_one_more(shared: Path) -> None:
    """Four processes of four threads that want 50 calls each make 99 together, no more and no less."""
    program = """
import threading
from httpx_cassette import _budget
made = []
def call():
    for _ in range(50):
        if _budget.take(99):
            made.append(1)
threads = [threading.Thread(target=call) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(len(made))
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    made = [int(process.communicate(timeout=60)[0]) for process in processes]

    assert 99 == sum(made)
    assert 99 * 65 == shared.stat().st_size


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent/budget", "its folder does not exist"),
        (".", "Is a directory"),
        (os.devnull, "the path is no regular file; name one, such as chat.jsonl"),
    ],
    ids=["no-folder", "folder", "device"],
)
def test_a_file_that_cannot_be_counted_in_stops_the_call(
    name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows how many calls there were, so none more is made, and no ``except`` hides that."""
    path = str(tmp_path / name)
    monkeypatch.setenv("HTTPX_CASSETTE_BUDGET", path)
    where = session(tmp_path / "chat.jsonl", mode="record")
    with pytest.raises(CallLimitReached) as caught:
        tell(exchange(asked(), where, ME))

    assert (
        f"POST {URL} was not called, because real calls cannot be counted in "
        f"HTTPX_CASSETTE_BUDGET={path!r}: {reason}"
    ) == str(caught.value)
    assert (0, URL) == (caught.value.limit, caught.value.url)
    assert (0, 1) == (where.stats.live, len(_ledger.entries()))


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Whoever asks what was called is not told that nothing was."""
    with pytest.raises(CassetteError) as caught:
        _budget.calls_made(str(tmp_path))

    assert (
        f"real calls cannot be counted in HTTPX_CASSETTE_BUDGET={str(tmp_path)!r}: "
        "the path is no regular file; name one, such as chat.jsonl"
    ) == str(caught.value)


def test_the_line_of_a_call_is_its_fingerprint(shared: Path, tmp_path: Path) -> None:
    """A recording names its call; a live one has no fingerprint; what was replayed is not counted."""
    recording, live = session(tmp_path / "a.jsonl", mode="record"), session(tmp_path / "a.jsonl", mode="live")
    _, forwarded = tell(exchange(asked(chat("one")), recording, ME), LiveHead(200, JSON))
    forwarded.sink.feed(b'{"choices": []}')
    forwarded.sink.end().run()
    tell(exchange(asked(chat("one")), recording, ME))
    tell(exchange(asked(), live, ME), LiveHead(200, JSON))

    assert [forwarded.served.fingerprint, "0" * 64] == _budget.calls_made(str(shared))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_goes_on_counting_from_its_parent() -> None:
    """No lock is held by a thread that is not there, and what the parent made counts."""
    _budget.take(2)
    with _budget._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover  # it ends without a word
            status = 1
            try:
                status = 0 if [True, False] == [_budget.take(2), _budget.take(2)] else 1
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)

    assert 0 == status


def test_a_child_has_a_lock_of_its_own() -> None:
    """The same in this process, where it can be seen."""
    before = _budget._lock
    _budget._after_fork()

    assert before is not _budget._lock
    assert isinstance(_budget._lock, type(threading.RLock()))
