"""Serve a call to httpx or httpx2, sync or async. Decides nothing.

The two libraries are unrelated class trees of one shape, so what serves them is written once, against that
shape, and each library adds a class that derives from its own two base transports and from nothing of the
other: ``anthropic.DefaultHttpxClient`` refuses a transport with any httpx ancestor.
Objects of either library are ``Any`` here and in the modules of streams and waiting: it is where they meet.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypedDict

import httpx

from . import _ledger
from ._answer import Forwarded, Replayed
from ._bodies import RecordingStream, ReplayStream
from ._call import Call, LiveHead
from ._errors import OptionError, WrongClientError
from ._flight import Owner
from ._flow import Forward, Session, Stats, exchange, key_of, read
from ._mode import Mode
from ._settings import read_settings
from ._waiting import current_task, running_loop, wait, wait_async

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._cassette import Cassette
    from ._errors import CassetteMiss
    from ._explain import Explanation
    from ._fingerprint import KeyPolicy
    from ._redact import Redaction
    from ._settings import Matcher, Source

__all__ = ["CassetteTransport", "Options"]

log = logging.getLogger("httpx_cassette")


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
        cassette: A path, a :class:`Cassette` to share, or a list of them: all are looked up, the last is
            written.
        mode: ``replay`` (the default), ``record``, ``rerecord`` or ``live``. ``HTTPX_CASSETTE_MODE=replay``
            wins over it; other values of that variable apply where no mode is given.
        next_transport: What real calls go through; the library's own transport by default.
        require_system: ``True`` refuses a chat call whose first message is not a system prompt,
            ``"anywhere"`` accepts it at any position, ``False`` accepts any call; or a callable on the call.
        prompt_files: Files whose bytes enter the key, read at each call: a mapping of names to paths, or
            paths.
        key_policy: What else enters the key, or does not: a :class:`KeyPolicy`.
        redact: What must not reach the file besides credentials: a :class:`Redaction`.
        passthrough: Hosts, URL prefixes or a predicate on the call: really called in every mode, never
            stored.
        ignore: The same for calls that are answered 404 here and never stored. Two known probes always are.
        samples: How many answers to keep for one fingerprint; replayed in order, the last repeats.
        record_statuses: Which status codes are stored, such as ``(200, "4xx")``; 2xx and 3xx by default.
        max_calls: A run that would make one more real call stops. ``HTTPX_CASSETTE_MAX_CALLS`` sets it too.
        chunk_size: Characters of text in each delta of a replayed stream.
        wire_chunk_size: Bytes in each chunk of a replayed stream; ``None`` gives one event a chunk.
        noise: Adds what real servers add and parsers must bear: empty deltas, comments, keep-alives, CRLF.
        on_miss: Called with the :class:`CassetteMiss` before it is raised. By default a miss makes the
            process exit with status 2, whatever becomes of the error; with ``None`` it does not.
        fsync: Whether a recording is durable before the caller sees the end of the answer.

    Raises:
        OptionError: An option does not exist or is not understood.
        CassetteError: The cassette is not understood.
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
        self._check_next()
        self._session = Session(read_settings(cassette, given))
        self._sync_inner: Any = self._next
        self._async_inner: Any = self._next
        self._async_loop: Any = None
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
        return key_of(*read(_call_of(request, _read_here(request)), settings), settings).fingerprint

    def explain(self, request: Any) -> Explanation:
        """Return how the key of a request comes about: the key document, and what each rule changed.

        Args:
            request: A request of either library.
        """
        from ._explain import explain  # Late: a program that only replays never asks.

        return explain(_call_of(request, _read_here(request)), self._session.settings)

    # -- sync --------------------------------------------------------------------------------------

    def _serve(self, request: Any) -> Any:
        self._check_client(request)
        call = _call_of(request, _read_loaded(request) if self.mode is Mode.LIVE else request.read())
        owner = Owner(threading.get_ident(), 0)
        flow = exchange(call, self._session, owner)
        live: Any = None
        outcome: Any = None
        answer: Replayed | Forwarded
        try:
            step = flow.send(None)
            while True:
                try:
                    if isinstance(step, Forward):
                        live = self._check_answer(self._inner().handle_request(request))
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
        with self._session.opening:
            if self._sync_inner is None:
                self._sync_inner = self._library.module.HTTPTransport() if self._next is None else self._next
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

    async def _serve_async(self, request: Any) -> Any:
        self._check_client(request)
        is_live = self.mode is Mode.LIVE
        call = _call_of(request, _read_loaded(request) if is_live else await _read_async(request))
        owner = Owner(threading.get_ident(), current_task())
        flow = exchange(call, self._session, owner)
        live: Any = None
        outcome: Any = None
        answer: Replayed | Forwarded
        try:
            step = flow.send(None)
            while True:
                try:
                    if isinstance(step, Forward):
                        live = self._check_answer(await self._inner_async().handle_async_request(request))
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
        with self._session.opening:
            if self._next is not None:
                self._async_inner = self._next
            elif self._async_inner is None or self._async_loop is not loop:
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

    # -- both --------------------------------------------------------------------------------------

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
        news = self._session.news()
        if news is not None:
            log.warning("answers that were not recorded: %s", news)


def describe(library: str) -> str:
    """Return the docstring of the transport of a library."""
    options = (Serving.__doc__ or "").partition("\n\n")[2]
    return f"Record and replay for ``{library}.Client`` and ``{library}.AsyncClient``.\n\n{options}"


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


# -- httpx ---------------------------------------------------------------------------------------------


class _HttpxReplayStream(ReplayStream, httpx.SyncByteStream, httpx.AsyncByteStream):
    pass


class _HttpxRecordingStream(RecordingStream, httpx.SyncByteStream, httpx.AsyncByteStream):
    pass


class CassetteTransport(Serving, httpx.BaseTransport, httpx.AsyncBaseTransport):
    __doc__ = describe("httpx")

    _library = Library(
        "httpx",
        httpx,
        _HttpxReplayStream,
        _HttpxRecordingStream,
        "from httpx_cassette import CassetteTransport",
    )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx.Response = self._serve(request)
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx.Response = await self._serve_async(request)
        return response


# At import, not at the first transport: a program whose workers alone build clients must learn of their
# misses too. It sets one variable and one attribute of ``sys``; no hook is installed before something missed.
_ledger.arm()
