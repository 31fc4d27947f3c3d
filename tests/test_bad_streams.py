"""Streams as bad servers send them, through the real transport: what is stored, and what a replay says.

A stream is stored so that a replay says the same, or it is not stored, for a reason that is told; never as
something else. The caller gets every byte either way.
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

from .colours import URL, chat, delta, events, lines
from .plain_reader import PlainEvent, read_lines, read_sse, what_is_said
from .served import KINDS, exchange, kind_of, zip_up

#: No dialect knows what is asked here.
UNKNOWN = "https://api.test/v1/events"
SSE, NDJSON, JSON = "text/event-stream", "application/x-ndjson", "application/json"

DONE = b"data: [DONE]\n\n"
STOP = delta(None, "stop")
HI = b"".join(events("Hi there"))
BOM = b"\xef\xbb\xbf"


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not stored.
        texts: The joined texts of a chat stream that is stored, or the events of another, as a client of the
            standard reads them; for ``json`` the document, for ``text`` the text.
        url: Where it comes from: a chat, or what no dialect knows.
        content_type: The header.
        pack: Its content encoding.
    """

    id: str
    body: bytes
    kept: str
    texts: Any = None
    url: str = URL
    content_type: str | None = SSE
    encoding: str = ""
    pack: Callable[[bytes], bytes] = bytes


def event(*choices: object, **more: object) -> bytes:
    """Return one event of a chat stream with these choices."""
    return b"data: " + json.dumps({"choices": list(choices), **more}).encode() + b"\n\n"


def choice(index: object, content: object = None, finish: str | None = None, **members: object) -> Any:
    """Return a choice; ``index`` ``None`` leaves it out."""
    named = {} if index is None else {"index": index}
    told = {} if content is None else {"content": content}
    return {**named, "delta": {**told, **members}, "finish_reason": finish}


def tool(index: object, arguments: str, **more: object) -> Any:
    """Return a delta's member ``tool_calls`` with one call."""
    named = {} if index is None else {"index": index}
    return [
        {
            **named,
            **more,
            "function": {"name": "f", "arguments": arguments} if more else {"arguments": arguments},
        }
    ]


def content(*words: object) -> bytes:
    return b"".join(event(choice(0, word)) for word in words)


def said(text: str, index: object = 0) -> dict[str, str]:
    return {f"choices[{index!r}].delta.content": text}


TOOL = "choices[0].delta.tool_calls[{}].function.arguments"
ERROR = {"message": "overloaded", "code": 503}
LONG = "An event of more than a megabyte. " * 32_000
EMOJI = "für 雨 \U0001f686"

#: Of a chat stream.
CHATS = [
    # How it ends.
    Row("no end", delta("Hel") + delta("lo"), "truncated"),
    Row("finish reason without [DONE]", delta("Hi") + STOP, "assembled", said("Hi")),
    Row("[DONE] without finish reason", delta("Hi") + DONE, "assembled", said("Hi")),
    Row("[DONE] without blank line", delta("Hi") + STOP + b"data: [DONE]", "assembled", said("Hi")),
    Row("[DONE] and a blank", delta("Hi") + STOP + b"data: [DONE] \n\n", "assembled", said("Hi")),
    Row("only [DONE]", DONE, "assembled", {}),
    Row("empty", b"", "truncated"),
    Row("only blank lines", b"\n\r\n\n", "truncated"),
    Row("only comments", b": PROCESSING\n\n" * 3, "truncated"),
    Row("two [DONE]", HI + DONE, "assembled", said("Hi there")),
    Row("two finish reasons", delta("Hi") + STOP + delta(None, "length") + DONE, "assembled", said("Hi")),
    Row("text behind [DONE]", HI + delta(" and more"), "assembled", said("Hi there")),
    Row("an error behind [DONE]", HI + event(error=ERROR), "assembled", said("Hi there")),
    Row("text behind the finish reason", delta("Hi") + STOP + delta("!") + DONE, "assembled", said("Hi!")),
    Row(
        "an event torn behind the finish reason", delta("Hi") + STOP + b'data: {"us', "assembled", said("Hi")
    ),
    Row("torn in an event", HI[:-60], "truncated"),
    Row("one of two choices unfinished", event(choice(0, "a"), choice(1, "b")) + STOP, "truncated"),
    Row("an empty finish reason in every event", event(choice(0, "Hi", "")), "truncated"),
    Row(
        "empty finish reasons, and one",
        event(choice(0, "H", "")) + event(choice(0, "i", "")) + STOP,
        "assembled",
        said("Hi"),
    ),
    # Errors inside a 200.
    Row("an error as data", delta("Hi") + event(error=ERROR) + DONE, "failed"),
    Row(
        "an error that is a text", delta("Hi") + b'data: {"error": "overloaded"}\n\n' + STOP + DONE, "failed"
    ),
    Row("an event error", delta("Hi") + b"event: error\ndata: overloaded\n\n" + DONE, "failed"),
    Row("a field error", delta("Hi") + b'error: {"code": 503}\n\n', "failed"),
    Row("a field error, torn", delta("Hi") + STOP + b'error: {"code": 503}', "failed"),
    Row("an error in a choice", event({**choice(0, "Hi", "error"), "error": ERROR}) + DONE, "failed"),
    Row("an error that is null", event(choice(0, "Hi"), error=None) + STOP + DONE, "assembled", said("Hi")),
    # Who speaks.
    Row(
        "two choices of one index",
        event(choice(0, "a"), choice(0, "b")) * 2 + DONE,
        "assembled",
        said("abab"),
    ),
    Row(
        "an index that is missing in one of two choices",
        event(choice(None, "ab", "stop"), choice(0, "cd")) + DONE,
        "assembled",
        said("abcd"),
    ),
    Row("no index", event(choice(None, "a")) * 2 + DONE, "assembled", said("aa")),
    Row("an index that is text", event(choice("0", "a")) * 2 + DONE, "assembled", said("aa", "0")),
    Row(
        "an index now and then",
        event(choice(0, "a")) + event(choice(None, "b")) + event(choice(0, "c")) + DONE,
        "assembled",
        said("abc"),
    ),
    Row(
        "interleaved choices",
        b"".join(event(choice(index, text)) for index, text in ((0, "a"), (1, "x"), (0, "b"), (1, "y")))
        + event(choice(1, None, "stop"))
        + STOP
        + DONE,
        "assembled",
        {**said("ab"), **said("xy", 1)},
    ),
    Row(
        "several slots in one event",
        event(choice(0, "a", reasoning="r"), choice(1, "x", refusal="no")) * 2 + DONE,
        "assembled",
        {
            **said("aa"),
            **said("xx", 1),
            "choices[0].delta.reasoning": "rr",
            "choices[1].delta.refusal": "nono",
        },
    ),
    Row(
        "ids that change",
        b"".join(event(choice(0, text), id=f"c{text}", model=text) for text in "abc") + STOP + DONE,
        "assembled",
        said("abc"),
    ),
    Row("role repeated", event(choice(0, "a", role="assistant")) * 3 + STOP + DONE, "assembled", said("aaa")),
    Row(
        "usage in every event",
        b"".join(event(choice(0, "a"), usage={"completion_tokens": number}) for number in range(3)) + DONE,
        "assembled",
        said("aaa"),
    ),
    Row(
        "usage in every event of interleaved choices",
        event(choice(0, "a"), usage={"n": 1})
        + event(choice(1, "x"), usage={"n": 2})
        + event(choice(1, "y"), usage={"n": 3})
        + event(choice(0, "b"), usage={"n": 4})
        + event(choice(0, "c"), usage={"n": 5})
        + DONE,
        "assembled",
        {**said("abc"), **said("xy", 1)},
    ),
    Row(
        "usage that goes back",
        b"".join(event(choice(0, "a"), usage={"n": number}) for number in (1, 1, 2, 1)) + DONE,
        "assembled",
        said("aaaa"),
    ),
    Row(
        "a tool call that goes on behind the finish reason",
        b"".join(
            event({**choice(0, tool_calls=tool(index, text)), "finish_reason": finish})
            for index, text, finish in ((0, "a", None), (1, "b", "stop"), (0, "c", "length"))
        )
        + DONE,
        "assembled",
        {TOOL.format(0): "ac", TOOL.format(1): "b"},
    ),
    Row(
        "whole tool calls in one delta",
        event(choice(0, tool_calls=tool(0, '{"a":1}', id="t0") + tool(1, '{"b":2}', id="t1"))) + STOP + DONE,
        "assembled",
        {TOOL.format(0): '{"a":1}', TOOL.format(1): '{"b":2}'},
    ),
    Row(
        "tool calls without index",
        event(choice(0, tool_calls=tool(None, '{"a"', id="t0")))
        + event(choice(0, tool_calls=tool(None, ":1}")))
        + DONE,
        "assembled",
        {TOOL.format(0): '{"a":1}'},
    ),
    Row(
        "interleaved tool calls",
        b"".join(
            event(choice(0, tool_calls=tool(index, text))) for index, text in ((0, "{"), (1, "["), (0, "}"))
        )
        + DONE,
        "assembled",
        {TOOL.format(0): "{}", TOOL.format(1): "["},
    ),
    # How its lines end, and what stands between them.
    Row("CRLF", HI.replace(b"\n", b"\r\n"), "assembled", said("Hi there")),
    Row("CR", HI.replace(b"\n", b"\r"), "assembled", said("Hi there")),
    Row(
        "every line end",
        delta("Hi") + STOP.replace(b"\n", b"\r") + b"data: [DONE]\r\n\n",
        "assembled",
        said("Hi"),
    ),
    Row("comments", HI.replace(b"data", b": keepalive\n\n:\ndata"), "assembled", said("Hi there")),
    Row("a mark of UTF-8", BOM + HI, "assembled", said("Hi there")),
    Row("a mark of UTF-8 in the middle", delta("Hi") + BOM + STOP + STOP + DONE, "assembled", said("Hi")),
    Row(
        "data in several lines",
        HI.replace(b', "model"', b',\ndata:\ndata:  "model"'),
        "assembled",
        said("Hi there"),
    ),
    Row("id and retry", HI.replace(b"data: {", b"id: 7\nretry: 9\ndata: {"), "assembled", said("Hi there")),
    Row("ids alone", b"id: 7\n\n" + HI, "assembled", said("Hi there")),
    Row("names of events", HI.replace(b"data: {", b"event: chunk\ndata: {"), "assembled", said("Hi there")),
    Row("fields without colon", HI.replace(b"data: {", b"odd\ndata: {"), "assembled", said("Hi there")),
    # What is in an event.
    Row(
        "data without JSON", delta("Hi") + b"data: {oops\n\ndata:\n\n" + STOP + DONE, "assembled", said("Hi")
    ),
    *(
        Row(
            f"JSON that is {value}",
            delta("a") + f"data: {value}\n\n".encode() + delta("b") + DONE,
            "assembled",
            said("ab"),
        )
        for value in ("7", "1e400", "[1, [2]]", "null", '"text"', "true")
    ),
    Row(
        "choices that are no list",
        delta("a") + b'data: {"choices": {"0": 1}}\n\n' + DONE,
        "assembled",
        said("a"),
    ),
    Row("choices that are no objects", delta("a") + event(7, None, []) + DONE, "assembled", said("a")),
    Row(
        "a delta that is no object",
        delta("a") + event({"index": 0, "delta": "b"}) + DONE,
        "assembled",
        said("a"),
    ),
    Row(
        "content that is no text", content("a", 7, ["b"], {"c": 1}, None, "d") + DONE, "assembled", said("ad")
    ),
    Row(
        "an unknown event in the middle",
        delta("a")
        + b'event: ping\ndata: {"type": "ping", "n": 12345678901234567890123}\n\n'
        + delta("b")
        + DONE,
        "assembled",
        said("ab"),
    ),
    Row("a member twice", delta("a") + b'data: {"n": 1, "n": 2}\n\n' + DONE, "assembled", said("a")),
    Row("halves of a character", content("\ud83d", "\ude86") + DONE, "assembled", said("\U0001f686")),
    Row("half of a character", content("a\ud83d") + DONE, "assembled", said("a\ud83d")),
    Row(
        "line ends of Unicode",
        content("a\u2028", "b\u2029c\x85") + DONE,
        "assembled",
        said("a\u2028b\u2029c\x85"),
    ),
    Row(
        "deep nesting",
        delta("a") + b"data: " + b"[" * 9_000 + b"]" * 9_000 + b"\n\n" + DONE,
        "assembled",
        said("a"),
    ),
    # Bytes.
    Row(
        "characters beyond ASCII",
        content(EMOJI).decode().encode() + content(*EMOJI) + DONE,
        "assembled",
        said(EMOJI * 2),
    ),
    Row(
        "characters as UTF-8",
        b"".join(
            f'data: {{"choices":[{{"index":0,"delta":{{"content":"{each}"}}}}]}}\n\n'.encode()
            for each in EMOJI
        )
        + DONE,
        "assembled",
        said(EMOJI),
    ),
    Row("no UTF-8", delta("Hi") + b"data: caf\xe9\n\n" + STOP + DONE, "base64", said("Hi")),
    Row(
        "half a character in an event",
        delta("Hi") + b"data: \xf0\x9f\n\n" + STOP + DONE,
        "base64",
        said("Hi"),
    ),
    Row("no UTF-8 in a comment", b": caf\xe9\n\n" + HI, "assembled", said("Hi there")),
    Row("no UTF-8, and no end", delta("Hi") + b"data: caf\xe9\n\n", "truncated"),
    Row("gzip", HI, "assembled", said("Hi there"), encoding="gzip", pack=zip_up),
    Row("br", HI, "assembled", said("Hi there"), encoding="br", pack=brotli.compress),
    Row(
        "gzip without its last bytes",
        HI,
        "assembled",
        said("Hi there"),
        encoding="gzip",
        pack=lambda body: zip_up(body)[:-8],
    ),
    Row("gzip, torn", HI * 9, "truncated", encoding="gzip", pack=lambda body: zip_up(body)[:40]),
    # Content types lie.
    Row("SSE as JSON", HI, "assembled", said("Hi there"), content_type=JSON),
    Row("SSE without a type", HI, "assembled", said("Hi there"), content_type=None),
    Row("SSE as JSON, marked", BOM + HI, "assembled", said("Hi there"), content_type=JSON),
    Row("SSE as JSON, an error", b'error: {"code": 503}\n\n', "failed", content_type=JSON),
    Row("SSE as JSON, marked, an error", BOM + event(error=ERROR) + DONE, "failed", content_type=JSON),
    Row("JSON as SSE", b'{"choices": [{"index": 0}]}', "json", {"choices": [{"index": 0}]}),
    Row("JSON as SSE, marked", BOM + b'{"choices": []}', "json", {"choices": []}),
    Row("JSON as SSE, an error", b'{"error": {"code": 503}}', "failed"),
    Row("JSON as SSE, an error in a choice", b'{"choices": [{"error": {"code": 503}}]}', "failed"),
    Row("JSON as SSE, torn", b'{"choices": [{"index": 0}', "truncated"),
    Row("a page", b"<html>Welcome</html>", "failed", content_type="text/html"),
]

PLAIN = [PlainEvent("1"), PlainEvent("two\nlines", "tick", "7", (("retry", "9"),))]
TICKS = b"data: 1\n\nevent: tick\nid: 7\nretry: 9\ndata: two\ndata: lines\n\n"
OBJECTS = [PlainEvent('{"a":1}'), PlainEvent('{"a":2}')]

#: Of a format that no dialect knows.
OTHERS = [
    Row("a page", b"<html>Welcome</html>", "text", "<html>Welcome</html>", UNKNOWN, "text/html"),
    Row("events", TICKS, "verbatim", PLAIN, UNKNOWN),
    Row("[DONE], and more", TICKS + DONE + TICKS, "verbatim", [*PLAIN, PlainEvent("[DONE]")], UNKNOWN),
    Row(
        "a field without data",
        b"odd: 1\n\n" + TICKS,
        "verbatim",
        [PlainEvent("", extra=(("odd", "1"),)), *PLAIN],
        UNKNOWN,
    ),
    Row("no event", b": comment\n\n", "truncated", url=UNKNOWN),
    Row("torn in a line", TICKS + b"data: 3", "truncated", url=UNKNOWN),
    Row("torn between lines", TICKS + b"data: 3\n", "truncated", url=UNKNOWN),
    Row("torn in a comment", TICKS + b": keep", "verbatim", PLAIN, UNKNOWN),
    Row("no blank lines at all", b"data: 1\ndata: 2\n", "truncated", url=UNKNOWN),
    Row("an error as data", TICKS + event(error=ERROR), "failed", url=UNKNOWN),
    Row("an event error", TICKS + b"event: error\ndata: {}\n\n", "failed", url=UNKNOWN),
    Row("an error in a torn event", TICKS + b"error: no", "failed", url=UNKNOWN),
    Row("no UTF-8", b"data: \xff\n\n" + TICKS, "base64", [PlainEvent("\ufffd"), *PLAIN], UNKNOWN),
    Row("gzip", TICKS, "verbatim", PLAIN, UNKNOWN, encoding="gzip", pack=zip_up),
    Row(
        "gzip, torn",
        TICKS,
        "truncated",
        None,
        UNKNOWN,
        encoding="gzip",
        pack=lambda body: zip_up(body)[:-8],
    ),
    Row(
        "br, torn",
        TICKS,
        "truncated",
        None,
        UNKNOWN,
        encoding="br",
        pack=lambda body: brotli.compress(body + body)[:-1],
    ),
    Row("NDJSON with blank lines", b'{"a":1}\n\r\n \n\n{"a":2}\r\n\n', "verbatim", OBJECTS, UNKNOWN, NDJSON),
    Row("NDJSON without the last line end", b'{"a":1}\n{"a":2}', "verbatim", OBJECTS, UNKNOWN, NDJSON),
    Row("NDJSON with a torn last line", b'{"a":1}\n{"a":2', "truncated", None, UNKNOWN, NDJSON),
    Row("NDJSON with an error", b'{"a":1}\n{"error":{"code":503}}\n', "failed", None, UNKNOWN, NDJSON),
    Row(
        "NDJSON with a line that is no JSON",
        b'{"a":1}\noops\n',
        "verbatim",
        [OBJECTS[0], PlainEvent("oops")],
        UNKNOWN,
        NDJSON,
    ),
    Row(
        "NDJSON that is no UTF-8",
        b'{"a":1}\n"\xff"\n',
        "base64",
        [OBJECTS[0], PlainEvent('"\ufffd"')],
        UNKNOWN,
        NDJSON,
    ),
]

#: Events of more than a megabyte: a member that is no text, the whole text, and where nothing is known.
LARGE = [
    Row("a large member", delta("a") + event(choice(0, "b", image=LONG)) + DONE, "assembled", said("ab")),
    Row("a large text", delta(LONG) + STOP + DONE, "assembled", said(LONG)),
    Row("a large line", f"data: {LONG}\n\n".encode(), "verbatim", [PlainEvent(LONG)], UNKNOWN),
]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    body = chat(stream=True) if row.url == URL else {"stream": True}
    sent = row.pack(row.body)
    return exchange(path, sent, size, row.content_type, row.encoding, url=row.url, json=body, **options)


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read without the package, up to what ends it."""
    if row.kept == "json":
        return json.loads(body)
    if row.kept == "text":
        return body.decode()
    found, _ = read_lines(body) if row.content_type == NDJSON else read_sse(body)
    ends = [number for number, each in enumerate(found, 1) if each.data == "[DONE]"]
    found = found[: ends[0] if ends else None]
    return what_is_said(found) if row.url == URL else found


def check(row: Row, size: int, path: Path) -> None:
    """Record a row and replay it."""
    sent, stats = ask(row, path, size)
    assert row.pack(row.body) == sent
    if row.kept not in KINDS:
        assert ({row.kept: 1}, []) == (stats.unrecorded, lines(path))
        with pytest.raises(CassetteMiss):
            ask(row, path, None)
        return

    assert {} == stats.unrecorded
    (line,) = lines(path)
    assert row.kept == kind_of(line["response"])
    if row.kept == "base64":
        assert row.body == base64.b64decode(line["response"]["base64"])
    bare = row.body.removeprefix(BOM) if row.kept == "json" else row.body
    told = meaning(row, bare)
    is_chat = row.url == URL and row.kept not in ("json", "text")
    assert row.texts == (told.texts if is_chat else told)
    for options in REPLAYS:
        replayed, _ = ask(row, path, None, **options)
        assert told == meaning(row, replayed)


REPLAYS: tuple[dict[str, Any], ...] = ({}, {"chunk_size": 1}, {"chunk_size": 10**9, "wire_chunk_size": 3})


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize(
    "row", [*CHATS, *OTHERS], ids=lambda row: f"{'chat' if row.url == URL else 'unknown'}: {row.id}"
)
def test_a_bad_stream_is_stored_as_it_is_or_not_at_all(row: Row, size: int, tmp_path: Path) -> None:
    """However its bytes were cut, the same is stored, and the replay says what the server said."""
    check(row, size, tmp_path / "bad.jsonl")


@pytest.mark.parametrize("size", [60_001, 10**9], ids=["60 KB", "whole"])
@pytest.mark.parametrize("row", LARGE, ids=lambda row: row.id)
def test_a_large_event_is_stored_as_it_is(
    row: Row, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a megabyte in one event is no reason to lose it."""
    # A megabyte in pieces of one character costs seconds, and proves nothing that ten characters do not.
    monkeypatch.setitem(globals(), "REPLAYS", ({}, {"wire_chunk_size": 1000}))

    check(row, size, tmp_path / "bad.jsonl")
