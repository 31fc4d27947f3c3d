"""Canonical bytes: RFC 8785 to the letter, by two writers of ours and one of somebody else's."""

from __future__ import annotations

import copy
import struct
from decimal import Decimal
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import assume, example, given
from hypothesis import strategies as st

from httpx_cassette import _canonical
from httpx_cassette._call import Json
from httpx_cassette._canonical import canonical_bytes, canonical_key_bytes, canonical_number, canonical_string
from httpx_cassette._digests import digest_long_strings
from httpx_cassette._parsing import parse_json

from .keying import FLOATS, INTEGERS, JSON, TEXTS

#: RFC 8785, appendix B: the bits of a double, and how it is written.
APPENDIX_B = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}

NOT_NUMBERS = {"nan": float("nan"), "infinity": float("inf"), "minus-infinity": float("-inf")}


def from_bits(bits: str) -> float:
    value: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return value


def written_slowly(document: Json) -> bytes:
    """Return what the writer without orjson gives."""
    return "".join(_canonical._write(document)).encode()


# -- the standard --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", APPENDIX_B)
def test_numbers_are_written_as_appendix_b_has_them(bits: str) -> None:
    """The table of RFC 8785's appendix B holds, for both writers."""
    value = from_bits(bits)

    assert APPENDIX_B[bits] == canonical_number(value)
    assert APPENDIX_B[bits].encode() == canonical_bytes(value)
    assert b"[%s]" % APPENDIX_B[bits].encode() == written_slowly([value])


@pytest.mark.parametrize("value", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_what_is_no_number_is_refused(value: float) -> None:
    """``NaN`` and the infinities are no JSON, and nothing stands for them."""
    with pytest.raises(ValueError, match="JSON cannot hold the number"):
        canonical_bytes([value])
    with pytest.raises(ValueError, match="JSON cannot hold the number"):
        canonical_key_bytes({"a": value})


def test_the_sample_of_section_3_2_2() -> None:
    """RFC 8785's sample of literals, numbers and strings comes out as it is printed there."""
    sent = (
        rb'{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        rb'"string": "\u20ac$\u000F\u000aA' + rb"'\u0042\u0022\u005c\\\"\/" + b'",'
        rb'"literals": [null, true, false]}'
    )

    assert (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA' + "'" + 'B\\"\\\\\\\\\\"/"}'
    ).encode() == canonical_bytes(parse_json(sent))


SORTED_NAMES = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize("names", [SORTED_NAMES, SORTED_NAMES[::-1]], ids=["sorted", "reversed"])
def test_the_sample_of_section_3_2_3(names: list[str]) -> None:
    """Names are sorted by UTF-16 code units: an emoji before a Hebrew letter with a higher code point."""
    document: dict[str, Json] = dict.fromkeys(names, 1)

    assert SORTED_NAMES == [*orjson.loads(canonical_bytes(document))]
    assert SORTED_NAMES == [*orjson.loads(canonical_key_bytes({"a": document}))["a"]]


STRINGS = {
    "quotes": ('"\\/', '"\\"\\\\/"'),
    "short": ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
    "control": ("\x00\x1f\x7f\x80", '"\\u0000\\u001f\x7f\x80"'),
    "separators": ("\u2028\u2029", '"\u2028\u2029"'),
    "astral": ("\U0001f600", '"\U0001f600"'),
    "lone-high": ("a\ud83d", '"a\\ud83d"'),
    "lone-low": ("\ude00\ud83d", '"\\ude00\\ud83d"'),
}


@pytest.mark.parametrize(("text", "written"), STRINGS.values(), ids=STRINGS)
def test_strings(text: str, written: str) -> None:
    """Only what must be escaped is, the shortest way; a lone surrogate in lower case."""
    assert written == canonical_string(text)
    assert written.encode() == canonical_bytes(text)


@pytest.mark.parametrize("value", [2**53 + 1, 2**63, 2**64, 2**64 + 1, -(2**63) - 1, 10**999 + 7, 0, -1])
def test_integers_keep_all_their_digits(value: int) -> None:
    """An integer is written as its digits, whatever its size."""
    assert str(value).encode() == canonical_bytes(value)
    assert b'{"a":[%d]}' % value == canonical_key_bytes({"a": [value]})


@pytest.mark.parametrize(
    ("number", "digits"),
    [
        (2.0**53, "9007199254740992"),
        (1.2345678901234567e18, "1234567890123456800"),
        (-1e20, "-100000000000000000000"),
    ],
)
def test_a_float_has_the_digits_that_ecmascript_prints(number: float, digits: str) -> None:
    """Beyond 2**53 the shortest digits and zeros, not those of the integer that the double is."""
    assert digits.encode() == canonical_bytes(number)
    assert digits.encode() == written_slowly(number)


# -- one writer against the other ----------------------------------------------------------------------


@given(JSON)
def test_both_writers_give_the_same_bytes(document: Json) -> None:
    """orjson, wherever it is used, gives what the rules written out give."""
    assert written_slowly(document) == canonical_bytes(document)


@given(JSON)
def test_nothing_is_lost(document: Json) -> None:
    """Read again, canonical bytes are the same document, and the same bytes."""
    written = canonical_bytes(document)

    assert written == canonical_bytes(parse_json(written))


#: What rfc8785 takes: it refuses integers beyond 2**53, and lone surrogates.
_THEIRS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**53) + 1, 2**53 - 1),
        FLOATS,
        TEXTS.filter(lambda text: not any("\ud800" <= mark <= "\udfff" for mark in text)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            TEXTS.filter(lambda text: not any("\ud800" <= mark <= "\udfff" for mark in text)),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(_THEIRS)
def test_another_implementation_gives_the_same_bytes(document: Any) -> None:
    """The package rfc8785 agrees wherever its domain of numbers allows."""
    assert rfc8785.dumps(document) == canonical_bytes(document)


@given(JSON, st.randoms(use_true_random=False))
def test_the_order_of_members_means_nothing(document: Json, random: Any) -> None:
    """Members in any order give the same bytes."""

    def shuffled(value: Json) -> Json:
        if isinstance(value, dict):
            names = [*value]
            random.shuffle(names)
            return {name: shuffled(value[name]) for name in names}
        return [shuffled(child) for child in value] if isinstance(value, list) else value

    assert canonical_bytes(document) == canonical_bytes(shuffled(document))


@given(st.one_of(INTEGERS, FLOATS, TEXTS), st.one_of(INTEGERS, FLOATS, TEXTS))
@example(1, 1.0)
@example(2**64, float(2**64))
@example(0, -0.0)
def test_two_values_have_the_same_bytes_only_where_they_are_one(left: Json, right: Json) -> None:
    """Nothing but the same number or text is written alike."""
    is_one = type(left) is type(right) and left == right
    if not (isinstance(left, str) or isinstance(right, str)):
        # As decimals: the float next to 2**64 prints other digits than the integer.
        first, second = (Decimal(canonical_bytes(value).decode()) for value in (left, right))
        is_one = first == second
        # From 10**21 a float has an exponent and an integer its digits: two keys for one number, never one
        # key for two.
        assume(not is_one or abs(first) < 10**21 or type(left) is type(right))

    assert is_one == (canonical_bytes(left) == canonical_bytes(right))


# -- for the key ---------------------------------------------------------------------------------------

#: Texts round the length from which they are digests.
_LONG = st.builds(
    lambda mark, count, end: mark * count + end,
    st.sampled_from(["a", "é", "€", "\U0001f600", "\ud800"]),
    st.sampled_from([255, 256, 257, 341, 342, 511, 512, 513, 1023, 1024, 1025]),
    st.sampled_from(["", "b", "é"]),
)

_DOCUMENTS = st.dictionaries(
    TEXTS,
    st.recursive(
        st.one_of(JSON, _LONG),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
        max_leaves=6,
    ),
    max_size=4,
)


@given(_DOCUMENTS)
def test_one_walk_gives_what_two_would(document: dict[str, Json]) -> None:
    """The bytes for the key are those of the document whose long strings have become digests."""
    in_two = canonical_bytes(digest_long_strings(copy.deepcopy(document)))

    assert in_two == canonical_key_bytes(document)


@pytest.mark.parametrize(
    "document",
    [
        {"\ufb33": 1, "\U0001f600": [1e21, 1.5, 2.0**63, "a" * 1025]},
        {"a": {"\ufb33": 2**70, "\U0001f600": -0.0}},
        {"é": "ü", "a": [{"ö": 1.0}]},
        {"a": [["\ud800"], [], {}, None, True]},
    ],
    ids=["order-at-the-top", "order-below", "other-names", "surrogate"],
)
def test_what_orjson_cannot_write_alike_is_written_all_the_same(document: dict[str, Json]) -> None:
    """Names beyond U+E000, integers beyond 64 bits and lone surrogates take the slow path to these bytes."""
    expected = written_slowly(digest_long_strings(copy.deepcopy(document)))

    assert expected == canonical_key_bytes(document)
