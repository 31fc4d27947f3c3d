"""The plugin of pytest: ``@pytest.mark.cassette``, its fixtures, and a run that cannot hide a miss.

Nothing of the package but its ledger is imported before a cassette is used: most runs of most suites use
none, and every run of every suite on the machine pays for what stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ._run import Run
from ._taking_over import PLUGIN, begin

if TYPE_CHECKING:
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
    config.pluginmanager.register(Run(config), PLUGIN)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each size of ``chunk_size=[1, 7, 64]``."""
    sizes: Any = None
    for marker in metafunc.definition.iter_markers("cassette"):
        if "chunk_size" in marker.kwargs:
            sizes = marker.kwargs["chunk_size"]
            break  # The nearest to the test comes first.
    if isinstance(sizes, (list, tuple)):
        metafunc.fixturenames.append("_cassette_chunk_size")
        metafunc.parametrize(
            "_cassette_chunk_size", sizes, ids=[f"chunk_size={size}" for size in sizes], indirect=True
        )


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
    run: Any = request.config.pluginmanager.get_plugin(PLUGIN)
    return run.items().open_cassette(request.node, cassette_config)


@pytest.fixture
def cassette(_open_cassette: Any) -> OpenCassette:
    """Give the open cassette of the test: ``hits``, ``recorded``, ``recordings``, ``stats``."""
    found: OpenCassette = _open_cassette.block
    return found


@pytest.fixture
def cassette_transport(_open_cassette: Any) -> Any:
    """Give a transport on the cassette of the test, for clients of httpx and of httpx2, sync and async."""
    return _open_cassette.block.transport
