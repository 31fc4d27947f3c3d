"""How a JSON document is written, where it is written in one of the usual ways.

A recording holds the document, so that a person and a program can read it; of a body that must come back byte
for byte it holds the layout as well. One that is written in no usual way has none, and is stored as text.
Nothing here knows what a document is for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import orjson

from ._call import Json
from ._line import dump_json

__all__ = ["find_layout", "lay_out"]

#: What most servers write: those of Go; those of Python, which may escape what is not ASCII; OpenAI's and
#: Google's. What is written as the lines of a cassette are needs no name.
_LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "compact": {"separators": (",", ":"), "ensure_ascii": False},
    "spaced": {"ensure_ascii": False},
    "escaped": {},
    "indented": {"indent": 2, "ensure_ascii": False},
}

#: Behind the name of a layout: a newline ends the body.
_NEWLINE = "+newline"


def find_layout(raw: bytes, document: Json) -> str | None:
    """Return the layout of a body: empty for that of a cassette's lines, ``None`` where it has none.

    Args:
        raw: The body.
        document: What it says.
    """
    if raw == dump_json(document):
        return ""
    end = _NEWLINE if raw.endswith(b"\n") else ""
    names = ("indented",) if b"\n" in raw[:4] else ("compact", "spaced", "escaped")
    for name in names:
        if raw == _write(document, name, end):
            return name + end
    return None


def lay_out(document: Json, layout: str) -> bytes:
    """Return a document as it is written in a layout.

    Raises:
        ValueError: There is no such layout.
    """
    name, end, rest = layout.partition(_NEWLINE)
    if name not in _LAYOUTS or rest:
        raise ValueError(f"a document with the layout {layout!r}")
    return _write(document, name, end)


def _write(document: Json, name: str, end: str) -> bytes:
    if name in _QUICKLY:
        try:
            return _write_quickly(document, _QUICKLY[name]) + (b"\n" if end else b"")
        except TypeError:
            pass  # Integers beyond 64 bits, and lone surrogates.
    written = json.dumps(document, **_LAYOUTS[name])
    # A lone surrogate was an escape, and no body is equal to what it is otherwise.
    return (written + ("\n" if end else "")).encode("utf-8", "surrogatepass")


# -- quickly -------------------------------------------------------------------------------------------

#: What orjson can write as well, in a tenth of the time: every replay of such a body pays for it.
_QUICKLY = {"compact": 0, "indented": orjson.OPT_INDENT_2}

#: Where a number may stand that orjson and Python write in different words: ``0.00001``, ``1e-7``. It may be
#: part of a string as well.
_MAYBE_NUMBER = re.compile(rb"e(?<=[0-9]e)|0[.]0000")


def _write_quickly(document: Json, option: int) -> bytes:
    """Return what the standard library would write.

    Raises:
        TypeError: orjson cannot write it.
    """
    data: bytes = orjson.dumps(document, option=option)
    if _MAYBE_NUMBER.search(data) is None:
        return data
    return orjson.dumps(_in_words_of_python(document), option=option)


def _in_words_of_python(value: Any) -> Any:
    """Return a document for orjson in which each such number is the text that Python writes for it."""
    kind = type(value)
    if kind is list:
        # Most of a long list are numbers of the usual size: an embedding.
        return [
            child
            if type(child) is float and (1e-4 <= child < 1e15 or -1e15 < child <= -1e-4)
            else _in_words_of_python(child)
            for child in value
        ]
    if kind is dict:
        return {name: _in_words_of_python(child) for name, child in value.items()}
    return orjson.Fragment(repr(value)) if kind is float else value
