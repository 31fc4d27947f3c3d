"""Tracebacks that do not repeat a report that was printed.

An error that nobody caught is shown by ``sys.excepthook`` and its like. There, a stop whose report was
printed is cut down to its first line.
Nothing here knows what a miss is made of, or who counted it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from ._errors import CassetteStop
from ._exit import existing_guard

__all__ = ["REPORTED", "install_hooks", "members", "stops_in"]

#: Set in the ``__dict__`` of a stop whose report was printed; it travels with a pickled one.
REPORTED = "_reported"


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
