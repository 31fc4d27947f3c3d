"""Workers of pytest-xdist: one file, one account, and what becomes of both when a worker crashes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from httpx_cassette._cassette import Cassette
from httpx_cassette.stand_in import StandInServer
from tests.plugin._project import Project, run
from tests.plugin.programs.calls import record

SIXTEEN = """
    pytestmark = pytest.mark.cassette

    @pytest.mark.parametrize("number", range(16))
    def test_it(number):
        assert ask(f"question {number % 4}")["choices"]
        assert ask("question of all")["choices"]
"""


def test_workers_record_into_one_file(tmp_path: Path, stand_in: StandInServer) -> None:
    """Each distinct call is stored once, and the next run makes none."""
    project = Project(
        {"test_it.py": SIXTEEN}, ("--cassette-mode=record",), environment={"MODEL_URL": stand_in.url}
    ).with_workers()
    first = run(tmp_path, project)
    paid = stand_in.calls
    second = run(tmp_path, project)

    assert 0 == first.status, first.text
    recordings = list(Cassette(str(tmp_path / "cassettes/test_it.jsonl")).newest_first())
    assert [5, 5] == [len(recordings), len({recording.head.key for recording in recordings})]
    # Two workers that ask for the same at the same moment both pay; 32 calls would have been made otherwise.
    assert 5 <= paid <= 10
    assert paid == stand_in.calls
    assert "32 replayed, 0 recorded, 0 missed, 0 real calls" in second.told.splitlines()


def test_what_workers_did_is_added_up(tmp_path: Path) -> None:
    """Hits, fingerprints, files and what is unused: as of one process."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), *(f"question {number}" for number in range(5)))
    test = SIXTEEN.replace("question of all", "question 3")
    project = Project(
        {"test_it.py": test}, ("--cassette-used=used.jsonl", "--cassette-report")
    ).with_workers()

    ended = run(tmp_path, project)

    assert 0 == ended.status, ended.text
    assert "32 replayed, 0 recorded, 0 missed, 0 real calls" in ended.told.splitlines()
    assert "cassettes/test_it.jsonl:5: " in ended.told
    assert "cassettes/test_it.jsonl:4: " not in ended.told
    used = [json.loads(line) for line in (tmp_path / "used.jsonl").read_text().splitlines()]
    assert [1, 2, 3, 4] == [each["line"] for each in used]


def test_workers_miss_together(tmp_path: Path) -> None:
    """Each distinct miss stands once, with the tests of all workers and every call counted."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "question of all")
    test = SIXTEEN.replace(
        'assert ask(f"question {number % 4}")["choices"]', 'swallow(f"question {number % 4}")'
    )
    test += """
    def swallow(prompt):
        for _ in range(2):
            try:
                ask(prompt)
            except BaseException:
                pass
"""
    ended = run(tmp_path, Project({"test_it.py": test}).with_workers())

    assert 2 == ended.status, ended.text
    tests = ", ".join(f"test_it.py::test_it[{number}]" for number in (11, 15, 3, 7))
    assert f"{tests} (8 calls)" in ended.told.splitlines()
    assert "16 replayed, 0 recorded, 32 missed, 0 real calls" in ended.told.splitlines()
    assert "exit status 2 instead of 1: 32 calls were stopped" in ended.told.splitlines()


CRASH = """
    import os

    pytestmark = pytest.mark.cassette(allow_unused=True)

    def test_first():
        try:
            ask("missed")
        except BaseException:
            pass
        os._exit(1)

    @pytest.mark.parametrize("number", range(4))
    def test_it(number):
        ask("used")
"""


@pytest.mark.parametrize("ending", ["os._exit(1)", "os.kill(os.getpid(), 9)"], ids=["exit", "kill"])
def test_a_worker_that_crashes_is_told(tmp_path: Path, ending: str) -> None:
    """What it missed still counts, what it replayed is said to be unknown, and nothing is removed."""
    record(str(tmp_path / "cassettes/test_it.jsonl"), "used", "gone")
    test = CRASH.replace("os._exit(1)", ending)

    ended = run(tmp_path, Project({"test_it.py": test}, ("--cassette-prune",)).with_workers())

    lines = ended.told.splitlines()
    assert 2 == ended.status, ended.text
    assert "test_it.py::test_first" in lines
    assert "exit status 2 instead of 1: 1 call was stopped" in lines
    crashed = [line for line in lines if " crashed, and what it replayed and recorded is not counted" in line]
    assert 1 == len(crashed)
    assert "nothing was removed" in lines
    assert 2 == len(Cassette(str(tmp_path / "cassettes/test_it.jsonl")))


def test_a_crash_in_recording_keeps_what_was_paid(tmp_path: Path, stand_in: StandInServer) -> None:
    """What a worker recorded before it crashed is there for the next."""
    project = Project(
        {"test_it.py": CRASH}, ("--cassette-mode=record",), environment={"MODEL_URL": stand_in.url}
    ).with_workers()

    run(tmp_path, project)

    keys = [each.head.key for each in Cassette(str(tmp_path / "cassettes/test_it.jsonl")).newest_first()]
    assert [2, 2] == [len(keys), len(set(keys))]


def test_an_internal_error_of_workers_stays_one(tmp_path: Path) -> None:
    """Its result says nothing: 3 is not replaced by a miss."""
    conftest = """
    from calls import ask_alone

    def pytest_collection_modifyitems():
        try:
            ask_alone()
        except BaseException:
            raise RuntimeError("a broken plugin")
    """

    assert 3 == run(tmp_path, Project({"test_it.py": "", "conftest.py": conftest}).with_workers()).status
