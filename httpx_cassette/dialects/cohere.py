"""Cohere's ``/v2/chat``, on its own host and on servers that speak it; the first version is ``cohere_v1``.

At ``/compatibility/v1`` Cohere speaks OpenAI's chat format. Rerank, embed and classify are no chats.

Sources, by the names that the comments use:

- *types*: the parameters and types of the cohere SDK, 7.3.1, generated from the API's specification with its
  texts (docs.cohere.com/reference/chat and /chat-stream have the same);
- *specification*: cohere-openapi.yaml of cohere-ai/cohere-developer-experience;
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from .._rules import has_text
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import DONE, Event
from ._hosts import is_local
from ._reading import Noise, StreamTable

__all__ = ["COHERE", "STREAM"]

# -- the request ---------------------------------------------------------------------------------------

# Types: "Defaults to". Left out: max_tokens, thinking and citation_options, whose defaults are the model's;
# strict_tools and response_format, for which no default is stated.
_DEFAULTS: Mapping[str, Json] = {
    "frequency_penalty": 0,
    "k": 0,
    "logprobs": False,
    "p": 0.75,
    "presence_penalty": 0,
    "priority": 0,
    "safety_mode": "CONTEXTUAL",
    "stream": False,
    "temperature": 0.3,
}

# Optional in types.
_NULL = frozenset(
    """
    citation_options documents frequency_penalty k logprobs max_tokens p presence_penalty priority
    response_format safety_mode seed stop_sequences strict_tools temperature thinking tool_choice tools
    """.split()
)

# Corpus: SDKs send ``documents: []`` with every call.
_EMPTY = frozenset({"documents", "stop_sequences", "tools"})

# Optional in types, as ``model_dump()`` of an answer writes them.
_NULL_BELOW = Paths(
    [
        *(f"messages[*].citations[*].{name}" for name in "content_index end sources start text type".split()),
        "messages[*].citations[*].sources[*].document",
        "messages[*].citations[*].sources[*].id",
        "messages[*].citations[*].sources[*].tool_output",
        "messages[*].content[*].image_url.detail",
        "messages[*].tool_calls[*].function",
        "messages[*].tool_plan",
    ],
    late=True,
)

# Corpus: what a message does not have is streamed as ``[]`` and ``""``, and sent whole without.
_EMPTY_BELOW = Paths(["messages[*].citations", "messages[*].content", "messages[*].tool_calls"])
_BELOW: tuple[tuple[Paths, Mapping[str, Json]], ...] = (
    (Paths(["messages[*]"]), {"tool_plan": ""}),
    # Types: "``auto`` is the default".
    (Paths(["messages[*].content[*].image_url"]), {"detail": "auto"}),
)

_SAMPLING = frozenset({"frequency_penalty", "k", "p", "presence_penalty", "temperature"})


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "no messages"
    for message in messages if anywhere else messages[:1]:
        if isinstance(message, dict) and message.get("role") == "system":
            if has_text(message.get("content")):
                return None
            if not anywhere:
                return "a system message whose content is blank"
    if anywhere:
        return "no message with the role system whose content is not blank"
    first = messages[0]
    return (
        f"a message with the role {first.get('role')!r}" if isinstance(first, dict) else "no message object"
    )


# -- the answer ----------------------------------------------------------------------------------------

#: Types, ChatFinishReason: those that say that there is no answer.
_FAILED = ("ERROR", "TIMEOUT")


def _finish(answer: Json) -> Json:
    return answer.get("finish_reason") if isinstance(answer, dict) else None


def _is_failure(answer: Json) -> bool:
    """An answer that failed half-way, or an error with the status 200."""
    return isinstance(answer, dict) and (bool(answer.get("error")) or answer.get("finish_reason") in _FAILED)


# -- its stream -----------------------------------------------------------------------------------------


class ChatProgress:
    """How far a stream has come: ``message-end`` brings the finish reason, and ``[DONE]`` comes behind it."""

    awaits_more = False

    def __init__(self) -> None:
        self.is_complete = False
        self.is_terminated = False
        self.error: str | None = None
        self.finish: Json = None

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data; the type in these counts, as for the SDK."""
        if event.data == DONE:
            self.is_terminated = self.is_complete
        if self.error is None:
            self.error = _find_error(event, value)
        if not isinstance(value, dict) or value.get("type") != "message-end":
            return
        self.is_complete = True
        delta = value.get("delta")
        self.finish = delta.get("finish_reason") if isinstance(delta, dict) else None


def _find_error(event: Event, value: Json) -> str | None:
    """Return what an error says: at the end of a message, or in the ways of gateways."""
    if not isinstance(value, dict):
        return event.data if event.event == "error" else None
    delta = value.get("delta") if value.get("type") == "message-end" else None
    error = value.get("error") or (delta.get("error") if isinstance(delta, dict) else None)
    if error:
        message = error.get("message") if isinstance(error, dict) else error
        return message if isinstance(message, str) else str(error)
    if isinstance(delta, dict) and delta.get("finish_reason") in _FAILED:
        return str(delta["finish_reason"])
    return event.data if "error" in (event.event, value.get("type")) else None


_MESSAGE = "delta.message"

#: A message: a plan or contents, each opened, filled by deltas and closed; calls likewise; citations whole,
#: where they belong in the text. No events of two of them come by turns, so that whatever comes between two
#: deltas stays between them.
STREAM = StreamTable(
    progress=ChatProgress,
    types=frozenset({"content-delta", "tool-call-delta", "tool-plan-delta"}),
    text=(
        f"{_MESSAGE}.content.text",
        f"{_MESSAGE}.content.thinking",
        f"{_MESSAGE}.tool_plan",
        f"{_MESSAGE}.tool_calls.function.arguments",
        # Types, LogprobItem: the text once more, beside its tokens.
        "logprobs.text",
    ),
    lists=("logprobs.logprobs", "logprobs.token_ids"),
    slot=("index",),
    # The SDK reads events with the parser of httpx-sse, which bears comments and CRLF.
    noise=Noise(empty_deltas=True, comments=True, crlf=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

COHERE = Dialect(
    name="cohere",
    # Types: both are required. vLLM has it below /cohere.
    endpoints=(Endpoint("/v2/chat", has={"model": str, "messages": list}),),
    text=Paths(["messages[*].content", "messages[*].content[*].text"]),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults=_DEFAULTS,
        below=_BELOW,
        null=_NULL,
        empty=_EMPTY,
        null_below=_NULL_BELOW,
        empty_below=_EMPTY_BELOW,
        # Specification, of a user's content: "If a string is provided, it will be treated as a text content
        # block." Of the others it does not say so.
        single_text=Paths(["messages[?@.role=='user'].content"]),
        sampling=_SAMPLING,
        # vLLM takes them from the model (vllm-project/vllm#11164), and Cohere's own servers at home may.
        decides_sampling=is_local,
        is_own_host=lambda host: host.endswith((".cohere.com", ".cohere.ai")),
    ),
    references=Paths(["messages[*].tool_calls[*].id", "messages[*].tool_call_id"]),
    system=SystemPrompt(
        place="messages[0] with the role system", missing=_system_missing, has_positions=True
    ),
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
