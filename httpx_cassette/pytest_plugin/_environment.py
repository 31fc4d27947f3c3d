"""What a run sets in the environment for all of its processes, and puts back when it ends."""

from __future__ import annotations

import os
import tempfile
import time

import pytest

from .._process import RUN, USED_VARIABLE

__all__ = ["Environment"]

# Named here, not imported: what defines them comes with the first transport.
_MODE = "HTTPX_CASSETTE_MODE"
_FRESH_SINCE = "HTTPX_CASSETTE_FRESH_SINCE"
_MAX_CALLS = "HTTPX_CASSETTE_MAX_CALLS"
_BUDGET = "HTTPX_CASSETTE_BUDGET"

_MODES = ("replay", "record", "rerecord", "live")


class Environment:
    """The mode of a run, and what its processes share.

    Args:
        config: pytest's.

    Raises:
        UsageError: The command line contradicts the environment, or names a file that cannot be written.

    Attributes:
        used_elsewhere: The file to which processes that are no workers write what they use, where the run is
            asked for it.
    """

    def __init__(self, config: pytest.Config) -> None:
        option = config.option
        _check_used_file(config)
        mode = _check_mode(option.cassette_mode)
        self.used_elsewhere: str | None = None
        self._budget: tempfile.TemporaryDirectory[str] | None = None
        self._before = {name: os.environ.get(name) for name in (_MODE, _FRESH_SINCE, _BUDGET, USED_VARIABLE)}
        if option.cassette_mode is not None:
            os.environ[_MODE] = option.cassette_mode
        self._was_ceiling, RUN.is_ceiling = RUN.is_ceiling, mode == "replay"
        if hasattr(config, "workeroutput"):
            return  # A worker has inherited the rest.
        if mode not in ("", "replay"):
            self._share_recording()
        if option.cassette_report or option.cassette_prune or option.cassette_used is not None:
            file, self.used_elsewhere = tempfile.mkstemp(prefix="httpx-cassette-used-")
            os.close(file)
            os.environ[USED_VARIABLE] = self.used_elsewhere

    def _share_recording(self) -> None:
        """Have all processes share a limit of calls, and what they have recorded anew."""
        # Recordings name whole seconds: what an earlier run made in this one is not fresh.
        began = time.gmtime(time.time() + 1)
        os.environ.setdefault(_FRESH_SINCE, time.strftime("%Y-%m-%dT%H:%M:%SZ", began))
        if os.environ.get(_MAX_CALLS) and not os.environ.get(_BUDGET):
            self._budget = tempfile.TemporaryDirectory(prefix="httpx-cassette-", ignore_cleanup_errors=True)
            os.environ[_BUDGET] = os.path.join(self._budget.name, "budget")

    def put_back(self) -> None:
        """Have the environment be as it was before the run."""
        RUN.is_ceiling = self._was_ceiling
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if self._budget is not None:
            self._budget.cleanup()
        if self.used_elsewhere is not None:
            from .._used_elsewhere import remove_used_elsewhere

            remove_used_elsewhere(self.used_elsewhere)


def _check_used_file(config: pytest.Config) -> None:
    name = config.option.cassette_used
    if name is None:
        return
    file = config.invocation_params.dir / name
    if not file.parent.is_dir():
        raise pytest.UsageError(f"--cassette-used={name}: there is no such folder")
    if file.is_dir():
        raise pytest.UsageError(f"--cassette-used={name}: that is a folder, and not a file")


def _check_mode(mode: str | None) -> str:
    """Return the mode of the run, empty where neither the command line nor the environment says one."""
    outside = os.environ.get(_MODE, "").strip().lower()
    if outside and outside not in _MODES:
        from .._suggest import nearest_name

        raise pytest.UsageError(f"{_MODE}={os.environ[_MODE]!r} is not a mode{nearest_name(outside, _MODES)}")
    if outside == "replay" and mode not in (None, "replay"):
        raise pytest.UsageError(
            f"--cassette-mode={mode} under {_MODE}=replay, which wins; unset the variable"
        )
    return mode or outside
