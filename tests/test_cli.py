"""The command, as a person runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import httpx_cassette
from httpx_cassette.cli import main


def run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m httpx_cassette`` with words and variables."""
    environment = {name: value for name, value in os.environ.items() if name != "HTTPX_CASSETTE_LEDGER"}
    return subprocess.run(
        [sys.executable, "-m", "httpx_cassette", *words],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    "variables", [{}, {"HTTPX_CASSETTE_MODE": "replay"}], ids=["plain", "under-the-ceiling"]
)
def test_the_demo_shows_the_whole_thing(variables: dict[str, str]) -> None:
    """It answers twice differently, records, replays 240 answers without a call, and misses with status 2."""
    done = run("demo", **variables)

    assert (0, "") == (done.returncode, done.stderr)
    assert "A suite of 6 calls, run twice: 6 real calls, 6 replayed." in done.stdout
    assert re.search(r"240 answers, real calls made: 0, \d+ microseconds each\.", done.stdout)
    assert '"You are a patient librarian." -> "You are a terse librarian."' in done.stdout
    assert "exit status 2" in done.stdout


def test_the_demo_keeps_its_files_on_request(tmp_path: Path) -> None:
    """``--keep`` leaves the program and its cassette, and refuses a folder that has a cassette."""
    first, second = run("demo", "--keep", str(tmp_path)), run("demo", "--keep", str(tmp_path))

    assert 0 == first.returncode
    assert {"app.py", "chat.jsonl"} == {path.name for path in tmp_path.iterdir()}
    assert 1 == second.returncode
    assert f"Error: {tmp_path / 'chat.jsonl'} exists already; name an empty folder.\n" == second.stderr


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` names the package and its version."""
    with pytest.raises(SystemExit) as left:
        main(["--version"])

    assert 0 == left.value.code
    assert f"httpx_cassette {httpx_cassette.__version__}\n" == capsys.readouterr().out


def test_every_command_has_help() -> None:
    """Help is one line for each command, and a page of its own."""
    assert "demo" in run("--help").stdout
    assert "--keep FOLDER" in run("demo", "--help").stdout


def test_an_unknown_command_is_one_sentence() -> None:
    """Misuse says what there is, without a traceback."""
    done = run("demmo")

    assert 2 == done.returncode
    assert "invalid choice: 'demmo'" in done.stderr
    assert "Traceback" not in done.stderr
