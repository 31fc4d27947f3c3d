"""A small project as a value, and what pytest says of it when it is run as a process of its own.

Nothing here knows what a project tests, or how its run should end.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent

import pytest

__all__ = ["Ended", "Project", "run", "run_again", "run_at_once", "start"]

TESTS = Path(__file__).parents[1]
PROGRAMS = Path(__file__).parent / "programs"

#: More than there are cores: a run also waits for its workers.
_AT_ONCE = (os.cpu_count() or 1) + 1

#: What every test file begins with, on one line.
PROLOGUE = "import pytest; from calls import *\n"

#: Without a cache, in which no run leaves something for the next, and with tracebacks that name places only.
_ARGUMENTS = ("-q", "-p", "no:cacheprovider", "--tb=short", "--color=no")


@dataclass(frozen=True)
class Project:
    """A project, and how it is tested.

    Args:
        files: Texts by path. The files of tests begin with ``PROLOGUE``.
        arguments: What follows ``pytest``.
        plugins: The plugins that are loaded beside this one, by the names of their entry points.
        environment: Variables to set.
        marks: Where it cannot be run.
    """

    files: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    marks: tuple[pytest.MarkDecorator, ...] = ()

    @classmethod
    def of(cls, test: str, *arguments: str, plugins: tuple[str, ...] = (), **more: str) -> Project:
        """Return a project with one test file; further files by name, with ``_`` before the suffix."""
        files = {f"{name.removesuffix('_py')}.py": text for name, text in more.items()}
        return cls({"test_it.py": test, **files}, arguments, plugins)

    def with_workers(self) -> Project:
        """Return the same, run by two workers of pytest-xdist."""
        return replace(self, arguments=(*self.arguments, "-n", "2"), plugins=("xdist", *self.plugins))

    def write(self, folder: Path) -> None:
        """Write the files."""
        for name, text in self.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            begin = PROLOGUE if file.name.startswith("test_") and file.suffix == ".py" else ""
            file.write_text(begin + dedent(text), encoding="utf-8")


@dataclass(frozen=True)
class Ended:
    """How a run ended.

    Args:
        status: The exit status; a signal is a negative one.
        stdout: All of it.
        stderr: All of it.
        folder: The folder of the project.
    """

    status: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def told(self) -> str:
        """What pytest told when all tests were over, without what differs from run to run."""
        return "".join(f"{line}\n" for line in _told(self.stdout, self.stderr, self.folder))

    @property
    def text(self) -> str:
        """Everything, for whoever looks for the reason of a failure."""
        return f"exit status {self.status}\n{self.stdout}\n{self.stderr}"


def start(folder: Path, project: Project) -> subprocess.Popen[str]:
    """Start pytest on a project that was written to a folder."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HTTPX_CASSETTE", "COV", "PYTEST", "PYTHON")) and name != "CI"
    }
    # Its options are the reporter's.
    arguments = _ARGUMENTS[1:3] if "no:terminal" in project.arguments else _ARGUMENTS
    plugins = [word for name in ("httpx_cassette", *project.plugins) for word in ("-p", name)]
    temporary = folder.parent / f"{folder.name}-tmp"
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments, *plugins, *project.arguments],
        cwd=folder,
        env={
            **inherited,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": os.pathsep.join((str(PROGRAMS), str(TESTS.parent))),
            "TMPDIR": str(temporary),
            "COLUMNS": "100",
            **project.environment,
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, project: Project) -> Ended:
    """Write a project and test it."""
    folder.mkdir(exist_ok=True)
    project.write(folder)
    return run_again(folder, project)


def run_again(folder: Path, project: Project) -> Ended:
    """Test a project that was written to a folder."""
    with start(folder, project) as process:
        try:
            stdout, stderr = process.communicate(timeout=60)
        except BaseException:
            process.kill()
            raise
    return Ended(process.returncode, stdout, stderr, folder)


@contextmanager
def run_at_once(
    request: pytest.FixtureRequest, projects: Mapping[str, Project], folder: Path
) -> Iterator[dict[str, Future[Ended]]]:
    """Start the runs of all selected tests with a parameter ``name``, a few at a time.

    One after the other they would take as long again: each leaves a core idle.
    """
    names = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        yield {
            name: pool.submit(run, folder / name, project)
            for name, project in projects.items()
            if name in names and not any(mark.args[0] for mark in project.marks)
        }
    finally:
        pool.shutdown(cancel_futures=True)


# -- what differs from run to run ----------------------------------------------------------------------

_HEADING = re.compile(r"^([=_-])\1+ (.*?) \1\1+$")

#: A frame of a traceback, and where it is.
_FRAME = re.compile(r"^(\S+):\d+: in ")

#: What a worker says of itself, the members of a group of errors, and where a run was interrupted.
_NOISE = re.compile(
    r"\[gw\d+\] |\s+[|+]|/.*: KeyboardInterrupt$|\(to show a full traceback on Ki?eyboardInterrupt"
)

#: Not this package's to tell.
_LEFT_OUT = ("== warnings summary",)

#: How a line on stderr begins that is this package's.
_OURS = ("httpx_cassette", "no recording for ")

_RULES = [
    (re.compile(r"\b[0-9a-f]{64}\b"), "<fingerprint>"),
    (re.compile(r"\bin \d+\.\d\ds\b( \([\d:]+\))?"), "in <time>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r", \d+ warnings?\b"), ""),
    (re.compile(r"0x[0-9a-f]{6,}"), "<address>"),
    # Not installed on every Python; what a run saved is told by tests of its own.
    (re.compile(r"; no price(?: for [^;\n]+)? in genai-prices [^;\n]+"), ""),
]


def _told(stdout: str, stderr: str, folder: Path) -> Iterator[str]:
    """Yield the sections that pytest writes at the end, and what this package writes to stderr.

    Tests come in the order of their names: with workers they end in any order. Frames of other files than
    the project's own are left out of tracebacks, for they change with each release of a library; so are
    groups of errors, pytest's warnings, and what it captured.
    """
    for title, lines in _sections(_normal(stdout, folder)):
        if title not in _LEFT_OUT and not title.startswith("-- Captured "):
            yield title
            yield from _without_frames(lines)
    begun = re.search(rf"^(?:{'|'.join(_OURS)})", stderr, re.MULTILINE)
    if begun is not None:
        yield "-- stderr"
        yield from _normal(stderr[begun.start() :], folder).splitlines()


def _normal(text: str, folder: Path) -> str:
    for name in (folder.resolve(), folder):
        text = text.replace(str(name), "<folder>")
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the lines of each section, the tests of one sorted."""
    tests: dict[str, list[tuple[str, list[str]]]] = {}
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading is None:
            if found:
                found[-1][1].append(line)
            continue
        found.append((f"{heading[1] * 2} {heading[2]}", []))
    test = ""
    for title, lines in found:
        # What belongs to a test stands below its name: what was captured, what plugins add.
        test = title if title.startswith("__") else test if title.startswith("--") else ""
        if test:
            tests.setdefault(test, []).append((title, lines))
            continue
        for name in sorted(tests):
            yield from tests.pop(name)
        yield title, sorted(lines, key=_rank) if title == "== short test summary info" else lines


def _rank(line: str) -> tuple[bool, str]:
    is_of_a_test = line.startswith(("FAILED ", "ERROR ", "SUBFAILED"))
    return not is_of_a_test, line if is_of_a_test else ""


def _without_frames(lines: list[str]) -> Iterator[str]:
    is_wanted = True
    for line in lines:
        if frame := _FRAME.match(line):
            is_wanted = not frame[1].startswith(("/", "../", "<"))
            line = line.replace(frame[0], f"{frame[1]}: in ")
        elif not line.startswith("    "):
            is_wanted = True
        is_caret = bool(line.strip()) and not line.strip(" ^~")
        if is_wanted and not is_caret and not _NOISE.match(line):
            yield line.rstrip()
