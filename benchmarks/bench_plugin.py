"""What does the plugin of pytest cost a run in which no cassette is used?

Each run is a fresh process that runs pytest on one empty test, with the plugin and without it, in random
order; CPU time of the process, from start to end. What the plugin adds is the median of the differences of
pairs, with the half of its interval (1.58 times the distance of the quartiles, by the root of their number).
Where the goal lies in the interval, the answer is "unknown": take more rounds, or a quieter machine.

    python benchmarks/bench_plugin.py [--quick] [--json] [--versions]
"""

from __future__ import annotations

import math
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _measure import met, parse_options, print_rows, spread

GOAL = 3.0

#: Arguments of pytest beside the file; plugins that happen to be installed are in both.
RUNS = {"without": ("-p", "no:httpx_cassette"), "with": ()}


@dataclass
class Row:
    """The line of the table, in milliseconds."""

    rounds: int
    without: float
    with_plugin: float
    added: float
    interval: float
    goal: float
    met: str


def once(folder: Path, arguments: tuple[str, ...]) -> float:
    """Return the CPU seconds of one run."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("HTTPX_CASSETTE")
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, str(folder)],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the one line of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_empty.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        samples: dict[str, list[float]] = {run: [] for run in RUNS}
        for arguments in RUNS.values():
            once(folder, arguments)  # Bytecode is written here.
        chance, order = random.Random(7), list(RUNS)
        for _ in range(20 if quick else 200):
            chance.shuffle(order)
            for run in order:
                samples[run].append(once(folder, RUNS[run]) * 1e3)
    differences = [one - other for one, other in zip(samples["with"], samples["without"], strict=True)]
    added, half = statistics.median(differences), 1.58 * spread(differences) / math.sqrt(len(differences))
    unsure = "unknown" if abs(added - GOAL) <= half else met((added, GOAL))
    medians = [statistics.median(samples[run]) for run in RUNS]
    yield Row(len(differences), medians[0], medians[1], added, half, GOAL, unsure)


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
