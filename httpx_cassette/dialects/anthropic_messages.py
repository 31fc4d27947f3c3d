"""Anthropic's Messages API, on its own host, on Vertex and Bedrock, and on gateways.

Sources, by the names that the comments use:

- *types*: the parameter and event types of the anthropic SDK, 2.14.0, which are generated from the API's
  specification and carry its texts;
- *tools*: platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools;
- *streaming*: platform.claude.com/docs/en/build-with-claude/streaming;
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .._call import Json
from .._paths import Paths
from .._rules import has_text
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt, unasked
from ._framing import Event
from ._hosts import is_local
from ._reading import Noise, StreamTable

__all__ = ["ANTHROPIC_MESSAGES", "BEDROCK_STREAM", "STREAM"]

# -- where it is spoken --------------------------------------------------------------------------------

# - ``/v1/messages``, under any prefix. SMS services have such a path and such a list too, but no model.
# - Vertex puts the model in the path, and whether the answer is a stream. Tokens are counted at
#   ``count-tokens:rawPredict`` with a body that has no ``max_tokens`` (anthropic.lib.vertex).
# - Bedrock's ``invoke`` and ``invoke-with-response-stream``, whose stream is the same in binary messages.
# Not spoken at ``/count_tokens`` and ``/batches``: there nothing is said to a model.
_ON_VERTEX: Mapping[str, type] = {"messages": list, "anthropic_version": object, "max_tokens": object}
_ON_BEDROCK: Mapping[str, type] = {"messages": list, "anthropic_version": object}
_ENDPOINTS = (
    Endpoint("/messages", has={"messages": list}, has_one={"max_tokens": object, "model": object}),
    Endpoint(":rawPredict", has=_ON_VERTEX),
    Endpoint(":streamRawPredict", has=_ON_VERTEX, wants_stream=True),
    Endpoint("/invoke", has=_ON_BEDROCK),
    Endpoint("/invoke-with-response-stream", has=_ON_BEDROCK, wants_stream=True, has_binary_streams=True),
)

_BLOCK = "messages[*].content[*]"
_TOOL_RESULT = "messages[*].content[?@.type=='tool_result']"

# -- the request ---------------------------------------------------------------------------------------

_DEFAULTS: Mapping[str, Json] = {
    # Types: a call that is not streamed sends false or nothing.
    "stream": False,
    # Types of 0.125: "Defaults to 1.0". Those of 2.x have the member no more; for models that take it, the
    # default is the same.
    "temperature": 1,
    # Tools: auto is the default when tools are provided, none when not.
    "tool_choice": {"type": "auto"},
}

# Optional in types. Left out: diagnostics.previous_message_id, whose null is a request of its own.
_NULL = frozenset(
    """
    billing_policy cache_control compaction container context_management diagnostics fallback_credit_token
    fallbacks inference_geo speed thread
    """.split()
)


def _each(places: str, names: str) -> list[str]:
    """Return the path of every member at every place."""
    return [f"{place}.{name}" for place in places.split() for name in names.split()]


# Optional in types, with what SDKs echo into the history: ``model_dump()`` of an answer writes every member
# that was not set, ``caller`` and ``file_id`` among them, which a request has no null for, and before 0.125
# ``parsed_output``, which is the SDK's own. Left out: ``content`` of a compaction, whose null says that it
# failed.
_NULL_BELOW = Paths(
    [
        *_each("system[*]", "cache_control citations"),
        *_each("messages[*]", "clear_at output_config"),
        *_each(_BLOCK, "cache_control caller citations context parsed_output title toolset_name"),
        *_each(f"{_BLOCK}.citations[*]", "document_title file_id title"),
        *_each("messages[*].content[?@.type=='compaction']", "encrypted_content signature tool_changes"),
        # In tool results and in what server tools found: search results, ...
        *_each(f"{_BLOCK}.content[*]", "cache_control citations context page_age title"),
        # ... a fetched page and the document in it, ...
        *_each(f"{_BLOCK}.content", "retrieved_at"),
        *_each(f"{_BLOCK}.content.content", "citations context title"),
        # ... and what the text editor and the advisor did.
        *_each(f"{_BLOCK}.content", "lines new_lines new_start num_lines old_lines old_start start_line"),
        *_each(f"{_BLOCK}.content", "error_message stop_reason total_lines"),
        # Corpus: sent with what code printed, and in no type.
        *_each(f"{_BLOCK}.content", "abort_reason"),
        *_each("tools[*]", "allowed_domains blocked_domains cache_control caching citations configs"),
        *_each("tools[*]", "display_number eager_input_streaming max_characters max_content_tokens"),
        *_each("tools[*]", "max_tokens max_uses type url_sources user_location"),
        *_each("tools[*].user_location", "city country region timezone"),
        "mcp_servers[*].tool_configuration",
        *_each("mcp_servers[*].tool_configuration", "allowed_tools enabled"),
        *_each("output_config", "effort format task_budget"),
        *_each("thinking", "block_binding display"),
        *_each("context_management.edits[*]", "clear_at_least clear_tool_inputs exclude_tools"),
        *_each("context_management.edits[*]", "instructions trigger"),
        "metadata.user_id",
        "thinking.block_binding.prefix_mismatch_behavior",
    ],
    late=True,
)

_EMPTY_BELOW = Paths(
    [
        # Corpus: a text that cites nothing is streamed with ``[]`` and sent whole with ``null`` or neither.
        "messages[*].content[?@.type=='text'].citations",
        # Types: an empty object is equivalent to omitting the field.
        *_each(f"{_BLOCK} {_BLOCK}.content[*]", "transformations"),
        # Types: null, absent or an empty object means every default.
        "thinking.block_binding",
    ]
)

_CACHE_CONTROL = Paths(
    [
        "cache_control",
        *_each(f"system[*] tools[*] {_BLOCK} {_BLOCK}.content[*]", "cache_control"),
        f"{_BLOCK}.source.content[*].cache_control",
    ]
)

_BELOW: tuple[tuple[Paths, Mapping[str, Json]], ...] = (
    # Types: "Defaults to false", and "Defaults to 5m".
    (Paths(["tool_choice"]), {"disable_parallel_tool_use": False}),
    (_CACHE_CONTROL, {"ttl": "5m"}),
)


def _decides_sampling(host: str) -> bool:
    """OpenRouter publishes ``default_parameters`` per model (openrouter.ai/docs, Models)."""
    return host == "openrouter.ai" or is_local(host)


def _is_own_host(host: str) -> bool:
    """The hosts that the SDK's clients for Anthropic, Google, AWS and Azure know."""
    return host.endswith(
        (".anthropic.com", ".googleapis.com", ".amazonaws.com", ".api.aws", ".services.ai.azure.com")
    )


# Base64 of images and documents: of the user's, in a tool's result, in a document made of parts, and in a
# page that was fetched. A document's ``data`` may also be plain text, which is kept to be read.
_MEDIA = Paths(
    (
        f"{place}[?@.type=='base64'].data"
        for place in (
            _BLOCK,
            f"{_BLOCK}.content[*]",
            f"{_BLOCK}.source.content[*]",
            f"{_BLOCK}.content[*].source.content[*]",
            f"{_BLOCK}.content.content",
        )
    ),
    late=True,
)

# Types: passed back exactly as received, or the request is refused. Below what holds blocks.
_SEALED = (
    "[?@.type=='thinking'].signature",
    "[?@.type=='redacted_thinking'].data",
    "[?@.type=='compaction'].signature",
    "[?@.type=='compaction'].encrypted_content",
    "[*].citations[*].encrypted_index",
    "[*].content[*].encrypted_content",
    "[*].content.encrypted_content",
    "[*].content.encrypted_stdout",
)

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    system = body.get("system")
    if has_text(system):
        return None
    thread = body.get("thread")
    if isinstance(thread, dict) and thread.get("type") == "continue":
        return None  # Types: the server holds the conversation, with the system prompt of its first turn.
    # Types of 2.x: a message may have the role system.
    messages = body.get("messages")
    listed = messages if isinstance(messages, list) else []
    for message in listed if anywhere else listed[:1]:
        if isinstance(message, dict) and message.get("role") == "system" and has_text(message.get("content")):
            return None
    return "no member system" if system is None else "a member system that is blank"


# -- the answer ----------------------------------------------------------------------------------------


def _finish(answer: Json) -> Json:
    return answer.get("stop_reason") if isinstance(answer, dict) else None


def _is_failure(answer: Json) -> bool:
    """An error with the status 200, as gateways send it."""
    return isinstance(answer, dict) and (answer.get("type") == "error" or bool(answer.get("error")))


# -- its stream -----------------------------------------------------------------------------------------


class MessageProgress:
    """How far a message has come: ``message_delta`` brings the reason to stop, ``message_stop`` is the end.

    An event says what it is in its data and in its name. Where the two contradict each other, clients part
    company (the SDK goes by the name, others by the data), so such an event ends nothing.
    """

    awaits_more = False

    def __init__(self) -> None:
        self.is_terminated = False
        self.is_complete = False
        self.error: str | None = None
        self.finish: Json = None

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if self.error is None:
            self.error = _find_error(event, value)
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(value, dict) or event.event not in (None, kind):
            return
        if kind == "message_stop":
            self.is_terminated = True
        elif kind == "message_delta":
            # Streaming: one or more of them; what is not known yet is null.
            delta = value.get("delta")
            reason = delta.get("stop_reason") if isinstance(delta, dict) else None
            if reason is not None:
                self.finish = reason
                self.is_complete = True


def _find_error(event: Event, value: Json) -> str | None:
    """Return what an error event says; Anthropic names it, gateways have other ways."""
    for name, text in event.extra:
        if name == "error":
            return text
    error = value.get("error") if isinstance(value, dict) else None
    if not error:
        is_named = event.event == "error" or (isinstance(value, dict) and value.get("type") == "error")
        return event.data if is_named else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else str(error)


#: The blocks of a message come one after the other, each opened, filled by deltas and closed.
STREAM = StreamTable(
    progress=MessageProgress,
    types=frozenset({"content_block_delta"}),
    # Whole: a signature, a citation and a compaction are overwritten or appended, not concatenated (types).
    text=("delta.text", "delta.thinking", "delta.partial_json"),
    scope=("index",),
    opaque=(
        *_SEALED,
        *(f"message.content{path}" for path in _SEALED),
        "[?@.type=='signature_delta'].signature",
        "[?@.type=='compaction_delta'].encrypted_content",
        "delta.citation.encrypted_index",
    ),
    # Streaming: any number of them, anywhere.
    ping=Event('{"type":"ping"}', "ping"),
    # Corpus: most data are padded with blanks before the last brace.
    noise=Noise(pings=True, blanks=True),
)


class ChunkProgress(MessageProgress):
    """How far a message has come on Bedrock, where every event has one name and says itself what it is."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        super().observe(event._replace(event=None) if event.event == "chunk" else event, value)


#: Corpus: without pings and blanks.
BEDROCK_STREAM = replace(
    STREAM,
    progress=ChunkProgress,
    framing="eventstream",
    ping=STREAM.ping and STREAM.ping._replace(event="chunk"),
    noise=Noise(),
)


# -- the dialect ----------------------------------------------------------------------------------------

ANTHROPIC_MESSAGES = Dialect(
    name="anthropic-messages",
    endpoints=_ENDPOINTS,
    text=Paths(
        [
            "system",
            "system[*].text",
            "messages[*].content",
            f"{_BLOCK}.text",
            f"{_TOOL_RESULT}.content",
            f"{_TOOL_RESULT}.content[?@.type=='text'].text",
        ]
    ),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults=_DEFAULTS,
        only_with={"tool_choice": "tools"},
        below=_BELOW,
        null=_NULL,
        null_below=_NULL_BELOW,
        empty_below=_EMPTY_BELOW,
        # Types: a string is shorthand for an array of one text block.
        single_text=Paths(["system", "messages[*].content", f"{_TOOL_RESULT}.content"]),
        sampling=frozenset({"temperature"}),
        decides_sampling=_decides_sampling,
        is_own_host=_is_own_host,
    ),
    references=Paths(
        [
            *(f"messages[*].content[?@.type=='{kind}'].id" for kind in _CALLS),
            f"{_BLOCK}.tool_use_id",
            # A call that was made by code which a server tool ran names that tool's call.
            f"{_BLOCK}.caller.tool_id",
        ]
    ),
    # With a thread that goes on the calls are at the server (types, ThreadContinue).
    held=unasked(
        Paths([f"{_BLOCK}.tool_use_id", f"{_BLOCK}.caller.tool_id"], late=True),
        Paths([f"messages[*].content[?@.type=='{kind}'].id" for kind in _CALLS], late=True),
    ),
    # Messages API, MCP connector: the token that Anthropic sends to a server of tools.
    credentials=Paths(["mcp_servers[*].authorization_token"], late=True),
    media=_MEDIA,
    opaque=Paths((f"messages[*].content{path}" for path in _SEALED), late=True),
    answer_opaque=Paths((f"content{path}" for path in _SEALED), late=True),
    system=SystemPrompt(
        place="the member system, or messages[0] with the role system", missing=_system_missing
    ),
    stream=STREAM,
    other_streams=(BEDROCK_STREAM,),
    finish=_finish,
    is_failure=_is_failure,
)
