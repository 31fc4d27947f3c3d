"""The judge of gemini-interactions: google-genai, which reads the events and accumulates none.

Decides what the events come to and how a conversation goes on from them, as a user would write it. Makes no
comparison.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from typing import Any

import httpx
from google import genai

from ._courier import Courier
from ._exchanges import Exchange
from ._gemini import sdk_over
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["GeminiInteractionsJudge"]

RULES = Rules(
    texts=frozenset({"delta.text", "delta.arguments"}),
    running=frozenset({"event_id", "metadata"}),
)


class GeminiInteractionsJudge:
    """Lets ``google.genai.Client`` make the call of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.is_stream = exchange.body.get("stream") is True

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error, or an interaction that failed."""
        return isinstance(document, dict) and (
            bool(document.get("error")) or document.get("status") == "failed"
        )

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what its events come to."""
        try:
            with sdk_over(Courier(transport, self._exchange)) as client:
                answer = _create(client, input="Hello?", stream=self.is_stream)
                if not self.is_stream:
                    return _verdict(_dump(answer), _dump(answer).get("steps") or [])
                document: dict[str, Any] = {"steps": {}, "events": []}
                for event in answer:
                    _accumulate(document, _dump(event))
                return _verdict(document, [*document["steps"].values()])
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: with all of it sent back, or with its id alone."""
        for step in verdict.messages:
            yield _next_request(
                input=[
                    {"type": "user_input", "content": [{"type": "text", "text": "Hello?"}]},
                    {"type": "model_output", "content": [{"type": "text", "text": json.dumps(step)}]},
                    {"type": "user_input", "content": [{"type": "text", "text": "And then?"}]},
                ]
            )
        if verdict.document:
            yield _next_request(input="And then?", previous_interaction_id=str(verdict.document.get("id")))


def _create(client: genai.Client, **asked: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The older SDK says that this is an experiment.
        return client.interactions.create(model="any", **asked)


def _dump(value: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = value.model_dump(mode="json", exclude_none=True)
    return dumped


def _accumulate(document: dict[str, Any], event: dict[str, Any]) -> None:
    """Add one event to what the events before it come to."""
    event.pop("event_id", None)
    event.pop("metadata", None)
    document.update(event.get("interaction") or {})
    delta = event.get("delta")
    if delta is None:
        document["events"].append(event)
        return
    said = document["steps"].setdefault(event.get("index"), {"deltas": []})["deltas"]
    before = said[-1] if said else {}
    for name in ("text", "arguments"):
        is_text = isinstance(delta.get(name), str) and isinstance(before.get(name), str)
        if is_text and {**delta, name: ""} == {**before, name: ""}:
            before[name] += delta[name]
            return
    said.append(delta)


def _verdict(document: dict[str, Any], steps: list[Any]) -> Verdict:
    document = json.loads(json.dumps(document))
    return Verdict(document, json.loads(json.dumps(steps)))


def _next_request(**asked: Any) -> http.Request:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"id": "v1", "status": "completed", "created": "", "updated": ""})

    with sdk_over(httpx.MockTransport(answer)) as client:
        try:
            _create(client, **asked)
        except Exception:
            assert sent  # What the SDK makes of a made-up answer is of no interest.
    return http.Request(
        sent[0].method,
        str(sent[0].url),
        headers={"content-type": "application/json"},
        content=sent[0].content,
    )
