"""What the talks with pydantic-ai have in common: the agent, the tool, what is seen of a run."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.fallback import FallbackModel

QUESTION = "What is the weather in Paris and Oslo?"


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"It rains in {city}."


def _make_agent(system: str, models: list[Any]) -> Any:
    return Agent(FallbackModel(*models), instructions=system, tools=[get_weather], retries=2)


def talk(system: str, models: list[Any]) -> Any:
    """Stream a run, from outside of any event loop."""
    result = _make_agent(system, models).run_stream_sync(QUESTION)
    text = "".join(result.stream_text(delta=True))
    return _seen(text, result)


async def talk_async(system: str, models: list[Any]) -> Any:
    """Stream a run."""
    async with _make_agent(system, models).run_stream(QUESTION) as result:
        text = "".join([piece async for piece in result.stream_text(delta=True)])
        return _seen(text, result)


def _seen(text: str, result: Any) -> Any:
    parts = [part for message in result.all_messages() for part in message.parts]
    calls = [
        [part.part_kind, part.tool_call_id, part.args if part.part_kind == "tool-call" else part.content]
        for part in parts
        if part.part_kind in ("tool-call", "tool-return")
    ]
    usage = result.usage
    return [text, calls, usage.requests, usage.input_tokens, usage.output_tokens]
