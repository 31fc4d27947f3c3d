"""Wait for an identical call that is under way, in a thread, under asyncio or under trio.

The one that makes the call may be in another thread or another event loop than those that wait for it.
Nothing here knows what a call is.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

from ._flight import Flight, Owner

__all__ = ["current_task", "running_loop", "wait", "wait_async"]

log = logging.getLogger("httpx_cassette")

#: Seconds after which a call no longer waits for an identical one: the longest time-out of an SDK.
WAIT_LIMIT = 600.0


def wait(flight: Flight, owner: Owner) -> None:
    """Block this thread until a flight is over.

    Args:
        flight: The call to wait for.
        owner: Who waits.
    """
    # A bare lock, not an Event: a finaliser may land the flight in this very thread, and an Event's own lock
    # would be held by then.
    over = threading.Lock()
    over.acquire()
    flight.wait(owner, over.release)
    try:
        if not over.acquire(timeout=WAIT_LIMIT):
            _give_up(flight)
    finally:
        flight.stop_waiting(owner)


async def wait_async(flight: Flight, owner: Owner) -> None:
    """Wait until a flight is over; the event loop goes on.

    Args:
        flight: The call to wait for.
        owner: Who waits.
    """
    import anyio

    over, wake = _thread_safe_event()
    flight.wait(owner, wake)
    try:
        with anyio.move_on_after(WAIT_LIMIT) as scope:
            await over.wait()
        if scope.cancelled_caught:
            _give_up(flight)
    finally:
        flight.stop_waiting(owner)


def _give_up(flight: Flight) -> None:
    log.warning("an identical call has been under way for %d seconds; making another", WAIT_LIMIT)
    flight.land()


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()


def current_task() -> int:
    """Return the identity of the running task; never 0, which means a thread."""
    if _in_trio():
        return id(sys.modules["trio"].lowlevel.current_task())
    import asyncio  # Late: it costs more than all of this package.

    task = asyncio.current_task()
    return id(task) if task is not None else -1


def running_loop() -> Any:
    """Return what is the same object as long as connections may be used."""
    if _in_trio():
        return sys.modules["trio"].lowlevel.current_trio_token()
    import asyncio

    return asyncio.get_running_loop()


def _thread_safe_event() -> tuple[Any, Callable[[], object]]:
    """Return an event of the running loop, and what sets it from any thread."""
    if _in_trio():
        trio = sys.modules["trio"]
        event, token = trio.Event(), trio.lowlevel.current_trio_token()
        return event, lambda: _quietly(token.run_sync_soon, event.set)
    import asyncio

    loop, waiter = asyncio.get_running_loop(), asyncio.Event()
    return waiter, lambda: _quietly(loop.call_soon_threadsafe, waiter.set)


def _quietly(call: Callable[..., object], argument: Any) -> None:
    try:
        call(argument)
    except RuntimeError:
        pass  # The loop of the waiter is closed, or its run over: nobody waits any more.
