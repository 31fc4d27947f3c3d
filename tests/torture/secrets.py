"""Plant credentials wherever a recorder could pick them up, and look for them in all that it leaves behind.

A hundred credentials, each written in four ways, two of them in the short form: as it is, as JSON in a string
writes it, percent-encoded, and in base64, where the request's own credential alone can be known. They stand
in questions, in answers (in one piece, in the pieces of a stream, in a tool's arguments), in headers of both
sides and in URLs. Nothing of them may be in the file, in a log, or in what is printed or raised.
"""

from __future__ import annotations

import contextlib
import io
import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from httpx_cassette import Cassette, CassetteStop

from ._calls import URL, client, completion, events_of, question
from ._credentials import WAYS, Planted, core, credentials, leaks
from ._store import credential_kinds
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]


# -- the trial -----------------------------------------------------------------------------------------


def _plant(setting: Setting, account: Account) -> None:
    planted = credentials(100, setting.random)
    missing = credential_kinds() - {each.kind for each in planted}
    account.expect(not missing, f"no credential of the kinds {sorted(missing)} is planted")
    for each in planted:
        for way in _two_ways(each, setting.random) if setting.is_short else _ways(each):
            _plant_one(setting.folder, each, way, account, redact=True)
    account.see("credentials", len(planted))
    account.need("recorded without it", 20)
    account.need("refused", 5)

    def control(other: Account) -> None:
        for each in planted[:20]:
            _plant_one(setting.folder, each, "raw", other, redact=False)

    account.control(control)


def _ways(planted: Planted) -> list[str]:
    """Return the ways to write a credential; what has several lines is never sent in a header."""
    return [way for way in WAYS if way != "base64" or "\n" not in planted.value]


def _two_ways(planted: Planted, chance: random.Random) -> list[str]:
    """Draw two ways, the first of which does not hide the shape."""
    ways = _ways(planted)
    first = chance.choice([way for way in ways if way != "base64"])
    return [first, chance.choice([way for way in ways if way != first])]


class Place(NamedTuple):
    """A call that carries a credential somewhere.

    Args:
        name: Where.
        body: What is asked.
        answer: What the server says; used once.
        url: The URL of the call.
        headers: Its headers.
    """

    name: str
    body: dict[str, Any]
    answer: httpx.Response
    url: str = URL
    headers: dict[str, str] = {}  # noqa: RUF012  # nobody changes it


def _plant_one(folder: Path, planted: Planted, way: str, account: Account, *, redact: bool) -> None:
    """Plant one credential in every place in turn, and look for it in what is left behind."""
    value, written = planted.value, f"use {WAYS[way](planted)} now"
    own = {}
    if way == "base64":
        # It hides every shape, and is looked for where the value is known: the request's own credential.
        own = {"authorization": f"Bearer {value}"}
    for place in _places(written, value, own):
        path = folder / "planted.jsonl"
        path.unlink(missing_ok=True)
        left = _listen(path, place, account, redact=redact)
        left["the file"] = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        account.see("planted")
        for what, text in left.items():
            if leaks(text, value):
                shown = _around(text, value)
                account.fault(f"{planted.kind}, {way}, planted in {place.name}, is in {what}: {shown}")


def _around(text: str, value: str) -> str:
    at = max(0, text.find(core(value)))
    return repr(text[max(0, at - 60) : at + 20])


def _places(written: str, value: str, own: dict[str, str]) -> Iterator[Place]:
    plain, streamed = question("a question"), question("a question", stream=True)
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": written}}
    says_it, calls_it = completion(written), completion("", tool_calls=[call])
    events = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=iter(events_of(written, 5))
    )
    yield Place("the question", question(written), _fine(), headers=own)
    yield Place("the answer", plain, httpx.Response(200, json=says_it), headers=own)
    yield Place("a tool's arguments", plain, httpx.Response(200, json=calls_it), headers=own)
    yield Place("the pieces of a stream", streamed, events, headers=own)
    yield Place("an answer that is text", plain, httpx.Response(200, text=written), headers=own)
    if not own and "\n" not in value:
        cookies = {"set-cookie": f"session={value}", "x-api-key": value}
        sent = {"x-api-key": value, "cookie": f"s={value}"}
        yield Place("headers", plain, _fine(cookies), headers=sent)
        yield Place("the query", plain, _fine(), url=f"{URL}?api_key={quote(value, safe='')}")


def _fine(headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(200, json=completion("an answer"), headers=headers)


def _listen(path: Path, place: Place, account: Account, *, redact: bool) -> dict[str, str]:
    """Record the call, replay it, let another miss; return everything that was printed, logged and raised."""
    printed, logged = io.StringIO(), io.StringIO()
    raised: list[str] = []
    log = logging.getLogger("httpx_cassette")
    handler, level = logging.StreamHandler(logged), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            outcome = _call(path, "record", place, raised, redact)
            account.see({"": "recorded without it", "CassetteWriteError": "refused"}.get(outcome, outcome))
            if not outcome:
                again = _call(path, "replay", place, raised, redact)
                account.expect(not again, f"what was recorded is not replayed: {again}")
            other = place._replace(body={**place.body, "temperature": 0.5})
            missed = _call(path, "replay", other, raised, redact)
            account.expect(
                missed == "CassetteMiss", f"what was never recorded came to {missed or 'an answer'}"
            )
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    return {
        "what was printed": printed.getvalue(),
        "the log": logged.getvalue(),
        "an error": "\n".join(raised),
    }


def _call(path: Path, mode: str, place: Place, raised: list[str], redact: bool) -> str:
    """Make a call and return the name of the error that it raised."""
    upstream = httpx.MockTransport(lambda request: place.answer) if mode == "record" else None
    try:
        with client(Cassette(path, fsync=False), mode, upstream, redact=redact) as asker:
            asker.post(place.url, json=place.body, headers=place.headers)
    except CassetteStop as stop:
        # The paid answer is in these attributes, whole, and nowhere else.
        facts = {name: fact for name, fact in stop.facts.items() if name not in ("content", "headers")}
        raised.append(f"{stop} {stop!r} {facts} {stop.__cause__} {stop.__cause__!r}")
        return type(stop).__name__
    return ""


TRIALS = (Trial("planted", "0 in file, log or message", _plant),)
