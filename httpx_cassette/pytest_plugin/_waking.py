"""A run until something happens: it takes over from the exit hook, listens, and does nothing else.

Every run of every suite on the machine pays for what stands here, and most of them use no cassette. So what
tells tests what they missed is imported when a test is marked, when a call was counted or stopped, or when
the command line asks for something. pytest's way to import costs by the number of modules and of functions,
so that there are few of either.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from .. import _exit
from .._process import LISTENERS, LOADING, RUN

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._environment import Environment
    from ._hearing import Hearing
    from ._run import Run

__all__ = ["BEFORE", "begin", "ledger_if_used", "listen", "run_if_awake", "run_of"]

#: The name of a run among the plugins of pytest.
_PLUGIN = "httpx_cassette-run"

#: What had been stopped before a run began: it is not the run's.
BEFORE: pytest.StashKey[set[tuple[int, str, str, str]]] = pytest.StashKey()

_LISTENER: pytest.StashKey[_Asleep] = pytest.StashKey()


def begin(config: pytest.Config) -> None:
    """Take over from the exit hook, before conftest files are imported: they may make calls, too."""
    if BEFORE in config.stash:
        return
    config.stash[BEFORE] = set()
    if ledger := ledger_if_used():
        from ._run import name_of

        config.stash[BEFORE].update(map(name_of, ledger.all_entries()))
    if not _exit.guard().stands_down:  # It does where one run tests another: that one hands back.
        _exit.guard().stands_down = True
        config.add_cleanup(lambda: _hand_back(config))


def _hand_back(config: pytest.Config) -> None:
    """Give the exit hook back what may still come; what the run told is not told again."""
    if ledger := ledger_if_used():
        from ._run import ends_with_its_own_status

        # What was stopped before the run is not the run's to forgive.
        is_forgiven = not config.stash[BEFORE] and ends_with_its_own_status(run_if_awake(config))
        ledger.settle(is_forgiven=is_forgiven)
    _exit.guard().stands_down = False


def listen(config: pytest.Config) -> None:
    """Listen to all transports, and wake up if the run is to do anything in any case.

    Raises:
        UsageError: The command line contradicts the environment, or names a file that cannot be written.
    """
    begin(config)  # Once more, for whoever loads the plugin late: a conftest file.
    config.stash[_LISTENER] = listener = _Asleep(config)
    option = config.option
    if (
        # Named here, not imported: what defines it comes with the first transport.
        os.environ.get("HTTPX_CASSETTE_MODE")
        or RUN.is_ceiling
        or (option.cassette_mode or option.cassette_report or option.cassette_prune)
        or option.cassette_used is not None
        or ledger_if_used()
        # Another process owns the ledger: its entries are told apart by the tests of this run.
        or not _exit.guard().ledger
        # Processes of pytest-xdist tell each other.
        or getattr(option, "dist", "no") != "no"
        or hasattr(config, "workeroutput")
    ):
        from ._environment import Environment

        run_of(config, Environment(config))
    # A run that tests another one goes on behind it.
    before, RUN.recording = RUN.recording, listener.recording
    LISTENERS.append(listener)
    config.add_cleanup(lambda: _end(config, before))


def _end(config: pytest.Config, before: Callable[[str], tuple[str, ...]] | None) -> None:
    """Listen no longer, and tell what nobody was told."""
    RUN.recording = before
    LISTENERS.remove(config.stash[_LISTENER])
    if run_if_awake(config) or ledger_if_used():
        run_of(config).end()


class _Asleep:
    """Stands for what a run hears, which is made when there is something to hear."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.pid = config, os.getpid()

    def __getattr__(self, name: str) -> Any:
        """Return a method of the listener; three that pass everything on would be paid for by every run."""
        return getattr(self.hearing(), name)

    def hearing(self) -> Hearing:
        with LOADING:
            from ._hearing import Hearing

            is_worker = hasattr(self.config, "workeroutput")
            found: Hearing = self.__dict__.setdefault("heard", Hearing(self.pid, is_worker=is_worker))
            return found

    def recording(self, test: str) -> tuple[str, ...]:
        from ._run import recording_command

        return recording_command(self.config, test)


def run_if_awake(config: pytest.Config) -> Run | None:
    """Return the run, if something happened."""
    found: Run | None = config.pluginmanager.get_plugin(_PLUGIN)
    return found


def run_of(config: pytest.Config, environment: Environment | None = None) -> Run:
    """Return the run; it is woken if it sleeps.

    Hooks that run already do not see those of the run: who wakes it in one calls the same hook of the run.

    Args:
        config: pytest's.
        environment: What it sets for all of its processes, where that is anything.
    """
    found = run_if_awake(config)
    if found is None:
        from ._run import Run

        found = Run(config, config.stash[_LISTENER].hearing(), environment)
        config.pluginmanager.register(found, _PLUGIN)
    return found


def ledger_if_used() -> Any:
    """Return the ledger, ``None`` where neither this process nor a child has used it so far."""
    found = sys.modules.get("httpx_cassette._ledger")
    # Not by the environment, which a test may have cleared.
    if found is None and os.path.exists(_exit.guard().named or ""):
        from .. import _ledger as found
    return found
