"""The judge of anthropic-messages: the anthropic SDK, and what its streams say when read by hand.

Decides how a recorded request is made with the SDK, what the SDK's final object is, and how a conversation
goes on from it. Makes no comparison.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anthropic
from anthropic.types import Message
from anthropic.types.beta import BetaMessage

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["AnthropicMessagesJudge", "read_to_end"]

RULES = Rules(
    texts=frozenset({"delta.text", "delta.thinking", "delta.partial_json"}),
    place=("type", "index"),
    lane="index",
    ends=frozenset({"message_stop"}),
    failures=frozenset({"error"}),
    pings=frozenset({"ping"}),
)

_VERTEX = re.compile(r"(.*)/projects/([^/]+)/locations/([^/]+)/publishers/anthropic/models/([^:]+):\w+")


class AnthropicMessagesJudge:
    """Lets the SDK's client make the calls of one exchange: Anthropic's, Vertex's, or a bare POST.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.url)
        self._host = f"{parts.scheme}://{parts.netloc}"
        self._path = parts.path
        self._query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self._body: dict[str, Any] = exchange.body
        self.is_stream = exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a gateway reports with the status 200 that its provider failed."""
        return isinstance(document, dict) and document.get("type") == "error"

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what the SDK makes of the answer, the stream read to its end."""
        try:
            with self._client(transport) as client:
                return _verdict(self._ask(client, self._body["messages"], is_stream=self.is_stream))
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is: the SDK makes nothing of how a server divides its events."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on, one for each way of echoing the answer."""
        for message in verdict.messages:
            if "content" not in message:
                continue  # An error with a good status, of which the SDK makes an object all the same.
            # The objects themselves, which the SDK writes, and the ways in which users dump them.
            whole = (BetaMessage if self._is_beta else Message).construct(**message)
            dumps = [whole.model_dump(warnings=False, exclude_none=is_short) for is_short in (False, True)]
            for content in (whole.content, message["content"], *(dump["content"] for dump in dumps)):
                echo = {"role": "assistant", "content": content}
                yield self._next_request([*self._body["messages"], echo, *_results(message["content"])])

    def _next_request(self, messages: list[Any]) -> http.Request:
        sent: list[http.Request] = []

        def answer(request: http.Request) -> http.Response:
            sent.append(request)
            return http.Response(200, json={})

        with self._client(http.MockTransport(answer)) as client:
            self._ask(client, messages, is_stream=False)
        return sent[0]

    def _client(self, transport: http.BaseTransport) -> Any:
        options: Any = {
            "max_retries": 0,
            # Given, because without one the SDK refuses a large ``max_tokens`` that is not streamed.
            "timeout": 60,
            "http_client": anthropic.DefaultHttpxClient(transport=transport),
        }
        vertex = _VERTEX.fullmatch(self._path)
        if vertex:
            base, project, region, _ = vertex.groups()
            return anthropic.AnthropicVertex(
                access_token="none", project_id=project, region=region, base_url=self._host + base, **options
            )
        base = self._path.removesuffix("/v1/messages") if self._is_messages else ""
        query = {name: value for name, value in self._query.items() if not self._is_beta}
        return anthropic.Anthropic(api_key="none", base_url=self._host + base, default_query=query, **options)

    @property
    def _is_messages(self) -> bool:
        return self._path.endswith("/v1/messages")

    @property
    def _is_beta(self) -> bool:
        return self._query == {"beta": "true"}

    def _ask(self, client: Any, messages: list[Any], *, is_stream: bool) -> Any:
        """Return the final message."""
        vertex = _VERTEX.fullmatch(self._path)
        if vertex is None and not self._is_messages:
            return client.post(self._path, body={**self._body, "messages": messages}, cast_to=Message)
        model = vertex[4] if vertex else self._body.get("model")
        named = ("messages", "model", "max_tokens", "stream")
        rest = {name: value for name, value in self._body.items() if name not in named}
        arguments: Any = {
            "messages": messages,
            "model": model,
            "max_tokens": self._body["max_tokens"],
            "extra_body": rest,
        }
        if self._is_beta:
            # Newer SDKs send no query.
            arguments["extra_query"] = self._query
        resource = client.beta.messages if self._is_beta else client.messages
        if is_stream:
            with resource.stream(**arguments) as stream:
                return read_to_end(stream)
        return resource.create(**arguments, **({"stream": False} if "stream" in self._body else {}))


def read_to_end(stream: Any) -> Any:
    """Return the final message of a stream that is read to its end.

    What comes behind ``message_stop`` is no part of it: of the ``[DONE]`` that a gateway appends, anthropic 2
    raises, and older releases take no notice.
    """
    is_over = False
    try:
        for event in stream:
            is_over = is_over or event.type == "message_stop"
    except ValueError:
        if not is_over:
            raise
    return stream.current_message_snapshot


def _verdict(message: Any) -> Verdict:
    return Verdict(message.model_dump(warnings=False), [message.to_dict()])


def _results(content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a user's tools say to the calls of a message."""
    said = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": json.dumps({"result": number})}
        for number, block in enumerate(content)
        if block["type"] == "tool_use"
    ]
    return [{"role": "user", "content": said}] if said else []
