"""Blocks in which a call is expected to miss: which block a miss belongs to, and what a block hides.

A miss belongs to one block, or to none, and is then as loud as ever:

- to the innermost open block of its context, which tasks and ``asyncio.to_thread`` copy;
- a thread inherits no context: where there is no block in its own, to the last of those that were open when
  the thread was started. A task or a thread that was there before is somebody else's, but for the thread that
  opened the block in synchronous code: whatever it runs, it runs within the block. (The fixture of an async
  test is such code, and the task of the test may be older than the fixture.)
- in a process of its own, to the last of those that were open when the process was started: it finds their
  names in ``HTTPX_CASSETTE_EXPECTING``;
- raised out of a block, to that block, unless it was missed before the block opened: Python links what is
  raised while another error is handled to that error.

Nothing here knows what the ledger does with its entries.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_ITERABLE_COROUTINE
from types import FrameType, TracebackType
from typing import Protocol

from ._errors import CassetteMiss, CassetteStop
from ._exit import BLOCKS_VARIABLE, STARTED_IN
from ._hooks import members, stops_in
from ._ledger_file import Entry

__all__ = ["BLOCKS_VARIABLE", "ExpectedMiss", "claim", "is_in_coroutine", "started_in"]

_COROUTINE = CO_ASYNC_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE

#: Set in the ``__dict__`` of a miss: when it was missed, by a clock that all processes share. It travels with
#: a pickled one.
_MISSED_AT = "_missed_at"

_NO_MISS = (
    "expected_miss: no call missed in this block: each was answered from a cassette, or none was made;"
    " remove the block, or check that the call reaches the transport"
)


class Book(Protocol):
    """What a block asks of the ledger."""

    def mark(self) -> int:
        """Where the file of child processes ends now."""

    def withdraw(self, miss: CassetteMiss, mark: int) -> None:
        """Take one entry of ``miss`` back, if it was entered; one of a child, if that was since ``mark``."""

    def withdraw_children(self, mark: int, is_expected: Callable[[Entry], bool]) -> list[Entry]:
        """Take back, and give, those misses of child processes since ``mark`` that are expected."""


class ExpectedMiss:
    """What ``expected_miss()`` gives: the misses of the block, once there are any."""

    __slots__ = ("_book", "_errors", "_is_open", "_mark", "_name", "_opened_at", "_others", "_outer")

    def __init__(self, book: Book) -> None:
        self._book = book
        self._errors: list[CassetteMiss] = []
        self._is_open = False
        self._mark = 0
        self._name = os.urandom(8).hex()
        self._opened_at = 0
        self._outer: ExpectedMiss | None = None
        # Threads whose calls are somebody else's. Not their numbers, which the next thread may get.
        self._others: frozenset[threading.Thread] = frozenset()

    @property
    def errors(self) -> tuple[CassetteMiss, ...]:
        """Every miss of the block."""
        return tuple(self._errors)

    @property
    def error(self) -> CassetteMiss:
        """The first miss of the block.

        Raises:
            AttributeError: No call has missed yet.
        """
        if not self._errors:
            raise AttributeError("no call has missed in this expected_miss block yet")
        return self._errors[0]

    @property
    def fingerprint(self) -> str:
        """The key of the call that missed."""
        return self.error.fingerprint

    @property
    def changed(self) -> tuple[str, ...]:
        """The paths at which the call differs from the nearest recording."""
        return self.error.changed

    def __enter__(self) -> ExpectedMiss:
        self._outer = _current.get()
        self._mark = self._book.mark()
        self._opened_at = time.perf_counter_ns()
        own = set() if is_in_coroutine() else {threading.current_thread()}
        self._others = frozenset(threading.enumerate()) - own
        self._is_open = True
        with _lock:
            _open_blocks.append(self)
            _name_blocks([*_named_blocks(), self._name])
        _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool:
        is_forked = not self._is_open
        self._close()
        if is_forked:  # the block is the parent's, and so is what was missed in it
            return False
        for stop in stops_in(value):
            if isinstance(stop, CassetteMiss) and self._is_since(stop):
                self._take(stop)
        self._take_from_children()
        if value is None and not self._errors:
            raise AssertionError(_NO_MISS)
        return value is not None and self._is_nothing_but_a_miss(value)

    def _close(self) -> None:
        self._is_open = False
        self._others = frozenset()
        _current.set(self._outer)
        with _lock:
            with suppress(ValueError):  # in a forked child it is gone already
                _open_blocks.remove(self)
            _name_blocks([name for name in _named_blocks() if name != self._name])

    def _is_since(self, miss: CassetteMiss) -> bool:
        """Whether a miss is one of the time since the block was opened, or was never entered at all."""
        missed_at = miss.__dict__.get(_MISSED_AT)
        return missed_at is None or missed_at > self._opened_at

    def _take(self, miss: CassetteMiss) -> None:
        """Have a miss that was raised here, also one that was entered, or given to another block."""
        with _lock:
            for block in _open_blocks:
                block._errors = [other for other in block._errors if other is not miss]
            if not self._has(miss):
                self._errors.append(miss)
        self._book.withdraw(miss, self._mark)

    def _has(self, error: BaseException) -> bool:
        return any(error is miss for miss in self._errors)

    def _take_from_children(self) -> None:
        for entry in self._book.withdraw_children(self._mark, self._is_expected):
            self._errors.append(CassetteMiss(entry.report, dict(entry.facts)))

    def _is_expected(self, entry: Entry) -> bool:
        """Whether this block, just closed, is the last one that the process of ``entry`` was started in."""
        with _lock:
            names = {self._name, *(block._name for block in _open_blocks)}
        return [name for name in entry.started_in if name in names][-1:] == [self._name]

    def _is_nothing_but_a_miss(self, error: BaseException, depth: int = 0) -> bool:
        # Not by ``__context__``: an assertion that fails while a miss is handled must not be hidden.
        if isinstance(error, CassetteMiss):
            return self._has(error)
        inner = members(error) or (error.__cause__,)
        # The depth ends a chain of causes that bites its tail.
        return depth < 100 and all(
            each is not None and self._is_nothing_but_a_miss(each, depth + 1) for each in inner
        )


#: Of all threads; the one opened last is the last.
_open_blocks: list[ExpectedMiss] = []

#: Re-entrant: a finaliser may make a call while a block closes.
_lock = threading.RLock()

#: The innermost block of this task or thread.
_current: ContextVar[ExpectedMiss | None] = ContextVar("httpx_cassette_expected_miss", default=None)


def is_in_coroutine() -> bool:
    """Whether a coroutine stands on the stack: one that may let others run while its block is open."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_flags & _COROUTINE:
            return True
        frame = frame.f_back
    return False


def _named_blocks() -> list[str]:
    return os.environ.get(BLOCKS_VARIABLE, "").split()


def _name_blocks(names: list[str]) -> None:
    if names:
        os.environ[BLOCKS_VARIABLE] = " ".join(names)
    else:
        os.environ.pop(BLOCKS_VARIABLE, None)


#: What ``started_in`` gives.
_started_in = STARTED_IN


def started_in() -> tuple[str, ...]:
    """The names of the blocks that were open when this process was started, the last one at the end."""
    return _started_in


def claim(stop: CassetteStop) -> bool:
    """Give a miss to the block that expects it, and say whether there was one."""
    if not isinstance(stop, CassetteMiss):
        return False
    stop.__dict__[_MISSED_AT] = time.perf_counter_ns()
    block = _current.get()
    while block is not None and not block._is_open:
        block = block._outer
    with _lock:
        block = block or _block_of_thread()
        if block is not None:
            block._errors.append(stop)
    return block is not None


def _block_of_thread() -> ExpectedMiss | None:
    """The last of the blocks that were open when the current thread was started, or that it opened."""
    thread = threading.current_thread()
    # Another module than ``threading`` started a dummy, and nobody knows when.
    blocks = () if isinstance(thread, threading._DummyThread) else reversed(_open_blocks)
    return next((block for block in blocks if thread not in block._others), None)


def _begin_as_child() -> None:
    """After a fork: the blocks are the parent's, which looks for the misses of its children itself."""
    global _lock, _started_in
    _lock = threading.RLock()
    _started_in += tuple(block._name for block in _open_blocks)
    for block in _open_blocks:
        block._is_open = False
    _open_blocks.clear()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
    os.register_at_fork(after_in_child=_begin_as_child)
