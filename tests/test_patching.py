"""What is patched while a cassette is open: all of it, at the right time, and nothing once none is."""

from __future__ import annotations

import functools
import gc
import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from httpx_cassette import _block, use_cassette
from httpx_cassette._block import open_blocks
from httpx_cassette._driver import FORWARDING
from httpx_cassette._patching import _WATCH, close_patches, open_patches, strangers

from .colours import COLOURS, URL, answer
from .taping import ask, run_program, tape

needs_httpx2 = pytest.mark.skipif(not importlib.util.find_spec("httpx2"), reason="httpx2 is not installed")

LIBRARIES = tuple({colour.library: None for colour in COLOURS})

#: Everything that a patch may stand on.
PLACES: tuple[tuple[Any, str], ...] = (
    *((library.HTTPTransport, "handle_request") for library in LIBRARIES),
    *((library.AsyncHTTPTransport, "handle_async_request") for library in LIBRARIES),
    (threading.Thread, "start"),
    (ThreadPoolExecutor, "submit"),
)


def standing() -> list[Any]:
    """Return what stands in every place."""
    return [owner.__dict__[name] for owner, name in PLACES]


@pytest.fixture(autouse=True)
def everything_is_put_back() -> Iterator[None]:
    """See to it that what stood there before a test stands there after it, the very object."""
    # What other tests started may still be there, such as the idle threads of trio.
    _block._links.clear()
    close_patches()
    before = standing()
    yield

    gc.collect()
    after = standing()
    assert [] == [place for place, one, other in zip(PLACES, before, after, strict=True) if one is not other]
    assert ((), False) == (open_blocks(), _WATCH in sys.meta_path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Give a cassette that answers ``a``."""
    return tape(tmp_path / "a.jsonl")


@pytest.fixture
def live() -> Iterator[None]:
    """Give the network of httpx, which answers ``live``."""
    with respx.mock(assert_all_called=False) as network:
        network.post(URL).mock(side_effect=lambda request: answer("live"))
        yield


def test_patches_stand_while_a_block_is_open(path: Path) -> None:
    """With the first block they are put in place, with the last one they go; they look like the originals."""
    before = standing()
    with use_cassette(path):
        within = standing()
        with use_cassette(path):
            nested = standing()
        again = standing()

    assert within == nested == again
    assert [] == [place for place, one, other in zip(PLACES, before, within, strict=True) if one is other]
    assert [each.__qualname__ for each in before] == [each.__qualname__ for each in within]
    assert list(map(inspect.iscoroutinefunction, before)) == list(map(inspect.iscoroutinefunction, within))


def test_opening_and_closing_patches_twice_does_nothing() -> None:
    """Without a block that is open, they go at once."""
    open_patches()
    open_patches()
    close_patches()
    close_patches()


def test_blocks_of_many_threads_leave_nothing_behind(path: Path) -> None:
    """Whoever opens the first block and whoever closes the last one, a call within is always answered."""

    def work(number: int) -> set[str]:
        found = set()
        for _ in range(40):
            with use_cassette(path):
                found.add(ask())
        return found

    with ThreadPoolExecutor(6) as pool:
        assert {"a"} == set().union(*pool.map(work, range(6)))


# -- others --------------------------------------------------------------------------------------------


class Stranger:
    """Patches what we patch, as its own."""

    def __init__(self, name: str, wraps: bool = False) -> None:
        self.name = name
        self.wraps = wraps
        self.calls = 0

    def __enter__(self) -> Stranger:
        self.before = httpx.HTTPTransport.handle_request
        namespace: dict[str, Any] = {"__name__": f"{self.name}.inner", "stranger": self, "real": self.before}
        exec(
            "def patch(self, request):\n    stranger.calls += 1\n    return real(self, request)\n", namespace
        )
        patch = namespace["patch"]
        self.patch = functools.wraps(self.before)(patch) if self.wraps else patch
        httpx.HTTPTransport.handle_request = self.patch  # type: ignore[method-assign]
        return self

    def __exit__(self, *error: object) -> None:
        httpx.HTTPTransport.handle_request = self.before  # type: ignore[method-assign]


@pytest.mark.parametrize("wraps", [False, True], ids=["plain", "wrapped"])
def test_a_stranger_within_a_block_is_asked_first(path: Path, wraps: bool, live: None) -> None:
    """What it lets through is answered from the cassette; a wrapper is not taken for a patch of ours."""
    with use_cassette(path):
        with Stranger("other", wraps) as stranger:
            found = [ask()]
            with use_cassette(path):
                found.append(ask())
                assert ["other"] == strangers()
        found.append(ask())

    assert (["a", "a", "a"], 1) == (found, stranger.calls)


def test_a_stranger_around_a_block_is_below_it(path: Path, tmp_path: Path, live: None) -> None:
    """It sees real calls alone, and gets back what it put there."""
    with Stranger("other") as stranger:
        with use_cassette(path):
            found = [ask()]
            assert ["other"] == strangers()
        assert httpx.HTTPTransport.handle_request is stranger.patch
        with use_cassette(tmp_path / "b.jsonl", mode="record"):
            found.append(ask())
        assert ["other"] == strangers()

    assert (["a", "live"], 1) == (found, stranger.calls)
    assert [] == strangers()


def test_a_stranger_who_stays_longer_gets_no_answer(path: Path, live: None) -> None:
    """What is left below him does nothing without a block, and goes with a later one once he is gone."""
    stranger, bare = Stranger("other"), httpx.HTTPTransport.handle_request
    use = use_cassette(path)
    use.__enter__()
    stranger.__enter__()
    use.__exit__()
    found = [ask()]
    with use_cassette(path):
        found.append(ask())
        stranger.__exit__()
        found.append(ask())

    assert ["live", "a", "a"] == found
    assert httpx.HTTPTransport.handle_request is bare


def test_a_stranger_who_leaves_first_takes_the_patch_along(path: Path, live: None) -> None:
    """He restores what he found; closing the block then disturbs nobody, and the next one is whole."""
    stranger = Stranger("other")
    with stranger:
        use = use_cassette(path)
        use.__enter__()
    use.__exit__()
    with use_cassette(path):
        assert "a" == ask()


# -- threads -------------------------------------------------------------------------------------------


class ByThread(httpx.BaseTransport):
    """Makes its calls in other threads, by a transport of the library."""

    def __init__(self, pool: ThreadPoolExecutor | None = None) -> None:
        self._pool = pool
        self._inner = httpx.HTTPTransport(verify=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self._pool is not None:
            return self._pool.submit(self._inner.handle_request, request).result()
        found: list[httpx.Response] = []
        thread = threading.Thread(target=lambda: found.append(self._inner.handle_request(request)))
        thread.start()
        thread.join()
        assert "run" not in thread.__dict__
        return found[0]


def test_a_real_call_may_be_made_by_another_thread(tmp_path: Path, live: None) -> None:
    """What it goes through is not answered from the cassette, nor waited for; later tasks of a pool are."""
    with ThreadPoolExecutor(1) as pool:
        for number, transport in enumerate([ByThread(pool), ByThread()]):
            with use_cassette(
                tmp_path / f"{number}.jsonl", mode="record", next_transport=transport
            ) as cassette:
                assert "live" == ask()
                assert "live" == pool.submit(ask).result()
            assert (2, 1, 1) == (cassette.calls, cassette.hits, cassette.recorded)
        assert not FORWARDING.get()


# -- imports -------------------------------------------------------------------------------------------


@needs_httpx2
def test_a_library_that_is_imported_later_is_patched(path: Path) -> None:
    """Its loader is its own again, a reload changes nothing, and in the end neither is patched."""
    ended = run_program(
        path.parent,
        """
        import importlib.util, inspect
        with use_cassette("a.jsonl"):
            assert "httpx2" not in sys.modules
            spec = importlib.util.find_spec("httpx2")
            print(os.path.basename(spec.loader.get_filename("httpx2")))
            import httpx2
            print(said(httpx2.post(URL, json=CHAT, verify=False, trust_env=False)))
            print(type(httpx2.__spec__.loader).__module__, httpx2.__loader__ is httpx2.__spec__.loader)
            print(inspect.getsource(httpx2).splitlines()[0])
            importlib.reload(httpx2)
            print(said(httpx2.post(URL, json=CHAT, verify=False, trust_env=False)))
            for name in [name for name in sys.modules if name.partition(".")[0] == "httpx2"]:
                del sys.modules[name]
            import httpx2 as anew
            assert anew.HTTPTransport is not httpx2.HTTPTransport
            print("patched", hasattr(anew.HTTPTransport.handle_request, "__wrapped__"))
        # What was found within the block, and is imported when it is closed.
        late = importlib.util.module_from_spec(spec)
        for name in [name for name in sys.modules if name.partition(".")[0] == "httpx2"]:
            del sys.modules[name]
        sys.modules["httpx2"] = late
        spec.loader.exec_module(late)
        three = (httpx2, anew, late)
        print(*(hasattr(each.HTTPTransport.handle_request, "__wrapped__") for each in three))
        """,
    )

    assert (
        0,
        "__init__.py\n"
        "a\n"
        "_frozen_importlib_external True\n"
        "from .__version__ import __description__, __title__, __version__\n"
        "a\n"
        "patched True\n"
        "False False False\n",
    ) == ended[:2], ended.err


@needs_httpx2
def test_a_library_that_another_thread_is_importing_is_patched(path: Path) -> None:
    """The block waits for its end, as the import began before the watch did."""
    ended = run_program(
        path.parent,
        """
        import importlib.abc, importlib.machinery, threading
        found, go = threading.Event(), threading.Event()

        class Slow(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name == "httpx2._transports":
                    found.set()
                    assert go.wait(10)

        sys.meta_path.insert(0, Slow())
        use = use_cassette("a.jsonl")
        thread = threading.Thread(target=__import__, args=["httpx2"])
        thread.start()
        assert found.wait(10)
        threading.Timer(0.2, go.set).start()
        with use:
            import httpx2
            print(said(httpx2.post(URL, json=CHAT, verify=False, trust_env=False)))
        thread.join()
        """,
    )

    assert (0, "a\n") == ended[:2], ended.err


@needs_httpx2
def test_an_import_that_fails_disturbs_nobody(path: Path) -> None:
    """Neither one within a block, nor one that another thread is about when it opens, nor a forbidden one."""
    ended = run_program(
        path.parent,
        """
        import importlib.abc, threading, types, httpx
        class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            def find_spec(self, name, path, target=None):
                if name == "httpx2":
                    return importlib.machinery.ModuleSpec(name, self)
            def create_module(self, spec):
                return None
            def exec_module(self, module):
                raise ImportError("broken")
        class OldStyle:
            def find_module(self, name, path=None):
                return None
        broken, ask = Broken(), lambda: said(httpx.post(URL, json=CHAT, verify=False, trust_env=False))
        sys.meta_path[:0] = [OldStyle(), broken]
        with use_cassette("a.jsonl"):
            try:
                import httpx2
            except ImportError as error:
                print(error)
            print(ask())
        half = sys.modules["httpx2"] = types.ModuleType("httpx2")
        half.__spec__ = importlib.machinery.ModuleSpec("httpx2", broken)
        half.__spec__._initializing = True
        real = importlib.import_module
        def fail(name, package=None):
            if name == "httpx2":
                raise ImportError("over there")
            return real(name, package)
        importlib.import_module = fail
        with use_cassette("a.jsonl"):
            print(ask())
        importlib.import_module = real
        sys.modules["httpx2"] = None
        with use_cassette("a.jsonl"):
            print(ask())
        del sys.modules["httpx2"]
        """,
    )

    assert (0, "broken\na\na\na\n") == ended[:2], ended.err


def test_httpx_alone_is_enough(path: Path) -> None:
    """Where httpx2 cannot be found, nothing asks for it."""
    ended = run_program(
        path.parent,
        """
        import importlib.abc, importlib.machinery, httpx
        class Hiding(importlib.abc.MetaPathFinder):
            def find_spec(self, name, path, target=None):
                if name.partition(".")[0] not in ("httpx2", "httpcore2"):
                    return importlib.machinery.PathFinder.find_spec(name, path, target)
        frozen = [each for each in sys.meta_path if each.__module__ == "_frozen_importlib"]
        sys.meta_path[:] = [*frozen, Hiding()]
        with use_cassette("a.jsonl"):
            print(said(httpx.post(URL, json=CHAT, verify=False, trust_env=False)))
            try:
                import httpx2
            except ModuleNotFoundError as error:
                print(error.name)
            try:
                import httpx3
            except ModuleNotFoundError as error:
                print(error.name)
        print("httpx2" in sys.modules)
        """,
    )

    assert (0, "a\nhttpx2\nhttpx3\nFalse\n") == ended[:2], ended.err


@needs_httpx2
def test_a_library_under_the_others_name_is_answered(path: Path) -> None:
    """``httpx2.alias_httpx()`` makes one of both, before this package is imported or after."""
    program = """
        import httpx2
        for name in [name for name in sys.modules if name.partition(".")[0] in ("httpx", "httpcore")]:
            del sys.modules[name]
        httpx2.alias_httpx()
        import httpx
        assert httpx is httpx2
        with use_cassette("a.jsonl") as cassette:
            print(said(httpx.post(URL, json=CHAT, verify=False, trust_env=False)), cassette.calls)
        print(hasattr(httpx.HTTPTransport.handle_request, "__wrapped__"))
        """
    ended = run_program(path.parent, program)

    assert (0, "a 1\nFalse\n") == ended[:2], ended.err


# -- processes -----------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_fork_waits_for_patches(path: Path) -> None:
    """Threads that open and close blocks leave no lock behind in a child, and it can open one itself."""
    ended = run_program(
        path.parent,
        """
        import threading, warnings, httpx
        warnings.simplefilter("ignore", DeprecationWarning)
        stop = threading.Event()
        def work():
            while not stop.is_set():
                with use_cassette("a.jsonl"):
                    pass
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                with use_cassette("a.jsonl"):
                    answer = said(httpx.post(URL, json=CHAT, verify=False, trust_env=False))
                os._exit(0 if answer == "a" else 1)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
        print("done")
        """,
    )

    assert (0, "done\n") == ended[:2], ended.err
