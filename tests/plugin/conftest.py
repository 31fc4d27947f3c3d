"""Where the projects of these tests can be run: beside the plugins that they use."""

from __future__ import annotations

import importlib.util

# They live in an environment of their own (nox -s plugin).
_PACKAGES = (
    "pytest_asyncio", "pytest_httpx", "pytest_recording", "pytest_rerunfailures", "starlette", "xdist",
)  # fmt: skip
collect_ignore_glob = [] if all(map(importlib.util.find_spec, _PACKAGES)) else ["test_*.py"]
