"""What does ``import httpx_cassette`` cost on top of ``import httpx``, and what the first transport?

Each figure is a fresh process, with bytecode cached, alternating; wall time of the one statement alone. What
serves calls is imported with the first transport, so that is measured too.

    python benchmarks/bench_import.py [--quick] [--json] [--versions]
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from _measure import met, parse_options, print_rows, spread

PROGRAM = "{before}; import time; a = time.perf_counter(); {statement}; print(time.perf_counter() - a)"

_READY = "import httpx; from httpx_cassette import CassetteTransport"

#: What is measured, and what has been done before it.
STATEMENTS = {
    "import httpx_cassette": "import httpx",
    "import httpx_cassette.httpx2": "import httpx, httpx2",
    "import json": "import httpx",
    "CassetteTransport('absent.jsonl')": _READY,
    "CassetteTransport('absent.jsonl', mode='record')": _READY,
}

GOALS = {"import httpx_cassette": 5.0}


@dataclass
class Row:
    """One line of the table, in milliseconds."""

    statement: str
    milliseconds: float
    spread: float
    goal: float | None
    met: str


def once(statement: str) -> float:
    """Return the seconds that a statement takes in a fresh process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=STATEMENTS[statement], statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout)


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the table row by row."""
    statements = [*STATEMENTS]
    samples: dict[str, list[float]] = {statement: [] for statement in statements}
    for statement in statements:
        once(statement)  # Bytecode is written here.
    chance = random.Random(7)
    for _ in range(10 if quick else 40):
        chance.shuffle(statements)
        for statement in statements:
            samples[statement].append(once(statement) * 1e3)
    for statement, taken in samples.items():
        median, goal = statistics.median(taken), GOALS.get(statement)
        yield Row(statement, median, spread(taken), goal, met((median, goal)))


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
