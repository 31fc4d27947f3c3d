"""Anthropic's legacy completions: what is one key, and a text that goes on with each event."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette._call import Json
from httpx_cassette.dialects import ANTHROPIC_COMPLETIONS, GENERIC, Dialect, recognise
from httpx_cassette.dialects._framing import Event, dump_event_json
from httpx_cassette.dialects.anthropic_completions import STREAM

from ..keying import call, key_of
from ..stream_proof import SIZES, WIRE_SIZES, Case, cases, check_assembled, check_cut, watched

ASKED: dict[str, Json] = {"model": "m", "max_tokens_to_sample": 9, "prompt": "\n\nHuman: Hi\n\nAssistant:"}


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v1/complete", ASKED, ANTHROPIC_COMPLETIONS),
        ("/v1/complete", {"model": "m", "prompt": "hi"}, GENERIC),
        ("/v1/complete", {**ASKED, "prompt": ["hi"]}, GENERIC),
        ("/v2/complete", ASKED, GENERIC),
        ("/v1/complete", None, GENERIC),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """A prompt and the limit, without which it is refused."""
    assert dialect is recognise(path, body)


def test_a_prompt_is_kept_to_the_last_blank() -> None:
    """A model goes on behind it; a call that is not streamed may say so."""
    keys = [
        key_of(call({**ASKED, **more}, url="https://api.anthropic.com/v1/complete"))
        for more in ({}, {"stream": False}, {"prompt": f"{ASKED['prompt']} "}, {"stream": True})
    ]

    assert keys[0] == keys[1]
    assert 3 == len(set(keys))
    assert ANTHROPIC_COMPLETIONS.system is None


def piece(text: str, reason: Json = None, stop: Json = None) -> dict[str, Json]:
    return {"type": "completion", "id": "c", "completion": text, "stop_reason": reason, "stop": stop}


def event(value: Any) -> Event:
    return Event(dump_event_json(value), value["type"])


CASES = [
    Case("text", [piece(" He"), piece("llo"), piece("!", "max_tokens")], [piece(" Hello!", "max_tokens")]),
    Case(
        "stop",
        [piece("a"), piece("b"), piece("", "stop_sequence", "x")],
        [piece("ab"), piece("", "stop_sequence", "x")],
    ),
    Case("none", [piece("", "stop_sequence", "x")], [piece("", "stop_sequence", "x")]),
]


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled(case: Case, size: int) -> None:
    """Text to text; the reason to stop ends it."""
    check_assembled(case, event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut(case: Case, size: int) -> None:
    """And is the same script once it is assembled."""
    check_cut(case, event, STREAM, size)


@pytest.mark.parametrize(
    ("events", "is_complete", "finish", "error"),
    [
        ([piece("a")], False, None, None),
        ([piece("a"), piece("", "stop_sequence")], True, "stop_sequence", None),
        ([{"type": "ping"}], False, None, None),
        ([piece("a"), {"type": "x", "error": {"message": "Overloaded"}}], False, None, "Overloaded"),
    ],
)
def test_the_reason_to_stop_is_the_end(events: list[Any], is_complete: bool, finish: Any, error: Any) -> None:
    """There is no marker."""
    progress = watched(STREAM.progress(), map(event, events))

    assert (is_complete, finish, error) == (progress.is_complete, progress.finish, progress.error)


@pytest.mark.parametrize(
    ("document", "finish", "is_failure"),
    [
        (piece("a", "max_tokens"), "max_tokens", False),
        ({"type": "error", "error": {"message": "x"}}, None, True),
        ([], None, False),
    ],
)
def test_what_an_answer_says_of_itself(document: Any, finish: Any, is_failure: bool) -> None:
    """Why it ended, or that it is none."""
    found = ANTHROPIC_COMPLETIONS.finish(document), ANTHROPIC_COMPLETIONS.is_failure(document)

    assert (finish, is_failure) == found
