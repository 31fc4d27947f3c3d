"""Where secrets stand in text: each encoding, the place, and what is no secret."""

from __future__ import annotations

import base64
import json
import random
import string
import textwrap
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest

from httpx_cassette._redact import Redaction
from httpx_cassette._secret_search import NAMES, PII, Found, Search

KEY = "sk-proj-" + "aB3dE6gH9jK2" * 4
DIGEST = Redaction().text(KEY)[-17:-9]


def drawn(letters: str, number: int, seed: int = 1) -> str:
    """Return letters drawn at random, the same each time."""
    return "".join(random.Random(seed).choices(letters, k=number))


_LETTERS = string.ascii_letters + string.digits

#: One of each of several shapes, a private key in lines among them.
SECRETS = {
    "openai": KEY,
    "anthropic": f"sk-ant-api03-{drawn(_LETTERS, 93)}AA",
    "aws": f"AKIA{drawn(string.ascii_uppercase, 16)}",
    "github": f"ghp_{drawn(_LETTERS, 36)}",
    "slack": f"xoxb-123456789012-123456789012-{drawn(_LETTERS, 24)}",
    "bearer": f"Bearer {drawn(_LETTERS, 40)}",
    "url": f"postgres://app:{drawn(_LETTERS, 16)}@db.example.com/orders",
    "private": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----".format(
        "\n".join(textwrap.wrap(drawn(_LETTERS, 200), 64))
    ),
}

ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "escaped": lambda text: json.dumps(text)[1:-1],
    "escaped twice": lambda text: json.dumps(json.dumps({"key": text}))[1:-1],
    "every letter escaped": lambda text: "".join(f"\\u{ord(letter):04X}" for letter in text),
    "percent-encoded": lambda text: quote(text, safe=""),
    "every letter percent-encoded": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "percent-encoded twice": lambda text: quote(quote(text, safe=""), safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of more": lambda text: base64.b64encode(f"user=me; auth={text};".encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(f"k: {text}".encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(f"auth: {text}".encode()).decode(),
    "base64 behind a path": lambda text: f"data/{base64.b64encode(text.encode()).decode()}",
    "base64, slashes escaped": lambda text: (
        base64.b64encode(f"??>{text}".encode()).decode().replace("/", "\\/")
    ),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_however_it_is_encoded(name: str, encoding: str) -> None:
    """Once, of the kind that redaction gives it."""
    kind = Redaction().text(SECRETS[name]).partition("<redacted:")[2].partition(":")[0]
    text = f'The key is "{ENCODINGS[encoding](SECRETS[name])}", keep it.\n'

    assert {kind} == {found.kind for found in Search().find(text)}


def test_a_finding_says_where_and_how() -> None:
    """The place is that in the text as it stands; the digest begins as that of the placeholder does."""
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    inside = base64.b64encode(KEY.encode()).decode()
    percent = "".join(f"%{ord(letter):02X}" for letter in KEY)
    text = f"{KEY} é {escaped} {percent} {inside} {KEY}"
    starts = [
        0,
        len(KEY) + 3,
        text.index(percent),
        text.index(inside),
        len(text) - len(KEY),
    ]

    assert [
        Found(starts[0], "openai-key", "", DIGEST),
        Found(starts[1], "openai-key", "escaped", DIGEST),
        Found(starts[2], "openai-key", "percent-encoded", DIGEST),
        Found(starts[3], "openai-key", "base64", DIGEST),
        Found(starts[4], "openai-key", "", DIGEST),
    ] == Search().find(text)


def test_what_a_secret_hides_is_that_secret() -> None:
    """Base64 inside of something that was found as it is counts once."""
    inside = base64.b64encode(KEY.encode()).decode()

    assert ["bearer"] == [found.kind for found in Search().find(f"Authorization: Bearer {inside}")]


def test_personal_data_are_looked_for_when_asked() -> None:
    """Numbers with a check are checked; what could be guessed has no digest without a key."""
    text = (
        "mail ada@example.com or +44 20 7946 0958, card 4111 1111 1111 1111 not 4111 1111 1111 1112, "
        "IBAN DE89 3704 0044 0532 0130 00 not DE88 3704 0044 0532 0130 00, password=hunter22"
    )
    found = Search(PII).find(text)

    assert [] == Search().find(text)
    assert [
        ("email", text.index("ada"), ""),
        ("phone", text.index("+44"), ""),
        ("card", text.index("4111"), ""),
        ("iban", text.index("DE89"), ""),
    ] == [(each.kind, each.start, each.digest) for each in found]
    assert [("name-value", text.index("hunter22"))] == [
        (each.kind, each.start) for each in Search(NAMES).find(text)
    ]
    keyed = [each.digest for each in Search(PII, key=b"k" * 16).find(text)]
    assert [8] * 4 == [*map(len, keyed)]


def test_own_patterns_count() -> None:
    """With a digest, unless their values could be guessed; a group says what is secret."""
    search = Search((), {"customer": "C-[0-9]{4}", "nick": "nick: (?P<secret>[a-z]+)"}, frozenset({"nick"}))

    assert [(0, "customer", 8), (14, "nick", 0)] == [
        (each.start, each.kind, len(each.digest)) for each in search.find("C-1234, nick: ada")
    ]


HARMLESS = {
    "placeholder": f"see {Redaction().text(KEY)} and {quote(Redaction().text(KEY))}",
    "words": "sk-learn, task-runner-for-everybody-2024, https://example.com/sk-SK/",
    "hash": f"sha256:{drawn('0123456789abcdef', 64)} {drawn('0123456789abcdef', 40)}",
    "bytes": base64.b64encode(random.Random(2).randbytes(60_000)).decode(),
    "truncated": "sk-proj-abc... AKIA... ghp_xxx",
    "odd base64": f"{drawn(_LETTERS, 29)}=",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_no_secret_is_not_found(name: str) -> None:
    """Placeholders, words, hashes and bytes."""
    assert [] == Search().find(HARMLESS[name])


HOSTILE = {
    "base64": "A" * 500_000,
    "lines": ("A" * 76 + "\n") * 6_000,
    "escapes": "\\u0041" * 80_000,
    "backslashes": "\\" * 500_000,
    "percent": "%25" * 150_000 + "41",
    "keys": f"{KEY} " * 8_000,
    "heads": "sk-" * 150_000,
    "userinfo": "://a:b" * 80_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_text_takes_long(name: str) -> None:
    """Half a megabyte of what patterns stumble over; the limit is generous to slow machines."""
    started = time.process_time()
    Search(PII + NAMES).find(HOSTILE[name])

    assert 5 > time.process_time() - started
