"""The exit status of a program in which a call missed, whatever became of the error.

Each row is a program, run as a process of its own; what it prints and how it ends is what a CI job sees.
Rows that need other people's packages, and the table of all, are in ``tests/exits``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.exits import in_children, in_one_process, in_other_ways, in_threads_and_tasks
from tests.exits._programs import Ended, parameters, run, run_at_once
from tests.exits._table import line_of, snapshot
from tests.exits.rows import ALL

MISSES = {
    **in_one_process.CAUGHT,
    **in_other_ways.STOPS,
    **in_one_process.ENDINGS,
    **in_one_process.REPLACED,
    **in_one_process.PLACES,
    **in_other_ways.BESIDE,
    **in_threads_and_tasks.THREADS,
    **in_threads_and_tasks.TASKS,
}

ROWS = {
    **MISSES,
    **in_one_process.STDERR,
    **in_other_ways.UNTOUCHED,
    **in_children.CHILDREN,
    **in_children.HANGING,
    **in_children.PROCESSES,
}

Result = Callable[[str], Ended]


def looks_at(name: str) -> pytest.MarkDecorator:
    """Name the program that a test looks at, so that it is started with the others."""
    return pytest.mark.parametrize("name", parameters({name: ROWS[name]}))


@pytest.fixture(scope="module")
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """Give how a program of ``ROWS`` ended; all that are asked for run at once."""
    with run_at_once(request, ROWS, tmp_path_factory.mktemp("exits")) as programs:
        yield lambda name: programs[name].result()


@pytest.mark.parametrize("name", parameters(MISSES))
def test_a_miss_ends_the_program_with_2(ended: Result, name: str) -> None:
    """However the error is lost, the status is 2, the report is printed once and the end is a clean one."""
    result = ended(name)

    assert snapshot()[name] == line_of(name, result), result.stderr
    assert (2, ("atexit", "logging")) == (result.status, result.witnesses), result.stderr
    assert [] == list(result.folder.glob("httpx-cassette-*"))


@pytest.mark.parametrize("name", parameters(in_one_process.STDERR))
def test_stderr_is_not_needed(ended: Result, name: str) -> None:
    """Without a stderr that takes the report the status is still 2."""
    result = ended(name)

    assert snapshot()[name] == line_of(name, result)
    assert (2, ("atexit", "logging")) == (result.status, result.witnesses)


@pytest.mark.parametrize("name", parameters(in_other_ways.UNTOUCHED))
def test_the_status_is_left_alone(ended: Result, name: str) -> None:
    """A program in which nothing missed, or only what was expected to, ends as it would have."""
    result = ended(name)

    assert snapshot()[name] == line_of(name, result), result.stderr
    assert 2 != result.status


@pytest.mark.parametrize("name", parameters({**in_children.CHILDREN, **in_children.PROCESSES}))
def test_a_miss_in_a_child_process_ends_the_parent_with_2(ended: Result, name: str) -> None:
    """The child prints the report, the parent says how many there were and leaves no file behind."""
    result = ended(name)

    assert snapshot()[name] == line_of(name, result), result.stderr
    assert (2, ("atexit", "logging")) == (result.status, result.witnesses), result.stderr
    number = "1 miss" if result.reports == 1 else f"{result.reports} different misses"
    last = f"httpx_cassette: child processes had {number}, so the exit status is 2"
    assert last == result.stderr.splitlines()[-1]
    assert [] == list(result.folder.glob("httpx-cassette-*"))


@looks_at("plain")
def test_the_traceback_points_to_the_report(ended: Result, name: str) -> None:
    """The report is printed first; the traceback shows where the call was made and refers to it."""
    report, _, traceback = ended(name).stderr.partition("Traceback (most recent call last):\n")
    first = "no recording for POST https://api.openai.com/v1/chat/completions in missing.jsonl"

    assert f"httpx_cassette.CassetteMiss: {first} (the report stands above)" == (traceback.splitlines()[-1])
    assert (
        f"{first}\n"
        "  model        gpt-5\n"
        "  fingerprint  <fingerprint> (key version 1, dialect openai-chat)\n"
        "  cassette     missing.jsonl: does not exist (looked in <folder>)\n"
        "  nearest      none: there is no recording to compare with\n"
        "  to record it: HTTPX_CASSETTE_MODE=record <command>\n"
    ) == re.sub("(?<=MODE=record ).*", "<command>", re.sub("[0-9a-f]{64}", "<fingerprint>", report)).replace(
        os.path.realpath(ended(name).folder), "<folder>"
    )


@looks_at("unflushed-file")
def test_open_files_are_flushed(ended: Result, name: str) -> None:
    """What was written to a file that nobody closed is in it."""
    assert "paid for" == (ended(name).folder / "answers.txt").read_text()


@looks_at("pools-that-hang")
def test_a_pool_that_will_hang_is_named_in_the_report(ended: Result, name: str) -> None:
    """A worker of ``multiprocessing.Pool`` dies of a stop, so its report says what to use instead."""
    result = ended(name)
    note = "multiprocessing.{} waits for ever for a task that is stopped: use concurrent.futures.{}"

    assert snapshot()[name] == line_of(name, result), result.stderr
    for pool, instead in (("Pool", "ProcessPoolExecutor"), ("pool.ThreadPool", "ThreadPoolExecutor")):
        assert 1 == result.stderr.count(note.format(pool, instead))


def test_coverage_keeps_its_data(tmp_path: Path) -> None:
    """Coverage that was started before the script (as its ``.pth`` file does) saves what it measured."""
    pytest.importorskip("coverage")

    result = run(tmp_path, "ask()", covered=True)

    assert (2, ("atexit", "logging", "coverage")) == (result.status, result.witnesses), result.stderr


def test_the_import_installs_nothing(tmp_path: Path) -> None:
    """Before the first miss no hook is ours."""
    result = run(
        tmp_path,
        """
        import sys, threading
        for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook):
            print(hook.__module__.partition(".")[0])
        """,
    )

    # On Python 3.10 anyio brings a backport of exception groups, with a hook.
    modules = result.stdout.replace("exceptiongroup", "sys").splitlines()
    assert (0, ["sys", "sys", "_thread"]) == (result.status, modules), result.stderr


def test_every_line_of_the_snapshot_has_a_program() -> None:
    """``table.txt`` holds no line for a program that is gone, in this file or in ``tests/exits``."""
    assert {*ALL} == {*snapshot()}
