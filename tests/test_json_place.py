"""The JSON path of a character: in whole documents, and in those that end in the middle."""

from __future__ import annotations

import pytest

from httpx_cassette._json_place import json_place

TEXT = '{"a": {"b-c": [1, {"d": "x,y:[z"}, ["e"]], "": {"q r": "in\\"side"}}, "f": "last", "name": 1}'

PLACES = {
    "x,y": "a.b-c[1].d",
    "z": "a.b-c[1].d",
    "e": "a.b-c[2][0]",
    "side": 'a[""]["q r"]',
    "last": "f",
    "name": "name",
}


@pytest.mark.parametrize("found", PLACES)
def test_a_place_is_told_by_its_path(found: str) -> None:
    """Names that are no words are quoted; what looks like JSON in a string is a string."""
    offset = TEXT.index('"e"') + 1 if found == "e" else TEXT.index(found)

    assert PLACES[found] == json_place(TEXT, offset)
    assert "" == json_place(TEXT, 0)


@pytest.mark.parametrize("text", ["", "text", "]", "{}", "}{", ",", ":", '"a"', '{"a": 1} b'])
def test_outside_of_a_document_there_is_no_path(text: str) -> None:
    """Nor where it is no JSON."""
    assert "" == json_place(text, len(text))


def test_a_document_may_be_cut() -> None:
    """The path is that up to there, a name with a broken escape as it stands."""
    assert '["\\"\\\\x\\""].b' == json_place('{"\\x": {"b": "cut of', 17)
