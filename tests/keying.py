"""Calls and their keys, for tests: the way of a call from its bytes to its key, without a client."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from httpx_cassette._call import Call, Json
from httpx_cassette._fingerprint import RULES, Draft, assemble_document, hash_document, key_document
from httpx_cassette._policy import DEFAULT_POLICY, KeyPolicy
from httpx_cassette._redact import Redaction
from httpx_cassette._request import Reading, read_call, stored_request
from httpx_cassette.dialects import recognise

CHAT = "https://api.openai.com/v1/chat/completions"

#: An address that no dialect knows.
OTHER = "https://api.example.com/v1/x"

HI: Json = {"role": "user", "content": "hi"}

# -- calls ---------------------------------------------------------------------------------------------


def call(
    body: Any = b"",
    *,
    url: str = CHAT,
    method: str = "POST",
    content_type: str | None = "application/json",
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
) -> Call:
    """Return a call; a body that is no text and no bytes is written as JSON."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if not isinstance(data, bytes):
        data = json.dumps(data).encode()
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    if content_type is not None:
        pairs.append(("Content-Type", content_type))
    return Call(method, url, tuple((name.encode(), value.encode("latin-1")) for name, value in pairs), data)


def chat(*messages: Json, url: str = CHAT, **members: Any) -> Call:
    """Return a chat call; a message that is a text, or a list of parts, is one of the user."""
    listed = [
        message if isinstance(message, dict) else {"role": "user", "content": message} for message in messages
    ]
    return call({"model": "gpt-4.1-mini", "messages": listed or [HI], **members}, url=url)


def assistant(*calls: tuple[str, str], **members: Json) -> Json:
    """Return an assistant message that calls tools: pairs of id and arguments."""
    return {
        "role": "assistant",
        "tool_calls": [
            {"id": name, "type": "function", "function": {"name": "f", "arguments": arguments}}
            for name, arguments in calls
        ],
        **members,
    }


def result(reference: str, content: str) -> Json:
    """Return the message with the result of a tool call."""
    return {"role": "tool", "tool_call_id": reference, "content": content}


# -- keys ----------------------------------------------------------------------------------------------


def reading_of(made: Call, redact: object = True) -> Reading:
    """Return a call as read."""
    return read_call(made, Redaction.of(redact))


def draft_of(made: Call, policy: KeyPolicy = DEFAULT_POLICY, *, redact: object = True) -> Draft:
    """Return the stored form of a call, ready for the rules."""
    reading = reading_of(made, redact)
    dialect = recognise(reading.target.path, reading.body if reading.kind == "json" else None)
    request, _ = stored_request(reading, Redaction.of(redact), dialect, policy.key_headers)
    return Draft(request, dialect, policy, reading.target.host)


def document_of(made: Call, policy: KeyPolicy = DEFAULT_POLICY, **options: Any) -> dict[str, Json]:
    """Return the key document of a call, before long strings became digests."""
    prompt_files = options.pop("prompt_files", None)
    return key_document(draft_of(made, policy, **options), prompt_files)


def slow_document(draft: Draft) -> dict[str, Json]:
    """Return the key document of a draft by every rule in full, without a survey."""
    for _, rule in RULES:
        rule(draft)
    return assemble_document(draft)


def body_of(made: Call, policy: KeyPolicy = DEFAULT_POLICY, **options: Any) -> Any:
    """Return the JSON body in the key document of a call."""
    body: Any = document_of(made, policy, **options)["body"]
    return body["json"]


def key_of(made: Call, policy: KeyPolicy = DEFAULT_POLICY, **options: Any) -> str:
    """Return the fingerprint of a call."""
    return hash_document(document_of(made, policy, **options)).hex()


# -- any JSON ------------------------------------------------------------------------------------------

_CHARACTERS = st.one_of(
    st.characters(codec="utf-8"),
    # Where sorting, escaping and encoding have their edges.
    st.sampled_from(
        '\x00\x1f "\\/$\x7f\x80é\u2028\ud7ff\ud800\udbff\udc00\udfff\ue000\ufb33\uffff\U00010000\U0001f600'
    ),
)

#: Texts with lone surrogates, astral characters and everything that is escaped.
TEXTS = st.text(_CHARACTERS, max_size=20)

#: Whole numbers, many beyond 64 bits.
INTEGERS = st.one_of(
    st.integers(),
    st.sampled_from([2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**64 + 1, -(2**63) - 1]),
)

#: Numbers that JSON can hold, whole ones and those at the edges of notation among them.
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**70), 2**70).map(float),
    st.sampled_from(
        [-0.0, 1e-4, 9.99e-5, 1e-6, 1e-7, 1e15, 1e16, 1e20, 1e21, 2.0**53, 2.0**63, 2.0**64, 5e-324]
    ),
)

#: Any JSON at all.
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
