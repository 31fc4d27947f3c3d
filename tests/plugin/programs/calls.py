"""What the tests of every small project call: a model that is not there.

``ask`` and ``ask_async`` use clients that were given nothing: a cassette that is open answers them.
``ask_alone`` has a transport of its own, on a cassette that does not exist, and misses wherever it is called.
"""

from __future__ import annotations

import os
from typing import Any

import httpx

import httpx_cassette

__all__ = ["URL", "ask", "ask_alone", "ask_async", "body", "model", "record"]

#: Nothing listens there: a call that no cassette answers fails at once, and none leaves the machine.
URL = os.environ.get("MODEL_URL", "http://127.0.0.1:9/v1") + "/chat/completions"

#: The stand-in wants one.
KEY = {"authorization": "Bearer none"}

#: The answer of ``model``, with what it cost.
ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-4o-2024-08-06",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200},
}


def body(prompt: str, **more: Any) -> dict[str, Any]:
    """Return a request that passes the guard for system prompts."""
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": prompt}]
    return {"model": "gpt-4o", "messages": messages, **more}


def model(request: Any) -> httpx.Response:
    """Answer as a model does: what ``next_transport=httpx.MockTransport(model)`` takes."""
    return httpx.Response(200, json=ANSWER)


def ask(prompt: str = "a", **more: Any) -> Any:
    """Make a call."""
    with httpx.Client(headers=KEY) as client:
        return client.post(URL, json=body(prompt, **more)).json()


async def ask_async(prompt: str = "a", **more: Any) -> Any:
    """Make a call in an event loop."""
    async with httpx.AsyncClient(headers=KEY) as client:
        return (await client.post(URL, json=body(prompt, **more))).json()


def record(cassette: str, *prompts: str, **options: Any) -> None:
    """Put the answers of ``model`` to some prompts into a cassette."""
    transport = httpx_cassette.CassetteTransport(
        cassette, **{"mode": "record", "next_transport": httpx.MockTransport(model), **options}
    )
    with httpx.Client(transport=transport) as client:
        for prompt in prompts:
            client.post(URL, json=body(prompt))


def ask_alone(prompt: str = "a", cassette: str = "alone.jsonl") -> None:
    """Make a call that misses, whether or not a cassette is open."""
    with httpx.Client(transport=httpx_cassette.CassetteTransport(cassette)) as client:
        client.post(URL, json=body(prompt))
