"""What does a replayed stream cost, when does its first event come, and what of a thousand calls at once?

The floor of a stream is a ``MockTransport`` whose events are ready bytes in a list. It is read in three ways:
as raw chunks, as lines, and by the openai SDK where it is installed.

    python benchmarks/bench_stream.py [--quick] [--json] [--versions]
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import httpx
import httpx2
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
from bench_record import streamed

import httpx_cassette.httpx2
from httpx_cassette import CassetteTransport

BODY = {**make_body(1, 2), "stream": True}


@dataclass
class Row:
    """One line of the table; times in microseconds of CPU."""

    what: str
    floor: float
    replay: float
    ratio: float
    goal: float
    met: str


def read_all(client: Any, how: str) -> None:
    """Read a stream to its end, raw or by lines."""
    with client.stream("POST", URL, json=BODY) as answer:
        for _ in answer.iter_raw() if how == "raw" else answer.iter_lines():
            pass


def ready_transports(path: Path) -> tuple[httpx.MockTransport, httpx2.MockTransport]:
    """Return floors that send the very chunks that replay sends."""
    with httpx.Client(transport=CassetteTransport(path)).stream("POST", URL, json=BODY) as answer:
        chunks = list(answer.iter_raw())
    kind = {"content-type": "text/event-stream"}
    return (
        httpx.MockTransport(lambda request: httpx.Response(200, headers=kind, stream=Ready(chunks))),
        httpx2.MockTransport(lambda request: httpx2.Response(200, headers=kind, stream=Ready(chunks))),
    )


def compare(
    what: str, goal: float, floor: Callable[[], Any], replay: Callable[[], Any], times: int, rounds: int
) -> Row:
    """Return the row of two ways to do the same."""
    samples = alternate(
        {
            "floor": lambda: [floor() for _ in range(times)],
            "replay": lambda: [replay() for _ in range(times)],
        },
        rounds,
    )
    low, high = (statistics.median(samples[name]) / times * 1e6 for name in ("floor", "replay"))
    ratios = [high / low for low, high in zip(samples["floor"], samples["replay"], strict=True)]
    return make_row(what, low, high, statistics.median(ratios), goal)


def make_row(what: str, floor: float, replay: float, ratio: float, goal: float) -> Row:
    """Return a row, and whether its goal is met."""
    return Row(what, floor, replay, ratio, goal, met((ratio, goal)))


def at_once(transport: Any, calls: int) -> None:
    """Make calls at once from one event loop."""

    async def main() -> None:
        async with httpx.AsyncClient(transport=transport) as client:
            await asyncio.gather(*(client.post(URL, json=make_body(number, 2)) for number in range(calls)))

    asyncio.run(main())


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the table row by row."""
    times, rounds = (20, 5) if quick else (100, 15)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.jsonl"
        recorder = CassetteTransport(path, mode="record", next_transport=httpx.MockTransport(streamed))
        read_all(httpx.Client(transport=recorder), "raw")
        floor, floor2 = ready_transports(path)
        ready, replay = httpx.Client(transport=floor), httpx.Client(transport=CassetteTransport(path))
        for how in ("raw", "lines"):
            yield compare(
                f"by {how}",
                1.3,
                partial(read_all, ready, how),
                partial(read_all, replay, how),
                times,
                rounds,
            )
        if importlib.util.find_spec("openai"):
            yield from sdk_row(path, floor2, times, rounds)
        firsts = first_chunks({"floor": ready, "replay": replay}, repeat(BODY, times * 5))
        low, high = (statistics.median(firsts[name]) * 1e6 for name in ("floor", "replay"))
        yield make_row("first event", low, high, high / low, 1.3)
        calls = 200 if quick else 1000
        many = Path(folder) / "many.jsonl"
        fill(many, calls, 2)
        content = httpx.Response(200, json=make_answer(1)).content
        kind = {"content-type": "application/json"}
        answer = httpx.MockTransport(lambda request: httpx.Response(200, headers=kind, content=content))
        yield compare(
            f"{calls} at once",
            1.3,
            lambda: at_once(answer, calls),
            lambda: at_once(CassetteTransport(many), calls),
            1,
            rounds,
        )


def sdk_row(path: Path, floor: httpx2.MockTransport, times: int, rounds: int) -> Iterator[Row]:
    """Yield the row of a stream that the openai SDK reads."""
    openai: Any = importlib.import_module("openai")

    def read(transport: Any) -> Callable[[], None]:
        client = openai.OpenAI(api_key="-", http_client=openai.DefaultHttpx2Client(transport=transport))

        def run() -> None:
            for _ in client.chat.completions.create(**BODY):
                pass

        return run

    yield compare(
        "by openai", 1.3, read(floor), read(httpx_cassette.httpx2.CassetteTransport(path)), times, rounds
    )


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
