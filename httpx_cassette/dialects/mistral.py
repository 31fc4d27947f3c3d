"""Mistral's own calls that are answered with choices: an agent's completions, FIM, and chat on Vertex.

Chat at ``/v1/chat/completions`` is not here but in ``openai_chat.py``, whatever the host:

- *Chosen*: its path and body are OpenAI's, so it stays ``openai-chat``. What Mistral's streams have of their
  own (whole tool calls, lists of content, the padding ``p``) stands in the table of all chat streams, so that
  gateways that pass them on are understood as well. Of OpenAI's defaults those that the model decides are not
  folded for Mistral's host (``_hosts.py``), and Mistral documents no other value for the rest.
- *Rejected*: a dialect chosen by host. A gateway's or a proxy's host would say something else about the same
  bytes, and the key of every chat call to Mistral would be another: a new version of the key, for folding
  ``safe_prompt`` and ``prefix``.
- *Rejected*: a dialect chosen by members that only Mistral has (``safe_prompt``, ``random_seed``). Two calls
  of one program would have two tables.

Sources: *types* are the parameter types of mistralai 3.7.0, which are generated from Mistral's specification
and carry its texts; *corpus* is what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from ._chat import SEALED_THOUGHTS, STREAM, find_finish, is_failure, system_missing
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._hosts import is_mistral

__all__ = ["MISTRAL"]

# -- where it is spoken --------------------------------------------------------------------------------

# Types: on Vertex the model and the kind of answer stand in the path, and FIM is told by its body alone.
_ON_VERTEX = "/publishers/mistralai/models/[^/:]+:"
_ENDPOINTS = (
    Endpoint("/agents/completions", has={"messages": list, "agent_id": str}),
    Endpoint("/fim/completions", has={"prompt": str}),
    Endpoint(f"{_ON_VERTEX}rawPredict", has_one={"messages": list, "prompt": str}),
    Endpoint(f"{_ON_VERTEX}streamRawPredict", has_one={"messages": list, "prompt": str}, wants_stream=True),
)

# -- the request ---------------------------------------------------------------------------------------

# Types. Left out: temperature ("varies depending on the model"), and whatever has no default there.
_DEFAULTS: Mapping[str, Json] = {"response_format": {"type": "text"}, "stream": False}

# Nullable in types.
_NULL = frozenset(
    """
    frequency_penalty guardrails logprobs max_tokens metadata min_tokens n presence_penalty prompt_cache_key
    prompt_logprobs prompt_mode random_seed reasoning_effort repetition_penalty service_tier stop suffix
    temperature tools top_k top_logprobs top_p top_prompt_logprobs
    """.split()
)

# Nullable in types, and sent so when an answer is sent back as it came.
_NULL_BELOW = Paths(
    [
        *(f"messages[*].{name}" for name in ("content", "name", "tool_call_id", "tool_calls")),
        "messages[*].content[*].signature",
        "messages[*].content[*].image_url.detail",
    ]
)

_HELD_BY_THE_SERVER = "agent_id"


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    # An agent has instructions of its own, which the server holds. What is filled in between a prompt and a
    # suffix has no place for any.
    if body.get(_HELD_BY_THE_SERVER) or "messages" not in body:
        return None
    return system_missing(body, anywhere)


# -- the dialect ---------------------------------------------------------------------------------------

MISTRAL = Dialect(
    name="mistral",
    endpoints=_ENDPOINTS,
    # Not the prompt and the suffix of FIM, whose blanks are code, nor thoughts, which may be signed.
    text=Paths(["messages[*].content", "messages[*].content[*].text"]),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults=_DEFAULTS,
        # Types: ``prefix`` is false unless the answer is to begin with the message.
        below=((Paths(["messages[*]"]), {"prefix": False}),),
        null=_NULL,
        null_below=_NULL_BELOW,
        is_own_host=is_mistral,
    ),
    references=Paths(["messages[*].tool_calls[*].id", "messages[*].tool_call_id"]),
    # Types: base64 without a data URL; corpus: also as OpenAI has it.
    media=Paths(["messages[*].content[*].input_audio", "messages[*].content[*].input_audio.data"]),
    opaque=Paths((f"messages[*].{path}" for path in SEALED_THOUGHTS), late=True),
    answer_opaque=Paths((f"choices[*].message.{path}" for path in SEALED_THOUGHTS), late=True),
    system=SystemPrompt(
        place=f"messages[0] with the role system (or {_HELD_BY_THE_SERVER})",
        missing=_system_missing,
        has_positions=True,
    ),
    stream=STREAM,
    finish=find_finish,
    is_failure=is_failure,
)
