"""dspy's ReAct on its litellm engine, without dspy's own cache; its other engine talks over bare sockets."""

from __future__ import annotations

from typing import Any

import dspy

from . import _litellm

QUESTION = {"question": "What is the weather in Paris?"}


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"It rains in {city}."


def _start(system: str, cassette: str | None, **options: Any) -> Any:
    _litellm.give_clients(cassette)
    react = dspy.ReAct(dspy.Signature("question -> answer", system), tools=[get_weather])
    react.set_lm(dspy.LM("openai/gpt-4o-mini", engine="litellm", cache=False, num_retries=2))
    listener = dspy.streaming.StreamListener("answer")
    return dspy.streamify(react, stream_listeners=[listener], **options)(**QUESTION)


def talk(system: str, cassette: str | None) -> Any:
    """Stream the answer of a program, from outside of any event loop."""
    return _seen(list(_start(system, cassette, async_streaming=False)))


async def talk_async(system: str, cassette: str | None) -> Any:
    """The same in an event loop, and the program without a thread of its own."""
    return _seen([item async for item in _start(system, cassette, is_async_program=True)])


def _seen(items: list[Any]) -> Any:
    pieces = [item.chunk for item in items if isinstance(item, dspy.streaming.StreamResponse)]
    (last,) = [item for item in items if isinstance(item, dspy.Prediction)]
    return ["".join(pieces), last.answer, last.trajectory]
