"""Google's interactions: how they are told, what they must hold, and their streams."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects import GEMINI_INTERACTIONS, GENERIC, recognise
from httpx_cassette.dialects._framing import Event, dump_event_json, load_event_json
from httpx_cassette.dialects._script import assemble, cut
from httpx_cassette.dialects.gemini_interactions import STREAM, InteractionProgress

from ..keying import call, key_of
from ..stream_proof import check_any, watched

URL = "https://generativelanguage.googleapis.com/v1beta/interactions"
ASK: dict[str, Json] = {"model": "gemini-3-flash", "input": "hi"}

assert GEMINI_INTERACTIONS.system is not None
missing = GEMINI_INTERACTIONS.system.missing


# -- the request ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "is_one"),
    [
        ("/v1beta/interactions", ASK, True),
        ("/v1/interactions", {"agent": "deep-research", "input": [], "background": True}, True),
        ("/v1/interactions", {"model": "m", "continuation_token": "x"}, True),
        ("/v1/interactions", {"model": "m"}, False),
        ("/v1/interactions", {"input": "hi"}, False),
        ("/v1/interactions/v1_x:cancel", ASK, False),
        ("/v1/myinteractions", ASK, False),
        ("/v1/interactions", None, False),
    ],
)
def test_an_interaction_is_recognised_by_path_and_shape(path: str, body: Any, is_one: bool) -> None:
    """With a model or an agent, and something to go on from."""
    assert recognise(path, body) is (GEMINI_INTERACTIONS if is_one else GENERIC)


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"system_instruction": "Be brief."}, None),
        ({"previous_interaction_id": "v1_x"}, None),
        ({"agent": "deep-research"}, None),
        ({"cached_content": "cachedContents/x"}, None),
        ({}, "no system_instruction"),
        ({"system_instruction": None}, "no system_instruction"),
        ({"system_instruction": " \n\u200b"}, "a blank system_instruction"),
        ({"system_instruction": {"parts": []}}, "a blank system_instruction"),
        ({"system_instruction": "", "previous_interaction_id": ""}, "a blank system_instruction"),
    ],
)
def test_what_stands_for_a_system_prompt(members: dict[str, Json], found: str | None) -> None:
    """A text of its own, or what the server holds."""
    assert found == missing({**ASK, **members}, False) == missing({**ASK, **members}, True)


def key(**members: Json) -> str:
    return key_of(call({**ASK, **members}, url=URL))


def steps(ident: str) -> Json:
    return [
        {"type": "function_call", "id": ident, "name": "f", "arguments": {}},
        {"type": "function_result", "call_id": ident, "result": "1"},
    ]


def test_which_interactions_share_a_key() -> None:
    """Blanks at the ends of lines, and ids that only refer, make no difference; all the rest does."""
    assert key(input="hi ") == key()
    assert key(input=[{"type": "text", "text": "a "}]) == key(input=[{"type": "text", "text": "a"}])
    assert key(system_instruction="x \ny") == key(system_instruction="x\ny")
    assert key(input=steps("a")) == key(input=steps("b"))
    assert key(store=True) != key()
    assert key(stream=False) != key()
    assert key(previous_interaction_id="v1_x") != key(previous_interaction_id="v1_y")
    assert key(input=[{"role": "model", "content": "a "}]) != key(input=[{"role": "model", "content": "a"}])


@pytest.mark.parametrize(
    ("document", "finish", "is_failure"),
    [
        ({"status": "completed"}, "completed", False),
        ({"status": "in_progress"}, "in_progress", False),
        ({"status": "failed"}, "failed", True),
        ({"error": {"message": "x"}}, None, True),
        ([], None, False),
    ],
)
def test_what_an_answer_says_of_itself(document: Any, finish: Any, is_failure: bool) -> None:
    """Its status is its finish reason; one that failed is no answer."""
    assert (finish, is_failure) == (
        GEMINI_INTERACTIONS.finish(document),
        GEMINI_INTERACTIONS.is_failure(document),
    )


# -- the stream ----------------------------------------------------------------------------------------


def delta(value: Json, index: int = 0, **more: Json) -> Json:
    return {"event_type": "step.delta", "index": index, "delta": value, **more}


def text(value: str, index: int = 0, **more: Json) -> Json:
    return delta({"type": "text", "text": value}, index, **more)


def arguments(value: Json, index: int = 0) -> Json:
    return delta({"type": "arguments_delta", "arguments": value}, index)


def completed(status: str = "completed") -> Json:
    return {"event_type": "interaction.completed", "interaction": {"id": "v1_x", "status": status}}


CREATED: Json = {"event_type": "interaction.created", "interaction": {"id": "v1_x", "status": "in_progress"}}
START: Json = {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}}
STOP: Json = {"event_type": "step.stop", "index": 0}
SUMMARY = delta({"type": "thought_summary", "content": {"type": "text", "text": "A whole paragraph."}})
SIGNATURE = delta({"type": "thought_signature", "signature": "c2ln"})

CASES: list[tuple[str, list[Json], list[Json]]] = [
    (
        "text",
        [CREATED, START, text("Hel"), text("lo"), STOP, completed()],
        [CREATED, START, text("Hello"), STOP, completed()],
    ),
    ("arguments", [arguments('{"a'), arguments('":1}')], [arguments('{"a":1}')]),
    (
        "whole-arguments",
        [arguments({"a": 1}), arguments({"a": 1})],
        [arguments({"a": 1}), arguments({"a": 1})],
    ),
    ("thoughts", [SUMMARY, SUMMARY, SIGNATURE, SIGNATURE], [SUMMARY, SUMMARY, SIGNATURE, SIGNATURE]),
    (
        "steps-by-turns",
        [text("a"), text("x", 1), text("b"), text("y", 1)],
        [text("ab"), text("xy", 1)],
    ),
    (
        "ids-and-usage-come-with-the-last-piece",
        [text("a", event_id="1"), text("b", metadata={"usage": 1}, event_id="2"), text("c", event_id="3")],
        [text("abc", metadata={"usage": 1}, event_id="3")],
    ),
    ("another-kind-between", [text("a"), SIGNATURE, text("b")], [text("a"), SIGNATURE, text("b")]),
    ("unknown", [{"odd": 1}, delta("x"), delta(None)], [{"odd": 1}, delta("x"), delta(None)]),
]
DONE = Event("[DONE]", "done")


def named(value: Json) -> Event:
    """Return an event as Google sends it."""
    assert isinstance(value, dict)
    kind = value.get("event_type")
    return Event(dump_event_json(value), kind if isinstance(kind, str) else None)


def check(sent: list[Event], size: int) -> list[Json]:
    """Assemble a stream, cut it and assemble it again; return what is stored of its data."""
    check_any(sent, STREAM, size)
    stored = cut(assemble(sent, STREAM), STREAM, 10**9)
    return [load_event_json(event.data) for event in stored if event != DONE]


@pytest.mark.parametrize("size", [1, 2, 7, 10**9])
@pytest.mark.parametrize(("sent", "script"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_stream_is_assembled_and_cut(sent: list[Json], script: list[Json], size: int) -> None:
    """With the names of its events and without."""
    assert script == check([*map(named, sent), DONE], size)
    assert script == check([*(named(each)._replace(event=None) for each in sent), DONE], size)


TEXTS = st.text(max_size=6) | st.sampled_from(["\u2028", "\ud83d", "\ude00", "👩\u200d👧", "\x85", '"', "\n"])
EVENTS = st.one_of(
    st.builds(text, TEXTS, st.integers(0, 1)),
    st.builds(lambda value, ident: text(value, event_id=ident), TEXTS, st.sampled_from(["1", "2"])),
    st.builds(lambda value: text(value, metadata={"usage": {"n": 1}}), TEXTS),
    st.builds(arguments, TEXTS, st.integers(0, 1)),
    st.sampled_from([CREATED, START, STOP, SUMMARY, SIGNATURE, completed(), {}]),
)


@given(st.lists(EVENTS, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(sent: list[Json], size: int) -> None:
    """Whatever comes in whatever order."""
    check([named(each) for each in sent], size)


def watch(*events: Json | Event) -> InteractionProgress:
    sent = (each if isinstance(each, Event) else named(each) for each in events)
    return watched(InteractionProgress(), sent)


def test_how_far_a_stream_has_come() -> None:
    """The interaction at the end makes it complete, and the marker behind it ends it."""
    assert not watch(CREATED, text("a"), STOP).is_complete
    assert not watch(CREATED, text("a"), DONE).is_terminated
    assert not watch({"event_type": "interaction.completed"}).is_complete
    ended = watch(CREATED, text("a"), completed("incomplete"))
    assert (True, False, "incomplete") == (ended.is_complete, ended.is_terminated, ended.finish)
    assert watch(completed(), DONE).is_terminated
    assert watch({"event_type": "interaction.complete", "interaction": {}}).is_complete
    # What the data say counts, as for the SDK.
    assert not watch(Event("{}", "interaction.completed")).is_complete


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"event_type": "error", "error": {"code": "x", "message": "overloaded"}}, "overloaded"),
        ({"event_type": "error", "error": {"code": "x"}}, "{'code': 'x'}"),
        ({"error": "overloaded"}, "overloaded"),
        ({"event_type": "error"}, '{"event_type":"error"}'),
        (Event('{"message":"x"}', "error"), '{"message":"x"}'),
        (completed("failed"), "the interaction failed"),
        (completed(), None),
        (Event("[1]"), None),
    ],
)
def test_an_error_inside_a_200_is_seen(sent: Json | Event, error: str | None) -> None:
    """As an event, or as what became of the interaction; the first one counts."""
    assert error == watch(sent).error
    assert "first" == watch({"event_type": "error", "error": "first"}, sent).error
