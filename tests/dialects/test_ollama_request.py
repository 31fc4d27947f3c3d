"""Requests of Ollama's own API: where it is spoken, its system prompt, and what is one key."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Call
from httpx_cassette._call import Json
from httpx_cassette.dialects import GENERIC, OLLAMA, OPENAI_CHAT, Dialect, recognise
from tests.keying import body_of, call, draft_of, key_of, slow_document

CHAT, GENERATE = (f"http://localhost:11434/api/{name}" for name in ("chat", "generate"))
SYSTEM: Json = {"role": "system", "content": "Be brief."}
HI: Json = {"role": "user", "content": "hi"}
IMAGE = "iVBORw0KGgo" * 200


def chat(*messages: Json, **members: Any) -> Call:
    """Return a chat call with these messages."""
    return call({"model": "m", "messages": list(messages) or [SYSTEM, HI], **members}, url=CHAT)


def generate(**members: Any) -> Call:
    """Return a call for one prompt."""
    return call({"model": "m", "prompt": "hi", "system": "Be brief.", **members}, url=GENERATE)


def use(ident: str, **members: Json) -> dict[str, Json]:
    return {"id": ident, "function": {"name": "f", "arguments": {"x": 1}}, **members}


def said(*calls: Json, **members: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **members}


# -- where it is spoken --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/api/chat", {"model": "m", "messages": []}, OLLAMA),
        ("/ollama/api/chat", {"model": "m", "messages": [HI], "stream": False}, OLLAMA),
        ("/api/generate", {"model": "m", "prompt": ""}, OLLAMA),
        # A web application's own route, which names no model.
        ("/api/chat", {"id": "1", "messages": [HI]}, GENERIC),
        ("/api/chat", {"model": 1, "messages": [HI]}, GENERIC),
        ("/api/chat", {"model": "m", "messages": {}}, GENERIC),
        ("/api/chat", None, GENERIC),
        # A model is loaded.
        ("/api/chat", {"model": "m"}, GENERIC),
        ("/api/generate", {"model": "m", "keep_alive": 0}, GENERIC),
        ("/api/generate", {"prompt": "hi"}, GENERIC),
        ("/api/embed", {"model": "m", "input": "hi"}, GENERIC),
        ("/api/embeddings", {"model": "m", "prompt": "hi"}, GENERIC),
        ("/api/show", {"model": "m"}, GENERIC),
        ("/api/pull", {"model": "m", "stream": True}, GENERIC),
        # OpenAI's format at the same server.
        ("/v1/chat/completions", {"model": "m", "messages": [HI]}, OPENAI_CHAT),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """With a model and something to say to it; all the rest of the API is exempt."""
    assert dialect is recognise(path, body)


@pytest.mark.parametrize("path", ["/api/chat", "/api/generate"])
@pytest.mark.parametrize(
    ("members", "wants_stream"),
    [({}, True), ({"stream": None}, True), ({"stream": True}, True), ({"stream": False}, False)],
)
def test_a_stream_is_the_default(path: str, members: dict[str, Json], wants_stream: bool) -> None:
    """Only ``false`` asks for one document."""
    assert wants_stream is OLLAMA.wants_stream(path, {"model": "m", **members})


# -- the system prompt ---------------------------------------------------------------------------------

assert OLLAMA.system is not None
missing = OLLAMA.system.missing

UNSEEN = "one in the Modelfile of the model cannot be seen"


@pytest.mark.parametrize(
    ("messages", "found", "found_anywhere"),
    [
        ([SYSTEM, HI], None, None),
        # A model is loaded, and nothing said to it.
        ([], None, None),
        ([HI, SYSTEM], f"a message with the role 'user'; {UNSEEN}", None),
        (
            [{"role": "system", "content": " \n"}, HI],
            "a system message whose content is blank",
            f"no message with the role system whose content is not blank; {UNSEEN}",
        ),
        (
            ["hi"],
            f"no message object; {UNSEEN}",
            f"no message with the role system whose content is not blank; {UNSEEN}",
        ),
    ],
)
def test_the_system_prompt_of_a_chat_is_its_first_message(
    messages: list[Json], found: str | None, found_anywhere: str | None
) -> None:
    """Or any, where that is wanted; what a server holds is not seen, and the guard says so."""
    body: dict[str, Json] = {"model": "m", "messages": messages}

    assert (found, found_anywhere) == (missing(body, False), missing(body, True))


@pytest.mark.parametrize(
    ("members", "found"),
    [
        ({"system": "Be brief."}, None),
        ({"system": "Be brief.", "template": "{{ .System }}{{ .Prompt }}"}, None),
        ({}, f"no member system; and {UNSEEN}"),
        ({"system": None}, f"no member system; and {UNSEEN}"),
        ({"system": ""}, f"a member system that is blank; and {UNSEEN}"),
        (
            {"template": "Be brief. {{ .Prompt }}"},
            f"no member system; one in the template that is sent, or {UNSEEN}",
        ),
        ({"template": "", "raw": False}, f"no member system; and {UNSEEN}"),
        # All that a model gets stands in these.
        ({"raw": True, "prompt": "[INST] Be brief. Hi? [/INST]"}, None),
        ({"context": [1, 2, 3]}, None),
        ({"context": []}, f"no member system; and {UNSEEN}"),
        # A model is loaded, or draws.
        ({"prompt": ""}, None),
        ({"width": 512, "steps": 4}, None),
    ],
)
def test_the_system_prompt_of_a_prompt_is_a_member(members: dict[str, Json], found: str | None) -> None:
    """Or is in what the call holds as a whole: a raw prompt, or the tokens of the conversation so far."""
    body = {"model": "m", "prompt": "hi", **members}

    assert found == missing(body, False) == missing(body, True)


def test_messages_that_are_no_list_hold_no_system_prompt() -> None:
    """As where somebody asks without looking at the shape first."""
    assert missing({"messages": None}, False) is None


# -- what is one key -----------------------------------------------------------------------------------

SAME: dict[str, tuple[Call, Call]] = {
    "stream": (chat(), chat(stream=True)),
    "stream-null": (chat(), chat(stream=None)),
    "nothing-said": (chat(), chat(tools=[], options={}, format="", keep_alive=None, think=None)),
    "options-null": (chat(options={"seed": 1}), chat(options={"seed": 1, "temperature": None})),
    "logprobs": (chat(), chat(logprobs=False, top_logprobs=0)),
    "blanks": (chat(SYSTEM, HI), chat({"role": "system", "content": "Be brief.  "}, HI)),
    "message-members": (
        chat(SYSTEM, said(use("a")), {"role": "tool", "content": "1", "tool_name": "f"}),
        chat(
            SYSTEM,
            {"role": "assistant", "tool_calls": [use("a")], "thinking": "", "images": []},
            {"role": "tool", "content": "1", "tool_name": "f", "tool_calls": None, "tool_call_id": ""},
        ),
    ),
    "ids": (
        chat(SYSTEM, said(use("a"), use("b")), {"role": "tool", "tool_call_id": "b", "content": "1"}),
        chat(SYSTEM, said(use("x"), use("y")), {"role": "tool", "tool_call_id": "y", "content": "1"}),
    ),
    "generate-nothing-said": (
        generate(),
        generate(template="", suffix="", raw=False, context=[], images=[], stream=True),
    ),
    "generate-blank-system": (generate(system=""), generate(system=None)),
    "generate-blanks": (generate(), generate(system="Be brief. ")),
}


@pytest.mark.parametrize("name", SAME)
def test_these_are_one_key(name: str) -> None:
    """What a server takes for the same request, and ids that only tie a call to its result."""
    one, other = SAME[name]

    assert key_of(one) == key_of(other)
    assert slow_document(draft_of(one)) == slow_document(draft_of(other))


DIFFERENT: dict[str, tuple[Call, Call]] = {
    "stream": (chat(), chat(stream=False)),
    "sampling": (chat(), chat(options={"temperature": 0.8})),
    "thinking": (chat(), chat(think=False)),
    "keep-alive": (chat(), chat(keep_alive="5m")),
    "format": (chat(), chat(format="json")),
    "results-swapped": (
        chat(SYSTEM, said(use("a"), use("b")), {"role": "tool", "tool_call_id": "b", "content": "1"}),
        chat(SYSTEM, said(use("a"), use("b")), {"role": "tool", "tool_call_id": "a", "content": "1"}),
    ),
    # A model without a template goes on behind it.
    "prompt-blanks": (generate(), generate(prompt="hi ")),
    "prefill-blanks": (
        chat(SYSTEM, HI, {"role": "assistant", "content": "So"}),
        chat(SYSTEM, HI, {"role": "assistant", "content": "So "}),
    ),
    "thoughts": (chat(SYSTEM, said(thinking="a"), HI), chat(SYSTEM, said(thinking="b"), HI)),
    "context": (generate(context=[1]), generate(context=[2])),
    "raw": (generate(), generate(raw=True)),
    "arguments": (
        chat(SYSTEM, said({"function": {"name": "f", "arguments": {"content": "a"}}}), HI),
        chat(SYSTEM, said({"function": {"name": "f", "arguments": {"content": "a "}}}), HI),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_are_two_keys(name: str) -> None:
    """What may change the answer, and every default that a model decides."""
    one, other = DIFFERENT[name]

    assert key_of(one) != key_of(other)


def test_images_are_digests() -> None:
    """Base64 in lists, in a message and beside a prompt."""
    of_message = body_of(chat(SYSTEM, {"role": "user", "content": "what?", "images": [IMAGE, "short"]}))
    of_prompt = body_of(generate(images=[IMAGE]))

    image, short = of_message["messages"][1]["images"]
    assert (["$bytes", "$sha256"], "short") == (sorted(image), short)
    assert [image] == of_prompt["images"]


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "finish", "is_failure"),
    [
        ({"message": {"content": "hi"}, "done": True, "done_reason": "stop"}, "stop", False),
        ({"response": "hi", "done": True}, None, False),
        ({"error": "overloaded"}, None, True),
        ({"error": ""}, None, False),
        ([], None, False),
    ],
)
def test_what_an_answer_says_of_itself(document: Any, finish: Any, is_failure: bool) -> None:
    """Why it is done, or that it is none."""
    assert (finish, is_failure) == (OLLAMA.finish(document), OLLAMA.is_failure(document))
