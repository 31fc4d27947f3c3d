"""langchain's agent with ChatOpenAI, which takes a client for either colour."""

from __future__ import annotations

from typing import Any

import openai
from langchain_openai import ChatOpenAI

from httpx_cassette.httpx2 import CassetteTransport

from . import _langchain


def talk(system: str, cassette: str | None) -> Any:
    """Stream the agent's turns."""
    return _langchain.talk(system, _make_models(cassette))


async def talk_async(system: str, cassette: str | None) -> Any:
    """The same in an event loop."""
    return await _langchain.talk_async(system, _make_models(cassette))


def _make_models(cassette: str | None) -> list[Any]:
    clients: dict[str, Any] = {}
    if cassette is not None:
        transport = CassetteTransport(cassette)
        clients = {
            "http_client": openai.DefaultHttpx2Client(transport=transport),
            "http_async_client": openai.DefaultAsyncHttpx2Client(transport=transport),
        }
    return [ChatOpenAI(model=name, stream_usage=True, **clients) for name in ("gpt-5-mini", "gpt-5-nano")]
