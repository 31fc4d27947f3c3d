"""One test body for every client: httpx and httpx2, sync, under asyncio and under trio.

A body is written as a coroutine against :class:`Client` and run by :func:`in_every_colour`. For a synchronous
client nothing in it is ever suspended, so it runs like any function.
The upstream is a respx router in every colour; httpx2, which respx does not know, reaches it through a shim.
"""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import inspect
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx
import respx
import trio

import httpx_cassette

__all__ = [
    "CHAT",
    "COLOURS",
    "URL",
    "Body",
    "Client",
    "Colour",
    "answer",
    "chat",
    "colour_of",
    "delta",
    "events",
    "in_every_colour",
    "lines",
    "never",
    "router",
    "sse",
    "tokens",
]

T = TypeVar("T")

URL = "https://api.openai.com/v1/chat/completions"


# --- what is asked and answered ----------------------------------------------------------------------


def chat(text: str = "Hello", **more: object) -> dict[str, Any]:
    """Return the body of a chat request with a system prompt."""
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return {"model": "gpt-5", "messages": messages, **more}


CHAT = chat()


def answer(text: str = "Hi.", **more: object) -> httpx.Response:
    """Return a plain chat answer."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return httpx.Response(
        200, json={"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], **more}
    )


def delta(text: str | None = None, finish: str | None = None) -> bytes:
    """Return one event of a chat stream."""
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish}
    document = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-5", "choices": [choice]}
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def events(text: str = "Hello there", *, ends: Iterable[bytes] = (b"data: [DONE]\n\n",)) -> list[bytes]:
    """Return a whole chat stream, one event for each word."""
    words = [word if number == 0 else f" {word}" for number, word in enumerate(text.split(" "))]
    return [*map(delta, words), delta(None, "stop"), *ends]


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A response body in chunks; a chunk may also be a callable, or an error to be raised."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self._chunks = list(chunks)
        self.sent = 0
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            chunk = chunk() if callable(chunk) else chunk
            if isinstance(chunk, BaseException):
                raise chunk
            self.sent += 1
            yield chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            chunk = chunk() if callable(chunk) else chunk
            if inspect.isawaitable(chunk):
                chunk = await chunk
            if isinstance(chunk, BaseException):
                raise chunk
            self.sent += 1
            yield chunk

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def sse(
    chunks: Iterable[Any] | Body, content_type: str | None = "text/event-stream", **headers: str
) -> httpx.Response:
    """Return a streamed answer."""
    named = {} if content_type is None else {"content-type": content_type}
    body = chunks if isinstance(chunks, Body) else Body(chunks)
    return httpx.Response(200, headers={**named, **headers}, stream=body)


def tokens(raw: bytes) -> str:
    """Return the joined text of a chat stream, which must end in ``[DONE]``."""
    *data, done = [
        line[6:] for line in raw.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data: ")
    ]
    assert done == b"[DONE]"
    choices = [choice for line in data for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the recordings in a cassette, which need not exist."""
    return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


# --- the upstream -------------------------------------------------------------------------------------


def router() -> respx.Router:
    """Return an upstream without routes: an error for every call, until a test adds some."""
    return respx.Router(assert_all_called=False)


def never() -> respx.Router:
    """Return an upstream that must not be reached; whatever comes fails the test, past every ``except``."""
    upstream = router()

    def refuse(request: httpx.Request) -> httpx.Response:  # pragma: no cover  # that is the point
        raise KeyboardInterrupt(f"a real call was made: {request.method} {request.url}")

    upstream.route().mock(side_effect=refuse)
    return upstream


if importlib.util.find_spec("httpx2"):  # pragma: no branch  # the tests of old SDKs have none
    import httpx2

    from httpx_cassette.httpx2 import CassetteTransport as Httpx2Transport

    class _Stream(httpx2.SyncByteStream, httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        def __iter__(self) -> Iterator[bytes]:
            return iter(self._stream)

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._stream.__aiter__()  # type: ignore[no-any-return]

        def close(self) -> None:
            self._stream.close()

        async def aclose(self) -> None:
            await self._stream.aclose()

    class _Shim(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
        """Lets a respx router answer httpx2."""

        def __init__(self, upstream: respx.Router) -> None:
            self._router = upstream

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            return self._answer(self._router.handler(self._asked(request, request.read())))

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return self._answer(await self._router.async_handler(self._asked(request, await request.aread())))

        def _asked(self, request: httpx2.Request, body: bytes) -> httpx.Request:
            return httpx.Request(request.method, str(request.url), headers=request.headers.raw, content=body)

        def _answer(self, response: httpx.Response) -> httpx2.Response:
            stream = _Stream(response.stream)
            return httpx2.Response(response.status_code, headers=response.headers.raw, stream=stream)


# --- the colours --------------------------------------------------------------------------------------


class Colour:
    """One way of making calls.

    Args:
        library: ``httpx`` or ``httpx2``.
        backend: ``sync``, ``asyncio`` or ``trio``.
    """

    def __init__(self, library: str, backend: str) -> None:
        self.name = f"{library}-{backend}"
        self.backend = backend
        self.is_async = backend != "sync"
        self.library: Any = httpx if library == "httpx" else httpx2
        self.transport_class: Any = (
            httpx_cassette.CassetteTransport if library == "httpx" else Httpx2Transport
        )

    def __repr__(self) -> str:
        return self.name

    def next_transport(self, upstream: respx.Router) -> Any:
        """Return a transport of the right library that lets a router answer."""
        if self.library is httpx:
            return httpx.MockTransport(upstream.async_handler if self.is_async else upstream.handler)
        return _Shim(upstream)

    def transport(self, cassette: Any, upstream: respx.Router | None = None, **options: Any) -> Any:
        """Return a cassette transport; without an upstream nothing may be really called."""
        next_transport = self.next_transport(never() if upstream is None else upstream)
        return self.transport_class(cassette, **{"next_transport": next_transport, **options})

    def client(self, cassette: Any, upstream: respx.Router | None = None, **options: Any) -> Client:
        """Return a client on a cassette transport."""
        return Client(self, self.transport(cassette, upstream, **options))

    def run(self, test: Callable[..., Coroutine[Any, Any, T]], *args: Any, **given: Any) -> T:
        """Run a coroutine function: in an event loop, or without one in a single step."""
        if self.backend == "asyncio":
            return asyncio.run(test(*args, **given))
        if self.backend == "trio":
            return trio.run(functools.partial(test, *args, **given))
        coroutine = test(*args, **given)
        try:
            coroutine.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        raise AssertionError("a synchronous test was suspended")  # pragma: no cover

    async def together(
        self, number: int, one: Callable[[int], Coroutine[Any, Any, T]]
    ) -> list[T | BaseException]:
        """Do one thing several times at once: in tasks, or in threads; return what came of each."""
        found: dict[int, T | BaseException] = {}

        async def keep(index: int) -> None:
            try:
                found[index] = await one(index)
            except Exception as error:
                found[index] = error

        if self.is_async:
            async with anyio.create_task_group() as group:
                for index in range(number):
                    group.start_soon(keep, index)
        else:
            threads = [threading.Thread(target=self.run, args=(keep, index)) for index in range(number)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return [found[index] for index in range(number)]

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Let others go on until something is the case."""
        deadline = time.monotonic() + 10
        while not is_true():
            assert time.monotonic() < deadline
            if self.is_async:
                await anyio.sleep(0.001)
            else:
                time.sleep(0.001)


def _colours() -> Iterator[Colour]:
    for library in ("httpx", "httpx2"):
        if importlib.util.find_spec(library):  # pragma: no branch
            for backend in ("sync", "asyncio", "trio"):
                yield Colour(library, backend)


COLOURS = tuple(_colours())


def colour_of(name: str) -> Colour:
    """Return the colour of a name: ``httpx-trio``."""
    return next(colour for colour in COLOURS if colour.name == name)


def in_every_colour(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Make a test of a coroutine function that takes ``colour``, the fixture."""

    @functools.wraps(test)
    def run(colour: Colour, **fixtures: Any) -> None:
        colour.run(test, colour=colour, **fixtures)

    return run


class Client:
    """A client of any colour.

    Args:
        colour: The colour.
        transport: Its transport.
        options: Further arguments of the library's client.
    """

    def __init__(self, colour: Colour, transport: Any, **options: Any) -> None:
        self.colour = colour
        self.transport = transport
        kind = colour.library.AsyncClient if colour.is_async else colour.library.Client
        self.real: Any = kind(transport=transport, **options)

    async def __aenter__(self) -> Client:
        await self._do(self.real.__aenter__ if self.colour.is_async else self.real.__enter__)
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._do(self.real.__aexit__ if self.colour.is_async else self.real.__exit__, *error)

    async def _do(self, method: Callable[..., Any], *args: Any, **given: Any) -> Any:
        outcome = method(*args, **given)
        return await outcome if isinstance(outcome, Awaitable) else outcome

    async def ask(self, body: Mapping[str, Any] = CHAT, url: str = URL, **given: Any) -> Any:
        """Post JSON; return the response."""
        return await self._do(self.real.post, url, json=body, **given)

    async def get(self, url: str, **given: Any) -> Any:
        return await self._do(self.real.get, url, **given)

    async def request(self, method: str, url: str, **given: Any) -> Any:
        return await self._do(self.real.request, method, url, **given)

    async def send(self, request: Any, **given: Any) -> Any:
        return await self._do(self.real.send, request, **given)

    async def close(self) -> None:
        await self._do(self.real.aclose if self.colour.is_async else self.real.close)

    async def open(self, body: Mapping[str, Any] | None = None, url: str = URL) -> Any:
        """Return the response of a streamed call, open; who opens it closes it."""
        request = self.real.build_request("POST", url, json=chat(stream=True) if body is None else body)
        return await self.send(request, stream=True)

    @asynccontextmanager
    async def stream(self, body: Mapping[str, Any] | None = None, url: str = URL) -> AsyncIterator[Any]:
        """Give the response of a streamed call."""
        given = {"json": chat(stream=True) if body is None else body}
        if self.colour.is_async:
            async with self.real.stream("POST", url, **given) as response:
                yield response
        else:
            with self.real.stream("POST", url, **given) as response:
                yield response

    def raw(self, response: Any) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Give the chunks of a response as they come; leaving the block reads no further."""
        return self.each(response, "iter_raw")

    def each(self, response: Any, method: str, *args: Any) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """Give what ``iter_bytes``, ``iter_lines`` or ``iter_text`` yields."""
        return aclosing(self._each(response, method, *args))

    async def _each(self, response: Any, method: str, *args: Any) -> AsyncIterator[Any]:
        if self.colour.is_async:
            async with aclosing(getattr(response, f"a{method}")(*args)) as items:
                async for item in items:
                    yield item
        else:
            for item in getattr(response, method)(*args):
                yield item

    async def read(self, response: Any) -> bytes:
        body: bytes = await self._do(response.aread if self.colour.is_async else response.read)
        return body

    async def shut(self, response: Any) -> None:
        """Close a response."""
        await self._do(response.aclose if self.colour.is_async else response.close)

    async def streamed(self, body: Mapping[str, Any] | None = None, url: str = URL) -> bytes:
        """Make a streamed call and return its whole body."""
        async with self.stream(body, url) as response:
            return await self.read(response)

    async def chunks(self, body: Mapping[str, Any] | None = None, url: str = URL) -> list[bytes]:
        """Make a streamed call and return its chunks."""
        async with self.stream(body, url) as response:
            async with self.raw(response) as chunks:
                return [chunk async for chunk in chunks]
