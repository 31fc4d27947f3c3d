"""The judge of gemini: google-genai, whose chats are asked as a user would ask them.

Decides what the SDK's final object is, and how a conversation goes on from it. The SDK has no accumulator:
its chats keep each event of a stream as a content of its own, and what users join by hand is joined here.
The request of a recorded exchange is not the SDK's to make (most were made by others): a courier sends it in
place of the one that the SDK makes, and hands the answer over. Makes no comparison.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import httpx
from google import genai
from google.genai import types

from ._courier import Courier
from ._exchanges import Exchange
from ._judge import Verdict
from ._library import http
from ._said import Rules, Said

__all__ = ["GeminiJudge", "sdk_over"]

RULES = Rules(
    running=frozenset({"usageMetadata"}),
    positions=frozenset({"candidates"}),
    sequences={"candidates[*].content.parts": frozenset({"thoughtSignature"})},
    has_arrays=True,
)

#: What the SDK knows about how an answer came, and what it computes from the rest of it.
_NOT_OF_THE_ANSWER = {"sdk_http_response", "parsed", "automatic_function_calling_history"}


class GeminiJudge:
    """Lets a chat of ``google.genai.Client`` make the call of one exchange.

    Args:
        exchange: The exchange.
    """

    rules = RULES

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self.is_stream = exchange.url.partition("?")[0].endswith(":streamGenerateContent")

    def is_error(self, document: Any) -> bool:
        """Tell whether a document is an error, or a list of one."""
        listed = document if isinstance(document, list) else [document]
        return any(isinstance(each, dict) and bool(each.get("error")) for each in listed)

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what the SDK makes of the answer, a stream read to its end."""
        try:
            with sdk_over(EventsCourier(transport, self._exchange)) as client:
                chat = client.chats.create(model="any")
                if self.is_stream:
                    responses = list(chat.send_message_stream("Hello?"))
                else:
                    responses = [chat.send_message("Hello?")]
                return _verdict(responses, chat)
        except Exception as error:  # An error status, and whatever the SDK does not expect of a server.
            return Verdict(raised=type(error).__name__)

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return the verdict as it is."""
        return verdict

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield the requests with which it can go on: as chats do it, and with one content for the answer."""
        if not verdict.messages:
            return
        history = [types.Content.model_validate(message) for message in verdict.messages]
        yield from _next_requests(history)
        answer = [content for content in history if content.role == "model"]
        parts = [part for content in answer for part in content.parts or ()]
        if parts:
            yield from _next_requests([history[0], types.Content(role="model", parts=parts)])


class EventsCourier(Courier):
    """Gives the answer as server-sent events, however the recorded request asked for it."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request of the SDK."""
        response = super().handle_request(request)
        wants_events = "alt=sse" in request.url.query.decode()
        if response.is_success and wants_events and "alt=sse" not in self.exchange.url:
            # The SDK reads events only: here they come as the elements of an array.
            return httpx.Response(200, content=_as_events(response.read()))
        return response


def _as_events(array: bytes) -> bytes:
    return b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in json.loads(array))


@contextmanager
def sdk_over(transport: httpx.BaseTransport) -> Iterator[genai.Client]:
    """Give the SDK with its calls going to a transport.

    It is one client all the time, because making one takes longer than most trials; of httpx, which all its
    releases take.
    """
    client, switch = _one_client()
    switch.transport = transport
    yield client


class _Switch(httpx.BaseTransport):
    transport: httpx.BaseTransport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.transport.handle_request(request)


@cache
def _one_client() -> tuple[genai.Client, _Switch]:
    switch = _Switch()
    options = types.HttpOptions(httpx_client=httpx.Client(transport=switch))
    return genai.Client(api_key="none", http_options=options), switch


def _verdict(responses: list[types.GenerateContentResponse], chat: Any) -> Verdict:
    document: dict[str, Any] = {"candidates": {}}
    for response in responses:
        dumped = response.model_dump(exclude=_NOT_OF_THE_ANSWER, exclude_none=True)
        for position, candidate in enumerate(dumped.pop("candidates", None) or ()):
            known = document["candidates"].setdefault(candidate.get("index") or position, {"parts": []})
            content = candidate.pop("content", None) or {}
            _append(known["parts"], content.pop("parts", None) or [])
            known.update(candidate, **content)
        document.update(dumped)
    messages = [_dump(content) for content in chat.get_history(curated=True)]
    return Verdict(_plain(document), messages)


def _append(known: list[Any], parts: list[Any]) -> None:
    """Add the parts of one event to those so far: a text goes on the text before it, until a signature."""
    for part in parts:
        before = known[-1] if known else None
        rest = {name: value for name, value in part.items() if name not in ("text", "thought_signature")}
        if "text" in part and before is not None and {**rest, "text": before.get("text")} == before:
            known[-1] = {**part, "text": before["text"] + part["text"]}
        else:
            known.append(part)


def _dump(content: types.Content) -> dict[str, Any]:
    dumped: dict[str, Any] = _plain(content.model_dump(exclude_none=True))
    return dumped


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [_plain(child) for child in value]
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _next_requests(history: list[types.Content]) -> Iterator[http.Request]:
    """Yield what a chat with this history sends next: results of its calls, if there are any, or a text."""
    parts = [part for content in history for part in content.parts or ()]
    calls = [part.function_call for part in parts if part.function_call is not None]
    results = [
        types.Part(
            function_response=types.FunctionResponse(id=call.id, name=call.name, response={"result": number})
        )
        for number, call in enumerate(calls)
    ]
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={})

    with sdk_over(httpx.MockTransport(answer)) as client:
        client.chats.create(model="any", history=list(history)).send_message(results or "And then?")
    yield http.Request(
        sent[0].method,
        str(sent[0].url),
        headers={"content-type": "application/json"},
        content=sent[0].content,
    )
