"""Redaction: which texts are secrets, what becomes of them, and what the tripwire still finds."""

from __future__ import annotations

import base64
import json
import pickle
import re
import time
from collections.abc import Callable, Iterator
from itertools import pairwise, permutations
from typing import Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from httpx_cassette._call import Call
from httpx_cassette._errors import OptionError
from httpx_cassette._paths import Paths
from httpx_cassette._redact import DEFAULT, Gate, Redaction, scan
from httpx_cassette._secret_names import is_secret_query
from httpx_cassette._secret_rules import WEAK_RULES, strong_rules
from httpx_cassette._tripwire import Tripwire

# Every value is made up, and put together here so that no scanner takes this file for a leak.
HEX = "0f1e2d3c4b5a6978" * 4
ALNUM = "a1B2c3D4e5F6g7H8" * 16
UPPER = "A2B3C4D5E6F7G2H3" * 4
JWT = f"eyJ{ALNUM[:17]}.eyJ{ALNUM[:25]}.{ALNUM[:43]}"
PEM_LINES = [ALNUM[:64], ALNUM[16:80], ALNUM[:20] + "=="]
HEAD, TAIL = "-----BEGIN RSA PRIVATE " + "KEY-----", "-----END RSA PRIVATE " + "KEY-----"
PEM = "\n".join([HEAD, *PEM_LINES, TAIL])

#: Kind, and a credential of it that is replaced as a whole.
WHOLE = [
    ("private-key", PEM),
    ("private-key", PEM.replace("RSA ", "")),
    ("private-key", PEM.replace(" KEY-----", " KEY BLOCK-----").replace("RSA", "PGP")),
    ("age-key", "AGE-SECRET-KEY-" + "1" + UPPER[:58]),
    ("anthropic-key", "sk-" + "ant-api03-" + ALNUM[:93] + "AA"),
    ("openai-key", "sk-" + ALNUM[:48]),
    ("openai-key", "sk-" + HEX[:32]),
    ("openai-key", "sk-" + "proj-" + ALNUM[:40] + "_-" + ALNUM[:40]),
    ("openai-key", "sk-" + "svcacct-" + ALNUM[:60]),
    ("openai-key", "sk-" + "or-v1-" + HEX),
    ("openai-key", "sk-" + "lf-1f2e3d4c-1234-5678-9abc-0f1e2d3c4b5a"),
    ("openai-key", "sk-" + "helicone-abcdefg-1234567-abcdefg-1234567"),
    ("openai-key", "sk-" + "aB3_dE6-gH9_kL2-nO5_qR"),
    ("google-key", "AIza" + "Sy" + ALNUM[:33]),
    ("google-key", "AQ.Ab" + "8RN6" + ALNUM[:40]),
    ("google-token", "ya29." + "a0" + ALNUM[:60]),
    ("google-token", "1//0" + ALNUM[:60]),
    ("google-token", r"1\/\/0" + ALNUM[:60]),
    ("google-token", "1%2F%2f0" + ALNUM[:60]),
    ("google-secret", "GOCSPX-" + ALNUM[:28]),
    ("hf-token", "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ("hf-token", "api_org_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH"),
    ("groq-key", "gsk_" + ALNUM[:52]),
    ("xai-key", "xai-" + ALNUM[:80]),
    ("perplexity-key", "pplx-" + ALNUM[:48]),
    ("replicate-key", "r8_" + ALNUM[:37]),
    ("fireworks-key", "fw_" + ALNUM[:24]),
    ("cerebras-key", "csk-" + ALNUM[:48].lower()),
    ("together-key", "tgp_v1_" + ALNUM[:43]),
    ("nvidia-key", "nvapi-" + ALNUM[:64]),
    ("databricks-key", "dapi" + HEX[:32]),
    ("langsmith-key", "lsv2_pt_" + HEX[:32] + "_" + HEX[:10]),
    ("langsmith-key", "lsv2_sk_" + HEX[:32] + "_" + HEX[:10]),
    ("voyage-key", "pa-" + ALNUM[:43]),
    ("jina-key", "jina_" + ALNUM[:60]),
    ("tavily-key", "tvly-" + "dev-" + ALNUM[:32]),
    ("firecrawl-key", "fc-" + HEX[:32]),
    ("elevenlabs-key", "sk_" + HEX[:48]),
    ("pinecone-key", "pcsk_" + ALNUM[:70]),
    ("e2b-key", "e2b_" + HEX[:40]),
    ("anyscale-key", "esecret_" + ALNUM[:26].lower()),
    ("vercel-key", "vck_" + ALNUM[:56]),
    ("qianfan-key", "ALTAK-" + ALNUM[:21] + "/" + HEX[:40]),
    ("aws-key-id", "AKIA" + UPPER[:16]),
    ("aws-key-id", "ASIA" + UPPER[:16]),
    ("bedrock-key", "ABSK" + ALNUM[:128]),
    ("bedrock-key", "bedrock-api-key-" + ALNUM[:128]),
    ("github-token", "ghp_" + ALNUM[:36]),
    ("github-token", "gho_" + ALNUM[:36]),
    ("github-token", "ghu_" + ALNUM[:36]),
    ("github-token", "ghs_" + ALNUM[:36]),
    ("github-token", "ghr_" + ALNUM[:76]),
    ("github-token", "github_pat_" + ALNUM[:22] + "_" + ALNUM[:59]),
    ("gitlab-token", "glpat-" + ALNUM[:20]),
    ("gitlab-token", "glcbt-" + "64_" + ALNUM[:20]),
    ("digitalocean-token", "dop_v1_" + HEX),
    ("docker-token", "dckr_pat_" + ALNUM[:27]),
    ("npm-token", "npm_" + ALNUM[:36]),
    ("pypi-token", "pypi-AgE" + "IcHlwaS5vcmc" + ALNUM[:80]),
    ("vault-token", "hvs." + ALNUM[:90]),
    ("supabase-key", "sbp_" + HEX[:40]),
    ("supabase-key", "sb_secret_" + ALNUM[:31]),
    ("azure-secret", "abc8" + "Q~" + ALNUM[:34]),
    ("azure-key", ALNUM[:52] + "JQQJ9" + "9BACACAAAA" + ALNUM[:17]),
    ("slack-token", "xoxb-" + "123456789012-1234567890123-" + ALNUM[:24]),
    ("slack-token", "xoxe.xoxp-" + "1-" + ALNUM[:60]),
    ("slack-token", "xapp-" + "1-A0123456789-1234567890123-" + HEX),
    ("telegram-token", "123456789:AA" + ALNUM[:33]),
    ("stripe-key", "sk_live_" + ALNUM[:24]),
    ("stripe-key", "rk_test_" + ALNUM[:24]),
    ("stripe-key", "whsec_" + ALNUM[:32]),
    ("sendgrid-key", "SG." + ALNUM[:22] + "." + ALNUM[:43]),
    ("twilio-key", "SK" + HEX[:32]),
    ("linear-key", "lin_api_" + ALNUM[:40]),
    ("notion-token", "ntn_" + ALNUM[:46]),
    ("grafana-token", "glsa_" + ALNUM[:32] + "_" + HEX[:8]),
    ("sentry-token", "sntryu_" + HEX),
    ("shopify-token", "shpat_" + HEX[:32]),
    ("jwt", JWT),
    ("jwt", f"eyJ{ALNUM[:17]}..{ALNUM[:16]}.{ALNUM[:43]}.{ALNUM[:22]}"),
]

#: Kind, what stands before the secret, the secret, what stands behind it.
PARTS = [
    ("azure-key", "DefaultEndpointsProtocol=https;AccountKey=", ALNUM[:86] + "==", ";Endpoint=x"),
    ("azure-key", "SharedAccessKey=", ALNUM[:43] + "=", ""),
    ("azure-key", r'{"c": "AccountKey\u003d', ALNUM[:86], r"\u003d\u003d;x"),
    ("azure-key", r"{\"c\": \"AccountKey\\u003D", ALNUM[:86], r"\\u003D"),
    (
        "slack-hook",
        "https://hooks.slack.com/services/",
        "T01234567/B01234567/" + ALNUM[:24],
        " posts it",
    ),
    (
        "slack-hook",
        r"https:\/\/hooks.slack.com\/services\/",
        rf"T01234567\/B01234567\/{ALNUM[:24]}",
        '"}',
    ),
    ("discord-hook", "https://discord.com/api/webhooks/123456789012345678/", ALNUM[:68], "?wait=1"),
    ("signed-url", "https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=", HEX, "&x=1"),
    ("signed-url", "https://b.s3.amazonaws.com/k?x-amz-security-token=", ALNUM[:80], " here"),
    ("signed-url", "https://storage.googleapis.com/b/k?X-Goog-Signature=", HEX * 4, ""),
    ("signed-url", "https://a.blob.core.windows.net/c?sv=2024&sig=", ALNUM[:43] + "%3D", "&se=1"),
    ("signed-url", r"https://a.blob.core.windows.net/c?sv=1\u0026sig=", ALNUM[:43] + "%3D", ""),
    ("signed-url", r"https://a.blob.core.windows.net/c?sv\u003d1\u0026sig\u003d", ALNUM[:43] + "%3D", ""),
    ("signed-url", "AWS4-HMAC-SHA256 SignedHeaders=host, Signature=", HEX, "."),
    ("bearer", "Authorization: Bearer ", ALNUM[:32], '" -d'),
    ("bearer", "authorization: bearer ", HEX[:40], ". Then"),
    ("bearer", "h=Bearer%20", HEX[:40], "&x"),
    ("bearer", "?auth=Bearer+", HEX[:40], "&x"),
    ("bearer", "AUTHORIZATION: BEARER ", HEX[:40], ""),
    ("basic", "?auth=BASIC+", base64.b64encode(b"user:hunter2-or-so").decode(), "&x"),
    ("basic", "Authorization: Basic ", base64.b64encode(b"user:hunter2-or-so").decode(), '"'),
    ("basic", "basic ", base64.b64encode(b"user:passw").decode(), ""),
    ("url-userinfo", "postgres://", "app:hunter2", "@db.internal:5432/app"),
    ("url-userinfo", "redis://", ":p@ss", "@cache/0"),
    ("url-userinfo", "postgres://", "admin:$up3rS3cretPassw0rd", "@db.internal/prod"),
    ("url-userinfo", "postgres://", "admin:$ecretPassword", "@db.internal/prod"),
    ("url-userinfo", "https://", "0123456789abcdef0123", "@example.com/x"),
    ("url-userinfo", "ssh://", "git:12345", "@v1.2.example.com"),
    ("url-userinfo", "ssh://", "git:1234567,89", "@v1"),
    ("url-userinfo", "next=https%3A%2f%2F", "app%3Ahunter2", "%40db"),
    ("url-userinfo", "next=https%3a//", "app%3ahunter2", "%40db"),
    ("url-userinfo", r"{\"u\": \"https:\/\/", "app:hunter2", r"@db\/app\"}"),
]

PLACEHOLDER = re.compile(r"<redacted:([a-z0-9-]+):([0-9a-f]{16})>")

#: Ordinary text that looks a little like a credential.
ORDINARY = [
    "pip install sk-learn, see sk-learn-contrib and sk-learn-extra-2.0",
    '<div id="sk-estimator-id-12345678" class="sk-toggleable__content fitted sk-global">',
    "the task-list is risk-adjusted-return-on-capital-2024 and disk-usage-percentage",
    "hf_hub_download(repo_id), hf_transfer, npm_config_registry, npm_lifecycle_event=1",
    'eyJ is how base64 of {" begins; eyJhbGciOi... and eyJhbGciOiJIUzI1NiJ9.short.sig',
    "Bearer authentication, Bearer token-based-authentication-scheme, Bearer ${OPENAI_API_KEY}",
    "Bearer ........................... and Bearer a-token-of-the-second-kind.",
    "Basic understanding of responsibilities, Basic responsibilities, basic knowledge-management",
    "Basic abcdefghijklm, Basic abcdefghijklmnop",
    "see https://example.com:8443/a@b and ssh://git@github.com/x/y, mail me@example.com",
    "postgres://user:${PASSWORD}@host, redis://:{password}@h, https://u:***@h, http://[::1]:80/@x",
    "postgres://$USER:$DB_PASSWORD_2@host, postgres://$user:$db_password@host, http://$1:$2@host",
    "http://localhost:8080\nmail admin@example.com",
    r"http://localhost:8080\nmail admin@example.com",
    "-----BEGIN PRIVATE " + "KEY-----\n...\n-----END PRIVATE " + "KEY-----",
    "a file that begins with -----BEGIN PRIVATE " + "KEY----- is a key, -----BEGIN CERTIFICATE-----",
    "AKIA, AKIAIOSFODNN7, AIza, ghp_, glpat-x, xoxb-, SG.1.2, SKU, TASK, gsk_x, r8_b, fw_status_code",
    "fw_update_firmware_version_now, dapifoo, fc-cache -f, pa-rt, jina_, sk_test_, sk_BUFF",
    "sig=abc, Signature=x",
    "design=modern-and-timeless&sig=words-without-any-figures",
    "y = filtfilt(b, a, x, sig=butter_lowpass_order_4)",
    "next=http%3A%2F%2Flocalhost%3A8080&login_hint=joe%40example.com",
    "next=http%3A%2F%2Flocalhost%3A8080%26login_hint%3Djoe%40example.com",
    "say=http%3A%2F%2Flocalhost%3A8080%0Amail%20joe%40example.com",
    "say=http%3A%2F%2F%24USER%3A%7Bpassword%7D%40example.com",
    "Server: http://localhost:8080;contact=joe@example.com",
    "url,owner\nhttp://build:8080,joe@example.com",
    "[open](http://build:8080)(mailto:joe@example.com)",
    "git clone ssh://git.example.com:team@v1.2.3, then ssh://git.example.com:team@v1.2. Done",
    '{"voice": "sk-SK-Chirp3-HD-Achernar"}',
    "the hash is " + HEX + " and the uuid 123e4567-e89b-12d3-a456-426614174000",
    "https://discord.com/api/webhooks/1/x, hooks.slack.com/services, webhooks, 12:AA, JQQJ9, Q~",
    "密钥 sk- \ud800 lone \udfff surrogates",
    "",
]


@pytest.fixture
def hmac_key(monkeypatch: pytest.MonkeyPatch) -> str:
    key = "k3y-" * 8
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", key)
    return key


def spellings() -> Iterator[Any]:
    """Every credential in the surroundings in which it is met."""
    for kind, secret in WHOLE:
        surroundings = [
            "{}",
            "use {} now",
            '"{}"',
            "KEY={}",
            "<key>{}</key>",
            r"a\n{}\n",
            "${{K:-{}}}",
            "密{}钥",
            "\x1b[01;31m\x1b[K{}\x1b[m\x1b[K",
            r"\u001b[32m{}\u001b[0m",
        ]
        for place, around in enumerate(surroundings):
            before, after = around.format("\0").split("\0")
            yield pytest.param(kind, before, secret, after, id=f"{kind}-{secret[:6]}-{place}")
    for place, (kind, before, secret, after) in enumerate(PARTS):
        yield pytest.param(kind, before, secret, after, id=f"{kind}-{place}")


@pytest.mark.parametrize(("kind", "before", "secret", "after"), list(spellings()))
def test_a_credential_becomes_a_placeholder_of_its_kind(
    kind: str, before: str, secret: str, after: str
) -> None:
    """The secret goes, all else stays, and a second pass changes nothing."""
    redacted = DEFAULT.text(before + secret + after)

    assert redacted.startswith(before)
    assert redacted.endswith(after)
    middle = redacted[len(before) : len(redacted) - len(after)]
    match = PLACEHOLDER.fullmatch(middle)
    assert match is not None, middle
    assert match[1] == kind
    assert DEFAULT.text(redacted) is redacted


@pytest.mark.parametrize(("kind", "before", "secret", "after"), list(spellings()))
def test_the_gate_opens_for_every_credential_in_json(kind: str, before: str, secret: str, after: str) -> None:
    """Whatever ``text`` would replace, ``scan`` sees in the bytes of a body, slashes escaped or not."""
    body = json.dumps({"messages": [{"content": before + secret + after}]}, ensure_ascii=False)

    assert Gate.SECRET in scan(body.encode())
    assert Gate.SECRET in scan(body.replace("/", "\\/").encode())
    assert DEFAULT.concerns(Gate.SECRET)


@pytest.mark.parametrize(("kind", "before", "secret", "after"), list(spellings()))
@pytest.mark.parametrize("letters", [str.upper, str.lower], ids=["upper", "lower"])
def test_a_credential_is_found_where_a_url_is_part_of_another(
    letters: Callable[[str], str], kind: str, before: str, secret: str, after: str
) -> None:
    """Percent-encoded, with escapes of either case, nothing of it stays and its kind is known."""
    plain = unquote(f"x?{before}{secret}{after}")
    text = re.sub("%..", lambda escape: letters(escape[0]), quote(plain, safe=""))

    redacted = DEFAULT.text(text)

    assert max(re.findall("[A-Za-z0-9]+", secret), key=len) not in redacted
    assert f"<redacted:{kind}:" in redacted
    assert Gate.SECRET in scan(text.encode())
    assert DEFAULT.text(redacted) is redacted


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays(text: str) -> None:
    """Words, code and documentation are not credentials."""
    assert DEFAULT.text(text) is text


def test_every_rule_has_an_example() -> None:
    """A kind without a positive case would be untested."""
    assert {rule.kind for rule in strong_rules()} == {kind for kind, *_ in [*WHOLE, *PARTS]}


def test_every_rule_compiles() -> None:
    """Patterns are compiled when they are needed, so all of them are compiled here."""
    for rule in strong_rules():
        re.compile(rule.pattern)
        re.compile(rule.tail.encode())


def test_a_placeholder_opens_no_gate() -> None:
    """A redacted body is as cheap as a clean one."""
    kinds = {rule.kind for rule in strong_rules()} | {"path", *WEAK_RULES}

    for kind in kinds:
        assert scan(f'{{"a":"<redacted:{kind}:0123456789abcdef>"}}'.encode()) == Gate(0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"content": "hello"}', Gate(0)),
        (b'{"url": "data:image/png;base64,AAAA"}', Gate.DATA_URL),
        (b'{"$ref": "#/x"}', Gate.DOLLAR),
        (b'{"type": "input_audio"}', Gate.MEDIA),
        (b'{"mimeType":"image/png","data":"AAAA"}', Gate.MEDIA),
        (b'{"mime_type":"image/png","data":"AAAA"}', Gate.MEDIA),
        (b'{"file_data": "AAAA", "x": "$1;base64,"}', Gate.MEDIA | Gate.DOLLAR | Gate.DATA_URL),
        (b'{"x": "a risk-free task on https://example.com:80/x"}', Gate(0)),
        (b"", Gate(0)),
    ],
)
def test_the_gate_names_what_occurs(body: bytes, expected: Gate) -> None:
    """Each flag stands for its literals, and nothing else."""
    assert scan(body) == expected


def test_one_value_has_one_placeholder_and_two_have_two() -> None:
    """Placeholders are stable across texts and distinct across values."""
    one, two = "sk-" + ALNUM[:48], "sk-" + ALNUM[2:50]
    first, second = DEFAULT.text(one), DEFAULT.text(two)

    assert first == "<redacted:openai-key:7bfcde15263d7ade>"
    assert first != second
    assert DEFAULT.text(f"Bearer {one}, then {two}") == f"Bearer {first}, then {second}"


@pytest.mark.parametrize(
    "block",
    [
        PEM.replace("\n", "\r\n"),
        PEM.replace("\n", r"\n"),
        PEM.replace("\n", r"\\r\\n"),
        PEM.replace("\n", " "),
        HEAD + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0F1E\n\n" + "\n".join([*PEM_LINES, TAIL]),
    ],
)
def test_a_private_key_has_one_digest_however_its_lines_end(block: str) -> None:
    """Only the base64 of a block is digested."""
    assert DEFAULT.text(block) == DEFAULT.text(PEM)


def test_slashes_of_a_private_key_may_be_escaped() -> None:
    """JSON may escape the slashes of base64."""
    block = PEM.replace(ALNUM[:20], "ab/cd+ef/gh")

    assert DEFAULT.text(block.replace("/", r"\/")) == DEFAULT.text(block)


@pytest.mark.parametrize("gap", ["\n", r"\n", "\r\n"])
def test_a_private_key_cut_off_loses_its_full_lines(gap: str) -> None:
    """A block without an end hides its lines and leaves the prose behind it."""
    redacted = DEFAULT.text(gap.join(["log:", HEAD, *PEM_LINES[:2], "... and so on"]))

    assert re.sub(PLACEHOLDER, "*", redacted) == gap.join(["log:", "*", "... and so on"])


def test_two_credentials_without_a_gap_both_go() -> None:
    """A placeholder ends the word that hid the next credential."""
    text = f"sk-{ALNUM[:48]}://app:hunter2@db"

    assert "hunter2" not in DEFAULT.text(f"https{text[51:]} {text}")


def test_secrets_in_a_document_are_found_wherever_they_stand() -> None:
    """Nested strings, member names and the raw text of tool arguments are redacted."""
    key, token = "sk-" + ALNUM[:48], "ghp_" + ALNUM[:36]
    document: Any = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": f"my key:\n{key}"}]},
            {"tool_calls": [{"function": {"arguments": json.dumps({"cmd": f"run\n{key}", token: 1})}}]},
        ],
        token: {"n": 1, "x": None, "y": True, "z": 1.5},
    }
    before = json.dumps(document)

    redacted = DEFAULT.json(document)

    assert json.dumps(document) == before
    text = json.dumps(redacted)
    assert key not in text
    assert token not in text
    assert text.count(DEFAULT.text(key)) == 2
    assert text.count(DEFAULT.text(token)) == 2
    assert isinstance(redacted, dict)
    assert list(redacted) == ["messages", DEFAULT.text(token)]
    assert DEFAULT.json(redacted) is redacted


def test_what_has_no_secret_is_the_same_object() -> None:
    """Nothing is copied where nothing changes."""
    clean = {"a": ["b", {"c": "d"}], "n": 1}
    document: Any = {"x": clean, "y": "sk-" + ALNUM[:48]}

    redacted: Any = DEFAULT.json(document)

    assert DEFAULT.json(document["x"]) is clean
    assert redacted["x"] is clean
    assert redacted is not document


def test_lone_surrogates_crash_nothing() -> None:
    """Text that UTF-8 cannot hold is redacted like any other."""
    text = "\ud800 sk-" + ALNUM[:48] + "\udfff"

    assert DEFAULT.text(text).startswith("\ud800 <redacted:openai-key:")
    assert DEFAULT.json({"\ud800": text}) == {"\ud800": DEFAULT.text(text)}
    assert DEFAULT.url("https://h/?x=%2F\ud800sk-" + ALNUM[:48]).startswith("https://h/?x=")


FRAGMENTS = st.sampled_from(
    [secret for _, secret in WHOLE]
    + [before + secret + after for _, before, secret, after in PARTS]
    + ["Bearer ", "Basic ", "://", "a:", "@", "?sig=", "&", "-", "_", ".", "\\n", "\\", "%20", " ", "=", "n"]
    + [
        "<redacted:openai-key:0123456789abcdef>",
        "<redacted:",
        ">",
        "https",
        "sk-",
        "eyJ",
        HEAD,
        TAIL,
        "0",
        "A",
    ]
)
TEXTS = st.lists(FRAGMENTS | st.text(max_size=5), max_size=8).map("".join)


@settings(max_examples=600, deadline=None)
@given(TEXTS)
def test_redacting_twice_changes_nothing(text: str) -> None:
    """The redacted text, and its document and URL, are left alone by a second pass."""
    redacted = DEFAULT.text(text)
    url = DEFAULT.url("https://h/" + text)

    assert DEFAULT.text(redacted) is redacted
    assert DEFAULT.json([redacted]) == [redacted]
    assert DEFAULT.url(url) == url


@settings(max_examples=300, deadline=None)
@given(st.lists(FRAGMENTS, max_size=6).map("".join))
def test_own_patterns_leave_placeholders_alone(text: str) -> None:
    """Even a pattern that fits the digits of a placeholder is idempotent."""
    redaction = Redaction(patterns={"digits": "[0-9a-f]{4,}", "any": "red|x*"})
    redacted = redaction.text(text)

    assert redaction.text(redacted) is redacted


#: What makes patterns slow: beginnings without an end, runs that almost fit, and nothing but boundaries.
HOSTILE = [
    "a",
    "0",
    "-",
    "\\",
    "1-",
    "+1 ",
    "a@",
    "x.y@",
    "DE89",
    "password: ",
    "sk-",
    "sk-a",
    "SK",
    "ya29.",
    "ghp_",
]
HOSTILE += [
    "eyJ",
    "-eyJ",
    "eyJ.",
    ".eyJ",
    "://",
    "://a:",
    "a://b:c@ ",
    "://" + "a" * 250,
    "://a:" + "b" * 250,
    "%3A",
    "%3A//",
    "%3A%2F%2F",
    "%3A%2F%2Fa%3A",
    "1/",
    "1\\/\\/0",
    "AccountKey\\",
    "AccountKey\\u003d",
    "\\u0026sig\\u003d",
    "sig%5C",
    "\x1b[32m",
    "BEARER+",
    "%3A%2F%2F" + "%41" * 250,
    "%3A%2F%2Fa%3A" + "%40" * 250,
]
HOSTILE += [
    HEAD,
    HEAD + "-a",
    HEAD + "A" * 40,
    HEAD + "\\n",
    "-----BEGIN ",
    "SG.",
    "SG.aaaaaaaaaaaaaaaaa",
    ":AA",
    "Q~",
]
HOSTILE += [
    "Basic ",
    "Basic a",
    "Bearer ",
    "Bearer a",
    "sig=a",
    "?sig=",
    "webhooks/",
    "hooks.slack.com/a",
    "JQQJ9",
]
HOSTILE += ["AKIA" + UPPER[:16], "AKIA" + UPPER[:16] + " ", "<redacted:", "<redacted:a:0123456789abcdef>"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_takes_less_than_a_second(unit: str, hmac_key: str) -> None:
    """Nothing is slower than linear; the kinds on request may find, and digest, 160,000 values in it."""
    text = unit * (1_000_000 // len(unit))
    times = [time.process_time()]
    for redaction in (DEFAULT, Redaction(strong=False, weak=list(WEAK_RULES))):
        redaction.text(text)
        times.append(time.process_time())

    assert times[1] - times[0] < 1
    assert times[2] - times[1] < 3


#: Whole credentials glued to one another, so that each is an edge for the next.
GLUED = [secret for _, secret in WHOLE] + [before + secret + after for _, before, secret, after in PARTS]
GLUED += [one + other for one, other in pairwise(GLUED)] + ["".join(GLUED)]
WEAKLY_GLUED = ["+49301234567", "a@b.co_", "DE89370400440532013000", "4111111111111111", "555-123-4567"]
WEAKLY_GLUED += [one + other for one, other in permutations(WEAKLY_GLUED, 2)]


@pytest.mark.parametrize("is_weak", [False, True], ids=["strong", "weak"])
def test_glued_credentials_take_a_time_that_grows_with_their_number(is_weak: bool, hmac_key: str) -> None:
    """One kind or two by turns: not a round for each of them; redacting twice changes nothing."""
    redaction = Redaction(strong=False, weak=list(WEAK_RULES)) if is_weak else DEFAULT
    for unit in WEAKLY_GLUED if is_weak else GLUED:
        text = unit * (100_000 // len(unit))
        started = time.process_time()
        redacted = redaction.text(text)

        assert time.process_time() - started < 1, unit
        assert redaction.text(redacted) is redacted


def test_glued_credentials_all_go_and_words_elsewhere_stay() -> None:
    """Only what touches them is looked at without regard to its edges."""
    chain = ("sbp_" + HEX[:40]) * 9
    words = "disk-usage-2024aBcDeFgHiJkL and\ntask-usage-2024aBcDeFgHiJkL"

    redacted = DEFAULT.text(f"{words} {chain}, {chain} {words}")

    assert f"{words} {'*' * 9}, {'*' * 9} {words}" == PLACEHOLDER.sub("*", redacted)


@pytest.mark.parametrize("start", ["", HEAD, "eyJ", "Bearer ", "://a:"])
def test_no_literal_makes_its_rule_slow(start: str) -> None:
    """Every literal repeated, behind a beginning that might want an end."""
    for literal in {rule.literal for rule in strong_rules()}:
        text = start + literal * (32_000 // len(literal))
        started = time.process_time()
        DEFAULT.text(text)

        assert time.process_time() - started < 5, literal


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        (
            "https://h/v1?alt=sse&api-version=2024-10-21&beta=true",
            "https://h/v1?alt=sse&api-version=2024-10-21&beta=true",
        ),
        ("https://user:pw@h:8443/v1?x=1#stream", "https://h:8443/v1?x=1"),
        ("https://a@b@h/x", "https://h/x"),
        ("//user:pw@h/x", "//h/x"),
        ("/v1/files?key=1&purpose=x", "/v1/files?purpose=x"),
        ("/a//u:p@h", "/a//u:p@h"),
        ("https://h/x?key=1", "https://h/x"),
        ("https://h/x?", "https://h/x?"),
        ("https://h/x?b=2&Key=1&a=%20+&b=&&flag", "https://h/x?b=2&a=%20+&b=&&flag"),
        ("https://h/x?api%5Fkey=1&KEY=2&X-Amz-Date=3&x-goog-signature=4&SIG=5&upload_id=6", "https://h/x"),
    ],
)
def test_a_url_loses_its_secrets_and_nothing_else(url: str, expected: str) -> None:
    """Userinfo, fragment and secret parameters go; the rest is the same to the byte."""
    assert DEFAULT.url(url) == expected
    assert Redaction(strong=False).url(url) == expected


def test_credentials_in_path_and_values_of_a_url_are_encoded_placeholders() -> None:
    """The result is a URL, and a second pass changes nothing."""
    key, bot = "sk-" + ALNUM[:48], "123456789:AA" + ALNUM[:33]
    inner = quote("https://app:hunter2@db/x?a=1 2", safe="")

    hidden = key.replace("sk-", "%73k%2d")
    url = DEFAULT.url(f"https://h/bot{bot}/send?q={key}&next={inner}&p=a+{hidden}&a=%2f")

    assert re.sub("[0-9a-f]{16}", "*", url) == (
        "https://h/bot%3Credacted:telegram-token:*%3E/send?q=%3Credacted:openai-key:*%3E"
        "&next=https%3A%2F%2F%3Credacted:url-userinfo:*%3E%40db%2Fx%3Fa%3D1%202"
        "&p=a%20%3Credacted:openai-key:*%3E&a=%2f"
    )
    assert DEFAULT.url(url) == url


@pytest.mark.parametrize(
    "name", ["key", "API_KEY", "Api-Key", "sig", "X-Amz-Anything", "code", "client_secret"]
)
def test_secret_parameters_are_known_by_name(name: str) -> None:
    """Letter case does not matter."""
    assert is_secret_query(name, "x" * 16)


@pytest.mark.parametrize(
    "name", ["alt", "api-version", "beta", "page_token", "keys", "x-goog-user-project", ""]
)
def test_other_parameters_stay(name: str) -> None:
    """What only resembles a secret's name is not one."""
    assert not is_secret_query(name, "x" * 16)


# Own rules.


def test_own_patterns_replace_the_match_or_its_secret_group() -> None:
    """A group named ``secret`` says what of a match is replaced."""
    redaction = Redaction(patterns={"customer": "C-[0-9]{4}", "pin": "pin (?:(?P<secret>[0-9]+)|none)"})

    text = redaction.text("C-1234 and C-9999, pin 1234, pin none")

    assert re.sub("[0-9a-f]{16}", "*", text) == (
        "<redacted:customer:*> and <redacted:customer:*>, pin <redacted:pin:*>, pin none"
    )
    assert len(set(PLACEHOLDER.findall(text))) == 3
    assert redaction.text(text) is text
    assert not redaction.is_default
    assert redaction.concerns(Gate(0))


def test_weak_own_patterns_are_digested_with_the_key(hmac_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another key gives other placeholders, none is refused."""
    patterns = {"customer": "C-[0-9]{4}"}
    public = Redaction(patterns=patterns).text("C-1234")
    keyed = Redaction(patterns=patterns, weak=["customer"]).text("C-1234")
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", hmac_key[::-1])
    other = Redaction(patterns=patterns, weak=["customer"]).text("C-1234")

    assert len({public, keyed, other}) == 3


def test_what_stands_at_a_path_never_gets_through(hmac_key: str) -> None:
    """Any value but null becomes a placeholder, and different values different ones."""
    redaction = Redaction(paths=["metadata.user_id", "users[*]"])
    document: Any = {"metadata": {"user_id": "jo"}, "users": ["7", 7, {"a": 1}, None, True], "z": ["x"]}
    before = json.dumps(document)

    redacted: Any = redaction.json(document)

    values = [redacted["metadata"]["user_id"], *redacted["users"]]
    assert json.dumps(document) == before
    assert values[4] is None
    assert len(set(values)) == 6
    assert all(value is None or value.startswith("<redacted:path:") for value in values)
    assert redaction.json(redacted) is redacted
    assert redaction.json(document["z"]) is document["z"]
    assert not redaction.is_default


def test_what_is_opaque_comes_back_to_the_byte(hmac_key: str) -> None:
    """A signature may look like a key by accident; beside it, in it and by own paths all is as ever."""
    key, other = "AKIAQ3EGRSTUVWXYZ234", "<redacted:aws-key-id:"
    document: Any = {"signature": key, "blocks": [{"signature": key, "text": key}, {"signature": {"a": key}}]}
    opaque = Paths(["blocks[*].signature"])

    redacted: Any = Redaction().json(document, opaque)
    by_path: Any = Redaction(paths=["blocks[0].signature"]).json(document, opaque)

    assert (key, key) == (document["signature"], redacted["blocks"][0]["signature"])
    assert redacted["signature"].startswith(other)
    assert redacted["blocks"][0]["text"].startswith(other)
    assert redacted["blocks"][1]["signature"]["a"].startswith(other)
    assert by_path["blocks"][0]["signature"].startswith("<redacted:path:")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("email", "mail jo.doe+x@mail.example.com. Or @me, a@b", "mail *. Or @me, a@b"),
        ("phone", "call +49 (30) 1234-5678 or (555) 123-4567, not 2024-01-02", "call * or *, not 2024-01-02"),
        (
            "card",
            "4111 1111 1111 1111, not 4111 1111 1111 1112 or 0000 0000 0000 0000",
            "*, not 4111 1111 1111 1112 or 0000 0000 0000 0000",
        ),
        ("iban", "DE89 3704 0044 0532 0130 00 AND", "* AND"),
        ("iban", "DE88 3704 0044 0532 0130 00, XX89 3704 0044 0532 0130 00, DE89 3704 0044 053", None),
        ("name-value", 'password = "hunter2", API_KEY: abcd, tokens', 'password = "*", API_KEY: *, tokens'),
        ("name-value", r"{\"passwd\": \"hunter2\"}", r"{\"passwd\": \"*\"}"),
    ],
)
def test_offered_weak_kinds(hmac_key: str, kind: str, text: str, expected: str | None) -> None:
    """They are found on request only."""
    redacted = Redaction(weak=[kind]).text(text)

    assert re.sub(PLACEHOLDER, "*", redacted) == (text if expected is None else expected)
    assert all(found == kind for found, _ in PLACEHOLDER.findall(redacted))
    assert DEFAULT.text(text) is text


def test_own_patterns_may_take_the_name_of_an_offered_kind(hmac_key: str) -> None:
    """Then the own pattern counts."""
    redaction = Redaction(patterns={"email": "@[a-z]+"}, weak=["email"])

    assert PLACEHOLDER.sub("*", redaction.text("jo@example.com")) == "jo*.com"


@pytest.mark.parametrize(("key", "state"), [(None, "not set"), ("short", "too short")])
@pytest.mark.parametrize("arguments", [{"paths": ["user"]}, {"weak": ["email"]}])
def test_weak_kinds_need_a_key(
    monkeypatch: pytest.MonkeyPatch, key: str | None, state: str, arguments: dict[str, Any]
) -> None:
    """Without one they are refused, and the error says what to set."""
    if key is None:
        monkeypatch.delenv("HTTPX_CASSETTE_HMAC_KEY", raising=False)
    else:
        monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", key)

    with pytest.raises(OptionError, match=f"HTTPX_CASSETTE_HMAC_KEY is {state}; set it to a secret of 16"):
        Redaction(**arguments)


# The option.


@pytest.mark.parametrize("option", [True, None, DEFAULT, {}, {"strong": True}])
def test_the_default_can_be_written_in_several_ways(option: object) -> None:
    """They all are the default, which leaves no trace on a line."""
    redaction = Redaction.of(option)

    assert redaction.is_default
    assert redaction == DEFAULT
    assert redaction.as_json() == {}
    assert not redaction.concerns(~Gate.SECRET & Gate(15))


def test_false_switches_off_strong_shapes_only() -> None:
    """Text stays, and the line says so."""
    redaction = Redaction.of(False)
    text = "sk-" + ALNUM[:48]

    assert redaction.text(text) is text
    assert redaction.as_json() == {"strong": False}
    assert not redaction.is_default
    assert not redaction.concerns(Gate.SECRET)


def test_a_redaction_survives_its_json_and_pickling(hmac_key: str) -> None:
    """What a line stores makes the same redaction again; the key itself is in neither."""
    redaction = Redaction(
        strong=False,
        patterns={"a": re.compile("(?i)x+", re.DOTALL), "b": "y"},
        paths=["user"],
        weak=["phone", "email", "a"],
    )

    document = redaction.as_json()

    assert document.pop("key_id") == "aab9ae8dcf4e09f7"
    assert document == {
        "strong": False,
        "patterns": {"a": "(?is)x+", "b": "y"},
        "paths": ["user"],
        "weak": ["a", "email", "phone"],
    }
    assert Redaction.of(redaction.as_json()) == redaction
    assert pickle.loads(pickle.dumps(redaction)) == redaction
    assert hash(pickle.loads(pickle.dumps(redaction))) == hash(redaction)
    assert hmac_key.encode() not in pickle.dumps(redaction)
    assert hmac_key not in repr(redaction)


def test_another_hmac_key_is_a_named_error(hmac_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that was redacted with another key is told from one that merely differs."""
    document = Redaction(paths=["user"]).as_json()
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", hmac_key[::-1])

    with pytest.raises(OptionError, match="is not the one that was used to redact"):
        Redaction.of(document)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("off", "redact cannot be a str; write True, False"),
        ({"pattern": {}}, r"redact has no argument 'pattern' \(did you mean 'patterns'\?\)"),
        ({"zzz": 1}, "redact has no argument 'zzz'; there are paths, patterns, strong, weak"),
        ({"strong": "yes"}, "redact: strong is 'yes'; write True or False"),
        ({"patterns": ["x"]}, "redact: patterns is no table"),
        ({"patterns": {"Bad Kind": "x"}}, "'Bad Kind' is no name for a kind"),
        ({"patterns": {1: "x"}}, "1 is no name for a kind"),
        ({"patterns": {"a": "("}}, "the pattern of 'a' cannot be read: missing"),
        ({"patterns": {"a": 1}}, "the pattern of 'a' is 1; write a regular expression"),
        ({"patterns": {"a": re.compile(b"x")}}, "the pattern of 'a' is re.compile"),
        ({"paths": "user"}, "redact: paths is 'user'; write a list of strings"),
        ({"paths": [1]}, "redact: paths is \\[1\\]; write a list of strings"),
        ({"paths": 1}, "redact: paths is 1; write a list of strings"),
        ({"weak": ["e-mail"]}, r"named 'e-mail' \(did you mean 'email'\?\); an own one needs a pattern"),
        ({"weak": ["zzz"]}, "no weak kind is named 'zzz'; there are card, email"),
    ],
)
def test_what_cannot_be_meant_is_refused(option: object, message: str) -> None:
    """The error names the argument and the nearest thing that would work."""
    with pytest.raises(OptionError, match=message):
        Redaction.of(option)


# The tripwire.

VALUE = 'pa/ss+"wörd"' + "z9Y8x7W6" * 2
KEY = "k-" + ALNUM[:40]


def make_call(url: str = "https://h/", **headers: str) -> Call:
    pairs = tuple((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return Call("POST", url, pairs, b"")


def encodings(value: str) -> dict[str, bytes]:
    data = value.encode()
    escaped = json.dumps(value)[1:-1]
    found = {
        "raw": data,
        "percent": quote(value, safe="").encode(),
        "percent-lower": re.sub("%..", lambda match: match[0].lower(), quote(value, safe="")).encode(),
        "json": escaped.encode(),
        "json-utf8": json.dumps(value, ensure_ascii=False)[1:-1].encode(),
        "json-slash": escaped.replace("/", "\\/").encode(),
        "json-twice": json.dumps(escaped)[1:-1].encode(),
    }
    for shift in range(3):
        found[f"base64-{shift}"] = base64.b64encode(b"x" * shift + data + b"tail")
        found[f"base64url-{shift}"] = base64.urlsafe_b64encode(b"x" * shift + data)
    return found


@pytest.mark.parametrize("value", [VALUE, KEY], ids=["awkward", "plain"])
@pytest.mark.parametrize("encoding", list(encodings("x")))
def test_the_tripwire_finds_a_credential_in_any_encoding(value: str, encoding: str) -> None:
    """Raw, percent-encoded, escaped once and twice, and base64 wherever it begins."""
    tripwire = Tripwire(make_call(), {"DB_PASSWORD": value})

    assert (
        tripwire.find(b'{"x":"' + encodings(value)[encoding] + b'"}')
        == "the environment variable DB_PASSWORD"
    )
    assert tripwire.find(b'{"x":"nothing"}') is None


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (make_call(authorization=f"Bearer {KEY}"), "the authorization header"),
        (make_call(Authorization=KEY), "the authorization header"),
        (make_call(proxy_authorization=f"Bearer {KEY}"), "the proxy-authorization header"),
        (
            make_call(authorization="Basic " + base64.b64encode(f"me:{KEY}".encode()).decode()),
            "the authorization header",
        ),
        (make_call(x_api_key=KEY), "the x-api-key header"),
        (make_call(api_key=KEY), "the api-key header"),
        (make_call(x_goog_api_key=KEY), "the x-goog-api-key header"),
        (make_call(x_amz_security_token=KEY), "the x-amz-security-token header"),
        (make_call(cookie=f"a=b; session={KEY}"), "the cookie header"),
        (make_call(f"https://h/?a=1&key={KEY}"), "the query parameter key"),
        (make_call(f"https://h/?api%5Fkey={KEY}#x"), "the query parameter api_key"),
        (make_call(f"https://me:{KEY}@h/"), "the password in the URL"),
    ],
)
def test_the_tripwire_knows_the_credentials_of_the_request(call: Call, name: str) -> None:
    """It names where the credential came from."""
    assert Tripwire(call, {}).find(b'{"x":"' + KEY.encode() + b'"}') == name


@pytest.mark.parametrize(
    "variable",
    [
        "OPENAI_API_KEY",
        "HF_TOKEN",
        "APP_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
        "db_password",
        "HTTPX_CASSETTE_HMAC_KEY",
    ],
)
def test_the_tripwire_knows_variables_by_their_ending(variable: str) -> None:
    """Whatever the letter case."""
    found = Tripwire(make_call(), {"PATH": KEY, variable: f" {KEY}\n"}).find(KEY.encode())

    assert found == f"the environment variable {variable}"


def test_the_variable_of_the_hmac_key_is_known_by_its_whole_name() -> None:
    """What ends like it is another one."""
    tripwire = Tripwire(make_call(), {"OLD_HTTPX_CASSETTE_HMAC_KEY": KEY, "CACHE_KEY": KEY})

    assert tripwire.find(KEY.encode()) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "ollama",
        "short-value-12",
        "x" * 40,
        "sk-" + "x" * 30,
        "sk-no-key-required",
        "test-key-for-the-unit-tests-1",
        "your_api_key_here",
    ],
)
def test_dummies_and_short_values_trip_nothing(value: str) -> None:
    """What is written where a key is not needed may stand in a prompt."""
    call = make_call(authorization=f"Bearer {value}", cookie=value)

    assert Tripwire(call, {"OPENAI_API_KEY": value}).find(f'"{value}"'.encode()) is None


@pytest.mark.parametrize(
    "header",
    [
        "Basic abcdefghijklmnopq",
        "Basic ***************************",
        "Basic " + base64.b64encode(b"\xff:\xfe" * 9).decode(),
        "Basic",
    ],
)
def test_odd_headers_crash_nothing(header: str) -> None:
    """A header that only claims to be basic authentication is watched as it is."""
    headers = ((b"accept", b"*"), (b"authorization", header.encode()), (b"x-api-key", b"\xff" * 9))
    tripwire = Tripwire(Call("GET", "h", headers, b""), {})

    assert tripwire.find(b"{}") is None


def test_the_tripwire_shows_no_value() -> None:
    """Neither its repr nor what it finds holds a credential."""
    tripwire = Tripwire(make_call(authorization=f"Bearer {KEY}"), {"X_API_KEY": VALUE})

    assert KEY not in repr(tripwire)
    assert not hasattr(tripwire, "__dict__")


def test_a_hundred_planted_secrets_are_gone_or_trip() -> None:
    """Whatever redaction leaves of a credential of the request stops the line."""
    for number in range(100):
        value = f"{number:03}-" + base64.urlsafe_b64encode(str(number).encode() * 20).decode()[:40]
        tripwire = Tripwire(make_call(authorization=f"Bearer {value}"), {})
        for encoded in encodings(value).values():
            line = DEFAULT.text('{"content":"' + encoded.decode() + '"}')
            assert tripwire.find(line.encode()) == "the authorization header"
