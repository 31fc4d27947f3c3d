"""JSON is read without a loss, or not at all."""

from __future__ import annotations

import json
import sys
import time

import pytest
from hypothesis import given

from httpx_cassette._call import Json
from httpx_cassette._canonical import canonical_bytes
from httpx_cassette._parsing import MAX_DEPTH, NotJson, is_same_json, parse_json, parse_leniently

from .keying import JSON


@pytest.mark.parametrize(
    ("data", "document"),
    [
        pytest.param(b' {"a": [1, 2.5, null, true]} ', {"a": [1, 2.5, None, True]}, id="plain"),
        pytest.param(b'{"a": 1, "b": 2, "a": 3}', {"a": 3, "b": 2}, id="duplicate-names"),
        pytest.param(b'{"a": {"x": 1}, "a": {"y": 2}}', {"a": {"y": 2}}, id="duplicate-objects"),
        pytest.param(b'"\\ud83d\\ude00"', "\U0001f600", id="surrogate-pair"),
        pytest.param(b'"\\ud83d"', "\ud83d", id="lone-surrogate"),
        pytest.param(b'{"\\udc00": "\\ude00\\ud83d"}', {"\udc00": "\ude00\ud83d"}, id="lone-surrogates"),
        pytest.param(b"18446744073709551615", 2**64 - 1, id="64-bits"),
        pytest.param(b"18446744073709551616", 2**64, id="65-bits"),
        pytest.param(b"[18446744073709551617]", [2**64 + 1], id="65-bits-in-a-list"),
        pytest.param(b"-9223372036854775809", -(2**63) - 1, id="negative-65-bits"),
        pytest.param(b'{"a": {"b": [1e19]}}', {"a": {"b": [1e19]}}, id="large-float"),
        pytest.param(b"9223372036854775808.0", 2.0**63, id="large-whole-float"),
        pytest.param(b"1e-400", 0.0, id="underflow"),
        pytest.param(b"-0", 0, id="minus-zero"),
        pytest.param(b"9" * 400, int("9" * 400), id="400-digits"),
        pytest.param(b"9" * 1000, int("9" * 1000), id="1000-digits"),
        pytest.param(b'""', "", id="empty-string"),
        pytest.param(b"null", None, id="null"),
        pytest.param("\u2028é".join('""').encode(), "\u2028é", id="utf-8"),
    ],
)
def test_what_json_says_is_kept(data: bytes, document: Json) -> None:
    """Every digit, the last of duplicate names, and lone surrogates."""
    found = parse_json(data)

    assert document == found
    assert type(document) is type(found)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"", "not JSON at character 0: Expecting value", id="empty"),
        pytest.param(b'{"a": ', "not JSON at character 6: Expecting value", id="cut"),
        pytest.param(b"[1 2]", "not JSON at character 3: Expecting ',' delimiter", id="comma"),
        pytest.param(b'{"a": 1} x', "not JSON at character 9: Extra data", id="more"),
        pytest.param(b'"a\nb"', "not JSON at character 2: Invalid control character at", id="control"),
        pytest.param(
            b"\xef\xbb\xbf1",
            "not JSON at character 0: Unexpected UTF-8 BOM (decode using utf-8-sig)",
            id="bom",
        ),
        pytest.param(b'"\xff"', "not UTF-8 at byte 1", id="not-utf-8"),
        pytest.param(b'"\xed\xa0\x80"', "not UTF-8 at byte 1", id="encoded-surrogate"),
        pytest.param('["a"]'.encode("utf-16"), "not UTF-8 at byte 0", id="utf-16"),
        pytest.param(b'{"a": NaN}', "NaN is not JSON", id="nan"),
        pytest.param(b"[-Infinity]", "-Infinity is not JSON", id="infinity"),
        pytest.param(b"1e400", "the number 1e400 is too large for a double", id="overflow"),
        pytest.param(
            b"-" + b"1" * 500 + b".5", f"the number -{'1' * 39} is too large for a double", id="long-overflow"
        ),
        pytest.param(b"1" * 1001, "an integer of 1001 digits", id="1001-digits"),
        pytest.param(b'{"a": [' + b"1" * 10_000 + b"]}", "an integer of 10000 digits", id="10000-digits"),
        pytest.param(b"[" * 101 + b"]" * 101, "nesting deeper than 100", id="101-lists"),
        pytest.param(b'{"a":' * 101 + b"1" + b"}" * 101, "nesting deeper than 100", id="101-objects"),
        pytest.param(b"[" * 101 + b"1e19" + b"]" * 101, "nesting deeper than 100", id="101-round-a-float"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, "nesting deeper than 100", id="100000"),
        pytest.param(b"[" * 100_000, "nesting deeper than 100", id="100000-open"),
        pytest.param(b'{"a":' * 100_000, "nesting deeper than 100", id="100000-objects"),
    ],
)
def test_what_no_document_can_hold_is_refused(data: bytes, message: str) -> None:
    """The error says what stands in the way, in one line."""
    with pytest.raises(NotJson) as caught:
        parse_json(data)

    assert message == str(caught.value)


@pytest.mark.parametrize("inner", [b"", b"1", b"1e19", b'"\\ud800"', b'"[[[[\\"[["'])
def test_nesting_of_100_is_read(inner: bytes) -> None:
    """Brackets in strings do not count, whichever way the document is read."""
    document: Json = parse_json(b"[" * MAX_DEPTH + inner + b"]" * MAX_DEPTH)

    for _ in range(MAX_DEPTH - 1):
        assert isinstance(document, list)
        document = document[0]
    assert (json.loads(b"[" + inner + b"]")) == document


def test_many_brackets_are_not_deep() -> None:
    """A wide document with a number for the slow path is read."""
    document = parse_json(b"[" + b'{"a": [1, "]\\"["]},' * 200 + b"18446744073709551616]")

    assert isinstance(document, list)
    assert [2**64, 201] == [document[-1], len(document)]


def test_the_depth_allowed_can_be_another() -> None:
    """A line of a cassette is a few levels deeper than the bodies in it."""
    data = b"[" * 108 + b'"\\ud800"' + b"]" * 108

    parse_json(data, 108)
    with pytest.raises(NotJson, match="nesting deeper than 107"):
        parse_json(data, 107)
    with pytest.raises(NotJson, match="nesting deeper than 107"):
        parse_json(data.replace(b'"\\ud800"', b""), 107)


def test_a_raised_recursion_limit_is_no_danger() -> None:
    """A program that allows deep recursion does not overflow the stack of the process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        with pytest.raises(NotJson, match="nesting deeper than 100"):
            parse_json(b'["\\ud800",' * 200_000)
    finally:
        sys.setrecursionlimit(before)


def test_hostile_bytes_take_no_longer_than_others() -> None:
    """A megabyte of what looks like strings that never end is refused at once."""
    started = time.process_time()
    with pytest.raises(NotJson):
        parse_json(b'[[[[["' * 100 + b'\\"' * 500_000)

    assert time.process_time() - started < 40


@given(JSON)
def test_what_is_written_is_read(document: Json) -> None:
    """The standard library's JSON of any document is read as that document."""
    found = parse_json(json.dumps(document).encode())

    assert canonical_bytes(document) == canonical_bytes(found)


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ("1", 1, False),
        ([1, 2], [1.0, 2.0], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([True], [1], False),
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1.0}, True),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ({"a": True}, {"a": 1}, False),
        ({}, [], False),
        ("", None, False),
    ],
)
def test_values_are_compared_as_json(left: Json, right: Json, is_same: bool) -> None:
    """1 and 1.0 are the same JSON; 1 and true are not."""
    assert is_same is is_same_json(left, right) is is_same_json(right, left)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": [NaN, -Infinity, 1e999, 2.5]}', ({"a": [0, 0, float("inf"), 2.5]}, [])),
        ("9" * 5000, (0, [])),
        ('{"a": "x", "b": {"c": [1], "c": 2, "c": 2}, "a": 3}', ({"a": 0, "b": {"c": 0}}, [[0], 0, "x"])),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, (json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH), [])),
    ],
    ids=["no numbers", "digits", "names", "depth"],
)  # fmt: skip
def test_what_the_most_lenient_reader_takes_is_read(text: str, found: tuple[Json, list[Json]]) -> None:
    """Its strings and names are what counts; the values that a later one hides are given as well."""
    assert found == parse_leniently(text)


@pytest.mark.parametrize("text", ["{", "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)], ids=["cut", "depth"])
def test_what_no_reader_takes_is_not_read(text: str) -> None:
    """Nor what is nested too deep, whatever this process lets Python do."""
    with pytest.raises(NotJson):
        parse_leniently(text)
