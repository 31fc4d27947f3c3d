"""Child processes: made by fork, watched, killed. Nothing here knows about stores.

A child says on a pipe what it has been told is safe, in words of one length; a write of so few bytes to a
pipe is whole or does not happen, so what arrived before the kill is exactly what was acknowledged.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import pickle
import select
import signal
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from ._trial import Account

__all__ = ["Child", "Doom", "Work", "in_child", "in_children", "kill_left"]

#: Seconds that a child may be silent before the trial is given up.
PATIENCE = 60.0

#: The children of this process that were not waited for yet.
_LIVING: set[int] = set()

#: Does something, and tells what was acknowledged by giving a word to the function that it is given.
Work = Callable[[Callable[[bytes], None]], None]


class Doom(NamedTuple):
    """When a child dies by its own hand.

    Args:
        write: Which of its writes to a file it does not survive, from 1.
        delay: Seconds from just before this write.
    """

    write: int
    delay: float


class Child:
    """A process that works until it is killed or has done.

    Args:
        work: What it does.
        word: Bytes of a word.
        doom: When it dies by its own hand: a timer of the kernel kills it, which falls into a write of some
            microseconds more often than any other process could. (The default action of an alarm is a
            ``SIGKILL`` for every thread.)
    """

    def __init__(self, work: Work, word: int, doom: Doom | None = None) -> None:
        self._word = word
        self._is_doomed = doom is not None
        self._rest = b""
        self.pipe, far_end = os.pipe()
        self.pid = _fork()
        if self.pid == 0:
            os.close(self.pipe)
            _live(lambda: _work(work, far_end, doom))
        os.close(far_end)

    def words(self, at_least: int = 0) -> list[bytes]:
        """Return what was acknowledged since; waits for as many words, or the end of the process.

        Raises:
            RuntimeError: It is stuck, and was killed.
        """
        found: list[bytes] = []
        while len(found) < at_least or select.select([self.pipe], [], [], 0)[0]:
            if not select.select([self.pipe], [], [], PATIENCE)[0]:
                os.kill(self.pid, signal.SIGKILL)
                self._end()
                raise RuntimeError("a child process is stuck")
            data = os.read(self.pipe, 1 << 20)
            if not data:
                break
            data = self._rest + data
            whole = len(data) - len(data) % self._word
            self._rest = data[whole:]
            found += [data[at : at + self._word] for at in range(0, whole, self._word)]
        return found

    def kill(self) -> list[bytes]:
        """End the process at once; return what it acknowledged before."""
        os.kill(self.pid, signal.SIGKILL)
        return self.bury()

    def die(self) -> list[bytes]:
        """Let it die by its own hand where it is to, else kill it; return what it acknowledged before."""
        return self.bury() if self._is_doomed else self.kill()

    def bury(self) -> list[bytes]:
        """Wait for the end of the process; return what it acknowledged before.

        Raises:
            RuntimeError: It failed by itself, or is stuck.
        """
        found = self.words(1 << 62)
        status = self._end()
        if os.WIFEXITED(status) and os.WEXITSTATUS(status):
            raise RuntimeError("a child process failed; see its traceback above")
        return found

    def _end(self) -> int:
        os.close(self.pipe)
        return _wait(self.pid)


def _fork() -> int:
    pid = os.fork()
    if pid:
        _LIVING.add(pid)
    else:
        _LIVING.clear()  # They are no children of this one.
    return pid


def _wait(pid: int) -> int:
    """Wait for the end of a child and return its status."""
    _, status = os.waitpid(pid, 0)
    _LIVING.discard(pid)
    return status


def kill_left() -> None:
    """End all children that a trial has left behind."""
    for pid in list(_LIVING):
        os.kill(pid, signal.SIGKILL)
        _wait(pid)


def _work(work: Work, far_end: int, doom: Doom | None) -> None:
    write = os.write
    if doom is not None:
        left = itertools.count(doom.write - 1, -1)

        def doomed(number: int, data: bytes) -> int:
            if next(left) == 0:
                signal.setitimer(signal.ITIMER_REAL, doom.delay)
            return write(number, data)

        os.write = doomed  # type: ignore[assignment]

    def acknowledge(word: bytes) -> None:
        write(far_end, word)

    work(acknowledge)


def _live(work: Callable[[], object]) -> None:
    """Do something and end this process; never returns."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        with suppress(OSError):
            os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def in_children(
    works: Iterable[Callable[[Account], None]], account: Account, *, patience: float = 10 * PATIENCE
) -> None:
    """Do several things at once, each in a process of its own; add up what they saw.

    Args:
        works: What to do.
        account: Gets what they saw.
        patience: Seconds after which a process that has said nothing is killed, which is a fault.
    """
    running = [(os.pipe(), work) for work in works]
    children = []
    for (near, far), work in running:
        pid = _fork()
        if pid == 0:
            # A lock that is never free is looked for in vain from outside.
            faulthandler.dump_traceback_later(0.9 * patience, file=2)
            _live(lambda work=work, far=far: _tell(work, far))  # type: ignore[misc]  # bound here
        os.close(far)
        children.append((pid, near))
    for pid, near in children:
        with os.fdopen(near, "rb") as pipe:
            data = _read_patiently(pipe.fileno(), pid, patience)
        _wait(pid)
        if data:
            account.add(pickle.loads(data))
        else:
            account.fault("a child process was stuck, or died; see its traceback above")


def _read_patiently(pipe: int, pid: int, patience: float) -> bytes:
    """Read to the end; a process that is silent for too long is killed."""
    pieces: list[bytes] = []
    while select.select([pipe], [], [], patience)[0]:
        piece = os.read(pipe, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
    os.kill(pid, signal.SIGKILL)
    return b""


def in_child(work: Callable[[Account], None], account: Account) -> None:
    """Do something in a process of its own; add what it saw."""
    in_children([work], account)


def _tell(work: Callable[[Account], None], far: int) -> None:
    account = Account()
    try:
        work(account)
    except BaseException:
        account.fault(traceback.format_exc())
    with os.fdopen(far, "wb") as pipe:
        pipe.write(pickle.dumps(account))
