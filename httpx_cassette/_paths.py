"""Places in a JSON document, named by path.

A path is RFC 9535 shorthand without the leading ``$``: ``model``, ``metadata.run_id``,
``messages[0].name``, ``messages[*].content[*].text``, ``["odd name"].x`` and ``headers[*]`` (every
element of a list or every member of an object).
``**`` names the members of an object at any depth: ``**.content``.
Nothing here knows what stands at a place or what is done with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ._call import Json
from ._errors import OptionError

__all__ = ["Paths", "Place", "render_path", "split_path"]

#: One step of a path: a member name, an index, or every element.
Step: TypeAlias = "str | int | _Every | _Deep"

#: A container and the name or index in it.
Place: TypeAlias = "tuple[dict[str, Json], str] | tuple[list[Json], int]"


class _Every:
    """The step ``[*]``."""


class _Deep:
    """The step ``**``: the node itself and every node below it."""


EVERY = _Every()
DEEP = _Deep()

_STEP = re.compile(
    r"""
      \[\s*(?P<index>-?[0-9]+)\s*\]
    | \[\s*(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]
    | (?P<every>\[\s*\*\s*\]|\.?\*(?![*]))
    | (?P<deep>\.?\*\*)
    | \.?(?P<name>[^\s.\[\]*"']+)
    """,
    re.VERBOSE,
)


def split_path(path: str) -> tuple[Step, ...]:
    """Return the steps of a path.

    Raises:
        OptionError: The path cannot be read; the message shows where.
    """
    text = path[2:] if path.startswith("$.") else path[1:] if path.startswith("$[") else path
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (position == 0 and text.startswith(".")):
            raise OptionError(
                f"the path {path!r} cannot be read at {text[position:]!r}; "
                "write it like 'metadata.run_id' or 'messages[*].name'"
            )
        position = match.end()
        if match["index"] is not None:
            steps.append(int(match["index"]))
        elif match["quoted"] is not None:
            steps.append(re.sub(r"\\(.)", r"\1", match["quoted"][1:-1]))
        elif match["every"] is not None:
            steps.append(EVERY)
        elif match["deep"] is not None:
            steps.append(DEEP)
        else:
            steps.append(match["name"])
    if not steps:
        raise OptionError("an empty path names no place; write it like 'metadata.run_id'")
    return tuple(steps)


_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def render_path(steps: Iterable[str | int]) -> str:
    """Return the path of one place as a person writes it: ``messages[0].content``."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN_NAME.fullmatch(step):
            text += f".{step}" if text else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


class _Node:
    """One level of the paths, merged: what may follow, and whether a path ends here."""

    __slots__ = ("deep", "ends", "every", "named")

    def __init__(self) -> None:
        self.named: dict[str | int, _Node] = {}
        self.every: _Node | None = None
        self.deep: _Node | None = None
        self.ends = False


class Paths:
    """A set of paths, merged so that one walk finds all their places.

    Args:
        paths: Paths as text.

    Raises:
        OptionError: One of them cannot be read.
    """

    __slots__ = ("_root", "texts")

    def __init__(self, paths: Iterable[str]) -> None:
        self.texts = tuple(paths)
        self._root = _Node()
        for text in self.texts:
            node = self._root
            for step in split_path(text):
                node = _follow(node, step)
            node.ends = True

    def __bool__(self) -> bool:
        return bool(self.texts)

    def places(self, document: Json) -> list[Place]:
        """Return every place of the document that a path names, in document order of the paths."""
        found: list[Place] = []
        _collect(self._root, document, found)
        return found


def _follow(node: _Node, step: Step) -> _Node:
    if isinstance(step, _Every):
        node.every = node.every or _Node()
        return node.every
    if isinstance(step, _Deep):
        node.deep = node.deep or _Node()
        return node.deep
    return node.named.setdefault(step, _Node())


def _collect(node: _Node, value: Json, found: list[Place]) -> None:
    if isinstance(value, dict):
        for name, child in node.named.items():
            if name in value:
                assert isinstance(name, str)
                if child.ends:
                    found.append((value, name))
                _collect(child, value[name], found)
        if node.every is not None:
            for name in value:
                if node.every.ends:
                    found.append((value, name))
                _collect(node.every, value[name], found)
    elif isinstance(value, list):
        for index, child in node.named.items():
            if isinstance(index, int) and -len(value) <= index < len(value):
                if child.ends:
                    found.append((value, index % len(value)))
                _collect(child, value[index], found)
        if node.every is not None:
            every = node.every
            for index, item in enumerate(value):
                if every.ends:
                    found.append((value, index))
                if isinstance(item, (dict, list)):
                    _collect(every, item, found)
    if node.deep is not None:
        for below in _descend(value):
            _collect(node.deep, below, found)


def _descend(value: Json) -> Iterator[Json]:
    """Yield the value and every container below it."""
    yield value
    if isinstance(value, dict):
        for child in value.values():
            if isinstance(child, (dict, list)):
                yield from _descend(child)
    elif isinstance(value, list):
        for child in value:
            if isinstance(child, (dict, list)):
                yield from _descend(child)
