"""The frameworks: what each asks in its talk, and what a changed system prompt looks like there.

Nothing here runs anything, or imports a framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["CHANGED", "ROWS", "SYSTEM", "Row"]

SYSTEM = "You are a careful assistant."

#: What somebody makes of it.
CHANGED = "You are a careless assistant."

_TEXTS = f'"{SYSTEM}" -> "{CHANGED}"'


@dataclass(frozen=True)
class Row:
    """A program in ``programs``, with what its talk is made of.

    Args:
        needs: The distribution that is tested.
        model: The model that is asked.
        path: Where the server is asked.
        dialect: The wire format.
        differs: The lines of a report that name what changed.
        recordings: How many calls the talk makes.
        falls_back: The model that is asked in an event loop after a miss, where the framework loses the miss
            and raises an error of its own. Every program names another model, if the framework takes one.
    """

    needs: str
    model: str
    path: str = "/v1/chat/completions"
    dialect: str = "openai-chat"
    differs: tuple[str, ...] = (f"messages[0].content   {_TEXTS}",)
    recordings: int = 2
    falls_back: str | None = None


_MESSAGES: Any = {
    "path": "/v1/messages",
    "dialect": "anthropic-messages",
    "differs": (f"system   {_TEXTS}",),
}
_RESPONSES: Any = {
    "path": "/v1/responses",
    "dialect": "openai-responses",
    "differs": (f"instructions   {_TEXTS}",),
}

#: dspy has a text of its own around it.
_LINES = (
    "messages[0].content",
    "  @@ -26,3 +26,3 @@",
    "   In adhering to this structure, your objective is:",
    f"  -        {SYSTEM}",
    f"  +        {CHANGED}",
    "   ",
)

ROWS = {
    "langchain_openai": Row("langchain>=1", "gpt-5-mini", falls_back="gpt-5-nano"),
    "langchain_anthropic": Row("langchain>=1", "claude-sonnet-5", **_MESSAGES, falls_back="claude-haiku-5"),
    "pydantic_ai_chat": Row("pydantic-ai-slim>=2", "gpt-5-mini"),
    "pydantic_ai_responses": Row("pydantic-ai-slim>=2", "gpt-5-mini", **_RESPONSES),
    "pydantic_ai_anthropic": Row("pydantic-ai-slim>=2", "claude-sonnet-5", **_MESSAGES),
    "openai_agents_chat": Row("openai-agents>=0", "gpt-5-mini"),
    "openai_agents_responses": Row("openai-agents>=0", "gpt-5-mini", **_RESPONSES),
    "litellm_openai": Row("litellm>=1", "gpt-5-mini"),
    "litellm_anthropic": Row("litellm>=1", "claude-sonnet-5", **_MESSAGES),
    "dspy_react": Row("dspy>=3", "gpt-4o-mini", differs=_LINES, recordings=3),
    "instructor_openai": Row("instructor>=1", "gpt-5-mini", recordings=3),
}
