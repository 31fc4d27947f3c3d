"""openai-agents over chat completions."""

from __future__ import annotations

from typing import Any

from agents import OpenAIChatCompletionsModel

from . import _openai_agents


def talk(system: str, cassette: str | None) -> Any:
    """Run the agent to its end; what is streamed is async only."""
    return _openai_agents.talk(system, _make_model(cassette))


async def talk_async(system: str, cassette: str | None) -> Any:
    """Stream a run."""
    return await _openai_agents.talk_async(system, _make_model(cassette))


def _make_model(cassette: str | None) -> Any:
    client = _openai_agents.make_client(cassette)
    return OpenAIChatCompletionsModel("gpt-5-mini", openai_client=client)
