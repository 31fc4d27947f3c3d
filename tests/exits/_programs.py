"""Run a program as a process of its own, and tell how it ended.

Nothing here knows what a program does, or how it should end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

__all__ = ["Ended", "Row", "parameters", "run", "run_at_once"]

TESTS = Path(__file__).parents[1]
SCRIPTS = TESTS / "exit_scripts"

#: What every program begins with; its own text begins on line 2.
PROLOGUE = "from _ask import MISSING, URL, ask, ask_async, body, expected_miss\n"

#: How the first lines of reports begin.
_FIRST_LINES = (
    "no recording for POST ",
    "no system prompt in POST ",
    "the recording of POST ",
    "one more real call would exceed max_calls=",
    "the answer was paid for and could not be stored: ",
)

#: A report, with detail: the package prints it with nothing before, a traceback or a logger with something.
_REPORT = re.compile(rf"^(.*)(?:{'|'.join(map(re.escape, _FIRST_LINES))}).*\n  \w", re.MULTILINE)

#: More than there are cores: a program also waits, for children and for servers.
_AT_ONCE = (os.cpu_count() or 1) + 1

_COVERAGE = "[run]\ndata_file = {folder}/measured\nparallel = true\n"


@dataclass(frozen=True)
class Row:
    """A program, and what it needs.

    Args:
        program: The text that follows the prologue.
        arguments: What stands between the interpreter and the script.
        marks: Where it cannot be run.
        conftest: What stands in a ``conftest.py`` beside the script.
    """

    program: str
    arguments: tuple[str, ...] = ()
    marks: tuple[pytest.MarkDecorator, ...] = ()
    conftest: str = ""


@dataclass(frozen=True)
class Ended:
    """How a program ended.

    Args:
        status: The exit status; a signal is a negative one.
        stdout: All of it.
        stderr: All of it.
        folder: The working folder of the program.
        witnesses: Which of the witnesses of ``_ask`` and of coverage saw the end of the main process.
    """

    status: int
    stdout: str
    stderr: str
    folder: Path
    witnesses: tuple[str, ...]

    @property
    def reports(self) -> int:
        """How many reports the package printed."""
        return sum(not before for before in _REPORT.findall(self.stderr))

    @property
    def repeated(self) -> int:
        """How many whole reports stand in tracebacks and logs."""
        return sum(bool(before) for before in _REPORT.findall(self.stderr))


def run(
    folder: Path, program: str, *, arguments: tuple[str, ...] = (), covered: bool = False, **environment: str
) -> Ended:
    """Run a program in ``folder``.

    Args:
        folder: An empty folder: where the script is written, and what the program takes for ``/tmp``.
        program: The text that follows the prologue.
        arguments: What stands between the interpreter and the script.
        covered: Whether coverage is measured, as its ``.pth`` file has it.
        environment: Variables to set; ``path`` is put before the module path.
    """
    script = folder / "script.py"
    script.write_text(PROLOGUE + dedent(program))
    if covered:
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n")
        (folder / "coveragerc").write_text(_COVERAGE.format(folder=folder))
        environment.update(path=str(folder / "site"), COVERAGE_PROCESS_START=str(folder / "coveragerc"))
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HTTPX_CASSETTE", "COV", "PYTEST", "PYTHON"))
    }
    path = os.pathsep.join(filter(None, (environment.pop("path", ""), str(SCRIPTS), str(TESTS.parent))))
    with subprocess.Popen(
        [sys.executable, *arguments, str(script)],
        cwd=folder,
        env={**inherited, "PYTHONPATH": path, "TMPDIR": str(folder), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return Ended(process.returncode, stdout, stderr, folder, tuple(_witnesses(folder, process.pid)))


def _witnesses(folder: Path, pid: int) -> Iterator[str]:
    """Yield who saw the end of the main process: a child may have ended too, or have been killed."""
    witness = folder / "witness.txt"
    for line in sorted(witness.read_text().splitlines()) if witness.exists() else ():
        if line.startswith(f"{pid} "):
            yield line.partition(" ")[2]
    for measured in folder.glob(f"measured.*.pid{pid}.*"):
        from coverage import CoverageData

        data = CoverageData(str(measured))
        data.read()
        if data.lines(str(folder / "script.py")):
            yield "coverage"


@contextmanager
def run_at_once(
    request: pytest.FixtureRequest, rows: Mapping[str, Row], folder: Path, *, covered: bool = False
) -> Iterator[dict[str, Future[Ended]]]:
    """Start the programs of all selected tests with a parameter ``name``, a few at a time.

    One after the other they would take as long again: each leaves a core idle.
    """
    names = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        yield {
            name: pool.submit(_run_row, folder / name, row, covered)
            for name, row in rows.items()
            if name in names and not _is_skipped(row)
        }
    finally:
        pool.shutdown(cancel_futures=True)


def _run_row(folder: Path, row: Row, covered: bool) -> Ended:
    folder.mkdir()
    if row.conftest:
        (folder / "conftest.py").write_text(row.conftest)
    return run(folder, row.program, arguments=row.arguments, covered=covered)


def _is_skipped(row: Row) -> bool:
    return any(mark.name == "skipif" and mark.args[0] for mark in row.marks)


def parameters(rows: Mapping[str, Row]) -> list[object]:
    """Return the names of rows as parameters of a test."""
    return [pytest.param(name, id=name, marks=row.marks) for name, row in rows.items()]
