"""What differs between two documents, and how much of them was common."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._difference import (
    MISSING,
    Change,
    common_prefix,
    common_suffix,
    count_leaves,
    differences,
)
from httpx_cassette._paths import split_path

OLD_IMAGE: Json = {"$sha256": "ab" * 32, "$bytes": 52113}
NEW_IMAGE: Json = {"$sha256": "cd" * 32, "$bytes": 52113}


def said(role: str, content: str) -> Json:
    return {"role": role, "content": content}


def tool(name: str, text: str) -> Json:
    return {"type": "function", "function": {"name": name, "description": text}}


SYSTEM, USER, ANSWER, MORE = said("system", "s"), said("user", "u"), said("assistant", "a"), said("user", "m")

CASES = {
    "equal": ({"a": 1}, {"a": 1}, []),
    "one-and-one-point-zero-are-one": ({"a": 1}, {"a": 1.0}, []),
    "true-is-not-one": ({"a": 1}, {"a": True}, [Change("a", 1, True)]),
    "null-is-not-absent": ({"a": None}, {}, [Change("a", None, MISSING)]),
    "root": (1, "1", [Change("", 1, "1")]),
    "text": ({"a": {"b": "x"}}, {"a": {"b": "y"}}, [Change("a.b", "x", "y")]),
    "added": ({}, {"a": {"b": 1}}, [Change("a", MISSING, {"b": 1})]),
    "removed": ({"a": [1]}, {}, [Change("a", [1], MISSING)]),
    "kind": ({"a": {"b": 1}}, {"a": [1]}, [Change("a", {"b": 1}, [1])]),
    "odd-name": ({"a b": 1}, {"a b": 2}, [Change('["a b"]', 1, 2)]),
    "digest-is-one": ({"i": OLD_IMAGE}, {"i": NEW_IMAGE}, [Change("i", OLD_IMAGE, NEW_IMAGE)]),
    "digest-against-object": ({"i": OLD_IMAGE}, {"i": {}}, [Change("i", OLD_IMAGE, {})]),
    "message-inserted": (
        [SYSTEM, USER, ANSWER],
        [SYSTEM, said("developer", "d"), USER, ANSWER],
        [Change("[1]", MISSING, said("developer", "d"))],
    ),
    "message-removed": (
        [SYSTEM, USER, ANSWER, MORE],
        [SYSTEM, MORE],
        [Change("[1]", USER, MISSING), Change("[2]", ANSWER, MISSING)],
    ),
    "message-appended": ([SYSTEM, USER], [SYSTEM, USER, ANSWER], [Change("[2]", MISSING, ANSWER)]),
    "inserted-beside-an-edit": (
        [SYSTEM, said("user", "old")],
        [SYSTEM, said("developer", "d"), said("user", "new")],
        [Change("[1]", MISSING, said("developer", "d")), Change("[2].content", "old", "new")],
    ),
    "history-cut-and-continued": (
        [SYSTEM, *(said("user", f"{k}") for k in range(8))],
        [SYSTEM, *(said("user", f"{k}") for k in range(2, 10))],
        [
            Change("[1]", said("user", "0"), MISSING),
            Change("[2]", said("user", "1"), MISSING),
            Change("[7]", MISSING, said("user", "8")),
            Change("[8]", MISSING, said("user", "9")),
        ],
    ),
    "order": (
        [USER, ANSWER, MORE],
        [MORE, USER, ANSWER],
        [Change("[0]", MISSING, MORE), Change("[2]", MORE, MISSING)],
    ),
    "tool-added-in-front-of-an-edited-one": (
        [tool("a", "1")],
        [tool("b", "1"), tool("a", "2")],
        [Change("[0]", MISSING, tool("b", "1")), Change("[1].function.description", "1", "2")],
    ),
    "texts-in-a-list": (["a", "b"], ["a", "c", "d"], [Change("[1]", "b", "c"), Change("[2]", MISSING, "d")]),
    "too-many-repeats-to-align": (
        ["a", "b"] * 100,
        ["b", "a"] * 100 + ["c"],
        [
            *(Change(f"[{k}]", "ab"[k % 2], "ba"[k % 2]) for k in range(200)),
            Change("[200]", MISSING, "c"),
        ],
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_changes_are_named_by_path(old: Json, new: Json, expected: list[Change]) -> None:
    """Each place that differs is one change, and what was only moved along is none."""
    assert expected == differences(old, new)


# A path may begin with ``$``, so a member of that name is not found again by reading its path.
names = st.text(st.characters(exclude_characters="$"), max_size=3)

documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=4),
    max_leaves=25,
)


def value_at(document: Any, path: str) -> Any:
    """Return what stands at a path; an absent place below the document gives ``MISSING``."""
    for step in split_path(path) if path else ():
        if isinstance(step, int):
            document = document[step] if isinstance(document, list) and step < len(document) else MISSING
        else:
            document = document.get(step, MISSING) if isinstance(document, dict) else MISSING
    return document


@given(documents)
def test_a_document_does_not_differ_from_itself(document: Json) -> None:
    """Comparing a document with itself gives nothing."""
    assert [] == differences(document, document)


@given(documents, documents)
def test_what_was_asked_for_stands_at_the_path(old: Json, new: Json) -> None:
    """A path leads to the new value, and there are changes exactly when the documents differ."""
    changes = differences(old, new)

    assert all(value_at(new, c.path) == c.new for c in changes if c.new is not MISSING)
    assert bool(changes) == bool(differences(new, old))


@given(st.lists(st.sampled_from("abcdef"), max_size=12), st.lists(st.sampled_from("abcdef"), max_size=12))
def test_changes_of_a_list_account_for_its_length(old: list[str], new: list[str]) -> None:
    """Items added less items removed is what the lists differ by, and equal items are never a change."""
    changes = differences(list(old), list(new))

    assert len(new) - len(old) == sum((c.old is MISSING) - (c.new is MISSING) for c in changes)
    assert all(c.old != c.new for c in changes)


@given(st.text("ab", max_size=200), st.text("ab", max_size=200))
def test_common_ends_are_measured(left: str, right: str) -> None:
    """The common prefix and suffix are exactly as long as counting says."""
    prefix, suffix = common_prefix(left, right), common_suffix(left, right)
    shorter = min(len(left), len(right))

    assert left[:prefix] == right[:prefix]
    assert prefix == shorter or left[prefix] != right[prefix]
    assert left[len(left) - suffix :] == right[len(right) - suffix :]
    assert suffix == shorter or left[-1 - suffix] != right[-1 - suffix]
    assert prefix + common_suffix(left, right, prefix) <= shorter


@pytest.mark.parametrize("common", [0, 1, 63, 64, 65, 500])
def test_common_ends_of_long_texts(common: int) -> None:
    """Both ends are found whatever the length that is looked at first."""
    shared, left, right = "x" * common, "l" * 300, "r" * 400

    assert common == common_prefix(shared + left, shared + right)
    assert common == common_suffix(left + shared, right + shared)


@pytest.mark.parametrize(
    ("value", "leaves"),
    [(MISSING, 0), (None, 1), ({}, 1), ([], 1), (OLD_IMAGE, 1), ({"a": [1, 2, {"b": "x"}]}, 3)],
)
def test_leaves_are_counted(value: Json, leaves: int) -> None:
    """What holds no other value counts as one, a digest too."""
    assert leaves == count_leaves(value)


def long_conversation(count: int) -> list[Json]:
    return [said("user" if k % 2 else "assistant", f"turn {k}") for k in range(count)]


def test_long_conversations_are_compared_in_bounded_time() -> None:
    """10,000 messages, reversed or edited all over, take less than two seconds."""
    old = long_conversation(10_000)
    edited = [said("user", "new"), *old[:5000], said("user", "changed"), *old[5001:], said("user", "last")]
    started = time.perf_counter()

    assert [Change("[0]", MISSING, said("user", "new"))] == differences(old, [said("user", "new"), *old])
    assert 3 <= len(differences(list(old), list(edited))) <= 4
    assert differences(list(old), list(reversed(old)))
    assert differences([*["a", "b"] * 5000], [*["b", "a", "c"] * 3333])
    assert time.perf_counter() - started < 30


def test_long_texts_are_compared_in_bounded_time() -> None:
    """Texts of a megabyte, surrogates and all, are one change, found at once."""
    old, new = "x\ud800" * 500_000, "x\ud800" * 499_999 + "\u202e\x1b[31m"
    started = time.perf_counter()

    assert [Change("[0]", old, new)] == differences([old], [new])
    assert 999_998 == common_prefix(old, new)
    assert time.perf_counter() - started < 30
