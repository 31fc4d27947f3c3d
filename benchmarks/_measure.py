"""What all benchmarks share: seeded data, CPU time, alternating cases, a table or JSON.

A figure is a ratio against a floor measured in the same run, in alternation and in random order, because a
ratio survives another machine and a noisy neighbour. Times are CPU time of this process.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import httpx2

import httpx_cassette

__all__ = [
    "URL",
    "Ready",
    "alternate",
    "answer_with",
    "fill",
    "first_chunks",
    "make_answer",
    "make_body",
    "make_embedding",
    "met",
    "parse_options",
    "print_rows",
    "spread",
    "timed",
]

URL = "https://api.openai.com/v1/chat/completions"
WORDS = "the model answers a question about weather trains invoices parsers and a river in words".split()


def make_body(number: int, kilobytes: float) -> dict[str, Any]:
    """Return a chat request of about that size, different for each number, in a few messages."""
    chance = random.Random(number)
    filler = " ".join(chance.choices(WORDS, k=int(kilobytes * 165)))
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
    text = " ".join(random.Random(-number).choices(WORDS, k=120))
    message = {"role": "assistant", "content": text, "refusal": None}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1750000000,
        "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": {"prompt_tokens": 400, "completion_tokens": 150, "total_tokens": 550},
    }


class Ready(httpx.SyncByteStream, httpx2.SyncByteStream):
    """A stream of chunks that are ready at once, for either library."""

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks


def make_embedding(number: int) -> dict[str, Any]:
    """Return an answer of 1,536 numbers."""
    chance = random.Random(-number)
    vector = [chance.gauss(0, 0.03) for _ in range(1536)]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": vector}],
        "model": "text-embedding-3-small",
        "usage": {"prompt_tokens": 400, "total_tokens": 400},
    }


def answer_with(content: bytes) -> Callable[[httpx.Request], httpx.Response]:
    """Return a server that has one answer."""
    return lambda request: httpx.Response(200, headers={"content-type": "application/json"}, content=content)


def fill(
    path: Path,
    recordings: int,
    kilobytes: float,
    url: str = URL,
    answer: Callable[[httpx.Request], httpx.Response] | None = None,
) -> None:
    """Record the calls 0 to ``recordings`` through the product itself."""
    answers = iter(range(recordings))
    upstream = httpx.MockTransport(
        answer or (lambda request: httpx.Response(200, json=make_answer(next(answers))))
    )
    transport = httpx_cassette.CassetteTransport(path, mode="record", next_transport=upstream, fsync=False)
    if sys.stderr.isatty():
        print(f"recording {recordings:,} calls of {kilobytes} KB ...", end="\r", file=sys.stderr)
    with httpx.Client(transport=transport) as client:
        for number in range(recordings):
            client.post(url, json=make_body(number, kilobytes)).raise_for_status()


def timed(call: Callable[[], object]) -> float:
    """Return the CPU seconds of a call, without garbage collection in between."""
    gc.collect()
    gc.disable()
    started = time.process_time()
    call()
    spent = time.process_time() - started
    gc.enable()
    return spent


def alternate(
    cases: Mapping[str, Callable[[], object]], rounds: int, seed: int = 7
) -> dict[str, list[float]]:
    """Run every case once a round, in random order; return the CPU seconds of each run."""
    chance = random.Random(seed)
    samples: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        order = list(cases)
        chance.shuffle(order)
        for name in order:
            samples[name].append(timed(cases[name]))
    return samples


def first_chunks(
    clients: Mapping[str, httpx.Client], bodies: Iterable[dict[str, Any]], seed: int = 7
) -> dict[str, list[float]]:
    """Stream each body from every client, in random order; return the CPU seconds until each first chunk."""
    chance = random.Random(seed)
    samples: dict[str, list[float]] = {name: [] for name in clients}
    for body in bodies:
        for name in chance.sample(list(clients), len(clients)):
            started = time.process_time()
            with clients[name].stream("POST", URL, json=body) as answer:
                chunks = answer.iter_raw()
                next(chunks)
                samples[name].append(time.process_time() - started)
                for _ in chunks:
                    pass
    return samples


def spread(values: Iterable[float]) -> float:
    """Return the distance between the quartiles."""
    quartiles = statistics.quantiles(values, n=4)
    return quartiles[2] - quartiles[0]


def met(*pairs: tuple[float, float | None]) -> str:
    """Tell for a table whether figures, each with its goal, are at most their goals; ``None`` is no goal."""
    goals = [value <= goal for value, goal in pairs if goal is not None]
    return ("yes" if all(goals) else "no") if goals else "-"


def versions() -> str:
    """Return the versions and the machine."""
    packages = ", ".join(
        f"{name} {version(name)}" for name in ("httpx_cassette", "httpx", "httpx2", "orjson")
    )
    return f"{packages}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def parse_options(doc: str | None, **arguments: dict[str, Any]) -> argparse.Namespace:
    """Read the command line that all benchmarks understand, and what one adds to it."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.add_argument("--quick", action="store_true", help="fewer calls and rounds")
    parser.add_argument("--versions", action="store_true", help="print versions and stop")
    for name, settings in arguments.items():
        parser.add_argument(f"--{name}", **settings)
    options = parser.parse_args()
    if options.versions:
        print(versions())
        sys.exit(0)
    if not options.json:
        print(versions())
    return options


def print_rows(rows: Iterable[Any], *, as_json: bool) -> None:
    """Print dataclass rows as they come, under one heading."""
    heading = False
    for row in rows:
        if as_json:
            print(json.dumps(asdict(row)), flush=True)
            continue
        names = [field.name for field in fields(row)]
        if not heading:
            print("  ".join(f"{name.replace('_', ' '):>12}" for name in names))
            heading = True
        print("  ".join(f"{_cell(getattr(row, name)):>12}" for name in names), flush=True)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
