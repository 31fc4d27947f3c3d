"""What the talks with langchain have in common: an agent with retries and another model to fall back to."""

from __future__ import annotations

import functools
import operator
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ModelFallbackMiddleware, ModelRetryMiddleware
from langchain_core.messages import AIMessageChunk

QUESTION = {"messages": [{"role": "user", "content": "What is the weather in Paris and Oslo?"}]}


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"It rains in {city}."


def talk(system: str, models: list[Any]) -> Any:
    """Stream the agent's turns."""
    return _seen(list(_make_agent(system, *models).stream(QUESTION, stream_mode="messages")))


async def talk_async(system: str, models: list[Any]) -> Any:
    """The same in an event loop."""
    turns = _make_agent(system, *models).astream(QUESTION, stream_mode="messages")
    return _seen([turn async for turn in turns])


def _make_agent(system: str, model: Any, other: Any) -> Any:
    again = ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="error")
    between = [ModelFallbackMiddleware(other), again]
    return create_agent(model, [get_weather], system_prompt=system, middleware=between)


def _seen(turns: list[Any]) -> Any:
    """Return the messages of a stream, each put together from its chunks; tools run at once, in any order."""
    messages: dict[str, list[Any]] = {}
    for message, _ in turns:
        messages.setdefault(message.id, []).append(message)
    whole = [functools.reduce(operator.add, chunks) for chunks in messages.values()]
    said = [each for each in whole if isinstance(each, AIMessageChunk)]
    results = sorted(each.text for each in whole if not isinstance(each, AIMessageChunk))
    return [results, *([each.tool_calls, each.text, each.usage_metadata] for each in said)]
