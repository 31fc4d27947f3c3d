"""Open cassettes and whose calls they answer, below ``use_cassette``."""

from __future__ import annotations

import _thread
import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from httpx_cassette import OpenCassette, OptionError, use_cassette
from httpx_cassette._block import block_here, block_of_call, blocks_here, carry, open_blocks, root_of
from httpx_cassette._driver import FORWARDING

from .colours import COLOURS, Colour


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give the path of a cassette that does not exist."""
    return tmp_path / "a.jsonl"


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """See to it that each test closes what it opens."""
    yield

    assert () == open_blocks()


@pytest.mark.parametrize("colour", COLOURS, ids=repr)
def test_the_root_of_a_request_is_its_library(colour: Colour) -> None:
    """Also of a class that is derived from the library's; of anything else it is httpx."""

    class Own(colour.library.Request):  # type: ignore[misc, name-defined]  # of either library
        pass

    requests = [kind("GET", "https://a.test") for kind in (Own, colour.library.Request)]

    assert [colour.name.partition("-")[0]] * 2 == [root_of(request) for request in requests]
    assert "httpx" == root_of(object())


def test_nobody_is_open_at_first() -> None:
    """A call belongs to no cassette where none is open."""
    assert (None, None, []) == (block_of_call(), block_here(), list(blocks_here()))


def test_a_block_may_be_left_twice(path: Path) -> None:
    """In two threads at once, too; the second time does nothing."""
    for _ in range(50):
        block = OpenCassette(path, {})
        block.enter()
        with ThreadPoolExecutor(2) as pool:
            for each in [pool.submit(block.close), pool.submit(block.close)]:
                each.result()

        assert (False, ()) == (block.is_open, open_blocks())


def test_blocks_here_are_given_from_the_innermost_outwards(path: Path) -> None:
    """Those that are closed are left out, whichever they are."""
    blocks = [OpenCassette(path, {}) for _ in range(3)]
    for block in blocks:
        block.enter()

    assert blocks[::-1] == list(blocks_here())
    blocks[1].close()
    assert [blocks[2], blocks[0]] == list(blocks_here())
    blocks[2].close()
    assert [blocks[0]] == list(blocks_here())
    blocks[0].close()


def test_a_carried_call_belongs_to_what_it_is_given(path: Path) -> None:
    """To a block or to nobody, and to a real call or to none; afterwards everything is as it was."""

    def look() -> tuple[Any, bool]:
        return next(blocks_here(), None), FORWARDING.get()

    async def carried() -> list[tuple[Any, bool]]:
        block = OpenCassette(path, {})
        block.enter()
        found = [carry(block._link, True, look, (), {}), carry(None, False, look, (), {}), look()]
        block.close()
        return [(each is block, is_forwarding) for each, is_forwarding in found]

    assert [(True, True), (False, False), (True, False)] == asyncio.run(carried())


def test_a_block_of_a_coroutine_is_not_its_threads(path: Path) -> None:
    """Other tasks of the loop do not lie within it: with two open their calls could be anybody's."""

    async def other(opened: asyncio.Event) -> Any:
        await opened.wait()
        return block_here()

    async def run() -> Any:
        opened = asyncio.Event()
        task = asyncio.create_task(other(opened))
        async with use_cassette(path):
            opened.set()
            return await task

    assert asyncio.run(run()) is None


def test_blocks_on_one_file_are_not_ambiguous(path: Path) -> None:
    """A call without a context is answered from the one that was opened last."""
    with use_cassette(path), use_cassette(path) as second:
        found: list[Any] = []
        started = threading.Event()

        def look() -> None:  # pragma: no cover  # such a thread is not traced
            found.append(block_of_call())
            started.set()

        # A thread of which nobody knows where it was started.
        _thread.start_new_thread(look, ())
        assert started.wait(10)

    assert [second] == found


class Closing(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Says how it was closed."""

    def __init__(self) -> None:
        self.closed: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="given")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="given")

    def close(self) -> None:
        self.closed.append("close")

    async def aclose(self) -> None:
        self.closed.append("aclose")


def test_what_a_block_was_given_is_closed_with_it() -> None:
    """As a transport closes what it was given; an async block closes what is async, too."""
    request = httpx.Request("GET", "https://a.test")
    sync, other = Closing(), Closing()
    with use_cassette("a.jsonl", mode="live", next_transport=sync) as block:
        assert "given" == block.handle_request(request).read().decode()

    async def run() -> None:
        async with use_cassette("a.jsonl", mode="live", next_transport=other) as block:
            assert b"given" == await (await block.handle_async_request(request)).aread()

    asyncio.run(run())

    assert ["close"] == sync.closed
    assert ["close", "aclose"] == other.closed


def test_a_block_that_cannot_be_closed_leaves_nothing_behind() -> None:
    """Closing what it was given may fail, when everything is already as it was before."""
    bare = httpx.HTTPTransport.handle_request

    class Failing(Closing):
        def close(self) -> None:
            raise OSError("no")

    with pytest.raises(OSError, match=r"^no$"):
        with use_cassette("a.jsonl", mode="live", next_transport=Failing()) as block:
            block.handle_request(httpx.Request("GET", "https://a.test"))

    assert (bare, ()) == (httpx.HTTPTransport.handle_request, open_blocks())


def test_what_cannot_serve_a_client_is_told() -> None:
    """A transport that is only async, and a sync client."""
    transport = httpx.AsyncHTTPTransport(verify=False)
    with use_cassette("a.jsonl", mode="live", next_transport=transport) as block:
        with pytest.raises(OptionError) as error:
            block.handle_request(httpx.Request("GET", "https://a.test"))

    assert f"next_transport={transport!r} serves AsyncClient only, and a Client made this call" == str(
        error.value
    )


def test_calls_are_counted_from_every_thread(path: Path) -> None:
    """None is lost."""
    request = httpx.Request("GET", "https://a.test")
    transport = httpx.MockTransport(lambda request: httpx.Response(200))
    with use_cassette(path, mode="live", next_transport=transport) as block:

        def many() -> None:
            for _ in range(50):
                block.handle_request(request)

        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert 200 == block.calls == block.stats.live
