"""Streams as bad servers of Ollama's format send them: stored so that a replay says the same, or not stored.

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

from .colours import lines, sse
from .served import KINDS, exchange, kind_of, zip_up

CHAT, GENERATE = (f"http://localhost:11434/api/{name}" for name in ("chat", "generate"))
NDJSON, JSON, SSE = "application/x-ndjson", "application/json; charset=utf-8", "text/event-stream"
BOM = b"\xef\xbb\xbf"

ASK = {
    "model": "m",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
}
PROMPT = {"model": "m", "prompt": "Hello?", "system": "Be brief."}


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not.
        said: The joined texts by name, and every call; for ``json`` the document.
        url: What is asked.
        content_type: The header.
        pack: Its content encoding, gzip if it is any.
        asked: Further members of the request.
    """

    id: str
    body: bytes
    kept: str
    said: Any = None
    url: str = CHAT
    content_type: str | None = NDJSON
    pack: Callable[[bytes], bytes] = bytes
    asked: Any = {}  # noqa: RUF012  # never changed


def sent(*values: Any) -> bytes:
    """Return lines as Ollama sends them."""
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in values)


def line(content: Any, done: Any = False, **more: Any) -> dict[str, Any]:
    """Return one line of a chat; more stands beside the content."""
    counters = {"done_reason": "stop", "eval_count": 2} if done is True else {}
    message = {"role": "assistant", "content": content, **more}
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done, **counters}


def part(response: str, **more: Any) -> dict[str, Any]:
    """Return one line of the answer to a prompt."""
    return {"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": response, "done": False, **more}


CALL = {"function": {"name": "f", "arguments": {"x": 1}}}
END = line("", True)
HI = sent(line("Hi"), line(" there"), END)
SAID = {"content": "Hi there"}
ERROR = {"error": "model runner has unexpectedly stopped"}

ROWS = [
    # How it ends.
    Row("no end", sent(line("Hi"), line(" there")), "truncated"),
    Row("torn in the last line", HI[:-9], "truncated"),
    Row("without the last line end", HI[:-1], "assembled", SAID),
    Row("only the end", sent(END), "assembled", {"content": ""}),
    Row("an end without a reason", sent(line("Hi"), {"done": True}), "assembled", {"content": "Hi"}),
    Row("a reason without an end", sent(line("Hi"), {"done": False, "done_reason": "stop"}), "truncated"),
    Row("an end that is a text", sent(line("Hi"), line("", "true")), "truncated"),
    Row("text in the end", sent(line("Hi"), line(" there", True)), "assembled", SAID),
    Row("text behind the end", HI + sent(line("!")), "assembled", SAID),
    Row("an error behind the end", HI + sent(ERROR), "assembled", SAID),
    Row("two ends", HI + sent(END), "assembled", SAID),
    Row("empty", b"", "truncated"),
    Row("blank lines alone", b"\n\n", "truncated"),
    # Errors inside a 200.
    Row("an error", sent(line("Hi"), ERROR), "failed"),
    Row("an error alone", sent(ERROR), "failed"),
    Row("an error without its line end", sent(line("Hi"), ERROR)[:-1], "failed"),
    Row("an error in another format", sent(line("Hi"), {"error": {"code": 503}}), "failed"),
    Row("an error in the end", sent(line("Hi"), {**END, **ERROR}), "failed"),
    # What is in a line.
    Row(
        "text beside a call",
        sent(line("a long text", tool_calls=[CALL]), line("b"), END),
        "assembled",
        {"content": "a long textb", "calls": [CALL]},
    ),
    Row(
        "one call twice",
        sent(line("a", tool_calls=[CALL]), line("b", tool_calls=[CALL]), END),
        "assembled",
        {"content": "ab", "calls": [CALL, CALL]},
    ),
    Row(
        "thoughts beside text",
        sent(line("a", thinking="x"), line("", thinking="y"), line("b", thinking="z"), END),
        "assembled",
        {"content": "ab", "thinking": "xyz"},
    ),
    Row("no role", sent({"message": {"content": "Hi there"}}, END), "assembled", SAID),
    Row(
        "members that are odd",
        sent(line("Hi"), {"message": []}, {"message": {"content": 7}}, line(None), line(" there"), END),
        "assembled",
        SAID,
    ),
    Row(
        "lines that are odd", sent(line("Hi"), 7, None, [ERROR], "x", line(" there"), END), "assembled", SAID
    ),
    Row("a line without JSON", sent(line("Hi")) + b"{oops\n" + sent(line(" there"), END), "assembled", SAID),
    Row(
        "times that go back",
        sent(line("Hi"), {**line(" there"), "created_at": "2025"}, {**END, "created_at": 7}),
        "assembled",
        SAID,
    ),
    Row(
        "halves of a character",
        sent(line("\ud83d"), line("\ude86"), END),
        "assembled",
        {"content": "\U0001f686"},
    ),
    Row("half of a character", sent(line("a\ud83d"), END), "assembled", {"content": "a\ud83d"}),
    Row(
        "line ends of Unicode",
        sent(line("a\u2028"), line("\x85"), END),
        "assembled",
        {"content": "a\u2028\x85"},
    ),
    Row("no UTF-8", sent(line("Hi")) + b'{"x":"\xff"}\n' + sent(line(" there"), END), "base64", SAID),
    # Its bytes.
    Row("CRLF", HI.replace(b"\n", b"\r\n"), "assembled", SAID),
    Row("blank lines", HI.replace(b"\n", b"\n\n"), "assembled", SAID),
    Row("a mark of UTF-8", BOM + HI, "assembled", SAID),
    Row("gzip", HI, "assembled", SAID, pack=zip_up),
    Row("gzip, torn", HI * 9, "truncated", pack=lambda body: zip_up(body)[:40]),
    # Content types lie, and so do requests.
    Row("as JSON", HI, "assembled", SAID, content_type=JSON),
    Row("as SSE", HI, "assembled", SAID, content_type=SSE),
    Row("without a type", HI, "assembled", SAID, content_type=None),
    Row("lines for one document", HI, "assembled", SAID, asked={"stream": False}),
    Row("one document for lines", sent(line("Hi there", True)), "assembled", SAID, content_type=JSON),
    Row(
        "one document",
        sent(line("Hi", True)),
        "json",
        line("Hi", True),
        content_type=JSON,
        asked={"stream": False},
    ),
    Row("one document, an error", sent(ERROR), "failed", content_type=JSON, asked={"stream": False}),
    Row("one document, torn", HI[:30], "truncated", content_type=JSON, asked={"stream": False}),
    Row("a page", b"<html>Welcome</html>", "failed", content_type="text/html"),
    # A prompt.
    Row(
        "a prompt",
        sent(part("Hi"), part(" there"), part("", done=True, context=[1, 2])),
        "assembled",
        {"response": "Hi there", "context": [1, 2]},
        GENERATE,
    ),
    Row("a prompt without an end", sent(part("Hi"), part(" there")), "truncated", None, GENERATE),
    Row("a prompt and an error", sent(part("Hi"), ERROR), "failed", None, GENERATE),
]


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    body = {**(ASK if row.url == CHAT else PROMPT), **row.asked}
    encoding = "" if row.pack is bytes else "gzip"
    sent = row.pack(row.body)
    return exchange(path, sent, size, row.content_type, encoding, url=row.url, json=body, **options)


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read without the package: its document, or texts, calls and context."""
    if row.kept == "json":
        return json.loads(body)
    said: dict[str, Any] = {}
    for each in body.removeprefix(BOM).split(b"\n"):
        try:
            value = json.loads(each.decode(errors="replace"))
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        message = value.get("message", value)
        for name in ("content", "thinking", "response") if isinstance(message, dict) else ():
            if isinstance(message.get(name), str):
                joined = (said.get(name, "") + message[name]).encode("utf-16", "surrogatepass")
                said[name] = joined.decode("utf-16", "surrogatepass")
        if isinstance(message, dict) and message.get("tool_calls"):
            said["calls"] = said.get("calls", []) + message["tool_calls"]
        if "context" in value:
            said["context"] = value["context"]
        if value.get("done") is True:
            break
    return said


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


def test_a_stream_is_over_in_the_chunk_that_says_so(tmp_path: Path) -> None:
    """A client that has seen the end may go away without reading on: the recording is there."""
    path = tmp_path / "lines.jsonl"
    upstream = httpx.MockTransport(lambda request: sse([HI, b"\n"], NDJSON))
    transport = CassetteTransport(path, mode="record", next_transport=upstream)
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", CHAT, json=ASK) as response:
            next(response.iter_raw())

            assert 1 == len(lines(path))


def test_noise_is_empty_lines_of_text_and_nothing_else(tmp_path: Path) -> None:
    """Every line is JSON, with its time: clients take a comment or a blank line for a broken one."""
    row = Row("", HI, "assembled")
    ask(row, tmp_path / "a.jsonl", 10**9)

    replayed, _ = ask(row, tmp_path / "a.jsonl", None, chunk_size=1, noise=True)

    values = [json.loads(each) for each in replayed.splitlines()]
    assert len(values) > len("Hi there") + 1
    assert all(value["created_at"] for value in values)
    assert [False] * (len(values) - 1) + [True] == [value["done"] for value in values]
