"""OpenAI's Chat Completions, and the many servers that speak the same format.

Mistral's chat has the same path and the same body, and is a call of this format: see ``mistral.py`` for why.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from ._chat import SEALED, SEALED_THOUGHTS, STREAM, SYSTEM, ChatProgress, find_finish, is_failure
from ._dialect import Dialect, Endpoint, Folds
from ._hosts import decides_sampling, is_openai

__all__ = ["OPENAI_CHAT", "STREAM", "ChatProgress"]

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
    opaque=Paths((f"messages[*].{path}" for path in SEALED), late=True),
    answer_opaque=Paths((f"choices[*].message.{path}" for path in (*SEALED, *SEALED_THOUGHTS)), late=True),
    system=SYSTEM,
    stream=STREAM,
    finish=find_finish,
    is_failure=is_failure,
)
