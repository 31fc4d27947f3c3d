"""Anthropic's legacy ``/v1/complete``: a prompt with turns in it, and a text that goes on from it.

Sources, by the names that the comments use:

- *types*: the parameter types of the anthropic SDK, 2.14.0;
- *corpus*: what servers were recorded to send.
"""

from __future__ import annotations

from .._call import Json
from ._dialect import Dialect, Endpoint, Folds
from ._ending import At, Ends
from ._framing import Event
from ._reading import Noise, StreamTable

__all__ = ["ANTHROPIC_COMPLETIONS", "STREAM"]


def _is_failure(answer: Json) -> bool:
    """An error with the status 200, as gateways send it."""
    return isinstance(answer, dict) and bool(answer.get("error"))


#: Corpus: nothing comes behind the reason to stop.
STREAM = StreamTable(
    progress=Ends(finish="stop_reason"),
    text=("completion",),
    ends=("stop_reason", "stop"),
    # Corpus: pings, blanks before the last brace, and lines that end with CRLF.
    ping=Event('{"type": "ping"}', "ping"),
    noise=Noise(pings=True, blanks=True, crlf=True),
)

ANTHROPIC_COMPLETIONS = Dialect(
    name="anthropic-completions",
    # Types: without a limit it is refused.
    endpoints=(Endpoint("/v1/complete", has={"prompt": str, "max_tokens_to_sample": object}),),
    # No text is stripped: a model goes on behind the last character of its prompt.
    folds=Folds(defaults={"stream": False}, is_own_host=lambda host: host.endswith(".anthropic.com")),
    # The turns are in the prompt, and so is what stands before them: there is no place to guard.
    stream=STREAM,
    finish=At("stop_reason"),
    is_failure=_is_failure,
)
