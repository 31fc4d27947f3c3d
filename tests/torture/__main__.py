"""``python -m tests.torture``: which trials are run, what is printed, and the exit status.

0: every row held. 1: a row failed, or proves nothing. 2: misuse.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import httpx_cassette
from httpx_cassette import CassetteStop

from . import (
    checkout,
    crowd,
    cut,
    disk,
    faults,
    flip,
    fuzz,
    kill,
    machine,
    merge,
    mixes,
    offline,
    secrets,
    streams,
    writers,
)
from ._children import kill_left
from ._rows import Origin, Row, as_text, judge, keep, read_kept, summary
from ._trial import Account, Setting, Skipped, Trial

#: Quick families first: what is broken shows early.
FAMILIES: dict[str, tuple[Trial, ...]] = {
    module.__name__.rpartition(".")[2]: module.TRIALS
    for module in (
        cut, flip, merge, checkout, offline, secrets, disk, faults,
        fuzz, machine, mixes, writers, streams, crowd, kill,
    )
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trials and return the exit status."""
    options = _parser().parse_args(arguments)
    for name in [name for name in os.environ if name.startswith("HTTPX_CASSETTE_")]:
        del os.environ[name]
    chosen = dict(_chosen(options.only))
    if not chosen:
        print(
            f"Error: no trial is named {' '.join(options.only)!r}; there are {', '.join(FAMILIES)}",
            file=sys.stderr,
        )
        return 2
    path = options.resume or Path(tempfile.mkdtemp(prefix="torture-rows-")) / "rows.jsonl"
    origin = Origin(options.short, options.seed, platform.python_version(), _digest_of_code())
    found = read_kept(path)
    kept = {row.name: row for row in found if row.is_fine and row.origin == origin}
    width = max(map(len, chosen))
    say = _silent if options.json else _say
    say(f"rows are kept in {path}; to go on with the others: --resume {path}")
    if others := sum(row.origin != origin for row in found):
        say(f"{others} of its rows are of other code, another form, seed or Python, and are not taken over")
    rows = []
    for name, trial in chosen.items():
        row = kept.get(name)
        if row is None:
            row = _run(name, trial, origin)
            keep(path, row)
        rows.append(row)
        say(as_text(row, width))
    say(summary(rows))
    if options.json:
        print(json.dumps([asdict(row) for row in rows]))
    return 0 if all(row.is_fine for row in rows) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Attack the store.")
    parser.add_argument("--short", action="store_true", help="the form for every change: 90 seconds at most")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="families, or family/trial")
    parser.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="take over the rows of FILE that are of this code, form, seed and Python, add the others",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON when all are there")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="of every choice (default: 7)")
    return parser


def _chosen(only: Sequence[str]) -> Iterator[tuple[str, Trial]]:
    for family, trials in FAMILIES.items():
        for trial in trials:
            name = f"{family}/{trial.name}"
            if not only or family in only or name in only:
                yield name, trial


def _digest_of_code() -> str:
    digest = hashlib.sha256()
    for folder in (Path(httpx_cassette.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _run(name: str, trial: Trial, origin: Origin) -> Row:
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    account = Account()
    setting = Setting(origin.is_short, folder, random.Random(f"{origin.seed} {name}"))
    verdict, notes = "", []
    started = time.monotonic()
    try:
        # Reports of calls that are stopped on purpose go to stderr; there may be thousands of them.
        with contextlib.redirect_stderr(io.StringIO()):
            trial.run(setting, account)
    except Skipped as reason:
        # What was found before says more than what could not be run.
        if not account.broken:
            verdict, notes = "skipped", [str(reason)]
    except (Exception, CassetteStop):
        account.fault(traceback.format_exc())
    finally:
        kill_left()
        shutil.rmtree(folder, ignore_errors=True)
    if not verdict:
        verdict, notes = judge(account)
    figure = ", ".join(f"{count:,} {what}" for what, count in account.counts.items())
    seconds = round(time.monotonic() - started, 1)
    return Row(name, trial.promise, verdict, figure, notes, seconds, origin)


def _say(text: str) -> None:
    print(text, flush=True)


def _silent(text: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
