"""Streams of Anthropic's Messages API: blocks one after the other, assembled and cut again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import Redaction
from httpx_cassette._call import Json
from httpx_cassette._live_stream import LiveStream
from httpx_cassette.dialects import ANTHROPIC_MESSAGES
from httpx_cassette.dialects._framing import Event, dump_event_json, load_event_json
from httpx_cassette.dialects._script import cut, texts
from httpx_cassette.dialects.anthropic_messages import STREAM, MessageProgress

from ..stream_proof import (
    SIZES,
    WIRE_SIZES,
    Case,
    cases,
    check_any,
    check_assembled,
    check_cut,
    recorded,
    share_kept,
    watched,
    with_corpus,
    written,
)

SIGNATURE = "EqQBCkYIARgCKkAsigned+by/somebody=="


def opened(index: int = 0, kind: str = "text", **members: Json) -> dict[str, Json]:
    """Return the event that opens a block."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}}


def delta(index: int, kind: str, **members: Json) -> dict[str, Json]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def say(words: str, index: int = 0, **members: Json) -> dict[str, Json]:
    return delta(index, "text_delta", text=words, **members)


def think(words: str, index: int = 0, **members: Json) -> dict[str, Json]:
    return delta(index, "thinking_delta", thinking=words, **members)


def put(part: str, index: int = 0) -> dict[str, Json]:
    return delta(index, "input_json_delta", partial_json=part)


def closed(index: int = 0) -> dict[str, Json]:
    return {"type": "content_block_stop", "index": index}


def ended(reason: str | None = "end_turn", **usage: Json) -> dict[str, Json]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}


START: Json = {
    "type": "message_start",
    "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": None},
}
STOP: Json = {"type": "message_stop"}
PING: Json = {"type": "ping"}
TEXT_START = opened(text="")
CITED = delta(0, "citations_delta", citation={"type": "char_location", "cited_text": "x"})

CASES = [
    Case(
        "text",
        [START, TEXT_START, say("Hello"), say(", "), say("world"), closed(), ended(), STOP],
        [START, TEXT_START, say("Hello, world"), closed(), ended(), STOP],
    ),
    Case(
        "pings",
        [
            START,
            PING,
            TEXT_START,
            PING,
            say("Hel"),
            PING,
            PING,
            say("lo"),
            PING,
            closed(),
            PING,
            ended(),
            STOP,
        ],
        [START, TEXT_START, say("Hello"), closed(), ended(), STOP],
    ),
    Case("a-ping-with-more", [say("a"), {**PING, "n": 1}, say("b")], [say("a"), {**PING, "n": 1}, say("b")]),
    Case(
        "tool",
        [
            opened(1, "tool_use", id="toolu_1", name="f", input={}),
            *(put(part, 1) for part in ("", '{"x', '": 1', ".0}")),
            closed(1),
        ],
        [
            opened(1, "tool_use", id="toolu_1", name="f", input={}),
            put("", 1),
            put('{"x": 1.0}', 1),
            closed(1),
        ],
    ),
    Case(
        "interleaved-blocks",
        [put(text, index) for text in "abc" for index in (0, 1)],
        [put("abc"), put("abc", 1)],
    ),
    Case(
        "a-closed-block-is-not-continued",
        [say("a"), say("b"), closed(), say("c"), say("d")],
        [say("ab"), closed(), say("cd")],
    ),
    Case(
        "another-block-is-closed",
        [say("a"), put("{", 1), closed(1), say("b"), put("}", 1)],
        [say("ab"), put("{", 1), closed(1), put("}", 1)],
    ),
    Case(
        "thinking",
        [
            opened(kind="thinking", thinking="", signature=""),
            think("Let "),
            think("me"),
            delta(0, "signature_delta", signature=SIGNATURE),
            closed(),
        ],
        [
            opened(kind="thinking", thinking="", signature=""),
            think("Let me"),
            delta(0, "signature_delta", signature=SIGNATURE),
            closed(),
        ],
    ),
    Case(
        "tokens-that-clients-add-up",
        [think("", estimated_tokens=64), think("", estimated_tokens=64), think("a", estimated_tokens=None)],
        [think("", estimated_tokens=64), think("", estimated_tokens=64), think("a", estimated_tokens=None)],
    ),
    Case(
        "redacted-thinking",
        [opened(kind="redacted_thinking", data=SIGNATURE), closed()],
        [opened(kind="redacted_thinking", data=SIGNATURE), closed()],
    ),
    Case(
        "citations-stand-where-they-stood",
        [CITED, say("a"), say("b"), CITED, CITED, say("c"), say("d"), closed()],
        [CITED, say("ab"), CITED, CITED, say("cd"), closed()],
    ),
    Case(
        "a-compaction-is-one",
        [delta(0, "compaction_delta", content="a"), delta(0, "compaction_delta", content="b")],
        [delta(0, "compaction_delta", content="a"), delta(0, "compaction_delta", content="b")],
    ),
    Case(
        "text-elsewhere-is-no-delta",
        [{"type": "other", "index": 0, "delta": {"text": text}} for text in "ab"],
        [{"type": "other", "index": 0, "delta": {"text": text}} for text in "ab"],
    ),
    Case(
        "usage-twice",
        [say("a"), ended(None, output_tokens=1), say("b"), ended(output_tokens=2)],
        [say("a"), ended(None, output_tokens=1), say("b"), ended(output_tokens=2)],
    ),
    Case(
        "unknown-members",
        [say("a"), say("b"), say("c", new=1), say("d", new=1), say("e")],
        [say("ab"), say("cd", new=1), say("e")],
    ),
    Case(
        "unknown-deltas-and-events",
        [say("a"), delta(0, "new_delta", x=[1]), say("b"), {"type": "new"}, say("c")],
        [say("a"), delta(0, "new_delta", x=[1]), say("b"), {"type": "new"}, say("c")],
    ),
    Case("no-index", [{**say("a"), "index": None}] * 2, [{**say("aa"), "index": None}]),
    Case(
        "empty-deltas",
        [say(""), say("a"), say(""), say("b"), say("")],
        [say(""), say("ab")],
    ),
    Case(
        "hard-text",
        [say("a\u2028b\x85"), say("event: message_stop\n\n"), say("👩\u200d"), say("👧\ud800")],
        [say("a\u2028b\x85event: message_stop\n\n👩\u200d👧\ud800")],
    ),
]


def event(value: Json) -> Event:
    """Return an event that is named for its type, as the API names it."""
    assert isinstance(value, dict)
    return Event(dump_event_json(value), str(value.get("type")))


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled_however_it_arrives(case: Case, size: int) -> None:
    """The script does not depend on where the chunks of the wire end."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut_into_a_stream_that_assembles_to_it(case: Case, size: int) -> None:
    """Cut, written and read, it is the same script, and no piece is longer than asked for."""
    check_cut(case, event, STREAM, size)


def test_each_piece_is_an_event_of_its_own_with_its_name() -> None:
    """The SDK skips events without a name."""
    script: list[Json] = [{"event": "content_block_delta", "json": put('{"x":1}', 2)}]

    assert [event(put(part, 2)) for part in ('{"x', '":1', "}")] == list(cut(script, STREAM, 3))


def test_slots_are_named_by_their_block() -> None:
    """Several blocks have a text each."""
    events = [event(say("a", 2)), event(think("b")), event(put("{}", 1))]

    assert {
        "content_block_delta: delta.text (index 2)": "a",
        "content_block_delta: delta.thinking (index 0)": "b",
        "content_block_delta: delta.partial_json (index 1)": "{}",
    } == texts(events, STREAM)


# --- how far a stream has come ----------------------------------------------------------------------


def watch(*events: Event) -> MessageProgress:
    return watched(MessageProgress(), events)


def test_a_message_is_complete_with_its_reason_to_stop() -> None:
    """It may come in one of several events, and null takes nothing back."""
    assert not watch(event(START), event(TEXT_START), event(say("a")), event(closed())).is_complete
    assert not watch(event(ended(None))).is_complete
    assert watch(event(ended(None))).finish is None

    both = watch(event(ended("pause_turn")), event(ended(None)))

    assert (True, "pause_turn", False) == (both.is_complete, both.finish, both.is_terminated)
    assert "refusal" == watch(event(ended("end_turn")), event(ended("refusal"))).finish


def test_a_reason_in_the_first_event_finishes_nothing() -> None:
    """A stream that is cut behind it is cut."""
    begun: Json = {"type": "message_start", "message": {"stop_reason": "end_turn"}}

    assert not watch(event(begun)).is_complete


@pytest.mark.parametrize("name", ["message_stop", None])
def test_message_stop_is_the_end(name: str | None) -> None:
    """With its name, and on gateways that send none."""
    assert watch(Event('{"type": "message_stop"}', name)).is_terminated
    assert watch(Event(dump_event_json(ended()), "message_delta" if name else None)).is_complete


@pytest.mark.parametrize(
    "odd",
    [
        Event('{"type": "message_stop"}', "ping"),
        Event('{"type": "ping"}', "message_stop"),
        Event("{}", "message_stop"),
        Event("message_stop", "message_stop"),
        Event('["message_stop"]', "message_stop"),
        Event("[DONE]"),
        event(say("message_stop")),
        Event(dump_event_json(ended()), "message_start"),
        event({"type": "message_delta"}),
        event({"type": "message_delta", "delta": "end_turn"}),
    ],
)
def test_an_event_that_contradicts_itself_ends_nothing(odd: Event) -> None:
    """Some clients go by the name and some by the data: what follows is still read by one of them."""
    progress = watch(odd)

    assert (False, False, None) == (progress.is_terminated, progress.is_complete, progress.error)


ERROR: Json = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("failed", "error"),
    [
        (event(ERROR), "Overloaded"),
        (Event(json.dumps(ERROR)), "Overloaded"),
        (Event(json.dumps(ERROR), "ping"), "Overloaded"),
        (Event("overloaded", "error"), "overloaded"),
        (Event('{"type": "error"}'), '{"type": "error"}'),
        (Event('{"error": "overloaded"}'), "overloaded"),
        (Event('{"error": {"code": 503}}'), "{'code': 503}"),
        (Event("", extra=(("retry", "3"), ("error", "overloaded"))), "overloaded"),
        (Event('{"error": null}'), None),
        (event(STOP), None),
    ],
)
def test_an_error_inside_a_200_is_seen(failed: Event, error: str | None) -> None:
    """However it is announced, and the first one counts."""
    assert error == watch(failed, event(STOP)).error
    assert "first" == watch(Event('{"error": "first"}'), failed).error


# --- what is stored ---------------------------------------------------------------------------------

#: By the looks of it the id of an AWS key.
ACCIDENT = "AKIAQ3EGRSTUVWXYZ234"


def members(*events: Json) -> Any:
    """Return what is stored of a stream."""
    stream = LiveStream("sse", ANTHROPIC_MESSAGES)
    stream.feed(written(map(event, events), STREAM))
    made: Any = stream.members(b"", Redaction())
    return made


SEALED: list[Json] = [
    delta(0, "signature_delta", signature=ACCIDENT),
    opened(kind="thinking", thinking="", signature=ACCIDENT),
    opened(kind="redacted_thinking", data=ACCIDENT),
    opened(kind="compaction", encrypted_content=ACCIDENT),
    delta(0, "compaction_delta", content="a", encrypted_content=ACCIDENT),
    delta(0, "citations_delta", citation={"encrypted_index": ACCIDENT}),
    opened(citations=[{"encrypted_index": ACCIDENT}]),
    opened(kind="web_search_tool_result", content=[{"encrypted_content": ACCIDENT}]),
    opened(kind="code_execution_tool_result", content={"encrypted_stdout": ACCIDENT}),
    {"type": "message_start", "message": {"content": [{"type": "thinking", "signature": ACCIDENT}]}},
]


@pytest.mark.parametrize("sealed", SEALED, ids=lambda each: json.dumps(each)[9:60])
def test_what_is_signed_or_encrypted_survives_redaction(sealed: Json) -> None:
    """The next turn has to send it back to the byte; the same characters in a text are a key."""
    made = members(sealed, say(ACCIDENT[:9]), say(ACCIDENT[9:]), STOP)
    first, last, _ = made["script"]

    assert "assembled" == made["stored"]
    assert sealed == first["json"]
    assert last["json"]["delta"]["text"].startswith("<redacted:aws-key-id:")


def test_a_signature_of_somebody_else_is_redacted() -> None:
    """The name alone exempts nothing."""
    made = members(opened(kind="tool_use", input={"signature": ACCIDENT}), {"signature": ACCIDENT}, STOP)

    assert ACCIDENT not in json.dumps(made)


def test_what_comes_behind_the_end_is_not_stored() -> None:
    """Gateways append ``[DONE]``."""
    stream = LiveStream("sse", ANTHROPIC_MESSAGES)
    stream.feed(written(map(event, [START, ended(), STOP]), STREAM) + b"event: data\ndata: [DONE]\n\n")
    made: Any = stream.members(b"", Redaction())

    assert ["message_start", "message_delta", "message_stop"] == [each["event"] for each in made["script"]]


# --- any stream -------------------------------------------------------------------------------------

TEXT = st.text(max_size=6) | st.lists(
    st.sampled_from(
        [
            "\u2028",
            "\u2029",
            "\x85",
            "\ud83d",
            "\ude00",
            '"',
            "\\",
            ",",
            "\n",
            "\r\n",
            "👩\u200d👧",
            "e\u0301",
            "\x01",
            "\\u0001",
            "@0",
            "data: ",
            "}",
        ]
    ),
    max_size=5,
).map("".join)
INDEXES = st.sampled_from([0, 0, 0, 1, 2])
EVENTS: st.SearchStrategy[dict[str, Json]] = st.one_of(
    st.builds(say, TEXT, INDEXES),
    st.builds(think, TEXT, INDEXES),
    st.builds(put, TEXT, INDEXES),
    st.builds(lambda words, index: say(words, index, new=1), TEXT, INDEXES),
    st.builds(lambda words, index: delta(index, "signature_delta", signature=words), TEXT, INDEXES),
    st.builds(lambda words, index: delta(index, "citations_delta", citation={"x": words}), TEXT, INDEXES),
    st.builds(lambda one, two: delta(0, "odd", text=one, thinking=two), TEXT, TEXT),
    st.builds(opened, INDEXES),
    st.builds(closed, INDEXES),
    st.builds(ended, st.sampled_from([None, "end_turn"])),
    st.sampled_from([{"type": "ping"}, {"type": "ping", "n": 1}, {"type": "new", "delta": {"text": "a"}}]),
    st.sampled_from([{}, {"type": "content_block_delta", "delta": {"text": "a"}}, {"index": 0}]),
)
NAMES = st.sampled_from(["as it is", "as it is", "as it is", None, "other"])


@given(st.lists(st.tuples(EVENTS, NAMES), max_size=14), st.sampled_from([1, 2, 3, 7, 64, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(
    sent: list[tuple[dict[str, Json], str | None]], size: int
) -> None:
    """Cutting is the inverse of assembling, and no character is lost or moved within its slot."""
    events = [
        Event(dump_event_json(value), str(value.get("type")) if name == "as it is" else name)
        for value, name in sent
    ]

    again = check_any(events, STREAM, size)

    assert accumulate(events) == accumulate(again)


TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def accumulate(events: Sequence[Event]) -> list[Json]:
    """Return what a client makes of a stream: the texts, the last signatures, and what a citation follows."""
    said: dict[str, str] = {}
    signatures: dict[str, Json] = {}
    citations: list[Json] = []
    for each in events:
        value: Any = load_event_json(each.data)
        part: Any = value.get("delta") or {}
        kind, slot = part.get("type"), f"{value.get('index')} {part.get('type')}"
        if kind in TEXTS:
            joined = (said.get(slot, "") + part[TEXTS[kind]]).encode("utf-16", "surrogatepass")
            said[slot] = joined.decode("utf-16", "surrogatepass")
        elif kind == "signature_delta":
            signatures[slot] = part["signature"]
        elif kind == "citations_delta":
            citations.append([slot, part["citation"], said.get(f"{value['index']} text_delta", "")])
    return [dict(said), signatures, citations]


# --- recorded traffic -------------------------------------------------------------------------------


@with_corpus
def test_every_recorded_stream_is_proved() -> None:
    """What real servers sent is assembled, all of it, into less than half as many events."""
    assert 0 < share_kept(recorded("anthropic-messages.jsonl"), STREAM) < 0.4
