"""Requests of Hugging Face's text generation: where it is spoken, and what is one key."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Call
from httpx_cassette._call import Json
from httpx_cassette.dialects import GENERIC, HUGGINGFACE, OPENAI_CHAT, Dialect, recognise
from tests.keying import call, key_of

MODEL = "https://api-inference.huggingface.co/models/HuggingFaceH4/zephyr-7b-beta"


def generate(url: str = MODEL, prompt: str = "Say hi:", **members: Any) -> Call:
    """Return a call for one prompt."""
    return call({"inputs": prompt, "parameters": {}, "stream": False, **members}, url=url)


# -- where it is spoken --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/generate", {"inputs": "hi"}, HUGGINGFACE),
        ("/generate_stream", {"inputs": "hi", "parameters": {}}, HUGGINGFACE),
        ("/v1/x/generate_stream", {"inputs": "hi"}, HUGGINGFACE),
        ("/", {"inputs": "hi", "parameters": {}, "stream": False}, HUGGINGFACE),
        ("", {"inputs": "hi", "stream": True}, HUGGINGFACE),
        ("/endpoints/e/invocations", {"inputs": "hi", "stream": False}, HUGGINGFACE),
        ("/models/gpt2", {"inputs": "hi", "stream": False}, HUGGINGFACE),
        ("/models/HuggingFaceH4/zephyr-7b-beta", {"inputs": "hi", "stream": False}, HUGGINGFACE),
        ("/hf-inference/models/a/b", {"inputs": "hi", "parameters": {}, "stream": True}, HUGGINGFACE),
        # Another task: a vector, an answer to a question, a pipeline by its name.
        ("/models/a/b", {"inputs": "hi"}, GENERIC),
        ("/models/a/b", {"inputs": {"question": "Who?", "context": "I."}, "parameters": {}}, GENERIC),
        ("/models/a/b", {"inputs": ["hi", "ho"], "stream": False}, GENERIC),
        ("/models/a/b/pipeline/feature-extraction", {"inputs": "hi", "stream": False}, GENERIC),
        ("/pipeline/feature-extraction/a/b", {"inputs": "hi", "stream": False}, GENERIC),
        # Parameters have the other tasks, too: a classifier, a translator, a model of any kind.
        ("/models/a/b", {"inputs": "good", "parameters": {}}, GENERIC),
        ("/models/a/b", {"inputs": "good", "parameters": {"top_k": None}}, GENERIC),
        ("/models/a/b", {"inputs": "good", "parameters": {"candidate_labels": ["x", "y"]}}, GENERIC),
        ("/models/a/b", {"inputs": "gut", "parameters": {"src_lang": "de", "max_new_tokens": 9}}, GENERIC),
        ("/endpoints/e/invocations", {"inputs": "good", "parameters": {}}, GENERIC),
        ("/", {"inputs": "good", "parameters": {}}, GENERIC),
        ("/models/a/b", {"inputs": "hi", "parameters": None}, GENERIC),
        # An application's own address.
        ("/", {"inputs": "hi"}, GENERIC),
        ("/search", {"inputs": "hi", "parameters": {}}, GENERIC),
        ("/generate", {"prompt": "hi"}, GENERIC),
        ("/generate", None, GENERIC),
        # Chat at the same server.
        ("/v1/chat/completions", {"model": "tgi", "messages": [{"role": "user"}]}, OPENAI_CHAT),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """A prompt, and where the path says little the member that only text generation has beside it."""
    assert dialect is recognise(path, body)


@pytest.mark.parametrize(
    ("path", "members", "wants_stream"),
    [
        ("/generate", {}, False),
        ("/generate", {"stream": True}, False),
        ("/generate_stream", {}, True),
        ("/generate_stream", {"stream": False}, True),
        ("/models/a/b", {}, False),
        ("/models/a/b", {"stream": True}, True),
        ("/", {"stream": True}, True),
        ("/invocations", {"stream": False}, False),
    ],
)
def test_the_path_or_the_body_asks_for_a_stream(
    path: str, members: dict[str, Json], wants_stream: bool
) -> None:
    """TGI has a path for either; everywhere else a member says it."""
    assert wants_stream is HUGGINGFACE.wants_stream(path, {"inputs": "hi", "parameters": {}, **members})


def test_there_is_no_system_prompt_to_guard() -> None:
    """A prompt has no place for one of its own."""
    assert HUGGINGFACE.system is None


# -- what is one key -----------------------------------------------------------------------------------

CLASSIFY = call({"inputs": "good", "parameters": {}}, url=MODEL)
ALL_LABELS = call({"inputs": "good", "parameters": {"top_k": None}}, url=MODEL)
TGI = "http://localhost:8080/generate"

DIFFERENT: dict[str, tuple[Call, Call]] = {
    "stream": (generate(), generate(stream=True)),
    # Somebody's own server at such a path may stream where nothing is said.
    "stream-unsaid": (generate(), call({"inputs": "Say hi:", "parameters": {}}, url=MODEL)),
    # A pipeline that is told null does not take what its model sets.
    "null": (generate(), generate(parameters={"top_k": None})),
    "null-at-tgi": (generate(TGI), generate(TGI, parameters={"top_k": None})),
    "no-stop": (generate(), generate(parameters={"stop": []})),
    # Another task, at the same path: null is all labels, nothing the first five.
    "labels": (CLASSIFY, ALL_LABELS),
    "model": (generate(), generate(url=MODEL + "-2")),
    # A model goes on behind the last character.
    "blanks": (generate(), generate(prompt="Say hi: ")),
    # Without it a hundred tokens, with null as many as there may be.
    "length": (generate(), generate(parameters={"max_new_tokens": None})),
    # A pipeline takes it from the model, TGI does not.
    "sampling": (generate(), generate(parameters={"do_sample": False})),
    # The documentation says true and the code false.
    "details": (generate(), generate(parameters={"details": False})),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_are_two_keys(name: str) -> None:
    """What may change the answer, and what no two servers agree on."""
    one, other = DIFFERENT[name]

    assert key_of(one) != key_of(other)


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "finish", "is_failure"),
    [
        ({"generated_text": "hi", "details": {"finish_reason": "length"}}, "length", False),
        ([{"generated_text": "hi", "details": {"finish_reason": "eos_token"}}], "eos_token", False),
        ([{"generated_text": "hi"}], None, False),
        ({"generated_text": "hi", "details": None}, None, False),
        ({"error": "Model is overloaded", "error_type": "overloaded"}, None, True),
        ([{"error": "overloaded"}], None, True),
        ({"error": ""}, None, False),
        ([], None, False),
        ([0.5, 0.25], None, False),
        ("hi", None, False),
    ],
)
def test_what_an_answer_says_of_itself(document: Any, finish: Any, is_failure: bool) -> None:
    """Why it ended, or that it is none; as a document or as the one element of a list."""
    assert (finish, is_failure) == (HUGGINGFACE.finish(document), HUGGINGFACE.is_failure(document))
