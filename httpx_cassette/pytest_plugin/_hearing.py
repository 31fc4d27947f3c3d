"""What a run hears of all transports: it counts for the process of the run, and writes for forks of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .._process import USED_VARIABLE

if TYPE_CHECKING:
    from .._recording import Recording
    from .._used_elsewhere import UsedElsewhere
    from ._suite import Suite

__all__ = ["Hearing"]


class Hearing:
    """A listener of all transports.

    Args:
        pid: The process of the run.
        is_worker: Whether it is one of pytest-xdist.
    """

    def __init__(self, pid: int, *, is_worker: bool) -> None:
        self._pid = pid
        self._is_worker = is_worker
        self._suite: Suite | None = None

    @property
    def has_heard(self) -> bool:
        """Whether anything was counted."""
        return self._suite is not None

    @property
    def suite(self) -> Suite:
        """What was counted."""
        if self._suite is None:
            from ._suite import Suite

            self._suite = Suite()
        return self._suite

    def counted(self, name: str) -> None:
        """Count; not what a forked child does, whose lock another thread may have held."""
        if os.getpid() == self._pid:
            self.suite.counted(name)
        elif self._is_to_write:
            self._used_elsewhere().counted(name)

    def used(self, recording: Recording, name: str) -> None:
        """Keep what is told of a recording."""
        if os.getpid() == self._pid:
            self.suite.used(recording, name)
        elif self._is_to_write:
            self._used_elsewhere().used(recording, name)

    @property
    def _is_to_write(self) -> bool:
        """Whether a forked child, which takes what it knows along, has nobody else who writes what it does.

        A worker was started with the variable, and listens for it; its children do so, too.
        """
        return not self._is_worker and USED_VARIABLE in os.environ

    def _used_elsewhere(self) -> UsedElsewhere:
        from .._used_elsewhere import UsedElsewhere

        return UsedElsewhere(os.environ[USED_VARIABLE])

    def unrecorded(self, what: str) -> None:
        """Keep it for the test that runs."""
        if os.getpid() == self._pid:
            self.suite.unrecorded(what)
