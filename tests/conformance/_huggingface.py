"""The judge of huggingface: the hub's client, which makes objects of tokens and joins none.

Decides what the events come to and how a text goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import httpx2
import huggingface_hub
from huggingface_hub.utils import _http

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["HuggingFaceJudge"]

# All else is compared as it stands, in order: a token is one by its number and its probability.
RULES = Rules(
    texts=frozenset({"token.text"}),
    is_last=lambda document: document.get("generated_text") is not None,
)


class HuggingFaceJudge:
    """Lets ``InferenceClient.text_generation`` make the call of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        path = exchange.url.partition("?")[0]
        self.is_stream = path.endswith("/generate_stream") or exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error."""
        first = document[0] if isinstance(document, list) and document else document
        return isinstance(first, dict) and bool(first.get("error"))

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return its tokens, with all that the client knows of each."""

        def carry(request: http.Request) -> http.Response:
            exchange = self._exchange
            return transport.handle_request(http.Request(exchange.method, exchange.url, json=exchange.body))

        try:
            with _Hub(http.MockTransport(carry)) as client:
                given = client.text_generation("any", details=True, stream=self.is_stream)
                if not self.is_stream:
                    return _verdict(dataclasses.asdict(given), given.generated_text)
                tokens = [dataclasses.asdict(each) for each in given]
                text = "".join(each["token"]["text"] for each in tokens if not each["token"]["special"])
                return _verdict({"tokens": tokens, "text": text}, text)
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the request with which it can go on: the text, with more of it behind."""
        for message in verdict.messages:
            asked: list[http.Request] = []

            def answer(request: http.Request, asked: list[http.Request] = asked) -> http.Response:
                asked.append(request)
                return http.Response(200, json=[{"generated_text": "any"}])

            with _Hub(http.MockTransport(answer)) as client:
                client.text_generation(f"{message['text']} And then?")
            yield asked[0]


def _verdict(document: dict[str, Any], text: str) -> Verdict:
    return Verdict(document, [{"text": text}])


class _Hub:
    """The hub's client over a transport: its HTTP client is the one of the process, which is put back."""

    def __init__(self, transport: http.BaseTransport) -> None:
        self._transport = transport

    def __enter__(self) -> huggingface_hub.InferenceClient:
        huggingface_hub.set_client_factory(lambda: httpx2.Client(transport=self._transport))
        return huggingface_hub.InferenceClient("http://hub.test/generate")

    def __exit__(self, *raised: object) -> None:
        huggingface_hub.set_client_factory(_http.default_client_factory)
