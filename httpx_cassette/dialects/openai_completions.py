"""OpenAI's legacy completions, prompts that a model goes on with, and servers that speak the same format.

Those are vLLM and other local servers, and hosts of open models. The system prompt of chat has no place here.

Sources, by the names that the comments use:

- *spec*: OpenAI's OpenAPI document of 2026-08-21 (openai/openai-openapi, CreateCompletionRequest);
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from ._chat import ChatProgress, find_finish, is_failure
from ._dialect import Dialect, Endpoint, Folds
from ._hosts import is_openai
from ._reading import Noise, StreamTable

__all__ = ["OPENAI_COMPLETIONS", "STREAM", "CompletionsProgress"]

# -- where it is spoken --------------------------------------------------------------------------------

# Spec: a text, texts, tokens, or lists of tokens.
_PROMPT = {"prompt": (str, list)}

_ENDPOINTS = (
    # Not of chat, nor Mistral's. Not at the root either: llama.cpp answers there in a format of its own
    # (ggml-org/llama.cpp, tools/server/README.md: POST /completion, of which /completions is another name).
    Endpoint(r"(?<=[^/])(?<!/chat)(?<!/fim)(?<!/agents)/completions", has={**_PROMPT, "model": str}),
    # Azure has the model in the path.
    Endpoint("/deployments/[^/]+/completions", has=_PROMPT),
)

# -- the request ---------------------------------------------------------------------------------------

# Spec. Left out: best_of, whose default goes with no other n than 1.
_DEFAULTS: Mapping[str, Json] = {
    "echo": False,
    "frequency_penalty": 0,
    "max_tokens": 16,
    "n": 1,
    "presence_penalty": 0,
    "stream": False,
    "temperature": 1,
    "top_p": 1,
}

# Nullable in spec.
_NULL = frozenset(
    """
    best_of echo frequency_penalty logprobs max_tokens n presence_penalty seed stop stream suffix temperature
    top_p
    """.split()
)

_EMPTY = frozenset({"logit_bias", "stream_options"})

# Each server has its own limit, and takes these from the model's settings.
_SAMPLING = frozenset({"frequency_penalty", "max_tokens", "presence_penalty", "temperature", "top_p"})


def _decides_sampling(host: str) -> bool:
    """What spec says of a limit and of sampling holds for OpenAI alone."""
    return not is_openai(host)


# -- its stream -----------------------------------------------------------------------------------------


class CompletionsProgress(ChatProgress):
    """How far a stream has come: as in chat, with choices for each of the prompts."""

    def expect(self, request: Json) -> None:
        """Take note of how many choices are asked for, and whether the usage is to come behind them."""
        super().expect(request)
        prompts = request.get("prompt") if isinstance(request, dict) else None
        if isinstance(prompts, list) and prompts and isinstance(prompts[0], (str, list)):
            self._wanted *= len(prompts)


_LOGPROBS = "choices[*].logprobs"

STREAM = StreamTable(
    progress=CompletionsProgress,
    text=("choices[*].text",),
    lists=(
        *(f"{_LOGPROBS}.{name}" for name in ("tokens", "token_logprobs", "top_logprobs", "text_offset")),
        "choices[*].token_ids",  # vLLM
    ),
    last=("usage", "timings"),  # llama.cpp
    ends=("choices[*].finish_reason", "choices[*].stop_reason"),  # vLLM
    padding=("obfuscation",),
    scope=("choices[*].index",),
    noise=Noise(empty_deltas=True, comments=True, crlf=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

OPENAI_COMPLETIONS = Dialect(
    name="openai-completions",
    endpoints=_ENDPOINTS,
    # No text is stripped: a model goes on behind the last character of its prompt.
    folds=Folds(
        defaults=_DEFAULTS,
        below=((Paths(["stream_options"]), {"include_usage": False, "include_obfuscation": True}),),
        null=_NULL,
        empty=_EMPTY,
        sampling=_SAMPLING,
        decides_sampling=_decides_sampling,
        is_own_host=is_openai,
    ),
    # A prompt has no place for a system prompt of its own: there is none to guard.
    stream=STREAM,
    finish=find_finish,
    is_failure=is_failure,
)
