"""The judge of openai-chat: the openai SDK, and what its streams say when read by hand.

Decides how a recorded request is made with the SDK, what the SDK's final object is, and how a conversation
goes on from it. Makes no comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionMessage

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._openai import make_openai
from ._said import Rules, Said

__all__ = ["OpenAIChatJudge"]

_DELTA = "choices[*].delta"

RULES = Rules(
    texts=frozenset(
        {
            f"{_DELTA}.content",
            f"{_DELTA}.refusal",
            f"{_DELTA}.reasoning",
            f"{_DELTA}.reasoning_content",
            f"{_DELTA}.reasoning_text",
            f"{_DELTA}.reasoning_details[*].text",
            f"{_DELTA}.reasoning_details[*].summary",
            f"{_DELTA}.function_call.arguments",
            f"{_DELTA}.tool_calls[*].function.arguments",
            f"{_DELTA}.tool_calls[*].custom.input",
            f"{_DELTA}.audio.transcript",
            "choices[*].text",
        }
    ),
    lists=frozenset(
        {
            "choices[*].logprobs.content",
            "choices[*].logprobs.refusal",
            "choices[*].logprobs.reasoning_content",
            "choices[*].token_ids",
            f"{_DELTA}.annotations",
        }
    ),
    running=frozenset({"usage", "x_groq.usage", "timings", "sla_metrics", f"{_DELTA}.token_id"}),
    totals={"choices[*].message.content": f"{_DELTA}.content"},
    # Mistral's, where a gateway passes it on: while it reasons, the content is a list of parts.
    sequences={f"{_DELTA}.content": frozenset()},
    # OpenAI's and Mistral's.
    dropped=frozenset({"obfuscation", "p"}),
)

#: Members of a message that name it or a part of it. Some servers say them in every event, and the SDK
#: concatenates what it is told: "assistantassistant". They are compared as the constant that they are.
_NAMES = frozenset({"channel", "format", "id", "name", "role"})

#: Numbers of a delta, which the SDK adds up, so that the sum depends on how often they are said.
_SUMMED = frozenset({"token_id"})


class OpenAIChatJudge:
    """Lets ``openai.OpenAI`` make the calls of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._body: dict[str, Any] = exchange.body
        self.is_stream = exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a gateway reports with the status 200 that its provider failed."""
        return isinstance(document, dict) and bool(document.get("error")) and not document.get("choices")

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what the SDK makes of the answer, the stream read to its end."""
        try:
            with self._client(transport) as client:
                answer = self._create(client, self._body["messages"], stream=self.is_stream)
                # All of it first: what the SDK cannot accumulate must have been read all the same.
                return _verdict(_accumulate(list(answer)) if self.is_stream else answer)
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Write names that the server itself repeats as the one name that they are, and drop sums."""
        for name in RULES.dropped:
            verdict.document.pop(name, None)  # openai 2 keeps the one of the last event.
        for index, choice in enumerate(verdict.document.get("choices") or ()):
            path = f"choices[{choice.get('index', index)}].delta"
            choice["message"] = _normalise(choice["message"], path, received)
            verdict.messages[index] = _normalise(verdict.messages[index], path, received)
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: for each choice, one for each way of echoing it."""
        for message in verdict.messages:
            whole = ChatCompletionMessage.construct(**message)
            # What the SDK sends for the message itself, and the two ways in which users dump it.
            dumps = (whole.model_dump(warnings=False, exclude_none=is_short) for is_short in (False, True))
            for echo in (message, *dumps):
                yield self._next_request([*self._body["messages"], echo, *_results(echo)])

    def _next_request(self, messages: list[Any]) -> http.Request:
        sent: list[http.Request] = []

        def answer(request: http.Request) -> http.Response:
            sent.append(request)
            return http.Response(200, json={})

        with self._client(http.MockTransport(answer)) as client:
            self._create(client, messages, stream=False)
        return sent[0]

    def _client(self, transport: http.BaseTransport) -> openai.OpenAI:
        return make_openai(self._exchange, "/chat/completions", transport)

    def _create(self, client: openai.OpenAI, messages: list[Any], *, stream: bool) -> Any:
        named = ("messages", "model", "stream")
        rest = {name: value for name, value in self._body.items() if name not in named}
        return client.chat.completions.create(
            messages=messages,
            model=self._body.get("model", openai.omit),
            stream=stream if "stream" in self._body else openai.omit,
            extra_body=rest,
        )


def _accumulate(chunks: list[Any]) -> Any:
    """Return the final object of ``chat.completions.stream``, also of a cut answer, for which it raises."""
    state: ChatCompletionStreamState[Any] = ChatCompletionStreamState()
    # As the helper does, because Azure sends events of other kinds between; some servers send no kind.
    kept = [chunk for chunk in chunks if chunk.object == "chat.completion.chunk"] or chunks
    for chunk in kept:
        state.handle_chunk(chunk)
    try:
        return state.get_final_completion()
    except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
        return state.current_completion_snapshot


def _verdict(completion: Any) -> Verdict:
    document = completion.model_dump(warnings=False)
    messages = [choice.message.to_dict() for choice in completion.choices or ()]
    return Verdict(document, messages)


def _normalise(value: Any, path: str, received: Said) -> Any:
    if isinstance(value, dict):
        return {
            name: _one_name(child, f"{path}.{name}", received)
            if name in _NAMES
            else _normalise(child, f"{path}.{name}", received)
            for name, child in value.items()
            if name not in _SUMMED
        }
    if isinstance(value, list):
        return [
            _normalise(child, f"{path}[{child.get('index') if isinstance(child, dict) else ''}]", received)
            for child in value
        ]
    return value


def _one_name(value: Any, path: str, received: Said) -> Any:
    constant = received.constant(path)
    if constant is None or not isinstance(value, str) or not value:
        return value
    return constant if value == constant * (len(value) // len(constant)) else value


def _results(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a user's tools say to the calls of a message."""
    said: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": call.get("id"), "content": json.dumps({"result": number})}
        for number, call in enumerate(message.get("tool_calls") or ())
    ]
    if message.get("function_call"):
        said.append({"role": "function", "name": message["function_call"].get("name"), "content": "{}"})
    return said
