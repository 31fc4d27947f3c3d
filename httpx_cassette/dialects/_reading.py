"""The table of one streaming format, and what it finds in one event.

Decides which member of an event is text, list, running value, padding, and whose slot it is.
Joins and cuts nothing, and knows no format: a format is a :class:`StreamTable`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from .._call import Json
from .._errors import OptionError
from .._paths import EVERY, split_path
from ._framing import Event

__all__ = [
    "Noise",
    "Place",
    "Reading",
    "Said",
    "Slot",
    "StreamProgress",
    "StreamTable",
    "read_text",
    "render_slot",
    "table_reader",
]


class StreamProgress(Protocol):
    """Watches the events of one stream go by, and knows how far it has come."""

    @property
    def is_complete(self) -> bool:
        """Whether every choice that was asked for, or seen, has its finish reason."""

    @property
    def awaits_more(self) -> bool:
        """Whether something that was asked for is still to come behind the finish reasons."""

    @property
    def is_terminated(self) -> bool:
        """Whether the event was seen that ends a stream of this format."""

    @property
    def error(self) -> str | None:
        """What an error event inside a 200 says."""

    @property
    def finish(self) -> Json:
        """The finish reason; a list when there are several choices."""

    def expect(self, request: Json) -> None:
        """Take note of what the body of the request asks for, before the first event."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event.

        Args:
            event: The event as it came.
            value: Its data parsed, or ``None`` when they are not JSON.
        """


@dataclass(frozen=True, slots=True)
class Noise:
    """What the servers of a format send beside what they say, and its clients have to bear.

    Args:
        empty_deltas: Deltas without text, as while a model thinks.
        comments: SSE comments before and between events, to keep the connection open.
        crlf: Lines that end with CRLF.
        pings: The table's ``ping`` between events.
        blanks: Blanks before the last brace of the data, more or fewer of them.
    """

    empty_deltas: bool = False
    comments: bool = False
    crlf: bool = False
    pings: bool = False
    blanks: bool = False


@dataclass(frozen=True, slots=True)
class StreamTable:
    """One streaming format, as data.

    Paths are written as everywhere (``choices[*].delta.content``), end in a member name or in ``.*``
    (every member that no other path names), and the elements of a list are told apart by their member
    ``index``.

    Args:
        progress: Makes what recognises the end of a stream.
        framing: How events are divided.
        text: Strings that are joined, and cut at will on replay. Several may stand in one event, and a
            copy of a text is one more path: they are cut side by side.
        lists: Lists that belong to the text beside them: concatenated, and sent whole with the first piece.
        last: Running values: the last one counts, and is sent with the last piece.
        ends: As ``last``, and no text is joined after it (a finish reason, a signature).
        first: What clients concatenate or what announces a slot (a tool's id and name): sent with the
            first piece only, unless this server had said the same at this place before. Null and empty
            ones do not count.
        totals: Running copies, as pairs of a path and the ``text`` path that it sums up, in the same element.
        padding: Dropped.
        stamps: What each event says anew of itself, such as when it was made: that of the first piece stands
            for the whole text, and is sent with every piece.
        scope: The lane in which an event speaks, such as the choice: what comes in a lane ends what was
            open there. An event that names no lane ends everything.
        slot: Members of the event itself that tell slots apart, beyond path, indexes and lane.
        types: The values of the member ``kind`` for which ``text`` holds; ``None`` for any.
        kind: The member of an event that says what it is.
        sequence: The member that numbers the events, counted anew on replay.
        by_position: Elements without ``index`` are told apart by position. Otherwise the text in them
            is neither joined nor cut, because a client cannot put it together.
        opaque: Where in an event something stands that a server signed or encrypted and wants back to the
            byte: it is not redacted. These paths may hold conditions on ``type``.
        ping: The event that only keeps the connection open: dropped wherever it comes, and it ends nothing.
        noise: What a replay adds when it is asked for noise.
        before_last: What stands in place of ``last`` and ``ends`` in a piece that is not the last.
        alone: Lists whose elements a client appends one to another, in the order of their coming: their
            position says nothing, and the text in them is joined and cut only where it is in the one
            element of its list. May also be a ``text`` path, where a text or such a list is sent.
        whole: Members that come with a whole text beside them (a tool's name, with all of its arguments):
            such a text is neither joined nor cut. One that is empty is only announced.
        in_order: No text goes on behind an event of another lane: clients do not tell lanes apart.
    """

    progress: Callable[[], StreamProgress]
    framing: Literal["sse", "ndjson", "json-array", "eventstream"] = "sse"
    text: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    last: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    totals: tuple[tuple[str, str], ...] = ()
    padding: tuple[str, ...] = ()
    stamps: tuple[str, ...] = ()
    scope: tuple[str, ...] = ()
    slot: tuple[str, ...] = ()
    types: frozenset[str] | None = None
    kind: str = "type"
    sequence: str | None = None
    by_position: bool = False
    before_last: Literal["null", "absent"] = "null"
    alone: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    in_order: bool = False
    opaque: tuple[str, ...] = ()
    ping: Event | None = None
    noise: Noise = Noise()


#: Where a value stands: the object, and the name in it.
Place: TypeAlias = "tuple[dict[str, Json], str]"

#: Which one it is: the type of the event, the path, the indexes on the way and the slot members.
Slot: TypeAlias = "tuple[str, str, tuple[Json, ...]]"


class Reading:
    """What a table finds in one event; places are in the event itself.

    Attributes:
        texts: The strings that are joined and cut, empty ones included.
        lists: The lists beside them.
        running: The running values that are there.
        latest: The same, as the path and indexes of the holder, the name in it, and the value.
        holders: The objects that may hold running values, by path and indexes.
        endings: Those of them that end the text, as the path and indexes of the holder and the name in it.
        firsts: What may be sent with the first piece only.
        totals: The running copies, each with the slot that it sums up.
        padding: What is dropped.
        stamps: What each event says anew.
        lanes: Where the event speaks.
        is_ambiguous: The slot of a text or a running value cannot be told: two claim it, or a tool has no
            index; or a text is whole.
    """

    __slots__ = (
        "by_position",
        "endings",
        "firsts",
        "holders",
        "is_ambiguous",
        "lanes",
        "latest",
        "lists",
        "padding",
        "running",
        "stamps",
        "texts",
        "totals",
    )

    def __init__(self, by_position: bool) -> None:
        self.by_position = by_position
        self.texts: dict[Slot, Place] = {}
        self.lists: dict[Slot, Place] = {}
        self.running: list[Place] = []
        self.latest: list[tuple[str, tuple[int, ...], str, Json]] = []
        self.holders: dict[tuple[str, tuple[int, ...]], dict[str, Json]] = {}
        self.endings: list[tuple[str, tuple[int, ...], str]] = []
        self.firsts: dict[Slot, Place] = {}
        self.totals: dict[Slot, tuple[Place, Slot]] = {}
        self.padding: list[Place] = []
        self.stamps: list[Place] = []
        self.lanes: set[tuple[str, Json]] = set()
        self.is_ambiguous = False

    @property
    def is_ended(self) -> bool:
        """Whether nothing is joined after this event."""
        return bool(self.endings)

    def name_slots(self, kind: str, members: tuple[Json, ...]) -> None:
        """Enter the type of the event and its ``slot`` members in the name of each slot of text."""
        self.texts = {(kind, path, at + members): place for (_, path, at), place in self.texts.items()}
        self.totals = {
            total: (place, (kind, path, at + members))
            for total, (place, (_, path, at)) in self.totals.items()
        }

    def drop_padding(self) -> None:
        """Remove the padding from the event."""
        for holder, name in self.padding:
            del holder[name]
        self.padding.clear()

    def strip(self, table: StreamTable, without_first: bool) -> None:
        """Leave in the event only what every piece of a text carries: the rest of a continuation."""
        self.drop_padding()
        for holder, name in self.texts.values():
            holder[name] = ""
        for (holder, name), _ in self.totals.values():
            holder[name] = ""
        for holder, name in self.lists.values():
            holder[name] = []
        self.blank_running(table)
        if without_first:
            for holder, name in self.firsts.values():
                del holder[name]

    def blank_running(self, table: StreamTable) -> None:
        """Put in place of the running values what stands there before the last piece."""
        for holder, name in self.running:
            if table.before_last == "null":
                holder[name] = None
            else:
                del holder[name]

    def is_divisible(self) -> bool:
        """Tell whether there is text that can be joined and cut, every total beside it ending with it."""
        if self.is_ambiguous:
            return False
        for (holder, name), slot in self.totals.values():
            if slot not in self.texts or not read_text((holder, name)).endswith(read_text(self.texts[slot])):
                return False
        return bool(self.texts)


class Said:
    """What a server has said at each ``first`` place of one stream.

    A server that says the role again in every event is played back as such; one that says it once, with
    the first piece of a text, must not be made to repeat it: clients concatenate.
    """

    __slots__ = ("_values",)

    def __init__(self) -> None:
        self._values: dict[Slot, Json] = {}

    def note(self, reading: Reading) -> bool:
        """Tell whether an event says something new at any of its ``first`` places, and remember it."""
        is_new = False
        for slot, (holder, name) in reading.firsts.items():
            item = holder[name]
            if slot not in self._values or self._values[slot] != item:
                self._values[slot] = item
                is_new = True
        return is_new


def read_text(place: Place) -> str:
    """Return the text at a place where the reader found one."""
    holder, name = place
    text = holder[name]
    assert isinstance(text, str)
    return text


class _Node:
    """One level of the paths of a table, merged."""

    __slots__ = (
        "announcers", "every", "holder_path", "holds_running", "is_alone", "named", "path", "rule", "sums_up"
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        self.path = path
        self.named: dict[str, _Node] = {}
        self.every: _Node | None = None
        self.rule = ""
        self.holds_running = False
        self.holder_path = ""
        self.sums_up = ""
        self.is_alone = False
        self.announcers: list[str] = []


@lru_cache
def table_reader(table: StreamTable) -> Callable[[dict[str, Json]], Reading]:
    """Return what reads events by a table; made once for each table.

    Raises:
        OptionError: A path of the table cannot be read, or holds an index or ``**``.
    """
    root = _merge_paths(table)
    types, kind_member = table.types, table.kind
    members = _slot_members(table)

    def read(value: dict[str, Json]) -> Reading:
        reading = Reading(table.by_position)
        _read_object(root, value, (), reading)
        kind = ""
        if types is not None:
            kind = str(value.get(kind_member))
            if kind not in types:
                reading.texts = {}
                return reading
        if kind or members:
            reading.name_slots(kind, tuple(_hashable(value.get(name)) for name in members))
        return reading

    return read


def _hashable(member: Json) -> Json:
    """Return a member that tells slots apart; a server may send a list where a number belongs."""
    return repr(member) if isinstance(member, (dict, list)) else member


def render_slot(slot: Slot, table: StreamTable) -> str:
    """Return the name of a slot as a person reads it: ``choices[0].delta.content``."""
    kind, path, indexes = slot
    count = path.count("[*]")
    for index in indexes[:count]:
        path = path.replace("[*]", f"[{index}]", 1)
    members = ", ".join(
        f"{name} {value}" for name, value in zip(_slot_members(table), indexes[count:], strict=False)
    )
    return (f"{kind}: " if kind else "") + path + (f" ({members})" if members else "")


def _slot_members(table: StreamTable) -> tuple[str, ...]:
    """Return the members of an event that tell slots apart: its lane, where that is one, and ``slot``."""
    lanes = (path for path in table.scope if path.isidentifier())
    return tuple(dict.fromkeys((*lanes, *table.slot)))


def _merge_paths(table: StreamTable) -> _Node:
    root = _Node("")
    for rule in ("text", "lists", "last", "ends", "first", "padding", "stamps", "scope"):
        for path in getattr(table, rule):
            _add_path(root, path, rule)
    for path, text in table.totals:
        _add_path(root, path, "totals").sums_up = text
    # These say something more of a place, which may have a rule as well.
    for path in table.alone:
        _find_node(root, path)[0].is_alone = True
    for path in table.whole:
        _, parent = _find_node(root, path)
        parent.announcers.append(path.rpartition(".")[2])
    return root


def _add_path(root: _Node, path: str, rule: str) -> _Node:
    node, parent = _find_node(root, path)
    node.rule = rule
    if rule in ("last", "ends"):
        parent.holds_running = True
        node.holder_path = parent.path
    return node


def _find_node(root: _Node, path: str) -> tuple[_Node, _Node]:
    """Return the node of a path, made where there is none, and the one above it."""
    node = parent = root
    for step in split_path(path):
        parent = node
        if step is EVERY:
            node.every = node.every or _Node(f"{node.path}[*]")
            node = node.every
        elif isinstance(step, str):
            node = node.named.setdefault(step, _Node(f"{node.path}.{step}" if node.path else step))
        else:
            raise OptionError(f"the path {path!r} of a stream table may hold names and [*] only")
    return node, parent


def _read_object(node: _Node, value: dict[str, Json], indexes: tuple[int, ...], reading: Reading) -> None:
    named = node.named
    if node.holds_running:
        # Two choices of one index, or one without and another that has its position.
        reading.is_ambiguous |= (node.path, indexes) in reading.holders
        reading.holders[node.path, indexes] = value
    # An id may be 0, and is said all the same.
    if node.announcers and any(value.get(name) not in (None, "") for name in node.announcers):
        texts = (value.get(name) for name, child in named.items() if child.rule == "text")
        reading.is_ambiguous |= any(texts)
    for name, item in value.items():
        child = named.get(name)
        if child is None:
            if node.every is not None and item is not None:
                _note(node.every, value, name, item, indexes, reading)
        elif item is None:
            if child.rule == "padding":
                reading.padding.append((value, name))
        else:
            if child.rule:
                _note(child, value, name, item, indexes, reading)
            # A text may also be an object or a list of parts, with texts of their own.
            if type(item) is dict:
                if child.named or not child.rule:
                    _read_object(child, item, indexes, reading)
            elif child.every is not None and type(item) is list:
                read = _read_succession if child.is_alone else _read_list
                read(child.every, item, indexes, reading)


def _read_list(node: _Node, items: list[Json], indexes: tuple[int, ...], reading: Reading) -> None:
    for position, item in enumerate(items):
        if type(item) is dict:
            index = item.get("index")
            if type(index) is int:
                _read_object(node, item, (*indexes, index), reading)
            else:
                count = len(reading.texts)
                _read_object(node, item, (*indexes, position), reading)
                reading.is_ambiguous |= not reading.by_position and len(reading.texts) > count


def _read_succession(node: _Node, items: list[Json], indexes: tuple[int, ...], reading: Reading) -> None:
    count = len(reading.texts)
    for item in items:
        if type(item) is dict:
            _read_object(node, item, (*indexes, 0), reading)
    # What is no text must not be said again with each piece of a text in another list.
    reading.is_ambiguous |= len(items) > 1 or len(reading.texts) - count != len(items)


def _note(
    node: _Node, holder: dict[str, Json], name: str, item: Json, indexes: tuple[int, ...], reading: Reading
) -> None:
    """Enter one place under its rule, if what stands there is what the rule speaks of."""
    rule = node.rule
    if rule == "text":
        if type(item) is str:
            slot: Slot = ("", node.path, indexes)
            if slot in reading.texts:
                reading.is_ambiguous = True
                slot = ("", node.path, (*indexes, len(reading.texts)))
            reading.texts[slot] = (holder, name)
    elif rule == "scope":
        if type(item) is int or type(item) is str:
            reading.lanes.add((node.path, item))
    elif rule == "first":
        if item or type(item) is int:
            reading.firsts["", f"{node.path}.{name}", indexes] = (holder, name)
    elif rule == "last" or rule == "ends":
        # Some servers send an empty signature, or empty metadata, with every event: that is a constant.
        if item or item == 0:
            reading.running.append((holder, name))
            reading.latest.append((node.holder_path, indexes, name, item))
            if rule == "ends":
                reading.endings.append((node.holder_path, indexes, name))
    elif rule == "lists":
        if type(item) is list:
            reading.lists["", node.path, indexes] = (holder, name)
    elif rule == "padding":
        reading.padding.append((holder, name))
    elif rule == "stamps":
        reading.stamps.append((holder, name))
    elif rule == "totals" and type(item) is str:
        reading.totals["", node.path, indexes] = ((holder, name), ("", node.sums_up, indexes))
