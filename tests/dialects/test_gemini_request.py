"""Calls of Gemini's generateContent: how they are told, what they must hold, which of them share a key."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from httpx_cassette import Call, KeyPolicy
from httpx_cassette._call import Json
from httpx_cassette.dialects import GEMINI, GENERIC, recognise

from ..keying import body_of, call, key_of

HOST = "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash"
URL = f"{HOST}:generateContent"
HI: Json = {"role": "user", "parts": [{"text": "hi"}]}
CONTENTS: Json = [HI]

assert GEMINI.system is not None
missing = GEMINI.system.missing


# -- which calls ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/v1beta/models/gemini-2.5-flash:generateContent",
        "/v1/models/gemini-2.5-flash:streamGenerateContent",
        "/v1beta/tunedModels/mine:generateContent",
        "/v1/projects/p/locations/us-east5/publishers/google/models/gemini-2.5-pro:generateContent",
        "/v1beta1/projects/p/locations/us-east5/endpoints/123:streamGenerateContent",
        "/v1/publishers/google/models/gemini-2.5-pro:generateContent",
        "/google-vertex/v1beta1/publishers/google/models/gemini-2.5-flash:generateContent",
    ],
)
def test_a_call_is_recognised_by_how_its_path_ends(path: str) -> None:
    """Of the Gemini API, of Vertex with a project, an endpoint or in express mode, and behind a gateway."""
    assert recognise(path, {"contents": CONTENTS}) is GEMINI
    assert recognise(path, {"contents": HI}) is GEMINI


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1beta/models/m:countTokens", {"contents": CONTENTS}),
        ("/v1beta/models/m:embedContent", {"content": HI}),
        ("/v1beta/models/m:batchEmbedContents", {"requests": []}),
        ("/v1beta/models/m:batchGenerateContent", {"batch": {}}),
        ("/v1/publishers/google/models/m:predict", {"instances": []}),
        ("/v1/publishers/anthropic/models/m:rawPredict", {"contents": CONTENTS}),
        ("/v1internal:generateContent", {"request": {"contents": CONTENTS}}),
        ("/v1beta/cachedContents", {"contents": CONTENTS}),
        ("/v1beta/models/m/generateContent", {"contents": CONTENTS}),
        ("/v1beta/models/m:generateContent", {"contents": "hi"}),
        ("/v1beta/models/m:generateContent", {}),
        ("/v1beta/models/m:generateContent", []),
        ("/v1beta/models/m:generateContent", None),
    ],
)
def test_other_calls_are_none(path: str, body: Any) -> None:
    """Counts, embeddings, batches and predictions: they need no system prompt."""
    assert recognise(path, body) is GENERIC


def test_the_path_says_whether_a_stream_is_wanted() -> None:
    """The body does not."""
    assert GEMINI.wants_stream("/v1beta/models/m:streamGenerateContent", {})
    assert not GEMINI.wants_stream("/v1beta/models/m:generateContent", {"stream": True})


# -- the system prompt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "members",
    [
        {"systemInstruction": {"parts": [{"text": "Be brief."}]}},
        {"system_instruction": {"parts": [{"text": "Be brief."}]}},
        {"systemInstruction": {"role": "user", "parts": [{"text": ""}, {"text": "x"}]}},
        {"systemInstruction": {"parts": {"text": "Be brief."}}},
        {"systemInstruction": "Be brief."},
        {"systemInstruction": None, "system_instruction": {"parts": [{"text": "x"}]}},
        {"cachedContent": "cachedContents/abc"},
        {"cached_content": "projects/p/locations/l/cachedContents/1"},
        {"cachedContent": "cachedContents/abc", "systemInstruction": {"parts": [{"text": " "}]}},
    ],
)
@pytest.mark.parametrize("anywhere", [False, True])
def test_a_system_prompt_that_says_something_will_do(members: dict[str, Json], anywhere: bool) -> None:
    """In either spelling; or the cache may hold it."""
    assert missing({"contents": CONTENTS, **members}, anywhere) is None


BLANK = "a systemInstruction whose text is blank"


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({}, "no systemInstruction"),
        ({"systemInstruction": None}, "no systemInstruction"),
        ({"systemInstruction": {}}, BLANK),
        ({"systemInstruction": ""}, BLANK),
        ({"systemInstruction": {"parts": []}}, BLANK),
        ({"systemInstruction": {"parts": [{"text": ""}]}}, BLANK),
        ({"systemInstruction": {"parts": [{"text": " \n\u200b"}, None, 7, {"inlineData": {}}]}}, BLANK),
        ({"system_instruction": {"parts": {"text": " "}}}, "a system_instruction whose text is blank"),
        ({"cachedContent": " "}, "no systemInstruction"),
        ({"cachedContent": 7}, "no systemInstruction"),
        ({"system": "Be brief."}, "no systemInstruction"),
    ],
)
def test_what_stood_there_instead_is_said(members: dict[str, Json], found: str) -> None:
    """A blank one is none."""
    assert found == missing({"contents": CONTENTS, **members}, False)


def test_anywhere_takes_a_content_with_the_role_system() -> None:
    """Some gateways do; one that is blank is none."""
    system: Json = {"role": "system", "parts": [{"text": "Be brief."}]}
    blank: Json = {"role": "system", "parts": [{"text": " "}]}

    assert missing({"contents": [HI, system]}, True) is None
    assert "no systemInstruction" == missing({"contents": [HI, system]}, False)
    assert "no systemInstruction" == missing({"contents": [HI, blank, None]}, True)
    assert "no systemInstruction" == missing({"contents": HI}, True)


# -- the key -------------------------------------------------------------------------------------------


def ask(*contents: Json, url: str = URL, **members: Json) -> Call:
    """Return a call; a content that is a text is one of the user."""
    listed = [
        {"role": "user", "parts": [{"text": content}]} if isinstance(content, str) else content
        for content in contents
    ]
    return call({"contents": listed or [HI], **members}, url=url)


def model(*parts: Json, **members: Json) -> Json:
    """Return a content of the model; a part that is a text has nothing else."""
    return {
        "role": "model",
        "parts": [{"text": part} if isinstance(part, str) else part for part in parts],
        **members,
    }


def answer(*parts: Json) -> Json:
    """Return a content of the user with these parts."""
    return {"role": "user", "parts": list(parts)}


def called(ident: str, name: str = "f", **members: Json) -> Json:
    return {"functionCall": {"id": ident, "name": name, "args": {}}, **members}


def replied(ident: str, value: Json = 1) -> Json:
    return {"functionResponse": {"id": ident, "name": "f", "response": {"result": value}}}


class Pair(NamedTuple):
    """Two calls, and the policy of both."""

    one: Call
    two: Call
    policy: KeyPolicy = KeyPolicy()


SIGNED: Json = {"text": "b ", "thoughtSignature": "c2ln"}
IMAGE = "iVBORw0KGgo" * 120

SAME = {
    "key-of-a-rest-user": Pair(ask(url=f"{URL}?key=AIzaA"), ask(url=f"{URL}?key=AIzaB")),
    "key-and-alt": Pair(
        ask(url=f"{HOST}:streamGenerateContent?alt=sse&key=AIzaA"),
        ask(url=f"{HOST}:streamGenerateContent?alt=sse"),
    ),
    "one-candidate": Pair(ask(generationConfig={"candidateCount": 1}), ask()),
    "plain-text": Pair(ask(generation_config={"response_mime_type": "text/plain"}), ask()),
    "automatic-calls": Pair(ask(toolConfig={"functionCallingConfig": {"mode": "AUTO"}}), ask()),
    "no-ops-of-sdks": Pair(
        ask(generationConfig={}, safetySettings=[], tools=[], toolConfig={}, labels={}, cachedContent=None),
        ask(),
    ),
    "nulls-below": Pair(ask(generationConfig={"temperature": None, "stopSequences": []}), ask()),
    "trailing-blanks": Pair(ask("a \nb\t"), ask("a\nb")),
    "blanks-in-the-system-prompt": Pair(
        ask(systemInstruction={"parts": [{"text": "x "}]}), ask(systemInstruction={"parts": [{"text": "x"}]})
    ),
    "ids-of-calls": Pair(
        ask("x", model(called("a"), called("b")), answer(replied("b"), replied("a"))),
        ask("x", model(called("b"), called("zz")), answer(replied("zz"), replied("b"))),
    ),
    "ids-in-the-other-spelling": Pair(
        ask(model({"function_call": {"id": "a"}}), answer({"function_response": {"id": "a"}})),
        ask(model({"function_call": {"id": "b"}}), answer({"function_response": {"id": "b"}})),
    ),
    "pieces-of-a-stream": Pair(
        ask("x", model("Hel"), model("lo "), model("there"), "y"), ask("x", model("Hello there"), "y")
    ),
    "pieces-in-one-content": Pair(ask("x", model("Hel", "lo"), "y"), ask("x", model("Hello"), "y")),
    "pieces-with-empty-ones": Pair(
        ask("x", model(""), model("Hello"), model(""), "y"), ask("x", model("Hello"), "y")
    ),
    "pieces-up-to-a-signature": Pair(
        ask("x", model("a"), model(SIGNED), model("c"), "y"),
        ask("x", model({**SIGNED, "text": "ab "}, "c"), "y"),
    ),
    "pieces-of-thoughts": Pair(
        ask(
            "x", model({"text": "a", "thought": True}), model({"text": "b", "thought": True}), model("c"), "y"
        ),
        ask("x", model({"text": "ab", "thought": True}, "c"), "y"),
    ),
    "pieces-with-calls": Pair(
        ask("x", model(called("a")), model(called("b")), model(""), answer(replied("a"))),
        ask("x", model(called("a"), called("b"), ""), answer(replied("a"))),
    ),
    "pieces-of-a-prefill": Pair(ask("x", model("a "), model("b ")), ask("x", model("a b "))),
}

DIFFERENT = {
    "model": Pair(ask(), ask(url=URL.replace("flash", "pro"))),
    "stream-or-not": Pair(ask(), ask(url=f"{HOST}:streamGenerateContent")),
    "alt": Pair(ask(url=f"{HOST}:streamGenerateContent"), ask(url=f"{HOST}:streamGenerateContent?alt=sse")),
    "numbers-for-names": Pair(ask(), ask(url=f"{URL}?%24alt=json%3Benum-encoding%3Dint")),
    "temperature": Pair(ask(generationConfig={"temperature": 1}), ask()),
    "thinking": Pair(ask(generationConfig={"thinkingConfig": {"thinkingBudget": 0}}), ask()),
    "two-candidates": Pair(ask(generationConfig={"candidateCount": 2}), ask()),
    "any-schema": Pair(ask(generationConfig={"responseJsonSchema": {}}), ask()),
    "calls-of-any": Pair(ask(toolConfig={"functionCallingConfig": {"mode": "ANY"}}), ask()),
    "spelling": Pair(
        ask(systemInstruction={"parts": [{"text": "x"}]}), ask(system_instruction={"parts": [{"text": "x"}]})
    ),
    "defaults-off": Pair(ask(generationConfig={"candidateCount": 1}), ask(), KeyPolicy(defaults=False)),
    "cache": Pair(ask(cachedContent="cachedContents/a"), ask(cachedContent="cachedContents/b")),
    "system-prompt": Pair(*(ask(systemInstruction={"parts": [{"text": text}]}) for text in "ab")),
    "texts-of-the-user": Pair(ask(answer({"text": "a"}, {"text": "b"})), ask(answer({"text": "ab"}))),
    "contents-of-the-user": Pair(ask("a", "b"), ask("ab")),
    "thought-or-answer": Pair(
        ask("x", model({"text": "a", "thought": True}), "y"), ask("x", model("a"), "y")
    ),
    "thought-in-an-answer": Pair(
        ask("x", model("a", {"text": "b", "thought": True}, "c"), "y"),
        ask("x", model("ac", {"text": "b", "thought": True}), "y"),
    ),
    "signature": Pair(
        ask("x", model({"text": "a", "thoughtSignature": "c2ln"}), "y"), ask("x", model("a"), "y")
    ),
    "place-of-a-signature": Pair(
        ask("x", model({"text": "a", "thoughtSignature": "c2ln"}, "b"), "y"),
        ask("x", model("a", {"text": "b", "thoughtSignature": "c2ln"}), "y"),
    ),
    "blanks-in-what-is-signed": Pair(
        ask("x", model(SIGNED), "y"), ask("x", model({**SIGNED, "text": "b"}), "y")
    ),
    "blanks-in-a-thought": Pair(
        *(ask("x", model({"text": text, "thought": True}), "y") for text in ("a ", "a"))
    ),
    "blanks-in-a-prefill": Pair(ask("x", model("a ")), ask("x", model("a"))),
    "blanks-between-pieces": Pair(
        ask("x", model("a "), model("b"), "y"), ask("x", model("a"), model("b"), "y")
    ),
    "order-of-parts": Pair(ask("x", model("a", called("a")), "y"), ask("x", model(called("a"), "a"), "y")),
    "results-changed-over": Pair(
        ask("x", model(called("a"), called("b")), answer(replied("a", 1), replied("b", 2))),
        ask("x", model(called("a"), called("b")), answer(replied("b", 1), replied("a", 2))),
    ),
    "arguments": Pair(
        *(ask("x", model({"functionCall": {"name": "f", "args": {"a": text}}})) for text in ("a ", "a"))
    ),
    "images": Pair(
        *(
            ask(answer({"inlineData": {"mimeType": "image/png", "data": f"{IMAGE}{mark}"}}))
            for mark in ("AAAA", "AAAB")
        )
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_calls_that_mean_the_same_share_a_key(name: str) -> None:
    """Defaults as documented, ids that only refer, and answers in pieces."""
    pair = SAME[name]

    assert key_of(pair.one, pair.policy) == key_of(pair.two, pair.policy)


@pytest.mark.parametrize("name", DIFFERENT)
def test_calls_that_may_be_answered_otherwise_do_not(name: str) -> None:
    """Whatever no documentation calls the same."""
    pair = DIFFERENT[name]

    assert key_of(pair.one, pair.policy) != key_of(pair.two, pair.policy)


def test_a_secret_in_several_pieces_is_redacted() -> None:
    """It is joined before anybody looks for it: cut otherwise, the key is the same."""
    secret = "postgres://ann:open-sesame-7@db.example.com/x"
    made = [
        ask("x", *(model(secret[start : start + size]) for start in range(0, len(secret), size)), "y")
        for size in (7, 100)
    ]

    assert 1 == len({key_of(each) for each in made})
    assert "open-sesame" not in json.dumps(body_of(made[0]))


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "finish"),
    [
        ({"candidates": [{"finishReason": "STOP"}]}, "STOP"),
        ({"candidates": [{"finishReason": 1}]}, 1),
        (
            {"candidates": [{"finishReason": "STOP", "index": 1}, {"finishReason": "SAFETY"}]},
            ["SAFETY", "STOP"],
        ),
        ({"candidates": [{"finishReason": "STOP"}, {"finishReason": "SAFETY"}]}, ["STOP", "SAFETY"]),
        ({"candidates": [{}]}, None),
        ({"candidates": [{"finishReason": 0}]}, None),
        ({"candidates": ["x"]}, None),
        ({"candidates": {}}, None),
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
        ({"promptFeedback": {"blockReason": "BLOCK_REASON_UNSPECIFIED"}}, None),
        ({"promptFeedback": []}, None),
        ([], None),
        ("x", None),
    ],
)
def test_the_finish_reason_of_an_answer(document: Any, finish: Any) -> None:
    """One, or the list of them by index; or why the prompt was refused."""
    assert finish == GEMINI.finish(document)


@pytest.mark.parametrize(
    ("document", "is_failure"),
    [
        ({"error": {"code": 500, "message": "x"}}, True),
        ([{"error": {"code": 500, "message": "x"}}], True),
        ({"error": None, "candidates": []}, False),
        ({"candidates": []}, False),
        ([], False),
        ("x", False),
    ],
)
def test_an_error_with_a_good_status_is_a_failure(document: Any, is_failure: bool) -> None:
    """Alone, or in an array."""
    assert is_failure is GEMINI.is_failure(document)


def test_the_defaults_are_those_of_google() -> None:
    """A hit that rests on them elsewhere is told."""
    is_own = GEMINI.folds.is_own_host

    assert is_own("generativelanguage.googleapis.com")
    assert is_own("us-east5-aiplatform.googleapis.com")
    assert not is_own("googleapis.com.example.com")
    assert not is_own("localhost")


@pytest.mark.parametrize(
    ("modalities", "is_missing"),
    [
        (["AUDIO"], False),
        (["Image"], False),
        (["TEXT", "IMAGE"], True),
        (["Text"], True),
        ([], True),
        ("x", True),
    ],
)
def test_speech_and_images_need_no_system_instruction(modalities: Any, is_missing: bool) -> None:
    """Models that make them take none."""
    assert GEMINI.system is not None
    body = {"contents": [], "generationConfig": {"responseModalities": modalities}}

    assert is_missing is (GEMINI.system.missing(body, False) is not None)
