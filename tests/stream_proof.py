"""What the stream table of every format has to stand: assembled, cut and proved, whatever was sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from httpx_cassette._call import Json
from httpx_cassette.dialects._framing import FRAMINGS, Event, dump_event_json, load_event_json
from httpx_cassette.dialects._reading import StreamProgress, StreamTable
from httpx_cassette.dialects._script import assemble, cut, cut_bytes, prove, texts

P = TypeVar("P", bound=StreamProgress)

#: Recorded traffic; it lies beside the repository and is not part of it.
CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
with_corpus = pytest.mark.skipif(not CORPUS.exists(), reason=f"the recorded traffic is not at {CORPUS}")

#: Bytes of each chunk of the wire; characters of each piece of a text.
WIRE_SIZES = [1, 3, 5, 10**9]
SIZES = [1, 2, 7, 64, 10**9]


class Case(NamedTuple):
    """One stream.

    Args:
        id: What is special about it.
        events: What is received, each as the function of the format takes it that makes an event.
        script: What is stored of it, likewise.
        has_whole: Whether a text of it stands beside others in its event, and is never cut.
    """

    id: str
    events: Sequence[Any]
    script: Sequence[Any]
    has_whole: bool = False


def cases(listed: Sequence[Case]) -> pytest.MarkDecorator:
    """Parametrise a test by cases."""
    return pytest.mark.parametrize("case", listed, ids=[case.id for case in listed])


def parse(body: bytes, table: StreamTable, size: int = 10**9) -> Iterator[Event]:
    """Read a body that arrives in chunks of a size."""
    parser = FRAMINGS[table.framing].parser()
    for start in range(0, len(body), size):
        yield from parser.feed(body[start : start + size])
    yield from parser.flush()


def written(events: Iterable[Event], table: StreamTable) -> bytes:
    """Return the body of a stream."""
    framing = FRAMINGS[table.framing]
    return b"".join(framing.frame(map(framing.render, events)))


def entry(event: Event) -> Json:
    """Return what stands for an event in a script."""
    name: Mapping[str, Json] = {} if event.event is None else {"event": event.event}
    value = _load(event)
    return {**name, "text": event.data} if value is None else {**name, "json": value}


def check_assembled(case: Case, event: Callable[[Any], Event], table: StreamTable, size: int) -> None:
    """Expect the script of a case, wherever the chunks of the wire end."""
    events = list(parse(written(map(event, case.events), table), table, size))

    script = assemble(events, table)

    assert [entry(event(each)) for each in case.script] == script
    assert texts(events, table) == texts(script, table)
    assert prove(events, script, table) is None


def check_cut(case: Case, event: Callable[[Any], Event], table: StreamTable, size: int) -> None:
    """Expect the same script, cut, written and read; a size without end cuts nothing."""
    script = [entry(event(each)) for each in case.script]

    again = check_lossless(script, table, size)

    assert script == [entry(event(each)) for each in case.script]
    assert case.has_whole or all(
        len(text) <= size for each in again for text in texts([each], table).values()
    )
    if size == 10**9:
        assert len(script) == len(again)


def check_lossless(script: list[Json], table: StreamTable, size: int) -> list[Event]:
    """Expect that cutting is the inverse of assembling; return the events that a client is sent."""
    again = list(parse(b"".join(cut_bytes(script, table, size)), table, 3))

    assert list(cut(script, table, size)) == again
    assert script == assemble(again, table)
    assert script == load_event_json(dump_event_json(script))
    return again


def check_any(events: list[Event], table: StreamTable, size: int) -> list[Event]:
    """Expect that no character is lost or moved within its slot; return the events that a client is sent."""
    script = assemble(events, table)

    assert texts(events, table) == texts(script, table)
    assert prove(events, script, table) is None
    return check_lossless(script, table, size)


def watched(progress: P, events: Iterable[Event]) -> P:
    """Let a stream pass by, and return how far it has come."""
    for event in events:
        progress.observe(event, _load(event))
    return progress


def recorded(name: str, is_of_format: Callable[[Any], bool] = lambda exchange: True) -> Iterator[Any]:
    """Yield the exchanges of one file of the corpus that are streams."""
    with (CORPUS / name).open(encoding="utf-8") as lines:
        for line in lines:
            exchange = json.loads(line)
            if "stream" in exchange["tags"] and is_of_format(exchange):
                yield exchange


def share_kept(exchanges: Iterable[Any], *tables: StreamTable) -> float:
    """Prove recorded streams, each by the table of its framing; return events stored per event received."""
    received = kept = 0
    for exchange in exchanges:
        body = exchange["response"]["body_text"].encode()
        framing = "json-array" if body.startswith(b"[") else "sse"
        (table,) = (each for each in tables if each.framing == framing)
        events = list(parse(body, table))
        script = assemble(events, table)
        received += len(events)
        kept += len(script)

        assert prove(events, script, table) is None, exchange["id"]
    return kept / received


def _load(event: Event) -> Any:
    try:
        return load_event_json(event.data)
    except ValueError:
        return None
