"""Mistral's conversations: entries as typed events, and ``conversation.response.done`` at the end.

Sources: *types* are those of mistralai 3.7.0, which are generated from Mistral's specification; *docs* is
docs.mistral.ai, Agents and Conversations, with its example of a stream.
"""

from __future__ import annotations

from .._call import Json
from .._paths import Paths
from .._rules import is_blank
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import Event
from ._hosts import is_mistral
from ._reading import StreamTable

__all__ = ["MISTRAL_CONVERSATIONS", "STREAM"]

# -- the request ---------------------------------------------------------------------------------------

_INPUTS = (str, list)

# OpenAI has conversations at these paths too, without ``inputs``.
_ENDPOINTS = (
    Endpoint("/conversations", has={"inputs": _INPUTS}),
    Endpoint("/conversations/[^/]+", has_one={"inputs": _INPUTS, "tool_confirmations": list}),
    Endpoint("/conversations/[^/]+/restart", has={"from_entry_id": str}),
)

# Nullable in types. ``store`` and ``handoff_execution`` have a default where a conversation goes on, and none
# where it begins: they are kept.
_NULL = frozenset(
    """
    agent_id agent_version completion_args description guardrails handoff_execution instructions metadata
    model name store tool_confirmations tools
    """.split()
)
_NULL_BELOW = Paths(
    [
        *(
            f"completion_args.{name}"
            for name in (
                "frequency_penalty max_tokens prediction presence_penalty random_seed reasoning_effort "
                "response_format stop temperature top_p"
            ).split()
        ),
        *(f"inputs[*].{name}" for name in ("agent_id", "completed_at", "confirmation_status", "model")),
        "inputs[*].content[*].signature",
    ]
)


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    instructions = body.get("instructions")
    if isinstance(instructions, str) and not is_blank(instructions):
        return None
    # An agent has instructions of its own; a conversation that goes on names neither an agent nor a model,
    # and has those with which it began.
    if body.get("agent_id") or not body.get("model"):
        return None
    return "no instructions" if instructions is None else "blank instructions"


# -- the answer ----------------------------------------------------------------------------------------


def _is_failure(answer: Json) -> bool:
    """An error with the status 200."""
    return isinstance(answer, dict) and (bool(answer.get("error")) or answer.get("object") == "error")


# -- its stream ----------------------------------------------------------------------------------------


class ConversationProgress:
    """How far a stream has come: the last event has the usage, and says that the answer is done."""

    awaits_more = False
    finish: Json = None

    def __init__(self) -> None:
        self.is_terminated = False
        self.error: str | None = None

    @property
    def is_complete(self) -> bool:
        """Nothing but the last event tells."""
        return self.is_terminated

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if not isinstance(value, dict):
            if event.event in ("error", _FAILED):
                self.error = self.error or event.data
            return
        # The name of the event says the same; mistralai reads the data alone.
        kind = value.get("type")
        if kind == "conversation.response.done":
            self.is_terminated = True
        is_failed = kind in ("error", _FAILED) or event.event in ("error", _FAILED)
        if is_failed or value.get("error") or value.get("object") == "error":
            self.error = self.error or _message(value) or event.data


_FAILED = "conversation.response.error"


def _message(value: dict[str, Json]) -> str | None:
    error = value.get("error")
    message = error.get("message") if isinstance(error, dict) else error or value.get("message")
    return message if isinstance(message, str) else None


#: Docs: the deltas of an entry have its id, its name and all the rest again in each event. Clients print what
#: comes as it comes, so no text goes on behind an event of another entry.
STREAM = StreamTable(
    progress=ConversationProgress,
    types=frozenset({"message.output.delta", "function.call.delta", "tool.execution.delta"}),
    # Types: the content is a text, or one part of a list; while a model reasons, that is a list again. What a
    # tool was started with, and where a text comes from, comes whole.
    text=("content", "content.text", "content.thinking[*].text", "arguments"),
    ends=("content.signature",),
    # When it was said.
    last=("created_at",),
    alone=("content.thinking",),
    slot=("output_index", "id", "content_index"),
    before_last="absent",
    opaque=("content.signature",),
)


# -- the dialect ---------------------------------------------------------------------------------------

_THOUGHT = "content[?@.type=='thinking'].signature"

MISTRAL_CONVERSATIONS = Dialect(
    name="mistral-conversations",
    endpoints=_ENDPOINTS,
    text=Paths(["instructions", "inputs", "inputs[*].content", "inputs[*].content[*].text"]),
    turns=("inputs",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults={"stream": False},
        # Types: ``prefix`` is false unless the answer is to begin with the message.
        below=((Paths(["inputs[*]"]), {"prefix": False}),),
        null=_NULL,
        null_below=_NULL_BELOW,
        is_own_host=is_mistral,
    ),
    # No references: an id in ``inputs`` names what the server keeps, unless all of the conversation is there.
    # Types, CustomConnector: the token or key that Mistral sends to a server of tools.
    credentials=Paths(["tools[?@.type=='connector'].authorization"], late=True),
    opaque=Paths([f"inputs[*].{_THOUGHT}"], late=True),
    answer_opaque=Paths([f"outputs[*].{_THOUGHT}"], late=True),
    system=SystemPrompt(
        place="instructions (or agent_id, or the conversation that it goes on with)", missing=_system_missing
    ),
    stream=STREAM,
    is_failure=_is_failure,
)
