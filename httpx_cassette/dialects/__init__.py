"""The wire formats, and which of them a call speaks.

A format is recognised by the path and the shape of the body, never by the host alone: gateways, proxies and
local servers speak the same formats under their own names.

What is needed to add one is here: write a :class:`Dialect`, try it with :func:`check_stream`, and
:func:`register` it.
"""

from __future__ import annotations

from .._call import Json
from .._paths import Paths
from ._chat import SYSTEM as SYSTEM_MESSAGE
from ._dialect import Dialect, Endpoint, Folds, Pieces, SystemPrompt
from ._ending import At, Ends
from ._framing import Event
from ._reading import Noise, StreamProgress, StreamTable
from ._registry import (
    ANTHROPIC_COMPLETIONS,
    ANTHROPIC_MESSAGES,
    BEDROCK,
    COHERE,
    COHERE_V1,
    DIALECTS,
    GEMINI,
    GEMINI_INTERACTIONS,
    GENERIC,
    HUGGINGFACE,
    MISTRAL,
    MISTRAL_CONVERSATIONS,
    OLLAMA,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    WRITER,
    by_name,
    is_known,
    recognise,
    register,
    unregister,
)
from ._trial import CheckedStream, check_stream

__all__ = [
    "ANTHROPIC_COMPLETIONS",
    "ANTHROPIC_MESSAGES",
    "BEDROCK",
    "COHERE",
    "COHERE_V1",
    "DIALECTS",
    "GEMINI",
    "GEMINI_INTERACTIONS",
    "GENERIC",
    "HUGGINGFACE",
    "MISTRAL",
    "MISTRAL_CONVERSATIONS",
    "OLLAMA",
    "OPENAI_CHAT",
    "OPENAI_COMPLETIONS",
    "OPENAI_RESPONSES",
    "SYSTEM_MESSAGE",
    "WRITER",
    "At",
    "CheckedStream",
    "Dialect",
    "Endpoint",
    "Ends",
    "Event",
    "Folds",
    "Json",
    "Noise",
    "Paths",
    "Pieces",
    "StreamProgress",
    "StreamTable",
    "SystemPrompt",
    "by_name",
    "check_stream",
    "is_known",
    "recognise",
    "register",
    "unregister",
]
