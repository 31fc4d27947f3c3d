"""Run a command of the user's as a child process: its variables, its signals, its exit status, its ledger.

What ends is told as a shell tells it: the command's own status, 128 and the number of the signal that ended
it, 127 where there is no such program and 126 where it cannot be run.
The terminal sends Ctrl-C to the command itself, as both are of its foreground group; this process waits for
what the command makes of it. Signals that reach this process alone are passed on, Ctrl-C too where no
terminal can have sent it: from a supervisor, a script, ``kill -INT``.

Nothing here knows what the command is run for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from .._budget import BUDGET_VARIABLE
from .._errors import CassetteError, OptionError
from .._exit import EXIT_STATUS, is_named_for
from .._ledger import LEDGER_VARIABLE, Entry, read_entries
from .._ledger_file import append
from .._mode import MODE_VARIABLE, Mode, resolve_mode

__all__ = ["CannotRun", "Watch", "counted", "run_command", "say", "say_error", "told", "watched"]

#: Sent by the terminal to its whole foreground group, so to the command as well.
_OF_TERMINAL = ("SIGINT", "SIGQUIT")

#: Sent by whoever wants the command to end, who knows this process alone.
_PASSED_ON = ("SIGTERM", "SIGHUP")


class CannotRun(CassetteError):
    """A command that was not run.

    Args:
        program: Its first word.
        error: Why.

    Attributes:
        status: The exit status that a shell gives then.
    """

    def __init__(self, program: str, error: OSError) -> None:
        super().__init__(f"{program} cannot be run: {error.strerror}")
        self.status = 127 if isinstance(error, FileNotFoundError) else 126


def run_command(command: Sequence[str], variables: Mapping[str, str]) -> int:
    """Run a command to its end and return its exit status.

    Args:
        command: A program and its arguments.
        variables: What is set for it beside the environment of this process.

    Raises:
        CannotRun: There is no such program, or it cannot be run.
    """
    child: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if child is None:
            early.append(number)
        else:
            child.send_signal(number)

    def pass_on_alone(number: int, frame: FrameType | None) -> None:
        if not _is_in_foreground():  # Otherwise the command had it too.
            pass_on(number, frame)

    with _handling({**dict.fromkeys(_OF_TERMINAL, pass_on_alone), **dict.fromkeys(_PASSED_ON, pass_on)}):
        try:
            child = subprocess.Popen(command, env={**os.environ, **variables})
        except OSError as error:
            raise CannotRun(command[0], error) from error
        for number in early:
            child.send_signal(number)
        status = _wait(child)
    return status if status >= 0 else 128 - status


def _wait(child: subprocess.Popen[bytes]) -> int:
    # Not in one piece: a signal that comes just before the wait begins would be passed on when it ends.
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=1)


def _is_in_foreground() -> bool:
    """Whether the terminal sends its signals to the group of this process."""
    if not hasattr(os, "tcgetpgrp"):  # pragma: no cover  # Windows sends Ctrl-C to all of a console.
        return True
    try:
        # Not a standard stream: each may be a pipe or a file.
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # pragma: no cover  # It was hung up in between.
        return False
    finally:
        os.close(terminal)


@contextmanager
def _handling(handlers: Mapping[str, object]) -> Iterator[None]:
    """Handle signals by name as told; those that this process was started to ignore stay ignored.

    A handler, not ``SIG_IGN``, which the command would inherit.
    """
    before = {}
    for name, handler in handlers.items():
        number = getattr(signal, name, None)  # Windows has some of them only.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)  # type: ignore[arg-type]  # all are of one kind
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# -- what the processes of a command leave -------------------------------------------------------------


@dataclass(frozen=True)
class Watch:
    """What the processes of a command share.

    Args:
        folder: For files that are gone when the command has ended.
        budget: Where they count the real calls that they make.
        mode: The mode that they run in, where the code gives none.
    """

    folder: Path
    budget: str
    mode: Mode

    def run(self, command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, tuple[Entry, ...]]:
        """Run a command; return its exit status, and the calls that were stopped in any of its processes.

        Args:
            command: A program and its arguments.
            variables: What is set for it beside what they share.

        Raises:
            CannotRun: There is no such program, or it cannot be run.
        """
        ledger = str(self.folder / "ledger.jsonl")
        shared = {MODE_VARIABLE: self.mode.value, LEDGER_VARIABLE: ledger, BUDGET_VARIABLE: self.budget}
        status = run_command(command, {**shared, **variables})
        stopped = read_entries(ledger)
        outer = os.environ.get(LEDGER_VARIABLE, "")
        if not is_named_for(outer, os.getpid()):
            # Who runs this learns of it too, whatever becomes of the status on the way.
            with suppress(OSError):
                for entry in stopped:
                    append(outer, entry)
        return status, stopped


@contextmanager
def watched(mode: str, option: str) -> Iterator[Watch]:
    """Give what the processes of a command share; it is gone when the block is left.

    Args:
        mode: The mode that is asked for.
        option: The words that ask for it.

    Raises:
        OptionError: There is no such mode, or the ceiling forbids it.
        CassetteError: There is no folder for temporary files.
    """
    asked = resolve_mode(mode, {})
    if resolve_mode(asked, os.environ) is not asked:
        raise OptionError(
            f"{MODE_VARIABLE}=replay is a ceiling, and {option} would make real calls; unset it first"
        )
    try:
        # What is still written by a process that outlives the command must not come back: so a folder.
        made = tempfile.TemporaryDirectory(prefix="httpx-cassette-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CassetteError(f"there is no folder for temporary files: {error.strerror}") from error
    with made as folder:
        # A limit that is in force already stays so, with what was counted for it.
        budget = os.environ.get(BUDGET_VARIABLE) or os.path.join(folder, "budget")
        yield Watch(Path(folder), os.path.abspath(budget), asked)


def told(status: int, stopped: Sequence[Entry], *, names_misses: bool) -> int:
    """Say which calls were stopped, if any; return the exit status that comes of it.

    Args:
        status: The command's own.
        stopped: What its processes left.
        names_misses: Whether a call without a recording was stopped for that reason, and no other.
    """
    if not stopped:
        return status
    calls = {(entry.kind, entry.key) for entry in stopped}
    missed = sum(names_misses and kind == "CassetteMiss" for kind, _ in calls)
    said = [f"{counted(missed, 'call')} missed"] if missed else []
    if others := len(calls) - missed:
        said.append(f"{others} stopped otherwise" if said else f"{counted(others, 'call')} stopped")
    where = counted(len({entry.pid for entry in stopped}), "process", "es")
    own = "" if status == EXIT_STATUS else f" (the command ended with {status})"
    say(f"httpx-cassette: {' and '.join(said)}, in {where}, so the exit status is {EXIT_STATUS}{own}")
    return EXIT_STATUS


def counted(number: int, what: str, plural: str = "s") -> str:
    """Return a number and what it counts."""
    return f"{number:,} {what}{'' if number == 1 else plural}"


def say(text: str) -> None:
    """Write a line or more to stderr, if there is one that takes it: nothing that is said changes a status.

    It may quote a file, or what a server said: all but line ends is escaped that cannot be seen.
    """
    from .._excerpt import escape_lines  # Most runs have nothing to say.

    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(escape_lines(text), file=sys.stderr, flush=True)


def say_error(text: str) -> None:
    """Say what could not be done, in one line."""
    from .._excerpt import escape

    say(f"Error: {escape(text)}")
