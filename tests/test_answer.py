"""What a recording is answered with: headers, bodies, streams cut anew, and what no answer can be made of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette._answer import Replayed, Served, check_answer, replay
from httpx_cassette._errors import CassetteDamaged
from httpx_cassette._line import Head
from httpx_cassette._recording import NewRecording, Recording
from httpx_cassette._settings import Settings, read_settings

from .colours import URL, tokens

KEY = bytes(32)
EVENTS = "text/event-stream"
STREAM: list[Any] = [
    {"json": {"choices": [{"index": 0, "delta": {"content": "Hello, world, how are you?"}}]}},
    {"json": {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}},
    {"text": "[DONE]"},
]


def recording(response: dict[str, Any], dialect: str = "openai-chat") -> Recording:
    """Return a sealed recording of a response."""
    new = NewRecording(
        KEY, 0, "2026-11-29T12:00:00Z", dialect, None, 812, response, {"method": "POST", "url": URL}
    )
    return Recording(new.line(0, 1), "chat.jsonl", 7, Head(KEY, 0, 0, 1))


def script(
    events: list[Any], framing: str = "sse", stored: str = "assembled", headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a stored stream."""
    kept = {"content-type": EVENTS} if headers is None else headers
    return {"status": 200, "headers": kept, "framing": framing, "stored": stored, "script": events}


def settings(path: Path, **options: Any) -> Settings:
    return read_settings(path / "chat.jsonl", options)


def answer(path: Path, response: dict[str, Any], dialect: str = "openai-chat", **options: Any) -> Replayed:
    """Return what a response is answered with."""
    return replay(recording(response, dialect), Served("replayed"), settings(path, **options))


def chunks(path: Path, response: dict[str, Any], dialect: str = "openai-chat", **options: Any) -> list[bytes]:
    """Return the chunks of a stream."""
    made = answer(path, response, dialect, **options)
    assert made.chunks is not None
    return list(made.chunks())


# --- whole bodies -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content"),
    [
        ({"json": {"a": [1, 2.5, None]}}, b'{"a":[1,2.5,null]}'),
        ({"json": None}, b"null"),
        ({"text": "Grüße\n"}, "Grüße\n".encode()),
        ({"text": ""}, b""),
        ({"base64": "AP+A"}, b"\x00\xff\x80"),
    ],
    ids=["json", "null", "text", "empty", "bytes"],
)
def test_a_whole_body_has_its_length(body: dict[str, Any], content: bytes, tmp_path: Path) -> None:
    """The length is that of the body as it is sent now; none is given for nothing, as in answer to a HEAD."""
    made = answer(
        tmp_path, {"status": 201, "headers": {"content-type": "text/x", "x-request-id": "r"}, **body}
    )

    assert (201, content, None) == (made.status, made.content, made.chunks)
    length = [(b"content-length", str(len(content)).encode())] if content else []
    assert [(b"content-type", b"text/x"), (b"x-request-id", b"r"), *length] == made.headers


def test_headers_of_the_connection_are_not_sent_again(tmp_path: Path) -> None:
    """What an import or a hand put there would break every client, or make an SDK wait for nothing."""
    headers = {
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
        "Content-Length": "7",
        "Transfer-Encoding": "chunked",
        "Connection": "close",
        "Retry-After": "7",
        "retry-after-ms": "7000",
        "x-ratelimit-reset-requests": "1s",
        "x-should-retry": "true",
        "x-note": "Grüße → all",
    }
    made = answer(tmp_path, {"status": 429, "headers": headers, "json": {}})

    assert [
        (b"Content-Type", b"application/json"),
        (b"x-note", "Grüße ? all".encode("latin-1")),
        (b"x-should-retry", b"false"),
        (b"content-length", b"2"),
    ] == made.headers


# --- streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7, 64, 10**9])
def test_a_stream_is_cut_anew(size: int, tmp_path: Path) -> None:
    """Each delta carries so many characters, and joined they are the text."""
    made = chunks(tmp_path, script(STREAM), chunk_size=size)
    text = STREAM[0]["json"]["choices"][0]["delta"]["content"]

    assert text == tokens(b"".join(made))
    assert b"data: [DONE]\n\n" == made[-1]
    assert -(-len(text) // size) + 2 == len(made)


@pytest.mark.parametrize("size", [1, 3, 5, 10**9])
def test_wire_chunks_have_one_size(size: int, tmp_path: Path) -> None:
    """The bytes are the same; all chunks but the last are as long as asked."""
    whole = b"".join(chunks(tmp_path, script(STREAM), chunk_size=7))
    made = chunks(tmp_path, script(STREAM), chunk_size=7, wire_chunk_size=size)

    assert whole == b"".join(made)
    assert {size} >= {len(chunk) for chunk in made[:-1]}
    assert 0 < len(made[-1]) <= size


def test_the_first_event_is_there_before_the_rest(tmp_path: Path) -> None:
    """Nothing is rendered before it is asked for."""
    made = answer(tmp_path, script(STREAM), chunk_size=5)
    assert made.chunks is not None
    rendered = made.chunks()

    assert b'"content":"Hello"' in next(rendered)
    assert b'"content":", wor"' in next(rendered)


def test_noise_adds_what_parsers_must_bear(tmp_path: Path) -> None:
    """Empty deltas, comments before, between and behind events, and CRLF; what is said is the same."""
    plain = chunks(tmp_path, script(STREAM), chunk_size=1)
    noisy = b"".join(chunks(tmp_path, script(STREAM), chunk_size=1, noise=True))
    empty = plain[0].replace(b'"H"', b'""')

    assert noisy.startswith(b": PROCESSING\r\n\r\ndata: ")
    assert 4 == noisy.count(b"\r\n\r\n: keepalive\r\ndata: ")
    assert noisy.count(b"\n") == noisy.count(b"\r\n")
    blocks = noisy.replace(b": keepalive\r\n", b"").split(b"\r\n\r\n")
    events = [block + b"\n\n" for block in blocks if block and block[:1] != b":"]
    assert plain == [event for event in events if event != empty]
    assert len(plain) + 7 == len(events)
    assert "Hello, world, how are you?" == tokens(noisy)
    small = chunks(tmp_path, script(STREAM), chunk_size=1, noise=True, wire_chunk_size=3)
    assert noisy == b"".join(small)


def test_noise_repeats_nothing_but_the_form(tmp_path: Path) -> None:
    """What is said once is said once: the role, a finish reason, a list, what is no text at all."""
    first = {
        "index": 0,
        "delta": {"role": "assistant", "content": "Hel"},
        "logprobs": {"content": [{"token": "H"}]},
    }
    last = {"index": 0, "delta": {"content": "lo"}, "finish_reason": "stop"}
    odd: list[Any] = [{"json": [1]}, {"text": "no JSON"}]
    events = [
        {"json": {"choices": []}},
        {"json": {"choices": [first]}},
        *odd,
        *odd,
        {"json": {"choices": [last]}},
    ]
    noisy = b"".join(chunks(tmp_path, script(events), noise=True, chunk_size=64))
    found = [json.loads(line[6:]) for line in noisy.split(b"\r\n") if line.startswith(b"data: {")]

    empty = {"index": 0, "delta": {"content": ""}, "logprobs": {"content": []}}
    assert [[], [first], [empty], [last]] == [event["choices"] for event in found]


def test_noise_is_that_of_the_format(tmp_path: Path) -> None:
    """Anthropic's servers send pings, not first and not last, and pad their data; nothing else."""
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello!"}}
    events: list[Any] = [
        {"event": "message_start", "json": {"type": "message_start"}},
        {"event": "content_block_delta", "json": delta},
        {"event": "message_stop", "json": {"type": "message_stop"}},
    ]
    plain = chunks(tmp_path, script(events), "anthropic-messages", chunk_size=1)
    noisy = chunks(tmp_path, script(events), "anthropic-messages", chunk_size=1, noise=True)
    verbatim = chunks(tmp_path, script(events, stored="verbatim"), "anthropic-messages", noise=True)
    pings = [number for number, chunk in enumerate(noisy) if chunk.startswith(b"event: ping\n")]

    assert [2] == pings
    assert b'event: ping\ndata: {"type":"ping"  }\n\n' == noisy[2]
    assert plain == [re.sub(b" *}\n", b"}\n", chunk) for chunk in noisy[:2] + noisy[3:]]
    assert [False, False, True, False] == [chunk.startswith(b"event: ping\n") for chunk in verbatim]


def test_ndjson_has_no_noise(tmp_path: Path) -> None:
    """Its readers take every line for JSON."""
    events = [{"json": {"a": 1}}, {"json": {"a": 2}}]
    stored = script(events, framing="ndjson", stored="verbatim")

    assert [b'{"a":1}\n', b'{"a":2}\n'] == chunks(tmp_path, stored, "generic", noise=True)


@pytest.mark.parametrize(
    ("stored", "dialect", "framing"),
    [
        ("verbatim", "openai-chat", "sse"),
        ("assembled", "generic", "sse"),
    ],
)
def test_what_no_table_cuts_is_sent_as_it_was_stored(
    stored: str, dialect: str, framing: str, tmp_path: Path
) -> None:
    """Event by event, with every field that it had."""
    events = [
        {"event": "x", "id": "1", "extra": [["retry", "9"]], "json": {"long": "x" * 40}},
        {"text": "two\nlines"},
    ]
    made = chunks(tmp_path, script(events, framing, stored), dialect)

    assert [
        b'event: x\nid: 1\nretry: 9\ndata: {"long":"' + b"x" * 40 + b'"}\n\n',
        b"data: two\ndata: lines\n\n",
    ] == made


def test_a_stream_of_a_dialect_that_nobody_registered_is_sent_as_it_was_stored(tmp_path: Path) -> None:
    """It is right for every client, and exercises none; which dialect is missing is told."""
    made = answer(tmp_path, script([{"json": {"text": "x" * 40}}]), "from-the-future", chunk_size=1)

    assert made.chunks is not None
    assert [b'data: {"text":"' + b"x" * 40 + b'"}\n\n'] == list(made.chunks())
    assert "from-the-future" == made.unknown


def test_what_needs_no_table_needs_no_dialect(tmp_path: Path) -> None:
    """A whole answer, and a stream that is stored event by event, are what they are in any dialect."""
    whole = answer(tmp_path, {"status": 200, "headers": {}, "json": {}}, "from-the-future")
    verbatim = answer(tmp_path, script([{"json": {}}], stored="verbatim"), "from-the-future")

    assert (b"{}", None, None) == (whole.content, whole.unknown, verbatim.unknown)
    assert verbatim.chunks is not None
    assert [b"data: {}\n\n"] == list(verbatim.chunks())


def test_a_script_of_another_framing_than_its_format_is_not_cut(tmp_path: Path) -> None:
    """The table says how an event of the other framing is written."""
    made = chunks(tmp_path, script(STREAM[:1], framing="ndjson"), chunk_size=1)

    assert [STREAM[0]["json"]] == [json.loads(line) for line in made]


# --- what no answer can be made of --------------------------------------------------------------------


@pytest.mark.parametrize(
    "response",
    [
        {"status": 200, "headers": {}},
        {"status": "fine", "headers": {}, "json": {}},
        {"status": 200, "headers": 7, "json": {}},
        {"status": 200, "headers": {"→": "x"}, "json": {}},
        {"status": 200, "headers": {}, "base64": "!"},
        {"status": 200, "headers": {}, "text": 7},
        {"status": 200, "headers": {}, "framing": "sse", "script": {}},
        {"status": 200, "headers": {}, "framing": "tcp", "script": []},
        script([7]),
        script(["json"]),
        script([["json"]]),
        script([{}]),
        script([{"text": 7}]),
        script([{"text": "x", "event": 7}]),
        script([{"text": "x", "id": []}]),
        script([{"text": "x", "extra": [["a"]]}]),
        script([{"text": "x", "extra": [["a", 7]]}]),
        script([{"text": "x", "extra": 7}]),
        script([{"text": "\ud800"}]),
        script([{"text": "x", "event": "\udfff"}]),
        script([{"json": {}, "extra": [["a", "\ud800"]]}]),
        # A binary message has one byte for the length of a name, and two for that of a value.
        script([{"json": {}, "event": "e" * 65_536}], framing="eventstream"),
        script([{"json": {}, "extra": [["n" * 256, ""]]}], framing="eventstream"),
        script([{"json": {}, "extra": [["n", "ü" * 32_768]]}], framing="eventstream", stored="verbatim"),
    ],
    ids=lambda response: json.dumps(response)[:120],
)
def test_a_sealed_line_without_an_answer_is_damaged(response: dict[str, Any], tmp_path: Path) -> None:
    """It is met before anything is sent, not when half of a stream is with the caller; a check meets it."""
    with pytest.raises(CassetteDamaged) as caught:
        answer(tmp_path, response)
    with pytest.raises(CassetteDamaged) as found:
        check_answer(recording(response))

    assert ("chat.jsonl", 7) == (caught.value.path, caught.value.line)
    assert str(caught.value) == str(found.value)
