"""Requests of OpenAI's legacy completions: where they are made, and what is one key."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Call
from httpx_cassette.dialects import GENERIC, MISTRAL, OPENAI_COMPLETIONS, Dialect, recognise

from ..keying import call, draft_of, key_of, slow_document

URL = "https://api.openai.com/v1/completions"
LOCAL = "http://localhost:8000/v1/completions"


def complete(url: str = URL, prompt: Any = "Say hi:", **members: Any) -> Call:
    """Return a call for one prompt."""
    return call({"model": "m", "prompt": prompt, **members}, url=url)


# -- where they are made -------------------------------------------------------------------------------

ASKED = {"model": "m", "prompt": "hi"}


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v1/completions", ASKED, OPENAI_COMPLETIONS),
        ("/v1/completions", {**ASKED, "prompt": ["hi", "ho"]}, OPENAI_COMPLETIONS),
        ("/v1/completions", {**ASKED, "prompt": [1, 2]}, OPENAI_COMPLETIONS),
        ("/inference/v1/completions", ASKED, OPENAI_COMPLETIONS),
        ("/beta/completions", ASKED, OPENAI_COMPLETIONS),
        ("/openai/deployments/m/completions", {"prompt": "hi"}, OPENAI_COMPLETIONS),
        ("/v1/fim/completions", ASKED, MISTRAL),
        ("/v1/agents/completions", ASKED, GENERIC),
        ("/v1/chat/completions", ASKED, GENERIC),
        # llama.cpp's own format.
        ("/completions", ASKED, GENERIC),
        # An application's own address.
        ("/api/completions", {"prompt": "hi"}, GENERIC),
        ("/v1/completions", {**ASKED, "prompt": None}, GENERIC),
        ("/v1/completions", {"model": "m", "messages": []}, GENERIC),
        ("/v1/completions/x", ASKED, GENERIC),
        ("/v1/completions", None, GENERIC),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """A prompt and a model; not where others have the same path."""
    assert dialect is recognise(path, body)


def test_there_is_no_system_prompt_to_guard() -> None:
    """A prompt has no place for one of its own."""
    assert OPENAI_COMPLETIONS.system is None


# -- what is one key -----------------------------------------------------------------------------------

OPTIONS = {"include_usage": False, "include_obfuscation": True}

SAME: dict[str, tuple[Call, Call]] = {
    "defaults": (complete(LOCAL), complete(LOCAL, n=1, echo=False, stream=False)),
    "limit": (complete(), complete(max_tokens=16)),
    "sampling": (complete(), complete(temperature=1.0, top_p=1, presence_penalty=0, frequency_penalty=0)),
    "nothing-said": (
        complete(LOCAL),
        complete(LOCAL, stop=None, suffix=None, logprobs=None, best_of=None, max_tokens=None, logit_bias={}),
    ),
    "options": (complete(stream=True), complete(stream=True, stream_options=OPTIONS)),
}


@pytest.mark.parametrize("name", SAME)
def test_these_are_one_key(name: str) -> None:
    """What is documented to be the same request."""
    one, other = SAME[name]

    assert key_of(one) == key_of(other)
    assert slow_document(draft_of(one)) == slow_document(draft_of(other))


DIFFERENT: dict[str, tuple[Call, Call]] = {
    "stream": (complete(), complete(stream=True)),
    # A model goes on behind the last character.
    "blanks": (complete(), complete(prompt="Say hi: ")),
    "suffix": (complete(suffix="x"), complete(suffix="x ")),
    "tokens": (complete(prompt=[1, 2]), complete(prompt=[2, 1])),
    # Another server has another limit, and other settings.
    "limit": (complete(LOCAL), complete(LOCAL, max_tokens=16)),
    "sampling": (complete(LOCAL), complete(LOCAL, temperature=1)),
    # With another n than 1 it is refused.
    "best-of": (complete(n=2), complete(n=2, best_of=1)),
    "logprobs": (complete(), complete(logprobs=0)),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_are_two_keys(name: str) -> None:
    """What may change the answer, and what holds for OpenAI's own host alone."""
    one, other = DIFFERENT[name]

    assert key_of(one) != key_of(other)
