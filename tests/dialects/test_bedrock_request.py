"""Requests of Bedrock's Converse and of Nova's own format: where, the system prompt, and what is one key."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Call
from httpx_cassette._call import Json
from httpx_cassette._redact import Redaction
from httpx_cassette._url import read_target
from httpx_cassette.dialects import ANTHROPIC_MESSAGES, BEDROCK, GENERIC, Dialect, recognise
from tests.keying import body_of, call, draft_of, key_of, slow_document

HOST = "https://bedrock-runtime.us-east-1.amazonaws.com"
CLAUDE = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0"
NOVA = "/model/us.amazon.nova-micro-v1%3A0"
PROMPT = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A000000000000%3Aprompt%2FABCDEFGHIJ"

SYSTEM: Json = [{"text": "Be brief."}]
HI: Json = {"role": "user", "content": [{"text": "hi"}]}
IMAGE = "iVBORw0KGgo" * 200


def converse(*messages: Json, **members: Any) -> Call:
    """Return a call of Converse with these messages and a system prompt."""
    body = {"system": SYSTEM, "messages": list(messages) or [HI], **members}
    return call(body, url=f"{HOST}{CLAUDE}/converse")


def said(*blocks: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": list(blocks)}


def asked(*blocks: Json) -> dict[str, Json]:
    return {"role": "user", "content": list(blocks)}


def use(ident: str, **arguments: Json) -> Json:
    return {"toolUse": {"toolUseId": ident, "name": "f", "input": arguments}}


def result(ident: str, *content: Json) -> Json:
    return {"toolResult": {"toolUseId": ident, "content": list(content) or [{"text": "1"}]}}


def thought(text: str, signature: str) -> Json:
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}


# -- where it is spoken --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        (f"{CLAUDE}/converse", {"messages": [HI]}, BEDROCK),
        ("/model/anthropic.claude-v2:1/converse", {"messages": []}, BEDROCK),
        (f"/bedrock{CLAUDE}/converse-stream", {"messages": [HI], "system": SYSTEM}, BEDROCK),
        (f"{PROMPT}/converse", {"promptVariables": {"name": {"text": "x"}}}, BEDROCK),
        # A route of somebody else's, and what says nothing to a model.
        ("/converse", {"messages": [HI]}, GENERIC),
        (f"{CLAUDE}/converse", {"messages": {}}, GENERIC),
        (f"{CLAUDE}/converse", {}, GENERIC),
        (f"{CLAUDE}/converse", None, GENERIC),
        (f"{CLAUDE}/count-tokens", {"input": {"converse": {"messages": [HI]}}}, GENERIC),
        # A format of its own for each model.
        (f"{NOVA}/invoke", {"messages": [HI]}, BEDROCK),
        (f"{NOVA}/invoke-with-response-stream", {"messages": [HI], "schemaVersion": "messages-v1"}, BEDROCK),
        ("/model/amazon.nova-2-lite-v1:0/invoke", {"messages": [HI]}, BEDROCK),
        ("/model/amazon.nova-canvas-v1%3A0/invoke", {"taskType": "TEXT_IMAGE"}, GENERIC),
        (f"{CLAUDE}/invoke", {"messages": [], "anthropic_version": "bedrock-2023-05-31"}, ANTHROPIC_MESSAGES),
        ("/model/meta.llama3-70b-instruct-v1%3A0/invoke-with-response-stream", {"prompt": "hi"}, GENERIC),
        ("/model/mistral.pixtral-large/invoke", {"messages": [{"role": "user", "content": "hi"}]}, GENERIC),
        ("/model/amazon.titan-text-express-v1/invoke", {"inputText": "hi"}, GENERIC),
    ],
)
def test_a_call_is_recognised_by_path_and_shape(path: str, body: Any, dialect: Dialect) -> None:
    """Of what models speak themselves, Nova's by its name and Anthropic's by its version."""
    assert dialect is recognise(path, body)


@pytest.mark.parametrize(
    ("dialect", "path", "wants_stream"),
    [
        (BEDROCK, f"{CLAUDE}/converse", False),
        (BEDROCK, f"{CLAUDE}/converse-stream", True),
        (BEDROCK, f"{NOVA}/invoke", False),
        (BEDROCK, f"{NOVA}/invoke-with-response-stream", True),
        (ANTHROPIC_MESSAGES, f"{CLAUDE}/invoke", False),
        (ANTHROPIC_MESSAGES, f"{CLAUDE}/invoke-with-response-stream", True),
    ],
)
def test_the_path_says_whether_a_stream_is_wanted(dialect: Dialect, path: str, wants_stream: bool) -> None:
    """In binary messages; at Anthropic's own host they are events."""
    assert wants_stream is dialect.wants_stream(path, {"messages": []})
    assert wants_stream is dialect.has_binary_streams(path)
    assert not ANTHROPIC_MESSAGES.has_binary_streams("/v1/messages")


# -- the system prompt ---------------------------------------------------------------------------------

assert BEDROCK.system is not None
missing = BEDROCK.system.missing

NONE, BLANK = "no member system", "a member system without a text"
GUARDED: Json = {"guardContent": {"text": {"text": "Be brief.", "qualifiers": ["grounding_source"]}}}
CACHE: Json = {"cachePoint": {"type": "default"}}


@pytest.mark.parametrize(
    ("members", "found", "found_anywhere"),
    [
        ({"system": SYSTEM}, None, None),
        ({"system": [CACHE, {"text": "Be brief."}]}, None, None),
        ({"system": [GUARDED]}, None, None),
        ({}, NONE, NONE),
        ({"system": None}, NONE, NONE),
        ({"system": []}, BLANK, BLANK),
        ({"system": [{"text": " \n"}]}, BLANK, BLANK),
        ({"system": [CACHE]}, BLANK, BLANK),
        ({"system": [{"guardContent": {"text": {"text": " "}}}]}, BLANK, BLANK),
        ({"system": [{"guardContent": {"image": {}}}]}, BLANK, BLANK),
        ({"system": [{"guardContent": None}, "Be brief."]}, BLANK, BLANK),
        ({"system": "Be brief."}, BLANK, BLANK),
        # A message may have the role.
        ({"messages": [{"role": "system", "content": [{"text": "Be brief."}]}, HI]}, None, None),
        ({"messages": [HI, {"role": "system", "content": [{"text": "Be brief."}]}]}, NONE, None),
        ({"messages": [{"role": "system", "content": [{"text": " "}]}, HI]}, NONE, NONE),
        ({"messages": ["hi"]}, NONE, NONE),
        # The prompt is at the server.
        ({"promptVariables": {"name": {"text": "x"}}}, None, None),
        ({"promptVariables": {}}, NONE, NONE),
    ],
)
def test_the_system_prompt_is_a_list_of_blocks(
    members: dict[str, Json], found: str | None, found_anywhere: str | None
) -> None:
    """One of them has a text; a mark of the cache says nothing."""
    body: dict[str, Json] = {"messages": [HI], **members}

    assert (found, found_anywhere) == (missing(body, False), missing(body, True))


def test_a_prompt_at_the_server_needs_no_messages() -> None:
    """Nor a system prompt, which could not be sent with it."""
    assert missing({"promptVariables": {}}, False) is None


# -- what is one key -----------------------------------------------------------------------------------

TOOLS: Json = [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]

SAME: dict[str, tuple[Call, Call]] = {
    "tool-choice": (
        converse(toolConfig={"tools": TOOLS}),
        converse(toolConfig={"tools": TOOLS, "toolChoice": {"auto": {}}}),
    ),
    "blanks": (converse(), converse(asked({"text": "hi\t "}), system=[{"text": "Be brief.  "}])),
    "guarded-blanks": (
        converse(asked({"guardContent": {"text": {"text": "hi"}}}), system=[GUARDED]),
        converse(
            asked({"guardContent": {"text": {"text": "hi "}}}),
            system=[{"guardContent": {"text": {"text": "Be brief. ", "qualifiers": ["grounding_source"]}}}],
        ),
    ),
    "blanks-of-a-result": (
        converse(HI, said(use("a")), asked(result("a", {"text": "1"}))),
        converse(HI, said(use("a")), asked(result("a", {"text": "1 "}))),
    ),
    "ids": (
        converse(HI, said(use("a"), use("b")), asked(result("b"), result("a"))),
        converse(HI, said(use("x"), use("y")), asked(result("y"), result("x"))),
    ),
    "members-in-another-order": (
        converse(HI, said(use("a")), asked(result("a"))),
        converse(
            HI,
            said({"toolUse": {"input": {}, "name": "f", "toolUseId": "b"}}),
            asked({"toolResult": {"content": [{"text": "1"}], "toolUseId": "b"}}),
        ),
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_these_are_one_key(name: str) -> None:
    """The documented default, trailing blanks, and ids that only tie a call to its result."""
    one, other = SAME[name]

    assert key_of(one) == key_of(other)
    assert slow_document(draft_of(one)) == slow_document(draft_of(other))


DIFFERENT: dict[str, tuple[Call, Call]] = {
    "model": (converse(), call(body_of(converse()), url=f"{HOST}{NOVA}/converse")),
    "stream": (converse(), call(body_of(converse()), url=f"{HOST}{CLAUDE}/converse-stream")),
    # The model decides them.
    "sampling": (converse(), converse(inferenceConfig={"temperature": 1})),
    "nothing": (converse(), converse(inferenceConfig={})),
    "null": (converse(), converse(toolConfig=None)),
    "other-tool-choice": (
        converse(toolConfig={"tools": TOOLS}),
        converse(toolConfig={"tools": TOOLS, "toolChoice": {"any": {}}}),
    ),
    "cache": (converse(), converse(system=[{"text": "Be brief."}, CACHE])),
    "results-swapped": (
        converse(HI, said(use("a"), use("b")), asked(result("b"), result("a", {"text": "2"}))),
        converse(HI, said(use("a"), use("b")), asked(result("a"), result("b", {"text": "2"}))),
    ),
    "prefill-blanks": (
        converse(HI, said({"text": "So"})),
        converse(HI, said({"text": "So "})),
    ),
    "thoughts": (
        converse(HI, said(thought("a", "s"), {"text": "b"}), HI),
        converse(HI, said(thought("a ", "s"), {"text": "b"}), HI),
    ),
    "arguments": (
        converse(HI, said(use("a", text="b")), asked(result("a"))),
        converse(HI, said(use("a", text="b ")), asked(result("a"))),
    ),
    "result-in-json": (
        converse(HI, said(use("a")), asked(result("a", {"json": {"text": "b"}}))),
        converse(HI, said(use("a")), asked(result("a", {"json": {"text": "b "}}))),
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_are_two_keys(name: str) -> None:
    """What may change the answer, and every default that a model decides."""
    one, other = DIFFERENT[name]

    assert key_of(one) != key_of(other)


@pytest.mark.parametrize("kind", ["image", "document", "video", "audio"])
def test_media_are_digests(kind: str) -> None:
    """Wherever bytes stand; a file at S3 is named."""
    block: Json = {kind: {"format": "any", "source": {"bytes": IMAGE}}}
    at_s3: Json = {kind: {"format": "any", "source": {"s3Location": {"uri": "s3://bucket/a"}}}}
    body = body_of(converse(asked(block, at_s3, {"image": {"source": {"bytes": "short"}}})))

    stored, named, short = body["messages"][0]["content"]
    assert ["$bytes", "$sha256"] == sorted(stored[kind]["source"]["bytes"])
    assert at_s3 == named
    assert "short" == short["image"]["source"]["bytes"]


def test_media_of_results_and_guardrails_are_digests() -> None:
    """Too, and in what a guardrail looks at in the system prompt."""
    image: Json = {"image": {"format": "png", "source": {"bytes": IMAGE}}}
    guarded: Json = {"guardContent": image}
    body = body_of(
        converse(said(use("a")), asked(result("a", image), guarded), system=[{"text": "x"}, guarded])
    )

    found, seen = body["messages"][1]["content"]
    digest = found["toolResult"]["content"][0]["image"]["source"]["bytes"]
    assert ["$bytes", "$sha256"] == sorted(digest)
    assert digest == seen["guardContent"]["image"]["source"]["bytes"]
    assert digest == body["system"][1]["guardContent"]["image"]["source"]["bytes"]


def test_what_a_server_signed_is_kept_to_the_byte() -> None:
    """Also where it looks like a credential."""
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    blocks: list[Json] = [
        thought(f"a {key}", f"x{key}=="),
        {"reasoningContent": {"redactedContent": f"x{key}=="}},
        {"text": key},
    ]
    stored = body_of(converse(said(*blocks), HI))["messages"][0]["content"]

    assert f"x{key}==" == stored[0]["reasoningContent"]["reasoningText"]["signature"]
    assert f"x{key}==" == stored[1]["reasoningContent"]["redactedContent"]
    assert key not in stored[2]["text"]
    assert key not in stored[0]["reasoningContent"]["reasoningText"]["text"]


# -- who signed it -------------------------------------------------------------------------------------

SIGNED = "X-Amz-Algorithm X-Amz-Credential X-Amz-Date X-Amz-Expires X-Amz-Security-Token X-Amz-Signature"


def test_neither_who_signed_a_call_nor_when_is_in_the_key() -> None:
    """Headers have no part in it, and a query that was signed beforehand has none of the signature."""
    headers = {
        "authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/bedrock/aws4_request, Signature=0",
        "x-amz-date": "20260101T000000Z",
        "x-amz-security-token": "IQoJb3JpZ2luX2VjEXAMPLE",
    }
    query = "&".join(f"{name}=value" for name in SIGNED.split())
    url = f"{HOST}{CLAUDE}/converse"
    body = body_of(converse())

    assert key_of(converse()) == key_of(call(body, url=url, headers=headers))
    assert key_of(converse()) == key_of(call(body, url=f"{url}?{query}"))
    assert url == read_target(f"{url}?{query}", Redaction.of(True)).stored


# -- the answer ----------------------------------------------------------------------------------------

OUTPUT: Json = {"message": {"role": "assistant", "content": [{"text": "hi"}]}}


@pytest.mark.parametrize(
    ("document", "finish", "is_failure"),
    [
        ({"output": OUTPUT, "stopReason": "end_turn", "usage": {}}, "end_turn", False),
        ({"output": OUTPUT}, None, False),
        ({"message": "Too many requests"}, None, True),
        ({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}}, None, True),
        ([], None, False),
    ],
)
def test_what_an_answer_says_of_itself(document: Any, finish: Any, is_failure: bool) -> None:
    """Why it stopped, or that it is none."""
    assert (finish, is_failure) == (BEDROCK.finish(document), BEDROCK.is_failure(document))
