"""pydantic-ai over Anthropic's Messages: a model, and another one to fall back to."""

from __future__ import annotations

from typing import Any

import anthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from httpx_cassette.httpx2 import CassetteTransport

from . import _pydantic_ai

MODELS = ("claude-sonnet-5", "claude-haiku-5")


def talk(system: str, cassette: str | None) -> Any:
    """Stream a run, from outside of any event loop."""
    return _pydantic_ai.talk(system, [_make_model(name, cassette) for name in MODELS])


async def talk_async(system: str, cassette: str | None) -> Any:
    """Stream a run."""
    return await _pydantic_ai.talk_async(system, [_make_model(name, cassette) for name in MODELS])


def _make_model(name: str, cassette: str | None) -> Any:
    if cassette is None:
        return AnthropicModel(name)
    http = anthropic.DefaultAsyncHttpxClient(transport=CassetteTransport(cassette))
    return AnthropicModel(name, provider=AnthropicProvider(http_client=http))
