"""The cassette between processes: writers that race, are killed or fork, disks that are full or read-only.

Each test runs a program of ``cassette_programs``. They are the short form of what ``tests/torture`` does.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from httpx_cassette import _cassette
from httpx_cassette._cassette import Cassette, shared_cassette
from httpx_cassette._line import is_intact

from ._recordings import ask, exchange, line, make_file

ROOT = Path(__file__).parents[1]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")


def run(program: str, *arguments: object, around: tuple[str, ...] = ()) -> str:
    """Run a program, and return what it printed."""
    done = subprocess.run(
        [*around, sys.executable, "-m", f"tests.cassette_programs.{program}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ("", 0) == (done.stderr, done.returncode)
    return done.stdout


# -- writers -------------------------------------------------------------------------------------------


@needs_fork
def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    """Of 8 processes each line arrives whole, and what all want to append arrives once."""
    path = tmp_path / "c.jsonl"
    found = run("race", path, 8, 200, 50)

    assert f"{8 * 200 + 50}\n" == found
    lines = path.read_bytes().split(b"\n")
    assert (1 + 8 * 200 + 50, b"") == (len(lines) - 1, lines[-1])
    assert all(map(is_intact, lines[:-1]))
    cassette = Cassette(path)
    assert (len(lines) - 1, []) == (len(cassette), cassette.check())


@needs_fork
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    """Of 50 writers that are killed in the middle of 0.9 MB, each line that was acknowledged is there.

    How many lines are torn depends on how busy the machine is; the torture session counts them.
    """
    found = re.fullmatch(
        r"appended (\d+) lost (\d+) torn (\d+)\n", run("kill", tmp_path / "c.jsonl", 50, 900_000)
    )

    assert found is not None
    appended, lost, _ = map(int, found.groups())
    assert 0 == lost
    # Else the test would prove nothing.
    assert appended >= 25


@needs_fork
def test_a_fork_takes_no_lock_along(tmp_path: Path) -> None:
    """A child goes on with a cassette whose locks were held at the fork, even when its parent is killed."""
    assert "['a', 'b', 'c'] True\n" == run("fork", tmp_path / "c.jsonl")


def test_a_child_has_locks_and_a_writer_of_its_own(tmp_path: Path) -> None:
    """What the child does at the fork: the lock of the file would be the parent's too."""
    cassette = Cassette(tmp_path / "c.jsonl", fsync=False)
    reader = Cassette(tmp_path / "c.jsonl", fsync=False)
    cassette.append(exchange("a"))
    inherited = cassette._writer
    assert inherited is not None
    with cassette._appending, cassette._scanning:
        _cassette._after_fork()
        assert -1 == inherited.number
        inherited.pid = 0
        assert cassette.append(exchange("b")).is_new

    assert inherited is not cassette._writer
    assert ["a", "b"] == [ask(reader, name) for name in "ab"]
    assert shared_cassette(cassette) is cassette


# -- disks ---------------------------------------------------------------------------------------------


@functools.lru_cache
def why_not_mount() -> str:
    """Return why a test cannot mount a folder for itself, or nothing where it can."""
    if shutil.which("unshare") is None:  # pragma: no cover - not here
        return "unshare is not there"
    script = "mount -t tmpfs -o size=1m none /mnt && mount --bind /mnt /mnt && mount -o remount,ro,bind /mnt"
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, check=False)
    return done.stderr.strip()


def mounted(script: str, folder: Path) -> tuple[str, ...]:
    """Return what runs a program with a mount of its own, or skip."""
    why = why_not_mount()
    if why:  # pragma: no cover - not here
        pytest.skip(f"nothing can be mounted: {why}")
    return (
        "unshare",
        "-rm",
        "sh",
        "-c",
        f'cd "$1" && {script} && cd "$2" && shift 2 && exec "$@"',
        "sh",
        str(folder),
        str(ROOT),
    )


def test_a_full_disk_leaves_the_file_at_a_recording(tmp_path: Path) -> None:
    """On a disk of 1 MiB nothing that was acknowledged is lost, and the error says what is wrong."""
    around = mounted("mount -t tmpfs -o size=1m none .", tmp_path)
    found = run("full_disk", tmp_path, 20, around=around)

    expected = "lost 0 errors 20 unfinished 0: the recording could not be written: No space left on device\n"
    appended, _, rest = found.partition(" lost")
    assert expected == f"lost{rest}"
    assert int(appended.removeprefix("appended ")) > 200


def test_on_a_read_only_disk_replay_works_and_recording_says_so(tmp_path: Path) -> None:
    """Recording is refused before a call is paid for; permissions alone would not stop root."""
    make_file(tmp_path / "c.jsonl", line("a"))
    around = mounted("mount --bind . . && mount -o remount,ro,bind .", tmp_path)

    assert run("read_only", tmp_path, around=around).splitlines() == [
        "a",
        *["c.jsonl: the file cannot be written, so nothing can be recorded"] * 2,
        *["new.jsonl: the folder cannot be written, so nothing can be recorded"] * 2,
        *["new/new.jsonl: the folder of the cassette cannot be made: Read-only file system"] * 2,
    ]
