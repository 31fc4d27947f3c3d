"""Streams of Hugging Face's text generation: a token in each event, which stays what it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects._framing import Event, dump_event_json
from httpx_cassette.dialects.huggingface import STREAM, TokensProgress

from ..stream_proof import SIZES, WIRE_SIZES, Case, cases, check_any, check_assembled, check_cut, watched

DETAILS: Json = {"finish_reason": "eos_token", "generated_tokens": 2, "input_length": 4, "seed": None}


def token(text: str, number: Json = 7, index: int | None = 0, **more: Json) -> dict[str, Json]:
    """Return one event; older servers count none."""
    said: dict[str, Json] = {"id": number, "text": text, "logprob": -0.5, "special": False}
    counted: dict[str, Json] = {} if index is None else {"index": index}
    return {**counted, "token": said, "generated_text": None, "details": None, **more}


def last(text: str, whole: str, **more: Json) -> dict[str, Json]:
    return {**token(text, 2, 9), "generated_text": whole, "details": DETAILS, **more}


def event(value: Any) -> Event:
    if isinstance(value, tuple):
        return Event(dump_event_json(value[1]), value[0])
    return Event(value if isinstance(value, str) else dump_event_json(value))


TOP: Json = [{"id": 7, "text": "a", "logprob": -0.5, "special": False}]
BARE: Json = {"id": 0, "text": "!!!!", "logprob": 0.0, "special": False}

CASES = [
    Case("tokens", said := [token(" Par", 1, 1), token("is", 2, 2), last(".", " Paris.")], said, True),
    # Two of them in a row, where no index tells them apart.
    Case("one-token-twice", said := [token("ha", 5, None), token("ha", 5, None)], said, True),
    Case("token-number-nothing", said := [{"token": BARE}, {"token": BARE}], said, True),
    Case("other-tokens-beside-it", said := [token("a", 7, 1, top_tokens=TOP)], said, True),
    Case("a-long-token", said := [token("\n" * 30, 8, 1), last("", "\n" * 30)], said, True),
    Case("a-special-token", said := [last("</s>", "Hi", token={**BARE, "special": True})], said, True),
    Case(
        "odd", said := [{"token": None}, {"token": "a"}, {"token": [1]}, [1], "oops", token("a")], said, True
    ),
    # What has no number is a text.
    Case("texts", [{"token": {"text": "a"}}, {"token": {"text": "b"}}], [{"token": {"text": "ab"}}]),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled(case: Case, size: int) -> None:
    """Every token is stored with its number and its probability, as it came."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut(case: Case, size: int) -> None:
    """No token is cut: half of one has no number."""
    check_cut(case, event, STREAM, size)


TEXTS = st.text(max_size=6) | st.sampled_from(["\u2028", "\ud83d", "\ude00", "👩\u200d👧", "\x85", '"', "\n"])
EVENTS = st.one_of(
    st.builds(token, TEXTS, st.sampled_from([0, 1, None, "x"]), st.sampled_from([None, 0, 1])),
    st.builds(last, TEXTS, TEXTS),
    st.builds(lambda text: {"token": {"text": text}}, TEXTS),
    st.sampled_from([{}, {"token": {}}, {"token": {"text": 7}}]),
)


@given(st.lists(EVENTS, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(sent: list[Json], size: int) -> None:
    """Whatever comes in whatever order."""
    check_any([event(each) for each in sent], STREAM, size)


# -- how far it has come -------------------------------------------------------------------------------


def watch(*values: Any) -> TokensProgress:
    progress = TokensProgress()
    progress.expect({"stream": True})
    return watched(progress, map(event, values))


@pytest.mark.parametrize(
    ("events", "is_over", "finish"),
    [
        ([token("a"), last(".", "a.")], True, "eos_token"),
        ([token("a")], False, None),
        ([last("", "")], True, "eos_token"),
        ([last("", "", details=None)], True, None),
        ([last("", "", details="x")], True, None),
        ([token("a", details=DETAILS)], False, None),
        ([token("a", generated_text=7)], False, None),
        (["[true]", "oops", "[DONE]"], False, None),
    ],
)
def test_the_whole_text_ends_a_stream(events: list[Any], is_over: bool, finish: Any) -> None:
    """And nothing else does: no marker is sent."""
    progress = watch(*events)

    assert (is_over, is_over, finish) == (progress.is_terminated, progress.is_complete, progress.finish)
    assert not progress.awaits_more


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"error": "Incomplete generation", "error_type": "incomplete_generation"}, "Incomplete generation"),
        ({"error": {"message": "x"}}, '{"error":{"message":"x"}}'),
        (("error", {"x": 1}), '{"x":1}'),
        (("error", "oops"), '"oops"'),
        ({"error": ""}, None),
        ({"error": None}, None),
        (last("", ""), None),
        ("oops", None),
    ],
)
def test_an_error_in_an_event_is_seen(value: Any, error: str | None) -> None:
    """The status was 200 before; the first one counts."""
    assert error == watch(token("a"), value).error
    assert "first" == watch({"error": "first"}, value).error
