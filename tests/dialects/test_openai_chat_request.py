"""What a chat call has to hold before anything else happens: a system prompt."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from httpx_cassette.dialects import OPENAI_CHAT, recognise

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "hi"}

assert OPENAI_CHAT.system is not None
missing = OPENAI_CHAT.system.missing


@pytest.mark.parametrize(
    ("path", "body", "is_chat"),
    [
        ("/v1/chat/completions", {"messages": []}, True),
        ("/openai/deployments/m/chat/completions", {"messages": [USER]}, True),
        ("/v1/chat/completions/x", {"messages": []}, False),
        ("/v1/completions", {"messages": []}, False),
        ("/v1/embeddings", {"input": "x"}, False),
        ("/v1/chat/completions", {"messages": {}}, False),
        ("/v1/chat/completions", {"prompt": "x"}, False),
        ("/v1/chat/completions", [], False),
        ("/v1/chat/completions", None, False),
    ],
)
def test_a_chat_call_is_recognised_by_path_and_shape(path: str, body: Any, is_chat: bool) -> None:
    """Not by the host; and a body of another shape is none."""
    assert is_chat is (recognise(path, body) is OPENAI_CHAT)


@pytest.mark.parametrize(
    "first",
    [
        SYSTEM,
        {"role": "developer", "content": "Be brief."},
        {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
        {"role": "system", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]},
        {"role": "system", "content": "\u200b.", "name": "x"},
    ],
    ids=["system", "developer", "part", "second-part", "one-visible-character"],
)
def test_a_first_message_with_something_to_say_will_do(first: Any) -> None:
    """System or developer, text or parts."""
    assert missing({"messages": [first, USER]}, False) is None
    assert missing({"messages": [first]}, True) is None
    assert missing({"messages": [USER, first]}, True) is None


BLANK = "a {0} message whose content is blank"


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([], "no messages"),
        (None, "no messages"),
        ({"role": "system"}, "no messages"),
        ([USER], "a message with the role 'user'"),
        ([USER, SYSTEM], "a message with the role 'user'"),
        ([{"content": "x"}], "a message with the role None"),
        ([{"role": ["system"], "content": "x"}], "a message with the role ['system']"),
        ([{"role": "System", "content": "x"}], "a message with the role 'System'"),
        (["Be brief."], "no message object"),
        ([None], "no message object"),
        ([{"role": "system"}], BLANK.format("system")),
        ([{"role": "system", "content": None}], BLANK.format("system")),
        ([{"role": "system", "content": ""}], BLANK.format("system")),
        ([{"role": "developer", "content": " \t\n"}], BLANK.format("developer")),
        ([{"role": "system", "content": "\u200b\ufeff\u00a0\u2800"}], BLANK.format("system")),
        ([{"role": "system", "content": ""}, SYSTEM], BLANK.format("system")),
        ([{"role": "system", "content": []}], BLANK.format("system")),
        ([{"role": "system", "content": [{"type": "text", "text": " "}]}], BLANK.format("system")),
        ([{"role": "system", "content": [{"type": "text"}, "x", None]}], BLANK.format("system")),
        ([{"role": "system", "content": {"text": "x"}}], BLANK.format("system")),
        ([{"role": "system", "content": 5}], BLANK.format("system")),
    ],
)
def test_what_stood_there_instead_is_said(messages: Any, found: str) -> None:
    """The guard looks at the first message alone, and at what can be seen of it."""
    assert found == missing({"messages": messages}, False)


@pytest.mark.parametrize(
    ("messages", "found"),
    [
        ([USER, SYSTEM], None),
        ([{"role": "system", "content": ""}, USER, {"role": "developer", "content": "x"}], None),
        ([USER], "no message with the role system or developer whose content is not blank"),
        (
            [USER, {"role": "system", "content": "\u200b"}],
            "no message with the role system or developer whose content is not blank",
        ),
        (["x", None], "no message with the role system or developer whose content is not blank"),
        ([], "no messages"),
    ],
)
def test_anywhere_takes_a_later_position(messages: Any, found: str | None) -> None:
    """But a blank one nowhere."""
    assert found == missing({"messages": messages}, True)


def test_a_body_without_messages_has_no_system_prompt() -> None:
    """A caller may ask about any body."""
    assert "no messages" == missing({}, False)


def test_many_hosts_are_told_apart_without_the_network() -> None:
    """Whether a server decides per model is read off its name."""
    decides = OPENAI_CHAT.folds.decides_sampling

    assert not any(map(decides, ("api.openai.com", "", "999.1.1.1", "a:b", "1.2.3")))
    assert all(map(decides, ("localhost", "10.0.0.1", "::1", "[fd00::1]", "x.local")))
    assert all(
        map(OPENAI_CHAT.folds.is_own_host, ("api.openai.com", "eu.api.openai.com", "x.openai.azure.com"))
    )
    assert not any(
        map(OPENAI_CHAT.folds.is_own_host, ("openai.com.evil.example", "api.groq.com", sys.platform))
    )


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ({"choices": [{"finish_reason": "stop"}]}, "stop"),
        ({"choices": [{"finish_reason": "stop"}, {"finish_reason": "length"}]}, ["stop", "length"]),
        ({"choices": [{"finish_reason": None}]}, None),
        ({"choices": [{}]}, None),
        ({"choices": ["x"]}, None),
        ({"choices": None}, None),
        ([], None),
        ("x", None),
    ],
)
def test_the_finish_reason_of_an_answer(answer: Any, finish: Any) -> None:
    """One, or the list of them by choice; an answer of another shape has none."""
    assert finish == OPENAI_CHAT.finish(answer)


@pytest.mark.parametrize(
    ("answer", "is_failure"),
    [
        ({"error": {"message": "x"}}, True),
        ({"error": {"message": "x"}, "choices": []}, True),
        ({"error": None, "choices": [{}]}, False),
        ({"error": {"message": "x"}, "choices": [{}]}, True),
        ({"object": "error", "message": "out of memory", "code": 500}, True),
        ({"type": "error", "message": "x"}, True),
        ({"choices": []}, False),
        ([], False),
    ],
)
def test_an_error_with_a_good_status_is_a_failure(answer: Any, is_failure: bool) -> None:
    """Gateways send one; where there are choices too, there is an answer."""
    assert is_failure is OPENAI_CHAT.is_failure(answer)
