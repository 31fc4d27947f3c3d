"""Streams as bad servers of Bedrock's formats send them: stored so that a replay says the same, or not.

The caller gets every byte either way.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from botocore.eventstream import EventStreamBuffer

from httpx_cassette import CassetteMiss, CassetteTransport, CassetteWriteError

from .aws_messages import EVENTSTREAM, USUAL, chunk, event, exception, message
from .colours import lines, sse
from .served import KINDS, exchange, kind_of, zip_up

HOST = "https://bedrock-runtime.us-east-1.amazonaws.com"
STREAM = f"{HOST}/model/anthropic.claude-v2%3A1/converse-stream"
WHOLE = f"{HOST}/model/anthropic.claude-v2%3A1/converse"
INVOKE = f"{HOST}/model/anthropic.claude-v2%3A1/invoke-with-response-stream"
NOVA = f"{HOST}/model/us.amazon.nova-micro-v1%3A0/invoke-with-response-stream"
LLAMA = f"{HOST}/model/meta.llama3-70b-instruct-v1%3A0/invoke-with-response-stream"
AGENT = "https://bedrock-agent-runtime.us-east-1.amazonaws.com/agents/A/agentAliases/B/sessions/c/text"
JSON, SSE = "application/json", "text/event-stream"

CONVERSE = {
    "system": [{"text": "Be brief."}],
    "messages": [{"role": "user", "content": [{"text": "Hello?"}]}],
}
MESSAGES = {
    "anthropic_version": "bedrock-2023-05-31",
    "max_tokens": 9,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Hello?"}],
}
ASKED: dict[str, Any] = {
    STREAM: CONVERSE,
    WHOLE: CONVERSE,
    NOVA: CONVERSE,
    INVOKE: MESSAGES,
    LLAMA: {"prompt": "Hello?"},
    AGENT: {"inputText": "Hello?"},
}


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not.
        said: The joined texts by name; for ``json`` the document, nothing for other bytes.
        url: What is asked.
        content_type: The header.
        pack: Its content encoding, gzip if it is any.
    """

    id: str
    body: bytes
    kept: str
    said: Any = None
    url: str = STREAM
    content_type: str | None = EVENTSTREAM
    pack: Callable[[bytes], bytes] = bytes


def text(said: str, index: int = 0) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": said}})


def flipped(body: bytes, position: int) -> bytes:
    return body[:position] + bytes([body[position] ^ 1]) + body[position + 1 :]


BEGIN = event("messageStart", {"role": "assistant"})
STOP = event("messageStop", {"stopReason": "end_turn"})
METADATA = event("metadata", {"usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}})
END = STOP + METADATA
HI = BEGIN + text("Hi") + text(" there") + END
SAID = {"text": "Hi there"}
HALF = message({":event-type": "contentBlockDelta", **USUAL}, b'{"delta":{"text":"\\ud83d"}}')
SLOW = exception("throttlingException", "Slow down.")

OWN = [{"type": "content_block_delta", "index": 0, "delta": {"text": each}} for each in ("Hi", " there")]
REASON = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
MESSAGE = b"".join(map(chunk, [*OWN, REASON, {"type": "message_stop"}]))
PIECES = [
    {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": each}}} for each in ("Hi", " there")
]
OF_NOVA = [*PIECES, {"messageStop": {"stopReason": "end_turn"}}, {"metadata": {"usage": {}}}]
ANSWER = {"output": {"message": {"content": [{"text": "Hi"}]}}, "stopReason": "end_turn"}

ROWS = [
    # How it ends.
    Row("whole", HI, "assembled", SAID),
    Row("no end", BEGIN + text("Hi"), "truncated"),
    Row("torn in the last text", (BEGIN + text("Hi"))[:-9], "truncated"),
    Row("torn in the reason to stop", HI[: -len(METADATA) - 1], "truncated"),
    Row("no metadata", HI[: -len(METADATA)], "assembled", SAID),
    # More was announced, and is missing.
    Row("torn in the metadata", HI[:-1], "truncated"),
    Row("torn in the prelude of the metadata", HI[: -len(METADATA) + 7], "truncated"),
    Row("metadata alone", BEGIN + text("Hi") + METADATA, "truncated"),
    Row("text behind the end", HI + text("!"), "assembled", SAID),
    Row("an exception behind the end", HI + SLOW, "assembled", SAID),
    Row("noise behind the end", HI + b"oops, and some more", "assembled", SAID),
    Row("empty", b"", "truncated"),
    Row("blanks", b"\n\n", "truncated"),
    # Errors inside a 200.
    Row("an exception", BEGIN + text("Hi") + SLOW, "failed"),
    Row("an exception alone", SLOW, "failed"),
    Row("an exception before the metadata", BEGIN + text("Hi") + STOP + SLOW, "failed"),
    Row(
        "an error",
        text("Hi") + message({":message-type": "error", ":error-code": "500", ":error-message": "no"}, b""),
        "failed",
    ),
    Row("an exception that is an event", text("Hi") + event("validationException", {}) + END, "failed"),
    # Bytes that are damaged.
    Row("a wrong length", flipped(HI, 3), "failed"),
    Row("a wrong checksum of lengths", flipped(HI, 8), "failed"),
    Row("a wrong header", flipped(HI, 15), "failed"),
    Row("a wrong checksum", flipped(HI, len(BEGIN) - 1), "failed"),
    Row("a wrong checksum in the middle", flipped(HI, len(BEGIN + text("Hi")) + 40), "failed"),
    Row("a wrong checksum behind the reason to stop", flipped(HI, len(HI) - 1), "failed"),
    # No format of this host's: kept as it came.
    Row("lines", b'{"text": "Hi"}\n{"text": " there"}\n', "text"),
    Row("events", b'data: {"text": "Hi"}\n\n', "failed"),
    # What is in a message.
    Row(
        "no JSON",
        BEGIN + text("Hi") + event("x", "oops") + text(" there") + END,
        "assembled",
        SAID,
    ),
    Row(
        "another header",
        message({":event-type": "x", **USUAL, "y": "1"}, b"{}") + HI,
        "assembled",
        SAID,
    ),
    Row(
        "no padding",
        BEGIN + event("contentBlockDelta", {"delta": {"text": "Hi there"}}, None) + END,
        "assembled",
        SAID,
    ),
    Row("a number for a header", message(b"\x01a\x04\x00\x00\x00\x07", b"{}") + HI, "base64"),
    Row("no text", message({":event-type": "x", **USUAL}, b"\xff") + HI, "base64"),
    Row("half of a character", HALF + END, "assembled", {"text": "\ud83d"}),
    # Its bytes.
    Row("gzip", HI, "assembled", SAID, pack=zip_up),
    Row("gzip, torn", HI * 9, "truncated", pack=lambda body: zip_up(body)[:40]),
    # Content types lie.
    Row("as JSON", HI, "assembled", SAID, content_type=JSON),
    Row("as SSE", HI, "assembled", SAID, content_type=SSE),
    Row("without a type", HI, "assembled", SAID, content_type=None),
    Row("one document for a stream", json.dumps(ANSWER).encode(), "json", ANSWER),
    Row("one document, an error", b'{"message": "Too many requests"}', "failed"),
    Row("a page", b"<html>Welcome</html>", "failed", content_type="text/html"),
    Row("a stream for one document", HI, "assembled", SAID, WHOLE),
    Row("one document", json.dumps(ANSWER).encode(), "json", ANSWER, WHOLE, JSON),
    # What models say themselves.
    Row("messages", MESSAGE, "assembled", SAID, INVOKE),
    Row("messages without an end", b"".join(map(chunk, OWN)), "truncated", None, INVOKE),
    Row("messages and an exception", b"".join(map(chunk, OWN)) + SLOW, "failed", None, INVOKE),
    Row(
        "messages and an error",
        chunk(OWN[0]) + chunk({"type": "error", "error": {"type": "overloaded_error"}}),
        "failed",
        None,
        INVOKE,
    ),
    Row(
        "messages that are closed envelopes",
        event("chunk", {"bytes": "oops"}) + MESSAGE,
        "assembled",
        SAID,
        INVOKE,
    ),
    Row("of Nova", b"".join(map(chunk, OF_NOVA)), "assembled", SAID, NOVA),
    Row("of Nova without an end", b"".join(map(chunk, PIECES)), "truncated", None, NOVA),
    # Of formats that have no table only the end of the body is the end.
    Row("of Llama", chunk({"generation": "Hi there"}), "verbatim", SAID, LLAMA),
    Row("of Llama, torn", chunk({"generation": "Hi"})[:-1], "truncated", None, LLAMA),
    Row("of Llama, an exception", chunk({"generation": "Hi"}) + SLOW, "failed", None, LLAMA),
    Row("of Llama, damaged", flipped(chunk({"generation": "Hi"}), 30), "failed", None, LLAMA),
    Row("of an agent", chunk("Hi") + chunk(" there"), "verbatim", SAID, AGENT),
]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    encoding = "" if row.pack is bytes else "gzip"
    sent = row.pack(row.body)
    return exchange(path, sent, size, row.content_type, encoding, url=row.url, json=ASKED[row.url], **options)


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read by botocore and without the package: its document, or its texts."""
    if row.kept == "json":
        return json.loads(body)
    if row.kept in ("base64", "text"):
        return None if body == row.body else body
    said = ""
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    for each in buffer:
        kind = each.headers.get(":event-type")
        said += _text_in(_opened(each.payload) if kind == "chunk" else each.payload)
        if kind == "metadata":
            break
    return {"text": said}


def _opened(payload: bytes) -> bytes:
    return base64.b64decode(json.loads(payload)["bytes"], validate=True)


def _text_in(payload: bytes) -> str:
    try:
        value = json.loads(payload)
    except ValueError:
        return payload.decode() if payload in (b"Hi", b" there") else ""
    if not isinstance(value, dict):
        return ""
    inner = value.get("contentBlockDelta", value)
    return str(inner.get("delta", {}).get("text", "")) + str(value.get("generation", ""))


REPLAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chunk_size": 1},
    {"chunk_size": 3, "noise": True},
    {"chunk_size": 10**9, "wire_chunk_size": 3},
)


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
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
    ("url", "body"), [(STREAM, HI), (INVOKE, MESSAGE), (NOVA, b"".join(map(chunk, OF_NOVA)))]
)
def test_a_stream_is_over_in_the_chunk_that_says_so(url: str, body: bytes, tmp_path: Path) -> None:
    """A client that has seen the end may go away without reading on: the recording is there."""
    path = tmp_path / "stream.jsonl"
    upstream = httpx.MockTransport(lambda request: sse([body[:-1], body[-1:], b"more"], EVENTSTREAM))
    transport = CassetteTransport(path, mode="record", next_transport=upstream)
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", url, json=ASKED[url]) as response:
            chunks = response.iter_raw()
            next(chunks)
            assert [] == lines(path)
            next(chunks)

            assert 1 == len(lines(path))


#: What is told when a transport is closed.
CLOSED = "answers that were not recorded: 1 failed"


def test_why_a_stream_is_not_stored_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What failed, in words of our own or in the name of the exception."""
    for number, body in enumerate((SLOW, flipped(HI, 3))):
        exchange(tmp_path / f"{number}.jsonl", body, 7, EVENTSTREAM, url=STREAM, json=CONVERSE)

    assert [
        f"not recorded: POST {STREAM} failed: the stream carried throttlingException",
        CLOSED,
        f"not recorded: POST {STREAM} failed: a message of the stream cannot be read: ChecksumMismatch",
        CLOSED,
    ] == [record.message for record in caplog.records]


def test_what_a_model_says_is_stored_as_text(tmp_path: Path) -> None:
    """Out of its envelope, where it can be read, edited and searched; padding is gone."""
    path = tmp_path / "stream.jsonl"
    exchange(path, MESSAGE, 7, EVENTSTREAM, url=INVOKE, json=MESSAGES)

    (stored,) = lines(path)
    assert {
        "status": 200,
        "headers": {"content-type": EVENTSTREAM},
        "framing": "eventstream",
        "stored": "assembled",
        "script": [
            {"event": "chunk", "json": {**OWN[0], "delta": {"text": "Hi there"}}},
            {"event": "chunk", "json": REASON},
            {"event": "chunk", "json": {"type": "message_stop"}},
        ],
    } == stored["response"]
    assert ("anthropic-messages", "end_turn") == (stored["dialect"], stored["finish"])


@pytest.mark.parametrize("kind", [chunk, lambda value: event("x", value)], ids=["envelope", "event"])
def test_a_credential_in_pieces_does_not_reach_the_file(kind: Any, tmp_path: Path) -> None:
    """Base64 hides none: it is undone before texts are joined and looked at."""
    key = "sk-ant-api03-" + "Ab1_" * 23 + "AA"
    pieces = [{**OWN[0], "delta": {"text": key[start : start + 9]}} for start in range(0, len(key), 9)]
    body = b"".join(map(kind, pieces)) + b"".join(map(chunk, [REASON, {"type": "message_stop"}]))
    path = tmp_path / "stream.jsonl"
    exchange(path, body, 10**9, EVENTSTREAM, url=INVOKE, json=MESSAGES)

    (stored,) = lines(path)
    text = stored["response"]["script"][0]["json"]["delta"]["text"]
    assert text.startswith("<redacted:anthropic-key:")
    assert key[20:60] not in path.read_text(encoding="utf-8")


# -- without botocore ----------------------------------------------------------------------------------

MISSING = (
    "botocore, which reads AWS's binary streams, is not installed: pip install 'httpx_cassette[bedrock]'"
)


@pytest.fixture
def _without_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)


@pytest.mark.usefixtures("_without_botocore")
@pytest.mark.parametrize(
    ("url", "headers"),
    [
        (STREAM, {}),
        (INVOKE, {}),
        (NOVA, {}),
        (LLAMA, {}),
        # No path of a model: the caller says what it waits for.
        (AGENT, {"accept": f"{EVENTSTREAM}, application/json"}),
    ],
    ids=["converse", "Messages", "Nova", "Llama", "asked for in a header"],
)
def test_without_botocore_a_stream_is_not_asked_for(
    url: str, headers: dict[str, str], tmp_path: Path
) -> None:
    """Its answer could not be stored: the call stops before it is paid for, and the extra is named."""
    upstream = httpx.MockTransport(lambda request: pytest.fail("it was called"))
    transport = CassetteTransport(tmp_path / "a.jsonl", mode="record", next_transport=upstream, on_miss=None)
    with httpx.Client(transport=transport) as client:
        with pytest.raises(CassetteWriteError) as raised:
            client.post(url, json=ASKED[url], headers=headers)

    assert (
        f"POST {url} was not called, because it could not be stored: {MISSING}"
        == (str(raised.value).partition("\n")[0])
    )


@pytest.mark.usefixtures("_without_botocore")
def test_without_botocore_all_else_is_recorded(tmp_path: Path) -> None:
    """One document needs none, and a stream of messages that nobody announced is the caller's alone."""
    document = Row("", json.dumps(ANSWER).encode(), "json", ANSWER, WHOLE, JSON)
    _, stats = ask(document, tmp_path / "a.jsonl", 10**9)
    body, of_agent = ask(Row("", chunk("Hi"), "failed", None, AGENT), tmp_path / "b.jsonl", 10**9)

    assert (1, {}) == (stats.recorded, stats.unrecorded)
    assert (chunk("Hi"), 0, {"failed": 1}) == (body, of_agent.recorded, of_agent.unrecorded)


@pytest.mark.usefixtures("_without_botocore")
def test_without_botocore_an_unannounced_stream_says_what_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the warning that it is not recorded."""
    ask(Row("", chunk("Hi"), "failed", None, AGENT), tmp_path / "b.jsonl", 10**9)

    assert [f"not recorded: POST {AGENT} failed: {MISSING}", CLOSED] == [
        each.message for each in caplog.records
    ]


def test_a_replay_does_without_botocore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte of it is written here."""
    row = ROWS[0]
    ask(row, tmp_path / "a.jsonl", 10**9)
    replayed, _ = ask(row, tmp_path / "a.jsonl", None)
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)

    assert replayed == ask(row, tmp_path / "a.jsonl", None)[0]
