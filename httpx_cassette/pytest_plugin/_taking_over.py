"""What happens between pytest and the exit hook: who tells what was stopped, and when it is handed back."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from .. import _arming, _exit

if TYPE_CHECKING:
    from .._ledger import Entry

__all__ = ["BEFORE", "PLUGIN", "begin", "command_of", "ledger_if_used", "name_of"]

#: The name of a run among the plugins of pytest.
PLUGIN = "httpx_cassette-run"

#: What had been stopped before a run began: it is not the run's.
BEFORE = pytest.StashKey[set[tuple[int, str, str, str]]]()

#: An internal error and a wrong command line, whose statuses stay what they are.
_KEPT = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


def begin(config: pytest.Config) -> None:
    """Take over from the exit hook, before conftest files are imported: they may make calls, too."""
    if BEFORE not in config.stash:
        ledger = ledger_if_used()
        config.stash[BEFORE] = {name_of(entry) for entry in ledger.all_entries()} if ledger else set()
        if not _exit.guard().stands_down:  # It does where one run tests another: that one hands back.
            _exit.guard().stands_down = True
            config.add_cleanup(lambda: _hand_back(config))


def _hand_back(config: pytest.Config) -> None:
    """Give the exit hook back what may still come; what the run told is not told again."""
    # There is none where pytest refused the command line.
    ledger, run = ledger_if_used(), config.pluginmanager.get_plugin(PLUGIN)
    if ledger:
        ledger.settle(is_forgiven=run is None or run.status in _KEPT)
    _exit.guard().stands_down = False


def ledger_if_used() -> Any:
    """Return the ledger, ``None`` where neither this process nor a child has used it so far."""
    found = sys.modules.get("httpx_cassette._ledger")
    if found is None and os.path.exists(os.environ.get(_arming.LEDGER_VARIABLE, "")):
        from .. import _ledger as found
    return found


def name_of(entry: Entry) -> tuple[int, str, str, str]:
    """Return what tells an entry from others."""
    return entry.pid, entry.kind, entry.key, entry.test


def command_of(config: pytest.Config) -> tuple[str, ...]:
    """Return the words that start such a run again; an id of a test is to follow."""
    # Workers of pytest-xdist are handed the options, and know no command line.
    known: tuple[str, ...] | None = getattr(config.option, "cassette_command", None)
    if known is None:
        started = os.path.basename(sys.argv[0])
        words = ["python", "-m", "pytest"] if started in ("__main__.py", "-m", "-c") else ["pytest"]
        if config.option.cassette_dir is not None:
            words.append(f"--cassette-dir={config.option.cassette_dir}")
        known = config.option.cassette_command = tuple(words)
    return known
