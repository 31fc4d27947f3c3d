"""The judge of Messages in binary messages: the client for Bedrock of the anthropic SDK.

Decides how a recorded request is made with it; what it gives is what the judge of Messages looks at.
"""

from __future__ import annotations

from typing import Any

import anthropic

from ._anthropic_messages import AnthropicMessagesJudge, read_to_end
from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http

__all__ = ["AnthropicBedrockJudge"]


class AnthropicBedrockJudge(AnthropicMessagesJudge):
    """Lets ``AnthropicBedrock`` make the calls of one exchange.

    Args:
        exchange: The exchange.
    """

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        self._exchange = exchange
        self.is_stream = True

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call as it was recorded: the SDK writes the model into the address in another way."""
        return super().ask(_AsRecorded(transport, self._exchange))

    def _client(self, transport: http.BaseTransport) -> Any:
        return anthropic.AnthropicBedrock(
            api_key="none",
            aws_region="us-east-1",
            max_retries=0,
            http_client=anthropic.DefaultHttpxClient(transport=transport),
        )

    def _ask(self, client: Any, messages: list[Any], *, is_stream: bool) -> Any:
        named = ("messages", "max_tokens")
        arguments: Any = {
            "model": "any",
            "messages": messages,
            "max_tokens": self._body["max_tokens"],
            "extra_body": {name: value for name, value in self._body.items() if name not in named},
        }
        if not is_stream:
            return client.messages.create(**arguments)
        with client.messages.stream(**arguments) as stream:
            return read_to_end(stream)


class _AsRecorded(http.BaseTransport):
    """Sends the recorded request whatever is asked."""

    def __init__(self, transport: http.BaseTransport, exchange: Exchange) -> None:
        self._transport = transport
        self._exchange = exchange

    def handle_request(self, request: http.Request) -> http.Response:
        recorded = self._exchange
        return self._transport.handle_request(http.Request(recorded.method, recorded.url, json=recorded.body))
