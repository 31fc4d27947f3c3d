"""Mistral's own calls: how they are told, what they must hold, and what in them means the same."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette._call import Json
from httpx_cassette.dialects import (
    GENERIC,
    MISTRAL,
    MISTRAL_CONVERSATIONS,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    Dialect,
    recognise,
)

from ..keying import HI, body_of, call, key_of, reading_of

HOST = "https://api.mistral.ai"
AGENT: dict[str, Json] = {"agent_id": "ag_1", "messages": [HI]}
FIM: dict[str, Json] = {"model": "codestral-latest", "prompt": "def f(", "suffix": "return a"}
START: dict[str, Json] = {"model": "mistral-medium-latest", "inputs": "hi"}
VERTEX = "/v1/projects/p/locations/l/publishers/mistralai/models/codestral@2405"


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v1/chat/completions", {"model": "m", "messages": [], "safe_prompt": True}, OPENAI_CHAT),
        ("/v1/agents/completions", AGENT, MISTRAL),
        ("/v1/agents/completions", {"messages": [HI]}, GENERIC),
        ("/v1/agents", {"model": "m", "name": "x"}, GENERIC),
        ("/v1/fim/completions", FIM, MISTRAL),
        ("/v1/completions", FIM, OPENAI_COMPLETIONS),
        (f"{VERTEX}:rawPredict", {"model": "m", "messages": [HI]}, MISTRAL),
        (f"{VERTEX}:streamRawPredict", FIM, MISTRAL),
        (f"{VERTEX}:rawPredict", {"instances": []}, GENERIC),
        ("/v1/conversations", START, MISTRAL_CONVERSATIONS),
        ("/v1/conversations", {"agent_id": "ag_1", "inputs": []}, MISTRAL_CONVERSATIONS),
        ("/v1/conversations", {"items": [], "metadata": {}}, GENERIC),
        ("/v1/conversations/conv_1", {"inputs": "hi"}, MISTRAL_CONVERSATIONS),
        ("/v1/conversations/conv_1", {"tool_confirmations": []}, MISTRAL_CONVERSATIONS),
        ("/v1/conversations/conv_1", {"metadata": {}}, GENERIC),
        ("/v1/conversations/conv_1", None, GENERIC),
        ("/v1/conversations/conv_1/items", {"items": []}, GENERIC),
        ("/v1/conversations/conv_1/history", None, GENERIC),
        ("/v1/conversations/conv_1/restart", {"from_entry_id": "msg_1"}, MISTRAL_CONVERSATIONS),
        ("/v1/ocr", {"model": "m", "document": {"type": "document_url"}}, GENERIC),
        ("/v1/embeddings", {"model": "m", "input": ["x"]}, GENERIC),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """Chat stays what it is on any host; OpenAI's conversations are others."""
    assert dialect is recognise(path, body)


@pytest.mark.parametrize(
    ("url", "body", "is_streamed"),
    [
        ("/v1/agents/completions#stream", {**AGENT, "stream": True}, True),
        ("/v1/conversations#stream", {**START, "stream": True}, True),
        ("/v1/conversations/conv_1#stream", {"inputs": "hi", "stream": True}, True),
        ("/v1/conversations/conv_1/restart#stream", {"from_entry_id": "x", "stream": True}, True),
        ("/v1/fim/completions", {**FIM, "stream": False}, False),
        (f"{VERTEX}:streamRawPredict#fim", FIM, True),
        (f"{VERTEX}:rawPredict#fim", FIM, False),
    ],
)
def test_what_is_asked_for_is_told_without_the_fragment(url: str, body: Any, is_streamed: bool) -> None:
    """The SDK marks its URLs with one; a server never sees it, and it is no part of the key."""
    path = reading_of(call(body, url=HOST + url)).target.path

    assert url.partition("#")[0] == path
    assert is_streamed is recognise(path, body).wants_stream(path, body)
    assert key_of(call(body, url=HOST + url)) == key_of(call(body, url=HOST + path))


# -- the system prompt ---------------------------------------------------------------------------------

SYSTEM: Json = {"role": "system", "content": "Be brief."}


def missing(dialect: Dialect, body: Any, anywhere: bool = False) -> str | None:
    assert dialect.system is not None
    return dialect.system.missing(body, anywhere)


@pytest.mark.parametrize(
    ("body", "anywhere", "found"),
    [
        (AGENT, False, None),
        (FIM, False, None),
        ({"messages": [SYSTEM, HI]}, False, None),
        ({"messages": [HI, SYSTEM]}, True, None),
        ({"messages": [HI]}, False, "a message with the role 'user'"),
        ({"messages": [HI], "agent_id": ""}, False, "a message with the role 'user'"),
        ({"messages": [HI], "prompt_mode": "reasoning"}, False, "a message with the role 'user'"),
        (
            {"messages": [{"role": "system", "content": " "}]},
            False,
            "a system message whose content is blank",
        ),
    ],
)
def test_what_stands_for_a_system_prompt_of_choices(body: Any, anywhere: bool, found: str | None) -> None:
    """An agent's, or a message; Mistral's own prompt for reasoning is not the user's, and FIM has none."""
    assert found == missing(MISTRAL, body, anywhere)


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({**START, "instructions": "Be brief."}, None),
        ({"agent_id": "ag_1", "inputs": "hi"}, None),
        ({"inputs": "hi"}, None),
        (START, "no instructions"),
        ({**START, "instructions": None}, "no instructions"),
        ({**START, "instructions": " \n\u200b"}, "blank instructions"),
        ({**START, "instructions": []}, "blank instructions"),
        ({**START, "agent_id": ""}, "no instructions"),
    ],
)
def test_what_stands_for_a_system_prompt_of_a_conversation(body: Any, found: str | None) -> None:
    """Instructions; an agent's, or those with which a conversation that goes on began, are at the server."""
    assert found == missing(MISTRAL_CONVERSATIONS, body) == missing(MISTRAL_CONVERSATIONS, body, True)


# -- what means the same -------------------------------------------------------------------------------


def agent(**members: Json) -> str:
    return key_of(call({**AGENT, **members}, url=f"{HOST}/v1/agents/completions"))


def fim(**members: Json) -> str:
    return key_of(call({**FIM, **members}, url=f"{HOST}/v1/fim/completions"))


def start(**members: Json) -> str:
    return key_of(call({**START, **members}, url=f"{HOST}/v1/conversations"))


def turn(ident: str, **members: Json) -> Json:
    function: Json = {"name": "f", "arguments": "{}"}
    return [
        HI,
        {"role": "assistant", "content": "", "tool_calls": [{"id": ident, "function": function}], **members},
        {"role": "tool", "tool_call_id": ident, "content": "1"},
    ]


def thought(text: str, **members: Json) -> Json:
    part: Json = {"type": "thinking", "thinking": [{"type": "text", "text": text}], **members}
    return [HI, {"role": "assistant", "content": [part]}, HI]


def test_which_completions_of_an_agent_share_a_key() -> None:
    """Documented defaults, nulls and ids that only refer make no difference."""
    assert agent() == agent(stream=False) == agent(response_format={"type": "text"})
    assert agent() == agent(tools=None, n=None, guardrails=None, metadata=None)
    assert agent(messages=[{"role": "user", "content": "hi \n"}]) == agent(
        messages=[{"role": "user", "content": "hi\n"}]
    )
    assert agent(messages=turn("a")) == agent(messages=turn("b")) == agent(messages=turn("a", prefix=False))
    assert agent(messages=thought("x", signature=None)) == agent(messages=thought("x"))


def test_which_completions_of_an_agent_do_not() -> None:
    """The model decides the temperature, a thought is sent back as it came, and a prefix is gone on with."""
    prefix: Json = {"role": "assistant", "content": "So "}
    keys = [
        agent(),
        agent(stream=True),
        agent(temperature=1),
        agent(n=1),
        agent(tools=[]),
        agent(agent_id="ag_2"),
        agent(messages=turn("a", prefix=True)),
        agent(messages=thought("x")),
        agent(messages=thought("x ")),
        agent(messages=[HI, {**prefix, "prefix": True}]),
        agent(messages=[HI, {**prefix, "prefix": True, "content": "So"}]),
    ]

    assert len(keys) == len(set(keys))


def test_which_calls_to_fill_in_share_a_key() -> None:
    """What is filled in goes between the last character and the first: no blank of the two is stripped."""
    assert fim() == fim(stream=False) == fim(temperature=None, stop=None)
    assert 3 == len({fim(), fim(prompt="def f( "), fim(suffix="return a ")})


def test_a_call_without_a_suffix_is_one_whose_suffix_is_null() -> None:
    """But not one whose suffix is empty."""
    bare = {name: value for name, value in FIM.items() if name != "suffix"}

    assert fim(suffix=None) == key_of(call(bare, url=f"{HOST}/v1/fim/completions"))
    assert fim(suffix=None) != fim(suffix="")


def test_which_conversations_share_a_key() -> None:
    """Blanks at the ends of lines and nulls; what the server stores, or hands over, is not left out."""
    entry: dict[str, Json] = {"type": "message.input", "role": "user", "content": "hi"}
    result: dict[str, Json] = {"type": "function.result", "tool_call_id": "a", "result": "1"}

    assert start() == start(stream=False) == start(store=None, tools=None, completion_args=None)
    assert start(inputs="hi ") == start()
    assert start(instructions="x \ny") == start(instructions="x\ny")
    assert start(inputs=[entry]) == start(inputs=[{**entry, "content": "hi\t", "prefix": False}])
    assert start(inputs=[entry]) == start(inputs=[{**entry, "completed_at": None}])
    assert start(completion_args={"temperature": 0, "top_p": None}) == start(
        completion_args={"temperature": 0}
    )
    differing = [
        start(),
        start(stream=True),
        start(store=True),
        start(handoff_execution="server"),
        start(inputs=[entry]),
        start(inputs=[{**entry, "role": "assistant", "prefix": True, "content": "hi "}]),
        start(inputs=[{**entry, "role": "assistant", "prefix": True}]),
        # The call that a result answers is at the server.
        start(inputs=[result]),
        start(inputs=[{**result, "tool_call_id": "b"}]),
    ]
    assert len(differing) == len(set(differing))


def test_a_token_for_a_server_of_tools_is_neither_stored_nor_in_the_key() -> None:
    """As the headers that hold one are not."""
    tools = [
        [{"type": "connector", "connector_id": "c", "authorization": {"type": "oauth2-token", "value": name}}]
        for name in ("one", "two")
    ]
    one, two = (call({**START, "tools": listed}, url=f"{HOST}/v1/conversations") for listed in tools)

    assert key_of(one) == key_of(two)
    assert [{"type": "connector", "connector_id": "c"}] == body_of(one)["tools"]


def test_a_signature_of_a_thought_is_kept_to_the_byte() -> None:
    """A server that wants it back refuses another, whatever it looks like."""
    signature = "EqQBAKIAQ3EGRSTUVWXYZ234/+by"
    body = body_of(
        call({**AGENT, "messages": thought("x", signature=signature)}, url=f"{HOST}/v1/agents/completions")
    )

    assert signature == body["messages"][1]["content"][0]["signature"]


def test_what_ocr_reads_is_kept_by_its_digest() -> None:
    """It has no table and needs none: its document is a data URL, and nobody misses a system prompt."""
    document: Json = {"type": "document_url", "document_url": f"data:application/pdf;base64,{'A' * 2000}"}
    asked = call({"model": "mistral-ocr-latest", "document": document}, url=f"{HOST}/v1/ocr")

    assert ["$bytes", "$sha256"] == sorted(body_of(asked)["document"]["document_url"])
    assert GENERIC.system is None


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("api.mistral.ai", True),
        ("codestral.mistral.ai", True),
        ("us-central1-aiplatform.googleapis.com", True),
        ("x.eastus2.models.ai.azure.com", True),
        ("mistral.ai.example", False),
        ("openrouter.ai", False),
    ],
)
def test_whose_defaults_they_are_is_told_by_the_name(host: str, is_own: bool) -> None:
    """Anywhere else a hit that rests on one is worth a warning."""
    assert is_own is MISTRAL.folds.is_own_host(host)
    assert is_own is MISTRAL_CONVERSATIONS.folds.is_own_host(host)


@pytest.mark.parametrize(
    ("answer", "is_failure"),
    [
        ({"object": "error", "message": "x", "code": "3051"}, True),
        ({"error": {"message": "x"}}, True),
        ({"outputs": [], "usage": {}}, False),
        ([], False),
    ],
)
def test_an_error_with_a_good_status_is_a_failure(answer: Any, is_failure: bool) -> None:
    """Of either kind of call."""
    assert is_failure is MISTRAL_CONVERSATIONS.is_failure(answer) is MISTRAL.is_failure(answer)


def test_the_finish_reason_of_an_answer() -> None:
    """One for each choice; a conversation has none."""
    assert "stop" == MISTRAL.finish({"choices": [{"finish_reason": "stop"}]})
    assert MISTRAL_CONVERSATIONS.finish({"outputs": []}) is None
