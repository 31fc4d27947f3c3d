"""Streams as bad servers of Gemini's format send them: stored so that a replay says the same, or not stored.

The caller gets every byte either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from httpx_cassette import CassetteMiss, CassetteTransport
from httpx_cassette._bodies import DRAIN_LIMIT

from .colours import lines, sse
from .plain_reader import read_sse
from .served import KINDS, exchange, kind_of, zip_up

MODEL = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash"
EVENTS, ARRAY, PLAIN = (
    f"{MODEL}:{name}"
    for name in ("streamGenerateContent?alt=sse", "streamGenerateContent", "generateContent")
)
INTERACTIONS = "https://generativelanguage.googleapis.com/v1beta/interactions"
SSE, JSON = "text/event-stream", "application/json; charset=UTF-8"
BOM = b"\xef\xbb\xbf"

ASK = {
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "contents": [{"role": "user", "parts": [{"text": "Hello?"}]}],
}
INTERACT = {"model": "gemini-3-flash", "input": "Hello?", "system_instruction": "Be brief.", "stream": True}


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not.
        texts: The joined text of each candidate, for a stream; for ``json`` the document.
        url: What is asked.
        content_type: The header.
        pack: Its content encoding, gzip if it is any.
    """

    id: str
    body: bytes
    kept: str
    texts: Any = None
    url: str = EVENTS
    content_type: str | None = SSE
    pack: Callable[[bytes], bytes] = bytes


def value(*texts: Any, finish: Any = None, index: Any = 0, **more: Any) -> dict[str, Any]:
    """Return the document of one event; a part that is a text has nothing else."""
    parts = [{"text": text} if isinstance(text, str) else text for text in texts]
    named = {} if index is None else {"index": index}
    ended = {} if finish is None else {"finishReason": finish}
    return {"candidates": [{"content": {"parts": parts, "role": "model"}, **named, **ended}], **more}


def sent(*values: Any) -> bytes:
    """Return events as Google sends them."""
    return b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in values)


def array(*values: Any) -> bytes:
    """Return an array as Google sends it."""
    return b"[" + b"\n,\r\n".join(json.dumps(each, indent=2).encode() for each in values) + b"\n]\n"


END = value("", finish="STOP")
HI = sent(value("Hi"), value(" there"), END)
HI_ARRAY = array(value("Hi"), value(" there"), END)
SAID = {"0": "Hi there"}
CALL = {"functionCall": {"name": "f", "args": {}}}
ERROR = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
ERROR_LINES = json.dumps(ERROR, indent=2).encode() + b"\n"

STREAMS = [
    # How it ends.
    Row("no end", sent(value("Hi"), value(" there")), "truncated"),
    Row("torn in an event", HI[:-40], "truncated"),
    Row("without the last blank line", HI.removesuffix(b"\r\n\r\n"), "truncated"),
    Row("with one line end for the last blank line", HI.removesuffix(b"\r\n"), "truncated"),
    Row("an event torn behind the finish reason", HI + b'data: {"us', "assembled", SAID),
    Row("usage behind the finish reason", HI + sent({"usageMetadata": {"n": 1}}), "assembled", SAID),
    Row("text behind the finish reason", HI + sent(value("!")), "assembled", {"0": "Hi there!"}),
    Row("two finish reasons", HI + sent(value("", finish="SAFETY")), "assembled", SAID),
    Row(
        "a finish reason in every event",
        sent(*[value(text, finish="STOP") for text in "ab"]),
        "assembled",
        {"0": "ab"},
    ),
    Row("a reason that says nothing", sent(value("Hi", finish="FINISH_REASON_UNSPECIFIED")), "truncated"),
    Row("zero for a reason", sent(value("Hi", finish=0)), "truncated"),
    Row(
        "one of two candidates unfinished", sent(value("a"), value("b", index=1, finish="STOP")), "truncated"
    ),
    Row("empty", b"", "truncated"),
    Row("blank lines alone", b"\r\n\r\n", "truncated"),
    Row("no candidates", sent({"usageMetadata": {"n": 1}}), "truncated"),
    Row("a refused prompt", sent({"promptFeedback": {"blockReason": "SAFETY"}}), "assembled", {}),
    Row("a candidate without content", sent({"candidates": [{"finishReason": "OTHER"}]}), "assembled", {}),
    Row("[DONE]", HI + b"data: [DONE]\n\n", "assembled", SAID),
    Row("[DONE] and no end", sent(value("Hi")) + b"data: [DONE]\n\n", "truncated"),
    # Errors inside a 200.
    Row("an error", sent(value("Hi"), ERROR), "failed"),
    Row("an error behind the finish reason", HI + sent(ERROR), "failed"),
    Row("an error in an array", sent(value("Hi"), [ERROR]), "failed"),
    Row("an event error", sent(value("Hi")) + b"event: error\ndata: overloaded\n\n", "failed"),
    Row("an error without data", sent(value("Hi")) + ERROR_LINES + b"\n", "failed"),
    Row("an error without data or blank line", sent(value("Hi")) + ERROR_LINES, "truncated"),
    Row("an error in one line", sent(value("Hi")) + json.dumps(ERROR).encode() + b"\n\n", "failed"),
    # Who speaks.
    Row(
        "no index",
        sent(value("a", index=None), value("b", index=None, finish="STOP")),
        "assembled",
        {"0": "ab"},
    ),
    Row("an index now and then", sent(value("a", index=None), value("b"), END), "assembled", {"0": "ab"}),
    Row(
        "an index that is text",
        sent(value("a", index="0"), value("b", index="0", finish="STOP")),
        "assembled",
        {"0": "ab"},
    ),
    Row(
        "interleaved candidates",
        sent(value("a"), value("x", index=1), value("b"), value("y", index=1, finish="STOP"), END),
        "assembled",
        {"0": "ab", "1": "xy"},
    ),
    Row(
        "ids that change",
        sent(*[value(text, responseId=text) for text in "abc"], END),
        "assembled",
        {"0": "abc"},
    ),
    # What is in an event.
    Row("text beside a call", sent(value("a", CALL, "b"), value("c"), END), "assembled", {"0": "abc"}),
    Row(
        "parts that are odd",
        sent(value("a"), value(None, 7, [], {"text": 7}, {}), value("b"), END),
        "assembled",
        {"0": "ab"},
    ),
    Row(
        "candidates that are odd",
        sent(value("a"), {"candidates": {"0": 1}}, {"candidates": [7, None]}, END),
        "assembled",
        {"0": "a"},
    ),
    Row(
        "content that is odd",
        sent(
            value("a"),
            {"candidates": [{"content": "b"}, {"content": {"parts": "c"}}]},
            value("", index=1, finish="STOP"),
            END,
        ),
        "assembled",
        {"0": "a", "1": ""},
    ),
    Row(
        "unknown events",
        sent(value("a"), {"ping": 1}, 7, "x", None, value("b"), END),
        "assembled",
        {"0": "ab"},
    ),
    Row(
        "data without JSON",
        sent(value("a")) + b"data: {oops\n\n" + sent(value("b"), END),
        "assembled",
        {"0": "ab"},
    ),
    Row("names of events", HI.replace(b"data: {", b"event: chunk\ndata: {"), "assembled", SAID),
    Row("comments", HI.replace(b"data", b": keepalive\n\ndata"), "assembled", SAID),
    Row(
        "halves of a character", sent(value("\ud83d"), value("\ude86"), END), "assembled", {"0": "\U0001f686"}
    ),
    Row("half of a character", sent(value("a\ud83d"), END), "assembled", {"0": "a\ud83d"}),
    Row(
        "line ends of Unicode",
        sent(value("a\u2028"), value("b\u2029\x85"), END),
        "assembled",
        {"0": "a\u2028b\u2029\x85"},
    ),
    Row("no UTF-8", HI + b"data: \xff\n\n", "base64", SAID),
    # Its bytes.
    Row("LF", HI.replace(b"\r\n", b"\n"), "assembled", SAID),
    Row("CR", HI.replace(b"\r\n", b"\r"), "assembled", SAID),
    Row("a mark of UTF-8", BOM + HI, "assembled", SAID),
    Row("gzip", HI, "assembled", SAID, pack=zip_up),
    Row("gzip, torn", HI * 9, "truncated", pack=lambda body: zip_up(body)[:40]),
    # Content types lie, and so do requests.
    Row("SSE as JSON", HI, "assembled", SAID, content_type=JSON),
    Row("SSE without a type", HI, "assembled", SAID, content_type=None),
    Row("SSE for an array", HI, "assembled", SAID, ARRAY, JSON),
    Row("an array for SSE", HI_ARRAY, "assembled", SAID, content_type=JSON),
    Row("an array as SSE", HI_ARRAY, "assembled", SAID),
    Row("JSON as SSE", json.dumps(value("Hi")).encode(), "json", value("Hi")),
    Row("JSON for an array", json.dumps(value("Hi")).encode(), "json", value("Hi"), ARRAY, JSON),
    Row("JSON as SSE, an error", ERROR_LINES, "failed"),
    Row("JSON as SSE, torn", b'{"candidates": [{"index": 0}', "truncated"),
    Row("a page", b"<html>Welcome</html>", "failed", content_type="text/html"),
    Row("SSE for one document", HI, "assembled", SAID, PLAIN),
    # Arrays.
    Row("an array", HI_ARRAY, "assembled", SAID, ARRAY, JSON),
    Row("an array in one line", b"".join(HI_ARRAY.split(b"\n")), "assembled", SAID, ARRAY, JSON),
    Row("an array without a type", HI_ARRAY, "assembled", SAID, ARRAY, None),
    Row("an array, marked", BOM + b" \n" + HI_ARRAY, "assembled", SAID, ARRAY, JSON),
    Row("an array in gzip", HI_ARRAY, "assembled", SAID, ARRAY, JSON, zip_up),
    Row("an array that is not closed", HI_ARRAY.rstrip()[:-1], "truncated", None, ARRAY, JSON),
    Row("an array torn in an element", HI_ARRAY[:-40], "truncated", None, ARRAY, JSON),
    Row("an array torn behind a comma", HI_ARRAY.rstrip()[:-1] + b",", "truncated", None, ARRAY, JSON),
    Row("an array without a finish reason", array(value("Hi")), "truncated", None, ARRAY, JSON),
    Row("an empty array", b"[]", "truncated", None, ARRAY, JSON),
    Row("an array of an error", array(ERROR), "failed", None, ARRAY, JSON),
    Row("an array with an error", array(value("Hi"), END, ERROR), "failed", None, ARRAY, JSON),
    Row("an array and more", HI_ARRAY + b"[{]", "assembled", SAID, ARRAY, JSON),
    Row("an array with a comma too many", HI_ARRAY.rstrip()[:-1] + b",]", "base64", SAID, ARRAY, JSON),
    Row(
        "an array with odd elements",
        array(value("Hi"), 7, None, [], "x", value(" there"), END),
        "assembled",
        SAID,
        ARRAY,
        JSON,
    ),
    Row(
        "an array that is no UTF-8",
        HI_ARRAY.replace(b"Hi", b"\xff"),
        "base64",
        {"0": "\ufffd there"},
        ARRAY,
        JSON,
    ),
    Row("an array for one document", array(value("Hi")), "json", [value("Hi")], PLAIN, JSON),
    Row("an array of an error for one document", array(ERROR), "failed", None, PLAIN, JSON),
]


def step(event_type: str, **members: Any) -> bytes:
    """Return one event of an interaction."""
    data = json.dumps({"event_type": event_type, **members}).encode()
    return b"event: " + event_type.encode() + b"\ndata: " + data + b"\n\n"


def words(*texts: str) -> bytes:
    return b"".join(step("step.delta", index=0, delta={"type": "text", "text": text}) for text in texts)


def completed(status: str = "completed") -> bytes:
    return step("interaction.completed", interaction={"id": "v1_x", "status": status})


CREATED = step("interaction.created", interaction={"id": "v1_x"})
DONE = b"event: done\ndata: [DONE]\n\n"
TALK = CREATED + words("Hi", " there") + completed() + DONE
NAMELESS = b"".join(line for line in TALK.splitlines(True) if not line.startswith(b"event:"))
ANSWER = {"id": "v1_x", "status": "completed", "steps": []}

INTERACTION_STREAMS = [
    Row("whole", TALK, "assembled", SAID),
    Row("no marker", TALK.removesuffix(DONE), "assembled", SAID),
    Row("no end", CREATED + words("Hi"), "truncated"),
    Row("the marker alone", CREATED + words("Hi") + DONE, "truncated"),
    Row("two ends", TALK + completed("failed"), "assembled", SAID),
    Row("an end without an interaction", words("Hi") + step("interaction.completed"), "truncated"),
    Row("failed", words("Hi") + completed("failed") + DONE, "failed"),
    Row("an error", words("Hi") + step("error", error={"message": "overloaded"}) + DONE, "failed"),
    Row("an error behind the end", TALK.removesuffix(DONE) + step("error", error={"message": "x"}), "failed"),
    Row("no names of events", NAMELESS, "assembled", SAID),
    Row(
        "names that say otherwise", TALK.replace(b"event: step.delta", b"event: step.stop"), "assembled", SAID
    ),
    Row("unknown events", TALK.replace(DONE, step("step.odd", index=0) + DONE), "assembled", SAID),
    Row("no index", TALK.replace(b'"index": 0, ', b""), "assembled", SAID),
    Row("CRLF", TALK.replace(b"\n", b"\r\n"), "assembled", SAID),
    Row("a mark of UTF-8", BOM + TALK, "assembled", SAID),
    Row("as JSON", TALK, "assembled", SAID, content_type=JSON),
    Row("JSON as SSE", json.dumps(ANSWER).encode(), "json", ANSWER),
    Row("JSON as SSE, failed", json.dumps({**ANSWER, "status": "failed"}).encode(), "failed"),
    Row("an array", b"[1]", "json", [1]),
]

ROWS = [*STREAMS, *(row._replace(url=INTERACTIONS) for row in INTERACTION_STREAMS)]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    body = INTERACT if row.url == INTERACTIONS else ASK
    encoding = "" if row.pack is bytes else "gzip"
    sent = row.pack(row.body)
    return exchange(path, sent, size, row.content_type, encoding, url=row.url, json=body, **options)


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read without the package: its document, or the text of each candidate."""
    body = body.removeprefix(BOM)
    if row.kept == "json":
        return json.loads(body)
    said: dict[str, list[str]] = {}
    for document in documents(body):
        listed = document.get("candidates") if isinstance(document, dict) else None
        for position, candidate in enumerate(listed if isinstance(listed, list) else []):
            content = candidate.get("content") if isinstance(candidate, dict) else None
            parts = content.get("parts") if isinstance(content, dict) else None
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, dict) and isinstance(part.get("text"), str):
                    said.setdefault(str(candidate.get("index", position)), []).append(part["text"])
        if isinstance(document, dict) and document.get("event_type") == "step.delta":
            said.setdefault(str(document.get("index", 0)), []).append(document["delta"]["text"])
    # The halves of one character may come in two events.
    joined = {index: "".join(found).encode("utf-16-le", "surrogatepass") for index, found in said.items()}
    return {index: text.decode("utf-16-le", "surrogatepass") for index, text in joined.items()}


def documents(body: bytes) -> list[Any]:
    """Return the documents of a stream, as far as they can be read."""
    if body.lstrip()[:1] == b"[":
        text = body.decode(errors="replace").lstrip()
        # A comma too many, and what comes behind the end.
        return list(json.JSONDecoder().raw_decode(text.replace(",]", "]"))[0])
    found = []
    for event in read_sse(body)[0]:
        if event.data == "[DONE]":
            break
        try:
            found.append(json.loads(event.data))
        except ValueError:
            continue
    return found


REPLAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chunk_size": 1},
    {"chunk_size": 3, "noise": True},
    {"chunk_size": 10**9, "wire_chunk_size": 3},
)


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{'interaction: ' if row.url == INTERACTIONS else ''}{row.id}"
)
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
    (line,) = lines(path)
    assert row.kept == kind_of(line["response"])
    assert row.texts == meaning(row, row.body)
    for options in REPLAYS:
        replayed, _ = ask(row, path, None, **options)
        assert row.texts == meaning(row, replayed)


def test_an_array_is_over_in_the_chunk_that_closes_it(tmp_path: Path) -> None:
    """A client that has seen the end may go away without reading on: the recording is there."""
    path = tmp_path / "array.jsonl"
    upstream = httpx.MockTransport(lambda request: sse([HI_ARRAY.rstrip(), b"\n"], JSON))
    transport = CassetteTransport(path, mode="record", next_transport=upstream)
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", ARRAY, json=ASK) as response:
            next(response.iter_raw())

            assert 1 == len(lines(path))


@pytest.mark.parametrize(
    ("count", "stored"),
    [(DRAIN_LIMIT // 2, [{}, 1]), (DRAIN_LIMIT * 2, [{"abandoned": 1}, 0])],
    ids=["the rest is near", "the rest is far"],
)
def test_a_reason_in_every_event_makes_no_part_a_whole(count: int, stored: list[Any], tmp_path: Path) -> None:
    """A caller who goes away early has heard a reason, but there was more to say."""
    path = tmp_path / "early.jsonl"
    chunks = [sent(value("a", finish="STOP")) for _ in range(count)]
    transport = CassetteTransport(
        path, mode="record", next_transport=httpx.MockTransport(lambda request: sse(chunks))
    )
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", EVENTS, json=ASK) as response:
            next(response.iter_raw())

    assert stored == [transport.stats.unrecorded, len(lines(path))]
    if not stored[0]:
        replayed, _ = ask(Row("", b"", ""), path, None)
        assert {"0": "a" * count} == meaning(Row("", b"", "assembled"), replayed)


def test_a_comment_is_no_noise_here(tmp_path: Path) -> None:
    """google-genai takes it for JSON; empty texts and CRLF are what Google sends."""
    row = Row("", HI, "assembled")
    ask(row, tmp_path / "a.jsonl", 10**9)

    replayed, _ = ask(row, tmp_path / "a.jsonl", None, chunk_size=1, noise=True)

    assert HI.count(b"data: ") < replayed.count(b"data: ")
    assert all(line.startswith(b"data: {") for line in replayed.split(b"\r\n") if line)
