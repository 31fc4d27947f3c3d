"""litellm's route to openai: its clients are module-wide."""

from __future__ import annotations

from typing import Any

from . import _litellm

MODEL, OTHERS = "openai/gpt-5-mini", ["openai/gpt-5-nano"]


def talk(system: str, cassette: str | None) -> Any:
    """Stream two turns. With ``fallbacks`` a sync call would be an async one, in a loop of its own."""
    _litellm.give_clients(cassette)
    return _litellm.talk(system, model=MODEL)


async def talk_async(system: str, cassette: str | None) -> Any:
    """Stream two turns in an event loop, with another model to fall back to."""
    _litellm.give_clients(cassette)
    return await _litellm.talk_async(system, model=MODEL, fallbacks=OTHERS)
