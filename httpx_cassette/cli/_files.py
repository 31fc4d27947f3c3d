"""Which files a command looks at that is given files and folders, and what is left out: said, not silent.

A file that is named is looked at, whatever it is. In a folder that git knows these are the files that git
tracks or would; elsewhere all but those that tools make for themselves. Binary files in folders are left out.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .._errors import CassetteError

__all__ = ["Chosen", "cassettes_in"]

#: Folders that tools make for themselves.
_MADE = frozenset(
    {
        ".git", ".hg", ".svn", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox", ".venv",
        "__pycache__", "node_modules",
    }
)  # fmt: skip

#: Bytes at the start of a file among which a zero makes it binary; git looks at as many.
_LOOKED_AT = 8000

_MARKS_OF_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Chosen:
    """The files that stand for the paths that were given.

    Args:
        paths: Files and folders.

    Attributes:
        skipped: How many were left out, by the reason.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths
        self.skipped: Counter[str] = Counter()
        self.failed: list[CassetteError] = []

    def __iter__(self) -> Iterator[str]:
        """Yield each file once, folders in the order of their names."""
        seen: set[tuple[int, int]] = set()
        for path in self._paths:
            if path == "-":
                yield path
                continue
            for file in self._in_folder(path) if os.path.isdir(path) else (path,):
                found = self._status(file)
                if found is not None and (found.st_dev, found.st_ino) not in seen:
                    seen.add((found.st_dev, found.st_ino))
                    yield file

    def _status(self, path: str) -> os.stat_result | None:
        try:
            found = os.stat(path)
        except OSError as error:
            is_absent = isinstance(error, FileNotFoundError)
            reason = "there is no such file" if is_absent else f"it cannot be read: {error.strerror}"
            self.failed.append(CassetteError(reason, path))
            return None
        if not stat.S_ISREG(found.st_mode):
            self.failed.append(CassetteError("it is no regular file", path))
            return None
        return found

    def _in_folder(self, folder: str) -> Iterator[str]:
        known = _known_to_git(folder)
        for path in self._walk(folder) if known is None else self._of_git(folder, known):
            if os.path.islink(path) or not os.path.isfile(path):
                self.skipped["links and special files"] += os.path.lexists(path)
            elif _is_binary(path):
                self.skipped["binary"] += 1
            else:
                yield path

    def _of_git(self, folder: str, known: tuple[list[str], int]) -> Iterator[str]:
        names, ignored = known
        self.skipped["ignored by git"] += ignored
        for name in names:
            path = os.path.join(folder, name)
            # A file may be deleted and tracked still; another repository inside is a folder.
            if os.path.lexists(path) and not os.path.isdir(path):
                yield path

    def _walk(self, folder: str) -> Iterator[str]:
        for parent, folders, names in os.walk(folder):
            kept = [name for name in folders if not _is_made(parent, name)]
            if len(kept) < len(folders):
                self.skipped["folders of tools"] += len(folders) - len(kept)
            folders[:] = sorted(kept)
            for name in sorted(names):
                yield os.path.join(parent, name)


def cassettes_in(paths: Sequence[str]) -> list[str]:
    """Return the cassettes that stand for the paths that were given: of a folder all ``*.jsonl`` below it.

    A folder that has none stands for itself, and whoever opens it says so. Git is not asked: it may ignore
    the full cassettes.
    """
    return [file for path in paths for file in sorted(_below(path)) or [path]]


def _below(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not _is_made(parent, name)]
        yield from (os.path.join(parent, name) for name in names if name.endswith(".jsonl"))


def _is_made(parent: str, name: str) -> bool:
    return name in _MADE or os.path.exists(os.path.join(parent, name, "pyvenv.cfg"))


def _is_binary(path: str) -> bool:
    with suppress(OSError), open(path, "rb") as file:
        start = file.read(_LOOKED_AT)
        return b"\0" in start and not start.startswith(_MARKS_OF_UTF_16)
    return False


def _known_to_git(folder: str) -> tuple[list[str], int] | None:
    """Return the files that git tracks or would, and how many it ignores; ``None`` where it knows none."""
    names = _asked_git(folder, "--cached", "--others", "--exclude-standard")
    if names is None:
        return None
    ignored = _asked_git(folder, "--others", "--ignored", "--exclude-standard", "--directory")
    return sorted(set(names)), len(ignored or ())


def _asked_git(folder: str, *options: str) -> list[str] | None:
    # A repository's own settings could name a program that git would run.
    words = ("git", "-C", folder, "-c", "core.fsmonitor=false", "ls-files", "-z", *options)
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    except OSError:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else None
