"""What the talks with openai-agents have in common: the client, the agent, what is seen of a run."""

from __future__ import annotations

from typing import Any

import openai
from agents import (
    Agent,
    ModelRetrySettings,
    ModelSettings,
    Runner,
    function_tool,
    retry_policies,
    set_tracing_disabled,
)

from httpx_cassette.httpx2 import CassetteTransport

QUESTION = "What is the weather in Paris and Oslo?"

# The uploader of traces has a client of its own.
set_tracing_disabled(True)


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"It rains in {city}."


def make_client(cassette: str | None) -> Any:
    """Return the client for a model."""
    if cassette is None:
        return openai.AsyncOpenAI()
    http = openai.DefaultAsyncHttpx2Client(transport=CassetteTransport(cassette))
    return openai.AsyncOpenAI(http_client=http)


def _make_agent(system: str, model: Any) -> Any:
    policy = retry_policies.any(retry_policies.provider_suggested(), retry_policies.network_error())
    retry = ModelRetrySettings(max_retries=2, policy=policy)
    settings = ModelSettings(retry=retry, include_usage=True)
    return Agent("weather", instructions=system, model=model, tools=[get_weather], model_settings=settings)


def talk(system: str, model: Any) -> Any:
    """Run the agent to its end."""
    return _seen(Runner.run_sync(_make_agent(system, model), QUESTION))


async def talk_async(system: str, model: Any) -> Any:
    """Stream a run."""
    result = Runner.run_streamed(_make_agent(system, model), QUESTION)
    text = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    return ["".join(text), *_seen(result)]


def _seen(result: Any) -> Any:
    usage = result.context_wrapper.usage
    items = [[item.type, str(item.to_input_item())] for item in result.new_items]
    return [result.final_output, items, usage.requests, usage.input_tokens, usage.output_tokens]
