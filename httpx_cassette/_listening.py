"""Who is told what all transports of this process do: a plugin of pytest adds itself here.

A process that a test starts has no plugin: it writes what it uses to a file, where the run names one.
It is a module of its own, as nothing that serves a call is imported before there is a transport.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ._recording import Recording

__all__ = ["LISTENERS", "RUN", "USED_VARIABLE", "Listener", "RunningRun"]

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


#: Those who listen to every transport.
LISTENERS: list[Listener] = []


class RunningRun:
    """What a test run knows of itself in this process, whatever a test does to the environment.

    Attributes:
        test: The id of the test that runs; empty outside of tests.
        is_ceiling: Whether nothing but replay is allowed.
        command: The words that start such a run again, to which a mode and a test are added.
        way_to_root: From where it was started to the folder that ids of tests are seen from.
    """

    test = ""
    is_ceiling = False
    command: tuple[str, ...] = ()
    way_to_root = "."


RUN = RunningRun()

if USED_VARIABLE in os.environ:
    from ._used_elsewhere import UsedElsewhere

    LISTENERS.append(UsedElsewhere(os.environ[USED_VARIABLE]))
