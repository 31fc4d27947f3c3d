"""What is asked of the Responses API: which calls those are, what they need, and which of them are one."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette._call import Call, Json
from httpx_cassette.dialects import GENERIC, OPENAI_RESPONSES, recognise

from ..keying import body_of, call, draft_of, hash_document, key_of, slow_document

URL = "https://api.openai.com/v1/responses"

SYSTEM = {"role": "system", "content": "Be brief."}
DEVELOPER = {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
USER = {"role": "user", "content": "hi"}

assert OPENAI_RESPONSES.system is not None
missing = OPENAI_RESPONSES.system.missing


# -- which calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "hi"}),
        ("/v1/responses", {"input": []}),
        ("/openai/v1/responses", {"input": [USER]}),
        ("/openai/responses", {"input": "hi"}),
        ("/router/v2/openai/v1/responses", {"input": "hi"}),
        ("/backend-api/codex/responses", {"input": [USER], "instructions": "x"}),
        ("/v1/responses", {"prompt": {"id": "pmpt_1", "version": "2"}}),
        ("/v1/responses", {"previous_response_id": "resp_1"}),
        ("/v1/responses", {"conversation": "conv_1"}),
        ("/v1/responses", {"conversation": {"id": "conv_1"}}),
        ("/v1/responses/resp_0123", None),
        ("/openai/v1/responses/resp-0123", None),
        ("/v1/responses/a9d2b4d6-0f3e-4a2c-8d55-5b8b1f0c9e11", None),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any) -> None:
    """On any host; and so is the GET of an answer that was made before."""
    assert OPENAI_RESPONSES is recognise(path, body)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses/input_tokens", {"input": "hi"}),
        ("/v1/responses/compact", {"input": "hi"}),
        ("/v1/responses/resp_1/cancel", None),
        ("/v1/responses/resp_1/cancel", {}),
        ("/v1/responses/resp_1/input_items", None),
        ("/v1/responses/resp_1", {"input": "hi"}),
        ("/v1/responses", {"prompt": "a form"}),
        ("/v1/responses", {"input": {"name": "x"}}),
        ("/v1/responses", {"model": "m", "messages": []}),
        ("/v1/responses", None),
        ("/v1/responses", []),
        ("/forms/7/responses/12", None),
        ("/responses/latest", None),
        ("/v1/batches", {"input": "hi"}),
    ],
)
def test_what_lies_below_or_looks_alike_is_another_call(path: str, body: Any) -> None:
    """They make no answer and need no system prompt."""
    assert GENERIC is recognise(path, body)


# -- the system prompt ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"instructions": "Be brief.", "input": "hi"},
        {"instructions": "Be brief.", "input": [USER]},
        {"instructions": "", "input": [SYSTEM, USER]},
        {"input": [SYSTEM, USER]},
        {"input": [DEVELOPER, USER]},
        {"input": [{"type": "message", **DEVELOPER}]},
        {"input": "hi", "prompt": {"id": "pmpt_1", "variables": {"city": "Paris"}}},
        {"input": "hi", "previous_response_id": "resp_1"},
        {"input": [USER], "conversation": "conv_1"},
        {"input": [USER], "conversation": {"id": "conv_1"}},
    ],
)
def test_a_system_prompt_may_stand_in_several_places(body: Any) -> None:
    """In the instructions, first in the input, or at the server."""
    assert missing(body, False) is None
    assert missing(body, True) is None


BLANK = "no instructions, and first in the input a {} message whose content is blank"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"input": "hi"}, "no instructions, and a text as input"),
        ({"instructions": None, "input": "hi"}, "no instructions, and a text as input"),
        ({"instructions": " \n", "input": "hi"}, "blank instructions, and a text as input"),
        ({"instructions": "\u200b", "input": []}, "blank instructions, and nothing as input"),
        ({}, "no instructions, and nothing as input"),
        ({"input": [USER]}, "no instructions, and first in the input a message with the role 'user'"),
        ({"input": [USER, SYSTEM]}, "no instructions, and first in the input a message with the role 'user'"),
        (
            {"input": [{"type": "reasoning", "id": "rs_1"}]},
            "no instructions, and first in the input an item of the type 'reasoning'",
        ),
        ({"input": ["Be brief."]}, "no instructions, and first in the input no object"),
        ({"input": [{"role": "system"}]}, BLANK.format("system")),
        ({"input": [{"role": "system", "content": ""}]}, BLANK.format("system")),
        (
            {"input": [{"role": "developer", "content": [{"type": "input_text", "text": " "}, "x"]}]},
            BLANK.format("developer"),
        ),
        (
            {"input": "hi", "prompt": None, "previous_response_id": None, "conversation": None},
            "no instructions, and a text as input",
        ),
        (
            {"input": "hi", "prompt": {}, "previous_response_id": "", "conversation": ""},
            "no instructions, and a text as input",
        ),
    ],
)
def test_what_stood_there_instead_is_said(body: Any, found: str) -> None:
    """An empty prompt is none."""
    assert found == missing(body, False)


def test_anywhere_takes_a_later_position() -> None:
    """But a blank one nowhere."""
    assert missing({"input": [USER, DEVELOPER]}, True) is None
    assert (
        "no instructions, and no input item with the role system or developer whose content is not blank"
        == missing({"input": [USER, "x", {"role": "system", "content": " "}]}, True)
    )


# -- the key -------------------------------------------------------------------------------------------


def ask(*items: Json, url: str = URL, **members: Any) -> Call:
    """Return a call; without items the input is a text."""
    return call(
        {"model": "gpt-5", "instructions": "Be brief.", "input": list(items) or "hi", **members}, url=url
    )


def part(text: str, kind: str = "input_text", **members: Json) -> Json:
    return {"type": kind, "text": text, **members}


def function_call(name: str, arguments: str = "{}", **members: Json) -> Json:
    return {"type": "function_call", "call_id": name, "name": "f", "arguments": arguments, **members}


def output(name: str, text: str = "1", kind: str = "function_call") -> Json:
    return {"type": f"{kind}_output", "call_id": name, "output": text}


def said(text: str, name: str = "msg_1", **members: Json) -> Json:
    """Return a message as the API gives it and SDKs send it back."""
    content: Json = [part(text, "output_text", annotations=[])]
    return {
        "type": "message",
        "id": name,
        "role": "assistant",
        "status": "completed",
        "content": content,
        **members,
    }


def reasoning(name: str, **members: Json) -> Json:
    return {"type": "reasoning", "id": name, "summary": [], **members}


TOOLS: Json = [{"type": "function", "name": "f", "parameters": {}, "strict": True}]
OTHER_HOST = "https://openrouter.ai/api/v1/responses"
LONG = "iVBORw0KGgo" * 200

SAME = {
    "defaults": (
        ask(),
        ask(
            background=False,
            service_tier="auto",
            store=True,
            stream=False,
            temperature=1.0,
            top_p=1,
            truncation="disabled",
        ),
    ),
    "parallel-with-tools": (ask(tools=TOOLS), ask(tools=TOOLS, parallel_tool_calls=True)),
    "text-format": (ask(), ask(text={"format": {"type": "text"}})),
    "strict-of-a-schema": tuple(
        ask(text={"format": {"type": "json_schema", "name": "n", "schema": {}, **each}})
        for each in ({}, {"strict": False}, {"strict": None})
    ),
    "obfuscation": (
        ask(stream=True),
        ask(stream=True, stream_options={"include_obfuscation": True}),
        ask(stream=True, stream_options=None),
    ),
    "caching": (ask(), ask(prompt_cache_options={"mode": "implicit", "ttl": "30m", "prewarm": False})),
    "nulls-of-sdks": (
        ask(),
        ask(
            include=[],
            max_output_tokens=None,
            metadata={},
            previous_response_id=None,
            reasoning={"effort": None, "summary": None},
            tools=[],
            text={"verbosity": None},
        ),
    ),
    "prompt-without-variables": tuple(
        ask(prompt={"id": "pmpt_1", **each}) for each in ({}, {"variables": None, "version": None})
    ),
    "one-text-part": (
        ask({"role": "user", "content": "hi"}),
        ask({"role": "user", "content": [part("hi")]}),
    ),
    "detail": (
        ask({"role": "user", "content": [{"type": "input_image", "image_url": "https://x/a.png"}]}),
        ask(
            {
                "role": "user",
                "content": [
                    {
                        "type": "input_image",
                        "image_url": "https://x/a.png",
                        "detail": "auto",
                        "file_id": None,
                    }
                ],
            }
        ),
    ),
    "trailing-blanks": (
        ask({"role": "user", "content": [part("a \nb\t", prompt_cache_breakpoint=1)]}, USER),
        ask({"role": "user", "content": [part("a\nb", prompt_cache_breakpoint=1)]}, USER),
    ),
    "blanks-of-the-instructions": (ask(instructions="a \nb"), ask(instructions="a\nb")),
    "blanks-of-a-text": (
        call({"instructions": "x", "input": "a \nb"}, url=URL),
        call({"instructions": "x", "input": "a\nb"}, url=URL),
    ),
    "echo-with-nulls": (
        ask(USER, said("a"), USER),
        ask(USER, said("a", phase=None), USER),
    ),
    "echo-of-a-parsed-answer": (
        ask(USER, function_call("a"), output("a")),
        ask(
            USER,
            function_call("a", parsed_arguments=None, namespace=None, caller=None, status=None, id=None),
            output("a"),
        ),
    ),
    "echo-of-reasoning-with-nulls": (
        ask(USER, reasoning("rs_1", encrypted_content="x"), USER),
        ask(USER, reasoning("rs_1", encrypted_content="x", content=None, status=None), USER),
    ),
    "names-of-items": (
        ask(USER, reasoning("rs_1", encrypted_content="x"), function_call("a", id="fc_1"), output("a")),
        ask(USER, reasoning("rs_2", encrypted_content="x"), function_call("b", id="fc_2"), output("b")),
    ),
    "names-of-messages": (ask(USER, said("a", "msg_1"), USER), ask(USER, said("a", "msg_2"), USER)),
    "parallel-calls": (
        ask(USER, function_call("a"), function_call("b"), output("b", "1"), output("a", "2")),
        ask(USER, function_call("x"), function_call("a"), output("a", "1"), output("x", "2")),
    ),
    "approvals": tuple(
        ask(
            USER,
            {"type": "mcp_approval_request", "id": name, "name": "f", "arguments": "{}", "server_label": "s"},
            {"type": "mcp_approval_response", "approval_request_id": name, "approve": True},
        )
        for name in ("mcpr_1", "mcpr_2")
    ),
    "programs": tuple(
        ask(
            USER,
            {"type": "program", "id": f"prog_{name}", "call_id": name, "code": "f()"},
            function_call(f"call_{name}", caller={"type": "program", "caller_id": name}),
            output(f"call_{name}"),
        )
        for name in ("a", "b")
    ),
    "safety-checks": tuple(
        ask(
            USER,
            {"type": "computer_call", "id": "cu_1", "call_id": "a", "pending_safety_checks": [{"id": name}]},
            {
                "type": "computer_call_output",
                "call_id": "a",
                "output": {"type": "computer_screenshot", "file_id": "file_1"},
                "acknowledged_safety_checks": [{"id": name}],
            },
        )
        for name in ("sc_1", "sc_2")
    ),
    "local-shells": tuple(
        ask(
            USER,
            {"type": "local_shell_call", "id": "lsh_1", "call_id": name, "action": {"type": "exec"}},
            {"type": "local_shell_call_output", "id": name, "output": "x"},
        )
        for name in ("a", "b")
    ),
    "generated-images": tuple(
        ask(USER, {"type": "image_generation_call", "id": name, "result": LONG}, USER)
        for name in ("ig_1", "ig_2")
    ),
}

DIFFERENT = {
    "instructions": (ask(instructions="a"), ask(instructions="b")),
    "instructions-or-a-message": (
        call({"instructions": "Be brief.", "input": [USER]}, url=URL),
        call({"input": [SYSTEM, USER]}, url=URL),
    ),
    "instructions-empty": (ask(instructions=""), ask(instructions=None)),
    "stream": (ask(stream=True), ask()),
    "no-obfuscation": (
        ask(stream=True, stream_options={"include_obfuscation": False}),
        ask(stream=True),
    ),
    "temperature": (ask(temperature=0), ask()),
    "temperature-of-openrouter": (ask(url=OTHER_HOST, temperature=1), ask(url=OTHER_HOST)),
    "parallel-without-tools": (ask(parallel_tool_calls=True), ask()),
    "tool-choice": (ask(tools=TOOLS, tool_choice="auto"), ask(tools=TOOLS)),
    "verbosity": (ask(text={"verbosity": "medium"}), ask()),
    "effort": (ask(reasoning={"effort": "medium"}), ask()),
    "strict-of-a-function": tuple(
        ask(tools=[{"type": "function", "name": "f", "parameters": {}, **each}])
        for each in ({"strict": True}, {"strict": False}, {"strict": None}, {})
    ),
    "store": (ask(store=False), ask()),
    "background": (ask(background=True), ask()),
    "previous-answer": (ask(previous_response_id="resp_1"), ask(previous_response_id="resp_2")),
    "conversation": (ask(conversation="conv_1"), ask(conversation="conv_2")),
    "version-of-a-stored-prompt": tuple(ask(prompt={"id": "p", "version": each}) for each in ("1", "2")),
    "variable-of-a-stored-prompt": tuple(
        ask(prompt={"id": "p", "variables": {"a": each}}) for each in ("x", "x ")
    ),
    "stored-prompt": (ask(prompt={"id": "p"}), ask(prompt={"id": "q"})),
    "metadata": (ask(metadata={"a": "1"}), ask()),
    "text-or-part-of-an-answer": (
        ask(USER, {"role": "assistant", "content": "a"}, USER),
        ask(USER, {"role": "assistant", "content": [part("a", "output_text")]}, USER),
    ),
    "cache-breakpoint": (
        ask({"role": "user", "content": [part("a", prompt_cache_breakpoint={"mode": "explicit"})]}),
        ask({"role": "user", "content": "a"}),
    ),
    "a-part-of-chat": (
        ask({"role": "user", "content": [part("a", "text")]}),
        ask({"role": "user", "content": "a"}),
    ),
    "final-newline": (
        ask({"role": "user", "content": "a\n"}, USER),
        ask({"role": "user", "content": "a"}, USER),
    ),
    "prefill": (
        ask(USER, {"role": "assistant", "content": "a "}),
        ask(USER, {"role": "assistant", "content": "a"}),
    ),
    "arguments": (
        ask(USER, function_call("a", '{"x": 1}'), output("a")),
        ask(USER, function_call("a", '{"x":1}'), output("a")),
    ),
    "blanks-of-an-output": (
        ask(USER, function_call("a"), output("a", "x ")),
        ask(USER, function_call("a"), output("a", "x")),
    ),
    "outputs-changed-over": (
        ask(USER, function_call("a"), function_call("b"), output("a", "1"), output("b", "2")),
        ask(USER, function_call("a"), function_call("b"), output("b", "1"), output("a", "2")),
    ),
    # What the server has, and only the id names.
    "item-references": tuple(
        ask(USER, {"type": "item_reference", "id": name}) for name in ("msg_1", "msg_2")
    ),
    "item-references-without-a-type": tuple(ask(USER, {"id": name}) for name in ("msg_1", "msg_2")),
    "reasoning-that-is-looked-up": tuple(ask(USER, reasoning(name), USER) for name in ("rs_1", "rs_2")),
    "images-that-are-looked-up": tuple(
        ask(USER, {"type": "image_generation_call", "id": name}) for name in ("ig_1", "ig_2")
    ),
    "searches-that-are-looked-up": tuple(
        ask(USER, {"type": "file_search_call", "id": name, "queries": ["x"], "results": None}, USER)
        for name in ("fs_1", "fs_2")
    ),
    "pages-that-are-looked-up": tuple(
        ask(USER, {"type": "web_search_call", "id": name, "action": {"type": "search"}}, USER)
        for name in ("ws_1", "ws_2")
    ),
    "containers": tuple(
        ask(USER, {"type": "code_interpreter_call", "id": "ci_1", "container_id": name, "outputs": [1]}, USER)
        for name in ("cntr_1", "cntr_2")
    ),
    "outputs-of-calls-that-the-server-has": (
        ask(output("a", "1"), output("b", "2"), previous_response_id="resp_1"),
        ask(output("b", "1"), output("a", "2"), previous_response_id="resp_1"),
    ),
    "approvals-of-what-the-server-has": tuple(
        ask(
            {"type": "mcp_approval_response", "approval_request_id": name, "approve": True},
            previous_response_id="resp_1",
        )
        for name in ("mcpr_1", "mcpr_2")
    ),
    "an-item-that-is-kept-or-a-call": (
        ask(USER, {"type": "item_reference", "id": "call_1"}, function_call("a"), output("a")),
        ask(USER, {"type": "item_reference", "id": "call_1"}, function_call("call_1"), output("call_1")),
    ),
    "images": tuple(
        ask(USER, {"type": "image_generation_call", "id": "ig_1", "result": f"{mark}{LONG}"}) for mark in "ab"
    ),
}


def keys(calls: tuple[Call, ...]) -> list[str]:
    """Return the key of each call, found in two ways that must agree."""
    found = [key_of(made) for made in calls]
    assert found == [hash_document(slow_document(draft_of(made))).hex() for made in calls]
    return found


@pytest.mark.parametrize("name", SAME)
def test_these_calls_share_a_key(name: str) -> None:
    """They ask the same, so one recording answers all."""
    assert len(SAME[name]) > 1
    assert 1 == len(set(keys(SAME[name])))


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_calls_do_not_share_a_key(name: str) -> None:
    """They ask something else, and one must never be answered for the other."""
    assert len(DIFFERENT[name]) == len(set(keys(DIFFERENT[name])))


def test_ids_are_renamed_by_first_appearance() -> None:
    """Items and calls share their numbers; what the server looks up keeps its name."""
    items = body_of(
        ask(
            USER,
            reasoning("rs_1", encrypted_content="x"),
            reasoning("rs_2"),
            function_call("call_x", id="fc_1"),
            output("call_x"),
            function_call("", id=""),
        )
    )["input"]

    assert [(item.get("id"), item.get("call_id")) for item in items] == [
        (None, None),
        ("call_1", None),
        ("rs_2", None),
        ("call_2", "call_3"),
        (None, "call_3"),
        ("", ""),
    ]


@pytest.mark.parametrize(
    "items",
    [
        [None, 7, "x", []],
        [{"type": ["x"], "id": ["y"], "call_id": {"z": 1}}],
        [{"type": "function_call_output", "call_id": 7, "caller": "x", "approval_request_id": [1]}],
        [{"pending_safety_checks": "x", "acknowledged_safety_checks": [7, {"id": {}}]}],
        [{"type": None, "id": "x"}],
        {"id": "x"},
    ],
)
def test_items_of_another_shape_have_a_key_too(items: Any) -> None:
    """A request that the API would refuse is no reason to fail."""
    keys(
        (
            call({"instructions": "x", "input": items}, url=URL),
            call({"instructions": "x", "input": items}, url=URL),
        )
    )


def test_media_are_stored_as_digests() -> None:
    """Base64 of files, of sound and of generated images, in messages and in results of tools."""
    made = ask(
        {
            "role": "user",
            "content": [
                {"type": "input_file", "filename": "a.pdf", "file_data": LONG},
                {"type": "input_audio", "input_audio": {"data": LONG, "format": "wav"}},
                {"type": "input_image", "image_url": f"data:image/png;base64,{LONG}"},
            ],
        },
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [{"type": "input_file", "file_data": LONG}],
        },
        {"type": "image_generation_call", "id": "ig_1", "result": LONG},
        prompt={"id": "p", "variables": {"file": {"type": "input_file", "file_data": LONG}}},
    )

    assert LONG not in repr(draft_of(made).request)


def test_a_generated_image_alone_is_stored_as_its_digest() -> None:
    """Nothing else in the body says that there is one."""
    made = ask(USER, {"type": "image_generation_call", "id": "ig_1", "result": LONG}, USER)

    assert LONG not in repr(draft_of(made).request)


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "finish"),
    [
        ({"status": "completed", "incomplete_details": None}, "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "max_output_tokens",
        ),
        ({"status": "incomplete", "incomplete_details": {}}, "incomplete"),
        ({"status": "queued"}, "queued"),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_the_finish_reason_of_an_answer(answer: Any, finish: Any) -> None:
    """What cut it short, else its status."""
    assert finish == OPENAI_RESPONSES.finish(answer)


@pytest.mark.parametrize(
    ("answer", "is_failure"),
    [
        ({"status": "completed", "error": None}, False),
        ({"status": "incomplete", "error": None}, False),
        ({"status": "failed", "error": {"code": "server_error", "message": "x"}}, True),
        ({"status": "failed", "error": None}, True),
        ({"status": "failed", "error": {"code": "server_error"}, "background": True}, False),
        ({"status": "failed", "error": {"code": "server_error"}, "background": False}, True),
        ({"error": "overloaded"}, True),
        ({"error": {"message": "overloaded"}}, True),
        ({"object": "error", "message": "overloaded"}, True),
        ({"type": "error", "message": "overloaded"}, True),
        ({"status": "cancelled"}, False),
        ([], False),
    ],
)
def test_an_error_with_a_good_status_is_a_failure(answer: Any, is_failure: bool) -> None:
    """But the end of a background answer is a state, which polling must be able to tell."""
    assert is_failure is OPENAI_RESPONSES.is_failure(answer)
