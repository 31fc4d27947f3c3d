"""The judges of openai-chat at hosts whose vendors have SDKs: groq, together, fireworks, cerebras.

Those read events and accumulate none. Decides what the events come to and how a conversation goes on from
them, as a user would write it. Makes no comparison.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx

from ._courier import Courier, Keeper
from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._openai_chat import OpenAIChatJudge
from ._said import Said

__all__ = ["CompatibleJudge", "vendor_of"]

#: How a host ends -> the module of the SDK, and its client.
VENDORS = {
    ".groq.com": ("groq", "Groq"),
    ".together.ai": ("together", "Together"),
    ".together.xyz": ("together", "Together"),
    ".fireworks.ai": ("fireworks", "Fireworks"),
    ".cerebras.ai": ("cerebras.cloud.sdk", "Cerebras"),
}

#: Strings that users join; of all others the last counts.
_JOINED = frozenset(
    {"arguments", "content", "input", "reasoning", "reasoning_content", "refusal", "summary", "text"}
)


def vendor_of(url: str) -> str:
    """Return how the host of a URL ends, if it is a vendor's whose SDK is installed; empty otherwise."""
    host = urlsplit(url).hostname or ""
    for ending, (module, _) in VENDORS.items():
        if host.endswith(ending) and importlib.util.find_spec(module.partition(".")[0]) is not None:
            return ending
    return ""


class CompatibleJudge(OpenAIChatJudge):
    """Lets the vendor's SDK make the calls of one exchange.

    Args:
        exchange: The exchange.
    """

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(exchange)
        module, client = VENDORS[vendor_of(exchange.url)]
        self._module = importlib.import_module(module)
        self._make_client = getattr(self._module, client)

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its events come to, the stream read to its end."""
        try:
            with self._over(Courier(transport, self._exchange)) as client:
                hello = [{"role": "user", "content": "Hello?"}]
                asked = {"model": "any", "messages": hello, "stream": self.is_stream}
                answer = client.chat.completions.create(**asked)
                if not self.is_stream:
                    document = answer.model_dump(warnings=False)
                    return Verdict(document, [choice["message"] for choice in document["choices"]])
                return _accumulate([chunk.model_dump(warnings=False) for chunk in answer])
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Drop what is random padding."""
        for name in self.rules.dropped:
            verdict.document.pop(name, None)
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: one for each choice, with the results of its calls."""
        for message in verdict.messages:
            echo = {name: value for name, value in message.items() if value is not None}
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": f"{number}"}
                for number, call in enumerate(message.get("tool_calls") or ())
            ]
            keeper = Keeper({})
            with self._over(keeper) as client:
                client.chat.completions.create(
                    model="any", messages=[*self._body["messages"], echo, *results]
                )
            yield keeper.asked

    def _over(self, transport: httpx.BaseTransport) -> Any:
        options = {"warm_tcp_connection": False} if self._module.__name__.startswith("cerebras") else {}
        http_client = self._module.DefaultHttpxClient(transport=transport)
        return self._make_client(api_key="none", max_retries=0, http_client=http_client, **options)


def _accumulate(chunks: list[dict[str, Any]]) -> Verdict:
    document: dict[str, Any] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            choice["message"] = choice.pop("delta")
        _add(document, chunk)
    return Verdict(document, [choice["message"] for choice in document["choices"]])


def _add(held: dict[str, Any], piece: dict[str, Any]) -> None:
    """Add a piece to what the pieces before it come to: text to text, elements by their index."""
    for name, value in piece.items():
        if isinstance(value, dict) and isinstance(held.get(name), dict):
            _add(held[name], value)
        elif isinstance(value, list):
            held[name] = _added(held.get(name) or [], value)
        elif name in _JOINED and isinstance(value, str):
            held[name] = (held.get(name) or "") + value
        elif value is not None:
            held[name] = value


def _added(held: list[Any], items: list[Any]) -> list[Any]:
    listed = list(held)
    for item in items:
        index = item.get("index") if isinstance(item, dict) else None
        same = [each for each in listed if index is not None and each.get("index") == index]
        if same:
            _add(same[0], item)
        else:
            listed.append(item)
    return sorted(listed, key=lambda each: each["index"]) if _are_indexed(listed) else listed


def _are_indexed(items: list[Any]) -> bool:
    return all(isinstance(each, dict) and isinstance(each.get("index"), int) for each in items)
