"""What an answer must not carry into the file, even spelled token by token."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Redaction
from httpx_cassette._live_stream import LiveStream, redacted_answer
from httpx_cassette.dialects import GENERIC, OPENAI_CHAT, Dialect

from .colours import events

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
PLAIN = Redaction()


def spelled(text: str) -> list[dict[str, Any]]:
    """Return ``logprobs`` that spell a text, four characters a token."""
    pieces = [text[start : start + 4] for start in range(0, len(text), 4)]
    return [
        {"token": piece, "logprob": -0.1, "bytes": list(piece.encode()), "top_logprobs": []}
        for piece in pieces
    ]


def test_a_key_that_logprobs_spell_is_hidden() -> None:
    """Neither the tokens nor their bytes give it away; how likely they were stays."""
    answer = {
        "choices": [
            {"message": {"content": f"It is {KEY}"}, "logprobs": {"content": spelled(f"It is {KEY}")}}
        ]
    }

    redacted: Any = redacted_answer(answer, PLAIN)

    tokens = redacted["choices"][0]["logprobs"]["content"]
    assert KEY not in "".join(token["token"] for token in tokens)
    assert {"<redacted:token>"} == {token["token"] for token in tokens}
    assert {None} == {token["bytes"] for token in tokens}
    assert {-0.1} == {token["logprob"] for token in tokens}


def test_a_key_in_a_list_of_texts_is_hidden() -> None:
    """A list of bare tokens spells as well."""
    answer: Any = {"tokens": [KEY[:5], KEY[5:20], KEY[20:]]}

    assert {"tokens": ["<redacted:token>"] * 3} == redacted_answer(answer, PLAIN)


def test_what_spells_no_secret_stays() -> None:
    """Tokens of ordinary text, and lists of other things, are as they were."""
    answer: Any = {"logprobs": {"content": spelled("Hello, world")}, "list": [1, "a", {"token": None}, []]}

    assert answer == redacted_answer(answer, PLAIN)


@pytest.mark.parametrize("dialect", [OPENAI_CHAT, GENERIC], ids=["assembled", "verbatim"])
def test_a_path_leads_through_each_event(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event is a document, as a whole answer is; ``null`` and other events stay."""
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "0123456789abcdef")
    raw = b"".join(events("Hi")).replace(b'{"', b'{"user":{"id":"u1-secret"},"', 1)
    stream = LiveStream("sse", dialect)
    stream.feed(raw)
    script: Any = stream.members(raw, Redaction(paths=["user.id"]))["script"]

    assert "u1-secret" not in str(script)
    assert script[0]["json"]["user"]["id"].startswith("<redacted:path:")
