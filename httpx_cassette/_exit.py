"""The exit status 2.

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

Child processes report to their outermost parent: through a file, whose path they inherit in a variable. The
outermost process makes the path up, reads the file at its end and deletes it; nobody makes the file before
something was missed.

Nothing here knows what a miss is made of, or who counted it; and next to nothing is imported, as every
process that imports the package does this much, at once. All else of the ledger comes with the first
transport. The two ideas are in one module because pytest's way to import takes a tenth of a millisecond for
each, in every run on the machine.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable

__all__ = [
    "BLOCKS_VARIABLE",
    "EXIT_STATUS",
    "LEDGER_VARIABLE",
    "STARTED_IN",
    "ExitGuard",
    "arm",
    "existing_guard",
    "guard",
    "is_named_for",
    "new_path",
]

#: The status of a process in which a call was stopped.
EXIT_STATUS = 2

#: Names the file in which child processes leave their entries.
LEDGER_VARIABLE = "HTTPX_CASSETTE_LEDGER"

#: Names the ``expected_miss`` blocks that are open, the one opened last at the end.
BLOCKS_VARIABLE = "HTTPX_CASSETTE_EXPECTING"

#: Those in which this process was started. Later the variable names its own.
STARTED_IN = tuple(os.environ.get(BLOCKS_VARIABLE, "").split())

#: A ledger named for its owner; see ``is_named_for``.
_PREFIX = "httpx-cassette-"

#: Where the guard lives in ``sys``; the module docstring says why it begins with one underscore.
_NAME = "_httpx_cassette_exit_guard"


class ExitGuard:
    """Ends the process with status 2 at the very end, if a call was stopped in it or in a child.

    Attributes:
        pid: The process it speaks for; in any other one (a fork that Python did not see) it does nothing.
        has_missed: Whether a call was stopped in this process.
        ledger: The file in which child processes left theirs; only its owner has one, and deletes it.
        named: The file that children are told of, whoever owns it: a test may clear the environment.
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
        "named",
        "pid",
        "previous",
        "stands_down",
        "unseen",
    )

    def __init__(self, previous: object = None) -> None:
        self.pid = os.getpid()
        self.has_missed = False
        self.ledger: str | None = None
        self.named: str | None = None
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

    def begin_as_child(self) -> None:
        """After a fork: what was missed before is the parent's to tell, and so is the file."""
        self.pid = self._getpid()
        self.has_missed = False
        self.ledger = None
        self.unseen.clear()

    def __del__(self) -> None:
        # Not when somebody deletes the attribute, nor when a sub-interpreter ends.
        if self._is_finalizing():
            self.finish()

    def finish(self) -> None:
        """Read what child processes left, and end the process if any call was stopped."""
        if self._getpid() != self.pid:
            return
        own, children = self._count_entries()
        if self.stands_down or not (self.has_missed or own or children):
            return
        # Left by another program that this process was before.
        if own and not self.has_missed:
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

    def _count_entries(self) -> tuple[int, int]:
        """Delete the file, and count what was stopped, here and in children; there each key counts once."""
        if self.ledger is None:
            return 0, 0
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
        stopped = [head for head, count in left.items() if count > 0]
        others = [head for head in stopped if not head.startswith(b'{"pid": %d, ' % self.pid)]
        # A key counts once, whichever test it was.
        children = len({head.partition(b', "test": ')[0].partition(b", ")[2] for head in others})
        # Another copy of this module speaks for itself.
        own = len(stopped) - len(others) if self.previous is None else 0
        return own, children

    def _say(self, text: str, stream: str = "stderr") -> None:
        try:
            self._system[stream].write(text)
            self._system[stream].flush()
        except Exception:  # None, closed, a broken pipe: there is nobody left to tell
            pass


def existing_guard() -> ExitGuard | None:
    """The guard of this process, if there is one."""
    found = getattr(sys, _NAME, None)
    if not isinstance(found, ExitGuard):
        return None
    # Asked here, and not told by the fork: what a hook of it holds outlives all garbage collections but one,
    # and every process that imports the package would take longer to end.
    if found.pid != os.getpid():
        found.begin_as_child()
    return found


def guard() -> ExitGuard:
    """The guard of this process; the first call makes it."""
    found = existing_guard()
    if found is None:
        found = ExitGuard(getattr(sys, _NAME, None))
        setattr(sys, _NAME, found)
        if sys.implementation.name != "cpython":
            # Elsewhere finalisers do not run at exit; this may skip handlers registered earlier.
            atexit.register(found.finish)
    return found


def arm() -> str | None:
    """Have child processes that are started from now on report to this one, or to its own ancestor.

    Returns:
        The path of the file; ``None`` where there is no folder for it, and children report to nobody.
    """
    found = guard()
    path = os.environ.get(LEDGER_VARIABLE) or found.named
    if not path:
        try:
            path = new_path()
        except OSError:
            return None
    os.environ[LEDGER_VARIABLE] = found.named = path
    if is_named_for(path, os.getpid()):
        found.ledger = path
    return path


def new_path() -> str:
    """A path that does not exist, named for this process and not to be guessed by another user.

    Raises:
        OSError: There is no usable folder for temporary files.
    """
    return os.path.join(_folder(), f"{_PREFIX}{os.getpid()}-{os.urandom(16).hex()}.jsonl")


def _folder() -> str:
    """Return a folder for temporary files.

    ``tempfile`` writes a file to find out, which takes longer than all else that the package does at import:
    so it is asked only where the usual folder will not do.

    Raises:
        OSError: There is none.
    """
    if known := getattr(sys.modules.get("tempfile"), "tempdir", None):
        return os.fsdecode(known)
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    usual = next(filter(None, named), "/tmp")
    is_usable = os.path.isdir(usual) and os.access(usual, os.R_OK | os.W_OK | os.X_OK)
    if os.name == "posix" and os.path.isabs(usual) and is_usable:
        # What has no room for a file, or for what would stand in it: tempfile knows others.
        room = os.statvfs(usual)
        if room.f_bavail and (room.f_favail or not room.f_files):
            return usual
    import tempfile

    return tempfile.gettempdir()


def is_named_for(path: str, pid: int) -> bool:
    """Whether the process ``pid`` made this path up: after ``exec`` the name is all that is left of it."""
    return os.path.basename(path).startswith(f"{_PREFIX}{pid}-")
