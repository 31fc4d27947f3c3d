"""What processes write for the test run that started them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from httpx_cassette._process import USED_VARIABLE
from httpx_cassette._recording import Recording
from httpx_cassette._used_elsewhere import (
    Elsewhere,
    UsedElsewhere,
    read_used_elsewhere,
    remove_used_elsewhere,
)
from tests._recordings import head_of_line, key_of, line


def recording(name: str, number: int, path: str = "c.jsonl") -> Recording:
    """Return a recording as it was read from a line of a cassette."""
    return Recording(line(name), path, number, head_of_line(line(name)))


def test_each_recording_is_written_once(tmp_path: Path) -> None:
    """With its file, links resolved, its line and its fingerprint; several processes share the file."""
    file = tmp_path / "used"
    file.touch()
    for _ in range(2):
        listener = UsedElsewhere(str(file))
        listener.used(recording("a", 1), "replayed")
        listener.used(recording("a", 1), "replayed")
        listener.used(recording("b", 2), "recorded")
        listener.counted("replayed")
        listener.unrecorded("POST /v1/chat/completions was abandoned")

    place = os.path.realpath("c.jsonl")
    assert 4 == len(file.read_text().splitlines())
    used = {(place, 1, key_of("a").hex()), (place, 2, key_of("b").hex())}
    assert Elsewhere(used, {}, True) == read_used_elsewhere(str(file))


def test_real_calls_are_counted_by_process(tmp_path: Path) -> None:
    """They have asked no recording, unless they were stored; what else is counted is not the run's."""
    file = tmp_path / "used"
    file.touch()
    for name in ("live", "recorded", "replayed", "live", "passed"):
        UsedElsewhere(str(file)).counted(name)

    counts = {os.getpid(): Counter(live=2, recorded=1, passed=1)}
    assert Elsewhere(set(), counts, True) == read_used_elsewhere(str(file))


def test_what_cannot_be_written_is_not_hidden(tmp_path: Path) -> None:
    """A process that cannot write says so with a file beside, and both are removed with the run."""
    file = tmp_path / "used"
    file.mkdir()  # Nobody can write to a folder, whatever their permissions.
    UsedElsewhere(str(file)).counted("live")
    file.rmdir()
    file.touch()

    assert Elsewhere(set(), {}, False) == read_used_elsewhere(str(file))
    remove_used_elsewhere(str(file))
    assert [] == list(tmp_path.iterdir())


def test_a_file_that_somebody_removed_is_not_whole(tmp_path: Path) -> None:
    """A test may clear the temporary folder."""
    assert Elsewhere(set(), {}, False) == read_used_elsewhere(str(tmp_path / "used"))


def test_a_file_that_is_gone_stops_no_call(tmp_path: Path) -> None:
    """The run may be over, and its file with it; it is not made again."""
    UsedElsewhere(str(tmp_path / "used")).used(recording("a", 1), "replayed")

    assert [] == list(tmp_path.iterdir())


def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    """A process that was killed may leave one; what it had used besides is not known."""
    file = tmp_path / "used"
    file.write_text('["/c.jsonl", 1, "ff"]\n["/c.jsonl", 2\n[]\n')

    assert Elsewhere({("/c.jsonl", 1, "ff")}, {}, False) == read_used_elsewhere(str(file))


def test_a_process_listens_where_the_run_asks(tmp_path: Path) -> None:
    """The variable is read when the package is imported, and obeyed once there is something to tell."""
    program = (
        "import os, httpx_cassette; os.environ.clear(); httpx_cassette.Stats; "
        "from httpx_cassette._process import LISTENERS; print(*(type(each).__name__ for each in LISTENERS))"
    )

    def listeners(**environment: str) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
        ).stdout

    assert "UsedElsewhere\n" == listeners(**{USED_VARIABLE: str(tmp_path / "used")})
    assert "\n" == listeners()
