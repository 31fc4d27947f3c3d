"""Streams as bad servers of Mistral's formats send them: stored so that a replay says the same, or not.

The caller gets every byte either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from httpx_cassette import CassetteMiss

from .colours import lines
from .plain_reader import read_sse
from .served import KINDS, exchange, kind_of, zip_up

HOST = "https://api.mistral.ai/v1"
CHAT, AGENTS, CONVERSATIONS = (
    f"{HOST}/{path}" for path in ("chat/completions", "agents/completions", "conversations")
)
SSE, JSON = "text/event-stream", "application/json"

HI = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}]
ASKED: dict[str, Any] = {
    CHAT: {"model": "m", "messages": HI, "stream": True},
    AGENTS: {"agent_id": "ag_1", "messages": HI, "stream": True},
    CONVERSATIONS: {"model": "m", "instructions": "Be brief.", "inputs": "Hello?", "stream": True},
}


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not.
        said: What it says, for a stream; for ``json`` the document.
        url: What is asked.
        content_type: The header.
        encoding: Its content encoding.
        pack: What encodes it.
    """

    id: str
    body: bytes
    kept: str
    said: Any = None
    url: str = CHAT
    content_type: str | None = SSE
    encoding: str = ""
    pack: Callable[[bytes], bytes] = bytes


# -- chunks --------------------------------------------------------------------------------------------


def chunk(delta: Any, finish: Any = None, index: Any = 0, **more: Any) -> dict[str, Any]:
    """Return a chunk as Mistral sends it."""
    named = {} if index is None else {"index": index}
    return {"id": "1", "choices": [{**named, "delta": delta, "finish_reason": finish}], **more}


def say(content: Any, finish: Any = None, index: Any = 0, **more: Any) -> dict[str, Any]:
    return chunk({"content": content}, finish, index, **more)


def call(ident: Any, arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": ident, "function": {"name": "f", "arguments": arguments}, **more}


def thinking(*texts: str, **more: Any) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text} for text in texts], **more}


def sent(*values: Any) -> bytes:
    """Return chunks as Mistral sends them."""
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in values)


DONE = b"data: [DONE]\n\n"
END = say("", "stop", usage={"total_tokens": 9}, p="ab")
HELLO = sent(say("Hi", p="abc"), say(" there", p="a"), END)
SAID = [("0 text", "Hi there")]
ERROR = {"object": "error", "message": "Service unavailable.", "code": "3505"}


def calls(*listed: Any, finish: Any = "tool_calls") -> bytes:
    return sent(say(""), chunk({"tool_calls": list(listed)}, finish)) + DONE


CHUNKS = [
    # How it ends.
    Row("no end", HELLO[:40], "truncated"),
    Row("no marker", HELLO, "assembled", SAID),
    Row("no marker and no reason", sent(say("Hi")), "truncated"),
    Row("no reason", sent(say("Hi")) + DONE, "assembled", [("0 text", "Hi")]),
    Row("torn in the marker", HELLO + b"data: [DO", "assembled", SAID),
    Row("one of two choices unfinished", sent(say("a"), say("b", "stop", 1)), "truncated"),
    Row("text behind the reason", HELLO + sent(say("!")) + DONE, "assembled", [("0 text", "Hi there!")]),
    # Errors inside a 200.
    Row("an error", sent(say("Hi"), ERROR) + DONE, "failed"),
    Row("an error that is an object", sent(say("Hi"), {"error": {"message": "no"}}) + DONE, "failed"),
    Row("an event error", sent(say("Hi")) + b"event: error\ndata: overloaded\n\n", "failed"),
    Row("an error as a document", json.dumps(ERROR).encode(), "failed", content_type=JSON),
    # Who speaks.
    Row(
        "choices by turns",
        sent(say("a"), say("x", index=1), say("b", "stop"), say("y", "stop", 1)) + DONE,
        "assembled",
        [("0 text", "ab"), ("1 text", "xy")],
    ),
    Row(
        "no index", sent(say("a", index=None), say("b", "stop", None)) + DONE, "assembled", [("0 text", "ab")]
    ),
    # Calls.
    Row("a call", calls(call("a", index=0)), "assembled", [("0 call", ["a", "{}"])]),
    Row("no index of a call", calls(call("a")), "assembled", [("0 call", ["a", "{}"])]),
    Row(
        "calls of one index",
        calls(call("a", index=0), call("b", '{"x":1}', index=0)),
        "assembled",
        [("0 call", ["a", "{}"]), ("0 call", ["b", '{"x":1}'])],
    ),
    Row(
        "calls of one index and one id",
        calls(call("null", index=0), call("null", index=0)),
        "assembled",
        [("0 call", ["null", "{}"])] * 2,
    ),
    Row(
        "one call twice",
        sent(chunk({"tool_calls": [call("a", index=0)]})) * 2 + sent(END) + DONE,
        "assembled",
        [("0 call", ["a", "{}"])] * 2,
    ),
    Row("no id of a call", calls(call(None, index=0)), "assembled", [("0 call", [None, "{}"])]),
    Row("no arguments", calls(call("a", None)), "assembled", [("0 call", ["a", None])]),
    Row(
        "arguments that are an object", calls(call("a", {"x": 1})), "assembled", [("0 call", ["a", {"x": 1}])]
    ),
    Row("no call in the list", calls(), "assembled", []),
    Row(
        "text in the chunk of a call",
        sent(say("I "), chunk({"content": "look.", "tool_calls": [call("a")]}, "tool_calls")) + DONE,
        "assembled",
        [("0 text", "I look."), ("0 call", ["a", "{}"])],
    ),
    # Lists of content.
    Row(
        "thoughts",
        sent(*[say([thinking(text, closed=True)], p="a") for text in ("So", " it", " is")], say("4"), END)
        + DONE,
        "assembled",
        [("0 thinking", "So it is"), ("0 text", "4")],
    ),
    Row(
        "several parts in a chunk",
        sent(say([thinking("a", "b"), {"type": "text", "text": "c"}]), say("d"), END) + DONE,
        "assembled",
        [("0 thinking", "ab"), ("0 text", "cd")],
    ),
    Row("an empty list", sent(say([]), say("a"), END) + DONE, "assembled", [("0 text", "a")]),
    Row("thoughts of nothing", sent(say([thinking()]), say("a"), END) + DONE, "assembled", [("0 text", "a")]),
    Row(
        "parts that are none", sent(say(["a", None, 1]), say("a"), END) + DONE, "assembled", [("0 text", "a")]
    ),
    Row(
        "thoughts that are a text",
        sent(say([{"type": "thinking", "thinking": "hm"}]), say("a"), END) + DONE,
        "assembled",
        [("0 text", "a")],
    ),
    Row(
        "halves of a character",
        sent(say([thinking("\ud83d")]), say([thinking("\ude00")]), say("\ud83d"), say("\ude00"), END) + DONE,
        "assembled",
        [("0 thinking", "\U0001f600"), ("0 text", "\U0001f600")],
    ),
    Row(
        "padding that is null",
        sent(say("a", p=None), say("b", "stop", p=None)) + DONE,
        "assembled",
        [("0 text", "ab")],
    ),
    Row("an agent", HELLO + DONE, "assembled", SAID, AGENTS),
    Row("gzip", HELLO + DONE, "assembled", SAID, AGENTS, encoding="gzip", pack=zip_up),
    Row(
        "gzip, torn",
        sent(say("Hi")),
        "truncated",
        None,
        AGENTS,
        encoding="gzip",
        pack=lambda body: zip_up(body)[:-8],
    ),
    Row("a document", b'{"choices":[]}', "json", {"choices": []}, AGENTS, JSON),
]

# -- conversations -------------------------------------------------------------------------------------


def event(kind: str, **members: Any) -> dict[str, Any]:
    return {"type": kind, **members}


def named(*values: Any) -> bytes:
    """Return events as Mistral sends them."""
    return b"".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in values)


def output(content: Any, ident: Any = "msg_1", index: Any = 0, **more: Any) -> dict[str, Any]:
    return event("message.output.delta", output_index=index, id=ident, content=content, **more)


def function(arguments: Any, ident: Any = "fc_1", index: Any = 1) -> dict[str, Any]:
    place = {"output_index": index, "id": ident, "name": "f", "tool_call_id": f"c{ident}"}
    return event("function.call.delta", **place, arguments=arguments)


STARTED = event("conversation.response.started", conversation_id="conv_1")
ENDED = event("conversation.response.done", usage={"total_tokens": 9})
FAILED = event("conversation.response.error", message="overloaded", code=3505)
TALK = named(STARTED, output("Hi"), output(" there"))
HEARD = [("msg_1 content", "Hi there")]

EVENTS = [
    Row("no end", TALK, "truncated"),
    Row("torn in the last event", TALK + named(ENDED)[:-30], "truncated"),
    Row("without the last blank line", TALK + named(ENDED)[:-1], "truncated"),
    Row("[DONE] and no end", TALK + DONE, "truncated"),
    Row("[DONE] behind the end", TALK + named(ENDED) + DONE, "assembled", HEARD),
    Row("text behind the end", TALK + named(ENDED, output("!")), "assembled", HEARD),
    Row("an end in name only", TALK + b"event: conversation.response.done\ndata: {}\n\n", "truncated"),
    Row("no names", sent(STARTED, output("Hi"), output(" there"), ENDED), "assembled", HEARD),
    Row("an error", TALK + named(FAILED), "failed"),
    Row("an error behind which the end comes", TALK + named(FAILED, ENDED), "failed"),
    Row("an error that is no JSON", TALK + b"event: error\ndata: overloaded\n\n", "failed"),
    Row("an error as a document", json.dumps(ERROR).encode(), "failed", content_type=JSON),
    Row("nothing but the end", named(ENDED), "assembled", []),
    Row(
        "calls by turns",
        named(function("a"), function("x", "fc_2", 2), function("b"), function("y", "fc_2", 2), ENDED),
        "assembled",
        [("fc_1 arguments", "ab"), ("fc_2 arguments", "xy")],
    ),
    Row(
        "no index",
        named(output("a", index=None), output("b", index=None), ENDED),
        "assembled",
        [("msg_1 content", "ab")],
    ),
    Row(
        "an id that is a list",
        named(output("a", [1]), output("b", [1]), ENDED),
        "assembled",
        [("[1] content", "ab")],
    ),
    Row(
        "content of every kind",
        named(
            output("a"),
            output({"type": "text", "text": "b"}),
            output(None),
            output(5),
            output([]),
            output("c"),
            ENDED,
        ),
        "assembled",
        [("msg_1 content", "ac")],
    ),
    Row(
        "times that differ",
        named(output("a", created_at="1"), output("b", created_at="2"), output("c"), output("d"), ENDED),
        "assembled",
        [("msg_1 content", "abcd")],
    ),
    Row(
        "an event that nobody knows",
        named(STARTED, event("odd", content="x"), output("a"), ENDED),
        "assembled",
        [("msg_1 content", "a")],
    ),
]

ROWS = [*CHUNKS, *(row._replace(url=CONVERSATIONS) for row in EVENTS)]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    body = row.pack(row.body)
    return exchange(
        path, body, size, row.content_type, row.encoding, url=row.url, json=ASKED[row.url], **options
    )


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read without the package, up to what ends it."""
    if row.kept == "json":
        return json.loads(body)
    said: list[tuple[str, Any]] = []
    texts: dict[str, list[str]] = {}
    for slot, what in _said(body):
        if slot.endswith("call"):
            said.append((slot, what))
        elif what:
            if slot not in texts:
                texts[slot] = []
                said.append((slot, texts[slot]))
            texts[slot].append(what)
    return [(slot, _whole(what) if not slot.endswith("call") else what) for slot, what in said]


def _whole(pieces: list[str]) -> str:
    # The halves of one character may come in two events.
    return "".join(pieces).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _said(body: bytes) -> Iterator[tuple[str, Any]]:
    for found in read_sse(body)[0]:
        if found.data == "[DONE]":
            return
        document = json.loads(found.data)
        for position, choice in enumerate(document.get("choices", ())):
            index = choice.get("index", position)
            yield from _of_choice(f"{index}", choice["delta"])
        for name in ("content", "arguments"):
            if document.get("type", "").endswith(".delta") and isinstance(document.get(name), str):
                yield f"{document['id']} {name}", document[name]
        if document.get("type") == ENDED["type"]:
            return


def _of_choice(index: str, delta: Any) -> Iterator[tuple[str, Any]]:
    content = delta.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content or ():
        if isinstance(part, dict) and isinstance(part.get("thinking"), list):
            for thought in part["thinking"]:
                yield f"{index} thinking", thought["text"]
        elif isinstance(part, dict) and "text" in part:
            yield f"{index} text", part["text"]
    for each in delta.get("tool_calls", ()):
        yield f"{index} call", [each["id"], each["function"]["arguments"]]


REPLAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chunk_size": 1},
    {"chunk_size": 3, "noise": True},
    {"chunk_size": 10**9, "wire_chunk_size": 3},
)


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.url.rpartition('/v1/')[2]}: {row.id}")
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
    assert row.said == meaning(row, row.body)
    for options in REPLAYS:
        replayed, _ = ask(row, path, None, **options)
        assert row.said == meaning(row, replayed)
