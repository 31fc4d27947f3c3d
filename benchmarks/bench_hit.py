"""What does a hit cost, and does the size of the cassette matter?

The floor is an ``httpx.MockTransport`` that builds one ready ``Response``: what any transport that answers
from memory must pay. Both sides send ``json=`` through a real client, in one process, in alternating blocks
whose order is shuffled; the figure is CPU time, and a ratio, because a ratio survives another machine.

Each call is one that this process has not seen before, so nothing can come out of a memo: the whole key is
computed, redaction is on, and the line is read and its seal checked.

    python benchmarks/bench_hit.py [--quick] [--json] [--versions] [--sizes 2] [--recordings 10 1000 100000]
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import httpx2

import httpx_cassette
import httpx_cassette.httpx2
from httpx_cassette import Cassette, Redaction

URL = "https://api.openai.com/v1/chat/completions"
WORDS = "the model answers a question about weather trains invoices parsers and the length of a river in words".split()
GOALS = {"httpx": {2: 1.3, 50: 1.6, 1000: 1.6}, "httpx2": {2: 1.45, 50: 1.6, 1000: 1.6}}


@dataclass
class Row:
    """One line of the table; times in microseconds of CPU."""

    library: str
    kilobytes: int
    recordings: int
    floor: float
    hit: float
    ratio: float
    spread: float
    redaction_share: float
    goal: float


def make_body(number: int, kilobytes: int) -> dict[str, Any]:
    """Return a chat request of about that size, different for each number, in a few messages."""
    chance = random.Random(number)
    filler = " ".join(chance.choices(WORDS, k=kilobytes * 150))
    third = len(filler) // 3
    return {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": f"You are a careful assistant, number {number}.\n{filler[:third]}"},
            {"role": "user", "content": filler[third : 2 * third]},
            {"role": "assistant", "content": "I see.\nGo on."},
            {"role": "user", "content": filler[2 * third :]},
        ],
        "temperature": 0.2,
        "max_tokens": 300,
    }


def make_answer(number: int) -> dict[str, Any]:
    """Return an answer of about 1 KB."""
    text = " ".join(random.Random(-number).choices(WORDS, k=150))
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1750000000,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 150, "total_tokens": 550},
    }


def fill(path: Path, recordings: int, kilobytes: int) -> None:
    """Record the calls 0 to ``recordings`` through the product itself."""
    answers = iter(range(recordings))
    upstream = httpx.MockTransport(lambda request: httpx.Response(200, json=make_answer(next(answers))))
    transport = httpx_cassette.CassetteTransport(path, mode="record", next_transport=upstream, fsync=False)
    with httpx.Client(transport=transport) as client:
        for number in range(recordings):
            client.post(URL, json=make_body(number, kilobytes)).raise_for_status()


def clients(library: Any, path: Path, content: bytes) -> dict[str, Any]:
    """Return the sides that are compared, each a client of the library."""
    module = httpx_cassette if library is httpx else httpx_cassette.httpx2

    def ready(request: Any) -> Any:
        return library.Response(200, headers={"content-type": "application/json"}, content=content)

    plain = Redaction(strong=False)
    return {
        "floor": library.Client(transport=library.MockTransport(ready)),
        "hit": library.Client(transport=module.CassetteTransport(Cassette(path))),
        "without redaction": library.Client(transport=module.CassetteTransport(Cassette(path), redact=plain)),
    }


def blocks(numbers: list[int], size: int) -> Iterator[list[int]]:
    """Yield blocks of numbers."""
    for start in range(0, len(numbers) - size + 1, size):
        yield numbers[start : start + size]


def timed(call: Callable[[], None]) -> float:
    """Return the CPU seconds of a call, without garbage collection in between."""
    gc.collect()
    gc.disable()
    started = time.process_time()
    call()
    spent = time.process_time() - started
    gc.enable()
    return spent


def measure(library: Any, path: Path, recordings: int, kilobytes: int, calls: int, rounds: int) -> Row:
    """Return the row of one size."""
    chance = random.Random(7)
    content = json.dumps(make_answer(1)).encode()
    block = min(calls, recordings)
    samples: dict[str, list[float]] = {}
    for _ in range(rounds):
        # New clients each round: no line has been checked yet, no key computed.
        sides = clients(library, path, content)
        numbers = chance.sample(range(recordings), block)
        bodies = [make_body(number, kilobytes) for number in numbers]
        for client in sides.values():
            client.post(URL, json=make_body(0, kilobytes))  # The index is built here, not in a hit.
        order = list(sides)
        chance.shuffle(order)
        for name in order:
            client = sides[name]

            def run(client: Any = client, bodies: list[Any] = bodies) -> None:
                for body in bodies:
                    client.post(URL, json=body)

            samples.setdefault(name, []).append(timed(run) / block * 1e6)
        for client in sides.values():
            client.close()
    ratios = [hit / floor for hit, floor in zip(samples["hit"], samples["floor"], strict=True)]
    floor, hit, plain = (statistics.median(samples[name]) for name in ("floor", "hit", "without redaction"))
    return Row(
        library=library.__name__,
        kilobytes=kilobytes,
        recordings=recordings,
        floor=floor,
        hit=hit,
        ratio=statistics.median(ratios),
        spread=statistics.quantiles(ratios, n=4)[2] - statistics.quantiles(ratios, n=4)[0],
        redaction_share=(hit - plain) / floor,
        goal=GOALS[library.__name__].get(kilobytes, 1.6),
    )


def versions() -> str:
    """Return the versions and the machine."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("httpx_cassette", "httpx", "httpx2", "orjson"))
    return f"{packages}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--quick", action="store_true", help="fewer calls and rounds")
    parser.add_argument("--versions", action="store_true", help="print versions and stop")
    parser.add_argument("--sizes", type=int, nargs="+", default=[2], help="kilobytes of a request")
    parser.add_argument("--recordings", type=int, nargs="+", default=[10, 1000, 100_000])
    options = parser.parse_args()
    if options.versions:
        print(versions())
        return
    if not options.json:
        print(versions())
        print(f"{'library':8} {'KB':>5} {'N':>8} {'floor us':>9} {'hit us':>9} {'ratio':>6} {'+-':>5} {'redaction':>9} {'goal':>5}")
    calls, rounds = (200, 5) if options.quick else (1000, 15)
    for kilobytes in options.sizes:
        for recordings in options.recordings:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "bench.jsonl"
                if sys.stderr.isatty():
                    print(f"recording {recordings:,} calls of {kilobytes} KB ...", end="\r", file=sys.stderr)
                fill(path, recordings, kilobytes)
                for library in (httpx, httpx2):
                    row = measure(library, path, recordings, kilobytes, calls, rounds * (20 if recordings < 100 else 1))
                    print_row(row, as_json=options.json)


def print_row(row: Row, *, as_json: bool) -> None:
    """Print one row."""
    if as_json:
        print(json.dumps(asdict(row)), flush=True)
        return
    print(
        f"{row.library:8} {row.kilobytes:>5} {row.recordings:>8,} {row.floor:>9.1f} {row.hit:>9.1f} {row.ratio:>6.2f} "
        f"{row.spread:>5.2f} {row.redaction_share:>8.1%} {row.goal:>5.2f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
