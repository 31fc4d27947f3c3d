"""The judge of Mistral's calls with choices: chat on its own hosts, an agent's completions, and FIM.

mistralai reads the chunks, each on its own, and accumulates none: what they come to is put together here, as
a user would do it, whole tool calls appended and not merged. The recorded request is sent in place of the one
that the SDK makes, because most were made by others. Makes no comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol
from urllib.parse import urlsplit

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import IS_HTTPX2, http
from ._said import Rules, Said

if IS_HTTPX2:
    from mistralai.client import Mistral
else:
    from mistralai import Mistral

__all__ = ["MistralJudge", "courier", "is_of_mistral", "mistral_over", "next_request"]

_DELTA = "choices[*].delta"

RULES = Rules(
    texts=frozenset({f"{_DELTA}.content", f"{_DELTA}.tool_calls[*].function.arguments"}),
    running=frozenset({"usage"}),
    sequences={f"{_DELTA}.content": frozenset()},
    dropped=frozenset({"p"}),
)

HELLO = {"role": "user", "content": "Hello?"}


class MistralJudge:
    """Lets ``mistralai.Mistral`` make the call of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.is_stream = exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error."""
        return isinstance(document, dict) and (
            document.get("object") == "error" or bool(document.get("error"))
        )

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its chunks come to."""
        try:
            with mistral_over(courier(transport, self._exchange)) as client:
                if not self.is_stream:
                    answer = dump(self._resource(client).complete(**self._asked()))
                    return _verdict(answer, [choice["message"] for choice in answer["choices"]])
                chunks = [dump(event.data) for event in self._resource(client).stream(**self._asked())]
                return _accumulate(chunks)
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: one for each choice, with the results of its calls."""
        for message in verdict.messages:
            echo = {name: value for name, value in message.items() if value is not None}
            results = [
                {"role": "tool", "tool_call_id": call.get("id"), "content": json.dumps({"result": number})}
                for number, call in enumerate(message.get("tool_calls") or ())
            ]
            yield next_request(
                lambda client, said=[HELLO, echo, *results]: client.chat.complete(model="any", messages=said)
            )

    def _resource(self, client: Any) -> Any:
        path = urlsplit(self._exchange.url).path
        if path.endswith("/fim/completions"):
            return client.fim
        return client.agents if path.endswith("/agents/completions") else client.chat

    def _asked(self) -> dict[str, Any]:
        if "prompt" in self._exchange.body:
            return {"model": "any", "prompt": "any"}
        who = "agent_id" if "agent_id" in self._exchange.body else "model"
        return {who: "any", "messages": [HELLO]}


def is_of_mistral(exchange: Exchange) -> bool:
    """Tell whether a call goes to a host of Mistral's own, which the SDK is made for."""
    return (urlsplit(exchange.url).hostname or "").endswith(".mistral.ai")


def courier(transport: http.BaseTransport, exchange: Exchange) -> http.MockTransport:
    """Return a transport that sends the recorded request whatever is asked."""

    def carry(request: http.Request) -> http.Response:
        return transport.handle_request(http.Request(exchange.method, exchange.url, json=exchange.body))

    return http.MockTransport(carry)


class _Client(Protocol):
    def __enter__(self) -> Any: ...

    def __exit__(self, *raised: object) -> None: ...


#: Never used: one that the SDK makes itself costs the set-up of TLS, each time.
_IDLE = http.AsyncClient(transport=http.MockTransport(lambda request: http.Response(404)))


def mistral_over(transport: http.BaseTransport) -> _Client:
    """Return the SDK with its calls going to a transport."""
    client: _Client = Mistral(api_key="none", client=http.Client(transport=transport), async_client=_IDLE)
    return client


def next_request(ask: Any) -> http.Request:
    """Return the request that the SDK makes of a call."""
    sent: list[http.Request] = []

    def answer(request: http.Request) -> http.Response:
        sent.append(request)
        return http.Response(404)

    with mistral_over(http.MockTransport(answer)) as client:
        try:
            ask(client)
        except Exception:
            assert sent  # What the SDK makes of the answer is of no interest.
    return sent[0]


def dump(value: Any) -> dict[str, Any]:
    """Return an object of the SDK as plain data."""
    dumped: dict[str, Any] = value.model_dump(mode="json", by_alias=True)
    return dumped


def _accumulate(chunks: list[dict[str, Any]]) -> Verdict:
    document: dict[str, Any] = {}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.pop("choices"):
            held = choices.setdefault(choice["index"], {"message": {"role": "assistant"}})
            _add(held["message"], choice.pop("delta"))
            held.update({name: value for name, value in choice.items() if value is not None})
        chunk.pop("p", None)
        document.update({name: value for name, value in chunk.items() if value is not None})
    document["choices"] = [choices[index] for index in sorted(choices)]
    return _verdict(document, [choice["message"] for choice in document["choices"]])


def _add(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add a delta to a message: text to text, parts to parts, and tool calls as they come."""
    if delta.get("role"):
        message["role"] = delta["role"]
    if delta.get("tool_calls"):
        message.setdefault("tool_calls", []).extend(delta["tool_calls"])
    content = delta.get("content")
    if content:
        message["content"] = add_content(message.get("content"), content)


def add_content(before: Any, content: Any) -> Any:
    """Return content with more of it behind: thoughts in one part, text in another."""
    if isinstance(content, str) and isinstance(before or "", str):
        return (before or "") + content
    parts = before if isinstance(before, list) else [{"type": "text", "text": before}] if before else []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        last = parts[-1] if parts else {}
        if part.get("type") == last.get("type") == "text":
            last["text"] += part["text"]
        elif part.get("type") == last.get("type") == "thinking":
            last["thinking"] = add_content(last["thinking"], part["thinking"])
            last.update({name: value for name, value in part.items() if name != "thinking" and value})
        else:
            parts = [*parts, part]
    return parts


def _verdict(document: dict[str, Any], messages: list[dict[str, Any]]) -> Verdict:
    return Verdict(json.loads(json.dumps(document)), json.loads(json.dumps(messages)))
