"""Streams of Bedrock: assembled and cut, and how far they have come; botocore reads what is sent again."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects import ANTHROPIC_MESSAGES, BEDROCK, recognise
from httpx_cassette.dialects._framing import Event, dump_event_json
from httpx_cassette.dialects._reading import StreamProgress, StreamTable
from httpx_cassette.dialects._script import assemble, cut_bytes
from httpx_cassette.dialects.anthropic_messages import BEDROCK_STREAM, ChunkProgress
from httpx_cassette.dialects.bedrock import STREAM, ConverseProgress

from ..aws_messages import read
from ..stream_proof import (
    CORPUS,
    SIZES,
    WIRE_SIZES,
    Case,
    cases,
    check_any,
    check_assembled,
    check_cut,
    parse,
    watched,
    with_corpus,
)


def event(value: Any) -> Event:
    """Return an event of a pair of type and members; of members alone it is a piece of a model's own."""
    kind, members = value if isinstance(value, tuple) else ("chunk", value)
    return Event(members if isinstance(members, str) else dump_event_json(members), kind)


def delta(index: int, **members: Json) -> tuple[str, Json]:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": members}


def text(index: int, said: str) -> tuple[str, Json]:
    return delta(index, text=said)


def thought(index: int, said: str) -> tuple[str, Json]:
    return delta(index, reasoningContent={"text": said})


def arguments(index: int, said: str) -> tuple[str, Json]:
    return delta(index, toolUse={"input": said})


def opened(index: int, name: str) -> tuple[str, Json]:
    use: Json = {"toolUse": {"toolUseId": f"tooluse_{name}", "name": name}}
    return "contentBlockStart", {"contentBlockIndex": index, "start": use}


def closed(index: int) -> tuple[str, Json]:
    return "contentBlockStop", {"contentBlockIndex": index}


def padded(said: tuple[str, Any], padding: Json = "abc") -> tuple[str, Json]:
    return said[0], {**said[1], "p": padding}


def own(said: tuple[str, Json]) -> Json:
    """Return an event in Nova's own format."""
    return {said[0]: said[1]}


BEGIN: tuple[str, Json] = ("messageStart", {"role": "assistant"})
STOP: tuple[str, Json] = ("messageStop", {"stopReason": "end_turn"})
METADATA: tuple[str, Json] = ("metadata", {"usage": {"inputTokens": 2}, "metrics": {"latencyMs": 3}})
SIGNATURE = delta(0, reasoningContent={"signature": "c2ln"})
CITATION = delta(0, citation={"title": "a", "sourceContent": [{"text": "b"}]})
RESULT = delta(1, toolResult=[{"json": {"stdOut": "7"}}])
PICTURE = delta(0, image={"source": {"bytes": "aVZC"}})

CASES = [
    Case(
        "a-text",
        [padded(BEGIN), *(padded(text(0, each), "x" * n) for n, each in enumerate("Hello")), closed(0), STOP],
        [BEGIN, text(0, "Hello"), closed(0), STOP],
    ),
    Case("padding-that-is-null", [padded(text(0, "a"), None), text(0, "b")], [text(0, "ab")]),
    Case("an-empty-piece-first", [text(0, ""), text(0, "a"), text(0, "b")], [text(0, ""), text(0, "ab")]),
    Case("empty-pieces-between", [text(0, "a"), text(0, ""), text(0, "b")], [text(0, "ab")]),
    Case(
        "thoughts-and-their-signature",
        [thought(0, "H"), thought(0, "m"), SIGNATURE, closed(0), text(1, "a"), text(1, "b")],
        [thought(0, "Hm"), SIGNATURE, closed(0), text(1, "ab")],
    ),
    Case("signatures-are-whole", [SIGNATURE, SIGNATURE], [SIGNATURE, SIGNATURE]),
    Case(
        "two-calls",
        [
            *(opened(0, "f"), arguments(0, ""), arguments(0, '{"a"'), arguments(0, ":1}"), closed(0)),
            *(opened(1, "g"), arguments(1, "{"), arguments(1, "}"), closed(1), STOP, METADATA),
        ],
        [
            *(opened(0, "f"), arguments(0, ""), arguments(0, '{"a":1}'), closed(0)),
            *(opened(1, "g"), arguments(1, "{}"), closed(1), STOP, METADATA),
        ],
    ),
    Case(
        "calls-that-come-by-turns",
        [arguments(0, "a"), arguments(1, "x"), arguments(0, "b"), arguments(1, "y")],
        [arguments(0, "ab"), arguments(1, "xy")],
    ),
    Case(
        "a-citation-stays-where-it-is",
        [text(0, "a"), text(0, "b"), CITATION, text(0, "c"), text(0, "d"), CITATION, CITATION],
        [text(0, "ab"), CITATION, text(0, "cd"), CITATION, CITATION],
    ),
    Case("results-are-whole", [RESULT, RESULT], [RESULT, RESULT]),
    Case("pictures-are-whole", [PICTURE, PICTURE], [PICTURE, PICTURE]),
    Case(
        "another-member-starts-a-text-of-its-own",
        [text(0, "a"), ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "b"}, "x": 1})],
        [text(0, "a"), ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "b"}, "x": 1})],
    ),
    Case(
        "another-name", [text(0, "a"), ("other", text(0, "b")[1])], [text(0, "a"), ("other", text(0, "b")[1])]
    ),
    Case(
        "odd",
        [text(0, "a"), ("e", "oops"), ("e", [1]), delta(0, text=7), text(0, "b")],
        [text(0, "a"), ("e", "oops"), ("e", [1]), delta(0, text=7), text(0, "b")],
    ),
    # Nova's own.
    Case(
        "own",
        [own(BEGIN), own(text(0, "a")), own(text(0, "b")), own(closed(0)), own(STOP), own(METADATA)],
        [own(BEGIN), own(text(0, "ab")), own(closed(0)), own(STOP), own(METADATA)],
    ),
    Case(
        "own-in-blocks-of-one-piece",
        [own(text(0, "a")), own(closed(0)), own(text(1, "b")), own(closed(1))],
        [own(text(0, "a")), own(closed(0)), own(text(1, "b")), own(closed(1))],
    ),
    Case(
        "own-thoughts-and-calls",
        [own(thought(0, "a")), own(thought(0, "b")), own(opened(1, "f")), own(arguments(1, "{"))],
        [own(thought(0, "ab")), own(opened(1, "f")), own(arguments(1, "{"))],
    ),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled(case: Case, size: int) -> None:
    """Texts are joined, padding is gone, all else stays as and where it was."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut(case: Case, size: int) -> None:
    """Every piece is a whole message, which botocore reads as well."""
    check_cut(case, event, STREAM, size)

    script = assemble(map(event, case.script), STREAM)
    sent = b"".join(cut_bytes(script, STREAM, size))
    assert [each.event for each in parse(sent, STREAM)] == [
        headers[":event-type"] for headers, _ in read(sent)
    ]


TEXTS = st.text(max_size=6) | st.sampled_from(["\u2028", "\ud83d", "\ude00", "👩\u200d👧", "\x85", '"', "\n"])
INDEXES = st.integers(0, 2)
EVENTS = st.one_of(
    st.builds(text, INDEXES, TEXTS),
    st.builds(thought, INDEXES, TEXTS),
    st.builds(arguments, INDEXES, TEXTS),
    st.builds(lambda index, words: own(text(index, words)), INDEXES, TEXTS),
    st.builds(lambda index, words: own(arguments(index, words)), INDEXES, TEXTS),
    st.builds(closed, INDEXES),
    st.builds(padded, st.builds(text, INDEXES, TEXTS)),
    st.sampled_from([BEGIN, STOP, METADATA, SIGNATURE, CITATION, own(STOP), ("e", "oops"), ("e", [])]),
)


@given(st.lists(EVENTS, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(sent: list[Any], size: int) -> None:
    """Whatever comes in whatever order, Converse's and Nova's own."""
    check_any([event(each) for each in sent], STREAM, size)


# -- Messages in chunks --------------------------------------------------------------------------------


def block(kind: str, said: str, index: int = 0) -> Json:
    member = {"text_delta": "text", "input_json_delta": "partial_json", "thinking_delta": "thinking"}[kind]
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, member: said}}


PING: Json = {"type": "ping"}
METRICS: dict[str, Json] = {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 7}}
ENDED: Json = {"type": "message_stop", **METRICS}
REASON: Json = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}

MESSAGES = [
    Case(
        "a-text",
        [block("text_delta", "Hel"), block("text_delta", "lo"), REASON, ENDED],
        [block("text_delta", "Hello"), REASON, ENDED],
    ),
    Case(
        "arguments",
        [block("input_json_delta", ""), block("input_json_delta", "{"), block("input_json_delta", "}")],
        [block("input_json_delta", ""), block("input_json_delta", "{}")],
    ),
    Case(
        "a-ping-says-nothing",
        [block("text_delta", "a"), PING, block("text_delta", "b")],
        [block("text_delta", "ab")],
    ),
    Case("a-text-that-is-no-event", ["Sorry.", "Sorry."], ["Sorry.", "Sorry."]),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(MESSAGES)
def test_messages_in_chunks_are_assembled(case: Case, size: int) -> None:
    """As they are at Anthropic's own host."""
    check_assembled(case, event, BEDROCK_STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(MESSAGES)
def test_messages_in_chunks_are_cut(case: Case, size: int) -> None:
    """Every piece is in an envelope of its own."""
    check_cut(case, event, BEDROCK_STREAM, size)


# -- how far it has come -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "is_complete", "is_over", "finish"),
    [
        ([BEGIN, text(0, "a"), STOP, METADATA], True, True, "end_turn"),
        ([BEGIN, text(0, "a"), STOP], True, False, "end_turn"),
        ([BEGIN, text(0, "a"), METADATA], False, False, None),
        ([METADATA, STOP], True, False, "end_turn"),
        ([("messageStop", {}), METADATA], True, True, None),
        ([("messageStop", []), METADATA], False, False, None),
        ([own(STOP), own(METADATA)], True, True, "end_turn"),
        ([own(STOP)], True, False, "end_turn"),
        ([("chunk", "oops"), ("chunk", [STOP[1]]), own(METADATA)], False, False, None),
        ([], False, False, None),
    ],
)
def test_metadata_behind_the_reason_to_stop_end_a_stream(
    events: list[Any], is_complete: bool, is_over: bool, finish: Any
) -> None:
    """And nothing else does; a client that stops at the reason has all that was said."""
    progress = watched(ConverseProgress(), map(event, events))
    progress.expect({})

    assert (is_complete, is_over, finish) == (progress.is_complete, progress.is_terminated, progress.finish)
    assert (False, None) == (progress.awaits_more, progress.error)


def test_an_exception_that_is_sent_as_an_event_is_an_error() -> None:
    """By whoever passes streams on; the first one counts."""
    failures: list[Any] = [("throttlingException", {"message": "x"}), ("validationException", {})]
    progress: StreamProgress = watched(ConverseProgress(), map(event, [text(0, "a"), *failures]))

    assert "throttlingException" == progress.error


@pytest.mark.parametrize(
    ("events", "is_over", "finish", "error"),
    [
        ([REASON, ENDED], True, "tool_use", None),
        ([REASON], False, "tool_use", None),
        ([("other", ENDED)], False, None, None),
        ([{"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}], False, None, "Busy"),
    ],
)
def test_a_message_in_chunks_says_itself_where_it_ends(
    events: list[Any], is_over: bool, finish: Any, error: str | None
) -> None:
    """Whatever the one name of its events is."""
    progress = watched(ChunkProgress(), map(event, events))

    assert (is_over, finish, error) == (progress.is_terminated, progress.finish, progress.error)


# -- recorded ------------------------------------------------------------------------------------------


def recorded_streams() -> Iterator[tuple[StreamTable, bytes]]:
    """Yield the recorded streams of binary messages that a table explains."""
    for name in ("bedrock-converse.jsonl", "other.jsonl"):
        for line in (CORPUS / name).read_text(encoding="utf-8").splitlines():
            exchange = json.loads(line)
            url = exchange["request"]["url"]
            if "/model/" in url and "eventstream" in exchange["tags"]:
                table = recognise(url, exchange["request"]["body"]).stream_in("eventstream")
                assert table is not None
                yield table, base64.b64decode(exchange["response"]["body_b64"])


@with_corpus
def test_recorded_streams_are_proved() -> None:
    """A third of the events is stored: short answers, and Nova's own, which opens a block for each piece."""
    received = kept = 0
    for table, body in recorded_streams():
        events = list(parse(body, table))
        check_any(events, table, 7)
        received += len(events)
        kept += len(assemble(events, table))

    assert kept < received / 3


def test_both_dialects_have_streams_of_binary_messages() -> None:
    """And only those."""
    assert [STREAM, BEDROCK_STREAM] == [
        each.stream_in("eventstream") for each in (BEDROCK, ANTHROPIC_MESSAGES)
    ]
    assert BEDROCK.stream_in("sse") is None
