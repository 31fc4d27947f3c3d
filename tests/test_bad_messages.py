"""Anthropic's streams as bad servers and gateways send them: stored as they are, or not at all.

A replay says what the server said, or the reason why nothing was stored is told. The caller gets every byte
either way. What is true of every format stands in ``test_bad_streams.py``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import brotli
import pytest

from httpx_cassette import CassetteMiss

from .colours import lines
from .plain_reader import read_sse
from .served import KINDS, exchange, kind_of, zip_up

URL = "https://api.anthropic.com/v1/messages"
VERTEX = "https://us-east5-aiplatform.googleapis.com/v1/publishers/anthropic/models/m:streamRawPredict"
SSE, JSON = "text/event-stream", "application/json"
BOM = b"\xef\xbb\xbf"


def event(value: Any, name: str | None = "") -> bytes:
    """Return one event with its name; ``None`` for one without, another text for a name that is wrong."""
    named = value.get("type") if name == "" else name
    head = b"" if named is None else f"event: {named}\n".encode()
    return head + b"data: " + json.dumps(value).encode() + b"\n\n"


def opened(index: Any = 0, **members: Any) -> bytes:
    block = {"type": "text", "text": "", **members}
    return event({"type": "content_block_start", "index": index, "content_block": block})


def delta(text: Any, index: Any = 0, **more: Any) -> bytes:
    part = {"type": "text_delta", "text": text}
    return event({"type": "content_block_delta", "index": index, "delta": part, **more})


def closed(index: Any = 0) -> bytes:
    return event({"type": "content_block_stop", "index": index})


def ended(reason: str | None = "end_turn") -> bytes:
    return event({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})


START = event({"type": "message_start", "message": {"id": "msg_1", "type": "message", "content": []}})
STOP = event({"type": "message_stop"})
PING = event({"type": "ping"})
SAID = START + opened() + delta("Hi ") + delta("there") + closed()
HI = SAID + ended() + STOP
ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
MESSAGE = {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
MARK = b"event: data\ndata: [DONE]\n\n"


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not stored.
        texts: The joined texts by index, or the JSON document.
        content_type: The header.
        encoding: Its content encoding.
        pack: Applies it.
        url: Where it comes from.
        request: Members of the request.
    """

    id: str
    body: bytes
    kept: str
    texts: Any = None
    content_type: str | None = SSE
    encoding: str = ""
    pack: Callable[[bytes], bytes] = bytes
    url: str = URL
    request: Any = {"stream": True}  # noqa: RUF012  # never changed


SAYS = {"0": "Hi there"}
JOINED = {"0": "ab"}

ROWS = [
    # How it ends.
    Row("no end", SAID, "truncated"),
    Row("no end, and an unfinished reason", SAID + ended(None), "truncated"),
    Row("a reason without message_stop", SAID + ended(), "assembled", SAYS),
    Row("message_stop without a reason", SAID + STOP, "assembled", SAYS),
    Row("message_stop without its blank line", SAID + ended() + STOP[:-1], "assembled", SAYS),
    Row("message_stop without its blank line, and no reason", SAID + STOP[:-1], "truncated"),
    Row("torn in the reason", SAID + ended()[:-9], "truncated"),
    Row("torn behind the reason", SAID + ended() + STOP[:-9], "assembled", SAYS),
    Row("a reason in the first event", event({"type": "message_start", "message": MESSAGE}), "truncated"),
    Row("only message_stop", STOP, "assembled", {}),
    Row("empty", b"", "truncated"),
    Row("only pings", PING * 3, "truncated"),
    Row("only comments", b": PROCESSING\n\n" * 3, "truncated"),
    Row("two of message_stop", HI + STOP, "assembled", SAYS),
    Row("two reasons", SAID + ended() + ended("max_tokens") + STOP, "assembled", SAYS),
    Row("text behind the reason", SAID + ended() + delta("!") + STOP, "assembled", {"0": "Hi there!"}),
    Row("text behind message_stop", HI + delta("!"), "assembled", SAYS),
    Row("an error behind message_stop", HI + event(ERROR), "assembled", SAYS),
    Row("a gateway's marker behind message_stop", HI + MARK, "assembled", SAYS),
    Row("a gateway's marker for message_stop", SAID + ended() + MARK, "assembled", SAYS),
    Row("a gateway's marker and no reason", SAID + MARK, "truncated"),
    Row(
        "a block that is never closed",
        START + opened() + delta("a") + ended() + STOP,
        "assembled",
        {"0": "a"},
    ),
    # Errors inside a 200.
    Row("an error", SAID + event(ERROR), "failed"),
    Row("an error first", event(ERROR), "failed"),
    Row("an error without its name", SAID + event(ERROR, None), "failed"),
    Row("an error of another name", SAID + event(ERROR, "ping") + ended() + STOP, "failed"),
    Row("an error that is a text", SAID + b"event: error\ndata: overloaded\n\n" + ended() + STOP, "failed"),
    Row("an error behind the reason", SAID + ended() + event(ERROR), "failed"),
    Row("an error in another format", SAID + event({"error": {"code": 503}}, None) + STOP, "failed"),
    Row("a field error", SAID + b'error: {"code": 503}\n\n', "failed"),
    Row(
        "an error that is null",
        START + event({"type": "ping", "error": None}) + ended() + STOP,
        "assembled",
        {},
    ),
    # Names.
    Row("no names", HI.replace(b"event: ", b": "), "assembled", SAYS),
    Row("no names, no end", SAID.replace(b"event: ", b": "), "truncated"),
    Row("message_stop under another name", SAID + STOP.replace(b"event: m", b"event: x"), "truncated"),
    Row("a reason under another name", SAID + ended().replace(b"event: m", b"event: x"), "truncated"),
    Row(
        "another event named message_stop",
        SAID + PING.replace(b"event: ping", b"event: message_stop"),
        "truncated",
    ),
    Row(
        "a name that is contradicted in the middle",
        START + delta("a") + event({"type": "message_stop"}, "ping") + delta("b") + ended() + STOP,
        "assembled",
        JOINED,
    ),
    Row(
        "deltas under another name",
        START + delta("a").replace(b"event: c", b"event: x") * 2 + STOP,
        "assembled",
        {"0": "aa"},
    ),
    # Who speaks.
    Row(
        "a delta without its block",
        START + delta("a", 3) + delta("b", 3) + ended() + STOP,
        "assembled",
        {"3": "ab"},
    ),
    Row(
        "a delta of another block",
        START + opened(0) + delta("a", 1) + closed(0) + STOP,
        "assembled",
        {"1": "a"},
    ),
    Row("an index that is text", START + delta("a", "0") + delta("b", 0) + STOP, "assembled", {"0": "ab"}),
    Row("no index", START + (delta("a", None) + delta("b", None)) + STOP, "assembled", {"None": "ab"}),
    Row(
        "interleaved blocks",
        START + opened(0) + opened(1) + b"".join(delta(each, n % 2) for n, each in enumerate("axby")) + STOP,
        "assembled",
        {"0": "ab", "1": "xy"},
    ),
    Row("blocks opened twice", START + (opened() + delta("a")) * 2 + STOP, "assembled", {"0": "aa"}),
    Row(
        "two messages",
        START + delta("a") + START.replace(b"msg_1", b"msg_2") + delta("b") + STOP,
        "assembled",
        JOINED,
    ),
    # How its lines end, and what stands between them.
    Row("CRLF", HI.replace(b"\n", b"\r\n"), "assembled", SAYS),
    Row("CR", HI.replace(b"\n", b"\r"), "assembled", SAYS),
    Row("comments", HI.replace(b"event", b": keepalive\n\n:\nevent"), "assembled", SAYS),
    Row("pings everywhere", HI.replace(b"event", PING + b"event"), "assembled", SAYS),
    Row("pings without names", HI.replace(b"event", b'data: {"type": "ping"}\n\nevent'), "assembled", SAYS),
    Row("a mark of UTF-8", BOM + HI, "assembled", SAYS),
    Row("padded", HI.replace(b"}\n", b"        }\n"), "assembled", SAYS),
    Row("data in several lines", HI.replace(b', "index"', b',\ndata:\ndata:  "index"'), "assembled", SAYS),
    Row("id and retry", HI.replace(b"data: {", b"id: 7\nretry: 9\ndata: {"), "assembled", SAYS),
    # What is in an event.
    *(
        Row(
            f"data that are {odd}",
            START + delta("a") + f"event: odd\ndata: {odd}\n\n".encode() + delta("b") + STOP,
            "assembled",
            JOINED,
        )
        for odd in ("7", "1e400", "[1, [2]]", "null", '"text"', "{oops", "[" * 9_000 + "]" * 9_000)
    ),
    Row(
        "an unknown event",
        START + delta("a") + event({"type": "new", "n": 1}) + delta("b") + STOP,
        "assembled",
        JOINED,
    ),
    Row(
        "text that is none",
        START + b"".join(map(delta, ["a", 7, None, ["x"], "b"])) + STOP,
        "assembled",
        JOINED,
    ),
    Row(
        "a delta that is none",
        START + event({"type": "content_block_delta", "index": 0, "delta": "x"}) + delta("a") + STOP,
        "assembled",
        {"0": "a"},
    ),
    Row(
        "a member twice",
        START + delta("a").replace(b'"index"', b'"index": 1, "index"') + STOP,
        "assembled",
        {"0": "a"},
    ),
    Row(
        "halves of a character",
        START + delta("\ud83d") + delta("\ude86") + STOP,
        "assembled",
        {"0": "\U0001f686"},
    ),
    Row("half of a character", START + delta("a\ud83d") + STOP, "assembled", {"0": "a\ud83d"}),
    Row(
        "line ends of Unicode",
        START + delta("a\u2028") + delta("\u2029\x85") + STOP,
        "assembled",
        {"0": "a\u2028\u2029\x85"},
    ),
    # Bytes.
    Row("no UTF-8", SAID + b"event: odd\ndata: caf\xe9\n\n" + ended() + STOP, "base64", SAYS),
    Row("gzip", HI, "assembled", SAYS, encoding="gzip", pack=zip_up),
    Row("br", HI, "assembled", SAYS, encoding="br", pack=brotli.compress),
    Row("gzip, torn", HI * 9, "truncated", encoding="gzip", pack=lambda body: zip_up(body)[:60]),
    # Content types lie.
    Row("SSE as JSON", HI, "assembled", SAYS, content_type=JSON),
    Row("SSE without a type", HI, "assembled", SAYS, content_type=None),
    Row("SSE as JSON, marked, an error", BOM + event(ERROR), "failed", content_type=JSON),
    Row("SSE as text, asked for by the path", HI, "assembled", SAYS, "text/plain", url=VERTEX, request={}),
    Row("JSON as SSE", json.dumps(MESSAGE).encode(), "json", MESSAGE),
    Row("JSON for a stream", json.dumps(MESSAGE, indent=1).encode(), "json", MESSAGE, JSON),
    Row("JSON as SSE, an error", json.dumps(ERROR).encode(), "failed"),
    Row("JSON, an error", json.dumps(ERROR).encode(), "failed", content_type=JSON, request={}),
    Row("JSON, an error of a gateway", b'{"error": "overloaded"}', "failed", content_type=JSON, request={}),
    Row("JSON as SSE, torn", json.dumps(MESSAGE).encode()[:-9], "truncated"),
    Row("a page", b"<html>Welcome</html>", "failed", content_type="text/html"),
]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    body = {
        "anthropic_version": "vertex-2023-10-16",
        "max_tokens": 9,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "hi"}],
        **row.request,
    }
    sent = row.pack(row.body)
    return exchange(path, sent, size, row.content_type, row.encoding, url=row.url, json=body, **options)


def what_is_said(body: bytes) -> tuple[dict[str, str], list[Any]]:
    """Return the joined texts by index, and every other event in order, pings aside, up to the end."""
    texts: dict[str, str] = {}
    others: list[Any] = []
    for each in read_sse(body)[0]:
        try:
            value = json.loads(each.data)
        except (ValueError, RecursionError):
            value = each.data
        part = value.get("delta") if isinstance(value, dict) else None
        if value == {"type": "ping"} and each.event in (None, "ping"):
            continue
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            index = str(value["index"])
            joined = (texts.get(index, "") + part["text"]).encode("utf-16", "surrogatepass")
            texts[index] = joined.decode("utf-16", "surrogatepass")
            continue
        others.append((repr(value), *each[1:]))
        if value == {"type": "message_stop"} and each.event in (None, "message_stop"):
            break
    return texts, others


REPLAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chunk_size": 1},
    {"chunk_size": 10**9, "wire_chunk_size": 3},
    {"chunk_size": 2, "noise": True},
)


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_bad_stream_is_stored_as_it_is_or_not_at_all(row: Row, size: int, tmp_path: Path) -> None:
    """However its bytes were cut, the same is stored, and the replay says what the server said."""
    path = tmp_path / "bad.jsonl"
    sent, stats = ask(row, path, size)

    assert row.pack(row.body) == sent
    if row.kept not in KINDS:
        assert ({row.kept: 1}, []) == (stats.unrecorded, lines(path))
        with pytest.raises(CassetteMiss):
            ask(row, path, None)
        return
    assert {} == stats.unrecorded
    (line,) = lines(path)
    response = line["response"]
    assert row.kept == kind_of(response)
    if row.kept == "base64":
        assert row.body == base64.b64decode(response["base64"])
    if row.kept == "json":
        assert [row.texts] * len(REPLAYS) == [json.loads(ask(row, path, None, **each)[0]) for each in REPLAYS]
        return
    told = what_is_said(row.body)
    assert row.texts == told[0]
    for options in REPLAYS:
        assert told == what_is_said(ask(row, path, None, **options)[0])
