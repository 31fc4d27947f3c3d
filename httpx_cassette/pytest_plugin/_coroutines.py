"""Keeps what stops a call inside the coroutine of a test or a fixture, until the event loop is left.

anyio runs all tests and fixtures of a loop in one task, which ends with a ``BaseException``: the next test
would find it closed, and fail without a fault of its own. And asyncio would write the traceback of that task
when it is collected, in the middle of whatever runs then.
Nothing here knows which plugin runs the loop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Generator
from typing import Any

from .._errors import CassetteStop
from .._hooks import members

__all__ = ["keep_for_others", "keep_stops", "keep_stops_of_fixture"]


def keep_stops(item: Any) -> Generator[None, Any, Any]:
    """Call the coroutine function of a test, and raise what was stopped in it behind whoever ran it.

    Args:
        item: The test.
    """
    __tracebackhide__ = True
    function = item.obj
    kept: list[BaseException] = []
    item.obj = _keeping(function, kept)
    try:
        result = yield
    finally:
        item.obj = function
    if kept:
        raise kept.pop()
    return result


def keep_stops_of_fixture(fixturedef: Any) -> Generator[None, Any, Any]:
    """Set an async fixture up, and raise what was stopped in it behind whoever ran it.

    Args:
        fixturedef: The fixture.
    """
    __tracebackhide__ = True
    function = fixturedef.func
    kept: list[BaseException] = []
    is_generator = inspect.isasyncgenfunction(function)
    fixturedef.func = _keeping_generator(function, kept) if is_generator else _keeping(function, kept)
    try:
        result = yield
    finally:
        fixturedef.func = function
    for stop in kept:
        raise stop
    return result


def keep_for_others(fixturedef: Any, request: Any, error: BaseException) -> None:
    """Keep what stopped a fixture for the next test that asks for it.

    pytest does not keep a ``BaseException``, and would fail there with an assertion of its own.

    Args:
        fixturedef: The fixture.
        request: Who asks for it.
        error: What came out of it.
    """
    if _is_stop(error):
        fixturedef.cached_result = None, fixturedef.cache_key(request), (error, error.__traceback__)


def _keeping(function: Any, kept: list[BaseException]) -> Any:
    @functools.wraps(function)
    async def keeping(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            if isinstance(error, Exception) or not _is_stop(error):
                raise
            kept.append(error)

    return keeping


def _keeping_generator(function: Any, kept: list[BaseException]) -> Any:
    @functools.wraps(function)
    async def keeping(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        values = function(*args, **kwargs)
        try:
            value = await values.__anext__()
        except BaseException as error:
            if isinstance(error, Exception) or not _is_stop(error):
                raise
            kept.append(error)
            yield None
            return
        yield value
        try:
            await values.__anext__()
        except StopAsyncIteration:
            return
        except BaseException as error:
            # Entered in the ledger, which fails the test; raised, it would end the loop.
            if isinstance(error, Exception) or not _is_stop(error):
                raise
            return
        raise RuntimeError(f"the fixture {function.__name__} yields more than once")

    return keeping


def _is_stop(error: BaseException) -> bool:
    """Tell whether an error is one that stops a call, or a group with one in it."""
    return isinstance(error, CassetteStop) or any(map(_is_stop, members(error)))
