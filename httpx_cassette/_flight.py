"""Real calls under way: identical calls share one.

The first makes the call, the others wait until its answer is stored and are answered from it. A call never
waits for itself: a thread or a task that still holds the first one open makes its own, and so does one that
would wait, round a few corners, for somebody who waits for it.
Nothing here blocks: a waiter hands in what wakes it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Flight", "Owner", "join"]


class Owner(NamedTuple):
    """Who makes a call.

    Args:
        thread: The identity of the thread.
        task: The identity of the task, or 0 for a synchronous call.
    """

    thread: int
    task: int


_LOCK = threading.Lock()
_FLIGHTS: dict[object, Flight] = {}
_WAITING: dict[Owner, Flight] = {}


class Flight:
    """One real call under way.

    Args:
        name: What it would be answered from: cassette, key and sample.
        owner: Who makes it.
    """

    __slots__ = ("__weakref__", "_waiters", "is_over", "name", "owner")

    def __init__(self, name: object, owner: Owner) -> None:
        self.name = name
        self.owner = owner
        self.is_over = False
        self._waiters: list[Callable[[], object]] = []

    def land(self) -> None:
        """Say that the answer is stored, or never will be; wakes all who wait. Landing twice does nothing."""
        with _LOCK:
            if self.is_over:
                return
            self.is_over = True
            if _FLIGHTS.get(self.name) is self:
                del _FLIGHTS[self.name]
            waiters, self._waiters = self._waiters, []
        for wake in waiters:
            wake()

    def wait(self, owner: Owner, wake: Callable[[], object]) -> None:
        """Have ``wake`` called once the flight is over; at once if it is.

        Args:
            owner: Who waits.
            wake: Called from any thread.
        """
        with _LOCK:
            if not self.is_over:
                _WAITING[owner] = self
                self._waiters.append(wake)
                return
        wake()

    def stop_waiting(self, owner: Owner) -> None:
        """Say that nobody of this name waits any more."""
        with _LOCK:
            _WAITING.pop(owner, None)


def join(name: object, owner: Owner) -> tuple[Flight, bool]:
    """Return the flight to wait for and ``False``, or a new one and ``True``.

    A new one that is not listed is returned where waiting would never end.

    Args:
        name: What the answer would be stored as.
        owner: Who asks.
    """
    with _LOCK:
        there = _FLIGHTS.get(name)
        if there is not None and not _would_wait_for_itself(there, owner):
            return there, False
        flight = Flight(name, owner)
        if there is None:
            _FLIGHTS[name] = flight
        return flight, True


def _would_wait_for_itself(flight: Flight, owner: Owner) -> bool:
    seen: set[int] = set()
    current: Flight | None = flight
    while current is not None and id(current) not in seen:
        holder = current.owner
        if holder.thread == owner.thread and (holder.task == owner.task or 0 in (holder.task, owner.task)):
            return True
        seen.add(id(current))
        current = _WAITING.get(holder)
    return False


def _after_fork() -> None:
    """Forget the calls of the parent: nobody here will ever land them."""
    global _LOCK
    _LOCK = threading.Lock()
    _FLIGHTS.clear()
    _WAITING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
