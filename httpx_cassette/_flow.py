"""The story of one call: recognise, guard, key, look up, answer; or miss; or forward and record.

:func:`exchange` is a generator without network I/O. It yields the steps that a driver must perform and is
sent their outcomes, so that one story serves httpx and httpx2, threads and event loops, and is tested with
lists. What it returns is plain data.

The order is what the contracts rest on. In ``replay`` nothing after the look-up can lead to a real call:
there is no step for it on that way.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from . import _ledger
from ._answer import Forwarded, Replayed, Served, replay
from ._call import Call, Json
from ._errors import (
    CallLimitReached,
    CassetteError,
    CassetteMiss,
    CassetteStop,
    CassetteUnusable,
    SystemPromptMissing,
)
from ._fingerprint import Draft, Key, hash_document, key_document
from ._flight import Flight, Owner, join
from ._mode import Mode
from ._recording import NewRecording, Recording
from ._redact import Gate
from ._request import Reading, Target, read_call, stored_request
from ._search import find_miss
from ._settings import Settings
from ._sink import Fate, LiveHead, Order, Sink
from ._tripwire import Tripwire
from .dialects import Dialect, recognise

__all__ = ["Forward", "Session", "Stats", "Step", "Wait", "exchange", "key_of", "read"]

log = logging.getLogger("httpx_cassette")


class Forward(NamedTuple):
    """Step: make the real call; the outcome is a :class:`LiveHead`."""


class Wait(NamedTuple):
    """Step: wait until another call's answer is stored, or never will be.

    Args:
        flight: The other call.
    """

    flight: Flight


Step: TypeAlias = "Forward | Wait"
Answer: TypeAlias = "Replayed | Forwarded"


@dataclass
class Stats:
    """What a transport has done; ``transport.stats`` gives it.

    Args:
        replayed: Calls answered from a cassette.
        recorded: Real calls whose answer was stored.
        live: Real calls in all.
        passed: Real calls that were let through without a look at the cassette.
        ignored: Calls answered 404 here.
        waited: Calls answered by the real call of an identical one.
        missed: Calls that no cassette holds.
        unrecorded: Real calls whose answer was not stored, by reason: a status, ``abandoned``, ``truncated``,
            ``failed`` or ``too large``.
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
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stats = Stats()
        self.lock = threading.Lock()
        self._positions: dict[bytes, int] = {}
        self._warned: set[str] = set()
        self._looked_at: set[object] = set()

    def next_position(self, key: bytes) -> int:
        """Count the calls of one key: which of several answers comes next."""
        with self.lock:
            position = self._positions.get(key, 0)
            self._positions[key] = position + 1
        return position

    def take_budget(self, call: Call, url: str) -> None:
        """Count one real call.

        Raises:
            CallLimitReached: It would be one more than ``max_calls``.
        """
        limit = self.settings.max_calls
        with self.lock:
            if limit is None or self.stats.live < limit:
                self.stats.live += 1
                return
        raise stop(
            self.settings,
            CallLimitReached(
                f"one more real call would exceed max_calls={limit}: {call.method} {url}\n"
                f"  to allow it: max_calls={limit + 1}, or HTTPX_CASSETTE_MAX_CALLS={limit + 1}",
                {"limit": limit, "url": url},
            ),
            f"limit {limit}",
        )

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

    def count_unrecorded(self, reason: str) -> None:
        """Count one real call whose answer was not stored."""
        with self.lock:
            self.stats.unrecorded[reason] = self.stats.unrecorded.get(reason, 0) + 1

    def warn_once(self, key: str, message: str) -> None:
        """Log a warning, once for each key."""
        with self.lock:
            if key in self._warned:
                return
            self._warned.add(key)
        log.warning(message)


def stop(settings: Settings, error: CassetteStop, key: str) -> CassetteStop:
    """Enter an error in the ledger, so that no ``except`` can hide it; return it to be raised."""
    on_miss = settings.on_miss
    if callable(on_miss) and isinstance(error, CassetteMiss):
        on_miss(error)
    _ledger.enter(error, key=key, hooks=on_miss is not None)
    return error


# -- recognise, guard, key -----------------------------------------------------------------------------


def read(call: Call, settings: Settings) -> tuple[Reading, Dialect]:
    """Return the call as read, and the wire format that it speaks."""
    reading = read_call(call, settings.redaction)
    return reading, recognise(reading.target.path, reading.body if reading.kind == "json" else None)


def key_of(reading: Reading, dialect: Dialect, settings: Settings) -> Key:
    """Return the key of a call. The reading's body is used up."""
    draft, prompt_files = _draft(reading, dialect, settings)
    document = key_document(draft, prompt_files)
    return Key(hash_document(document), tuple(draft.folded))


def _draft(reading: Reading, dialect: Dialect, settings: Settings) -> tuple[Draft, dict[str, Json] | None]:
    policy = settings.policy
    request, gates = stored_request(reading, settings.redaction, dialect.media, policy.key_headers)
    draft = Draft(request, dialect, policy, reading.target.host, bool(gates & Gate.DOLLAR))
    return draft, settings.prompt_files.digests() if settings.prompt_files else None


def _guard(call: Call, reading: Reading, dialect: Dialect, settings: Settings) -> None:
    """Make sure that a chat call has a system prompt.

    Raises:
        SystemPromptMissing: It has none, or a blank one.
    """
    required = settings.require_system
    if required is False or dialect.system is None:
        return
    if callable(required):
        found = None if required(call) else "a call that require_system refuses"
    else:
        found = dialect.system.missing(reading.body, required == "anywhere")
    if found is None:
        return
    raise stop(
        settings,
        SystemPromptMissing(
            f"no system prompt in {call.method} {reading.target.stored}\n"
            f"  dialect      {dialect.name}\n"
            f"  looked at    {dialect.system.place}\n"
            f"  found        {found}\n"
            "  to accept a later position: require_system='anywhere'\n"
            "  to switch this off: require_system=False, or in pyproject.toml\n"
            "    [tool.httpx_cassette]\n"
            "    require_system = false",
            {"dialect": dialect.name, "looked_at": dialect.system.place, "found": found},
        ),
        f"system {reading.target.stored} {found}",
    )


# -- the story -----------------------------------------------------------------------------------------


def exchange(call: Call, session: Session, owner: Owner) -> Generator[Step, Any, Answer]:
    """Decide about one call.

    Args:
        call: The call.
        session: The transport's options and memory.
        owner: Who makes the call.

    Yields:
        Steps; the driver sends their outcome, or throws what they raised.

    Raises:
        CassetteStop: The call cannot be answered and must not be made.
    """
    settings = session.settings
    if settings.passthrough is not None and settings.passthrough(call):
        session.count("passed")
        yield Forward()
        return Forwarded(None, Served("live"))
    if settings.ignore is not None and settings.ignore(call):
        session.count("ignored")
        return _ignored()
    if settings.mode is Mode.LIVE:
        session.take_budget(call, call.url.partition("?")[0])
        yield Forward()
        return Forwarded(None, Served("live"))
    reading, dialect = read(call, settings)
    _guard(call, reading, dialect, settings)
    try:
        key = key_of(reading, dialect, settings)
    except CassetteError as error:
        raise _unusable(error, _Asked(call, reading.target, dialect, Key(b""), 0), settings) from error
    is_sequence = call.method in ("GET", "HEAD")
    several = is_sequence or settings.samples > 1
    position = session.next_position(key.digest) if several else 0
    sample = position if is_sequence else min(position, settings.samples - 1)
    asked = _Asked(call, reading.target, dialect, key, sample)
    if settings.mode is Mode.REPLAY:
        return _replay_or_miss(asked, session)
    return (yield from _record(asked, session, owner))


def _ignored() -> Replayed:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    return Replayed(404, headers, b"{}", None, Served("ignored"))


class _Asked(NamedTuple):
    """What the story is about, once the key is known."""

    call: Call
    target: Target
    dialect: Dialect
    key: Key
    sample: int


def _replay_or_miss(asked: _Asked, session: Session) -> Replayed:
    recording = _find(asked, session, exact=False)
    if recording is None and session.settings.shelf.refresh():
        # Somebody recorded since; a file without news costs one look at its size.
        recording = _find(asked, session, exact=False)
    if recording is None:
        raise _miss(asked, session)
    return _replay(recording, asked, session)


def _replay(recording: Recording, asked: _Asked, session: Session) -> Replayed:
    settings = session.settings
    served = Served(
        "replayed", asked.key.fingerprint, recording.path, recording.number, recording.head.sample, recording.at
    )
    try:
        answer = replay(recording, served, settings)
    except CassetteError as error:
        raise _unusable(error, asked, settings) from error
    session.count("replayed")
    _check_fold(recording, asked, session)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("replayed %s from %s:%s", served.fingerprint[:12], recording.path, recording.number)
    return answer


def _find(asked: _Asked, session: Session, *, exact: bool) -> Recording | None:
    try:
        return session.settings.shelf.find(asked.key.digest, asked.sample, exact=exact)
    except CassetteError as error:
        raise _unusable(error, asked, session.settings) from error


def _unusable(error: CassetteError, asked: _Asked, settings: Settings) -> CassetteStop:
    unusable = CassetteUnusable(
        f"the recording of {asked.call.method} {asked.target.stored} cannot be answered from\n"
        f"  because      {error}\n"
        f"  fingerprint  {asked.key.fingerprint}",
        {"fingerprint": asked.key.fingerprint, "path": error.path or "", "line": error.line},
    )
    return stop(settings, unusable, asked.key.fingerprint)


def _miss(asked: _Asked, session: Session) -> CassetteStop:
    """Return the miss, with the nearest recording and what to do."""
    settings = session.settings
    session.count("missed")
    reading, dialect = read(asked.call, settings)
    draft, prompt_files = _draft(reading, dialect, settings)
    document = key_document(draft, prompt_files)
    miss = find_miss(document, asked.key.fingerprint, dialect.name, settings)
    return stop(settings, miss, asked.key.fingerprint)


# -- recording -----------------------------------------------------------------------------------------


def _record(asked: _Asked, session: Session, owner: Owner) -> Generator[Step, Any, Answer]:
    settings, key = session.settings, asked.key
    is_news = settings.mode is Mode.RERECORD and not settings.shelf.written.is_fresh(key.digest, asked.sample)
    recording = None if is_news else _find(asked, session, exact=True)
    has_refreshed = has_waited = False
    while recording is None:
        flight, is_mine = join((settings.shelf.written.real_path, key.digest, asked.sample), owner)
        if not is_mine:
            yield Wait(flight)
            has_waited = True
            is_news = is_news and not settings.shelf.written.is_fresh(key.digest, asked.sample)
            recording = None if is_news else _find(asked, session, exact=True)
            continue
        try:
            if not is_news and not has_refreshed:
                has_refreshed = True
                settings.shelf.refresh()
                recording = _find(asked, session, exact=True)
                if recording is not None:
                    flight.land()
                    break
            return (yield from _forward(asked, session, flight))
        except BaseException:
            flight.land()
            raise
    if has_waited:
        session.count("waited")
    return _replay(recording, asked, session)


def _forward(asked: _Asked, session: Session, flight: Flight) -> Generator[Step, Any, Answer]:
    settings, call = session.settings, asked.call
    session.take_budget(call, asked.target.stored)
    started = time.monotonic()
    try:
        head: LiveHead = yield Forward()
    except Exception as error:
        session.count_unrecorded(type(error).__name__)
        session.warn_once(type(error).__name__, f"not recorded: {call.method} {asked.target.stored} raised {type(error).__name__}")
        raise
    log.info("real call: %s %s -> %s", call.method, asked.target.stored, head.status)
    served = Served("live", asked.key.fingerprint, sample=asked.sample)
    if not settings.is_recordable(head.status):
        flight.land()
        session.count_unrecorded(str(head.status))
        session.warn_once(
            str(head.status),
            f"not recorded: {call.method} {asked.target.stored} answered {head.status}; "
            "only finished 2xx and 3xx answers are stored (record_statuses= stores others)",
        )
        return Forwarded(None, served)
    return Forwarded(Sink(_order(asked, session, flight, served), head, started), served)


def _order(asked: _Asked, session: Session, flight: Flight, served: Served) -> Order:
    """Return what the recording will hold beside the answer, and what becomes of it."""
    settings = session.settings
    # Read once more: the rules of the key have used up the first reading.
    reading = read_call(asked.call, settings.redaction)
    wants_stream = isinstance(reading.body, dict) and reading.body.get("stream") is True
    request, _ = stored_request(reading, settings.redaction, asked.dialect.media, settings.policy.key_headers)

    def store(new: NewRecording) -> None:
        shelf, rerecords = settings.shelf, settings.mode is Mode.RERECORD
        gen = shelf.written.fresh_gen(new.key) if rerecords else shelf.newest_gen(new.key)
        appended = shelf.append(new, gen=gen)
        if rerecords:
            shelf.written.mark_fresh(new.key, new.sample, appended.recording.head.gen)
        served.outcome, served.at = "recorded", appended.recording.at
        served.file, served.line = appended.recording.path, appended.recording.number

    def settle(fate: Fate) -> None:
        flight.land()
        if fate.outcome == "recorded":
            session.count("recorded")
            return
        session.count_unrecorded(fate.outcome)
        session.warn_once(
            f"{fate.outcome} {asked.key.fingerprint}",
            f"not recorded: {asked.call.method} {reading.target.stored} was {fate.outcome}: {fate.detail}",
        )

    return Order(
        key=asked.key.digest,
        sample=asked.sample,
        dialect=asked.dialect,
        request=request,
        policy=stored_policy(settings),
        redaction=settings.redaction,
        tripwire=Tripwire(asked.call, os.environ),
        wants_stream=wants_stream,
        store=store,
        settle=settle,
    )


def stored_policy(settings: Settings) -> dict[str, Json]:
    """Return what the key depends on beside the request, as it stands on the line."""
    policy = settings.policy.as_json()
    if settings.prompt_files:
        policy["prompt_files"] = settings.prompt_files.digests()
    if not settings.redaction.is_default:
        policy["redact"] = settings.redaction.as_json()
    return policy


# -- hits that rest on a fold --------------------------------------------------------------------------


def _check_fold(recording: Recording, asked: _Asked, session: Session) -> None:
    """Warn once where a hit rests on a default that another provider documents."""
    folds, settings, host = asked.dialect.folds, session.settings, asked.target.host
    if not folds.defaults or folds.is_own_host(host) or settings.policy.defaults is not True:
        return
    if not session.is_first_look((recording.path, recording.number)):
        return
    draft = Draft(recording.request, asked.dialect, settings.policy, host)
    key_document(draft)
    differing = sorted(set(draft.folded) ^ set(asked.key.folded))
    if differing:
        session.warn_once(
            f"fold {host} {' '.join(differing)}",
            f"{recording.path}:{recording.number} answers a call that differs from it in {', '.join(differing)}: one side "
            f"sent the default that the format's own provider documents, the other nothing. If {host} has other "
            "defaults, switch the folding off: KeyPolicy(defaults=False)",
        )
