"""An explanation shows the whole derivation of a key, and nothing that was redacted."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from httpx_cassette import CassetteTransport, Explanation

from .keying import CHAT

SECRET = "postgres://ann:open-sesame-7@db.example.com/x"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explain(request: httpx.Request, **options: Any) -> Explanation:
    transport = CassetteTransport("none.jsonl", **options)
    explained = transport.explain(request)

    assert transport.fingerprint(request) == explained.fingerprint
    assert (
        explained.fingerprint == hashlib.sha256(b"httpx-cassette key 1\n" + explained.canonical).hexdigest()
    )
    return explained


def test_the_whole_derivation(folder: Path) -> None:
    """Every rule in its order, with each place that it changed."""
    (folder / "triage.md").write_text("You are terse.\n")
    explained = explain(
        httpx.Request(
            "POST",
            "https://user:word@API.openai.com:443/v1/chat/completions?key=AIza&b=1&a=2#stream",
            headers=[("Anthropic-Beta", "tools, cache"), ("X-Tag", "t")],
            json={
                "model": "gpt-4.1-mini",
                "temperature": 1,
                "stop": None,
                "user": "ann",
                "messages": [
                    {"role": "system", "content": f"Today is 2026-03-02. \nThe database is {SECRET}."},
                    {
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "a" * 1025},
                            {
                                "type": "image_url",
                                "image_url": {"url": f"data:image/png;base64,{'A' * 1100}"},
                            },
                        ],
                    },
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"id": "call_Zz", "function": {"name": "f", "arguments": "{}"}}],
                    },
                    {"role": "tool", "tool_call_id": "call_Zz", "content": [{"type": "text", "text": "r"}]},
                ],
                "response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "#/x"}}},
            },
        ),
        key_policy={"masks": ["date"], "ignore": ["user"], "headers": ["x-tag"], "extra": {"v": 7}},
        prompt_files={"triage": "triage.md"},
    )

    assert (
        "fingerprint  FINGERPRINT (key version 1, dialect openai-chat)\n"
        '  url        "https://api.openai.com/v1/chat/completions?b=1&a=2" -> '
        '"https://api.openai.com/v1/chat/completions?a=2&b=1"\n'
        '  headers    anthropic-beta "tools, cache" -> ["cache", "tools"]\n'
        '  redact     messages[0].content is now "Today is 2026-03-02. \\nThe database is '
        'postgres://<redacted:url-useri..." (107 characters)\n'
        "  media      messages[1].content[1].image_url.url is now 1,122 bytes, sha256 DIGEST..\n"
        '  ignore     user left out: "ann"\n'
        '  strip      messages[0].content "Today is 2026-03-02. \\nThe database is '
        'postgres://<redacted:url-useri..." (107 characters) -> "Today is 2026-03-02.\\nThe database is '
        'postgres://<redacted:url-userin..." (106 characters)\n'
        '  mask       messages[0].content "Today is 2026-03-02.\\nThe database is '
        'postgres://<redacted:url-userin..." (106 characters) -> "Today is <date>.\\nThe database is '
        'postgres://<redacted:url-userinfo:d..." (102 characters)\n'
        "  fold       temperature left out: 1\n"
        "             stop left out: null\n"
        "             messages[2].content left out: null\n"
        '             messages[3].content [{"type": "text", "text": "r"}] -> "r"\n'
        '  rename     messages[2].tool_calls[0].id "call_Zz" -> "call_1"\n'
        '             messages[3].tool_call_id "call_Zz" -> "call_1"\n'
        '  names      response_format.json_schema.schema.$ref left out: "#/x"\n'
        '             response_format.json_schema.schema.$$ref added: "#/x"\n'
        f'  digest     messages[1].content[0].text "{"a" * 69}..." (1,025 characters) -> 1,025 bytes, '
        "sha256 DIGEST..\n"
        "key document\n"
        "DOCUMENT"
    ) == plain(explained)


def plain(explained: Explanation) -> str:
    """Return the text of an explanation without what a reader could not check."""
    document = json.dumps(explained.key_document, indent=2, sort_keys=True)
    text = str(explained).replace(explained.fingerprint, "FINGERPRINT").replace(document, "DOCUMENT")
    return re.sub(r"sha256 [0-9a-f]{12}\.\.", "sha256 DIGEST..", text)


def test_nothing_to_change(folder: Path) -> None:
    """A rule that changed nothing says so, and the document is shown as JSON."""
    explained = explain(httpx.Request("GET", "https://api.example.com/v1/models"))

    assert (
        f"fingerprint  {explained.fingerprint} (key version 1, dialect generic)\n"
        "  url        nothing changed\n"
        "  headers    nothing changed\n"
        "  redact     nothing changed\n"
        "  media      nothing changed\n"
        "  ignore     nothing changed\n"
        "  strip      nothing changed\n"
        "  mask       nothing changed\n"
        "  fold       nothing changed\n"
        "  rename     nothing changed\n"
        "  names      nothing changed\n"
        "  digest     nothing changed\n"
        "key document\n"
        "{\n"
        '  "method": "GET",\n'
        '  "url": "https://api.example.com/v1/models"\n'
        "}"
    ) == str(explained)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (f'{{"a": "x {SECRET}", "{SECRET}": ["{SECRET}"], "list": ["y", "{SECRET}"]}}', "application/json"),
        (f"x {SECRET}", "text/plain"),
        (f"a=x+{SECRET}&password=open-sesame", "application/x-www-form-urlencoded"),
        (
            f'--B\r\nContent-Disposition: form-data; name="{SECRET}"\r\n\r\n{SECRET}\r\n--B--',
            "multipart/form-data; boundary=B",
        ),
    ],
    ids=["json", "text", "form", "parts"],
)
def test_what_was_redacted_is_never_shown(folder: Path, content: str, kind: str) -> None:
    """Neither the value nor a name that holds one, in no kind of body, and not in the URL."""
    explained = explain(
        httpx.Request(
            "POST",
            f"https://u:open-sesame@h/{SECRET}?q={SECRET}&key=open-sesame",
            headers={"Content-Type": kind, "X-A": SECRET},
            content=content,
        ),
        key_policy={"headers": ["x-a"]},
    )

    assert "open-sesame" not in str(explained) + repr(explained)
    assert "is now" in str(explained)


def test_left_out_fields_of_a_form_are_counted(folder: Path) -> None:
    """Their names say what they are; how many there were is all that is said."""
    explained = explain(
        httpx.Request("POST", CHAT, data={"grant_type": "a", "client_secret": "b", "password": "c"})
    )

    effect = {effect.rule: effect.changes for effect in explained.rules}["redact"]
    assert ("2 fields left out, whose names say that they are secret",) == effect


def test_what_orjson_cannot_write_is_shown(folder: Path) -> None:
    """Integers of any size, and lone surrogates as escapes: a terminal takes no others."""
    body = b'{"a": 18446744073709551617, "\\ud800": "\\udfff"}'
    explained = explain(
        httpx.Request("POST", "https://h/", headers={"Content-Type": "application/json"}, content=body)
    )

    assert '{\n      "a": 18446744073709551617,\n      "\\ud800": "\\udfff"\n    }' in str(explained)
    assert str(explained).encode()


def test_a_control_character_does_not_reach_the_terminal(folder: Path) -> None:
    """Neither in a value nor in a path."""
    body = {"\x1b[31m": "\x1b[0m \n", "content": "\x1b[1m\u202e \n", "temperature\x07": 1}
    explained = explain(
        httpx.Request("POST", "https://h/", json=body), key_policy={"ignore": ['["\\u001b[31m"]']}
    )

    assert "\x1b" not in str(explained)
    assert "\u202e" not in str(explained)
    assert "\x07" not in str(explained)


def test_an_answer_in_pieces_is_joined_before_anything_else(folder: Path) -> None:
    """What comes back in the pieces of a stream is shown as what it is in the key."""
    explained = explain(
        httpx.Request(
            "POST",
            "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent",
            json={
                "contents": [
                    {"role": "user", "parts": [{"text": "Hi"}]},
                    {"role": "model", "parts": [{"text": "Hel"}]},
                    {"role": "model", "parts": [{"text": "lo "}]},
                    {"role": "user", "parts": [{"text": "And?"}]},
                ]
            },
        )
    )
    effects = {effect.rule: effect.changes for effect in explained.rules}

    assert ["url", "headers", "join", "redact"] == [*effects][:4]
    assert 'contents[1].parts[0].text "Hel" -> "Hello "' in effects["join"]
    assert ('contents[1].parts[0].text "Hello " -> "Hello"',) == effects["strip"]
    assert () == effects["redact"]
