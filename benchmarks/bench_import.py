"""What does ``import httpx_cassette`` cost on top of ``import httpx``?

Each figure is a fresh process, with bytecode cached, alternating; wall time of the import statement alone.

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

from _measure import parse_options, print_rows, spread

PROGRAM = "import time, httpx; a = time.perf_counter(); import {module}; print(time.perf_counter() - a)"


@dataclass
class Row:
    """One line of the table, in milliseconds; the goal is 5 for the package."""

    module: str
    milliseconds: float
    spread: float


def once(module: str) -> float:
    """Return the seconds of one import in a fresh process."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return float(done.stdout)


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the table row by row."""
    modules = ["httpx_cassette", "httpx_cassette.httpx2", "json"]
    samples: dict[str, list[float]] = {module: [] for module in modules}
    for module in modules:
        once(module)  # Bytecode is written here.
    chance = random.Random(7)
    for _ in range(10 if quick else 40):
        chance.shuffle(modules)
        for module in modules:
            samples[module].append(once(module) * 1e3)
    for module, taken in sorted(samples.items()):
        yield Row(module, statistics.median(taken), spread(taken))


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
