"""The wire formats, and which of them a call speaks.

A format is recognised by the path and the shape of the body, never by the host alone: gateways, proxies and
local servers speak the same formats under their own names.
"""

from __future__ import annotations

from functools import lru_cache

from .._call import Json
from ._dialect import Dialect, Endpoint, Folds, Pieces, SystemPrompt
from .anthropic_messages import ANTHROPIC_MESSAGES
from .cohere import COHERE
from .cohere_v1 import COHERE_V1
from .gemini import GEMINI
from .gemini_interactions import GEMINI_INTERACTIONS
from .generic import GENERIC
from .mistral import MISTRAL
from .mistral_conversations import MISTRAL_CONVERSATIONS
from .ollama import OLLAMA
from .openai_chat import OPENAI_CHAT
from .openai_responses import OPENAI_RESPONSES

__all__ = [
    "ANTHROPIC_MESSAGES",
    "COHERE",
    "COHERE_V1",
    "DIALECTS",
    "GEMINI",
    "GEMINI_INTERACTIONS",
    "GENERIC",
    "MISTRAL",
    "MISTRAL_CONVERSATIONS",
    "OLLAMA",
    "OPENAI_CHAT",
    "OPENAI_RESPONSES",
    "Dialect",
    "Endpoint",
    "Folds",
    "Pieces",
    "SystemPrompt",
    "by_name",
    "recognise",
]

#: Every wire format, the most frequent first.
DIALECTS = (
    OPENAI_CHAT,
    ANTHROPIC_MESSAGES,
    OPENAI_RESPONSES,
    GEMINI,
    GEMINI_INTERACTIONS,
    MISTRAL,
    MISTRAL_CONVERSATIONS,
    OLLAMA,
    COHERE,
    COHERE_V1,
    GENERIC,
)

_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


@lru_cache(maxsize=512)
def _spoken_at(path: str) -> tuple[tuple[Endpoint, Dialect], ...]:
    """Return what may be spoken at a path. Kept: each hit pays for this, and programs call few paths."""
    return tuple(
        (endpoint, dialect) for dialect in DIALECTS for endpoint in dialect.endpoints if endpoint.is_at(path)
    )


def recognise(path: str, body: Json) -> Dialect:
    """Return the dialect of a call.

    Args:
        path: The path of the URL.
        body: The parsed body, or ``None`` where it is not JSON.
    """
    for endpoint, dialect in _spoken_at(path):
        if endpoint.fits(body):
            return dialect
    return GENERIC


def by_name(name: str) -> Dialect:
    """Return the dialect that a recording names; one that this release does not know is generic."""
    return _BY_NAME.get(name, GENERIC)
