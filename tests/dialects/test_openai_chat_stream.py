"""Streams of OpenAI's chat format: what real servers send, assembled and cut again."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects._framing import Event, dump_event_json, load_event_json
from httpx_cassette.dialects._script import cut, texts
from httpx_cassette.dialects.openai_chat import STREAM, ChatProgress

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
)


def chunk(delta: Json, finish: Json = None, index: int = 0, **more: Json) -> dict[str, Json]:
    """Return a chunk as OpenAI sends it; ``more`` goes into the choice."""
    choice: dict[str, Json] = {"index": index, "delta": delta, "finish_reason": finish, **more}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def say(text: str, finish: Json = None, index: int = 0, **more: Json) -> dict[str, Json]:
    return chunk({"content": text}, finish, index, **more)


def tool(arguments: str, index: int = 0, **more: Json) -> dict[str, Json]:
    return chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]})


def call(ident: str, name: str, arguments: str, index: int = 0) -> dict[str, Json]:
    function: Json = {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{"index": index, "id": ident, "type": "function", "function": function}]})


def detail(text: str, **more: Json) -> dict[str, Json]:
    part: Json = {"type": "reasoning.text", "text": text, "index": 0, **more}
    return chunk({"reasoning": text, "reasoning_details": [part]})


ROLE = chunk({"role": "assistant", "content": "", "refusal": None})
STOP = chunk({}, "stop")
USAGE: Json = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "choices": [],
    "usage": {"total_tokens": 9},
}

CASES = [
    Case(
        "text",
        [ROLE, say("Hello"), say(", "), say("world"), STOP, USAGE, None],
        [ROLE, say("Hello, world"), STOP, USAGE, None],
    ),
    Case(
        "padding",
        [
            {**ROLE, "obfuscation": "Q"},
            {**say("Hel"), "obfuscation": "aF"},
            {**say("lo"), "obfuscation": "x"},
        ],
        [ROLE, say("Hello")],
    ),
    Case(
        "refusal",
        [chunk({"refusal": "I "}), chunk({"refusal": "cannot"}), STOP],
        [chunk({"refusal": "I cannot"}), STOP],
    ),
    Case(
        "parallel-tools",
        [call("a", "f", ""), tool('{"x"'), call("b", "g", "", 1), tool(": 1}"), tool("{", 1), tool("}", 1)],
        [call("a", "f", ""), tool('{"x": 1}'), call("b", "g", "", 1), tool("{}", 1)],
    ),
    Case(
        "interleaved-tools",
        [tool(text, index) for text in "abc" for index in (0, 1)],
        [tool("abc"), tool("abc", 1)],
    ),
    Case(
        "whole-tool",
        [call("a", "f", '{"x": 1}'), call("b", "f", "{}", 1)],
        [call("a", "f", '{"x": 1}'), call("b", "f", "{}", 1)],
        has_whole=True,
    ),
    Case(
        "a-tool-that-goes-on",
        [call("a", "f", '{"x'), tool('": 1', type="function"), tool("}", type="function")],
        [call("a", "f", '{"x'), tool('": 1}', type="function")],
        has_whole=True,
    ),
    Case(
        "type-in-the-first-delta-only",
        [call("a", "f", '{"x'), tool('": 1'), tool("}")],
        [call("a", "f", '{"x'), tool('": 1}')],
        has_whole=True,
    ),
    Case(
        "two-tools-under-one-index",
        [call("a", "f", "{}"), call("b", "f", "{}"), call("c", "f", "{}")],
        [call("a", "f", "{}"), call("b", "f", "{}"), call("c", "f", "{}")],
        has_whole=True,
    ),
    Case(
        "two-tools-under-one-index-in-one-event",
        [chunk({"tool_calls": [{"index": 0, "function": {"arguments": "ab"}}] * 2}), tool("c")],
        [chunk({"tool_calls": [{"index": 0, "function": {"arguments": "ab"}}] * 2}), tool("c")],
        has_whole=True,
    ),
    Case(
        "tools-without-index",
        [chunk({"tool_calls": [{"function": {"arguments": "{}"}}]})] * 2,
        [chunk({"tool_calls": [{"function": {"arguments": "{}"}}]})] * 2,
        has_whole=True,
    ),
    Case(
        "null-arguments",
        [chunk({"tool_calls": [{"index": 0, "function": {"arguments": None}}]})],
        [chunk({"tool_calls": [{"index": 0, "function": {"arguments": None}}]})],
    ),
    Case(
        "null-id-and-name-in-every-delta",
        [tool(text, id=None, name=None) for text in ("{", "}")],
        [tool("{}", id=None, name=None)],
    ),
    Case(
        "legacy-function",
        [
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"arguments": "}"}}),
        ],
        [chunk({"function_call": {"name": "f", "arguments": "{}"}})],
    ),
    Case(
        "content-then-tool-then-content",
        [say("a"), say("b"), tool("{"), say("c"), tool("}")],
        [say("ab"), tool("{"), say("c"), tool("}")],
    ),
    Case(
        "choices-interleave",
        [say(text, index=index) for text in "abc" for index in (0, 1, 2)]
        + [chunk({}, "stop", 1), say("d"), say("d", index=1)],
        [say("abcd"), say("abc", index=1), say("abc", index=2), chunk({}, "stop", 1), say("d", index=1)],
    ),
    Case(
        "two-choices-in-one-event",
        [
            {
                "choices": [
                    *cast("list[Json]", say(one)["choices"]),
                    *cast("list[Json]", say(two, index=1)["choices"]),
                ]
            }
            for one, two in ("ax", "by", ("c", ""))
        ],
        [
            {
                "choices": [
                    *cast("list[Json]", say("abc")["choices"]),
                    *cast("list[Json]", say("xy", index=1)["choices"]),
                ]
            }
        ],
    ),
    Case(
        "the-finish-comes-with-the-last-piece",
        [say("ab"), say("cd", finish="stop"), say("", finish="stop")],
        [say("abcd", finish="stop"), say("", finish="stop")],
    ),
    Case(
        "role-in-every-delta",
        [chunk({"role": "assistant", "content": text}) for text in ("", "Hel", "lo", "")],
        [chunk({"role": "assistant", "content": text}) for text in ("", "Hello")],
    ),
    Case(
        "role-with-the-first-text",
        [chunk({"role": "assistant", "content": "Hel"}), say("lo")],
        [chunk({"role": "assistant", "content": "Hello"})],
    ),
    Case(
        "reasoning-then-content",
        [chunk({"content": None, "reasoning_content": text}) for text in "ab"]
        + [chunk({"content": text, "reasoning_content": None}) for text in "cd"],
        [
            chunk({"content": None, "reasoning_content": "ab"}),
            chunk({"content": "cd", "reasoning_content": None}),
        ],
    ),
    Case(
        "reasoning-details",
        [
            detail("ab", format="f"),
            detail("cd", format="f"),
            detail("ef", format="f"),
            detail("", signature="c2ln"),
        ],
        [detail("ab", format="f"), detail("cdef", format="f"), detail("", signature="c2ln")],
    ),
    Case(
        "logprobs",
        [say(text, logprobs={"content": [{"token": text}], "refusal": None}) for text in ("Hel", "lo")],
        [say("Hello", logprobs={"content": [{"token": "Hel"}, {"token": "lo"}], "refusal": None})],
    ),
    Case(
        "a-copy-of-the-text",
        [
            chunk({"content": text, "token_id": number}, text=text)
            for number, text in enumerate(("1", ", 2", ", 3"))
        ],
        [chunk({"content": "1, 2, 3", "token_id": 2}, text="1, 2, 3")],
    ),
    Case(
        "the-whole-answer-beside-each-delta",
        [
            {**say(text, message={"content": whole}), "usage": number}
            for number, (text, whole) in enumerate([("a", "a"), ("b", "ab"), ("c", "abc")])
        ],
        [{**say("abc", message={"content": "abc"}), "usage": 2}],
    ),
    Case(
        "a-new-id-begins-anew",
        [say("a"), say("b"), {**say("c"), "id": "other"}, {**say("d"), "id": "other"}],
        [say("ab"), {**say("cd"), "id": "other"}],
    ),
    Case(
        "hard-text",
        [say("a\u2028b\x85"), say("data: [DONE]\n\n"), say("👩\u200d"), say("👧\ud800"), None],
        [say("a\u2028b\x85data: [DONE]\n\n👩\u200d👧\ud800"), None],
    ),
    Case(
        "unknown-members",
        [chunk({"content": "ab", "odd": {"x": 1}}), say("cd"), {"odd": [1]}],
        [chunk({"content": "abcd", "odd": {"x": 1}}), {"odd": [1]}],
    ),
]


def as_event(value: Json) -> Event:
    """Return an event as it is sent; ``None`` is the marker at the end."""
    return Event("[DONE]" if value is None else dump_event_json(value))


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled_however_it_arrives(case: Case, size: int) -> None:
    """The script does not depend on where the chunks of the wire end."""
    check_assembled(case, as_event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut_into_a_stream_that_assembles_to_it(case: Case, size: int) -> None:
    """Cut, written and read, it is the same script, and no piece is longer than asked for."""
    check_cut(case, as_event, STREAM, size)


def test_what_stands_once_is_sent_once() -> None:
    """Clients concatenate ids and finish reasons; ``type`` they do not, and one needs it."""
    said = tool('{"x": 1}', id="call_1", type="function")
    cast("dict[str, Json]", cast("list[Json]", said["choices"])[0])["finish_reason"] = "tool_calls"

    events = [load_event_json(event.data) for event in cut([{"json": said}], STREAM, 3)]

    assert events == [
        tool('{"x', id="call_1", type="function"),
        tool('": ', type="function"),
        {
            **chunk(
                {"tool_calls": [{"index": 0, "type": "function", "function": {"arguments": "1}"}}]},
                "tool_calls",
            )
        },
    ]


def test_a_call_that_came_whole_is_sent_whole() -> None:
    """A server that names the tool beside all of its arguments may have clients that know no more."""
    whole = call("call_1", "f", '{"x": 1}')

    assert [whole] == [load_event_json(event.data) for event in cut([{"json": whole}], STREAM, 3)]


def test_slots_are_named_by_their_indexes() -> None:
    """The name says which choice and which tool, wherever they stand in their lists."""
    events = [Event(json.dumps(tool("{}", 3))), Event(json.dumps(say("a", index=2)))]

    assert texts(events, STREAM) == {
        "choices[0].delta.tool_calls[3].function.arguments": "{}",
        "choices[2].delta.content": "a",
    }


# --- how far a stream has come ----------------------------------------------------------------------


def watch(*events: Event) -> ChatProgress:
    return watched(ChatProgress(), events)


def sent(value: Json) -> Event:
    return Event(json.dumps(value))


def test_a_stream_is_complete_when_every_choice_has_finished() -> None:
    """One choice gives its reason, several give a list by index; a later chunk takes nothing back."""
    assert not watch().is_complete
    assert watch().finish is None
    assert not watch(sent(ROLE)).is_complete
    assert watch(sent(ROLE), sent(STOP), sent(ROLE)).is_complete
    assert watch(sent(STOP), sent(USAGE)).finish == "stop"

    both = watch(sent(say("a", index=1)), sent(STOP))

    assert not both.is_complete
    assert both.finish == ["stop", None]
    both.observe(Event(""), chunk({}, "length", 1))
    assert both.is_complete
    assert both.finish == ["stop", "length"]


def test_choices_without_index_are_told_apart_by_position() -> None:
    """Odd chunks are no reason to fail."""
    odd: Json = {"choices": [{"finish_reason": "stop"}, "odd", {"finish_reason": None}]}

    assert watch(sent(odd), sent({"choices": "odd"}), sent([]), Event(": odd")).finish == ["stop", None]


def test_only_the_marker_terminates() -> None:
    """The end is ``[DONE]``, not a text that says so."""
    assert not watch(sent(say("[DONE]")), sent(STOP)).is_terminated
    assert watch(Event("[DONE]")).is_terminated


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (sent({"error": {"message": "overloaded", "code": 500}}), "overloaded"),
        (sent({"error": {"code": 500}}), "{'code': 500}"),
        (sent({"error": "overloaded"}), "overloaded"),
        (sent({"error": None}), None),
        (Event("overloaded", "error"), "overloaded"),
        (sent({"error": {"message": "overloaded"}})._replace(event="error"), "overloaded"),
        (Event("", extra=(("retry", "3"), ("error", "overloaded"))), "overloaded"),
        (sent(STOP), None),
    ],
    ids=["object", "no-message", "text", "null", "name", "name-and-object", "field", "none"],
)
def test_an_error_inside_a_200_is_seen(event: Event, error: str | None) -> None:
    """However it is announced, and the first one counts."""
    assert watch(event, sent(STOP)).error == error
    assert watch(sent({"error": "first"}), event).error == "first"


# --- any stream -------------------------------------------------------------------------------------

TEXT = st.text(max_size=6) | st.lists(
    st.sampled_from(
        [
            "\u2028",
            "\x85",
            "\ud83d",
            "\ude00",
            '"',
            "\\",
            ",",
            ":",
            ":null,",
            "\n",
            "👩\u200d👧",
            "\x01",
            "\\u0001",
            "@0",
            "content",
        ]
    ),
    max_size=5,
).map("".join)
FINISH = st.sampled_from([None, None, None, "stop"])
ROLES: st.SearchStrategy[dict[str, Json]] = st.sampled_from([{}, {}, {"role": "assistant"}, {"role": None}])
DELTAS: st.SearchStrategy[dict[str, Json]] = st.one_of(
    TEXT.map(lambda text: {"content": text}),
    TEXT.map(lambda text: {"reasoning": text}),
    st.tuples(TEXT, TEXT).map(lambda pair: {"content": pair[0], "reasoning": pair[1]}),
    TEXT.map(
        lambda text: {"reasoning": text, "reasoning_details": [{"index": 0, "text": text, "format": "f"}]}
    ),
    st.tuples(st.integers(0, 1), TEXT, st.sampled_from([{}, {"id": "a"}, {"id": "b"}, {"id": ""}])).map(
        lambda call: {"tool_calls": [{"index": call[0], **call[2], "function": {"arguments": call[1]}}]}
    ),
    st.tuples(TEXT, TEXT).map(
        lambda pair: {"tool_calls": [{"index": 0, "function": {"arguments": text}} for text in pair]}
    ),
    st.just({}),
)
CHOICES: st.SearchStrategy[dict[str, Json]] = st.builds(
    lambda index, delta, role, finish, logprobs: {
        "index": index,
        "delta": {**role, **delta},
        "finish_reason": finish,
        "logprobs": {"content": logprobs},
    },
    st.integers(0, 1),
    DELTAS,
    ROLES,
    FINISH,
    st.sampled_from([None, None, [], [1], [2, 3]]),
)
CHUNKS: st.SearchStrategy[dict[str, Json]] = st.builds(
    lambda choices, more: {"choices": choices, **more},
    st.lists(CHOICES, max_size=2, unique_by=lambda choice: str(choice["index"]))
    | st.lists(CHOICES, min_size=1, max_size=1),
    st.sampled_from(
        [
            {},
            {},
            {"usage": None},
            {"usage": {"n": 1}},
            {"usage": {"n": 2}},
            {"obfuscation": "x"},
            {"created": 1},
        ]
    ),
)


def said(index: int, reasoning: str, finish: str | None, usage: Json) -> dict[str, Json]:
    delta: dict[str, Json] = {"reasoning": reasoning} if reasoning else {}
    choice: dict[str, Json] = {"index": index, "delta": delta, "finish_reason": finish}
    return {"choices": [choice], "usage": usage}


@given(st.lists(CHUNKS, max_size=12), st.sampled_from([1, 2, 3, 7, 64, 10**9]))
# A running value of the whole stream, sent between two pieces of one choice by the other.
@example([said(0, "a", None, None), said(1, "", None, {"n": 1}), said(0, "bc", "stop", {"n": 1})], 1)
def test_any_stream_is_assembled_and_cut_without_loss(chunks: list[dict[str, Json]], size: int) -> None:
    """Cutting is the inverse of assembling, and no character is lost or moved within its slot."""
    check_any([as_event(chunk) for chunk in chunks], STREAM, size)


# --- recorded traffic -------------------------------------------------------------------------------


def is_chat(exchange: Any) -> bool:
    return "format:responses" not in exchange["tags"]


@with_corpus
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("openai-chat.jsonl", 0.25),
        ("groq-chat.jsonl", 0.05),
        ("huggingface.jsonl", 0.6),
        ("openai-compatible-other.jsonl", 0.1),
    ],
)
def test_every_recorded_stream_is_proved(name: str, share: float) -> None:
    """What real servers sent is assembled, all of it, into a small part of as many events."""
    assert 0 < share_kept(recorded(name, is_chat), STREAM) < share
