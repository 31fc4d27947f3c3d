"""The key document: which rule changes what, and in which order."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import KEY_VERSION, KeyPolicy
from httpx_cassette._call import Json
from httpx_cassette._digests import digest_of
from httpx_cassette._fingerprint import PREFIX, RULES, Draft, Key, hash_document, key_document
from httpx_cassette._paths import Paths
from httpx_cassette.dialects import GENERIC, OPENAI_CHAT, Dialect, Folds

from .keying import (
    CHAT,
    HI,
    JSON,
    OTHER,
    assistant,
    body_of,
    call,
    chat,
    document_of,
    draft_of,
    key_of,
    result,
)

CHAT_DEFAULTS = OPENAI_CHAT.folds.defaults


def rest(made: Any, *arguments: Any, **options: Any) -> dict[str, Json]:
    """Return the body of a chat call's key document without its model and messages."""
    body = body_of(made, *arguments, **options)
    return {name: value for name, value in body.items() if name not in ("model", "messages")}


def contents(made: Any, policy: KeyPolicy | None = None) -> list[Json]:
    """Return the contents of the messages in a key document."""
    return [message.get("content") for message in body_of(made, policy or KeyPolicy())["messages"]]


# -- the whole -----------------------------------------------------------------------------------------


def test_a_fingerprint_is_the_hash_of_version_and_canonical_bytes() -> None:
    """The version stands inside the hash."""
    assert (1, b"httpx-cassette key 1\n") == (KEY_VERSION, PREFIX)
    assert hashlib.sha256(b'httpx-cassette key 1\n{"a":1}').digest() == hash_document({"a": 1.0})
    assert "00" * 31 + "ff" == Key(bytes(31) + b"\xff").fingerprint


def test_a_part_without_content_is_left_out() -> None:
    """Method and URL alone, and each part only where there is something in it."""
    assert {"method": "GET", "url": OTHER} == document_of(call(method="GET", url=OTHER))
    assert ["method", "url", "headers", "body", "prompt_files", "extra"] == [
        *document_of(
            chat(), KeyPolicy(extra={"a": 1}, headers=["Content-Type"]), prompt_files={"a.md": digest_of("x")}
        )
    ]


@pytest.mark.parametrize(
    ("made", "body"),
    [
        (call(b"null"), {"json": None}),
        (call("x", content_type="text/plain"), {"text": "x"}),
        (
            call("b=1&a=2&b=0", content_type="application/x-www-form-urlencoded"),
            {"form": [["a", "2"], ["b", "1"], ["b", "0"]]},
        ),
        (call(b"--B--", content_type="multipart/form-data; boundary=B"), {"parts": []}),
        (call(b"\xff"), {"bytes": digest_of(b"\xff")}),
        (call(b"x", headers={"content-encoding": "br"}), {"bytes": digest_of(b"x"), "encoding": "br"}),
    ],
    ids=["json", "text", "form", "parts", "bytes", "encoded"],
)
def test_a_body_stands_under_its_kind(made: Any, body: Json) -> None:
    """So that a text is never taken for the JSON that it looks like."""
    assert body == document_of(made)["body"]


def test_the_rules_have_names_in_their_order() -> None:
    """The order is part of the key: redact, ignore, strip, mask, fold, rename, names, digests."""
    assert ["ignore", "strip", "mask", "fold", "rename", "names"] == [name for name, _ in RULES]


def test_the_order_of_the_rules_counts() -> None:
    """Stripped before masked, masked before folded, ignored before all of them."""
    masks = KeyPolicy(
        masks={"end": r"[ab]\Z"}, ignore=["messages[*].content[0]"], defaults={"user": "<end:1>"}
    )
    parts: Json = [{"type": "text", "text": "gone"}, {"type": "text", "text": "xa \t"}]

    assert ["x<end:1>"] == contents(chat(parts), masks)
    assert {} == rest(chat("x", user="b"), masks)


@given(JSON, JSON, st.sampled_from(["openai-chat", "generic"]))
def test_any_json_has_a_key(value: Json, message: Json, dialect: str) -> None:
    """Whatever stands where a dialect expects something else."""
    url = CHAT if dialect == "openai-chat" else OTHER
    body: dict[str, Json] = {"messages": [value, message], "tools": message, "stream_options": value}
    for sent in (
        {**body, "stop": value},
        {"messages": [{"role": value, "content": message, "tool_calls": [value]}]},
    ):
        made = call(sent, url=url)
        assert 64 == len(key_of(made, KeyPolicy(masks=["date"], ignore=["messages[*].x", "tools[*]"])))


# -- headers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"Anthropic-Beta": "b,a"}, {"anthropic-beta": ["a", "b"]}),
        ({"openai-beta": ""}, None),
        ({"openai-beta": ",", "anthropic-beta": "x"}, {"anthropic-beta": ["x"]}),
        ({"x-tag": ""}, {"x-tag": ""}),
        ({"X-Tag": "b, a"}, {"x-tag": "b, a"}),
        ({"x-stainless-os": "Linux", "authorization": "Bearer x"}, None),
    ],
)
def test_few_headers_enter(headers: dict[str, str], expected: Json) -> None:
    """Betas as sorted lists, those of the policy as sent; an empty list of betas is none."""
    policy = KeyPolicy(headers=["X-Tag"])

    assert expected == document_of(call(b"{}", headers=headers), policy).get("headers")


# -- strip ---------------------------------------------------------------------------------------------


def test_conversational_text_is_stripped() -> None:
    """Contents and text parts of every role, tool results too."""
    parts: Json = [
        {"type": "text", "text": "a \n"},
        {"type": "refusal", "refusal": "b\t"},
        {"type": "x", "data": "c "},
    ]
    made = chat(
        {"role": "system", "content": "s \r\nt "},
        parts,
        assistant(("i", "{} ")),
        result("i", "r "),
        {"role": "user"},
    )

    assert [
        "s\nt",
        [{"type": "text", "text": "a\n"}, {"type": "refusal", "refusal": "b"}, {"type": "x", "data": "c "}],
        None,
        "r",
        None,
    ] == contents(made)
    assert "{} " == body_of(made)["messages"][2]["tool_calls"][0]["function"]["arguments"]


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        ({"role": "assistant", "content": "a "}, "a "),
        ({"role": "assistant", "content": [{"type": "text", "text": "a "}]}, "a "),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "a "}]},
            [{"type": "refusal", "refusal": "a "}],
        ),
        ({"role": "user", "content": "a "}, "a"),
        ({"role": ["assistant"], "content": "a "}, "a"),
    ],
    ids=["text", "part", "other-part", "user", "odd-role"],
)
def test_a_prefill_is_not_stripped(last: Json, kept: Json) -> None:
    """A last message of the assistant is what the model goes on writing."""
    assert ["x", kept] == contents(chat("x ", last))


@pytest.mark.parametrize("messages", [[], "x ", None, {"a": 1}, ["x "], [[{"content": "x "}]]])
def test_messages_of_any_shape_are_no_failure(messages: Json) -> None:
    """What is no list of messages is hashed as it is."""
    made = call({"messages": messages}, url=OTHER)

    assert 64 == len(key_of(made))
    assert 64 == len(key_of(call({"messages": messages})))


def test_stripping_can_be_switched_off() -> None:
    """Then a blank is a blank."""
    assert ["a \n "] == contents(chat("a \n "), KeyPolicy(strip=False))


# -- mask ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "body"),
    [
        (call({"d": "2026-03-02", "n": 1}, url=OTHER), {"json": {"d": "<date>", "n": 1}}),
        (call('"2026-03-02"', url=OTHER), {"json": "<date>"}),
        (call("2026-03-02", content_type="text/plain"), {"text": "<date>"}),
        (
            call("2026-03-02=2026-03-02", content_type="application/x-www-form-urlencoded"),
            {"form": [["2026-03-02", "<date>"]]},
        ),
        (
            call(
                b'--B\r\nContent-Disposition: form-data; name="2026-03-02"; filename="2026-03-02.txt"\r\n'
                b"\r\n\xff\r\n"
                b"--B\r\nContent-Type: 2026-03-02\r\n\r\n2026-03-02\r\n--B--",
                content_type="multipart/form-data; boundary=B",
            ),
            {
                "parts": [
                    {"name": "2026-03-02", "filename": "<date>.txt", "bytes": digest_of(b"\xff")},
                    {"type": "2026-03-02", "text": "<date>"},
                ]
            },
        ),
        (call(b"\xff"), {"bytes": digest_of(b"\xff")}),
        (call(b""), None),
    ],
    ids=["json", "scalar", "text", "form", "parts", "bytes", "none"],
)
def test_values_of_every_kind_of_body_are_masked(made: Any, body: Json) -> None:
    """Names, and what a file is named in the form, are not values."""
    assert body == document_of(made, KeyPolicy(masks=["date"])).get("body")


# -- fold ----------------------------------------------------------------------------------------------

WITH = {"parallel_tool_calls": "tools", "tool_choice": "tools", "function_call": "functions"}


@pytest.mark.parametrize("name", CHAT_DEFAULTS)
def test_each_default_of_the_table_is_folded(name: str) -> None:
    """A member that says the default is no member, and the draft tells which."""
    needed = {WITH[name]: [{"type": "x"}]} if name in WITH else {}
    said = draft_of(chat(**{**needed, name: CHAT_DEFAULTS[name]}))

    assert key_of(chat(**needed)) == hash_document(key_document(said)).hex()
    assert [name] == said.folded


@pytest.mark.parametrize("name", CHAT_DEFAULTS)
def test_another_value_is_not_folded(name: str) -> None:
    """What differs from the default stays, also what only looks like it."""
    needed = {WITH[name]: [{"type": "x"}]} if name in WITH else {}
    default = CHAT_DEFAULTS[name]
    others: list[Json] = [f"{default}?", [default], {"x": default}, "", 7, not default]

    for other in others:
        assert other == rest(chat(**{**needed, name: other}))[name]


@pytest.mark.parametrize("name", sorted(OPENAI_CHAT.folds.null))
def test_null_is_folded_where_it_is_documented(name: str) -> None:
    """Only null: an empty list or an empty string is something."""
    assert {} == rest(chat(**{name: None}))
    assert {name: ""} == rest(chat(**{name: ""}))
    assert {name: []} == rest(chat(**{name: []}))


@pytest.mark.parametrize("name", sorted(OPENAI_CHAT.folds.empty))
@pytest.mark.parametrize("value", [None, [], {}])
def test_empty_is_folded_where_it_says_nothing(name: str, value: Json) -> None:
    """Null and empty alike; an empty string, zero and false are something."""
    assert {} == rest(chat(**{name: value}))
    assert [{name: ""}, {name: 0}, {name: False}] == [rest(chat(**{name: each})) for each in ("", 0, False)]


def test_unknown_members_stay() -> None:
    """Whatever they hold."""
    members: dict[str, Json] = {"x": None, "y": [], "z": {}, "seed ": None}

    assert members == rest(chat(**members))


@pytest.mark.parametrize(
    "name", ["refusal", "audio", "tool_calls", "function_call", "annotations", "reasoning_content"]
)
@pytest.mark.parametrize("value", [None, [], {}])
def test_what_sdks_echo_is_folded(name: str, value: Json) -> None:
    """Members of an answer that were not set, sent back with it."""
    echoed: Json = {"role": "assistant", "content": "a", name: value}

    assert key_of(chat("x", {"role": "assistant", "content": "a"}, "y")) == key_of(chat("x", echoed, "y"))


def test_an_echoed_string_stays() -> None:
    """An empty string is not an absence."""
    assert key_of(chat(HI)) != key_of(chat({"role": "user", "content": "hi", "refusal": ""}))
    assert key_of(chat({"role": "user"})) != key_of(chat({"role": "user", "content": ""}))
    assert key_of(chat({"role": "user"})) == key_of(chat({"role": "user", "content": None}))


@pytest.mark.parametrize(
    ("members", "folded"),
    [
        ({"tools": [{"function": {"name": "f", "strict": False}}]}, {"tools": [{"function": {"name": "f"}}]}),
        ({"tools": [{"function": {"strict": None}}]}, {"tools": [{"function": {}}]}),
        ({"tools": [{"function": {"strict": True}}]}, {"tools": [{"function": {"strict": True}}]}),
        ({"tools": [{"function": {"strict": 0}}]}, {"tools": [{"function": {"strict": 0}}]}),
        ({"tools": [{"strict": False}]}, {"tools": [{"strict": False}]}),
        ({"functions": [{"strict": False}, 5]}, {"functions": [{}, 5]}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"strict": False}}},
            {"response_format": {"type": "json_schema", "json_schema": {}}},
        ),
        ({"stream": True, "stream_options": {"include_usage": False}}, {"stream": True}),
        (
            {"stream_options": {"include_usage": True, "include_obfuscation": True}},
            {"stream_options": {"include_usage": True}},
        ),
        (
            {"stream_options": {"include_obfuscation": False}},
            {"stream_options": {"include_obfuscation": False}},
        ),
    ],
)
def test_defaults_further_down_are_folded(members: dict[str, Json], folded: Json) -> None:
    """At their paths and nowhere else; what becomes empty goes where empty says nothing."""
    assert folded == rest(chat(**members))


@pytest.mark.parametrize(
    ("host", "keeps"),
    [
        ("api.openai.com", False),
        ("api.together.xyz", False),
        ("openrouter.ai", True),
        ("api.mistral.ai", True),
        ("api.perplexity.ai", True),
        ("router.huggingface.co", True),
        ("localhost:11434", True),
        ("127.0.0.1", True),
        ("10.1.2.3:8000", True),
        ("[::1]:8000", True),
        ("[fd00::1]", True),
        ("8.8.8.8", False),
        ("[2606:4700::1]", False),
        ("gpu.local", True),
        ("llm.internal", True),
        ("box.lan:8080", True),
        ("node7", False),
        ("OPENROUTER.AI", True),
        ("x.openrouter.ai", False),
    ],
)
def test_servers_that_decide_per_model_keep_sampling(host: str, keeps: bool) -> None:
    """Their defaults are not those of the documentation; members of other kinds are folded all the same."""
    sent = {"temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0}
    made = chat(
        url=f"http://{host}/v1/chat/completions", **sent, n=1, stream=False, top_logprobs=None, seed=None
    )

    assert (sent if keeps else {}) == rest(made)


def test_without_the_host_the_key_is_the_same_everywhere() -> None:
    """A gateway answers from what another host recorded: the host decides about nothing."""
    policy = KeyPolicy(host=False)
    keys = {
        key_of(chat(url=f"http://{host}/v1/chat/completions", temperature=1), policy)
        for host in ("a.com", "openrouter.ai", "127.0.0.1:49152")
    }

    assert 1 == len(keys)
    assert key_of(chat(temperature=1), policy) != key_of(chat(), policy)


def test_the_table_can_be_replaced_or_switched_off() -> None:
    """A mapping is the table, False no fold of any kind."""
    sent: dict[str, Any] = {
        "temperature": 0.7,
        "n": 1,
        "tools": [],
        "parallel_tool_calls": True,
        "stop": None,
        "stream_options": {"include_usage": False},
    }
    own = KeyPolicy(defaults={"temperature": 0.7, "parallel_tool_calls": True})

    assert {"n": 1, "stream_options": {"include_usage": False}} == rest(chat(**sent), own)
    assert sent == rest(chat(**sent), KeyPolicy(defaults=False))
    assert {"temperature": 0.7, "parallel_tool_calls": True} == rest(chat(**sent))
    assert [[{"type": "text", "text": "a"}]] == contents(
        chat([{"type": "text", "text": "a"}]), KeyPolicy(defaults=False)
    )
    assert ["a"] == contents(chat([{"type": "text", "text": "a"}]), own)


def test_an_empty_table_folds_no_default() -> None:
    """But what is null or empty, as ever."""
    assert {"n": 1} == rest(chat(n=1, stop=None), KeyPolicy(defaults={}))


def test_a_table_of_ones_own_is_for_any_call() -> None:
    """Also where no dialect has one."""
    assert {"a": 2} == body_of(call({"a": 2, "b": 1.0}, url=OTHER), KeyPolicy(defaults={"a": 1, "b": 1}))


def test_null_further_down_is_told_from_empty_and_goes_before_single_parts() -> None:
    """``[]`` may say more than nothing; a part from which all but its text has gone is its text."""
    folds = Folds(
        null_below=Paths(["items[*].gone", "items[?@.type=='text'].gone", "parts[*].gone"]),
        empty_below=Paths(["parts[*].odd"]),
        single_text=Paths(["parts"]),
    )
    body: dict[str, Json] = {
        "items": [{"type": "text", "gone": None}, {"gone": []}, {"gone": 0}, None],
        "parts": [{"type": "text", "text": "hi", "gone": None, "odd": []}],
    }
    draft = Draft(
        {"method": "POST", "url": OTHER, "json": body}, Dialect("any", folds=folds), KeyPolicy(), "h"
    )
    document: Any = key_document(draft)

    assert {"items": [{"type": "text"}, {"gone": []}, {"gone": 0}, None], "parts": "hi"} == document["body"][
        "json"
    ]


def test_what_is_no_object_is_not_folded() -> None:
    """A body can be a list, or nothing at all."""
    policy = KeyPolicy(defaults={"a": 1})

    assert [{"a": 1}] == body_of(call([{"a": 1}], url=OTHER), policy)
    assert 64 == len(key_of(call(), policy))


# -- rename --------------------------------------------------------------------------------------------


def test_ids_are_renamed_at_both_ends() -> None:
    """In the order in which they appear, whatever the order of members."""
    one = chat("x", assistant(("b", "{}"), ("a", "{}")), result("a", "1"), result("b", "2"))
    swapped = chat("x", assistant(("b", "{}"), ("a", "{}")), result("b", "1"), result("a", "2"))
    body = body_of(one)

    assert ["call_1", "call_2"] == [each["id"] for each in body["messages"][1]["tool_calls"]]
    assert ["call_2", "call_1"] == [each["tool_call_id"] for each in body["messages"][2:]]
    assert key_of(one) != key_of(swapped)


def test_ids_of_another_dialect_stay() -> None:
    """Where nothing is known, nothing is renamed."""
    body = {"messages": [assistant(("b", "{}"))]}

    assert body == body_of(call(body, url=OTHER))


# -- names and digests ---------------------------------------------------------------------------------


def test_names_are_escaped_unless_there_are_none() -> None:
    """A draft that is known to hold none is not walked."""
    request: dict[str, Json] = {"method": "POST", "url": OTHER, "json": {"$a": [{"$b": 1}]}}
    walked = key_document(Draft({**request}, GENERIC, KeyPolicy(), "h"))
    not_walked = key_document(Draft({**request}, GENERIC, KeyPolicy(), "h", may_have_dollar=False))

    assert {"json": {"$$a": [{"$$b": 1}]}} == walked["body"]
    assert {"json": {"$a": [{"$b": 1}]}} == not_walked["body"]


def test_extra_cannot_look_like_a_digest() -> None:
    """What stands in it is escaped as what was sent is."""
    long = "a" * 2000
    digest = digest_of(long)

    assert {"p": {"$$sha256": digest["$sha256"], "$$bytes": 2000}, "$$x": 1} == document_of(
        chat(), KeyPolicy(extra={"p": digest, "$x": 1})
    )["extra"]
    assert key_of(chat(), KeyPolicy(extra={"p": long})) != key_of(chat(), KeyPolicy(extra={"p": digest}))
