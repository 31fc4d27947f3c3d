"""The judge of mistral-conversations: mistralai, which reads the events and accumulates none.

Decides what the events come to and how a conversation goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._mistral import add_content, courier, dump, mistral_over, next_request
from ._said import Rules, Said

__all__ = ["MistralConversationsJudge"]

RULES = Rules(
    texts=frozenset({"content", "content.text", "arguments"}),
    running=frozenset({"created_at"}),
    sequences={"content.thinking": frozenset()},
    place=("type", "output_index", "id"),
    lane="output_index",
    ends=frozenset({"conversation.response.done"}),
    failures=frozenset({"conversation.response.error"}),
    whole=frozenset({"tool.execution.started"}),
)

#: Deltas of an entry: their type -> the type of the entry.
_DELTAS = {
    "message.output.delta": "message.output",
    "function.call.delta": "function.call",
    "tool.execution.delta": "tool.execution",
}


class MistralConversationsJudge:
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
        """Make the call and return what its events come to."""
        try:
            with mistral_over(courier(transport, self._exchange)) as client:
                if not self.is_stream:
                    answer = dump(self._call(client, "start", "append", "restart"))
                    return Verdict(answer, answer["outputs"])
                stream = self._call(client, "start_stream", "append_stream", "restart_stream")
                return _accumulate([dump(event.data) for event in stream])
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: with its calls answered, and with all sent back."""
        if not verdict.document:
            return
        ident = str(verdict.document.get("conversation_id"))
        results = [
            {"type": "function.result", "tool_call_id": each["tool_call_id"], "result": "Rain."}
            for each in verdict.messages
            if each["type"] == "function.call"
        ]
        said = results or [{"type": "message.input", "role": "user", "content": "And then?"}]
        yield next_request(
            lambda client: client.beta.conversations.append(conversation_id=ident, inputs=said)
        )
        sent = [each for each in verdict.messages if each["type"] in ("message.output", "function.call")]
        yield next_request(
            lambda client: client.beta.conversations.start(model="any", inputs=[*sent, *said], store=False)
        )

    def _call(self, client: Any, begin: str, go_on: str, restart: str) -> Any:
        conversations, path = client.beta.conversations, urlsplit(self._exchange.url).path
        if path.endswith("/conversations"):
            return getattr(conversations, begin)(model="any", inputs="Hello?")
        if path.endswith("/restart"):
            asked = {"conversation_id": "any", "from_entry_id": "any", "inputs": "Hello?"}
            return getattr(conversations, restart)(**asked)
        return getattr(conversations, go_on)(conversation_id="any", inputs="Hello?")


def _accumulate(events: list[dict[str, Any]]) -> Verdict:
    document: dict[str, Any] = {"events": []}
    entries: dict[tuple[Any, Any], dict[str, Any]] = {}
    for event in events:
        kind = event.get("type")
        if kind not in _DELTAS:
            document["events"].append(event)
            document.update({name: event[name] for name in ("conversation_id", "usage") if name in event})
            continue
        entry = entries.setdefault((event.get("output_index"), event["id"]), {"type": _DELTAS[kind]})
        content = event.pop("content", None)
        if content:
            parts = [content] if isinstance(content, dict) else content
            entry["content"] = add_content(entry.get("content"), parts)
        if "arguments" in event:
            entry["arguments"] = entry.get("arguments", "") + event.pop("arguments")
        known = ("agent_id", "id", "model", "name", "role", "tool_call_id")
        entry.update({name: event[name] for name in known if event.get(name) is not None})
    document["entries"] = list(entries.values())
    document = json.loads(json.dumps(document))
    return Verdict(document, json.loads(json.dumps(document["entries"])))
