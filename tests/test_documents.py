"""The JSON that a text holds: whole, or in its lines."""

from __future__ import annotations

import pytest

from httpx_cassette._documents import Documents, find_documents


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", Documents([], False, False, False)),
        ("words", Documents([], False, False, False)),
        ("1.10\n7", Documents([], False, False, False)),
        ('{"a" :1}\n', Documents([{"a": 0}], False, True, True)),
        ('\ufeff{"a":"b"}', Documents([{"a": "b"}], False, True, True)),
        ('[\n  "a"\n]', Documents([["a"]], False, True, True)),
        ('{"a":"\\u002d"}\r\n\r\n["b"]', Documents([{"a": "-"}, ["b"]], False, False, True)),
        ('a\n{"b":"c"}\n{"d"', Documents([{"b": "c"}], False, False, False)),
        ('{"a":"b","a":"c"}', Documents([{"a": "c"}, "b"], True, True, True)),
        ("a\n" + "[" * 101 + "]" * 101, Documents([], False, False, False)),
    ],
)
def test_the_documents_of_a_text_are_found(text: str, found: Documents) -> None:
    """As one, or in each line that is one; lines of numbers and words are none."""
    assert found == find_documents(text)
