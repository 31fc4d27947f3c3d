"""What a stream says, read by hand from its bytes, and where two documents first differ.

Nothing here uses the package under test: SSE is divided by the standard's own words, and which member is
text is listed once more, by the judge of the format.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["NAMED", "Difference", "Rules", "Said", "first_difference", "read_stream"]


#: The member under which the name of a binary message is entered in its document.
NAMED = "(name)"


@dataclass(frozen=True)
class Rules:
    """Which members of a format's events are not simply said once; paths are written ``choices[*].text``.

    Args:
        texts: Strings that are joined.
        lists: Lists that are joined.
        running: Members of which the last value counts.
        totals: Copies of a text as far as it has come: path -> path of the text.
        dropped: Members that need not be kept.
        place: Members of an event that say of what it speaks, the first of them its type. Nothing is compared
            between events of different places but, within a lane, their order.
        lane: The member that names the lane, where events of several may come by turns otherwise.
        ends: Types of events that end the stream.
        is_last: Tells of another event that it ends the stream.
        failures: Types of events that say that it failed.
        fails: Returns what another event says of a failure.
        pings: Types of events that need not be kept.
        whole: Types of events in which no string is text.
        number: The member that numbers the events.
        positions: Lists whose elements without an index are told apart by position.
        sequences: Lists that go on with each event, of elements of which some are texts: path -> members that
            end a text.
        has_arrays: Whether a stream may also be one array of its events.
        has_lines: Whether a stream may also be one event a line.
        kind: The member that says of what type an event is; ``NAMED`` where its name does.
    """

    texts: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    totals: dict[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    place: tuple[str, ...] = ()
    lane: str = ""
    ends: frozenset[Any] = frozenset()
    is_last: Callable[[dict[str, Any]], bool] = lambda document: False
    failures: frozenset[str] = frozenset()
    fails: Callable[[dict[str, Any]], Any] = lambda document: None
    pings: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    number: str = ""
    positions: frozenset[str] = frozenset()
    sequences: dict[str, frozenset[str]] = field(default_factory=dict)
    has_arrays: bool = False
    has_lines: bool = False
    kind: str = "type"


@dataclass
class Said:
    """What one stream says.

    Args:
        texts: Slot -> its joined text, in the order in which the slots first said something.
        lists: Path -> the joined list.
        running: Path -> the last value.
        fields: Path -> its values in order, what is repeated in a row once; ``null`` is no value. What stands
            beside a text is counted for its slot: slots may be interleaved otherwise than they were.
        sequences: Path -> its elements in order, texts that follow one another as one.
        totals: Path -> whether each copy was the text as far as it had come.
        counts: Path -> how often it was said.
        longest: Slot -> the longest piece of its text.
        dropped: Path -> how often there was something that need not be kept.
        numbers: The first number and whether it is counted on from there, once one was seen.
        events: How many events there were; the end marker is one.
        is_terminated: Whether the end marker came.
        error: What an error event says.
    """

    texts: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    running: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, list[Any]] = field(default_factory=dict)
    sequences: dict[str, list[Any]] = field(default_factory=dict)
    totals: dict[str, bool] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    longest: dict[str, int] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    numbers: tuple[int, bool] | None = None
    events: int = 0
    is_terminated: bool = False
    error: str | None = None

    @property
    def speakers(self) -> list[str]:
        """The slots in the order in which they first said something."""
        return [slot for slot, text in self.texts.items() if text]

    def constant(self, path: str) -> str | None:
        """Return what was said at a path again and again, if it never was anything else."""
        values = self.fields.get(path, [])
        is_constant = len(values) == 1 and self.counts[path] > 1 and isinstance(values[0], str)
        return values[0] if is_constant and values[0] else None


class Difference(NamedTuple):
    """Where two documents first differ.

    Args:
        path: The path.
        expected: What stands there in the first.
        actual: What stands there in the second.
    """

    path: str
    expected: Any
    actual: Any


def read_stream(body: bytes, rules: Rules) -> Said:
    """Return what the bytes of a stream say, as far as the end marker."""
    reader = _Reader(rules)
    if rules.has_arrays and body.lstrip()[:1] == b"[":
        _read_array(body.decode().strip(), reader)
        return reader.said
    if rules.has_lines and body.lstrip()[:1] == b"{":
        _read_lines(body.decode(), reader)
        return reader.said
    if body.startswith(b"\0"):
        _read_messages(body, reader)
        return reader.said
    text = re.sub(r"\r\n|\r", "\n", body.decode().removeprefix("\ufeff"))
    for block in re.split(r"\n{2,}", text):
        fields: dict[str, list[str]] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:  # Without one it is a comment, or nothing.
                fields.setdefault(name, []).append(value.removeprefix(" "))
        if fields:
            reader.read_event(fields)
        if reader.said.is_terminated:
            break
    return reader.said


def _read_array(text: str, reader: _Reader) -> None:
    """Read the elements of an array as far as there are any."""
    decode = json.JSONDecoder().raw_decode
    position = 1
    while not text.startswith("]", position):
        gap = re.compile(r"[\s,]*").match(text, position)
        position = gap.end() if gap else position
        try:
            document, position = decode(text, position)
        except ValueError:
            return  # It was cut short.
        reader.read_event({"data": [json.dumps(document)]})
        position += len(text) - position - len(text[position:].lstrip())
    reader.said.is_terminated = True


def _read_lines(text: str, reader: _Reader) -> None:
    """Read the documents of the lines as far as there are any."""
    for line in text.split("\n"):
        if line.strip():
            reader.read_event({"data": [line]})
        if reader.said.is_terminated:
            return


def _read_messages(body: bytes, reader: _Reader) -> None:
    """Read AWS's binary messages as botocore divides them, as far as there are any."""
    from botocore.eventstream import EventStreamBuffer, ParserError

    buffer = EventStreamBuffer()
    buffer.add_data(body)
    try:
        for message in buffer:
            _read_message(dict(message.headers), message.payload.decode(), reader)
            if reader.said.is_terminated:
                return
    except ParserError as error:
        reader.said.error = type(error).__name__


def _read_message(headers: dict[str, Any], data: str, reader: _Reader) -> None:
    name = headers.pop(":event-type", None)
    # Those that every event has are compared with botocore's eyes, and are not told.
    if headers == {":content-type": "application/json", ":message-type": "event"}:
        headers.clear()
    if headers.get(":message-type") in ("error", "exception"):
        reader.said.error = data or str(headers)
    if name == "chunk":
        envelope = json.loads(data)
        reader.said.dropped.update(envelope.keys() - {"bytes"})
        data = base64.b64decode(envelope["bytes"]).decode()
    reader.read_event({"data": [data], "event": [name], **{key: [value] for key, value in headers.items()}})


class _Reader:
    def __init__(self, rules: Rules) -> None:
        self.said = Said()
        self._rules = rules
        # Of the event that is being read: slots that speak, values that are said, copies with their slots.
        self._slots: list[str] = []
        self._values: list[tuple[str, Any]] = []
        self._totals: dict[str, tuple[str, str]] = {}
        self._is_whole = False
        self._lanes: set[Any] = set()
        self._next = 0

    def read_event(self, fields: dict[str, list[str]]) -> None:
        said, rules = self.said, self._rules
        said.events += 1
        data = "\n".join(fields.pop("data", []))
        said.is_terminated = data == "[DONE]"
        try:
            document = json.loads(data)
        except ValueError:
            document = None
        if rules.kind == NAMED and isinstance(document, dict):
            # Of a chunk its only member says what it is.
            (name,) = fields.get("event", [""])
            document = {NAMED: next(iter(document), "") if name == "chunk" else name, **document}
        if isinstance(document, dict) and document.get("type") in rules.pings:
            said.dropped[document["type"]] += 1
            return
        place = self._enter(document) if isinstance(document, dict) else ""
        for name, values in fields.items():
            self._note(f"{place}<{name}>", values)
            if name == "error" or (name == "event" and values == ["error"]):
                said.error = data or values[0]
        if document is None:
            self._note("<data>", data)
            return
        self._slots, self._values, self._totals = [], [], {}
        self._read(document, place, "")
        slots = f" beside {', '.join(self._slots)}" if self._slots else ""
        for path, value in self._values:
            self._note(path if "[" in path else path + slots, value)
        # Now that the text beside them is known, whichever came first.
        for path, (total, text) in self._totals.items():
            said.totals[path] = said.totals.get(path, True) and total == said.texts.get(text, "")

    def _enter(self, document: dict[str, Any]) -> str:
        """Take note of what an event is, and return how the paths in it begin."""
        said, rules = self.said, self._rules
        kind = document.get(rules.kind)
        if document.get("error") or kind in rules.failures or rules.fails(document):
            said.error = json.dumps(document.get("error", document))
        said.is_terminated |= kind in rules.ends or rules.is_last(document)
        self._is_whole = kind in rules.whole
        number = document.get(rules.number)
        if isinstance(number, int):
            first, is_counted_on = said.numbers or (number, True)
            said.numbers = first, is_counted_on and number == (self._next if said.numbers else number)
            self._next = number + 1
        if not rules.place:
            return ""
        place = " ".join(str(document[name]) for name in rules.place if name in document)
        lane = document.get(rules.lane)
        self._lanes.add(lane)
        # What is in no lane comes between what is in any.
        for each in self._lanes if lane is None else (lane,):
            self._note(f"<order in lane {each}>", place)
        return f"{place}: "

    def _read(self, value: Any, path: str, shape: str) -> None:
        said, rules = self.said, self._rules
        if value is None:
            return
        if shape in rules.dropped:
            said.dropped[shape] += 1
        elif shape in rules.running:
            said.running[path] = value
        elif shape in rules.totals:
            said.running[path] = value
            self._totals[path] = (value, _sibling(path, rules.totals[shape]))
        elif shape in rules.lists and isinstance(value, list):
            said.lists.setdefault(path, []).extend(value)
        elif shape in rules.texts and isinstance(value, str) and not self._is_whole:
            self._read_text(value, path)
        elif shape in rules.sequences and isinstance(value, list):
            for item in value:
                self._read_element(item, path, rules.sequences[shape])
        elif isinstance(value, dict):
            for name, child in value.items():
                if shape or name != rules.number:
                    below = f".{name}" if shape else name
                    self._read(child, path + below, shape + below)
        elif isinstance(value, list) and value and all(_is_indexed(item) for item in value):
            for item in value:
                self._read(item, f"{path}[{item['index']}]", f"{shape}[*]")
        elif isinstance(value, list) and shape in rules.positions:
            for position, item in enumerate(value):
                index = item["index"] if _is_indexed(item) else position
                self._read(item, f"{path}[{index}]", f"{shape}[*]")
        else:
            self._values.append((path, value))

    def _read_text(self, value: str, path: str) -> None:
        self._slots.append(path)
        texts, longest = self.said.texts, self.said.longest
        before = texts.get(path, "")
        if value and not before:
            texts.pop(path, None)  # Its place in the order is where it first says something.
        texts[path] = before + value
        longest[path] = max(longest.get(path, 0), len(value))

    def _read_element(self, item: Any, path: str, ends: frozenset[str]) -> None:
        """Take note of an element of a sequence: a text goes on the one before, if nothing ended that."""
        sequence = self.said.sequences.setdefault(path, [])
        text = _text_of(item)
        if text is not None:
            others = {name: value for name, value in item.items() if name not in ends}
            rest = _with_text(others, "")
            names = sorted(name for name in others if name != "text")
            self._read_text(text, f"{path} {names}" if names else path)
            before = _text_of(sequence[-1]) if sequence else None
            if before is not None and _with_text(sequence[-1], "") == rest:
                sequence[-1] = _with_text(item, before + text)
                return
        sequence.append(item)

    def _note(self, path: str, value: Any) -> None:
        values = self.said.fields.setdefault(path, [])
        self.said.counts[path] += 1
        if not values or values[-1] != value:
            values.append(value)


def _text_of(item: Any) -> str | None:
    """Return the text of an element: its own, or that of the one element of a list in it."""
    if not isinstance(item, dict):
        return None
    if isinstance(item.get("text"), str):
        return str(item["text"])
    lists = [value for value in item.values() if isinstance(value, list)]
    return _text_of(lists[0][0]) if len(lists) == 1 and len(lists[0]) == 1 else None


def _with_text(item: dict[str, Any], text: str) -> dict[str, Any]:
    """Return an element that has a text with another in its place."""
    if isinstance(item.get("text"), str):
        return {**item, "text": text}
    return {
        name: [_with_text(value[0], text)] if isinstance(value, list) else value
        for name, value in item.items()
    }


def _sibling(path: str, wanted: str) -> str:
    """Return the path of another member at the same indexes."""
    for index in re.findall(r"\[[0-9]+\]", path):
        wanted = wanted.replace("[*]", index, 1)
    return wanted


def _is_indexed(item: Any) -> bool:
    return isinstance(item, dict) and type(item.get("index")) is int


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT = _Absent()


def first_difference(expected: Any, actual: Any, path: str = "") -> Difference | None:
    """Return where two documents first differ, or ``None``; the order of members is part of neither."""
    if type(expected) is not type(actual):
        return Difference(path, expected, actual)
    if isinstance(expected, dict):
        for name in expected | actual:
            one, other = (side.get(name, _ABSENT) for side in (expected, actual))
            found = first_difference(one, other, f"{path}.{name}" if path else str(name))
            if found is not None:
                return found
        return None
    if isinstance(expected, list):
        for index, pair in enumerate(itertools.zip_longest(expected, actual, fillvalue=_ABSENT)):
            found = first_difference(*pair, f"{path}[{index}]")
            if found is not None:
                return found
        return None
    return None if expected == actual else Difference(path, expected, actual)
