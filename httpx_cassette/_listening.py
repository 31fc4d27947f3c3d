"""Who is told what all transports of this process do: a plugin of pytest adds itself here.

It is a module of its own, as nothing that serves a call is imported before there is a transport.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._recording import Recording

__all__ = ["LISTENERS", "USED_VARIABLE", "Listener", "UsedElsewhere", "read_used_elsewhere"]


#: Names the file to which processes that a test run starts write what they use.
USED_VARIABLE = "HTTPX_CASSETTE_USED"


class Listener(Protocol):
    """Is told what happens, from whichever thread it happens in; what it raises stops the call."""

    def counted(self, name: str) -> None:
        """One was added to a counter of the statistics, by the name of the counter."""

    def used(self, recording: Recording, name: str) -> None:
        """A recording answered a call (``replayed``), or was made of its answer (``recorded``)."""

    def unrecorded(self, what: str) -> None:
        """A real call was made and its answer is not stored: the call, and what became of it."""


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


#: Those who listen to every transport. A test run that wants to know what is used names a file.
LISTENERS: list[Listener] = [UsedElsewhere(os.environ[USED_VARIABLE])] if USED_VARIABLE in os.environ else []
