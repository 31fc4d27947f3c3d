"""What one transport remembers between calls: what it did, what it warned of, which answer comes next.

Threads share it, and finalisers of lost answers call into it at any point.
Nothing here decides about a call.
"""

from __future__ import annotations

import heapq
import logging
import os
import threading
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from . import _budget, _ledger
from ._call import Call
from ._errors import CallLimitReached, CassetteError, CassetteMiss, CassetteStop, is_stop
from ._process import LISTENERS, USED_FILE
from ._settings import MAX_CALLS_VARIABLE, Settings

if TYPE_CHECKING:
    from ._recording import Recording

__all__ = ["Listener", "Session", "Stats", "stop"]

__tracebackhide__ = is_stop

log = logging.getLogger("httpx_cassette")


class Listener(Protocol):
    """Is told what happens, from whichever thread it happens in; what it raises stops the call."""

    def counted(self, name: str) -> None:
        """One was added to a counter of the statistics, by the name of the counter."""

    def used(self, recording: Recording, name: str) -> None:
        """A recording answered a call (``replayed``), or was made of its answer (``recorded``)."""

    def unrecorded(self, what: str) -> None:
        """A real call was made and its answer is not stored: the call, and what became of it."""


if USED_FILE is not None:
    # Not on top: every program pays for what is imported there, and few are started by a test run.
    from ._used_elsewhere import UsedElsewhere

    LISTENERS.append(UsedElsewhere(USED_FILE))


@dataclass
class Stats:
    """What a transport has done; ``transport.stats`` gives it.

    Args:
        replayed: Calls answered from a cassette.
        recorded: Real calls whose answer was stored.
        live: Real calls, but for those that were passed.
        passed: Real calls that were let through without a look at the cassette.
        ignored: Calls answered 404 here.
        waited: Calls answered by the real call of an identical one.
        missed: Calls that no cassette holds.
        unrecorded: Real calls whose answer was not stored, by reason: a status, the name of the error that
            the call raised, ``abandoned``, ``truncated``, ``failed`` or ``too large``.
    """

    replayed: int = 0
    recorded: int = 0
    live: int = 0
    passed: int = 0
    ignored: int = 0
    waited: int = 0
    missed: int = 0
    unrecorded: dict[str, int] = field(default_factory=dict)


class Session:
    """The options of one transport, and what it remembers between calls.

    Args:
        settings: The options.
        listener: Told of what happens, beside those who listen to all sessions.
    """

    def __init__(self, settings: Settings, listener: Listener | None = None) -> None:
        self.settings = settings
        self.stats = Stats()
        self._listener = listener
        # Re-entrant: what became of a lost answer is counted by a finaliser, which runs at any point.
        self.lock = threading.RLock()
        self._positions: dict[bytes, int] = {}
        self._given_back: dict[bytes, list[int]] = {}
        self._open = 0
        self._told: object = None
        self._warned: set[str] = set()
        self._looked_at: set[object] = set()
        #: Held while a transport builds its own connections.
        self.opening = threading.Lock()
        _SESSIONS.add(self)

    def next_position(self, key: bytes) -> int:
        """Count the calls of one key: which of several answers comes next."""
        with self.lock:
            given_back = self._given_back.get(key)
            if given_back:
                return heapq.heappop(given_back)
            position = self._positions.get(key, 0)
            self._positions[key] = position + 1
        return position

    def give_back(self, key: bytes, position: int) -> None:
        """Have the next call of a key take a position whose answer was not stored: a retry, as a rule."""
        with self.lock:
            heapq.heappush(self._given_back.setdefault(key, []), position)

    def take_budget(self, call: Call, url: str, fingerprint: str = _budget.NO_FINGERPRINT) -> None:
        """Count one real call, of this transport and of all.

        Args:
            call: The call that is about to be made.
            url: Its URL, redacted.
            fingerprint: Its key, where it has one.

        Raises:
            CallLimitReached: It would be one more than ``max_calls``, or than the environment allows.
        """
        limit, limit_of_all = self.settings.max_calls, self.settings.max_calls_of_all
        with self.lock:
            may_call = limit is None or self.stats.live < limit
            self.stats.live += may_call
        if not may_call:
            raise self._limit_reached("max_calls", limit or 0, call, url)
        try:
            may_call = _budget.take(limit_of_all, fingerprint)
        except CassetteError as error:
            self._give_call_back()
            facts = {"limit": limit_of_all or 0, "url": url}
            report = f"{call.method} {url} was not called, because {error}"
            raise stop(self.settings, CallLimitReached(report, facts), f"budget {error}") from error
        if not may_call:
            self._give_call_back()
            whose = "processes that share it" if _budget.is_shared() else "transports of this process"
            counted = f"\n  counted      the real calls of all {whose}"
            raise self._limit_reached(MAX_CALLS_VARIABLE, limit_of_all or 0, call, url, counted)
        self._tell("live")

    def _give_call_back(self) -> None:
        with self.lock:
            self.stats.live -= 1

    def _limit_reached(self, option: str, limit: int, call: Call, url: str, more: str = "") -> CassetteStop:
        report = (
            f"one more real call would exceed {option}={limit}: {call.method} {url}{more}\n"
            f"  to allow it: {option}={limit + 1}"
        )
        reached = CallLimitReached(report, {"limit": limit, "url": url})
        return stop(self.settings, reached, f"{option}={limit}")

    def count_open(self, change: int) -> None:
        """Count the answers that are on their way to the caller and not yet stored."""
        with self.lock:
            self._open += change

    def news(self) -> str | None:
        """Return what was not recorded so far in one line, or ``None`` where that was told before."""
        with self.lock:
            listed = [f"{count} {reason}" for reason, count in sorted(self.stats.unrecorded.items())]
            if self._open:
                listed.append(f"{self._open} still open")
            if not listed or listed == self._told:
                return None
            self._told = listed
        return ", ".join(listed)

    def is_first_look(self, name: object) -> bool:
        """Tell whether something is looked at for the first time."""
        if name in self._looked_at:
            return False
        self._looked_at.add(name)
        return True

    def count(self, name: str) -> None:
        """Add one to a counter of the statistics."""
        with self.lock:
            setattr(self.stats, name, getattr(self.stats, name) + 1)
        self._tell(name)

    def use(self, recording: Recording, name: str) -> None:
        """Count a recording that answered a call (``replayed``), or that was made of one (``recorded``)."""
        self.count(name)
        for listener in self._listeners():
            listener.used(recording, name)

    def count_unrecorded(self, reason: str, what: str) -> None:
        """Count one real call whose answer was not stored.

        Args:
            reason: What it is counted under.
            what: The call and what became of it, for people.
        """
        with self.lock:
            self.stats.unrecorded[reason] = self.stats.unrecorded.get(reason, 0) + 1
        for listener in self._listeners():
            listener.unrecorded(what)

    def _tell(self, name: str) -> None:
        for listener in self._listeners():
            listener.counted(name)

    def _listeners(self) -> list[Listener]:
        everywhere = cast("list[Listener]", LISTENERS)
        return everywhere if self._listener is None else [*everywhere, self._listener]

    def warn_once(self, key: str, message: str) -> None:
        """Log a warning, once for each key."""
        with self.lock:
            if key in self._warned:
                return
            self._warned.add(key)
        log.warning(message)


_SESSIONS: weakref.WeakSet[Session] = weakref.WeakSet()


def _after_fork() -> None:
    """Give a forked child locks of its own: another thread may have held them at the fork."""
    for session in _SESSIONS:
        session.lock, session.opening = threading.RLock(), threading.Lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)


def stop(settings: Settings, error: CassetteStop, key: str) -> CassetteStop:
    """Enter an error in the ledger, so that no ``except`` can hide it; return it to be raised."""
    on_miss = settings.on_miss
    # Before anything that could raise itself.
    _ledger.enter(error, key=key, hooks=on_miss is not None)
    if callable(on_miss) and isinstance(error, CassetteMiss):
        try:
            on_miss(error)
        except Exception as failure:
            # Ordinary, and so it would be retried or swallowed in the place of the miss.
            error.__cause__ = failure
    return error
