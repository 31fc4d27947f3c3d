"""Plant credentials wherever a recorder could pick them up, and look for them in all that it leaves behind.

A hundred credentials, each written in four ways: as it is, as JSON in a string writes it, percent-encoded, and
in base64, where the request's own credential alone can be known. They stand in questions, in answers (in one
piece, in the pieces of a stream, in a tool's arguments), in headers of both sides and in URLs. Nothing of them
may be in the file, in a log, or in what is printed or raised.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx

from httpx_cassette import Cassette, CassetteStop, CassetteTransport

from ._calls import URL, completion, events_of, question
from ._credentials import WAYS, Planted, core, credentials, leaks
from ._store import credential_kinds
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]


# -- the trial -----------------------------------------------------------------------------------------


def _plant(setting: Setting, account: Account) -> None:
    planted = credentials(100, setting.random)
    missing = credential_kinds() - {each.kind for each in planted}
    account.expect(not missing, f"no credential of the kinds {sorted(missing)} is planted")
    ways = list(WAYS)
    for number, each in enumerate(planted):
        for way in ways[number % 4 : number % 4 + 1] if setting.is_short else ways:
            _plant_one(setting.folder, each, way, account, redact=True)
    account.see("credentials", len(planted))
    account.need("recorded without it", 20)
    account.need("refused", 5)

    def control(other: Account) -> None:
        for each in planted[:20]:
            _plant_one(setting.folder, each, "raw", other, redact=False)

    account.control(control)


def _plant_one(folder: Path, planted: Planted, way: str, account: Account, *, redact: bool) -> None:
    """Plant one credential in every place in turn, and look for it in what is left behind."""
    value, written = planted.value, f"use {WAYS[way](planted)} now"
    own = {}
    if way == "base64":
        # It hides every shape, and is looked for where the value is known: the request's own credential.
        if "\n" in value:
            return
        own = {"authorization": f"Bearer {value}"}
    for place, body, answer, url, headers in _places(written, value, own):
        path = folder / "planted.jsonl"
        path.unlink(missing_ok=True)
        heard = _listen(path, body, answer, url, headers, account, redact=redact)
        left = {
            "the file": path.read_text(encoding="utf-8", errors="replace") if path.exists() else "",
            **heard,
        }
        account.see("planted")
        for what, text in left.items():
            if leaks(text, value):
                account.fault(
                    f"{planted.kind}, {way}, planted in {place}, is in {what}: {_around(text, value)}"
                )


def _around(text: str, value: str) -> str:
    at = max(0, text.find(core(value)))
    return repr(text[max(0, at - 60) : at + 20])


Place = tuple[str, dict[str, object], httpx.Response, str, dict[str, str]]


def _places(written: str, value: str, own: dict[str, str]) -> Iterator[Place]:
    """Yield name of the place, body, answer, URL and headers of one call."""
    plain, streamed = question("a question"), question("a question", stream=True)
    fine, sse = completion("an answer"), {"content-type": "text/event-stream"}
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": written}}
    yield "the question", question(written), httpx.Response(200, json=fine), URL, own
    yield "the answer", plain, httpx.Response(200, json=completion(written)), URL, own
    yield "a tool's arguments", plain, httpx.Response(200, json=completion("", tool_calls=[call])), URL, own
    yield (
        "the pieces of a stream",
        streamed,
        httpx.Response(200, headers=sse, content=events_of(written, 5).__iter__()),
        URL,
        own,
    )
    yield (
        "an answer that is text",
        plain,
        httpx.Response(200, text=written, headers={"content-type": "text/plain"}),
        URL,
        own,
    )
    if not own and "\n" not in value:
        cookies = {"set-cookie": f"session={value}", "x-api-key": value}
        yield (
            "headers",
            plain,
            httpx.Response(200, json=fine, headers=cookies),
            URL,
            {"x-api-key": value, "cookie": f"s={value}"},
        )
        target = f"{URL}?api_key={quote(value, safe='')}"
        yield "the query", plain, httpx.Response(200, json=fine), target, {}


def _listen(
    path: Path, body: dict[str, object], answer: httpx.Response, url: str, headers: dict[str, str], account: Account,
    *, redact: bool,
) -> dict[str, str]:  # fmt: skip
    """Record one call, replay it, and miss; return everything that was printed, logged and raised."""
    printed, logged = io.StringIO(), io.StringIO()
    raised: list[str] = []
    log = logging.getLogger("httpx_cassette")
    handler, level = logging.StreamHandler(logged), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
            upstream = httpx.MockTransport(lambda request: answer)
            outcome = _call(path, "record", upstream, body, url, headers, raised, redact)
            account.see({"": "recorded without it", "CassetteWriteError": "refused"}.get(outcome, outcome))
            if not outcome:
                again = _call(path, "replay", None, body, url, headers, raised, redact)
                account.expect(not again, f"what was recorded is not replayed: {again}")
            other = {**body, "temperature": 0.5}
            account.expect(
                _call(path, "replay", None, other, url, headers, raised, redact) == "CassetteMiss",
                "it does not miss",
            )
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
    return {
        "what was printed": printed.getvalue(),
        "the log": logged.getvalue(),
        "an error": "\n".join(raised),
    }


def _call(
    path: Path, mode: str, upstream: httpx.BaseTransport | None, body: dict[str, object], url: str,
    headers: dict[str, str], raised: list[str], redact: bool,
) -> str:  # fmt: skip
    """Make a call and return the name of the error that it raised."""
    transport = CassetteTransport(
        Cassette(path, fsync=False), mode=mode, next_transport=upstream, on_miss=None, redact=redact
    )
    try:
        with httpx.Client(transport=transport) as asker:
            asker.post(url, json=body, headers=headers).read()
    except CassetteStop as stop:
        # The paid answer is in these attributes, whole, and nowhere else.
        facts = {name: fact for name, fact in stop.facts.items() if name not in ("content", "headers")}
        raised.append(f"{stop} {stop!r} {facts} {stop.__cause__} {stop.__cause__!r}")
        return type(stop).__name__
    return ""


TRIALS = (Trial("planted", "0 in file, log or message", _plant),)
