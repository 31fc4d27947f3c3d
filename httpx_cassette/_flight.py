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


# Re-entrant: a stream that nobody holds any more lands its flight from a finaliser, which runs in any thread
# at any point, also in one that holds this lock.
_LOCK = threading.RLock()
_FLIGHTS: dict[object, Flight] = {}
_WAITING: dict[Owner, Flight] = {}


class Flight:
    """One real call under way.

    Args:
        name: What it would be answered from: cassette, key and sample.
        owner: Who makes it.
    """

    __slots__ = ("__weakref__", "_waiters", "idle_since", "is_over", "name", "owner")

    def __init__(self, name: object, owner: Owner) -> None:
        self.name = name
        self.owner = owner
        self.is_over = False
        #: Since when the answer lies with the caller unread; ``None`` while the call is made or being read.
        self.idle_since: float | None = None
        self._waiters: dict[Owner, Callable[[], object]] = {}

    def land(self) -> None:
        """Say that the answer is stored, or never will be; wakes all who wait. Landing twice does nothing."""
        with _LOCK:
            if self.is_over:
                return
            self.is_over = True
            if _FLIGHTS.get(self.name) is self:
                del _FLIGHTS[self.name]
            waiters, self._waiters = self._waiters, {}
        for wake in waiters.values():
            try:
                wake()
            except RuntimeError:
                pass  # Its event loop is closed: nobody waits there any more, but the next one does.

    def wait(self, owner: Owner, wake: Callable[[], object]) -> None:
        """Have ``wake`` called once the flight is over; at once if it is, or if waiting would never end.

        Args:
            owner: Who waits.
            wake: Called once, from any thread.
        """
        with _LOCK:
            # Asked again: whoever makes the call may have begun to wait for this owner since it joined.
            if not _would_wait_for_itself(self, owner):
                _WAITING[owner] = self
                self._waiters[owner] = wake
                # Asked last: a finaliser may land it between any two of these lines.
                if not self.is_over or self._waiters.pop(owner, None) is None:
                    return
        wake()

    def stop_waiting(self, owner: Owner) -> None:
        """Say that nobody of this name waits any more."""
        with _LOCK:
            _WAITING.pop(owner, None)
            self._waiters.pop(owner, None)


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
    """Tell whether the flight cannot land before the owner goes on, round whatever corners."""
    seen: set[Owner] = set()
    flights = [flight]
    while flights:
        holder = flights.pop().owner
        if _stops(holder, owner):
            return True
        if holder not in seen:
            seen.add(holder)
            # One that waits for a flight that is over goes on, though it has not said so yet.
            flights += [
                awaited
                for waiter, awaited in list(_WAITING.items())
                if not awaited.is_over and _stops(waiter, holder)
            ]
    return False


def _stops(one: Owner, other: Owner) -> bool:
    """Tell whether one that waits keeps the other from going on.

    A synchronous call that waits holds up every task of its thread, and where a synchronous call started the
    event loop, it goes on only when the tasks are done.
    """
    return one.thread == other.thread and (one.task == other.task or 0 in (one.task, other.task))


def _after_fork() -> None:
    """Forget the calls of the parent: nobody here will ever land them."""
    global _LOCK
    _LOCK = threading.RLock()
    for flight in _FLIGHTS.values():
        flight._waiters.clear()
    _FLIGHTS.clear()
    _WAITING.clear()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)
