"""Amazon Bedrock's Converse, and Nova's own format, which is the same but for its envelopes.

At ``invoke`` and ``invoke-with-response-stream`` each model speaks a format of its own. Anthropic's is that
of Messages, whose table reads it; Nova's is Converse's. For all others (Titan, Llama, Command, Jamba, ...)
there is no table: no member of a body tells which it is, and most take a prompt and no conversation. They are
generic, and their streams are stored event by event.

Sources, by the names that the comments use:

- *model*: the service model of bedrock-runtime in botocore, 1.44.8, which the API's reference
  (docs.aws.amazon.com/bedrock/latest/APIReference, API_runtime_Converse) is made of;
- *nova*: docs.aws.amazon.com/nova/latest/nova2-userguide/request-response-schema.html: "The request schema is
  nearly identical between the Invoke API and Converse API";
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .._call import Json
from .._paths import Paths
from .._rules import has_text
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import Event
from ._reading import Noise, StreamTable

__all__ = ["BEDROCK", "STREAM"]

# -- where it is spoken --------------------------------------------------------------------------------

# Model: neither is required, but without a prompt of the server's there must be messages.
_CONVERSE: Mapping[str, type] = {"messages": list, "promptVariables": dict}

# Nova's are told by the name of the model, which a profile for several regions has too; an ARN of one's own
# deployment tells nothing. Its models for pictures and for voices take no messages.
_NOVA = "/model/[^/]*amazon[.]nova-[^/]*"

_ENDPOINTS = (
    Endpoint("/model/[^/]+/converse", has_one=_CONVERSE, wants_stream=False),
    Endpoint("/model/[^/]+/converse-stream", has_one=_CONVERSE, wants_stream=True, has_binary_streams=True),
    Endpoint(f"{_NOVA}/invoke", has={"messages": list}, wants_stream=False),
    Endpoint(
        f"{_NOVA}/invoke-with-response-stream",
        has={"messages": list},
        wants_stream=True,
        has_binary_streams=True,
    ),
)

# -- the request ---------------------------------------------------------------------------------------

_BLOCK = "messages[*].content[*]"
_IN_RESULT = f"{_BLOCK}.toolResult.content[*]"

# Model: blobs, which are base64 in JSON.
_MEDIA = Paths(
    [
        *(f"{_BLOCK}.{kind}.source.bytes" for kind in ("image", "document", "video", "audio")),
        *(f"{_IN_RESULT}.{kind}.source.bytes" for kind in ("image", "document", "video")),
        f"{_BLOCK}.guardContent.image.source.bytes",
        "system[*].guardContent.image.source.bytes",
    ],
    late=True,
)

# Model: "include the text and its signature unmodified", and what a provider encrypted.
_SEALED = ("reasoningContent.reasoningText.signature", "reasoningContent.redactedContent")

# Nothing else is documented to be a default, or that ``null`` or an empty list is the same as nothing: those
# of inferenceConfig are the model's.
_BELOW: tuple[tuple[Paths, Mapping[str, Json]], ...] = (
    # Model, ToolChoice.auto: "(Default)".
    (Paths(["toolConfig"]), {"toolChoice": {"auto": {}}}),
)


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    system = body.get("system")
    if isinstance(system, list) and any(map(_has_text, system)):
        return None
    messages = body.get("messages")
    # Model, modelId: a prompt of Prompt management may be called, which is at the server; one that has
    # messages of its own needs none.
    if body.get("promptVariables") or not isinstance(messages, list):
        return None
    # Model, ConversationRole: a message may have the role system.
    for message in messages if anywhere else messages[:1]:
        if isinstance(message, dict) and message.get("role") == "system" and has_text(message.get("content")):
            return None
    return "no member system" if system is None else "a member system without a text"


def _has_text(block: Json) -> bool:
    """Tell whether a block of the system prompt says something: a text, or one that a guardrail looks at."""
    if not isinstance(block, dict):
        return False
    guarded = block.get("guardContent")
    return has_text([block, guarded.get("text") if isinstance(guarded, dict) else None])


# -- the answer ----------------------------------------------------------------------------------------


def _finish(answer: Json) -> Json:
    return answer.get("stopReason") if isinstance(answer, dict) else None


def _is_failure(answer: Json) -> bool:
    """An error with the status 200, of a gateway: an answer has an output."""
    return isinstance(answer, dict) and "output" not in answer


# -- its stream -----------------------------------------------------------------------------------------


class ConverseProgress:
    """How far a message has come: ``messageStop`` brings the reason to stop, ``metadata`` is the end.

    An event is told by its type; of Nova's own, which all have one type, by its only member.
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
        named = (
            value.items() if event.event == "chunk" and isinstance(value, dict) else [(event.event, value)]
        )
        for name, members in named:
            self._observe(name, members)

    def _observe(self, name: str | None, members: Json) -> None:
        if name == "messageStop" and isinstance(members, dict):
            self.is_complete = True
            self.finish = members.get("stopReason")
        elif name == "metadata":
            self.is_terminated = self.is_complete
        elif name is not None and name.endswith("Exception") and self.error is None:
            # Model: of these the type of the message says that they are none; gateways may not.
            self.error = name


def _each(places: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{place}{name}" for place in places for name in names)


#: Before the members of a delta: of Converse's, and of Nova's own.
_EITHER = ("", "contentBlockDelta.")

#: Blocks come one after the other, each opened if there is something to say of it, filled and closed.
STREAM = StreamTable(
    progress=ConverseProgress,
    framing="eventstream",
    # Whole: a signature, a citation, a picture and the parts of a result, of which nothing says that they are
    # concatenated.
    text=_each(_EITHER, ("delta.text", "delta.toolUse.input", "delta.reasoningContent.text")),
    padding=("p",),
    scope=(
        "contentBlockIndex",
        *(f"contentBlock{name}.contentBlockIndex" for name in ("Start", "Delta", "Stop")),
    ),
    opaque=_each(_EITHER, ("delta.reasoningContent.signature", "delta.reasoningContent.redactedContent")),
    # Corpus: texts that are empty, between others and before them.
    noise=Noise(empty_deltas=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

BEDROCK = Dialect(
    name="bedrock",
    endpoints=_ENDPOINTS,
    text=Paths(
        [
            "system[*].text",
            "system[*].guardContent.text.text",
            f"{_BLOCK}.text",
            f"{_BLOCK}.guardContent.text.text",
            f"{_IN_RESULT}.text",
        ]
    ),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(below=_BELOW),
    references=Paths([f"{_BLOCK}.toolUse.toolUseId", f"{_BLOCK}.toolResult.toolUseId"]),
    media=_MEDIA,
    opaque=Paths((f"{_BLOCK}.{path}" for path in _SEALED), late=True),
    answer_opaque=Paths((f"output.message.content[*].{path}" for path in _SEALED), late=True),
    system=SystemPrompt(
        place="the member system, or messages[0] with the role system", missing=_system_missing
    ),
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
