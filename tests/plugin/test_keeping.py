"""What a run keeps hold of: its ceiling, its tests and its misses, whatever a test does to the process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from httpx_cassette._process import LISTENERS, RUN
from httpx_cassette.stand_in import StandInServer
from tests.plugin._project import PROGRAMS, Project, run
from tests.plugin.conftest import Tested
from tests.plugin.programs.calls import record

RECORDS = """
import os, unittest.mock
import httpx
from calls import model

def test_it():
    with unittest.mock.patch.dict(os.environ, {}, clear=True):
        with use_cassette("own.jsonl", mode="record", next_transport=httpx.MockTransport(model)):
            ask()
"""


@pytest.mark.parametrize("spelling", ["replay", "REPLAY", " Replay "])
def test_the_ceiling_is_one_however_it_is_written(
    tested: Tested, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    """No other mode is taken on the command line."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", spelling)

    ended = tested("--cassette-mode=record", test_it="def test_it():\n    pass\n")

    assert 4 == ended.status
    assert "under HTTPX_CASSETTE_MODE=replay, which wins; unset the variable" in ended.text


def test_a_mode_that_is_none_is_told_once(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any test runs."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "recrod")

    ended = tested(test_it="def test_it():\n    pass\n")

    assert 4 == ended.status
    assert "ERROR: HTTPX_CASSETTE_MODE='recrod' is not a mode (did you mean 'record'?)" in ended.text


def test_a_test_that_clears_the_environment_stays_below_the_ceiling(
    tested: Tested, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It misses, is told so, and nothing is recorded."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replay")

    ended = tested(test_it=f"from httpx_cassette import use_cassette\nfrom calls import ask\n{RECORDS}")

    assert 2 == ended.status, ended.text
    assert "1 failed" in ended.text
    assert not (folder / "own.jsonl").exists()


def test_a_miss_without_an_environment_fails_its_test(tested: Tested) -> None:
    """A process knows which of its tests is running by itself."""
    ended = tested(
        test_it="""
            import os, unittest.mock

            @pytest.mark.cassette
            def test_it():
                with unittest.mock.patch.dict(os.environ, {}, clear=True):
                    try:
                        ask()
                    except BaseException:
                        pass
        """
    )

    assert (2, True) == (ended.status, "1 failed" in ended.text), ended.text


def test_every_test_that_misses_fails_however_many_there_are(tested: Tested) -> None:
    """Past the limit of reports, too."""
    ended = tested(
        conftest="from httpx_cassette import _ledger\n_ledger.ENTRY_LIMIT = 3\n",
        test_it="""
            @pytest.mark.cassette
            @pytest.mark.parametrize("number", range(8))
            def test_it(number):
                try:
                    ask(f"question {number}")
                except BaseException:
                    pass
        """,
    )

    assert (2, True) == (ended.status, "8 failed" in ended.text), ended.text
    assert "0 replayed, 0 recorded, 8 missed, 0 real calls" in ended.told.splitlines()


@pytest.mark.parametrize("when", ["pytest_sessionfinish(session)", "pytest_unconfigure(config)"])
def test_a_miss_behind_the_last_test_wakes_the_run(folder: Path, when: str) -> None:
    """Nothing was marked, and nothing was heard before; it is told, and the process ends with 2."""
    project = Project(
        {
            "conftest.py": f"""
                import pytest
                from calls import ask_alone

                @pytest.hookimpl(tryfirst=True)
                def {when}:
                    try:
                        ask_alone()
                    except BaseException:
                        pass
            """,
            "test_it.py": "def test_it():\n    pass\n",
        }
    )

    ended = run(folder, project)

    assert (2, True) == (ended.status, "1 passed" in ended.stdout), ended.text
    assert 1 == (ended.stdout + ended.stderr).count("CassetteMiss: no recording for POST"), ended.text


_MISS = "from calls import ask_alone\ntry:\n    ask_alone()\nexcept BaseException:\n    pass\n"

_CHILD = """
import os, subprocess, sys
from unittest.mock import patch

@patch.dict(os.environ, {"PATH": os.environ["PATH"]}, clear=True)
def test_one():
    import httpx, httpx_cassette
    httpx.Client(transport=httpx_cassette.CassetteTransport("absent.jsonl"))

def test_two():
    subprocess.run([sys.executable, "-c", "from calls import ask_alone; ask_alone()"])
"""

#: What a project does where pytest has not begun, or has ended; and the status.
EDGES = {
    "as the configuration is left": (
        {"conftest.py": f"def pytest_configure(config):\n    config.add_cleanup(lambda: exec({_MISS!r}))\n"},
        (),
        2,
    ),
    "before pytest is left": (
        {"conftest.py": f"{_MISS}import pytest\ndef pytest_configure(config):\n    pytest.exit('', 0)\n"},
        (),
        2,
    ),
    "before a program is": ({"conftest.py": f"{_MISS}import sys\nsys.exit(0)\n"}, (), 2),
    "before the command line is refused": ({"conftest.py": _MISS}, ("--nonsense",), 4),
    "before a conftest file fails": ({"conftest.py": f"{_MISS}import absent\n"}, (), 4),
    "in a child, behind a cleared environment": ({"test_it.py": _CHILD}, (), 2),
}


@pytest.mark.parametrize("name", EDGES)
def test_no_edge_of_a_run_loses_a_miss(folder: Path, name: str) -> None:
    """It ends with 2, unless pytest says that there was nothing to test."""
    files, arguments, status = EDGES[name]

    ended = run(folder, Project({"test_it.py": "def test_it():\n    pass\n", **files}, arguments))

    assert status == ended.status, ended.text


def test_what_was_missed_before_a_run_is_not_forgiven_with_it(folder: Path) -> None:
    """A program that misses, and then starts pytest on a command line that it refuses, ends with 2."""
    program = f"{_MISS}import pytest\nprint(int(pytest.main(['-p', 'httpx_cassette', '--nonsense'])))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(PROGRAMS), "HTTPX_CASSETTE_LEDGER": ""},
        capture_output=True,
        text=True,
    )

    assert (2, "4") == (done.returncode, done.stdout.splitlines()[-1]), done.stderr


def test_a_miss_between_two_tests_is_of_neither(folder: Path) -> None:
    """The one before it was over, and passes."""
    ended = run(
        folder,
        Project(
            {
                "conftest.py": f"""
                    import pytest

                    @pytest.hookimpl(wrapper=True, tryfirst=True)
                    def pytest_runtest_protocol():
                        yield
                        exec({_MISS!r})
                        return True
                """,
                "test_it.py": "def test_one():\n    pass\n",
            }
        ),
    )

    assert (2, True) == (ended.status, "1 passed" in ended.stdout), ended.text
    assert 1 == ended.stdout.count("outside of tests"), ended.text


def test_a_run_leaves_nothing_of_itself(tested: Tested) -> None:
    """An outer run goes on to listen, and to tell its own command, as before."""
    before = RUN.recording, RUN.is_ceiling, RUN.test, [*LISTENERS]
    ended = tested("--cassette-mode=replay", test_it="@pytest.mark.cassette\ndef test_it():\n    ask()\n")

    assert (2, before) == (ended.status, (RUN.recording, RUN.is_ceiling, RUN.test, [*LISTENERS]))


def test_each_run_of_a_process_tells_its_own(folder: Path) -> None:
    """The second is not green because the first missed the same; and the process ends with 2."""
    Project(
        {
            "test_it.py": """
                @pytest.mark.cassette
                def test_it():
                    try:
                        ask()
                    except BaseException:
                        pass
            """
        }
    ).write(folder)
    program = (
        "import pytest; words = ['-q', '-p', 'httpx_cassette', '-p', 'no:cacheprovider']; "
        "print([int(pytest.main(words)) for _ in range(2)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(PROGRAMS), "HTTPX_CASSETTE_LEDGER": ""},
        capture_output=True,
        text=True,
    )

    assert (2, "[2, 2]") == (done.returncode, done.stdout.splitlines()[-1]), done.stdout


ASYNC_FIXTURES = """
pytestmark = pytest.mark.anyio

@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"

@pytest.fixture(scope="module")
async def asked():
    {before}
    yield
    {after}

@pytest.mark.cassette(allow_unused=True)
async def test_one(asked):
    pass

@pytest.mark.cassette(allow_unused=True)
async def test_two(asked):
    pass

async def test_three():
    pass
"""


def test_a_miss_in_an_async_fixture_ends_no_loop(tested: Tested) -> None:
    """All who ask for the fixture are told the miss; nobody else fails."""
    text = ASYNC_FIXTURES.format(before="await ask_async()", after="pass")
    ended = tested("-p", "no:randomly", "-ra", plugins=("anyio",), test_it=text)

    assert 2 == ended.status, ended.text
    assert ["test_one", "test_two"] == sorted(re.findall(r"^ERROR test_it.py::(\w+)", ended.text, re.M))
    assert "1 passed" in ended.text
    assert 2 == len(re.findall(r"^E   .*CassetteMiss: no recording", ended.text, re.M))


def test_a_miss_as_an_async_fixture_ends_fails_the_last_test(tested: Tested) -> None:
    """It is the one in whose time it happens."""
    text = ASYNC_FIXTURES.format(before="pass", after="await ask_async()")
    ended = tested("-p", "no:randomly", "-ra", plugins=("anyio",), test_it=text)

    assert 2 == ended.status, ended.text
    assert ["test_three"] == re.findall(r"^ERROR test_it.py::(\w+)", ended.text, re.M)
    assert "3 passed" in ended.text


def test_a_fixture_that_missed_is_told_to_the_next_test_as_well(tested: Tested) -> None:
    """Not by an assertion of pytest's."""
    ended = tested(
        "-p", "no:randomly",
        test_it="""
            @pytest.fixture(scope="module")
            def asked():
                return ask()

            @pytest.mark.cassette
            def test_one(asked):
                pass

            @pytest.mark.cassette
            def test_two(asked):
                pass
        """,
    )  # fmt: skip

    assert (2, True) == (ended.status, "2 errors" in ended.text), ended.text
    assert 2 == len(re.findall(r"^E   .*CassetteMiss: no recording", ended.text, re.M))
    assert "AssertionError" not in ended.text


def test_all_sizes_are_cut_from_the_recording_of_one_test(tested: Tested, folder: Path) -> None:
    """A file that is named for the test is not named for a size."""
    record(str(folder / "cassettes" / "test_it[x].jsonl"), "x")

    ended = tested(
        test_it="""
            @pytest.mark.cassette("{test}", chunk_size=[1, 7])
            @pytest.mark.parametrize("prompt", ["x"])
            def test_it(prompt, cassette):
                ask(prompt)
                assert cassette.path.endswith("test_it[x].jsonl")
        """
    )

    assert (0, True) == (ended.status, "2 passed" in ended.text), ended.text


def test_the_flag_lets_through_what_the_mark_names(tested: Tested) -> None:
    """``--cassette-guard`` switches the guard on, and forgets no host."""
    ended = tested(
        "--cassette-guard",
        test_it="""
            from httpx_cassette import _guard

            @pytest.mark.cassette(guard=["db.internal"], allow_unused=True)
            def test_it():
                assert [{"db.internal"}] == [set(guard.hosts) for guard in _guard._guards]
        """,
    )

    assert 0 == ended.status, ended.text


def test_no_block_outlives_its_test(tested: Tested) -> None:
    """A run of thousands of tests does not hold their cassettes to its end."""
    ended = tested(
        "-p", "no:randomly",
        test_it="""
            import gc, weakref
            seen = []

            @pytest.mark.cassette(allow_unused=True)
            @pytest.mark.parametrize("number", range(4))
            def test_it(cassette, number):
                gc.collect()
                assert [] == [each for each in seen if each() is not None]
                seen.append(weakref.ref(cassette))
        """,
    )  # fmt: skip

    assert 0 == ended.status, ended.text


@pytest.mark.parametrize("below", [False, True], ids=["root", "subfolder"])
def test_the_advised_command_records_what_was_missed(
    folder: Path, stand_in: StandInServer, below: bool
) -> None:
    """It is typed where the run was started, and has the folder of the cassettes that the run had."""
    (folder / "tests").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "tests" / "test_it.py").write_text(
        "import pytest\nfrom calls import ask\n\n@pytest.mark.cassette\ndef test_it():\n    ask()\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROGRAMS),
        "MODEL_URL": stand_in.url,
        "HTTPX_CASSETTE_LEDGER": "",
    }
    here = folder / "tests" if below else folder

    def say(command: str) -> subprocess.CompletedProcess[str]:
        command = command.replace("python -m pytest", f"'{sys.executable}' -m pytest -p httpx_cassette", 1)
        return subprocess.run(
            ["bash", "-c", command], cwd=here, env=environment, capture_output=True, text=True
        )

    missed = say(f"python -m pytest --cassette-dir={folder / 'own'}")
    (advice,) = {line.partition(": ")[2] for line in missed.stdout.splitlines() if "to record it:" in line}
    recorded = say(advice)

    assert (2, 0) == (missed.returncode, recorded.returncode), missed.stdout + recorded.stdout
    assert 1 == len(list((folder / "own").rglob("*.jsonl")))
    assert not (folder / "tests" / "cassettes").exists()
