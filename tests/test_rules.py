"""The rules that change a document: join, ignore, strip, fold, rename."""

from __future__ import annotations

import copy
import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._paths import Paths
from httpx_cassette._rules import (
    fold_defaults,
    has_text,
    has_trailing_blanks,
    is_blank,
    join_pieces,
    join_text,
    remove_places,
    rename_references,
    single_text,
    strip_lines,
    strip_places,
)

from .keying import JSON

# -- join ----------------------------------------------------------------------------------------------


def turn(*parts: Json, role: Json = "model", **more: Json) -> Json:
    listed: list[Json] = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"role": role, "parts": listed, **more}


SIGNED: Json = {"text": "b", "signature": "x"}
THOUGHT: Json = {"text": "b", "thought": True}
CALL: Json = {"call": {"text": "b"}}
USER = turn("u", role="user")

JOINED: list[tuple[str, list[Json], list[Json]]] = [
    ("nothing", [], []),
    ("turns", [USER, turn("a"), turn("b"), turn("c")], [USER, turn("abc")]),
    ("texts", [turn("a", "b", "")], [turn("ab")]),
    ("of-the-user", [USER, USER, turn("x", "y", role="user")], [USER, USER, turn("x", "y", role="user")]),
    ("apart", [turn("a"), USER, turn("b")], [turn("a"), USER, turn("b")]),
    ("other-parts", [turn("a"), turn(CALL), turn("b"), turn("c")], [turn("a", CALL, "bc")]),
    (
        "a-signature-ends",
        [turn("a"), turn(SIGNED), turn("c"), turn(SIGNED)],
        [turn({"text": "ab", "signature": "x"}, {"text": "cb", "signature": "x"})],
    ),
    ("thoughts", [turn(THOUGHT), turn(THOUGHT), turn("c")], [turn({"text": "bb", "thought": True}, "c")]),
    ("back-to-thoughts", [turn("a", THOUGHT, "c")], [turn("a", THOUGHT, "c")]),
    (
        "more-members",
        [turn("a", x=1), turn("b"), turn("c", x=1)],
        [turn("a", x=1), turn("b"), turn("c", x=1)],
    ),
    (
        "no-parts",
        [{"role": "model"}, {"role": "model", "parts": "a"}, turn()],
        [{"role": "model"}, {"role": "model", "parts": "a"}, turn()],
    ),
    (
        "odd",
        [None, 1, "model", turn("a", role=["model"]), turn(None, 1, {"text": 1}, "a", {})],
        [None, 1, "model", turn("a", role=["model"]), turn(None, 1, {"text": 1}, "a", {})],
    ),
    ("halves-of-a-character", [turn("\ud83d"), turn("\ude86")], [turn("\U0001f686")]),
]


@pytest.mark.parametrize(("turns", "joined"), [case[1:] for case in JOINED], ids=[case[0] for case in JOINED])
def test_an_answer_that_comes_in_pieces_is_one(turns: list[Json], joined: list[Json]) -> None:
    """Turns that follow one another, and texts that do, as far as nothing stands between them."""
    turns = json.loads(json.dumps(turns))  # Of a parsed body, no two parts are one object.
    for _ in range(2):
        join_pieces(turns, {"model"}, "parts", {"signature"})

        assert joined == turns


@given(st.lists(st.text(max_size=4), min_size=1), st.integers(1, 5))
def test_pieces_of_any_size_are_the_same_answer(texts: list[str], size: int) -> None:
    """How an answer was cut makes no difference."""
    whole = "".join(texts)
    turns = [turn(text) for text in texts]
    others = [turn(whole[start : start + size]) for start in range(0, len(whole), size)] or [turn("")]
    for each in (turns, others):
        join_pieces(each, {"model"}, "parts", ())

    assert [turn(whole)] == turns == others


def test_a_long_answer_in_small_pieces_costs_its_length() -> None:
    """A piece is looked at once."""
    turns = [turn("x") for _ in range(100_000)]
    started = time.process_time()
    join_pieces(turns, {"model"}, "parts", ())

    assert [turn("x" * 100_000)] == turns
    assert time.process_time() - started < 20


def test_halves_of_a_character_are_joined() -> None:
    """And no others."""
    assert "a\U0001f686\ude86" == join_text(["a\ud83d", "\ude86", "\ude86"])


# -- ignore --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        pytest.param(["a"], {"b": [1, 2, 3], "c": {"d": 4}}, id="member"),
        pytest.param(["c.d", "x.y", "a.z"], {"a": 0, "b": [1, 2, 3], "c": {}}, id="deeper-and-missing"),
        pytest.param(["b[0]"], {"a": 0, "b": [2, 3], "c": {"d": 4}}, id="first"),
        pytest.param(["b[-1]"], {"a": 0, "b": [1, 2], "c": {"d": 4}}, id="last"),
        pytest.param(["b[0]", "b[1]"], {"a": 0, "b": [3], "c": {"d": 4}}, id="two"),
        pytest.param(["b[0]", "b[-3]"], {"a": 0, "b": [2, 3], "c": {"d": 4}}, id="one-named-twice"),
        pytest.param(["b[*]", "b[1]"], {"a": 0, "b": [], "c": {"d": 4}}, id="all-and-one"),
        pytest.param(["b[3]", "b[-4]"], {"a": 0, "b": [1, 2, 3], "c": {"d": 4}}, id="out-of-range"),
        pytest.param(["c", "c.d"], {"a": 0, "b": [1, 2, 3]}, id="inside-another"),
        pytest.param(["[*]"], {}, id="everything"),
        pytest.param(["**.d"], {"a": 0, "b": [1, 2, 3], "c": {}}, id="deep"),
    ],
)
def test_what_stands_at_the_paths_is_removed(paths: list[str], left: Json) -> None:
    """Members and elements go, each place once, whatever else is named."""
    document: Json = {"a": 0, "b": [1, 2, 3], "c": {"d": 4}}
    remove_places(document, Paths(paths))

    assert left == document


# -- strip ---------------------------------------------------------------------------------------------

STRIPPED = {
    "nothing": ("a\nb", "a\nb"),
    "empty": ("", ""),
    "end": ("a ", "a"),
    "before-newline": ("a \nb\t\nc\r\nd", "a\nb\nc\nd"),
    "several": ("a \t\r \n \t\nb", "a\n\nb"),
    "only-blanks": (" \t\r", ""),
    "final-newline": ("a \n", "a\n"),
    "after-the-last-newline": ("a\n  ", "a\n"),
    "cr-inside-a-line": ("a\rb", "a\rb"),
    "leading": ("  a", "  a"),
    "no-break-space": ("a\u00a0\nb\u00a0", "a\u00a0\nb\u00a0"),
    "ideographic-space": ("a\u3000\nb", "a\u3000\nb"),
    "line-separator": ("a \u2028b", "a \u2028b"),
    "vertical-tab": ("a \x0bb\x0b", "a \x0bb\x0b"),
    "form-feed": ("a \x0c", "a \x0c"),
    "next-line": ("a \x85b", "a \x85b"),
    "blank-before-no-break-space": ("a \u00a0 \n", "a \u00a0\n"),
}


@pytest.mark.parametrize(("text", "stripped"), STRIPPED.values(), ids=STRIPPED)
def test_trailing_blanks_go_and_nothing_else(text: str, stripped: str) -> None:
    """Spaces, tabs and CR before each newline and at the end."""
    assert stripped == strip_lines(text)
    assert (text != stripped) is has_trailing_blanks(text)


@given(st.text(st.sampled_from("ab \t\r\n\x0b\x0c\u00a0\u2028"), max_size=12))
def test_stripping_is_what_its_definition_says(text: str) -> None:
    """The quick way gives what one regular expression gives, and twice is once."""
    expected = re.sub(r"[ \t\r]+(?=\n|\Z)", "", text)

    assert expected == strip_lines(text)
    assert expected == strip_lines(expected)


def test_only_strings_are_stripped() -> None:
    """Whatever else stands at a place is left alone."""
    document: Json = {"a": "x ", "b": ["y ", 1, None, {"c": "z "}]}
    strip_places(Paths(["a", "b", "b[*]"]).places(document))

    assert {"a": "x", "b": ["y", 1, None, {"c": "z "}]} == document


@pytest.mark.parametrize(
    "text",
    {
        "empty": "",
        "white-space": " \t\r\n\x0b\x0c\x1c\x85\u00a0\u2003\u2028\u2029\u3000",
        "zero-width": "\u200b\u200c\u200d\u2060\ufeff",
        "soft-hyphen": "\u00ad",
        "directions": "\u200e\u202e\u2066",
        "controls": "\x00\x07\x1b",
        "mixed": " \u200b\n\ufeff ",
        "hangul-filler": "\u3164\uffa0\u115f\u1160",
        "braille-blank": "\u2800",
        "variation-selector": "\ufe0f",
        "grapheme-joiner": "\u034f",
        "tags": "\U000e0020\U000e007f",
    }.values(),
    ids=lambda text: "+".join(f"{ord(mark):04x}" for mark in text) or "empty",
)
def test_text_that_shows_nothing_is_blank(text: str) -> None:
    """White space, format characters and letters without a mark on paper."""
    assert is_blank(text)
    assert not is_blank(f"{text}.{text}")


@pytest.mark.parametrize("text", ["a", "\u0301", "\u4f60", "\U0001f600", "-", "\u200bx"])
def test_text_that_shows_something_is_not_blank(text: str) -> None:
    """One visible character is enough."""
    assert not is_blank(text)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a", True),
        (" ", False),
        (None, False),
        (5, False),
        ({"text": "a"}, False),
        ([], False),
        ([{"text": "a"}], True),
        ([{"text": " "}, "a", None, {"text": None}, {"type": "text"}], False),
        ([{"text": " "}, {"type": "text", "text": "a"}], True),
    ],
)
def test_content_is_a_text_or_a_list_of_parts(content: Json, expected: bool) -> None:
    """Of the parts one with something to see is enough."""
    assert expected is has_text(content)


# -- fold ----------------------------------------------------------------------------------------------


def test_members_that_say_what_the_default_says_are_dropped() -> None:
    """Equal as JSON: 1 and 1.0 are, true is not, and each name has its own default."""
    members: dict[str, Json] = {
        "one": 1.0,
        "two": True,
        "zero": 0,
        "no": False,
        "object": {"b": 2.0, "a": [1]},
        "list": [1],
        "other": 5,
    }
    defaults: dict[str, Json] = {
        "one": 1,
        "two": 1,
        "zero": False,
        "no": False,
        "object": {"a": [1], "b": 2},
        "list": [True],
        "absent": 1,
    }

    assert ["one", "no", "object"] == fold_defaults(members, defaults)
    assert {"two": True, "zero": 0, "list": [1], "other": 5} == members
    assert [] == fold_defaults(members, defaults)


def test_a_default_can_be_refused() -> None:
    """Whoever folds decides by name."""
    members: dict[str, Json] = {"a": 1, "b": 1}

    assert ["b"] == fold_defaults(members, {"a": 1, "b": 1}, lambda name: name != "a")
    assert {"a": 1} == members


@pytest.mark.parametrize(
    ("content", "folded"),
    [
        ([{"type": "text", "text": "a"}], "a"),
        ([{"text": "", "type": "text"}], ""),
        ([{"type": "text", "text": "a", "cache_control": None}], None),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None),
        ([{"type": "text", "text": 5}], None),
        ([{"type": "text", "txt": "a"}], None),
        ([{"type": "input_text", "text": "a"}], None),
        ([{"text": "a"}], None),
        ([["type", "text"]], None),
        (["a"], None),
        ([], None),
        ("a", None),
        ({"type": "text", "text": "a"}, None),
        (None, None),
    ],
)
def test_a_list_of_one_text_part_is_its_text(content: Json, folded: str | None) -> None:
    """Exactly one part, with exactly a type and a text; anything else stays."""
    assert (content if folded is None else folded) == single_text(content)


def test_a_format_may_call_its_text_parts_otherwise() -> None:
    """Then they alone are text parts."""
    assert "a" == single_text([{"type": "input_text", "text": "a"}], "input_text")
    assert [{"type": "text", "text": "a"}] == single_text([{"type": "text", "text": "a"}], "input_text")


# -- rename --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "renamed"),
    [
        (["x", "y", "x"], ["call_1", "call_2", "call_1"]),
        (["call_2", "call_1", "call_2"], ["call_1", "call_2", "call_1"]),
        (["call_3", "call_1"], ["call_1", "call_2"]),
        (["", "x", ""], ["", "call_1", ""]),
        ([None, 5, "x", ["y"]], [None, 5, "call_1", ["y"]]),
        ([], []),
    ],
)
def test_ids_are_numbered_by_first_appearance(ids: list[Json], renamed: list[Json]) -> None:
    """What is no text, or empty, stays."""
    rename_references(Paths(["[*]"]).places(ids))

    assert renamed == ids


def test_an_id_of_something_elsewhere_keeps_its_name() -> None:
    """And keeps it to itself, though it looks like a new one."""
    ids: list[Json] = ["x", "call_2", "y", "z", "call_2", "x"]
    rename_references(Paths(["[*]"]).places(ids), {"call_2", "z"})

    assert ["call_1", "call_2", "call_3", "z", "call_2", "call_1"] == ids


def test_a_place_that_is_named_twice_is_renamed_once() -> None:
    """A new name is never taken for an old one."""
    ids: Json = ["x", "y"]
    rename_references(Paths(["[*]", "[1]", "[0]"]).places(ids))

    assert ["call_1", "call_2"] == sorted(map(str, ids if isinstance(ids, list) else []))


# -- all of them ---------------------------------------------------------------------------------------

PATHS = Paths(["a", "b[*]", "**.c", "[*].a"])


@given(JSON)
def test_applied_twice_a_rule_changes_nothing_more(document: Json) -> None:
    """Each rule is idempotent."""
    for rule in (
        lambda value: strip_places(PATHS.places(value)),
        lambda value: rename_references(PATHS.places(value)),
        lambda value: remove_places(value, Paths(["a", "**.c", "[*].a"])),
        lambda value: fold_defaults(value, {"a": 1}) if isinstance(value, dict) else None,
    ):
        rule(document)
        once = copy.deepcopy(document)
        rule(document)

        assert once == document
