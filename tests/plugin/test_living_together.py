"""Other plugins, event loops, forks, and files that change while the tests run."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from httpx_cassette._cassette import Cassette
from httpx_cassette.stand_in import StandInServer
from tests.plugin._project import Ended, Project, run, start
from tests.plugin.conftest import Tested
from tests.plugin.programs.calls import record

RECORDS = 'pytestmark = pytest.mark.cassette(mode="record", next_transport=httpx.MockTransport(model))\n'


#: pytest-asyncio warns of a default that will change.
LOOPS = ("-o", "asyncio_default_fixture_loop_scope=function")


def counts(ended: Ended) -> str:
    """Return the line with what became of calls."""
    lines = ended.told.splitlines()
    assert "== httpx_cassette" in lines, ended.text
    return lines[lines.index("== httpx_cassette") + 1]


# -- what patches httpx as well ------------------------------------------------------------------------


def test_respx_within_a_test_stands_below_the_cassette(tested: Tested) -> None:
    """It mocks what a real call goes through: the recording is of its answer, made once."""
    ended = tested(
        test_it="""
    import httpx, respx

    @pytest.mark.cassette(mode="record")
    def test_it(cassette):
        with respx.mock() as router:
            route = router.post(URL).respond(json={"model": "mocked"})
            assert {"model": "mocked"} == ask("a")
            assert {"model": "mocked"} == ask("a")
            assert 1 == route.call_count
        assert (1, 1) == (cassette.hits, cassette.recorded)
    """
    )

    assert (0, "1 replayed, 1 recorded, 0 missed, 1 real call") == (ended.status, counts(ended)), ended.text


def test_respx_in_a_replay_is_not_asked(tested: Tested) -> None:
    """A miss is a miss, whatever would answer the real call."""
    ended = tested(
        test_it="""
    import respx

    @pytest.mark.cassette
    @respx.mock(assert_all_called=False)
    def test_it():
        respx.post(URL).respond(json={})
        ask("a")
    """
    )

    assert (2, "0 replayed, 0 recorded, 1 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


def test_pytest_httpx_comes_first_and_is_named(tested: Tested) -> None:
    """Its fixture puts itself in the place of the transport: the cassette is unused, and the test fails."""
    ended = tested(
        plugins=("pytest_httpx",),
        test_it="""
    @pytest.mark.cassette
    def test_it(httpx_mock):
        httpx_mock.add_response(json={"model": "mocked"})
        ask("a")
    """,
    )

    assert 1 == ended.status, ended.text
    assert (
        "CassetteUnused: no call of test_it.py::test_it came by cassettes/test_it.jsonl\n"
        "  perhaps      pytest_httpx stands in the place of the transport of httpx, and was asked instead\n"
    ) in ended.told


def test_pytest_httpx_alone_is_left_alone(tested: Tested) -> None:
    """A test without a cassette is mocked as ever, between tests that have one."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        plugins=("pytest_httpx",),
        test_it="""
    @pytest.mark.cassette
    def test_first():
        assert "gpt-4o-2024-08-06" == ask("a")["model"]

    def test_second(httpx_mock):
        httpx_mock.add_response(json={"model": "mocked"})
        assert {"model": "mocked"} == ask("a")

    @pytest.mark.cassette
    def test_third():
        assert "gpt-4o-2024-08-06" == ask("a")["model"]
    """,
    )

    assert (0, "2 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


def test_vcr_and_a_cassette_on_one_test_are_refused(tested: Tested) -> None:
    """Both would record, and each call would stand in two files."""
    ended = tested(
        plugins=("recording",),
        test_it="@pytest.mark.vcr\n@pytest.mark.cassette\ndef test_it():\n    ask()\n",
    )

    assert 1 == ended.status
    assert (
        "CassetteError: the test is marked with vcr as well, and both would record; take one marker off"
        in ended.told.splitlines()
    )


def test_recording_within_vcr_is_refused(tested: Tested) -> None:
    """A block of vcrpy round the test is seen when the cassette opens for recording."""
    ended = tested(
        conftest="""
    import pytest, vcr

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(item):
        with vcr.use_cassette("vcr.yaml", record_mode="none"):
            return (yield)
    """,
        test_it="@pytest.mark.cassette(mode='record')\ndef test_it():\n    ask()\n",
    )

    assert 1 == ended.status
    assert "OptionError: vcrpy is on, and would record each call a second time; leave its block" in ended.told
    assert not Path("vcr.yaml").exists()


def test_tests_marked_with_vcr_go_beside_those_with_a_cassette(tested: Tested) -> None:
    """Each records for itself, and neither sees the other's calls."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        plugins=("recording",),
        test_it="""
    @pytest.mark.cassette
    def test_first():
        ask("a")

    @pytest.mark.vcr
    def test_second():
        with pytest.raises(Exception):
            ask("a")
    """,
    )

    assert (0, "1 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


# -- event loops, order, tries -------------------------------------------------------------------------


def test_every_test_may_have_a_loop_of_its_own(tested: Tested) -> None:
    """One client and one transport serve several loops, of asyncio as of trio."""
    record("cassettes/test_it.jsonl", "a", "b")
    ended = tested(
        *LOOPS,
        plugins=("asyncio", "anyio"),
        test_it="""
    import asyncio, httpx

    pytestmark = pytest.mark.cassette

    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(request):
        return request.param

    @pytest.mark.asyncio
    @pytest.mark.parametrize("number", range(2))
    async def test_asyncio(number, cassette):
        await asyncio.gather(*(ask_async(prompt) for prompt in "ab" * 3))
        assert 6 == cassette.hits

    @pytest.mark.anyio
    async def test_anyio(cassette):
        await ask_async("a")
        assert 1 == cassette.hits

    @pytest.fixture
    async def answer(anyio_backend):
        return await ask_async("b")

    @pytest.mark.anyio
    async def test_fixture(answer, cassette):
        assert 1 == cassette.hits
    """,
    )

    assert (0, "16 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


def test_a_fixture_of_pytest_asyncio_is_answered(tested: Tested) -> None:
    """It runs in the loop of the test, before the test."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        *LOOPS,
        plugins=("asyncio",),
        test_it="""
    import pytest_asyncio

    @pytest_asyncio.fixture
    async def answer():
        yield await ask_async("a")
        await ask_async("a")

    @pytest.mark.cassette
    @pytest.mark.asyncio
    async def test_it(answer):
        assert answer["choices"]
    """,
    )

    assert (0, "2 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


def test_each_try_begins_anew(tested: Tested) -> None:
    """A test that is run again opens its cassette again: positions of samples, hits and calls are its own."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        "--reruns=2",
        "--cassette-report",
        plugins=("rerunfailures",),
        test_it="""
    tries = []

    @pytest.mark.cassette
    def test_it(cassette):
        tries.append(1)
        ask("a")
        assert 1 == cassette.hits
        assert 3 == len(tries)
    """,
    )

    assert (0, "3 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text
    assert "== httpx_cassette: unused recordings\nnone\n" in ended.told


def test_the_order_changes_nothing(tmp_path: Path) -> None:
    """Under pytest-randomly the same tests use the same recordings."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "a", "b")
    test = """
    pytestmark = pytest.mark.cassette

    @pytest.mark.parametrize("prompt", list("abab"))
    def test_it(prompt, cassette):
        ask(prompt)
        assert 1 == cassette.hits
    """
    for seed in "12":
        project = Project({"test_it.py": test}, (f"--randomly-seed={seed}",), ("randomly",))
        ended = run(tmp_path, project)
        assert (0, "4 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), (
            ended.text
        )


def test_all_plugins_at_once(tmp_path: Path) -> None:
    """Whatever is installed is loaded, as it is for most users."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "a")
    test = "@pytest.mark.cassette\ndef test_it(cassette):\n    ask()\n    assert 1 == cassette.hits\n"
    project = Project({"test_it.py": test}, environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": ""})

    ended = run(tmp_path, project)

    assert (0, "1 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


# -- forks ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_child_is_answered_and_ends_in_its_own_way(tmp_path: Path) -> None:
    """The child's status is its own, its misses are the test's, and the parent's cassette stays open."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "a")
    test = """
    import os

    def in_a_child(prompt):
        pid = os.fork()
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        status = 1
        try:
            ask(prompt)
            status = 0
        finally:
            os._exit(status)

    @pytest.mark.cassette
    def test_answered():
        ask("a")
        assert 0 == in_a_child("a")
        ask("a")

    @pytest.mark.cassette(allow_unused=True)
    def test_missed():
        assert 1 == in_a_child("b")
    """
    ended = run(tmp_path, Project({"test_it.py": test}))

    assert 2 == ended.status, ended.text
    assert "1 failed, 1 passed in <time>" in ended.told.splitlines()
    assert "exit status 2 instead of 1: 1 call was stopped" in ended.told.splitlines()


# -- files that change ---------------------------------------------------------------------------------


def test_a_cassette_that_is_removed_between_tests_is_gone(tested: Tested) -> None:
    """The next test misses, and says that there is no file."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    from pathlib import Path

    pytestmark = pytest.mark.cassette

    def test_first():
        ask("a")
        Path("cassettes/test_it.jsonl").unlink()

    def test_second():
        ask("a")
    """
    )

    assert (2, "1 replayed, 0 recorded, 1 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


def test_a_cassette_that_is_replaced_between_tests_is_read_anew(tested: Tested) -> None:
    """As a checkout does it, or another run that prunes."""
    record("cassettes/test_it.jsonl", "a")
    record("later.jsonl", "b")
    ended = tested(
        test_it="""
    import os

    pytestmark = pytest.mark.cassette

    def test_first():
        ask("a")
        os.replace("later.jsonl", "cassettes/test_it.jsonl")

    def test_second():
        ask("b")
    """
    )

    assert (0, "2 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


def test_a_cassette_that_grows_within_a_test_is_read_on(tested: Tested) -> None:
    """What another transport appends is found by the call after it."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    pytestmark = pytest.mark.cassette

    def test_it():
        ask("a")
        record("cassettes/test_it.jsonl", "b")
        ask("b")
    """
    )

    assert (0, "2 replayed, 1 recorded, 0 missed, 1 real call") == (ended.status, counts(ended)), ended.text


def test_recording_goes_on_in_a_file_that_was_removed_within_a_test(tested: Tested) -> None:
    """What is paid for is written to the file that the path names."""
    ended = tested(
        test_it="import httpx, os\n"
        + RECORDS
        + """
def test_it():
    ask("a")
    os.unlink("cassettes/test_it.jsonl")
    ask("b")
"""
    )

    assert (0, "0 replayed, 2 recorded, 0 missed, 2 real calls") == (ended.status, counts(ended)), ended.text
    assert 1 == len(Cassette("cassettes/test_it.jsonl"))


def test_a_test_that_changes_the_folder_does_not_move_the_next(tested: Tested) -> None:
    """Cassettes lie beside the tests, wherever the process is."""
    record("cassettes/test_it.jsonl", "a")
    ended = tested(
        test_it="""
    import os

    pytestmark = pytest.mark.cassette

    def test_first():
        ask("a")
        os.makedirs("elsewhere", exist_ok=True)
        os.chdir("elsewhere")

    def test_second(cassette):
        ask("a")
        assert 1 == cassette.hits
        os.chdir("..")
    """
    )

    assert (0, "2 replayed, 0 recorded, 0 missed, 0 real calls") == (ended.status, counts(ended)), ended.text


# -- Ctrl-C --------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_an_interrupt_loses_nothing_that_was_paid(tmp_path: Path, stand_in: StandInServer) -> None:
    """The status is that of pytest, what was recorded is in the file, and the summary is written."""
    test = """
    import time
    from pathlib import Path

    @pytest.mark.cassette
    def test_it():
        ask("a")
        Path("asked").touch()
        time.sleep(60)
    """
    project = Project(
        {"test_it.py": test}, ("--cassette-mode=record",), environment={"MODEL_URL": stand_in.url}
    )
    folder = tmp_path / "project"
    folder.mkdir()
    project.write(folder)
    with start(folder, project) as process:
        while not (folder / "asked").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    ended = Ended(process.returncode, stdout, stderr, folder)

    assert (2, "0 replayed, 1 recorded, 0 missed, 1 real call") == (ended.status, counts(ended)), ended.text
    assert 1 == len(Cassette(str(folder / "cassettes/test_it.jsonl")))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_an_interrupt_hides_no_miss(tmp_path: Path) -> None:
    """What was missed before is told all the same; 2 says both."""
    test = """
    @pytest.mark.cassette
    def test_first():
        try:
            ask("a")
        except BaseException:
            pass

    def test_second():
        raise KeyboardInterrupt
    """
    ended = run(tmp_path, Project({"test_it.py": test}))

    assert (2, "0 replayed, 0 recorded, 1 missed, 0 real calls") == (ended.status, counts(ended)), ended.text
    assert "== httpx_cassette: calls that were stopped\ntest_it.py::test_first\n" in ended.told
