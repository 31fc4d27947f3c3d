"""What there is once in a process, whether or not it makes calls: what is known of it before they are made.

Everything may import this, so that nothing that serves a call is imported before there is a transport.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LISTENERS", "LOADING", "RUN", "USED_FILE", "USED_VARIABLE", "RunningRun"]

#: Names the file to which processes that a test run starts write what they use: they have no plugin.
USED_VARIABLE = "HTTPX_CASSETTE_USED"

#: That file, where a test run started this process. Later the variable may name this run's own.
USED_FILE = os.environ.get(USED_VARIABLE)

#: Who is told what all transports do: a plugin of pytest adds itself here. Each is a ``Listener`` of the
#: sessions, of which nothing is known here.
LISTENERS: list[object] = []

#: Held while something is imported late. Re-entrant: what is imported may import late itself.
#: A child that is forked while another thread imports a module inherits the lock of that import, and would
#: wait for ever for its end. So what this package imports late is imported under one lock, and a fork takes
#: that lock first.
LOADING = threading.RLock()

if hasattr(os, "register_at_fork"):  # pragma: no branch  # not on Windows, which does not fork
    os.register_at_fork(
        before=LOADING.acquire, after_in_parent=LOADING.release, after_in_child=LOADING.release
    )


class RunningRun:
    """What a test run knows of itself in this process, whatever a test does to the environment.

    Attributes:
        test: The id of the test that runs; empty outside of tests.
        is_ceiling: Whether nothing but replay is allowed.
        recording: Gives the words of the command that records a test, by its id.
    """

    test = ""
    is_ceiling = False
    recording: Callable[[str], tuple[str, ...]] | None = None


RUN = RunningRun()
