"""Where a call goes: one spelling for one place."""

from __future__ import annotations

import pytest

from httpx_cassette._redact import Redaction
from httpx_cassette._url import _MOST_TARGETS, _TARGETS, normal_url, read_target


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        pytest.param("HTTPS://API.Example.COM/V1", "https://api.example.com/V1", id="case"),
        pytest.param("https://h:443/", "https://h/", id="https-port"),
        pytest.param("http://h:80/", "http://h/", id="http-port"),
        pytest.param("http://h:443/", "http://h:443/", id="other-port"),
        pytest.param("https://h:80/", "https://h:80/", id="port-of-the-other"),
        pytest.param("https://h:0443/", "https://h/", id="port-with-a-zero"),
        pytest.param("https://h:/", "https://h/", id="empty-port"),
        pytest.param("https://H:x/", "https://h:x/", id="port-that-is-no-number"),
        pytest.param("https://u:p@h/", "https://h/", id="userinfo"),
        pytest.param("https://u:p@H:x/", "https://h:x/", id="userinfo-and-odd-port"),
        pytest.param("http://[::1]:80/a", "http://[::1]/a", id="ipv6"),
        pytest.param("http://[FE80::A]:81/a", "http://[fe80::a]:81/a", id="ipv6-with-port"),
        pytest.param("https://h", "https://h/", id="no-path"),
        pytest.param("https://h?a", "https://h/?a=", id="no-path-but-a-query"),
        pytest.param("https://h/a#b?c", "https://h/a", id="fragment"),
        pytest.param("https://h/a;b=1//c/../%2e%2E", "https://h/a;b=1//c/../%2e%2E", id="path-as-sent"),
        pytest.param("https://h/?", "https://h/", id="empty-query"),
        pytest.param("https://h/?&&", "https://h/", id="empty-pieces"),
        pytest.param("https://h/?b=1&a=2&b=0", "https://h/?a=2&b=1&b=0", id="sorted-repeats-kept"),
        pytest.param("https://h/?a=&b", "https://h/?a=&b=", id="blanks"),
        pytest.param("https://h/?a=x+y&b=x%20y&c=x%2By", "https://h/?a=x%20y&b=x%20y&c=x%2By", id="spaces"),
        pytest.param("https://h/?%61=%c3%a9/~", "https://h/?a=%C3%A9%2F~", id="one-spelling"),
        pytest.param("https://h/?a=%FF&b=%fe%00", "https://h/?a=%FF&b=%FE%00", id="not-utf-8"),
        pytest.param("https://h/?a=1;b=2", "https://h/?a=1%3Bb%3D2", id="semicolon"),
        pytest.param("https://h/?a=b=c", "https://h/?a=b%3Dc", id="equals"),
        pytest.param("https://h/?KEY=1&a=2&x-amz-Date=3&Access_Token=4", "https://h/?a=2", id="secrets"),
        pytest.param("https://h/?key=1", "https://h/", id="nothing-but-secrets"),
    ],
)
def test_a_url_has_one_spelling(url: str, normal: str) -> None:
    """What means nothing is dropped, what means something stays, and twice is once."""
    assert normal == normal_url(url)
    assert normal == normal_url(normal)


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("https://gateway:49152/v1/x?b=1&a=2", "/v1/x?a=2&b=1"),
        ("http://[::1]", "/"),
    ],
)
def test_the_host_can_be_left_out(url: str, normal: str) -> None:
    """Scheme, host and port go, the rest stays."""
    assert normal == normal_url(url, host=False)


def test_a_target_says_where_a_call_goes() -> None:
    """Path and host for the dialects, the redacted URL for the file, both forms for the key."""
    target = read_target("https://u:p@API.example.com:8443/v1/Chat?b=1&key=s&a=2#f", Redaction())

    assert "/v1/Chat" == target.path
    assert "api.example.com" == target.host
    assert "https://API.example.com:8443/v1/Chat?b=1&a=2" == target.stored
    assert "https://api.example.com:8443/v1/Chat?a=2&b=1" == target.normal
    assert "/v1/Chat?a=2&b=1" == target.normal_without_host


def test_a_credential_in_a_url_is_redacted() -> None:
    """What is stored and hashed holds the placeholder, percent-encoded."""
    url = "https://h/to/x?next=postgres://ann:open-sesame-7@db.example.com/x"
    target = read_target(url, Redaction())

    assert "open-sesame" not in "".join(target)
    assert "%3Credacted%3Aurl-userinfo%3A" in target.normal
    assert "open-sesame" in read_target(url, Redaction(strong=False)).normal


def test_equal_redactions_with_different_keys_are_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a URL became under one HMAC key is not taken for another."""
    found = []
    for key in ("first key for tests", "second key for tests"):
        monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", key)
        found.append(read_target("https://h/?q=ann@example.com", Redaction(weak=["email"])).stored)

    assert found[0] != found[1]
    assert all("%3Credacted:email:" in url for url in found)


def test_urls_that_were_seen_are_not_kept_without_end() -> None:
    """A program that polls a new URL each time does not grow."""
    redaction = Redaction()
    for number in range(_MOST_TARGETS + 10):
        read_target(f"https://h/{number}", redaction)

    assert len(_TARGETS) <= _MOST_TARGETS
    assert read_target("https://h/x", redaction) is read_target("https://h/x", redaction)


def test_a_url_without_a_host_is_no_crash() -> None:
    """Something that is no URL has a target all the same."""
    target = read_target("/v1/x", Redaction())

    assert ("/v1/x", "", ":///v1/x") == (target.path, target.host, target.normal)
