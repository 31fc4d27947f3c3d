"""Serve the calls of one transport, sync and async, for either library. Decides nothing.

What is decided is a generator of steps, in ``_flow``; here its steps are taken, and what it returns becomes
a response.
"""

from __future__ import annotations

import logging
import os
import threading
from contextvars import ContextVar
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ._answer import Forwarded, Replayed
from ._call import Call, LiveHead
from ._errors import OptionError, WrongClientError, is_stop
from ._flight import Owner
from ._flow import Forward, exchange, key_of, read, recall
from ._mode import Mode
from ._process import LOADING
from ._session import Session
from ._settings import read_settings
from ._waiting import current_task, running_loop, wait, wait_async

if TYPE_CHECKING:
    from ._explain import Explanation
    from ._library import Library

__all__ = ["FORWARDING", "Driver"]

__tracebackhide__ = is_stop

log = logging.getLogger("httpx_cassette")


#: Set while a transport makes a real call: the transports of the library below it are not to be answered from
#: a cassette once more, and their connections are meant.
FORWARDING: ContextVar[bool] = ContextVar("httpx_cassette_forwarding", default=False)


class Driver:
    """What one transport is made of, whatever its library.

    Args:
        library: Whose client it serves.
        session: The options, and what is remembered between calls.
        next_transport: What real calls go through; the library's own transport by default.
    """

    @classmethod
    def of(cls, library: Library, cassette: Any, options: dict[str, Any]) -> Driver:
        """Return the driver of a transport.

        Args:
            library: Whose client it serves.
            cassette: The cassettes, as the transport was given them.
            options: The options that it was given, by name.

        Raises:
            OptionError: An option does not exist or is not understood.
            CassetteError: The cassette is not understood.
            CassetteReadOnly: Recording was asked for, and nothing can be written.
        """
        next_transport = options.pop("next_transport", None)
        return cls(library, Session(read_settings(cassette, options)), next_transport)

    def __init__(self, library: Library, session: Session, next_transport: Any = None) -> None:
        self._library = library
        self._next = next_transport
        self._check_next()
        self.settings = session.settings
        self.session = session
        self._sync_inner: Any = self._next
        self._async_inner: Any = self._next
        self._async_loop: Any = None
        #: The process that makes the real calls, once one was made.
        self._caller = 0
        if self.settings.mode in (Mode.RECORD, Mode.RERECORD):
            # Now, not with the first call, which is to be made without delay.
            with LOADING:
                from . import _sink, _tripwire  # noqa: F401

    def fingerprint(self, request: Any) -> str:
        """Return the key of a request, 64 hex digits."""
        settings = self.settings
        return key_of(*read(_call_of(request, _read_here(request)), settings), settings).fingerprint

    def explain(self, request: Any) -> Explanation:
        """Return how the key of a request comes about."""
        with LOADING:
            from ._explain import explain  # Late: a program that only replays never asks.

        return explain(_call_of(request, _read_here(request)), self.settings)

    # -- sync --------------------------------------------------------------------------------------

    def serve(self, request: Any, through: Any = None) -> Any:
        """Answer a request of a sync client.

        Args:
            request: The request.
            through: What a real call goes through, rather than what was given or the library's own.
        """
        self._check_client(request)
        call = _call_of(request, _read_loaded(request) if self.settings.mode is Mode.LIVE else request.read())
        at_hand = recall(call, self.session)
        if at_hand is not None:
            return self._respond(at_hand, None)
        owner = Owner(threading.get_ident(), 0)
        flow = exchange(call, self.session, owner)
        live: Any = None
        outcome: Any = None
        answer: Replayed | Forwarded
        try:
            step = flow.send(None)
            while True:
                try:
                    if isinstance(step, Forward):
                        inner = self._inner() if through is None else through
                        before = FORWARDING.get()
                        FORWARDING.set(not self._is_application(inner))
                        try:
                            live = self._check_answer(inner.handle_request(request))
                        finally:
                            # Not by token: a coroutine that nobody finished is closed in another context.
                            FORWARDING.set(before)
                        outcome = _head_of(live)
                    else:
                        wait(step.flight, owner)
                        outcome = None
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as done:
            answer = done.value
        except BaseException:
            if live is not None:
                live.close()
            raise
        return self._respond(answer, live)

    def _inner(self) -> Any:
        with self.session.opening:
            self._enter_process()
            if self._sync_inner is None:
                with LOADING:  # httpx imports what it connects with.
                    self._sync_inner = (
                        self._library.module.HTTPTransport() if self._next is None else self._next
                    )
            inner = self._sync_inner
        if not hasattr(inner, "handle_request"):
            raise OptionError(
                f"next_transport={inner!r} serves AsyncClient only, and a Client made this call"
            )
        return inner

    def close(self) -> None:
        """Close the connections, and say what was not recorded. Closing twice does nothing."""
        inner, self._sync_inner = self._sync_inner, None
        self._report()
        if hasattr(inner, "close"):
            inner.close()

    # -- async -------------------------------------------------------------------------------------

    async def serve_async(self, request: Any, through: Any = None) -> Any:
        """Answer a request of an async client.

        Args:
            request: The request.
            through: As for :meth:`serve`.
        """
        self._check_client(request)
        is_live = self.settings.mode is Mode.LIVE
        call = _call_of(request, _read_loaded(request) if is_live else await _read_async(request))
        at_hand = recall(call, self.session)
        if at_hand is not None:
            return self._respond(at_hand, None)
        owner = Owner(threading.get_ident(), current_task())
        flow = exchange(call, self.session, owner)
        live: Any = None
        outcome: Any = None
        answer: Replayed | Forwarded
        try:
            step = flow.send(None)
            while True:
                try:
                    if isinstance(step, Forward):
                        inner = self._inner_async() if through is None else through
                        before = FORWARDING.get()
                        FORWARDING.set(not self._is_application(inner))
                        try:
                            live = self._check_answer(await inner.handle_async_request(request))
                        finally:
                            # Not by token: a coroutine that nobody finished is closed in another context.
                            FORWARDING.set(before)
                        outcome = _head_of(live)
                    else:
                        await wait_async(step.flight, owner)
                        outcome = None
                except BaseException as error:
                    step = flow.throw(error)
                else:
                    step = flow.send(outcome)
        except StopIteration as done:
            answer = done.value
        except BaseException:
            if live is not None:
                await live.aclose()
            raise
        return self._respond(answer, live)

    def _inner_async(self) -> Any:
        # Connections belong to the loop that opened them: under a second ``asyncio.run`` those of the first
        # are dead, and the pool would not know.
        loop = running_loop() if self._next is None else None
        with self.session.opening:
            self._enter_process()
            if self._next is not None:
                self._async_inner = self._next
            elif self._async_inner is None or self._async_loop is not loop:
                with LOADING:
                    self._async_inner, self._async_loop = self._library.module.AsyncHTTPTransport(), loop
            inner = self._async_inner
        if not hasattr(inner, "handle_async_request"):
            raise OptionError(
                f"next_transport={inner!r} serves Client only, and an AsyncClient made this call"
            )
        return inner

    async def aclose(self) -> None:
        """Close the connections, and say what was not recorded. Closing twice does nothing."""
        inner, self._async_inner = self._async_inner, None
        loop, self._async_loop = self._async_loop, None
        self._report()
        if hasattr(inner, "aclose") and (self._next is not None or loop is running_loop()):
            await inner.aclose()

    def _is_application(self, inner: Any) -> bool:
        """Tell whether a real call is answered by an application here, which may make calls of its own."""
        library = self._library.module
        return isinstance(inner, (library.ASGITransport, library.WSGITransport))

    # -- both --------------------------------------------------------------------------------------

    def _enter_process(self) -> None:
        """Leave the connections of the process that this one was forked from to that process.

        Two processes on one socket read each other's answers, and the wrong one would be stored for ever.

        Raises:
            OptionError: They are those of ``next_transport``, for which there is no other.
        """
        process, caller = os.getpid(), self._caller
        self._caller = process
        if caller in (0, process):
            return
        library = self._library.module
        if isinstance(self._next, (library.HTTPTransport, library.AsyncHTTPTransport)):
            self._caller = caller  # Said again at the next call.
            raise OptionError(
                f"next_transport={self._next!r} was used by process {caller}, from which this one was "
                "forked; make client and transport in the child process"
            )
        # Not closed: that would end them for both.
        self._sync_inner = self._async_inner = self._next

    def _check_client(self, request: Any) -> None:
        if not isinstance(request, self._library.module.Request):
            used = type(request).__module__.partition(".")[0]
            raise WrongClientError(
                f"this CassetteTransport serves {self._library.name}, and a client of {used} was given it; "
                f"write: {_IMPORT_LINES.get(used, self._library.import_line)}"
            )

    def _check_next(self) -> None:
        """Refuse a transport of the other library: its responses are none for this client."""
        roots = {base.__module__.partition(".")[0] for base in type(self._next).__mro__}
        own = self._library.module.Request.__module__.partition(".")[0]
        for other in sorted(roots & {"httpx", "httpx2"} - {own}):
            raise WrongClientError(
                f"next_transport={self._next!r} is a transport of {other}, and this CassetteTransport serves "
                f"{self._library.name}; write: {_IMPORT_LINES[other]}"
            )

    def _check_answer(self, live: Any) -> Any:
        if not isinstance(live, self._library.module.Response):
            raise WrongClientError(
                f"next_transport={self._next!r} answered with {live!r}, which is no response of "
                f"{self._library.name}"
            )
        return live

    def _respond(self, answer: Replayed | Forwarded, live: Any) -> Any:
        library = self._library
        if isinstance(answer, Replayed):
            extensions = {"http_version": b"HTTP/1.1", "httpx_cassette": answer.served}
            if answer.chunks is not None:
                stream = library.replay_stream(answer.chunks)
                return library.module.Response(
                    answer.status, headers=answer.headers, stream=stream, extensions=extensions
                )
            response = library.module.Response(
                answer.status,
                headers=answer.headers,
                stream=library.module.ByteStream(answer.content),
                extensions=extensions,
            )
            # As if it had been read, which it would be next: a fifth of what the client spends on a call. A
            # library that does not know this attribute reads the stream; both give the same.
            response._content = answer.content
            response.elapsed = _AT_ONCE
            return response
        extensions = {**live.extensions, "httpx_cassette": answer.served}
        if answer.sink is None:
            live.extensions = extensions
            return live
        return library.module.Response(
            live.status_code,
            headers=live.headers.raw,
            stream=library.recording_stream(live, answer.sink),
            extensions=extensions,
        )

    def _report(self) -> None:
        news = self.session.news()
        if news is not None:
            log.warning("answers that were not recorded: %s", news)


_AT_ONCE = timedelta(0)

_IMPORT_LINES = {
    "httpx": "from httpx_cassette import CassetteTransport",
    "httpx2": "from httpx_cassette.httpx2 import CassetteTransport",
}


def _call_of(request: Any, body: bytes) -> Call:
    return Call(request.method, str(request.url), tuple(request.headers.raw), body)


def _read_here(request: Any) -> bytes:
    """Return the body of a request that is not being sent."""
    try:
        body: bytes = request.read()
    except AssertionError as error:  # Of either library, bare: a stream that only an event loop can read.
        raise OptionError("the body is an async stream; first: await request.aread()") from error
    return body


def _read_loaded(request: Any) -> bytes:
    """Return the body where it is at hand; a stream is left to the one who sends it."""
    try:
        content: bytes = request.content
    except Exception:  # RequestNotRead, of either library: a stream, such as multipart.
        content = b""
    return content


async def _read_async(request: Any) -> bytes:
    try:
        content: bytes = request.content
    except Exception:
        content = await request.aread()
    return content


def _head_of(live: Any) -> LiveHead:
    return LiveHead(live.status_code, tuple(live.headers.raw))
