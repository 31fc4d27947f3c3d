"""The JSON that stands in a text: one document, or one in each line that is one.

What is stored as text is redacted as text, and JSON can say in other characters what a rule looks for, at a
place that a rule names, or twice under one name. So such a text is read as JSON, too, and by a reader that
takes more than JSON is: ``NaN`` and numbers of any length, as Python's own does.
Nothing here knows what is secret, or what is stored.
"""

from __future__ import annotations

from typing import NamedTuple

from ._call import Json
from ._parsing import NotJson, parse_leniently

__all__ = ["Documents", "find_documents"]


class Documents(NamedTuple):
    """The objects and lists that a text holds.

    Args:
        values: The objects and lists, and the values that get lost in them because their name stands there
            once more.
        repeats: Whether there are such values, of which nobody knows where they would stand.
        is_whole: Whether the text is one document.
        is_all: Whether there is nothing in the text but documents.
    """

    values: list[Json]
    repeats: bool
    is_whole: bool
    is_all: bool


def find_documents(text: str) -> Documents:
    """Return the JSON that a text holds."""
    text = text.removeprefix("\ufeff")
    whole = _read([text])
    return whole._replace(is_whole=True) if whole.is_all else _read(text.split("\n"))


def _read(texts: list[str]) -> Documents:
    values: list[Json] = []
    repeats, is_all = False, True
    for text in texts:
        stripped = text.strip(" \t\r\n")
        if not stripped:
            continue
        try:
            value, lost = parse_leniently(stripped) if stripped[0] in "{[" else (None, [])
        except NotJson:
            value, lost = None, []
        if value is None:
            is_all = False
            continue
        values += (value, *lost)
        repeats = repeats or bool(lost)
    return Documents(values, repeats, False, is_all and bool(values))
