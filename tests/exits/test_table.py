"""Every program of the table, under coverage: how it ends, and what else its end must not lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.exits import in_pytest
from tests.exits._programs import Ended, parameters, run_at_once
from tests.exits._table import SEEN, line_of, snapshot
from tests.exits.rows import ALL, GROUPS

Result = Callable[[str], Ended]

UNTOUCHED = GROUPS["what does not count"]

#: A signal ends the process at once: no handler of Python runs.
KILLED = GROUPS["a server that dies of a signal"]

WORKERS = GROUPS["workers of pytest-xdist"]

#: What ends has not run the script, so that coverage has nothing to say about it.
UNMEASURED = {**WORKERS, **GROUPS["a program that replaces itself"]}

COUNTING = {name: row for name, row in ALL.items() if name not in {*UNTOUCHED, *KILLED, *UNMEASURED}}

WITNESSES = ("atexit", "logging", "coverage")


@pytest.fixture(scope="module")
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """Give how a program of ``ALL`` ended; all that are asked for run at once."""
    with run_at_once(request, ALL, tmp_path_factory.mktemp("exits"), covered=True) as programs:
        yield lambda name: programs[name].result()


@pytest.mark.parametrize("name", parameters(ALL))
def test_a_program_ends_as_the_table_says(ended: Result, name: str) -> None:
    """Status, number of reports, and what the program printed are those of ``table.txt``."""
    result = ended(name)
    shown = in_pytest.summary(result) if name.startswith("pytest") else result

    SEEN[name] = line_of(name, shown)

    assert snapshot()[name] == SEEN[name], result.stderr + result.stdout


@pytest.mark.parametrize("name", parameters(COUNTING))
def test_every_way_to_lose_a_miss_ends_with_2(ended: Result, name: str) -> None:
    """The status is 2, and the exit handlers, logging and coverage had their turn once."""
    result = ended(name)

    assert (2, WITNESSES) == (result.status, result.witnesses), result.stderr + result.stdout
    assert "INTERNALERROR" not in result.stdout


@pytest.mark.parametrize("name", parameters(UNMEASURED))
def test_a_miss_in_another_program_ends_with_2(ended: Result, name: str) -> None:
    """The one that ends says where the miss was, and leaves no file behind."""
    result = ended(name)
    others = "child processes had 1 miss" if name in WORKERS else "a call was stopped before this program"

    assert (2, ("atexit", "logging")) == (result.status, result.witnesses), result.stderr + result.stdout
    assert result.stderr.splitlines()[-1].startswith(f"httpx_cassette: {others}")
    assert [] == list(result.folder.glob("httpx-cassette-*"))


@pytest.mark.parametrize("name", parameters(UNTOUCHED))
def test_what_does_not_count_leaves_the_status_alone(ended: Result, name: str) -> None:
    """A miss that was expected, or that somebody else counts, does not show in the status."""
    assert 2 != ended(name).status
