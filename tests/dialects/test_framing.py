"""How streamed bytes become events and are written again."""

from __future__ import annotations

import json
import time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects import _framing
from httpx_cassette.dialects._framing import (
    FRAMINGS,
    Event,
    EventParser,
    JsonArrayParser,
    NdjsonParser,
    SseParser,
    dump_event_json,
    load_event_json,
    render_ndjson,
    render_sse,
)

from ..keying import JSON


class Case(NamedTuple):
    """Bytes, and the events that they are."""

    id: str
    body: bytes
    events: list[Event]
    is_text: bool = True


SSE = [
    Case("one", b"data: a\n\n", [Event("a")]),
    Case("no-space", b"data:a\n\n", [Event("a")]),
    Case("two-spaces", b"data:  a\n\n", [Event(" a")]),
    Case("crlf", b"data: a\r\n\r\ndata: b\r\n\r\n", [Event("a"), Event("b")]),
    Case("cr", b"data: a\r\rdata: b\r\r", [Event("a"), Event("b")]),
    Case("mixed-ends", b"data: a\r\n\ndata: b\r\r\n", [Event("a"), Event("b")]),
    Case("bom", b"\xef\xbb\xbfdata: a\n\n", [Event("a")]),
    Case(
        "bom-once",
        "data: a\n\n\ufeffdata: b\n\n".encode(),
        [Event("a"), Event("", extra=(("\ufeffdata", "b"),))],
    ),
    Case("many-lines", b"data: a\ndata:\ndata: b\n\n", [Event("a\n\nb")]),
    Case("comments", b": OPENROUTER PROCESSING\n\n:\n\n:keepalive\ndata: a\n\n", [Event("a")]),
    Case("blank-lines", b"\n\n\ndata: a\n\n\n\n", [Event("a")]),
    Case("name", b"event: message_stop\ndata: {}\n\n", [Event("{}", "message_stop")]),
    Case("empty-name", b"event:\ndata: {}\n\n", [Event("{}")]),
    Case("name-of-nothing", b"event: ping\n\ndata: a\n\n", [Event("a")]),
    Case("id", b"id: 7\ndata: a\n\ndata: b\n\n", [Event("a", id="7"), Event("b")]),
    Case("retry", b"retry: 10\ndata: a\n\n", [Event("a", extra=(("retry", "10"),))]),
    Case("error-field", b'error: {"detail": 1}\n\n', [Event("", extra=(("error", '{"detail": 1}'),))]),
    Case("field-without-colon", b"data\n\nodd\n\n", [Event(""), Event("", extra=(("odd", ""),))]),
    Case("empty-data", b"data:\n\n", [Event("")]),
    Case("utf-8", "data: é漢👩\u200d👧\n\n".encode(), [Event("é漢👩\u200d👧")]),
    Case(
        "not-a-line-end",
        "data: a\u2028b\u2029c\x85d\x0be\x0cf\n\n".encode(),
        [Event("a\u2028b\u2029c\x85d\x0be\x0cf")],
    ),
    Case("cut-short", b"data: a\n\ndata: b\n", [Event("a")]),
    Case("cut-in-a-line", b"data: a\n\ndata: b", [Event("a")]),
    Case("done-without-blank-line", b"data: a\n\ndata: [DONE]", [Event("a"), Event("[DONE]")]),
    Case("done-with-one-line-end", b"data: [DONE]\n", [Event("[DONE]")]),
    Case("error-without-blank-line", b"error: no\n", [Event("", extra=(("error", "no"),))]),
    Case("empty", b"", []),
    Case("latin-1", b"data: caf\xe9\n\n", [Event("caf\ufffd")], is_text=False),
    Case("half-a-character", b"data: \xf0\x9f\n\n", [Event("\ufffd")], is_text=False),
]

NDJSON = [
    Case("lines", b'{"a":1}\n{"b":2}\n', [Event('{"a":1}'), Event('{"b":2}')]),
    Case("crlf", b"1\r\n2\r\n", [Event("1"), Event("2")]),
    Case("blank-lines", b"\n1\n\n \n2\n", [Event("1"), Event("2")]),
    Case("last-line-open", b"1\n2", [Event("1"), Event("2")]),
    Case("not-a-line-end", '"a\u2028b\x85c"\n'.encode(), [Event('"a\u2028b\x85c"')]),
    Case("empty", b"", []),
    Case("latin-1", b'"\xe9"\n', [Event('"\ufffd"')], is_text=False),
]

SIZES = [1, 3, 5, 10**9]


def parse(parser: EventParser, body: bytes, size: int) -> list[Event]:
    """Feed a body in chunks, an empty one between any two."""
    events: list[Event] = []
    for start in range(0, len(body), size):
        events += parser.feed(body[start : start + size])
        events += parser.feed(b"")
    return events + parser.flush()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", SSE, ids=lambda case: case.id)
def test_server_sent_events_are_read_however_they_are_cut(case: Case, size: int) -> None:
    """The events do not depend on where the chunks end."""
    parser = SseParser()

    assert parse(parser, case.body, size) == case.events
    assert parser.is_text is case.is_text


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", NDJSON, ids=lambda case: case.id)
def test_lines_are_read_however_they_are_cut(case: Case, size: int) -> None:
    """The lines do not depend on where the chunks end."""
    parser = NdjsonParser()

    assert parse(parser, case.body, size) == case.events
    assert parser.is_text is case.is_text


def test_an_event_is_returned_by_the_chunk_that_ends_it() -> None:
    """Many clients never read past the terminal marker, so it may not wait for more."""
    parser = SseParser()

    assert parser.feed(b"data: [DONE]\n") == []
    assert parser.feed(b"\n") == [Event("[DONE]")]


EVENTS = [
    Event("a"),
    Event(""),
    Event("a\nb"),
    Event("a\r\nb\rc"),
    Event(" a"),
    Event("{}", "ping"),
    Event("{}", "ping", "7", (("retry", "10"), ("odd", ""))),
    Event("a\nb", None, "7"),
    Event("", extra=(("error", "no"),)),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_an_event_is_written_as_it_is_read(event: Event) -> None:
    """Reading what was written gives the event; line ends within the data become one kind."""
    expected = event._replace(data=event.data.replace("\r\n", "\n").replace("\r", "\n"))

    assert SseParser().feed(render_sse(event)) == [expected]


def test_a_line_is_written_as_it_is_read() -> None:
    """NDJSON is its lines."""
    assert render_ndjson(Event('{"a":1}')) == b'{"a":1}\n'


@pytest.mark.parametrize("parser", [SseParser(), NdjsonParser()], ids=["sse", "ndjson"])
def test_a_long_line_costs_its_length(parser: EventParser) -> None:
    """Ten megabytes without a line end are read once, not once for each chunk."""
    started = time.process_time()
    events: list[Event] = []
    for _ in range(10_000):
        events += parser.feed(b"x" * 1024)
    events += parser.feed(b"\n\n")

    assert time.process_time() - started < 40
    assert len(events) <= 1


@pytest.mark.parametrize(
    ("parser", "body"),
    [
        (SseParser(), b"data: " + b"x" * 60),
        (SseParser(), b"data: xxxxx\n" * 6),
        (NdjsonParser(), b"x" * 60),
        (JsonArrayParser(), b'[{"a":"' + b"x" * 60),
    ],
    ids=["one-line", "many-lines", "ndjson", "json-array"],
)
def test_an_event_beyond_the_limit_stops_the_reading(
    parser: EventParser, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body without any end cannot fill the memory; the bytes themselves are then kept."""
    monkeypatch.setattr(_framing, "LIMIT", 50)

    assert parse(parser, body + b"\n\ndata: [DONE]\n\n", 10) == []
    assert parser.overflowed
    assert not parser.is_text


def test_small_events_never_reach_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for one event, not for the stream."""
    monkeypatch.setattr(_framing, "LIMIT", 50)

    assert parse(SseParser(), b"data: xxxxx\n\n" * 20, 7) == [Event("xxxxx")] * 20


class Array(NamedTuple):
    """The bytes of an array, the elements in it, and what is found about it."""

    id: str
    body: bytes
    elements: list[str]
    is_text: bool = True
    is_torn: bool = False


ARRAYS = [
    Array("one", b'[{"a": 1}]', ['{"a": 1}']),
    Array(
        "as-google-writes-it",
        b'[{\n  "a": 1\n}\n,\r\n{\n  "a": 2\n}\n]\n',
        ['{\n  "a": 1\n}', '{\n  "a": 2\n}'],
    ),
    Array("nothing", b" [ \n ] ", []),
    Array("nested", b'[{"a":[1,{"b":[]}]},[2,3],{}]', ['{"a":[1,{"b":[]}]}', "[2,3]", "{}"]),
    Array("marks-in-strings", b'[{"a":"],[{}\\\\\\"]"},"x,\\""]', ['{"a":"],[{}\\\\\\"]"}', '"x,\\""']),
    Array("plain-values", b'[1, null ,"a"]', ["1", "null", '"a"']),
    Array("bom", b"\xef\xbb\xbf[1]", ["1"]),
    Array("utf-8", '[{"a":"é\u2028漢"}]'.encode(), ['{"a":"é\u2028漢"}']),
    Array("behind-the-end", b"[1] [2], {", ["1"]),
    Array("no-json-within", b"[{oops},2]", ["{oops}", "2"]),
    Array("not-closed", b'[{"a":1},{"b', ['{"a":1}'], is_torn=True),
    Array("not-closed-behind-a-comma", b'[{"a":1},', ['{"a":1}'], is_torn=True),
    Array("not-closed-in-a-string", b'["a\\', [], is_torn=True),
    Array("not-begun", b" ", [], is_torn=True),
    Array("nothing-between-commas", b"[1,,2]", ["1", "2"], is_text=False),
    Array("nothing-behind-a-comma", b"[1,]", ["1"], is_text=False),
    Array("nothing-in-front-of-a-comma", b"[,1]", ["1"], is_text=False),
    Array("text-in-front", b"x[1]", ["1"], is_text=False),
    Array("an-object", b'{"a":1}', ['"a":1'], is_text=False),
    Array("closed-by-another-mark", b"[1}", ["1"], is_text=False),
    Array("closed-before-it-begins", b"]1", [], is_torn=True),
    Array("not-utf-8", b'["\xff"]', ['"\ufffd"'], is_text=False),
]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 10**9])
@pytest.mark.parametrize("case", ARRAYS, ids=lambda case: case.id)
def test_the_elements_of_an_array_are_events(case: Array, size: int) -> None:
    """However it arrives, and what is no array does not pass for one."""
    parser = JsonArrayParser()

    assert [Event(element) for element in case.elements] == parse(parser, case.body, size)
    assert (case.is_text, case.is_torn) == (parser.is_text, parser.is_torn)
    assert case.is_torn is parser.is_open


def test_an_element_is_there_as_soon_as_it_ends() -> None:
    """At the comma behind it, or at the end of the array, which is known at once."""
    parser = JsonArrayParser()

    assert [] == parser.feed(b'[{"a":1}')
    assert [Event('{"a":1}')] == parser.feed(b",")
    assert [] == parser.feed(b'{"b":2}')
    assert parser.is_open
    assert [Event('{"b":2}')] == parser.feed(b"]")
    assert parser.is_open is False


@given(st.lists(JSON, max_size=5), st.integers(1, 9), st.sampled_from([None, 2]), st.booleans())
def test_any_array_is_read_as_the_standard_library_reads_it(
    values: list[Json], size: int, indent: int | None, is_ascii: bool
) -> None:
    """Element by element, however it is written and wherever it is cut."""
    text = json.dumps(values, indent=indent, ensure_ascii=is_ascii)
    body = text.encode(errors="replace")
    parser = JsonArrayParser()

    read = [json.loads(event.data) for event in parse(parser, body, size)]

    assert json.loads(body) == read
    assert (True, False) == (parser.is_text, parser.is_open)


EVENTS = [Event('{"a":"]"}'), Event("{}"), Event("3")]


@pytest.mark.parametrize("count", range(4))
@pytest.mark.parametrize("name", FRAMINGS)
def test_what_a_framing_writes_it_reads(name: str, count: int) -> None:
    """The first chunk is there before the second event is."""
    framing = FRAMINGS[name]
    parser = framing.parser()
    chunks = [*framing.frame(map(framing.render, iter(EVENTS[:count])))]

    assert EVENTS[:count] == [*[event for chunk in chunks for event in parser.feed(chunk)], *parser.flush()]
    assert (True, False) == (parser.is_text, parser.is_torn)


def test_an_array_is_written_as_one_document() -> None:
    """An empty one too."""
    framing = FRAMINGS["json-array"]

    assert b'[{"a":"]"},\r\n{},\r\n3]' == b"".join(framing.frame(map(framing.render, iter(EVENTS))))
    assert b"[]" == b"".join(framing.frame(iter(())))


VALUES: list[tuple[str, Json, str]] = [
    ("compact", {"a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true]}'),
    ("as-utf-8", "é漢", '"é漢"'),
    ("line-ends", "a\x85b\u2028c\u2029d\x7f", '"a\\u0085b\\u2028c\\u2029d\\u007f"'),
    ("lone-surrogate", "é\ud800", '"\\u00e9\\ud800"'),
    ("beyond-64-bits", 2**70, "1180591620717411303424"),
]


@pytest.mark.parametrize(("value", "text"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_json_is_written_so_that_no_client_divides_it(value: Json, text: str) -> None:
    """No line end of ``str.splitlines`` is left, and reading gives the value."""
    written = dump_event_json(value)

    assert written == text
    assert len(written.splitlines()) == 1
    assert load_event_json(written) == value


def test_a_number_that_json_cannot_hold_is_refused() -> None:
    """An infinity is never written, whichever library writes."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_event_json([float("inf"), 2**70])


@pytest.mark.parametrize(
    "text",
    [
        "9223372036854775808",
        "18446744073709551616",
        "-12345678901234567890123",
        '{"a":[100000000000000000000001]}',
    ],
)
def test_every_digit_of_an_integer_is_kept(text: str) -> None:
    """Orjson would make a float of an integer beyond 64 bits."""
    assert dump_event_json(load_event_json(text)) == text


@pytest.mark.parametrize("offset", range(7))
def test_a_long_number_is_seen_wherever_it_stands(offset: int) -> None:
    """The quick look at every sixth character misses none."""
    text = f'["{"x" * offset}",10000000000000000001999]'

    assert load_event_json(text) == ["x" * offset, 10000000000000000001999]


def test_long_floats_and_lone_surrogates_are_read() -> None:
    """What orjson refuses or would round is left to the standard library."""
    assert load_event_json("0.12345678901234567890") == 0.12345678901234568
    assert load_event_json('"\\ud83d"') == "\ud83d"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[DONE]",
        "NaN",
        "[Infinity]",
        "1e400",
        "[1e400,12345678901234567890]",
        "{",
        "[" * 100_000 + "]" * 100_000,
    ],
    ids=lambda text: text[:30] or "empty",
)
def test_what_is_not_json_is_refused(text: str) -> None:
    """Such data are kept as text."""
    with pytest.raises(ValueError):  # noqa: PT011 - the message is of whichever library read it
        load_event_json(text)
