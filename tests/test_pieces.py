"""Which pieces of a stream belong together, and whether together they say what none may."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette import Redaction
from httpx_cassette._paths import Paths
from httpx_cassette._pieces import hides_secret, pieced_texts
from httpx_cassette.dialects import ANTHROPIC_MESSAGES, OPENAI_CHAT

KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5q" * 2
PLAIN = Redaction()
NONE = Paths(())


def script(*values: Any) -> list[Any]:
    """Return the events of a script."""
    return [{"json": value} for value in values]


@pytest.mark.parametrize(
    ("values", "known", "unknown"),
    [
        ([{"a": "x"}], [], []),
        ([{"a": "x"}, {"b": "y"}], [], []),
        ([{"a": "x"}, {"a": "y"}], ["xy"], ["xy"]),
        ([{"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}], ["xy"], ["xy"]),
        (
            [{"a": [{"b": "x"}, {"b": "1"}]}, {"a": [{"b": "y"}, {"b": "2"}]}],
            ["xy", "12"],
            ["x1y2", "xy", "12"],
        ),
        ([{"a": ["x", "1"]}, {"a": ["y"]}], ["x1y"], ["x1y"]),
        ([{"index": 0, "a": "x"}, {"index": 1, "a": "1"}, {"index": 0, "a": "y"}], ["xy"], ["x1y", "xy"]),
        # An index that counts the pieces tells nothing apart.
        ([{"index": 0, "a": "x"}, {"index": 1, "a": "y"}], [], ["xy"]),
        (
            [{"type": "p", "a": "x"}, {"type": "q", "a": "1"}, {"type": "p", "a": "y"}],
            ["pp", "xy"],
            ["pqp", "x1y"],
        ),
        ([{"content_index": 3, "a": "x"}, {"content_index": 3, "a": "y"}], ["xy"], ["xy"]),
    ],
    ids=[
        "one",
        "places",
        "place",
        "position",
        "positions",
        "strings",
        "index",
        "count",
        "type",
        "other index",
    ],
)
def test_pieces_belong_together_by_their_place(
    values: list[Any], known: list[str], unknown: list[str]
) -> None:
    """Of a format that is known by all that tells elements apart, otherwise by the bare place too."""
    assembled = ["".join(pieces) for pieces in pieced_texts(script(*values), None, True, NONE)]
    verbatim = ["".join(pieces) for pieces in pieced_texts(script(*values), None, False, NONE)]

    assert sorted(known) == sorted(assembled)
    assert set(unknown) <= set(verbatim)


def test_the_slots_of_a_table_are_texts() -> None:
    """Whatever else differs between the events, this is how a client joins them."""
    values = [
        {"choices": [{"index": 0, "delta": {"content": piece, "type": piece}}], "created": piece}
        for piece in "ab"
    ]

    assert ["a", "b"] in pieced_texts(script(*values), OPENAI_CHAT.stream, True, NONE)


@pytest.mark.parametrize("value", [None, [], ["x"], [{"text": "x"}, {"json": 1}]])
def test_what_is_no_script_has_no_pieces(value: Any) -> None:
    """Bytes that are stored have no events, and an event need not be an object."""
    assert [] == pieced_texts(value, OPENAI_CHAT.stream, False, NONE)


def test_what_a_server_signed_says_nothing() -> None:
    """Among random characters the shape of a credential is an accident."""
    values = [
        {"index": 0, "delta": {"type": "signature_delta", "signature": piece}}
        for piece in (KEY[:20], KEY[20:])
    ]
    table = ANTHROPIC_MESSAGES.stream
    opaque = Paths(["[*].json[?@.type=='signature_delta'].signature"])

    assert [KEY[:20], KEY[20:]] in pieced_texts(script(*values), table, True, NONE)
    assert [["signature_delta"] * 2] == pieced_texts(script(*values), table, True, opaque)


def test_a_text_that_was_signed_is_left_out_of_its_slot() -> None:
    """The table may join what must come back to the byte."""
    values = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in "ab"]
    opaque = Paths(["[*].json.choices[*].delta.content"])

    assert [] == pieced_texts(script(*values), OPENAI_CHAT.stream, True, opaque)


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["Hello, ", "world"], False),
        ([KEY[:5], KEY[5:]], True),
        # Its beginning is a credential by itself, and what is left of it stays.
        ([KEY[:30], KEY[30:]], True),
        ([f"Use {KEY}", ", please"], False),
        ([f"Use {KEY}"] * 3, False),
        # What stands before it makes a word of it; each piece was redacted all the same.
        (["as", KEY], False),
        (["as", KEY, KEY[:5], KEY[5:]], True),
        (["\ud83d", "\ude00 ", KEY[:20], KEY[20:]], True),
    ],
)
def test_pieces_hide_what_none_of_them_shows(pieces: list[str], expected: bool) -> None:
    """They are compared with what each of them becomes by itself."""
    assert expected == hides_secret(pieces, PLAIN)
