"""A suite of a company, which knows nothing of httpx_cassette, is turned over as ``docs/pytest.md`` says.

The steps are those of the page, and stand nowhere else; the project is ``tests/projects/legacy``.
Its tests pass without a network, because its code falls back to canned answers: what turns red, and when,
is what this is about.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from pathlib import Path

import pytest

from .page_of_pytest import SUITE, Api, Done, summary, write

PROJECT = Path(__file__).parent / "projects" / "legacy"

#: The title is the one call of the SDK.
HAS_SDK = importlib.util.find_spec("openai") is not None

SORTING = {
    "tests/test_desk.py::DeskTest::test_case_is_opened",
    "tests/test_triage.py::test_a_fixture_is_sorted",
    "tests/test_triage.py::test_a_ticket_is_sorted[I was charged twice.]",
    "tests/test_triage.py::test_a_ticket_is_sorted[The page stays white after I log in.]",
    "tests/test_triage.py::test_a_ticket_is_sorted[praise]",
}
ASKING = {
    *SORTING,
    "tests/test_desk.py::DeskTest::test_digest_is_written",
    "tests/test_replies.py::test_a_reply_is_written",
    "tests/test_replies.py::test_replies_are_written_at_once",
    *(["tests/test_titles.py::test_a_title_is_given"] if HAS_SDK else []),
}

# A dozen runs of pytest, twice: half a minute that the unit tests need not take.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xdist") is None, reason="pytest-xdist is not installed; nox -s docs has it"
)


#: The longer half, which a change need not wait for: workers have tests of their own in ``tests/plugin``.
WITH_WORKERS = pytest.param(
    "-n 2", id="xdist", marks=pytest.mark.skipif("CI" in os.environ, reason="left out of CI for its time")
)


@pytest.mark.parametrize("options", [pytest.param("", id="one-process"), WITH_WORKERS])
def test_a_suite_is_turned_over(
    options: str, loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step of the page ends as it says: with that status, those red tests, and those calls."""
    monkeypatch.setenv("PYTEST_ADDOPTS", options)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")  # A prompt that is edited within a second counts.
    shutil.copytree(PROJECT, tmp_path / "legacy", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    api = Api()
    steps = []
    for block in SUITE:
        if block.language == "sh":
            steps.append(api.run(block, tmp_path / "legacy"))
        else:
            write(block, tmp_path / "legacy", api.url)

    sdk = int(HAS_SDK)
    calls = 11 + sdk
    replayed = f"{calls} replayed, 0 recorded, 0 missed, 0 real calls"
    assert [
        # As it was: green without a network.
        (0, set(), [], 0),
        # Marked, and nothing is recorded: the report lists the calls.
        (2, ASKING, [f"0 replayed, 0 recorded, {9 + sdk} missed, 0 real calls"], 0),
        # Recorded.
        (0, set(), [f"0 replayed, {calls} recorded, 0 missed, {calls} real calls"], calls),
        # Replayed.
        (0, set(), [replayed], 0),
        # One word of the prompt for sorting.
        (2, SORTING, [f"{calls - 7} replayed, 0 recorded, 5 missed, 0 real calls"], 0),
        # Recorded anew; pruned; replayed.
        (0, set(), [f"{calls - 6} replayed, 6 recorded, 0 missed, 6 real calls", replayed, replayed], 6),
        # The mark of a module in the place of that of ``conftest.py``.
        (0, set(), [replayed], 0),
    ] == [told(step) for step in steps]


def told(step: Done) -> tuple[int, set[str], list[str], int]:
    """Return how a step ended: the status, the red tests, the summaries, the calls of the server."""
    output = step.outcome.output
    red = set(re.findall(r"^FAILED (.*?)(?: - .*)?$", output, re.M))
    return step.outcome.status, red, summary(output), step.calls
