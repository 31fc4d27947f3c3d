"""Streams as bad servers of Cohere's formats send them: stored so that a replay says the same, or not stored.

The caller gets every byte either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from httpx_cassette import CassetteMiss, CassetteTransport

from .colours import lines, sse
from .plain_reader import read_sse
from .served import KINDS, exchange, kind_of, zip_up

V2, V1 = (f"https://api.cohere.com/{version}/chat" for version in ("v2", "v1"))
SSE, JSON, LINES = "text/event-stream", "application/json", "application/stream+json"
BOM = b"\xef\xbb\xbf"

ASK = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
    "stream": True,
}
ASK_V1 = {"model": "m", "preamble": "Be brief.", "message": "Hello?", "stream": True}


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not.
        said: The joined texts by what they are; for ``json`` the document.
        url: What is asked.
        content_type: The header.
        pack: Its content encoding, gzip if it is any.
        asked: Further members of the request.
    """

    id: str
    body: bytes
    kept: str
    said: Any = None
    url: str = V2
    content_type: str | None = SSE
    pack: Callable[[bytes], bytes] = bytes
    asked: Any = {}  # noqa: RUF012  # never changed


def event(value: Any, name: str | None = "") -> bytes:
    """Return one event with its name; ``None`` for one without, another text for a name that is wrong."""
    named = value.get("type") if name == "" else name
    head = b"" if named is None else f"event: {named}\n".encode()
    return head + b"data: " + json.dumps(value).encode() + b"\n\n"


def said(kind: str, message: Any = None, index: Any = None, **more: Any) -> bytes:
    named = {} if index is None else {"index": index}
    delta = {} if message is None else {"delta": {"message": message}}
    return event({"type": kind, **named, **delta, **more})


def text(content: Any, index: Any = 0, **more: Any) -> bytes:
    return said("content-delta", {"content": {"text": content}}, index, **more)


def arguments(words: str, index: int = 0) -> bytes:
    return said("tool-call-delta", {"tool_calls": {"function": {"arguments": words}}}, index)


def ended(reason: str = "COMPLETE", **more: Any) -> bytes:
    return event({"type": "message-end", "delta": {"finish_reason": reason, **more}})


START = said("message-start", {"role": "assistant", "content": []}, id="m1")
OPENED = said("content-start", {"content": {"type": "text", "text": ""}}, 0)
CLOSED = said("content-end", None, 0)
DONE = b"data: [DONE]\n\n"
TALK = START + OPENED + text("Hi") + text(" there") + CLOSED
HI = TALK + ended() + DONE
SAID = {"text 0": "Hi there"}
NAMELESS = b"".join(line for line in HI.splitlines(True) if not line.startswith(b"event:"))
ANSWER = {"id": "m1", "message": {"role": "assistant", "content": []}, "finish_reason": "COMPLETE"}
CITED = said("citation-start", {"citations": {"start": 0, "end": 2, "text": "Hi"}}, 3)

ROWS = [
    # How it ends.
    Row("whole", HI, "assembled", SAID),
    Row("no end", TALK, "truncated"),
    Row("no marker", TALK + ended(), "assembled", SAID),
    Row("the marker alone", TALK + DONE, "truncated"),
    Row("torn in the end", TALK + ended()[:-9], "truncated"),
    Row("torn behind the end", TALK + ended() + DONE[:-5], "assembled", SAID),
    Row("the marker without its blank line", TALK + ended() + DONE[:-1], "assembled", SAID),
    Row("an end that says nothing", TALK + event({"type": "message-end"}), "assembled", SAID),
    Row("two ends", TALK + ended() + ended("MAX_TOKENS") + DONE, "assembled", SAID),
    Row("text behind the end", TALK + ended() + text("!") + DONE, "assembled", {"text 0": "Hi there!"}),
    Row("text behind the marker", HI + text("!"), "assembled", SAID),
    Row("an end by name alone", TALK + event({}, "message-end") + DONE, "truncated"),
    Row("empty", b"", "truncated"),
    Row("comments alone", b": keep-alive\n\n" * 3, "truncated"),
    # Errors inside a 200.
    Row("an error at the end", TALK + ended("ERROR", error="an invalid tool generation") + DONE, "failed"),
    Row("an error without words", TALK + ended("ERROR") + DONE, "failed"),
    Row("a time-out", TALK + ended("TIMEOUT") + DONE, "failed"),
    Row("an error event", TALK + event({"message": "overloaded"}, "error"), "failed"),
    Row("an error that is a text", TALK + b"event: error\ndata: overloaded\n\n", "failed"),
    Row("an error in another format", TALK + event({"error": {"code": 503}}, None) + ended(), "failed"),
    Row("an error behind the end", TALK + ended() + event({"error": "x"}, None) + DONE, "failed"),
    # What is in an event.
    Row("no names of events", NAMELESS, "assembled", SAID),
    Row(
        "names that say otherwise",
        HI.replace(b"event: content-delta", b"event: content-end"),
        "assembled",
        SAID,
    ),
    Row(
        "contents by turns",
        text("a") + text("x", 1) + text("b") + text("y", 1) + ended(),
        "assembled",
        {"text 0": "ab", "text 1": "xy"},
    ),
    Row(
        "no index", text("Hi", None) + text(" there", None) + ended(), "assembled", {"text None": "Hi there"}
    ),
    Row(
        "an odd index", text("Hi", [0]) + text(" there", [0]) + ended(), "assembled", {"text [0]": "Hi there"}
    ),
    Row("a citation between", text("Hi") + CITED + text(" there") + ended(), "assembled", SAID),
    Row(
        "calls by turns",
        arguments("{") + arguments("[", 1) + arguments("}") + arguments("]", 1) + ended("TOOL_CALL"),
        "assembled",
        {"arguments 0": "{}", "arguments 1": "[]"},
    ),
    Row("unknown events", TALK + said("new", None, 0, x=1) + ended() + DONE, "assembled", SAID),
    Row(
        "deltas that are odd",
        text("Hi")
        + text(7)
        + said("content-delta", [], 0)
        + said("content-delta")
        + text(" there")
        + ended(),
        "assembled",
        SAID,
    ),
    Row("data without JSON", text("Hi") + b"data: {oops\n\n" + text(" there") + ended(), "assembled", SAID),
    Row(
        "data that is no object", text("Hi") + b"data: [1]\n\n" + text(" there") + ended(), "assembled", SAID
    ),
    Row(
        "halves of a character",
        text("\ud83d") + text("\ude86") + ended(),
        "assembled",
        {"text 0": "\U0001f686"},
    ),
    Row(
        "line ends of Unicode",
        text("a\u2028") + text("\x85") + ended(),
        "assembled",
        {"text 0": "a\u2028\x85"},
    ),
    Row("no UTF-8", text("Hi") + b"data: \xff\n\n" + text(" there") + ended(), "base64", SAID),
    # Its bytes.
    Row("CRLF", HI.replace(b"\n", b"\r\n"), "assembled", SAID),
    Row("a mark of UTF-8", BOM + HI, "assembled", SAID),
    Row("gzip", HI, "assembled", SAID, pack=zip_up),
    Row("gzip, torn", HI * 9, "truncated", pack=lambda body: zip_up(body)[:40]),
    # Content types lie, and so do requests.
    Row("as JSON", HI, "assembled", SAID, content_type=JSON),
    Row("without a type", HI, "assembled", SAID, content_type=None),
    Row("a document as SSE", json.dumps(ANSWER).encode(), "json", ANSWER),
    Row("a document as JSON", json.dumps(ANSWER).encode(), "json", ANSWER, content_type=JSON),
    Row("a failed document", json.dumps({**ANSWER, "finish_reason": "ERROR"}).encode(), "failed"),
    Row("a document, torn", json.dumps(ANSWER).encode()[:-9], "truncated", content_type=JSON),
    Row("events for one document", HI, "assembled", SAID, asked={"stream": False}),
    Row("a page", b"<html>Welcome</html>", "failed", content_type="text/html"),
]


def sent(*values: Any) -> bytes:
    """Return lines as the first version has them."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in values)


def line(kind: str, **more: Any) -> dict[str, Any]:
    return {"is_finished": kind == "stream-end", "event_type": kind, **more}


def words(said: Any) -> dict[str, Any]:
    return line("text-generation", text=said)


def whole(reason: str = "COMPLETE", **more: Any) -> dict[str, Any]:
    return line("stream-end", finish_reason=reason, response={"text": "Hi there"}, **more)


BEGUN = line("stream-start", generation_id="g1")
OLD = sent(BEGUN, words("Hi"), words(" there"), whole())
OLD_EVENTS = b"".join(b"data: " + each + b"\n\n" for each in OLD.splitlines())
SAID_V1 = {"text": "Hi there"}
ANSWER_V1 = {"text": "Hi", "generation_id": "g1", "finish_reason": "COMPLETE"}

ROWS_V1 = [
    Row("whole", OLD, "assembled", SAID_V1, content_type=LINES),
    Row("as events", OLD_EVENTS, "assembled", SAID_V1, content_type=SSE),
    Row("lines as events", OLD, "assembled", SAID_V1, content_type=SSE),
    Row("as JSON", OLD, "assembled", SAID_V1, content_type=JSON),
    Row("without a type", OLD, "assembled", SAID_V1, content_type=None),
    Row("no end", sent(BEGUN, words("Hi")), "truncated"),
    Row("events without an end", OLD_EVENTS[:-40], "truncated", content_type=SSE),
    Row("torn in the end", OLD[:-9], "truncated"),
    Row("without the last line end", OLD[:-1], "assembled", SAID_V1),
    Row("text behind the end", OLD + sent(words("!")), "assembled", SAID_V1),
    Row("only the end", sent(whole()), "assembled", {}),
    Row("a refusal", sent(whole("ERROR_TOXIC")), "assembled", {}),
    Row("an error at the end", sent(words("Hi"), whole("ERROR")), "failed"),
    Row("a limit at the end", sent(whole("ERROR_LIMIT")), "failed"),
    Row("an error", sent(words("Hi"), {"error": "overloaded"}), "failed"),
    Row(
        "an error as an event", OLD_EVENTS[:60] + b"\n\nevent: error\ndata: x\n\n", "failed", content_type=SSE
    ),
    Row(
        "a name beside parameters",
        sent(
            line("tool-calls-chunk", tool_call_delta={"index": 0, "name": "f", "parameters": '{"a"'}),
            line("tool-calls-chunk", tool_call_delta={"index": 0, "parameters": ": 1}"}),
            line("tool-calls-generation", text="a plan", tool_calls=[]),
            whole(),
        ),
        "assembled",
        {"names": "f", "parameters": '{"a": 1}'},
    ),
    Row(
        "lines that are odd",
        sent(words("Hi"), 7, None, [1], {}, words(None), {"event_type": []}, words(" there"), whole()),
        "assembled",
        SAID_V1,
    ),
    Row("blank lines", OLD.replace(b"\n", b"\n\n"), "assembled", SAID_V1),
    Row("gzip", OLD, "assembled", SAID_V1, pack=zip_up),
    Row("a document", json.dumps(ANSWER_V1).encode(), "json", ANSWER_V1, V1, JSON, bytes, {"stream": False}),
    Row(
        "a failed document",
        json.dumps({**ANSWER_V1, "finish_reason": "TIMEOUT"}).encode(),
        "failed",
        None,
        V1,
        JSON,
        bytes,
        {"stream": False},
    ),
]


ALL = [*ROWS, *(row._replace(id=f"first version: {row.id}", url=V1) for row in ROWS_V1)]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    body = {**(ASK if row.url == V2 else ASK_V1), **row.asked}
    encoding = "" if row.pack is bytes else "gzip"
    sent = row.pack(row.body)
    return exchange(path, sent, size, row.content_type, encoding, url=row.url, json=body, **options)


def documents(body: bytes) -> Iterator[Any]:
    """Yield the documents of a stream, as far as they can be read."""
    body = body.removeprefix(BOM)
    is_lines = body.startswith(b"{")
    found = body.split(b"\n") if is_lines else [each.data for each in read_sse(body)[0]]
    for each in found:
        if each == "[DONE]":
            return
        try:
            yield json.loads(each)
        except ValueError:
            continue


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read without the package: its document, or texts by what they are."""
    if row.kept == "json":
        return json.loads(body)
    said: dict[str, list[str]] = {}
    for document in documents(body):
        for name, words in pieces(document) if isinstance(document, dict) else ():
            if isinstance(words, str):
                said.setdefault(name, []).append(words)
        if isinstance(document, dict) and document.get("event_type") == "stream-end":
            break
    # The halves of one character may come in two events.
    joined = {name: "".join(found).encode("utf-16-le", "surrogatepass") for name, found in said.items()}
    return {name: text.decode("utf-16-le", "surrogatepass") for name, text in joined.items()}


def pieces(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield what one event says, with its name."""
    if document.get("event_type") == "text-generation":
        yield "text", document.get("text")
    call = document.get("tool_call_delta") or {}
    yield from (("names", call.get("name")), ("parameters", call.get("parameters")))
    message = document["delta"].get("message") if isinstance(document.get("delta"), dict) else None
    if not isinstance(message, dict) or not str(document.get("type")).endswith("-delta"):
        return
    if isinstance(message.get("content"), dict):
        yield f"text {document.get('index')}", message["content"].get("text")
    if "tool_calls" in message:
        yield f"arguments {document['index']}", message["tool_calls"]["function"]["arguments"]


REPLAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chunk_size": 1},
    {"chunk_size": 3, "noise": True},
    {"chunk_size": 10**9, "wire_chunk_size": 3},
)


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize("row", ALL, ids=lambda row: row.id)
def test_a_bad_stream_is_stored_as_it_is_or_not_at_all(row: Row, size: int, tmp_path: Path) -> None:
    """However its bytes were cut, the same is stored, and the replay says what the server said."""
    path = tmp_path / "bad.jsonl"
    received, stats = ask(row, path, size)
    assert row.pack(row.body) == received
    if row.kept not in KINDS:
        assert ({row.kept: 1}, []) == (stats.unrecorded, lines(path))
        with pytest.raises(CassetteMiss):
            ask(row, path, None)
        return

    assert {} == stats.unrecorded
    (stored,) = lines(path)
    assert row.kept == kind_of(stored["response"])
    assert row.said == meaning(row, row.body)
    for options in REPLAYS:
        replayed, _ = ask(row, path, None, **options)
        assert row.said == meaning(row, replayed)


@pytest.mark.parametrize(
    ("url", "body", "asked", "last"),
    [(V2, HI, ASK, b"\n"), (V1, OLD, ASK_V1, b"\n")],
    ids=["v2", "v1"],
)
def test_a_stream_is_over_in_the_chunk_that_says_so(
    url: str, body: bytes, asked: Any, last: bytes, tmp_path: Path
) -> None:
    """A client that has seen the end may go away without reading on: the recording is there."""
    path = tmp_path / "over.jsonl"
    upstream = httpx.MockTransport(lambda request: sse([body, last]))
    transport = CassetteTransport(path, mode="record", next_transport=upstream)
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", url, json=asked) as response:
            next(response.iter_raw())

            assert 1 == len(lines(path))


def test_a_client_that_leaves_behind_the_end_of_the_message_has_it_recorded(tmp_path: Path) -> None:
    """What is missing is the marker, and nothing else."""
    path = tmp_path / "left.jsonl"
    upstream = httpx.MockTransport(lambda request: sse([TALK + ended(), DONE]))
    transport = CassetteTransport(path, mode="record", next_transport=upstream)
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", V2, json=ASK) as response:
            next(response.iter_raw())
            early = len(lines(path))

    assert (0, 1) == (early, len(lines(path)))
