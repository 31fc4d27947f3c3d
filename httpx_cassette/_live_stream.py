"""The events of one real stream, parsed as they pass: how far it has come, and what is stored of it.

Content types lie and formats grow, so a stream is looked at before it is believed, and one that no table
explains is kept event by event.
Nothing here knows where the bytes come from or where the recording goes.
"""

from __future__ import annotations

import base64
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

from ._call import Json
from ._errors import CassetteError
from ._paths import Paths
from ._pieces import hides_secret, pieced_texts, without_spelled_secrets
from ._redact import Redaction
from ._rules import join_text
from .dialects import Dialect
from .dialects._blame import blame
from .dialects._framing import FRAMINGS, Event, load_event_json
from .dialects._script import Script, StreamTable, assemble, prove, verbatim

__all__ = ["LiveStream", "find_framing", "opaque_in", "redacted_answer", "redacted_script", "stored_bytes"]

# The first of these is llama.cpp's, and no SSE client's.
_SSE_STARTS = (b"error:", b"data:", b"event:", b"id:", b"retry:", b":")


def find_framing(start: bytes, content_type: str, wants_stream: bool, dialect: Dialect) -> str:
    """Return the framing of a body, empty for a whole document, or ``unsure`` while too little has come.

    Args:
        start: The first bytes of the body that are not blank.
        content_type: What the header says, in lower case.
        wants_stream: Whether the request asked for a stream.
        dialect: The wire format.
    """
    # The mark of UTF-8 may stand before a body of any kind.
    if len(start) < len(BOM_UTF8) and BOM_UTF8.startswith(start):
        return "unsure"
    start = start.removeprefix(BOM_UTF8).lstrip()
    if not start:
        return "unsure"
    if _is_binary(start, content_type, wants_stream, dialect):
        return "eventstream"
    if "event-stream" in content_type or (wants_stream and "ndjson" not in content_type):
        if start[:1] in (b"{", b"["):
            # One document or a stream of them: the dialect knows what its servers send.
            framing = "ndjson" if start[:1] == b"{" else "json-array" if wants_stream else ""
            return framing if dialect.stream_in(framing) is not None else ""
        if "event-stream" in content_type or start.startswith(_SSE_STARTS):
            return "sse"
        return "unsure" if any(name.startswith(start) for name in _SSE_STARTS) else ""
    return "ndjson" if ("ndjson" in content_type or "jsonl" in content_type) and start[:1] == b"{" else ""


def _is_binary(start: bytes, content_type: str, wants_stream: bool, dialect: Dialect) -> bool:
    """Tell whether a body is AWS's messages, each of which begins with its length: 24 MiB at the most."""
    if "vnd.amazon.eventstream" in content_type:
        return start[:1] not in (b"{", b"[")  # An error may be sent as one document all the same.
    return wants_stream and start[0] <= 1 and dialect.stream_in("eventstream") is not None


def stored_bytes(raw: bytes, redaction: Redaction) -> dict[str, Json]:
    """Return what is stored of bytes that are no text.

    Raises:
        CassetteError: A credential stands in them, which base64 would hide and not remove.
    """
    text = raw.decode("latin-1")
    if redaction.text(text) != text:
        raise CassetteError("a credential stands in an answer that is no text")
    return {"base64": base64.b64encode(raw).decode("ascii")}


class LiveStream:
    """The events of one stream.

    Args:
        framing: How it is divided into events.
        dialect: The wire format.
        asked: The body of the request, which may say how much is to come.

    Attributes:
        fault: Why the stream of a known format is stored event by event, if it is.
        awaits_more: Whether what the caller asked for may still come behind its end.
        finish: The finish reason.

    Raises:
        CassetteError: A function of the dialect raised; here and where it is fed and flushed, nowhere else.
    """

    def __init__(self, framing: str, dialect: Dialect, asked: Json = None) -> None:
        self.framing = framing
        self._dialect = dialect
        self._parser = FRAMINGS[framing].parser()
        self._table = dialect.stream_in(framing)
        try:
            self._progress = self._table.progress() if self._table is not None else _AnyProgress()
            self._progress.expect(asked)
            self._note()
        except Exception as error:
            raise blame(error, dialect.name) from None
        self._opaque = opaque_in(self._table)
        self._events: list[Event] = []
        self.fault: str | None = None

    @property
    def ends_with_body(self) -> bool:
        """Whether nothing but the end of the body ends this stream, which has not said that it is over."""
        return self._table is None and not self.is_terminated

    @property
    def fault_of_its_end(self) -> str | None:
        """What shows that a body is not the whole stream, once it was flushed; ``None`` if nothing does."""
        if self.is_complete or self.is_terminated:
            return None
        if not self.ends_with_body:
            return "the stream ended before its finish reason"
        if self._parser.is_torn:
            return "the stream ended in the middle of an event"
        return None if self._events or self._parser.overflowed else "the stream ended before its first event"

    @property
    def is_complete(self) -> bool:
        return self._is_complete and not self._parser.is_open

    @property
    def is_terminated(self) -> bool:
        # An array that is closed is over, and whole if it says so: what is cut short may be closed, too.
        is_closed = self._parser.is_open is False
        return self._is_terminated or (is_closed and self._is_complete)

    @property
    def error(self) -> str | None:
        """What shows that the stream failed before its end."""
        return self._error or (None if self._is_terminated else self._parser.fault)

    @property
    def failure(self) -> str:
        """What is told of an error: not its own words, which may quote anything."""
        return "the stream carried an error" if self._error else str(self._parser.fault)

    def feed(self, data: bytes) -> None:
        self._take(self._parser.feed(data))

    def flush(self) -> None:
        self._take(self._parser.flush())

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if self._is_terminated:
                return  # What a server sends behind its own end is read by nobody.
            self._events.append(event)
            try:
                value = load_event_json(event.data)
            except ValueError:
                value = None
            try:
                self._progress.observe(event, value)
                self._note()
            except Exception as error:
                raise blame(error, self._dialect.name) from None

    def _note(self) -> None:
        """Take over what the progress says, which may compute it, and so fail, in functions of its own."""
        progress = self._progress
        self._is_complete, self._is_terminated = progress.is_complete, progress.is_terminated
        self.awaits_more, self._error, self.finish = progress.awaits_more, progress.error, progress.finish

    def members(self, raw: bytes, redaction: Redaction) -> dict[str, Json]:
        """Return what is stored of the stream: its script, or where it is no text its bytes.

        Raises:
            CassetteError: A credential stands in it that cannot be replaced.
        """
        if not self._parser.is_text or self._parser.overflowed:
            return stored_bytes(raw, redaction)
        script, is_assembled = self._script()
        stored = redacted_script(script, self._table, is_assembled, redaction, self._opaque)
        kind = "assembled" if is_assembled else "verbatim"
        return {"framing": self.framing, "stored": kind, "script": stored}

    def _script(self) -> tuple[Script, bool]:
        """Return the script before it is redacted, and whether it is assembled."""
        if self._table is not None:
            script, self.fault = _assemble(self._events, self._table)
            if self.fault is None:
                return script, True
        return verbatim(self._events), False

    def texts_in_pieces(self, members: dict[str, Json]) -> Iterator[str]:
        """Yield what the pieces of a stream say together, as ``members`` are stored of it."""
        is_assembled = members.get("stored") == "assembled"
        for pieces in pieced_texts(members.get("script"), self._table, is_assembled, Paths(())):
            yield join_text(pieces)


def _without_paths(script: Script, redaction: Redaction) -> Script:
    """Return a script without what own paths lead to: through a document, and each event is one."""
    return [
        {**event, "json": redaction.at_paths(event["json"])}
        if isinstance(event, dict) and "json" in event
        else event
        for event in script
    ]


def _assemble(events: list[Event], table: StreamTable) -> tuple[Script, str | None]:
    """Return a stream's script, and what is wrong with it if anything is."""
    try:
        script = assemble(events, table)
        return script, prove(events, script, table)
    except Exception as error:  # An event of a shape that nobody thought of; the answer is paid for.
        return [], f"assembling it raised {type(error).__name__}"


class _AnyProgress:
    """How far a stream of an unknown format has come: only an error or ``[DONE]`` can be seen."""

    is_complete = False
    awaits_more = False
    finish: Json = None

    def __init__(self) -> None:
        self.is_terminated = False
        self.error: str | None = None

    def expect(self, request: Json) -> None:
        pass  # Nobody knows what the members of an unknown request ask for.

    def observe(self, event: Event, value: Any) -> None:
        self.is_terminated = self.is_terminated or event.data == "[DONE]"
        if event.event == "error" or any(name == "error" for name, _ in event.extra):
            self.error = event.data or "an error field"
        elif isinstance(value, dict) and isinstance(value.get("error"), dict):
            self.error = str(value["error"].get("message", "an error"))


def opaque_in(table: StreamTable | None) -> Paths:
    """Return where in a script something stands that must come back to the byte."""
    opaque = table.opaque if table is not None else ()
    return Paths(f"[*].json{'' if path[0] == '[' else '.'}{path}" for path in opaque)


def redacted_script(
    script: Script, table: StreamTable | None, is_assembled: bool, redaction: Redaction, opaque: Paths
) -> Json:
    """Return the events of a stream without their secrets.

    Args:
        script: The events.
        table: The format, if it is known.
        is_assembled: Whether the table explains the stream.
        redaction: What must not reach the file.
        opaque: Where something stands that must come back to the byte.

    Raises:
        CassetteError: A credential stands in pieces that were not joined, and cannot be replaced.
    """
    script = _without_paths(script, redaction)
    plain = without_spelled_secrets(script, redaction)
    for pieces in pieced_texts(plain, table, is_assembled, opaque):
        if hides_secret(pieces, redaction):
            raise CassetteError(
                "a credential stands in the text of the stream, in pieces that were not joined"
            )
    return redacted_answer(script, redaction, opaque)


def redacted_answer(document: Json, redaction: Redaction, opaque: Paths | None = None) -> Json:
    """Return an answer without its secrets, those too that a list spells token by token (``logprobs``).

    Args:
        document: The answer.
        redaction: What must not reach the file.
        opaque: Where something stands that must come back to the byte.
    """
    return without_spelled_secrets(redaction.json(document, opaque), redaction)
