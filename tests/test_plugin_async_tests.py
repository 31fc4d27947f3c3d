"""Tests that are coroutines, under the plugin of anyio: one that misses is no trouble for those after it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .blocks import shell

SUITE = """
import anyio, httpx, pytest

pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return {backend!r}

@pytest.fixture(scope="module")
async def shared():
    "Keeps the event loop, and the task in which anyio runs every test of the module."
    yield

async def ask():
    body = {{"model": "m", "messages": [{{"role": "system", "content": "s"}}]}}
    async with httpx.AsyncClient() as client:
        await client.post("https://api.example.com/v1/chat/completions", json=body)

@pytest.mark.cassette
async def test_alone(shared):
    await ask()

@pytest.mark.cassette
async def test_in_a_group(shared):
    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        group.start_soon(anyio.sleep, 60)

async def test_without_a_call(shared):
    await anyio.sleep(0)

async def test_with_a_fault_of_its_own(shared):
    raise KeyError("spam")

async def test_with_a_transport_of_its_own(shared):
    from httpx_cassette import CassetteTransport

    async with httpx.AsyncClient(transport=CassetteTransport("absent.jsonl")) as client:
        await client.get("https://api.example.com/v1/models")

async def test_at_the_end(shared):
    await anyio.sleep(0)
"""


OWN = "test_with_a_transport_of_its_own"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_miss_does_not_end_the_loop_of_other_tests(backend: str, tmp_path: Path) -> None:
    """Each runs in the same loop, and those are red that miss, or have a fault of their own."""
    (tmp_path / "test_suite.py").write_text(SUITE.format(backend=backend))
    ended = shell("python -W error -m pytest -q --tb=no -p no:randomly", tmp_path, "http://127.0.0.1:9")
    red = re.findall(r"^(?:FAILED|ERROR) test_suite.py::(\w+)", ended.output, re.M)

    assert ["test_alone", "test_in_a_group", "test_with_a_fault_of_its_own", OWN] == red
    assert (2, False) == (ended.status, "never retrieved" in ended.output)
