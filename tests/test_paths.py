"""Places in a document: how a path is read, written, and followed."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import OptionError
from httpx_cassette._call import Json
from httpx_cassette._paths import DEEP, EVERY, Paths, Step, render_path, split_path

from .keying import TEXTS


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("model", ("model",)),
        ("metadata.run_id", ("metadata", "run_id")),
        ("messages[0].name", ("messages", 0, "name")),
        ("messages[-1]", ("messages", -1)),
        ("messages[*].content[ * ].text", ("messages", EVERY, "content", EVERY, "text")),
        ("[0][1]", (0, 1)),
        ("$.a", ("a",)),
        ("$[0]", (0,)),
        ("$ref", ("$ref",)),
        ("$", ("$",)),
        ("$.$ref.$", ("$ref", "$")),
        ("**.content", (DEEP, "content")),
        ("a.**[0]", ("a", DEEP, 0)),
        ("*", (EVERY,)),
        ("a.*.b", ("a", EVERY, "b")),
        ("a-b.c_d.é", ("a-b", "c_d", "é")),
        ('["a.b"].c', ("a.b", "c")),
        ("a['b c']", ("a", "b c")),
        ('["\\"\\\\\\n\\u00e9\\/"]', ('"\\\n\u00e9/',)),
        ("['\\'\\t\\r\\b\\f']", ("'\t\r\b\f",)),
        ('[""]', ("",)),
        ('["\n"]', ("\n",)),
        ("[ 12 ]", (12,)),
        ("0.1", ("0", "1")),
    ],
)
def test_a_path_is_read_step_by_step(path: str, steps: tuple[Step, ...]) -> None:
    """Names, indexes from either end, every element, any depth, and quoted names."""
    assert steps == split_path(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".a", "the path '.a' cannot be read at '.a'"),
        ("a..b", "the path 'a..b' cannot be read at '..b'"),
        ("a.", "the path 'a.' cannot be read at '.'"),
        ("a b", "the path 'a b' cannot be read at ' b'"),
        ("a[", "the path 'a[' cannot be read at '['"),
        ("a[x]", "the path 'a[x]' cannot be read at '[x]'"),
        ("a[1.5]", "the path 'a[1.5]' cannot be read at '[1.5]'"),
        ("a[?@.b]", "the path 'a[?@.b]' cannot be read at '[?@.b]'"),
        ("a[?@.b==1]", "the path 'a[?@.b==1]' cannot be read at '[?@.b==1]'"),
        ("a[?b=='c']", "the path \"a[?b=='c']\" cannot be read at \"[?b=='c']\""),
        ('a["b]', "the path 'a[\"b]' cannot be read at '[\"b]'"),
        ("a[0:2]", "the path 'a[0:2]' cannot be read at '[0:2]'"),
    ],
)
def test_a_path_that_cannot_be_read_says_where(path: str, message: str) -> None:
    """The error quotes the rest, and shows two paths that can."""
    with pytest.raises(OptionError) as caught:
        split_path(path)

    assert f"{message}; write it like 'metadata.run_id' or 'messages[*].name'" == str(caught.value)


@pytest.mark.parametrize("path", ["", "**", "a.**", "$."])
def test_a_path_has_to_end_somewhere(path: str) -> None:
    """No step at all, and any depth of nothing, name no place."""
    with pytest.raises(OptionError) as caught:
        split_path(path)

    assert f"the path {path!r} names no place; write it like 'metadata.run_id'" == str(caught.value)


def test_a_path_is_a_text() -> None:
    """Anything else is refused."""
    number: Any = 5
    with pytest.raises(OptionError, match=r"a path is a text such as 'metadata\.run_id', not 5"):
        Paths([number])


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (("messages", 0, "content"), "messages[0].content"),
        ((0, 1), "[0][1]"),
        (("$ref", "a-b_c"), "$ref.a-b_c"),
        (("$",), '["$"]'),
        (("a", "$"), "a.$"),
        (("a.b", 'c"d\\'), '["a.b"]["c\\"d\\\\"]'),
        (("",), '[""]'),
        (("0",), '["0"]'),
        (("é",), '["é"]'),
        (("**",), '["**"]'),
        ((), ""),
    ],
)
def test_a_place_is_written_as_a_person_would(steps: tuple[str | int, ...], text: str) -> None:
    """Plain names with dots, all others in quotes."""
    assert text == render_path(steps)


@given(st.lists(st.one_of(TEXTS, st.integers(0, 99)), min_size=1, max_size=4))
def test_what_is_written_is_read(steps: list[str | int]) -> None:
    """The path of any place names that place."""
    assert tuple(steps) == split_path(render_path(steps))


DOCUMENT: Json = {
    "b": [{"c": 1}, {"c": 2, "d": [3]}, "x"],
    "a": {"z": {"c": 4}, "y": 5},
    "c": None,
    "e": [{"k": "x", "v": 1}, {"k": "y", "v": 2}, {"k": "x", "v": 3}, {"k": ["x"], "w": 4}, "x", None],
    "f": {"n": {"k": "it's", "v": 9}, "m": "k"},
}


def found(document: Json, *paths: str) -> list[Json]:
    return [container[step] for container, step in Paths(paths).places(document)]  # type: ignore[index]  # its own


@pytest.mark.parametrize(
    ("paths", "values"),
    [
        (["c"], [None]),
        (["b[0].c", "b[-1]", "b[1].d[0]"], [1, "x", 3]),
        (["b[*].c"], [1, 2]),
        (["b[*]"], [{"c": 1}, {"c": 2, "d": [3]}, "x"]),
        (["a.*"], [5, {"c": 4}]),
        (["a.*.c", "a[*].x"], [4]),
        (["**.c"], [None, 1, 2, 4]),
        (["e[?@.k=='x'].v"], [1, 3]),
        (['e[? @.k == "x" ]'], [{"k": "x", "v": 1}, {"k": "x", "v": 3}]),
        (["e[?@.k=='y'].v", "e[?@.k=='x'].v"], [1, 2, 3]),
        (["e[?@.w=='x']", "e[?@.k=='x']", "f[?@.k=='x'].v"], [{"k": "x", "v": 1}, {"k": "x", "v": 3}]),
        (["a[?@.c=='x']", "b[?@.c=='1']", "c[?@.c=='x']", "f[?@.k=='it\\'s'].v"], [9]),
        (["f[?@.k=='it\\'s']"], [{"k": "it's", "v": 9}]),
        (["**[?@.k=='x'].v"], [1, 3]),
        (["b.**.d"], [[3]]),
        (["a", "a.z.c"], [{"z": {"c": 4}, "y": 5}, 4]),
        (["b[1].c", "b[*].c"], [2, 1, 2]),
        (["b[3]", "b[-4]", "b.c", "a[0]", "c.x", "x", "b[0].c.d"], []),
        ([], []),
    ],
)
def test_places_are_found(paths: list[str], values: list[Json]) -> None:
    """Where something stands at a path; nothing where it does not."""
    assert values == found(DOCUMENT, *paths)


def test_places_come_in_the_order_of_the_paths() -> None:
    """Whatever the order of members: numbering by first appearance must not depend on it."""
    one: Json = {"x": {"b": 1, "a": 2}, "y": 3}
    two: Json = {"y": 3, "x": {"a": 2, "b": 1}}

    assert [3, 1, 2] == found(one, "y", "x.b", "x.a") == found(two, "y", "x.b", "x.a")
    assert [2, 1] == found(one, "x.*") == found(two, "x.*")


def test_closed_members_are_not_entered() -> None:
    """``**`` goes round an object in a closed member, not round a list or a text."""
    paths = Paths(["**.c"], closed=("shut",))
    document: Json = {
        "shut": {"c": 1, "x": {"c": 2}},
        "a": {"shut": [{"c": 3}], "c": 4},
        "x": [{"shut": {"c": 5}}],
    }

    assert [4, 3] == [container[step] for container, step in paths.places(document)]  # type: ignore[index]  # its own


@pytest.mark.parametrize("document", [None, 5, "a", [], {}, [[]], {"b": None}, {"b": "c"}])
def test_any_document_has_places_or_none(document: Json) -> None:
    """What is no container has none."""
    assert [] == found(document, "b[0]", "b.c", "**.c", "[*].c")


def test_paths_go_from_one_process_to_another() -> None:
    """A copy finds the same places."""
    copied: Paths = pickle.loads(pickle.dumps(Paths(["**.c"], closed=("a",))))

    assert [None, 1, 2] == [container[step] for container, step in copied.places(DOCUMENT)]  # type: ignore[index]  # its own


def test_paths_may_be_read_when_they_are_needed() -> None:
    """They find the same, and so does a copy; one that cannot be read says so then."""
    late = Paths(["**.c"], late=True)
    copied: Paths = pickle.loads(pickle.dumps(late))
    wrong = Paths(["a[x]"], late=True)

    assert late.places(DOCUMENT) == copied.places(DOCUMENT) == Paths(["**.c"]).places(DOCUMENT)
    with pytest.raises(OptionError, match="cannot be read"):
        wrong.places(DOCUMENT)


def test_no_paths_are_false() -> None:
    """So that whoever has none walks nothing."""
    assert not Paths([])
    assert Paths(["a"])
