"""The openai SDK that is installed, in one colour, over one cassette.

openai 3 runs on httpx2 and openai 2 on httpx; each has a sync and an async client. A test is written once,
as a coroutine: what the sync client gives is there already, what the async client gives is awaited.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai

#: Whether the SDK is built on httpx2.
IS_ON_HTTPX2 = int(openai.VERSION.partition(".")[0]) >= 3

SYSTEM = {"role": "system", "content": "You are a careful assistant."}


def user(text: str) -> dict[str, str]:
    """Return what a user says."""
    return {"role": "user", "content": text}


def make_transport(cassette: Path, **options: Any) -> Any:
    """Return a transport of the library on which the SDK is built."""
    if IS_ON_HTTPX2:
        from httpx_cassette.httpx2 import CassetteTransport as Httpx2CassetteTransport

        return Httpx2CassetteTransport(cassette, **options)
    from httpx_cassette import CassetteTransport

    return CassetteTransport(cassette, **options)


class Sdk:
    """Makes clients, and takes from them what they give.

    Args:
        is_async: Whether clients are async.
        url: Where the server listens.
        cassette: The cassette.

    Attributes:
        transport: The transport of the client that was made last.
    """

    def __init__(self, is_async: bool, url: str, cassette: Path) -> None:
        self.is_async = is_async
        self.cassette = cassette
        self.transport: Any = None
        self._url = url

    @contextlib.asynccontextmanager
    async def client(self, mode: str, *, max_retries: int = 2, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        self.transport = make_transport(self.cassette, mode=mode, **options)
        library = "Httpx2" if IS_ON_HTTPX2 else "Httpx"
        name = f"DefaultAsync{library}Client" if self.is_async else f"Default{library}Client"
        make_client: Any = openai.AsyncOpenAI if self.is_async else openai.OpenAI
        client = make_client(
            api_key="any",
            base_url=self._url,
            max_retries=max_retries,
            http_client=getattr(openai, name)(transport=self.transport),
        )
        async with self.opened(client):
            yield client

    async def result(self, given: Any) -> Any:
        """Return what a call gives."""
        return await given if inspect.isawaitable(given) else given

    async def items(self, stream: Any) -> list[Any]:
        """Return the items of a stream, read to its end."""
        if hasattr(stream, "__aiter__"):
            return [item async for item in stream]
        return list(stream)

    async def next(self, stream: Any) -> Any:
        """Return the next item of a stream."""
        return await stream.__anext__() if hasattr(stream, "__anext__") else next(stream)

    @contextlib.asynccontextmanager
    async def opened(self, manager: Any) -> AsyncIterator[Any]:
        """Enter a context manager of either colour."""
        if hasattr(manager, "__aenter__"):
            async with manager as entered:
                yield entered
        else:
            with manager as entered:
                yield entered

    def lines(self) -> int:
        """Return how many recordings the cassette holds."""
        return len(self.cassette.read_bytes().splitlines()) if self.cassette.exists() else 0
