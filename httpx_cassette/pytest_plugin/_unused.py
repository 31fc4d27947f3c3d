"""Recordings that no test asked for, and cassettes that no test opened; and their removal.

A run says something of a recording only where all tests that could have asked for it ran, and ran to their
ends: what was not judged is named, and never removed.

- A cassette that a test opened is judged by its recordings.
- One that no test opened is judged where every test file of its folder, and below it, was run.
- Of several that a test opens, only the one that would be written is judged; with a folder of one's own, only
  what was opened in it: other projects may keep theirs there as well.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .._cassette import Cassette
from .._errors import CassetteError
from .._project import project_defaults
from .._rewrite import delete_cassette, remove_lines
from ._suite import shown
from ._whole import arguments, why_unknown

if TYPE_CHECKING:
    from ._run import Run

__all__ = ["Finding", "Unused", "find_unused"]

#: Folders that pytest does not enter unless it is told to: what lies there is not the project's.
_FOREIGN = ("*.egg", ".*", "_darcs", "build", "CVS", "dist", "node_modules", "venv", "{arch}")

#: Files without tests of their own, whatever the patterns of ``python_files``.
_NO_TESTS = ("conftest.py", "__init__.py")


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


@dataclass
class Unused:
    """What is unused after a run, and what became of it.

    Args:
        reason: Why it is not known; ``None`` where it is.
        prunes: Whether it was to be removed.
        not_judged: Files of which nothing is said, and why.
        findings: What is unused.
        faults: What could not be removed.
        removed: What was: recordings, and whole cassettes.
    """

    reason: str | None
    prunes: bool
    not_judged: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    removed: tuple[int, int] = (0, 0)

    def lines(self) -> Iterator[tuple[str, bool]]:
        """Yield the lines to be told, and whether each is a warning."""
        if self.reason is not None:
            yield f"not known, because {self.reason}", True
        for path, why in self.not_judged.items():
            yield f"{shown(path)}: not judged, because {why}", True
        for finding in self.findings:
            yield from ((line, False) for line in _told(finding))
        for fault in self.faults:
            yield f"not removed: {fault}", True
        if self.reason is not None:
            if self.prunes:
                yield "nothing was removed", True
        elif not self.findings:
            yield "none", False
        elif not self.prunes:
            yield "to remove them: --cassette-prune", False
        else:
            recordings, files = self.removed
            more = f", and {_count(files, 'cassette')}" if files else ""
            yield f"removed {_count(recordings, 'recording')}{more}", False


def find_unused(run: Run) -> Unused:
    """Find what is unused, and remove it if that was asked for; never raises."""
    try:
        unused = Unused(why_unknown(run), run.prunes)
        if unused.reason is None:
            _Judge(run).judge(unused)
    except Exception as error:  # Of the table in pyproject.toml, as a rule: it has failed the tests as well.
        return Unused(_fault(error), run.prunes)
    if run.prunes:
        _prune(unused)
    return unused


class _Judge:
    """What a run knows of files.

    Args:
        run: The run, which was a whole one.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._opened = run.suite.tests
        self._arguments = [argument.resolve() for argument in arguments(run)]
        self._folder = _own_folder(run)
        self._not_entered = run.config.getini("norecursedirs")
        not_run = [test for test, outcome in run.outcomes.items() if outcome == "skipped"]
        not_run += [module for module, outcome in run.not_collected.items() if outcome == "skipped"]
        #: With the folder of their cassettes.
        self._not_run = [(test, self._file_of(test).parent / "cassettes") for test in sorted(not_run)]
        self._run_files = {
            self._file_of(test) for test, outcome in run.outcomes.items() if outcome != "skipped"
        }
        self._test_files: dict[Path, list[Path]] = {}

    def judge(self, unused: Unused) -> None:
        """Add what is unused, and what is not judged."""
        used: dict[str, set[str]] = {}
        for use in self._run.suite.uses.values():
            used.setdefault(use.path, set()).add(use.fingerprint)
        for place, _, fingerprint in self._run.suite.elsewhere:
            used.setdefault(place, set()).add(fingerprint)
        for path in sorted(self._files()):
            if not os.path.exists(path):
                continue
            why = self._why_not_judged(path)
            if why is None:
                try:
                    was_opened = path in self._opened
                    unused.findings += _look(path, used.get(path, set()), was_opened, self._run.began)
                except Exception as error:  # One file that cannot be read is no reason to say nothing.
                    why = _fault(error)
            if why is not None:
                unused.not_judged[path] = why

    def _files(self) -> set[str]:
        if self._folder is not None:
            return {path for path in self._opened if self._folder in Path(path).parents}
        return {
            *self._opened,
            *(str(path) for each in self._arguments for path in self._cassettes_below(each)),
        }

    def _cassettes_below(self, top: Path) -> Iterator[Path]:
        """Yield the files in folders of cassettes below a folder, but for those that pytest does not enter.

        What is linked to is not followed: it lies somewhere else, and may be another's.
        """
        for parent, files in _walk(top, self._not_entered):
            if "cassettes" in parent.relative_to(top).parts:
                names = (name for name in files if name.endswith(".jsonl"))
                yield from (parent / name for name in names if not (parent / name).is_symlink())

    def _why_not_judged(self, path: str) -> str | None:
        """Return why nothing is said of a file: some test may use it that did not run, or not to its end."""
        opened_by = self._opened.get(path, set())
        file = Path(path)
        for test, beside in self._not_run:
            if test in opened_by or beside in file.parents or self._folder is not None:
                return f"{test} was skipped"
        if self._folder is not None:
            return None
        if not any(argument in file.parents for argument in self._arguments):
            return "it lies outside of what was run"
        if opened_by:
            return None
        module = next((each for each in self._tests_of(file) if each not in self._run_files), None)
        return f"no test of {shown(str(module))} was run" if module is not None else None

    def _tests_of(self, file: Path) -> Iterator[Path]:
        """Yield the test files whose cassette a file may be."""
        tops = [
            each.parent
            for each in file.parents
            if each.name == "cassettes" and any(argument in each.parents for argument in self._arguments)
        ]
        for top in tops[-1:]:  # The outermost one: names may have folders in them.
            if top not in self._test_files:
                self._test_files[top] = sorted(self._test_files_below(top))
            module = top / f"{file.stem}.py"
            if module.exists():
                yield module
            yield from self._test_files[top]

    def _test_files_below(self, top: Path) -> Iterator[Path]:
        patterns = self._run.config.getini("python_files")
        # Folders that the project keeps out of its runs hold tests as well.
        not_entered = [pattern for pattern in _FOREIGN if pattern in self._not_entered]
        for parent, files in _walk(top, not_entered):
            names = (name for name in files if name.endswith(".py") and name not in _NO_TESTS)
            yield from (parent / name for name in names if _fits(parent / name, patterns))

    def _file_of(self, test: str) -> Path:
        return (self._run.config.rootpath / test.partition("::")[0]).resolve()


def _own_folder(run: Run) -> Path | None:
    """Return the folder of cassettes that do not lie beside the tests that use them."""
    named: str | None = run.config.option.cassette_dir
    if named is not None:
        return Path(run.config.invocation_params.dir, named).resolve()
    project = project_defaults()
    if "dir" not in project.suite:
        return None
    return (Path(project.file or "").parent / str(project.suite["dir"])).resolve()


def _walk(top: Path, not_entered: Iterable[str]) -> Iterator[tuple[Path, list[str]]]:
    """Yield folders and the names of their files."""
    for parent, folders, files in os.walk(top):
        here = Path(parent)
        folders[:] = [
            name
            for name in folders
            if not _fits(here / name, not_entered) and not (here / name / "pyvenv.cfg").exists()
        ]
        yield here, files


def _fits(path: Path, patterns: Iterable[str]) -> bool:
    """Tell whether a path fits one of pytest's patterns: with a slash they are those of the end of a path."""
    return any(
        fnmatch.fnmatch(path.as_posix(), pattern if os.path.isabs(pattern) else f"*/{pattern}")
        if "/" in pattern
        else fnmatch.fnmatch(path.name, pattern)
        for pattern in patterns
    )


def _look(path: str, used: set[str], was_opened: bool, began: str) -> list[Finding]:
    cassette = Cassette(path)
    size = os.path.getsize(path)
    # What was recorded since the run began, and not asked for in it, is another's, who runs beside it.
    lines, is_new = {}, False
    for recording in cassette.newest_first():
        if recording.head.key.hex() not in used:
            is_new |= recording.at > began
            lines[recording.number] = recording.head.key.hex(), recording.at
    if is_new:
        was_opened = True
        lines = {number: (key, at) for number, (key, at) in lines.items() if at <= began}
    # What cannot be read may be worth something to whoever can.
    is_all = not (cassette.check() or cassette.damage or cassette.torn or cassette.other_versions)
    if not was_opened and not used and is_all:
        return [Finding(path, {}, len(cassette), size)]
    return [Finding(path, dict(sorted(lines.items())), len(cassette), size)] if lines else []


def _prune(unused: Unused) -> None:
    lines = files = 0
    for finding in unused.findings:
        try:
            if finding.lines:
                going = {number: fingerprint for number, (fingerprint, _) in finding.lines.items()}
                lines += remove_lines(finding.path, going)
            else:
                delete_cassette(finding.path, finding.size)
                lines += finding.recordings
                files += 1
        except Exception as error:  # The others are to go all the same.
            named = "" if isinstance(error, CassetteError) else f"{shown(finding.path)}: "
            unused.faults.append(f"{named}{error}")
    unused.removed = lines, files


def _told(finding: Finding) -> Iterator[str]:
    if not finding.lines:
        yield f"{shown(finding.path)}: no test opened it ({_count(finding.recordings, 'recording')})"
    for number, (fingerprint, at) in finding.lines.items():
        yield f"{shown(finding.path)}:{number}: {fingerprint[:12]}, recorded {at}"


def _fault(error: Exception) -> str:
    return error.message if isinstance(error, CassetteError) else f"of {type(error).__name__}: {error}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
