"""What the tests share."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def tickets() -> list[str]:
    return ["The export button does nothing.", "Can you send me the invoice of March?"]
