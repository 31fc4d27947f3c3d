"""The judge of openai-completions: the openai SDK, which reads the chunks and accumulates none.

Decides what the chunks come to and how a text goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import openai

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._openai import make_openai
from ._said import Rules, Said

__all__ = ["OpenAICompletionsJudge"]

_LOGPROBS = ("tokens", "token_logprobs", "top_logprobs", "text_offset")

RULES = Rules(
    texts=frozenset({"choices[*].text"}),
    lists=frozenset({*(f"choices[*].logprobs.{name}" for name in _LOGPROBS), "choices[*].token_ids"}),
    running=frozenset({"usage", "timings"}),
    dropped=frozenset({"obfuscation"}),
)


class OpenAICompletionsJudge:
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
        """Make the call and return what its chunks come to."""
        try:
            with self._client(transport) as client:
                answer = self._create(client, self._body["prompt"], stream=self.is_stream)
                if not self.is_stream:
                    return _verdict(answer.model_dump(warnings=False))
                return _verdict(_accumulate([chunk.model_dump(warnings=False) for chunk in answer]))
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: each text, with more of it behind."""
        for message in verdict.messages:
            sent: list[http.Request] = []

            def answer(request: http.Request, sent: list[http.Request] = sent) -> http.Response:
                sent.append(request)
                return http.Response(200, json={})

            with self._client(http.MockTransport(answer)) as client:
                self._create(client, f"{message['text']} And then?", stream=False)
            yield sent[0]

    def _client(self, transport: http.BaseTransport) -> openai.OpenAI:
        return make_openai(self._exchange, "/completions", transport)

    def _create(self, client: openai.OpenAI, prompt: Any, *, stream: bool) -> Any:
        rest = {
            name: value for name, value in self._body.items() if name not in ("model", "prompt", "stream")
        }
        return client.completions.create(
            prompt=prompt,
            model=self._body.get("model", openai.omit),
            stream=stream if "stream" in self._body else openai.omit,
            extra_body=rest,
        )


def _accumulate(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for position, choice in enumerate(chunk.pop("choices", None) or ()):
            index = choice.get("index")
            _add(choices.setdefault(position if index is None else index, {"text": ""}), choice)
        chunk.pop("obfuscation", None)
        document.update({name: value for name, value in chunk.items() if value is not None})
    document["choices"] = [choices[index] for index in sorted(choices)]
    return document


def _add(held: dict[str, Any], choice: dict[str, Any]) -> None:
    """Add what a chunk says of a choice: text to text, lists to lists; of all else the last counts."""
    held["text"] += choice.pop("text", None) or ""
    logprobs = choice.pop("logprobs", None) or {}
    lists = held.setdefault("logprobs", {})
    for name, values in itertools.chain(logprobs.items(), [("token_ids", choice.pop("token_ids", None))]):
        lists[name] = lists.get(name, []) + (values or [])
    held.update({name: value for name, value in choice.items() if value is not None})


def _verdict(document: dict[str, Any]) -> Verdict:
    return Verdict(document, [{"text": choice["text"]} for choice in document.get("choices") or ()])
