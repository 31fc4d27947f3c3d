"""The anthropic SDK's client for Bedrock, in one colour, and a server that talks as Bedrock does."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import unquote

import anthropic

from httpx_cassette.stand_in import Asked, Reply
from tests.aws_messages import EVENTSTREAM, chunk, event

from ._anthropic import answer as answer_messages
from ._anthropic import make_transport, stream_of
from ._openai import Sdk

__all__ = ["ACCESS_KEY", "HARD", "SECRET_KEY", "SESSION_TOKEN", "BedrockSdk", "answer", "make_transport"]

HARD = "A café:\u2028 東京, 👩\u200d👧, \x00\x00 and\n\n\x85"

#: AWS's own examples.
ACCESS_KEY = "AKIAIOSFODNN7EXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
SESSION_TOKEN = "IQoJb3JpZ2luX2VjEXAMPLETOKENEXAMPLETOKENEXAMPLETOKEN"


class BedrockSdk(Sdk):
    """Makes clients, which sign what they send, and takes from them what they give."""

    @contextlib.asynccontextmanager
    async def client(self, mode: str, *, max_retries: int = 2, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        self.transport = make_transport(self.cassette, mode=mode, **options)
        make_client: Any = anthropic.AsyncAnthropicBedrock if self.is_async else anthropic.AnthropicBedrock
        make_http: Any = anthropic.DefaultAsyncHttpxClient if self.is_async else anthropic.DefaultHttpxClient
        client = make_client(
            aws_access_key=ACCESS_KEY,
            aws_secret_key=SECRET_KEY,
            aws_session_token=SESSION_TOKEN,
            aws_region="us-east-1",
            base_url=self.url,
            max_retries=max_retries,
            http_client=make_http(transport=self.transport),
        )
        async with self.opened(client):
            yield client

    @property
    def url(self) -> str:
        """Where the server listens."""
        return self._url.removesuffix("/v1")


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer a call as Bedrock would; ids and texts of each answer are its own."""
    _, _, model, called = unquote(asked.path).split("/", 3)
    if called.startswith("converse"):
        return _converse(called, nth)
    body = {"model": model, **json.loads(asked.body)}
    whole = answer_messages(asked._replace(body=json.dumps(body).encode()), nth)
    if called == "invoke":
        return whole
    assert isinstance(whole.body, bytes)
    said = (each for each in stream_of(json.loads(whole.body)) if each["type"] != "ping")
    return Reply(200, _padded(chunk(each, "abcdefgh"[: nth % 8]) for each in said), _HEADERS)


_HEADERS = {"content-type": EVENTSTREAM}


def _padded(messages: Iterator[bytes]) -> Iterator[bytes]:
    """Yield messages as a network divides them: in the middle."""
    body = b"".join(messages)
    for start in range(0, len(body), 100):
        yield body[start : start + 100]


def _converse(called: str, nth: int) -> Reply:
    words = f"Answer {nth}: {HARD}"
    usage = {"inputTokens": 9, "outputTokens": 7, "totalTokens": 16}
    if called == "converse":
        message = {"role": "assistant", "content": [{"text": words}]}
        whole = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
        return Reply(200, json.dumps(whole).encode(), {"content-type": "application/json"})
    pieces = (words[start : start + 5] for start in range(0, len(words), 5))
    said: list[tuple[str, dict[str, Any]]] = [
        ("messageStart", {"role": "assistant"}),
        *(("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": piece}}) for piece in pieces),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        ("metadata", {"usage": usage, "metrics": {"latencyMs": 812}}),
    ]
    return Reply(200, _padded(event(kind, members) for kind, members in said), _HEADERS)
