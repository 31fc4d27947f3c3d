"""Places in a JSON document, named by path.

A path is RFC 9535 shorthand without the leading ``$``: ``model``, ``metadata.run_id``,
``messages[0].name``, ``messages[*].content[*].text``, ``["odd name"].x`` and ``headers[*]`` (every
element of a list or every member of an object).
``[?@.type=='text']`` is ``[*]`` for the objects whose member says so: ``content[?@.type=='text'].text``.
``**`` names the members of an object at any depth: ``**.content``.
Nothing here knows what stands at a place or what is done with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeAlias

from ._call import Json
from ._errors import OptionError

__all__ = ["Paths", "Place", "render_path", "split_path"]

#: One step of a path: a member name, an index, or every element.
Step: TypeAlias = "str | int | _Every | _Where | _Deep"

#: A container and the name or index in it.
Place: TypeAlias = "tuple[dict[str, Json], str] | tuple[list[Json], int]"

#: Adds to a list every place below a value that a path names.
Collect: TypeAlias = "Callable[[Json, list[Place]], None]"


class _Every:
    """The step ``[*]``."""


class _Where(NamedTuple):
    """The step ``[?@.name=='text']``: every object whose member is this text."""

    name: str
    text: str


class _Deep:
    """The step ``**``: the node itself and every node below it."""


EVERY = _Every()
DEEP = _Deep()

_STEP = re.compile(
    r"""
      \[\s*(?P<index>-?[0-9]+)\s*\]
    | \[\s*(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]
    | (?P<every>\[\s*\*\s*\]|\.?\*(?![*]))
    | \[\s*\?\s*@\.(?P<member>[A-Za-z_]\w*)\s*==\s*(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*\]
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
    if not isinstance(path, str):
        raise OptionError(f"a path is a text such as 'metadata.run_id', not {path!r}")
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
        steps.append(_read_step(match))
    if not steps or steps[-1] is DEEP:
        raise OptionError(f"the path {path!r} names no place; write it like 'metadata.run_id'")
    return tuple(steps)


def _read_step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return int(match["index"])
    if match["quoted"] is not None:
        return _unquote(match["quoted"])
    if match["member"] is not None:
        return _Where(match["member"], _unquote(match["text"]))
    if match["every"] is not None:
        return EVERY
    return DEEP if match["deep"] is not None else match["name"]


def _unquote(quoted: str) -> str:
    return _ESCAPE.sub(_unescape, quoted[1:-1])


_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unescape(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _CONTROLS.get(found[2], found[2])


_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def render_path(steps: Iterable[str | int]) -> str:
    """Return the path of one place as a person writes it: ``messages[0].content``."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        # ``$`` alone at the head would be read as the root.
        elif _PLAIN_NAME.fullmatch(step) and (text or step != "$"):
            text += f".{step}" if text else step
        else:
            escaped = step.replace("\\", "\\\\").replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


class _Node:
    """One level of the paths, merged: what may follow, and whether a path ends here."""

    __slots__ = ("deep", "ends", "every", "named", "where")

    def __init__(self) -> None:
        self.named: dict[str | int, _Node] = {}
        self.every: _Node | None = None
        self.where: dict[_Where, _Node] = {}
        self.deep: _Node | None = None
        self.ends = False

    def follow(self, step: Step) -> _Node:
        """Return the node that a step leads to, made if there is none."""
        if isinstance(step, _Every):
            self.every = self.every or _Node()
            return self.every
        if isinstance(step, _Where):
            return self.where.setdefault(step, _Node())
        if isinstance(step, _Deep):
            self.deep = self.deep or _Node()
            return self.deep
        return self.named.setdefault(step, _Node())


class Paths:
    """A set of paths, merged so that one walk finds all their places.

    Args:
        paths: Paths as text.
        closed: Names of members that ``**`` does not enter where an object stands there.
        late: Read them when they are first needed. For tables, which an import pays for: a hundred paths
            take a millisecond.

    Raises:
        OptionError: One of them cannot be read.
    """

    __slots__ = ("_closed", "_collect", "texts")

    def __init__(self, paths: Iterable[str], closed: Collection[str] = (), *, late: bool = False) -> None:
        self.texts = tuple(paths)
        self._closed = frozenset(closed)
        self._collect = None if late else self._read()

    def __reduce__(self) -> tuple[type[Paths], tuple[tuple[str, ...], frozenset[str]]]:
        # Functions that were made cannot be pickled, and need not be.
        return Paths, (self.texts, self._closed)

    def _read(self) -> Collect:
        root = _Node()
        for text in self.texts:
            node = root
            for step in split_path(text):
                node = node.follow(step)
            node.ends = True
        return _collector(root, self._closed)

    def __bool__(self) -> bool:
        return bool(self.texts)

    def places(self, document: Json) -> list[Place]:
        """Return every place of the document that a path names, in the order of the paths.

        The order of an object's members has a say in it only below ``**``. A place that two paths name may
        come twice.
        """
        if self._collect is None:
            self._collect = self._read()
        found: list[Place] = []
        self._collect(document, found)
        return found


def _collector(node: _Node, closed: frozenset[str]) -> Collect:
    """Return what collects the places below a node: the tree of the paths as functions, built once."""
    named = [(name, child.ends, _below(child, closed)) for name, child in node.named.items()]
    members = [(name, ends, below) for name, ends, below in named if isinstance(name, str)]
    indexes = [(name, ends, below) for name, ends, below in named if isinstance(name, int)]
    every_ends = node.every is not None and node.every.ends
    every_below = None if node.every is None else _below(node.every, closed)
    where = _chooser(node, closed) if node.where else None
    deep = None if node.deep is None else _collector(node.deep, closed)

    def collect(value: Json, found: list[Place]) -> None:
        if type(value) is dict:
            for name, ends, below in members:
                if name in value:
                    if ends:
                        found.append((value, name))
                    if below is not None:
                        below(value[name], found)
            if node.every is not None:
                for name in sorted(value):
                    if every_ends:
                        found.append((value, name))
                    if every_below is not None:
                        every_below(value[name], found)
        elif type(value) is list:
            for index, ends, below in indexes:
                if -len(value) <= index < len(value):
                    if ends:
                        found.append((value, index % len(value)))
                    if below is not None:
                        below(value[index], found)
            if every_ends:
                found += [(value, index) for index in range(len(value))]
            if every_below is not None:
                for item in value:
                    every_below(item, found)
        if where is not None:
            where(value, found)
        if deep is not None:
            for container in _containers(value, closed):
                deep(container, found)

    return collect


def _chooser(node: _Node, closed: frozenset[str]) -> Collect:
    """Return what collects the places below those children whose members say so, child by child."""
    wanted: dict[str, dict[str, tuple[bool, Collect | None]]] = {}
    for step, child in node.where.items():
        wanted.setdefault(step.name, {})[step.text] = (child.ends, _below(child, closed))
    by_name = [*wanted.items()]

    def collect(value: Json, found: list[Place]) -> None:
        steps: Iterable[str | int]
        if type(value) is list:
            steps = range(len(value))
        elif type(value) is dict:
            steps = sorted(value)
        else:
            return
        for step in steps:
            child = value[step]  # type: ignore[index]  # the step is the container's
            if type(child) is dict:
                for name, by_text in by_name:
                    text = child.get(name)
                    if type(text) is str and text in by_text:
                        ends, below = by_text[text]
                        if ends:
                            found.append((value, step))  # type: ignore[arg-type]  # as above
                        if below is not None:
                            below(child, found)

    return collect


def _below(node: _Node, closed: frozenset[str]) -> Collect | None:
    has_more = node.named or node.every is not None or node.where or node.deep is not None
    return _collector(node, closed) if has_more else None


def _containers(value: Json, closed: frozenset[str]) -> list[Json]:
    """Return the value and every container below it, but for objects in closed members."""
    found: list[Json] = [value]
    for container in found:  # It grows while it is walked.
        if isinstance(container, dict):
            found += [
                child
                for name, child in container.items()
                if type(child) is list or (type(child) is dict and name not in closed)
            ]
        elif isinstance(container, list):
            found += [item for item in container if type(item) is dict or type(item) is list]
    return found
