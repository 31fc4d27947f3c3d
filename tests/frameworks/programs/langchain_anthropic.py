"""langchain's agent with ChatAnthropic, which has no parameter for a client: it is put into its place."""

from __future__ import annotations

from typing import Any

import anthropic
from langchain_anthropic import ChatAnthropic

from httpx_cassette.httpx2 import CassetteTransport

from . import _langchain

MODELS = ("claude-sonnet-5", "claude-haiku-5")


def talk(system: str, cassette: str | None) -> Any:
    """Stream the agent's turns."""
    return _langchain.talk(system, [_make_model(name, cassette) for name in MODELS])


async def talk_async(system: str, cassette: str | None) -> Any:
    """The same in an event loop."""
    return await _langchain.talk_async(system, [_make_model(name, cassette) for name in MODELS])


def _make_model(name: str, cassette: str | None) -> Any:
    # Without max_tokens, langchain takes a number from a table of models, and another one for each.
    model = ChatAnthropic(model=name, max_tokens=1024)
    if cassette is not None:
        transport = CassetteTransport(cassette)
        http = anthropic.DefaultHttpxClient(transport=transport)
        async_http = anthropic.DefaultAsyncHttpxClient(transport=transport)
        # Cached properties, which are not made any more once they are there.
        model.__dict__["_client"] = anthropic.Anthropic(http_client=http)
        model.__dict__["_async_client"] = anthropic.AsyncAnthropic(http_client=async_http)
    return model
