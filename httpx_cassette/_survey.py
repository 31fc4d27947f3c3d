"""Which rules of the key can change a document: one cheap walk in place of one walk for each rule.

Most requests have nothing to strip, fold or rename below their top level, and every call pays for finding
that out. A survey may say that a rule is needed where it changes nothing, never the reverse;
``tests/test_survey.py`` holds it against the rules themselves.
Nothing here changes a document or knows which wire format the paths belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ._call import Json
from ._paths import DEEP, split_path
from ._rules import has_trailing_blanks

__all__ = ["BELOW", "EMPTY", "EVERYTHING", "REFERENCE", "SINGLE", "TEXT", "Survey", "survey_for"]

#: Text that has trailing blanks.
TEXT = 1
#: A list with one element, which may be one text.
SINGLE = 2
#: ``null``, or something empty.
EMPTY = 4
#: An object with defaults of its own.
BELOW = 8
#: An id that ties a call to its result.
REFERENCE = 16

#: What is assumed where nobody looked.
EVERYTHING = TEXT | SINGLE | EMPTY | BELOW | REFERENCE

#: Returns which of these occur at their paths in a document, as a sum.
Survey: TypeAlias = Callable[[Json], int]


class _Node:
    """One level of all the paths, merged: what is looked for there, and what may follow."""

    def __init__(self) -> None:
        self.named: dict[str, _Node] = {}
        self.every: _Node | None = None
        self.wanted = 0


def survey_for(tables: Iterable[tuple[int, Iterable[str]]]) -> Survey:
    """Return the survey that looks for each kind at its paths.

    Args:
        tables: What is looked for, and the paths where.
    """
    root = _Node()
    always = 0
    for wanted, paths in tables:
        for text in paths:
            steps = split_path(text)
            if DEEP in steps:
                always |= wanted  # To look everywhere is what the rule does.
                continue
            node = root
            for step in steps:
                if isinstance(step, str):
                    node = node.named.setdefault(step, _Node())
                else:  # An index, as if it were every one.
                    node.every = node = node.every or _Node()
            node.wanted |= wanted
    look = _looker(root)
    return lambda document: always | look(document)


def _looker(node: _Node) -> Survey:
    """Return what looks at a value, and below it, for what a node and those after it want."""
    look_at_members = _members_looker(node)
    every = node.every
    if every is None:
        return lambda value: look_at_members((value,))
    look_at_items = _members_looker(every)
    wanted, every_wanted = _everything(every), every.wanted
    deeper = None if every.every is None else _looker(every)

    def look(value: Json) -> int:
        if not isinstance(value, list):
            # Of an object, every member may be meant.
            return look_at_members((value,)) | (wanted if value else 0)
        found = look_at_items(value)
        for item in value if every_wanted else ():
            found |= _look_at(item, every_wanted)
        if deeper is not None:
            for item in value:
                found |= deeper(item)
        return found

    return look


def _members_looker(node: _Node) -> Callable[[Iterable[Json]], int]:
    """Return what looks at the members of objects; of many at once, because a call for each costs more."""
    named = {name: (child.wanted, _below(child)) for name, child in node.named.items()}

    def look(objects: Iterable[Json]) -> int:
        found = 0
        for members in objects:
            if type(members) is dict:
                for name, child in members.items():
                    if name in named:
                        wanted, below = named[name]
                        if type(child) is str:  # Not by ``_look_at``: the content of a message stands here.
                            found |= wanted & REFERENCE
                            if wanted & TEXT and has_trailing_blanks(child):
                                found |= TEXT
                        else:
                            if wanted:
                                found |= _look_at(child, wanted)
                            if below is not None:
                                found |= below(child)
        return found

    return look


def _below(node: _Node) -> Survey | None:
    return _looker(node) if node.named or node.every is not None else None


def _everything(node: _Node) -> int:
    """Return what is wanted at a node or anywhere after it."""
    wanted = node.wanted
    for child in [*node.named.values(), *([node.every] if node.every else [])]:
        wanted |= _everything(child)
    return wanted


def _look_at(value: Json, wanted: int) -> int:
    if isinstance(value, str):
        return wanted & REFERENCE | (wanted & TEXT if has_trailing_blanks(value) else 0)
    if not value:
        return wanted & EMPTY
    if isinstance(value, list):
        return wanted & SINGLE if len(value) == 1 else 0
    return wanted & BELOW
