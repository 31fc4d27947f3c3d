"""OpenAI's Chat Completions, and the many servers that speak the same format."""

from __future__ import annotations

from .._call import Json
from ._framing import DONE, Event
from ._script import StreamTable

# --- streams -------------------------------------------------------------------------------------------


class ChatProgress:
    """How far a chat stream has come: every choice needs a finish reason, and ``[DONE]`` ends it."""

    def __init__(self) -> None:
        self.is_terminated = False
        self.error: str | None = None
        self._finishes: dict[int, Json] = {}

    @property
    def is_complete(self) -> bool:
        """Every choice seen so far has finished, and there was one."""
        return bool(self._finishes) and None not in self._finishes.values()

    @property
    def finish(self) -> Json:
        """The finish reason; the list of them, by index, when there are several choices."""
        finishes = [self._finishes[index] for index in sorted(self._finishes)]
        return finishes[0] if len(finishes) == 1 else finishes or None

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        if event.data == DONE:
            self.is_terminated = True
        if self.error is None:
            self.error = _find_error(event, value)
        choices = value.get("choices") if isinstance(value, dict) else None
        for position, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, dict):
                index = choice.get("index")
                index = index if isinstance(index, int) else position
                finish = choice.get("finish_reason")
                if finish is not None or index not in self._finishes:
                    self._finishes[index] = finish


def _find_error(event: Event, value: Json) -> str | None:
    """Return what an error event says: servers report a failure inside a 200 in three ways."""
    for name, text in event.extra:
        if name == "error":  # a field that no SSE client reads (llama.cpp)
            return text
    error = value.get("error") if isinstance(value, dict) else None
    if event.event == "error" and not error:
        return event.data
    if isinstance(error, dict):
        message = error.get("message")
        return message if isinstance(message, str) else str(error)
    return str(error) if error else None


_DELTA = "choices[*].delta"
_TOOL = f"{_DELTA}.tool_calls[*]"
_DETAIL = f"{_DELTA}.reasoning_details[*]"
_LOGPROBS = "choices[*].logprobs"

#: Sources: OpenAI's OpenAPI document, and what other hosts add as recorded from them.
STREAM = StreamTable(
    progress=ChatProgress,
    text=(
        f"{_DELTA}.content",
        f"{_DELTA}.refusal",
        f"{_TOOL}.function.arguments",
        f"{_TOOL}.custom.input",
        f"{_DELTA}.function_call.arguments",
        f"{_DELTA}.audio.transcript",
        # DeepSeek, Qwen, vLLM; OpenRouter, Groq; GitHub Copilot.
        f"{_DELTA}.reasoning_content",
        f"{_DELTA}.reasoning",
        f"{_DELTA}.reasoning_text",
        # OpenRouter: the reasoning once more, in typed parts.
        f"{_DETAIL}.text",
        f"{_DETAIL}.summary",
        # Together: the content once more.
        "choices[*].text",
    ),
    lists=(
        f"{_LOGPROBS}.content",
        f"{_LOGPROBS}.refusal",
        f"{_LOGPROBS}.reasoning_content",
        f"{_DELTA}.annotations",
        "choices[*].token_ids",
    ),
    last=(
        "usage",
        "x_groq.usage",
        "timings",  # llama.cpp
        "sla_metrics",  # Hugging Face
        f"{_DELTA}.token_id",  # Together: clients add numbers up, so one must be enough
    ),
    ends=(
        "choices[*].finish_reason",
        "choices[*].native_finish_reason",  # OpenRouter
        "choices[*].stop_reason",  # vLLM
        f"{_DETAIL}.signature",
        f"{_DETAIL}.data",
    ),
    # openai's client concatenates every string of a delta but ``type``. ``type`` stays in each piece:
    # Cerebras' client takes a tool delta without it for something else.
    first=(
        f"{_DELTA}.*",
        f"{_TOOL}.id",
        f"{_TOOL}.function.name",
        f"{_TOOL}.custom.name",
        f"{_DELTA}.function_call.name",
        f"{_DELTA}.audio.id",
        f"{_DETAIL}.id",
        f"{_DETAIL}.format",
    ),
    # Perplexity: the whole answer so far, beside each delta.
    totals=(("choices[*].message.content", f"{_DELTA}.content"),),
    padding=("obfuscation",),
    scope=("choices[*].index",),
    markers=(DONE,),
)
