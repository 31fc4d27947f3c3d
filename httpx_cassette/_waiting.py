"""Wait for an identical call that is under way, in a thread, under asyncio or under trio.

The one that makes the call may be in another thread or another event loop than those that wait for it.
Nothing here knows what a call is.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ._flight import Flight, Owner

__all__ = ["current_task", "give_way", "running_loop", "wait", "wait_async"]

log = logging.getLogger("httpx_cassette")

#: Seconds after which a call no longer waits for an identical one: the longest time-out of an SDK.
WAIT_LIMIT = 600.0

#: Seconds that an answer may lie unread with its caller before the others stop waiting for it. Whoever opens
#: a stream and then waits for an identical call, round whatever corners, would wait for himself.
IDLE_LIMIT = 5.0

#: Seconds between two looks at whether there is still hope.
LOOK_EVERY = 0.25


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
        end = time.monotonic() + WAIT_LIMIT
        while not over.acquire(timeout=LOOK_EVERY):
            if _is_hopeless(flight, end):
                _give_up(flight)
                break
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
        end = time.monotonic() + WAIT_LIMIT
        while True:
            with anyio.move_on_after(LOOK_EVERY) as scope:
                await over.wait()
            if not scope.cancelled_caught:
                break
            if _is_hopeless(flight, end):
                _give_up(flight)
                break
    finally:
        flight.stop_waiting(owner)


async def give_way() -> None:
    """Let the event loop do what else there is to do; a task that was cancelled ends here."""
    if _in_trio():
        await sys.modules["trio"].lowlevel.checkpoint()
        return
    import asyncio

    await asyncio.sleep(0)


def _is_hopeless(flight: Flight, end: float) -> bool:
    """Tell whether an answer will not come: too long under way, or with a caller who does not read it."""
    now, idle_since = time.monotonic(), flight.idle_since
    return now > end or (idle_since is not None and now - idle_since > IDLE_LIMIT)


def _give_up(flight: Flight) -> None:
    log.warning("the answer of an identical call does not come, or is not read; making another call")
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
