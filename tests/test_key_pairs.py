"""Which two calls share a key, and which do not: the question that everything else is for."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any, NamedTuple

import pytest

from httpx_cassette import Call, KeyPolicy
from httpx_cassette._digests import digest_of
from httpx_cassette._fingerprint import hash_document

from .keying import HI, OTHER, assistant, call, chat, draft_of, key_of, result, slow_document

FORM = "application/x-www-form-urlencoded"
U1, U2 = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
SECRETS = [f"postgres://ann:open-sesame-{number}@db.example.com/x" for number in (1, 2)]
LONG = "a" * 2000
IMAGES = [f"data:image/png;base64,{mark * 1100}" for mark in "AB"]


class Pair(NamedTuple):
    """Two calls, the policy of both, and that of the second where it is another."""

    one: Call
    two: Call
    policy: KeyPolicy = KeyPolicy()
    other: KeyPolicy | None = None
    redact: object = True


def at(url: str, **members: Any) -> Call:
    return call(url=url, method="GET", content_type=None, **members)


def post(body: Any, **members: Any) -> Call:
    return call(body if isinstance(body, (str, bytes)) else json.dumps(body), url=OTHER, **members)


def packed(body: bytes, encoding: str = "gzip") -> Call:
    return call(body, headers={"content-encoding": encoding})


def pem(text: str) -> str:
    """Return a private key block with a text in it that is no part of a key."""
    lines = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 3
    return f"-----BEGIN PRIVATE KEY-----\n{lines}({text!r})\n-----END PRIVATE KEY-----"


def form(body: str | bytes) -> Call:
    return post(body, content_type=FORM)


def multipart(*pieces: str, boundary: str = "B", end: str = "--{}--\r\n") -> Call:
    lines = "".join(f"--{boundary}\r\n{piece}\r\n" for piece in pieces) + end.format(boundary)
    return post(lines, content_type=f"multipart/form-data; boundary={boundary}")


def parts(*texts: str, **members: Any) -> Any:
    return [{"type": "text", "text": text, **members} for text in texts]


def field(text: str, disposition: str = 'form-data; name="a"', more: str = "") -> str:
    return f"Content-Disposition: {disposition}\r\n{more}\r\n{text}"


def at_server(path: str, ids: str) -> Call:
    """Return a call that goes on from calls, or items, with these ids, which the server has."""
    numbered = list(zip(ids, (1, 2), strict=False))
    body: dict[str, Any] = {
        "interactions": {
            "model": "m",
            "previous_interaction_id": "i",
            "input": [{"type": "function_result", "call_id": each, "result": n} for each, n in numbered],
        },
        "messages": {
            "model": "m",
            "max_tokens": 1,
            "thread": {"type": "continue", "id": "t"},
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": each, "content": str(n)}
                        for each, n in numbered
                    ],
                }
            ],
        },
        "m:generateContent": {
            "cachedContent": "c",
            "contents": [
                {
                    "role": "user",
                    "parts": [
                        {"functionResponse": {"id": each, "name": "f", "response": {"n": n}}}
                        for each, n in numbered
                    ],
                }
            ],
        },
        "responses": {"model": "m", "input": [{"id": each, "type": None} for each, _ in numbered]},
    }[path]
    return call(json.dumps(body), url=f"https://gateway.example.com/v1/{path}")


def mcp(path: str, number: int) -> Call:
    """Return a call that lends its credentials to a server of tools."""
    url, token = "https://mcp.example.com/sse", f"token-{number}"
    server = {"type": "mcp", "server_label": "s", "server_url": url, "authorization": token}
    body: dict[str, Any] = {
        "messages": {
            "model": "m",
            "max_tokens": 1,
            "system": "Be brief.",
            "messages": [HI],
            "mcp_servers": [{"type": "url", "name": "s", "url": url, "authorization_token": token}],
        },
        "responses": {"model": "m", "input": "hi", "tools": [server | {"headers": {"x-any": token}}]},
        "interactions": {
            "model": "m",
            "input": "hi",
            "tools": [{"type": "mcp_server", "url": url, "headers": {"authorization": token}}],
        },
    }[path]
    return call(json.dumps(body), url=f"https://gateway.example.com/v1/{path}")


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
BODY = json.dumps({"model": "m", "messages": [HI]}).encode()
MASKS = KeyPolicy(masks=["date", "uuid"])

SAME = {
    # -- URL and headers
    "host-case": Pair(at("https://API.example.com/v1"), at("https://api.example.com/v1")),
    "default-port": Pair(at("https://h:443/v1"), at("https://h/v1")),
    "userinfo": Pair(at("https://u:p@h/v1"), at("https://h/v1")),
    "fragment": Pair(at("https://h/v1#stream"), at("https://h/v1")),
    "query-order": Pair(at("https://h/v1?b=1&a=2"), at("https://h/v1?a=2&b=1")),
    "query-spelling": Pair(at("https://h/v1?a=x+%7e"), at("https://h/v1?%61=x%20~")),
    "query-secret": Pair(at("https://h/v1?a=1&key=x"), at("https://h/v1?key=y&a=1")),
    # -- what is sent to a server of tools
    "anthropic-mcp-token": Pair(*(mcp("messages", number) for number in (1, 2))),
    "responses-mcp-token": Pair(*(mcp("responses", number) for number in (1, 2))),
    "interactions-mcp-token": Pair(*(mcp("interactions", number) for number in (1, 2))),
    "headers-of-an-sdk": Pair(
        call(
            BODY, headers={"x-stainless-lang": "python", "user-agent": "a", "anthropic-version": "2023-06-01"}
        ),
        call(BODY, headers={"X-Stainless-Retry-Count": "1", "authorization": "Bearer x", "accept": "*/*"}),
    ),
    "betas-in-another-order": Pair(
        call(BODY, headers={"anthropic-beta": "a, b"}),
        call(BODY, headers=[("Anthropic-Beta", "b"), ("anthropic-beta", "a")]),
    ),
    "betas-empty": Pair(call(BODY, headers={"openai-beta": " "}), call(BODY)),
    "host-left-out": Pair(
        chat(url="http://127.0.0.1:5/v1/x"), chat(url="https://h/v1/x"), KeyPolicy(host=False)
    ),
    # -- parsing
    "white-space": Pair(post('{"a": [1, 2]}'), post(b'\n{"a":[1,2] }\t')),
    "member-order": Pair(post('{"a":1,"b":{"c":2,"d":3}}'), post('{"b":{"d":3,"c":2},"a":1}')),
    "escapes": Pair(post('{"\\u0061": "\\/\\u00e9\\ud83d\\ude00"}'), post('{"a": "/é\U0001f600"}')),
    "duplicate-names": Pair(post('{"a":1,"a":2}'), post('{"a":2}')),
    "one-and-one-point-zero": Pair(post("[1, 100, -1]"), post("[1.0, 1e2, -1.00]")),
    "zeros": Pair(post("[0, 0, 0]"), post("[-0, -0.0, 0e9]")),
    "charset-of-the-type": Pair(call(BODY), call(BODY, content_type="application/json; charset=UTF-8")),
    "no-type": Pair(call(BODY), call(BODY, content_type=None)),
    # -- text
    "crlf": Pair(chat("a\r\nb"), chat("a\nb")),
    "trailing-blanks": Pair(chat("a \t\nb "), chat("a\nb")),
    "blanks-in-a-part": Pair(chat(parts("a ", "b")), chat(parts("a", "b"))),
    "blanks-in-a-long-text": Pair(chat(LONG + " \n"), chat(LONG + "\n")),
    "generic-blanks": Pair(post({"system": "a "}), post({"system": "a"})),
    # -- policy
    "ignored": Pair(post({"a": 1, "b": {"c": 2}}), post({"a": 1, "b": {"c": 3}}), KeyPolicy(ignore=["b.c"])),
    "masked-date": Pair(chat("on 2026-03-02"), chat("on 2027-12-31"), MASKS),
    "masked-uuid": Pair(chat(f"{U1} {U1}"), chat(f"{U2} {U2}"), MASKS),
    "masked-uuids-changed-over": Pair(chat(f"{U1} {U2} {U1}"), chat(f"{U2} {U1} {U2}"), MASKS),
    "masked-literal": Pair(chat("<date> 2026-03-02"), chat("<date> 2026-03-03"), MASKS),
    "extra-in-another-order": Pair(
        chat(), chat(), KeyPolicy(extra={"a": 1, "b": 2}), KeyPolicy(extra={"b": 2.0, "a": 1})
    ),
    "extra-empty": Pair(chat(), chat(), KeyPolicy(extra={})),
    # -- folds
    "defaults": Pair(
        chat(), chat(temperature=1.0, top_p=1, n=1, stream=False, store=False, presence_penalty=0)
    ),
    "defaults-with-tools": Pair(
        chat(tools=TOOLS), chat(tools=TOOLS, tool_choice="auto", parallel_tool_calls=True)
    ),
    "no-ops-of-sdks": Pair(
        chat(), chat(tools=[], stop=None, metadata={}, stream_options=None, logit_bias={})
    ),
    "one-text-part": Pair(chat("a"), chat(parts("a"))),
    "one-text-part-with-blanks": Pair(chat("a"), chat(parts("a \t"))),
    "echoed-answer": Pair(
        chat("x", {"role": "assistant", "content": "a"}, "y"),
        chat(
            "x",
            {"role": "assistant", "content": "a", "refusal": None, "annotations": [], "tool_calls": None},
            "y",
        ),
    ),
    "ids-of-tool-calls": Pair(
        chat("x", assistant(("a", "{}"), ("b", "{}")), result("b", "1"), result("a", "2")),
        chat("x", assistant(("b", "{}"), ("zz", "{}")), result("zz", "1"), result("b", "2")),
    ),
    # -- other bodies
    "gzip": Pair(call(BODY), packed(gzip.compress(BODY))),
    "gzip-members": Pair(call(BODY), packed(gzip.compress(BODY[:7]) + gzip.compress(BODY[7:]))),
    "gzip-levels": Pair(packed(gzip.compress(BODY, 1, mtime=1)), packed(gzip.compress(BODY, 9, mtime=2))),
    "deflate": Pair(call(BODY), packed(zlib.compress(BODY), "deflate")),
    "identity": Pair(call(BODY), packed(BODY, "identity")),
    "form-order": Pair(form("b=1&a=2&b=3"), form("a=2&b=1&b=3")),
    "form-spelling": Pair(form("a=x+%c3%a9"), form("%61=x%20é")),
    "boundary": Pair(multipart(field("x")), multipart(field("x"), boundary="other")),
    "no-body": Pair(at("https://h/v1"), at("https://h/v1", body=b"")),
}

DIFFERENT = {
    # -- results of calls that the server has: which result answers which call is content
    "interaction-results-swapped": Pair(*(at_server("interactions", ids) for ids in ("ab", "ba"))),
    "anthropic-thread-results-swapped": Pair(*(at_server("messages", ids) for ids in ("ab", "ba"))),
    "gemini-cached-results-swapped": Pair(*(at_server("m:generateContent", ids) for ids in ("ab", "ba"))),
    "references-of-type-null": Pair(*(at_server("responses", ids) for ids in ("a", "b"))),
    "form-code": Pair(form("code=print(1)"), form("code=print(2)")),
    "form-token-of-a-page": Pair(form("token=page2"), form("token=page3")),
    "query-code-of-a-country": Pair(at("https://h.example/c?code=DE"), at("https://h.example/c?code=FR")),
    "text-in-a-private-key": Pair(post({"content": pem("explain!")}), post({"content": pem("delete!")})),
    "prefill-of-a-model": Pair(
        post({"contents": [{"role": "model", "parts": [{"text": "a "}]}]}),
        post({"contents": [{"role": "model", "parts": [{"text": "a"}]}]}),
    ),
    "default-of-a-schema": Pair(
        post({"tools": [{"input_schema": {"default": {"text": "a "}}}]}),
        post({"tools": [{"input_schema": {"default": {"text": "a"}}}]}),
    ),
    # -- URL and headers
    "method": Pair(call(method="PUT"), call(method="POST")),
    "scheme": Pair(at("http://h/v1"), at("https://h/v1")),
    "host": Pair(chat(url="https://a/v1/chat/completions"), chat(url="https://b/v1/chat/completions")),
    "port": Pair(at("https://h:444/v1"), at("https://h/v1")),
    "path-case": Pair(at("https://h/v1/A"), at("https://h/v1/a")),
    "path-slash": Pair(at("https://h/v1/"), at("https://h/v1")),
    "path-escape": Pair(at("https://h/a%2Fb"), at("https://h/a/b")),
    "query-value": Pair(at("https://h/v1?alt=sse"), at("https://h/v1")),
    "query-repeats": Pair(at("https://h/v1?a=1&a=2"), at("https://h/v1?a=2&a=1")),
    "query-blank": Pair(at("https://h/v1?a="), at("https://h/v1")),
    "query-plus": Pair(at("https://h/v1?a=%2B"), at("https://h/v1?a=+")),
    "query-ampersand": Pair(at("https://h/v1?a=1%26b=2"), at("https://h/v1?a=1&b=2")),
    "query-not-utf-8": Pair(at("https://h/v1?a=%FF"), at("https://h/v1?a=%FE")),
    "query-replacement-character": Pair(at("https://h/v1?a=%FF"), at("https://h/v1?a=%EF%BF%BD")),
    "beta": Pair(call(BODY, headers={"anthropic-beta": "a"}), call(BODY)),
    "beta-of-another": Pair(
        call(BODY, headers={"anthropic-beta": "a"}), call(BODY, headers={"openai-beta": "a"})
    ),
    "header-of-the-policy": Pair(
        call(BODY, headers={"x-a": "1"}), call(BODY, headers={"x-a": "2"}), KeyPolicy(headers=["x-a"])
    ),
    "header-empty-or-absent": Pair(call(BODY, headers={"x-a": ""}), call(BODY), KeyPolicy(headers=["x-a"])),
    # -- parsing
    "model": Pair(chat(model="a"), chat(model="b")),
    "empty-object-or-none": Pair(post("{}"), post(b"")),
    "empty-object-or-list": Pair(post("{}"), post("[]")),
    "null-or-none": Pair(post("null"), post(b"")),
    "null-or-text": Pair(post('{"a":null}'), post('{"a":"null"}')),
    "null-or-absent": Pair(post('{"a":null}'), post("{}")),
    "number-or-text": Pair(post("[1]"), post('["1"]')),
    "number-or-true": Pair(post("[1, 0]"), post("[true, false]")),
    "bits-beyond-64": Pair(post("[18446744073709551616]"), post("[18446744073709551617]")),
    "bits-beyond-53": Pair(post("[9007199254740992]"), post("[9007199254740993]")),
    "bits-beyond-64-negative": Pair(post("[-9223372036854775809]"), post("[-9223372036854775810]")),
    "sign": Pair(post("[-1]"), post("[1]")),
    "last-digit-of-a-float": Pair(post("[0.1]"), post("[0.10000000000000002]")),
    "overflow": Pair(call(b'{"seed":1e400}'), call(b'{"seed":1e401}')),
    "nan-or-infinity": Pair(call(b'{"a":NaN}'), call(b'{"a":Infinity}')),
    "nan-or-text": Pair(call(b'{"a":NaN}'), call(b'{"a":"NaN"}')),
    "last-of-10000-digits": Pair(call(b"1" * 10_000), call(b"1" * 9_999 + b"2")),
    "bottom-of-100000-levels": Pair(
        call(b"[" * 100_000 + b"1" + b"]" * 100_000), call(b"[" * 100_000 + b"2" + b"]" * 100_000)
    ),
    "100-levels-or-101": Pair(post("[" * 100 + "]" * 100), post("[" * 101 + "]" * 101)),
    "lone-surrogates": Pair(post('["\\ud800"]'), post('["\\ud801"]')),
    "lone-surrogate-or-its-escape": Pair(post('["\\ud800"]'), post('["\\\\ud800"]')),
    "lone-surrogate-or-its-bytes": Pair(post('["\\ud800"]'), post(b'["\xed\xa0\x80"]')),
    "long-lone-surrogates": Pair(post(f'["{LONG}\\ud800"]'), post(f'["{LONG}\\udc00"]')),
    "surrogates-in-names": Pair(post('{"\\ud800": 1}'), post('{"\\udbff": 1}')),
    "normalisation": Pair(chat("\u00e9"), chat("e\u0301")),
    "text-or-json": Pair(post('{"a":1}'), post('{"a":1}', content_type="text/plain")),
    "invalid-json": Pair(call(b'{"a":1'), call(b'{"a":1 ')),
    "number-without-a-type": Pair(post("1.0", content_type=None), post("1", content_type=None)),
    "not-utf-8": Pair(post(b"\xff", content_type="text/plain"), post(b"\xfe", content_type="text/plain")),
    "json-not-utf-8": Pair(call(b'{"a":"\xff"}'), call(b'{"a":"\xfe"}')),
    # -- what looks like ours
    "sent-digest": Pair(post({"a": digest_of(LONG)}), post({"a": LONG})),
    "sent-digest-of-the-whole": Pair(post(digest_of(LONG)), post(json.dumps(LONG))),
    "sent-digest-escaped": Pair(post({"$$sha256": 1}), post({"$sha256": 1})),
    "sent-escape": Pair(post({"$$ref": 1}), post({"$ref": 1})),
    "sent-digest-of-an-image": Pair(
        chat([{"type": "image_url", "image_url": {"url": IMAGES[0]}}]),
        chat([{"type": "image_url", "image_url": {"url": digest_of(IMAGES[0])}}]),
    ),
    "digest-in-extra": Pair(
        chat(), chat(), KeyPolicy(extra={"a": LONG}), KeyPolicy(extra={"a": digest_of(LONG)})
    ),
    "placeholder-of-a-digest": Pair(chat(LONG), chat(json.dumps(digest_of(LONG), separators=(",", ":")))),
    # -- long texts
    "end-of-a-long-text": Pair(chat(LONG + "x"), chat(LONG + "y")),
    "length-of-a-long-text": Pair(chat(LONG), chat(LONG + "a")),
    "images": Pair(*(chat([{"type": "image_url", "image_url": {"url": url}}]) for url in IMAGES)),
    "images-under-a-mask": Pair(
        *(chat([{"type": "image_url", "image_url": {"url": url}}]) for url in IMAGES),
        KeyPolicy(masks={"hex": "[0-9a-f]+"}),
    ),
    "audio": Pair(*(chat([{"type": "input_audio", "input_audio": {"data": mark * 1100}}]) for mark in "AB")),
    # -- redaction
    "secrets": Pair(*(chat(secret) for secret in SECRETS)),
    "secrets-as-names": Pair(*(post({secret: 1}) for secret in SECRETS)),
    "secrets-in-a-url": Pair(*(at(f"https://h/?next={secret}") for secret in SECRETS)),
    "secrets-in-a-file": Pair(
        *(multipart(field(secret, 'form-data; name="f"; filename="x"')) for secret in SECRETS)
    ),
    # -- strip
    "leading-blank": Pair(chat(" a"), chat("a")),
    "blank-inside": Pair(chat("a  b"), chat("a b")),
    "final-newline": Pair(chat("a\n"), chat("a")),
    "newlines": Pair(chat("a\n\nb"), chat("a\nb")),
    "no-break-space": Pair(chat("a\u00a0"), chat("a")),
    "form-feed": Pair(chat("a\x0c"), chat("a")),
    "line-separator": Pair(chat("a \u2028b"), chat("a\u2028b")),
    "cr-alone": Pair(chat("a\rb"), chat("a\nb")),
    "prefill": Pair(
        chat("x", {"role": "assistant", "content": "a "}), chat("x", {"role": "assistant", "content": "a"})
    ),
    "prefill-in-parts": Pair(
        chat("x", {"role": "assistant", "content": parts("a ")}),
        chat("x", {"role": "assistant", "content": parts("a")}),
    ),
    "tool-arguments": Pair(chat("x", assistant(("a", '{"b": 1} '))), chat("x", assistant(("a", '{"b": 1}')))),
    "order-in-tool-arguments": Pair(
        chat("x", assistant(("a", '{"b":1,"c":2}'))), chat("x", assistant(("a", '{"c":2,"b":1}')))
    ),
    "stop": Pair(chat(stop=["a "]), chat(stop=["a"])),
    "description": Pair(*(chat(tools=[{"function": {"description": text}}]) for text in ("a ", "a"))),
    "completion-prompt": Pair(post({"prompt": "a "}), post({"prompt": "a"})),
    "generic-prefill": Pair(
        *(post({"messages": [{"role": "assistant", "content": text}]}) for text in ("a ", "a"))
    ),
    "generic-tool-input": Pair(*(post({"input": {"content": text}}) for text in ("a ", "a"))),
    "text-body": Pair(post("a ", content_type="text/plain"), post("a", content_type="text/plain")),
    # -- mask
    "literal-date": Pair(chat("on <date>"), chat("on 2026-03-02"), MASKS),
    "literal-uuid": Pair(chat("<uuid:1>"), chat(U1), MASKS),
    "literal-of-a-literal": Pair(chat("<literal:date>"), chat("<date>"), MASKS),
    "uuid-twice-or-two": Pair(chat(f"{U1} {U1}"), chat(f"{U1} {U2}"), MASKS),
    "uuid-in-another-order": Pair(chat(f"{U1} {U2} {U1}"), chat(f"{U1} {U2} {U2}"), MASKS),
    "date-or-none": Pair(chat("2026-03-02"), chat(""), MASKS),
    "masked-name": Pair(post({"2026-03-02": 1}), post({"2026-03-03": 1}), MASKS),
    "masked-field": Pair(form("2026-03-02=1"), form("2026-03-03=1"), MASKS),
    # -- fold
    "temperature": Pair(chat(temperature=0), chat()),
    "temperature-of-openrouter": Pair(
        *(
            chat(url="https://openrouter.ai/api/v1/chat/completions", **each)
            for each in ({"temperature": 1}, {})
        )
    ),
    "true-for-one": Pair(chat(n=True), chat(n=1)),
    "empty-string": Pair(chat(user=""), chat()),
    "empty-content": Pair(chat({"role": "user", "content": ""}), chat({"role": "user"})),
    "parallel-without-tools": Pair(chat(parallel_tool_calls=True), chat()),
    "cache-control": Pair(chat(parts("a", cache_control={"type": "ephemeral"})), chat("a")),
    "two-parts": Pair(chat(parts("a", "b")), chat("ab")),
    "empty-part": Pair(chat(parts("a", "")), chat("a")),
    "part-or-its-json": Pair(chat(parts("a")), chat(json.dumps(parts("a")))),
    "stream": Pair(chat(stream=True), chat()),
    "stream-options": Pair(chat(stream=True, stream_options={"include_usage": True}), chat(stream=True)),
    "strict": Pair(*(chat(tools=[{"function": {"strict": strict}}]) for strict in (True, False))),
    "null-of-unknown": Pair(chat(x=None), chat()),
    "default-of-generic": Pair(post({"temperature": 1}), post({})),
    "defaults-off": Pair(chat(n=1), chat(), KeyPolicy(defaults=False)),
    # -- rename
    "results-changed-over": Pair(
        chat("x", assistant(("a", "{}"), ("b", "{}")), result("a", "1"), result("b", "2")),
        chat("x", assistant(("a", "{}"), ("b", "{}")), result("b", "1"), result("a", "2")),
    ),
    "result-of-another-call": Pair(
        chat("x", assistant(("a", "{}")), result("a", "1")),
        chat("x", assistant(("a", "{}")), result("b", "1")),
    ),
    "empty-id": Pair(chat("x", assistant(("", "{}"))), chat("x", assistant(("a", "{}")))),
    "ids-in-text": Pair(
        chat("call_a", assistant(("call_a", "{}"))), chat("call_b", assistant(("call_b", "{}")))
    ),
    "number-for-an-id": Pair(
        chat({"role": "tool", "tool_call_id": 1}), chat({"role": "tool", "tool_call_id": "call_1"})
    ),
    # -- ignore
    "beside-what-is-ignored": Pair(
        post({"a": [1, 2, 3]}), post({"a": [1, 2, 4]}), KeyPolicy(ignore=["a[0]", "a[-3]"])
    ),
    # -- other bodies
    "form-or-text": Pair(form("a=1"), post("a=1", content_type="text/plain")),
    "form-or-json": Pair(form("a=1"), post([["a", "1"]])),
    "form-repeats": Pair(form("a=1&a=2"), form("a=2&a=1")),
    "form-not-utf-8": Pair(form("a=%FF"), form("a=%FE")),
    "form-raw-bytes": Pair(form(b"a=\xff"), form(b"a=\xfe")),
    "form-escaped-ampersand": Pair(form("a=1%26b%3D2"), form("a=1&b=2")),
    "parts-or-form": Pair(multipart(field("1")), form("a=1")),
    "part-name": Pair(multipart(field("x")), multipart(field("x", 'form-data; name="b"'))),
    "part-file-name": Pair(
        *(multipart(field("x", f'form-data; name="a"; filename="{name}"')) for name in "ab")
    ),
    "part-field-or-file": Pair(
        multipart(field("x")), multipart(field("x", 'form-data; name="a"; filename=""'))
    ),
    "part-type": Pair(*(multipart(field("x", more=f"Content-Type: {kind}\r\n")) for kind in "ab")),
    "part-header": Pair(*(multipart(field("x", more=f"Content-Id: {kind}\r\n")) for kind in "ab")),
    "part-content": Pair(multipart(field("x")), multipart(field("y"))),
    "part-order": Pair(multipart(field("x"), field("y")), multipart(field("y"), field("x"))),
    "part-with-a-delimiter": Pair(multipart(field("x\r\n--Bz")), multipart(field("x\r\n--By"))),
    "parts-or-one": Pair(multipart(field("x"), field("y")), multipart(field(f"x\r\n--C\r\n{field('y')}"))),
    "epilogue": Pair(multipart(field("x"), end="--{}--\r\na"), multipart(field("x"), end="--{}--\r\nb")),
    "preamble": Pair(
        *(
            post(f"{text}\r\n--B\r\n\r\nx\r\n--B--", content_type="multipart/mixed; boundary=B")
            for text in "ab"
        )
    ),
    "gzip-members": Pair(packed(gzip.compress(BODY)), packed(gzip.compress(BODY) + gzip.compress(b" {}"))),
    "gzip-and-more": Pair(packed(gzip.compress(BODY) + b"a"), packed(gzip.compress(BODY) + b"b")),
    "gzip-cut": Pair(packed(gzip.compress(BODY, mtime=0)[:-4]), packed(gzip.compress(BODY, mtime=0)[:-5])),
    "gzip-or-not": Pair(packed(BODY), call(BODY)),
    "encodings": Pair(packed(BODY, "br"), packed(BODY, "zstd")),
    "encoded-or-bytes": Pair(packed(b"\xff", "br"), call(b"\xff")),
    # -- prompt version
    "extra": Pair(chat(), chat(), KeyPolicy(extra={"v": "7"}), KeyPolicy(extra={"v": 7})),
    "extra-or-none": Pair(chat(), chat(), KeyPolicy(), KeyPolicy(extra={"v": None})),
}


def keys(pair: Pair) -> list[str]:
    """Return both keys, each found in two ways that must agree."""
    found = []
    for made, policy in ((pair.one, pair.policy), (pair.two, pair.other or pair.policy)):
        quick = key_of(made, policy, redact=pair.redact)
        assert quick == hash_document(slow_document(draft_of(made, policy, redact=pair.redact))).hex()
        found.append(quick)
    return found


@pytest.mark.parametrize("name", SAME)
def test_these_two_calls_share_a_key(name: str) -> None:
    """They ask the same, so one recording answers both."""
    one, two = keys(SAME[name])

    assert one == two
    assert (
        SAME[name].one != SAME[name].two or SAME[name].other is not None or name in ("no-body", "extra-empty")
    )


@pytest.mark.parametrize("name", DIFFERENT)
def test_these_two_calls_do_not_share_a_key(name: str) -> None:
    """They ask something else, and one must never be answered for the other."""
    one, two = keys(DIFFERENT[name])

    assert one != two


def test_prompt_files_and_extra_do_not_share_a_key() -> None:
    """What a file says and what ``extra`` says are two things, under whatever name."""
    digest = digest_of("7")
    found = {
        key_of(chat(), prompt_files={"v": digest}),
        key_of(chat(), prompt_files={"w": digest}),
        key_of(chat(), prompt_files={"v": digest_of("8")}),
        key_of(chat(), KeyPolicy(extra={"v": digest})),
        key_of(chat(), KeyPolicy(extra={"prompt_files": {"v": digest}})),
        key_of(chat()),
    }

    assert 6 == len(found)
