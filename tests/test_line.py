"""A line of a cassette as bytes: head, seal, tear notes, and its JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._errors import CassetteError, CassetteVersionError
from httpx_cassette._line import (
    MAX_NUMBER,
    Head,
    bare,
    dump_json,
    dump_members,
    has_seal,
    head_of,
    is_intact,
    is_line_of,
    parse_line,
    read_head,
    seal,
    tear_note,
    torn_length,
)

from ._recordings import key_of, line

KEY = key_of("a")
HEX = KEY.hex()

# -- the head ------------------------------------------------------------------------------------------


def test_the_head_of_a_line_is_read_without_parsing_it() -> None:
    """A line that begins as the store writes it gives its head, whatever stands behind."""
    usual = line("a", sample=3, gen=7, key_version=2)

    assert Head(KEY, 3, 7, 2) == read_head(usual)
    assert Head(KEY, 3, 7, 2) == read_head(usual[:150] + b" no JSON")


MEMBERS: dict[str, Json] = {"v": 1, "kv": 1, "key": HEX, "sample": 2, "gen": 5, "response": {"status": 200}}

HEADS: dict[str, tuple[Json, Head | None]] = {
    "another-order": (dict(reversed(MEMBERS.items())), Head(KEY, 2, 5, 1)),
    "unknown-members": ({"new": 1, **MEMBERS, "newer": [1]}, Head(KEY, 2, 5, 1)),
    "no-sample-no-gen": ({"v": 1, "kv": 1, "key": HEX, "response": {}}, Head(KEY, 0, 0, 1)),
    "no-key-version": ({"v": 1, "key": HEX, "response": {}}, Head(KEY, 0, 0, 0)),
    "highest-numbers": (
        {**MEMBERS, "sample": MAX_NUMBER, "gen": MAX_NUMBER},
        Head(KEY, MAX_NUMBER, MAX_NUMBER, 1),
    ),
    "too-high": ({**MEMBERS, "gen": MAX_NUMBER + 1}, None),
    "negative": ({**MEMBERS, "sample": -1}, None),
    "sample-is-true": ({**MEMBERS, "sample": True}, None),
    "gen-is-text": ({**MEMBERS, "gen": "1"}, None),
    "no-version": ({"kv": 1, "key": HEX, "response": {}}, None),
    "version-is-true": ({**MEMBERS, "v": True}, None),
    "version-0": ({**MEMBERS, "v": 0}, None),
    "no-answer": ({"v": 1, "kv": 1, "key": HEX}, None),
    "no-key": ({"v": 1, "kv": 1, "response": {}}, None),
    "key-is-a-number": ({**MEMBERS, "key": 1}, None),
    "short-key": ({**MEMBERS, "key": HEX[:-1]}, None),
    "upper-case-key": ({**MEMBERS, "key": HEX.upper()}, None),
    "a-list": ([1, 2], None),
    "a-number": (7, None),
}


@pytest.mark.parametrize(("members", "expected"), HEADS.values(), ids=HEADS)
def test_members_in_any_order_give_a_head_or_none(members: Json, expected: Head | None) -> None:
    """A line that another program wrote gives its head; what is no recording gives none."""
    assert expected == head_of(members)
    assert expected == read_head(json.dumps(members).encode())


def test_what_is_no_json_has_no_head() -> None:
    """A torn line has no head, and raises nothing."""
    assert read_head(b'{"key":') is None


def test_a_newer_format_is_an_error_that_says_so() -> None:
    """A line of a higher version is never read as one of this version."""
    with pytest.raises(CassetteVersionError) as caught:
        read_head(b'{"v":2,"anything":"at all"}')

    assert "the line has format 2 and this release reads up to 1; upgrade httpx_cassette" == str(caught.value)


LOOKS: dict[str, tuple[bytes, bool]] = {
    "usual": (line("a"), True),
    "another-key": (line("b"), False),
    "another-order": (seal(json.dumps(dict(reversed(MEMBERS.items()))).encode()[:-1]), True),
    "another-order-another-key": (
        seal(json.dumps({"response": {}, **MEMBERS, "key": "0" * 64}).encode()[:-1]),
        False,
    ),
    "cut": (line("a")[:-1], False),
    "no-line": (b"\0" * 100, False),
}


@pytest.mark.parametrize(("data", "expected"), LOOKS.values(), ids=LOOKS)
def test_a_line_that_was_checked_is_recognised_again(data: bytes, expected: bool) -> None:
    """Whether it still looks like a recording of its key is seen without hashing it again."""
    assert expected is is_line_of(data, KEY)


def test_what_editors_and_git_put_round_a_line_is_taken_off() -> None:
    """A UTF-8 mark before a line and one CR behind it are not its own."""
    assert b"x" == bare(b"\xef\xbb\xbfx\r")
    assert b"x\r" == bare(b"x\r\r")


# -- the seal ------------------------------------------------------------------------------------------


def test_a_seal_holds_the_first_16_digits_of_sha256() -> None:
    """The seal is what ``sha256sum`` gives for the bytes before it, so that anybody can check it."""
    assert b'{"a":1,"sum":"8b0f0d75aabe01bb"}' == seal(b'{"a":1')


@given(data=st.binary(max_size=60), place=st.integers(0), flip=st.integers(1, 255))
def test_a_changed_byte_breaks_the_seal(data: bytes, place: int, flip: int) -> None:
    """A sealed line is intact, and is not once any byte of it was changed."""
    sealed = bytearray(seal(data))

    assert is_intact(bytes(sealed))
    sealed[place % len(sealed)] ^= flip
    assert not is_intact(bytes(sealed))


SEALS: dict[str, tuple[bytes, bool, bool]] = {
    "right": (seal(b"{"), True, True),
    "nothing-before-it": (seal(b""), True, True),
    "wrong": (seal(b"{")[:-18] + b'0000000000000000"}', True, False),
    "empty": (b"", False, False),
    "short": (b'"}', False, False),
    "no-seal": (b'{"v":1,"something":"long enough to hold one"}', False, False),
    "cut": (seal(b"{")[:-1], False, False),
    "more-behind-it": (seal(b"{") + b" ", False, False),
}


@pytest.mark.parametrize(("data", "sealed", "intact"), SEALS.values(), ids=SEALS)
def test_a_seal_is_looked_for_at_the_end_only(data: bytes, sealed: bool, intact: bool) -> None:
    """Whether a line is sealed and whether it is intact are two questions."""
    assert (sealed, intact) == (has_seal(data), is_intact(data))


# -- tear notes ----------------------------------------------------------------------------------------


def test_a_tear_note_is_read_back() -> None:
    """The note that repairs a torn tail says where it was, and how long."""
    note = tear_note(1234, 56)

    assert b'{"v":1,"tear":[1234,56]}' == note
    assert 56 == torn_length(note)


@pytest.mark.parametrize(
    "data", [b"", b'{"v":1,"tear":[1]}', b'{"v":1,"tear":[1,2]} ', b'{"v":2,"tear":[1,2]}']
)
def test_what_is_no_tear_note_explains_nothing(data: bytes) -> None:
    """Only a note in the very form that is written explains a torn line."""
    assert torn_length(data) is None


# -- its JSON ------------------------------------------------------------------------------------------

WRITTEN: dict[str, tuple[Json, bytes]] = {
    "readable-text": ("a\u00e9\u4e2d\U0001f600", '"a\u00e9\u4e2d\U0001f600"'.encode()),
    "del": ("\x7f", rb'"\u007f"'),
    "del-beside-other-text": ("\u00e9\x7f", b'"\xc3\xa9\\u007f"'),
    "c1": ("\x80\x85\x9f\xa0", b'"\\u0080\\u0085\\u009f\xc2\xa0"'),
    "line-separators": ("\u2028\u2029", rb'"\u2028\u2029"'),
    "bidi": (
        "\u061c\u200e\u200f\u202a\u202e\u2066\u2069",
        rb'"\u061c\u200e\u200f\u202a\u202e\u2066\u2069"',
    ),
    "lone-surrogates": ("\ud800 \udfff", rb'"\ud800 \udfff"'),
    "surrogate-beside-others": ("\ud800\u2028\u00e9", b'"\\ud800\\u2028\xc3\xa9"'),
    "names-too": ({"\u202e": 1}, rb'{"\u202e":1}'),
    "controls": ("\n\r\t\x00\x1f", rb'"\n\r\t\u0000\u001f"'),
    "big-integers": (
        [2**64, -(2**70), 2**63],
        b"[18446744073709551616,-1180591620717411303424,9223372036854775808]",
    ),
    "floats": ([1.0, 0.1, 1e-7], b"[1.0,0.1,1e-7]"),
    "null": ([None, True], b"[null,true]"),
}


@pytest.mark.parametrize(("value", "expected"), WRITTEN.values(), ids=WRITTEN)
def test_nothing_that_acts_on_a_terminal_is_written_raw(value: Json, expected: bytes) -> None:
    """Text stays readable; controls, bidi marks and lone surrogates become escapes; integers keep digits."""
    assert expected == dump_json(value)
    assert value == parse_line(expected)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=20)
    | st.text(st.characters(categories=["Cs", "Cc", "Cf", "Zl", "Zp", "L"]), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(value=json_values)
def test_what_is_written_is_read_back(value: Json) -> None:
    """Every JSON value makes the round trip, in one line of UTF-8 that nothing cuts."""
    data = dump_json(value)

    assert value == parse_line(data)
    assert [data.decode("utf-8")] == data.decode("utf-8").splitlines()


def nested(depth: int, inside: Json = 1) -> Json:
    """Return an array in an array, so many times."""
    for _ in range(depth):
        inside = [inside]
    return inside


UNWRITABLE: dict[str, tuple[Json, str]] = {
    "nan": (float("nan"), "JSON cannot hold NaN or an infinity"),
    "infinity": ([{"a": float("-inf")}], "JSON cannot hold NaN or an infinity"),
    "too-deep": (nested(108), "nesting deeper than 108"),
    "much-too-deep": (nested(5000), "nesting deeper than 108"),
    "too-deep-and-odd": (nested(108, "\ud800"), "nesting deeper than 108"),
    "too-many-digits": (10**1000, "an integer of 1001 digits"),
    "a-set": ({1, 2}, "Object of type set is not JSON serializable"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize(("value", "why"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_could_not_be_read_back_is_not_written(value: Json, why: str) -> None:
    """An exchange that would make an unreadable line is refused when it is written, not when it is needed."""
    with pytest.raises(CassetteError) as caught:
        dump_members({"member": value})

    assert f"the exchange cannot be written as a line of a cassette: {why}" == str(caught.value)


@pytest.mark.parametrize("inside", [1, "\ud800", 2**70], ids=["plain", "surrogate", "big-integer"])
def test_the_deepest_line_is_read_back(inside: Json) -> None:
    """A body nested as deep as bodies may be still fits into a line."""
    deepest = nested(107, inside)

    assert {"a": deepest} == parse_line(b"{" + dump_members({"a": deepest}) + b"}")
