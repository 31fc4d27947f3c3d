"""Writer's ``/v1/chat``: OpenAI's chat format at another path, with each delta said twice.

It is no endpoint of ``openai_chat.py``, because a stream of that format may have a ``message`` as well
(Perplexity's): there it is the whole answer so far, here a copy of the delta beside it.

Source: *corpus*, what its server was recorded to send.
"""

from __future__ import annotations

from dataclasses import replace

from .._paths import Paths
from ._chat import STREAM as CHAT_STREAM
from ._chat import SYSTEM, find_finish, is_failure
from ._dialect import Dialect, Endpoint, Folds

__all__ = ["STREAM", "WRITER"]

# -- its stream -----------------------------------------------------------------------------------------


def _twice(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return paths with those of the message, which says the same as the delta."""
    copies = (path.replace("].delta", "].message") for path in paths if path.startswith("choices[*].delta"))
    return (*paths, *copies)


#: Corpus: chunks as in chat, and no marker at the end.
STREAM = replace(
    CHAT_STREAM,
    text=_twice(CHAT_STREAM.text),
    first=_twice(CHAT_STREAM.first),
    alone=_twice(CHAT_STREAM.alone),
    whole=_twice(CHAT_STREAM.whole),
    totals=(),
)


# -- the dialect ----------------------------------------------------------------------------------------

WRITER = Dialect(
    name="writer",
    # Cohere's has a message where this one has messages, Ollama's is at ``/api/chat``.
    endpoints=(Endpoint("/v1/chat", has={"messages": list, "model": str}),),
    text=Paths(["messages[*].content", "messages[*].content[*].text"]),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    # What an answer has that is sent back as it came. No default of a parameter is folded.
    folds=Folds(
        defaults={"stream": False},
        null_below=Paths(f"messages[*].{name}" for name in ("content", "name", "refusal", "tool_calls")),
        is_own_host=lambda host: host.endswith(".writer.com"),
    ),
    references=Paths(["messages[*].tool_calls[*].id", "messages[*].tool_call_id"]),
    system=SYSTEM,
    stream=STREAM,
    finish=find_finish,
    is_failure=is_failure,
)
