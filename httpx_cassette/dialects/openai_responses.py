"""OpenAI's Responses API, and the servers that speak it too: Azure, xAI, OpenRouter, DeepSeek, vLLM and more.

Sources: OpenAI's OpenAPI document of 2026-08 (openai/openai-openapi, CreateResponse, InputItem and
ResponseStreamEvent), the type definitions of the openai package 2.54 and 3.57 (``openai/types/responses``),
called "the types" below, and what other hosts add as recorded from them.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from .._rules import has_text
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import Event
from ._hosts import decides_sampling, is_openai
from ._reading import Noise, StreamTable

__all__ = ["OPENAI_RESPONSES", "STREAM"]

# -- the request ---------------------------------------------------------------------------------------

# POST /v1/responses; on Azure /openai/v1/responses and /openai/responses?api-version=..., on gateways below
# prefixes of their own. Below it stand other calls: input_tokens and compact, whose bodies look alike,
# {id}/cancel, {id}/input_items; and {id} itself, a GET that polls an answer or takes its stream up again.
# OpenAI, Azure and vLLM name answers ``resp_...``, xAI by a UUID.
_ENDPOINTS = (
    Endpoint(
        "/responses",
        has_one={
            "input": (str, list),
            "prompt": dict,
            "previous_response_id": str,
            "conversation": (str, dict),
        },
    ),
    Endpoint(
        "/responses/(?:resp[_-][^/]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
        has_body=False,
    ),
)


def _is_held_by_server(body: dict[str, Json]) -> bool:
    """Tell whether a call goes on from what the server has: a stored prompt, an answer, a conversation."""
    stored, conversation = body.get("prompt"), body.get("conversation")
    return bool(
        (isinstance(stored, dict) and stored)
        or (isinstance(conversation, (str, dict)) and conversation)
        or (isinstance(body.get("previous_response_id"), str) and body["previous_response_id"])
    )


# Defaults: the OpenAPI document; store, service_tier, truncation and text.format in the types too. Left out
# on purpose: tool_choice, top_logprobs and the limits, for which none is documented; text.verbosity,
# reasoning.effort and reasoning.context, which are documented as depending on the model;
# prompt_cache_retention, which depends on the organisation.
_DEFAULTS: Mapping[str, Json] = {
    "background": False,
    "parallel_tool_calls": True,
    "service_tier": "auto",
    "store": True,
    "stream": False,
    "temperature": 1,
    "top_p": 1,
    "truncation": "disabled",
}

# As in chat: without tools there is nothing to run in parallel.
_ONLY_WITH = {"parallel_tool_calls": "tools"}

_BELOW: tuple[tuple[Paths, Mapping[str, Json]], ...] = (
    (Paths(["text"]), {"format": {"type": "text"}}),
    (Paths(["text.format"]), {"strict": False}),
    (Paths(["stream_options"]), {"include_obfuscation": True}),
    (Paths(["prompt_cache_options"]), {"mode": "implicit", "prewarm": False, "ttl": "30m"}),
    # Of images and files, in messages and in results of tools. A function's ``strict`` has no default that is
    # a value: omitted, the server tries strict and falls back.
    (Paths(["input[*].content[*]", "input[*].output[*]"]), {"detail": "auto"}),
)

# Nullable in the types.
_NULL = frozenset(
    {
        "background",
        "conversation",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "moderation",
        "parallel_tool_calls",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "temperature",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)

# Empty is absent: lists of nothing to add, and objects whose members are all optional.
_EMPTY = frozenset(
    {
        "context_management",
        "include",
        "metadata",
        "prompt_cache_options",
        "reasoning",
        "stream_options",
        "text",
        "tools",
    }
)


def _each(path: str, names: str) -> list[str]:
    return [f"{path}.{name}" for name in names.split()]


# Optional in the types. SDKs echo the items of an answer into the history, and ``model_dump()`` writes what
# was not set as null. An empty list is another thing: a search that found nothing.
_NULL_BELOW = Paths(
    [
        "input[*].acknowledged_safety_checks",
        "input[*].approval_request_id",
        "input[*].caller",
        "input[*].content",
        "input[*].encrypted_content",
        "input[*].error",
        "input[*].id",
        "input[*].name",
        "input[*].namespace",
        "input[*].phase",
        "input[*].results",
        "input[*].status",
        "input[*].content[*].file_id",
        "input[*].content[*].image_url",
        "input[*].content[*].logprobs",
        # Of openai's parsed answers; the client itself does not send them.
        "input[*].content[*].parsed",
        "input[*].parsed_arguments",
        # Types: what the items of each kind may leave out.
        *_each("input[*]", "action actions async async_ background code created_by environment output"),
        *_each("input[*]", "output_format quality result revised_prompt size svg_usage"),
        *_each("input[*].action", "actions keys max_output_length queries query sources timeout_ms url user"),
        *_each("input[*].action", "working_directory"),
        *_each("input[*].actions[*]", "keys"),
        *_each("input[*].pending_safety_checks[*]", "code message"),
        *_each("input[*].results[*]", "attributes file_id filename score text"),
        *_each("input[*].tools[*]", "annotations description"),
        "input[*].output[*].prompt_cache_breakpoint",
        "prompt.variables",
        "prompt.version",
        "reasoning.context",
        "reasoning.effort",
        "reasoning.generate_summary",
        "reasoning.summary",
        "text.format.strict",
        "text.verbosity",
        "tools[*].description",
    ]
)

# Both ends of each tie: a call and its output, a request for approval and the response, a program and the
# calls that it makes, a safety check and its acknowledgement; and the names of the items themselves
# (``rs_``, ``msg_``, ``fc_``), which only say which item of an answer it was.
_REFERENCES = Paths(
    [
        "input[*].id",
        "input[*].call_id",
        "input[*].approval_request_id",
        "input[*].caller.caller_id",
        "input[*].pending_safety_checks[*].id",
        "input[*].acknowledged_safety_checks[*].id",
    ]
)

_IMAGE = "[?@.type=='image_generation_call']"

#: Types, Mcp and ContainerNetworkPolicyDomainSecret: for servers of tools, also where tools are loaded later.
_CREDENTIALS = Paths(
    [
        *(
            f"{tools}.{name}"
            for tools in ("tools[*]", "tools[*].tools[*]", "input[*].tools[*]")
            for name in ("authorization", "headers")
        ),
        *(
            f"tools[*].{place}.network_policy.domain_secrets[*].value"
            for place in ("environment", "container")
        ),
    ],
    late=True,
)

#: Items that the server may know better than the history tells -> members, one of which has it all. Without
#: any of them the id is the content: the server looks the item up.
_LOOKED_UP: Mapping[Json, tuple[str, ...]] = {
    "item_reference": (),
    # Sends its encrypted content where that was asked for (docs, guides/reasoning: keeping it in context).
    "reasoning": ("encrypted_content", "content"),
    # May be given by its id alone (docs, guides/tools-image-generation: multi-turn editing).
    "image_generation_call": ("result",),
    # Their results are left out unless ``include`` names them, and pages that were read always.
    "code_interpreter_call": ("outputs",),
    "file_search_call": ("results",),
    "web_search_call": (),
}


def _held(body: Json) -> frozenset[Json]:
    """Return the ids of items that the server looks up, and of calls that only the server has.

    With ``previous_response_id`` or a conversation the call is not in the input, and its id says which of
    several calls an output answers.
    """
    looked_up: set[Json] = set()
    called: set[Json] = set()
    answered: set[Json] = set()
    for item in _objects(body.get("input")) if isinstance(body, dict) else ():
        # The type of a reference may be left out, or null (types, ItemReference).
        kind = item.get("type") or ("item_reference" if item.get("id") and not item.get("role") else "")
        name, call = _texts(item.get("id")), _texts(item.get("call_id"))
        if not isinstance(kind, str):
            continue
        if kind in _LOOKED_UP and not any(map(item.get, _LOOKED_UP[kind])):
            looked_up |= name | call
        elif kind == "local_shell_call_output":  # Names its call by its own id.
            answered |= name | call
        elif kind.endswith("_output"):
            answered |= call
        else:
            called |= name | call
        answered |= _texts(item.get("approval_request_id"))
        for caller in _objects([item.get("caller")]):
            answered |= _texts(caller.get("caller_id"))
        called |= _texts(*(check.get("id") for check in _objects(item.get("pending_safety_checks"))))
        answered |= _texts(*(check.get("id") for check in _objects(item.get("acknowledged_safety_checks"))))
    return frozenset(looked_up | (answered - called))


def _objects(value: Json) -> list[dict[str, Json]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(*values: Json) -> set[Json]:
    return {value for value in values if isinstance(value, str)}


_SYSTEM_ROLES = ("system", "developer")


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    instructions, items = body.get("instructions"), body.get("input")
    if has_text(instructions) or _is_held_by_server(body):
        return None
    first = "blank instructions" if isinstance(instructions, str) else "no instructions"
    if not isinstance(items, list) or not items:
        return f"{first}, and {'a text' if items else 'nothing'} as input"
    for item in items if anywhere else items[:1]:
        if isinstance(item, dict) and item.get("role") in _SYSTEM_ROLES and has_text(item.get("content")):
            return None
    if anywhere:
        return f"{first}, and no input item with the role system or developer whose content is not blank"
    return f"{first}, and first in the input {_describe(items[0])}"


def _describe(item: Json) -> str:
    if not isinstance(item, dict):
        return "no object"
    if item.get("role") in _SYSTEM_ROLES:
        return f"a {item['role']} message whose content is blank"
    return (
        f"a message with the role {item['role']!r}"
        if "role" in item
        else f"an item of the type {item.get('type')!r}"
    )


# -- the answer ----------------------------------------------------------------------------------------


def _finish(answer: Json) -> Json:
    """Return why an answer ended: what cut it short, or its status."""
    if not isinstance(answer, dict):
        return None
    details = answer.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason or answer.get("status")


def _is_failure(answer: Json) -> bool:
    """An error with the status 200.

    A background answer that failed is none: a GET reports a state that will not change, and without it the
    program that polls would wait for ever.
    """
    if not isinstance(answer, dict) or answer.get("background") is True:
        return False
    return answer.get("status") == "failed" or _find_error(answer) is not None


def _find_error(answer: dict[str, Json]) -> str | None:
    """Return what the error of an answer, or of a gateway in place of one, says."""
    error = answer.get("error")
    if isinstance(error, dict):
        message = error.get("message")
        return message if isinstance(message, str) else str(error)
    if error:
        return str(error)
    # ``type`` of a stream's error event; ``object`` of vLLM and some gateways.
    if "error" in (answer.get("type"), answer.get("object")):
        return str(answer.get("message"))
    return None


# -- its stream -----------------------------------------------------------------------------------------


class ResponseProgress:
    """How far a stream has come: ``response.completed`` or ``response.incomplete`` ends it, with the answer.

    ``[DONE]`` behind it (OpenRouter, DeepSeek) is not waited for, because OpenAI does not send it, and is no
    end without it.
    """

    awaits_more = False

    def __init__(self) -> None:
        self.is_terminated = False
        self.error: str | None = None
        self.finish: Json = None

    @property
    def is_complete(self) -> bool:
        """The event that ends the stream was seen."""
        return self.is_terminated

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        members = value if isinstance(value, dict) else {}
        # Clients go by the data; the name of the event is all there is where the data have no type.
        kind = members.get("type", event.event)
        answer = members.get("response")
        if self.error is None:
            self.error = _find_event_error(event, members)
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.is_terminated = True
            self.finish = _finish(answer)
            if self.error is None and isinstance(answer, dict):
                self.error = _find_error(answer)
            # A gateway may name every end "completed": the status tells.
            if self.error is None and (kind == "response.failed" or _is_failure(answer)):
                self.error = event.data


def _find_event_error(event: Event, members: dict[str, Json]) -> str | None:
    """Return what an error event says."""
    for name, text in event.extra:
        if name == "error":  # a field that no SSE client reads (llama.cpp)
            return text
    return _find_error(members) or (event.data if event.event == "error" else None)


#: Events whose ``delta`` is text. Not ``response.audio.delta``, whose pieces are base64, each by itself; any
#: other event stays as it is, whether it is known or not.
_DELTAS = frozenset(
    {
        "response.output_text.delta",
        "response.refusal.delta",
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
        "response.mcp_call_arguments.delta",
        "response.code_interpreter_call_code.delta",
        "response.reasoning_text.delta",
        "response.reasoning_summary_text.delta",
        "response.shell_call_command.delta",
        "response.shell_call_output_content.delta",
        "response.audio.transcript.delta",
    }
)

STREAM = StreamTable(
    progress=ResponseProgress,
    types=_DELTAS,
    # A shell's output has one member for each of its two channels.
    text=("delta", "delta.stdout", "delta.stderr"),
    lists=("logprobs",),
    padding=("obfuscation",),
    # Items may come by turns; events without an item, such as the end, concern all of them.
    scope=("output_index",),
    # Not ``item_id``: clients put texts together by these numbers, and gateways change the ids of one item.
    slot=("content_index", "summary_index", "command_index"),
    sequence="sequence_number",
    # Types: reasoning and compaction, which go back to the server as they came.
    opaque=(
        "item.encrypted_content",
        "response.output[*].encrypted_content",
        "item.result",
        f"response.output{_IMAGE}.result",
        "partial_image_b64",
    ),
    # OpenRouter and Azure. No empty deltas: events are numbered.
    noise=Noise(comments=True, crlf=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

OPENAI_RESPONSES = Dialect(
    name="openai-responses",
    endpoints=_ENDPOINTS,
    # Not the output of tools, which no model wrote for people, and not the variables of a stored prompt.
    text=Paths(
        [
            "instructions",
            "input",
            "input[*].content",
            "input[*].content[*].text",
            "input[*].content[*].refusal",
        ]
    ),
    turns=("input",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults=_DEFAULTS,
        only_with=_ONLY_WITH,
        below=_BELOW,
        null=_NULL,
        empty=_EMPTY,
        null_below=_NULL_BELOW,
        single_text=Paths(["input[*].content"]),
        text_part="input_text",
        sampling=frozenset({"temperature", "top_p"}),
        decides_sampling=decides_sampling,
        is_own_host=is_openai,
    ),
    references=_REFERENCES,
    held=_held,
    # platform.openai.com/docs/guides/tools-connectors-mcp: what OpenAI sends to a server of tools. The
    # headers are credentials as a rule, and nothing of them is said to a model.
    credentials=_CREDENTIALS,
    opaque=Paths(["input[*].encrypted_content"], late=True),
    answer_opaque=Paths(["output[*].encrypted_content", f"output{_IMAGE}.result"], late=True),
    # https://platform.openai.com/docs/guides/pdf-files, /audio and /tools-image-generation: base64 beside
    # data URLs.
    media=Paths(
        [
            "input[*].content[*].file_data",
            "input[*].content[*].input_audio.data",
            "input[*].output[*].file_data",
            f"input{_IMAGE}.result",
            "prompt.variables[*].file_data",
        ]
    ),
    system=SystemPrompt(
        place="instructions, and input[0] with the role system or developer",
        missing=_system_missing,
        has_positions=True,
    ),
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
