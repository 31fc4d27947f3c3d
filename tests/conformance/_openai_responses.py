"""The judge of openai-responses: the openai SDK, and what its streams say when read by hand.

Decides how a recorded request is made with the SDK, what the SDK makes of the answer, and how a conversation
goes on from it. Makes no comparison.

The last event of a stream holds the whole answer, which wins over what was accumulated: a wrong text before
it would not be seen in the SDK's final object. So what the SDK handed on piece by piece stands beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import openai
from openai.lib.streaming.responses import _responses
from openai.types.responses import Response

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._openai import make_openai
from ._said import Rules, Said

__all__ = ["OpenAIResponsesJudge"]

#: What tells the events of one type apart: the SDK puts texts together by these, whatever the item's id.
_PLACE = ("output_index", "content_index", "summary_index", "command_index")

RULES = Rules(
    texts=frozenset({"delta", "delta.stdout", "delta.stderr"}),
    lists=frozenset({"logprobs"}),
    dropped=frozenset({"obfuscation"}),
    place=("type", *_PLACE),
    lane="output_index",
    ends=frozenset({"response.completed", "response.incomplete", "response.failed"}),
    failures=frozenset({"error", "response.failed"}),
    # Each piece of it is base64 by itself.
    whole=frozenset({"response.audio.delta"}),
    number="sequence_number",
)

#: Members of a delta that are not the same in each of them.
_OF_A_PIECE = frozenset({"delta", "logprobs", "obfuscation", "sequence_number"})


class OpenAIResponsesJudge:
    """Lets ``openai.OpenAI`` make the calls of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._body: dict[str, Any] = exchange.body or {}
        parts = urlsplit(exchange.url)
        self._name = parts.path.rpartition("/responses")[2]
        self._query = dict(parse_qsl(parts.query))
        self.is_stream = self._body.get("stream") is True or self._query.get("stream") == "true"

    def is_error(self, document: Any) -> bool:
        """Tell whether an answer failed; in the background that is a state, which is polled."""
        if not isinstance(document, dict) or document.get("background") is True:
            return False
        return bool(document.get("error")) or "failed" in (document.get("status"), document.get("type"))

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what the SDK makes of the answer, the stream read to its end."""
        try:
            with self._client(transport) as client:
                answer = (
                    self._retrieve(client) if self._name else self._create(client, self._body.get("input"))
                )
                # All of it first: what the SDK cannot accumulate must have been read all the same.
                return _verdict_of_stream(list(answer)) if self.is_stream else _verdict(answer)
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict: the SDK makes nothing of how a server divides its events."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield requests with which it can go on: one for each way of echoing, and one without an echo."""
        if self._name or not verdict.messages:
            return
        results = [result for message in verdict.messages for result in _results(message)]
        items = Response.construct(output=verdict.messages).output
        # What the SDK sends for the items themselves, and the two ways in which users dump them.
        dumps = (
            [item.model_dump(warnings=False, exclude_none=is_short) for item in items]
            for is_short in (False, True)
        )
        for echo in (items, *dumps):
            yield self._next_request([*_as_list(self._body.get("input")), *echo, *results])
        goes_on = {"previous_response_id": verdict.document["answer"]["id"], "conversation": None}
        yield self._next_request(results or "Go on.", **goes_on)

    def _next_request(self, items: Any, **members: Any) -> http.Request:
        sent: list[http.Request] = []

        def answer(request: http.Request) -> http.Response:
            sent.append(request)
            return http.Response(200, json={})

        with self._client(http.MockTransport(answer)) as client:
            self._create(client, items, stream=False, **members)
        return sent[0]

    def _client(self, transport: http.BaseTransport) -> openai.OpenAI:
        return make_openai(self._exchange, f"/responses{self._name}", transport)

    def _retrieve(self, client: openai.OpenAI) -> Any:
        asked: dict[str, Any] = {"stream": True} if self.is_stream else {}
        if "starting_after" in self._query:
            asked["starting_after"] = int(self._query["starting_after"])
        return client.responses.retrieve(self._name.removeprefix("/"), **asked)

    def _create(self, client: openai.OpenAI, items: Any, **members: Any) -> Any:
        body = {**self._body, **members}
        named = ("input", "model", "stream")
        return client.responses.create(
            input=openai.omit if items is None else items,
            model=body.get("model", openai.omit),
            stream=body.get("stream", openai.omit),
            extra_body={name: value for name, value in body.items() if name not in named},
        )


def _verdict(answer: Any) -> Verdict:
    return Verdict(
        {"answer": answer.model_dump(warnings=False)}, [item.to_dict() for item in answer.output or ()]
    )


def _verdict_of_stream(events: list[Any]) -> Verdict:
    """Return the answer that a stream ends with, what came before it, and what the helper makes of that."""
    said: dict[str, Any] = {}
    for event in events:
        members = event.to_dict()
        if members.get("type", "").endswith(".delta"):
            place = " ".join(str(members[name]) for name in ("type", *_PLACE) if name in members)
            for channel, text in _channels(members["delta"]):
                found = said.setdefault(f"{place}{channel}", {"text": "", "members": []})
                found["text"] += text
                found["members"] = sorted({*found["members"], *members} - _OF_A_PIECE)
    answers = [event.response for event in events if getattr(event, "response", None) is not None]
    if not answers:
        raise ValueError("the stream holds no answer")
    last = _verdict(answers[-1])
    return Verdict({"said": said, **last.document, "helper": _accumulate(events)}, last.messages)


def _channels(delta: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts of a delta; a shell's output has two channels."""
    for name, text in delta.items() if isinstance(delta, dict) else [("", delta)]:
        yield f" {name}" if name else "", text if isinstance(text, str) else json.dumps(text)


def _accumulate(events: list[Any]) -> Any:
    """Return the final object of ``responses.stream``, and the texts as it had them last."""
    state: Any = _responses.ResponseStreamState(text_format=openai.omit, input_tools=openai.omit)
    snapshots: dict[str, str] = {}
    try:
        for event in events:
            for made in state.handle_event(event):
                if hasattr(made, "snapshot"):
                    snapshots[f"{made.type} {made.output_index} {getattr(made, 'content_index', '')}"] = (
                        made.snapshot
                    )
    except Exception as error:  # It holds servers to rules of its own; what it had made so far is compared.
        return {"raised": type(error).__name__, "snapshots": snapshots}
    final = state._completed_response
    return {"final": final and final.model_dump(warnings=False), "snapshots": snapshots}


def _as_list(items: Any) -> list[Any]:
    return [{"role": "user", "content": items}] if isinstance(items, str) else items or []


def _results(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a user's program says to an item of an answer."""
    if item["type"] in ("function_call", "custom_tool_call"):
        yield {
            "type": f"{item['type']}_output",
            "call_id": item["call_id"],
            "output": json.dumps({"result": 1}),
        }
    elif item["type"] == "mcp_approval_request":
        yield {"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": True}
