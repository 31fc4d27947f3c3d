"""Keeps what stops a call inside the coroutine of a test, until the event loop is left.

anyio runs all tests and fixtures of a loop in one task, which ends with a ``BaseException``: the next test
would find it closed, and fail without a fault of its own. And asyncio would write the traceback of that task
when it is collected, in the middle of whatever runs then.
Nothing here knows which plugin runs the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from typing import Any

from .._errors import CassetteStop
from .._hooks import members

__all__ = ["keep_stops"]


def keep_stops(item: Any) -> Generator[None, Any, Any]:
    """Call the coroutine function of a test, and raise what was stopped in it behind whoever ran it.

    Args:
        item: The test.
    """
    __tracebackhide__ = True
    function = item.obj
    kept: list[BaseException] = []

    @functools.wraps(function)
    async def keeping(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True
        try:
            await function(*args, **kwargs)
        except BaseException as error:
            if isinstance(error, Exception) or not _is_stop(error):
                raise
            kept.append(error)

    item.obj = keeping
    try:
        result = yield
    finally:
        item.obj = function
    if kept:
        raise kept.pop()
    return result


def _is_stop(error: BaseException) -> bool:
    """Tell whether an error is one that stops a call, or a group with one in it."""
    return isinstance(error, CassetteStop) or any(map(_is_stop, members(error)))
