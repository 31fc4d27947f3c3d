"""Make the n-th system call on a cassette fail. For before the package is imported, which binds some by name.

Nothing is imitated: a call that fails does nothing, a short write writes what it says, and what is not aimed
at is really done.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # pragma: no cover  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["CALLS", "FAULTS", "Injector", "Plan"]

#: The calls that may fail, by module and name; those on a descriptor of a cassette, or on its path.
CALLS = ("open", "write", "pread", "ftruncate", "fsync", "fdatasync", "fstat", "stat", "flock")

#: What may happen instead of a call.
FAULTS = ("EIO", "ENOSPC", "EINTR", "short", "Ctrl-C")

_ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR}


class Plan(NamedTuple):
    """What is to fail.

    Args:
        fault: One of ``FAULTS``.
        at: The how-manyth call, from 1; 0 for none.
        lasts: Whether every later call fails too.
    """

    fault: str
    at: int
    lasts: bool


class Injector:
    """Stands before the system calls.

    Args:
        folder: Calls on files below it count, others pass.

    Attributes:
        calls: The names of the calls since the last plan, those that failed in capitals.
        has_come: Whether there was such a call as the last plan is about.
    """

    def __init__(self, folder: str) -> None:
        if "httpx_cassette" in sys.modules:
            raise RuntimeError("the package has bound the system calls already")
        self._folder = folder
        self._numbers: set[int] = set()
        self._plan = Plan("EIO", 0, False)
        self.calls: list[str] = []
        self.has_come = False
        for name in CALLS:
            module: Any = fcntl if name == "flock" else os
            if hasattr(module, name):
                setattr(module, name, self._wrap(name, getattr(module, name)))
        close = os.close

        def forget(number: int) -> None:
            self._numbers.discard(number)
            close(number)

        os.close = forget  # type: ignore[assignment]  # the name of its parameter

    def begin(self, plan: Plan) -> None:
        """Follow a plan from now on."""
        self._plan = plan
        self.calls = []
        self.has_come = False

    def end(self) -> list[str]:
        """Let everything pass; return what was called."""
        self._plan = Plan("EIO", 0, False)
        return self.calls

    def _wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(subject: Any, *arguments: Any, **named: Any) -> Any:
            if not self._is_ours(subject):
                return call(subject, *arguments, **named)
            self.calls.append(name)
            if self._is_due():
                self.has_come = True
                # Other calls have no length that could be cut short.
                if self._plan.fault != "short" or name in ("write", "pread"):
                    self.calls[-1] = name.upper()
                    return self._fail(name, call, subject, *arguments)
            result = call(subject, *arguments, **named)
            if name == "open":
                self._numbers.add(result)
            return result

        return wrapped

    def _is_ours(self, subject: Any) -> bool:
        if isinstance(subject, int):
            return subject in self._numbers
        return isinstance(subject, str) and subject.startswith(self._folder)

    def _is_due(self) -> bool:
        at, count = self._plan.at, len(self.calls)
        return at > 0 and (count >= at if self._plan.lasts else count == at)

    def _fail(self, name: str, call: Callable[..., Any], number: Any, *arguments: Any) -> Any:
        if self._plan.fault == "short":
            return self._cut_short(name, call, number, *arguments)
        if self._plan.fault == "Ctrl-C":
            raise KeyboardInterrupt
        code = _ERRORS[self._plan.fault]
        raise OSError(code, os.strerror(code))

    def _cut_short(self, name: str, call: Callable[..., Any], number: int, what: Any, *rest: int) -> Any:
        if name == "write":
            return call(number, what[: len(what) // 2])
        return call(number, what // 2, *rest)
