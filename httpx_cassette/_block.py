"""An open cassette that answers clients which were not given a transport, and whose calls it answers.

Which of several open ones a call belongs to:

- the innermost one of its context, which tasks, ``asyncio.to_thread`` and anyio copy;
- in a thread, or in a function given to a thread pool, the innermost one of whoever started it;
- the last one that its own thread opened in synchronous code: whatever the thread runs, it runs within it.
  (The fixture of an async test is such code, and the task of the test may be older than the fixture.)
- otherwise the only one that is open. Where there are several, on different cassettes, the call is stopped:
  to guess would be to answer from the wrong file.

One that was closed is as good as not there: an event loop may outlive the block in which it was made. But
where none is open, what was started in one and outlived it is still answered from it: it must not reach the
network because somebody did not wait for it.
Nothing here knows how a call comes here.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from . import _ledger
from ._answer import Served
from ._driver import FORWARDING, Driver
from ._errors import CassetteAmbiguous, WrongClientError, is_stop
from ._expected_miss import is_in_coroutine
from ._mode import Mode
from ._process import LOADING
from ._session import Session, Stats
from ._settings import read_settings

if TYPE_CHECKING:
    from ._cassette import Cassette
    from ._recording import Recording

__all__ = [
    "LOCK",
    "OpenCassette",
    "block_here",
    "block_of_call",
    "blocks_here",
    "carry",
    "has_belongings",
    "link_here",
    "open_blocks",
    "root_of",
    "start_in",
]

__tracebackhide__ = is_stop

T = TypeVar("T")

#: Held while something that all blocks share is put in place or taken away, and by a fork: a child finds it
#: whole. Nothing is imported or waited for under it. Re-entrant: a finaliser may run at any point.
LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):  # pragma: no branch  # not on Windows, which does not fork
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


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
        #: The same by the class of the request, which is looked up with each call.
        self._drivers_by_class: dict[type[Any], Driver] = {}
        #: What its contexts and threads hold, held here while it is open.
        self._link: _Link | None = None
        #: The thread that opened it in synchronous code.
        self._thread: threading.Thread | None = None
        self.is_open = False
        #: Whether answers of real calls are stored.
        self.is_recording = self.mode in (Mode.RECORD, Mode.RERECORD)
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
        """A transport on this cassette for clients of httpx and of httpx2; to close it leaves it open."""
        return _Transport(self)

    # -- serving -----------------------------------------------------------------------------------

    def handle_request(self, request: Any, through: Any = None) -> Any:
        """Answer a request of a client of either library.

        Args:
            request: The request.
            through: What a real call goes through.
        """
        driver = self._driver(request)
        return driver.serve(request, through if self._next is None else None)

    async def handle_async_request(self, request: Any, through: Any = None) -> Any:
        """Answer a request of an async client of either library.

        Args:
            request: The request.
            through: As for :meth:`handle_request`.
        """
        driver = self._driver(request)
        return await driver.serve_async(request, through if self._next is None else None)

    def _driver(self, request: Any) -> Driver:
        """Count a call, and return what serves it."""
        with self._session.lock:
            self.calls += 1
        kind = type(request)
        found = self._drivers_by_class.get(kind)
        if found is None:
            root = root_of(request)
            with LOADING:
                found = self._drivers.get(root) or self._drivers.setdefault(root, self._new_driver(root))
            self._drivers_by_class[kind] = found
        return found

    def _new_driver(self, root: str) -> Driver:
        try:
            return Driver(_library(root), self._session, self._next)
        except WrongClientError as error:
            raise WrongClientError(
                f"next_transport={self._next!r} is no transport of {root}, and a client of {root} made this "
                "call; leave it out, and every client makes real calls through its own"
            ) from error

    # -- opening and closing -----------------------------------------------------------------------

    def enter(self) -> None:
        """Be the innermost one of this context from now on."""
        link = self._link = _Link(self, next(_open_links(), None))
        self._thread = None if is_in_coroutine() else threading.current_thread()
        with LOCK:
            self.is_open = True
            _open.append(self)
            _links.add(link)
        _current.set(link)
        self._opened_here = _opened_here.set(None)

    def leave(self) -> _Link | None:
        """Answer nothing any more but what belongs to it; doing so twice does nothing.

        Returns:
            What is held by all that was started in it and is still there.
        """
        link, self._link = self._link, None
        if link is None:
            return None
        with LOCK:
            self.is_open = False
            _open.remove(self)
            # Blocks that overlap would otherwise hold on to each other for ever.
            for block in _open:
                if block._link is not None and block._link.outer is link:
                    block._link.outer = link.outer
        if _current.get() is link:
            _current.set(link.outer)
        try:
            _opened_here.reset(self._opened_here)
        except ValueError:
            # Closed in another context than it was opened in, which goes on, and does not outlive it.
            link.block = None
            _links.discard(link)
        return link

    def close(self) -> None:
        """Answer nothing any more, and say what was not recorded; closing twice does nothing."""
        self.leave()
        for driver in self.drivers():
            driver.close()

    def drivers(self) -> list[Driver]:
        """What serves calls, one for each library."""
        return list(self._drivers.values())

    async def aclose(self) -> None:
        """Do as :meth:`close`, and close what an ``AsyncClient`` made real calls through, too."""
        self.close()
        for driver in self.drivers():
            await driver.aclose()


class _Transport:
    """What a client of either library takes for a transport; by its base classes it is one of neither.

    To close it closes connections, and not the cassette.

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
        self.close()

    def close(self) -> None:
        for driver in self._block.drivers():
            driver.close()

    async def __aenter__(self) -> _Transport:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        for driver in self._block.drivers():
            await driver.aclose()


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


class _Link:
    """That something belongs to a block: contexts and threads hold it, the block only while it is open.

    So when it is gone, nothing is left that was started in the block.

    Args:
        block: The block; ``None`` for a function that nobody started in a block, whatever thread runs it.
        outer: That of the block in which it was opened.
    """

    __slots__ = ("__weakref__", "block", "outer")

    def __init__(self, block: OpenCassette | None, outer: _Link | None) -> None:
        self.block = block
        self.outer = outer


_NOBODY = _Link(None, None)

#: Those of all blocks that anything belongs to, open or not.
_links: weakref.WeakSet[_Link] = weakref.WeakSet()

#: That of the innermost one of this task or thread.
_current: ContextVar[_Link | None] = ContextVar("httpx_cassette_block", default=None)

#: Tells, by its tokens, whether a block is left in the context in which it was entered.
_opened_here: ContextVar[None] = ContextVar("httpx_cassette_opened_here", default=None)

#: Set in the ``__dict__`` of a thread: that of the innermost one of whoever started it.
_STARTED_IN = "_httpx_cassette_block"


def open_blocks() -> tuple[OpenCassette, ...]:
    """Every open cassette, the one opened last at the end."""
    return tuple(_open)


def block_here() -> OpenCassette | None:
    """The innermost open cassette of this context, of whoever started this thread, or of this thread."""
    return next(blocks_here(), None)


def blocks_here() -> Iterator[OpenCassette]:
    """Yield the open cassettes that are open here, from the innermost outwards."""
    for link in _open_links():
        if link.block is not None:  # pragma: no branch  # nobody's is never open
            yield link.block


def link_here() -> _Link | None:
    """What is to be held by whatever is started here: that of an open block, or of one that it outlived."""
    return next(_open_links(), None) or _own_link()


def has_belongings() -> bool:
    """Tell whether a block is open, or anything is left that was started in one."""
    return any(link is not None for link in list(_links))  # Not their number: one may be going right now.


def _open_links() -> Iterator[_Link]:
    is_found = False
    for link in _chain(_own_link()):
        if link.block is not None and link.block.is_open:
            is_found = True
            yield link
    if not is_found:
        thread = threading.current_thread()
        for block in reversed(open_blocks()):
            if block._thread is thread and block._link is not None:
                yield block._link


def _chain(link: _Link | None) -> Iterator[_Link]:
    while link is not None:
        yield link
        link = link.outer


def _own_link() -> _Link | None:
    """That of this context, or of whoever started this thread, whether its block is open or not."""
    return _current.get() or threading.current_thread().__dict__.get(_STARTED_IN)


def block_of_call() -> OpenCassette | None:
    """The cassette that a call made here belongs to; ``None`` where none is open and none was outlived.

    Raises:
        CassetteAmbiguous: It has no context, and cassettes of more than one file are open.
    """
    if not _links:
        return None
    found = block_here()
    if found is not None:
        return found
    if not _open:
        link = _own_link()
        return None if link is None else link.block
    different = {
        (block.mode, *(each.real_path for each in block.cassettes)): block for block in open_blocks()
    }
    if len(different) > 1:
        names = [block.path for block in different.values()]
        if len(set(names)) < len(names):  # One file, in more than one mode.
            names = [f"{block.path} ({block.mode.value})" for block in different.values()]
        raise _ambiguous(names)
    return next(iter(different.values()), None)


def carry(link: _Link | None, is_forwarding: bool, function: Callable[..., T], args: Any, kwargs: Any) -> T:
    """Call a function as part of a block and of a real call, or of none, whatever thread this is."""
    here, forwarding = _current.set(link or _NOBODY), FORWARDING.set(is_forwarding)
    try:
        return function(*args, **kwargs)
    finally:
        FORWARDING.reset(forwarding)
        _current.reset(here)


def start_in(thread: threading.Thread, link: _Link) -> None:
    """Have a thread belong to a block."""
    thread.__dict__[_STARTED_IN] = link


def _ambiguous(paths: list[str]) -> CassetteAmbiguous:
    error = CassetteAmbiguous(
        f"a call could be answered from {' or from '.join(paths)}, which are open at once\n"
        "  because      it was made in a thread or task that was started outside of these blocks\n"
        "  to tell which: start the thread within the block, or give its client a CassetteTransport",
        {"cassettes": tuple(paths)},
    )
    _ledger.enter(error, key=f"ambiguous {' '.join(sorted(paths))}")
    return error
