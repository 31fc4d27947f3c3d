"""The wire formats, and which of them a call speaks.

A format is recognised by the path and the shape of the body, never by the host alone: gateways, proxies and
local servers speak the same formats under their own names.
"""

from __future__ import annotations

from .._call import Json
from ._dialect import Dialect, Folds, SystemPrompt
from .generic import GENERIC
from .openai_chat import OPENAI_CHAT

__all__ = ["GENERIC", "OPENAI_CHAT", "Dialect", "Folds", "SystemPrompt", "by_name", "recognise"]

_BY_NAME = {dialect.name: dialect for dialect in (OPENAI_CHAT, GENERIC)}


def recognise(path: str, body: Json) -> Dialect:
    """Return the dialect of a call.

    Args:
        path: The path of the URL.
        body: The parsed body, or ``None`` where it is not JSON.
    """
    if (
        path.endswith("/chat/completions")
        and isinstance(body, dict)
        and isinstance(body.get("messages"), list)
    ):
        return OPENAI_CHAT
    return GENERIC


def by_name(name: str) -> Dialect:
    """Return the dialect that a recording names; one that this release does not know is generic."""
    return _BY_NAME.get(name, GENERIC)
