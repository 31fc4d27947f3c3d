"""What a recorded exchange says, in whichever wire format: the messages, the text, the calls of tools.

For people and for notebooks, not for keys or replays: what a format says beside that is left out here, and
stays in the recording. A format without a reader of its own is read for nothing but a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._call import Json
from ._said import Message, Reader, ToolCall, join, objects
from .anthropic_messages import ANTHROPIC_MESSAGES
from .bedrock import BEDROCK
from .chat import CHAT
from .cohere import COHERE, COHERE_V1
from .completions import ANTHROPIC_COMPLETIONS, OPENAI_COMPLETIONS
from .gemini import GEMINI, GEMINI_INTERACTIONS
from .huggingface import HUGGINGFACE
from .mistral_conversations import MISTRAL_CONVERSATIONS
from .ollama import OLLAMA
from .openai_responses import OPENAI_RESPONSES

__all__ = ["Message", "ToolCall", "read_answers", "read_messages"]

#: Dialect -> how it is read.
READERS: Mapping[str, Reader] = {
    "openai-chat": CHAT,
    "mistral": CHAT,
    "mistral-conversations": MISTRAL_CONVERSATIONS,
    "openai-responses": OPENAI_RESPONSES,
    "anthropic-messages": ANTHROPIC_MESSAGES,
    "gemini": GEMINI,
    "gemini-interactions": GEMINI_INTERACTIONS,
    "cohere": COHERE,
    "cohere-v1": COHERE_V1,
    "ollama": OLLAMA,
    "huggingface": HUGGINGFACE,
    "openai-completions": OPENAI_COMPLETIONS,
    "anthropic-completions": ANTHROPIC_COMPLETIONS,
    "writer": CHAT,
    "bedrock": BEDROCK,
}


def read_messages(dialect: str, body: Json) -> list[Message]:
    """Return what was asked, the system prompt first; what is not understood is left out.

    Args:
        dialect: The name of the wire format.
        body: The body of the request, parsed.
    """
    reader = READERS.get(dialect)
    return list(reader.turns(body)) if reader is not None and isinstance(body, dict) else []


def read_answers(dialect: str, documents: Sequence[Json]) -> list[Message]:
    """Return what was answered: a message for each choice, none where nothing is understood.

    Args:
        dialect: The name of the wire format.
        documents: The answer, or the events of its stream, parsed.
    """
    reader = READERS.get(dialect)
    if reader is None:
        return []
    if reader.lists_choices and any(isinstance(document, list) for document in documents):
        choices = [[item] for document in documents for item in objects(document)]
    else:
        choices = [[item for document in documents for item in objects(document)]]
    return [message for choice in choices for message in join(reader.pieces(choice))]
