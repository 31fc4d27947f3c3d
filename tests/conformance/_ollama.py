"""The judge of ollama: the ollama SDK, which reads the lines and accumulates none.

Decides what the lines come to and how a conversation goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import ollama

from ._courier import Courier, Keeper
from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["OllamaJudge"]

RULES = Rules(
    texts=frozenset({"message.content", "message.thinking", "response", "thinking"}),
    lists=frozenset({"logprobs", "message.images", "message.tool_calls"}),
    running=frozenset({"created_at"}),
    ends=frozenset({True}),
    kind="done",
    has_lines=True,
)

#: Which members of a line are joined.
_JOINED = ("content", "thinking", "response", "logprobs", "images", "tool_calls")


class OllamaJudge:
    """Lets ``ollama.Client`` make the call of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._body: dict[str, Any] = exchange.body
        self._is_chat = "messages" in exchange.body
        self.is_stream = exchange.body.get("stream") is not False

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error."""
        return isinstance(document, dict) and bool(document.get("error"))

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its lines come to."""
        try:
            with _client(Courier(transport, self._exchange)) as client:
                answer = self._ask(client, self.is_stream)
                document: dict[str, Any] = {}
                for part in answer if self.is_stream else [answer]:
                    _accumulate(document, part.model_dump(exclude_none=True))
                return Verdict(document, [document["message"]] if self._is_chat else [])
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def _ask(self, client: ollama.Client, is_stream: bool) -> Any:
        if self._is_chat:
            hello = [{"role": "user", "content": "Hello?"}]
            return client.chat(model="any", messages=hello, stream=is_stream)
        return client.generate(model="any", prompt="Hello?", stream=is_stream)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: with the message as an object and as it is dumped."""
        for message in verdict.messages:
            results = [
                {"role": "tool", "content": f"{number}", "tool_name": call["function"]["name"]}
                for number, call in enumerate(message.get("tool_calls") or ())
            ]
            for echo in (message, ollama.Message(**message), ollama.Message(**message).model_dump()):
                keeper = Keeper({"message": message})
                with _client(keeper) as client:
                    client.chat(model="any", messages=[*self._body["messages"], echo, *results])
                yield keeper.asked
        if not self._is_chat and verdict.document:
            keeper = Keeper({})
            with _client(keeper) as client:
                client.generate(model="any", prompt="And then?", context=verdict.document.get("context"))
            yield keeper.asked


def _client(transport: httpx.BaseTransport) -> ollama.Client:
    return ollama.Client(host="http://ollama.test", transport=transport)


def _accumulate(document: dict[str, Any], part: dict[str, Any]) -> None:
    """Add one line to what the lines before it come to."""
    for name, value in part.items():
        if name == "message":
            _accumulate(document.setdefault("message", {}), value)
        elif name in _JOINED:
            document[name] = document[name] + value if name in document else value
        else:
            document[name] = value
