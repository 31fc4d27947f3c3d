"""Whether a run says anything of what it did not ask for.

It does where all of its tests ran to their ends, and where all of their calls were looked up: a call that was
made for real has asked no recording.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ._suite import shown

if TYPE_CHECKING:
    from ._run import Run

__all__ = ["arguments", "why_unknown"]


def why_unknown(run: Run) -> str | None:
    """Return why it is not known what is unused; ``None`` where it is."""
    reason = _why_incomplete(run)
    return f"the run was not a whole one: {reason}" if reason is not None else _why_not_looked_up(run)


def arguments(run: Run) -> list[Path]:
    """Return what was to be run: folders, where it was everything in them."""
    here = run.config.invocation_params.dir
    return [here / argument for argument in run.config.args]


def _why_incomplete(run: Run) -> str | None:
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
    return _why_left_out(run)


def _why_left_out(run: Run) -> str | None:
    if run.deselected:
        return "1 test was deselected" if run.deselected == 1 else f"{run.deselected:,} tests were deselected"
    # A conftest file may take tests out of the list, and tell nobody.
    missing, tests = len(run.nodes - run.ended), len(run.nodes)
    if missing or len(run.ended) < run.collected:
        return f"only {tests - missing:,} of {max(tests, run.collected):,} tests ran"
    if run.was_stopped:
        return run.was_stopped
    if run.stopped():  # Outside of tests, or in one that failed for nobody.
        return "a call was stopped"
    narrow = [shown(str(argument)) for argument in arguments(run) if not argument.is_dir()]
    return f"only {', '.join(narrow)} was run" if narrow else None


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


def _why_not_looked_up(run: Run) -> str | None:
    suite = run.suite
    if os.environ.get("HTTPX_CASSETTE_MODE", "").strip().lower() == "live":
        return "nothing is looked up in mode live"
    if suite.live:
        return f"nothing is looked up in mode live, and that was the mode of {min(suite.live)}"
    real = suite.unrecorded_calls
    if real:
        return "1 real call was not recorded" if real == 1 else f"{real:,} real calls were not recorded"
    if not suite.is_whole:
        return "a process that a test started could not write down all that it used"
    return None
