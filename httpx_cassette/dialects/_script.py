"""A stream stored as a script: its events, with every run of text deltas joined into one.

Decides which events of a stream are one run of text (``assemble``), and how a run is divided again
(``cut``).  What is text stands in a :class:`StreamTable`; nothing here knows a provider, a transport
or a file.

- Order within a slot is sacred: an event joins only the last run of its slot, and only if all the rest
  of it is the same.  What differs starts a run of its own; nothing without a rule is dropped.
- What comes in a lane ends the runs of that lane, except runs of the same kind: parallel tool calls
  come interleaved.
- What a server sends once is sent once: members that clients concatenate stand in the first piece
  only.  What it repeats in every event is repeated.
- A ping says nothing, wherever it comes: it is dropped, and the text round it is one.
- Cutting and assembling are inverse: ``assemble(cut(script, n))`` is the script, for every ``n``.
  ``prove`` shows it for one stream before the stream is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias, cast

from .._call import Json
from .._parsing import is_same_json
from .._paths import render_path
from .._rules import join_text
from ._cutting import cut, cut_bytes, stored_event
from ._framing import FRAMINGS, Event, load_event_json
from ._reading import Reading, Said, Slot, StreamProgress, StreamTable, read_text, render_slot, table_reader

__all__ = [
    "Script",
    "StreamProgress",
    "StreamTable",
    "assemble",
    "cut",
    "cut_bytes",
    "prove",
    "replay_verbatim",
    "texts",
    "verbatim",
]

#: Stored events, each ``{"json": ...}`` or ``{"text": ...}``, and ``event``, ``id``, ``extra`` where sent.
Script: TypeAlias = list[Json]

#: Chunk sizes at which a script is proved: each character alone, and runs that straddle words.
PROOF_SIZES = (1, 7)


def assemble(events: Iterable[Event], table: StreamTable) -> Script:
    """Return the script of a stream, each run of text joined into one event."""
    assembler = _Assembler(table)
    for event in events:
        assembler.add(event)
    return assembler.finish()


def verbatim(events: Iterable[Event]) -> Script:
    """Return the script of a stream of unknown format: every event as it came."""
    return [_store(event) for event in events]


def replay_verbatim(script: Script) -> Iterator[Event]:
    """Yield the events of a verbatim script."""
    for stored in script:
        yield stored_event(cast("dict[str, Json]", stored))


def texts(source: Iterable[Event | Json], table: StreamTable) -> dict[str, str]:
    """Return the joined text of each slot, of events as received or of a script."""
    read = table_reader(table)
    names: dict[Slot, str] = {}
    pieces: dict[str, list[str]] = {}
    for item in source:
        stored = _store(item) if isinstance(item, Event) else cast("dict[str, Json]", item)
        value = stored.get("json")
        if isinstance(value, dict):
            for slot, place in read(value).texts.items():
                if slot not in names:
                    names[slot] = render_slot(slot, table)
                # Two texts of one event may claim one slot: in their order they are its text.
                pieces.setdefault(names[slot], []).append(read_text(place))
    return {name: join_text(found) for name, found in pieces.items()}


def prove(events: list[Event], script: Script, table: StreamTable) -> str | None:
    """Show that a script is as good as the events it was made of.

    It is cut, written, read and assembled again, and its text compared with the text received.

    Returns:
        ``None``, or one sentence that names what differs and quotes none of the text.
    """
    received, kept = texts(events, table), texts(script, table)
    for slot in {**received, **kept}:
        if received.get(slot) != kept.get(slot):
            return f"the joined text of {slot} differs from the text received"
    for size in _proof_sizes(script, table):
        again = assemble(_read_back(cut(script, table, size), table), table)
        if again != script:
            place = _first_difference(again, script)
            return f"cut into pieces of {size} and assembled again, the script differs at {place}"
    return None


def _proof_sizes(script: Script, table: StreamTable) -> list[int]:
    """Return the chunk sizes to prove at: larger ones where pieces so small would keep the caller waiting."""
    read = table_reader(table)
    total = text = 0
    for stored in script:
        value = cast("dict[str, Json]", stored).get("json")
        if isinstance(value, dict):
            reading = read(value)
            total = max([total, *(len(read_text(place)) for place, _ in reading.totals.values())])
            text = max([text, *(len(read_text(place)) for place in reading.texts.values())])
    # A piece takes 7 us to cut, write and read, 16 us as a binary message, and carries a running copy whole:
    # 2,000 pieces of a copy of 50,000 characters are 50 MB.
    pieces = 20_000 if FRAMINGS[table.framing].writer is None else 8_000
    least = max(total // 2_000, text // pieces)
    return list(dict.fromkeys(max(size, least) for size in PROOF_SIZES))


def _read_back(events: Iterable[Event], table: StreamTable) -> Iterator[Event]:
    framing = FRAMINGS[table.framing]
    parser = framing.parser()
    for chunk in framing.frame(map(framing.render, events)):
        yield from parser.feed(chunk)
    yield from parser.flush()


def _first_difference(one: Json, other: Json) -> str:
    """Return the path of the first place where two documents differ."""
    steps: list[str | int] = []
    while True:
        if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
            step = next(name for name in one if one[name] != other[name])
            steps.append(step)
            one, other = one[step], other[step]
        elif isinstance(one, list) and isinstance(other, list):
            pairs = enumerate(zip(one, other, strict=False))
            index = next((index for index, (mine, yours) in pairs if mine != yours), None)
            if index is None:
                # One is the beginning of the other.
                return f"event {min(len(one), len(other))}" if not steps else render_path(steps)
            steps.append(index)
            one, other = one[index], other[index]
        else:
            return render_path(steps)


def _store(event: Event) -> dict[str, Json]:
    """Return one event as a script holds it."""
    stored: dict[str, Json] = {}
    if event.event is not None:
        stored["event"] = event.event
    if event.id is not None:
        stored["id"] = event.id
    if event.extra:
        stored["extra"] = [[name, value] for name, value in event.extra]
    try:
        stored["json"] = load_event_json(event.data)
    except ValueError:
        stored["text"] = event.data
    return stored


class _Run:
    """A run of text that may go on: the stored event, and what has joined it."""

    __slots__ = (
        "active", "fields", "is_open", "kinds", "lanes", "number", "pieces", "reading", "rest", "tries"
    )  # fmt: skip

    def __init__(self, event: Event, reading: Reading, rest: dict[str, Json], number: int) -> None:
        self.number = number  # where it stands in the script
        self.fields = event[1:]
        self.reading = reading  # its places are in the stored event
        self.rest = rest  # what an event that joins must be, apart from its text
        self.pieces = {slot: [read_text(place)] for slot, place in reading.texts.items()}
        self.active = {slot for slot, (text,) in self.pieces.items() if text}
        self.kinds = {slot[:2] for slot in self.pieces}
        self.lanes = reading.lanes
        self.is_open = True
        self.tries = 3  # attempts at a shortcut

    def close(self) -> None:
        self.is_open = False
        for slot, (holder, name) in self.reading.texts.items():
            holder[name] = join_text(self.pieces[slot])


class _Shortcut:
    """Recognises the next event of a run by its characters, without parsing it.

    Most servers write events that differ in one string.  An event that begins and ends with the same
    characters as the one before, with one string literal between, is equal to it apart from that text.
    """

    __slots__ = ("_after", "_before", "_pieces", "_run", "_size")

    def __init__(self, run: _Run, before: str, after: str) -> None:
        self._run = run
        (self._pieces,) = run.pieces.values()
        self._before = before
        self._after = after
        self._size = len(before) + len(after)

    def takes(self, event: Event) -> bool:
        """Join the event to the run, if it can be seen that it belongs there."""
        data = event.data
        if not (
            self._run.is_open
            and data.startswith(self._before)
            and data.endswith(self._after)
            and len(data) >= self._size
            and event[1:] == self._run.fields
        ):
            return False
        literal = data[len(self._before) - 1 : len(data) - len(self._after) + 1]
        try:
            # Nothing but one literal is read as a string here: a quote within would end it early.
            text = load_event_json(literal)
        except ValueError:
            return False
        assert isinstance(text, str)
        self._pieces.append(text)
        return True


class _Running(NamedTuple):
    """A running value, and the last stored event that has it: its number, and the holder in it."""

    number: int
    holder: dict[str, Json]
    name: str
    latest: Json


class _Assembler:
    """Takes the events of one stream and keeps its script."""

    def __init__(self, table: StreamTable) -> None:
        self._table = table
        self._read = table_reader(table)
        self._ping = load_event_json(table.ping.data) if table.ping is not None else None
        self._said = Said()
        self._script: Script = []
        self._open: dict[frozenset[Slot], _Run] = {}
        self._shortcut: _Shortcut | None = None
        self._running: dict[tuple[str, tuple[int, ...], str], _Running] = {}

    def add(self, event: Event) -> None:
        """Take the next event."""
        if self._shortcut is not None and self._shortcut.takes(event):
            return
        stored = _store(event)
        value = stored.get("json")
        if not isinstance(value, dict):
            self._close_runs(None)
            self._script.append(stored)
            return
        if value == self._ping and self._is_named_as_ping(event):
            return
        reading = self._read(value)
        is_new = self._said.note(reading)
        run = self._open.get(frozenset(reading.texts)) if reading.is_divisible() and not is_new else None
        if run is not None:
            if self._joins(run, event, value, reading):
                return
            stored = _store(event)
            value = cast("dict[str, Json]", stored["json"])
            reading = self._read(value)
        self._close_runs(reading)
        self._script.append(stored)
        reading.drop_padding()
        holders = [holder for holder, _ in reading.running]
        self._note_running(reading, holders, len(self._script) - 1)
        if reading.is_divisible():
            self._begin_run(event, reading, is_new)

    def finish(self) -> Script:
        """Return the script."""
        self._close_runs(None)
        for running in self._running.values():
            running.holder[running.name] = running.latest
        if self._table.sequence is not None:
            _renumber(self._script, self._table.sequence)
        return self._script

    def _is_named_as_ping(self, event: Event) -> bool:
        """Tell whether an event with the data of a ping carries nothing else."""
        ping = self._table.ping
        return ping is not None and event[1:] in (ping[1:], (None, *ping[2:]))

    def _begin_run(self, event: Event, reading: Reading, is_new: bool) -> None:
        if reading.is_ended or not any(map(read_text, reading.texts.values())):
            return
        rest = cast("dict[str, Json]", load_event_json(event.data))
        self._strip(rest, self._read(rest), is_new)
        self._open[frozenset(reading.texts)] = _Run(event, reading, rest, len(self._script) - 1)

    def _is_overtaken(self, run: _Run, reading: Reading) -> bool:
        """Tell whether what ends the text of an event was said behind the run that it would join."""
        found = (self._running.get(ending) for ending in reading.endings)
        return any(running is not None and running.number > run.number for running in found)

    def _note_running(self, reading: Reading, holders: list[dict[str, Json]], number: int) -> None:
        """Remember the running values of an event, and which stored event they are sent with.

        Of runs side by side the one that was heard last need not be the last in the script: the value that
        came last is sent with the event that a client will read last.
        """
        for holder, (path, indexes, name, latest) in zip(holders, reading.latest, strict=True):
            place = (path, indexes, name)
            before = self._running.get(place)
            if before is None or before.number <= number:
                self._running[place] = _Running(number, holder, name, latest)
            else:
                self._running[place] = before._replace(latest=latest)

    def _strip(self, value: dict[str, Json], reading: Reading, without_first: bool = False) -> None:
        reading.strip(self._table, without_first)
        for holder, name in reading.stamps:
            holder[name] = ""
        if self._table.sequence is not None:
            value.pop(self._table.sequence, None)

    def _joins(self, run: _Run, event: Event, value: dict[str, Json], reading: Reading) -> bool:
        """Join an event to a run if it belongs there; the event is of no more use after it."""
        pieces = {slot: read_text(place) for slot, place in reading.texts.items()}
        active = {slot for slot, text in pieces.items() if text}
        if not active <= run.active or event[1:] != run.fields or (reading.is_ended and not active):
            return False
        if self._is_overtaken(run, reading):
            return False
        totals = {slot: read_text(place) for slot, (place, _) in reading.totals.items()}
        lists = {slot: holder[name] for slot, (holder, name) in reading.lists.items()}
        may_be_usual = not (
            reading.padding
            or reading.stamps
            or totals
            or reading.running
            or any(lists.values())
            or self._table.sequence
        )
        for slot, total in totals.items():
            if slot not in run.reading.totals:
                return False
            place, text_slot = run.reading.totals[slot]
            if total != read_text(place) + pieces[text_slot]:
                return False
        self._strip(value, reading)
        if value != run.rest or not is_same_json(value, run.rest):
            return False
        for slot, text in pieces.items():
            run.pieces[slot].append(text)
        for slot, total in totals.items():
            (holder, name), _ = run.reading.totals[slot]
            holder[name] = total
        for slot, found in lists.items():
            holder, name = run.reading.lists[slot]
            cast("list[Json]", holder[name]).extend(cast("list[Json]", found))
        holders = [run.reading.holders[path, indexes] for path, indexes, _, _ in reading.latest]
        for holder, (_, _, name, latest) in zip(holders, reading.latest, strict=True):
            holder[name] = latest
        self._note_running(reading, holders, run.number)
        if reading.is_ended:
            self._close(run)
        elif may_be_usual and len(pieces) == 1 and active and run.tries:
            self._look_for_shortcut(run, event.data, *pieces.values())
        return True

    def _look_for_shortcut(self, run: _Run, data: str, text: str) -> None:
        """Find the text in the characters of an event that has joined, if it stands there once."""
        run.tries -= 1
        before, quoted, after = data.partition(f'"{text}"')
        if not quoted or quoted in after:
            return
        # What was found may also be another member, or a colon between two strings: try.
        try:
            probe = cast("dict[str, Json]", load_event_json(f'{before}""{after}'))
        except ValueError:
            return
        reading = self._read(probe)
        is_emptied = not any(map(read_text, reading.texts.values()))
        self._strip(probe, reading)
        if is_emptied and probe == run.rest:
            self._shortcut = _Shortcut(run, before + '"', '"' + after)

    def _close_runs(self, reading: Reading | None) -> None:
        """Close what an event that stands on its own ends; one that is not JSON ends everything."""
        if not self._open:
            return
        slots: set[Slot] = set() if reading is None else set(reading.texts)
        lanes = set() if reading is None else reading.lanes
        kinds = {slot[:2] for slot in slots}
        for run in list(self._open.values()):
            is_elsewhere = lanes and run.lanes and lanes.isdisjoint(run.lanes)
            is_beside = bool(lanes and run.lanes) and kinds == run.kinds
            may_go_on = (is_elsewhere or is_beside) and not self._table.in_order
            if not slots.isdisjoint(run.pieces) or not may_go_on:
                self._close(run)

    def _close(self, run: _Run) -> None:
        run.close()
        del self._open[frozenset(run.pieces)]


def _renumber(script: Script, member: str) -> None:
    """Count the stored events anew, from the number of the first, so that a script depends on no cut."""
    number: int | None = None
    for stored in script:
        value = cast("dict[str, Json]", stored).get("json")
        if isinstance(value, dict) and type(value.get(member)) is int:
            number = cast(int, value[member]) if number is None else number + 1
            value[member] = number
