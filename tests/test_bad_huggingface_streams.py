"""Streams of text generation as bad servers send them: stored so that a replay says the same, or not stored.

The caller gets every byte either way.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from httpx_cassette import CassetteMiss, CassetteTransport, CassetteWriteError

from .colours import lines, sse
from .served import KINDS, exchange, kind_of, zip_up

STREAM = "http://localhost:8080/generate_stream"
MODEL = "https://api-inference.huggingface.co/models/gpt2"
SSE, JSON = "text/event-stream", "application/json"
BOM = b"\xef\xbb\xbf"
KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes, before any content encoding.
        kept: How it is stored, or why it is not.
        said: The tokens and the whole text; for ``json`` the document.
        url: What is asked.
        content_type: The header.
        pack: Its content encoding, gzip if it is any.
    """

    id: str
    body: bytes
    kept: str
    said: Any = None
    url: str = STREAM
    content_type: str | None = SSE
    pack: Callable[[bytes], bytes] = bytes


def sent(*values: Any) -> bytes:
    """Return events as TGI sends them."""
    return b"".join(b"data:" + json.dumps(each, separators=(",", ":")).encode() + b"\n\n" for each in values)


def token(text: str, number: int = 7, **more: Any) -> dict[str, Any]:
    said = {"id": number, "text": text, "logprob": -0.5, "special": False}
    return {"index": 1, "token": said, "generated_text": None, "details": None, **more}


def last(text: str, whole: str) -> dict[str, Any]:
    details = {"finish_reason": "length", "generated_tokens": 2, "seed": None}
    return {**token(text), "generated_text": whole, "details": details}


HI = sent(token("Hi"), last(" there", "Hi there"))
SAID = {"tokens": [[7, "Hi"], [7, " there"]], "text": "Hi there"}
ERROR = {"error": "Request failed during generation: out of memory", "error_type": "generation"}

ROWS = [
    # How it ends.
    Row("no end", sent(token("Hi"), token(" there")), "truncated"),
    Row("torn in the last event", HI[:-9], "truncated"),
    # By the standard no event without its blank line is one.
    Row("without the last line end", HI[:-1], "truncated"),
    Row("without both", HI[:-2], "truncated"),
    Row("a marker behind the end", HI + b"data: [DONE]\n\n", "assembled", SAID),
    Row("a marker in place of the end", sent(token("Hi")) + b"data: [DONE]\n\n", "truncated"),
    Row("a token behind the end", HI + sent(token("!")), "assembled", SAID),
    Row("an error behind the end", HI + sent(ERROR), "assembled", SAID),
    Row("an end without details", sent({"token": {"id": 1, "text": "a"}, "generated_text": "a"}), "assembled",
        {"tokens": [[1, "a"]], "text": "a"}),
    Row("an end without a token", sent(token("a"), {"generated_text": "a"}), "assembled",
        {"tokens": [[7, "a"]], "text": "a"}),
    Row("empty", b"", "truncated"),
    Row("blank lines alone", b"\n\n", "truncated"),
    Row("keep-alives alone", b":\n\n:\n\n", "truncated"),
    # Errors inside a 200.
    Row("an error", sent(token("Hi"), ERROR), "failed"),
    Row("an error alone", sent(ERROR), "failed"),
    Row("an error in another format", sent(token("Hi"), {"error": {"code": 503}}), "failed"),
    Row("an error event", b"event: error\ndata: oops\n\n", "failed"),
    Row("an error in the end", sent(token("Hi"), {**last("", "Hi"), **ERROR}), "failed"),
    # What is in an event.
    Row("one token twice", sent(token("ha"), token("ha"), last("", "haha")), "assembled",
        {"tokens": [[7, "ha"], [7, "ha"], [7, ""]], "text": "haha"}),
    Row("a token of number 0", sent(token("!!", 0), last("", "!!")), "assembled",
        {"tokens": [[0, "!!"], [7, ""]], "text": "!!"}),
    Row("a token that is long", sent(last(" " * 99, " " * 99)), "assembled",
        {"tokens": [[7, " " * 99]], "text": " " * 99}),
    Row("members that are odd", sent(token("Hi"), {"token": []}, {"token": {"text": 7}}, 7, [ERROR],
        last(" there", "Hi there")), "assembled", SAID),
    Row("an event without JSON", sent(token("Hi")) + b"data:{oops\n\n" + sent(last(" there", "Hi there")),
        "assembled", SAID),
    Row("halves of a character", sent(token("\ud83d"), last("\ude86", "\U0001f686")), "assembled",
        {"tokens": [[7, "\ud83d"], [7, "\ude86"]], "text": "\U0001f686"}),
    Row("line ends of Unicode", sent(token("a\u2028"), last("\x85", "a\u2028\x85")), "assembled",
        {"tokens": [[7, "a\u2028"], [7, "\x85"]], "text": "a\u2028\x85"}),
    # How it is sent.
    Row("keep-alives", b":\n\n" + HI.replace(b"data:{", b":\n\ndata:{"), "assembled", SAID),
    Row("CRLF", HI.replace(b"\n", b"\r\n"), "assembled", SAID),
    Row("a mark of UTF-8", BOM + HI, "assembled", SAID),
    Row("gzip", HI, "assembled", SAID, pack=zip_up),
    Row("gzip cut short", HI, "truncated", pack=lambda body: zip_up(body)[:-60]),
    Row("no content type", HI, "assembled", SAID, content_type=None),
    Row("the content type of JSON", HI, "assembled", SAID, content_type=JSON),
    Row("of a model by name", HI, "assembled", SAID, MODEL),
    # Documents.
    Row("a document", json.dumps([{"generated_text": "Hi there"}]).encode(), "json",
        [{"generated_text": "Hi there"}], MODEL, JSON),
    Row("a document under the type of a stream", b'{"generated_text":"Hi there"}', "json",
        {"generated_text": "Hi there"}),
    Row("an error as a document", json.dumps(ERROR).encode(), "failed", None, MODEL, JSON),
    Row("a web page", b"<html>Sign in</html>", "failed", None, MODEL, "text/html"),
    Row("a drawing", b"\x89PNG\r\n\x1a\n\xff", "base64", None, MODEL, "image/png"),
]  # fmt: skip


def ask(row: Row, path: Path, size: int | None, **options: Any) -> tuple[bytes, Any]:
    """Make the call of a row, in chunks of a size or from the cassette; return body and stats."""
    is_stream = row.content_type not in (JSON, "text/html", "image/png") or row.body == HI
    body = {"inputs": "Hello?", "parameters": {}, "stream": is_stream}
    encoding = "" if row.pack is bytes else "gzip"
    return exchange(
        path, row.pack(row.body), size, row.content_type, encoding, url=row.url, json=body, **options
    )


def meaning(row: Row, body: bytes) -> Any:
    """Return what a body says, read without the package: its document, or tokens and the whole text."""
    if row.kept == "base64":
        return None if body == row.body else body
    if row.kept == "json":
        return json.loads(body)
    said: dict[str, Any] = {"tokens": []}
    for each in body.removeprefix(BOM).replace(b"\r\n", b"\n").split(b"\n"):
        try:
            value = json.loads(each.removeprefix(b"data:").decode(errors="replace"))
        except ValueError:
            continue
        one = value.get("token") if isinstance(value, dict) else None
        if isinstance(one, dict) and isinstance(one.get("text"), str):
            said["tokens"].append([one["id"], one["text"]])
        if isinstance(value, dict) and value.get("generated_text") is not None:
            return {**said, "text": value["generated_text"]}
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
    assert ("huggingface", row.kept) == (stored["dialect"], kind_of(stored["response"]))
    assert row.said == meaning(row, row.body)
    for options in REPLAYS:
        replayed, _ = ask(row, path, None, **options)
        assert row.said == meaning(row, replayed)


def test_a_stream_is_over_in_the_chunk_that_says_so(tmp_path: Path) -> None:
    """A client that has seen the end may go away without reading on: the recording is there."""
    path = tmp_path / "tokens.jsonl"
    upstream = httpx.MockTransport(lambda request: sse([HI, b":\n\n"]))
    transport = CassetteTransport(path, mode="record", next_transport=upstream)
    with httpx.Client(transport=transport) as client:
        with client.stream("POST", STREAM, json={"inputs": "Hello?"}) as response:
            next(response.iter_raw())

            assert 1 == len(lines(path))


def test_a_secret_in_tokens_is_not_stored(tmp_path: Path) -> None:
    """No token shows it, and none can be left out: the answer is the caller's alone."""
    pieces = [KEY[start : start + 5] for start in range(0, len(KEY), 5)]
    body = sent(*(token(piece, index=number) for number, piece in enumerate(pieces)), last("", KEY))

    with pytest.raises(CassetteWriteError, match="in pieces that were not joined") as refused:
        ask(Row("", body, "failed"), tmp_path / "secret.jsonl", 10**9)

    assert body == refused.value.content
    assert [] == lines(tmp_path / "secret.jsonl")


def test_a_secret_in_the_tokens_of_a_document_is_redacted(tmp_path: Path) -> None:
    """There they stand in a list, whose texts and numbers are replaced."""
    path = tmp_path / "secret.jsonl"
    pieces = [KEY[start : start + 5] for start in range(0, len(KEY), 5)]
    tokens = [{"id": 7, "text": piece, "logprob": -0.5, "special": False} for piece in pieces]
    answer = [{"generated_text": KEY, "details": {"finish_reason": "length", "tokens": tokens}}]
    ask(Row("", json.dumps(answer).encode(), "json", url=MODEL, content_type=JSON), path, 10**9)

    (stored,) = lines(path)
    (said,) = stored["response"]["json"]
    hidden = {"id": None, "text": "<redacted:token>", "logprob": -0.5, "special": False}
    assert [hidden] * len(pieces) == said["details"]["tokens"]
    assert said["generated_text"].startswith("<redacted:openai-key:")
