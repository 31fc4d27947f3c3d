"""What every test gets: no network, no key, no setting from outside, and the shared fixtures.

Connecting and looking up names is refused for the whole run, by an audit hook, so that nothing can be
patched back by accident.
A test that talks to a server on loopback says so with ``@pytest.mark.loopback`` or takes the fixture
``loopback`` (``stand_in`` brings it); nothing lets a test reach another machine.
Programs that a test starts are not covered by this.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import signal
import sys
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from httpx_cassette import _ledger
from httpx_cassette.stand_in import StandInServer

# Small projects are tested in tests/plugin.
pytest_plugins = ["pytester"]

# Their assertions speak as those of a test do.
pytest.register_assert_rewrite("tests.stream_proof", "tests.sdk._replaying")

from .colours import COLOURS, Colour  # noqa: E402

# The SDK judges live in environments of their own (nox -s sdk sdk_old).
collect_ignore = [] if importlib.util.find_spec("openai") else ["sdk"]

# The suites of these are run by tests, in copies of their own.
collect_ignore.append("projects")

# A slow machine is no failure.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "tests")


# --- the network --------------------------------------------------------------------------------------

#: Audit events that name a host, and which of their arguments does.
_HOSTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}

_is_loopback_allowed = False


def _refuse_the_network(  # pragma: no cover  # audit hooks are not traced
    event: str, arguments: tuple[object, ...], hosts: dict[str, int] = _HOSTS
) -> None:
    # ``hosts``, not ``_HOSTS``: the hook outlives the names of this module.
    if event not in hosts:
        return
    address = arguments[hosts[event]]
    host = address[0] if isinstance(address, tuple) else address
    # Nothing: a wildcard, or the peer of a connected socket. A text for ``connect``: a Unix socket's path.
    if not host or (event == "socket.connect" and not isinstance(address, tuple)):
        return
    if not _is_loopback(host):
        pytest.fail(f"a test went for the network: {event} {host!r}")
    if not _is_loopback_allowed:
        pytest.fail(f"{event} {host!r}: a test that uses loopback says so with @pytest.mark.loopback")


def _is_loopback(host: object) -> bool:  # pragma: no cover  # called by the hook alone
    text = host.decode("idna") if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return text == "localhost"


def pytest_configure(config: pytest.Config) -> None:
    """Close the network, and forget what the shell around would change about a test."""
    config.addinivalue_line("markers", "loopback: the test talks to a server of its own on 127.0.0.1")
    for name in list(os.environ):
        if name.startswith("HTTPX_CASSETTE_") or name.endswith("_API_KEY"):
            del os.environ[name]
    sys.addaudithook(_refuse_the_network)
    _heed_signals()


def _heed_signals() -> None:
    """Have programs of tests end by signals, some of which are ignored in the background of a shell."""
    for name, handler in (
        ("SIGINT", signal.default_int_handler),
        ("SIGQUIT", signal.SIG_DFL),
        ("SIGHUP", signal.SIG_DFL),
    ):
        number = getattr(signal, name, None)  # Windows has the first only.
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Open loopback for one test with its fixtures, if it asked."""
    global _is_loopback_allowed
    asked_for = getattr(item, "fixturenames", ())
    _is_loopback_allowed = "loopback" in asked_for or item.get_closest_marker("loopback") is not None
    try:
        return (yield)
    finally:
        _is_loopback_allowed = False


@pytest.fixture
def loopback() -> None:
    """Let the test, and the fixtures that take this one, use servers on loopback."""


# --- shared fixtures ----------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run each ``@pytest.mark.anyio`` test under asyncio and under trio."""
    return str(request.param)


@pytest.fixture
def stand_in(loopback: None) -> Iterator[StandInServer]:
    """Give a stand-in model server; ``stand_in.url`` is the base URL for an SDK."""
    with StandInServer() as server:
        yield server


@pytest.fixture(params=COLOURS, ids=repr)
def colour(request: pytest.FixtureRequest) -> Colour:
    """Give each way of making calls: httpx and httpx2, sync, under asyncio and under trio."""
    found: Colour = request.param
    return found


@pytest.fixture(autouse=True)
def misses_end_with_the_test() -> Iterator[None]:
    """Forget the misses of a test: its run is no failure because a call missed where it should."""
    yield
    _ledger.clear()
