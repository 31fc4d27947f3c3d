"""Exchanges that no model answers: bodies come back byte for byte, and streams event by event.

No SDK need judge that: bytes are equal, or they are not. Where the format is known (an answer that was made
before is deleted), it is the meaning that comes back.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from ._exchanges import Exchange
from ._library import CassetteTransport, http
from ._said import Rules, first_difference, read_stream
from ._trial import Outcome, upstream

__all__ = ["try_unknown"]

#: How bodies that are no text are divided: as they are by default, and otherwise.
SIZES = (None, 1, 3, 5, 1000)

#: What is said where nothing else is.
DEFAULT_SIZE = 4096

_NUMBERS = itertools.count(1)


def try_unknown(
    exchange: Exchange, dialect: str, transport: type[CassetteTransport], folder: Path
) -> Outcome:
    """Record one exchange, replay it and return what became of it.

    Args:
        exchange: The exchange.
        dialect: Its dialect.
        transport: What records and replays.
        folder: Where its cassette may lie.
    """
    cassette = folder / f"unknown-{next(_NUMBERS)}.jsonl"
    options: dict[str, Any] = {"require_system": False, "on_miss": None, "fsync": False}
    recorder = transport(cassette, mode="record", next_transport=upstream(exchange), **options)
    received = _fetch(exchange, recorder)
    outcome = Outcome(exchange.id, is_stream="stream" in exchange.tags)
    if b"".join(received) != exchange.answer:
        outcome.blame("received", "the caller got other bytes than the server sent")
    reason = _reason_to_refuse(exchange)
    if recorder.stats.recorded != 1:
        outcome.refused = reason
        if not reason:
            outcome.blame("refused", dict(recorder.stats.unrecorded))
        return outcome
    if reason:
        outcome.blame("stored", f"although {reason}")
    response = json.loads(cassette.read_bytes())["response"]
    outcome.stored = response.get("stored", "plain")
    stored = json.dumps(response, ensure_ascii=False, separators=(",", ":"))
    outcome.bytes = len(exchange.answer), len(stored.encode(errors="surrogatepass"))
    for size in SIZES:
        chunks = _fetch(exchange, transport(cassette, wire_chunk_size=size, **options))
        _check_sizes([len(chunk) for chunk in chunks], response, size, outcome)
        if outcome.stored != "plain":
            _compare_events(exchange.answer, b"".join(chunks), outcome)
        elif dialect == "generic":
            _compare(exchange.answer, b"".join(chunks), outcome)
        elif json.loads(exchange.answer) != json.loads(b"".join(chunks)):
            outcome.blame("document")
    return outcome


def _fetch(exchange: Exchange, transport: CassetteTransport) -> list[bytes]:
    """Make the call and return the chunks of the answer, its content encoding undone."""
    body = exchange.body
    given: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
    headers = {"content-type": exchange.content_type} if exchange.content_type else {}
    with http.Client(transport=transport) as client:
        with client.stream(exchange.method, exchange.url, headers=headers, **given) as response:
            return list(response.iter_bytes())


def _reason_to_refuse(exchange: Exchange) -> str:
    if not 200 <= exchange.status < 400:
        return f"status {exchange.status}"
    is_events = "stream" in exchange.tags and b"data:" in exchange.answer
    return "error event" if is_events and read_stream(exchange.answer, Rules()).error is not None else ""


def _check_sizes(sizes: list[int], response: dict[str, Any], asked: int | None, outcome: Outcome) -> None:
    """Expect pieces of one size where a body is divided: one that is no text, and text if that is asked."""
    is_divided = "base64" in response or (asked is not None and "json" not in response)
    size = asked or DEFAULT_SIZE
    if is_divided and not ({size} >= set(sizes[:-1]) and all(0 < last <= size for last in sizes[-1:])):
        outcome.blame("wire chunks", f"of {sorted(set(sizes))} bytes and not of {size}")


def _compare(expected: bytes, actual: bytes, outcome: Outcome) -> None:
    if expected != actual:
        pairs = itertools.zip_longest(expected, actual)
        place = next(place for place, (one, other) in enumerate(pairs) if one != other)
        around = slice(max(place - 20, 0), place + 40)
        outcome.blame("bytes", f"at {place:,}: {expected[around]!r} -> {actual[around]!r}")


def _compare_events(expected: bytes, actual: bytes, outcome: Outcome) -> None:
    received, said = read_stream(expected, Rules()), read_stream(actual, Rules())
    outcome.events = received.events, said.events
    for name in ("events", "fields", "is_terminated"):
        found = first_difference(getattr(received, name), getattr(said, name), name)
        if found is not None:
            outcome.blame("events", f"{found.path}: {found.expected!r:.80} -> {found.actual!r:.80}")
