"""What every test with an SDK gets: its three ways of running, a server, and a cassette of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette.stand_in import Asked, Reply, StandInServer

from ._openai import Sdk

FILE = {
    "id": "file-standin1",
    "object": "file",
    "bytes": 15,
    "created_at": 1_767_225_600,
    "filename": "notes.txt",
    "purpose": "assistants",
    "status": "processed",
}


def answer(asked: Asked, nth: int) -> str | Reply | None:
    """Answer what the stand-in does not know: structured output and uploads."""
    if asked.path == "/v1/files":
        # Real servers list what they got; the content must have come through.
        assert b"some notes here" in asked.body
        return Reply(200, json.dumps(FILE).encode())
    if b"response_format" in asked.body:
        return json.dumps({"city": "Paris", "degrees": 20 + nth})
    return None


@pytest.fixture
def stand_in(loopback: None) -> Iterator[StandInServer]:
    """Give a stand-in model server that can do a little more."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture(params=["sync", "asyncio", "trio"])
def colour(request: pytest.FixtureRequest) -> str:
    """Run each test with the sync client, and with the async client under two event loops."""
    return str(request.param)


@pytest.fixture
def anyio_backend(colour: str) -> str:
    """Run the coroutine of a test; with the sync client it never waits for anything."""
    return "asyncio" if colour == "sync" else colour


@pytest.fixture
def cassette(tmp_path: Path) -> Path:
    """Give the path of a cassette that does not exist yet."""
    return tmp_path / "cassette.jsonl"


@pytest.fixture
def sdk(colour: str, stand_in: StandInServer, cassette: Path) -> Any:
    """Give the openai SDK in one colour, talking to the stand-in."""
    return Sdk(colour != "sync", stand_in.url, cassette)
