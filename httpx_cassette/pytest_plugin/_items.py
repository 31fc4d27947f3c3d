"""The cassette of each test: opened before its fixtures, closed behind them, and to be used.

A fixture that is inserted before all others opens it, because it needs the value of ``cassette_config``; a
hook closes it, because fixtures of a module, torn down with its last test, may still make calls.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from .._errors import CassetteError, CassetteUnused, OptionError
from ._suite import Suite

if TYPE_CHECKING:
    from .._block import OpenCassette
    from .._use import use_cassette
    from ._opening import Opener

__all__ = ["OPEN", "Items", "Opened"]


@dataclass
class Opened:
    """The open cassette of a test.

    Args:
        use: Closes it.
        block: What is open.
        allow_unused: Whether the test may make no call.
    """

    use: use_cassette
    block: OpenCassette
    allow_unused: bool


#: Where a test keeps its own.
OPEN = pytest.StashKey[Opened]()


class Items:
    """The hooks of tests.

    Args:
        config: pytest's.
        suite: Keeps which test opened which file.
    """

    def __init__(self, config: pytest.Config, suite: Suite) -> None:
        self.config = config
        self._suite = suite
        self._opener: Opener | None = None
        self._open_items: list[pytest.Item] = []

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Have the cassette opened before all fixtures: those of a module may make calls as well."""
        names: list[str] | None = getattr(item, "fixturenames", None)
        if item.get_closest_marker("cassette") is not None:
            if names is None:
                pytest.fail(f"{item.nodeid} is marked with cassette and takes no fixtures", pytrace=False)
            names = [*names, "_open_cassette"]
        if names is not None and "_open_cassette" in names:
            # Parametrised tests share their list, and only one of them may be marked.
            others = (name for name in names if name != "_open_cassette")
            vars(item)["fixturenames"] = ["_open_cassette", *others]

    def open_cassette(self, item: pytest.Item, config: object) -> Opened:
        """Open the cassette of a test and return it; the fixture of that name calls this."""
        __tracebackhide__ = True
        markers = list(item.iter_markers("cassette"))
        try:
            opened = self._open(item, config, [(mark.args, mark.kwargs) for mark in reversed(markers)])
        except CassetteError as error:
            message = f"{type(error).__name__}: {error}"
        else:
            item.stash[OPEN] = opened
            self._open_items.append(item)
            return opened
        pytest.fail(message, pytrace=False)

    def _open(self, item: pytest.Item, config: object, markers: list[Any]) -> Opened:
        from ._naming import Place
        from ._opening import Opener, choose

        option = self.config.option
        if self._opener is None:
            self._opener = Opener(
                self.config.invocation_params.dir,
                mode=option.cassette_mode,
                folder=option.cassette_dir,
                strict=option.cassette_strict,
                guard=option.cassette_guard,
            )
        choice = choose(config, markers)
        if item.get_closest_marker("vcr") is not None:
            raise CassetteError(
                "the test is marked with vcr as well, and both would record; take one marker off"
            )
        size = getattr(getattr(item, "callspec", None), "params", {}).get("_cassette_chunk_size")
        test = item.name
        if size is not None:
            choice.options["chunk_size"] = size
            # All sizes are cut from one recording: its file is not named for one of them.
            for part in (f"[chunk_size={size}]", f"-chunk_size={size}", f"chunk_size={size}-"):
                test = test.replace(part, "", 1)
        elif choice.options.get("chunk_size") in ([], ()):
            raise OptionError("chunk_size=[] runs the test with no size at all; give it at least one")
        elif isinstance(choice.options.get("chunk_size"), (list, tuple)):
            raise OptionError(
                "only test functions run once for each chunk_size of a list; give a method of unittest, "
                "a doctest and cassette_config one number"
            )
        names = {
            "module": item.path.stem,
            "class": getattr(getattr(item, "cls", None), "__name__", "") or "no-class",
            "test": test,
        }
        use, block = self._opener.enter(choice, Place(item.path, self.config.rootpath, names), item.nodeid)
        is_live = block.mode.value == "live"
        self._suite.opened(block.cassettes[-1].real_path, item.nodeid, is_live=is_live)
        return Opened(use, block, choice.allow_unused)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Fail a test that was to use a cassette, and no call came by."""
        __tracebackhide__ = True
        result = yield
        opened = item.stash.get(OPEN, None)
        if opened is not None and not opened.allow_unused and not opened.block.calls:
            from ._telling import unused_test

            raise CassetteUnused(unused_test(item.nodeid, opened.block.path))
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Close the cassette, behind all fixtures: those of a module may make calls as they end."""
        try:
            return (yield)
        finally:
            self._close(item)

    def _close(self, item: pytest.Item) -> None:
        opened = item.stash.get(OPEN, None)
        if opened is not None and item in self._open_items:
            self._open_items.remove(item)
            del item.stash[OPEN]  # The run holds its tests to the end.
            opened.use.__exit__()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show a test that made no call without the frames of pytest: none of them is the test's."""
        report = yield
        error = call.excinfo.value if call.excinfo is not None else None
        if isinstance(error, CassetteUnused) and report.failed:
            report.longrepr = f"CassetteUnused: {error.message}"
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Close what an interrupted run left open: it tears nothing down."""
        for item in self._open_items[:]:
            self._close(item)
