"""Requests of Anthropic's Messages API: where it is spoken, its system prompt, and what is one key."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from httpx_cassette import Call, KeyPolicy
from httpx_cassette._call import Json
from httpx_cassette.dialects import ANTHROPIC_MESSAGES, GENERIC, recognise
from httpx_cassette.dialects._hosts import is_local
from tests.keying import body_of, call, draft_of, key_of, slow_document

URL = "https://api.anthropic.com/v1/messages"
HI: Json = {"role": "user", "content": "hi"}
SIGNATURE = "EqQBCkYIARgCKkAsigned+by/somebody=="


def ask(*messages: Json, url: str = URL, **members: Any) -> Call:
    """Return a call with these messages."""
    body = {"model": "claude-x", "max_tokens": 9, "system": "Be brief.", "messages": list(messages) or [HI]}
    return call({**body, **members}, url=url)


def answer(*blocks: Json) -> Json:
    """Return what an assistant said."""
    return {"role": "assistant", "content": list(blocks)}


def tell(*blocks: Json) -> Json:
    """Return what a user says in blocks."""
    return {"role": "user", "content": list(blocks)}


def text(words: str, **members: Json) -> dict[str, Json]:
    return {"type": "text", "text": words, **members}


def use(ident: str, *, kind: str = "tool_use", **members: Json) -> dict[str, Json]:
    return {"type": kind, "id": ident, "name": "f", "input": {"x": 1}, **members}


def result(ident: str, content: Json = "1", **members: Json) -> dict[str, Json]:
    return {"type": "tool_result", "tool_use_id": ident, "content": content, **members}


# -- where it is spoken --------------------------------------------------------------------------------

MESSAGES = {"model": "m", "max_tokens": 9, "messages": []}
VERTEX_BODY = {"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": []}
BEDROCK_BODY = {**VERTEX_BODY, "anthropic_version": "bedrock-2023-05-31"}
VERTEX = "/v1/projects/p/locations/us-east5/publishers/anthropic/models"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages", MESSAGES),
        ("/router/v2/anthropic/v1/messages", MESSAGES),
        ("/api/v1/messages", {"model": "m", "messages": []}),
        ("/messages", {"max_tokens": 9, "messages": []}),
        (f"{VERTEX}/claude-x@20250219:rawPredict", VERTEX_BODY),
        (f"{VERTEX}/claude-x:streamRawPredict", {**VERTEX_BODY, "stream": True}),
        ("/model/anthropic.claude-x-v1%3A0/invoke", BEDROCK_BODY),
        ("/model/anthropic.claude-x-v1:0/invoke", BEDROCK_BODY),
        ("/model/anthropic.claude-x-v1%3A0/invoke-with-response-stream", BEDROCK_BODY),
    ],
)
def test_a_message_is_recognised_by_path_and_shape(path: str, body: Any) -> None:
    """On whatever host."""
    assert recognise(path, body) is ANTHROPIC_MESSAGES


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages/count_tokens", {"model": "m", "messages": []}),
        ("/v1/messages/batches", {"requests": [{"custom_id": "a", "params": MESSAGES}]}),
        ("/v1/messages/batches/msgbatch_1/cancel", None),
        ("/v1/messages", {"messages": [{"destinations": [], "content": {"text": "an SMS"}}]}),
        ("/v1/messages", {"model": "m", "messages": {}}),
        ("/v1/threads/thread_1/messages", {"role": "user", "content": "hi"}),
        ("/v1/complete", {"model": "m", "prompt": "hi"}),
        (f"{VERTEX}/count-tokens:rawPredict", {"anthropic_version": "v", "model": "m", "messages": []}),
        ("/v1/publishers/meta/models/m:rawPredict", {"max_tokens": 9, "messages": []}),
        ("/model/anthropic.claude-x-v1%3A0/count-tokens", BEDROCK_BODY),
        ("/model/anthropic.claude-x-v1%3A0/invoke-with-response-stream", {"prompt": "hi"}),
        ("/model/meta.llama/invoke", {"prompt": "hi"}),
        ("/model/mistral/invoke", {"messages": []}),
        ("/v1/messages", None),
        ("/v1/messages", []),
    ],
)
def test_what_lies_beside_it_is_no_message(path: str, body: Any) -> None:
    """Counting tokens, batches, other formats at the same addresses."""
    assert recognise(path, body) is GENERIC


@pytest.mark.parametrize(
    ("path", "body", "wants_stream"),
    [
        ("/v1/messages", {**MESSAGES, "stream": True}, True),
        ("/v1/messages", {**MESSAGES, "stream": False}, False),
        ("/v1/messages", MESSAGES, False),
        (f"{VERTEX}/claude-x:streamRawPredict", {**VERTEX_BODY, "stream": True}, True),
        (f"{VERTEX}/claude-x:streamRawPredict", VERTEX_BODY, True),
        (f"{VERTEX}/claude-x:rawPredict", VERTEX_BODY, False),
        ("/model/anthropic.claude-x-v1%3A0/invoke", BEDROCK_BODY, False),
        ("/model/anthropic.claude-x-v1%3A0/invoke-with-response-stream", BEDROCK_BODY, True),
    ],
)
def test_a_stream_is_asked_for_in_the_body_or_by_vertex_in_the_path(
    path: str, body: Any, wants_stream: bool
) -> None:
    """Either will do."""
    assert wants_stream is ANTHROPIC_MESSAGES.wants_stream(path, body)


# -- the system prompt ---------------------------------------------------------------------------------

assert ANTHROPIC_MESSAGES.system is not None
missing = ANTHROPIC_MESSAGES.system.missing


@pytest.mark.parametrize(
    "body",
    [
        {"system": "Be brief."},
        {"system": [text("Be brief.")]},
        {"system": [text(" "), text("x", cache_control={"type": "ephemeral"})]},
        {"messages": [{"role": "system", "content": "Be brief."}, HI]},
        {"messages": [{"role": "system", "content": [text("Be brief.")]}, HI]},
        {"system": "", "messages": [{"role": "system", "content": "Be brief."}, HI]},
        {"thread": {"type": "continue", "previous_message_id": "msg_1"}, "messages": [HI]},
    ],
    ids=["text", "blocks", "second-block", "message", "message-in-blocks", "blank-and-message", "thread"],
)
def test_a_system_prompt_is_a_member_or_the_first_message_or_held_by_the_server(body: Any) -> None:
    """Any of them will do."""
    assert missing(body, False) is None
    assert missing(body, True) is None


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({}, "no member system"),
        ({"messages": [HI]}, "no member system"),
        ({"system": None, "messages": [HI]}, "no member system"),
        ({"messages": "x"}, "no member system"),
        ({"messages": ["x", {"role": "system", "content": " "}]}, "no member system"),
        ({"system": ""}, "a member system that is blank"),
        ({"system": " \u200b\n"}, "a member system that is blank"),
        ({"system": []}, "a member system that is blank"),
        ({"system": [text(" "), {"type": "text"}, None, "x"]}, "a member system that is blank"),
        ({"system": {"text": "x"}}, "a member system that is blank"),
        ({"thread": {"type": "create"}}, "no member system"),
        ({"thread": "continue"}, "no member system"),
    ],
)
def test_what_stood_there_instead_is_said(body: Any, found: str) -> None:
    """A blank one is none: nobody writes ``system=""`` and means it."""
    assert found == missing(body, False) == missing(body, True)


def test_anywhere_takes_a_later_message() -> None:
    """A system message in the middle is no first one."""
    body: Any = {"messages": [HI, {"role": "system", "content": "Speak Spanish."}]}

    assert "no member system" == missing(body, False)
    assert missing(body, True) is None


# -- what is one key -----------------------------------------------------------------------------------

CALLED = (HI, answer(use("toolu_1")), tell(result("toolu_1")))
DOCUMENT: dict[str, Json] = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "Trains run."},
}
SEARCHED: dict[str, Json] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://example.com", "title": "T"}],
}
EDITED: dict[str, Json] = {
    "type": "text_editor_code_execution_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "text_editor_code_execution_view_result", "content": "x", "file_type": "text"},
}
FETCHED: dict[str, Json] = {
    "type": "web_fetch_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "web_fetch_result", "url": "https://example.com", "content": DOCUMENT},
}
CITED: dict[str, Json] = {"type": "char_location", "cited_text": "x", "document_index": 0}
COMPACTED: dict[str, Json] = {"type": "compaction", "content": "So far."}
EPHEMERAL: Json = {"type": "ephemeral"}
TOOL: dict[str, Json] = {"name": "f", "input_schema": {"type": "object"}}


def with_in(block: dict[str, Json], path: str, **members: Json) -> dict[str, Json]:
    """Return a block with members added further down."""
    changed: Any = copy.deepcopy(block)
    holder = changed
    for step in path.split("."):
        holder = holder[int(step) if step.isdigit() else step]
    holder.update(members)
    return changed


SAME = {
    # Documented defaults.
    "stream": (ask(stream=False), ask()),
    "temperature": (ask(temperature=1.0), ask()),
    "tool-choice": (ask(tools=[TOOL], tool_choice={"type": "auto"}), ask(tools=[TOOL])),
    "parallel": (
        ask(tools=[TOOL], tool_choice={"type": "auto", "disable_parallel_tool_use": False}),
        ask(tools=[TOOL]),
    ),
    "parallel-any": (
        ask(tools=[TOOL], tool_choice={"type": "any", "disable_parallel_tool_use": False}),
        ask(tools=[TOOL], tool_choice={"type": "any"}),
    ),
    "ttl": (
        ask(tell(text("a", cache_control={"type": "ephemeral", "ttl": "5m"}))),
        ask(tell(text("a", cache_control=EPHEMERAL))),
    ),
    "ttl-of-all": (ask(cache_control={"type": "ephemeral", "ttl": "5m"}), ask(cache_control=EPHEMERAL)),
    "ttl-of-a-tool": (
        ask(tools=[{**TOOL, "cache_control": {"type": "ephemeral", "ttl": "5m"}}]),
        ask(tools=[{**TOOL, "cache_control": EPHEMERAL}]),
    ),
    "block-binding": (
        ask(thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": None}}),
        ask(thinking={"type": "adaptive"}),
    ),
    # A string is shorthand for one block of text.
    "one-block": (ask(tell(text("hi"))), ask(HI)),
    "one-block-of-the-assistant": (
        ask(HI, answer(text("a")), HI),
        ask(HI, {"role": "assistant", "content": "a"}, HI),
    ),
    "one-system-block": (ask(system=[text("Be brief.")]), ask()),
    "one-block-in-a-result": (
        ask(HI, answer(use("a")), tell(result("a", [text("1")]))),
        ask(HI, answer(use("a")), tell(result("a", "1"))),
    ),
    # What SDKs echo.
    "echoed-text": (
        ask(HI, answer(text("a", citations=None, parsed_output=None), text("b")), HI),
        ask(HI, answer(text("a"), text("b", citations=[])), HI),
    ),
    "echoed-single-text": (ask(HI, answer(text("a", citations=None)), HI), ask(HI, answer(text("a")), HI)),
    "echoed-call": (
        ask(HI, answer(use("a", caller=None, toolset_name=None)), tell(result("a"))),
        ask(HI, answer(use("a")), tell(result("a"))),
    ),
    "echoed-search": (
        ask(HI, answer(with_in({**SEARCHED, "caller": None}, "content.0", page_age=None)), HI),
        ask(HI, answer(SEARCHED), HI),
    ),
    "echoed-page": (
        ask(
            HI,
            answer(
                with_in(
                    with_in(FETCHED, "content", retrieved_at=None),
                    "content.content",
                    title=None,
                    citations=None,
                )
            ),
            HI,
        ),
        ask(HI, answer(FETCHED), HI),
    ),
    "echoed-edit": (
        ask(HI, answer(with_in(EDITED, "content", num_lines=None, start_line=None, total_lines=None)), HI),
        ask(HI, answer(EDITED), HI),
    ),
    "echoed-citation": (
        ask(HI, answer(text("a", citations=[{**CITED, "document_title": None, "file_id": None}])), HI),
        ask(HI, answer(text("a", citations=[CITED])), HI),
    ),
    "echoed-compaction": (
        ask(
            HI, answer({**COMPACTED, "encrypted_content": None, "signature": None, "tool_changes": None}), HI
        ),
        ask(HI, answer(COMPACTED), HI),
    ),
    # Ids are references.
    "ids": (ask(*CALLED), ask(HI, answer(use("toolu_9")), tell(result("toolu_9")))),
    "ids-of-servers": (
        ask(HI, answer(use("srvtoolu_1", kind="server_tool_use"), SEARCHED), HI),
        ask(
            HI,
            answer(use("srvtoolu_2", kind="server_tool_use"), {**SEARCHED, "tool_use_id": "srvtoolu_2"}),
            HI,
        ),
    ),
    "ids-of-callers": (
        ask(
            HI,
            answer(
                use("srvtoolu_1", kind="server_tool_use"),
                use("toolu_1", caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}),
            ),
            tell(result("toolu_1")),
        ),
        ask(
            HI,
            answer(
                use("srvtoolu_2", kind="server_tool_use"),
                use("toolu_2", caller={"type": "code_execution_20250825", "tool_id": "srvtoolu_2"}),
            ),
            tell(result("toolu_2")),
        ),
    ),
    # Trailing blanks in what is said.
    "blanks": (
        ask({"role": "user", "content": "hi  \n"}, answer(text("a")), HI),
        ask({"role": "user", "content": "hi\n"}, answer(text("a")), HI),
    ),
    "blanks-in-blocks": (ask(tell(text("a \t\nb"), text("c"))), ask(tell(text("a\nb"), text("c")))),
    "blanks-in-the-system": (ask(system="Be brief. \n"), ask(system="Be brief.\n")),
    "blanks-in-system-blocks": (
        ask(system=[text("a "), text("b")]),
        ask(system=[text("a"), text("b")]),
    ),
    "blanks-in-results": (
        ask(HI, answer(use("a")), tell(result("a", "1 "))),
        ask(HI, answer(use("a")), tell(result("a", "1"))),
    ),
    "blanks-in-blocks-of-results": (
        ask(HI, answer(use("a")), tell(result("a", [text("1 "), text("2")]))),
        ask(HI, answer(use("a")), tell(result("a", [text("1"), text("2")]))),
    ),
    "blanks-of-an-earlier-assistant": (
        ask(HI, answer(text("a "), text("b")), HI),
        ask(HI, answer(text("a"), text("b")), HI),
    ),
}


@pytest.mark.parametrize(("one", "two"), SAME.values(), ids=SAME)
def test_calls_that_mean_the_same_share_a_key(one: Call, two: Call) -> None:
    """By the documentation, or by what an SDK makes of one answer."""
    assert body_of(one) == body_of(two)
    assert key_of(one) == key_of(two)


DIFFERENT = {
    "model": (ask(model="claude-y"), ask()),
    "max-tokens": (ask(max_tokens=10), ask()),
    "temperature": (ask(temperature=0.9), ask()),
    "temperature-that-is-text": (ask(temperature="1"), ask()),
    "top-p": (ask(top_p=1), ask()),
    "stream": (ask(stream=True), ask()),
    "stream-that-is-null": (ask(stream=None), ask()),
    "tool-choice-without-tools": (ask(tool_choice={"type": "auto"}), ask()),
    "tool-choice-none": (ask(tools=[TOOL], tool_choice={"type": "none"}), ask(tools=[TOOL])),
    "parallel": (
        ask(tool_choice={"type": "auto", "disable_parallel_tool_use": True}),
        ask(tool_choice={"type": "auto"}),
    ),
    "no-tools": (ask(tools=[]), ask()),
    "metadata": (ask(metadata={}), ask()),
    "ttl": (ask(cache_control={"type": "ephemeral", "ttl": "1h"}), ask(cache_control=EPHEMERAL)),
    "cache-control": (ask(cache_control=EPHEMERAL), ask()),
    "cache-control-of-a-block": (ask(tell(text("hi", cache_control=EPHEMERAL))), ask(HI)),
    "thinking": (ask(thinking={"type": "disabled"}), ask()),
    "service-tier": (ask(service_tier="auto"), ask()),
    "opted-in-diagnostics": (ask(diagnostics={"previous_message_id": None}), ask(diagnostics={})),
    "blank-system": (ask(system=""), ask(system=" \n")),
    "empty-content": (ask(HI, answer(), HI), ask(HI, {"role": "assistant"}, HI)),
    "compaction-that-failed": (
        ask(HI, answer({**COMPACTED, "content": None}), HI),
        ask(HI, answer({"type": "compaction"}), HI),
    ),
    "tool-changes-that-are-none": (
        ask(HI, answer({**COMPACTED, "tool_changes": []}), HI),
        ask(HI, answer(COMPACTED), HI),
    ),
    "citations-of-a-document": (
        ask(tell({**DOCUMENT, "citations": {"enabled": False}}, text("?"))),
        ask(tell(DOCUMENT, text("?"))),
    ),
    "empty-input": (ask(HI, answer(use("a") | {"input": {}}), HI), ask(HI, answer(use("a")), HI)),
    "null-in-an-input": (
        ask(HI, answer(use("a") | {"input": {"citations": None}}), HI),
        ask(HI, answer(use("a") | {"input": {}}), HI),
    ),
    "is-error": (ask(*CALLED[:2], tell(result("toolu_1", is_error=False))), ask(*CALLED)),
    "ids-crossed": (
        ask(HI, answer(use("a"), use("b")), tell(result("a", "1"), result("b", "2"))),
        ask(HI, answer(use("a"), use("b")), tell(result("b", "1"), result("a", "2"))),
    ),
    "ids-of-other-blocks": (ask(tell({"type": "note", "id": "a"})), ask(tell({"type": "note", "id": "b"}))),
    "previous-message": (
        ask(thread={"type": "continue", "previous_message_id": "msg_1"}),
        ask(thread={"type": "continue", "previous_message_id": "msg_2"}),
    ),
    "signature": (
        ask(HI, answer({"type": "thinking", "thinking": "a", "signature": SIGNATURE}), HI),
        ask(HI, answer({"type": "thinking", "thinking": "a", "signature": SIGNATURE[1:]}), HI),
    ),
    "redacted-thinking": (
        ask(HI, answer({"type": "redacted_thinking", "data": SIGNATURE}), HI),
        ask(HI, answer({"type": "redacted_thinking", "data": SIGNATURE[1:]}), HI),
    ),
    # Blanks that mean something.
    "blanks-of-a-prefill": (
        ask(HI, {"role": "assistant", "content": "a "}),
        ask(HI, {"role": "assistant", "content": "a"}),
    ),
    "blanks-of-a-prefill-in-blocks": (
        ask(HI, answer(text("a "), text("b "))),
        ask(HI, answer(text("a"), text("b "))),
    ),
    "blanks-of-thinking": (
        ask(HI, answer({"type": "thinking", "thinking": "a ", "signature": SIGNATURE}), HI),
        ask(HI, answer({"type": "thinking", "thinking": "a", "signature": SIGNATURE}), HI),
    ),
    "blanks-of-a-compaction": (
        ask(HI, answer({**COMPACTED, "content": "a "}), HI),
        ask(HI, answer({**COMPACTED, "content": "a"}), HI),
    ),
    "blanks-of-an-input": (
        ask(HI, answer(use("a") | {"input": {"text": "a "}}), HI),
        ask(HI, answer(use("a") | {"input": {"text": "a"}}), HI),
    ),
    "blanks-of-a-document": (
        ask(tell(with_in(DOCUMENT, "source", data="a "), text("?"))),
        ask(tell(with_in(DOCUMENT, "source", data="a"), text("?"))),
    ),
    "blanks-of-a-citation": (
        ask(HI, answer(text("a", citations=[{**CITED, "cited_text": "x "}])), HI),
        ask(HI, answer(text("a", citations=[CITED])), HI),
    ),
    "blanks-of-a-stop-sequence": (ask(stop_sequences=["a "]), ask(stop_sequences=["a"])),
}


@pytest.mark.parametrize(("one", "two"), DIFFERENT.values(), ids=DIFFERENT)
def test_calls_that_may_get_another_answer_do_not(one: Call, two: Call) -> None:
    """What no documentation calls the same is not."""
    assert key_of(one) != key_of(two)


@pytest.mark.parametrize("made", [pair[0] for pair in [*SAME.values(), *DIFFERENT.values()]])
def test_the_rules_applied_again_change_nothing(made: Call) -> None:
    """And the survey finds everything that they would."""
    once: Any = slow_document(draft_of(made))
    again = call(json.dumps(once["body"]["json"]), url=URL)

    assert once == {**once, "body": {"json": body_of(made)}}
    assert once["body"]["json"] == body_of(again)


@pytest.mark.parametrize("name", sorted(ANTHROPIC_MESSAGES.folds.null))
def test_null_is_folded_where_the_types_have_it(name: str) -> None:
    """Only null: what is empty may say something."""
    assert key_of(ask()) == key_of(ask(**{name: None}))
    assert 4 == len({key_of(ask(**{name: value})) for value in (None, "", [], {})})


@pytest.mark.parametrize("path", ANTHROPIC_MESSAGES.folds.null_below.texts)
def test_null_is_folded_further_down(path: str) -> None:
    """At each path of the table; nothing but null is."""
    null, zero, nothing = (_body_with(path, value) for value in (None, 0, ...))

    assert key_of(null) == key_of(nothing)
    assert key_of(zero) != key_of(nothing)


def _body_with(path: str, value: object) -> Call:
    """Return a call with a value at one path of the table, or without it."""
    holder, _, name = path.rpartition(".")
    kind = path.partition("=='")[2].partition("']")[0]
    made: Any = {"type": kind} if kind else {"more": 1}
    if value is not ...:
        made[name] = value
    steps = holder.replace(f"[?@.type=='{kind}']", "[*]").split(".")
    for number, step in enumerate(reversed(steps)):
        key = step.removesuffix("[*]")
        # Beside another element, so that no list of one text becomes a text.
        made = {key: [made, {"more": 2}] if step.endswith("[*]") else made}
        if number < len(steps) - 1:
            made["more"] = number
    return ask(**made)


@pytest.mark.parametrize(
    ("host", "is_folded", "is_own"),
    [
        ("api.anthropic.com", True, True),
        ("us-east5-aiplatform.googleapis.com", True, True),
        ("aiplatform.eu.rep.googleapis.com", True, True),
        ("bedrock-runtime.us-east-1.amazonaws.com", True, True),
        ("bedrock-mantle.us-east-1.api.aws", True, True),
        ("r.services.ai.azure.com", True, True),
        ("gateway.example.com", True, False),
        ("anthropic.com.evil.example", True, False),
        ("openrouter.ai", False, False),
        ("localhost", False, False),
        ("10.0.0.7", False, False),
    ],
)
def test_only_servers_that_have_the_default_fold_it(host: str, is_folded: bool, is_own: bool) -> None:
    """A local server or OpenRouter takes the temperature of the model; of others a hit warns."""
    url = f"https://{host}/v1/messages"

    assert is_folded is (key_of(ask(url=url, temperature=1)) == key_of(ask(url=url)))
    assert is_own is ANTHROPIC_MESSAGES.folds.is_own_host(host)
    assert not (is_own and is_local(host))


def test_folding_can_be_switched_off() -> None:
    """Then every member counts."""
    policy = KeyPolicy(defaults=False)

    assert key_of(ask(temperature=1), policy) != key_of(ask(), policy)
    assert key_of(ask(tell(text("hi"))), policy) != key_of(ask(HI), policy)


# -- what is stored ------------------------------------------------------------------------------------

BASE64 = "iVBORw0KGgoA" * 200
IMAGE: dict[str, Json] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": BASE64},
}


def stored(made: Call) -> Any:
    body: Any = draft_of(made).request["json"]
    return body["messages"]


@pytest.mark.parametrize(
    ("block", "path"),
    [
        (IMAGE, "source"),
        ({**IMAGE, "type": "document"}, "source"),
        (result("a", [IMAGE]), "content.0.source"),
        ({"type": "document", "source": {"type": "content", "content": [IMAGE]}}, "source.content.0.source"),
        (with_in(FETCHED, "content.content", source=IMAGE["source"]), "content.content.source"),
    ],
    ids=["image", "document", "in-a-result", "in-a-document", "fetched"],
)
def test_base64_is_stored_as_a_digest(block: dict[str, Json], path: str) -> None:
    """A conversation that carries one image fifty times stays small."""
    holder = stored(ask(tell(block)))[0]["content"][0]
    for step in path.split("."):
        holder = holder[int(step) if step.isdigit() else step]

    assert {"$bytes": len(BASE64)} == {name: holder["data"][name] for name in ("$bytes",)}
    assert BASE64 not in json.dumps(stored(ask(tell(block))))


def test_a_plain_text_document_stays_readable() -> None:
    """Its ``data`` are text, whatever their alphabet; a miss shows them, and masks apply."""
    block: Any = with_in(DOCUMENT, "source", data=BASE64)

    assert BASE64 == stored(ask(tell(block, IMAGE)))[0]["content"][0]["source"]["data"]


#: By the looks of it the id of an AWS key.
ACCIDENT = "AKIAQ3EGRSTUVWXYZ234"

SEALED = {
    "thinking": ({"type": "thinking", "thinking": "a", "signature": ACCIDENT}, "signature"),
    "redacted-thinking": ({"type": "redacted_thinking", "data": ACCIDENT}, "data"),
    "compaction": ({**COMPACTED, "signature": ACCIDENT}, "signature"),
    "compaction-encrypted": ({**COMPACTED, "encrypted_content": ACCIDENT}, "encrypted_content"),
    "citation": (
        text("a", citations=[{**CITED, "encrypted_index": ACCIDENT}]),
        "citations.0.encrypted_index",
    ),
    "search": (with_in(SEARCHED, "content.0", encrypted_content=ACCIDENT), "content.0.encrypted_content"),
    "code": (with_in(EDITED, "content", encrypted_stdout=ACCIDENT), "content.encrypted_stdout"),
    "advisor": (with_in(EDITED, "content", encrypted_content=ACCIDENT), "content.encrypted_content"),
}


@pytest.mark.parametrize(("block", "path"), SEALED.values(), ids=SEALED)
def test_what_is_signed_or_encrypted_survives_redaction(block: Any, path: str) -> None:
    """It has to come back to the byte; the same characters elsewhere are a key."""
    said = stored(ask({"role": "user", "content": ACCIDENT}, answer(block), HI))
    holder = said[1]["content"][0]
    for step in path.split("."):
        holder = holder[int(step) if step.isdigit() else step]

    assert ACCIDENT == holder
    assert said[0]["content"].startswith("<redacted:aws-key-id:")


def test_a_signature_of_somebody_else_is_redacted() -> None:
    """The name alone exempts nothing."""
    block = use("a") | {"input": {"signature": ACCIDENT}}
    said = stored(ask(HI, answer(block, {"type": "text", "text": "a", "signature": ACCIDENT}), HI))

    assert ACCIDENT not in json.dumps(said)


# -- the answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "finish", "is_failure"),
    [
        ({"type": "message", "stop_reason": "end_turn"}, "end_turn", False),
        ({"type": "message", "stop_reason": "refusal", "error": None}, "refusal", False),
        ({"type": "message"}, None, False),
        ({"type": "error", "error": {"type": "overloaded_error"}}, None, True),
        ({"type": "error"}, None, True),
        ({"error": "overloaded"}, None, True),
        ([], None, False),
        ("x", None, False),
        (None, None, False),
    ],
)
def test_an_answer_says_how_it_ended(answered: Any, finish: Any, is_failure: bool) -> None:
    """A refusal is an answer; an error with a good status is none."""
    assert finish == ANTHROPIC_MESSAGES.finish(answered)
    assert is_failure is ANTHROPIC_MESSAGES.is_failure(answered)
