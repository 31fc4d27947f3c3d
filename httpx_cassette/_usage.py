"""What a recorded answer cost: tokens as the provider counted them, and the model that answered.

Every format says it in its own words, in the answer or in one of the events of a stream; running totals of a
stream are said again and again, and the last word counts. What is not said is not guessed.
Nothing here knows about prices.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson

from ._recording import INCOMPARABLE, Recording

__all__ = ["Usage", "model_in", "usage_of"]


class Usage(NamedTuple):
    """The tokens of one answer.

    Args:
        input_tokens: Tokens of the prompt, those read from a cache and written to it included; ``None`` where
            nothing was said.
        output_tokens: Tokens of the answer, those of its thinking included.
        cached_tokens: How many of the prompt's tokens were read from a cache.
        model: The model that answered, in the provider's words; empty where it did not say.
        url: What was called, without its query.
        written_tokens: How many of the prompt's tokens were written to a cache, which may cost more.
        written_1h_tokens: How many of these are kept for an hour, which costs more again.
    """

    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int
    model: str
    url: str
    written_tokens: int = 0
    written_1h_tokens: int = 0


def usage_of(recording: Recording) -> Usage:
    """Return what an answer cost, as far as it says so. A recording that cannot be read says nothing."""
    try:
        documents = [value for value in _documents(recording) if isinstance(value, dict)]
        request = recording.request
        url = str(request.get("url", "")).partition("?")[0]
        said: dict[str, Any] = {}
        model = ""
        for document in documents:
            for holder in _holders(document):
                said |= {name: value for name, value in _totals(holder).items() if value is not None}
                model = _text(holder, "model", "modelVersion", "model_version") or model
    except INCOMPARABLE:
        return Usage(None, None, 0, "", "")
    model = model or _text(request.get("json"), "model") or model_in(url)
    written = _first_at(said, _WRITTEN), _written_for_an_hour(said)
    return Usage(*_tokens(said), _first_at(said, _CACHED), model, url, *written)


def _documents(recording: Recording) -> Iterator[Any]:
    response = recording.response()
    if response.kind == "json":
        yield orjson.loads(response.content)
    elif response.kind == "text" and response.content[:1] == b"{":
        # JSON that is written in no usual way, or what only begins like it.
        with contextlib.suppress(orjson.JSONDecodeError):
            yield orjson.loads(response.content)
    elif response.kind == "script":
        yield from (event["json"] for event in response.script if "json" in event)


def _holders(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects in which usage may stand: an answer, or the answer inside an event."""
    yield document
    for name in ("response", "message", "delta", "interaction", "result", "x_groq"):
        inner = document.get(name)
        if isinstance(inner, dict):
            yield inner


#: Where an address alone names the model: of Bedrock before what is done with it; of Gemini, and of what else
#: Vertex serves, before a verb behind a colon. ``/v1/models/list`` of others names none.
_MODEL_IN_ADDRESS = re.compile(r"/model/([^/]+)/(?:converse|invoke)|/models/([^/:]+):[A-Za-z]+$")


def model_in(url: str) -> str:
    """Return the model that an address names; empty where it names none.

    Args:
        url: The address without its query.
    """
    found = _MODEL_IN_ADDRESS.search(url)
    return "" if found is None else unquote(found[1] or found[2])


def _totals(holder: dict[str, Any]) -> dict[str, Any]:
    """Return what an object says of tokens, one level deep in what they are made up of."""
    metadata = holder.get("metadata")  # Of Nova, where it streams in its own format.
    if isinstance(metadata, dict) and isinstance(metadata.get("usage"), dict):
        holder = metadata
    for name in ("usage", "usageMetadata", "usage_metadata"):
        usage = holder.get(name)
        if isinstance(usage, dict):
            # Cohere counts what is billed beside what was read: its own prompts are free.
            named = (usage.get("billed_units"), usage.get("tokens"))
            counts = (each for each in named if isinstance(each, dict) and "output_tokens" in each)
            return next(counts, usage)
    if "eval_count" in holder:  # Ollama says it beside the answer.
        return {name: holder.get(name) for name in ("prompt_eval_count", "eval_count")}
    return {}


_INPUT = (
    "prompt_tokens",
    "input_tokens",
    "inputTokens",
    "promptTokenCount",
    "prompt_eval_count",
    "total_input_tokens",
)
_OUTPUT = (
    "completion_tokens",
    "output_tokens",
    "outputTokens",
    "candidatesTokenCount",
    "eval_count",
    "total_output_tokens",
)

#: Counted beside the rest, where others count them in: Gemini's tokens of tools and of thinking.
_MORE_INPUT = ("toolUsePromptTokenCount",)
_MORE_OUTPUT = ("thoughtsTokenCount", "total_thought_tokens")

#: Counted beside ``input_tokens`` by Anthropic, and by Bedrock, which may say each under two names. Gateways
#: say them as well, where ``prompt_tokens``, or ``input_tokens`` with their details, count them in.
_READ_BESIDE = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
_WRITTEN_BESIDE = ("cache_creation_input_tokens", "cacheWriteInputTokens", "cacheWriteInputTokenCount")
_COUNTED_IN = ("prompt_tokens", "input_tokens_details", "prompt_tokens_details")

#: Where it stands how much of the prompt came from a cache.
_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    *((name,) for name in _READ_BESIDE),
    ("cachedContentTokenCount",),
)

#: And how much of it was written to one.
_WRITTEN = (
    ("prompt_tokens_details", "cache_write_tokens"),
    ("input_tokens_details", "cache_write_tokens"),
    *((name,) for name in _WRITTEN_BESIDE),
)
_WRITTEN_FOR_AN_HOUR = (("cache_creation", "ephemeral_1h_input_tokens"),)


def _tokens(said: Mapping[str, Any]) -> tuple[int | None, int | None]:
    asked, answered = _first(said, _INPUT), _first(said, _OUTPUT)
    if asked is not None:
        is_counted_in = any(said.get(name) is not None for name in _COUNTED_IN)
        beside = (_MORE_INPUT,) if is_counted_in else (_MORE_INPUT, _READ_BESIDE, _WRITTEN_BESIDE)
        asked += sum(_first(said, names) or 0 for names in beside)
    more = [count for name in _MORE_OUTPUT if (count := _count(said.get(name))) is not None]
    if more:
        answered = (answered or 0) + sum(more)
    return asked, answered


def _written_for_an_hour(said: Mapping[str, Any]) -> int:
    details = said.get("cacheDetails")  # Of Bedrock: what was written, by how long it is kept.
    kept = (each for each in details if isinstance(each, dict)) if isinstance(details, list) else ()
    counted = sum(_count(each.get("inputTokens")) or 0 for each in kept if each.get("ttl") == "1h")
    return counted or _first_at(said, _WRITTEN_FOR_AN_HOUR)


def _first_at(said: Mapping[str, Any], paths: tuple[tuple[str, ...], ...]) -> int:
    for path in paths:
        value: Any = said
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if (count := _count(value)) is not None:
            return count
    return 0


def _first(said: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((count for name in names if (count := _count(said.get(name))) is not None), None)


def _count(value: Any) -> int | None:
    """Return a number of tokens; Cohere writes them as floats."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        return None
    return int(value)


def _text(holder: Any, *names: str) -> str:
    values = (holder.get(name) for name in names) if isinstance(holder, dict) else ()
    return next((value for value in values if isinstance(value, str) and value), "")
