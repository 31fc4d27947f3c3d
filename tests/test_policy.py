"""A key policy is checked where it is written."""

from __future__ import annotations

import json
import pickle
from collections import UserDict
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from httpx_cassette import KeyPolicy, OptionError
from httpx_cassette._call import Json


def test_nothing_said_is_the_default() -> None:
    """The default policy says so, and has nothing to store."""
    policy = KeyPolicy()

    assert policy.is_default
    assert {} == policy.as_json()
    assert ("anthropic-beta", "openai-beta") == policy.key_headers


@pytest.mark.parametrize(
    ("arguments", "stored"),
    [
        pytest.param({"ignore": ("a.b", "c[*]")}, {"ignore": ["a.b", "c[*]"]}, id="ignore"),
        pytest.param({"masks": ["date", "uuid"]}, {"masks": ["date", "uuid"]}, id="masks"),
        pytest.param({"masks": "date"}, {"masks": ["date"]}, id="one-mask"),
        pytest.param(
            {"masks": {"date": None, "x": "[0-9]"}}, {"masks": {"date": None, "x": "[0-9]"}}, id="own"
        ),
        pytest.param({"headers": ["X-A"]}, {"headers": ["X-A"]}, id="headers"),
        pytest.param({"defaults": False}, {"defaults": False}, id="no-defaults"),
        pytest.param({"defaults": {}}, {"defaults": {}}, id="empty-table"),
        pytest.param({"defaults": {"n": 1}}, {"defaults": {"n": 1}}, id="table"),
        pytest.param({"extra": {"v": [1, None]}}, {"extra": {"v": [1, None]}}, id="extra"),
        pytest.param({"host": False}, {"host": False}, id="host"),
        pytest.param({"strip": False}, {"strip": False}, id="strip"),
    ],
)
def test_what_differs_is_stored(arguments: dict[str, Any], stored: Json) -> None:
    """It can be written as JSON, and gives the same policy when it is read back."""
    policy = KeyPolicy(**arguments)

    assert not policy.is_default
    assert stored == policy.as_json()
    assert stored == KeyPolicy(**json.loads(json.dumps(stored))).as_json()


@pytest.mark.parametrize(
    "arguments",
    [
        {
            "ignore": [],
            "masks": (),
            "headers": [],
            "defaults": True,
            "extra": {},
            "host": True,
            "strip": True,
        },
        {"masks": {}},
    ],
)
def test_the_default_said_aloud_is_the_default(arguments: dict[str, Any]) -> None:
    """Empty lists and mappings change nothing."""
    assert KeyPolicy(**arguments).is_default


def test_names_of_headers_are_compared_in_lower_case() -> None:
    """Each enters once, also one that always does."""
    policy = KeyPolicy(headers=["X-A", "x-a", "OpenAI-Beta"])

    assert ("anthropic-beta", "openai-beta", "x-a") == policy.key_headers


def test_a_policy_does_not_change_when_what_it_was_given_does() -> None:
    """``extra`` and a table of defaults are copied."""
    extra, defaults = {"a": [1]}, {"n": [1]}
    policy = KeyPolicy(extra=extra, defaults=defaults)
    extra["a"].append(2)
    defaults["n"].append(2)

    assert {"extra": {"a": [1]}, "defaults": {"n": [1]}} == policy.as_json()


@pytest.mark.parametrize("wrap", [MappingProxyType, UserDict, dict], ids=lambda wrap: wrap.__name__)
def test_any_mapping_will_do(wrap: Callable[[dict[str, Any]], Any]) -> None:
    """Mappings and sequences of any class are taken as the JSON that they mean."""
    policy = KeyPolicy(extra=wrap({"a": wrap({"b": (1, 2.0)})}))

    assert {"extra": {"a": {"b": [1, 2]}}} == policy.as_json()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            {"ignore": "a.b"},
            "KeyPolicy(ignore='a.b') takes a list of names; write ['a.b']",
            id="text-for-ignore",
        ),
        pytest.param(
            {"headers": "x-a"},
            "KeyPolicy(headers='x-a') takes a list of names; write ['x-a']",
            id="text-for-headers",
        ),
        pytest.param({"ignore": 5}, "KeyPolicy(ignore=5) takes a list of names", id="number-for-ignore"),
        pytest.param(
            {"ignore": [5]}, "KeyPolicy(ignore=...) cannot hold 5; it takes names", id="number-in-ignore"
        ),
        pytest.param(
            {"ignore": ["a..b"]},
            "the path 'a..b' cannot be read at '..b'; write it like 'metadata.run_id' or 'messages[*].name'",
            id="path",
        ),
        pytest.param(
            {"ignore": [""]}, "the path '' names no place; write it like 'metadata.run_id'", id="empty-path"
        ),
        pytest.param(
            {"headers": ["x a"]},
            "KeyPolicy(headers=...) cannot hold 'x a'; it takes names",
            id="blank-in-a-header",
        ),
        pytest.param(
            {"headers": ["é"]},
            "KeyPolicy(headers=...) cannot hold 'é'; it takes names",
            id="letter-in-a-header",
        ),
        pytest.param(
            {"headers": [b"x"]},
            "KeyPolicy(headers=...) cannot hold b'x'; it takes names",
            id="bytes-for-a-header",
        ),
        pytest.param(
            {"masks": ["dat"]},
            "there is no mask 'dat' (did you mean 'date'?); give an own one its pattern: "
            "KeyPolicy(masks={'dat': r'...'})",
            id="nearest-mask",
        ),
        pytest.param(
            {"masks": ["x"]},
            "there is no mask 'x'; there are date, path, port, time, uuid; give an own one its pattern: "
            "KeyPolicy(masks={'x': r'...'})",
            id="no-mask-near",
        ),
        pytest.param(
            {"masks": {"X": "a"}},
            "the mask name 'X' must be lower-case letters, digits and underscores",
            id="mask-name",
        ),
        pytest.param(
            {"masks": {"x": "("}},
            "the pattern of the mask 'x' cannot be read: missing ), unterminated subpattern at position 0",
            id="pattern",
        ),
        pytest.param(
            {"masks": {"x": 5}},
            "KeyPolicy(masks=...) cannot hold 'x': 5; it takes names, and patterns as text",
            id="no-pattern",
        ),
        pytest.param(
            {"masks": [5]},
            "KeyPolicy(masks=...) cannot hold 5: None; it takes names, and patterns as text",
            id="no-mask-name",
        ),
        pytest.param(
            {"masks": 5},
            "KeyPolicy(masks=5) takes names, or a mapping of names to patterns",
            id="number-for-masks",
        ),
        pytest.param(
            {"defaults": "x"},
            "KeyPolicy(defaults='x') takes True, False or a mapping of names to JSON values",
            id="defaults",
        ),
        pytest.param(
            {"defaults": 1},
            "KeyPolicy(defaults=1) takes True, False or a mapping of names to JSON values",
            id="number-for-defaults",
        ),
        pytest.param(
            {"extra": [1]},
            "KeyPolicy(extra=[1]) takes a mapping of names to JSON values",
            id="list-for-extra",
        ),
        pytest.param(
            {"extra": {"a": {1}}}, "KeyPolicy(extra=...) holds what is not JSON: {1} is a set", id="set"
        ),
        pytest.param(
            {"extra": {"a": b"x"}}, "KeyPolicy(extra=...) holds what is not JSON: b'x' is a bytes", id="bytes"
        ),
        pytest.param(
            {"extra": {1: 2}},
            "KeyPolicy(extra=...) holds what is not JSON: the name 1 is no text",
            id="number-as-a-name",
        ),
        pytest.param(
            {"extra": {"a": float("nan")}},
            "KeyPolicy(extra=...) holds what is not JSON: JSON cannot hold the number nan",
            id="nan",
        ),
        pytest.param({"host": 0}, "KeyPolicy(host=0) takes True or False", id="host"),
        pytest.param({"strip": "no"}, "KeyPolicy(strip='no') takes True or False", id="strip"),
    ],
)
def test_a_mistake_is_met_where_it_is_made(arguments: dict[str, Any], message: str) -> None:
    """The error says which argument, what it was given, and what it takes."""
    with pytest.raises(OptionError) as caught:
        KeyPolicy(**arguments)

    assert message == str(caught.value)


def test_a_policy_goes_from_one_process_to_another() -> None:
    """A copy is equal, and ignores and masks the same."""
    policy = KeyPolicy(ignore=["a"], masks={"x": "[0-9]"}, extra={"v": 1})
    copied: KeyPolicy = pickle.loads(pickle.dumps(policy))

    assert policy == copied
    assert (("a",), policy.mask_patterns) == (copied.ignore_paths.texts, copied.mask_patterns)


def test_extra_that_is_too_deep_is_refused() -> None:
    """What could not be read back is not taken."""
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(OptionError, match="holds what is not JSON"):
        KeyPolicy(extra={"a": nested})
    while nested:  # Taken down by hand: the interpreter would go as deep.
        nested = nested.pop()
