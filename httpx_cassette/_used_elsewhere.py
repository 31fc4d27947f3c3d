"""The file to which processes that a test run starts write which recordings they use.

Each appends a line for each recording with one write, so that any number of processes can share it without a
lock. Nothing here knows what the run makes of it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._recording import Recording

__all__ = ["UsedElsewhere", "read_used_elsewhere"]


class UsedElsewhere:
    """Writes which recordings are used to a file, each once: for the test run that started this process.

    Args:
        path: The file; other processes append to it as well.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._written: set[tuple[str, int]] = set()

    def counted(self, name: str) -> None:
        """Nothing: counts are those of the run's own processes."""

    def used(self, recording: Recording, name: str) -> None:
        """Append a line. A file that cannot be written is no reason to stop a call."""
        place = os.path.realpath(recording.path), recording.number
        if place in self._written:
            return
        self._written.add(place)
        line = json.dumps([*place, recording.head.key.hex()]).encode() + b"\n"
        with suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(file, line)
            finally:
                os.close(file)

    def unrecorded(self, what: str) -> None:
        """Nothing."""


def read_used_elsewhere(path: str) -> set[tuple[str, int, str]]:
    """Return what other processes used: file, line and fingerprint.

    Args:
        path: The file that they appended to.

    Raises:
        OSError: It cannot be read.
    """
    found = set()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            with suppress(ValueError):  # Torn, by a process that was killed.
                place, number, fingerprint = json.loads(line)
                found.add((place, number, fingerprint))
    return found
