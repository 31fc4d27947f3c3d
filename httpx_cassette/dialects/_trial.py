"""A stream table tried on a stream that was received: is nothing lost, and how much is joined?

It is the proof that a recording makes, with its findings as data and its faults as errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._call import Json
from .._errors import CassetteError, OptionError
from ._dialect import Dialect
from ._framing import FRAMINGS, Event, load_event_json
from ._reading import StreamTable
from ._script import assemble, cut, prove, texts
from ._soundness import check_sound

__all__ = ["CheckedStream", "check_stream"]


@dataclass(frozen=True, slots=True)
class CheckedStream:
    """What a dialect makes of a stream.

    Args:
        received: How many events came.
        stored: How many a recording holds: where text is joined, fewer.
        texts: The joined text of each slot, by its path.
        finish: The finish reason.
        script: The events as a recording holds them.
    """

    received: int
    stored: int
    texts: dict[str, str]
    finish: Json
    script: list[Json]


def check_stream(
    dialect: Dialect, body: bytes, *, framing: str | None = None, request: Json = None
) -> CheckedStream:
    """Try the stream table of a dialect on the body of an answer, whole and as it came over the wire.

    It is read, assembled, cut into pieces of 1 and 7 characters, written, read and assembled again; the same
    must come of it, and every text must be the one that was received. The dialect need not be registered.

    Args:
        dialect: The dialect.
        body: The bytes of the stream, its content encoding undone: ``curl -N``, or a file of a test.
        framing: ``sse``, ``ndjson``, ``json-array`` or ``eventstream``; by default that of
            ``dialect.stream``.
        request: The body of the request, where it says what ends the stream.

    Returns:
        What a recording would hold, for a test to compare with what was said.

    Raises:
        OptionError: The dialect could not be registered, or there is no such framing.
        CassetteError: It has no table for such a stream; or the stream holds an error, or does not end, so
            that it would not be recorded; or something of it would be lost, so that it would be stored event
            by event; or it comes in binary messages, and botocore, which reads them, is not installed. What
            the stream holds is not quoted.
    """
    check_sound(dialect)
    if framing is not None and framing not in FRAMINGS:
        raise OptionError(
            f"framing={framing!r} is not understood; it takes one of {', '.join(map(repr, FRAMINGS))}"
        )
    framing = framing or (dialect.stream.framing if dialect.stream is not None else "sse")
    table = dialect.stream_in(framing)
    if table is None:
        raise CassetteError(
            f"the dialect {dialect.name!r} has no table for streams of the framing {framing!r}; "
            f"give it stream=StreamTable(framing={framing!r}, ...)"
        )
    events, finish = _watch(body, table, request)
    script = assemble(events, table)
    fault = prove(events, script, table)
    if fault is not None:
        raise CassetteError(f"the stream would be stored event by event, because {fault}")
    if _said_late(events, table, request) != _said_late(list(cut(script, table, 1)), table, request):
        raise CassetteError(
            "a replay in small pieces would go on behind its finish reason, which comes with a text; name it "
            "in ends= of the table, so that it comes with the last piece"
        )
    return CheckedStream(len(events), len(script), texts(script, table), finish, script)


def _watch(body: bytes, table: StreamTable, request: Json) -> tuple[list[Event], Json]:
    """Return the events of a stream up to its end, and the finish reason."""
    progress = table.progress()
    progress.expect(request)
    events: list[Event] = []
    for event in _read(body, table):
        if progress.is_terminated:
            break
        events.append(event)
        progress.observe(event, _value(event))
        if progress.error is not None:
            raise CassetteError(
                f"the stream holds an error and would not be recorded: event {len(events):,}, {_kind(event)}"
            )
    if not (progress.is_complete or progress.is_terminated):
        raise CassetteError(
            "the stream does not end and would not be recorded; say in the progress of the table what ends "
            f"it: {_describe_last(events)}"
        )
    return events, progress.finish


def _describe_last(events: list[Event]) -> str:
    return f"the last event of {len(events):,} is {_kind(events[-1])}" if events else "it holds no event"


def _kind(event: Event) -> str:
    """Return what an event is, not what it says: reports are shown to others, and it may quote a secret."""
    value = _value(event)
    if isinstance(value, dict):
        return f"an object with the members {sorted(value)}" if value else "an empty object"
    size = f"{len(event.data):,} characters"
    return f"a list, {size}" if isinstance(value, list) else f"no object, {size}"


def _read(body: bytes, table: StreamTable) -> Iterator[Event]:
    parser = FRAMINGS[table.framing].parser()
    yield from parser.feed(body)
    yield from parser.flush()


def _value(event: Event) -> Json:
    try:
        return load_event_json(event.data)
    except ValueError:
        return None


def _said_late(events: list[Event], table: StreamTable, request: Json) -> dict[str, str]:
    """Return what is said behind the finish reason."""
    progress = table.progress()
    progress.expect(request)
    for number, event in enumerate(events, 1):
        progress.observe(event, _value(event))
        if progress.is_complete:
            return {slot: text for slot, text in texts(events[number:], table).items() if text}
    return {}
