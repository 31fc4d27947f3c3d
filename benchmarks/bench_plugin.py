"""What does the plugin of pytest cost a run in which no cassette is used?

Each figure is a fresh process that runs pytest on one empty test, with the plugin and without it,
alternating; CPU time of the process, from start to end.

    python benchmarks/bench_plugin.py [--quick] [--json] [--versions]
"""

from __future__ import annotations

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

#: Arguments of pytest beside the file; nothing else that is installed is to be measured.
RUNS = {"without": ("-p", "no:httpx_cassette"), "with": ()}


@dataclass
class Row:
    """One line of the table, in milliseconds."""

    run: str
    milliseconds: float
    spread: float
    added: float | None
    goal: float | None
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
    """Yield the table row by row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_empty.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        samples: dict[str, list[float]] = {run: [] for run in RUNS}
        for arguments in RUNS.values():
            once(folder, arguments)  # Bytecode is written here.
        chance, order = random.Random(7), list(RUNS)
        for _ in range(20 if quick else 100):
            chance.shuffle(order)
            for run in order:
                samples[run].append(once(folder, RUNS[run]) * 1e3)
    floor = statistics.median(samples["without"])
    for run, taken in samples.items():
        median = statistics.median(taken)
        added, goal = (None, None) if run == "without" else (median - floor, GOAL)
        yield Row(run, median, spread(taken), added, goal, "-" if added is None else met((added, goal)))


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
