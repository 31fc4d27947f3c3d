"""Blocks in which a call is expected to miss: which block a miss belongs to, and what a block hides.

A miss belongs to the innermost open block of its task or thread, else to the one that was opened last: a
thread does not inherit the context of the one that started it.
Nothing here knows what the ledger does with its entries.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from contextvars import ContextVar
from types import TracebackType
from typing import Protocol

from ._errors import CassetteMiss, CassetteStop
from ._exit import members, stops_in
from ._ledger_file import Entry

__all__ = ["ExpectedMiss", "claim"]

_NO_MISS = (
    "expected_miss: no call missed in this block: each was answered from a cassette, or none was made;"
    " remove the block, or check that the call reaches the transport"
)


class Book(Protocol):
    """What a block asks of the ledger."""

    def mark(self) -> int:
        """Where the file of child processes ends now."""

    def withdraw(self, miss: CassetteMiss) -> None:
        """Take one entry of ``miss`` back, if it was entered."""

    def withdraw_children(self, mark: int) -> list[Entry]:
        """Take back, and give, what child processes missed since ``mark``."""


class ExpectedMiss:
    """What ``expected_miss()`` gives: the misses of the block, once there are any."""

    __slots__ = ("_book", "_errors", "_is_open", "_mark", "_outer")

    def __init__(self, book: Book) -> None:
        self._book = book
        self._errors: list[CassetteMiss] = []
        self._is_open = False
        self._mark = 0
        self._outer: ExpectedMiss | None = None

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
        self._is_open = True
        _open_blocks.append(self)
        _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._close()
        for stop in stops_in(value):
            if isinstance(stop, CassetteMiss):
                self._take(stop)
        self._take_from_children()
        if value is None and not self._errors:
            raise AssertionError(_NO_MISS)
        return value is not None and _is_nothing_but_a_miss(value)

    def _close(self) -> None:
        self._is_open = False
        _current.set(self._outer)
        with _lock, suppress(ValueError):  # in a forked child it is gone already
            _open_blocks.remove(self)

    def _take(self, miss: CassetteMiss) -> None:
        """Have a miss that was raised here, also one that was entered before, or given to another block."""
        with _lock:
            for block in _open_blocks:
                block._errors = [other for other in block._errors if other is not miss]
            if all(miss is not other for other in self._errors):
                self._errors.append(miss)
        self._book.withdraw(miss)

    def _take_from_children(self) -> None:
        known = {miss.__dict__.get("fingerprint") for miss in self._errors}
        for entry in self._book.withdraw_children(self._mark):
            # The error itself may have come out of the child, pickled.
            if entry.facts.get("fingerprint", entry.key) not in known:
                self._errors.append(CassetteMiss(entry.report, dict(entry.facts)))


#: Of all threads; the one opened last is the last.
_open_blocks: list[ExpectedMiss] = []

#: Re-entrant: a finaliser may make a call while a block closes.
_lock = threading.RLock()

#: The innermost block of this task or thread.
_current: ContextVar[ExpectedMiss | None] = ContextVar("httpx_cassette_expected_miss", default=None)


def claim(stop: CassetteStop) -> bool:
    """Give a miss to the block that expects it, and say whether there was one."""
    if not isinstance(stop, CassetteMiss):
        return False
    block = _current.get()
    while block is not None and not block._is_open:
        block = block._outer
    with _lock:
        if block is None and _open_blocks:
            block = _open_blocks[-1]
        if block is not None:
            block._errors.append(stop)
    return block is not None


def _is_nothing_but_a_miss(error: BaseException, depth: int = 0) -> bool:
    # Not by ``__context__``: an assertion that fails while a miss is handled must not be hidden.
    if isinstance(error, CassetteMiss):
        return True
    inner = members(error) or (error.__cause__,)
    # The depth ends a chain of causes that bites its tail.
    return depth < 100 and all(each is not None and _is_nothing_but_a_miss(each, depth + 1) for each in inner)


def _begin_as_child() -> None:
    """After a fork: the blocks are the parent's, which looks for the misses of its children itself."""
    global _lock
    _lock = threading.RLock()
    for block in _open_blocks:
        block._is_open = False
    _open_blocks.clear()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
    os.register_at_fork(after_in_child=_begin_as_child)
