"""``use_cassette``: a block, or a decorated function, in which clients are answered from a cassette."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ._block import OpenCassette, block_here
from ._errors import OptionError, is_stop
from ._guard import read_guard
from ._late import LOADING
from ._mode import Mode
from ._patching import close_patches, open_patches, strangers
from ._settings import OPTIONS
from ._suggest import nearest_name

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._guard import Guard
    from ._settings import Source
    from ._transport import Options

__all__ = ["use_cassette"]

__tracebackhide__ = is_stop

F = TypeVar("F", bound=Callable[..., Any])


class use_cassette:
    """Answer every client of httpx and httpx2 from a cassette, though none of them was given a transport.

    It is a context manager, an async context manager, and a decorator of functions, of coroutine functions
    and of generator functions (fixtures of pytest). Each gives or opens an :class:`OpenCassette` of its own.
    Clients made before or within count alike, and so do those with a proxy or mounts. A client that was given
    a transport on purpose (a :class:`CassetteTransport`, a mock, an application) keeps it.

    Blocks may be nested, and tasks and threads may have different ones: what is started in a block belongs to
    it. A call without any context, such as from a thread that was there before, is answered from the only
    cassette that is open.
    Processes that are started in a block know nothing of it, but for those that are forked.

    Args:
        cassette: A path, a :class:`Cassette`, or a list of them, as for :class:`CassetteTransport`.
        guard: Whether connections to other machines are refused while the cassette is replayed: what goes
            round httpx then stops, with a :class:`NetworkRefused`. Or the hosts that are let through.
        options: The options of :class:`CassetteTransport`. Real calls go through what the client would have
            used, unless ``next_transport`` is given.

    Raises:
        OptionError: An option does not exist, at once; or is not understood, when the block opens.
    """

    def __init__(
        self,
        cassette: Source | Sequence[Source],
        *,
        guard: bool | Sequence[str] = False,
        **options: Unpack[Options],
    ) -> None:
        known = (*OPTIONS, "next_transport")
        for name in options:
            if name not in known:
                raise OptionError(
                    f"use_cassette has no option {name!r}{nearest_name(name, (*known, 'guard'))}"
                )
        self._cassette = cassette
        self._guard = guard
        self._options: dict[str, Any] = dict(options)
        self._blocks: list[tuple[OpenCassette, Guard | None]] = []

    def __enter__(self) -> OpenCassette:
        """Open the cassette.

        Raises:
            OptionError: An option is not understood.
            CassetteError: The cassette is not understood.
            CassetteReadOnly: Recording was asked for, and nothing can be written.
        """
        with LOADING:
            guard = read_guard(self._guard)
            block = OpenCassette(self._cassette, self._options)
            _refuse_second_recorder(block)
        if guard is not None and block.mode is Mode.REPLAY:
            guard.begin()
        else:
            guard = None
        block.enter()
        open_patches()
        self._blocks.append((block, guard))
        return block

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Close the cassette."""
        block, guard = self._blocks.pop(self._find_own())
        block.close()
        close_patches()
        if guard is not None:
            guard.end()

    async def __aenter__(self) -> OpenCassette:
        """Open the cassette; as :meth:`__enter__`."""
        return self.__enter__()

    async def __aexit__(self, *error: Any) -> None:
        """Close the cassette."""
        self.__exit__(*error)

    def _find_own(self) -> int:
        """Return which of the blocks that this object opened is the one of this context, or the last."""
        here = block_here()
        for index in range(len(self._blocks) - 1, -1, -1):
            if self._blocks[index][0] is here:
                return index
        return len(self._blocks) - 1

    def __call__(self, function: F) -> F:
        """Decorate a function: the cassette is open while it runs, or while its generator is not finished."""
        if inspect.isclass(function) or not callable(function):
            raise OptionError(
                f"use_cassette decorates functions, and {function!r} is none; decorate its methods, "
                "or mark the class with @pytest.mark.cassette"
            )
        return functools.wraps(function)(self._wrap(function))  # type: ignore[return-value]  # called alike

    def _again(self) -> use_cassette:
        return use_cassette(self._cassette, guard=self._guard, **self._options)

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isasyncgenfunction(function):

            async def async_generator(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
                async with self._again(), aclosing(function(*args, **kwargs)) as items:
                    async for item in items:
                        yield item

            return async_generator
        if inspect.iscoroutinefunction(function):

            async def coroutine(*args: Any, **kwargs: Any) -> Any:
                async with self._again():
                    return await function(*args, **kwargs)

            return coroutine
        if inspect.isgeneratorfunction(function):

            def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
                with self._again():
                    return (yield from function(*args, **kwargs))

            return generator

        def plain(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return function(*args, **kwargs)

        return plain


def _refuse_second_recorder(block: OpenCassette) -> None:
    """Refuse to record what vcrpy records as well.

    Raises:
        OptionError: It stands between the clients and the network.
    """
    if block.mode in (Mode.RECORD, Mode.RERECORD) and "vcr" in strangers():
        raise OptionError(
            "vcrpy is on, and would record each call a second time; leave its block, "
            "or take its marker off the test, before recording with httpx_cassette"
        )
