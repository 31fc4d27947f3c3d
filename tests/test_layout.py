"""How a JSON body was written: found where it is one of the usual ways, and written so again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import _layout
from httpx_cassette._layout import find_layout, lay_out
from httpx_cassette._line import dump_json
from httpx_cassette._parsing import NotJson, parse_json


@pytest.mark.parametrize(
    ("raw", "layout"),
    [
        ('{"a":[1,"ü"]}', ""),
        ('{"a":[1,"ü"]}\n', "compact+newline"),
        ('{"a": [1, "ü"]}', "spaced"),
        ('{"a": [1, "ü"]}\n', "spaced+newline"),
        ('{"a": "\\u00fc"}', "escaped"),
        ('{\n  "a": [\n    1,\n    "ü"\n  ]\n}', "indented"),
        ('{\n  "a": {}\n}\n', "indented+newline"),
        ("[\n  1\n]", "indented"),
        # A line of a cassette holds no such character, and a body may.
        ('{"a":"\u2028\x7f"}', "compact"),
        ("null", ""),
        ('{"a":1}\n\n', None),
        ('{"a" : 1}', None),
        ('{\n    "a": 1\n}', None),
        ('{\r\n  "a": 1\r\n}', None),
        ('{"a":1.50}', None),
        ('{"a":1,"a":2}', None),
        ('{"a":"\\/"}', None),
        ('{"a":"\\ud800"}', ""),
        ('{"a": "\\ud800"}', "escaped"),
        ('{"a": "\\uD800"}', None),
        (" {}", None),
    ],
)
def test_a_layout_is_found_where_it_gives_the_bytes(raw: str, layout: str | None) -> None:
    """Exactly these, or none; the layout of a cassette's own lines has no name."""
    document = parse_json(raw.encode())

    assert layout == find_layout(raw.encode(), document)
    if layout is not None:
        assert raw.encode() == (lay_out(document, layout) if layout else dump_json(document))


documents = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-2e-4, 2e-4)
    | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@given(
    documents,
    st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}]),
    st.sampled_from(["", "\n"]),
)
def test_what_has_a_layout_comes_back_to_the_byte(document: Any, options: dict[str, Any], end: str) -> None:
    """Whatever the document is."""
    raw = (json.dumps(document, **options) + end).encode()
    try:
        parsed = parse_json(raw)
    except NotJson:  # A number with too many digits.
        return
    layout = find_layout(raw, parsed)

    assert layout is None or raw == (lay_out(parsed, layout) if layout else dump_json(parsed))


@given(documents)
def test_a_layout_is_written_as_python_writes_it(document: Any) -> None:
    """Whoever writes it here: a recording of before comes back to the byte."""
    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    indented = json.dumps(document, ensure_ascii=False, indent=2)

    assert (compact.encode(), indented.encode() + b"\n") == (
        lay_out(document, "compact"),
        lay_out(document, "indented+newline"),
    )


def test_a_long_list_of_numbers_is_not_written_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes milliseconds for an embedding, at each replay of it; its small numbers stay as they came."""
    raw = b'{\n  "embedding": [\n    -0.013,\n    1e-05,\n    -2.5e-07,\n    1e+16,\n    0.0\n  ]\n}'
    monkeypatch.setattr(_layout.json, "dumps", lambda *arguments, **options: pytest.fail("Python wrote it"))

    assert raw == lay_out({"embedding": [-0.013, 1e-05, -2.5e-07, 1e16, 0.0]}, "indented")


@pytest.mark.parametrize("layout", ["", "newline", "compact+newline+newline", "compact ", "Indented"])
def test_an_unknown_layout_is_refused(layout: str) -> None:
    """Nothing is written in a way that nobody named."""
    with pytest.raises(ValueError, match=r"^a document with the layout ") as caught:
        lay_out({}, layout)

    assert f"a document with the layout {layout!r}" == str(caught.value)
