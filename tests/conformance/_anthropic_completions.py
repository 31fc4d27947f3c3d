"""The judge of anthropic-completions, which its SDK has no more: the events, read by hand.

Decides what the events come to and how a prompt goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["AnthropicCompletionsJudge"]

RULES = Rules(
    texts=frozenset({"completion"}),
    pings=frozenset({"ping"}),
    is_last=lambda document: bool(document.get("stop_reason")),
)


class AnthropicCompletionsJudge:
    """Makes the calls of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.is_stream = exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error."""
        return isinstance(document, dict) and bool(document.get("error"))

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its events come to."""
        try:
            with http.Client(transport=transport) as client:
                answer = client.post(self._exchange.url, json=self._exchange.body).raise_for_status()
                document: dict[str, Any] = {"completion": ""}
                for said in _read(answer.text) if self.is_stream else [answer.json()]:
                    document = {**document, **said, "completion": document["completion"] + said["completion"]}
                return Verdict(document, [{"text": document["completion"]}])
        except Exception as error:  # An error status, and an event that has no completion.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the request with which it can go on: the text, with another turn behind it."""
        asked = self._exchange.body
        for message in verdict.messages:
            prompt = f"{asked['prompt']}{message['text']}\n\nHuman: And then?\n\nAssistant:"
            yield http.Request("POST", self._exchange.url, json={**asked, "prompt": prompt})


def _read(body: str) -> Iterator[dict[str, Any]]:
    """Yield what the events say that are no ping."""
    for line in re.split(r"\r?\n", body):
        name, _, data = line.partition(": ")
        if name == "data":
            said: dict[str, Any] = json.loads(data)
            if said["type"] != "ping":
                yield said
