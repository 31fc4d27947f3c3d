"""``use_cassette``: a block, or a decorated function, in which clients are answered from a cassette."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import _ledger
from ._block import LOCK, OpenCassette, blocks_here
from ._errors import OptionError, is_stop
from ._guard import read_guard
from ._mode import Mode
from ._patching import close_patches, open_patches, strangers
from ._process import LOADING
from ._project import project_defaults
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
    Processes that are started in a block know nothing of it, but for those that are forked. A thread or task
    that outlives its block is still answered from it, as long as no other one is open.

    Args:
        cassette: A path, a :class:`Cassette`, or a list of them, as for :class:`CassetteTransport`.
        guard: Whether connections to other machines are refused while the cassette is replayed: what goes
            round httpx then stops, with a :class:`NetworkRefused`, anywhere in this process. Or the hosts
            that are let through. By default what ``[tool.httpx_cassette]`` of pyproject.toml says.
        options: The options of :class:`CassetteTransport`. Real calls go through what the client would have
            used, unless ``next_transport`` is given.

    Raises:
        OptionError: An option does not exist, or no cassette is named, at once; or an option is not
            understood, when the block opens.
    """

    def __init__(
        self,
        cassette: Source | Sequence[Source],
        *,
        guard: bool | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> None:
        named: Any = cassette
        if inspect.isroutine(named) or inspect.isclass(named):  # The decorator without its brackets.
            raise OptionError(f"{cassette!r} names no cassette; write @use_cassette('file.jsonl')")
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
            guard = read_guard(project_defaults().suite.get("guard") if self._guard is None else self._guard)
            block = OpenCassette(self._cassette, self._options)
        _ledger.arm()
        _refuse_second_recorder(block)
        if block.mode is not Mode.REPLAY:
            guard = None
        block.enter()
        with LOCK:
            self._blocks.append((block, guard))
        try:
            open_patches()
            if guard is not None:
                guard.begin()
        except BaseException:  # Ctrl-C, or what another one's import raises.
            self.__exit__()
            raise
        return block

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Close the cassette."""
        self._leave().close()

    async def __aenter__(self) -> OpenCassette:
        """Open the cassette; as :meth:`__enter__`."""
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        value: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Close the cassette."""
        await self._leave().aclose()

    def _leave(self) -> OpenCassette:
        """Have everything be as it was before a block, and return the block."""
        with LOCK:
            if not self._blocks:
                raise OptionError("this cassette is not open; use it as: with use_cassette('file.jsonl'):")
            block, guard = self._blocks.pop(self._find_own())
        link = block.leave()
        if link is not None:  # pragma: no branch  # nobody else closes it
            # Now, unless a thread or a task that was started in it is still there.
            weakref.finalize(link, close_patches).atexit = False
        del link
        if guard is not None:
            guard.end()
        return block

    def _find_own(self) -> int:
        """Return which of the blocks that this object opened is the innermost here, or else the last."""
        own = [block for block, _ in self._blocks]
        return next((own.index(block) for block in blocks_here() if block in own), -1)

    def __call__(self, function: F) -> F:
        """Decorate a function: the cassette is open while it runs, or while its generator is not finished.

        Raises:
            OptionError: It is no function.
        """
        if inspect.isclass(function) or not callable(function):
            raise OptionError(
                f"use_cassette decorates functions, and {function!r} is none; decorate its methods, "
                "or open the cassette in a fixture"
            )
        if type(function).__module__.startswith("_pytest."):
            raise OptionError(
                f"use_cassette decorates functions, and {function!r} is a fixture; "
                "write @use_cassette below @pytest.fixture"
            )
        return functools.wraps(function)(self._wrap(function))  # type: ignore[return-value]  # called alike

    def _again(self) -> use_cassette:
        return use_cassette(self._cassette, guard=self._guard, **self._options)

    def _wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isasyncgenfunction(function):
            return self._wrap_async_generator(function)
        if inspect.iscoroutinefunction(function):
            return self._wrap_coroutine(function)
        if inspect.isgeneratorfunction(function):
            return self._wrap_generator(function)

        def plain(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                result = function(*args, **kwargs)
            # Another decorator may hide what a function is: what it gave has not run yet.
            if isinstance(result, AsyncGeneratorType):
                return self._wrap_async_generator(lambda: result)()
            if isinstance(result, CoroutineType):
                return self._wrap_coroutine(lambda: result)()
            return self._wrap_generator(lambda: result)() if isinstance(result, GeneratorType) else result

        return plain

    def _wrap_coroutine(self, function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            async with self._again():
                return await function(*args, **kwargs)

        return coroutine

    def _wrap_generator(self, function: Callable[..., Any]) -> Callable[..., Generator[Any, Any, Any]]:
        def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            with self._again():
                return (yield from function(*args, **kwargs))

        return generator

    def _wrap_async_generator(self, function: Callable[..., Any]) -> Callable[..., AsyncGenerator[Any, Any]]:
        async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            async with self._again(), aclosing(function(*args, **kwargs)) as items:
                step = items.asend(None)
                while True:
                    try:
                        item = await step
                    except StopAsyncIteration:
                        return
                    # What ``yield from`` does for a generator.
                    try:
                        sent = yield item
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step = items.athrow(error)
                    else:
                        step = items.asend(sent)

        return async_generator


def _refuse_second_recorder(block: OpenCassette) -> None:
    """Refuse to record what vcrpy records as well.

    Raises:
        OptionError: It stands between the clients and the network.
    """
    if block.is_recording and "vcr" in strangers():
        raise OptionError(
            "vcrpy is on, and would record each call a second time; leave its block, "
            "or take its marker off the test, before recording with httpx_cassette"
        )
