"""The exit status 2, and tracebacks that do not repeat a report.

No exception class reaches an exit status in every context: a thread, an unread future, a task that nobody
awaits, ``except BaseException`` and ``sys.exit(0)`` all lose it.
So the status is set when the interpreter ends, by an object that is held as an attribute of ``sys`` and
whose finaliser ends the process:

- CPython clears the dictionary of ``sys`` after every ``atexit`` handler has run, the streams are flushed
  and the other modules are gone, so coverage and logging keep their data.
  ``os._exit`` in an ``atexit`` handler would skip the handlers that were registered earlier.
- Names that begin with one underscore are cleared first: the streams are still there.
- Nothing else may hold the object, or it would outlive ``sys``: it is looked up there each time.
- Modules are torn down by then: the finaliser uses only its own attributes and builtins.

What is lost: handlers that C code registered with ``atexit(3)``, and the buffers of C's stdio.

Nothing here knows what a miss is made of, or who counted it.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from ._errors import CassetteStop

__all__ = ["EXIT_STATUS", "ExitGuard", "existing_guard", "guard", "install_hooks", "members", "stops_in"]

#: The status of a process in which a call was stopped.
EXIT_STATUS = 2

#: Where the guard lives in ``sys``; the module docstring says why it begins with one underscore.
_NAME = "_httpx_cassette_exit_guard"

#: Set in the ``__dict__`` of a stop whose report was printed; it travels with a pickled one.
REPORTED = "_reported"


class ExitGuard:
    """Ends the process with status 2 at the very end, if a call was stopped in it or in a child.

    Attributes:
        pid: The process it speaks for; in any other one (a fork that Python did not see) it does nothing.
        has_missed: Whether a call was stopped in this process.
        missed_before: Whether one was stopped in another program that the process ran before, and that
            replaced itself by this one.
        ledger: The file in which child processes left theirs; only its owner has one, and deletes it.
        stands_down: Whether somebody else turns the ledger into an exit status.
        unseen: Reports, by kind and key, that are written at the end, as they went to something else than
            the stderr of the process: pytest captures them, and drops those of a test that passes.
    """

    __slots__ = (
        "_calls",
        "_end",
        "_flags",
        "_getpid",
        "_is_finalizing",
        "_status",
        "_system",
        "has_missed",
        "ledger",
        "missed_before",
        "pid",
        "previous",
        "stands_down",
        "unseen",
    )

    def __init__(self, previous: object = None) -> None:
        self.pid = os.getpid()
        self.has_missed = False
        self.missed_before = False
        self.ledger: str | None = None
        self.stands_down = False
        self.unseen: dict[tuple[str, str], str] = {}
        # The guard of another copy of this module (a test that imports it anew): it ends with this one.
        self.previous = previous
        self._system = sys.__dict__
        self._is_finalizing = sys.is_finalizing
        self._end: Callable[[int], object] = os._exit
        self._status = EXIT_STATUS
        self._getpid = os.getpid
        self._flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)
        self._calls = (os.open, os.read, os.close, os.unlink)

    def __del__(self) -> None:
        # Not when somebody deletes the attribute, nor when a sub-interpreter ends.
        if self._is_finalizing():
            self.finish()

    def finish(self) -> None:
        """Read what child processes left, and end the process if any call was stopped."""
        if self._getpid() != self.pid:
            return
        children = self._count_children()
        if self.stands_down or not (self.has_missed or self.missed_before or children):
            return
        if self.missed_before:
            self._say("httpx_cassette: a call was stopped before this program took the process over")
            self._say(" (exec), so the exit status is 2\n")
        if children:
            number = "1 miss" if children == 1 else f"{children} different misses"
            self._say(f"httpx_cassette: child processes had {number}, so the exit status is 2\n")
        if self.unseen:
            self._say("httpx_cassette: the exit status is 2; reported while stderr was redirected:\n")
        for report in self.unseen.values():
            self._say(f"{report}\n")
        if self.unseen:
            self._say("  a miss that is meant is taken back by: with httpx_cassette.expected_miss():\n")
        self._say("", "stdout")
        self._say("", "stderr")
        self._end(self._status)

    def _count_children(self) -> int:
        """Delete the file, and count what was stopped in children: for all of them, each key once."""
        if self.ledger is None:
            return 0
        open_file, read, close, unlink = self._calls
        parts = []
        try:
            file = open_file(self.ledger, self._flags)
            while part := read(file, 1 << 20):
                parts.append(part)
            close(file)
            unlink(self.ledger)
        except OSError:
            # No file: nobody has missed. A file that cannot be deleted has been read all the same.
            pass
        left: dict[bytes, int] = {}
        for line in b"".join(parts).split(b"\n"):
            if line[:1] == b"{":
                head = line.partition(b', "report": ')[0]
                left[head] = left.get(head, 0) + 1
            elif line[:1] == b"-":
                head = line[1:-1]
                left[head] = left.get(head, 0) - 1
        own = b'{"pid": %d, ' % self.pid
        others = [head for head, count in left.items() if count > 0 and not head.startswith(own)]
        # A key counts once, whichever test it was.
        return len({head.partition(b', "test": ')[0].partition(b", ")[2] for head in others})

    def _say(self, text: str, stream: str = "stderr") -> None:
        try:
            self._system[stream].write(text)
            self._system[stream].flush()
        except Exception:  # None, closed, a broken pipe: there is nobody left to tell
            pass


def existing_guard() -> ExitGuard | None:
    """The guard of this interpreter, if there is one."""
    found = getattr(sys, _NAME, None)
    return found if isinstance(found, ExitGuard) else None


def guard() -> ExitGuard:
    """The guard of this interpreter; the first call makes it."""
    found = existing_guard()
    if found is None:
        found = ExitGuard(getattr(sys, _NAME, None))
        setattr(sys, _NAME, found)
        if sys.implementation.name != "cpython":
            # Elsewhere finalisers do not run at exit; this may skip handlers registered earlier.
            atexit.register(found.finish)
    return found


def install_hooks() -> None:
    """Wrap the hooks that print tracebacks, so that a printed report is not repeated.

    They are ``sys.excepthook``, ``sys.unraisablehook`` and ``threading.excepthook``.
    A hook that is not the interpreter's own is called with what it would have been called with.
    """
    hook, unraisable_hook, thread_hook = sys.excepthook, sys.unraisablehook, threading.excepthook
    is_finalizing = sys.is_finalizing
    # On Python 3.10 anyio brings a backport that puts its own hook in place: the interpreter's, with groups.
    is_backport = str(getattr(hook, "__module__", "")).startswith("exceptiongroup.")
    is_plain = is_backport or hook is sys.__excepthook__

    def in_main(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        if _is_the_end(value) and (own := existing_guard()):
            # A shell tells Ctrl-C from a failure by the signal that the interpreter now ends with.
            own.stands_down = True
        with _shortened(value, is_plain):
            hook(kind, value, trace)

    def in_finaliser(args: sys.UnraisableHookArgs) -> None:
        if is_finalizing():  # the names of this module may be gone
            unraisable_hook(args)
            return
        with _shortened(args.exc_value, unraisable_hook is sys.__unraisablehook__):
            unraisable_hook(args)

    def in_thread(args: threading.ExceptHookArgs) -> None:
        with _shortened(args.exc_value, thread_hook is threading.__excepthook__):
            thread_hook(args)

    sys.excepthook = in_main
    sys.unraisablehook = in_finaliser
    threading.excepthook = in_thread


def stops_in(error: BaseException | None) -> Iterator[CassetteStop]:
    """Every ``CassetteStop`` that ``error`` is, was caused by, was raised after, or is a group of."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        error = waiting.pop()
        if error is None or id(error) in seen:
            continue
        seen.add(id(error))
        if isinstance(error, CassetteStop):
            yield error
        waiting += (error.__context__, error.__cause__, *members(error))


def members(error: BaseException) -> tuple[BaseException, ...]:
    """The members of an exception group: told by shape, as Python 3.10 has only a backport."""
    found = getattr(error, "exceptions", ())
    is_group = isinstance(found, tuple) and all(isinstance(member, BaseException) for member in found)
    return found if is_group else ()


def _is_the_end(error: BaseException) -> bool:
    """Whether the interpreter shows an interrupt that nobody caught, and ends.

    It keeps such an error in ``sys``, which those do not who call the hook themselves, and go on: a crash
    reporter, or the ``except`` round an event loop. A prompt keeps it too, and has ``sys.ps1``.
    """
    is_uncaught = isinstance(error, KeyboardInterrupt) and error is getattr(sys, "last_value", None)
    return is_uncaught and not hasattr(sys, "ps1")


@contextmanager
def _shortened(error: BaseException | None, is_wanted: bool) -> Iterator[None]:
    """Cut the printed reports in ``error`` down to their first line within the block."""
    stops = [stop for stop in stops_in(error) if is_wanted and REPORTED in stop.__dict__]
    reports = [stop.message for stop in stops]
    for stop in stops:
        stop.message = f"{stop.message.partition(chr(10))[0]} (the report stands above)"
    try:
        yield
    finally:
        for stop, report in zip(stops, reports, strict=True):
            stop.message = report
