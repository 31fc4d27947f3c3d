"""Which wire formats there are, and which of them a call speaks.

Decides what is asked first: formats that a program registered, the last one first, before those that come
with the package, because it registered them on purpose; generic is what is left. What a format is, and what
its tables do, is decided elsewhere.

There is no lock to wait for, in a thread or behind a fork: a format is entered and taken out by one operation
on a dictionary each, and what is remembered is remembered for the formats that were there.
"""

from __future__ import annotations

from functools import lru_cache

from .._call import Json
from .._errors import OptionError
from ._blame import blame
from ._dialect import Dialect, Endpoint
from ._soundness import check_sound, is_same
from .anthropic_completions import ANTHROPIC_COMPLETIONS
from .anthropic_messages import ANTHROPIC_MESSAGES
from .bedrock import BEDROCK
from .cohere import COHERE
from .cohere_v1 import COHERE_V1
from .gemini import GEMINI
from .gemini_interactions import GEMINI_INTERACTIONS
from .generic import GENERIC
from .huggingface import HUGGINGFACE
from .mistral import MISTRAL
from .mistral_conversations import MISTRAL_CONVERSATIONS
from .ollama import OLLAMA
from .openai_chat import OPENAI_CHAT
from .openai_completions import OPENAI_COMPLETIONS
from .openai_responses import OPENAI_RESPONSES
from .writer import WRITER

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
    "WRITER",
    "by_name",
    "is_known",
    "recognise",
    "register",
    "unregister",
]

#: Every wire format of the package, the most frequent first.
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
    HUGGINGFACE,
    OPENAI_COMPLETIONS,
    ANTHROPIC_COMPLETIONS,
    WRITER,
    BEDROCK,
    GENERIC,
)

_BUILT_IN = {dialect.name: dialect for dialect in DIALECTS}

#: Those of the program, by name, in the order in which they came.
_REGISTERED: dict[str, Dialect] = {}


def register(dialect: Dialect) -> Dialect:
    """Make a wire format of your own known to every transport of this process.

    From then on, a call that one of its endpoints fits is of this dialect, also where the package has one for
    it; of several registered ones the last counts. Its rules enter the keys of these calls, and its stream
    table assembles and cuts their streams. Register it where recordings are replayed, too: in a module that
    the program and its ``conftest.py`` import.

    To register the same once more changes nothing, so a module may be loaded again.

    Args:
        dialect: The format.

    Returns:
        The dialect that is registered: this one, or its equal that was there before.

    Raises:
        OptionError: It is no dialect, or one that could not be used; or there is another one of this name.
            The message says what is wrong, and what to write instead.
    """
    check_sound(dialect)
    if dialect.name in _BUILT_IN:
        raise OptionError(
            f"the dialect {dialect.name!r} comes with httpx_cassette; choose another name, such as "
            f"'my-{dialect.name}': a registered dialect is asked first, whatever its name"
        )
    there = _REGISTERED.setdefault(dialect.name, dialect)
    if there is not dialect and not is_same(there, dialect):
        raise OptionError(
            f"another dialect is registered as {dialect.name!r}; choose another name, or call "
            f"unregister({dialect.name!r}) first"
        )
    return there


def unregister(dialect: Dialect | str) -> None:
    """Take back what :func:`register` did; for tests, and for trying something out.

    Args:
        dialect: The dialect, or its name.

    Raises:
        OptionError: None of this name is registered.
    """
    name = dialect.name if isinstance(dialect, Dialect) else dialect
    if _REGISTERED.pop(name, None) is None:
        raise OptionError(f"no dialect is registered as {name!r}; there are {sorted(_REGISTERED)}")


@lru_cache(maxsize=512)
def _spoken_at(path: str, registered: tuple[Dialect, ...]) -> tuple[tuple[Endpoint, Dialect], ...]:
    """Return what may be spoken at a path. Kept: each hit pays for this, and programs call few paths."""
    return tuple(
        (endpoint, dialect)
        for dialect in (*registered[::-1], *DIALECTS)
        for endpoint in dialect.endpoints
        if endpoint.is_at(path)
    )


def recognise(path: str, body: Json) -> Dialect:
    """Return the dialect of a call.

    Args:
        path: The path of the URL.
        body: The parsed body, or ``None`` where it is not JSON.

    Raises:
        CassetteError: An endpoint of a registered dialect cannot tell.
    """
    for endpoint, dialect in _spoken_at(path, tuple(_REGISTERED.values()) if _REGISTERED else ()):
        try:
            if endpoint.fits(body):
                return dialect
        except Exception as error:
            raise blame(error, dialect.name) from None
    return GENERIC


def is_known(name: str) -> bool:
    """Tell whether there is a dialect of a name, here and now."""
    return name in _BUILT_IN or name in _REGISTERED


def by_name(name: str) -> Dialect:
    """Return the dialect that a recording names; one that is not known here is generic."""
    return _REGISTERED.get(name) or _BUILT_IN.get(name, GENERIC)
