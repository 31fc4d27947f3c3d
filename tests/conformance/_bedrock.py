"""The judge of bedrock: botocore, with its model of the service, which parses answers and accumulates none.

botocore has an HTTP client of its own: what it is given here is what an httpx client received. Decides what
the events come to, and how a conversation goes on from them, as a user would write it. Makes no comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from botocore.eventstream import EventStream
from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel
from botocore.parsers import create_parser
from botocore.serialize import create_serializer

from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import NAMED, Rules, Said

__all__ = ["BedrockJudge"]

_DELTAS = ("delta.text", "delta.toolUse.input", "delta.reasoningContent.text")

RULES = Rules(
    texts=frozenset([*_DELTAS, *(f"contentBlockDelta.{path}" for path in _DELTAS)]),
    dropped=frozenset({"p"}),
    place=(NAMED, "contentBlockIndex"),
    lane="contentBlockIndex",
    ends=frozenset({"metadata"}),
    kind=NAMED,
)

#: The operation that answers at the end of an address.
_OPERATIONS = {
    "converse": "Converse",
    "converse-stream": "ConverseStream",
    "invoke-with-response-stream": "InvokeModelWithResponseStream",
}


class BedrockJudge:
    """Lets botocore parse the answer of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._body: dict[str, Any] = exchange.body
        self._called = exchange.url.rpartition("/")[2]
        self.is_stream = self._called.endswith("-stream")

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error."""
        return isinstance(document, dict) and "output" not in document

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what botocore makes of the answer, a stream read to its end."""
        exchange = self._exchange
        try:
            with http.Client(transport=transport) as client:
                with client.stream(exchange.method, exchange.url, json=exchange.body) as response:
                    document = self._read(response)
            return Verdict(document, [document["output"]["message"]])
        except Exception as error:  # An error status, and whatever botocore does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def _read(self, response: http.Response) -> dict[str, Any]:
        if self.is_stream and response.status_code == 200:
            return _accumulate(self._events(response))
        body = response.read()
        if self._called == "invoke":
            response.raise_for_status()
            return dict(json.loads(body))
        headers = {name.title(): value for name, value in response.headers.items()}
        answer = {"status_code": response.status_code, "headers": headers, "body": body}
        parsed: dict[str, Any] = create_parser("rest-json").parse(answer, self._operation.output_shape)
        del parsed["ResponseMetadata"]
        return parsed

    def _events(self, response: http.Response) -> Iterator[dict[str, Any]]:
        (shape,) = (
            member
            for member in self._operation.output_shape.members.values()
            if member.serialization.get("eventstream")
        )
        parser = create_parser("rest-json")._event_stream_parser
        for event in EventStream(_Raw(response), shape, parser, self._operation.name):
            chunk = event.get("chunk")
            yield event if chunk is None else json.loads(chunk["bytes"])

    @property
    def _operation(self) -> OperationModel:
        return _service().operation_model(_OPERATIONS[self._called])

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the request with which it can go on: with the message, and a result for each call."""
        for message in verdict.messages:
            calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
            results = [
                {"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": f"{number}"}]}}
                for number, call in enumerate(calls)
            ]
            said = [message, *([{"role": "user", "content": results}] if results else [])]
            body = {**self._body, "messages": [*self._body["messages"], *_as_sent(said)]}
            yield http.Request("POST", self._exchange.url, json=body)


class _Raw:
    """The body of an answer as botocore takes it."""

    def __init__(self, response: http.Response) -> None:
        self._response = response

    def stream(self) -> Iterator[bytes]:
        return self._response.iter_bytes()


@lru_cache(maxsize=1)
def _service() -> ServiceModel:
    return ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"))


def _as_sent(messages: list[dict[str, Any]]) -> list[Any]:
    """Return messages as botocore writes them: bytes in base64."""
    parameters = {"modelId": "any", "messages": messages}
    operation = _service().operation_model("Converse")
    written = create_serializer("rest-json", include_validation=False).serialize_to_request(
        parameters, operation
    )
    return list(json.loads(written["body"])["messages"])


def _accumulate(events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Return what the events of a stream come to: the answer that is sent in one piece."""
    blocks: dict[int, dict[str, Any]] = {}
    document: dict[str, Any] = {"events": []}
    message: dict[str, Any] = {"content": []}
    for event in events:
        for name, members in event.items():
            if name == "messageStart":
                message |= members
            elif name in ("contentBlockStart", "contentBlockDelta"):
                block = blocks.setdefault(members["contentBlockIndex"], {})
                for kind, value in (members.get("start") or members.get("delta") or {}).items():
                    if kind == "SDK_UNKNOWN_MEMBER":
                        document["events"].append({name: value})
                    else:
                        _add(block, kind, value)
            elif name in ("messageStop", "metadata"):
                document |= members
            elif name != "contentBlockStop":
                document["events"].append({name: members})
    message["content"] = [_finished(block) for _, block in sorted(blocks.items())]
    return {**document, "output": {"message": message}}


def _add(block: dict[str, Any], kind: str, value: Any) -> None:
    """Add what an event says to its block."""
    if kind == "text":
        block["text"] = block.get("text", "") + value
    elif kind == "toolUse":
        use = block.setdefault("toolUse", {"input": ""})
        use |= {**value, "input": use["input"] + value.get("input", "")}
    elif kind == "reasoningContent":
        thought = block.setdefault("reasoningContent", {})
        for name, part in value.items():
            thought[name] = thought[name] + part if name in thought else part
    elif kind == "toolResult":
        result = block.setdefault("toolResult", {"content": []})
        if isinstance(value, list):
            result["content"] += value
        else:
            result |= value
    elif kind == "image":
        image = block.setdefault("image", {"source": {"bytes": b""}})
        image["format"] = value.get("format", image.get("format"))
        image["source"]["bytes"] += value.get("source", {}).get("bytes", b"")
    else:
        block.setdefault(kind, []).append(value)


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as it is sent back, with what has no place in one as it came."""
    if "toolUse" in block:
        use = block["toolUse"]
        return {"toolUse": {**use, "input": json.loads(use["input"] or "{}")}}
    thought = block.get("reasoningContent")
    if thought is not None and "text" in thought:
        return {"reasoningContent": {"reasoningText": thought}}
    if thought is not None:
        return {"reasoningContent": thought}
    citations = block.pop("citation", None)
    if citations is not None:
        return {"citationsContent": {"content": [block], "citations": citations}}
    return block
