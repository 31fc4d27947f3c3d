"""pydantic-ai over Responses: a model, and another one to fall back to."""

from __future__ import annotations

from typing import Any

import openai
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from httpx_cassette.httpx2 import CassetteTransport

from . import _pydantic_ai

MODELS = ("gpt-5-mini", "gpt-5-nano")


def talk(system: str, cassette: str | None) -> Any:
    """Stream a run, from outside of any event loop."""
    return _pydantic_ai.talk(system, [_make_model(name, cassette) for name in MODELS])


async def talk_async(system: str, cassette: str | None) -> Any:
    """Stream a run."""
    return await _pydantic_ai.talk_async(system, [_make_model(name, cassette) for name in MODELS])


def _make_model(name: str, cassette: str | None) -> Any:
    if cassette is None:
        return OpenAIResponsesModel(name)
    http = openai.DefaultAsyncHttpx2Client(transport=CassetteTransport(cassette))
    return OpenAIResponsesModel(name, provider=OpenAIProvider(http_client=http))
