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

__all__ = ["keep_stops", "keep_stops_of_fixture"]


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


def keep_stops_of_fixture(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Set a fixture up, and raise what was stopped in it behind whoever ran it.

    pytest does not keep a ``BaseException`` for the next test that asks for a fixture, and would fail there
    with an assertion of its own: so it is kept here.

    Args:
        fixturedef: The fixture.
        request: Who asks for it.
    """
    __tracebackhide__ = True
    function = fixturedef.func
    kept: list[BaseException] = []
    if inspect.iscoroutinefunction(function):
        fixturedef.func = _keeping(function, kept)
    elif inspect.isasyncgenfunction(function):
        fixturedef.func = _keeping_generator(function, kept)
    try:
        result = yield
    except BaseException as error:
        if not isinstance(error, Exception) and _is_stop(error):
            _keep_for_others(fixturedef, request, error)
        raise
    finally:
        fixturedef.func = function
    for stop in kept:
        _keep_for_others(fixturedef, request, stop)
        raise stop
    return result


def _keep_for_others(fixturedef: Any, request: Any, error: BaseException) -> None:
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
