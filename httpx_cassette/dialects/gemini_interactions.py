"""Google's Interactions API: steps as typed events, ``interaction.completed`` and ``[DONE]`` at the end.

Sources: the types of google-genai 3.6.1 (google.genai.interactions), made from Google's API description, and
streams as recorded from generativelanguage.googleapis.com.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._call import Json
from .._paths import Paths
from .._rules import is_blank
from ._dialect import Dialect, Endpoint, SystemPrompt, unasked
from ._framing import DONE, Event
from ._reading import StreamTable

__all__ = ["GEMINI_INTERACTIONS", "STREAM"]

# -- the request ---------------------------------------------------------------------------------------

# The system prompt may be an agent's, which the server holds, or have been sent with the interaction that
# this one goes on from.
_HELD_BY_THE_SERVER = ("previous_interaction_id", "agent", "cached_content")


_ASKED: Mapping[str, type] = {"model": str, "agent": str}
_ENDPOINTS = (
    Endpoint("/interactions", has={"input": object}, has_one=_ASKED),
    # A hop that goes on with an interrupted answer has no input.
    Endpoint("/interactions", has={"continuation_token": object}, has_one=_ASKED),
    # The GET that polls an interaction, or takes its stream up again.
    Endpoint("/interactions/[^/]+", has_body=False),
)


def _system_missing(body: dict[str, Json], anywhere: bool) -> str | None:
    for name in ("system_instruction", *_HELD_BY_THE_SERVER):
        value = body.get(name)
        if isinstance(value, str) and not is_blank(value):
            return None
    return "no system_instruction" if body.get("system_instruction") is None else "a blank system_instruction"


# -- the answer ----------------------------------------------------------------------------------------


def _finish(answer: Json) -> Json:
    return answer.get("status") if isinstance(answer, dict) else None


def _is_failure(answer: Json) -> bool:
    """An error with the status 200, or an interaction that says that it failed."""
    return isinstance(answer, dict) and (bool(answer.get("error")) or answer.get("status") == "failed")


# -- its stream -----------------------------------------------------------------------------------------


#: The older name is that of google-genai 1.75.
_LAST = ("interaction.completed", "interaction.complete")


class InteractionProgress:
    """How far a stream has come: its last event but the marker holds the interaction, and how it went."""

    awaits_more = False

    def __init__(self) -> None:
        self.is_complete = False
        self.is_terminated = False
        self.error: str | None = None
        self.finish: Json = None

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if event.data == DONE:
            self.is_terminated = self.is_complete
        if not isinstance(value, dict):
            return
        # The name of the event says the same, where it is sent; the SDK reads the data alone.
        kind = value.get("event_type")
        interaction = value.get("interaction")
        if kind in _LAST and isinstance(interaction, dict):
            self.is_complete = True
            self.finish = interaction.get("status")
            if self.finish == "failed":
                self.error = self.error or "the interaction failed"
        if kind == "error" or event.event == "error" or value.get("error"):
            self.error = self.error or _message(value.get("error")) or event.data


def _message(error: Json) -> str | None:
    if isinstance(error, dict):
        message = error.get("message")
        return message if isinstance(message, str) else str(error)
    return str(error) if error else None


#: A thought's summary comes in whole paragraphs, each an item of its own in the step: it is neither joined
#: nor cut, as signatures, annotations, media and results are not.
STREAM = StreamTable(
    progress=InteractionProgress,
    text=("delta.text", "delta.arguments"),
    # Which event a client would resume from, and the usage so far.
    last=("event_id", "metadata"),
    scope=("index",),
    before_last="absent",
    opaque=("delta.signature", "step.signature", "interaction.steps[*].signature"),
)


# -- the dialect ----------------------------------------------------------------------------------------

GEMINI_INTERACTIONS = Dialect(
    name="gemini-interactions",
    endpoints=_ENDPOINTS,
    # Types of google-genai, MCPServer: what Google sends to a server of tools.
    credentials=Paths(
        [
            "tools[*].headers",
            "tools[*].exa_ai_search_config.api_key",
            "tools[*].parallel_ai_search_config.api_key",
            "environment.env[*].value",
            "environment.network.allowlist[*].transform",
        ],
        late=True,
    ),
    # Types of google-genai, ThoughtStep.
    opaque=Paths(["input[*].signature"], late=True),
    answer_opaque=Paths(["steps[*].signature"], late=True),
    text=Paths(
        [
            "system_instruction",
            "input",
            "input[*].text",
            "input[*].content",
            "input[*].content[*].text",
            "input.text",
            "input.content",
            "input.content[*].text",
        ]
    ),
    turns=("input",),
    prefill_roles=frozenset({"model"}),
    references=Paths(["input[*].id", "input[*].call_id"]),
    # With previous_interaction_id the calls are at the server.
    held=unasked(Paths(["input[*].call_id"], late=True), Paths(["input[*].id"], late=True)),
    media=Paths(
        [
            "input[*].data",
            "input[*].content[*].data",
            "input[*].result[*].data",
            "input.data",
            "input.content[*].data",
        ]
    ),
    # No fold: no description says what stands for a member that is not sent.
    system=SystemPrompt(
        place=f"system_instruction (or {', '.join(_HELD_BY_THE_SERVER)})", missing=_system_missing
    ),
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
