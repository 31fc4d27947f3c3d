"""Puts the open cassettes between every client and its network, while at least one is open.

What is patched, and put back when the last block closes:

- ``HTTPTransport.handle_request`` and ``AsyncHTTPTransport.handle_async_request`` of httpx and httpx2, on the
  class: a client that was made before counts as well, and so does what it mounts and what goes by a proxy.
  A library that is imported later is patched then;
- ``Thread.start`` and ``ThreadPoolExecutor.submit``, so that what runs there belongs to the block of whoever
  started it. Only the block is carried; no other context variable changes hands.

Transports of other classes are left alone: what a client was given on purpose (a ``CassetteTransport``, a
mock, an application) is what it uses. So is what stands below a ``CassetteTransport``.
Others patch the same methods. Whoever came last is asked first; one who put something in the place of a
patch is not disturbed, and a patch that is left behind that way does nothing while no cassette is open.
Nothing here decides about a call.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ._block import block_here, block_of_call, carry, open_blocks, start_in
from ._driver import FORWARDING
from ._errors import is_stop

__all__ = ["close_patches", "open_patches", "strangers"]

__tracebackhide__ = is_stop

#: The libraries, and what each sends by.
_SYNC, _ASYNC = ("HTTPTransport", "handle_request"), ("AsyncHTTPTransport", "handle_async_request")
LIBRARIES = ("httpx", "httpx2")

#: Set on a patch: what it stands before.
_PATCHED = "_httpx_cassette_original"

_LOCK = threading.RLock()


def open_patches() -> None:
    """See to it that every patch is in place. Doing so twice does nothing."""
    with _LOCK:
        for name in LIBRARIES:
            _patch_library(sys.modules.get(name))
        _put(threading.Thread, "start", _start)
        _put(ThreadPoolExecutor, "submit", _submit)
        if _WATCH not in sys.meta_path:
            sys.meta_path.insert(0, _WATCH)


def close_patches() -> None:
    """Put everything back, unless a cassette is still open."""
    with _LOCK:
        if open_blocks():
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
            function = getattr(getattr(module, owner, None), method, None)
            function = getattr(function, _PATCHED, function)
            # Not by ``__module__``, which a wrapper takes from what it wraps.
            root = getattr(function, "__globals__", {}).get("__name__", name).partition(".")[0]
            if root not in LIBRARIES:
                found[root] = None
    return list(found)


# -- putting and taking away ---------------------------------------------------------------------------

#: The patches that were put in place, by what they stand on.
_in_place: dict[tuple[Any, str], Callable[..., Any]] = {}


def _put(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    current = getattr(owner, name)
    if not hasattr(current, _PATCHED):
        patch = functools.wraps(current)(make(current))
        setattr(patch, _PATCHED, current)
        setattr(owner, name, patch)
        current = patch
    _in_place[owner, name] = current


def _take_away(owner: Any, name: str) -> None:
    patch = _in_place.pop((owner, name))
    if owner.__dict__.get(name) is patch:
        setattr(owner, name, getattr(patch, _PATCHED))


def _patch_library(module: Any) -> None:
    for (owner, method), make in ((_SYNC, _handle), (_ASYNC, _handle_async)):
        transport = getattr(module, owner, None)  # A module that is being imported has none yet.
        if transport is not None:
            _put(transport, method, make)


def _handle(original: Callable[..., Any]) -> Callable[..., Any]:
    def handle_request(transport: Any, request: Any) -> Any:
        block = None if FORWARDING.get() else block_of_call()
        if block is None:
            return original(transport, request)
        return block.handle_request(request, _Below(original, transport))

    return handle_request


def _handle_async(original: Callable[..., Any]) -> Callable[..., Any]:
    async def handle_async_request(transport: Any, request: Any) -> Any:
        block = None if FORWARDING.get() else block_of_call()
        if block is None:
            return await original(transport, request)
        return await block.handle_async_request(request, _Below(original, transport))

    return handle_async_request


class _Below:
    """The transport that the client would have used, as if nothing was patched."""

    def __init__(self, original: Callable[..., Any], transport: Any) -> None:
        self._original = original
        self._transport = transport

    def handle_request(self, request: Any) -> Any:
        return self._original(self._transport, request)

    async def handle_async_request(self, request: Any) -> Any:
        return await self._original(self._transport, request)


def _start(original: Callable[..., Any]) -> Callable[..., Any]:
    def start(thread: threading.Thread) -> None:
        block = block_here()
        if block is not None:
            start_in(thread, block)
        original(thread)

    return start


def _submit(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(executor: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        block = block_here()
        if block is None:
            return original(executor, function, *args, **kwargs)
        return original(executor, carry, block, function, args, kwargs)

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
            found = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
            spec = next(filter(None, found), None)
        finally:
            self._is_asking.yes = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # it loads, by another's hands
        return spec


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
        with _LOCK:
            if open_blocks():
                _patch_library(module)


_WATCH: Any = _Watch()
