"""What is unused is listed after a whole run only, and removed without harm to what is not."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteError, CassetteReadOnly
from httpx_cassette._project import _defaults_below
from httpx_cassette._rewrite import delete_cassette, remove_lines
from httpx_cassette.pytest_plugin import _unused
from tests._recordings import ask, exchange, key_of, line, make_file
from tests.plugin._project import Project, run
from tests.plugin.conftest import Tested
from tests.plugin.programs.calls import record

ONE_TEST = """
    @pytest.mark.cassette
    def test_it():
        ask("used")
"""

TWO_TESTS = """
    pytestmark = pytest.mark.cassette

    def test_first():
        ask("used")

    def test_second():
        ask("second")
"""

TITLE = "== httpx_cassette: unused recordings\n"


@pytest.fixture(autouse=True)
def recorded(folder: Path) -> None:
    """Have three recordings in the cassette of ``test_it``, of which tests ask for one or two."""
    record("cassettes/test_it.jsonl", "used", "second", "gone")


def prompts(file: str = "cassettes/test_it.jsonl") -> list[str]:
    """Return the prompts whose answers are in a cassette."""
    recordings = sorted(Cassette(file).newest_first(), key=lambda recording: recording.number)
    requests: list[Any] = [recording.request for recording in recordings]
    return [request["json"]["messages"][1]["content"] for request in requests]


def section(told: str) -> list[str]:
    """Return the lines of the section about unused recordings."""
    assert TITLE in told, told
    return told.partition(TITLE)[2].partition("\n== ")[0].splitlines()


def write_table(text: str) -> None:
    """Write the table of the project, which was read when the cassettes were recorded."""
    Path("pyproject.toml").write_text(f"[tool.httpx_cassette]\n{text}\n")
    _defaults_below.cache_clear()


# -- what is told --------------------------------------------------------------------------------------


def test_recordings_that_no_test_asked_for_are_listed(tested: Tested) -> None:
    """Each stands with its line, fingerprint and age; nothing is removed."""
    ended = tested("--cassette-report", test_it=TWO_TESTS)

    (found, advice) = section(ended.told)
    assert found.startswith("cassettes/test_it.jsonl:3: ")
    assert found.endswith(", recorded <time>")
    assert "to remove them: --cassette-prune" == advice
    assert ["used", "second", "gone"] == prompts()
    assert 0 == ended.status


def test_nothing_is_told_that_was_not_asked_for(tested: Tested) -> None:
    """Without the option there is no section."""
    assert TITLE not in tested(test_it=TWO_TESTS).told


def test_a_run_that_uses_everything_says_so(tested: Tested) -> None:
    """``none`` is an answer as well."""
    more = "\n    def test_third():\n        ask('gone')\n"

    assert ["none"] == section(tested("--cassette-report", test_it=TWO_TESTS + more).told)


def test_cassettes_that_no_test_opened_are_listed(tested: Tested) -> None:
    """A file without a test is listed as a whole, an empty one too."""
    record("cassettes/old.jsonl", "a", "b")
    record("deeper/cassettes/older/old.jsonl", "a")
    make_file(Path("cassettes/empty.jsonl"))
    more = "\n    def test_third():\n        ask('gone')\n"

    assert [
        "cassettes/empty.jsonl: no test opened it (0 recordings)",
        "cassettes/old.jsonl: no test opened it (2 recordings)",
        "deeper/cassettes/older/old.jsonl: no test opened it (1 recording)",
        "to remove them: --cassette-prune",
    ] == section(tested("--cassette-report", test_it=TWO_TESTS + more).told)


def test_a_transport_of_ones_own_uses_a_cassette_as_well(tested: Tested) -> None:
    """Not only marked tests ask for recordings."""
    test = """
    def test_it():
        for prompt in ("used", "second", "gone"):
            ask_alone(prompt, "cassettes/test_it.jsonl")
    """

    assert ["none"] == section(tested("--cassette-report", test_it=test).told)


# -- what is removed -----------------------------------------------------------------------------------


def test_pruning_removes_what_it_shows(tested: Tested) -> None:
    """What is listed goes, the rest stays, and the next run finds nothing."""
    record("cassettes/old.jsonl", "a", "b")

    ended = tested("--cassette-prune", test_it=TWO_TESTS)

    assert "cassettes/old.jsonl: no test opened it (2 recordings)" == section(ended.told)[0]
    assert "removed 3 recordings, and 1 cassette" == section(ended.told)[-1]
    assert ["used", "second"] == prompts()
    assert not Path("cassettes/old.jsonl").exists()
    assert ["none"] == section(tested("--cassette-prune", test_it=TWO_TESTS).told)


def test_pruning_keeps_what_it_cannot_read(tested: Tested) -> None:
    """Damaged and torn lines, other key versions, unknown members and older answers of used keys stay."""
    file = Path("cassettes/test_it.jsonl")
    record(str(file), "used", mode="rerecord")
    lines = file.read_bytes().splitlines()
    assert 4 == len(lines)
    more = [b"", b"{damaged", line("a", key_version=2), lines[0].replace(b'"v":1', b'"later":1,"v":1')]
    file.write_bytes(b"\n".join([*lines, *more, lines[1][:50]]))

    tested("--cassette-prune", test_it=ONE_TEST)

    assert b"\n".join([lines[0], lines[3], *more, lines[1][:50]]) == file.read_bytes()


@pytest.mark.parametrize("rest", [b"{damaged\n", line("a", key_version=2) + b"\n", b'{"v":1'])
def test_a_cassette_with_more_than_recordings_is_not_deleted(tested: Tested, rest: bytes) -> None:
    """Its recordings go; what may be worth something to another release stays."""
    record("cassettes/old.jsonl", "a")
    with open("cassettes/old.jsonl", "ab") as file:
        file.write(rest)

    tested("--cassette-prune", test_it=TWO_TESTS)

    assert rest == Path("cassettes/old.jsonl").read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are other ones there")
def test_pruning_keeps_permissions_and_links(tested: Tested, folder: Path) -> None:
    """A linked cassette is rewritten where it is, with the permissions that it has."""
    file = Path("cassettes/test_it.jsonl")
    file.chmod(0o640)
    (folder / "kept").mkdir()
    file.rename("kept/real.jsonl")
    file.symlink_to("../kept/real.jsonl")

    tested("--cassette-prune", test_it=ONE_TEST)

    assert file.is_symlink()
    assert ["used"] == prompts("kept/real.jsonl")
    assert 0o640 == stat.S_IMODE(Path("kept/real.jsonl").stat().st_mode)


def test_what_cannot_be_removed_is_told(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of one file does not end the run, nor keep others from being pruned."""
    record("cassettes/old.jsonl", "a")

    def refuse(path: str, size: int) -> None:
        raise CassetteError("the cassette cannot be deleted: it is made of stone", path)

    monkeypatch.setattr(_unused, "delete_cassette", refuse)
    ended = tested("--cassette-prune", test_it=ONE_TEST)

    assert [
        "not removed: <folder>/cassettes/old.jsonl: the cassette cannot be deleted: it is made of stone",
        "removed 2 recordings",
    ] == section(ended.told)[-2:]
    assert (0, ["used"]) == (ended.status, prompts())


def test_a_fault_of_any_kind_is_told(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file that is read as of one that is removed: the others go, and the summary stands below."""
    record("cassettes/old.jsonl", "a")
    record("cassettes/worse.jsonl", "a")
    look = _unused._look

    def refuse(path: str, size: int) -> None:
        raise OSError(5, "Input/output error")

    def look_or_fail(path: str, *more: Any) -> list[_unused.Finding]:
        if "worse" in path:
            raise PermissionError(13, "Permission denied")
        return look(path, *more)

    monkeypatch.setattr(_unused, "delete_cassette", refuse)
    monkeypatch.setattr(_unused, "_look", look_or_fail)
    ended = tested("--cassette-prune", test_it=ONE_TEST)

    told = section(ended.told)
    assert (
        "cassettes/worse.jsonl: not judged, because of PermissionError: [Errno 13] Permission denied"
        == told[0]
    )
    assert [
        "not removed: cassettes/old.jsonl: [Errno 5] Input/output error",
        "removed 2 recordings",
    ] == told[-2:]
    assert "1 replayed, 0 recorded, 0 missed, 0 real calls" in ended.told.splitlines()


def test_a_table_that_cannot_be_read_removes_nothing(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where cassettes lie is not known then; the summary stands all the same."""

    def refuse() -> None:
        raise CassetteError("pyproject.toml is no TOML")

    monkeypatch.setattr(_unused, "project_defaults", refuse)
    ended = tested("--cassette-prune", test_it=TWO_TESTS)

    assert ["not known, because pyproject.toml is no TOML", "nothing was removed"] == section(ended.told)
    assert "2 replayed, 0 recorded, 0 missed, 0 real calls" in ended.told.splitlines()
    assert ["used", "second", "gone"] == prompts()


def test_without_a_terminal_it_is_pruned_and_told(tmp_path: Path) -> None:
    """``-p no:terminal`` switches the summary off, and not what was asked for."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "second", "gone")

    ended = run(tmp_path, Project({"test_it.py": TWO_TESTS}, ("--cassette-prune", "-p", "no:terminal")))

    assert [
        "httpx_cassette: unused recordings",
        "removed 1 recording",
    ] == [line for line in ended.stderr.splitlines() if ".jsonl:" not in line]
    assert ["used", "second"] == prompts(str(tmp_path / "cassettes/test_it.jsonl"))


# -- what is not a whole run ---------------------------------------------------------------------------

NOT_RUN = {
    "-k": (("-k", "first"), "2 tests were deselected"),
    "-m": (("-m", "not cassette"), "2 tests were deselected"),
    "one file": (("test_it.py",), "only test_it.py was run"),
    "one test": (("test_it.py::test_first",), "only test_it.py::test_first was run"),
    "a folder and a file": ((".", "deeper/test_other.py"), "only deeper/test_other.py was run"),
    "--ignore": (("--ignore=deeper",), "--ignore was given"),
    "--deselect": (("--deselect=deeper/test_other.py::test_other",), "1 test was deselected"),
    "--lf": (("--lf",), "--lf was given"),
    "--co": (("--co",), "--co was given"),
    "--setup-plan": (("--setup-plan",), "--setup-plan was given"),
    "--fixtures": (("--fixtures",), "it ran no tests"),
}


@pytest.mark.parametrize(("arguments", "reason"), NOT_RUN.values(), ids=NOT_RUN)
def test_a_part_of_the_tests_says_nothing(tested: Tested, arguments: tuple[str, ...], reason: str) -> None:
    """However tests were left out, it is said, and nothing is removed."""
    Project({"deeper/test_other.py": "def test_other():\n    pass\n"}).write(Path())

    ended = tested("--cassette-prune", *arguments, test_it=TWO_TESTS)

    if "--co" in arguments or "--fixtures" in arguments:
        assert ["used", "second", "gone"] == prompts()
        if TITLE not in ended.told:
            return
    assert [
        f"not known, because the run was not a whole one: {reason}",
        "nothing was removed",
    ] == section(ended.told)[:2]
    assert ["used", "second", "gone"] == prompts()


BROKEN = {
    "failed": ("\n    def test_third():\n        assert False\n", "test_it.py::test_third failed"),
    "error": (
        "\n    @pytest.fixture\n    def broken():\n        assert False\n"
        "\n    def test_third(broken):\n        pass\n",
        "test_it.py::test_third failed",
    ),
    "missed": ("\n    def test_third():\n        ask('new')\n", "test_it.py::test_third failed"),
    "collection": ("\n    import nothing_of_that_name\n", "it was interrupted, or found no tests"),
    "exit": (
        "\n    def test_third():\n        pytest.exit('enough', returncode=0)\n",
        "only 2 of 3 tests ran",
    ),
}


@pytest.mark.parametrize(("more", "reason"), BROKEN.values(), ids=BROKEN)
def test_a_run_that_did_not_end_well_says_nothing(tested: Tested, more: str, reason: str) -> None:
    """A test that failed may have been about to ask for more."""
    ended = tested("--cassette-prune", test_it=TWO_TESTS + more)

    assert [
        f"not known, because the run was not a whole one: {reason}",
        "nothing was removed",
    ] == section(ended.told)[:2]
    assert ["used", "second", "gone"] == prompts()


def test_an_interrupted_run_says_nothing(tmp_path: Path) -> None:
    """After Ctrl-C half of the tests are missing; the status is that of pytest."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "second", "gone")
    more = "\n    def test_third():\n        raise KeyboardInterrupt\n"

    ended = run(tmp_path, Project({"test_it.py": TWO_TESTS + more}, ("--cassette-prune",)))

    assert [
        "not known, because the run was not a whole one: it was interrupted, or found no tests",
        "nothing was removed",
    ] == section(ended.told)[:2]
    assert 2 == ended.status
    assert ["used", "second", "gone"] == prompts(str(tmp_path / "cassettes/test_it.jsonl"))


def test_stopping_early_says_nothing(tested: Tested) -> None:
    """``--maxfail`` keeps tests from being run."""
    ended = tested("--cassette-prune", "-x", test_it="def test_a():\n    assert False\n" + dedent(TWO_TESTS))

    assert (
        "not known, because the run was not a whole one: test_it.py::test_a failed" == section(ended.told)[0]
    )


def test_modules_that_cannot_be_collected_are_named(tested: Tested) -> None:
    """A run that goes on all the same is none of the whole."""
    ended = tested(
        "--cassette-prune",
        "--continue-on-collection-errors",
        test_it=TWO_TESTS,
        test_broken="import nothing_here",
    )

    assert (
        "not known, because the run was not a whole one: test_broken.py could not be collected"
        == section(ended.told)[0]
    )
    assert ["used", "second", "gone"] == prompts()


SKIPPED = {
    "mark": "\n    @pytest.mark.skip\n    def test_third():\n        ask('gone')\n",
    "inside": "\n    def test_third():\n        pytest.skip()\n",
    "xfail": "\n    @pytest.mark.xfail\n    def test_third():\n        assert False\n",
}


@pytest.mark.parametrize("more", SKIPPED.values(), ids=SKIPPED)
def test_what_a_skipped_test_may_use_is_not_judged(tested: Tested, more: str) -> None:
    """It did not run, or not to its end: the cassettes beside it are left alone."""
    record("deeper/cassettes/old.jsonl", "a")
    ended = tested("--cassette-prune", test_it=TWO_TESTS + more)

    assert [
        "cassettes/test_it.jsonl: not judged, because test_it.py::test_third was skipped",
        "deeper/cassettes/old.jsonl: no test opened it (1 recording)",
        "removed 1 recording, and 1 cassette",
    ] == section(ended.told)
    assert ["used", "second", "gone"] == prompts()


def test_what_a_skipped_module_may_use_is_not_judged(tested: Tested) -> None:
    """``pytest.importorskip`` leaves out all tests of a module."""
    record("cassettes/test_other.jsonl", "a")

    ended = tested("--cassette-prune", test_it=TWO_TESTS, test_other="pytest.importorskip('nothing_here')")

    assert [
        "cassettes/test_it.jsonl: not judged, because test_other.py was skipped",
        "cassettes/test_other.jsonl: not judged, because test_other.py was skipped",
        "none",
    ] == section(ended.told)
    assert ["used", "second", "gone"] == prompts()


def test_the_cassette_of_an_ignored_module_is_not_judged(tested: Tested) -> None:
    """What ``collect_ignore`` leaves out in this environment may run in another one."""
    record("cassettes/test_other.jsonl", "a")

    ended = tested(
        "--cassette-prune",
        conftest="collect_ignore = ['test_other.py']",
        test_it=TWO_TESTS,
        test_other=ONE_TEST,
    )

    assert (
        "cassettes/test_other.jsonl: not judged, because no test of test_other.py was run"
        == section(ended.told)[0]
    )
    assert ["a"] == prompts("cassettes/test_other.jsonl")


@pytest.mark.parametrize(
    ("arguments", "more", "reason"),
    [
        (("-k", "first"), "", "1 test was deselected"),
        (("--continue-on-collection-errors",), "import nothing_here", "test_other.py could not be collected"),
    ],
    ids=["-k", "collection"],
)
def test_workers_tell_what_they_left_out(
    tmp_path: Path, arguments: tuple[str, ...], more: str, reason: str
) -> None:
    """With pytest-xdist it is they who collect, and nothing is removed either."""
    project = Project({"test_it.py": TWO_TESTS, "test_other.py": more}, ("--cassette-prune", *arguments))
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "second", "gone")

    ended = run(tmp_path, project.with_workers())

    assert f"not known, because the run was not a whole one: {reason}" == section(ended.told)[0], ended.text
    assert ["used", "second", "gone"] == prompts(str(tmp_path / "cassettes/test_it.jsonl"))


def test_workers_tell_which_modules_were_skipped(tmp_path: Path) -> None:
    """The controller hears nothing of them from pytest-xdist."""
    project = Project(
        {"test_it.py": TWO_TESTS, "test_other.py": "pytest.importorskip('nothing_here')"},
        ("--cassette-prune",),
    )
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "second", "gone")

    ended = run(tmp_path, project.with_workers())

    assert ["cassettes/test_it.jsonl: not judged, because test_other.py was skipped", "none"] == section(
        ended.told
    )


# -- tests that nobody collected -----------------------------------------------------------------------

NOT_COLLECTED = {
    "collect_ignore": "collect_ignore = ['deeper']",
    "collect_ignore_glob": "collect_ignore_glob = ['deeper/test_*.py']",
    "pytest_ignore_collect": (
        "def pytest_ignore_collect(collection_path):\n    return collection_path.name == 'deeper' or None\n"
    ),
    "norecursedirs": "",
    "no items": "def pytest_pycollect_makeitem(name):\n    return [] if name == 'test_other' else None\n",
}


@pytest.mark.parametrize("conftest", NOT_COLLECTED.values(), ids=NOT_COLLECTED)
def test_cassettes_of_tests_that_nobody_collected_stay(tested: Tested, conftest: str) -> None:
    """However a folder was left out: its tests run somewhere else, and have cassettes of any name."""
    other = "@pytest.mark.cassette('named')\ndef test_other():\n    ask('a')\n"
    Project({"tests/deeper/test_other.py": other, "tests/test_it.py": TWO_TESTS}).write(Path())
    Path("tests/conftest.py").write_text(conftest)
    Path("pytest.ini").write_text("" if conftest else "[pytest]\nnorecursedirs = tests/deeper\n")
    record("tests/deeper/cassettes/named.jsonl", "a")
    record("tests/cassettes/from_below.jsonl", "a")
    Path("cassettes/test_it.jsonl").rename("tests/cassettes/test_it.jsonl")

    ended = tested("--cassette-prune")

    named = "tests/deeper/cassettes/named.jsonl"
    assert [
        f"{each}: not judged, because no test of tests/deeper/test_other.py was run"
        for each in ("tests/cassettes/from_below.jsonl", *([named] if conftest else ()))
    ] == section(ended.told)[:-2], ended.text
    assert "removed 1 recording" == section(ended.told)[-1]
    assert (["a"], ["a"]) == (prompts(named), prompts("tests/cassettes/from_below.jsonl"))


@pytest.mark.parametrize("pattern", ["check_*.py", "checks/*.py", "*.py"])
def test_what_a_test_file_is_the_project_says(tested: Tested, pattern: str) -> None:
    """By ``python_files``; files without tests of their own are not waited for."""
    record("checks/cassettes/named.jsonl", "a")
    Project({"checks/check_it.py": "", "checks/conftest.py": "", "checks/helpers.txt": ""}).write(Path())
    Path("pytest.ini").write_text(f"[pytest]\npython_files = test_it.py {pattern}\n")

    ended = tested("--cassette-prune", test_it=TWO_TESTS)

    assert (
        "checks/cassettes/named.jsonl: not judged, because no test of checks/check_it.py was run"
        == section(ended.told)[0]
    )
    Path("checks/check_it.py").write_text("def test_it():\n    pass\n")

    assert (
        "checks/cassettes/named.jsonl: no test opened it (1 recording)"
        == section(tested("--cassette-prune", test_it=TWO_TESTS).told)[0]
    )


FILTER = "def pytest_collection_modifyitems(items):\n    items[:] = items[:-1]\n"


@pytest.mark.parametrize("workers", [False, True], ids=["alone", "workers"])
def test_a_conftest_that_drops_tests_in_silence_is_noticed(tmp_path: Path, workers: bool) -> None:
    """``pytest_deselected`` is for plugins to call, and not all do."""
    project = Project({"test_it.py": TWO_TESTS, "conftest.py": FILTER}, ("--cassette-prune",))
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "second", "gone")

    ended = run(tmp_path, project.with_workers() if workers else project)

    assert [
        "not known, because the run was not a whole one: only 1 of 2 tests ran",
        "nothing was removed",
    ] == section(ended.told), ended.text
    assert ["used", "second", "gone"] == prompts(str(tmp_path / "cassettes/test_it.jsonl"))


@pytest.mark.skipif(sys.platform == "win32", reason="links are other ones there")
def test_what_is_linked_to_and_was_not_opened_stays(tested: Tested, folder: Path) -> None:
    """It lies somewhere else, and may be another's."""
    record("kept/real.jsonl", "a")
    Path("cassettes/old.jsonl").symlink_to("../kept/real.jsonl")

    ended = tested("--cassette-prune", test_it=TWO_TESTS)

    assert "removed 1 recording" == section(ended.told)[-1]
    assert ["a"] == prompts("cassettes/old.jsonl")


def test_a_project_below_a_folder_of_that_name_has_its_other_files(tmp_path: Path) -> None:
    """Only what lies in a folder of cassettes below the tests is a cassette."""
    (folder := tmp_path / "cassettes" / "project").mkdir(parents=True)
    record(str(folder / "cassettes/test_it.jsonl"), "used", "second", "gone")
    make_file(folder / "data.jsonl")

    ended = run(folder, Project({"test_it.py": TWO_TESTS}, ("--cassette-prune",)))

    assert "removed 1 recording" == section(ended.told)[-1]
    assert (folder / "data.jsonl").exists()


# -- real calls ----------------------------------------------------------------------------------------

LIVE = {
    "live": (
        "mode='live'",
        "200",
        "nothing is looked up in mode live, and that was the mode of test_it.py::test_it",
    ),
    "passed": ("passthrough=lambda call: True", "200", "2 real calls were not recorded"),
    "not recorded": ("mode='rerecord'", "429", "2 real calls were not recorded"),
}


@pytest.mark.parametrize(("option", "status", "reason"), LIVE.values(), ids=LIVE)
def test_real_calls_ask_no_recording(tested: Tested, option: str, status: str, reason: str) -> None:
    """What they would have asked for is not known: everything would look unused."""
    test = f"""
    import httpx

    MODEL = httpx.MockTransport(lambda request: httpx.Response({status}, json={{}}))

    @pytest.mark.cassette({option}, next_transport=MODEL)
    def test_it():
        ask("used")
        ask("second")
    """
    ended = tested("--cassette-prune", test_it=test)

    assert [f"not known, because {reason}", "nothing was removed"] == section(ended.told), ended.text
    assert ["used", "second", "gone"] == prompts()


@pytest.mark.parametrize("workers", [False, True], ids=["alone", "workers"])
@pytest.mark.parametrize(
    ("arguments", "mode", "reason"),
    [
        (("--cassette-mode=live",), "record", "nothing is looked up in mode live"),
        ((), "live", "1 real call was not recorded"),
    ],
    ids=["option", "transport"],
)
def test_a_transport_that_is_live_asks_no_recording(
    tmp_path: Path, arguments: tuple[str, ...], mode: str, reason: str, workers: bool
) -> None:
    """One that a client was given counts as well, in every worker, and once."""
    file = str(tmp_path / "cassettes/test_it.jsonl")
    record(file, "used", "second", "gone")
    test = f"def test_it():\n    record('cassettes/test_it.jsonl', 'used', mode='{mode}')\n"
    project = Project({"test_it.py": test}, ("--cassette-prune", *arguments))

    ended = run(tmp_path, project.with_workers() if workers else project)

    assert [f"not known, because {reason}", "nothing was removed"] == section(ended.told), ended.text
    assert ["used", "second", "gone"] == prompts(file)


def test_real_calls_that_are_recorded_are_fine(tested: Tested) -> None:
    """A run that records has looked everything up before."""
    test = "def test_it():\n    record('cassettes/test_it.jsonl', 'used', 'new')\n"

    ended = tested("--cassette-prune", test_it=test)

    assert "removed 2 recordings" == section(ended.told)[-1], ended.text
    assert ["used", "new"] == prompts()


def test_a_call_that_was_stopped_outside_of_tests_leaves_doubt(tested: Tested) -> None:
    """Whoever missed may have been about to ask for more."""
    conftest = (
        "from calls import ask_alone\n\ndef pytest_sessionfinish():\n"
        "    try:\n        ask_alone('missing')\n    except BaseException:\n        pass\n"
    )
    ended = tested("--cassette-prune", conftest=conftest, test_it=TWO_TESTS)

    assert "not known, because the run was not a whole one: a call was stopped" == section(ended.told)[0]
    assert ["used", "second", "gone"] == prompts()


# -- a folder of one's own -----------------------------------------------------------------------------


@pytest.mark.parametrize("table", [False, True], ids=["option", "table"])
def test_with_a_folder_of_ones_own_the_seeds_stay(tested: Tested, table: bool) -> None:
    """Those beside the tests are never written; in the folder lies what other projects use as well."""
    record("full/test_it.jsonl", "first", "gone too")
    record("full/test_other.jsonl", "of another project")
    record("cassettes/old.jsonl", "a")
    if table:
        write_table("dir = 'full'")
    test = TWO_TESTS.replace("second", "first")

    ended = tested("--cassette-prune", *([] if table else ["--cassette-dir=full"]), test_it=test)

    (found, told) = section(ended.told)
    assert found.startswith("full/test_it.jsonl:2: ")
    assert "removed 1 recording" == told
    assert (["used", "second", "gone"], ["a"]) == (prompts(), prompts("cassettes/old.jsonl"))
    assert (["first"], 1) == (prompts("full/test_it.jsonl"), len(prompts("full/test_other.jsonl")))


# -- other processes -----------------------------------------------------------------------------------

CHILDREN = {
    "spawned": """
        import multiprocessing

        @pytest.mark.parametrize("prompt", ["second", "gone"])
        def test_it(prompt):
            target, args = ask_alone, (prompt, "cassettes/test_it.jsonl")
            process = multiprocessing.get_context("spawn").Process(target=target, args=args)
            process.start()
            process.join()
            assert 0 == process.exitcode
    """,
    "forked": """
        import multiprocessing

        @pytest.mark.cassette(allow_unused=True)
        @pytest.mark.parametrize("prompt", ["second", "gone"])
        def test_it(prompt):
            process = multiprocessing.get_context("fork").Process(target=ask, args=(prompt,))
            process.start()
            process.join()
            assert 0 == process.exitcode
    """,
}


@pytest.mark.skipif(sys.platform == "win32", reason="this platform cannot fork")
@pytest.mark.parametrize("workers", [False, True], ids=["alone", "workers"])
@pytest.mark.parametrize("test", CHILDREN.values(), ids=CHILDREN)
def test_what_a_child_process_uses_is_used(tmp_path: Path, test: str, workers: bool) -> None:
    """Command lines and servers under test are programs of their own."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "second", "gone")
    project = Project({"test_it.py": test}, ("--cassette-prune", "--cassette-used=used.jsonl"))

    ended = run(tmp_path, project.with_workers() if workers else project)

    assert "removed 1 recording" in section(ended.told), ended.text
    assert ["second", "gone"] == prompts(str(tmp_path / "cassettes/test_it.jsonl"))
    assert 2 == len((tmp_path / "used.jsonl").read_text().splitlines())
    assert [] == list((tmp_path.parent / f"{tmp_path.name}-tmp").glob("httpx-cassette-*"))


LOST = {
    "cannot be written": (
        "os.unlink(file); os.mkdir(file)",  # Nobody can write to a folder, whatever their permissions.
        "a process that a test started could not write down all that it used",
    ),
    "is gone": ("os.unlink(file)", "a process that a test started could not write down all that it used"),
    "is torn": (
        "open(file, 'a').write('[')",
        "a process that a test started could not write down all that it used",
    ),
    "live": ("", "1 real call was not recorded"),
}


WAYS = {"spawned": ("spawn", False), "forked": ("fork", False), "forked by a worker": ("fork", True)}


@pytest.mark.parametrize(("way", "workers"), WAYS.values(), ids=WAYS)
@pytest.mark.parametrize(("before", "reason"), LOST.values(), ids=LOST)
def test_what_a_child_process_cannot_tell_is_not_known(
    tmp_path: Path, before: str, reason: str, way: str, workers: bool
) -> None:
    """Nothing is removed on the word of half of the processes, nor where one of them was live."""
    if sys.platform == "win32":
        pytest.skip("this platform cannot fork")
    file = str(tmp_path / "cassettes/test_it.jsonl")
    record(file, "used", "second", "gone")
    test = f"""
    import multiprocessing, os

    def child():
        record("cassettes/test_it.jsonl", "used", mode="live")

    def test_it():
        record("cassettes/test_it.jsonl", "used")
        file = os.environ["HTTPX_CASSETTE_USED"]
        {before or "pass"}
        process = multiprocessing.get_context("{way}").Process(target=child)
        process.start()
        process.join()
        assert 0 == process.exitcode
        if os.path.isdir(file):
            os.rmdir(file)
            open(file, "w").close()
    """
    project = Project({"test_it.py": test}, ("--cassette-prune",))
    ended = run(tmp_path, project.with_workers() if workers else project)

    assert [f"not known, because {reason}", "nothing was removed"] == section(ended.told), ended.text
    assert ["used", "second", "gone"] == prompts(file)


# -- fingerprints that were used -----------------------------------------------------------------------


def test_what_was_used_is_written(tested: Tested) -> None:
    """One JSON object a line, in the order of the files."""
    tested("--cassette-used=used.jsonl", test_it=TWO_TESTS)

    lines = Path("used.jsonl").read_text().splitlines()
    fingerprints = [
        recording.head.key.hex() for recording in Cassette("cassettes/test_it.jsonl").newest_first()
    ]
    assert [
        f'{{"fingerprint": "{fingerprints[2]}", "cassette": "cassettes/test_it.jsonl", "line": 1}}',
        f'{{"fingerprint": "{fingerprints[1]}", "cassette": "cassettes/test_it.jsonl", "line": 2}}',
    ] == lines


def test_a_run_that_used_nothing_writes_an_empty_file(tested: Tested) -> None:
    """A file that is missing would be another answer."""
    tested("--cassette-used=used.jsonl", test_it="def test_it():\n    pass")

    assert "" == Path("used.jsonl").read_text()


@pytest.mark.parametrize(
    ("file", "reason"),
    [("nowhere/used.jsonl", "there is no such folder"), ("cassettes", "that is a folder, and not a file")],
)
def test_a_place_that_cannot_be_written_is_refused_at_once(tested: Tested, file: str, reason: str) -> None:
    """Not when an hour of tests is over."""
    ended = tested(f"--cassette-used={file}", test_it=TWO_TESTS)

    assert (4, f"ERROR: --cassette-used={file}: {reason}\n") == (ended.status, ended.stderr)


# -- rewriting -----------------------------------------------------------------------------------------


def test_a_line_that_is_another_by_now_stays(tmp_path: Path) -> None:
    """Lines are named by number and fingerprint."""
    file = make_file(tmp_path / "c.jsonl", line("a"), line("b"))

    assert 1 == remove_lines(str(file), {1: key_of("a").hex(), 2: key_of("other").hex(), 3: ""})
    assert line("b") + b"\n" == file.read_bytes()


def test_windows_line_ends_are_kept(tmp_path: Path) -> None:
    """A checkout may have changed the ends of lines; the lines that stay keep theirs."""
    file = tmp_path / "c.jsonl"
    file.write_bytes(line("a") + b"\r\n" + line("b") + b"\r\n")

    assert 1 == remove_lines(str(file), {1: key_of("a").hex()})
    assert line("b") + b"\r\n" == file.read_bytes()


def test_a_cassette_that_is_gone_cannot_be_rewritten(tmp_path: Path) -> None:
    """It is not made anew."""
    with pytest.raises(CassetteError, match=r"^.*: the cassette is gone$"):
        remove_lines(str(tmp_path / "c.jsonl"), {1: ""})


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="everything can be written here")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """The new file is made beside the old one."""
    file = make_file(tmp_path / "c.jsonl", line("a"))
    tmp_path.chmod(0o500)
    with pytest.raises(CassetteReadOnly):
        remove_lines(str(file), {1: key_of("a").hex()})
    tmp_path.chmod(0o700)


def test_a_fault_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails on the way fails before the old file is touched, and leaves nothing behind."""
    file = make_file(tmp_path / "c.jsonl", line("a"), line("b"))
    monkeypatch.setattr(os, "fsync", lambda number: (_ for _ in ()).throw(OSError(5, "Input/output error")))

    with pytest.raises(CassetteError, match=r"^.*: the cassette could not be rewritten: Input/output error$"):
        remove_lines(str(file), {1: key_of("a").hex()})

    assert [file] == list(tmp_path.iterdir())
    assert line("a") + b"\n" + line("b") + b"\n" == file.read_bytes()


def test_a_cassette_that_grew_is_not_deleted(tmp_path: Path) -> None:
    """What was recorded since it was looked at is no part of what was judged."""
    file = make_file(tmp_path / "c.jsonl", line("a"))

    with pytest.raises(CassetteError, match=r"^.*: the cassette has changed, and was not deleted$"):
        delete_cassette(str(file), 1)
    delete_cassette(str(file), file.stat().st_size)

    assert not file.exists()


KILLED = """
import os, sys
from httpx_cassette import _rewrite
{fault}
_rewrite.remove_lines(sys.argv[1], {{1: sys.argv[2]}})
"""

FAULTS = {
    "before the new file is durable": "_rewrite.os.fsync = lambda number: os.kill(os.getpid(), 9)",
    "before it takes the place": "_rewrite.os.replace = lambda old, new: os.kill(os.getpid(), 9)",
}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no signal 9")
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_whoever_dies_on_the_way_leaves_the_old_file(tmp_path: Path, fault: str) -> None:
    """Every byte is there, the lock is free, and the file can be pruned and written again."""
    file = make_file(tmp_path / "c.jsonl", line("a"), line("b"))
    program = KILLED.format(fault=fault)
    killed = subprocess.run([sys.executable, "-c", program, str(file), key_of("a").hex()])

    assert -signal.SIGKILL == killed.returncode
    assert line("a") + b"\n" + line("b") + b"\n" == file.read_bytes()
    assert 1 == remove_lines(str(file), {1: key_of("a").hex()})
    Cassette(str(file)).append(exchange("c"))
    assert ["b", "c"] == [ask(Cassette(str(file)), name) for name in "bc"]


APPENDING = """
import sys
from httpx_cassette._cassette import Cassette
from tests._recordings import exchange
cassette = Cassette(sys.argv[1], fsync=False)
print("ready", flush=True)
for number in range(300):
    cassette.append(exchange(f"new {number}"))
"""


@pytest.fixture
def appender(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a process that appends 300 recordings to ``c.jsonl`` as quickly as it can."""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", APPENDING, str(tmp_path / "c.jsonl")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        yield process


def test_those_who_append_meanwhile_lose_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A file that is rewritten again and again under another process holds all of its recordings."""
    file = make_file(tmp_path / "c.jsonl", *(line(f"old {number}") for number in range(40)))
    process = request.getfixturevalue("appender")
    for number in range(40):
        assert 1 == remove_lines(str(file), {1: key_of(f"old {number}").hex()})

    assert 0 == process.wait(60)
    found = {recording.head.key for recording in Cassette(str(file)).newest_first()}
    assert {key_of(f"new {number}") for number in range(300)} == found


def test_a_test_that_changes_the_folder_has_used_what_it_used(tested: Tested, folder: Path) -> None:
    """A file is known by where it lies, not by its name as seen from the folder of the moment."""
    record(str(folder / "cassettes" / "test_it.jsonl"), "a")

    ended = tested(
        "--cassette-prune",
        test_it="""
            @pytest.mark.cassette
            def test_it(tmp_path, monkeypatch):
                monkeypatch.chdir(tmp_path)
                ask("a")
        """,
    )

    assert 0 == ended.status, ended.text
    assert 1 == len(Cassette(str(folder / "cassettes" / "test_it.jsonl")))


def test_what_others_record_meanwhile_is_left_alone(tested: Tested, folder: Path) -> None:
    """A run says nothing of recordings that were made since it began."""
    record(str(folder / "cassettes" / "test_it.jsonl"), "a")

    ended = tested(
        "--cassette-prune",
        test_it="""
            import time
            from calls import record

            @pytest.mark.cassette
            def test_it():
                ask("a")
                time.sleep(1.1)  # Recordings name whole seconds.
                record("cassettes/test_it.jsonl", "of a colleague")
                record("cassettes/other.jsonl", "of a colleague")
        """,
    )

    assert 0 == ended.status, ended.text
    assert 2 == len(Cassette(str(folder / "cassettes" / "test_it.jsonl")))
    assert 1 == len(Cassette(str(folder / "cassettes" / "other.jsonl")))


def test_a_list_that_cannot_be_written_costs_nothing_else(tested: Tested, folder: Path) -> None:
    """The summary is told all the same, and the run is no success."""
    record(str(folder / "cassettes" / "test_it.jsonl"), "a")

    ended = tested(
        "--cassette-used=/dev/full", test_it="@pytest.mark.cassette\ndef test_it():\n    ask('a')\n"
    )

    assert 1 == ended.status
    assert "--cassette-used=/dev/full could not be written: No space left on device" in ended.text
    assert "1 replayed, 0 recorded, 0 missed, 0 real calls" in ended.text
