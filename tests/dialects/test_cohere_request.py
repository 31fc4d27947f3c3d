"""Requests of Cohere's chats, of both versions: where they are spoken, the system prompt, what is one key."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Call
from httpx_cassette._call import Json
from httpx_cassette.dialects import COHERE, COHERE_V1, GENERIC, OPENAI_CHAT, WRITER, Dialect, recognise
from tests.keying import body_of, call, draft_of, key_of, slow_document

V2, V1 = (f"https://api.cohere.com/{version}/chat" for version in ("v2", "v1"))
SYSTEM: Json = {"role": "system", "content": "Be brief."}
HI: Json = {"role": "user", "content": "hi"}


def chat(*messages: Json, url: str = V2, **members: Any) -> Call:
    """Return a call of the second version."""
    return call({"model": "m", "messages": list(messages) or [SYSTEM, HI], **members}, url=url)


def old(*, url: str = V1, **members: Any) -> Call:
    """Return a call of the first version."""
    return call({"model": "m", "message": "hi", "preamble": "Be brief.", **members}, url=url)


def use(ident: str) -> dict[str, Json]:
    return {"id": ident, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def said(*calls: Json, **members: Json) -> dict[str, Json]:
    return {"role": "assistant", "tool_calls": list(calls), **members}


def result(ident: str) -> Json:
    return {"role": "tool", "tool_call_id": ident, "content": "1"}


# -- where it is spoken --------------------------------------------------------------------------------

MESSAGES = {"model": "m", "messages": [HI]}


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v2/chat", MESSAGES, COHERE),
        ("/cohere/v2/chat", MESSAGES, COHERE),
        ("/v2/chat", {"messages": [HI]}, GENERIC),
        ("/v2/chat", {"model": "m", "messages": "hi"}, GENERIC),
        ("/v2/chat/tokens", MESSAGES, GENERIC),
        ("/v1/chat", {"model": "m", "message": "hi"}, COHERE_V1),
        ("/v1/chat", {"message": "hi", "stream": False}, COHERE_V1),
        ("/v1/chat", {"message": "hi", "chat_history": []}, COHERE_V1),
        # Anybody's.
        ("/v1/chat", {"message": "hi"}, GENERIC),
        ("/v1/chat", {"message": {"text": "hi"}, "model": "m"}, GENERIC),
        ("/v1/chat", {"messages": [HI]}, GENERIC),
        ("/v1/chat", None, GENERIC),
        # Another vendor's.
        ("/v1/chat", MESSAGES, WRITER),
        # No chats.
        ("/v2/rerank", {"model": "m", "query": "q", "documents": ["a"]}, GENERIC),
        ("/v1/rerank", {"query": "q", "documents": ["a"]}, GENERIC),
        ("/v2/embed", {"model": "m", "texts": ["a"], "input_type": "search_query"}, GENERIC),
        ("/v1/embed", {"texts": ["a"], "model": "m"}, GENERIC),
        ("/v1/classify", {"inputs": ["a"]}, GENERIC),
        ("/v1/generate", {"prompt": "hi", "model": "m"}, GENERIC),
        # OpenAI's format at the same server.
        ("/compatibility/v1/chat/completions", MESSAGES, OPENAI_CHAT),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """Each version by its own; what is no chat has no system prompt and is exempt."""
    assert dialect is recognise(path, body)


@pytest.mark.parametrize(("dialect", "path"), [(COHERE, "/v2/chat"), (COHERE_V1, "/v1/chat")])
def test_a_stream_is_asked_for_in_the_body(dialect: Dialect, path: str) -> None:
    """The default is one document."""
    assert [True, False, False] == [
        dialect.wants_stream(path, body) for body in ({"stream": True}, {"stream": False}, {})
    ]


# -- the system prompt ---------------------------------------------------------------------------------

assert COHERE.system is not None
assert COHERE_V1.system is not None
missing, missing_v1 = COHERE.system.missing, COHERE_V1.system.missing

NONE_ANYWHERE = "no message with the role system whose content is not blank"


@pytest.mark.parametrize(
    ("messages", "found", "found_anywhere"),
    [
        ([SYSTEM, HI], None, None),
        ([{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, HI], None, None),
        ([], "no messages", "no messages"),
        (None, "no messages", "no messages"),
        ([HI, SYSTEM], "a message with the role 'user'", None),
        ([{"role": "system", "content": " \n"}], "a system message whose content is blank", NONE_ANYWHERE),
        ([{"role": "system"}, SYSTEM], "a system message whose content is blank", None),
        (["hi"], "no message object", NONE_ANYWHERE),
    ],
)
def test_the_system_prompt_is_the_first_message(
    messages: Json, found: str | None, found_anywhere: str | None
) -> None:
    """Or any, where that is wanted."""
    body: dict[str, Json] = {"model": "m", "messages": messages}

    assert (found, found_anywhere) == (missing(body, False), missing(body, True))


OF_SYSTEM: Json = {"role": "SYSTEM", "message": "Be brief."}
OF_USER: Json = {"role": "USER", "message": "hi"}


@pytest.mark.parametrize(
    ("members", "found", "found_anywhere"),
    [
        ({"preamble": "Be brief."}, None, None),
        ({}, "no preamble", "no preamble"),
        ({"preamble": None}, "no preamble", "no preamble"),
        ({"preamble": " "}, "a preamble that is blank", "a preamble that is blank"),
        ({"chat_history": [OF_SYSTEM, OF_USER]}, None, None),
        ({"chat_history": [OF_USER, OF_SYSTEM]}, "no preamble", None),
        ({"chat_history": [{"role": "SYSTEM", "message": ""}]}, "no preamble", "no preamble"),
        ({"chat_history": ["hi", {"role": "SYSTEM"}]}, "no preamble", "no preamble"),
        ({"chat_history": {}}, "no preamble", "no preamble"),
        # What is at the server, or in the message as a whole.
        ({"conversation_id": "c1"}, None, None),
        ({"conversation_id": ""}, "no preamble", "no preamble"),
        ({"raw_prompting": True}, None, None),
        ({"raw_prompting": False}, "no preamble", "no preamble"),
    ],
)
def test_the_system_prompt_of_the_first_version_is_the_preamble(
    members: dict[str, Json], found: str | None, found_anywhere: str | None
) -> None:
    """Or a message of the system at the beginning of the history, or what cannot be told apart."""
    body = {"message": "hi", "stream": False, **members}

    assert (found, found_anywhere) == (missing_v1(body, False), missing_v1(body, True))


# -- what is one key -----------------------------------------------------------------------------------

NO_CHOICE = {"temperature": 0.3, "p": 0.75, "k": 0, "frequency_penalty": 0.0, "presence_penalty": 0}
IMAGE: Json = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
AUTO: Json = {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "auto"}}
CITED: dict[str, Json] = {"start": 0, "end": 2, "text": "hi", "sources": []}

SAME: dict[str, tuple[Call, Call]] = {
    "defaults": (
        chat(),
        chat(**NO_CHOICE, stream=False, logprobs=False, priority=0, safety_mode="CONTEXTUAL"),
    ),
    "nothing-said": (chat(), chat(documents=[], tools=[], stop_sequences=None, seed=None, thinking=None)),
    "blanks": (chat(SYSTEM, HI), chat({"role": "system", "content": "Be brief. "}, HI)),
    "one-text": (
        chat(SYSTEM, HI),
        chat(SYSTEM, {"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    ),
    "ids": (
        chat(SYSTEM, HI, said(use("a"), use("b")), result("b"), result("a")),
        chat(SYSTEM, HI, said(use("x"), use("y")), result("y"), result("x")),
    ),
    "echo": (
        chat(SYSTEM, HI, said(use("a")), result("a")),
        chat(SYSTEM, HI, said(use("a"), content=[], tool_plan="", citations=None), result("a")),
    ),
    "echo-dumped": (
        chat(SYSTEM, HI, {"role": "assistant", "content": "hi", "citations": [CITED]}, HI),
        chat(
            SYSTEM,
            HI,
            {
                "role": "assistant",
                "content": "hi",
                "citations": [{**CITED, "type": None, "content_index": None}],
                "tool_calls": None,
                "tool_plan": None,
            },
            HI,
        ),
    ),
    "detail": (
        chat(SYSTEM, {"role": "user", "content": [IMAGE]}),
        chat(SYSTEM, {"role": "user", "content": [AUTO]}),
    ),
    "v1-defaults": (
        old(),
        old(**NO_CHOICE, stream=False, search_queries_only=False, force_single_step=False),
    ),
    "v1-nothing-said": (old(), old(chat_history=[], connectors=[], tools=None, documents=[], seed=None)),
    "v1-blanks": (
        old(chat_history=[OF_USER]),
        old(message="hi ", preamble="Be brief. ", chat_history=[{"role": "USER", "message": "hi\t"}]),
    ),
    "v1-connectors": (
        old(connectors=[{"id": "web"}]),
        old(
            connectors=[
                {"id": "web", "continue_on_failure": False, "user_access_token": "t", "options": None}
            ]
        ),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_these_are_one_key(name: str) -> None:
    """Documented defaults, what is sent for nothing, and ids that only tie a call to its result."""
    one, other = SAME[name]

    assert key_of(one) == key_of(other)
    assert slow_document(draft_of(one)) == slow_document(draft_of(other))


HOME = "http://localhost:8000/cohere/v2/chat"

DIFFERENT: dict[str, tuple[Call, Call]] = {
    "stream": (chat(), chat(stream=True)),
    "temperature": (chat(), chat(temperature=0.2)),
    "at-home": (chat(url=HOME), chat(url=HOME, temperature=0.3)),
    "tool-choice": (
        chat(tools=[{"type": "function"}]),
        chat(tools=[{"type": "function"}], tool_choice="NONE"),
    ),
    "citations": (chat(), chat(citation_options={"mode": "FAST"})),
    "max-tokens": (chat(), chat(max_tokens=9)),
    "results-swapped": (
        chat(SYSTEM, HI, said(use("a"), use("b")), result("b")),
        chat(SYSTEM, HI, said(use("a"), use("b")), result("a")),
    ),
    # Only of a user's content it is said to be the same.
    "one-text-of-the-system": (
        chat(SYSTEM, HI),
        chat({"role": "system", "content": [{"type": "text", "text": "Be brief."}]}, HI),
    ),
    "prefill-blanks": (
        chat(SYSTEM, HI, {"role": "assistant", "content": "So"}),
        chat(SYSTEM, HI, {"role": "assistant", "content": "So "}),
    ),
    "plan": (chat(SYSTEM, said(use("a"))), chat(SYSTEM, said(use("a"), tool_plan="I look."))),
    "v1-stream": (old(), old(stream=True)),
    "v1-raw": (old(raw_prompting=True), old(raw_prompting=True, message="hi ")),
    "v1-preamble": (old(), old(preamble="Be long.")),
    "v1-conversation": (old(conversation_id="a"), old(conversation_id="b")),
    "v1-truncation": (old(), old(prompt_truncation="OFF")),
    "v1-at-home": (old(url="http://10.0.0.1/v1/chat"), old(url="http://10.0.0.1/v1/chat", k=0)),
    "v1-connectors": (old(), old(connectors=[{"id": "web"}])),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_are_two_keys(name: str) -> None:
    """What may change the answer, and the sampling of servers that decide it themselves."""
    one, other = DIFFERENT[name]

    assert key_of(one) != key_of(other)


def test_the_token_for_a_connector_is_not_stored() -> None:
    """It is sent on to somebody else, in a header."""
    body = body_of(old(connectors=[{"id": "web", "user_access_token": "secret"}]))

    assert [{"id": "web"}] == body["connectors"]


def test_an_image_is_a_digest() -> None:
    """In a data URL, as in every format."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "iVBORw0KGgo" * 200}}
    body = body_of(chat(SYSTEM, {"role": "user", "content": [image]}))

    assert ["$bytes", "$sha256"] == sorted(body["messages"][1]["content"][0]["image_url"]["url"])


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "finish", "is_failure"),
    [
        ({"finish_reason": "COMPLETE"}, "COMPLETE", (False, False)),
        ({"finish_reason": "MAX_TOKENS"}, "MAX_TOKENS", (False, False)),
        ({"finish_reason": "ERROR"}, "ERROR", (True, True)),
        ({"finish_reason": "TIMEOUT"}, "TIMEOUT", (True, True)),
        # Of the first version alone. A refusal is an answer.
        ({"finish_reason": "ERROR_TOXIC"}, "ERROR_TOXIC", (False, False)),
        ({"finish_reason": "ERROR_LIMIT"}, "ERROR_LIMIT", (False, True)),
        ({"error": {"message": "x"}}, None, (True, True)),
        ({}, None, (False, False)),
        ([], None, (False, False)),
    ],
)
def test_what_an_answer_says_of_itself(document: Any, finish: Any, is_failure: tuple[bool, bool]) -> None:
    """Why it ended, or that it is none."""
    assert finish == COHERE.finish(document) == COHERE_V1.finish(document)
    assert is_failure == (COHERE.is_failure(document), COHERE_V1.is_failure(document))
