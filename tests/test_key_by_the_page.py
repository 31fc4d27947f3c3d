"""What docs/key.md says beyond the vectors is what the package does."""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import httpx_cassette
from httpx_cassette._masking import MASKS
from httpx_cassette._secret_names import is_secret_form_name

from . import key_by_the_page
from .key_by_the_page import PAGE, fingerprint


def odd(url: str, content_type: str, body: bytes, *headers: tuple[str, str]) -> dict[str, Any]:
    """Return a call that no vector has."""
    sent = [("content-type", content_type), *headers]
    return {"method": "POST", "url": url, "headers": sent, "body_b64": base64.b64encode(body).decode()}


X, FORM = "https://api.example.com/v1/x", "application/x-www-form-urlencoded"
CHAT = b'{"model": "m", "messages": [], "temperature": 1}'
GEMINI = "https://example.com/v1beta/models/g:generateContent"
PART = b'--B\r\nContent-Disposition: form-data; name="a"; filename="b"\r\nX-Y: 1\r\n z\r\n\r\nc\r\n--B--\r\n'
ONE, TWO = (f"7c9e6679-7425-40de-944b-e07fc1f90ae{digit}" for digit in "12")

ODD_CALLS = {
    "gzip-cut-off": odd(X, "text/plain", gzip.compress(b"a")[:-1], ("content-encoding", "gzip")),
    "gzip-twice": odd(X, "text/plain", gzip.compress(b"a") * 2, ("content-encoding", " GZIP")),
    "deflate-raw": odd(X, "text/plain", b"K\x04\x00", ("content-encoding", "deflate")),
    "multipart-without-boundary": odd(X, "multipart/mixed", PART),
    "multipart-not-closed": odd(X, "multipart/form-data; boundary=B", PART[:-3]),
    "multipart-folded": odd(X, "Multipart/Form-Data; Boundary=B", PART),
    "form-masked": odd(X, FORM, f"b={ONE}&a={TWO}&PASSWORD=x".encode()),
    "negative-thousand-digits": odd(X, "application/json", b'{"a": -' + b"7" * 1000 + b"}"),
    "own-address": odd("http://192.168.7.7:8000/v1/chat/completions", "application/json", CHAT),
    "nobody's-address": odd("http://192.0.0.8/v1/chat/completions", "application/json", CHAT),
    "gemini-thought-and-number": odd(
        GEMINI,
        "application/json",
        b'{"contents": [{"role": "model", "parts": [{"text": "a", "thought": true}]},'
        b'{"role": "model", "parts": [{"text": "b", "thought": 1}]}]}',
    ),
    "result-that-is-no-image": odd(
        "https://api.openai.com/v1/responses",
        "application/json",
        b'{"model": "m", "input": [{"type": "x", "result": "' + b"A" * 2000 + b'"}, {"file_data": "x"}]}',
    ),
    "interaction-results-of-calls-elsewhere": odd(
        "https://example.com/v1beta/interactions",
        "application/json",
        b'{"model": "m", "previous_interaction_id": "i", "input": ['
        b'{"type": "function_result", "call_id": "b", "result": "1"},'
        b'{"type": "function_result", "call_id": "a", "result": "2"}]}',
    ),
    "reference-of-type-null": odd(
        "https://api.openai.com/v1/responses",
        "application/json",
        b'{"model": "m", "input": [{"id": "msg_A", "type": null}, {"type": "message", "id": "msg_B"}]}',
    ),
    "own-host": odd("http://gpu.local/v1/chat/completions", "application/json", CHAT),
    "other-host": odd("http://gpu.example/v1/chat/completions", "application/json", CHAT),
    "gemini-turn-with-more": odd(
        GEMINI,
        "application/json",
        b'{"contents": [{"role": "model", "x": 1, "parts": [{"text": "\\ud83d"}]},'
        b'{"role": "model", "parts": [{"text": "\\ud83d"}]},'
        b'{"role": "model", "parts": [{"text": "\\ude00"}]}]}',
    ),
    "reference-order": odd(
        "https://api.anthropic.com/v1/messages",
        "application/json",
        b'{"max_tokens": 1, "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a"},'
        b'{"type": "tool_use", "id": "b", "caller": {"tool_id": "c"}}, {"tool_use_id": "b"}]}]}',
    ),
}


@pytest.mark.parametrize("name", ODD_CALLS)
def test_the_page_alone_gives_the_fingerprint_of_an_odd_call(name: str, tmp_path: Path) -> None:
    """It is the same where the page says more than the vectors show."""
    call = ODD_CALLS[name]
    content = base64.b64decode(call["body_b64"])
    request = httpx.Request(call["method"], call["url"], headers=call["headers"], content=content)
    transport = httpx_cassette.CassetteTransport(
        tmp_path / "none.jsonl", key_policy=httpx_cassette.KeyPolicy(masks=["uuid"])
    )

    assert transport.fingerprint(request) == fingerprint(call, {"key_policy": {"masks": ["uuid"]}})


def test_the_page_has_the_masks() -> None:
    """A pattern is the same, letter for letter, on the page and in the package."""
    assert {name: mask.pattern for name, mask in MASKS.items()} == key_by_the_page.MASKS


def test_the_page_has_the_secret_fields_of_a_form() -> None:
    """Each word of the page that names a secret field is used by the second implementation, and no other."""
    words = set(re.findall("`([a-z_]+)`", PAGE))

    assert set(filter(is_secret_form_name, words)) == set(key_by_the_page.SECRET_FIELDS)
