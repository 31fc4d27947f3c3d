"""Identical calls under way share one real call, across threads, tasks, event loops and libraries."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import trio

from httpx_cassette import _flight, _waiting

from .colours import (
    COLOURS,
    URL,
    Colour,
    answer,
    chat,
    colour_of,
    events,
    in_every_colour,
    lines,
    router,
    sse,
    tokens,
)

pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")

MANY = 12


@pytest.fixture(autouse=True)
def no_flight_is_left() -> Iterator[None]:
    """Nobody is left waiting."""
    yield
    if _flight._FLIGHTS:  # pragma: no cover  # a response in a cycle of references
        gc.collect()
    assert ({}, {}) == (_flight._FLIGHTS, _flight._WAITING)


def waiting() -> int:
    return len(_flight._WAITING)


def upstream_that_waits(colour: Colour, number: int, *answers: Any) -> Any:
    """Return an upstream whose first answer comes only when so many callers wait for it."""
    upstream = router()
    left = iter(answers)

    async def reply(request: httpx.Request) -> httpx.Response:
        await colour.until(lambda: waiting() >= number)
        found = next(left)
        if isinstance(found, Exception):
            raise found
        response: httpx.Response = found
        return response

    def reply_here(request: httpx.Request) -> httpx.Response:
        return colour.run(reply, request)

    upstream.post(URL).mock(side_effect=reply if colour.is_async else reply_here)
    return upstream


# --- one real call for all ----------------------------------------------------------------------------


@in_every_colour
async def test_identical_calls_in_flight_share_one_real_call(colour: Colour, tmp_path: Path) -> None:
    """All but one wait for the answer to be stored, and are answered from it."""
    path = tmp_path / "chat.jsonl"
    upstream = upstream_that_waits(colour, MANY - 1, answer("shared"))
    async with colour.client(path, upstream, mode="record") as client:
        found = await colour.together(MANY, lambda number: client.ask())
        stats = client.transport.stats

    assert {"shared"} == {each.json()["choices"][0]["message"]["content"] for each in found}
    assert (1, 1, MANY - 1, MANY - 1) == (stats.live, stats.recorded, stats.waited, stats.replayed)
    assert 1 == len(lines(path))


@pytest.mark.parametrize("mode", ["record", "rerecord"])
@in_every_colour
async def test_streams_are_shared_too(colour: Colour, tmp_path: Path, mode: str) -> None:
    """Those that wait get theirs cut anew, when the first has come to its end."""
    path = tmp_path / "chat.jsonl"
    upstream = upstream_that_waits(colour, MANY - 1, sse(events("Hello there")))
    async with colour.client(path, upstream, mode=mode) as client:
        found = await colour.together(MANY, lambda number: client.streamed())

        assert 1 == client.transport.stats.live
    assert {"Hello there"} == {tokens(each) for each in found if isinstance(each, bytes)}
    assert 1 == len(lines(path))


@in_every_colour
async def test_who_holds_the_first_open_makes_a_call_of_its_own(colour: Colour, tmp_path: Path) -> None:
    """It would wait for itself; the first to end is what is kept."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[sse(events("first")), sse(events("second"))])
    async with colour.client(path, upstream, mode="record") as client:
        async with client.stream() as response:
            assert "second" == tokens(await client.streamed())
            assert "first" == tokens(await client.read(response))
        assert 2 == client.transport.stats.live

    assert 1 == len(lines(path))
    assert "second" == tokens(await colour.client(path).streamed())


@in_every_colour
async def test_when_the_first_fails_the_next_one_leads(colour: Colour, tmp_path: Path) -> None:
    """The failure is its own; the others are answered by one more call."""
    path = tmp_path / "chat.jsonl"
    down = colour.library.ConnectError("down")
    upstream = upstream_that_waits(colour, 1, down, httpx.Response(503), answer("back"))
    async with colour.client(path, upstream, mode="record") as client:
        found = await colour.together(4, lambda number: client.ask())
        stats = client.transport.stats

        assert (3, {"503": 1, "ConnectError": 1}) == (stats.live, stats.unrecorded)
    assert [down] == [each for each in found if isinstance(each, Exception)]
    statuses = sorted(each.status_code for each in found if not isinstance(each, Exception))
    assert [200, 200, 503] == statuses


@in_every_colour
async def test_a_stream_that_is_lost_lets_the_others_go_on(colour: Colour, tmp_path: Path) -> None:
    """Nobody closed it: it was collected, and the next one leads."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[sse(events("lost")), sse(events("found"))])
    client = colour.client(path, upstream, mode="record")

    async def one(number: int) -> Any:
        if number:
            await colour.until(lambda: client.transport.stats.live == 1)
            return tokens(await client.streamed())
        response = await client.open()
        await colour.until(lambda: waiting() == 1)
        del response
        gc.collect()
        return None

    assert [None, "found"] == await colour.together(2, one)
    assert {"abandoned": 1} == client.transport.stats.unrecorded


@in_every_colour
async def test_a_stream_that_is_given_up_lets_the_others_go_on(colour: Colour, tmp_path: Path) -> None:
    """Closed in its middle, it will never be stored."""
    upstream = router()
    upstream.post(URL).mock(side_effect=[sse(events("given up")), sse(events("found"))])
    client = colour.client(tmp_path / "chat.jsonl", upstream, mode="record")

    async def one(number: int) -> Any:
        if number:
            await colour.until(lambda: client.transport.stats.live == 1)
            return tokens(await client.streamed())
        async with client.stream():
            await colour.until(lambda: waiting() == 1)
        return None

    assert [None, "found"] == await colour.together(2, one)


def test_one_file_is_one_flight_whatever_leads_to_it(tmp_path: Path) -> None:
    """Transports, libraries, threads, event loops, and a link: the first call serves them all."""
    path, link = tmp_path / "chat.jsonl", tmp_path / "link.jsonl"
    path.touch()
    link.symlink_to(path)
    answers = iter([answer("shared")])
    found: list[Any] = []

    def reply(request: httpx.Request) -> httpx.Response:
        while waiting() < len(COLOURS) - 1:
            threading.Event().wait(0.001)
        return next(answers)

    async def ask(colour: Colour, number: int) -> None:
        upstream = router()
        upstream.post(URL).mock(side_effect=reply)
        async with colour.client(link if number % 2 else path, upstream, mode="record") as client:
            found.append((await client.ask()).json()["choices"][0]["message"]["content"])

    threads = [
        threading.Thread(target=colour.run, args=(ask, colour, number))
        for number, colour in enumerate(COLOURS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["shared"] * len(COLOURS) == found
    assert 1 == len(lines(path))


def test_a_call_in_the_thread_of_a_loop_does_not_wait_for_a_task_of_it(tmp_path: Path) -> None:
    """The loop could not go on while it waits: a synchronous call makes its own, both ways round."""
    path = tmp_path / "chat.jsonl"
    both = colour_of("httpx-asyncio"), colour_of("httpx-sync")

    async def main() -> None:
        upstream = router()
        upstream.post(URL).mock(side_effect=lambda request: sse(events("Hello")))
        transport = both[1].transport(path, upstream, mode="record")
        async_client, client = httpx.AsyncClient(transport=transport), httpx.Client(transport=transport)
        async with async_client.stream("POST", URL, json=chat(stream=True)) as response:
            assert "Hello" == tokens(client.post(URL, json=chat(stream=True)).content)
            assert "Hello" == tokens(await response.aread())
        more = chat("More", stream=True)
        with client.stream("POST", URL, json=more) as response:
            assert "Hello" == tokens((await async_client.post(URL, json=more)).content)
            assert "Hello" == tokens(response.read())
        assert 4 == transport.stats.live
        await async_client.aclose()

    asyncio.run(main())


# --- cancelled, late, gone ----------------------------------------------------------------------------

ASYNC = pytest.mark.parametrize("colour", [c for c in COLOURS if c.is_async], ids=repr)


@ASYNC
@in_every_colour
async def test_who_waits_may_be_cancelled(colour: Colour, tmp_path: Path) -> None:
    """It leaves, and the call that it waited for goes on."""
    path = tmp_path / "chat.jsonl"
    go_on = anyio.Event()
    upstream = router()

    async def reply(request: httpx.Request) -> httpx.Response:
        await go_on.wait()
        return answer("Hi.")

    upstream.post(URL).mock(side_effect=reply)
    client = colour.client(path, upstream, mode="record")
    async with anyio.create_task_group() as group:
        group.start_soon(client.ask)
        await colour.until(lambda: client.transport.stats.live == 1)
        with anyio.move_on_after(0.02) as scope:
            await client.ask()
        assert scope.cancelled_caught
        assert 0 == waiting()
        go_on.set()
    assert 1 == len(lines(path))


@ASYNC
@in_every_colour
async def test_when_the_one_that_calls_is_cancelled_the_next_one_leads(
    colour: Colour, tmp_path: Path
) -> None:
    """Before the answer came: it is counted, and nobody hangs."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    count = 0

    async def reply(request: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        if count == 1:
            await anyio.sleep_forever()
        return answer("Hi.")

    upstream.post(URL).mock(side_effect=reply)
    client = colour.client(path, upstream, mode="record")

    async def first(scope: anyio.CancelScope) -> None:
        with scope:
            await client.ask()

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(first, scope)
        await colour.until(lambda: client.transport.stats.live == 1)
        group.start_soon(client.ask)
        await colour.until(lambda: waiting() == 1)
        scope.cancel()

    assert (2, {"abandoned": 1}) == (client.transport.stats.live, client.transport.stats.unrecorded)
    assert 1 == len(lines(path))


@pytest.mark.parametrize("limit", ["WAIT_LIMIT", "IDLE_LIMIT"])
@in_every_colour
async def test_nobody_waits_for_ever(
    colour: Colour,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    limit: str,
) -> None:
    """For an answer that does not come, or that lies unread, another call is made, and that is said."""
    monkeypatch.setattr(_waiting, limit, 0.05)
    monkeypatch.setattr(_waiting, "LOOK_EVERY", 0.02)
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=lambda request: sse(events("Hello")))
    client = colour.client(path, upstream, mode="record")

    async def one(number: int) -> Any:
        if number:
            await colour.until(lambda: client.transport.stats.live == 1)
            return tokens(await client.streamed())
        async with client.stream() as response:
            await colour.until(lambda: client.transport.stats.live == 2)
            return tokens(await client.read(response))

    assert ["Hello", "Hello"] == await colour.together(2, one)
    assert (
        "the answer of an identical call does not come, or is not read; making another call"
        in caplog.messages
    )


# --- waking an event loop -----------------------------------------------------------------------------


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_waking_a_loop_that_is_gone_is_no_error(run: Callable[[Any], Any]) -> None:
    """Its task was cancelled or its run is over: nobody waits any more."""
    made: list[Any] = []

    async def main() -> None:
        made.extend(_waiting._thread_safe_event())

    run(main() if run is asyncio.run else main)
    _, wake = made
    wake()


def test_a_coroutine_outside_a_task_has_an_owner_too() -> None:
    """Frameworks run some in a bare callback of the loop; it is not taken for a thread."""
    found: list[int] = []

    async def main() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def callback() -> None:
            found.append(_waiting.current_task())
            done.set()

        loop.call_soon(callback)
        await done.wait()
        found.append(_waiting.current_task())

    asyncio.run(main())
    assert -1 == found[0]
    assert found[1] not in (0, -1)
