"""Streams of Cohere's chats, of both versions, assembled and cut."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects import COHERE_V1
from httpx_cassette.dialects._framing import DONE, Event, dump_event_json
from httpx_cassette.dialects._reading import StreamTable
from httpx_cassette.dialects._script import assemble, cut
from httpx_cassette.dialects.cohere import STREAM, ChatProgress
from httpx_cassette.dialects.cohere_v1 import STREAM as LINES
from httpx_cassette.dialects.cohere_v1 import GenerationProgress

from ..stream_proof import (
    SIZES,
    WIRE_SIZES,
    Case,
    cases,
    check_any,
    check_assembled,
    check_cut,
    entry,
    parse,
    recorded,
    watched,
    with_corpus,
)


def said(kind: str, message: Json = None, index: int | None = None, **more: Json) -> dict[str, Json]:
    """Return one event of the second version."""
    named: dict[str, Json] = {} if index is None else {"index": index}
    delta: dict[str, Json] = {} if message is None else {"delta": {"message": message}}
    return {"type": kind, **named, **delta, **more}


def text(content: Json, index: int = 0, kind: str = "text", **more: Json) -> dict[str, Json]:
    return said("content-delta", {"content": {kind: content}}, index, **more)


def plan(words: str) -> dict[str, Json]:
    return said("tool-plan-delta", {"tool_plan": words})


def arguments(words: str, index: int = 0) -> dict[str, Json]:
    return said("tool-call-delta", {"tool_calls": {"function": {"arguments": words}}}, index)


def opened(index: int = 0, kind: str = "text", words: str = "") -> dict[str, Json]:
    return said("content-start", {"content": {"type": kind, kind: words}}, index)


def call(index: int = 0) -> dict[str, Json]:
    function: Json = {"name": "f", "arguments": ""}
    return said(
        "tool-call-start", {"tool_calls": {"id": "f_1", "type": "function", "function": function}}, index
    )


def cited(index: int = 0) -> dict[str, Json]:
    return said("citation-start", {"citations": {"start": 0, "end": 1, "text": "a"}}, index)


def ended(reason: Json = "COMPLETE", **more: Json) -> dict[str, Json]:
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": {"tokens": 1}, **more}}


def event(value: Any) -> Event:
    """Return an event as Cohere sends it, with its name."""
    if isinstance(value, str):
        return Event(value)
    kind = value.get("type") if isinstance(value, dict) else None
    return Event(dump_event_json(value), kind if isinstance(kind, str) else None)


START = said("message-start", {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": []}, id="m")
CLOSED = said("content-end", index=0)
LOGPROBS: dict[str, Json] = {"text": "a", "token_ids": [1], "logprobs": [-0.5]}

CASES = [
    Case(
        "text",
        [START, opened(), text("Hel"), text("lo"), CLOSED, ended(), DONE],
        [START, opened(), text("Hello"), CLOSED, ended(), DONE],
    ),
    Case(
        "a-plan-and-two-calls",
        [
            plan("I "),
            plan("look"),
            call(),
            arguments('{"a'),
            arguments('":1}'),
            call(1),
            arguments("{", 1),
            arguments("}", 1),
        ],
        [plan("I look"), call(), arguments('{"a":1}'), call(1), arguments("{}", 1)],
    ),
    Case(
        "thoughts-and-text",
        [
            opened(0, "thinking"),
            text("Hm", 0, "thinking"),
            text("!", 0, "thinking"),
            opened(1),
            text("a", 1),
            text("b", 1),
        ],
        [opened(0, "thinking"), text("Hm!", 0, "thinking"), opened(1), text("ab", 1)],
    ),
    Case(
        "a-citation-stays-where-it-was",
        [text("It "), text("rains"), cited(3), said("citation-end", index=3), text(" in "), text("Paris")],
        [text("It rains"), cited(3), said("citation-end", index=3), text(" in Paris")],
    ),
    Case(
        "contents-by-turns",
        [text("a"), text("x", 1), text("b"), text("y", 1)],
        [text("a"), text("x", 1), text("b"), text("y", 1)],
    ),
    Case(
        "log-probabilities-come-with-the-first-piece",
        [text("a", logprobs=LOGPROBS), text("a", logprobs=LOGPROBS)],
        [text("aa", logprobs={"text": "aa", "token_ids": [1, 1], "logprobs": [-0.5, -0.5]})],
    ),
    Case(
        "text-of-a-start-is-whole",
        [opened(0, "text", "Once "), text("upon")],
        [opened(0, "text", "Once "), text("upon")],
    ),
    Case("empty-deltas", [text(""), text("a"), text(""), text("b"), text("")], [text(""), text("ab")]),
    Case(
        "unknown",
        [
            text("a"),
            {"type": "new", "text": "x"},
            {"type": "debug", "prompt": "<BOS>"},
            [1],
            "oops",
            {},
            text("b"),
        ],
        [
            text("a"),
            {"type": "new", "text": "x"},
            {"type": "debug", "prompt": "<BOS>"},
            [1],
            "oops",
            {},
            text("b"),
        ],
    ),
    Case(
        "odd",
        [
            text("a"),
            text(None),
            text(7),
            said("content-delta", {"content": "x"}, 0),
            said("content-delta"),
            text("b"),
        ],
        [
            text("a"),
            text(None),
            text(7),
            said("content-delta", {"content": "x"}, 0),
            said("content-delta"),
            text("b"),
        ],
    ),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled(case: Case, size: int) -> None:
    """Texts are joined, all else stays as and where it was."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut(case: Case, size: int) -> None:
    """Every piece is an event of its kind."""
    check_cut(case, event, STREAM, size)


TEXTS = st.text(max_size=6) | st.sampled_from(["\u2028", "\ud83d", "\ude00", "👩\u200d👧", "\x85", '"', "\n"])
EVENTS = st.one_of(
    st.builds(text, TEXTS, st.integers(0, 1), st.sampled_from(["text", "thinking"])),
    st.builds(lambda words: text(words, logprobs={**LOGPROBS, "text": words}), TEXTS),
    st.builds(plan, TEXTS),
    st.builds(arguments, TEXTS, st.integers(0, 1)),
    st.builds(opened, st.integers(0, 1), st.just("text"), TEXTS),
    st.sampled_from([START, CLOSED, call(), cited(), ended(), {}, {"type": ["content-delta"]}]),
)


@given(st.lists(EVENTS, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(sent: list[Json], size: int) -> None:
    """Whatever comes in whatever order."""
    check_any([event(each) for each in sent], STREAM, size)


# -- the first version ---------------------------------------------------------------------------------


def line(kind: str, **more: Json) -> dict[str, Json]:
    """Return one event of the first version."""
    return {"is_finished": kind == "stream-end", "event_type": kind, **more}


def words(said: Json) -> dict[str, Json]:
    return line("text-generation", text=said)


def piece(**delta: Json) -> dict[str, Json]:
    return line("tool-calls-chunk", tool_call_delta=delta)


def whole(said: str, reason: str = "COMPLETE", **more: Json) -> dict[str, Json]:
    return line("stream-end", finish_reason=reason, response={"text": said, "meta": {}}, **more)


CALLS: Json = [{"name": "f", "parameters": {"a": 1}}]

OF_LINES = [
    Case(
        "text",
        [line("stream-start", generation_id="g"), words("Hel"), words("lo"), whole("Hello")],
        [line("stream-start", generation_id="g"), words("Hello"), whole("Hello")],
    ),
    Case(
        "calls",
        [
            line("tool-calls-chunk", text="I "),
            line("tool-calls-chunk", text="look"),
            piece(index=0, name="f"),
            piece(index=0, parameters='{"a'),
            piece(index=0, parameters='":1}'),
            piece(index=1, parameters="{"),
            piece(index=1, parameters="}"),
            line("tool-calls-generation", text="I look, a long text", tool_calls=CALLS),
            whole("", tool_calls=CALLS),
        ],
        [
            line("tool-calls-chunk", text="I look"),
            piece(index=0, name="f"),
            piece(index=0, parameters='{"a":1}'),
            piece(index=1, parameters="{}"),
            line("tool-calls-generation", text="I look, a long text", tool_calls=CALLS),
            whole("", tool_calls=CALLS),
        ],
    ),
    Case(
        "a-name-beside-parameters-comes-once",
        [piece(index=0, name="f", parameters="{ "), piece(index=0, parameters=" }")],
        [piece(index=0, name="f", parameters="{  }")],
    ),
    Case(
        "citations-between",
        [words("a"), words("b"), line("citation-generation", citations=[{"text": "ab"}]), words("c")],
        [words("ab"), line("citation-generation", citations=[{"text": "ab"}]), words("c")],
    ),
    Case(
        "odd",
        [words("a"), words(None), {"text": "x"}, [1], "oops", words("b")],
        [words("a"), words(None), {"text": "x"}, [1], "oops", words("b")],
    ),
]

EVENT_TABLE = COHERE_V1.stream_in("sse")
assert EVENT_TABLE is not None
TABLES = pytest.mark.parametrize("table", [LINES, EVENT_TABLE], ids=["lines", "events"])


def plain(value: Any) -> Event:
    return Event(value if isinstance(value, str) else dump_event_json(value))


@TABLES
@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(OF_LINES)
def test_a_stream_of_the_first_version_is_assembled(case: Case, table: StreamTable, size: int) -> None:
    """One document a line, or as events."""
    check_assembled(case, plain, table, size)


@TABLES
@pytest.mark.parametrize("size", SIZES)
@cases(OF_LINES)
def test_a_script_of_the_first_version_is_cut(case: Case, table: StreamTable, size: int) -> None:
    """What is said as a whole at the end is not cut."""
    check_cut(case, plain, table, size)


LINE_EVENTS = st.one_of(
    st.builds(words, TEXTS),
    st.builds(
        lambda said, name: piece(index=0, name=name, parameters=said), TEXTS, st.sampled_from(["f", "", None])
    ),
    st.builds(lambda said: piece(index=0, parameters=said), TEXTS),
    st.builds(lambda said: line("tool-calls-generation", text=said, tool_calls=CALLS), TEXTS),
    st.sampled_from([whole("a"), {}, line("citation-generation"), {"event_type": {}}]),
)


@given(st.lists(LINE_EVENTS, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_of_the_first_version_is_assembled_and_cut_without_loss(
    sent: list[Json], size: int
) -> None:
    """Whatever comes in whatever order."""
    check_any([plain(each) for each in sent], LINES, size)


def test_the_two_ways_of_dividing_it_are_one_table() -> None:
    """But for the framing and the noise."""
    assert EVENT_TABLE is not None
    assert LINES == replace(EVENT_TABLE, framing="ndjson", noise=LINES.noise)


# -- how far it has come -------------------------------------------------------------------------------


def watch(*values: Any) -> ChatProgress:
    progress = ChatProgress()
    progress.expect({"stream": True})
    return watched(progress, (each if isinstance(each, Event) else event(each) for each in values))


def watch_lines(*values: Any) -> GenerationProgress:
    progress = GenerationProgress()
    progress.expect({"stream": True})
    return watched(progress, (each if isinstance(each, Event) else plain(each) for each in values))


@pytest.mark.parametrize(
    ("events", "is_complete", "is_terminated", "finish"),
    [
        ([START, text("a"), ended(), DONE], True, True, "COMPLETE"),
        ([START, text("a"), ended("TOOL_CALL")], True, False, "TOOL_CALL"),
        ([START, text("a"), DONE], False, False, None),
        ([START, text("a")], False, False, None),
        ([{"type": "message-end"}, DONE], True, True, None),
        # What the data say counts, as for the SDK.
        ([Event("{}", "message-end")], False, False, None),
        ([Event(dump_event_json(ended()))], True, False, "COMPLETE"),
    ],
)
def test_the_end_of_a_message_completes_it(
    events: list[Any], is_complete: bool, is_terminated: bool, finish: Any
) -> None:
    """And the marker behind it ends the stream, where it comes."""
    progress = watch(*events)

    assert (is_complete, is_terminated, finish) == (
        progress.is_complete,
        progress.is_terminated,
        progress.finish,
    )
    assert not progress.awaits_more


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (ended("ERROR", error="an invalid tool generation"), "an invalid tool generation"),
        (ended("COMPLETE", error="overloaded"), "overloaded"),
        (ended("ERROR"), "ERROR"),
        (ended("TIMEOUT"), "TIMEOUT"),
        ({"error": {"message": "overloaded"}}, "overloaded"),
        ({"error": {"code": 1}}, "{'code': 1}"),
        ({"type": "error", "message": "x"}, '{"type":"error","message":"x"}'),
        (Event('{"message":"x"}', "error"), '{"message":"x"}'),
        (Event("overloaded", "error"), "overloaded"),
        (text("a"), None),
        (ended(), None),
        ({"type": "message-end", "delta": "x"}, None),
        ([1], None),
    ],
)
def test_an_error_inside_a_200_is_seen(sent: Any, error: str | None) -> None:
    """At the end of a message, or in the ways of gateways; the first one counts."""
    assert error == watch(sent).error
    assert "first" == watch({"error": "first"}, sent).error


@pytest.mark.parametrize(
    ("lines", "is_over", "finish", "error"),
    [
        ([words("a"), whole("a")], True, "COMPLETE", None),
        ([words("a"), whole("a", "MAX_TOKENS")], True, "MAX_TOKENS", None),
        # A refusal is an answer.
        ([whole("", "ERROR_TOXIC")], True, "ERROR_TOXIC", None),
        ([words("a")], False, None, None),
        ([words("a"), whole("a", "ERROR")], True, "ERROR", "ERROR"),
        ([whole("", "ERROR_LIMIT", error="too long")], True, "ERROR_LIMIT", "too long"),
        ([words("a"), {"error": {"message": "overloaded"}}], False, None, "overloaded"),
        ([words("a"), {"error": {"code": 1}}], False, None, "{'code': 1}"),
        ([Event('{"message":"x"}', "error")], False, None, '{"message":"x"}'),
        ([Event("overloaded", "error")], False, None, "overloaded"),
        ([{"error": "first"}, Event("overloaded", "error"), whole("", "ERROR")], True, "ERROR", "first"),
        ([Event(DONE), [1]], False, None, None),
    ],
)
def test_the_end_of_a_stream_has_the_whole_answer(
    lines: list[Any], is_over: bool, finish: Any, error: str | None
) -> None:
    """It is the end, and says why."""
    progress = watch_lines(*lines)

    assert (is_over, is_over, finish, error) == (
        progress.is_complete,
        progress.is_terminated,
        progress.finish,
        progress.error,
    )
    assert not progress.awaits_more


def test_what_each_piece_of_a_call_says() -> None:
    """The name once: clients put the pieces together."""
    sent = [plain(piece(index=0, name="f", parameters="abc"))]

    assert [
        entry(plain(piece(index=0, name="f", parameters="a"))),
        entry(plain(piece(index=0, parameters="b"))),
        entry(plain(piece(index=0, parameters="c"))),
    ] == [entry(each) for each in cut(assemble(sent, LINES), LINES, 1)]


@with_corpus
def test_recorded_streams_are_proved() -> None:
    """Of either version; one event is stored for every ten that a server sends."""
    received = kept = 0
    for exchange in recorded("cohere-chat.jsonl"):
        table = STREAM if "cohere-v2" in exchange["tags"] else LINES
        events = list(parse(exchange["response"]["body_text"].encode(), table))
        check_any(events, table, 7)
        received += len(events)
        kept += len(assemble(events, table))

    assert kept < received / 8
