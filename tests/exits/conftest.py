"""Where the programs of all rows can be run, and the table that such a run prints."""

from __future__ import annotations

import importlib.util

import pytest

from tests.exits._table import SEEN, table

# The other packages live in an environment of their own (nox -s exits).
_PACKAGES = ("fastapi", "pytest_asyncio", "stamina", "starlette", "tenacity", "uvicorn", "xdist")
collect_ignore = [] if all(map(importlib.util.find_spec, _PACKAGES)) else ["test_table.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table; where a row has changed, its line is the new one of ``table.txt``."""
    for line in table() if SEEN else ():
        terminalreporter.write_line(line)
