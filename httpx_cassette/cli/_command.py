"""Run a command of the user's as a child process: its variables, its signals, its exit status.

What ends is told as a shell tells it: the command's own status, 128 and the number of the signal that ended
it, 127 where there is no such program and 126 where it cannot be run.
The terminal sends Ctrl-C to the command itself, as both are of one process group; this process waits for
what the command makes of it. Signals that reach this process alone are passed on.

Nothing here knows what the command is run for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

from .._errors import CassetteError

__all__ = ["CannotRun", "run_command", "say"]

#: Sent by the terminal to the command as well.
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

    def leave(number: int, frame: FrameType | None) -> None:
        """Do nothing: the command had it too."""

    with _handling({**dict.fromkeys(_OF_TERMINAL, leave), **dict.fromkeys(_PASSED_ON, pass_on)}):
        try:
            child = subprocess.Popen(command, env={**os.environ, **variables})
        except OSError as error:
            raise CannotRun(command[0], error) from error
        for number in early:
            child.send_signal(number)
        status = child.wait()
    return status if status >= 0 else 128 - status


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


def say(text: str) -> None:
    """Write a line to stderr, if there is one that takes it: nothing that is said changes a status."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)
