"""Streams on their way to the caller: recording never delays one, and stores what is whole, exactly once."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import brotli
import pytest

from httpx_cassette import CassetteWriteError, _bodies, _flight, _ledger
from httpx_cassette._bodies import ReplayStream, _perform_async, _time_limit
from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteError, CassetteStop
from httpx_cassette._sink import Append

from .colours import (
    COLOURS,
    URL,
    Body,
    Client,
    Colour,
    chat,
    delta,
    events,
    in_every_colour,
    lines,
    router,
    sse,
    tokens,
)
from .loopback import PATIENCE, Connection, serve

# Both libraries leave a generator of their own behind where a caller stops in the middle; trio says so.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator 'httpx:ResourceWarning")

DONE = b"data: [DONE]\n\n"

in_async_colours = pytest.mark.parametrize("colour", [c for c in COLOURS if c.is_async], ids=repr)


@pytest.fixture(autouse=True)
def no_flight_is_left() -> Iterator[None]:
    """Whatever happens to an answer, nobody is left waiting for it."""
    yield
    if _flight._FLIGHTS:  # pragma: no cover  # a response in a cycle of references
        gc.collect()
    assert ({}, {}) == (_flight._FLIGHTS, _flight._WAITING)


def streaming(chunks: Any, **headers: str) -> Any:
    """Return an upstream that answers every call with a stream of these chunks."""
    upstream = router()
    upstream.post(URL).mock(
        side_effect=lambda request: sse(chunks() if callable(chunks) else chunks, **headers)
    )
    return upstream


def content(path: Path) -> str:
    """Return the text of the one stream in a cassette."""
    (line,) = lines(path)
    found = [event["json"]["choices"] for event in line["response"]["script"] if "json" in event]
    return "".join(choice["delta"].get("content") or "" for choices in found for choice in choices)


# --- never delayed ------------------------------------------------------------------------------------


class Packer:
    """Encodes a stream piece by piece, each piece flushed at once.

    Args:
        encoding: ``gzip``, ``br``, or empty.
    """

    def __init__(self, encoding: str) -> None:
        self.headers = [f"content-encoding: {encoding}"] if encoding else []
        self._gzip = zlib.compressobj(wbits=zlib.MAX_WBITS | 16) if encoding == "gzip" else None
        self._brotli = brotli.Compressor() if encoding == "br" else None

    def pack(self, data: bytes) -> bytes:
        if self._gzip is not None:
            return self._gzip.compress(data) + self._gzip.flush(zlib.Z_SYNC_FLUSH)
        if self._brotli is not None:
            packed: bytes = self._brotli.process(data) + self._brotli.flush()
            return packed
        return data

    def end(self) -> bytes:
        if self._gzip is not None:
            return self._gzip.flush()
        return b"" if self._brotli is None else self._brotli.finish()  # type: ignore[no-any-return]


@pytest.mark.loopback
@pytest.mark.parametrize("encoding", ["", "gzip", "br"])
@in_every_colour
async def test_recording_never_delays_a_stream(colour: Colour, tmp_path: Path, encoding: str) -> None:
    """The server sends the next token only when the caller has the one before: it ends, so none was held."""
    text = "One two three four five"
    confirmed = threading.Semaphore(0)
    late: list[bytes] = []

    def answer(connection: Connection) -> None:
        packer = Packer(encoding)
        connection.head("text/event-stream", *packer.headers)
        for event in events(text):
            connection.chunk(packer.pack(event))
            if not confirmed.acquire(timeout=PATIENCE):  # pragma: no cover  # that is the fault
                late.append(event)
        connection.chunk(packer.end() or b"\n")
        connection.end()

    path = tmp_path / "chat.jsonl"
    seen = b""
    with serve(answer) as url:
        transport = colour.transport_class(path, mode="record")
        async with Client(colour, transport, trust_env=False) as client:
            async with client.stream(url=url) as response:
                async with client.each(response, "iter_bytes") as chunks:
                    async for chunk in chunks:
                        seen += chunk
                        confirmed.release()

    assert [] == late
    assert text == tokens(seen) == content(path)


# --- stored exactly when it is whole ------------------------------------------------------------------


@in_every_colour
async def test_a_stream_is_in_the_file_before_the_caller_has_its_end(colour: Colour, tmp_path: Path) -> None:
    """Many clients stop at ``[DONE]``, never read on, never close: the line is there all the same."""
    path = tmp_path / "chat.jsonl"
    client = colour.client(path, streaming(events("Hello there")), mode="record")
    response = await client.open()
    async with client.raw(response) as chunks:
        chunk = b""
        while chunk != DONE:
            assert not path.exists()
            chunk = await anext(chunks)

        assert "Hello there" == content(path)
        assert 1 == client.transport.stats.recorded
        assert "recorded" == response.extensions["httpx_cassette"].outcome
    assert "Hello there" == tokens(await colour.client(path).streamed())


@in_every_colour
async def test_closing_behind_the_finish_reason_reads_what_is_left(colour: Colour, tmp_path: Path) -> None:
    """The usage and the marker of the end are recorded, although the caller did not wait for them."""
    path = tmp_path / "chat.jsonl"
    usage = b'data: {"choices": [], "usage": {"total_tokens": 9}}\n\n'
    body = Body(events("Hello", ends=(usage, DONE)))
    async with colour.client(path, streaming(body), mode="record") as client:
        response = await client.open()
        async with client.raw(response) as chunks:
            async for chunk in chunks:
                if b'"stop"' in chunk:
                    break
        await client.shut(response)

    assert (4, 1) == (body.sent, body.closed)
    script = lines(path)[0]["response"]["script"]
    assert [{"total_tokens": 9}, "[DONE]"] == [script[-2]["json"]["usage"], script[-1]["text"]]


@in_every_colour
async def test_reading_what_is_left_has_a_limit(colour: Colour, tmp_path: Path) -> None:
    """A server that goes on and on is not waited for; the answer was complete."""
    path = tmp_path / "chat.jsonl"
    body = Body([*events("Hello", ends=()), *([b": keep-alive\n\n"] * 99)])
    async with colour.client(path, streaming(body), mode="record") as client:
        async with client.stream() as response, client.raw(response) as chunks:
            async for chunk in chunks:
                if b'"stop"' in chunk:
                    break

    assert 2 + _bodies.DRAIN_LIMIT == body.sent
    assert "Hello" == content(path)


@pytest.mark.parametrize("ending", ["at the end", "with an error"])
@in_every_colour
async def test_what_is_left_may_be_nothing_or_an_error(colour: Colour, tmp_path: Path, ending: str) -> None:
    """Closing does not raise what the caller did not ask for, and the complete answer is stored."""
    path = tmp_path / "chat.jsonl"
    more = [] if ending == "at the end" else [colour.library.ReadError("gone")]
    body = Body([*events("Hello", ends=()), *more])
    async with colour.client(path, streaming(body), mode="record") as client:
        response = await client.open()
        async with client.raw(response) as chunks:
            async for chunk in chunks:
                if b'"stop"' in chunk:
                    break
        await client.shut(response)

    assert (2, 1) == (body.sent, body.closed)
    assert "Hello" == content(path)


@pytest.mark.loopback
@in_every_colour
async def test_a_server_that_falls_silent_is_not_waited_for(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where reading blocks: the connection is shut from outside."""
    monkeypatch.setattr(_bodies, "DRAIN_SECONDS", 0.1)
    path = tmp_path / "chat.jsonl"

    def answer(connection: Connection) -> None:
        connection.head()
        for event in events("Hello", ends=()):
            connection.chunk(event)
        connection.wait_for_the_client()

    with serve(answer) as url:
        transport = colour.transport_class(path, mode="record")
        async with Client(colour, transport, trust_env=False, timeout=PATIENCE) as client:
            response = await client.open(url=url)
            async with client.raw(response) as chunks:
                async for chunk in chunks:
                    if b'"stop"' in chunk:
                        break
            began = time.monotonic()
            await client.shut(response)

            assert time.monotonic() - began < PATIENCE / 2
    assert "Hello" == content(path)


@in_every_colour
async def test_breaking_early_is_counted_and_told_at_closing(
    colour: Colour, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An abandoned stream is never stored as complete; the next call makes it anew."""
    path = tmp_path / "chat.jsonl"
    body = Body(events("Hello there"))
    async with colour.client(path, streaming(body), mode="record") as client:
        async with client.stream() as response, client.raw(response) as chunks:
            async for _ in chunks:
                break

        assert {"abandoned": 1} == client.transport.stats.unrecorded
        assert "live" == response.extensions["httpx_cassette"].outcome
    await client.close()

    assert (1, 1) == (body.sent, body.closed)
    assert [] == lines(path)
    assert [
        f"not recorded: POST {URL} was abandoned: the caller stopped before the end of the answer",
        "answers that were not recorded: 1 abandoned",
    ] == caplog.messages


@pytest.mark.parametrize(
    ("chunks", "outcome"),
    [
        ([delta("Hel"), delta("lo")], "truncated"),
        ([delta("Hel"), b'data: {"error": {"message": "overloaded"}}\n\n', DONE], "failed"),
        ([], "truncated"),
    ],
    ids=["cut short", "error event", "nothing"],
)
@in_every_colour
async def test_a_stream_that_did_not_succeed_reaches_the_caller_and_no_file(
    colour: Colour, tmp_path: Path, chunks: list[bytes], outcome: str
) -> None:
    """What came is handed on as it came."""
    path = tmp_path / "chat.jsonl"
    async with colour.client(path, streaming(chunks), mode="record") as client:
        assert b"".join(chunks) == await client.streamed()
        assert {outcome: 1} == client.transport.stats.unrecorded
    assert [] == lines(path)


@in_every_colour
async def test_an_error_while_reading_is_the_callers(colour: Colour, tmp_path: Path) -> None:
    """It is the very error, the connection is closed, nothing is stored, and the next call is made anew."""
    path = tmp_path / "chat.jsonl"
    error = colour.library.ReadError("reset")
    body = Body([delta("Hel"), error])
    upstream = router()
    upstream.post(URL).mock(side_effect=[sse(body), sse(events("Hello"))])
    async with colour.client(path, upstream, mode="record") as client:
        with pytest.raises(colour.library.ReadError) as caught:
            await client.streamed()

        assert error is caught.value
        assert ({"failed": 1}, 1) == (client.transport.stats.unrecorded, body.closed)
        assert "Hello" == tokens(await client.streamed())
    assert "Hello" == content(path)


@in_every_colour
async def test_a_stream_that_is_lost_without_being_closed_is_counted(colour: Colour, tmp_path: Path) -> None:
    """Old SDKs never close: what they drop is known as soon as it is gone, and told as open before."""
    path = tmp_path / "chat.jsonl"
    client = colour.client(path, streaming(events("Hello there")), mode="record")
    response = await client.open()

    assert "1 still open" == client.transport._driver.session.news()
    del response
    gc.collect()
    assert {"abandoned": 1} == client.transport.stats.unrecorded
    assert [] == lines(path)


# --- interrupted --------------------------------------------------------------------------------------


async def _forever() -> bytes:
    await anyio.sleep_forever()
    raise AssertionError  # pragma: no cover


@pytest.mark.parametrize(
    "read", [[delta("Hel")], events("Hello", ends=())], ids=["in the middle", "complete"]
)
@in_async_colours
@in_every_colour
async def test_a_cancelled_read_is_not_stored_and_nothing_hangs(
    colour: Colour, tmp_path: Path, read: list[bytes]
) -> None:
    """The task waits for the server when it is cancelled; nothing is read any more, whatever had come."""
    path = tmp_path / "chat.jsonl"
    body = Body([*read, _forever])
    client = colour.client(path, streaming(body), mode="record")
    with anyio.move_on_after(0.05) as scope:
        await client.streamed()

    assert scope.cancelled_caught
    assert ({"abandoned": 1}, 1) == (client.transport.stats.unrecorded, body.closed)
    assert [] == lines(path)


@pytest.mark.parametrize("read", [1, 2], ids=["in the middle", "complete"])
@in_async_colours
@in_every_colour
async def test_a_task_cancelled_between_two_chunks_does_not_read_on(
    colour: Colour, tmp_path: Path, read: int
) -> None:
    """The caller waits for something else when it is cancelled; nobody is kept for a server then."""
    path = tmp_path / "chat.jsonl"
    body = Body(events("Hello"))
    client = colour.client(path, streaming(body), mode="record")
    with anyio.move_on_after(0.05) as scope:
        async with client.stream() as response:
            count = 0
            async for _ in response.aiter_raw():  # pragma: no branch  # it is cancelled within
                count += 1
                if count == read:
                    await anyio.sleep_forever()

    assert scope.cancelled_caught
    assert ({"abandoned": 1}, 1, read) == (client.transport.stats.unrecorded, body.closed, body.sent)
    assert [] == lines(path)


def test_a_task_of_asyncio_cancelled_by_hand_is_not_stored(tmp_path: Path) -> None:
    """``task.cancel()`` knows no scopes: reading and pausing, in the middle and complete."""

    async def body(colour: Colour, chunks: list[Any], pauses: bool, path: Path) -> None:
        stream = Body(chunks)
        client = colour.client(path, streaming(stream), mode="record")

        async def consume() -> None:
            async with client.stream() as response:
                async for chunk in response.aiter_raw():
                    if pauses and b'"stop"' in chunk:
                        await asyncio.sleep(PATIENCE)

        task = asyncio.create_task(consume())
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert ({"abandoned": 1}, 1) == (client.transport.stats.unrecorded, stream.closed)
        assert [] == lines(path)

    for colour in COLOURS:
        if colour.backend == "asyncio":
            path = tmp_path / f"{colour}.jsonl"
            colour.run(body, colour, [delta("Hel"), _forever], False, path)
            colour.run(body, colour, [*events("Hello", ends=()), _forever], False, path)
            colour.run(body, colour, events("Hello"), True, path)


@pytest.mark.parametrize(
    ("error", "sent"),
    [(KeyboardInterrupt(), 2), (ValueError(), 3), (CassetteStop("another call"), 3), (GeneratorExit(), 3)],
    ids=repr,
)
@pytest.mark.parametrize("colour", [c for c in COLOURS if not c.is_async], ids=repr)
def test_ctrl_c_between_two_chunks_does_not_read_on(
    colour: Colour, tmp_path: Path, error: BaseException, sent: int
) -> None:
    """What interrupts the program is not kept waiting; an error in the caller's loop is no interruption."""
    path = tmp_path / "chat.jsonl"
    body = Body(events("Hello"))
    transport = colour.transport(path, streaming(body), mode="record")
    response = transport.handle_request(colour.library.Request("POST", URL, json=chat(stream=True)))
    chunks = iter(response.stream)
    next(chunks)
    next(chunks)
    with pytest.raises(type(error)):
        try:
            raise error
        finally:
            response.stream.close()

    assert (sent, 1) == (body.sent, body.closed)
    assert (sent == 3) is path.exists()


@in_every_colour
async def test_ctrl_c_while_what_is_left_is_read_leaves_nobody_waiting(
    colour: Colour, tmp_path: Path
) -> None:
    """Closing is interrupted itself: the interruption goes on, and the connection is closed."""
    body = Body([*events("Hello", ends=()), KeyboardInterrupt()])
    transport = colour.transport(tmp_path / "chat.jsonl", streaming(body), mode="record")
    request = colour.library.Request("POST", URL, json=chat(stream=True))
    if colour.is_async:
        response = await transport.handle_async_request(request)
        chunks = aiter(response.stream)
        for _ in range(2):
            await anext(chunks)
        with pytest.raises(KeyboardInterrupt):
            await response.stream.aclose()
    else:
        response = transport.handle_request(request)
        pulled = iter(response.stream)
        for _ in range(2):
            next(pulled)
        with pytest.raises(KeyboardInterrupt):
            response.stream.close()

    assert ({"abandoned": 1}, 1) == (transport.stats.unrecorded, body.closed)


# --- storing from an event loop -----------------------------------------------------------------------


@pytest.mark.anyio
async def test_storing_happens_although_the_task_is_cancelled() -> None:
    """Before the thread begins, the recording is stored here: it is whole, and others wait for it."""
    stored: list[int] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await _perform_async(Append(lambda: stored.append(threading.get_ident())))

    assert scope.cancelled_caught
    assert [threading.get_ident()] == stored


def test_storing_happens_once_when_a_task_of_asyncio_is_cancelled_by_hand() -> None:
    """The thread goes on with what it began; the task does not begin it again."""
    stored: list[int] = []
    began, may_end = threading.Event(), threading.Event()

    def store() -> None:
        began.set()
        may_end.wait(PATIENCE)
        stored.append(threading.get_ident())

    async def main() -> None:
        task = asyncio.create_task(_perform_async(Append(store)))
        await asyncio.get_running_loop().run_in_executor(None, began.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()

    asyncio.run(main())
    deadline = time.monotonic() + PATIENCE
    while not stored and time.monotonic() < deadline:  # pragma: no cover  # the thread may have been faster
        time.sleep(0.001)
    assert 1 == len(stored)
    assert threading.get_ident() not in stored


@in_async_colours
@in_every_colour
async def test_storing_does_not_wait_for_the_threads_that_all_share(colour: Colour, tmp_path: Path) -> None:
    """They may be those of synchronous callers who wait for this very recording."""
    path = tmp_path / "chat.jsonl"
    client = colour.client(path, streaming(events("Hello")), mode="record")
    limiter = anyio.to_thread.current_default_thread_limiter()
    tokens_before, limiter.total_tokens = limiter.total_tokens, 1
    release = threading.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, release.wait, PATIENCE)
        while not limiter.borrowed_tokens:
            await anyio.sleep(0.001)
        with anyio.fail_after(PATIENCE / 2):
            assert "Hello" == tokens(await client.streamed())
        release.set()
    limiter.total_tokens = tokens_before
    assert "Hello" == content(path)


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
@in_every_colour
async def test_an_answer_that_cannot_be_stored_is_in_the_error(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stream: bool
) -> None:
    """What stops the call carries the paid answer and is in the ledger; the connection is closed."""

    def refuse(*arguments: object, **given: object) -> None:
        raise CassetteError("the disk is full")

    monkeypatch.setattr(Cassette, "append", refuse)
    body = Body(events("Hello")) if is_stream else Body([b'{"choices": [{"message": {"content": "Hi."}}]}'])
    upstream = router()
    content_type = "text/event-stream" if is_stream else "application/json"
    upstream.post(URL).mock(return_value=sse(body, content_type))
    async with colour.client(tmp_path / "chat.jsonl", upstream, mode="record") as client:
        with pytest.raises(CassetteWriteError) as caught:
            await client.streamed(chat(stream=is_stream))

        assert {"failed": 1} == client.transport.stats.unrecorded
    assert (200, b"".join(body._chunks)) == (caught.value.status, caught.value.content)
    assert (("content-type", content_type),) == caught.value.headers
    assert body.closed
    assert ["CassetteWriteError"] == [entry.kind for entry in _ledger.entries()]


# --- read twice ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["record", "replay"])
@in_every_colour
async def test_a_stream_that_is_iterated_twice_goes_on(colour: Colour, tmp_path: Path, mode: str) -> None:
    """The openai SDK does so to read what is left; and reading on behind the end gives nothing."""
    path = tmp_path / "chat.jsonl"
    if mode == "replay":
        await colour.client(path, streaming(events("Hello there")), mode="record").streamed()
    transport = colour.transport(
        path, streaming(events("Hello there")) if mode == "record" else None, mode=mode, chunk_size=5
    )
    request = colour.library.Request("POST", URL, json=chat(stream=True))
    passes: list[list[bytes]] = []
    if colour.is_async:
        response = await transport.handle_async_request(request)
        for stops in (True, False, False):
            passes.append([])
            async for chunk in response.stream:
                passes[-1].append(chunk)
                if stops:
                    break
        await response.stream.aclose()
        await response.stream.aclose()
    else:
        response = transport.handle_request(request)
        for stops in (True, False, False):
            passes.append([])
            for chunk in response.stream:
                passes[-1].append(chunk)
                if stops:
                    break
        response.stream.close()
        response.stream.close()

    assert [1, True, 0] == [len(passes[0]), len(passes[1]) > 1, len(passes[2])]
    assert "Hello there" == tokens(b"".join(passes[0] + passes[1]))
    assert 1 == len(lines(path))


@pytest.mark.parametrize("colour", [c for c in COLOURS if c.backend == "asyncio"], ids=repr)
@in_every_colour
async def test_closing_while_another_task_reads_is_no_error(colour: Colour, tmp_path: Path) -> None:
    """The connection is closed under it, as it would be without a cassette."""
    body = Body([delta("Hel"), _forever])
    transport = colour.transport(tmp_path / "chat.jsonl", streaming(body), mode="record")
    response = await transport.handle_async_request(
        colour.library.Request("POST", URL, json=chat(stream=True))
    )
    chunks = aiter(response.stream)
    await anext(chunks)
    reading = asyncio.create_task(anext(chunks))
    await asyncio.sleep(0)
    await response.stream.aclose()

    assert ({"abandoned": 1}, 1) == (transport.stats.unrecorded, body.closed)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading


def test_an_outer_generator_does_not_end_a_replayed_stream() -> None:
    """``yield from`` would close the inner one with it."""
    stream = ReplayStream(lambda: iter([b"1", b"2", b"3"]))

    def outer() -> Iterator[bytes]:
        yield from stream

    first = outer()
    assert b"1" == next(first)
    first.close()
    assert [b"2", b"3"] == list(stream)


@in_async_colours
@in_every_colour
async def test_a_replayed_stream_gives_way_to_other_tasks(colour: Colour, tmp_path: Path) -> None:
    """Whoever works on each chunk for a while does not keep the event loop to the end of the stream."""
    path = tmp_path / "chat.jsonl"
    await colour.client(path, streaming(events("Hello there")), mode="record").streamed()
    client, turns = colour.client(path, chunk_size=1), []

    async def other() -> None:
        while True:
            turns.append(len(chunks))
            await anyio.sleep(0)

    chunks: list[bytes] = []
    async with anyio.create_task_group() as group:
        group.start_soon(other)
        async with client.stream() as response:
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
                time.sleep(2 * _bodies.HOLD_LIMIT)
        group.cancel_scope.cancel()

    assert set() < set(turns) - {0, len(chunks)}


@in_async_colours
@in_every_colour
async def test_who_reads_a_replayed_stream_may_be_cancelled(colour: Colour, tmp_path: Path) -> None:
    """A time-out holds within it, as it would with a connection."""
    path = tmp_path / "chat.jsonl"
    await colour.client(path, streaming(events("Hello there")), mode="record").streamed()
    client = colour.client(path, chunk_size=1)
    async with client.stream() as response:
        with anyio.move_on_after(0) as scope:
            async for _ in response.aiter_raw():
                pass  # pragma: no cover  # it is cancelled before the first

    assert scope.cancelled_caught


# --- the time limit of a blocking read ----------------------------------------------------------------


class _Network:
    def __init__(self, socket: Any) -> None:
        self.socket = socket

    def get_extra_info(self, name: str) -> Any:
        assert name == "socket"
        return self.socket


class _Socket:
    def __init__(self) -> None:
        self.was_shut = threading.Event()

    def shutdown(self, how: int) -> None:
        self.was_shut.set()
        raise OSError("closed in this moment")


@pytest.mark.parametrize(
    ("version", "is_shut"), [(b"HTTP/1.1", True), (b"HTTP/2", False)], ids=["HTTP/1.1", "HTTP/2"]
)
def test_a_connection_is_shut_unless_others_share_it(
    version: bytes, is_shut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP/2 other calls are under way on it."""
    monkeypatch.setattr(_bodies, "DRAIN_SECONDS", 0.01)
    socket = _Socket()
    with _time_limit({"network_stream": _Network(socket), "http_version": version}):
        assert is_shut is socket.was_shut.wait(PATIENCE if is_shut else 0.05)
    with _time_limit({}):
        pass
    with _time_limit({"network_stream": _Network(None)}):
        pass
