"""What does the plugin of pytest cost a run in which no cassette is used?

Each run is a fresh process that runs pytest on one empty test, in random order: with the plugin, with
``-p no:httpx_cassette``, and as if the package were not installed; CPU time of the process, start to end.
The first difference is what the plugin does. The second is what pytest does for every package that has a
plugin: it reads the list of all of its files, even when the plugin is switched off.
What is added is the median of the differences of pairs, with the half of its interval (1.58 times the
distance of the quartiles, by the root of their number). Where the goal lies in the interval, the answer is
"unknown": take more rounds, or a quieter machine.

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

#: A program that runs pytest; the first argument begins the name of the distribution that it is not to find.
PROGRAM = """
import importlib.metadata, sys
absent, find = sys.argv[1], importlib.metadata.distributions
def distributions(**given):
    # By its folder: to ask for the name reads a file of each.
    return (each for each in find(**given) if not absent or not each._path.name.startswith(absent))
importlib.metadata.distributions = distributions
import pytest
sys.exit(pytest.main(sys.argv[2:]))
"""

#: The arguments of it; plugins that happen to be installed are in all of them.
RUNS = {
    "absent": ("httpx_cassette-",),
    "without": ("", "-p", "no:httpx_cassette"),
    "with": ("",),
}

#: What is told: the run with it, the run without it, and the goal where there is one.
DIFFERENCES = {"the plugin": ("with", "without", GOAL), "its list of files": ("without", "absent", None)}


@dataclass
class Row:
    """A line of the table, in milliseconds."""

    what: str
    rounds: int
    without: float
    with_it: float
    added: float
    interval: float
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
        [sys.executable, "-c", PROGRAM, *arguments, "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the lines of the table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_empty.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
        samples: dict[str, list[float]] = {run: [] for run in RUNS}
        for arguments in RUNS.values():
            once(folder, arguments)  # Bytecode is written here.
        chance, order = random.Random(7), list(RUNS)
        for _ in range(20 if quick else 400):
            chance.shuffle(order)
            for run in order:
                samples[run].append(once(folder, RUNS[run]) * 1e3)
    for what, (more, less, goal) in DIFFERENCES.items():
        pairs = [one - other for one, other in zip(samples[more], samples[less], strict=True)]
        added, half = statistics.median(pairs), 1.58 * spread(pairs) / math.sqrt(len(pairs))
        medians = statistics.median(samples[less]), statistics.median(samples[more])
        yield Row(what, len(pairs), *medians, added, half, goal, _verdict(added, half, goal))


def _verdict(added: float, half: float, goal: float | None) -> str:
    if goal is None:
        return "-"
    return "unknown" if abs(added - goal) <= half else met((added, goal))


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
