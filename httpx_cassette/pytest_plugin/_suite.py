"""What the calls of a test run did, in this process and, merged, in all of them.

Everything is counted for the run and kept by test; each process of pytest-xdist has one, and hands it to the
controller as plain data.
Nothing here knows about pytest, and nothing heavy is imported before a recording was used.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _ledger

if TYPE_CHECKING:
    from .._recording import Recording
    from .._used_elsewhere import Elsewhere

__all__ = ["Stopped", "Suite", "Use", "merge_entries", "shown", "write_used"]


@dataclass
class Use:
    """One recording that was used.

    Args:
        path: Its file, with links resolved.
        number: Its line, from 1.
        fingerprint: Its key.
        at: When it was recorded, RFC 3339.
        milliseconds: How long the exchange took.
        tokens: What its answer cost: the fields of ``Usage``.
        replayed: How many calls it answered.
        recorded: Whether it was made in this run.
    """

    path: str
    number: int
    fingerprint: str
    at: str
    milliseconds: int
    tokens: tuple[Any, ...]
    replayed: int = 0
    recorded: bool = False


@dataclass(frozen=True)
class Stopped:
    """Calls that were stopped alike.

    Args:
        kind: The name of the error.
        report: Its text.
        count: How many there were.
        tests: The tests in whose time it was, by their ids; an empty one for outside of tests.
    """

    kind: str
    report: str
    count: int
    tests: tuple[str, ...]


@dataclass
class Suite:
    """The calls of a run; a listener of all sessions.

    Args:
        totals: The counters of all transports, added up.
        uses: The recordings that were used, by file and line.
        lost: Real calls whose answers were not stored: how often in each test, by what became of them.
        tests: The files that tests opened to be written, and which tests did.
        live: Tests whose cassette was in mode live, in which nothing is looked up.
        counts: How often other processes were stopped alike, where it was more than once: by the process,
            the kind, the key and the test. The file that they share has each but once.
        elsewhere: What processes used that tests started: file, line and fingerprint.
        real_elsewhere: How many real calls they made that were not recorded.
        is_whole: Whether all that such processes did is known.
        processes: Those of pytest-xdist.
    """

    totals: Counter[str] = field(default_factory=Counter)
    uses: dict[tuple[str, int, str], Use] = field(default_factory=dict)
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    tests: dict[str, set[str]] = field(default_factory=dict)
    counts: dict[tuple[Any, ...], int] = field(default_factory=dict)
    elsewhere: set[tuple[str, int, str]] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    real_elsewhere: int = 0
    is_whole: bool = True
    processes: set[int] = field(default_factory=set)
    _lock: Any = field(default_factory=threading.RLock)

    # -- a listener --------------------------------------------------------------------------------

    def counted(self, name: str) -> None:
        """Count."""
        with self._lock:
            self.totals[name] += 1

    def used(self, recording: Recording, name: str) -> None:
        """Keep what is told of a recording when the run ends, and not the recording."""
        # Not by the line alone: a file may be written anew while the run goes on.
        path, fingerprint = os.path.realpath(recording.real_path), recording.head.key.hex()
        place = path, recording.number, fingerprint
        with self._lock:
            use = self.uses.get(place)
            if use is None:
                use = self.uses[place] = _use(recording, path)
            if name == "recorded":
                use.recorded = True
            else:
                use.replayed += 1

    def unrecorded(self, what: str) -> None:
        """Keep it for the test that runs."""
        with self._lock:
            self.lost[_ledger.running_test(), what] += 1

    def opened(self, path: str, test: str, *, is_live: bool) -> None:
        """Keep that a test opened a file to be written, or one that could be; links are resolved in its path.

        What is looked up beside it, and never written, is no part of what is judged.
        """
        self.tests.setdefault(path, set()).add(test)
        if is_live:
            self.live.add(test)

    # -- real calls --------------------------------------------------------------------------------

    @property
    def unrecorded_calls(self) -> int:
        """How many real calls, of all processes, were not recorded, whatever the reason."""
        return _unrecorded(self.totals) + self.real_elsewhere

    # -- processes ---------------------------------------------------------------------------------

    def as_plain(self) -> dict[str, Any]:
        """Return everything as what may travel between processes."""
        return {
            "totals": dict(self.totals),
            "uses": [
                [*astuple(use)[:5], list(use.tokens), use.replayed, use.recorded]
                for use in self.uses.values()
            ],
            "lost": [[test, what, count] for (test, what), count in self.lost.items()],
            "tests": {path: sorted(tests) for path, tests in self.tests.items()},
            "live": sorted(self.live),
            "process": os.getpid(),
            "counts": [
                [entry.pid, entry.kind, entry.key, entry.test, entry.count]
                for entry in _ledger.entries()
                if entry.count > 1
            ],
        }

    def merge(self, plain: dict[str, Any]) -> None:
        """Add what another process did."""
        self.totals.update(plain["totals"])
        for path, number, fingerprint, at, milliseconds, tokens, replayed, recorded in plain["uses"]:
            use = self.uses.setdefault(
                (path, number, fingerprint), Use(path, number, fingerprint, at, milliseconds, tuple(tokens))
            )
            use.replayed += replayed
            use.recorded |= recorded
        for test, what, count in plain["lost"]:
            self.lost[test, what] += count
        for path, tests in plain["tests"].items():
            self.tests.setdefault(path, set()).update(tests)
        self.live.update(plain["live"])
        self.processes.add(plain["process"])
        self.counts.update({tuple(name): count for *name, count in plain["counts"]})

    def add_elsewhere(self, found: Elsewhere) -> None:
        """Add what processes did that tests started; workers write to their file as well, and hand over."""
        self.elsewhere = found.used
        self.is_whole = found.is_whole
        others = found.counts.keys() - self.processes
        self.real_elsewhere = sum(_unrecorded(found.counts[process]) for process in others)

    def stopped(self, entries: Iterable[_ledger.Entry]) -> list[Stopped]:
        """Return what was stopped, with what other processes counted."""
        counted = (
            replace(entry, count=self.counts.get((entry.pid, entry.kind, entry.key, entry.test), entry.count))
            for entry in entries
        )
        return merge_entries(counted)


def _unrecorded(counts: Counter[str]) -> int:
    return counts["live"] - counts["recorded"] + counts["passed"]


def _use(recording: Recording, path: str) -> Use:
    from .._usage import usage_of

    milliseconds = recording.members.get("ms", 0)
    return Use(
        path,
        recording.number,
        recording.head.key.hex(),
        recording.at,
        milliseconds if isinstance(milliseconds, int) else 0,
        tuple(usage_of(recording)),
    )


def merge_entries(entries: Iterable[_ledger.Entry]) -> list[Stopped]:
    """Return what was stopped, each different stop once, in the order of the names of the tests.

    Processes run tests in any order, and what is told should not depend on it.
    """
    merged: dict[tuple[str, str], Stopped] = {}
    for entry in sorted(entries, key=lambda entry: entry.test):
        name = entry.kind, entry.key
        known = merged.get(name)
        if known is None:
            merged[name] = Stopped(entry.kind, entry.report, entry.count, (entry.test,))
            continue
        tests = known.tests if entry.test in known.tests else (*known.tests, entry.test)
        merged[name] = Stopped(known.kind, known.report, known.count + entry.count, tests)
    return list(merged.values())


def shown(path: str) -> str:
    """Return a path as people know it: from the folder that they are in."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def write_used(suite: Suite, file: Path) -> None:
    """Write which recordings were used, one JSON object a line.

    Raises:
        OSError: The file cannot be written.
    """
    used = {(use.path, use.number, use.fingerprint) for use in suite.uses.values()} | suite.elsewhere
    lines = [
        json.dumps({"fingerprint": fingerprint, "cassette": shown(path), "line": number})
        for path, number, fingerprint in sorted(used)
    ]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
