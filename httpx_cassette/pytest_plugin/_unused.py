"""Recordings that no test asked for, and cassettes that no test opened; and their removal.

A run says something of a recording only where all tests that could have asked for it ran, and ran to their
ends: what was not judged is named, and never removed.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from .._cassette import Cassette
from .._errors import CassetteError
from .._project import project_defaults
from .._rewrite import delete_cassette, remove_lines
from ._suite import shown

if TYPE_CHECKING:
    from ._run import Run

__all__ = ["Finding", "find_unused", "tell_unused", "why_incomplete"]


class Finding(NamedTuple):
    """What is unused of a cassette.

    Args:
        path: The file, with links resolved.
        lines: The recordings that no test asked for, by their lines: the fingerprint, and when it was made.
            Empty where no test opened the file at all.
        recordings: How many there are in the file.
        size: The length of the file.
    """

    path: str
    lines: dict[int, tuple[str, str]]
    recordings: int
    size: int


def tell_unused(run: Run, section: Callable[..., object], line: Callable[..., object]) -> None:
    """Write what is unused, and remove it if that was asked for."""
    section("=", "httpx_cassette: unused recordings")
    reason = why_incomplete(run)
    if reason is not None:
        line(f"not known, because the run was not a whole one: {reason}", yellow=True)
        if run.prunes:
            line("nothing was removed", yellow=True)
        return
    findings, skipped = find_unused(run)
    for path, why in skipped.items():
        line(f"{shown(path)}: not judged, because {why}", yellow=True)
    if not findings:
        line("none")
        return
    for finding in findings:
        if not finding.lines:
            line(f"{shown(finding.path)}: no test opened it ({_count(finding.recordings, 'recording')})")
        for number, (fingerprint, at) in finding.lines.items():
            line(f"{shown(finding.path)}:{number}: {fingerprint[:12]}, recorded {at}")
    if run.prunes:
        _prune(findings, line)
    else:
        line("to remove them: --cassette-prune")


def why_incomplete(run: Run) -> str | None:
    """Return why a run says nothing of what it did not ask for; ``None`` where it does."""
    if run.crashed:
        return f"worker {', '.join(run.crashed)} crashed"
    if run.status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return "it was interrupted, or found no tests"
    option = _narrowing_option(run)
    if option is not None:
        return f"{option} was given"
    if not run.outcomes:
        return "it ran no tests"
    broken = [name for name, outcome in run.not_collected.items() if outcome == "failed"]
    if broken:
        return f"{broken[0]} could not be collected"
    failed = [test for test, outcome in run.outcomes.items() if outcome == "failed"]
    if failed:
        return f"{failed[0]} failed" + (f", and {len(failed) - 1} more" if len(failed) > 1 else "")
    if run.deselected:
        return "1 test was deselected" if run.deselected == 1 else f"{run.deselected:,} tests were deselected"
    if len(run.ended) < run.collected:
        return f"only {len(run.ended):,} of {run.collected:,} tests ran"
    if run.was_stopped:
        return run.was_stopped
    narrow = [shown(str(argument)) for argument in _arguments(run) if not argument.is_dir()]
    return f"only {', '.join(narrow)} was run" if narrow else None


def _arguments(run: Run) -> list[Path]:
    """Return what was to be run: folders, where it was everything in them."""
    here = run.config.invocation_params.dir
    return [here / argument for argument in run.config.args]


def _narrowing_option(run: Run) -> str | None:
    """Return the option that kept tests from being collected, if there is one."""
    given = {
        "--lf": "lf",
        "--ignore": "ignore",
        "--ignore-glob": "ignore_glob",
        "--co": "collectonly",
        "--setup-plan": "setupplan",
        "--setup-only": "setuponly",
    }
    return next((flag for flag, name in given.items() if getattr(run.config.option, name, None)), None)


def find_unused(run: Run) -> tuple[list[Finding], dict[str, str]]:
    """Return what is unused, and the files that are not judged, with the reason."""
    used: dict[str, set[str]] = {}
    for use in run.suite.uses.values():
        used.setdefault(use.path, set()).add(use.fingerprint)
    for place, _, fingerprint in run.suite.elsewhere:
        used.setdefault(place, set()).add(fingerprint)
    not_run = [test for test, outcome in run.outcomes.items() if outcome == "skipped"]
    not_run += [module for module, outcome in run.not_collected.items() if outcome == "skipped"]
    files = {str(path.resolve()) for folder in _arguments(run) for path in _cassettes_below(folder, run)}
    findings: list[Finding] = []
    not_judged: dict[str, str] = {}
    for path in sorted(files | run.suite.tests.keys()):
        if not os.path.exists(path):
            continue
        why = _why_not_judged(path, run, sorted(not_run))
        if why is None:
            try:
                findings += _look(path, used.get(path, set()), path in run.suite.tests)
            except CassetteError as error:
                why = error.message
        if why is not None:
            not_judged[path] = why
    return findings, not_judged


def _why_not_judged(path: str, run: Run, not_run: list[str]) -> str | None:
    """Return why nothing is said of a file: some test may use it that did not run, or not to its end."""
    opened_by = run.suite.tests.get(path, set())
    file = Path(path)
    for test in not_run:
        folder = (run.config.rootpath / test.partition("::")[0]).resolve().parent
        if test in opened_by or folder / "cassettes" in file.parents or _has_own_folder(run):
            return f"{test} was skipped"
    if not any(argument.resolve() in file.parents for argument in _arguments(run)) and not _has_own_folder(
        run
    ):
        return "it lies outside of what was run"
    if not opened_by:
        folder = next((each.parent for each in file.parents if each.name == "cassettes"), file.parent)
        module = folder / f"{file.stem}.py"
        if module.exists() and not _has_run(module, run):
            return f"no test of {shown(str(module))} was run"
    return None


def _has_own_folder(run: Run) -> bool:
    """Tell whether there are cassettes that do not lie beside the tests that use them."""
    return run.config.option.cassette_dir is not None or "dir" in project_defaults().suite


def _has_run(module: Path, run: Run) -> bool:
    return any((run.config.rootpath / test.partition("::")[0]).resolve() == module for test in run.outcomes)


def _look(path: str, used: set[str], was_opened: bool) -> list[Finding]:
    cassette = Cassette(path)
    size = os.path.getsize(path)
    lines = {
        recording.number: (recording.head.key.hex(), recording.at)
        for recording in cassette.newest_first()
        if recording.head.key.hex() not in used
    }
    # What cannot be read may be worth something to whoever can.
    is_all = not (cassette.check() or cassette.damage or cassette.torn or cassette.other_versions)
    if not was_opened and not used and is_all:
        return [Finding(path, {}, len(cassette), size)]
    return [Finding(path, dict(sorted(lines.items())), len(cassette), size)] if lines else []


def _cassettes_below(folder: Path, run: Run) -> Iterator[Path]:
    """Yield the files in folders of cassettes below a folder, but for those that pytest does not enter."""
    not_entered = run.config.getini("norecursedirs")
    for parent, folders, files in os.walk(folder):
        folders[:] = [
            name for name in folders if not any(fnmatch.fnmatch(name, pattern) for pattern in not_entered)
        ]
        if "cassettes" in Path(parent).parts:
            yield from (Path(parent, name) for name in files if name.endswith(".jsonl"))


def _prune(findings: list[Finding], line: Callable[..., object]) -> None:
    lines = files = 0
    for finding in findings:
        try:
            if finding.lines:
                going = {number: fingerprint for number, (fingerprint, _) in finding.lines.items()}
                lines += remove_lines(finding.path, going)
            else:
                delete_cassette(finding.path, finding.size)
                lines += finding.recordings
                files += 1
        except CassetteError as error:
            line(f"not removed: {error}", yellow=True)
    line(f"removed {_count(lines, 'recording')}" + (f", and {_count(files, 'cassette')}" if files else ""))


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
