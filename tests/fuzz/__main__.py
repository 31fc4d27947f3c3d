"""``python -m tests.fuzz``: which targets are run and for how long, what is printed, and the exit status.

Each target runs in a process of its own, whose memory and time are bounded.
0: nothing was found. 1: something was, and its input is printed. 2: misuse, or atheris is not there.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

#: Name -> what must hold.
TARGETS = {
    "framing": "however a body is cut, a plain reader reads the same, and so it is written",
    "streams": "whatever a chat stream holds, its recording says the same at every chunk size",
    "lines": "a mutated cassette gives the answer that was recorded, or a documented error",
    "documents": "JSON loses nothing when it is read, and both writers give the same canonical bytes",
}

#: Bytes of memory for one target, in MiB; atheris and the instrumented package take about 150.
MEMORY = 1024

#: Seconds for one input; the slowest take a few milliseconds.
PATIENCE = 20

#: Bytes of the longest input: what is long enough to go wrong is found sooner when it is short.
LONGEST = 4096


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the targets and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Look for bad inputs.")
    parser.add_argument("--seconds", type=int, default=60, metavar="N", help="for each target (default: 60)")
    parser.add_argument("--target", action="append", choices=TARGETS, help="one of them; may be repeated")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run a target on one input, as printed")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="of the mutations (default: 7)")
    options = parser.parse_args(arguments)
    if importlib.util.find_spec("atheris") is None:
        print("Error: atheris is not installed; pip install atheris", file=sys.stderr)
        return 2
    if options.input is not None and len(options.target or ()) != 1:
        parser.error("--input needs the one --target that it is for")
    found = [_run(name, options) for name in options.target or TARGETS]
    return 1 if any(found) else 0


def _run(name: str, options: argparse.Namespace) -> bool:
    """Run one target; tell whether something was found."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        crashes = Path(folder)
        limits = [
            f"-max_total_time={options.seconds}",
            f"-rss_limit_mb={MEMORY}",
            f"-timeout={PATIENCE}",
            f"-max_len={LONGEST}",
            f"-seed={options.seed}",
            f"-artifact_prefix={folder}/",
            "-print_final_stats=1",
        ]
        chosen = limits if options.input is None else [str(options.input), *limits]
        command = [sys.executable, "-m", "tests.fuzz._loop", name, *chosen]
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # libFuzzer ends by itself; this is for the day on which it does not.
                timeout=options.seconds + 10 * PATIENCE,
            )
            status, log = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            status, log = 1, f"it did not end in {error.timeout} seconds"
        runs = re.findall(r"stat::number_of_executed_units:\s*(\d+)|^#(\d+)\s", log, re.MULTILINE)
        count = max((int(one or other) for one, other in runs), default=0)
        verdict = "nothing found" if status == 0 else "FOUND"
        print(f"{name:<10} {count:>10,} inputs  {verdict}: {TARGETS[name]}", flush=True)
        if status:
            print(_interesting(log))
            for crash in sorted(crashes.iterdir()):
                print(f"{crash.name}, to be put into a file for --target {name} --input FILE:")
                print(repr(crash.read_bytes()), flush=True)
        elif count == 0 and options.input is None:
            print(f"{name}: no input was run, which proves nothing\n{log[-2000:]}")
            return True
        return status != 0


def _interesting(log: str) -> str:
    """Return what a log says from the finding on, without the progress before it."""
    start = re.search(r"Uncaught Python exception|==\d+== ?ERROR|Traceback", log)
    return log[start.start() if start else -4000 :][:6000]


if __name__ == "__main__":
    sys.exit(main())
