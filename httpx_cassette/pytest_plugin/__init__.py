"""The plugin of pytest: ``@pytest.mark.cassette``, its fixtures, and a run that cannot hide a miss.

Nothing is imported before a cassette is used but what takes over from the exit hook: most runs of most suites
use none, and every run of every suite on the machine pays for what stands here.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from .._process import RUN
from ._waking import begin, ledger_if_used, listen, run_if_awake, run_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from .._block import OpenCassette

__all__ = ["cassette", "cassette_config", "cassette_transport"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, all of which begin with ``--cassette``."""
    group = parser.getgroup("cassette", "httpx_cassette: calls of language models, recorded and replayed")
    group.addoption(
        "--cassette-mode",
        choices=("replay", "record", "rerecord", "live"),
        help="what happens to calls, whatever the tests say: HTTPX_CASSETTE_MODE for this run",
    )
    group.addoption(
        "--cassette-dir",
        metavar="DIR",
        help="write cassettes below DIR; those beside the tests are looked up as well, and not written",
    )
    group.addoption(
        "--cassette-strict",
        action="store_true",
        default=None,
        help="refuse cassettes with damaged or contradictory lines",
    )
    group.addoption(
        "--cassette-guard",
        action="store_true",
        default=None,
        help="refuse connections to other machines while a cassette is replayed",
    )
    group.addoption(
        "--cassette-report",
        action="store_true",
        help="list the recordings that no test asked for, and the cassettes that no test opened",
    )
    group.addoption(
        "--cassette-prune", action="store_true", help="remove what --cassette-report lists, after a whole run"
    )
    group.addoption(
        "--cassette-used",
        metavar="FILE",
        help="write the fingerprints that were used to FILE, one JSON a line",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take over from the exit hook before the project's own code may make a call."""
    begin(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Take over from the exit hook, for as long as the run lasts."""
    config.addinivalue_line(
        "markers",
        "cassette(name=None, *, allow_unused=False, guard=False, **options): answer the calls of the test "
        "from cassettes/<name, or the test module>.jsonl beside it; options as for CassetteTransport",
    )
    listen(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each size of ``chunk_size=[1, 7, 64]``."""
    sizes: Any = None
    for marker in metafunc.definition.iter_markers("cassette"):
        if "chunk_size" in marker.kwargs:
            sizes = marker.kwargs["chunk_size"]
            break  # The nearest to the test comes first.
    # No size would be no test, and skipped; without this it is run, and told that this is no size.
    if sizes and isinstance(sizes, (list, tuple)):
        metafunc.fixturenames.append("_cassette_chunk_size")
        metafunc.parametrize(
            "_cassette_chunk_size", sizes, ids=[f"chunk_size={size}" for size in sizes], indirect=True
        )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """See to it that cassettes are opened, once there is a test that wants one."""
    RUN.test = item.nodeid
    wants_one = item.get_closest_marker("cassette") is not None
    if wants_one or "_open_cassette" in getattr(item, "fixturenames", ()):
        run_of(item.config).items()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Generator[None, Any, Any]:
    """Let no miss in an async test end the event loop of the tests after it."""
    __tracebackhide__ = True
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return (yield)
    from ._coroutines import keep_stops

    return (yield from keep_stops(pyfuncitem))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """Let no miss in a fixture end the event loop, or be lost on the next test that asks for it."""
    __tracebackhide__ = True
    function = fixturedef.func
    try:
        if not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
            return (yield)
        from ._coroutines import keep_stops_of_fixture

        return (yield from keep_stops_of_fixture(fixturedef))
    except BaseException as error:
        if not isinstance(error, Exception) and ledger_if_used():
            from ._coroutines import keep_for_others

            keep_for_others(fixturedef, request, error)
        raise


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Wake the run, once there is something that the test may have to be told."""
    if run_if_awake(item.config) or not ledger_if_used():
        return (yield)
    return (yield from run_of(item.config).pytest_runtest_makereport(item, call))


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """Belong to no test until the next one begins."""
    RUN.test = ""


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Wake the run, if what happened came behind the last test."""
    if not run_if_awake(session.config) and ledger_if_used():
        run_of(session.config).pytest_sessionfinish(session)


@pytest.fixture(scope="session")
def cassette_config() -> dict[str, Any]:
    """Give the options of every cassette of the session; override it for a package, a module or a class."""
    return {}


@pytest.fixture
def _cassette_chunk_size(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def _open_cassette(request: pytest.FixtureRequest, cassette_config: Any) -> Any:
    """Open the cassette of a test; it is closed when all else is torn down."""
    return run_of(request.config).items().open_cassette(request.node, cassette_config)


@pytest.fixture
def cassette(_open_cassette: Any) -> OpenCassette:
    """Give the open cassette of the test: ``hits``, ``recorded``, ``recordings``, ``stats``."""
    found: OpenCassette = _open_cassette.block
    return found


@pytest.fixture
def cassette_transport(_open_cassette: Any) -> Any:
    """Give a transport on the cassette of the test, for clients of httpx and of httpx2, sync and async."""
    return _open_cassette.block.transport
