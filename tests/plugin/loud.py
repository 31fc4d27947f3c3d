"""Every way in which a miss may come about and get lost in a test run, as a small project each.

What each run tells, and with which status it ends, stands in ``expected``: ``NAME.txt``, and ``NAME-n2.txt``
where two workers of pytest-xdist tell something else.
"""

from __future__ import annotations

import sys

import pytest

from tests.plugin._project import Project

__all__ = ["PROJECTS", "WITHOUT_WORKERS"]

_GROUPS = pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.TaskGroup came with Python 3.11")
_SUBTESTS = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="on Python 3.10 unittest tells of all subtests when the test is over"
)
_FORK = pytest.mark.skipif(sys.platform == "win32", reason="this platform cannot fork")

_CAUGHT = {
    "plain": Project.of("""
        @pytest.mark.cassette
        def test_it():
            ask()
    """),
    "twice": Project.of("""
        pytestmark = pytest.mark.cassette

        @pytest.mark.parametrize("prompt", ["a", "b", "b"])
        def test_it(prompt):
            ask(prompt)
    """),
    "diff": Project.of(
        """
        @pytest.mark.cassette
        def test_first():
            ask("What is the capital of France?")

        @pytest.mark.cassette
        def test_second():
            ask("What is the capital of Spain?")
        """,
        conftest="""
        import httpx, httpx_cassette
        from calls import URL, body, model

        transport = httpx_cassette.CassetteTransport(
            "cassettes/test_it.jsonl", mode="record", next_transport=httpx.MockTransport(model)
        )
        with httpx.Client(transport=transport) as client:
            client.post(URL, json=body("What is the capital of France?"))
        """,
    ),
    "bare-except": Project.of("""
        @pytest.mark.cassette
        def test_it():
            try:
                ask()
            except:
                pass
    """),
    "except-exception": Project.of("""
        @pytest.mark.cassette
        def test_it():
            try:
                ask()
            except Exception:
                pass  # the fallback of an application
    """),
    "except-and-another-error": Project.of("""
        @pytest.mark.cassette
        def test_it():
            try:
                ask()
            except BaseException:
                pass
            assert "an answer" == "a fallback"
    """),
    "raises": Project.of("""
        from httpx_cassette import CassetteMiss

        @pytest.mark.cassette
        def test_it():
            with pytest.raises(CassetteMiss):
                ask()
    """),
    "system-prompt": Project.of("""
        @pytest.mark.cassette
        def test_it():
            try:
                ask(messages=[{"role": "user", "content": "Hello"}])
            except BaseException:
                pass
    """),
    "xfail": Project.of("""
        @pytest.mark.cassette
        @pytest.mark.xfail
        def test_it():
            ask()
    """),
    "xfail-caught": Project.of("""
        @pytest.mark.cassette
        @pytest.mark.xfail
        def test_it():
            try:
                ask()
            except BaseException:
                assert False
    """),
    "skip": Project.of("""
        @pytest.mark.cassette
        def test_it():
            try:
                ask()
            except BaseException:
                pytest.skip("no model here")
    """),
    "collected": Project.of("""
        import gc

        def answers():
            try:
                yield
            finally:
                ask()

        @pytest.mark.cassette
        def test_it():
            next(answers())
            gc.collect()
    """),
}

_THREADS_AND_TASKS = {
    "thread": Project.of("""
        import threading

        @pytest.mark.cassette
        def test_it():
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
    """),
    "unread-future": Project.of("""
        from concurrent.futures import ThreadPoolExecutor

        @pytest.mark.cassette
        def test_it():
            with ThreadPoolExecutor() as pool:
                pool.submit(ask)
    """),
    "forked-process": Project(
        {
            "test_it.py": """
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor

            @pytest.mark.cassette(allow_unused=True)
            def test_it():
                with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
                    pool.submit(ask)
            """
        },
        marks=(_FORK,),
    ),
    "spawned-process": Project.of("""
        import multiprocessing

        def test_it():
            process = multiprocessing.get_context("spawn").Process(target=ask_alone)
            process.start()
            process.join()
    """),
    "test-client": Project.of("""
        from starlette.applications import Starlette
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route
        from starlette.testclient import TestClient

        async def endpoint(request):
            try:
                await ask_async()
            except BaseException:
                pass
            return PlainTextResponse("a fallback")

        @pytest.mark.cassette
        def test_it():
            client = TestClient(Starlette(routes=[Route("/", endpoint)]))
            assert "a fallback" == client.get("/").text
    """),
    "test-client-raises": Project.of("""
        from starlette.applications import Starlette
        from starlette.routing import Route
        from starlette.testclient import TestClient

        async def endpoint(request):
            await ask_async()

        @pytest.mark.cassette
        def test_it():
            with pytest.raises(BaseException):
                TestClient(Starlette(routes=[Route("/", endpoint)])).get("/")
    """),
    "background-task": Project.of("""
        from starlette.applications import Starlette
        from starlette.background import BackgroundTask
        from starlette.responses import PlainTextResponse
        from starlette.routing import Route
        from starlette.testclient import TestClient

        async def endpoint(request):
            return PlainTextResponse("at once", background=BackgroundTask(ask))

        @pytest.mark.cassette
        def test_it():
            try:
                TestClient(Starlette(routes=[Route("/", endpoint)])).get("/")
            except BaseException:
                pass
    """),
    "unawaited-task": Project.of("""
        import asyncio

        async def main():
            task = asyncio.create_task(ask_async())
            await asyncio.wait([task])

        @pytest.mark.cassette
        def test_it():
            asyncio.run(main())
    """),
    "gather": Project.of("""
        import asyncio

        async def main():
            return await asyncio.gather(ask_async(), return_exceptions=True)

        @pytest.mark.cassette
        def test_it():
            assert 1 == len(asyncio.run(main()))
    """),
    "task-group": Project(
        {
            "test_it.py": """
            import asyncio

            async def main():
                async with asyncio.TaskGroup() as group:
                    group.create_task(ask_async())

            @pytest.mark.cassette
            def test_it():
                asyncio.run(main())
            """
        },
        marks=(_GROUPS,),
    ),
    "asyncio": Project.of(
        """
        @pytest.mark.cassette
        @pytest.mark.asyncio
        async def test_it():
            try:
                await ask_async()
            except BaseException:
                pass
        """,
        plugins=("asyncio",),
    ),
    "anyio": Project.of(
        """
        @pytest.fixture(params=["asyncio", "trio"])
        def anyio_backend(request):
            return request.param

        @pytest.mark.cassette
        @pytest.mark.anyio
        async def test_it():
            try:
                await ask_async()
            except BaseException:
                pass
        """,
        plugins=("anyio",),
    ),
}

_PLACES = {
    "fixture": Project.of("""
        @pytest.fixture
        def answer():
            return ask()

        @pytest.mark.cassette
        def test_it(answer):
            pass
    """),
    "fixture-caught": Project.of("""
        @pytest.fixture
        def answer():
            try:
                ask()
            except BaseException:
                return "a fallback"

        @pytest.mark.cassette
        def test_it(answer):
            assert answer == "a fallback"
    """),
    "teardown": Project.of("""
        @pytest.fixture
        def answer():
            yield
            ask()

        @pytest.mark.cassette(allow_unused=True)
        def test_it(answer):
            pass
    """),
    "teardown-caught": Project.of("""
        @pytest.fixture
        def answer():
            yield
            try:
                ask()
            except BaseException:
                pass

        @pytest.mark.cassette(allow_unused=True)
        def test_it(answer):
            pass
    """),
    "module-fixture": Project.of("""
        @pytest.fixture(scope="module")
        def answer():
            try:
                ask()
            except BaseException:
                return "a fallback"

        @pytest.mark.cassette
        def test_it(answer):
            pass
    """),
    "session-fixture-teardown": Project.of("""
        @pytest.fixture(scope="session")
        def answer():
            yield
            try:
                ask_alone()
            except BaseException:
                pass

        def test_it(answer):
            pass
    """),
    "import": Project.of("""
        try:
            ask_alone()
        except BaseException:
            pass

        def test_it():
            pass
    """),
    "import-fails": Project.of("""
        ask_alone()

        def test_it():
            pass
    """),
    "setup-module": Project.of("""
        def setup_module():
            try:
                ask_alone()
            except BaseException:
                pass

        def test_it():
            pass
    """),
    "unittest": Project.of("""
        import unittest

        @pytest.mark.cassette
        class Test(unittest.TestCase):
            def test_it(self):
                try:
                    ask()
                except BaseException:
                    pass
    """),
    "unittest-setup": Project.of("""
        import unittest

        @pytest.mark.cassette
        class Test(unittest.TestCase):
            def setUp(self):
                ask()

            def test_it(self):
                pass
    """),
    "unittest-subtest": Project(
        {
            "test_it.py": """
            import unittest

            @pytest.mark.cassette
            class Test(unittest.TestCase):
                def test_it(self):
                    for prompt in ("a", "b"):
                        with self.subTest(prompt=prompt):
                            try:
                                ask(prompt)
                            except BaseException:
                                pass
            """
        },
        marks=(_SUBTESTS,),
    ),
    "doctest": Project.of(
        "",
        "--doctest-modules",
        example='''
        """
        >>> from calls import ask_alone
        >>> try:
        ...     ask_alone()
        ... except BaseException:
        ...     pass
        """
        ''',
    ),
}

_MISSES = """
    pytestmark = pytest.mark.cassette

    def test_first():
        try:
            ask()
        except BaseException:
            pass

    def test_second():
        try:
            ask()
        except BaseException:
            pass
"""

_RUNS = {
    "expected-miss": Project.of("""
        import httpx_cassette

        @pytest.mark.cassette
        def test_it():
            with httpx_cassette.expected_miss():
                ask()
    """),
    "no-tests": Project.of(
        "",
        conftest="""
        from calls import ask_alone

        try:
            ask_alone()
        except BaseException:
            pass
        """,
    ),
    "internal-error": Project.of(
        "",
        conftest="""
        from calls import ask_alone

        def pytest_collection_modifyitems():
            try:
                ask_alone()
            except BaseException:
                raise RuntimeError("a broken plugin")
        """,
    ),
    "usage-error": Project.of(
        "",
        "--no-such-option",
        conftest="""
        from calls import ask_alone

        try:
            ask_alone()
        except BaseException:
            pass
        """,
    ),
    "no-summary": Project.of(_MISSES, "--no-summary"),
    "no-terminal": Project.of(_MISSES, "-p", "no:terminal"),
    "stop-at-first": Project.of(_MISSES, "-x"),
    "maxfail": Project.of(_MISSES, "--maxfail=2"),
    "no-capture": Project.of(_MISSES, "-s"),
    "quieter": Project.of(_MISSES, "-qq"),
    "reruns": Project.of(_MISSES, "--reruns=1", plugins=("rerunfailures",)),
    "rerun-passes": Project.of(
        """
        tries = []

        @pytest.mark.cassette(allow_unused=True)
        def test_it():
            tries.append(1)
            if len(tries) == 1:
                ask()
        """,
        "--reruns=1",
        plugins=("rerunfailures",),
    ),
}

_UNUSED = {
    "unused": Project.of("""
        @pytest.mark.cassette
        def test_it():
            pass
    """),
    "unused-client-of-its-own": Project.of("""
        import httpx

        @pytest.mark.cassette
        def test_it():
            with httpx.Client(transport=httpx.MockTransport(model)) as client:
                client.post(URL, json=body("a"))
    """),
    "unused-and-failed": Project.of("""
        @pytest.mark.cassette
        def test_it():
            assert 1 == 2
    """),
    "unused-and-skipped": Project.of("""
        @pytest.mark.cassette
        def test_it():
            pytest.skip("not today")
    """),
    "allow-unused": Project.of("""
        @pytest.mark.cassette(allow_unused=True)
        def test_it():
            pass
    """),
    "unrecorded-error": Project.of("""
        import httpx

        def broken(request):
            return httpx.Response(500, text="out of order")

        @pytest.mark.cassette(mode="record", next_transport=httpx.MockTransport(broken))
        def test_it():
            with httpx.Client() as client:
                assert 500 == client.post(URL, json=body("a")).status_code
    """),
    "abandoned-stream": Project.of("""
        import httpx

        def stream(request):
            events = [b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\\n\\n'] * 3
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=iter(events))

        @pytest.mark.cassette(mode="record", next_transport=httpx.MockTransport(stream))
        def test_it():
            with httpx.Client() as client:
                with client.stream("POST", URL, json=body("a", stream=True)) as response:
                    next(response.iter_lines())
    """),
}

PROJECTS = {**_CAUGHT, **_THREADS_AND_TASKS, **_PLACES, **_RUNS, **_UNUSED}

#: Workers that are told to stop may run one test more, or not; of several that crash or write to stderr at
#: once, any may be the first.
WITHOUT_WORKERS = ("stop-at-first", "maxfail", "no-capture", "internal-error")
