"""Bodies on their way to the caller: a recorded stream cut anew, a live one that is watched.

Both are read the same way by httpx and httpx2, sync and async, each of which adds its own base classes.
What is stored and when is decided by the sink; here it is done: at once in a thread, in a thread of its own
for an event loop.
"""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._errors import CassetteStop, is_stop
from ._waiting import give_way

if TYPE_CHECKING:
    from ._sink import Append, Sink

__all__ = ["RecordingStream", "ReplayStream"]

__tracebackhide__ = is_stop

#: Chunks that are still read when a stream is closed between its finish reason and its end: a chunk with the
#: usage and the marker of the end. A server that has more to say is not waited for.
DRAIN_LIMIT = 16

#: Seconds that closing waits for them.
DRAIN_SECONDS = 2.0


#: Seconds for which the reader of a replayed stream may keep the event loop. A connection would make it wait,
#: so that others have their turn, a time-out holds, and a client that has gone is noticed.
#: To give way at every chunk would cost a quarter more.
HOLD_LIMIT = 0.001


class ReplayStream:
    """A recorded stream, cut anew. Iterated twice it goes on where it was, as a connection does.

    Args:
        chunks: Makes the chunks.
    """

    def __init__(self, chunks: Callable[[], Iterator[bytes]]) -> None:
        self._make = chunks
        self._chunks: Iterator[bytes] | None = None
        self._gave_way_at = -HOLD_LIMIT

    def _open(self) -> Iterator[bytes]:
        if self._chunks is None:
            self._chunks = self._make()
        return self._chunks

    def __iter__(self) -> Iterator[bytes]:
        # Not ``yield from``: that would end the inner iterator with the outer one.
        for chunk in self._open():  # noqa: UP028
            yield chunk

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if time.perf_counter() - self._gave_way_at >= HOLD_LIMIT:
            await give_way()
            self._gave_way_at = time.perf_counter()
        for chunk in self._open():
            return chunk
        raise StopAsyncIteration

    def close(self) -> None:
        """Do nothing: there is no connection."""

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


class RecordingStream:
    """A live body that is watched while it passes; each chunk is handed on as it came.

    Iterated twice it goes on where it was.

    Args:
        live: The response of the real server.
        sink: What watches.
    """

    def __init__(self, live: Any, sink: Sink) -> None:
        self._stream = live.stream
        self._extensions = live.extensions
        self._sink = sink
        self._iterator: Any = None
        # Who waits for this call must not wait for ever when the response is lost without being closed.
        weakref.finalize(self, sink.forget).atexit = False

    def __iter__(self) -> Iterator[bytes]:
        # A generator, not ``self``: httpx2 reads with ``yield from``, which would close the connection of an
        # iterator that is left half read.
        if self._iterator is None:
            self._iterator = iter(self._stream)
        while True:
            try:
                chunk, step = self._pull()
            except BaseException as error:
                self._sink.fail(error)
                raise
            _perform(step)
            if chunk is None:
                return
            yield chunk

    def _pull(self) -> tuple[bytes | None, Append | None]:
        """Return the next chunk, ``None`` at the end, and what must be done before it is handed on."""
        self._sink.reading(True)
        try:
            for chunk in self._iterator:
                return chunk, self._sink.feed(chunk)
            return None, self._sink.end()
        finally:
            self._sink.reading(False)

    def close(self) -> None:
        """Close the connection; a stream that had finished is stored first."""
        try:
            if self._may_drain():
                with _time_limit(self._extensions):
                    self._drain()
            _perform(self._sink.close())
        except BaseException as error:
            self._sink.fail(error)
            raise
        finally:
            self._stream.close()

    def _may_drain(self) -> bool:
        """Tell whether to read what is left of a stream, or else have it dropped if it was interrupted."""
        if self._iterator is None or self._sink.is_settled or not self._sink.is_complete:
            return False
        interruption = sys.exc_info()[1]
        if interruption is None or isinstance(interruption, (Exception, GeneratorExit, CassetteStop)):
            return True
        # Cancelled, or Ctrl-C: nobody is kept waiting for a server.
        self._sink.fail(interruption)
        return False

    def _drain(self) -> None:
        for _ in range(DRAIN_LIMIT):
            try:
                chunk, step = self._pull()
            except Exception:
                return  # Of either library; the answer is complete all the same.
            _perform(step)
            if chunk is None or self._sink.is_settled:
                return

    def __aiter__(self) -> AsyncIterator[bytes]:
        if self._iterator is None:
            self._iterator = self._stream.__aiter__()
        # An iterator, not an async generator: event loops would have to finish one that is left half read.
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk, step = await self._pull_async()
        except BaseException as error:
            self._sink.fail(error)
            raise
        await _perform_async(step)
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def _pull_async(self) -> tuple[bytes | None, Append | None]:
        self._sink.reading(True)
        try:
            chunk: bytes = await self._iterator.__anext__()
        except StopAsyncIteration:
            return None, self._sink.end()
        finally:
            self._sink.reading(False)
        return chunk, self._sink.feed(chunk)

    async def aclose(self) -> None:
        """Close the connection; a stream that had finished is stored first."""
        try:
            if self._may_drain():
                import anyio

                with anyio.move_on_after(DRAIN_SECONDS):
                    await self._drain_async()
            await _perform_async(self._sink.close())
        except BaseException as error:
            self._sink.fail(error)
            raise
        finally:
            try:
                await self._finish_iterator()
            finally:
                await self._stream.aclose()

    async def _finish_iterator(self) -> None:
        """End a generator now, which an event loop would have to do later, perhaps when it is closed."""
        if isinstance(self._iterator, AsyncGenerator):
            try:
                await self._iterator.aclose()
            except RuntimeError:
                pass  # Another task reads from it in this moment, and will see the connection closed.

    async def _drain_async(self) -> None:
        for _ in range(DRAIN_LIMIT):
            try:
                chunk, step = await self._pull_async()
            except Exception:
                return
            await _perform_async(step)
            if chunk is None or self._sink.is_settled:
                return


def _perform(step: Append | None) -> None:
    if step is not None:
        step.run()


async def _perform_async(step: Append | None) -> None:
    """Store a recording in a thread, exactly once, also where the task is cancelled in this moment."""
    if step is None:
        return
    from anyio import CapacityLimiter, to_thread

    claim = threading.Lock()

    def run() -> None:
        if claim.acquire(blocking=False):
            step.run()

    try:
        # A limiter of its own: the threads that all share may be those that wait for this recording.
        await to_thread.run_sync(run, limiter=CapacityLimiter(1))
    except BaseException:
        # Cancelled, perhaps before the thread began. The answer is whole and paid for, and others wait.
        run()
        raise


@contextmanager
def _time_limit(extensions: dict[str, Any]) -> Iterator[None]:
    """Shut the connection down after a while: nothing else ends a blocking read from outside.

    Over HTTP/2 other calls share the connection; there the client's own read time-out has to do.
    """
    network = extensions.get("network_stream")
    socket = None if network is None else network.get_extra_info("socket")
    if socket is None or extensions.get("http_version") == b"HTTP/2":
        yield
        return
    alarm = threading.Timer(DRAIN_SECONDS, _shut_down, [socket])
    alarm.daemon = True
    alarm.start()
    try:
        yield
    finally:
        alarm.cancel()


def _shut_down(socket: Any) -> None:
    try:
        socket.shutdown(_BOTH_WAYS)
    except OSError:
        pass  # Closed in this moment.


#: ``socket.SHUT_RDWR``, on every platform.
_BOTH_WAYS = 2
