"""Cohere's ``/v1/chat``: one message, a preamble, and the history beside them.

Sources, by the names that the comments use:

- *types*: the parameters and types of the cohere SDK, 7.3.1, generated from the API's specification with its
  texts (docs.cohere.com/reference/chat-v1 has the same);
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .._call import Json
from .._paths import Paths
from .._rules import has_text
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import DONE, Event
from ._hosts import is_local
from ._reading import Noise, StreamTable

__all__ = ["COHERE_V1", "STREAM"]

# -- where it is spoken --------------------------------------------------------------------------------

# A message alone is sent to many servers at such a path; Cohere's clients send at least whether they stream.
_ONE_OF_ITS_OWN: Mapping[str, type] = dict.fromkeys(
    "chat_history connectors conversation_id documents model preamble stream temperature tools".split(),
    object,
)

# -- the request ---------------------------------------------------------------------------------------

# Types: "Defaults to". Left out: max_tokens and citation_quality, whose defaults are the model's, and
# prompt_truncation, whose default depends on the connectors.
_DEFAULTS: Mapping[str, Json] = {
    "force_single_step": False,
    "frequency_penalty": 0,
    "k": 0,
    "p": 0.75,
    "presence_penalty": 0,
    "safety_mode": "CONTEXTUAL",
    "search_queries_only": False,
    "stream": False,
    "temperature": 0.3,
}

# Optional in types.
_NULL = frozenset(
    """
    chat_history citation_quality connectors conversation_id documents force_single_step frequency_penalty k
    max_input_tokens max_tokens model p preamble presence_penalty prompt_truncation raw_prompting
    response_format safety_mode search_queries_only seed stop_sequences temperature tool_results tools
    """.split()
)

# Corpus: SDKs send ``chat_history: []`` with the first message.
_EMPTY = frozenset({"chat_history", "connectors", "documents", "stop_sequences", "tools"})

_EMPTY_BELOW = Paths(["chat_history[*].tool_calls", "chat_history[*].tool_results"])

_SAMPLING = frozenset({"frequency_penalty", "k", "p", "presence_penalty", "temperature"})


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    preamble, conversation = body.get("preamble"), body.get("conversation_id")
    # Types: a raw message is the whole prompt, and a conversation that is resumed is at the server.
    if has_text(preamble) or body.get("raw_prompting") is True or has_text(conversation):
        return None
    history = body.get("chat_history")
    listed = history if isinstance(history, list) else []
    for message in listed if anywhere else listed[:1]:
        is_system = isinstance(message, dict) and message.get("role") == "SYSTEM"
        if isinstance(message, dict) and is_system and has_text(message.get("message")):
            return None
    return "no preamble" if preamble is None else "a preamble that is blank"


# -- the answer ----------------------------------------------------------------------------------------

#: Types, FinishReason: those that say that there is no answer. Not ERROR_TOXIC: that is a refusal, which an
#: application has to bear.
_FAILED = ("ERROR", "ERROR_LIMIT", "TIMEOUT", "USER_CANCEL")


def _finish(answer: Json) -> Json:
    return answer.get("finish_reason") if isinstance(answer, dict) else None


def _is_failure(answer: Json) -> bool:
    """An answer that failed half-way, or an error with the status 200."""
    return isinstance(answer, dict) and (bool(answer.get("error")) or answer.get("finish_reason") in _FAILED)


# -- its stream -----------------------------------------------------------------------------------------


class GenerationProgress:
    """How far a stream has come: ``stream-end`` has the whole answer, and is the end."""

    awaits_more = False

    def __init__(self) -> None:
        self.is_complete = False
        self.error: str | None = None
        self.finish: Json = None

    @property
    def is_terminated(self) -> bool:
        """Nothing comes behind the end."""
        return self.is_complete

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if not isinstance(value, dict):
            if event.event == "error" and event.data != DONE:
                self.error = self.error or event.data
            return
        reason = value.get("finish_reason")
        if value.get("event_type") == "stream-end":
            self.is_complete = True
            self.finish = reason
            if reason in _FAILED:
                self.error = self.error or _read(value.get("error")) or str(reason)
        elif value.get("error") or event.event == "error":
            self.error = self.error or _read(value.get("error")) or event.data


def _read(error: Json) -> str | None:
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else str(error) if error else None


#: Types: texts of three kinds. Whole: search queries and results, citations, the calls once they are known,
#: and the answer at the end.
STREAM = StreamTable(
    progress=GenerationProgress,
    framing="ndjson",
    kind="event_type",
    types=frozenset({"text-generation", "tool-calls-chunk"}),
    text=("text", "tool_call_delta.parameters", "tool_call_delta.text"),
    first=("tool_call_delta.name",),
    # Types: the SDK passes over blank lines and lines that are no JSON.
    noise=Noise(empty_deltas=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

COHERE_V1 = Dialect(
    name="cohere-v1",
    endpoints=(Endpoint("/v1/chat", has={"message": str}, has_one=_ONE_OF_ITS_OWN),),
    # Types: "When specified, this user access token will be passed to the connector".
    credentials=Paths(["connectors[*].user_access_token"], late=True),
    text=Paths(["message", "preamble", "chat_history[*].message"]),
    # Types: such a message goes to the model without any pre-processing.
    signed=frozenset({"raw_prompting"}),
    folds=Folds(
        defaults=_DEFAULTS,
        # Types, ChatConnector: "Defaults to false".
        below=((Paths(["connectors[*]"]), {"continue_on_failure": False}),),
        null=_NULL,
        empty=_EMPTY,
        null_below=Paths(["connectors[*].continue_on_failure", "connectors[*].options"]),
        empty_below=_EMPTY_BELOW,
        sampling=_SAMPLING,
        decides_sampling=is_local,
        is_own_host=lambda host: host.endswith((".cohere.com", ".cohere.ai")),
    ),
    system=SystemPrompt(
        place="the member preamble, or chat_history[0] with the role SYSTEM",
        missing=_system_missing,
        has_positions=True,
    ),
    stream=STREAM,
    # Types: with ``Accepts: text/event-stream``.
    other_streams=(replace(STREAM, framing="sse", noise=Noise(empty_deltas=True, comments=True)),),
    finish=_finish,
    is_failure=_is_failure,
)
