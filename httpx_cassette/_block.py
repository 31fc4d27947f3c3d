"""An open cassette that answers clients which were not given a transport, and whose calls it answers.

Which of several open ones a call belongs to:

- the innermost one of its context, which tasks, ``asyncio.to_thread`` and anyio copy;
- in a thread, or in a function given to a thread pool, the innermost one of whoever started it;
- otherwise the only one that is open. Where there are several, on different cassettes, the call is stopped:
  to guess would be to answer from the wrong file.

One that was closed is as good as not there: an event loop may outlive the block in which it was made.
Nothing here knows how a call comes here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from . import _ledger
from ._answer import Served
from ._driver import Driver
from ._errors import CassetteAmbiguous, is_stop
from ._late import LOADING
from ._session import Session, Stats
from ._settings import read_settings

if TYPE_CHECKING:
    from ._cassette import Cassette
    from ._mode import Mode
    from ._recording import Recording

__all__ = ["OpenCassette", "block_here", "block_of_call", "carry", "open_blocks", "root_of", "start_in"]

__tracebackhide__ = is_stop

T = TypeVar("T")


class OpenCassette:
    """What ``use_cassette`` and the fixture ``cassette`` give: a cassette, and what was done with it.

    Args:
        cassette: The cassettes, as for :class:`CassetteTransport`.
        options: The options, as for it.

    Raises:
        OptionError: An option does not exist or is not understood.
        CassetteError: The cassette is not understood.
        CassetteReadOnly: Recording was asked for, and nothing can be written.
    """

    def __init__(self, cassette: Any, options: dict[str, Any]) -> None:
        options = dict(options)
        self._next = options.pop("next_transport", None)
        self._notes = _Notes()
        self._session = Session(read_settings(cassette, options), self._notes)
        self._drivers: dict[str, Driver] = {}
        self._outer: OpenCassette | None = None
        self.is_open = False
        #: How many calls came here, whatever became of them.
        self.calls = 0

    def __repr__(self) -> str:
        return f"<OpenCassette {self.mode.value} {' '.join(each.path for each in self.cassettes)}>"

    @property
    def path(self) -> str:
        """The file that is written, or would be."""
        return self.cassettes[-1].path

    @property
    def cassettes(self) -> tuple[Cassette, ...]:
        """The cassettes that are looked up; the last is written."""
        return self._session.settings.shelf.cassettes

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._session.settings.mode

    @property
    def stats(self) -> Stats:
        """What has been done so far."""
        return self._session.stats

    @property
    def rules(self) -> dict[str, Any]:
        """What decides under which key a call is stored, as JSON, where it is not the default."""
        rules = self._session.settings.policy_on_line()
        rules.pop("extra", None)  # What tells tests of one file apart on purpose.
        return rules

    @property
    def hits(self) -> int:
        """How many calls were answered from a recording."""
        return self.stats.replayed

    @property
    def recorded(self) -> int:
        """How many answers were stored."""
        return self.stats.recorded

    @property
    def recordings(self) -> tuple[Served, ...]:
        """The recordings that answered calls or were made of the answers, each once, in order of use."""
        return tuple(self._notes.recordings.values())

    @property
    def unrecorded(self) -> tuple[str, ...]:
        """The real calls whose answers were not stored, and why."""
        return tuple(self._notes.not_stored)

    @property
    def transport(self) -> Any:
        """A transport on this cassette for clients of httpx and of httpx2; to close it closes nothing."""
        return _Transport(self)

    # -- serving -----------------------------------------------------------------------------------

    def handle_request(self, request: Any, through: Any = None) -> Any:
        """Answer a request of a client of either library.

        Args:
            request: The request.
            through: What a real call goes through.
        """
        self.calls += 1
        return self._driver(request).serve(request, through if self._next is None else None)

    async def handle_async_request(self, request: Any, through: Any = None) -> Any:
        """Answer a request of an async client of either library.

        Args:
            request: The request.
            through: As for :meth:`handle_request`.
        """
        self.calls += 1
        return await self._driver(request).serve_async(request, through if self._next is None else None)

    def _driver(self, request: Any) -> Driver:
        root = root_of(request)
        found = self._drivers.get(root)
        if found is None:
            with LOADING:
                library = _library(root)
                found = self._drivers.setdefault(root, Driver(library, self._session, self._next))
        return found

    # -- opening and closing -----------------------------------------------------------------------

    def enter(self) -> None:
        """Be the innermost one of this context from now on."""
        self._outer = _current.get()
        self.is_open = True
        _open.append(self)
        _current.set(self)

    def close(self) -> None:
        """Answer nothing any more, and say what was not recorded; closing twice does nothing."""
        if not self.is_open:
            return
        self.is_open = False
        _open.remove(self)
        if _current.get() is self:  # Not where it is closed in another context than it was opened in.
            _current.set(self._outer)
        for driver in list(self._drivers.values()):
            driver.close()


class _Transport:
    """What a client of either library takes for a transport; by its base classes it is one of neither.

    Args:
        block: What answers.
    """

    def __init__(self, block: OpenCassette) -> None:
        self._block = block

    def handle_request(self, request: Any) -> Any:
        return self._block.handle_request(request)

    async def handle_async_request(self, request: Any) -> Any:
        return await self._block.handle_async_request(request)

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def close(self) -> None:
        pass

    async def __aenter__(self) -> _Transport:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass

    async def aclose(self) -> None:
        pass


class _Notes:
    """What happened in a block; a listener of its session."""

    def __init__(self) -> None:
        self.recordings: dict[tuple[str, int], Served] = {}
        self.not_stored: list[str] = []

    def counted(self, name: str) -> None:
        """Nothing: the session keeps the counters."""

    def used(self, recording: Recording, name: str) -> None:
        place = recording.path, recording.number
        if place not in self.recordings:
            head = recording.head
            self.recordings[place] = Served(name, head.key.hex(), *place, head.sample, recording.at)

    def unrecorded(self, what: str) -> None:
        self.not_stored.append(what)


def _library(root: str) -> Any:
    """Return what a driver needs of the library that a request is of."""
    if root == "httpx2":
        from .httpx2 import CassetteTransport as Httpx2Transport

        return Httpx2Transport._library
    from ._transport import CassetteTransport

    return CassetteTransport._library


def root_of(request: Any) -> str:
    """Return the name of the library that a request is of; a user's own class is one of its base class."""
    roots = (base.__module__.partition(".")[0] for base in type(request).__mro__)
    return next((root for root in roots if root in ("httpx", "httpx2")), "httpx")


# -- which one -----------------------------------------------------------------------------------------

#: Of all contexts, the one opened last is the last.
_open: list[OpenCassette] = []

#: The innermost one of this task or thread.
_current: ContextVar[OpenCassette | None] = ContextVar("httpx_cassette_block", default=None)

#: Set in the ``__dict__`` of a thread: the innermost one of whoever started it.
_STARTED_IN = "_httpx_cassette_block"


def open_blocks() -> tuple[OpenCassette, ...]:
    """Every open cassette, the one opened last at the end."""
    return tuple(_open)


def block_here() -> OpenCassette | None:
    """The innermost open cassette of this context, or of whoever started this thread."""
    return _innermost_open(_current.get()) or _innermost_open(
        threading.current_thread().__dict__.get(_STARTED_IN)
    )


def block_of_call() -> OpenCassette | None:
    """The open cassette that a call made here belongs to; ``None`` where none is open.

    Raises:
        CassetteAmbiguous: It has no context, and cassettes of more than one file are open.
    """
    if not _open:
        return None
    found = block_here()
    if found is not None:
        return found
    paths = {os.pathsep.join(each.real_path for each in block.cassettes): block for block in open_blocks()}
    if len(paths) > 1:
        raise _ambiguous([block.path for block in paths.values()])
    return next(iter(paths.values()), None)


def carry(block: OpenCassette, function: Callable[..., T], args: Any, kwargs: Any) -> T:
    """Call a function as part of a block, whatever thread this is."""
    token = _current.set(block)
    try:
        return function(*args, **kwargs)
    finally:
        _current.reset(token)


def start_in(thread: threading.Thread, block: OpenCassette) -> None:
    """Have a thread belong to a block."""
    thread.__dict__[_STARTED_IN] = block


def _innermost_open(block: OpenCassette | None) -> OpenCassette | None:
    while block is not None and not block.is_open:
        block = block._outer
    return block


def _ambiguous(paths: list[str]) -> CassetteAmbiguous:
    error = CassetteAmbiguous(
        f"a call could be answered from {' or from '.join(paths)}, which are open at once\n"
        "  because      it was made in a thread or task that was started outside of both blocks\n"
        "  to tell which: start the thread within the block, or give its client a CassetteTransport",
        {"cassettes": tuple(paths)},
    )
    _ledger.enter(error, key=f"ambiguous {' '.join(sorted(paths))}")
    return error
