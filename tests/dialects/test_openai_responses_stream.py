"""Streams of OpenAI's Responses format: what real servers send, assembled and cut again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects._framing import Event, dump_event_json, load_event_json
from httpx_cassette.dialects._script import assemble, cut, texts
from httpx_cassette.dialects.openai_responses import STREAM, ResponseProgress

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


def event(kind: str, **members: Json) -> dict[str, Json]:
    return {"type": f"response.{kind}", **members}


def say(text: str, output: int = 0, content: int = 0, **more: Json) -> dict[str, Json]:
    """Return a delta of text; ``more`` replaces and adds."""
    place: dict[str, Json] = {"item_id": f"msg_{output}", "output_index": output, "content_index": content}
    return event("output_text.delta", **{**place, "delta": text, "logprobs": [], **more})


def arguments(text: str, output: int = 0, **more: Json) -> dict[str, Json]:
    place: dict[str, Json] = {"item_id": f"fc_{output}", "output_index": output}
    return event("function_call_arguments.delta", **{**place, "delta": text, **more})


def summary(text: str, index: int = 0, output: int = 0) -> dict[str, Json]:
    place: dict[str, Json] = {"item_id": f"rs_{output}", "output_index": output, "summary_index": index}
    return event("reasoning_summary_text.delta", **place, delta=text)


def delta(kind: str, text: Json, **more: Json) -> dict[str, Json]:
    return event(f"{kind}.delta", **{"item_id": "x_0", "output_index": 0, "delta": text, **more})


def number(*events: dict[str, Json], first: int = 0) -> list[dict[str, Json]]:
    """Return events with their numbers, in front as OpenAI sends them."""
    return [
        {"type": each["type"], "sequence_number": place, **each} for place, each in enumerate(events, first)
    ]


ANSWER: Json = {"id": "resp_1", "status": "completed", "output": [], "usage": {"total_tokens": 9}}
CREATED = event("created", response={"id": "resp_1", "status": "in_progress", "output": []})
ADDED = event("output_item.added", output_index=0, item={"type": "message", "id": "msg_0", "content": []})
DONE = event("output_text.done", output_index=0, content_index=0, item_id="msg_0", text="Hello, world")
COMPLETED = event("completed", response=ANSWER)
IMAGE = event(
    "image_generation_call.partial_image", output_index=0, partial_image_index=0, partial_image_b64="aWc="
)

CASES = [
    Case(
        "text",
        number(CREATED, ADDED, say("Hello"), say(", "), say("world"), DONE, COMPLETED),
        number(CREATED, ADDED, say("Hello, world"), DONE, COMPLETED),
    ),
    Case(
        "padding",
        [say("Hel", obfuscation="aF"), say("lo", obfuscation="x"), COMPLETED],
        [say("Hello"), COMPLETED],
    ),
    *(
        Case(kind, [delta(kind, "a"), delta(kind, "b"), COMPLETED], [delta(kind, "ab"), COMPLETED])
        for kind in (
            "refusal",
            "function_call_arguments",
            "custom_tool_call_input",
            "mcp_call_arguments",
            "code_interpreter_call_code",
            "reasoning_text",
            "reasoning_summary_text",
            "shell_call_command",
            "audio.transcript",
        )
    ),
    Case(
        "a-shell's-two-channels",
        [
            delta("shell_call_output_content", {"stdout": "a"}),
            delta("shell_call_output_content", {"stdout": "b"}),
            delta("shell_call_output_content", {"stderr": "x"}),
            delta("shell_call_output_content", {"stderr": "y"}),
            COMPLETED,
        ],
        [
            delta("shell_call_output_content", {"stdout": "ab"}),
            delta("shell_call_output_content", {"stderr": "xy"}),
            COMPLETED,
        ],
    ),
    Case(
        "two-commands",
        [delta("shell_call_command", text, command_index=index) for index in (0, 1) for text in "ab"],
        [delta("shell_call_command", "ab", command_index=index) for index in (0, 1)],
    ),
    # Its pieces are base64 each by itself: "YQ==" and "Yg==" are no base64 together.
    Case(
        "sound",
        [event("audio.delta", delta="YQ=="), event("audio.delta", delta="Yg=="), COMPLETED],
        [event("audio.delta", delta="YQ=="), event("audio.delta", delta="Yg=="), COMPLETED],
    ),
    Case("partial-images", [IMAGE, IMAGE, COMPLETED], [IMAGE, IMAGE, COMPLETED]),
    Case(
        "an-unknown-delta",
        [event("diff.delta", delta="a"), event("diff.delta", delta="b")],
        [event("diff.delta", delta="a"), event("diff.delta", delta="b")],
    ),
    Case(
        "a-delta-without-a-type",
        [{"delta": "a", "output_index": 0}, {"delta": "b", "output_index": 0}],
        [{"delta": "a", "output_index": 0}, {"delta": "b", "output_index": 0}],
    ),
    Case(
        "items-by-turns",
        [arguments(text, output) for text in ("{", "}") for output in (0, 1)] + [COMPLETED],
        [arguments("{}"), arguments("{}", 1), COMPLETED],
    ),
    Case(
        "items-of-two-kinds-by-turns",
        [say("a"), arguments("{", 1), say("b"), arguments("}", 1), say("c"), COMPLETED],
        [say("abc"), arguments("{}", 1), COMPLETED],
    ),
    Case(
        "parts-by-turns",
        [say(text, content=content) for text in "ab" for content in (0, 1)],
        [say("ab"), say("ab", content=1)],
    ),
    Case(
        "two-summaries",
        [summary("a"), summary("b"), summary("c", 1), summary("d", 1)],
        [summary("ab"), summary("cd", 1)],
    ),
    Case(
        "an-event-of-the-same-item-between",
        [say("a"), event("output_text.annotation.added", output_index=0, annotation={}), say("b")],
        [say("a"), event("output_text.annotation.added", output_index=0, annotation={}), say("b")],
    ),
    Case(
        "an-event-of-another-item-between",
        [say("a"), event("output_item.done", output_index=1, item={}), say("b")],
        [say("ab"), event("output_item.done", output_index=1, item={})],
    ),
    Case(
        "an-event-of-no-item-between",
        [say("a"), {"type": "keepalive"}, say("b")],
        [say("a"), {"type": "keepalive"}, say("b")],
    ),
    # Clients go by the indexes: in the order of the events the text is "abcd".
    Case(
        "an-id-that-changes",
        [say(text, item_id=name) for text, name in zip("abcd", "xyxx", strict=True)],
        [say("a", item_id="x"), say("b", item_id="y"), say("cd", item_id="x")],
    ),
    Case(
        "logprobs",
        [say("Hel", logprobs=[{"token": "Hel"}]), say("lo", logprobs=[{"token": "lo"}]), COMPLETED],
        [say("Hello", logprobs=[{"token": "Hel"}, {"token": "lo"}]), COMPLETED],
    ),
    Case(
        "no-numbers-in-some",
        [*number(CREATED, say("a")), say("b"), *number(say("c"), COMPLETED, first=2)],
        [*number(CREATED, say("abc")), *number(COMPLETED, first=2)],
    ),
    Case(
        "numbers-of-a-stream-that-is-taken-up-again",
        number(say("a"), say("b"), COMPLETED, first=7),
        number(say("ab"), COMPLETED, first=7),
    ),
    Case(
        "numbers-that-are-no-numbers",
        [say("a", sequence_number="1"), say("b", sequence_number="2")],
        [say("ab", sequence_number="1")],
    ),
    Case(
        "hard-text",
        [say("a\u2028b\x85"), say("data: [DONE]\n\n"), say("👩\u200d"), say("👧\ud83d"), say("\ude00\ud800")],
        [say("a\u2028b\x85data: [DONE]\n\n👩\u200d👧\U0001f600\ud800")],
    ),
    Case(
        "empty-deltas",
        [say(""), say("a"), say(""), say("b"), say("")],
        [say(""), say("ab")],
    ),
    Case(
        "a-delta-that-is-no-text",
        [say("a"), event("output_text.delta", output_index=0, delta=None), say("b", delta=7)],
        [say("a"), event("output_text.delta", output_index=0, delta=None), say("b", delta=7)],
    ),
    Case(
        "unknown-members",
        [say("a", odd={"x": 1}), say("b", odd={"x": 1}), say("c", odd={"x": 2})],
        [say("ab", odd={"x": 1}), say("c", odd={"x": 2})],
    ),
]


def as_event(members: dict[str, Json]) -> Event:
    """Return an event as it is sent: its type once more as its name, where it has one."""
    kind = members.get("type")
    return Event(dump_event_json(members), kind if isinstance(kind, str) else None)


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


def test_the_pieces_are_numbered_anew() -> None:
    """Each has a number of its own, and what follows counts on; logprobs go with the first."""
    whole = number(CREATED, say("abcde", logprobs=[1, 2]), COMPLETED, first=3)

    events = [load_event_json(each.data) for each in cut([{"json": each} for each in whole], STREAM, 2)]

    assert events == number(CREATED, say("ab", logprobs=[1, 2]), say("cd"), say("e"), COMPLETED, first=3)


def test_slots_are_named_by_what_clients_go_by() -> None:
    """The type, and the numbers of the item, the part and the summary."""
    found = texts([as_event(say("a", 1, 2)), as_event(summary("b"))], STREAM)

    assert {
        "response.output_text.delta: delta "
        "(output_index 1, content_index 2, summary_index None, command_index None)": "a",
        "response.reasoning_summary_text.delta: delta "
        "(output_index 0, content_index None, summary_index 0, command_index None)": "b",
    } == found


# --- how far a stream has come ----------------------------------------------------------------------


def watch(*events: Event) -> ResponseProgress:
    return watched(ResponseProgress(), events)


def end(kind: str, **answer: Json) -> Event:
    return as_event(event(kind, response={"id": "resp_1", **answer}))


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        (end("completed", status="completed"), "completed"),
        (
            end("incomplete", status="incomplete", incomplete_details={"reason": "content_filter"}),
            "content_filter",
        ),
        (as_event(event("completed")), None),
        (as_event(event("completed", response="odd")), None),
        # Its name is all that a gateway sends.
        (Event('{"response": {"status": "completed"}}', "response.completed"), "completed"),
        # Clients go by the data.
        (end("completed", status="completed")._replace(event="response.output_text.delta"), "completed"),
    ],
)
def test_the_event_that_holds_the_answer_ends_the_stream(last: Event, finish: Json) -> None:
    """It is complete then and not before, and gives its reason."""
    before = watch(as_event(CREATED), as_event(say("a")), as_event(DONE))
    assert (False, False, None, None) == (
        before.is_complete,
        before.is_terminated,
        before.finish,
        before.error,
    )

    progress = watch(as_event(CREATED), as_event(say("a")), last)

    assert (True, True, finish, None) == (
        progress.is_complete,
        progress.is_terminated,
        progress.finish,
        progress.error,
    )


@pytest.mark.parametrize(
    "other",
    [
        Event("[DONE]"),
        Event("{oops", "response.completed2"),
        as_event({"type": "response.output_text.delta"})._replace(event="response.completed"),
        as_event(event("output_text.done", text="response.completed")),
        as_event({"type": ["response.completed"]}),
        as_event(event("in_progress", response={"status": "completed"})),
        Event("[1]"),
    ],
)
def test_nothing_else_ends_it(other: Event) -> None:
    """A marker of chat neither: servers that send it send it behind the end."""
    progress = watch(as_event(CREATED), other)

    assert not progress.is_complete
    assert not progress.is_terminated


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (as_event({"type": "error", "code": "server_error", "message": "overloaded"}), "overloaded"),
        (as_event({"type": "error", "error": {"message": "overloaded"}}), "overloaded"),
        (Event('{"error": {"message": "overloaded"}}'), "overloaded"),
        (Event('{"error": {"code": 503}}'), "{'code': 503}"),
        (Event('{"error": "overloaded"}'), "overloaded"),
        (Event("overloaded", "error"), "overloaded"),
        (Event("", extra=(("retry", "3"), ("error", "overloaded"))), "overloaded"),
        (end("failed", status="failed", error={"code": "x", "message": "overloaded"}), "overloaded"),
        (end("completed", error={"message": "overloaded"}), "overloaded"),
        (Event('{"type": "response.failed"}'), '{"type": "response.failed"}'),
        (
            Event('{"type": "response.completed", "response": {"status": "failed"}}'),
            '{"type": "response.completed", "response": {"status": "failed"}}',
        ),
        (as_event({"type": "response.mcp_call.failed"}), None),
        (Event('{"error": null}'), None),
    ],
)
def test_an_error_inside_a_200_is_seen(last: Event, error: str | None) -> None:
    """However it is announced, and the first one counts; a tool that failed is none."""
    assert error == watch(as_event(CREATED), last).error
    assert "first" == watch(Event('{"error": "first"}'), last).error


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
            "@0",
            "delta",
        ]
    ),
    max_size=5,
).map("".join)
KINDS = st.sampled_from(
    ["output_text", "function_call_arguments", "reasoning_summary_text", "shell_call_output_content", "odd"]
)
PLACES = st.fixed_dictionaries(
    {},
    optional={
        "output_index": st.integers(0, 1),
        "content_index": st.integers(0, 1),
        "summary_index": st.integers(0, 1),
        "item_id": st.sampled_from(["a", "b"]),
        "sequence_number": st.integers(0, 9),
        "obfuscation": st.just("x"),
        "logprobs": st.sampled_from([[], [1], [2, 3], None]),
        "odd": st.sampled_from([1, None]),
    },
)
DELTAS: st.SearchStrategy[dict[str, Json]] = st.builds(
    lambda kind, place, text: {"type": f"response.{kind}.delta", **place, "delta": text},
    KINDS,
    PLACES,
    TEXT
    | st.builds(lambda name, text: {name: text}, st.sampled_from(["stdout", "stderr"]), TEXT)
    | st.none(),
)
OTHERS: st.SearchStrategy[dict[str, Json]] = st.builds(
    lambda kind, place: {"type": kind, **place},
    st.sampled_from(["response.output_item.done", "keepalive", "response.output_text.delta"]),
    PLACES,
)
EVENTS = st.builds(
    lambda members, name: Event(dump_event_json(members), str(members["type"]) if name else None),
    DELTAS | DELTAS | DELTAS | OTHERS,
    st.sampled_from([True, True, True, False]),
) | st.sampled_from([Event("[DONE]"), Event("{oops"), Event("7"), Event("{}", "odd")])


@given(st.lists(EVENTS, max_size=14), st.sampled_from([1, 2, 3, 7, 64, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(events: list[Event], size: int) -> None:
    """Cutting is the inverse of assembling, and no character is lost or moved within its slot."""
    check_any(events, STREAM, size)


@given(st.lists(DELTAS, max_size=14), st.sampled_from([1, 2, 7, 10**9]))
def test_clients_put_the_same_text_together(deltas: list[dict[str, Json]], size: int) -> None:
    """As openai's client does it: by the numbers, whatever the id of the item, in the order of the events."""
    events = [as_event(each) for each in deltas]

    replayed = [load_event_json(each.data) for each in cut(assemble(events, STREAM), STREAM, size)]

    assert accumulate(deltas) == accumulate(replayed)


def accumulate(events: Sequence[Json]) -> dict[str, str]:
    """Return the text of each place; the halves of a character that come in two events are one."""
    found: dict[str, str] = {}
    for each in events:
        assert isinstance(each, dict)
        place = [each.get(name) for name in ("type", "output_index", "content_index", "summary_index")]
        said = each["delta"]
        pieces = said if isinstance(said, dict) else {"": said}
        for channel, text in pieces.items():
            if isinstance(text, str):
                slot = f"{place} {channel}"
                joined = (found.get(slot, "") + text).encode("utf-16-le", "surrogatepass")
                found[slot] = joined.decode("utf-16-le", "surrogatepass")
    return {slot: text for slot, text in found.items() if text}


# --- recorded traffic -------------------------------------------------------------------------------


def is_responses(exchange: Any) -> bool:
    address: str = exchange["request"]["url"]
    return address.endswith("/responses")


@with_corpus
@pytest.mark.parametrize(
    ("name", "share"), [("openai-responses.jsonl", 0.25), ("openai-compatible-other.jsonl", 0.6)]
)
def test_every_recorded_stream_is_proved(name: str, share: float) -> None:
    """What real servers sent is assembled, all of it, into a small part of as many events."""
    assert 0 < share_kept(recorded(name, is_responses), STREAM) < share
