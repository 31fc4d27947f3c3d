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
import json
import re
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import chain
from typing import NamedTuple, cast

from ._call import Json, LiveHead
from ._decoding import BodyTooLarge, make_decoder
from ._documents import Documents, find_documents
from ._errors import CassetteError, CassetteStop, CassetteWriteError, is_stop
from ._layout import find_layout
from ._live_stream import LiveStream, find_framing, redacted_answer, stored_bytes
from ._parsing import NotJson, parse_json
from ._recording import NewRecording
from ._redact import Redaction, without_values
from ._request import MAX_BODY
from ._tripwire import Tripwire
from .dialects import GENERIC, Dialect
from .dialects._blame import blame

__all__ = ["Append", "Fate", "Sink", "redacted_header"]

__tracebackhide__ = is_stop

#: Response headers that are kept; an allow-list, because what servers send is not known.
_KEPT_HEADERS = frozenset(
    {
        "content-type",
        "content-disposition",  # the name of a file
        "content-range",  # which part of it this is
        "link",  # the next page of a list: without it a replayed loop ends after the first
        "location",
        "request-id",
        "x-request-id",
        "apim-request-id",
        "x-amzn-requestid",
        "x-goog-request-id",
        # Where a file goes, and whether all of it has come: Google's SDKs upload by two calls or more.
        "x-goog-upload-status",
        "x-goog-upload-url",
    }
)

_HIDDEN = "a secret stands in JSON that cannot be stored as such"
_TORN_ENCODING = "its content encoding ends in its middle"

#: Answers that have no body, and that nobody reads therefore.
_BODILESS = frozenset({204, 304})


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
        lent: Those of the request that its stored form has not: an answer may repeat them.
        wants_stream: Whether the request asked for a stream.
        store: Appends the recording; ``False`` where another one was there first; raises where it cannot.
        settle: Told what became of the answer.
        stop: Enters an error in the ledger and returns it to be raised.
        warn: Logs a warning, once; raises nothing.
        reading: Told when the caller asks for more of the answer, and when he has it.
    """

    key: bytes
    sample: int
    dialect: Dialect
    request: dict[str, Json]
    policy: dict[str, Json]
    redaction: Redaction
    tripwire: Tripwire
    lent: frozenset[str] = field(default=frozenset(), kw_only=True)
    wants_stream: bool
    store: Callable[[NewRecording], bool | None]
    settle: Callable[[Fate], None]
    stop: Callable[[CassetteStop], CassetteStop]
    warn: Callable[[str], None]
    reading: Callable[[bool], None] = lambda is_read: None


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
        self._announced = int(length) if length.isascii() and length.isdigit() and len(length) < 19 else None
        self._received = 0
        self._body: list[bytes] = []
        self._size = 0
        self._stream: LiveStream | None = None
        self._is_sniffed = self._is_file_of_lines = False
        self._is_success = 200 <= head.status < 300
        self._is_storing = self._is_told = False
        self.is_settled = False

    # -- what the driver tells ---------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether every choice of a stream has finished, so that what is missing is only its end."""
        return self._stream is not None and self._stream.is_complete and self._stream.error is None

    def reading(self, is_read: bool) -> None:
        """Take note that the caller waits for more of the answer, or that it lies with him."""
        self._order.reading(is_read)

    def feed(self, chunk: bytes) -> Append | None:
        """Take note of a chunk; return what must be done before it is handed on."""
        if self.is_settled:
            return None
        self._received += len(chunk)
        try:
            data = self._decoder.feed(chunk)
            self._size += len(data)
            if self._size > MAX_BODY:
                raise BodyTooLarge
        except BodyTooLarge:
            self._settle("too large", f"the body is larger than {MAX_BODY:,} bytes")
            return None
        except ValueError as error:
            self._settle("failed", str(error))
            return None
        except Exception as error:
            self._give_up(error)
            return None
        if data:
            self._body.append(data)
            try:
                self._sniff()
                if self._stream is not None:
                    self._stream.feed(data)
            except Exception as error:
                self._give_up(error)
                return None
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
        fault = None
        if stream is not None:
            try:
                stream.flush()
            except Exception as error:
                self._give_up(error)
                return None
            fault = stream.fault_of_its_end
        if fault is None and (stream is None or stream.ends_with_body):
            fault = self._fault_of_the_body()
        if fault is not None and (stream is None or stream.error is None):
            self._settle("truncated", fault)
            return None
        return self._commit()

    def _give_up(self, error: Exception) -> None:
        """Stop reading along: what nobody thought of must not cost the caller his answer."""
        is_known = isinstance(error, CassetteError)
        self._settle("failed", str(error) if is_known else f"reading along raised {type(error).__name__}")

    def _fault_of_the_body(self) -> str | None:
        """Return what shows that bytes are missing, where nothing in the body says that it is whole."""
        if not self._has_no_body() and self._received < (self._announced or 0):
            return f"{self._received:,} of {self._announced:,} bytes came"
        if self._stream is not None and not self._decoder.is_finished:
            return _TORN_ENCODING
        return None

    def close(self) -> Append | None:
        """Take note that the caller wants no more; return what must be done before the connection closes."""
        if self.is_settled:
            return None
        stream = self._stream
        # A caller who stops early may have waited for nothing; the next one may want what was asked for.
        if stream is not None and (
            (stream.is_complete and not stream.awaits_more) or stream.error is not None
        ):
            return self._commit()
        if self._received == 0 and self._has_no_body():
            return self._commit()
        self._settle("abandoned", "the caller stopped before the end of the answer")
        return None

    def fail(self, error: BaseException) -> None:
        """Take note that reading the answer raised; the driver lets the error through."""
        if not self.is_settled:
            # What is no ``Exception`` comes from the caller's side: a cancelled task, Ctrl-C.
            outcome = "failed" if isinstance(error, Exception) else "abandoned"
            self._settle(outcome, f"reading the answer raised {type(error).__name__}")

    def forget(self) -> None:
        """Take note that the caller lost the answer: nothing is stored, whatever had come by then."""
        # Not only while it is unsettled: Ctrl-C may come between the decision to store and the storing.
        if not self._is_told and not self._is_storing:
            self._settle("abandoned", "the caller lost the answer before its end")

    # -- deciding ----------------------------------------------------------------------------------

    def _settle(self, outcome: str, detail: str) -> None:
        self.is_settled = self._is_told = True
        self._body.clear()
        self._order.settle(Fate(outcome, detail))

    def _has_no_body(self) -> bool:
        is_head = self._order.request.get("method") == "HEAD"
        return is_head or self._head.status in _BODILESS or self._announced == 0

    def _sniff(self) -> None:
        """Look at the first bytes: content types lie, in both directions."""
        if self._is_sniffed:
            return
        start = b"".join(self._body).lstrip()
        if not start:
            return
        order, content_type = self._order, self._head.header(b"content-type").lower()
        # An error that is stored on request is stored as it is, and ends where it ends.
        framing = (
            find_framing(start, content_type, order.wants_stream, order.dialect) if self._is_success else ""
        )
        if framing == "unsure":
            return
        self._is_sniffed = True
        if framing == "ndjson" and order.dialect is GENERIC and order.request.get("method") == "GET":
            # The results of a batch, or another file of lines: it comes back byte for byte.
            self._is_file_of_lines = True
            return
        if framing:
            self._stream = LiveStream(framing, order.dialect, order.request.get("json"))
            for data in self._body[:-1]:
                self._stream.feed(data)

    def _commit(self) -> Append | None:
        if self._stream is not None and self._stream.error is not None:
            self._settle("failed", self._stream.failure)
            return None
        self.is_settled = True
        return Append(self._store)

    def _store(self) -> None:
        """Make a recording of the answer and store it.

        Raises:
            CassetteWriteError: It cannot be stored; the error carries the answer.
        """
        self._is_storing = True
        try:
            fate = self._try_to_store()
        except Exception as error:
            reason = error.message if isinstance(error, CassetteError) else type(error).__name__
            failure = self._write_error(error)
            self._settle("failed", reason)
            # A foreign error is not shown: its text may quote what must not be printed.
            raise self._order.stop(failure) from (error if isinstance(error, CassetteError) else None)
        except BaseException as error:
            self._settle("failed", f"storing it was stopped by {type(error).__name__}")
            raise
        self._settle(*fate)
        if self._stream is not None and self._stream.fault is not None:
            # In the log: where warnings are errors, one would end the stream in the caller's hands.
            self._order.warn(
                f"a stream of the dialect {self._order.dialect.name!r} is stored event by event, because "
                f"{self._stream.fault}; please report it"
            )

    def _try_to_store(self) -> Fate:
        order = self._order
        members = self._stream_members() if self._stream is not None else self._plain_members()
        if isinstance(members, Fate):
            return members
        body, finish = members
        body = {name: without_values(value, order.lent) for name, value in body.items()}
        if not all(self._is_plain(find_documents(text)) for text in _unread_texts(body)):
            raise CassetteError(_HIDDEN)
        new = NewRecording(
            key=order.key,
            sample=order.sample,
            at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            dialect=order.dialect.name,
            # Its own words: gateways put the sentence of an error there.
            finish=order.redaction.json(finish),
            milliseconds=round((time.monotonic() - self._started) * 1000),
            response={"status": self._head.status, "headers": self._kept_headers(body), **body},
            request=order.request,
            policy=order.policy,
        )
        found = self._find_credential(new.body, body)
        if found is not None:
            raise CassetteError(
                f"{found} would have been written to the cassette; keep it out of the prompt and the answer, "
                "or have it redacted: redact=Redaction(patterns={'my-secret': r'...'})"
            )
        if order.store(new) is False:
            return Fate("stored by another", "an identical call stored its own answer first")
        return Fate("recorded")

    def _stream_members(self) -> tuple[dict[str, Json], Json]:
        """Return the members of a stream and its finish reason."""
        assert self._stream is not None
        members = self._stream.members(b"".join(self._body), self._order.redaction)
        return members, self._stream.finish

    def _find_credential(self, line: bytes, members: dict[str, Json]) -> str | None:
        """Return the name of a credential at hand that is in the line, or in what its pieces say together."""
        find = self._order.tripwire.find
        texts = self._stream.texts_in_pieces(members) if self._stream is not None else ()
        spelled = (text.encode("utf-8", "surrogatepass") for text in texts)
        return next(filter(None, map(find, chain((line,), spelled))), None)

    def _plain_members(self) -> tuple[dict[str, Json], Json] | Fate:
        """Return the members of a body that is no stream and its finish reason, or why it is not stored."""
        raw, order = b"".join(self._body), self._order
        content_type = self._head.header(b"content-type").lower()
        if not raw.strip() and order.wants_stream and self._is_success and not self._has_no_body():
            return Fate("truncated", "the stream ended before its first event")
        # The formats that are known answer in JSON, whatever the header says.
        # Without a header a body is JSON where it cannot be much else: ``1.10`` may be any text.
        looks_like_json = not content_type and raw.lstrip()[:1] in (b"{", b"[")
        is_json = "json" in content_type or looks_like_json or order.dialect is not GENERIC
        if is_json or (order.wants_stream and "event-stream" in content_type):
            unmarked = raw.removeprefix(BOM_UTF8)
            try:
                document = parse_json(unmarked)
            except NotJson:
                if _is_open(unmarked):
                    return Fate("truncated", "the JSON document ends in its middle")
                if order.dialect is not GENERIC and self._is_success and "html" in content_type:
                    # The sign-in page of a network, the maintenance page of a gateway.
                    return Fate("failed", "the answer is a web page, and no answer of this format")
            else:
                has_failed, finish = self._own_words(document)
                if has_failed:
                    return Fate("failed", "the answer is an error inside a success")
                redacted = redacted_answer(document, order.redaction, order.dialect.answer_opaque)
                if order.dialect is GENERIC and redacted == document:
                    return self._exact_members(raw, document), None
                return {"json": redacted}, finish
        if self._received and not self._decoder.is_finished:
            return Fate("truncated", _TORN_ENCODING)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            return stored_bytes(raw, order.redaction), None
        members = self._text_members(text)
        return members if isinstance(members, Fate) else (members, None)

    def _text_members(self, text: str) -> dict[str, Json] | Fate:
        """Return the members of a text; as JSON, where it holds a secret and is nothing else than JSON."""
        order, found = self._order, find_documents(text)
        redacted = order.redaction.text(text)
        if redacted != text and not found.is_all:
            found = find_documents(redacted)
        # JSON is redacted string by string, so that it is JSON afterwards.
        is_sound = redacted == text if found.is_all else not self._is_file_of_lines
        if is_sound and self._is_plain(found):
            return {"text": redacted}
        raw = text.encode("utf-8")
        if found.is_whole:
            try:
                document = parse_json(raw.removeprefix(BOM_UTF8))
            except NotJson:
                raise CassetteError(_HIDDEN) from None
            return {"json": redacted_answer(document, order.redaction)}
        self._stream = LiveStream("ndjson", GENERIC)
        self._stream.feed(raw)
        self._stream.flush()
        fault = self._stream.fault_of_its_end if self._is_file_of_lines else None
        return self._stream.members(raw, order.redaction) if fault is None else Fate("truncated", fault)

    def _is_plain(self, found: Documents) -> bool:
        """Tell whether the JSON in a text hides nothing from whoever looks at the text alone."""
        order = self._order
        # Lines of a log may say what they like, if no rule depends on where it stands.
        if found.repeats and (found.is_all or order.redaction.paths):
            return False
        return all(
            redacted_answer(document, order.redaction) == document
            and without_values(document, order.lent) == document
            and order.tripwire.find(json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))
            is None
            for document in found.values
        )

    def _own_words(self, document: Json) -> tuple[bool, Json]:
        """Return whether an answer is an error all the same, and its finish reason."""
        dialect = self._order.dialect
        try:
            has_failed = self._is_success and dialect.is_failure(document)
            return has_failed, None if has_failed else dialect.finish(document)
        except Exception as error:
            raise blame(error, dialect.name) from None

    def _exact_members(self, raw: bytes, document: Json) -> dict[str, Json]:
        """Return the members of a JSON body that comes back byte for byte: it may be somebody's file.

        Of the formats that are known the meaning is kept; here nobody knows what else means something.
        """
        layout = find_layout(raw, document)
        if layout is not None:
            return {"layout": layout, "json": document} if layout else {"json": document}
        text = raw.decode("utf-8")
        # As text it could hide a credential behind escapes, which every reader of JSON would undo, or under a
        # name that is there once more.
        is_plain = self._order.redaction.text(text) == text and self._is_plain(find_documents(text))
        return {"text": text} if is_plain else {"json": document}

    def _kept_headers(self, body: dict[str, Json]) -> dict[str, Json]:
        kept: dict[str, Json] = {}
        for raw_name, raw_value in self._head.headers:
            name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
            if name not in _KEPT_HEADERS:
                continue
            text = redacted_header(name, value, self._order.redaction)
            if name == "content-type" and ("json" in body or "script" in body):
                text = _as_utf8(text)
            # A server may list its links in one header or in several; of others the last counts.
            kept[name] = f"{kept[name]}, {text}" if name == "link" and name in kept else text
        return kept

    def _write_error(self, error: Exception) -> CassetteWriteError:
        content = b"".join(self._body)
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in self._head.headers
        )
        # The text of a foreign error may quote what must not be printed.
        reason = error if isinstance(error, CassetteError) else f"storing it raised {type(error).__name__}"
        return CassetteWriteError(
            f"the answer was paid for and could not be stored: {reason}\n"
            f"  the answer   {self._head.status}, {len(content):,} bytes: "
            "status, headers and content of this error\n"
            f"  fingerprint  {self._order.key.hex()}",
            {
                "fingerprint": self._order.key.hex(),
                "status": self._head.status,
                "headers": headers,
                "content": content,
            },
        )


def redacted_header(name: str, text: str, redaction: Redaction) -> str:
    """Return the value of a response header that is kept, without its secrets.

    Args:
        name: The name in lower case.
        text: The value.
        redaction: What must not reach the file.
    """
    if name in ("location", "x-goog-upload-url"):
        return redaction.url(text)
    if name == "link":
        # Each is a URL, which may hold a parameter that only its name gives away.
        text = re.sub(_LINK, lambda link: f"<{redaction.url(link[1])}>", text)
    return redaction.text(text)


def _unread_texts(body: dict[str, Json]) -> Iterator[str]:
    """Yield what of a body to be stored was never read as JSON, and is perhaps not quite that."""
    if "base64" in body:
        yield base64.b64decode(cast("str", body["base64"])).decode("latin-1")
    for event in cast("list[dict[str, Json]]", body.get("script", [])):
        if "text" in event:
            yield cast("str", event["text"])


_LINK = r"<([^<>]*)>"
_CHARSET = r""";\s*charset\s*=\s*("[^"]*"|[^;\s]*)"""


def _as_utf8(content_type: str) -> str:
    """Return a content type that promises no other character set than UTF-8.

    JSON and events are written anew when they are replayed, in UTF-8 whatever the server wrote.
    """
    return re.sub(
        _CHARSET,
        lambda match: match[0] if match[1].strip('"').lower() in ("utf-8", "utf8") else "",
        content_type,
        flags=re.IGNORECASE,
    )


_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)


def _is_open(raw: bytes) -> bool:
    """Tell whether a body begins like a JSON document and ends before it does."""
    if raw.lstrip()[:1] not in (b"{", b"["):
        return False
    depth = 0
    for found in _STRUCTURE.finditer(raw):
        mark = found[0]
        if mark == b'"':
            return True  # A string without end.
        depth += (mark in b"[{") - (mark in b"]}")
    return depth > 0
