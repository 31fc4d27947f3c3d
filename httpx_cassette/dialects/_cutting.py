"""A script cut into the events of a stream again.

Decides how many pieces a text becomes and what each of them carries.
Each event of a script is written once as a template, into which the pieces of its text are set one by
one: a piece costs one string, and the first is handed on before the rest exists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, repeat
from typing import cast

from .._call import Json
from ._framing import FRAMINGS, Event, Framing, dump_event_json, load_event_json
from ._reading import Reading, Said, StreamTable, read_text, table_reader

__all__ = ["cut", "cut_bytes", "stored_event"]


def cut(script: list[Json], table: StreamTable, chunk_size: int) -> Iterator[Event]:
    """Yield the events of a script, every text in pieces of so many code points.

    Args:
        script: Stored events; they are not changed.
        table: The format.
        chunk_size: Code points of text per event, 1 or more.
    """
    for event, pieces in _divide(script, table, chunk_size):
        if pieces is None:
            yield event
        else:
            _, name, ident, extra = event
            for batch in pieces.fill(b"", b""):
                for data in batch:
                    yield Event(data.decode(), name, ident, extra)


def cut_bytes(script: list[Json], table: StreamTable, chunk_size: int) -> Iterator[bytes]:
    """Yield the bytes of a body with the events that :func:`cut` yields, in half the time.

    One event in a chunk; a framing that closes ends with a chunk of its own.

    Args:
        script: As for ``cut``.
        table: As for ``cut``.
        chunk_size: As for ``cut``.
    """
    framing = FRAMINGS[table.framing]
    return framing.frame(_cut_bytes(script, table, chunk_size, framing))


def _cut_bytes(script: list[Json], table: StreamTable, size: int, framing: Framing) -> Iterator[bytes]:
    render = framing.render
    for event, pieces in _divide(script, table, size):
        if pieces is None:
            yield render(event)
        elif framing.writer is not None:
            write = framing.writer(event)
            for batch in pieces.fill(b"", b""):
                yield from map(write, batch)
        else:
            # The data come last in an event of any other framing.
            before, _, after = render(event._replace(data="@")).rpartition(b"@")
            for batch in pieces.fill(before, after):
                yield from batch


def stored_event(stored: dict[str, Json]) -> Event:
    """Return one stored event as it is sent."""
    data = dump_event_json(stored["json"]) if "json" in stored else cast(str, stored["text"])
    if len(stored) == 1:
        return Event(data)
    extra = cast("list[tuple[str, str]]", stored.get("extra", []))
    return Event(
        data,
        cast("str | None", stored.get("event")),
        cast("str | None", stored.get("id")),
        tuple((name, value) for name, value in extra),
    )


def _divide(
    script: list[Json], table: StreamTable, size: int
) -> Iterator[tuple[Event, _OneText | _Pattern | None]]:
    """Yield each event of a script, and how it is divided if it is."""
    read = table_reader(table)
    said = Said()
    numbers = _Numbers(table.sequence)
    for item in script:
        stored = cast("dict[str, Json]", item)
        event = stored_event(stored)
        value = stored.get("json")
        if isinstance(value, dict):
            reading = read(value)
            is_new = said.note(reading)
            longest = max([len(read_text(place)) for place in reading.texts.values()], default=0)
            if longest > size and reading.is_divisible():
                number = numbers.take_from(value)
                simple = None if number or is_new else _find_one_text(event.data, reading, size)
                yield event, simple or _Pattern(event.data, table, is_new, size, number)
                continue
            if numbers.are_in(value):
                event = event._replace(data=dump_event_json(numbers.set_in(value)))
        yield event, None


class _Numbers:
    """The sequence numbers of one replay: counted on from the first that the recording has."""

    def __init__(self, member: str | None) -> None:
        self._member = member
        self._next: int | None = None

    def are_in(self, value: dict[str, Json]) -> bool:
        return self._member is not None and type(value.get(self._member)) is int

    def take_from(self, value: dict[str, Json]) -> Iterator[str] | None:
        """Return the numbers of the pieces of an event, as they are wanted, if it is numbered."""
        if not self.are_in(value):
            return None
        return self._count(cast(int, value[cast(str, self._member)]))

    def set_in(self, value: dict[str, Json]) -> dict[str, Json]:
        """Return a numbered event with its number."""
        member = cast(str, self._member)
        return {**value, member: int(next(self._count(cast(int, value[member]))))}

    def _count(self, first: int) -> Iterator[str]:
        while True:
            number = first if self._next is None else self._next
            self._next = number + 1
            yield str(number)


class _OneText:
    """An event whose pieces differ in one text and in nothing else: what most streams consist of."""

    def __init__(self, before: str, text: str, after: str, size: int) -> None:
        self._before = before
        self._text = text
        self._after = after
        self._size = size

    def fill(self, before: bytes, after: bytes) -> Iterator[list[bytes]]:
        """Yield the pieces, some at a time, between what goes before and after an event."""
        before += self._before.encode()
        after = self._after.encode() + after
        for batch in _escape_in_batches(self._text, self._size):
            yield [before + piece.encode() + after for piece in batch]


def _find_one_text(written: str, reading: Reading, size: int) -> _OneText | None:
    """Return an event as one text with all the rest before and after it, if that is what it is."""
    if len(reading.texts) != 1 or reading.running or reading.totals:
        return None
    if any(holder[name] for holder, name in reading.lists.values()):
        return None
    text = read_text(*reading.texts.values())
    literal = dump_event_json(text)
    before, found, after = written.partition(literal)
    # It may stand elsewhere too, or be written otherwise: a lone surrogate anywhere makes all of it ASCII.
    if not found or literal in after:
        return None
    # Only the text ":" could be found in front of its place, between the name and itself, and a text of
    # one character is never cut.
    return _OneText(f'{before}"', text, f'"{after}', size)


class _Pattern:
    """An event written with marks in the places of its texts: as first piece, as any, as last."""

    def __init__(
        self, written: str, table: StreamTable, without_first: bool, size: int, number: Iterator[str] | None
    ) -> None:
        self._value = cast("dict[str, Json]", load_event_json(written))
        self._table = table
        self._without_first = without_first
        self._reading = reading = table_reader(table)(self._value)
        texts = {slot: read_text(place) for slot, place in reading.texts.items()}
        self._count = -(-max(map(len, texts.values())) // size)
        self._fields: list[Iterator[str]] = [
            chain(chain.from_iterable(_escape_in_batches(text, size)), repeat("")) for text in texts.values()
        ]
        places = list(reading.texts.values())
        for place, slot in reading.totals.values():
            self._fields.append(_escape_totals(read_text(place), texts[slot], size))
            places.append(place)
        self._number = len(places)
        if number is not None:
            self._fields.append(number)
            places.append((self._value, cast(str, table.sequence)))
        mark = "@"
        while f'"{mark}' in written:
            mark += "@"
        self._mark = re.compile(f'"{mark}([0-9]+)"')
        for index, (holder, name) in enumerate(places):
            holder[name] = f"{mark}{index}"

    def fill(self, before: bytes, after: bytes) -> Iterator[list[bytes]]:
        """As :meth:`_OneText.fill`; can be done once."""
        reading = self._reading
        running = [holder[name] for holder, name in reading.running]
        reading.blank_running(self._table)
        yield [before + self._fill(self._write()) + after]
        for holder, name in reading.lists.values():
            holder[name] = []
        if self._without_first:
            for holder, name in reading.firsts.values():
                del holder[name]
        if self._count > 2:
            template = self._write()
            for _ in range(self._count - 2):
                yield [before + self._fill(template) + after]
        for (holder, name), item in zip(reading.running, running, strict=True):
            holder[name] = item
        yield [before + self._fill(self._write()) + after]

    def _write(self) -> list[str]:
        """Return what stands between the fields; the odd members are the numbers of the fields."""
        template = self._mark.split(dump_event_json(self._value))
        for index in range(1, len(template), 2):
            if int(template[index]) != self._number:
                template[index - 1] += '"'
                template[index + 1] = f'"{template[index + 1]}'
        return template

    def _fill(self, template: list[str]) -> bytes:
        filled = list(template)
        filled[1::2] = [next(self._fields[int(field)]) for field in template[1::2]]
        return "".join(filled).encode()


#: Set between pieces, so that many are escaped at once; text that has it is escaped piece by piece.
_SEAM, _WRITTEN_SEAM = "\x01", "\\u0001"


def _escape_in_batches(text: str, size: int) -> Iterator[list[str]]:
    """Yield the pieces of a text as they stand in a JSON string.

    One piece first, so that it need not wait for the rest; then more and more at a time.
    """
    start, count = 0, 1
    while start < len(text):
        stop = min(start + size * count, len(text))
        pieces = [text[index : index + size] for index in range(start, stop, size)]
        joined = _SEAM.join(pieces)
        if joined.count(_SEAM) == len(pieces) - 1 and _WRITTEN_SEAM not in joined:
            yield dump_event_json(joined)[1:-1].split(_WRITTEN_SEAM)
        else:
            yield [dump_event_json(piece)[1:-1] for piece in pieces]
        start, count = stop, min(count * 4, 256)


def _escape_totals(total: str, text: str, size: int) -> Iterator[str]:
    """Yield the running total that ends with a text sent in pieces; then the whole without end."""
    base = len(total) - len(text)
    ends = range(base + size, len(total), size)
    whole = dump_event_json(total)[1:-1]
    return chain((dump_event_json(total[:end])[1:-1] for end in ends), repeat(whole))
