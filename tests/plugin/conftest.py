"""Where the projects of these tests can be run, and how to run one in this process."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

# What is imported within a run is forgotten with it: all runs are to share one copy.
from httpx_cassette import _guard, _ledger, _price, _usage, _use  # noqa: F401
from httpx_cassette.pytest_plugin import _items, _opening, _telling, _unused  # noqa: F401
from tests.plugin._project import PROGRAMS, Ended, Project

# They live in an environment of their own (nox -s plugin).
_PACKAGES = (
    "pytest_asyncio", "pytest_httpx", "pytest_recording", "pytest_rerunfailures", "starlette", "xdist",
)  # fmt: skip
collect_ignore_glob = [] if all(map(importlib.util.find_spec, _PACKAGES)) else ["test_*.py"]

Tested = Callable[..., Ended]


@pytest.fixture
def folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder of a project, which is the working folder."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.syspath_prepend(str(PROGRAMS))
    return pytester.path


@pytest.fixture
def tested(pytester: pytest.Pytester, folder: Path) -> Tested:
    """Give what tests a project in this process: texts of files by name, and arguments of pytest.

    It is quicker than a process of its own, which only exit statuses and workers need.
    """

    def test(*arguments: str, plugins: tuple[str, ...] = (), **files: str) -> Ended:
        Project({f"{name}.py": text for name, text in files.items()}).write(folder)
        loaded = [word for name in ("httpx_cassette", *plugins) for word in ("-p", name)]
        ended = pytester.runpytest_inprocess("-q", "--color=no", "--tb=short", *loaded, *arguments)
        return Ended(int(ended.ret), ended.stdout.str(), ended.stderr.str(), folder)

    return test
