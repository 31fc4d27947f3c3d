"""What the talks with litellm have in common: it runs no tool, so the loop is the user's."""

from __future__ import annotations

import json
from typing import Any

import litellm
import openai

from httpx_cassette.httpx2 import CassetteTransport

# Async calls go by aiohttp otherwise, and round any cassette.
litellm.disable_aiohttp_transport = True

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def give_clients(cassette: str | None) -> None:
    """Have the route to openai use these clients, and not those that it made before and kept."""
    litellm.client_session = litellm.aclient_session = None
    litellm.in_memory_llm_clients_cache.flush_cache()
    if cassette is not None:
        transport = CassetteTransport(cassette)
        litellm.client_session = openai.DefaultHttpx2Client(transport=transport)
        litellm.aclient_session = openai.DefaultAsyncHttpx2Client(transport=transport)


def _asked(system: str) -> dict[str, Any]:
    messages: list[Any] = [
        {"role": "system", "content": system},
        {"role": "user", "content": "What is the weather in Paris and Oslo?"},
    ]
    options = {"include_usage": True}
    return {
        "messages": messages,
        "tools": [TOOL],
        "stream": True,
        "stream_options": options,
        "num_retries": 2,
    }


def talk(system: str, **options: Any) -> Any:
    """Stream two turns; what stands between them is what a user writes."""
    asked = _asked(system)
    first = _whole(list(litellm.completion(**asked, **options)), asked)
    _call_tools(first, asked)
    last = _whole(list(litellm.completion(**asked, **options)), asked)
    return [_seen(first), _seen(last)]


async def talk_async(system: str, **options: Any) -> Any:
    """The same in an event loop."""
    asked = _asked(system)
    stream = await litellm.acompletion(**asked, **options)
    first = _whole([chunk async for chunk in stream], asked)
    _call_tools(first, asked)
    stream = await litellm.acompletion(**asked, **options)
    return [_seen(first), _seen(_whole([chunk async for chunk in stream], asked))]


def _whole(chunks: list[Any], asked: dict[str, Any]) -> Any:
    return litellm.stream_chunk_builder(chunks, messages=asked["messages"])


def _call_tools(answer: Any, asked: dict[str, Any]) -> None:
    message = answer.choices[0].message
    asked["messages"].append(message.model_dump())
    for call in message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        result = {"role": "tool", "tool_call_id": call.id, "content": f"It rains in {city}."}
        asked["messages"].append(result)


def _seen(answer: Any) -> Any:
    message = answer.choices[0].message
    calls = [[call.id, call.function.name, call.function.arguments] for call in message.tool_calls or ()]
    usage = answer.usage
    return [message.content, calls, usage.prompt_tokens, usage.completion_tokens]
