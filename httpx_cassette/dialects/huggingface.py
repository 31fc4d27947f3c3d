"""Text generation of Hugging Face's own servers: TGI, inference endpoints, and models of the inference API.

Chat at their ``/v1`` is OpenAI's format. Pipelines of other tasks, classification or feature extraction say,
have no table: their inputs are no prompt, their path is another, or nobody streams them.

Nothing is folded. ``null`` and what is absent are the same to TGI, and not to a pipeline behind the same
path: one of its parameters that is ``null`` may switch off what its model sets.

Sources, by the names that the comments use:

- *spec*: docs/openapi.json of huggingface/text-generation-inference;
- *router*: its router/src/server.rs and lib.rs, which read a request and write the events;
- *hub*: huggingface_hub, ``InferenceClient.text_generation``.
"""

from __future__ import annotations

from .._call import Json
from ._dialect import Dialect, Endpoint
from ._framing import Event
from ._reading import Noise, StreamTable

__all__ = ["HUGGINGFACE", "STREAM", "TokensProgress"]

# -- where it is spoken --------------------------------------------------------------------------------

# A prompt is a text; pairs, tables and lists of texts go to other tasks. Where the path says little, the
# member must stand beside it that only text generation has: parameters have the other tasks, too, and inputs
# alone ask for a vector. What does not say it is generic, and has the same key.
_PROMPT = {"inputs": str}
_PROMPT_TO_STREAM = {"inputs": str, "stream": object}

_ENDPOINTS = (
    Endpoint("/generate", has=_PROMPT, wants_stream=False),
    Endpoint("/generate_stream", has=_PROMPT, wants_stream=True),
    # Spec, compat_generate: "Generate tokens if `stream == false` or a stream of token if `stream == true`".
    Endpoint("^/?", has=_PROMPT_TO_STREAM),
    # Spec, sagemaker_compatibility.
    Endpoint("/invocations", has=_PROMPT_TO_STREAM),
    # The model's name with its owner, or without. What follows a pipeline's name is another task.
    Endpoint("/models/[^/:]+(?:/[^/:]+)?", has=_PROMPT_TO_STREAM),
)

# -- the answer ----------------------------------------------------------------------------------------


def _first(answer: Json) -> dict[str, Json]:
    """Return the answer itself; where the path says little it is the one element of a list."""
    found = answer[0] if isinstance(answer, list) and answer else answer
    return found if isinstance(found, dict) else {}


def _finish(answer: Json) -> Json:
    details = _first(answer).get("details")
    return details.get("finish_reason") if isinstance(details, dict) else None


def _is_failure(answer: Json) -> bool:
    """An error with the status 200, as gateways send it."""
    return bool(_first(answer).get("error"))


# -- its stream -----------------------------------------------------------------------------------------


class TokensProgress:
    """How far a stream has come: the event that has the whole text beside its token is the last."""

    awaits_more = False

    def __init__(self) -> None:
        self.is_complete = False
        self.error: str | None = None
        self.finish: Json = None

    @property
    def is_terminated(self) -> bool:
        """Nothing comes behind the whole text; some gateways add a marker, which says nothing more."""
        return self.is_complete

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if not isinstance(value, dict):
            if event.event == "error":
                self.error = self.error or event.data
            return
        # Router: what fails half-way is an event of its own, with the status 200 that was sent before.
        error = value.get("error")
        if error or event.event == "error":
            self.error = self.error or (error if isinstance(error, str) else event.data)
        elif isinstance(value.get("generated_text"), str):
            self.is_complete = True
            self.finish = _finish(value)


#: A token in each event, with its number in the vocabulary and its probability. Those belong to this text and
#: to no part of it, so that nothing is joined and nothing cut: a client that is given tokens may count them.
STREAM = StreamTable(
    progress=TokensProgress,
    text=("token.text",),
    whole=("token.id", "token.logprob", "token.special"),
    # Router: the keep-alive of its framework is a comment, which the hub passes over.
    noise=Noise(comments=True),
)


# -- the dialect ----------------------------------------------------------------------------------------

HUGGINGFACE = Dialect(
    name="huggingface",
    endpoints=_ENDPOINTS,
    # No text is stripped: a model goes on behind the last character of its prompt.
    # A prompt has no place for a system prompt of its own: there is none to guard.
    stream=STREAM,
    finish=_finish,
    is_failure=_is_failure,
)
