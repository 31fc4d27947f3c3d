"""A real answer on its way: what is stored of it and when, and what never is."""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import brotli
import orjson
import pytest
import zstandard

from httpx_cassette import (
    CassetteError,
    CassetteStop,
    CassetteWriteError,
    Redaction,
    _decoding,
    _live_stream,
    _sink,
)
from httpx_cassette._call import Call, LiveHead
from httpx_cassette._live_stream import LiveStream
from httpx_cassette._recording import NewRecording
from httpx_cassette._sink import Append, Fate, Order, Sink
from httpx_cassette._tripwire import Tripwire
from httpx_cassette.dialects import GENERIC, OPENAI_CHAT, Dialect

from .colours import URL, delta, events, tokens

JSON, EVENTS, NDJSON = "application/json", "text/event-stream; charset=utf-8", "application/x-ndjson"
ANSWER = b'{"choices":[{"index":0,"message":{"content":"Hi."},"finish_reason":"stop"}]}'
KEY = "sk-proj-" + "a1B2c3D4" * 6


@dataclass
class Bench:
    """A sink, and what it was told and did.

    Args:
        content_type: The header of the answer.
        status: Its status.
        wants_stream: Whether the request asked for a stream.
        dialect: The wire format.
        method: The method of the request.
        headers: Further headers of the answer.
        fault: What storing raises.
        environ: The environment, for credentials.
        credential: The credential of the request.
        asked: The body of the request.
    """

    content_type: str | None = JSON
    status: int = 200
    wants_stream: bool = False
    dialect: Dialect = OPENAI_CHAT
    method: str = "POST"
    headers: dict[str, str] = field(default_factory=dict)
    fault: BaseException | None = None
    environ: dict[str, str] = field(default_factory=dict)
    credential: str = ""
    asked: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stored: list[NewRecording] = []
        self.fates: list[Fate] = []
        self.stops: list[CassetteStop] = []
        self.warned: list[str] = []
        self.while_storing: Callable[[], None] = lambda: None
        call = Call(self.method, URL, ((b"authorization", f"Bearer {self.credential}".encode()),), b"")
        self.order = order = Order(
            key=bytes(32),
            sample=0,
            dialect=self.dialect,
            request={"method": self.method, "url": URL, "json": self.asked},
            policy={},
            redaction=Redaction(),
            tripwire=Tripwire(call, self.environ),
            wants_stream=self.wants_stream,
            store=self._store,
            settle=self.fates.append,
            stop=self._stop,
            warn=self.warned.append,
        )
        named = {} if self.content_type is None else {"content-type": self.content_type}
        raw = tuple((name.encode(), value.encode()) for name, value in {**named, **self.headers}.items())
        self.sink = Sink(order, LiveHead(self.status, raw), 0.0)

    def _store(self, new: NewRecording) -> None:
        self.while_storing()
        if self.fault is not None:
            raise self.fault
        self.stored.append(new)

    def _stop(self, error: CassetteStop) -> CassetteStop:
        self.stops.append(error)
        return error

    def feed(self, *chunks: bytes) -> int | None:
        """Feed chunks; run what is to be done, and return the number of the chunk that asked for it."""
        for number, chunk in enumerate(chunks):
            if self.run(self.sink.feed(chunk)):
                return number
        return None

    def run(self, step: Append | None) -> bool:
        if step is not None:
            step.run()
        return step is not None

    def whole(self, *chunks: bytes) -> Bench:
        """Feed a body to its end."""
        self.feed(*chunks)
        self.run(self.sink.end())
        return self

    @property
    def fate(self) -> Fate:
        (fate,) = self.fates
        return fate

    @property
    def response(self) -> dict[str, Any]:
        (new,) = self.stored
        return new.response

    @property
    def text(self) -> str:
        """The joined text of an assembled stream."""
        found = [
            event["json"]["choices"][0]["delta"].get("content") for event in self.response["script"][:-1]
        ]
        return "".join(filter(None, found))


def stream(**options: Any) -> Bench:
    """Return a bench for a chat stream."""
    return Bench(**{"content_type": EVENTS, "wants_stream": True, **options})


# --- whole bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content_type", "raw", "dialect", "body"),
    [
        (JSON, ANSWER, OPENAI_CHAT, {"json": json.loads(ANSWER)}),
        (None, b'{"a":1.0}', GENERIC, {"json": {"a": 1.0}}),
        (JSON, b'{"a": 1.0}\n', GENERIC, {"layout": "spaced+newline", "json": {"a": 1.0}}),
        (JSON, b'{\n  "a": 1\n}', GENERIC, {"layout": "indented", "json": {"a": 1}}),
        (JSON, b'{"a" :1}', GENERIC, {"text": '{"a" :1}'}),
        # Of a name that stands twice readers know one value, and a rule would not see the other.
        (JSON, b'{"a":1, "a":2}', GENERIC, {"json": {"a": 2}}),
        (JSON, b'\xef\xbb\xbf{"a":1}', GENERIC, {"text": '\ufeff{"a":1}'}),
        ("application/problem+json", b"[1]", GENERIC, {"json": [1]}),
        (JSON, b'{"a": NaN}', GENERIC, {"text": '{"a": NaN}'}),
        (JSON, b"not JSON", GENERIC, {"text": "not JSON"}),
        (JSON, b"", GENERIC, {"text": ""}),
        # A file in a format of its own is kept to the byte, whatever it looks like.
        ("application/octet-stream", b'{"a": 1.0}\n', GENERIC, {"text": '{"a": 1.0}\n'}),
        ("text/plain", b"{ open", GENERIC, {"text": "{ open"}),
        # A known format answers in JSON, whatever the header says.
        ("text/plain", ANSWER, OPENAI_CHAT, {"json": json.loads(ANSWER)}),
        ("audio/mpeg", b"\xff\xfb\x90", GENERIC, {"base64": "//uQ"}),
        ("text/plain; charset=latin-1", "Grüße".encode("latin-1"), GENERIC, {"base64": "R3L832U="}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_body_is_stored_as_what_it_is(
    content_type: str | None, raw: bytes, dialect: Dialect, body: dict[str, Any]
) -> None:
    """JSON parsed, with the layout that gives its bytes; text as text, anything else as bytes."""
    bench = Bench(content_type, dialect=dialect).whole(raw)
    kept = {} if content_type is None else {"content-type": content_type}

    assert {"status": 200, "headers": kept, **body} == bench.response
    assert Fate("recorded") == bench.fate


OWN_WORD = "hunter2/hunter2/hunter2"


def odd(text: str) -> bytes:
    """Return JSON that is written in no usual way."""
    return f'{{"a" :"{text}"}}'.encode()


@pytest.mark.parametrize(
    ("raw", "order"),
    [
        (odd(KEY), {}),
        # The characters of the body are not those that it says.
        (odd(KEY.replace("-", "\\u002d")), {}),
        (odd(OWN_WORD.replace("/", "\\/")), {"lent": frozenset({OWN_WORD})}),
        # Where a pattern of the user's sees more in the body than in its strings, nothing of that is kept.
        (odd("b"), {"redaction": Redaction(patterns={"pair": '"a" :"b"'})}),
    ],
    ids=["a key", "an escaped key", "an escaped word", "a pattern over the body"],
)
def test_json_with_a_secret_is_stored_as_json(raw: bytes, order: dict[str, Any]) -> None:
    """However it is written: as text it would keep what redaction takes from its strings."""
    bench = Bench(dialect=GENERIC)
    bench.sink = Sink(
        replace(bench.order, **order), LiveHead(200, ((b"content-type", b"application/json"),)), 0.0
    )
    bench.whole(raw)

    assert {"status", "headers", "json"} == set(bench.response)
    assert not any(secret in bench.stored[0].body.decode() for secret in (KEY, OWN_WORD, "u002d", "hunter2"))


@pytest.mark.parametrize("rest", [b"", b'\n{"b": 1}\n'], ids=["document", "lines"])
@pytest.mark.parametrize("content_type", [JSON, "application/jsonl", "application/octet-stream"])
@pytest.mark.parametrize("slash", ["\\/", "\\u002f"])
def test_a_credential_at_hand_is_found_behind_escapes(slash: str, content_type: str, rest: bytes) -> None:
    """It would not stand in the line as it is, and every reader of the answer would have it."""
    bench = Bench(content_type, dialect=GENERIC, credential=OWN_WORD, method="GET")

    with pytest.raises(CassetteWriteError):
        bench.whole(odd(OWN_WORD.replace("/", slash)) + rest)

    assert [] == bench.stored


JSONL, FILE, TEXT = "application/jsonl", "application/octet-stream", "text/plain"
USER = "u1-secret"
ESCAPED = KEY.replace("-", "\\u002d")


@pytest.fixture
def at_paths(monkeypatch: pytest.MonkeyPatch) -> Redaction:
    """Return a redaction of what stands at a path."""
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "0123456789abcdef")
    return Redaction(paths=["metadata.user_id"])


def kept(content_type: str, raw: bytes, redaction: Redaction, **order: Any) -> dict[str, Any] | str:
    """Return what is stored of an answer in no known format, placeholders shortened, or why nothing is."""
    bench = Bench(content_type, dialect=GENERIC, method="GET")
    bench.sink = Sink(
        replace(bench.order, redaction=redaction, **order),
        LiveHead(200, ((b"content-type", content_type.encode()),)),
        0.0,
    )
    try:
        bench.whole(raw)
    except CassetteWriteError as error:
        assert [] == bench.stored
        return str(error.__cause__)
    if not bench.stored:
        return f"{bench.fate.outcome}: {bench.fate.detail}"
    members = {k: v for k, v in bench.response.items() if k not in ("status", "headers", "framing", "stored")}
    short: dict[str, Any] = json.loads(
        re.sub("<redacted:([a-z-]+):[0-9a-f]{16}>", r"<\1>", json.dumps(members))
    )
    return short


HIDDEN = "a secret stands in JSON that cannot be stored as such"
REPLACED = {"metadata": {"user_id": "<path>"}}
LOST: dict[str, Any] = {"metadata": {}}


@pytest.mark.parametrize(
    ("content_type", "raw", "members"),
    [
        (JSONL, '{"metadata":{"user_id":"%s"}}\n{}', {"script": [{"json": REPLACED}, {"json": {}}]}),
        (FILE, '{"metadata":{"user_id":"%s"}}\n\n{}\n', {"script": [{"json": REPLACED}, {"json": {}}]}),
        (FILE, '{"metadata":{"user_id":"%s"}}', {"json": REPLACED}),
        (JSON, '{"metadata":{"user_id":"%s"},"metadata":{}}', {"json": LOST}),
        (FILE, '{"metadata":{"user_id":"%s"},"metadata":{}}', {"json": LOST}),
        (JSONL, '{"metadata":{"user_id":"%s"},"metadata":{}}\n1', {"script": [{"json": LOST}, {"json": 1}]}),
        (TEXT, 'a\n{"metadata":{"user_id":"%s"},"metadata":{}}', {"script": [{"text": "a"}, {"json": LOST}]}),
        (EVENTS, 'data: {"metadata":{"user_id":"%s"}}\n\n', {"script": [{"json": REPLACED}]}),
        # JSON with a number that no document of ours can hold.
        (JSON, '{"metadata":{"user_id":"%s"},"a":NaN}', HIDDEN),
        (JSONL, '{"metadata":{"user_id":"%s"},"a":NaN}\n{}', HIDDEN),
        (EVENTS, 'data: {"metadata":{"user_id":"%s"},"a":NaN}\n\n', HIDDEN),
        (JSON, '{"metadata":{"user_id":"%s"},"a":"\udcff"}', HIDDEN),
    ],
)  # fmt: skip
def test_what_stands_at_a_path_does_not_reach_the_file(
    content_type: str, raw: str, members: Any, at_paths: Redaction
) -> None:
    """In a document or in one a line, in an event, under a name that is there once more."""
    body = (raw % USER).encode("utf-8", "surrogateescape")

    assert members == kept(content_type, body, at_paths)


@pytest.mark.parametrize(
    ("content_type", "raw", "members"),
    [
        (JSONL, '{"a":"%s"}\n{"b":1}', {"script": [{"json": {"a": "<openai-key>"}}, {"json": {"b": 1}}]}),
        (FILE, '{"a":"%s"}\n{"b":1}', {"script": [{"json": {"a": "<openai-key>"}}, {"json": {"b": 1}}]}),
        (TEXT, 'a\n{"a":"%s"}', {"script": [{"text": "a"}, {"json": {"a": "<openai-key>"}}]}),
        (TEXT, 'a\n{"a":"%s","a":1}', {"script": [{"text": "a"}, {"json": {"a": 1}}]}),
        (JSON, '{"a":"%s","a":1}', {"json": {"a": 1}}),
        (JSON, '{"a":"%s","b":Infinity}', HIDDEN),
        (JSON, '{"a":"%s\udcff"}', HIDDEN),
        (EVENTS, 'data: {"a":"%s","b":Infinity}\n\n', HIDDEN),
    ],
)
def test_a_key_behind_escapes_does_not_reach_the_file(content_type: str, raw: str, members: Any) -> None:
    """The characters of the text are not those that it says."""
    assert members == kept(content_type, (raw % ESCAPED).encode("utf-8", "surrogateescape"), Redaction())


@pytest.mark.parametrize(
    ("content_type", "raw", "members"),
    [
        # The lines are JSON still, and no rule cuts through their quotes.
        (JSONL, f'{{"a":"{KEY}"}}\n{{}}', {"script": [{"json": {"a": "<openai-key>"}}, {"json": {}}]}),
        (TEXT, f'{KEY}\n{{"a" :1}}\n', {"text": '<openai-key>\n{"a" :1}\n'}),
        (JSONL, '{"a" :1}\n\n{"b":NaN}\n', {"text": '{"a" :1}\n\n{"b":NaN}\n'}),
        (TEXT, '{"a":1,"a":2}\n-- \n\n', {"text": '{"a":1,"a":2}\n-- \n\n'}),
        (JSONL, '{"a":"x/x"}\n{}', {"script": [{"json": {"a": "<credential>"}}, {"json": {}}]}),
        # As before, what ends in the middle of its last line is no whole file.
        (JSONL, '{"a":1}\ntru', "truncated: the stream ended in the middle of an event"),
    ],
)  # fmt: skip
def test_a_text_is_kept_where_it_hides_nothing(content_type: str, raw: str, members: Any) -> None:
    """To the byte but for what redaction replaces; a file of lines with a secret is stored line by line."""
    assert members == kept(content_type, raw.encode(), Redaction(), lent=frozenset({"x/x"}))


def test_the_announced_length_ends_a_body() -> None:
    """The recording is there with the last byte, before the caller reads on to the end, if he ever does."""
    bench = Bench(headers={"content-length": str(len(ANSWER))})

    assert 1 == bench.feed(ANSWER[:9], ANSWER[9:])
    assert "stop" == bench.stored[0].finish
    assert bench.sink.end() is None
    assert bench.sink.close() is None
    assert Fate("recorded") == bench.fate


def test_only_headers_that_mean_something_are_kept() -> None:
    """An allow-list: ids, the type, the way on, the latter two without what is secret."""
    headers = {
        "x-request-id": "req_1",
        "set-cookie": "session=1",
        "x-ratelimit-remaining": "7",
        "location": f"https://files.test/x?sig=abc&api_key={KEY}&a=1",
        "authorization": "Bearer x",
        "request-id": f"req {KEY}",
    }
    kept = Bench(headers=headers).whole(ANSWER).response["headers"]

    assert {"content-type", "x-request-id", "location", "request-id"} == set(kept)
    assert "https://files.test/x?a=1" == kept["location"]
    assert re.fullmatch("req <redacted:openai-key:[0-9a-f]{16}>", kept["request-id"])


def test_the_link_to_the_next_page_is_kept_without_its_secrets() -> None:
    """Without it a replayed list ends after its first page; a server may send several of them."""
    answer = Bench(dialect=GENERIC)
    links = [
        f'<https://h.test/models?page=2&token=hunter2>; rel="next"; title="{KEY}", </first>; rel="first"',
        f'</{KEY}>; rel="last"',
    ]
    named = ((b"content-type", b"application/json"), *((b"Link", link.encode()) for link in links))
    answer.sink = Sink(answer.order, LiveHead(200, named), 0.0)
    kept = answer.whole(b"[]").response["headers"]["link"]

    assert (
        '<https://h.test/models?page=2>; rel="next"; title="<redacted:openai-key:*>", </first>; rel="first", '
        '</%3Credacted:openai-key:*%3E>; rel="last"'
    ) == re.sub("[0-9a-f]{16}", "*", kept)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("; charset=ISO-8859-1", ""),
        ('; Charset="us-ascii"', ""),
        (";charset=utf-16;profile=x", ";profile=x"),
        ("; charset=UTF-8", "; charset=UTF-8"),
        ('; charset="utf-8"', '; charset="utf-8"'),
        ("; profile=charset", "; profile=charset"),
    ],
)
def test_what_is_written_anew_is_promised_as_utf_8(sent: str, kept: str) -> None:
    """JSON and events are replayed in UTF-8; a text comes back in the bytes that were sent."""
    plain = Bench(f"application/json{sent}", dialect=GENERIC).whole(b'{"city": "Z\\u00fcrich"}')
    streamed = Bench(f"text/event-stream{sent}", dialect=GENERIC).whole(b'data: {"t": "caf\\u00e9"}\n\n')
    text = Bench(f"text/plain{sent}", dialect=GENERIC).whole(b"Zurich")

    assert f"application/json{kept}" == plain.response["headers"]["content-type"]
    assert f"text/event-stream{kept}" == streamed.response["headers"]["content-type"]
    assert f"text/plain{sent}" == text.response["headers"]["content-type"]


@pytest.mark.parametrize(
    ("options", "raw", "detail"),
    [
        ({"headers": {"content-length": "100"}}, ANSWER, "76 of 100 bytes came"),
        ({}, ANSWER[:-1], "the JSON document ends in its middle"),
        ({"dialect": GENERIC}, b'[{"a": 1}', "the JSON document ends in its middle"),
        (
            {"dialect": GENERIC, "content_type": "text/plain", "headers": {"content-encoding": "gzip"}},
            gzip.compress(b"x" * 99)[:-8],
            "its content encoding ends in its middle",
        ),
        ({"wants_stream": True}, b"", "the stream ended before its first event"),
        ({"wants_stream": True, "content_type": EVENTS}, b"\n", "the stream ended before its first event"),
    ],
    ids=["length", "JSON", "list", "gzip", "no event", "blank"],
)
def test_a_body_that_was_cut_short_is_not_stored(options: dict[str, Any], raw: bytes, detail: str) -> None:
    """Whatever shows it: the length, the document, the encoding."""
    bench = Bench(**options).whole(raw)

    assert Fate("truncated", detail) == bench.fate
    assert [] == bench.stored


@pytest.mark.parametrize(
    "options",
    [
        {"method": "HEAD", "headers": {"content-length": "100"}},
        {"status": 204},
        {"status": 304, "headers": {"content-length": "100"}},
        {"headers": {"content-length": "0"}},
        {"method": "HEAD", "headers": {"content-encoding": "gzip"}},
    ],
    ids=["HEAD", "204", "304", "empty", "HEAD gzip"],
)
@pytest.mark.parametrize("ending", ["end", "close"])
def test_an_answer_without_a_body_is_whole(options: dict[str, Any], ending: str) -> None:
    """Read to its end or closed at once: there was nothing to read."""
    bench = Bench(**options)
    bench.run(getattr(bench.sink, ending)())

    assert "" == bench.response["text"]


def test_a_redirect_of_a_streamed_call_is_whole() -> None:
    """It has no events, and needs none."""
    bench = Bench(status=307, wants_stream=True, headers={"location": "https://other.test/"}).whole()

    assert (307, "") == (bench.response["status"], bench.response["text"])


def test_an_error_inside_a_success_is_not_stored() -> None:
    """Gateways send one with the status 200; with the status of an error it is stored on request."""
    error = b'{"error": {"message": "overloaded"}}'

    assert Fate("failed", "the answer is an error inside a success") == Bench().whole(error).fate
    assert json.loads(error) == Bench(status=503).whole(error).response["json"]


def test_a_body_that_was_not_read_is_abandoned() -> None:
    """In its middle or before its first byte."""
    for chunks in ([], [ANSWER[:9]]):
        bench = Bench()
        bench.feed(*chunks)

        assert bench.sink.close() is None
        assert Fate("abandoned", "the caller stopped before the end of the answer") == bench.fate


# --- streams ------------------------------------------------------------------------------------------

FINISHED = events("Hello", ends=())


def test_a_choice_that_was_asked_for_and_never_came_is_missed() -> None:
    """Of two, one has finished: neither the end of the body nor a caller who stops makes the answer whole."""
    ended = Bench(EVENTS, wants_stream=True, asked={"n": 2}).whole(*FINISHED)
    left = Bench(EVENTS, wants_stream=True, asked={"n": 2})
    left.feed(*FINISHED)
    left.run(left.sink.close())

    assert ("truncated", "abandoned") == (ended.fate.outcome, left.fate.outcome)
    assert "recorded" == Bench(EVENTS, wants_stream=True, asked={"n": True}).whole(*FINISHED).fate.outcome


def test_usage_that_was_asked_for_is_waited_for() -> None:
    """A caller who stops before it leaves an answer that the next one would miss it in."""
    asked = {"stream_options": {"include_usage": True}}
    usage = b'data: {"choices":[],"usage":{"total_tokens":7}}\n\n'
    fates = []
    for chunks in (FINISHED, [*FINISHED, usage]):
        bench = Bench(EVENTS, wants_stream=True, asked=asked)
        bench.feed(*chunks)
        bench.run(bench.sink.close())
        fates.append(bench.fate.outcome)

    assert ["abandoned", "recorded"] == fates
    # Many servers know neither usage nor the marker of the end.
    assert "recorded" == Bench(EVENTS, wants_stream=True, asked=asked).whole(*FINISHED).fate.outcome


@pytest.mark.parametrize("size", [1, 3, 64, 10**9])
def test_a_stream_is_stored_in_the_chunk_that_ends_it(size: int) -> None:
    """The step comes with ``[DONE]``, however the bytes were cut; the caller has not seen it yet."""
    raw = b"".join(events("Hello there, and good-bye."))
    chunks = [raw[start : start + size] for start in range(0, len(raw), size)]
    bench = stream()

    assert len(chunks) - 1 == bench.feed(*chunks)
    assert "Hello there, and good-bye." == bench.text
    assert ("assembled", "sse", "stop") == (
        bench.response["stored"],
        bench.response["framing"],
        bench.stored[0].finish,
    )
    assert {"text": "[DONE]"} == bench.response["script"][-1]
    for more in (bench.sink.feed(b"data: more\n\n"), bench.sink.end(), bench.sink.close()):
        assert more is None
    bench.sink.fail(ConnectionError())
    bench.sink.forget()
    assert Fate("recorded") == bench.fate


def test_what_stands_behind_the_end_is_not_stored() -> None:
    """Nobody reads it."""
    bench = stream()
    bench.feed(b"".join(events("Hi")) + b'data: {"choices": []}\n\n')

    assert {"text": "[DONE]"} == bench.response["script"][-1]


@pytest.mark.parametrize("ending", ["end", "close"])
def test_a_stream_whose_choices_all_finished_is_stored_at_its_end(ending: str) -> None:
    """Without its marker it is complete all the same: some clients and servers stop there."""
    bench = stream()
    bench.feed(*events("Hi", ends=()))

    assert bench.sink.is_complete
    bench.run(getattr(bench.sink, ending)())
    assert "Hi" == bench.text
    assert "text" not in bench.response["script"][-1]


@pytest.mark.parametrize(
    ("finish", "outcome", "detail"),
    [
        (lambda sink: sink.end(), "truncated", "the stream ended before its finish reason"),
        (lambda sink: sink.close(), "abandoned", "the caller stopped before the end of the answer"),
        (lambda sink: sink.forget(), "abandoned", "the caller lost the answer before its end"),
        (lambda sink: sink.fail(ConnectionError()), "failed", "reading the answer raised ConnectionError"),
        (
            lambda sink: sink.fail(KeyboardInterrupt()),
            "abandoned",
            "reading the answer raised KeyboardInterrupt",
        ),
    ],
    ids=["end", "close", "lost", "error", "interrupted"],
)
def test_a_stream_that_did_not_finish_is_not_stored(
    finish: Callable[[Sink], object], outcome: str, detail: str
) -> None:
    """Never as if it were complete, and its fate is told once."""
    bench = stream()
    bench.feed(delta("Hel"), delta("lo"))
    for _ in range(2):
        assert finish(bench.sink) is None

    assert Fate(outcome, detail) == bench.fate
    assert [] == bench.stored


def test_reading_that_fails_behind_the_finish_reason_is_a_failure() -> None:
    """The caller saw an error; the replay would not show one."""
    bench = stream()
    bench.feed(*events("Hi", ends=()))
    bench.sink.fail(ConnectionError())

    assert Fate("failed", "reading the answer raised ConnectionError") == bench.fate


@pytest.mark.parametrize(
    "error",
    [
        b'data: {"error": {"message": "overloaded"}}\n\n',
        b'event: error\ndata: {"message": "overloaded"}\n\n',
        b'error: {"code": 503}\n\n',
    ],
    ids=["data", "event", "field"],
)
@pytest.mark.parametrize("dialect", [OPENAI_CHAT, GENERIC], ids=["known", "unknown"])
@pytest.mark.parametrize("ending", ["[DONE]", "end", "close"])
def test_an_error_inside_a_stream_is_no_success(error: bytes, dialect: Dialect, ending: str) -> None:
    """However it is announced and however the stream ends then."""
    bench = stream(dialect=dialect)
    bench.feed(delta("Hel"), error)
    assert not bench.sink.is_complete
    if ending == "[DONE]":
        bench.feed(b"data: [DONE]\n\n")
    elif dialect is GENERIC and ending == "close":
        bench.sink.close()
    else:
        bench.run(getattr(bench.sink, ending)())

    assert Fate("failed", "the stream carried an error") == bench.fate


def test_an_error_of_an_unknown_format_may_be_a_result() -> None:
    """Only an object under ``error`` announces one."""
    bench = stream(dialect=GENERIC).whole(
        b'data: {"error": null}\n\n', b'data: {"error": "no"}\n\n', b"data: 7\n\n"
    )

    assert Fate("recorded") == bench.fate


@pytest.mark.parametrize(
    ("content_type", "wants_stream", "dialect", "raw", "kind"),
    [
        (JSON, True, OPENAI_CHAT, b"".join(events("Hi")), "sse"),
        (None, True, OPENAI_CHAT, b"".join(events("Hi")), "sse"),
        ("text/plain", True, GENERIC, b": comment\n\ndata: 1\n\n", "sse"),
        (EVENTS, False, GENERIC, b"  \n\nid: 1\ndata: 1\n\n", "sse"),
        (EVENTS, True, OPENAI_CHAT, ANSWER, "json"),
        (EVENTS, True, GENERIC, b"[1]", "json"),
        (EVENTS, False, GENERIC, b"[1]", "text"),
        (JSON, True, OPENAI_CHAT, ANSWER, "json"),
        (None, True, GENERIC, b"dat", "text"),
        (None, True, GENERIC, b"database", "text"),
        (NDJSON, True, GENERIC, b'{"a":1}\n{"a":2}\n', "ndjson"),
        ("application/jsonl", False, GENERIC, b'{"a":1}\n{"a":2}', "ndjson"),
        (NDJSON, False, GENERIC, b"data: 1\n\n", "text"),
        ("text/plain", False, GENERIC, b"data: 1\n\n", "text"),
        (JSON, False, GENERIC, b'{"a":1}\n{"a":2}\n', "text"),
    ],
)
@pytest.mark.parametrize("size", [1, 10**9])
def test_content_types_are_not_believed(
    content_type: str | None, wants_stream: bool, dialect: Dialect, raw: bytes, kind: str, size: int
) -> None:
    """The first bytes decide, at every cut: SSE under JSON, JSON under SSE, no type at all."""
    bench = Bench(content_type, wants_stream=wants_stream, dialect=dialect)
    bench.whole(*(raw[start : start + size] for start in range(0, len(raw), size)))

    response = bench.response
    assert kind == response.get("framing", next(iter(set(response) & {"json", "text", "base64"}), None))
    if kind == "text":
        assert raw == response["text"].encode()


@pytest.mark.parametrize(
    ("content_type", "raw", "script"),
    [
        (
            EVENTS,
            b'event: tick\nid: 1\nretry: 9\ndata: {"n": 1}\n\n: comment\n\ndata: two\ndata: lines\n\n',
            [
                {"event": "tick", "id": "1", "extra": [["retry", "9"]], "json": {"n": 1}},
                {"text": "two\nlines"},
            ],
        ),
        (
            NDJSON,
            b'{"n": 1}\n\nnot JSON\n{"n": 2}',
            [{"json": {"n": 1}}, {"text": "not JSON"}, {"json": {"n": 2}}],
        ),
    ],
    ids=["sse", "ndjson"],
)
def test_a_stream_of_an_unknown_format_is_stored_event_by_event(
    content_type: str, raw: bytes, script: Any
) -> None:
    """Its end is the end of the body; comments are no events."""
    bench = Bench(content_type, dialect=GENERIC)
    assert bench.feed(raw) is None
    assert not bench.sink.is_complete
    bench.run(bench.sink.end())

    assert ("verbatim", script) == (bench.response["stored"], bench.response["script"])


def test_an_unknown_stream_ends_with_done_as_well() -> None:
    """Most servers took that marker over, with or without the rest of the format."""
    bench = stream(dialect=GENERIC)

    assert 1 == bench.feed(b'data: {"n": 1}\n\n', b"data: [DONE]\n\n")


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, GENERIC], ids=["known", "unknown"])
def test_a_stream_that_is_no_text_is_stored_as_bytes(dialect: Dialect) -> None:
    """Nothing is lost, and nothing is guessed."""
    raw = b"data: \xff\xfe\n\n" + b"".join(events("Hi"))
    bench = stream(dialect=dialect).whole(raw)

    assert "base64" in bench.response
    assert b"\xff\xfe" in base64.b64decode(bench.response["base64"])


def test_a_stream_that_cannot_be_assembled_is_kept_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is wrong, or fails, costs compactness, not the answer; a warning asks for a report."""

    def fail(*arguments: object) -> Any:
        raise LookupError("a shape that nobody thought of")

    reasons = {
        "the texts differ": lambda *arguments: "the texts differ",
        "assembling it raised LookupError": fail,
    }
    for reason, prove in reasons.items():
        monkeypatch.setattr(_live_stream, "prove", prove)
        bench = stream()
        bench.feed(*events("Hi there"))

        assert [
            f"a stream of the dialect 'openai-chat' is stored event by event, because {reason}; "
            "please report it"
        ] == bench.warned
        assert "verbatim" == bench.response["stored"]
        assert 4 == len(bench.response["script"])
        assert Fate("recorded") == bench.fate


def test_reading_along_that_fails_costs_the_caller_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that nobody thought of: the recording is given up, and the stream goes on."""

    def fail(*arguments: object) -> None:
        raise TypeError("unhashable")

    monkeypatch.setattr(LiveStream, "feed", fail)
    bench = stream().whole(*events("Hi"))

    assert Fate("failed", "reading along raised TypeError") == bench.fate


def test_an_answer_that_is_lost_before_it_is_stored_leaves_nobody_waiting() -> None:
    """Ctrl-C came between the decision and the storing; while it is being stored nothing is lost."""
    lost = stream()
    assert lost.sink.feed(b"".join(events("Hi"))) is not None
    for _ in range(2):
        lost.sink.forget()
    assert Fate("abandoned", "the caller lost the answer before its end") == lost.fate

    kept = Bench()
    kept.while_storing = kept.sink.forget
    assert Fate("recorded") == kept.whole(ANSWER).fate


# --- encodings and limits -----------------------------------------------------------------------------

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
}


@pytest.mark.parametrize("encoding", PACKERS)
def test_what_is_stored_is_what_the_bytes_say(encoding: str) -> None:
    """The encoding is undone, and no header speaks of it."""
    headers = {"content-encoding": encoding, "content-length": str(len(PACKERS[encoding](ANSWER)))}
    plain = Bench(headers=headers).whole(PACKERS[encoding](ANSWER))
    streamed = stream(headers={"content-encoding": encoding}).whole(PACKERS[encoding](b"".join(events("Hi"))))

    assert json.loads(ANSWER) == plain.response["json"]
    assert "Hi" == streamed.text
    assert {"content-type"} == set(plain.response["headers"]) == set(streamed.response["headers"])


def test_a_stream_is_complete_although_its_encoding_never_ended() -> None:
    """Servers that flush often owe the last bytes of it; the event that ends the stream was there."""
    packer = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
    bench = stream(headers={"content-encoding": "gzip"})
    bench.feed(packer.compress(b"".join(events("Hi"))) + packer.flush(zlib.Z_SYNC_FLUSH))

    assert "Hi" == bench.text


@pytest.mark.parametrize(
    ("headers", "chunk", "outcome", "detail"),
    [
        ({}, b"x" * 101, "too large", "the body is larger than 100 bytes"),
        (
            {"content-encoding": "gzip"},
            gzip.compress(b"x" * 101),
            "too large",
            "the body is larger than 100 bytes",
        ),
        ({"content-encoding": "gzip"}, b"no gzip", "failed", "not what its content-encoding says: "),
    ],
    ids=["plain", "gzip", "not gzip"],
)
def test_what_cannot_be_held_passes_and_is_not_stored(
    headers: dict[str, str], chunk: bytes, outcome: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller gets every byte; the recording is given up, and memory with it."""
    monkeypatch.setattr(_sink, "MAX_BODY", 100)
    monkeypatch.setattr(_decoding, "MAX_BODY", 100)
    bench = Bench(headers=headers).whole(chunk, b"more")

    assert (outcome, True) == (bench.fate.outcome, bench.fate.detail.startswith(detail))
    assert [] == bench.stored == bench.sink._body


# --- secrets, and what cannot be stored ---------------------------------------------------------------


def stored(bench: Bench) -> bytes:
    """Return the members of the line that would be written."""
    (new,) = bench.stored
    return new.body


@pytest.mark.parametrize(
    "chunks",
    [
        [orjson.dumps({"choices": [{"message": {"content": f"Use {KEY}."}}]})],
        [f"not JSON: {KEY}".encode()],
    ],
    ids=["json", "text"],
)
def test_a_credential_in_an_answer_does_not_reach_the_file(chunks: list[bytes]) -> None:
    """Its shape is enough."""
    body = stored(Bench().whole(*chunks))

    assert KEY.encode() not in body
    assert b"<redacted:openai-key:" in body


def test_a_credential_in_pieces_does_not_reach_the_file() -> None:
    """It is looked for in the joined text: no piece shows it."""
    bench = stream()
    bench.feed(*(delta(KEY[start : start + 5]) for start in range(0, len(KEY), 5)), *events("Hi")[1:])
    body = stored(bench)

    assert KEY[8:20].encode() not in body
    assert re.fullmatch("<redacted:openai-key:[0-9a-f]{16}>", bench.text)


def test_a_finish_reason_that_quotes_a_credential_does_not_reach_the_file() -> None:
    """It stands on the line a second time, beside the answer."""
    reason = f"error: upstream refused {KEY}"
    document = {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": reason}]}
    plain = Bench().whole(orjson.dumps(document))
    streamed = stream().whole(delta("x", reason), *events("Hi")[2:])

    for bench in (plain, streamed):
        assert KEY.encode() not in stored(bench)
        assert "error: upstream refused <redacted:openai-key:" == str(bench.stored[0].finish)[:-17]


def in_pieces(text: str) -> list[str]:
    """Return a text in pieces of five characters."""
    return [text[start : start + 5] for start in range(0, len(text), 5)]


def data_of(document: dict[str, Any]) -> bytes:
    """Return one event of a stream."""
    return b"data: " + orjson.dumps(document) + b"\n\n"


def chunk(text: str = "Hi", **more: object) -> dict[str, Any]:
    """Return one document of a chat stream."""
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}


def dated(number: int, text: str) -> bytes:
    """Return one event of a server that says anew when it was made, so that its text is not joined."""
    return data_of(chunk(text, created=1_700_000_000 + number))


def choices_that_say(*texts: str) -> list[dict[str, Any]]:
    """Return the pieces of texts, one choice for each, by turns."""
    turns = zip(*map(in_pieces, texts), strict=False)
    return [{"index": index, "text": piece} for turn in turns for index, piece in enumerate(turn)]


@pytest.mark.parametrize(
    "chunks",
    [
        # A whole credential in each: it is replaced where it stands, and the next text is another one.
        [{"index": 0, "text": f"Use {KEY}"}, {"index": 1, "text": "Now"}],
        [{"type": "a", "text": f"Use {KEY}"}, {"type": "b", "text": "Now"}],
        [{"echo": f"Use {KEY}"}, {"echo": f"Use {KEY}"}],
    ],
    ids=["elements", "types", "repeated"],
)
def test_what_each_piece_shows_is_replaced_and_no_reason_to_refuse(chunks: list[dict[str, Any]]) -> None:
    """Texts that only follow one another are not one text: the answer is kept."""
    bench = stream().whole(*(data_of(chunk(note=note)) for note in chunks), *events("Hi")[1:])

    assert KEY.encode() not in stored(bench)
    assert b"<redacted:openai-key:" in stored(bench)


IN_PIECES = "a credential stands in the text of the stream, in pieces that were not joined"
OWN = "9f2Kq7Zr1xWm4Tn8Vb3Cd6Gh0Jl5Pz2Q"
ADVICE = (
    "keep it out of the prompt and the answer, "
    "or have it redacted: redact=Redaction(patterns={'my-secret': r'...'})"
)


@pytest.mark.parametrize(
    ("bench", "chunks", "reason"),
    [
        (
            Bench(EVENTS, dialect=GENERIC),
            [
                b'data: {"a": [{"t": "%s"}]}\n\n' % KEY[start : start + 5].encode()
                for start in range(0, len(KEY), 5)
            ],
            IN_PIECES,
        ),
        (
            Bench("audio/mpeg", dialect=GENERIC),
            [b"\xff" + KEY.encode()],
            "a credential stands in an answer that is no text",
        ),
        (
            stream(),
            [b"data: \xff%s\n\n" % KEY.encode(), *events("Hi")],
            "a credential stands in an answer that is no text",
        ),
        (
            Bench(credential="hunter2-hunter2-hunter2"),
            [ANSWER.replace(b"Hi.", b"hunter2-hunter2-hunter2")],
            "the authorization header would have been written to the cassette; " + ADVICE,
        ),
        (
            Bench(environ={"MY_TOKEN": "swordfish-swordfish"}),
            [ANSWER.replace(b"Hi.", b"swordfish-swordfish")],
            "the environment variable MY_TOKEN would have been written to the cassette; " + ADVICE,
        ),
        (
            stream(dialect=GENERIC),
            [
                data_of({"choices": [choice]})
                for choice in choices_that_say(
                    KEY, "the other choice says nothing of interest, at some length"
                )
            ],
            IN_PIECES,
        ),
        (
            stream(),
            [*(dated(number, piece) for number, piece in enumerate(in_pieces(KEY))), *events("Hi")[1:]],
            IN_PIECES,
        ),
        (
            stream(),
            [*(dated(number // 5, piece) for number, piece in enumerate(in_pieces(KEY))), *events("Hi")[1:]],
            IN_PIECES,
        ),
        (
            stream(),
            [*(data_of(chunk(note={"text": piece})) for piece in in_pieces(KEY)), *events("Hi")[1:]],
            IN_PIECES,
        ),
        (
            stream(dialect=GENERIC, credential=OWN),
            [data_of({"delta": {"text": piece}}) for piece in in_pieces(f"It is {OWN}, keep it")],
            "the authorization header would have been written to the cassette; " + ADVICE,
        ),
        (
            stream(credential=OWN),
            [*(dated(number, piece) for number, piece in enumerate(in_pieces(OWN))), *events("Hi")[1:]],
            "the authorization header would have been written to the cassette; " + ADVICE,
        ),
    ],
    ids=[
        "unknown stream",
        "bytes",
        "stream of bytes",
        "own key",
        "environment",
        "two choices by turns",
        "every chunk dated",
        "some chunks dated",
        "unknown member",
        "own key in an unknown stream",
        "own key in dated chunks",
    ],
)
def test_what_cannot_be_redacted_is_refused_with_the_answer(
    bench: Bench, chunks: Iterable[bytes], reason: str
) -> None:
    """Nothing is written, nothing answered silently; the paid answer is in the error, not in its text."""
    chunks = list(chunks)
    with pytest.raises(CassetteWriteError) as caught:
        bench.whole(*chunks)

    error = caught.value
    content = b"".join(chunks)
    assert (
        f"the answer was paid for and could not be stored: {reason}\n"
        f"  the answer   200, {len(content):,} bytes: status, headers and content of this error\n"
        f"  fingerprint  {'0' * 64}"
    ) == str(error)
    assert (200, content, "0" * 64) == (error.status, error.content, error.fingerprint)
    assert (("content-type", str(bench.content_type)),) == error.headers
    assert isinstance(error.__cause__, CassetteError)
    assert [error] == bench.stops
    assert ([], Fate("failed", reason)) == (bench.stored, bench.fate)
    assert KEY not in f"{error!s}{error!r}"


@pytest.mark.parametrize(
    ("fault", "reason", "detail"),
    [
        (CassetteError("the disk is full", "a.jsonl"), "a.jsonl: the disk is full", "the disk is full"),
        (OSError(5, "secret in the text"), "storing it raised OSError", "OSError"),
    ],
    ids=["known", "foreign"],
)
def test_an_answer_that_cannot_be_stored_is_in_the_error(fault: Exception, reason: str, detail: str) -> None:
    """Plain or streamed; a foreign error is named and not quoted."""
    for bench, chunks in ((Bench(fault=fault), [ANSWER]), (stream(fault=fault), events("Hi"))):
        with pytest.raises(CassetteWriteError) as caught:
            bench.whole(*chunks)

        first_line = str(caught.value).partition("\n")[0]
        assert f"the answer was paid for and could not be stored: {reason}" == first_line
        assert (fault if isinstance(fault, CassetteError) else None) is caught.value.__cause__
        assert b"".join(chunks) == caught.value.content
        assert Fate("failed", detail) == bench.fate
    assert "Hi" == tokens(caught.value.content)


def test_storing_that_is_interrupted_leaves_nobody_waiting() -> None:
    """Ctrl-C in the middle of it is Ctrl-C, and the fate is told."""
    bench = Bench(fault=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bench.whole(ANSWER)

    assert Fate("failed", "storing it was stopped by KeyboardInterrupt") == bench.fate
    assert [] == bench.stops
