"""Digests stand for long strings, and nothing that is sent is taken for one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._canonical import canonical_bytes
from httpx_cassette._digests import digest_long_strings, digest_of, escape_names, is_digest

from .keying import JSON

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_a_digest_says_hash_and_length() -> None:
    """SHA-256 of the bytes, UTF-8 for a text, and how many there are."""
    assert {"$sha256": EMPTY, "$bytes": 0} == digest_of(b"") == digest_of("")
    assert digest_of("é€") == digest_of("é€".encode())
    assert {"$sha256": hashlib.sha256(b"a\xed\xa0\x80").hexdigest(), "$bytes": 4} == digest_of("a\ud800")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"$sha256": EMPTY, "$bytes": 0}, True, id="digest"),
        pytest.param({"$bytes": 0, "$sha256": EMPTY}, True, id="other-order"),
        pytest.param({"$sha256": EMPTY}, False, id="half"),
        pytest.param({"$sha256": EMPTY, "$bytes": 0, "a": 1}, False, id="more"),
        pytest.param({"$sha256": EMPTY, "$bytes": True}, False, id="no-length"),
        pytest.param({"$sha256": EMPTY, "$bytes": 0.0}, False, id="float"),
        pytest.param({"$sha256": EMPTY.upper(), "$bytes": 0}, False, id="upper-case"),
        pytest.param({"$sha256": EMPTY + "0", "$bytes": 0}, False, id="too-long"),
        pytest.param({"$sha256": EMPTY + "\n", "$bytes": 0}, False, id="newline"),
        pytest.param({"$sha256": 5, "$bytes": 0}, False, id="no-text"),
        pytest.param({"$$sha256": EMPTY, "$$bytes": 0}, False, id="escaped"),
        pytest.param([EMPTY, 0], False, id="list"),
        pytest.param(EMPTY, False, id="text"),
    ],
)
def test_a_digest_is_recognised(value: Json, expected: bool) -> None:
    """Exactly the two members that are made here, of their types."""
    assert expected is is_digest(value)


@pytest.mark.parametrize(
    ("text", "is_long"),
    [
        ("a" * 1024, False),
        ("a" * 1025, True),
        ("é" * 512, False),
        ("é" * 512 + "a", True),
        ("€" * 341 + "a", False),
        ("€" * 341 + "aa", True),
        ("\U0001f600" * 256, False),
        ("\U0001f600" * 256 + "a", True),
        ("\ud800" * 341 + "a", False),
        ("\ud800" * 342, True),
    ],
)
def test_only_more_than_1024_bytes_are_long(text: str, is_long: bool) -> None:
    """The limit is in bytes of UTF-8, wherever the text stands."""
    expected = digest_of(text) if is_long else text

    assert expected == digest_long_strings(text)
    assert {"a": [expected, {"b": expected}], text: 1} == digest_long_strings(
        {"a": [text, {"b": text}], text: 1}
    )


@given(JSON)
def test_digests_are_made_once(document: Json) -> None:
    """A document whose long strings are digests has no long strings."""
    once = digest_long_strings(document)

    assert canonical_bytes(once) == canonical_bytes(digest_long_strings(once))


def escaped(value: Json) -> Json:
    """Escape as a request that is stored, and then hashed."""
    return escape_names(escape_names(value, reserved_only=True), reserved_only=False)


@pytest.mark.parametrize(
    ("sent", "stored", "hashed"),
    [
        ("$sha256", "$$sha256", "$$sha256"),
        ("$bytes", "$$bytes", "$$bytes"),
        ("$$bytes", "$$$bytes", "$$$bytes"),
        ("$ref", "$ref", "$$ref"),
        ("$$ref", "$$ref", "$$$ref"),
        ("$", "$", "$$"),
        ("$sha2567", "$sha2567", "$$sha2567"),
        ("a$", "a$", "a$"),
        ("", "", ""),
    ],
)
def test_names_with_a_dollar_sign_get_one_more(sent: str, stored: str, hashed: str) -> None:
    """The names of a digest when a request is stored, all others when it is hashed."""
    document: Json = [{sent: {sent: "$ref"}}]

    assert [{stored: {stored: "$ref"}}] == escape_names(document, reserved_only=True)
    assert [{hashed: {hashed: "$ref"}}] == escaped(document)


_NAMES = st.text(st.sampled_from("$sha256bytesx"), max_size=8) | st.sampled_from(
    ["$sha256", "$bytes", "$$sha256", "$$bytes", "$ref"]
)
_SENT = st.recursive(
    st.just(EMPTY) | st.integers(0, 2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)


@given(_SENT, _SENT)
def test_escaping_keeps_apart_what_is_apart(left: Json, right: Json) -> None:
    """Two documents with other names are other documents after, and none holds a digest."""

    def holds_digest(value: Json) -> bool:
        if isinstance(value, dict):
            return is_digest(value) or any(map(holds_digest, value.values()))
        return isinstance(value, list) and any(map(holds_digest, value))

    assert (left == right) == (escaped(left) == escaped(right))
    assert not holds_digest(escape_names(left, reserved_only=True))


def test_a_digest_of_ours_is_left_as_it_is() -> None:
    """Its names are those that nothing sent can have, stored or hashed."""
    digest = digest_of("x")

    assert {"a": digest, "$$b": 1} == escape_names({"a": digest, "$b": 1}, reserved_only=False)
