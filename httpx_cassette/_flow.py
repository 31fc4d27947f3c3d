"""The story of one call: recognise, guard, key, look up, answer; or miss; or forward and record.

:func:`exchange` is a generator without network I/O. It yields the steps that a driver must perform and is
sent their outcomes, so that one story serves httpx and httpx2, threads and event loops, and is tested with
lists. What it returns is plain data.

The order is what the contracts rest on. In ``replay`` nothing after the look-up can lead to a real call:
there is no step for it on that way.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from ._allowed import ONLY_VARIABLE, Allowed
from ._answer import Forwarded, Replayed, Served, replay
from ._call import Call, Json, LiveHead
from ._cassette import Appended
from ._errors import (
    CallLimitReached,
    CassetteError,
    CassetteMiss,
    CassetteStop,
    CassetteUnusable,
    CassetteWriteError,
    SystemPromptMissing,
    is_stop,
)
from ._fingerprint import Draft, Key, hash_document, key_document
from ._flight import Flight, Owner, join
from ._line import dump_members
from ._mode import Mode
from ._process import LOADING
from ._recording import INCOMPARABLE, NewRecording, Recording
from ._redact import Gate
from ._request import Reading, lent_credentials, read_call, stored_request
from ._session import Session, stop
from ._settings import Settings
from ._url import Target, read_target
from .dialects import Dialect, recognise
from .dialects._blame import blame
from .dialects._eventstream import load_reader

if TYPE_CHECKING:
    from ._sink import Fate, Order
    from ._tripwire import Tripwire

__all__ = ["Forward", "Step", "Wait", "exchange", "key_of", "read", "recall"]

__tracebackhide__ = is_stop

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

#: Digest of every prompt file by name, read once for each call: a file may change while the call is made.
PromptDigests: TypeAlias = "dict[str, Json] | None"


# -- recognise, guard, key -----------------------------------------------------------------------------


def read(call: Call, settings: Settings) -> tuple[Reading, Dialect]:
    """Return the call as read, and the wire format that it speaks."""
    reading = read_call(call, settings.redaction)
    return reading, _dialect_of(reading)


def _dialect_of(reading: Reading) -> Dialect:
    return recognise(reading.target.path, reading.body if reading.kind == "json" else None)


def key_of(reading: Reading, dialect: Dialect, settings: Settings) -> Key:
    """Return the key of a call. The reading's body is used up."""
    return _key(reading, dialect, settings, _prompt_files(settings))


def _key(reading: Reading, dialect: Dialect, settings: Settings, prompt_files: PromptDigests) -> Key:
    draft = _draft(reading, dialect, settings)
    document = key_document(draft, prompt_files)
    return Key(hash_document(document), tuple(draft.folded))


def _draft(reading: Reading, dialect: Dialect, settings: Settings) -> Draft:
    policy = settings.policy
    request, gates = stored_request(reading, settings.redaction, dialect, policy.key_headers)
    # A plain test first: a flag of the standard library costs more than most rules.
    may_have_dollar = bool(gates) and bool(gates & Gate.DOLLAR)
    return Draft(request, dialect, policy, reading.target.host, may_have_dollar)


def _prompt_files(settings: Settings) -> PromptDigests:
    return settings.prompt_files.digests() if settings.prompt_files else None


def _guard(call: Call, reading: Reading, dialect: Dialect, settings: Settings) -> None:
    """Make sure that a chat call has a system prompt.

    Raises:
        SystemPromptMissing: It has none, or a blank one.
        CassetteError: The dialect cannot tell.
    """
    required = settings.require_system
    # A call without a body has no prompt either: it asks about an answer that was made before.
    if required is False or dialect.system is None or not isinstance(reading.body, dict):
        return
    if callable(required):
        found = None if required(call) else "a call that require_system refuses"
    else:
        try:
            found = dialect.system.missing(reading.body, required == "anywhere")
        except Exception as error:
            raise blame(error, dialect.name) from None
    if found is None:
        return
    later = "  to accept a later position: require_system='anywhere'\n"
    raise stop(
        settings,
        SystemPromptMissing(
            f"no system prompt in {call.method} {reading.target.stored}\n"
            f"  dialect      {dialect.name}\n"
            f"  looked at    {dialect.system.place}\n"
            f"  found        {found}\n"
            f"{later if dialect.system.has_positions and required is True else ''}"
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
        return (yield from _pass(call, settings))
    if settings.mode is Mode.REPLAY:
        return _without_steps(call, session)
    if settings.ignore is not None and settings.ignore(call):
        return _ignored(session)
    if settings.mode is Mode.LIVE:
        if settings.allowed is not None:
            raise _not_allowed(call, settings, settings.allowed)
        session.take_budget(call, read_target(call.url, settings.redaction).stored)
        return (yield from _pass(call, settings))
    return (yield from _record(_ask(call, session), session, owner))


def recall(call: Call, session: Session) -> Replayed | None:
    """Answer a call in the one way in which most are answered, without steps.

    Args:
        call: The call.
        session: The transport's options and memory.

    Returns:
        What :func:`exchange` would return; ``None``, with nothing done, where it could have steps.

    Raises:
        CassetteStop: As :func:`exchange`.
    """
    settings = session.settings
    if settings.mode is not Mode.REPLAY or settings.passthrough is not None:
        return None
    return _without_steps(call, session)


def _without_steps(call: Call, session: Session) -> Replayed:
    """Answer a call in replay: there is no step that could lead to a real one."""
    settings = session.settings
    if settings.ignore is not None and settings.ignore(call):
        return _ignored(session)
    return _replay_or_miss(_ask(call, session), session)


def _pass(call: Call, settings: Settings) -> Generator[Step, Any, Forwarded]:
    """Make a real call that is not looked at."""
    head: LiveHead = yield Forward()
    if log.isEnabledFor(logging.INFO):
        url = read_target(call.url, settings.redaction).stored
        log.info("real call: %s %s -> %s", call.method, url, head.status)
    return Forwarded(None, Served("live"))


def _not_allowed(call: Call, settings: Settings, allowed: Allowed) -> CassetteStop:
    """Refuse a live call: it has no key by which it could be allowed."""
    url = read_target(call.url, settings.redaction).stored
    refused = CallLimitReached(
        f"a live call is not allowed: {call.method} {url}\n"
        f"  refused      {allowed.refusal}; in mode live a call has no fingerprint\n"
        f"  to allow it: mode='record', or run without {ONLY_VARIABLE}",
        {"limit": 0, "url": url},
    )
    return stop(settings, refused, f"live {call.method} {url}")


def _ignored(session: Session) -> Replayed:
    session.count("ignored")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    return Replayed(404, headers, b"{}", None, Served("ignored"))


class _Asked(NamedTuple):
    """What the story is about, once the key is known.

    Args:
        call: The call.
        target: Where it goes.
        dialect: The wire format.
        key: The key.
        prompt_files: The digests that entered it.
        position: Which of the calls of this key it is, where several answers are kept.
        sample: Which of several answers it gets.
    """

    call: Call
    target: Target
    dialect: Dialect
    key: Key
    prompt_files: PromptDigests
    position: int | None
    sample: int

    @property
    def name(self) -> str:
        """Method and URL, for messages."""
        return f"{self.call.method} {self.target.stored}"


def _ask(call: Call, session: Session) -> _Asked:
    settings = session.settings
    reading = read_call(call, settings.redaction)
    try:
        dialect = _dialect_of(reading)
        _guard(call, reading, dialect, settings)
        prompt_files = _prompt_files(settings)
        key = _key(reading, dialect, settings, prompt_files)
    except CassetteError as error:
        raise _no_key(error, call, reading.target, settings) from error
    is_sequence = call.method in ("GET", "HEAD")
    position = session.next_position(key.digest) if is_sequence or settings.samples > 1 else None
    sample = position or 0
    if not is_sequence:
        sample = min(sample, settings.samples - 1)
    return _Asked(call, reading.target, dialect, key, prompt_files, position, sample)


def _replay_or_miss(asked: _Asked, session: Session) -> Replayed:
    recording = _find(asked, session, exact=False)
    if recording is None and _refresh(asked, session):
        # Somebody recorded since; a file without news costs one look at its size.
        recording = _find(asked, session, exact=False)
    if recording is None:
        raise _miss(asked, session)
    return _replay(recording, asked, session)


def _replay(recording: Recording, asked: _Asked, session: Session) -> Replayed:
    settings = session.settings
    fingerprint, sample = asked.key.fingerprint, recording.head.sample
    served = Served("replayed", fingerprint, recording.path, recording.number, sample, recording.at)
    try:
        answer = replay(recording, served, settings)
    except CassetteError as error:
        raise _unusable(error, asked, settings) from error
    session.use(recording, "replayed")
    if answer.unknown is not None:
        # In the log, not a warning of Python's: an ordinary exception, where those are errors, which an SDK
        # would retry or swallow.
        session.warn_once(
            f"unknown dialect {answer.unknown}",
            f"{recording.path}:{recording.number} is a stream of the dialect {answer.unknown!r}, which is "
            "not registered in this process, so that its texts are replayed whole; import the module that "
            "calls httpx_cassette.dialects.register, in conftest.py for example",
        )
    _check_fold(recording, asked, session)
    if log.isEnabledFor(logging.DEBUG):
        log.debug("replayed %s from %s:%s", fingerprint[:12], recording.path, recording.number)
    return answer


def _find(asked: _Asked, session: Session, *, exact: bool) -> Recording | None:
    try:
        return session.settings.shelf.find(asked.key.digest, asked.sample, exact=exact)
    except CassetteError as error:
        raise _unusable(error, asked, session.settings) from error


def _refresh(asked: _Asked, session: Session, *, reopen: bool = False) -> bool:
    try:
        return session.settings.shelf.refresh(reopen=reopen)
    except CassetteError as error:
        raise _unusable(error, asked, session.settings) from error


def _unusable(error: CassetteError, asked: _Asked, settings: Settings) -> CassetteStop:
    unusable = CassetteUnusable(
        f"the recording of {asked.name} cannot be answered from\n"
        f"  because      {error}\n"
        f"  fingerprint  {asked.key.fingerprint}",
        {"fingerprint": asked.key.fingerprint, "path": error.path or "", "line": error.line},
    )
    return stop(settings, unusable, asked.key.fingerprint)


def _no_key(error: CassetteError, call: Call, target: Target, settings: Settings) -> CassetteStop:
    unusable = CassetteUnusable(
        f"the key of {call.method} {target.stored} cannot be computed\n  because      {error}",
        {"fingerprint": "", "path": error.path or "", "line": error.line},
    )
    return stop(settings, unusable, f"no key: {error}")


def _miss(asked: _Asked, session: Session) -> CassetteStop:
    """Return the miss, with the nearest recording and what to do; or why the call may not be made."""
    settings = session.settings
    session.count("missed")
    try:
        with LOADING:
            from ._search import find_miss  # Late: what a miss needs is a fifth of the package.

        reading, dialect = read(asked.call, settings)
        document = key_document(_draft(reading, dialect, settings), asked.prompt_files)
        miss = find_miss(document, asked.call, asked.key.fingerprint, dialect.name, settings)
    except Exception as error:  # A miss is a miss: an ordinary exception would be retried or swallowed.
        miss = _plain_miss(asked, settings, error)
    return stop(settings, miss, asked.key.fingerprint)


def _plain_miss(asked: _Asked, settings: Settings, error: Exception) -> CassetteMiss:
    """Return a miss without its report, for the day when making the report fails."""
    paths = tuple(cassette.path for cassette in settings.shelf.cassettes)
    refused = f"  refused      {settings.allowed.refusal}\n" if settings.allowed is not None else ""
    return CassetteMiss(
        f"no recording for {asked.name} in {' and '.join(paths)}\n"
        f"  fingerprint  {asked.key.fingerprint}\n"
        f"{refused}"
        f"  the report could not be made: {type(error).__name__}; please report it",
        {
            "fingerprint": asked.key.fingerprint,
            "cassettes": paths,
            "method": asked.call.method,
            "url": asked.target.stored,
            "dialect": asked.dialect.name,
            "model": None,
            "changed": (),
            "nearest": None,
            "words": "",
        },
    )


# -- recording -----------------------------------------------------------------------------------------


def _record(asked: _Asked, session: Session, owner: Owner) -> Generator[Step, Any, Answer]:
    settings, key = session.settings, asked.key
    written = settings.shelf.written
    is_news = settings.mode is Mode.RERECORD and not _is_fresh(asked, session)
    recording = None if is_news else _find(asked, session, exact=True)
    has_refreshed = has_waited = False
    while recording is None:
        flight, is_mine = join((written.real_path, key.digest, asked.sample), owner)
        if not is_mine:
            yield Wait(flight)
            has_waited = True
            is_news = is_news and not written.is_fresh(key.digest, asked.sample)
            recording = None if is_news else _find(asked, session, exact=True)
            continue
        try:
            if not is_news and not has_refreshed:
                # Another process, or another thread before this one joined, may have stored it by now.
                has_refreshed = True
                _refresh(asked, session, reopen=True)
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


def _is_fresh(asked: _Asked, session: Session) -> bool:
    """Tell whether this process, or another one of the same run, has recorded a call anew."""
    written, key, since = session.settings.shelf.written, asked.key.digest, session.settings.fresh_since
    if written.is_fresh(key, asked.sample) or not since:
        return written.is_fresh(key, asked.sample)
    _refresh(asked, session, reopen=True)
    recording = _find(asked, session, exact=True)
    if recording is None or recording.at < since:
        return False
    written.mark_fresh(key, asked.sample, recording.head.gen)
    return True


def _forward(asked: _Asked, session: Session, flight: Flight) -> Generator[Step, Any, Answer]:
    fingerprint, allowed = asked.key.fingerprint, session.settings.allowed
    if allowed is not None and fingerprint not in allowed.fingerprints:
        raise _miss(asked, session)
    served = Served("live", fingerprint, sample=asked.sample)
    # Before the call: what fails here fails before anything is paid for.
    order = _order(asked, session, flight, served)
    session.take_budget(asked.call, asked.target.stored, fingerprint)
    started = time.monotonic()
    try:
        head: LiveHead = yield Forward()
    except BaseException as error:
        name = type(error).__name__
        # What is no ``Exception`` comes from the caller's side: a cancelled task, Ctrl-C.
        reason = name if isinstance(error, Exception) else "abandoned"
        _unrecorded(asked, session, flight, reason, name, f"raised {name}")
        raise
    log.info("real call: %s -> %s", asked.name, head.status)
    if not session.settings.is_recordable(head.status):
        advice = "only finished 2xx and 3xx answers are stored (record_statuses= stores others)"
        status = str(head.status)
        _unrecorded(asked, session, flight, status, status, f"answered {status}; {advice}")
        return Forwarded(None, served)
    from ._sink import Sink  # Late, as what records: a program that replays does not need it.

    sink = Sink(order, head, started)
    session.count_open(1)
    sink.reading(False)
    return Forwarded(sink, served)


def _unrecorded(
    asked: _Asked, session: Session, flight: Flight, reason: str, warning: str, what: str
) -> None:
    """Say that a real call was made and its answer is not stored.

    Args:
        asked: The call.
        session: Counts it.
        flight: Lands.
        reason: What it is counted under.
        warning: Which warnings are the same one, and given once.
        what: What happened, for the warning.
    """
    if asked.position is not None:
        session.give_back(asked.key.digest, asked.position)
    session.count_unrecorded(reason, f"{asked.name} {what}")
    # Before the warning: who waits goes on at once.
    flight.land()
    session.warn_once(warning, f"not recorded: {asked.name} {what}")


def _order(asked: _Asked, session: Session, flight: Flight, served: Served) -> Order:
    """Return what the recording will hold beside the answer, and what becomes of it."""
    from ._sink import Order
    from ._tripwire import Tripwire

    settings = session.settings
    # Read once more: the rules of the key have used up the first reading.
    reading = read_call(asked.call, settings.redaction)
    dialect = asked.dialect
    lent = lent_credentials(reading.body, dialect.credentials)
    request, _ = stored_request(reading, settings.redaction, dialect, settings.policy.key_headers)
    policy, tripwire = settings.policy_on_line(asked.prompt_files), Tripwire(asked.call, os.environ)
    wants_stream = _wants_stream(reading, dialect)
    _check_storable(tripwire, {"request": request, "policy": policy}, asked, settings)
    if _asks_for_messages(reading, dialect, wants_stream):
        _check_readable(asked, settings)

    stored: list[Recording] = []

    def store(new: NewRecording) -> bool:
        appended = _append(new, settings)
        if not appended.is_new:
            return False  # What is in the file is another's answer, not the one that the caller gets.
        stored.append(appended.recording)
        served.outcome, served.at = "recorded", appended.recording.at
        served.file, served.line = appended.recording.path, appended.recording.number
        return True

    def note_reading(is_read: bool) -> None:
        flight.idle_since = None if is_read else time.monotonic()

    def settle(fate: Fate) -> None:
        session.count_open(-1)
        if fate.outcome == "recorded":
            for recording in stored:
                session.use(recording, "recorded")
            flight.land()
            return
        warning = f"{fate.outcome} {asked.key.fingerprint}"
        _unrecorded(asked, session, flight, fate.outcome, warning, f"{_verb(fate.outcome)}: {fate.detail}")

    return Order(
        key=asked.key.digest,
        sample=asked.sample,
        dialect=dialect,
        request=request,
        policy=policy,
        redaction=settings.redaction,
        tripwire=tripwire,
        lent=lent,
        wants_stream=wants_stream,
        store=store,
        settle=settle,
        reading=note_reading,
        stop=lambda error: stop(settings, error, asked.key.fingerprint),
        warn=lambda message: session.warn_once(message, message),
    )


def _check_storable(tripwire: Tripwire, members: dict[str, Json], asked: _Asked, settings: Settings) -> None:
    """Make sure that what is known of the line before the call could be written.

    Raises:
        CassetteWriteError: A credential stands in it, or it cannot be written; nothing was paid.
    """
    try:
        found = tripwire.find(dump_members(members))
        if found is None and (text := members["request"].get("text")):  # type: ignore[union-attr]  # an object
            found = _hidden_in(str(text), tripwire, settings)
    except CassetteError as error:
        reason = error.message
    else:
        if found is None:
            return
        reason = (
            f"{found} would have been written to the cassette; keep it out of the prompt, "
            "or have it redacted: redact=Redaction(patterns={'my-secret': r'...'})"
        )
    raise _refusal(reason, asked, settings)


def _hidden_in(text: str, tripwire: Tripwire, settings: Settings) -> str | None:
    """Return what JSON hides in a body that was redacted as text, because it is not quite JSON."""
    with LOADING:
        from ._documents import find_documents
    for document in find_documents(text).values:
        if settings.redaction.json(document) != document:
            return "a value that is to be redacted, in a body that is not quite JSON,"
        written = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if (found := tripwire.find(written)) is not None:
            return found
    return None


def _check_readable(asked: _Asked, settings: Settings) -> None:
    """Make sure that a binary stream could be read.

    Raises:
        CassetteWriteError: It could not; nothing was paid.
    """
    try:
        load_reader()
    except CassetteError as error:
        raise _refusal(error.message, asked, settings) from error


def _refusal(reason: str, asked: _Asked, settings: Settings) -> CassetteStop:
    fingerprint = asked.key.fingerprint
    refusal = CassetteWriteError(
        f"{asked.name} was not called, because it could not be stored: {reason}\n"
        f"  fingerprint  {fingerprint}",
        {"fingerprint": fingerprint, "status": None, "headers": (), "content": b""},
    )
    return stop(settings, refusal, fingerprint)


def _wants_stream(reading: Reading, dialect: Dialect) -> bool:
    """Tell whether a stream is asked for; what has no body may ask in the query, as a GET does."""
    if reading.kind:
        return dialect.wants_stream(reading.target.path, reading.body)
    return ("stream", "true") in parse_qsl(urlsplit(reading.call.url).query)


def _asks_for_messages(reading: Reading, dialect: Dialect, wants_stream: bool) -> bool:
    """Tell whether what is asked for is a stream of binary messages, by the address or in so many words."""
    if wants_stream and dialect.has_binary_streams(reading.target.path):
        return True
    return "vnd.amazon.eventstream" in (reading.call.header(b"accept") or "").lower()


def _verb(outcome: str) -> str:
    return outcome if outcome == "failed" else f"was {outcome}"


def _append(new: NewRecording, settings: Settings) -> Appended:
    shelf = settings.shelf
    if settings.mode is not Mode.RERECORD:
        return shelf.append(new, gen=shelf.newest_gen(new.key))
    # One at a time: of two samples that are stored at once only the first begins a generation.
    with _FRESH_LOCK:
        appended = shelf.append(new, gen=shelf.written.fresh_gen(new.key))
        shelf.written.mark_fresh(new.key, new.sample, appended.recording.head.gen)
    return appended


_FRESH_LOCK = threading.Lock()


def _after_fork() -> None:
    global _FRESH_LOCK
    _FRESH_LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows has none
    os.register_at_fork(after_in_child=_after_fork)


# -- hits that rest on a fold --------------------------------------------------------------------------


def _check_fold(recording: Recording, asked: _Asked, session: Session) -> None:
    """Warn once where a hit rests on a default that another provider documents."""
    folds, settings, host = asked.dialect.folds, session.settings, asked.target.host
    try:
        is_own = not folds.defaults or folds.is_own_host(host)
    except Exception as error:
        raise _unusable(blame(error, asked.dialect.name), asked, settings) from None
    if is_own or settings.policy.defaults is not True:
        return
    if not session.is_first_look((recording.path, recording.number)):
        return
    try:
        draft = Draft(recording.request, asked.dialect, settings.policy, host)
        key_document(draft)
    except INCOMPARABLE:
        return
    differing = ", ".join(sorted(set(draft.folded) ^ set(asked.key.folded)))
    if differing:
        session.warn_once(
            f"fold {host} {differing}",
            f"{recording.path}:{recording.number} answers a call that differs from it in {differing}: one "
            f"side sent the default that the format's own provider documents, the other nothing. If {host} "
            "has other defaults, switch the folding off: KeyPolicy(defaults=False)",
        )
