"""What does a hit cost, and does the size of the cassette matter?

The floor is a ``MockTransport`` that builds one ready ``Response``: what any transport that answers from
memory must pay. Both sides send ``json=`` through a real client.

Each call is the first of its kind for its client, which is new in each round, so that nothing comes out of a
memo: the whole key is computed, redaction is on, and the line is read and its seal checked. (The rounds of a
small cassette ask for the same recordings, each with new clients.) The index is built by another call before.

The answers beside ``chat`` are embeddings of 1,536 numbers, in no known format: they come back to the byte,
as a cassette's own lines are written (``own``) or as other servers write.

    python benchmarks/bench_hit.py [--quick] [--json] [--versions] [--sizes 2 50 1000]
                                   [--answers chat own compact indented]
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
from _measure import (
    URL,
    alternate,
    answer_with,
    fill,
    make_answer,
    make_body,
    make_embedding,
    met,
    parse_options,
    print_rows,
    spread,
)

import httpx_cassette
import httpx_cassette.httpx2
from httpx_cassette import Cassette
from httpx_cassette._line import dump_json
from httpx_cassette._redact import scan_json

#: Size of a request in kilobytes -> how many recordings are tried.
SIZES = {2: (10, 1_000, 100_000), 50: (10, 10_000), 1000: (10, 200)}
GOALS = {("httpx", 2): 1.3, ("httpx2", 2): 1.45}

EMBEDDINGS = "https://api.openai.com/v1/embeddings"
#: How an embedding is written.
WRITERS: dict[str, Callable[[Any], bytes]] = {
    "own": dump_json,
    "compact": lambda document: json.dumps(document, separators=(",", ":")).encode(),
    "indented": lambda document: json.dumps(document, indent=2).encode(),
}
#: Of embeddings one size is measured.
EMBEDDED = (2, 200)


@dataclass
class Row:
    """One line of the table; times in microseconds of CPU, ``redaction`` as a share of the floor."""

    library: str
    answer: str
    kilobytes: int
    recordings: int
    floor: float
    hit: float
    ratio: float
    spread: float
    redaction: float
    goal: float | None
    met: str


def content_of(answer: str) -> bytes:
    """Return the body of an answer."""
    if answer == "chat":
        return json.dumps(make_answer(1)).encode()
    return WRITERS[answer](make_embedding(1))


def make_clients(library: Any, path: Path, content: bytes) -> dict[str, Any]:
    """Return the sides that are compared, each a client of the library."""
    module = httpx_cassette if library is httpx else httpx_cassette.httpx2

    def ready(request: Any) -> Any:
        return library.Response(200, headers={"content-type": "application/json"}, content=content)

    return {
        "floor": library.Client(transport=library.MockTransport(ready)),
        "hit": library.Client(transport=module.CassetteTransport(Cassette(path))),
    }


def measure(
    library: Any, path: Path, answer: str, recordings: int, kilobytes: int, calls: int, rounds: int
) -> Row:
    """Return the row of one size."""
    content, url = content_of(answer), URL if answer == "chat" else EMBEDDINGS
    samples: dict[str, list[float]] = {"floor": [], "hit": [], "redaction": []}
    block = min(calls, recordings - 1)
    for round_number in range(rounds):
        # New clients each round: no line has been checked yet, no key computed.
        clients = make_clients(library, path, content)
        numbers = random.Random(round_number).sample(range(recordings), block + 1)
        first, *bodies = [make_body(number, kilobytes) for number in numbers]
        for client in clients.values():
            client.post(url, json=first)  # The index is built here, not in a hit.

        def run(client: Any, bodies: list[Any] = bodies) -> None:
            for body in bodies:
                client.post(url, json=body)

        def redact(bodies: list[Any] = bodies) -> None:
            for body in bodies:
                scan_json(body)

        cases: dict[str, Callable[[], object]] = {"redaction": redact}
        cases |= {name: lambda client=client: run(client) for name, client in clients.items()}  # type: ignore[misc]
        for name, spent in alternate(cases, 1, seed=round_number).items():
            samples[name] += [seconds / block * 1e6 for seconds in spent]
        for client in clients.values():
            client.close()
    ratios = [hit / floor for hit, floor in zip(samples["hit"], samples["floor"], strict=True)]
    floor, hit, redaction = (statistics.median(samples[name]) for name in ("floor", "hit", "redaction"))
    ratio, name = statistics.median(ratios), library.__name__
    goal = GOALS.get((name, kilobytes), 1.6) if answer == "chat" else None
    return Row(
        name,
        answer,
        kilobytes,
        recordings,
        floor,
        hit,
        ratio,
        spread(ratios),
        redaction / floor,
        goal,
        met((ratio, goal)),
    )


def rows(sizes: list[int], answers: list[str], *, quick: bool) -> Iterator[Row]:
    """Yield the table row by row."""
    if "chat" in answers:
        yield from rows_of_chat(sizes, quick=quick)
    for answer in answers:
        if answer == "chat":
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.jsonl"
            kilobytes, recordings = EMBEDDED
            fill(path, recordings, kilobytes, EMBEDDINGS, answer_with(content_of(answer)))
            for library in (httpx, httpx2):
                yield measure(library, path, answer, recordings, kilobytes, 100, 5 if quick else 15)


def rows_of_chat(sizes: list[int], *, quick: bool) -> Iterator[Row]:
    """Yield the rows of answers of a chat."""
    for kilobytes in sizes:
        for recordings in SIZES[kilobytes]:
            if quick and recordings > 10_000:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "bench.jsonl"
                fill(path, recordings, kilobytes)
                calls = max(20, 1000 // kilobytes)
                rounds = (5 if quick else 15) * (10 if recordings < calls else 1)
                for library in (httpx, httpx2):
                    yield measure(library, path, "chat", recordings, kilobytes, calls, rounds)


if __name__ == "__main__":
    options = parse_options(
        __doc__,
        sizes={"type": int, "nargs": "+", "default": [2], "choices": list(SIZES)},
        answers={"nargs": "+", "default": ["chat", *WRITERS], "choices": ["chat", *WRITERS]},
    )
    print_rows(rows(options.sizes, options.answers, quick=options.quick), as_json=options.json)
