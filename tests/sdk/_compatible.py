"""The SDKs that speak OpenAI's chat format under their own names, in one colour, and a server for them.

They have one shape of conversation. What tells them apart is how a client is made, and what the server of
each is known to send otherwise; both stand in one table.
"""

from __future__ import annotations

import contextlib
import importlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from httpx_cassette._stand_in_answers import Completion, encode, find_answer
from httpx_cassette.stand_in import Asked, Reply

from ._openai import Sdk

__all__ = ["HARD", "KINDS", "CompatibleSdk", "Kind", "answer_as"]

HARD = 'A café:\u2028 東京, 👩\u200d👧, data: [DONE]\n\n\x85{"done":true}\n'

#: What a server does to the events of a stream before it sends them.
Habit = Callable[[list[dict[str, Any]]], None]


# -- what servers send otherwise -----------------------------------------------------------------------


def as_openai(events: list[dict[str, Any]]) -> None:
    """Leave them as they are."""


def as_groq(events: list[dict[str, Any]]) -> None:
    """Send each tool call in one delta, and the usage in a member of its own."""
    whole: dict[int, Any] = {}
    for event in events:
        for choice in event["choices"]:
            for call in choice["delta"].pop("tool_calls", ()):
                known = whole.setdefault(call["index"], call)
                if known is not call:
                    known["function"]["arguments"] += call["function"]["arguments"]
            if choice["finish_reason"] == "tool_calls":
                choice["delta"]["tool_calls"] = [*whole.values()]
    events[-1]["x_groq"] = {"id": "req_1", "usage": events[-1].pop("usage", None)}


def as_cerebras(events: list[dict[str, Any]]) -> None:
    """Say in every delta of a call that it is one of a function; without, its SDK reads another class."""
    for event in events:
        for choice in event["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                call["type"] = "function"


# -- the SDKs ------------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """One of these SDKs.

    Args:
        distribution: What is installed for it; also its name in the ids of tests.
        module: What is imported.
        client: Its two clients, the sync one first.
        base: What stands between the address of a server and the paths that the SDK itself adds.
        called: What it calls where it is given no address.
        library: What it is built on.
        habit: What its server sends otherwise.
        options: More for the client.
    """

    distribution: str
    module: str
    client: tuple[str, str]
    base: str
    called: str
    library: str = "httpx"
    habit: Habit = as_openai
    options: Mapping[str, Any] = MappingProxyType({})


KINDS = (
    Kind(
        "groq",
        "groq",
        ("Groq", "AsyncGroq"),
        "",
        "https://api.groq.com/openai/v1/chat/completions",
        habit=as_groq,
    ),
    Kind(
        "together",
        "together",
        ("Together", "AsyncTogether"),
        "/v1",
        "https://api-inference.together.ai/v1/chat/completions",
    ),
    Kind(
        "fireworks-ai",
        "fireworks",
        ("Fireworks", "AsyncFireworks"),
        "",
        "https://api.fireworks.ai/inference/v1/chat/completions",
    ),
    Kind(
        "cerebras_cloud_sdk",
        "cerebras.cloud.sdk",
        ("Cerebras", "AsyncCerebras"),
        "",
        "https://api.cerebras.ai/v1/chat/completions",
        habit=as_cerebras,
        # The probe of the constructor is known at its own address only.
        options={"warm_tcp_connection": False},
    ),
    Kind(
        "huggingface_hub",
        "huggingface_hub",
        ("InferenceClient", "AsyncInferenceClient"),
        "/v1",
        "https://router.huggingface.co/v1/chat/completions",
        library="httpx2",
    ),
)


class CompatibleSdk(Sdk):
    """Makes clients, and takes from them what they give.

    Args:
        kind: The SDK.
        is_async: Whether clients are async.
        url: Where the server listens.
        cassette: The cassette.
    """

    def __init__(self, kind: Kind, is_async: bool, url: str, cassette: Path) -> None:
        super().__init__(is_async, url.removesuffix("/v1"), cassette)
        self.kind = kind

    @contextlib.asynccontextmanager
    async def client(self, mode: str, *, max_retries: int = 2, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        module = importlib.import_module(self.kind.module)
        make_client = getattr(module, self.kind.client[self.is_async])
        named: dict[str, Any] = {
            "api_key": "any",
            "base_url": self._url + self.kind.base,
            **self.kind.options,
        }
        if self.kind.library == "httpx2":
            async with self._hub(module, make_client, named, mode, options) as client:
                yield client
            return
        from httpx_cassette import CassetteTransport

        self.transport = CassetteTransport(self.cassette, mode=mode, **options)
        make_http = module.DefaultAsyncHttpxClient if self.is_async else module.DefaultHttpxClient
        client = make_client(
            **named, max_retries=max_retries, http_client=make_http(transport=self.transport)
        )
        async with self.opened(client):
            yield client

    @contextlib.asynccontextmanager
    async def _hub(
        self, hub: Any, make_client: Any, named: dict[str, Any], mode: str, options: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Give a client of huggingface_hub, whose HTTP clients come from factories of the process."""
        import httpx2
        from huggingface_hub.utils import _http

        from httpx_cassette.httpx2 import CassetteTransport

        self.transport = transport = CassetteTransport(self.cassette, mode=mode, **options)
        hub.set_client_factory(lambda: httpx2.Client(transport=transport))
        hub.set_async_client_factory(lambda: httpx2.AsyncClient(transport=transport))
        try:
            async with self.opened(make_client(**named)) as client:
                yield client
        finally:
            hub.set_client_factory(_http.default_client_factory)
            hub.set_async_client_factory(_http.default_async_client_factory)


# -- the server ----------------------------------------------------------------------------------------


def answer_as(kind: Kind) -> Callable[[Asked, int], Reply]:
    """Return what answers as the server of an SDK does, whatever the path in front of the format."""

    def answer(asked: Asked, nth: int) -> Reply:
        assert asked.path.endswith("/chat/completions"), asked.path
        last = json.loads(asked.body)["messages"][-1]["content"]
        words = f"Answer {nth}: {HARD}" if "café" in last else None
        route = "POST /v1/chat/completions"
        said = find_answer(route, asked.headers, asked.body, nth, words)
        assert isinstance(said, Completion)
        if not said.is_stream:
            return Reply(200, encode(said.whole()))
        return Reply(200, _sent(said, kind.habit), {"content-type": "text/event-stream"})

    return answer


def _sent(said: Completion, habit: Habit) -> Iterator[bytes]:
    *written, end = said.events()
    events = [json.loads(event.removeprefix(b"data: ")) for event in written]
    habit(events)
    # Escaped: where lines are divided by ``str.splitlines``, U+2028 in a text would end one.
    yield from (b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    yield end
