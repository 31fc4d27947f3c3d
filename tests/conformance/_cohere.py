"""The judges of cohere and cohere-v1: the cohere SDK, which reads the events and accumulates none.

Decides what the events come to and how a conversation goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cohere
import httpx
from cohere import AssistantMessageResponse

from ._courier import Courier, Keeper
from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["CohereJudge", "CohereV1Judge"]

_FAILED = ("ERROR", "ERROR_LIMIT", "TIMEOUT", "USER_CANCEL")

RULES = Rules(
    texts=frozenset(
        {
            "delta.message.content.text",
            "delta.message.content.thinking",
            "delta.message.tool_calls.function.arguments",
            "delta.message.tool_plan",
            "logprobs.text",
        }
    ),
    lists=frozenset({"logprobs.logprobs", "logprobs.token_ids"}),
    place=("type", "index"),
    failures=frozenset({"error"}),
    fails=lambda document: (document.get("delta") or {}).get("error"),
)

RULES_V1 = Rules(
    texts=frozenset({"text", "tool_call_delta.parameters", "tool_call_delta.text"}),
    place=("event_type",),
    kind="event_type",
    whole=frozenset({"tool-calls-generation", "stream-end"}),
    ends=frozenset({"stream-end"}),
    fails=lambda document: document.get("finish_reason") in _FAILED,
    has_lines=True,
)


class _Judge:
    """What the judges of both versions have in common.

    Args:
        exchange: The exchange.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._body: dict[str, Any] = exchange.body
        self.is_stream = exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error, or an answer that failed."""
        return isinstance(document, dict) and (
            bool(document.get("error")) or document.get("finish_reason") in _FAILED
        )

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict


class CohereJudge(_Judge):
    """Lets ``cohere.ClientV2`` make the call of one exchange."""

    rules = RULES

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its events come to."""
        client = _client(cohere.ClientV2, Courier(transport, self._exchange))
        asked: Any = {"model": "any", "messages": [{"role": "user", "content": "Hello?"}]}
        try:
            if not self.is_stream:
                document = _dump(client.chat(**asked))
                return Verdict(document, [document["message"]])
            document = _accumulate([_dump(event) for event in client.chat_stream(**asked)])
            return Verdict(document, [_message_of(document)])
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: with the message as it is, as an object, and dumped."""
        for message in verdict.messages:
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": f"{number}"}
                for number, call in enumerate(message.get("tool_calls") or ())
            ]
            whole = AssistantMessageResponse.model_validate(message)
            for echo in (message, whole, whole.model_dump(), whole.model_dump(exclude_none=True)):
                keeper = Keeper({"id": "any", "message": message, "finish_reason": "COMPLETE"})
                messages: Any = [*self._body["messages"], echo, *results]
                _client(cohere.ClientV2, keeper).chat(model="any", messages=messages)
                yield keeper.asked


class CohereV1Judge(_Judge):
    """Lets ``cohere.Client`` make the call of one exchange."""

    rules = RULES_V1

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its events come to."""
        client = _client(cohere.Client, Courier(transport, self._exchange))
        try:
            if not self.is_stream:
                document = _dump(client.chat(message="Hello?"))
                return Verdict(document, [{"role": "CHATBOT", "message": document["text"]}])
            document = {"text": "", "calls": {}, "events": []}
            for event in client.chat_stream(message="Hello?"):
                _accumulate_v1(document, _dump(event))
            return Verdict(document, [{"role": "CHATBOT", "message": document["text"]}])
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: with the history that the user keeps."""
        for message in verdict.messages:
            keeper = Keeper({"text": "any", "generation_id": "any"})
            before = self._body.get("chat_history") or []
            asked = {"role": "USER", "message": self._body["message"]}
            history: Any = [*before, asked, message]
            _client(cohere.Client, keeper).chat(message="And then?", chat_history=history)
            yield keeper.asked


def _client(make: Any, transport: httpx.BaseTransport) -> Any:
    return make(
        api_key="none",
        base_url="https://cohere.test",
        max_retries=0,
        httpx_client=httpx.Client(transport=transport),
    )


def _dump(value: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = value.model_dump(mode="json", exclude_none=True)
    return dumped


def _accumulate(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the events of a stream come to, the events without text in their order beside it."""
    document: dict[str, Any] = {
        "content": {},
        "tool_calls": {},
        "tool_plan": "",
        "logprobs": {},
        "events": [],
    }
    for event in events:
        kind, index = event["type"], str(event.get("index"))
        delta = event.get("delta") or {}
        message = delta.get("message") or {}
        if kind == "content-start":
            document["content"][index] = message["content"]
        elif kind == "content-delta":
            _add(document["content"].setdefault(index, {}), message.get("content") or {})
            _add(document["logprobs"], event.get("logprobs") or {})
        elif kind == "tool-plan-delta":
            _add(document, message)
        elif kind == "tool-call-start":
            document["tool_calls"][index] = message["tool_calls"]
        elif kind == "tool-call-delta":
            call = document["tool_calls"].setdefault(index, {"function": {}})
            _add(call["function"], (message.get("tool_calls") or {}).get("function") or {})
            document["events"] += [event["type"]] if set(message["tool_calls"]) != {"function"} else []
        elif kind == "message-end":
            document.update(delta)
        else:
            document["events"].append(event)
    return document


def _add(known: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        known[name] = known[name] + value if name in known else value


def _message_of(document: dict[str, Any]) -> dict[str, Any]:
    """Return the message that a stream comes to, what it does not have left out."""
    cited = [event["delta"]["message"]["citations"] for event in document["events"] if _is_citation(event)]
    members = {
        "tool_plan": document["tool_plan"],
        "tool_calls": [*document["tool_calls"].values()],
        "content": [*document["content"].values()],
        "citations": cited,
    }
    return {"role": "assistant", **{name: value for name, value in members.items() if value}}


def _is_citation(event: Any) -> bool:
    return isinstance(event, dict) and event["type"] == "citation-start"


def _accumulate_v1(document: dict[str, Any], event: dict[str, Any]) -> None:
    """Add one event to what the events before it come to."""
    kind = event["event_type"]
    if kind == "text-generation":
        document["text"] += event["text"]
    elif kind == "tool-calls-chunk":
        chunk = event.get("tool_call_delta") or {}
        call = document["calls"].setdefault(str(chunk.pop("index", None)), {})
        _add(call, chunk)
        _add(document, {"plan": event.get("text") or ""})
    else:
        document["events"].append(event)
