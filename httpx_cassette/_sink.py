"""A real answer on its way to the caller, and how it becomes a recording.

A sink sees every chunk before the caller does and hands back what must be stored first. It decides:

- a stream is stored when the event that ends it was seen, in the chunk that carries it: many clients never
  read past it, never reach the end of the body, never close;
- a stream whose choices all finished is stored when it is closed or ends;
- any other body is stored when its announced length, or its end, is reached;
- what was abandoned, cut short or failed is never stored as complete.

Nothing here reads from a network or writes a file.
"""

from __future__ import annotations

import base64
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ._call import Json
from ._canonical import NotJson, parse_json
from ._decoding import BodyTooLarge, make_decoder
from ._errors import CassetteError, CassetteWriteError
from ._recording import NewRecording
from ._redact import Redaction
from ._request import MAX_BODY
from ._tripwire import Tripwire
from .dialects import Dialect
from .dialects._framing import Event, EventParser, NdjsonParser, SseParser, load_event_json
from .dialects._script import assemble, prove, verbatim

__all__ = ["Append", "Fate", "LiveHead", "Sink", "UnprovedStreamWarning"]

#: Response headers that are kept; an allow-list, because what servers send is not known.
_KEPT_HEADERS = frozenset(
    {"content-type", "location", "request-id", "x-request-id", "apim-request-id", "x-amzn-requestid", "x-goog-request-id"}
)


class UnprovedStreamWarning(UserWarning):
    """A stream of a known format could not be assembled, and is stored event by event."""


class LiveHead(NamedTuple):
    """What comes before the body of a real answer.

    Args:
        status: The status code.
        headers: Raw name and value of every header.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]

    def header(self, name: bytes) -> str:
        """Return a header, empty where it was not sent; the name in lower case."""
        return ", ".join(value.decode("latin-1") for sent, value in self.headers if sent.lower() == name)


class Fate(NamedTuple):
    """Told once, when it is certain what became of an answer.

    Args:
        outcome: ``recorded``, or why it was not: ``abandoned``, ``truncated``, ``failed``, ``too large``.
        detail: A sentence for the log, empty for ``recorded``.
    """

    outcome: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Append:
    """A step for the driver: store a recording before the next chunk is handed on.

    Args:
        run: Stores it; blocks on the file.
    """

    run: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What the recording will hold beside the answer.

    Args:
        key: The fingerprint, 32 bytes.
        sample: Which of several answers it will be.
        dialect: The wire format.
        request: The request as stored.
        policy: What the key depends on beside the request.
        redaction: What must not reach the file.
        tripwire: The credentials that must not be in the line.
        wants_stream: Whether the request asked for a stream.
        store: Appends the recording; raises ``CassetteError`` where it cannot.
        settle: Told what became of the answer.
    """

    key: bytes
    sample: int
    dialect: Dialect
    request: dict[str, Json]
    policy: dict[str, Json]
    redaction: Redaction
    tripwire: Tripwire
    wants_stream: bool
    store: Callable[[NewRecording], None]
    settle: Callable[[Fate], None]


class Sink:
    """Watches one answer go by.

    Args:
        order: What the recording will hold beside the answer.
        head: Status and headers of the answer.
        started: When the call was made, as ``time.monotonic`` gives it.
    """

    def __init__(self, order: Order, head: LiveHead, started: float) -> None:
        self._order = order
        self._head = head
        self._started = started
        self._decoder = make_decoder(head.header(b"content-encoding"))
        length = head.header(b"content-length")
        self._announced = int(length) if length.isascii() and length.isdigit() else None
        self._received = 0
        self._body: list[bytes] = []
        self._size = 0
        self._stream: _Stream | None = None
        self._is_sniffed = False
        self.is_settled = False

    # -- what the driver tells ---------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether every choice of a stream has finished, so that what is missing is only its end."""
        return self._stream is not None and self._stream.is_complete

    def feed(self, chunk: bytes) -> Append | None:
        """Take note of a chunk; return what must be done before it is handed on."""
        if self.is_settled:
            return None
        self._received += len(chunk)
        try:
            data = self._decoder.feed(chunk)
        except BodyTooLarge:
            return self._drop("too large", f"the body is larger than {MAX_BODY:,} bytes")
        except ValueError as error:
            return self._drop("failed", str(error))
        if data:
            self._size += len(data)
            if self._size > MAX_BODY:
                return self._drop("too large", f"the body is larger than {MAX_BODY:,} bytes")
            self._body.append(data)
            self._sniff()
            if self._stream is not None:
                self._stream.feed(data)
        if self._stream is not None:
            return self._commit() if self._stream.is_terminated else None
        if self._announced is not None and self._received >= self._announced:
            return self._commit()
        return None

    def end(self) -> Append | None:
        """Take note of the end of the body; return what must be done before the caller sees it."""
        if self.is_settled:
            return None
        stream = self._stream
        if stream is not None:
            stream.flush()
            if not (stream.is_complete or stream.is_terminated or stream.ends_with_body):
                return self._drop("truncated", "the stream ended before its finish reason")
        return self._commit()

    def close(self) -> Append | None:
        """Take note that the caller wants no more; return what must be done before the connection is closed."""
        if self.is_settled:
            return None
        if self.is_complete:
            return self._commit()
        if self._stream is None and self._announced is None and self._received == 0 and self._head.status in _BODILESS:
            return self._commit()
        return self._drop("abandoned", "the caller stopped before the end of the answer")

    def fail(self, error: BaseException) -> None:
        """Take note that reading the answer raised; the driver lets the error through."""
        if not self.is_settled and not self.is_complete:
            self._drop("failed", f"reading the answer raised {type(error).__name__}")

    def forget(self) -> None:
        """Take note that the caller lost the answer: nothing is stored, whatever had come by then."""
        if not self.is_settled:
            self._drop("abandoned", "the caller lost the answer before its end")

    # -- deciding ----------------------------------------------------------------------------------

    def _drop(self, outcome: str, detail: str) -> None:
        self.is_settled = True
        self._body.clear()
        self._order.settle(Fate(outcome, detail))

    def _sniff(self) -> None:
        """Look at the first bytes: content types lie, in both directions."""
        if self._is_sniffed:
            return
        start = b"".join(self._body).lstrip()
        if not start:
            return
        framing = _framing(start, self._head.header(b"content-type").lower(), self._order)
        if framing == "unsure":
            return
        self._is_sniffed = True
        if framing:
            self._stream = _Stream(framing, self._order.dialect)
            for data in self._body[:-1]:
                self._stream.feed(data)

    def _commit(self) -> Append | None:
        self.is_settled = True
        stream = self._stream
        if stream is not None and stream.error is not None:
            self._order.settle(Fate("failed", "the stream carried an error"))
            return None
        response = self._response()
        if response is None:
            self._order.settle(Fate("failed", "the answer is an error inside a success"))
            return None
        body, finish = response
        return Append(lambda: self._store(body, finish))

    def _response(self) -> tuple[dict[str, Json], Json] | None:
        """Return the members of the answer's body and its finish reason, or ``None`` for an error."""
        raw, redaction = b"".join(self._body), self._order.redaction
        if self._stream is not None:
            members = self._stream.members(raw, redaction)
            return members, self._stream.finish
        if "json" in self._head.header(b"content-type").lower() or raw.lstrip()[:1] in (b"{", b"["):
            try:
                document = parse_json(raw)
            except NotJson:
                pass
            else:
                if self._order.dialect.is_failure(document):
                    return None
                return {"json": redaction.json(document)}, self._order.dialect.finish(document)
        try:
            return {"text": redaction.text(raw.decode("utf-8"))}, None
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(raw).decode("ascii")}, None

    def _store(self, members: dict[str, Json], finish: Json) -> None:
        order = self._order
        try:
            if self._stream is not None and self._stream.hides_secret(order.redaction):
                raise CassetteError("a credential stands in the text of the stream, which could not be assembled")
            new = NewRecording(
                key=order.key,
                sample=order.sample,
                at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                dialect=order.dialect.name,
                finish=finish,
                milliseconds=round((time.monotonic() - self._started) * 1000),
                response={"status": self._head.status, "headers": self._kept_headers(), **members},
                request=order.request,
                policy=order.policy,
            )
            found = order.tripwire.find(new.body)
            if found is not None:
                raise CassetteError(f"{found} would have been written to the cassette")
            order.store(new)
        except CassetteError as error:
            order.settle(Fate("failed", error.message))
            raise self._write_error(error) from error
        order.settle(Fate("recorded"))

    def _kept_headers(self) -> dict[str, Json]:
        kept: dict[str, Json] = {}
        for name, value in self._head.headers:
            lowered = name.decode("latin-1").lower()
            if lowered in _KEPT_HEADERS:
                text = value.decode("latin-1")
                redaction = self._order.redaction
                kept[lowered] = redaction.url(text) if lowered == "location" else redaction.text(text)
        return kept

    def _write_error(self, error: CassetteError) -> CassetteWriteError:
        content = b"".join(self._body)
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in self._head.headers)
        return CassetteWriteError(
            f"the answer was paid for and could not be stored: {error}\n"
            f"  the answer   {self._head.status}, {len(content):,} bytes, in the attributes of this error\n"
            f"  fingerprint  {self._order.key.hex()}",
            {
                "fingerprint": self._order.key.hex(),
                "status": self._head.status,
                "headers": headers,
                "content": content,
            },
        )


#: Answers that have no body, and that nobody reads therefore.
_BODILESS = frozenset({204, 304})


def _framing(start: bytes, content_type: str, order: Order) -> str:
    """Return ``sse``, ``ndjson``, empty for a whole body, or ``unsure`` while too little has come."""
    table = order.dialect.stream
    if "event-stream" in content_type or (order.wants_stream and "ndjson" not in content_type):
        if start[:1] in (b"{", b"["):
            return "ndjson" if table is not None and table.framing == "ndjson" and start[:1] == b"{" else ""
        if "event-stream" in content_type or start.startswith(_SSE_STARTS):
            return "sse"
        return "unsure" if any(name.startswith(start) for name in _SSE_STARTS) else ""
    return "ndjson" if ("ndjson" in content_type or "jsonl" in content_type) and start[:1] == b"{" else ""


_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


# -- streams -------------------------------------------------------------------------------------------


class _Stream:
    """The events of one stream, parsed as they pass."""

    def __init__(self, framing: str, dialect: Dialect) -> None:
        self.framing = framing
        self._dialect = dialect
        self._parser: EventParser = NdjsonParser() if framing == "ndjson" else SseParser()
        self._table = dialect.stream if dialect.stream is not None and dialect.stream.framing == framing else None
        self._progress = self._table.progress() if self._table is not None else _AnyProgress()
        self._events: list[Event] = []
        self._is_verbatim = False

    @property
    def ends_with_body(self) -> bool:
        """Whether nothing but the end of the body ends streams of this format."""
        return self._table is None

    @property
    def is_complete(self) -> bool:
        return self._progress.is_complete

    @property
    def is_terminated(self) -> bool:
        return self._progress.is_terminated

    @property
    def error(self) -> str | None:
        return self._progress.error

    @property
    def finish(self) -> Json:
        return self._progress.finish

    def feed(self, data: bytes) -> None:
        self._take(self._parser.feed(data))

    def flush(self) -> None:
        self._take(self._parser.flush())

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if self._progress.is_terminated:
                return  # What a server sends behind its own end is read by nobody.
            self._events.append(event)
            try:
                value = load_event_json(event.data)
            except ValueError:
                value = None
            self._progress.observe(event, value)

    def members(self, raw: bytes, redaction: Redaction) -> dict[str, Json]:
        """Return what is stored of the stream: its script, or where it is no text its bytes."""
        if not self._parser.is_text or self._parser.overflowed:
            return {"base64": base64.b64encode(raw).decode("ascii")}
        table = self._table
        if table is not None:
            script = assemble(self._events, table)
            fault = prove(self._events, script, table)
            if fault is None:
                return self._script(redaction.json(script), "assembled")
            warnings.warn(
                f"a {self._dialect.name} stream is stored event by event, because {fault}; please report it",
                UnprovedStreamWarning,
                stacklevel=2,
            )
        self._is_verbatim = True
        return self._script(redaction.json(verbatim(self._events)), "verbatim")

    def _script(self, script: Json, stored: str) -> dict[str, Json]:
        return {"framing": self.framing, "stored": stored, "script": script}

    def hides_secret(self, redaction: Redaction) -> bool:
        """Tell whether text that stands in pieces holds a credential that no piece shows.

        Without a table nothing says which pieces belong together, so those that stand at one place are joined.
        """
        if not self._is_verbatim:
            return False
        pieces: dict[str, list[str]] = {}
        for event in verbatim(self._events):
            _collect_text(event, "", pieces)
        return any(redaction.text("".join(found)) != "".join(map(redaction.text, found)) for found in pieces.values())


def _collect_text(value: Json, place: str, pieces: dict[str, list[str]]) -> None:
    if isinstance(value, str):
        pieces.setdefault(place, []).append(value)
    elif isinstance(value, Mapping):
        for name, child in value.items():
            _collect_text(child, f"{place}.{name}", pieces)
    elif isinstance(value, list):
        for child in value:
            _collect_text(child, f"{place}[]", pieces)


class _AnyProgress:
    """How far a stream of an unknown format has come: only an error or ``[DONE]`` can be seen."""

    is_complete = False
    finish: Json = None

    def __init__(self) -> None:
        self.is_terminated = False
        self.error: str | None = None

    def observe(self, event: Event, value: Any) -> None:
        self.is_terminated = self.is_terminated or event.data == "[DONE]"
        if event.event == "error" or any(name == "error" for name, _ in event.extra):
            self.error = event.data or "an error field"
        elif isinstance(value, dict) and isinstance(value.get("error"), dict):
            self.error = str(value["error"].get("message", "an error"))
