"""One exchange, recorded and replayed in every way, and the invariants held against it.

Decides what is compared and what may be missing. Knows no wire format: that is what judges are for.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ._exchanges import Exchange
from ._judge import Judge, Verdict
from ._library import CassetteTransport, http
from ._said import Difference, Said, first_difference, read_stream

__all__ = ["SETTINGS", "Fault", "Outcome", "Setting", "try_exchange", "upstream"]


class Setting(NamedTuple):
    """How a replayed stream is cut.

    Args:
        chunk_size: Characters of text in an event.
        wire_chunk_size: Bytes in a chunk; ``None`` for one event.
    """

    chunk_size: int
    wire_chunk_size: int | None = None

    def __str__(self) -> str:
        size = "all" if self.chunk_size == ALL else str(self.chunk_size)
        return size if self.wire_chunk_size is None else f"{size} (wire chunks of {self.wire_chunk_size})"


#: A chunk size that no text reaches.
ALL = 10**9

SETTINGS = (
    *(Setting(size) for size in (1, 2, 7, 64, ALL)),
    *(Setting(7, size) for size in (1, 3, 5)),
)


@dataclass
class Fault:
    """One thing that is not as it must be.

    Args:
        what: Which promise is broken.
        detail: Where it differs and what stands there.
        settings: How the stream was cut, each time that it was so; empty where that does not matter.
    """

    what: str
    detail: str
    settings: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What became of one exchange.

    Args:
        id: The exchange.
        is_stream: Whether it is a stream.
        stored: ``assembled``, ``verbatim``, ``plain``, or empty where it was refused.
        refused: Why it was not stored, where that is right.
        faults: What is wrong.
        sdk_raised: What the SDK raised on the answer as received.
        events: Events received and stored.
        bytes: Bytes of the answer, received and stored.
        dropped: What was received and is not kept, with how often.
    """

    id: str
    is_stream: bool
    stored: str = ""
    refused: str = ""
    faults: list[Fault] = field(default_factory=list)
    sdk_raised: str | None = None
    events: tuple[int, int] = (0, 0)
    bytes: tuple[int, int] = (0, 0)
    dropped: dict[str, int] = field(default_factory=dict)

    def blame(self, what: str, detail: object = "", setting: Setting | None = None) -> None:
        """Add a fault, or to a fault one more way of cutting in which it shows."""
        fault = next((each for each in self.faults if (each.what, each.detail) == (what, str(detail))), None)
        if fault is None:
            fault = Fault(what, str(detail))
            self.faults.append(fault)
        if setting is not None and str(setting) not in fault.settings:
            fault.settings.append(str(setting))


def try_exchange(
    exchange: Exchange,
    judge: Judge,
    transport: type[CassetteTransport],
    folder: Path,
    settings: Sequence[Setting] = SETTINGS,
) -> Outcome:
    """Record one exchange, replay it in several ways and return what became of it.

    Args:
        exchange: The exchange.
        judge: The SDK that speaks its format.
        transport: What records and replays.
        folder: Where its cassette may lie.
        settings: In which ways; by default in all.
    """
    # Exchanges of two files may have one name.
    trial = _Trial(exchange, judge, transport, folder / f"{next(_NUMBERS)}.jsonl")
    trial.run(settings)
    return trial.outcome


_NUMBERS = itertools.count(1)


class _Trial:
    def __init__(
        self, exchange: Exchange, judge: Judge, transport: type[CassetteTransport], cassette: Path
    ) -> None:
        self._exchange = exchange
        self._judge = judge
        self._transport_class = transport
        self._cassette = cassette
        # A stream that is asked for may be answered with one document.
        rules = judge.rules
        documents = {b"{", b"["} - {b"[" if rules.has_arrays else b"", b"{" if rules.has_lines else b""}
        is_stream = judge.is_stream and exchange.answer.lstrip()[:1] not in documents
        self._received = read_stream(exchange.answer, judge.rules) if is_stream else None
        self._live = Verdict()
        self._live_requests: list[http.Request] = []
        self.outcome = Outcome(exchange.id, is_stream)

    def run(self, settings: Sequence[Setting]) -> None:
        outcome, received = self.outcome, self._received
        recorder = self._transport(mode="record", next_transport=upstream(self._exchange))
        self._live = live = self._ask(recorder)
        outcome.sdk_raised = live.raised
        reason = self._reason_to_refuse()
        if recorder.stats.recorded != 1:
            outcome.refused = reason
            if not reason:
                outcome.blame("refused", dict(recorder.stats.unrecorded))
            return
        if reason:
            outcome.blame("stored", f"although {reason}")
        self._live_requests = list(self._judge.next_requests(live))
        response = json.loads(self._cassette.read_bytes())["response"]
        outcome.stored = response.get("stored", "plain")
        stored = json.dumps(response, ensure_ascii=False, separators=(",", ":"))
        outcome.bytes = len(self._exchange.answer), len(stored.encode(errors="surrogatepass"))
        if received is None:
            self._try_plain()
            return
        outcome.events = received.events, len(response.get("script", ()))
        outcome.dropped = dict(received.dropped)
        for setting in settings:
            self._try_stream(received, setting)

    def _reason_to_refuse(self) -> str:
        """Return why the exchange must not be stored, or nothing: there is no other reason."""
        status = self._exchange.status
        if not 200 <= status < 400:
            return f"status {status}"
        if self._received is not None and self._received.error is not None:
            return "error event"
        if self._received is None and self._judge.is_error(_parse(self._exchange.answer)):
            return "error in a success"
        return "truncated" if "truncated" in self._exchange.tags else ""

    def _transport(self, **options: Any) -> CassetteTransport:
        # Recorded conversations may lack a system prompt, and a miss here is a finding, not the end.
        return self._transport_class(
            self._cassette, require_system=False, on_miss=None, fsync=False, **options
        )

    def _ask(self, transport: CassetteTransport) -> Verdict:
        return self._judge.normalise(self._judge.ask(transport), self._received or Said())

    # -- the invariants ----------------------------------------------------------------------------

    def _try_stream(self, received: Said, setting: Setting) -> None:
        transport = self._transport(**setting._asdict())
        replayed = self._ask(transport)
        self._compare("SDK object", self._live.final, replayed.final, setting)
        sizes, body = self._read_plainly(transport)
        self._check_wire_chunks(sizes, setting)
        said = read_stream(body, self._judge.rules)
        for name in ("texts", "lists", "running", "sequences", "fields", "speakers", "is_terminated"):
            self._compare(name, getattr(received, name), getattr(said, name), setting)
        if received.numbers is not None and received.numbers[1]:
            self._compare("numbers", received.numbers, said.numbers, setting)
        for path, adds_up in received.totals.items():
            if adds_up and not said.totals.get(path, True):
                self.outcome.blame("running total", path, setting)
        for slot, longest in said.longest.items():
            # What was never joined need not be cut.
            if longest > max(setting.chunk_size, received.longest.get(slot, 0)):
                self.outcome.blame("chunk size", f"{slot} has a piece of {longest} characters", setting)
        self._close_conversation(transport, replayed, setting)

    def _try_plain(self) -> None:
        transport = self._transport()
        replayed = self._ask(transport)
        self._compare("SDK object", self._live.final, replayed.final)
        _, body = self._read_plainly(transport)
        self._compare("document", _parse(self._exchange.answer), _parse(body))
        self._close_conversation(transport, replayed)

    def _read_plainly(self, transport: CassetteTransport) -> tuple[list[int], bytes]:
        """Return the sizes of the chunks of a replayed body, and the body, as seen without an SDK."""
        exchange = self._exchange
        with http.Client(transport=transport) as client:
            with client.stream(exchange.method, exchange.url, json=exchange.body) as response:
                chunks = list(response.iter_raw())
        return [len(chunk) for chunk in chunks], b"".join(chunks)

    def _check_wire_chunks(self, sizes: list[int], setting: Setting) -> None:
        wire = setting.wire_chunk_size
        if wire is not None and not all(size == wire for size in sizes[:-1]):
            self.outcome.blame("wire chunks", f"of {sorted(set(sizes))} bytes", setting)

    def _close_conversation(
        self, transport: CassetteTransport, replayed: Verdict, setting: Setting | None = None
    ) -> None:
        pairs = itertools.zip_longest(self._live_requests, self._next_requests(replayed))
        for number, (expected, actual) in enumerate(pairs):
            if expected is None or actual is None:
                self.outcome.blame("next request", f"number {number} is made of one answer only", setting)
                continue
            keys = [transport.fingerprint(request) for request in (expected, actual)]
            if keys[0] != keys[1]:
                found = first_difference(_parse(expected.content), _parse(actual.content))
                detail = "keys of the same body" if found is None else _show_difference(found)
                self.outcome.blame("next request", detail, setting)

    def _next_requests(self, replayed: Verdict) -> Iterable[http.Request]:
        """Return the requests with which it can go on; of equal verdicts an SDK makes the same ones."""
        live, again = (
            {"document": each.document, "messages": each.messages} for each in (self._live, replayed)
        )
        is_same = self._live.raised == replayed.raised and first_difference(live, again) is None
        return self._live_requests if is_same else self._judge.next_requests(replayed)

    def _compare(self, what: str, expected: Any, actual: Any, setting: Setting | None = None) -> None:
        found = first_difference(expected, actual)
        if found is not None:
            self.outcome.blame(what, _show_difference(found), setting)


def upstream(exchange: Exchange) -> http.MockTransport:
    """Return a server that answers any call as it was answered."""

    def answer(request: http.Request) -> http.Response:
        headers, chunks = exchange.sent()
        return http.Response(exchange.status, headers=headers, content=chunks)

    return http.MockTransport(answer)


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body


def _show_difference(found: Difference) -> str:
    return f"{found.path}: {_show(found.expected, found.actual)}"


def _show(expected: Any, actual: Any) -> str:
    """Return two values as they are printed, of long ones what surrounds their first difference."""
    shown = [repr(expected), repr(actual)]
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(*shown, strict=False))
    start = max(sum(1 for _ in same) - 20, 0)
    return " -> ".join(("..." if start else "") + text[start : start + 60] for text in shown)
