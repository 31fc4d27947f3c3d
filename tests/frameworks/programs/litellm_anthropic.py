"""litellm's route to Anthropic, as all routes but openai's: a handler is given to the call."""

from __future__ import annotations

from typing import Any

import httpx
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler

from httpx_cassette import CassetteTransport

from . import _litellm

MODEL, OTHERS = "anthropic/claude-sonnet-5", ["anthropic/claude-haiku-5"]


def talk(system: str, cassette: str | None) -> Any:
    """Stream two turns."""
    _litellm.give_clients(None)
    if cassette is None:
        return _litellm.talk(system, model=MODEL)
    http = httpx.Client(transport=CassetteTransport(cassette))
    return _litellm.talk(system, model=MODEL, client=HTTPHandler(client=http))


async def talk_async(system: str, cassette: str | None) -> Any:
    """Stream two turns in an event loop, with another model to fall back to."""
    _litellm.give_clients(None)
    if cassette is None:
        return await _litellm.talk_async(system, model=MODEL, fallbacks=OTHERS)
    handler = AsyncHTTPHandler()
    handler.client = httpx.AsyncClient(transport=CassetteTransport(cassette))
    return await _litellm.talk_async(system, model=MODEL, fallbacks=OTHERS, client=handler)
