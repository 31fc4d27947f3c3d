"""Whatever a test does with a miss, its run ends with 2 and says why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.plugin._project import Ended, run_at_once
from tests.plugin.expectations import RUNS, expected, told, unknown_files


@pytest.fixture(scope="module")
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give how a run ended; all that are asked for run a few at a time."""
    with run_at_once(request, RUNS, tmp_path_factory.mktemp("loud")) as runs:
        yield lambda name: runs[name].result()


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=name, marks=project.marks) for name, project in RUNS.items()]
)
def test_a_run_tells_what_it_missed(ended: Callable[[str], Ended], name: str) -> None:
    """The exit status, the failures and the summary are those of the file in ``expected``."""
    found = ended(name)

    assert expected(name) == told(found), found.text


def test_every_expectation_is_one_of_a_run() -> None:
    """No file is left over from a run that is gone, and none repeats another."""
    assert [] == unknown_files()
