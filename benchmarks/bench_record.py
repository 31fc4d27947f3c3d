"""What does recording add to a real call, and does the size of the cassette matter?

The floor is the same client on the same upstream without a cassette. ``delay`` is the CPU time that recording
adds before the caller sees the first chunk of a stream.

    python benchmarks/bench_record.py [--quick] [--json] [--versions]
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from _measure import (
    URL,
    Ready,
    alternate,
    fill,
    first_chunks,
    make_answer,
    make_body,
    met,
    parse_options,
    print_rows,
)

from httpx_cassette import Cassette, CassetteTransport

_NUMBERS = count(10_000_000)


@dataclass
class Row:
    """One line of the table; times in microseconds of CPU a call, the goal for what is added."""

    what: str
    recordings: int
    fsync: str
    floor: float
    recording: float
    added: float
    goal: float | None
    met: str


def plain(request: httpx.Request) -> httpx.Response:
    """Answer as a model would."""
    return httpx.Response(200, json=make_answer(1))


def events() -> list[bytes]:
    """Return the events of a stream of about 1 KB of text."""
    text = make_answer(1)["choices"][0]["message"]["content"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in text.split()]
    chunks: list[dict[str, Any]]
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    return [b"data: %b\n\n" % json.dumps({**head, "choices": [chunk]}).encode() for chunk in chunks] + [
        b"data: [DONE]\n\n"
    ]


EVENTS = events()


def streamed(request: httpx.Request) -> httpx.Response:
    """Answer as a model would, in events."""
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Ready(EVENTS))


def ask(client: httpx.Client, calls: int, *, stream: bool) -> None:
    """Make calls that were never made before."""
    for _ in range(calls):
        body = make_body(next(_NUMBERS), 2)
        if not stream:
            client.post(URL, json=body)
            continue
        with client.stream("POST", URL, json={**body, "stream": True}) as answer:
            for _ in answer.iter_raw():
                pass


def measure(what: str, path: Path, recordings: int, *, fsync: bool, calls: int, rounds: int) -> Row:
    """Return the row of one case."""
    upstream = httpx.MockTransport(streamed if what == "stream" else plain)
    cassette = Cassette(path, fsync=fsync)
    recorder = httpx.Client(transport=CassetteTransport(cassette, mode="record", next_transport=upstream))
    floor = httpx.Client(transport=upstream)
    stream = what == "stream"
    ask(recorder, 1, stream=stream)
    samples = alternate(
        {
            "floor": lambda: ask(floor, calls, stream=stream),
            "recording": lambda: ask(recorder, calls, stream=stream),
        },
        rounds,
    )
    low, high = (statistics.median(samples[name]) / calls * 1e6 for name in ("floor", "recording"))
    # What waits for the disk has none.
    goal = None if fsync else 60.0
    added = high - low
    return Row(what, recordings, "yes" if fsync else "no", low, high, added, goal, met((added, goal)))


def measure_delay(path: Path, calls: int, rounds: int) -> Row:
    """Return how much later the first chunk of a stream is seen."""
    upstream = httpx.MockTransport(streamed)
    cassette = Cassette(path, fsync=False)
    clients = {
        "floor": httpx.Client(transport=upstream),
        "recording": httpx.Client(
            transport=CassetteTransport(cassette, mode="record", next_transport=upstream)
        ),
    }
    bodies = ({**make_body(next(_NUMBERS), 2), "stream": True} for _ in range(calls * rounds))
    samples = first_chunks(clients, bodies)
    low, high = (statistics.median(samples[name]) * 1e6 for name in ("floor", "recording"))
    return Row("first chunk", 0, "no", low, high, high - low, None, met())


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the table row by row."""
    calls, rounds = (50, 5) if quick else (200, 11)
    with tempfile.TemporaryDirectory() as folder:
        for recordings in (10, 1_000) if quick else (10, 1_000, 100_000):
            path = Path(folder) / f"{recordings}.jsonl"
            fill(path, recordings, 2)
            for what in ("plain", "stream"):
                yield measure(what, path, recordings, fsync=False, calls=calls, rounds=rounds)
        yield measure("plain", Path(folder) / "durable.jsonl", 10, fsync=True, calls=calls, rounds=rounds)
        yield measure_delay(Path(folder) / "delay.jsonl", calls, rounds)


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
