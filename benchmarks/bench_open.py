"""What does it cost to open a cassette, to index it, and to keep the index?

Opening must not depend on the size of the file; the index is built at the first look-up. Memory is measured
in a fresh process, as the growth of its peak.

    python benchmarks/bench_open.py [--quick] [--json] [--versions]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from _measure import fill, met, parse_options, print_rows, timed

from httpx_cassette import Cassette

MEMORY = """
import json, sys, tracemalloc
from httpx_cassette import Cassette
cassette = Cassette(sys.argv[1])
tracemalloc.start()
lines = len(cassette)
print(json.dumps({"lines": lines, "index": tracemalloc.get_traced_memory()[0]}))
"""

#: Microseconds to open, microseconds and kilobytes of the index for each line.
GOALS = (50.0, 2.0, 0.4)


@dataclass
class Row:
    """One line of the table; ``GOALS`` are for the last figures of it."""

    recordings: int
    megabytes: float
    open_us: float
    index_us_per_line: float
    index_kb_per_line: float
    met: str


def measure(path: Path, recordings: int, rounds: int) -> Row:
    """Return the row of one file."""
    opens = [timed(lambda: [Cassette(path) for _ in range(20)]) / 20 for _ in range(rounds)]
    indexes = [timed(Cassette(path).__len__) for _ in range(rounds)]
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True
    )
    memory = json.loads(done.stdout)
    figures = (
        statistics.median(opens) * 1e6,
        statistics.median(indexes) / recordings * 1e6,
        memory["index"] / memory["lines"] / 1024,
    )
    return Row(recordings, path.stat().st_size / 1e6, *figures, met(*zip(figures, GOALS, strict=True)))


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield the table row by row."""
    for recordings in (10, 1_000, 10_000) if quick else (10, 1_000, 10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.jsonl"
            fill(path, recordings, 2)
            yield measure(path, recordings, 5 if quick else 11)


if __name__ == "__main__":
    options = parse_options(__doc__)
    print_rows(rows(quick=options.quick), as_json=options.json)
