"""The file to which processes that a test run starts write which recordings they use, and their real calls.

Each appends a line with one write, so that any number of processes can share it without a lock. One that
cannot write says so with a file beside it, where it can; a machine or a sandbox that reaches neither is not
seen. Nothing here knows what the run makes of it.
"""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._recording import Recording

__all__ = ["Elsewhere", "UsedElsewhere", "read_used_elsewhere", "remove_used_elsewhere"]

#: What tells whether a process answered from cassettes: those of its calls that were real, and those stored.
_COUNTED = ("live", "passed", "recorded")

#: The end of the name of the file that says that something could not be written.
_LOST = ".lost"


class Elsewhere(NamedTuple):
    """What other processes did.

    Args:
        used: What they used: file, line and fingerprint.
        counts: How often they counted ``live``, ``passed`` and ``recorded``, by process.
        is_whole: Whether all that they did is known.
    """

    used: set[tuple[str, int, str]]
    counts: dict[int, Counter[str]]
    is_whole: bool


class UsedElsewhere:
    """Writes which recordings are used to a file, each once: for the test run that started this process.

    Args:
        path: The file; other processes append to it as well.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._written: set[tuple[str, int, str]] = set()

    def counted(self, name: str) -> None:
        """Append a line for a real call, and for one that was stored; other counts are not the run's."""
        if name in _COUNTED:
            self._append([name, os.getpid()])

    def used(self, recording: Recording, name: str) -> None:
        """Append a line."""
        place = os.path.realpath(recording.real_path), recording.number, recording.head.key.hex()
        if place not in self._written:
            self._written.add(place)
            self._append([*place])

    def unrecorded(self, what: str) -> None:
        """Nothing: the real call was counted."""

    def _append(self, facts: list[Any]) -> None:
        """Append a line. A file that cannot be written is no reason to stop a call."""
        line = json.dumps(facts).encode() + b"\n"
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                is_written = os.write(file, line) == len(line)
            finally:
                os.close(file)
        except OSError as error:
            # Gone is what it is when the run is over: nothing is left behind then.
            is_written = error.errno == errno.ENOENT
        if not is_written:
            with suppress(OSError):
                os.close(os.open(self._path + _LOST, os.O_WRONLY | os.O_CREAT, 0o600))


def read_used_elsewhere(path: str) -> Elsewhere:
    """Return what other processes did.

    Args:
        path: The file that they appended to.
    """
    found = Elsewhere(set(), {}, not os.path.exists(path + _LOST))
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()
    except OSError:  # Somebody has cleared the temporary folder.
        return found._replace(is_whole=False)
    torn = [line for line in lines if not _read_line(line, found)]
    return found._replace(is_whole=found.is_whole and not torn)


def _read_line(line: bytes, found: Elsewhere) -> bool:
    """Add what a line says; return whether it is a whole one, as those of killed processes may not be."""
    try:
        facts = json.loads(line)
        if len(facts) == 2:
            name, process = facts
            found.counts.setdefault(process, Counter())[name] += 1
        else:
            place, number, fingerprint = facts
            found.used.add((place, number, fingerprint))
    except (TypeError, ValueError):
        return False
    return True


def remove_used_elsewhere(path: str) -> None:
    """Remove the file, and what may lie beside it."""
    for each in (path, path + _LOST):
        with suppress(OSError):
            os.unlink(each)
