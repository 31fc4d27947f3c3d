"""Test modules in which a call misses, run by pytest without a plugin of ours.

pytest captures what a test writes to stderr, and shows it only for a test that fails: so the report comes
again when the run ends.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tests.exits._programs import Ended, Row

__all__ = ["TESTS", "UNTOUCHED", "WORKERS", "summary"]

_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:httpx_cassette")

_MODULES = {
    "pytest-test": """
        def test_it():
            ask()
    """,
    "pytest-fixture": """
        import pytest
        @pytest.fixture
        def answer():
            ask()
        def test_it(answer):
            pass
    """,
    "pytest-teardown": """
        import pytest
        @pytest.fixture
        def answer():
            yield
            ask()
        def test_it(answer):
            pass
    """,
    "pytest-unittest": """
        import unittest
        class Test(unittest.TestCase):
            def test_it(self):
                ask()
    """,
    "pytest-asyncio": """
        import pytest
        @pytest.mark.asyncio
        async def test_it():
            await ask_async()
    """,
    "pytest-asyncio-gather": """
        import asyncio, pytest
        @pytest.mark.asyncio
        async def test_it():
            await asyncio.gather(ask_async(), asyncio.sleep(60))
    """,
    "pytest-anyio": """
        import pytest
        @pytest.mark.anyio
        async def test_it():
            await ask_async()
    """,
    "pytest-thread": """
        import threading
        def test_it():
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
    """,
    "pytest-unread-future": """
        from concurrent.futures import ThreadPoolExecutor
        def test_it():
            with ThreadPoolExecutor() as pool:
                pool.submit(ask)
    """,
    "pytest-import": """
        ask()
        def test_it():
            pass
    """,
    "pytest-except-exception": """
        def test_it():
            try:
                ask()
            except Exception:
                pass
    """,
    "pytest-bare-except": """
        def test_it():
            try:
                ask()
            except:
                pass
    """,
    "pytest-raises": """
        import pytest
        from httpx_cassette import CassetteMiss
        def test_it():
            with pytest.raises(CassetteMiss):
                ask()
    """,
    "pytest-test-client": """
        from starlette.applications import Starlette
        from starlette.routing import Route
        from starlette.testclient import TestClient
        async def endpoint(request):
            await ask_async()
        def test_it():
            TestClient(Starlette(routes=[Route("/", endpoint)])).get("/")
    """,
}

TESTS = {name: Row(module, _PYTEST) for name, module in _MODULES.items()}

#: Modules that only the workers of pytest-xdist import. The controller knows the package by ``conftest.py``;
#: that of the tests is its witness too.
WORKERS = {
    name.replace("pytest-", "pytest-xdist-"): Row(
        _MODULES[name], (*_PYTEST, "-n", "2"), conftest="import httpx_cassette\nimport _ask\n"
    )
    for name in ("pytest-test", "pytest-bare-except", "pytest-raises")
}

UNTOUCHED = {
    "pytest-expected-miss": Row(
        """
        def test_it():
            with expected_miss():
                ask()
        """,
        _PYTEST,
    ),
    "pytest-xdist-expected-miss": Row(
        """
        def test_it():
            with expected_miss():
                ask()
        """,
        (*_PYTEST, "-n", "2"),
        conftest="import httpx_cassette\n",
    ),
}


def summary(ended: Ended) -> Ended:
    """Reduce what pytest printed to its last line, without the time."""
    return replace(ended, stdout=re.sub(r" in [0-9.]+s$", "", ended.stdout.splitlines()[-1]))
