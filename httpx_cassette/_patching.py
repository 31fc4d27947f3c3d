"""Puts the open cassettes between every client and its network, while at least one is open.

What is patched, and put back when the last block closes and nothing is left that was started in one:

- ``HTTPTransport.handle_request`` and ``AsyncHTTPTransport.handle_async_request`` of httpx and httpx2, on the
  class: a client that was made before counts as well, and so does what it mounts and what goes by a proxy.
  A library that is imported later is patched then;
- ``Thread.start`` and ``ThreadPoolExecutor.submit``, so that what runs there belongs to the block of whoever
  started it, and to his real call if he makes one. No other context variable changes hands.

Transports of other classes are left alone: what a client was given on purpose (a ``CassetteTransport``, a
mock, an application) is what it uses. So is what stands below a ``CassetteTransport``.
Others patch the same methods. Whoever came last is asked first; one who put something in the place of a
patch is not disturbed, and a patch that is left behind that way does nothing while no cassette is open.
One who came before and leaves first takes the patch along: blocks are to be closed in reverse order.
vcrpy records what comes by, also where it took a patch for the library's own method: below it nothing is
recorded here, so that no call is recorded twice.
Nothing here decides about a call.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._block import LOCK, OpenCassette, block_of_call, carry, has_belongings, link_here, start_in
from ._driver import FORWARDING
from ._errors import OptionError, is_stop

__all__ = ["close_patches", "open_patches", "strangers"]

__tracebackhide__ = is_stop

#: The libraries, and what each sends by.
_SYNC, _ASYNC = ("HTTPTransport", "handle_request"), ("AsyncHTTPTransport", "handle_async_request")
LIBRARIES = ("httpx", "httpx2")

#: Another package that stands between clients and network, and records what comes by.
_OTHER_RECORDER = "vcr"


def open_patches() -> None:
    """See to it that every patch is in place. Doing so twice does nothing."""
    modules = [_imported(name) for name in LIBRARIES]
    with LOCK:
        for module in modules:
            _patch_library(module)
        _put(threading.Thread, "start", _start)
        _put(ThreadPoolExecutor, "submit", _submit)
        if _WATCH not in sys.meta_path:
            sys.meta_path.insert(0, _WATCH)


def close_patches() -> None:
    """Put everything back, unless a cassette is still open, or something outlives one."""
    with LOCK:
        if has_belongings():
            return
        for owner, name in list(_in_place):
            _take_away(owner, name)
        if _WATCH in sys.meta_path:
            sys.meta_path.remove(_WATCH)


def strangers() -> list[str]:
    """The packages whose patches stand before ours, or between them and the library: a mock, as a rule."""
    found: dict[str, None] = {}
    for name in LIBRARIES:
        module = sys.modules.get(name)
        for owner, method in (_SYNC, _ASYNC):
            root = _package_of(_below_patches(getattr(getattr(module, owner, None), method, None)), name)
            if root not in LIBRARIES:
                found[root] = None
    return list(found)


def _package_of(function: Any, default: str) -> str:
    # Not by ``__module__``, which a wrapper takes from what it wraps.
    name: str = getattr(function, "__globals__", {}).get("__name__", default)
    return name.partition(".")[0]


# -- putting and taking away ---------------------------------------------------------------------------

#: The patches that were put in place, by what they stand on.
_in_place: dict[tuple[Any, str], Callable[..., Any]] = {}

#: Every patch, and what it stands before. Not an attribute of it, which a wrapper would take along.
_originals: weakref.WeakKeyDictionary[Any, Callable[..., Any]] = weakref.WeakKeyDictionary()


def _below_patches(function: Any) -> Any:
    """Return what stands behind a patch, or behind several."""
    while function is not None and function in _originals:
        function = _originals[function]
    return function


def _put(owner: Any, name: str, make: Callable[[Callable[..., Any], Any], Callable[..., Any]]) -> None:
    current = getattr(owner, name)
    if current not in _originals:
        patch = functools.wraps(current)(make(current, owner))
        _originals[patch] = current
        setattr(owner, name, patch)
        current = patch
    _in_place[owner, name] = current


def _take_away(owner: Any, name: str) -> None:
    del _in_place[owner, name]
    # Whichever patch it is: one that was left behind below a stranger's is found here when he is gone.
    current = owner.__dict__.get(name)
    bare = _below_patches(current)
    if bare is not current:
        setattr(owner, name, bare)


def _imported(name: str) -> Any:
    """Return a library if it was imported, or is being imported by another thread, which is waited for."""
    if sys.modules.get(name) is None:
        return None
    try:
        return importlib.import_module(name)
    except ImportError:  # Over there it failed.
        return None


def _patch_library(module: Any) -> None:
    for (owner, method), make in ((_SYNC, _handle), (_ASYNC, _handle_async)):
        transport = getattr(module, owner, None)  # None where this very import opened the block.
        if transport is not None:
            _put(transport, method, make)


def _handle(original: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    def handle_request(self: Any, request: Any) -> Any:
        block = None if FORWARDING.get() else block_of_call()
        if block is None or (block.is_recording and _is_recorded_above(owner, handle_request.__name__)):
            return original(self, request)
        return block.handle_request(request, _Below(original, self, block))

    return handle_request


def _handle_async(original: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    async def handle_async_request(self: Any, request: Any) -> Any:
        block = None if FORWARDING.get() else block_of_call()
        if block is None or (block.is_recording and _is_recorded_above(owner, handle_async_request.__name__)):
            return await original(self, request)
        return await block.handle_async_request(request, _Below(original, self, block))

    return handle_async_request


def _is_recorded_above(owner: Any, method: str) -> bool:
    """Tell whether another recorder got this call first, and called a patch for the library's own method."""
    return _package_of(owner.__dict__.get(method), "") == _OTHER_RECORDER


class _Below:
    """The transport that the client would have used, as if nothing was patched."""

    __slots__ = ("_block", "_original", "_transport")

    def __init__(self, original: Callable[..., Any], transport: Any, block: OpenCassette) -> None:
        self._original = original
        self._transport = transport
        self._block = block

    def handle_request(self, request: Any) -> Any:
        self._enter_process()
        return self._original(self._transport, request)

    async def handle_async_request(self, request: Any) -> Any:
        self._enter_process()
        return await self._original(self._transport, request)

    def _enter_process(self) -> None:
        """Leave the connections of the process that this one was forked from to that process.

        Two processes on one socket read each other's answers, and the wrong one would be stored for ever.

        Raises:
            OptionError: The transport has made real calls over there.
        """
        process = os.getpid()
        caller = self._transport.__dict__.setdefault(_CALLER, process)
        if caller != process and self._block.is_recording:
            raise OptionError(
                f"the client of this call was used by process {caller}, from which this one was forked, and "
                "its connections are shared with it; to record, make the client in the child process"
            )


#: Set in the ``__dict__`` of a transport: the process in which a cassette had it make a real call.
_CALLER = "_httpx_cassette_process"


def _start(original: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    def start(self: threading.Thread) -> None:
        link = link_here()
        if link is not None:
            start_in(self, link)
        if FORWARDING.get():
            self.run = _Forwarding(self)  # type: ignore[method-assign]  # for this one thread
        original(self)

    return start


class _Forwarding:
    """Has a thread that a real call starts be a part of it."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def __call__(self) -> None:
        del self._thread.__dict__["run"]  # They would keep each other.
        FORWARDING.set(True)
        self._thread.run()


def _submit(original: Callable[..., Any], owner: Any) -> Callable[..., Any]:
    def submit(self: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return original(self, carry, link_here(), FORWARDING.get(), function, args, kwargs)

    return submit


# -- libraries that are imported later -----------------------------------------------------------------


class _Watch:
    """Finds modules as those behind it do, and has a library patched once it is imported."""

    def __init__(self) -> None:
        self._is_asking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in LIBRARIES or getattr(self._is_asking, "yes", False):
            return None
        self._is_asking.yes = True
        try:
            spec = next(filter(None, self._ask_others(name, path, target)), None)
        finally:
            self._is_asking.yes = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec

    def _ask_others(self, *asked: Any) -> Iterator[Any]:
        for finder in list(sys.meta_path):
            if finder is not self and hasattr(finder, "find_spec"):
                yield finder.find_spec(*asked)


class _Loader:
    """Loads as another loader does, which is put back at once, and patches what was loaded."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        with LOCK:
            if has_belongings():
                _patch_library(module)


_WATCH: Any = _Watch()
