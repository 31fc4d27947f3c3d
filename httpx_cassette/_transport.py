"""The transport, for httpx; ``httpx2.py`` adds the one for httpx2. Decides nothing.

The two libraries are unrelated class trees of one shape, so a call is served by one driver, written against
that shape, and each library adds a class that derives from its own two base transports and from nothing of
the other: ``anthropic.DefaultHttpxClient`` refuses a transport with any httpx ancestor.
Objects of either library are ``Any`` here and in the modules of driver, streams and waiting: it is where
they meet.

All that serves a call is imported with the first transport, not with the package: a program that imports it
and makes no call pays next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import httpx

from . import _ledger
from ._bodies import RecordingStream, ReplayStream
from ._errors import is_stop
from ._library import Library
from ._process import LOADING

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._call import Call
    from ._cassette import Cassette
    from ._errors import CassetteMiss
    from ._explain import Explanation
    from ._mode import Mode
    from ._policy import KeyPolicy
    from ._redact import Redaction
    from ._session import Stats
    from ._settings import Matcher, Source

__all__ = ["CassetteTransport", "Options"]

__tracebackhide__ = is_stop


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
        ignore: The same for calls that are answered 404 here and never stored. Three known probes always are.
        samples: How many answers to keep for one fingerprint; replayed in order, the last repeats.
        record_statuses: Which status codes are stored, such as ``(200, "4xx")``; 2xx and 3xx by default.
        max_calls: This transport stops a run that would make one more real call. What
            ``HTTPX_CASSETTE_MAX_CALLS`` allows is counted over all transports of a process, and holds too.
        chunk_size: Characters of text in each delta of a replayed stream.
        wire_chunk_size: Bytes in each chunk of a replayed stream; ``None`` gives one event a chunk. So too of
            text that is no JSON, whole with ``None``, and of what is no text, such as speech: 4,096 bytes
            with ``None``.
        noise: Adds what real servers of the format add and parsers must bear: empty deltas, comments, pings,
            CRLF.
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
        # To build one imports as well: the parser of pyproject.toml, for example.
        with LOADING:
            from ._driver import Driver  # Late: see above.

            self._driver = Driver.of(self._library, cassette, dict(options))
        _ledger.arm()

    def __repr__(self) -> str:
        paths = ", ".join(cassette.path for cassette in self.cassettes)
        return f"<{self._library.import_line.rpartition(' ')[2]} {self.mode.value} {paths}>"

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._driver.settings.mode

    @property
    def stats(self) -> Stats:
        """What this transport has done so far."""
        return self._driver.session.stats

    @property
    def cassettes(self) -> tuple[Cassette, ...]:
        """The cassettes that are looked up; the last is written."""
        return self._driver.settings.shelf.cassettes

    def fingerprint(self, request: Any) -> str:
        """Return the key of a request, 64 hex digits; nothing is sent.

        Args:
            request: A request of either library, as ``client.build_request`` makes it.
        """
        return self._driver.fingerprint(request)

    def explain(self, request: Any) -> Explanation:
        """Return how the key of a request comes about: the key document, and what each rule changed.

        Args:
            request: A request of either library.
        """
        return self._driver.explain(request)

    def close(self) -> None:
        """Close the connections, and say what was not recorded. Closing twice does nothing."""
        self._driver.close()

    async def aclose(self) -> None:
        """Close the connections, and say what was not recorded. Closing twice does nothing."""
        await self._driver.aclose()


def describe(library: str) -> str:
    """Return the docstring of the transport of a library."""
    options = (Serving.__doc__ or "").partition("\n\n")[2]
    return f"Record and replay for ``{library}.Client`` and ``{library}.AsyncClient``.\n\n{options}"


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
        response: httpx.Response = self._driver.serve(request)
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx.Response = await self._driver.serve_async(request)
        return response
