"""What the servers that speak OpenAI's chat format share: messages with a system prompt, choices, and chunks.

Decides how such an answer is read, and how its stream is assembled and cut. Which request is such a call, and
what in it means the same, is for the dialects to say.
"""

from __future__ import annotations

from .._call import Json
from .._rules import has_text
from ._dialect import SystemPrompt
from ._framing import DONE, Event
from ._reading import Noise, StreamTable

__all__ = [
    "SEALED",
    "SEALED_THOUGHTS",
    "STREAM",
    "SYSTEM",
    "ChatProgress",
    "find_finish",
    "is_failure",
    "system_missing",
]

# -- the messages --------------------------------------------------------------------------------------

_SYSTEM_ROLES = ("system", "developer")


def system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    """Tell what stands in place of a system prompt, as :class:`SystemPrompt` wants it told."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "no messages"
    for message in messages if anywhere else messages[:1]:
        if isinstance(message, dict) and message.get("role") in _SYSTEM_ROLES:
            if has_text(message.get("content")):
                return None
            if not anywhere:
                return f"a {message['role']} message whose content is blank"
    if anywhere:
        return "no message with the role system or developer whose content is not blank"
    first = messages[0]
    return (
        f"a message with the role {first.get('role')!r}" if isinstance(first, dict) else "no message object"
    )


SYSTEM = SystemPrompt(
    place="messages[0] with the role system or developer", missing=system_missing, has_positions=True
)

# -- the answer ----------------------------------------------------------------------------------------


def find_finish(answer: Json) -> Json:
    """Return the finish reason of a whole answer; the list of them when there are several choices."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    listed = choices if isinstance(choices, list) else []
    reasons = [choice.get("finish_reason") for choice in listed if isinstance(choice, dict)]
    return reasons[0] if len(reasons) == 1 else reasons or None


def is_failure(answer: Json) -> bool:
    """An error with the status 200, as gateways send it."""
    if not isinstance(answer, dict):
        return False
    return bool(answer.get("error")) or _is_error_object(answer) or _find_choice_error(answer) is not None


def _is_error_object(value: dict[str, Json]) -> bool:
    """Tell whether an object is an error by its own word, as vLLM and some gateways send it."""
    return "error" in (value.get("object"), value.get("type")) and not value.get("choices")


def _find_choice_error(answer: dict[str, Json]) -> Json:
    """Return the error of a choice that failed half-way; OpenRouter has them (openrouter.ai/docs, Errors)."""
    choices = answer.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and isinstance(choice.get("error"), dict):
            return choice["error"]
    return None


# -- its stream -----------------------------------------------------------------------------------------


class ChatProgress:
    """How far a chat stream has come: every choice needs a finish reason, and ``[DONE]`` ends it."""

    def __init__(self) -> None:
        self.is_terminated = False
        self.awaits_more = False
        self.error: str | None = None
        self._finishes: dict[int, Json] = {}
        self._wanted = 1

    @property
    def is_complete(self) -> bool:
        """Every choice that was asked for has finished."""
        return len(self._finishes) >= self._wanted and None not in self._finishes.values()

    @property
    def finish(self) -> Json:
        """The finish reason; the list of them, by index, when there are several choices."""
        finishes = [self._finishes[index] for index in sorted(self._finishes)]
        return finishes[0] if len(finishes) == 1 else finishes or None

    def expect(self, request: Json) -> None:
        """Take note of how many choices are asked for, and whether the usage is to come behind them."""
        if isinstance(request, dict):
            count, options = request.get("n"), request.get("stream_options")
            self._wanted = count if type(count) is int and count > 0 else 1
            self.awaits_more = isinstance(options, dict) and options.get("include_usage") is True

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if event.data == DONE:
            self.is_terminated = True
        if isinstance(value, dict) and value.get("usage"):
            self.awaits_more = False
        if self.error is None:
            self.error = _find_error(event, value)
        choices = value.get("choices") if isinstance(value, dict) else None
        for position, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, dict):
                index = choice.get("index")
                index = index if isinstance(index, int) else position
                # Some servers send an empty one with every event, which finishes nothing.
                finish = choice.get("finish_reason") or None
                if finish is not None or index not in self._finishes:
                    self._finishes[index] = finish


def _find_error(event: Event, value: Json) -> str | None:
    """Return what an error event says: servers report a failure inside a 200 in four ways."""
    for name, text in event.extra:
        if name == "error":  # a field that no SSE client reads (llama.cpp)
            return text
    error = value.get("error") or _find_choice_error(value) if isinstance(value, dict) else None
    if (event.event == "error" or (isinstance(value, dict) and _is_error_object(value))) and not error:
        return event.data
    if isinstance(error, dict):
        message = error.get("message")
        return message if isinstance(message, str) else str(error)
    return str(error) if error else None


_DELTA = "choices[*].delta"
_PART = f"{_DELTA}.content[*]"
_TOOL = f"{_DELTA}.tool_calls[*]"
_DETAIL = f"{_DELTA}.reasoning_details[*]"
_LOGPROBS = "choices[*].logprobs"

#: What a provider behind a gateway signed or encrypted: OpenRouter's reasoning details
#: (openrouter.ai/docs, Reasoning Tokens), and Google's signatures in its own OpenAI format
#: (ai.google.dev/gemini-api/docs/thought-signatures).
SEALED = (
    "reasoning_details[*].data",
    "reasoning_details[*].signature",
    "tool_calls[*].extra_content.google.thought_signature",
)

#: Mistral's reasoning, which stands in a list of the content (mistralai 3.7, ThinkChunk: "signature to replay
#: some reasoning blocks across turns").
SEALED_THOUGHTS = ("content[?@.type=='thinking'].signature",)

#: Sources: OpenAI's OpenAPI document, and what other hosts add as recorded from them. What Mistral sends is
#: here too: its chat has OpenAI's path, and gateways pass it on under their own names.
STREAM = StreamTable(
    progress=ChatProgress,
    text=(
        f"{_DELTA}.content",
        f"{_DELTA}.refusal",
        f"{_TOOL}.function.arguments",
        f"{_TOOL}.custom.input",
        f"{_DELTA}.function_call.arguments",
        f"{_DELTA}.audio.transcript",
        # DeepSeek, Qwen, vLLM; OpenRouter, Groq; GitHub Copilot.
        f"{_DELTA}.reasoning_content",
        f"{_DELTA}.reasoning",
        f"{_DELTA}.reasoning_text",
        # OpenRouter: the reasoning once more, in typed parts.
        f"{_DETAIL}.text",
        f"{_DETAIL}.summary",
        # Together: the content once more.
        "choices[*].text",
        # Mistral: while it reasons, the content is a list of parts.
        f"{_PART}.text",
        f"{_PART}.thinking[*].text",
    ),
    lists=(
        f"{_LOGPROBS}.content",
        f"{_LOGPROBS}.refusal",
        f"{_LOGPROBS}.reasoning_content",
        f"{_DELTA}.annotations",
        "choices[*].token_ids",
    ),
    last=(
        "usage",
        "x_groq.usage",
        "timings",  # llama.cpp
        "sla_metrics",  # Hugging Face
        f"{_DELTA}.token_id",  # Together: clients add numbers up, so one must be enough
    ),
    ends=(
        "choices[*].finish_reason",
        "choices[*].native_finish_reason",  # OpenRouter
        "choices[*].stop_reason",  # vLLM
        f"{_DETAIL}.signature",
        f"{_DETAIL}.data",
        f"{_PART}.signature",
    ),
    # openai's client concatenates every string of a delta but ``type``. ``type`` stays in each piece:
    # Cerebras' client takes a tool delta without it for something else.
    first=(
        f"{_DELTA}.*",
        f"{_TOOL}.id",
        f"{_TOOL}.function.name",
        f"{_TOOL}.custom.name",
        f"{_DELTA}.function_call.name",
        f"{_DELTA}.audio.id",
        f"{_DETAIL}.id",
        f"{_DETAIL}.format",
    ),
    # Perplexity: the whole answer so far, beside each delta.
    totals=(("choices[*].message.content", f"{_DELTA}.content"),),
    # OpenAI; Mistral.
    padding=("obfuscation", "p"),
    scope=("choices[*].index",),
    alone=(f"{_DELTA}.content", f"{_PART}.thinking"),
    # Mistral, Groq, xAI and others send a call in one piece, and their clients may know no other: mistralai
    # refuses a piece of a call without a name, and joins none.
    whole=(f"{_TOOL}.function.name",),
    opaque=tuple(f"{_DELTA}.{path}" for path in (*SEALED, *SEALED_THOUGHTS)),
    # OpenRouter, Azure and Perplexity.
    noise=Noise(empty_deltas=True, comments=True, crlf=True),
)
