"""``use_cassette`` as its users see it: which call is answered from which cassette, however it is made."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import importlib.util
import inspect
import multiprocessing.pool
import os
import pickle
import shutil
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
import respx

import httpx_cassette
from httpx_cassette import (
    CallLimitReached,
    CassetteAmbiguous,
    CassetteReadOnly,
    NetworkRefused,
    OpenCassette,
    OptionError,
    WrongClientError,
    _ledger,
    expected_miss,
    use_cassette,
)
from httpx_cassette._block import open_blocks
from httpx_cassette.stand_in import StandInServer

from .colours import (
    CHAT,
    COLOURS,
    URL,
    Client,
    Colour,
    answer,
    chat,
    colour_of,
    delta,
    events,
    in_every_colour,
    lines,
    router,
    sse,
    tokens,
)
from .loopback import Connection, serve
from .taping import ask, bare_client, run_program, said, tape

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
needs_httpx2 = pytest.mark.skipif(not importlib.util.find_spec("httpx2"), reason="httpx2 is not installed")

KEY = {"authorization": "Bearer stand-in"}

Tape = Callable[..., Path]


@pytest.fixture
def taped(tmp_path: Path) -> Tape:
    """Give what records a cassette that answers with its own name, or with what it is told."""
    return lambda name, *says: tape(tmp_path / f"{name}.jsonl", *says)


@pytest.fixture
def live() -> Iterator[respx.MockRouter]:
    """Give the network of httpx, which answers ``live``: what a call gets that no cassette answers."""
    with respx.mock(assert_all_called=False) as network:
        network.post(URL).mock(side_effect=lambda request: answer("live"))
        yield network


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """See to it that each test closes what it opens."""
    yield

    assert () == open_blocks()


# -- clients -------------------------------------------------------------------------------------------


@in_every_colour
async def test_clients_made_before_and_within_are_answered(colour: Colour, taped: Tape) -> None:
    """A client needs no transport of ours, whenever it was made."""
    before = bare_client(colour)
    with use_cassette(taped("a")) as cassette:
        within = bare_client(colour)
        responses = [await before.ask(), await within.ask()]
        await within.close()
    await before.close()

    assert ["a", "a"] == [said(response) for response in responses]
    assert ["replayed", "replayed"] == [each.extensions["httpx_cassette"].outcome for each in responses]
    assert (2, 2, 0) == (cassette.calls, cassette.hits, cassette.recorded)


@in_every_colour
async def test_real_calls_go_through_the_clients_own_transport(
    colour: Colour, tmp_path: Path, stand_in: StandInServer
) -> None:
    """What is recorded in a block is what the client would have got, and is replayed without it."""
    path = tmp_path / "chat.jsonl"
    url = f"{stand_in.url}/chat/completions"
    found = []
    async with bare_client(colour, headers=KEY) as client:
        async with use_cassette(path, mode="record") as cassette:
            found += [said(await client.ask(url=url)), said(await client.ask(url=url))]
            found.append(tokens(await client.streamed(chat(stream=True), url)))
        async with use_cassette(path) as again:
            found += [said(await client.ask(url=url)), tokens(await client.streamed(chat(stream=True), url))]

    assert [found[0]] * 2 + [found[2], found[0], found[2]] == found
    assert 2 == stand_in.calls == cassette.recorded == cassette.stats.live
    assert (1, 2) == (cassette.hits, again.hits)
    assert [("recorded", 1), ("recorded", 2)] == [(each.outcome, each.line) for each in cassette.recordings]
    assert {str(path)} == {each.file for each in again.recordings}


def test_functions_of_the_library_are_answered(taped: Tape) -> None:
    """``httpx.post`` makes a client of its own, which counts as any."""
    with use_cassette(taped("a")):
        for library in {colour.library for colour in COLOURS}:
            assert "a" == said(library.post(URL, json=CHAT, verify=False, trust_env=False))


@pytest.mark.parametrize("way", ["proxy", "mounts", "mounted proxy"])
@in_every_colour
async def test_proxies_and_mounts_are_answered(colour: Colour, taped: Tape, loopback: None, way: str) -> None:
    """What goes round a client's ``transport=`` does not go round a block; the proxy is never reached."""
    if way == "proxy" and "proxy" not in inspect.signature(httpx.Client).parameters:
        pytest.skip("clients take a proxy since httpx 0.26")  # pragma: no cover
    connections: list[Connection] = []
    with serve(connections.append) as url:
        proxy = url.removesuffix("/v1/chat/completions")
        kind = colour.library.AsyncHTTPTransport if colour.is_async else colour.library.HTTPTransport
        options: dict[str, dict[str, Any]] = {
            "proxy": {"proxy": proxy},
            "mounts": {"mounts": {"all://": kind(verify=False)}},
            "mounted proxy": {"mounts": {"https://": kind(verify=False, proxy=colour.library.Proxy(proxy))}},
        }
        with use_cassette(taped("a")):
            async with bare_client(colour, **options[way]) as client:
                assert "a" == said(await client.ask())

    assert [] == connections


@in_every_colour
async def test_a_transport_derived_from_the_librarys_is_answered(colour: Colour, taped: Tape) -> None:
    """One that adds to what it inherits, such as retries, has the inherited part answered."""
    seen = []

    class Retrying(colour.library.HTTPTransport):  # type: ignore[misc, name-defined]  # of either library
        def handle_request(self, request: Any) -> Any:
            seen.append(request.method)
            return super().handle_request(request)

    class RetryingAsync(colour.library.AsyncHTTPTransport):  # type: ignore[misc, name-defined]  # as above
        async def handle_async_request(self, request: Any) -> Any:
            seen.append(request.method)
            return await super().handle_async_request(request)

    kind = RetryingAsync if colour.is_async else Retrying
    with use_cassette(taped("a")) as cassette:
        async with Client(colour, kind(verify=False)) as client:
            assert "a" == said(await client.ask())

    assert (["POST"], 1) == (seen, cassette.calls)


@in_every_colour
async def test_a_cassette_transport_keeps_its_own_cassette(
    colour: Colour, tmp_path: Path, stand_in: StandInServer, taped: Tape
) -> None:
    """The block neither answers it nor its real calls, and does not count them."""
    url = f"{stand_in.url}/chat/completions"
    own = colour.transport_class(tmp_path / "own.jsonl", mode="record")
    with use_cassette(taped("a"), mode="record") as cassette:
        async with Client(colour, own, headers=KEY) as client:
            await client.ask(url=url)

    assert (1, 1, 0) == (stand_in.calls, own.stats.recorded, cassette.calls)
    assert 1 == len(lines(tmp_path / "a.jsonl"))


async def asgi_app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"app"})


def wsgi_app(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("content-type", "text/plain")])
    return [b"app"]


@in_every_colour
async def test_transports_given_on_purpose_are_left_alone(colour: Colour, taped: Tape) -> None:
    """A mock answers what it was made for, and an application is called."""
    library = colour.library
    given = [library.MockTransport(lambda request: library.Response(200, text="app"))]
    given.append(library.ASGITransport(asgi_app) if colour.is_async else library.WSGITransport(wsgi_app))
    with use_cassette(taped("a")) as cassette:
        for transport in given:
            async with Client(colour, transport) as client:
                assert "app" == (await client.ask()).text

    assert 0 == cassette.calls


def test_what_an_application_calls_is_answered(taped: Tape) -> None:
    """The client of a test is left alone, and the calls of the application under test are answered."""

    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("content-type", "text/plain")])
        return [ask().encode()]

    with use_cassette(taped("a")) as cassette:
        with httpx.Client(transport=httpx.WSGITransport(app)) as client:
            assert "a" == client.get("https://app.test/").text

    assert 1 == cassette.calls


def test_respx_as_a_transport_is_left_alone(taped: Tape) -> None:
    """``respx.MockTransport`` is a mock like any."""
    upstream = router()
    upstream.post(URL).mock(return_value=answer("respx"))
    with use_cassette(taped("a")) as cassette:
        with httpx.Client(transport=httpx.MockTransport(upstream.handler)) as client:
            assert "respx" == said(client.post(URL, json=CHAT))

    assert 0 == cassette.calls


def test_one_client_serves_several_event_loops(taped: Tape) -> None:
    """A client that lives longer than an event loop goes on with the next, as nothing is connected."""
    client = bare_client(colour_of("httpx-asyncio"))

    async def once() -> str:
        return said(await client.ask())

    with use_cassette(taped("a")):
        assert ["a", "a"] == [asyncio.run(once()), asyncio.run(once())]


def test_a_client_closed_twice_does_no_harm(taped: Tape) -> None:
    """Within the block and after it."""
    client = httpx.Client(verify=False)
    with use_cassette(taped("a")):
        assert "a" == said(client.post(URL, json=CHAT))
        client.close()
        client.close()
    client.close()


# -- nesting -------------------------------------------------------------------------------------------


@in_every_colour
async def test_the_innermost_block_answers(colour: Colour, taped: Tape) -> None:
    """Blocks may be nested, on the same file too; with its end the outer one answers again."""
    a, b = taped("a"), taped("b")
    client = bare_client(colour)
    found = []
    with use_cassette(a) as outer:
        found.append(said(await client.ask()))
        async with use_cassette(b) as inner:
            found.append(said(await client.ask()))
            with use_cassette(b) as innermost:
                found.append(said(await client.ask()))
        found.append(said(await client.ask()))

    assert ["a", "b", "b", "a"] == found
    assert [2, 1, 1] == [each.calls for each in (outer, inner, innermost)]


def test_the_inner_block_may_have_another_mode(taped: Tape, tmp_path: Path, live: respx.MockRouter) -> None:
    """A real call of the inner block is not answered by the outer one."""
    new = tmp_path / "new.jsonl"
    found = []
    with use_cassette(taped("a")) as outer:
        with use_cassette(new, mode="live") as bypass:
            found.append(ask())
        with use_cassette(new, mode="record") as recorder:
            found.append(ask())
        found.append(ask())

    assert ["live", "live", "a"] == found
    assert (1, 1, 1) == (outer.calls, bypass.stats.live, recorder.recorded)
    assert 1 == len(lines(new))


def test_one_object_may_be_entered_several_times(taped: Tape) -> None:
    """Each time it gives an open cassette of its own."""
    use = use_cassette(taped("a", "1", "2"), samples=2)
    with use as first:
        assert "1" == ask()
        with use as second:
            assert "1" == ask()
        assert "2" == ask()
    with use as third:
        assert "1" == ask()

    assert [2, 1, 1] == [each.calls for each in (first, second, third)]


def test_one_object_closes_its_own_block(taped: Tape) -> None:
    """In each thread the one that was opened there, though another one lies within it."""
    use, other = use_cassette(taped("a")), use_cassette(taped("b"))
    opened = threading.Barrier(2)

    def run() -> tuple[bool, bool]:
        opened.wait(10)
        block = use.__enter__()
        inner = other.__enter__()
        opened.wait(10)
        use.__exit__()
        found = block.is_open, inner.is_open
        opened.wait(10)
        other.__exit__()
        return found

    with ThreadPoolExecutor(2) as pool:
        assert [(False, True)] * 2 == [each.result() for each in [pool.submit(run), pool.submit(run)]]


def test_blocks_may_be_closed_in_any_order(taped: Tape, live: respx.MockRouter) -> None:
    """Whichever is still open answers, and the last one to be closed puts everything back."""
    a, b, c = (use_cassette(taped(name)) for name in "abc")
    found = []
    a.__enter__(), b.__enter__(), c.__enter__()
    for use in (b, c, a):
        found.append(ask())
        use.__exit__()
    found.append(ask())

    assert ["c", "c", "a", "live"] == found


def test_blocks_that_overlap_do_not_hold_on_to_each_other(taped: Tape) -> None:
    """A chain of blocks, each opened before the last one is closed, does not grow."""
    path = taped("a")
    previous = use_cassette(path)
    last = previous.__enter__()
    for _ in range(10):
        use = use_cassette(path)
        last = use.__enter__()
        previous.__exit__()
        previous = use
    previous.__exit__()
    gc.collect()

    assert 2 >= len(
        [each for each in gc.get_objects() if type(each) is OpenCassette and each.path == last.path]
    )


def test_an_error_leaves_nothing_behind(taped: Tape, live: respx.MockRouter) -> None:
    """The error is the one that was raised, and the block is closed."""

    async def fail() -> None:
        async with use_cassette(taped("b")):
            raise KeyError("async")

    with pytest.raises(ValueError, match=r"^sync$"):
        with use_cassette(taped("a")):
            raise ValueError("sync")
    with pytest.raises(KeyError, match=r"^'async'$"):
        asyncio.run(fail())

    assert "live" == ask()


# -- threads and tasks ---------------------------------------------------------------------------------


@in_every_colour
async def test_tasks_and_threads_do_not_mix(colour: Colour, taped: Tape) -> None:
    """Twenty at once, each with a cassette of its own, are each answered from theirs."""
    paths = [taped(f"tape{number}") for number in range(20)]
    opened: list[int] = []

    async def one(number: int) -> str:
        async with use_cassette(paths[number]), bare_client(colour) as client:
            opened.append(number)
            await colour.until(lambda: len(opened) == len(paths))
            return said(await client.ask())

    assert [f"tape{number}" for number in range(20)] == await colour.together(20, one)


def test_decorated_coroutines_do_not_mix(taped: Tape) -> None:
    """Twenty functions, each decorated with another cassette and gathered."""
    started: list[str] = []

    def make(path: Path) -> Callable[[], Any]:
        @use_cassette(path)
        async def function() -> str:
            started.append(path.stem)
            while len(started) < 20:
                await asyncio.sleep(0)
            async with httpx.AsyncClient(verify=False, trust_env=False) as client:
                return said(await client.post(URL, json=CHAT))

        return function

    functions = [make(taped(f"tape{number}")) for number in range(20)]

    async def gather() -> list[str]:
        return list(await asyncio.gather(*(function() for function in functions)))

    assert [f"tape{number}" for number in range(20)] == asyncio.run(gather())


def in_a_thread() -> str:
    """Ask in a new thread."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(ask()))
    thread.start()
    thread.join()
    return found[0]


def in_a_nested_thread() -> str:
    """Ask in a thread that a new thread starts."""
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(in_a_thread()))
    thread.start()
    thread.join()
    return found[0]


def in_a_timer() -> str:
    """Ask in a timer's thread."""
    found: list[str] = []
    timer = threading.Timer(0, lambda: found.append(ask()))
    timer.start()
    timer.join()
    return found[0]


class Slim(threading.Thread):
    """A thread with slots, and what it does written into it."""

    __slots__ = ("found",)

    def start(self) -> None:
        self.found = ""
        super().start()

    def run(self) -> None:
        self.found = ask()


def in_a_derived_thread() -> str:
    """Ask in a thread of a class of one's own."""
    thread = Slim()
    thread.start()
    thread.join()
    return thread.found


class Counting(ThreadPoolExecutor):
    """An executor that looks at what it is given."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return super().submit(fn, *args, **kwargs)


def in_a_pool() -> str:
    """Ask in a pool that is made for it."""
    with Counting(1) as pool:
        found: str = pool.submit(ask).result()
    return found


def in_a_pool_of_multiprocessing() -> str:
    """Ask in a ``ThreadPool``."""
    with multiprocessing.pool.ThreadPool(1) as pool:
        found: str = pool.apply(ask)
    pool.join()
    return found


def in_the_loops_executor() -> str:
    """Ask in an event loop's own threads."""

    async def run() -> str:
        loop = asyncio.get_running_loop()
        return "".join({await loop.run_in_executor(None, ask), await asyncio.to_thread(ask)})

    return asyncio.run(run())


def in_anyios_thread(backend: str = "asyncio") -> str:
    """Ask in a thread of anyio."""
    return anyio.run(anyio.to_thread.run_sync, ask, backend=backend)


def in_trios_thread() -> str:
    """Ask in a thread of trio."""
    return in_anyios_thread("trio")


WAYS = [
    in_a_thread,
    in_a_nested_thread,
    in_a_timer,
    in_a_derived_thread,
    in_a_pool,
    in_a_pool_of_multiprocessing,
    in_the_loops_executor,
    in_anyios_thread,
    in_trios_thread,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_a_block_starts_belongs_to_it(taped: Tape, loopback: None, way: Callable[[], str]) -> None:
    """Wherever a call is made, it is answered from the cassette of whoever started it, not from others."""
    with use_cassette(taped("a")):
        with use_cassette(taped("b")):
            assert "b" == way()
        assert "a" == way()


def test_two_blocks_share_an_executor(taped: Tape) -> None:
    """A thread that one block started answers for the other, and for nobody; keywords go through."""
    a, b = taped("a"), taped("b")

    def task(*, block: str, function: str, args: str) -> tuple[str, str]:
        return block + function + args, ask()

    def work(path: Path) -> list[tuple[str, str]]:
        with use_cassette(path):
            return [pool.submit(task, block="b", function="f", args="a").result() for _ in range(5)]

    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(2) as outside:
        found = list(outside.map(work, [a, b]))

    assert [[("bfa", "a")] * 5, [("bfa", "b")] * 5] == found


def test_a_thread_that_was_there_before_is_answered_from_the_only_cassette(
    taped: Tape, older: Older, live: respx.MockRouter
) -> None:
    """Without any context there is no doubt as long as one cassette is open, however often."""
    a = taped("a")
    found = [older.ask()]
    with use_cassette(a):
        found.append(older.ask())
        with use_cassette(a):
            found.append(older.ask())
    found.append(older.ask())

    assert ["live", "a", "a", "live"] == found


class Older:
    """A thread that was there before any block, and does what it is told."""

    def __init__(self) -> None:
        self._told, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._found: Any = None
        self._todo: Callable[[], Any] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._told.acquire() and self._todo is not None:
            try:
                self._found = self._todo()
            except BaseException as error:
                self._found = error
            self._done.release()

    def __enter__(self) -> Older:
        return self

    def __exit__(self, *error: object) -> None:
        self._todo = None
        self._told.release()
        self._thread.join(10)

    def do(self, what: Callable[[], Any]) -> Any:
        self._todo = what
        self._told.release()
        assert self._done.acquire(timeout=10)
        return self._found

    def ask(self) -> Any:
        return self.do(ask)


@pytest.fixture
def older() -> Iterator[Older]:
    """Give a thread that was started before any block of the test."""
    with Older() as thread:
        yield thread


def test_a_call_that_could_be_anybodys_is_stopped(
    taped: Tape, older: Older, capsys: pytest.CaptureFixture[str]
) -> None:
    """With two cassettes open the error names both, is in the ledger, and ends the run with status 2."""
    a, b = taped("a"), taped("b")
    report = (
        f"a call could be answered from {a} or from {b}, which are open at once\n"
        "  because      it was made in a thread or task that was started outside of these blocks\n"
        "  to tell which: start the thread within the block, or give its client a CassetteTransport"
    )
    with use_cassette(a), use_cassette(b):
        error = older.ask()

    assert (CassetteAmbiguous, report) == (type(error), str(error))
    assert not isinstance(error, Exception)
    assert (str(a), str(b)) == error.cassettes
    assert [("CassetteAmbiguous", report)] == [(entry.kind, entry.report) for entry in _ledger.entries()]
    assert report + "\n" == capsys.readouterr().err
    again = pickle.loads(pickle.dumps(error))
    assert (str(error), error.cassettes) == (str(again), again.cassettes)


def test_threads_of_a_pool_that_was_there_before_guess_nothing(taped: Tape, older: Older) -> None:
    """A task that nobody submits belongs to nobody, though a block has started the thread."""
    with ThreadPoolExecutor(1) as pool, use_cassette(taped("a")):
        assert "a" == pool.submit(ask).result()
        with use_cassette(taped("b")):
            error = older.do(lambda: pool.submit(ask).result())

    assert CassetteAmbiguous is type(error)


def test_a_task_older_than_the_fixture_of_its_test_is_answered(taped: Tape) -> None:
    """What a thread runs while a block that it opened itself is open, lies within that block."""
    go = asyncio.Event()

    async def wait() -> str:
        await go.wait()
        return ask()

    loop = asyncio.new_event_loop()
    task = loop.create_task(wait())
    loop.call_soon(go.set)
    with use_cassette(taped("a")):
        with use_cassette(taped("b")):
            assert "b" == loop.run_until_complete(task)
    loop.close()


def test_what_outlives_its_block_is_answered_by_what_is_open(taped: Tape, live: respx.MockRouter) -> None:
    """And where nothing is open, from its own cassette; what belongs to none makes real calls."""
    contexts = []
    with use_cassette(taped("a")):
        with use_cassette(taped("b")):
            contexts.append(contextvars.copy_context())
            with Older() as thread:
                within = [thread.ask(), contexts[0].run(ask)]
                after: list[Any] = []
                # Closed here, while the thread goes on.
                open_blocks()[-1].close()
                after += [thread.ask(), contexts[0].run(ask), ask()]
    after += [contexts[0].run(ask), ask()]

    assert (["b", "b"], ["a", "a", "a", "b", "live"]) == (within, after)


def test_a_task_goes_on_when_its_block_is_closed(taped: Tape, live: respx.MockRouter) -> None:
    """It was started in the block, and is answered from its cassette to the end."""

    async def run() -> list[str]:
        go = asyncio.Event()
        found = []

        async def outlive() -> None:
            async with httpx.AsyncClient(verify=False, trust_env=False) as client:
                found.append(said(await client.post(URL, json=CHAT)))
                await go.wait()
                found.append(said(await client.post(URL, json=CHAT)))

        async with use_cassette(taped("a")):
            task = asyncio.create_task(outlive())
            while not found:
                await asyncio.sleep(0)
        go.set()
        await task
        return found

    assert ["a", "a"] == asyncio.run(run())


def test_a_thread_that_nobody_waits_for_does_not_reach_the_network(
    taped: Tape, live: respx.MockRouter
) -> None:
    """Nor does what it hands to a pool; when all of it is gone, everything is as it was before."""
    go = threading.Event()
    found: list[str] = []

    def late() -> None:
        go.wait()
        found.append(ask())
        with ThreadPoolExecutor(1) as pool:
            found.append(pool.submit(ask).result())

    before = httpx.HTTPTransport.handle_request
    with use_cassette(taped("a")):
        thread = threading.Thread(target=late)
        thread.start()
    assert "live" == ask()
    go.set()
    thread.join()
    del thread
    gc.collect()

    assert ["a", "a"] == found
    assert before is httpx.HTTPTransport.handle_request


def test_a_cassette_that_is_not_open_cannot_be_closed(tmp_path: Path) -> None:
    """The error says how it is opened."""
    with pytest.raises(OptionError) as caught:
        use_cassette(tmp_path / "a.jsonl").__exit__(None, None, None)

    assert "this cassette is not open; use it as: with use_cassette('file.jsonl'):" == str(caught.value)


def test_a_finaliser_may_make_a_call(taped: Tape) -> None:
    """Even while blocks open and close."""
    found: list[str] = []

    class Asking:
        def __del__(self) -> None:
            found.append(ask())

    with use_cassette(taped("a")):
        cycle: list[Any] = [Asking()]
        cycle.append(cycle)
        del cycle
        with use_cassette(taped("a")):
            gc.collect()

    assert ["a"] == found


# -- the decorator -------------------------------------------------------------------------------------


def test_a_decorated_function_is_answered(taped: Tape, live: respx.MockRouter) -> None:
    """While it runs, each time anew; its name, arguments and result are its own."""

    @use_cassette(taped("a", "1", "2"), samples=2)
    def function(first: int, *, second: int = 2) -> tuple[int, int, list[str]]:
        """Say what it does."""
        return first, second, [ask(), ask()]

    assert [(1, 2, ["1", "2"]), (3, 4, ["1", "2"])] == [function(1), function(3, second=4)]
    assert ("function", "Say what it does.") == (function.__name__, function.__doc__)
    assert "live" == ask()


def test_a_decorated_generator_is_one(taped: Tape, live: respx.MockRouter) -> None:
    """What is sent, thrown and returned goes through, and the cassette is open between its items."""
    ended = []

    @use_cassette(taped("a"))
    def generator() -> Generator[str, int, str]:
        try:
            sent = yield ask()
            try:
                yield f"{sent} {ask()}"
            except KeyError:
                yield f"caught {ask()}"
            return "returned"
        finally:
            ended.append(ask())

    whole = generator()
    found = [next(whole), ask(), whole.send(1), whole.throw(KeyError())]
    with pytest.raises(StopIteration) as stop:
        next(whole)
    closed = generator()
    next(closed)
    closed.close()

    assert (["a", "a", "1 a", "caught a"], "returned", ["a", "a"]) == (found, stop.value.value, ended)
    assert "live" == ask()


@in_every_colour
async def test_a_decorated_coroutine_is_answered(colour: Colour, taped: Tape) -> None:
    """While it runs; a coroutine function stays one."""

    @use_cassette(taped("a"))
    async def function(more: str) -> str:
        async with bare_client(colour) as client:
            return said(await client.ask()) + more

    assert "a!" == await function("!")
    assert inspect.iscoroutinefunction(function)


@in_every_colour
async def test_a_decorated_async_generator_is_one(colour: Colour, taped: Tape) -> None:
    """What is sent and thrown goes through, and one that is closed early closes its cassette."""
    ended = []

    @use_cassette(taped("a"))
    async def generator() -> AsyncGenerator[str, int]:
        async with bare_client(colour) as client:
            try:
                sent = yield said(await client.ask())
                try:
                    yield f"{sent} {said(await client.ask())}"
                except KeyError:
                    yield f"caught {said(await client.ask())}"
            finally:
                ended.append(said(await client.ask()))

    whole = generator()
    found = [await whole.__anext__(), await whole.asend(1), await whole.athrow(KeyError())]
    with pytest.raises(StopAsyncIteration):
        await whole.__anext__()
    closed = generator()
    await closed.__anext__()
    inner = open_blocks()
    await closed.aclose()
    failing = generator()
    await failing.__anext__()
    with pytest.raises(LookupError):
        await failing.athrow(LookupError())

    assert (["a", "1 a", "caught a"], ["a", "a", "a"]) == (found, ended)
    assert (1, ()) == (len(inner), open_blocks())


def test_what_another_decorator_hides_is_answered(taped: Tape, live: respx.MockRouter) -> None:
    """A function that only gives a coroutine or a generator has it answered when it runs."""

    async def coroutine() -> str:
        return ask()

    def generator() -> Iterator[str]:
        yield ask()

    async def async_generator() -> AsyncIterator[str]:
        yield ask()

    async def take() -> list[str]:
        return [item async for item in use(lambda: async_generator())()]

    use = use_cassette(taped("a"))

    assert "a" == asyncio.run(use(lambda: coroutine())())
    assert ["a"] == list(use(lambda: generator())())
    assert ["a"] == asyncio.run(take())
    assert "live" == ask()


def test_a_method_may_be_decorated(taped: Tape) -> None:
    """And finds its object."""

    class Service:
        name = "service"

        @use_cassette(taped("a"))
        def ask(self) -> str:
            return f"{self.name} {ask()}"

    assert "service a" == Service().ask()


def function() -> None:
    """Nothing; it is decorated wrongly."""


def test_what_cannot_be_decorated_is_refused(taped: Tape) -> None:
    """A class, a text, a fixture that is one already; and the decorator without its brackets."""
    use = use_cassette(taped("a"))
    fixture = pytest.fixture(function)
    refused: list[tuple[Callable[[], object], str]] = [
        (
            lambda: use(Older),
            f"use_cassette decorates functions, and {Older!r} is none; decorate its methods, "
            "or open the cassette in a fixture",
        ),
        (
            lambda: use("text"),  # type: ignore[type-var]
            "use_cassette decorates functions, and 'text' is none; decorate its methods, "
            "or open the cassette in a fixture",
        ),
        (
            lambda: use(fixture),
            f"use_cassette decorates functions, and {fixture!r} is a fixture; "
            "write @use_cassette below @pytest.fixture",
        ),
        (
            lambda: use_cassette(function),  # type: ignore[arg-type]
            f"{function!r} names no cassette; write @use_cassette('file.jsonl')",
        ),
    ]
    for call, message in refused:
        with pytest.raises(OptionError) as error:
            call()
        assert message == str(error.value)


def test_fixtures_may_be_decorated(taped: Tape, tmp_path: Path) -> None:
    """Of pytest, of each kind; the test lies within those that yield."""
    taped("a"), taped("b"), taped("c")
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture(scope='module', params=['asyncio', 'trio'])\n"
        "def anyio_backend(request):\n    return request.param\n"
    )
    (tmp_path / "test_it.py").write_text(
        """
import httpx, pytest
from httpx_cassette import use_cassette
from tests.taping import ask

async def ask_async():
    async with httpx.AsyncClient(verify=False, trust_env=False) as client:
        from tests.colours import CHAT, URL
        from tests.taping import said
        return said(await client.post(URL, json=CHAT))

@pytest.fixture
@use_cassette("a.jsonl")
def plain(tmp_path):
    return ask()

@pytest.fixture
@use_cassette("a.jsonl")
def around(tmp_path, request):
    assert "a" == ask()
    yield request.node.name
    assert "a" == ask()

@pytest.fixture(scope="module")
def outer():
    with use_cassette("b.jsonl"):
        yield

@pytest.fixture
@use_cassette("a.jsonl")
async def coroutine(tmp_path):
    return await ask_async()

@pytest.fixture
@use_cassette("c.jsonl")
async def around_async(tmp_path):
    assert "c" == await ask_async()
    yield "async"
    assert "c" == await ask_async()

def test_sync(outer, plain, around):
    assert ("a", "test_sync", "a") == (plain, around, ask())

def test_outer(outer):
    assert "b" == ask()

@use_cassette("c.jsonl")
def test_decorated(tmp_path):
    assert "c" == ask()

@pytest.mark.anyio
async def test_async(coroutine, around_async):
    assert ("a", "async", "c") == (coroutine, around_async, await ask_async())

@pytest.mark.anyio
@use_cassette("c.jsonl")
async def test_decorated_async(tmp_path, outer):
    assert "c" == await ask_async()

@pytest.mark.anyio
async def test_async_in_sync_fixture(around):
    assert "a" == await ask_async()
"""
    )
    ended = run_program(
        tmp_path,
        """
        import pytest
        options = "-q -p no:randomly -p no:cacheprovider -p no:asyncio -p no:warnings".split()
        sys.exit(pytest.main([*options, "--rootdir=.", "--import-mode=importlib", "test_it.py"]))
        """,
    )

    assert (0, "9 passed") == (ended.status, ended.out.splitlines()[-1].partition(" in ")[0]), ended


# -- options -------------------------------------------------------------------------------------------


def test_a_wrong_option_is_told_where_it_stands(tmp_path: Path) -> None:
    """One that does not exist at once, one that is not understood when the block opens; nothing is open."""
    with pytest.raises(OptionError) as unknown:
        use_cassette("a.jsonl", mod="record")  # type: ignore[call-arg]
    with pytest.raises(OptionError) as wrong, use_cassette("a.jsonl", mode="rekord"):
        pass  # pragma: no cover
    with pytest.raises(OptionError) as guard, use_cassette("a.jsonl", guard="a.test"):
        pass  # pragma: no cover
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CassetteReadOnly), use_cassette(file / "a.jsonl", mode="record"):
        pass  # pragma: no cover

    assert "use_cassette has no option 'mod' (did you mean 'mode'?)" == str(unknown.value)
    assert "mode='rekord' is not a mode (did you mean 'record'?)" == str(wrong.value)
    assert "guard='a.test' is not understood; it takes True, False, or hosts to let through" == str(
        guard.value
    )


@in_every_colour
async def test_next_transport_takes_the_place_of_the_clients_own(colour: Colour, tmp_path: Path) -> None:
    """Real calls go through what the block was given; a mock serves both colours."""
    upstream = router()
    upstream.post(URL).mock(return_value=answer("given"))
    path = tmp_path / "a.jsonl"
    async with use_cassette(path, mode="record", next_transport=colour.next_transport(upstream)):
        async with bare_client(colour) as client:
            assert "given" == said(await client.ask())

    assert 1 == len(lines(path))


@needs_httpx2
def test_next_transport_of_the_other_library_is_refused(taped: Tape) -> None:
    """When a client of the other library makes a call, and not before."""
    upstream = httpx.MockTransport(lambda request: answer())
    with use_cassette(taped("a"), next_transport=upstream):
        assert "a" == ask()
        with pytest.raises(WrongClientError) as error:
            COLOURS[-1].library.post(URL, json=CHAT, verify=False, trust_env=False)

    assert (
        f"next_transport={upstream!r} is no transport of httpx2, and a client of httpx2 made this call; "
        "leave it out, and every client makes real calls through its own"
    ) == str(error.value)


def test_samples_are_counted_for_each_block(taped: Tape) -> None:
    """Every block begins with the first answer."""
    path = taped("a", "1", "2")
    for _ in range(2):
        with use_cassette(path, samples=2):
            assert ["1", "2", "2"] == [ask(), ask(), ask()]


def test_what_was_not_recorded_is_said(
    tmp_path: Path, live: respx.MockRouter, caplog: pytest.LogCaptureFixture
) -> None:
    """By the open cassette, and once by a warning when it is closed."""
    live.post(URL).mock(return_value=httpx.Response(503))
    with use_cassette(tmp_path / "a.jsonl", mode="record") as cassette:
        ask_status = httpx.post(URL, json=CHAT, verify=False, trust_env=False).status_code

    assert (503, {"503": 1}) == (ask_status, cassette.stats.unrecorded)
    assert (
        f"POST {URL} answered 503; only finished 2xx and 3xx answers are stored "
        "(record_statuses= stores others)",
    ) == cassette.unrecorded
    assert "answers that were not recorded: 1 503" == caplog.messages[-1]


def test_max_calls_holds_in_a_block(tmp_path: Path, live: respx.MockRouter) -> None:
    """One more real call stops."""
    with use_cassette(tmp_path / "a.jsonl", mode="live", max_calls=1):
        ask()
        with pytest.raises(CallLimitReached):
            ask()


@in_every_colour
async def test_an_expected_miss_is_taken_back(colour: Colour, tmp_path: Path) -> None:
    """A miss in a block is one like any."""
    async with bare_client(colour) as client:
        with use_cassette(tmp_path / "a.jsonl") as cassette:
            with expected_miss() as miss:
                await client.ask()

    assert (1, 0, 1) == (cassette.calls, cassette.hits, cassette.stats.missed)
    assert 1 == len(miss.errors)


@in_every_colour
async def test_streams_go_through_a_block(colour: Colour, tmp_path: Path) -> None:
    """Recorded and replayed; one that is abandoned is not stored, and is told."""
    path = tmp_path / "a.jsonl"
    upstream = router()
    upstream.post(URL).mock(
        side_effect=[sse(events("Hello there")), sse([delta("a"), delta("b"), delta("c")] * 50)]
    )
    body = chat("other", stream=True)
    recording = use_cassette(path, mode="record", next_transport=colour.next_transport(upstream))
    async with bare_client(colour) as client:
        async with recording as cassette:
            first = tokens(await client.streamed())
            async with client.stream(body) as response, client.raw(response) as chunks:
                async for _ in chunks:
                    break
        async with use_cassette(path):
            second = tokens(await client.streamed())

    assert ["Hello there"] * 2 == [first, second]
    assert ({"abandoned": 1}, 1) == (cassette.stats.unrecorded, cassette.recorded)
    assert 1 == len(lines(path))


def test_an_open_cassette_says_what_it_is(taped: Tape) -> None:
    """Its file is the one that is written, the last."""
    seed, full = taped("seed"), taped("full")
    with use_cassette([seed, full]) as cassette:
        assert "full" == ask()

    assert f"<OpenCassette replay {seed} {full}>" == repr(cassette)
    assert str(full) == cassette.path
    assert [str(seed), str(full)] == [each.path for each in cassette.cassettes]
    assert (httpx_cassette.Mode.REPLAY, False) == (cassette.mode, cassette.is_recording)
    assert () == cassette.unrecorded
    assert type(cassette) is OpenCassette is httpx_cassette.OpenCassette


# -- the file ------------------------------------------------------------------------------------------


def test_a_cassette_removed_while_it_is_open_answers_until_then(taped: Tape) -> None:
    """A block has the file open, and goes on; the next one misses."""
    path = taped("a")
    with use_cassette(path):
        found = [ask()]
        path.unlink()
        found.append(ask())
    with use_cassette(path), expected_miss() as miss:
        ask()

    assert (["a", "a"], 1) == (found, len(miss.errors))


def test_a_cassette_rewritten_while_it_is_open_answers_as_before(taped: Tape) -> None:
    """What took its place is not mixed with it, and answers in the next block."""
    path, other = taped("a"), taped("b")
    with use_cassette(path):
        found = [ask()]
        os.replace(other, path)
        found.append(ask())
    with use_cassette(path):
        found.append(ask())

    assert ["a", "a", "b"] == found


def test_what_another_process_appends_is_found(taped: Tape, tmp_path: Path) -> None:
    """A recording that was not there when the block was opened answers the next call."""
    path = tmp_path / "late.jsonl"
    with use_cassette(path):
        with expected_miss():
            ask()
        shutil.copy(taped("a"), path)
        assert "a" == ask()


# -- processes -----------------------------------------------------------------------------------------


def test_a_miss_ends_the_program_with_2(tmp_path: Path) -> None:
    """Also where the call is one of a library that catches everything ordinary, in a thread."""
    ended = run_program(
        tmp_path,
        """
        import threading, httpx
        def ask():
            try:
                httpx.post(URL, json=CHAT, verify=False)
            except Exception:
                print("swallowed")
        with use_cassette("a.jsonl"):
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
        print("done")
        """,
    )

    assert (2, "done\n") == ended[:2]


def test_on_miss_none_leaves_the_status_alone(tmp_path: Path) -> None:
    """The miss is raised, and the program goes on."""
    ended = run_program(
        tmp_path,
        """
        import httpx
        with use_cassette("a.jsonl", on_miss=None):
            try:
                httpx.post(URL, json=CHAT, verify=False)
            except httpx_cassette.CassetteMiss as miss:
                print(miss.cassettes)
        """,
    )

    assert (0, "('a.jsonl',)\n") == ended[:2], ended.err


@needs_fork
def test_a_forked_child_goes_on_in_the_block(taped: Tape, tmp_path: Path) -> None:
    """It replays as its parent does, and to record it wants a client of its own."""
    taped("a")
    ended = run_program(
        tmp_path,
        """
        import httpx
        from httpx_cassette.stand_in import StandInServer

        def in_child(ask):
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                try:
                    print(ask())
                except Exception as error:
                    print(str(error).replace(str(os.getppid()), "PARENT"))
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(child, 0)

        with use_cassette("a.jsonl"):
            client = httpx.Client(verify=False, trust_env=False)
            ask = lambda: said(client.post(URL, json=CHAT))
            print(ask())
            in_child(ask)
            print(ask())
        with StandInServer() as server, use_cassette("b.jsonl", mode="record") as cassette:
            url, key = server.url + "/chat/completions", {"authorization": "Bearer x"}
            def post(client, text):
                body = {**CHAT, "messages": [*CHAT["messages"], {"role": "user", "content": text}]}
                return client.post(url, json=body, headers=key).extensions["httpx_cassette"].outcome
            print(post(client, "1"))
            in_child(lambda: post(client, "2"))
            in_child(lambda: post(httpx.Client(verify=False, trust_env=False), "3"))
            print(post(client, "4"), post(client, "3"), cassette.recorded)
        """,
    )

    assert (
        "a\na\na\nrecorded\n"
        "the client of this call was used by process PARENT, from which this one was forked, and its "
        "connections are shared with it; to record, make the client in the child process\n"
        "recorded\nrecorded replayed 2\n"
    ) == ended.out, ended.err
    assert 0 == ended.status


def test_a_transport_of_another_process_is_not_recorded(
    tmp_path: Path, live: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections are shared with that process; to let calls through, nothing is asked."""
    with httpx.Client(verify=False, trust_env=False) as client:
        with use_cassette(tmp_path / "a.jsonl", mode="record"):
            client.post(URL, json=CHAT)
        parent = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: parent + 1)
        with use_cassette(tmp_path / "b.jsonl", mode="live"):
            assert "live" == said(client.post(URL, json=CHAT))
        with use_cassette(tmp_path / "b.jsonl", mode="record"):
            with pytest.raises(OptionError) as error:
                client.post(URL, json=CHAT)

    assert (
        f"the client of this call was used by process {parent}, from which this one was forked, and its "
        "connections are shared with it; to record, make the client in the child process"
    ) == str(error.value)


# -- other plugins -------------------------------------------------------------------------------------


def test_respx_answers_below_a_block(tmp_path: Path, live: respx.MockRouter) -> None:
    """``respx.mock`` is the network: outside or inside, real calls come there and are recorded once."""
    path = tmp_path / "a.jsonl"
    with use_cassette(path, mode="record") as outer:
        with respx.mock:
            respx.post(URL).mock(return_value=answer("inner"))
            first = ask()
    with use_cassette(path, mode="record"):
        second = ask()

    # Of two routers the one that was there first is asked first.
    assert ("live", "live") == (first, second)
    assert (1, 1, 1) == (live.calls.call_count, outer.recorded, len(lines(path)))


def test_pytest_httpx_answers_where_it_came_last(
    request: pytest.FixtureRequest, taped: Tape, tmp_path: Path
) -> None:
    """Opened before the fixture it is covered by it; opened after it, it is asked first, and calls it."""
    pytest.importorskip("pytest_httpx")
    with use_cassette(taped("a")) as before:
        mock = request.getfixturevalue("httpx_mock")
        mock.add_response(json=answer("mock").json(), is_reusable=True)
        found = [ask()]
    found.append(ask())
    with use_cassette(taped("b")) as replaying:
        found.append(ask())
    with use_cassette(tmp_path / "c.jsonl", mode="record") as recording:
        found.append(ask())

    assert ["mock", "mock", "b", "mock"] == found
    assert (0, 1, 1) == (before.calls, replaying.calls, recording.recorded)


VCR_REFUSED = (
    "vcrpy is on, and would record each call a second time; leave its block, "
    "or take its marker off the test, before recording with httpx_cassette"
)


def test_vcrpy_and_a_block_do_not_both_record(tmp_path: Path, taped: Tape, live: respx.MockRouter) -> None:
    """Within vcrpy a block may replay and not record; within a block vcrpy is asked alone."""
    vcr = pytest.importorskip("vcr")
    path = taped("a")
    found = []
    with vcr.use_cassette(str(tmp_path / "outer.yaml")) as tape:
        with use_cassette(path):
            found.append(ask())
        with pytest.raises(OptionError) as error:
            with use_cassette(tmp_path / "b.jsonl", mode="record"):
                pass  # pragma: no cover
        outer = len(tape)
    with use_cassette(tmp_path / "c.jsonl", mode="record") as cassette:
        with vcr.use_cassette(str(tmp_path / "inner.yaml")) as tape:
            found.append(ask())
            inner = len(tape)

    assert (["a", "live"], VCR_REFUSED) == (found, str(error.value))
    assert (0, 1, 0) == (outer, inner, cassette.calls)


def test_vcrpy_imported_within_a_block_does_not_record_twice(tmp_path: Path) -> None:
    """It takes what stands there for the library's own, and a recording block leaves the call to it."""
    pytest.importorskip("vcr")
    ended = run_program(
        tmp_path,
        """
        import asyncio, httpx
        from httpx_cassette.stand_in import StandInServer
        async def ask():
            async with httpx.AsyncClient(verify=False, trust_env=False) as client:
                await client.post(url, json=CHAT, headers=key)
        bare = httpx.HTTPTransport.handle_request
        with StandInServer() as server:
            url, key = server.url + "/chat/completions", {"authorization": "Bearer x"}
            with use_cassette("a.jsonl", mode="record") as cassette:
                import vcr
                with vcr.use_cassette("a.yaml", allow_playback_repeats=False) as tape:
                    httpx.post(url, json=CHAT, headers=key, verify=False, trust_env=False)
                    asyncio.run(ask())
                    print(cassette.calls, len(tape))
                httpx.post(url, json=CHAT, headers=key, verify=False, trust_env=False)
                print(cassette.calls, cassette.recorded)
            print(httpx.HTTPTransport.handle_request is bare)
            with vcr.use_cassette("b.yaml"):
                try:
                    use_cassette("b.jsonl", mode="record").__enter__()
                except httpx_cassette.OptionError as error:
                    print(str(error).partition(",")[0])
            print(httpx.HTTPTransport.handle_request is bare)
        """,
    )

    assert (0, "0 2\n1 1\nTrue\nvcrpy is on\nTrue\n") == ended[:2], ended.err


# -- the guard -----------------------------------------------------------------------------------------


def test_a_guard_refuses_what_goes_round_the_block(tmp_path: Path) -> None:
    """A connection of one's own stops, past an ``except Exception``, and the program ends with status 2."""
    ended = run_program(
        tmp_path,
        """
        import socket
        def connect():
            try:
                socket.create_connection(("192.0.2.1", 443), timeout=0.01)
            except httpx_cassette.NetworkRefused as error:
                print(error.host, error.port)
            except Exception as error:
                print(type(error).__name__)
        with use_cassette("a.jsonl", guard=True):
            connect()
        with use_cassette("a.jsonl", guard=True, mode="record"):
            pass
        print("done")
        """,
    )

    assert (2, "192.0.2.1 443\ndone\n") == ended[:2], ended.err


def test_new_errors_survive_pickling() -> None:
    """As those of worker processes must."""
    for error in (
        NetworkRefused("a connection to a.test was refused", {"host": "a.test", "port": None}),
        CassetteAmbiguous("two", {"cassettes": ("a", "b")}),
    ):
        again = pickle.loads(pickle.dumps(error))

        assert (type(error), str(error), vars(error)) == (type(again), str(again), vars(again))
