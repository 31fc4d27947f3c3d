"""Serve a call to httpx or httpx2, sync or async. Decides nothing.

The two libraries are unrelated class trees of one shape, so what serves them is written once, against that
shape, and each library adds a class that derives from its own two base transports and from nothing of the
other: ``anthropic.DefaultHttpxClient`` refuses a transport with any httpx ancestor.
``Any`` stays in this module: it is where the two libraries meet.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

import httpx

from . import _ledger
from ._answer import Forwarded, Replayed, Served
from ._call import Call, Json
from ._errors import OptionError, WrongClientError
from ._explain import Explanation, explain
from ._flight import Flight, Owner
from ._flow import Forward, Session, Stats, exchange, key_of, read
from ._mode import Mode
from ._settings import read_settings
from ._sink import Append, LiveHead, Sink

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._cassette import Cassette
    from ._errors import CassetteMiss
    from ._fingerprint import KeyPolicy
    from ._redact import Redaction
    from ._settings import Matcher, Source

__all__ = ["CassetteTransport", "Options"]

log = logging.getLogger("httpx_cassette")

#: Seconds after which a call no longer waits for an identical one: the longest time-out of an SDK.
WAIT_LIMIT = 600.0

#: Chunks that are still read when a stream is closed between its finish reason and its end: a chunk with the
#: usage and the marker of the end. A server that has more to say is not waited for.
DRAIN_LIMIT = 16

#: Seconds that an event loop waits for them.
DRAIN_SECONDS = 2.0


class Options(TypedDict, total=False):
    """The options of a transport; ``[tool.httpx_cassette]`` of pyproject.toml sets them for a project."""

    mode: Mode | str | None
    next_transport: Any
    require_system: bool | str | Callable[[Call], bool]
    prompt_files: Any
    key_policy: KeyPolicy | dict[str, Any] | None
    redact: bool | Redaction | dict[str, Any]
    passthrough: Matcher | Sequence[Matcher]
    ignore: Matcher | Sequence[Matcher] | None
    samples: int
    record_statuses: Sequence[int | str] | int | str | None
    max_calls: int | None
    chunk_size: int
    wire_chunk_size: int | None
    noise: bool
    on_miss: Callable[[CassetteMiss], object] | str | None
    fsync: bool


class Library(NamedTuple):
    """One of the two client libraries.

    Args:
        name: Its import name.
        module: The module itself.
        replay_stream: The class of a replayed stream.
        recording_stream: The class of a stream that is being recorded.
        import_line: What a user writes to import the transport for it.
    """

    name: str
    module: Any
    replay_stream: type[ReplayStream]
    recording_stream: type[RecordingStream]
    import_line: str


class Serving:
    """The transport, but for its library.

    Args:
        cassette: A path, a :class:`Cassette` to share, or a list of them: all are looked up, the last is written.
        mode: ``replay`` (the default), ``record``, ``rerecord`` or ``live``. ``HTTPX_CASSETTE_MODE=replay`` wins over
            it; other values of that variable apply where no mode is given.
        next_transport: What real calls go through; the library's own transport by default.
        require_system: ``True`` refuses a chat call whose first message is not a system prompt, ``"anywhere"``
            accepts it at any position, ``False`` accepts any call; or a callable on the call.
        prompt_files: Files whose bytes enter the key, read at each call: a mapping of names to paths, or paths.
        key_policy: What else enters the key, or does not: a :class:`KeyPolicy`.
        redact: What must not reach the file besides credentials: a :class:`Redaction`.
        passthrough: Hosts, URL prefixes or a predicate on the call: really called in every mode, never stored.
        ignore: The same for calls that are answered 404 here and never stored. Two known probes always are.
        samples: How many answers to keep for one fingerprint; replayed in order, the last repeats.
        record_statuses: Which status codes are stored, such as ``(200, "4xx")``; 2xx and 3xx by default.
        max_calls: A run that would make one more real call stops. ``HTTPX_CASSETTE_MAX_CALLS`` sets it too.
        chunk_size: Characters of text in each delta of a replayed stream.
        wire_chunk_size: Bytes in each chunk of a replayed stream; ``None`` gives one event a chunk.
        noise: Adds what real servers add and parsers must bear: comments, keep-alives, CRLF.
        on_miss: Called with the :class:`CassetteMiss` before it is raised. By default a miss makes the process
            exit with status 2, whatever becomes of the error; with ``None`` it does not.
        fsync: Whether a recording is durable before the caller sees the end of the answer.

    Raises:
        OptionError: An option does not exist or cannot be meant.
        CassetteError: The cassette cannot be meant.
        CassetteReadOnly: Recording was asked for, and nothing can be written.
    """

    _library: ClassVar[Library]

    def __init__(
        self,
        cassette: Source | Sequence[Source],
        **options: Unpack[Options],
    ) -> None:
        given: dict[str, Any] = dict(options)
        self._next = given.pop("next_transport", None)
        self._session = Session(read_settings(cassette, given))
        self._sync_inner: Any = None
        self._async_inner: Any = None
        _ledger.arm()

    def __repr__(self) -> str:
        paths = ", ".join(cassette.path for cassette in self._session.settings.shelf.cassettes)
        return f"<{self._library.import_line.rpartition(' ')[2]} {self.mode.value} {paths}>"

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._session.settings.mode

    @property
    def stats(self) -> Stats:
        """What this transport has done so far."""
        return self._session.stats

    @property
    def cassettes(self) -> tuple[Cassette, ...]:
        """The cassettes that are looked up; the last is written."""
        return self._session.settings.shelf.cassettes

    def fingerprint(self, request: Any) -> str:
        """Return the key of a request, 64 hex digits; nothing is sent.

        Args:
            request: A request of either library, as ``client.build_request`` makes it.
        """
        settings = self._session.settings
        return key_of(*read(_call_of(request, request.read()), settings), settings).fingerprint

    def explain(self, request: Any) -> Explanation:
        """Return how the key of a request comes about: the key document, and what each rule changed.

        Args:
            request: A request of either library.
        """
        return explain(_call_of(request, request.read()), self._session.settings)

    # -- sync --------------------------------------------------------------------------------------

    def _serve(self, request: Any) -> Any:
        self._check_client(request)
        call = _call_of(request, b"" if self.mode is Mode.LIVE else request.read())
        owner = Owner(threading.get_ident(), 0)
        flow = exchange(call, self._session, owner)
        live: Any = None
        outcome: Any = None
        try:
            while True:
                step = flow.send(outcome)
                if isinstance(step, Forward):
                    try:
                        live = self._inner().handle_request(request)
                    except BaseException as error:
                        flow.throw(error)
                        raise
                    outcome = _head_of(live)
                else:
                    _wait(step.flight, owner)
                    outcome = None
        except StopIteration as done:
            return self._respond(done.value, live)

    def _inner(self) -> Any:
        if self._sync_inner is None:
            self._sync_inner = self._next or self._library.module.HTTPTransport()
            if not hasattr(self._sync_inner, "handle_request"):
                raise OptionError(f"next_transport={self._next!r} serves AsyncClient only, and a Client made this call")
        return self._sync_inner

    def close(self) -> None:
        """Close the connections, and say what was not recorded. Closing twice does nothing."""
        inner, self._sync_inner = self._sync_inner, None
        self._report()
        if inner is not None:
            inner.close()

    # -- async -------------------------------------------------------------------------------------

    async def _serve_async(self, request: Any) -> Any:
        self._check_client(request)
        call = _call_of(request, b"" if self.mode is Mode.LIVE else await _read_async(request))
        owner = Owner(threading.get_ident(), _current_task())
        flow = exchange(call, self._session, owner)
        live: Any = None
        outcome: Any = None
        try:
            while True:
                step = flow.send(outcome)
                if isinstance(step, Forward):
                    try:
                        live = await self._inner_async().handle_async_request(request)
                    except BaseException as error:
                        flow.throw(error)
                        raise
                    outcome = _head_of(live)
                else:
                    try:
                        await _wait_async(step.flight, owner)
                    except BaseException as error:
                        flow.throw(error)
                        raise
                    outcome = None
        except StopIteration as done:
            return self._respond(done.value, live)

    def _inner_async(self) -> Any:
        if self._async_inner is None:
            self._async_inner = self._next or self._library.module.AsyncHTTPTransport()
            if not hasattr(self._async_inner, "handle_async_request"):
                raise OptionError(f"next_transport={self._next!r} serves Client only, and an AsyncClient made this call")
        return self._async_inner

    async def aclose(self) -> None:
        """Close the connections, and say what was not recorded. Closing twice does nothing."""
        inner, self._async_inner = self._async_inner, None
        self._report()
        if inner is not None:
            await inner.aclose()

    # -- both --------------------------------------------------------------------------------------

    def _check_client(self, request: Any) -> None:
        if not isinstance(request, self._library.module.Request):
            used = type(request).__module__.partition(".")[0]
            raise WrongClientError(
                f"this CassetteTransport serves {self._library.name}, and a client of {used} was given it; "
                f"write: {_IMPORT_LINES.get(used, self._library.import_line)}"
            )

    def _respond(self, answer: Replayed | Forwarded, live: Any) -> Any:
        library = self._library
        if isinstance(answer, Replayed):
            stream = library.module.ByteStream(answer.content) if answer.chunks is None else library.replay_stream(answer.chunks)
            extensions = {"http_version": b"HTTP/1.1", "httpx_cassette": answer.served}
            return library.module.Response(answer.status, headers=answer.headers, stream=stream, extensions=extensions)
        if answer.sink is None:
            live.extensions["httpx_cassette"] = answer.served
            return live
        return library.module.Response(
            live.status_code,
            headers=live.headers.raw,
            stream=library.recording_stream(live, answer.sink),
            extensions={**live.extensions, "httpx_cassette": answer.served},
        )

    def _report(self) -> None:
        unrecorded = self._session.stats.unrecorded
        if unrecorded and self._session.is_first_look("the report at closing"):
            listed = ", ".join(f"{count} {reason}" for reason, count in sorted(unrecorded.items()))
            log.warning("answers that were not recorded: %s", listed)


_IMPORT_LINES = {
    "httpx": "from httpx_cassette import CassetteTransport",
    "httpx2": "from httpx_cassette.httpx2 import CassetteTransport",
}


def _call_of(request: Any, body: bytes) -> Call:
    return Call(request.method, str(request.url), tuple(request.headers.raw), body)


async def _read_async(request: Any) -> bytes:
    try:
        content: bytes = request.content
    except Exception:  # RequestNotRead, of either library: a stream, such as multipart.
        content = await request.aread()
    return content


def _head_of(live: Any) -> LiveHead:
    return LiveHead(live.status_code, tuple(live.headers.raw))


# -- waiting for an identical call ---------------------------------------------------------------------


def _wait(flight: Flight, owner: Owner) -> None:
    over = threading.Event()
    flight.wait(owner, over.set)
    try:
        if not over.wait(WAIT_LIMIT):
            _give_up(flight)
    finally:
        flight.stop_waiting(owner)


async def _wait_async(flight: Flight, owner: Owner) -> None:
    import anyio

    over, wake = _thread_safe_event()
    flight.wait(owner, wake)
    try:
        with anyio.move_on_after(WAIT_LIMIT) as scope:
            await over.wait()
        if scope.cancelled_caught:
            _give_up(flight)
    finally:
        flight.stop_waiting(owner)


def _give_up(flight: Flight) -> None:
    log.warning("an identical call has been under way for %d seconds; making another", WAIT_LIMIT)
    flight.land()


def _in_trio() -> bool:
    trio = sys.modules.get("trio")
    return trio is not None and trio.lowlevel.in_trio_run()


def _current_task() -> int:
    if _in_trio():
        return id(sys.modules["trio"].lowlevel.current_task())
    import asyncio  # Late: it costs more than all of this package.

    task = asyncio.current_task()
    return id(task) if task is not None else -1


def _thread_safe_event() -> tuple[Any, Callable[[], object]]:
    """Return an event of the running loop, and what sets it from any thread."""
    if _in_trio():
        trio = sys.modules["trio"]
        event, token = trio.Event(), trio.lowlevel.current_trio_token()
        return event, lambda: _quietly(token.run_sync_soon, event.set)
    import asyncio

    loop, waiter = asyncio.get_running_loop(), asyncio.Event()
    return waiter, lambda: _quietly(loop.call_soon_threadsafe, waiter.set)


def _quietly(call: Callable[..., object], argument: Any) -> None:
    try:
        call(argument)
    except RuntimeError:
        pass  # The loop of the waiter is closed, or its run over: nobody waits any more.


# -- streams -------------------------------------------------------------------------------------------


class ReplayStream:
    """A recorded stream, cut anew. Iterated twice it goes on where it was, as a connection does.

    Args:
        chunks: Makes the chunks.
    """

    def __init__(self, chunks: Callable[[], Iterator[bytes]]) -> None:
        self._make = chunks
        self._chunks: Iterator[bytes] | None = None

    def _open(self) -> Iterator[bytes]:
        if self._chunks is None:
            self._chunks = self._make()
        return self._chunks

    def __iter__(self) -> Iterator[bytes]:
        # Not ``yield from``: that would end the inner iterator with the outer one.
        for chunk in self._open():  # noqa: UP028
            yield chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._open():
            yield chunk

    def close(self) -> None:
        """Do nothing: there is no connection."""

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


class RecordingStream:
    """A live body that is watched while it passes; each chunk is handed on as it came.

    Args:
        live: The response of the real server.
        sink: What watches.
    """

    def __init__(self, live: Any, sink: Sink) -> None:
        self._stream = live.stream
        self._sink = sink
        self._iterator: Any = None
        self._is_cancelled = False
        # Who waits for this call must not wait for ever when the response is lost without being closed.
        weakref.finalize(self, sink.forget).atexit = False

    def __iter__(self) -> Iterator[bytes]:
        if self._iterator is None:
            self._iterator = iter(self._stream)
        while (chunk := self._next_chunk()) is not None:
            yield chunk

    def _next_chunk(self) -> bytes | None:
        """Return the next chunk once what it completes is stored, or ``None`` at the end."""
        try:
            chunk: bytes = next(self._iterator)
        except StopIteration:
            _perform(self._sink.end())
            return None
        except BaseException as error:
            self._sink.fail(error)
            raise
        _perform(self._sink.feed(chunk))
        return chunk

    def close(self) -> None:
        """Close the connection; a stream that had finished is stored first."""
        try:
            if self._may_drain():
                for _ in range(DRAIN_LIMIT):
                    if self._sink.is_settled or self._next_chunk() is None:
                        break
            _perform(self._sink.close())
        finally:
            self._stream.close()

    def _may_drain(self) -> bool:
        return self._iterator is not None and self._sink.is_complete and not self._sink.is_settled and not self._is_cancelled

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._iterator is None:
            self._iterator = self._stream.__aiter__()
        while (chunk := await self._next_chunk_async()) is not None:
            yield chunk

    async def _next_chunk_async(self) -> bytes | None:
        try:
            chunk: bytes = await self._iterator.__anext__()
        except StopAsyncIteration:
            await _perform_async(self._sink.end())
            return None
        except BaseException as error:
            # CancelledError above all: a cancelled task must not be kept waiting for a server.
            self._is_cancelled = True
            self._sink.fail(error)
            raise
        await _perform_async(self._sink.feed(chunk))
        return chunk

    async def aclose(self) -> None:
        """Close the connection; a stream that had finished is stored first."""
        try:
            if self._may_drain():
                await self._drain_async()
            await _perform_async(self._sink.close())
        finally:
            await self._stream.aclose()

    async def _drain_async(self) -> None:
        import anyio

        with anyio.move_on_after(DRAIN_SECONDS):
            for _ in range(DRAIN_LIMIT):
                if self._sink.is_settled or await self._next_chunk_async() is None:
                    return


def _perform(step: Append | None) -> None:
    if step is not None:
        step.run()


async def _perform_async(step: Append | None) -> None:
    if step is not None:
        from anyio import to_thread

        await to_thread.run_sync(step.run)


# -- httpx ---------------------------------------------------------------------------------------------


class _HttpxReplayStream(ReplayStream, httpx.SyncByteStream, httpx.AsyncByteStream):
    pass


class _HttpxRecordingStream(RecordingStream, httpx.SyncByteStream, httpx.AsyncByteStream):
    pass


class CassetteTransport(Serving, httpx.BaseTransport, httpx.AsyncBaseTransport):
    __doc__ = "Record and replay for ``httpx.Client`` and ``httpx.AsyncClient``.\n\n" + (Serving.__doc__ or "").partition("\n\n")[2]

    _library = Library(
        "httpx", httpx, _HttpxReplayStream, _HttpxRecordingStream, "from httpx_cassette import CassetteTransport"
    )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx.Response = self._serve(request)
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx.Response = await self._serve_async(request)
        return response


# At import, not at the first transport: a program whose workers alone build clients must learn of their misses
# too. It sets one variable and one attribute of ``sys``; no hook is installed before something missed.
_ledger.arm()
