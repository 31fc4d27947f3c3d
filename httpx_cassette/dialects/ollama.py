"""Ollama's own ``/api/chat`` and ``/api/generate``; at ``/v1`` it speaks OpenAI's formats.

Sources, by the names that the comments use:

- *docs*: docs/api.md of ollama/ollama, and docs.ollama.com/api;
- *types*: api/types.go of ollama/ollama, into which a server reads a request: to Go a member that is ``null``
  is one that was not sent, and so is the zero value of one that is no pointer;
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from .._rules import has_text, is_blank
from ._dialect import Dialect, Endpoint, Folds, SystemPrompt
from ._framing import Event
from ._reading import Noise, StreamTable

__all__ = ["OLLAMA", "STREAM"]

# -- where it is spoken --------------------------------------------------------------------------------

# Both need a model, which the chat routes of web applications at such an address do not take. Embeddings,
# models and the rest of the API are exempt, and so is a call without messages or prompt, which loads a model.
# Types: "Stream enable streaming of returned response; true by default."
_ENDPOINTS = (
    Endpoint("/api/chat", has={"model": str, "messages": list}, streams_by_default=True),
    Endpoint("/api/generate", has={"model": str, "prompt": str}, streams_by_default=True),
)

# -- the request ---------------------------------------------------------------------------------------

# Nothing about sampling, thinking or lengths: those come from the model, and keep_alive from the server.
_DEFAULTS: Mapping[str, Json] = {
    # Types, as above.
    "stream": True,
    # Types: no pointers. An empty format is none, and empty texts leave the model its own.
    "format": "",
    "logprobs": False,
    "raw": False,
    "suffix": "",
    "system": "",
    "template": "",
    "top_logprobs": 0,
}

_NULL = frozenset(
    """
    context format images keep_alive logprobs options raw stream suffix system template think tools
    top_logprobs
    """.split()
)

# SDKs send ``tools: []`` and ``options: {}`` for what was not given.
_EMPTY = frozenset({"context", "images", "options", "tools"})

#: Types, Options.FromMap: an option that is null is not set.
_NULL_BELOW = Paths(["options[*]"])

_EMPTY_BELOW = Paths(
    [
        "messages[*].content",
        "messages[*].images",
        "messages[*].thinking",
        "messages[*].tool_call_id",
        "messages[*].tool_calls",
        "messages[*].tool_name",
    ]
)

# Types, Message: no pointers.
_MESSAGE_DEFAULTS: Mapping[str, Json] = {"content": "", "thinking": "", "tool_call_id": "", "tool_name": ""}

#: The ollama SDK, 0.6.3, GenerateRequest: with these an image is drawn, of which no system prompt decides.
_OF_IMAGES = ("width", "height", "steps")

_UNSEEN = "one in the Modelfile of the model cannot be seen"


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    if "messages" in body:
        return _missing_in_messages(body["messages"], anywhere)
    prompt, system = body.get("prompt"), body.get("system")
    # Docs: an empty prompt loads the model, or unloads it, and is answered by none.
    if not isinstance(prompt, str) or is_blank(prompt) or any(name in body for name in _OF_IMAGES):
        return None
    # Docs: a raw prompt is a full one, in its template, and a context the conversation so far, in tokens. In
    # either a system prompt may stand, and nowhere else.
    if has_text(system) or body.get("raw") is True or body.get("context"):
        return None
    blank = "a member system that is blank" if system is not None else "no member system"
    elsewhere = "one in the template that is sent, or" if has_text(body.get("template")) else "and"
    return f"{blank}; {elsewhere} {_UNSEEN}"


def _missing_in_messages(messages: Json, anywhere: bool) -> str | None:
    listed = messages if isinstance(messages, list) else []
    if not listed:
        return None  # Docs: if the messages are empty, the model is loaded.
    for message in listed if anywhere else listed[:1]:
        if isinstance(message, dict) and message.get("role") == "system":
            if has_text(message.get("content")):
                return None
            if not anywhere:
                return "a system message whose content is blank"
    if anywhere:
        return f"no message with the role system whose content is not blank; {_UNSEEN}"
    first = listed[0]
    role = (
        f"a message with the role {first.get('role')!r}" if isinstance(first, dict) else "no message object"
    )
    return f"{role}; {_UNSEEN}"


# -- the answer ----------------------------------------------------------------------------------------


def _finish(answer: Json) -> Json:
    return answer.get("done_reason") if isinstance(answer, dict) else None


def _is_failure(answer: Json) -> bool:
    """An error with the status 200, as gateways send it."""
    return isinstance(answer, dict) and bool(answer.get("error"))


# -- its stream -----------------------------------------------------------------------------------------


class LinesProgress:
    """How far a stream has come: the line that is done is the last, and has the reason and the counters."""

    awaits_more = False

    def __init__(self) -> None:
        self.is_complete = False
        self.error: str | None = None
        self.finish: Json = None

    @property
    def is_terminated(self) -> bool:
        """Nothing comes behind the line that is done."""
        return self.is_complete

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one line."""
        if not isinstance(value, dict):
            return
        error = value.get("error")
        # Docs: what fails half-way says so in a line of its own, with the status 200 that was sent before.
        if error and self.error is None:
            message = error.get("message") if isinstance(error, dict) else error
            self.error = message if isinstance(message, str) else str(error)
        if value.get("done") is True:
            self.is_complete = True
            self.finish = value.get("done_reason")  # Older servers give none.


#: A whole answer in each line, its text in pieces.
STREAM = StreamTable(
    progress=LinesProgress,
    framing="ndjson",
    # Of the last line nothing is cut: what is done is done once, with one set of counters and one context.
    kind="done",
    types=frozenset({"False", "None"}),
    text=("message.content", "message.thinking", "response", "thinking"),
    # Beside a text they would be said again with each piece of it; clients append them.
    lists=("logprobs", "message.images", "message.tool_calls"),
    stamps=("created_at",),
    # Corpus: while a model thinks, each line has an empty content, and calls come with one. Clients take
    # every line for JSON, so that there are no comments and no blank lines.
    noise=Noise(empty_deltas=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

OLLAMA = Dialect(
    name="ollama",
    endpoints=_ENDPOINTS,
    # Not the prompt of ``generate``: with a model that has no template it is a text that goes on, and its
    # blanks mean something.
    text=Paths(["messages[*].content", "system"]),
    turns=("messages",),
    prefill_roles=frozenset({"assistant"}),
    folds=Folds(
        defaults=_DEFAULTS,
        below=((Paths(["messages[*]"]), _MESSAGE_DEFAULTS),),
        null=_NULL,
        empty=_EMPTY,
        null_below=_NULL_BELOW,
        empty_below=_EMPTY_BELOW,
    ),
    references=Paths(["messages[*].tool_calls[*].id", "messages[*].tool_call_id"]),
    # Docs: a list of base64-encoded images.
    media=Paths(["images[*]", "messages[*].images[*]"]),
    system=SystemPrompt(
        place="messages[0] with the role system, or the member system of /api/generate",
        missing=_system_missing,
        has_positions=True,
    ),
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
