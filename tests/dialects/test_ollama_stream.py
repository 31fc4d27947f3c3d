"""Streams of Ollama's own API: one document a line, assembled and cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects._framing import Event, dump_event_json
from httpx_cassette.dialects._script import assemble, cut
from httpx_cassette.dialects.ollama import STREAM, LinesProgress

from ..stream_proof import (
    SIZES,
    WIRE_SIZES,
    Case,
    cases,
    check_any,
    check_assembled,
    check_cut,
    parse,
    recorded,
    watched,
    with_corpus,
)

COUNTERS: dict[str, Json] = {"done_reason": "stop", "eval_count": 7, "prompt_eval_count": 9}


def line(message: Json, at: int = 0, done: Json = False, **more: Json) -> dict[str, Json]:
    """Return one line of a chat."""
    return {"model": "m", "created_at": f"2026-01-01T00:00:0{at}Z", "message": message, "done": done, **more}


def text(content: str, at: int = 0, **more: Json) -> dict[str, Json]:
    """Return one line with a text, and what else its message has."""
    return line({"role": "assistant", "content": content, **more}, at)


def part(response: str, at: int = 0, **more: Json) -> dict[str, Json]:
    """Return one line of the answer to a prompt."""
    return {
        "model": "m",
        "created_at": f"2026-01-01T00:00:0{at}Z",
        "response": response,
        "done": False,
        **more,
    }


def call(name: str) -> Json:
    return {"id": f"call_{name}", "function": {"name": name, "arguments": {"city": "Paris"}}}


def event(value: Any) -> Event:
    return Event(value if isinstance(value, str) else dump_event_json(value))


END = line({"role": "assistant", "content": ""}, 9, True, **COUNTERS)
LOGPROB: Json = {"token": "a", "logprob": -1.5}

CASES = [
    Case(
        "the-time-of-a-text-is-that-of-its-first-piece",
        [text("Hel", 1), text("lo", 2), text("!", 3), END],
        [text("Hello!", 1), END],
    ),
    Case(
        "thoughts-come-with-an-empty-content",
        [text("", 1, thinking="Hm"), text("", 2, thinking=", so"), text("Yes", 3), text(".", 4), END],
        [text("", 1, thinking="Hm, so"), text("Yes.", 3), END],
    ),
    Case(
        "thoughts-beside-a-text",
        [text("a", 1, thinking="x"), text("b", 2, thinking="y")],
        [text("ab", 1, thinking="xy")],
    ),
    Case(
        "calls-are-whole",
        [text("I", 1), text(" look", 2), text("", 3, tool_calls=[call("f"), call("g")]), text("!", 4), END],
        [text("I look", 1), text("", 3, tool_calls=[call("f"), call("g")]), text("!", 4), END],
    ),
    Case(
        "calls-of-two-lines",
        [text("", 1, tool_calls=[call("f")]), text("", 2, tool_calls=[call("g")]), END],
        [text("", 1, tool_calls=[call("f")]), text("", 2, tool_calls=[call("g")]), END],
    ),
    Case(
        "a-call-beside-a-text-comes-once",
        [text("a long text", 1, tool_calls=[call("f")]), text("another", 2), END],
        [text("a long text", 1, tool_calls=[call("f")]), text("another", 2), END],
    ),
    Case(
        "the-same-call-beside-two-texts-comes-twice",
        [text("one", 1, tool_calls=[call("f")]), text(" two", 2, tool_calls=[call("f")]), END],
        [text("one two", 1, tool_calls=[call("f"), call("f")]), END],
    ),
    Case(
        "what-is-done-is-neither-joined-nor-cut",
        [text("It is", 1), line({"role": "assistant", "content": " all over now"}, 2, True, **COUNTERS)],
        [text("It is", 1), line({"role": "assistant", "content": " all over now"}, 2, True, **COUNTERS)],
        has_whole=True,
    ),
    Case(
        "log-probabilities-come-with-the-first-piece",
        [{**text("a", 1), "logprobs": [LOGPROB]}, {**text("b", 2), "logprobs": [LOGPROB]}, END],
        [{**text("ab", 1), "logprobs": [LOGPROB, LOGPROB]}, END],
    ),
    Case(
        "empty-lines-are-kept",
        [text("", 1), text("a", 2), text("", 3), text("b", 4), text("", 5), END],
        [text("", 1), text("ab", 2), END],
    ),
    Case(
        "a-prompt",
        [part("Comp", 1), part("licated", 2), part("", 3, done=True, context=[1, 2, 3], **COUNTERS)],
        [part("Complicated", 1), part("", 3, done=True, context=[1, 2, 3], **COUNTERS)],
    ),
    Case(
        "a-prompt-with-thoughts",
        [part("", 1, thinking="Hm"), part("", 2, thinking="!"), part("a", 3), part("b", 4)],
        [part("", 1, thinking="Hm!"), part("ab", 3)],
    ),
    Case(
        "steps-of-an-image",
        [{"completed": 1, "total": 4, "done": False}, {"completed": 2, "total": 4, "done": False}],
        [{"completed": 1, "total": 4, "done": False}, {"completed": 2, "total": 4, "done": False}],
    ),
    Case(
        "another-member-starts-a-text-of-its-own",
        [text("a", 1), {**text("b", 2), "remote_model": "n"}, text("c", 3)],
        [text("a", 1), {**text("b", 2), "remote_model": "n"}, text("c", 3)],
    ),
    Case("a-time-now-and-then", [{"response": "a"}, part("b", 1)], [{"response": "a"}, part("b", 1)]),
    Case("no-done", [{"response": "a"}, {"response": "b"}], [{"response": "ab"}]),
    Case(
        "odd",
        [text("a"), line(None), line("x"), line([1]), {"message": {"content": 7}}, "[1]", "oops", text("b")],
        [text("a"), line(None), line("x"), line([1]), {"message": {"content": 7}}, "[1]", "oops", text("b")],
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
    """Every piece is a whole line; calls and lists come with the first, and the time with each."""
    check_cut(case, event, STREAM, size)


def test_what_each_piece_of_a_text_says() -> None:
    """The time in each, the calls in the first, and no counter before the end."""
    said = [text("abc", 1, tool_calls=[call("f")]), END]
    script = assemble(map(event, said), STREAM)

    assert [
        text("a", 1, tool_calls=[call("f")]),
        text("b", 1, tool_calls=[]),
        text("c", 1, tool_calls=[]),
        END,
    ] == [value for (value,) in map(_values, cut(script, STREAM, 1))]


def _values(sent: Event) -> list[Any]:
    return [each["json"] for each in assemble([sent], STREAM)]  # type: ignore[call-overload, index]  # JSON


TEXTS = st.text(max_size=6) | st.sampled_from(["\u2028", "\ud83d", "\ude00", "👩\u200d👧", "\x85", '"', "\n"])
LINES = st.one_of(
    st.builds(text, TEXTS, st.integers(0, 9)),
    st.builds(lambda words, at: text("", at, thinking=words), TEXTS, st.integers(0, 9)),
    st.builds(lambda words, name: text(words, tool_calls=[call(name)]), TEXTS, st.sampled_from("fg")),
    st.builds(part, TEXTS, st.integers(0, 9)),
    st.builds(lambda words: line({"content": words}, 1, True, **COUNTERS), TEXTS),
    st.sampled_from([END, {}, {"created_at": 7}, {"created_at": None, "response": "a"}, line([])]),
)


@given(st.lists(LINES, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(sent: list[Json], size: int) -> None:
    """Whatever comes in whatever order."""
    check_any([event(each) for each in sent], STREAM, size)


# -- how far it has come -------------------------------------------------------------------------------


def watch(*values: Any) -> LinesProgress:
    progress = LinesProgress()
    progress.expect({"stream": True})
    return watched(progress, map(event, values))


@pytest.mark.parametrize(
    ("lines", "is_over", "finish"),
    [
        ([text("a"), END], True, "stop"),
        ([text("a")], False, None),
        ([line({}, done=True)], True, None),
        ([line({}, done=True, done_reason="load")], True, "load"),
        ([line({}, done="true")], False, None),
        ([line({}, done=1)], False, None),
        ([line({}, done_reason="stop")], False, None),
        (["[true]", "oops"], False, None),
    ],
)
def test_the_line_that_is_done_ends_a_stream(lines: list[Any], is_over: bool, finish: Any) -> None:
    """And nothing else does; older servers give no reason."""
    progress = watch(*lines)

    assert (is_over, is_over, finish) == (progress.is_terminated, progress.is_complete, progress.finish)
    assert not progress.awaits_more


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"error": "overloaded"}, "overloaded"),
        ({"error": {"message": "overloaded"}}, "overloaded"),
        ({"error": {"code": 1}}, "{'code': 1}"),
        ({"error": ["x"]}, "['x']"),
        ({"error": ""}, None),
        ({"error": None}, None),
        (END, None),
        (["error"], None),
    ],
)
def test_an_error_in_a_line_is_seen(value: Any, error: str | None) -> None:
    """The status was 200 before; the first one counts."""
    assert error == watch(text("a"), value).error
    assert "first" == watch({"error": "first"}, value).error


@with_corpus
def test_recorded_streams_are_proved() -> None:
    """One event is stored for every hundred lines that a server sends."""
    received = kept = 0
    for exchange in recorded("ollama-chat.jsonl"):
        events = list(parse(exchange["response"]["body_text"].encode(), STREAM))
        check_any(events, STREAM, 7)
        received += len(events)
        kept += len(assemble(events, STREAM))

    assert kept < received / 50
