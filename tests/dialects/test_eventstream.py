"""AWS's binary messages: read with botocore, written without it, and what is wrong with bad ones."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import CassetteError
from httpx_cassette.dialects._eventstream import message_writer
from httpx_cassette.dialects._framing import Event, EventStreamParser, render_message

from ..aws_messages import USUAL, chunk, event, exception, message, read

USUAL_HEADERS = tuple(USUAL.items())
AS_TEXT = ((":content-type", "text/plain"), (":message-type", "event"))
HI = event("contentBlockDelta", {"delta": {"text": "Hi"}})

#: What arrives -> the events that it is.
GOOD = {
    "event": (HI, Event('{"delta":{"text":"Hi"},"p":"abc"}', "contentBlockDelta")),
    "characters": (event("e", {"é": "\u2028\x85"}, None), Event('{"é":"\u2028\x85"}', "e")),
    "no JSON": (message({":event-type": "e", **USUAL}, b"oops"), Event("oops", "e")),
    "no payload": (message({":event-type": "e", **USUAL}, b""), Event("", "e")),
    "other order": (message({**USUAL, ":event-type": "e"}, b"{}"), Event("{}", "e")),
    # The envelope.
    "chunk": (chunk({"a": "é"}), Event('{"a":"é"}', "chunk")),
    "chunk without padding": (chunk({"a": 1}, None), Event('{"a":1}', "chunk")),
    "chunk of text": (chunk("Sorry."), Event("Sorry.", "chunk")),
    "chunk of nothing": (chunk(""), Event("", "chunk")),
    # An envelope that could not be put together again stays closed, and says so.
    "chunk of bytes": (
        event("chunk", {"bytes": "/w=="}, None),
        Event('{"bytes":"/w=="}', "chunk", None, USUAL_HEADERS),
    ),
    "chunk in other base64": (
        event("chunk", {"bytes": "e30"}, None),
        Event('{"bytes":"e30"}', "chunk", None, USUAL_HEADERS),
    ),
    "chunk with loose bits": (
        event("chunk", {"bytes": "e31="}, None),
        Event('{"bytes":"e31="}', "chunk", None, USUAL_HEADERS),
    ),
    "chunk with more": (
        event("chunk", {"bytes": "e30=", "attribution": {}}, None),
        Event('{"bytes":"e30=","attribution":{}}', "chunk", None, USUAL_HEADERS),
    ),
    "chunk without bytes": (
        event("chunk", {"p": "e30="}, None),
        Event('{"p":"e30="}', "chunk", None, USUAL_HEADERS),
    ),
    "chunk with a number": (
        event("chunk", {"bytes": 7}, None),
        Event('{"bytes":7}', "chunk", None, USUAL_HEADERS),
    ),
    "chunk of no object": (event("chunk", [], None), Event("[]", "chunk", None, USUAL_HEADERS)),
    "chunk of no JSON": (
        message({":event-type": "chunk", **USUAL}, b"oops"),
        Event("oops", "chunk", None, USUAL_HEADERS),
    ),
    # Headers that are kept.
    "other content type": (
        message({":event-type": "e", ":content-type": "text/plain", ":message-type": "event"}, b"x"),
        Event("x", "e", None, AS_TEXT),
    ),
    "one more header": (
        message({":event-type": "e", **USUAL, "x": "1"}, b"{}"),
        Event("{}", "e", None, (*USUAL_HEADERS, ("x", "1"))),
    ),
    "no type": (message(USUAL, b"{}"), Event("{}", None, None, USUAL_HEADERS)),
    "no headers": (message({}, b"{}"), Event("{}")),
}


def parse(body: bytes, size: int = 10**9) -> tuple[list[Event], EventStreamParser]:
    parser = EventStreamParser()
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return [*[each for piece in pieces for each in parser.feed(piece)], *parser.flush()], parser


@pytest.mark.parametrize("size", [1, 3, 5, 10**9])
@pytest.mark.parametrize("name", GOOD)
def test_messages_are_events_wherever_they_are_cut(name: str, size: int) -> None:
    """Each message once, in its order, and nothing is wrong with it."""
    body, read_event = GOOD[name]

    events, parser = parse(body + HI + body, size)

    assert [read_event, GOOD["event"][1], read_event] == events
    assert (True, None, False, None) == (parser.is_text, parser.fault, parser.is_torn, parser.is_open)


@pytest.mark.parametrize("name", GOOD)
def test_what_is_written_says_what_was_received(name: str) -> None:
    """To botocore, and to us: the same headers and payload, but for padding and the order of headers."""
    body, read_event = GOOD[name]
    written = render_message(read_event)

    ((headers, payload),), ((other_headers, other_payload),) = read(body), read(written)
    assert headers == other_headers
    assert payload.replace(b',"p":"abc"', b"") == other_payload.replace(b',"p":"abc"', b"")
    assert [read_event] == parse(written)[0]


@given(
    st.lists(
        st.tuples(
            st.text(max_size=9),
            st.sampled_from(["chunk", "contentBlockDelta", "é"]),
            st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda name: name[0] != ":"), st.text()),
        ),
        max_size=4,
    ),
    st.integers(1, 40),
)
def test_any_event_comes_back(sent: list[tuple[str, str, dict[str, str]]], size: int) -> None:
    """Whatever it says, whatever headers it has, and wherever the bytes are cut."""
    events = [
        Event(data, kind, None, (*USUAL_HEADERS, *more.items()) if more else ()) for data, kind, more in sent
    ]
    body = b"".join(map(render_message, events))

    again, parser = parse(body, size)

    assert events == again
    assert (True, None) == (parser.is_text, parser.fault)
    assert len(read(body)) == len(events)


def test_messages_that_differ_in_their_data_are_written_by_one_writer() -> None:
    """As a text is cut: lengths and checksums are of each message."""
    write = message_writer("chunk", ())

    assert [b'{"bytes":"YQ=="}', b'{"bytes":""}', b'{"bytes":"YWJj"}'] == [
        payload for _, payload in read(b"".join(map(write, (b"a", b"", b"abc"))))
    ]


# -- bad ones ------------------------------------------------------------------------------------------


def prelude(length: int, of_headers: int) -> bytes:
    lengths = struct.pack("!II", length, of_headers)
    return lengths + struct.pack("!I", zlib.crc32(lengths))


def flipped(body: bytes, position: int) -> bytes:
    return body[:position] + bytes([body[position] ^ 1]) + body[position + 1 :]


UNREAD = "a message of the stream cannot be read: "

BAD = {
    "wrong length": (flipped(HI, 3), f"{UNREAD}ChecksumMismatch"),
    "wrong length of headers": (flipped(HI, 7), f"{UNREAD}ChecksumMismatch"),
    "wrong checksum of lengths": (flipped(HI, 8), f"{UNREAD}ChecksumMismatch"),
    "wrong header": (flipped(HI, 14), f"{UNREAD}ChecksumMismatch"),
    "wrong payload": (flipped(HI, len(HI) - 9), f"{UNREAD}ChecksumMismatch"),
    "wrong checksum": (flipped(HI, len(HI) - 1), f"{UNREAD}ChecksumMismatch"),
    "headers too long": (prelude(200_000, 131_073), f"{UNREAD}InvalidHeadersLength"),
    "payload too long": (prelude(25_165_841, 0), f"{UNREAD}InvalidPayloadLength"),
    "headers longer than the message": (prelude(40, 30) + bytes(28), f"{UNREAD}ValueError"),
    "shorter than nothing": (prelude(0, 0) + bytes(9), f"{UNREAD}error"),
    "header of an unknown type": (message(b"\x01a\x0a", b"{}"), f"{UNREAD}KeyError"),
    "header cut short": (message(b"\x09ab", b"{}"), f"{UNREAD}error"),
    "header twice": (message(b"\x01a\x00\x01a\x00", b"{}"), f"{UNREAD}DuplicateHeader"),
    "exception": (exception("throttlingException", "Slow down."), "the stream carried throttlingException"),
    "error": (
        message({":message-type": "error", ":error-code": "500", ":error-message": "no"}, b""),
        "the stream carried 500",
    ),
    "exception of bytes": (
        message({":message-type": "exception", ":exception-type": "x"}, b"\xff"),
        "the stream carried x",
    ),
    "exception without a name": (message({":message-type": "exception"}, b""), "the stream carried an error"),
}


@pytest.mark.parametrize("size", [1, 3, 5, 10**9])
@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_or_fails_ends_the_stream(name: str, size: int) -> None:
    """What stands before it is read, what stands behind it is not."""
    body, fault = BAD[name]

    events, parser = parse(HI + body + HI, size)

    assert fault == parser.fault
    assert GOOD["event"][1] == events[0]
    assert ("the stream carried" in fault) == (len(events) == 2)


BODY = b"".join(body for body, _ in GOOD.values())
EVENTS = [read_event for _, read_event in GOOD.values()]


@given(st.integers(0, len(BODY) - 1), st.integers(1, 255), st.integers(1, 200))
def test_any_damaged_byte_is_found(position: int, mask: int, size: int) -> None:
    """What comes before its message is read, nothing behind it, and nothing is raised."""
    damaged = BODY[:position] + bytes([BODY[position] ^ mask]) + BODY[position + 1 :]

    events, parser = parse(damaged, size)

    assert EVENTS[: len(events)] == events
    assert len(events) < len(EVENTS)
    assert (parser.fault or "").startswith(UNREAD)


@given(st.binary(max_size=200), st.integers(1, 40))
def test_bytes_that_are_no_messages_raise_nothing(body: bytes, size: int) -> None:
    """Whatever they are: they are torn, or cannot be read."""
    events, parser = parse(body, size)

    assert [] == events
    assert (body != b"") == (parser.is_torn or parser.fault is not None)


def test_an_exception_is_an_event_too() -> None:
    """It is kept with its headers, and would be sent again as it came."""
    body = exception("throttlingException", "Slow down.")
    (said,), _ = parse(body)

    assert '{"message":"Slow down."}' == said.data
    assert read(body) == read(render_message(said))


@pytest.mark.parametrize(
    "body",
    [
        message({":event-type": "e", **USUAL}, b"\xff"),
        message(b"\x0b:event-type\x07\x00\x01e\x01a\x00", b"{}"),
        message(b"\x01a\x04\x00\x00\x00\x07", b"{}"),
        message({":event-type": "e"}, b"{}"),
    ],
    ids=["no text", "true for a header", "number for a header", "type alone"],
)
def test_what_is_not_understood_is_said_not_to_be_text(body: bytes) -> None:
    """The bytes themselves are to be kept then; nothing is wrong with them."""
    _, parser = parse(HI + body + HI)

    assert (False, None, False) == (parser.is_text, parser.fault, parser.is_torn)


@pytest.mark.parametrize("length", range(1, len(HI)))
def test_a_body_that_ends_within_a_message_is_torn(length: int) -> None:
    """Wherever: the message is no event."""
    events, parser = parse(HI + HI[:length])

    assert [GOOD["event"][1]] == events
    assert (True, True, None) == (parser.is_torn, parser.is_open, parser.fault)


def test_a_body_is_read_in_time_that_grows_with_its_length() -> None:
    """In one chunk and byte by byte, and a large message in pieces: nothing is copied again and again."""
    many = HI * 20_000
    large = event("e", {"a": "x" * 5_000_000})

    assert 20_000 == len(parse(many)[0])
    assert 1 == len(parse(large, 512)[0])


# -- botocore ------------------------------------------------------------------------------------------


def test_without_botocore_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where messages are to be read."""
    monkeypatch.setitem(sys.modules, "botocore.eventstream", None)

    with pytest.raises(CassetteError) as raised:
        EventStreamParser()

    assert (
        "botocore, which reads AWS's binary streams, is not installed: pip install 'httpx_cassette[bedrock]'"
    ) == str(raised.value)


WITHOUT = """
import sys, json
import httpx, httpx_cassette
import httpx_cassette.dialects
from httpx_cassette.dialects._framing import Event, render_message
render_message(Event("{}", "chunk"))
print(json.dumps(sorted(name for name in sys.modules if name.startswith("botocore"))))
"""


def test_neither_the_import_nor_a_replay_needs_botocore() -> None:
    """It is imported when there is a message to read."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True, timeout=60
    )

    assert [] == json.loads(done.stdout)
