"""OpenAI's Chat Completions, and the many servers that speak the same format."""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from .._rules import has_text
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import DONE, Event
from ._hosts import decides_sampling, is_openai
from ._reading import Noise, StreamTable

__all__ = ["OPENAI_CHAT", "STREAM"]

# -- the request ---------------------------------------------------------------------------------------

# Defaults: OpenAI's OpenAPI document of 2026-08-21 (openai/openai-openapi, CreateChatCompletionRequest and
# FunctionObject), and the reference text for response_format ("text") and tool_choice ("auto" with tools,
# "none" without). Left out on purpose: verbosity and reasoning_effort, which are documented as depending on
# the model, and every limit of tokens.
_DEFAULTS: Mapping[str, Json] = {
    "frequency_penalty": 0,
    "function_call": "auto",
    "logprobs": False,
    "n": 1,
    "parallel_tool_calls": True,
    "presence_penalty": 0,
    "response_format": {"type": "text"},
    "service_tier": "auto",
    "store": False,
    "stream": False,
    "temperature": 1,
    "tool_choice": "auto",
    "top_p": 1,
}

# Without tools the API refuses parallel_tool_calls, and the default of tool_choice is another.
_ONLY_WITH = {"parallel_tool_calls": "tools", "tool_choice": "tools", "function_call": "functions"}

# Nullable in the same document.
_NULL = frozenset(
    {
        "audio",
        "frequency_penalty",
        "function_call",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "modalities",
        "n",
        "parallel_tool_calls",
        "prediction",
        "presence_penalty",
        "prompt_cache_key",
        "prompt_cache_retention",
        "reasoning_effort",
        "response_format",
        "safety_identifier",
        "seed",
        "service_tier",
        "stop",
        "store",
        "stream",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "user",
        "verbosity",
        "web_search_options",
    }
)

# Empty is absent: an empty map of biases or metadata says nothing, and SDKs send empty tool lists.
_EMPTY = frozenset({"functions", "logit_bias", "metadata", "stream_options", "tools"})

# What SDKs echo into the history when they send an answer back: the message's members that were not set.
_EMPTY_BELOW = Paths(
    [
        "messages[*].annotations",
        "messages[*].audio",
        "messages[*].content",
        "messages[*].function_call",
        "messages[*].name",
        "messages[*].parsed",
        "messages[*].reasoning",
        "messages[*].reasoning_content",
        "messages[*].reasoning_details",
        "messages[*].refusal",
        # litellm's proxy gives a role to the first choice only; openai's client sends null for the others.
        "messages[*].role",
        "messages[*].tool_calls",
        # openai's stream helper sets it or not, depending on what comes behind the call in the stream.
        "messages[*].tool_calls[*].function.parsed_arguments",
        # Nullable in the same document.
        "functions[*].strict",
        "response_format.json_schema.strict",
        "tools[*].function.strict",
    ]
)

# Members whose default a server may choose for each model: which servers do stands in ``_hosts.py``.
_SAMPLING = frozenset({"temperature", "top_p", "frequency_penalty", "presence_penalty"})

_SYSTEM_ROLES = ("system", "developer")


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
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


# -- the answer ----------------------------------------------------------------------------------------


def _finish(answer: Json) -> Json:
    choices = answer.get("choices") if isinstance(answer, dict) else None
    listed = choices if isinstance(choices, list) else []
    reasons = [choice.get("finish_reason") for choice in listed if isinstance(choice, dict)]
    return reasons[0] if len(reasons) == 1 else reasons or None


def _is_failure(answer: Json) -> bool:
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
_TOOL = f"{_DELTA}.tool_calls[*]"
_DETAIL = f"{_DELTA}.reasoning_details[*]"
_LOGPROBS = "choices[*].logprobs"

#: What a provider behind a gateway signed or encrypted: OpenRouter's reasoning details
#: (openrouter.ai/docs, Reasoning Tokens), and Google's signatures in its own OpenAI format
#: (ai.google.dev/gemini-api/docs/thought-signatures).
_SEALED = (
    "reasoning_details[*].data",
    "reasoning_details[*].signature",
    "tool_calls[*].extra_content.google.thought_signature",
)

#: Sources: OpenAI's OpenAPI document, and what other hosts add as recorded from them.
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
    padding=("obfuscation",),
    scope=("choices[*].index",),
    opaque=tuple(f"{_DELTA}.{path}" for path in _SEALED),
    # OpenRouter, Azure and Perplexity.
    noise=Noise(empty_deltas=True, comments=True, crlf=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

OPENAI_CHAT = Dialect(
    name="openai-chat",
    endpoints=(Endpoint("/chat/completions", has={"messages": list}),),
    text=Paths(["messages[*].content", "messages[*].content[*].text", "messages[*].content[*].refusal"]),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults=_DEFAULTS,
        only_with=_ONLY_WITH,
        below=(
            (Paths(["tools[*].function", "functions[*]", "response_format.json_schema"]), {"strict": False}),
            (Paths(["stream_options"]), {"include_usage": False, "include_obfuscation": True}),
            (Paths(["messages[*].content[*].image_url"]), {"detail": "auto"}),
        ),
        null=_NULL,
        empty=_EMPTY,
        empty_below=_EMPTY_BELOW,
        single_text=Paths(["messages[*].content"]),
        sampling=_SAMPLING,
        decides_sampling=decides_sampling,
        is_own_host=is_openai,
    ),
    references=Paths(["messages[*].tool_calls[*].id", "messages[*].tool_call_id"]),
    # https://platform.openai.com/docs/guides/images-vision, /audio and /pdf-files: base64 beside data URLs.
    media=Paths(["messages[*].content[*].input_audio.data", "messages[*].content[*].file.file_data"]),
    opaque=Paths((f"messages[*].{path}" for path in _SEALED), late=True),
    answer_opaque=Paths((f"choices[*].message.{path}" for path in _SEALED), late=True),
    system=SystemPrompt(
        place="messages[0] with the role system or developer", missing=_system_missing, has_positions=True
    ),
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
