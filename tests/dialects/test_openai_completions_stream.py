"""Streams of OpenAI's legacy completions: texts by the index of their choice."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects._framing import Event, dump_event_json
from httpx_cassette.dialects.openai_completions import STREAM, CompletionsProgress

from ..stream_proof import SIZES, WIRE_SIZES, Case, cases, check_any, check_assembled, check_cut, watched


def choice(text: str, index: int = 0, finish: Json = None, **more: Json) -> dict[str, Json]:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish, **more}


def chunk(*choices: Json, **more: Json) -> dict[str, Json]:
    return {"id": "cmpl-1", "object": "text_completion", "choices": list(choices), **more}


def event(value: Any) -> Event:
    return Event(value if isinstance(value, str) else dump_event_json(value))


def likely(*tokens: str) -> Json:
    """Return what a server says of the tokens of a text."""
    numbers: list[Json] = [-0.5] * len(tokens)
    tops: list[Json] = [{token: -0.5} for token in tokens]
    offsets: list[Json] = [1] * len(tokens)
    return {"tokens": [*tokens], "token_logprobs": numbers, "top_logprobs": tops, "text_offset": offsets}


USAGE: Json = {"total_tokens": 3}

CASES = [
    Case(
        "text",
        [chunk(choice(" He")), chunk(choice("llo")), chunk(choice("!", finish="stop")), "[DONE]"],
        [chunk(choice(" Hello!", finish="stop")), "[DONE]"],
    ),
    Case(
        "usage",
        [chunk(choice("a"), usage=None), chunk(choice("b"), usage=None), chunk(usage=USAGE), "[DONE]"],
        [chunk(choice("ab"), usage=None), chunk(usage=USAGE), "[DONE]"],
    ),
    Case(
        "logprobs",
        [chunk(choice("a", logprobs=likely("a"))), chunk(choice("b", logprobs=likely("b")))],
        [chunk(choice("ab", logprobs=likely("a", "b")))],
    ),
    Case(
        "two-choices",
        [chunk(choice("a", 0)), chunk(choice("x", 1)), chunk(choice("b", 0)), chunk(choice("y", 1))],
        [chunk(choice("ab", 0)), chunk(choice("xy", 1))],
    ),
    Case(
        "obfuscation",
        [chunk(choice("a"), obfuscation="xx"), chunk(choice("b"), obfuscation="y")],
        [chunk(choice("ab"))],
    ),
    Case(
        "an-end-as-in-chat",
        [chunk(choice("a")), chunk(choice("b")), chunk({"delta": {}, "finish_reason": "stop"})],
        [chunk(choice("ab")), chunk({"delta": {}, "finish_reason": "stop"})],
    ),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled(case: Case, size: int) -> None:
    """Text to text, lists to lists, and of all else the last."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut(case: Case, size: int) -> None:
    """And is the same script once it is assembled."""
    check_cut(case, event, STREAM, size)


TEXTS = st.text(max_size=6) | st.sampled_from(["\u2028", "\ud83d", "\ude00", "👩\u200d👧", "\x85", '"', "\n"])
CHOICES = st.builds(choice, TEXTS, st.sampled_from([0, 1]), st.sampled_from([None, "stop", "length"]))
EVENTS = st.one_of(
    st.builds(chunk, CHOICES),
    st.builds(chunk, CHOICES, CHOICES),
    st.builds(lambda text: chunk(choice(text, logprobs=likely(text))), TEXTS),
    st.sampled_from([chunk(), chunk(usage=USAGE), {"choices": [{"text": 7}]}, {"choices": None}]),
)


@given(st.lists(EVENTS, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_stream_is_assembled_and_cut_without_loss(sent: list[Json], size: int) -> None:
    """Whatever comes in whatever order."""
    check_any([event(each) for each in sent], STREAM, size)


# -- how far it has come -------------------------------------------------------------------------------

ONE = chunk(choice("", 0, "stop"))
TWO = chunk(choice("", 1, "length"))


@pytest.mark.parametrize(
    ("asked", "events", "is_complete", "finish"),
    [
        ({"prompt": "a"}, [chunk(choice("a"))], False, None),
        ({"prompt": "a"}, [ONE], True, "stop"),
        ({"prompt": "a", "n": 2}, [ONE], False, "stop"),
        ({"prompt": ["a", "b"]}, [ONE], False, "stop"),
        ({"prompt": ["a", "b"]}, [ONE, TWO], True, ["stop", "length"]),
        ({"prompt": [[1, 2], [3]], "n": 2}, [ONE, TWO], False, ["stop", "length"]),
        # Tokens are one prompt.
        ({"prompt": [1, 2]}, [ONE], True, "stop"),
        ({"prompt": []}, [ONE], True, "stop"),
        (None, [ONE], True, "stop"),
    ],
)
def test_each_prompt_has_its_choices(asked: Any, events: list[Any], is_complete: bool, finish: Any) -> None:
    """A stream is whole when every choice of every prompt has finished."""
    progress = CompletionsProgress()
    progress.expect(asked)
    watched(progress, map(event, events))

    assert (is_complete, finish, False) == (progress.is_complete, progress.finish, progress.is_terminated)


def test_the_marker_ends_it() -> None:
    """As in chat."""
    assert watched(CompletionsProgress(), map(event, [ONE, "[DONE]"])).is_terminated
