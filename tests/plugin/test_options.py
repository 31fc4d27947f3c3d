"""The options of the command line, and what a project says in its pyproject.toml."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from httpx_cassette._cassette import Cassette
from httpx_cassette._project import _defaults_below
from tests.plugin.conftest import Tested
from tests.plugin.programs.calls import record

ASKS = "@pytest.mark.cassette\ndef test_it():\n    ask()\n"

#: A model behind every real call.
CONFTEST = """
import httpx, pytest
from calls import model

@pytest.fixture(scope="session")
def cassette_config():
    return {"next_transport": httpx.MockTransport(model)}
"""


@pytest.fixture(autouse=True)
def read_anew(folder: Path) -> None:
    """Forget the projects of other tests."""
    _defaults_below.cache_clear()


def of_its_own() -> dict[str, str]:
    """Return the environment of a run that reports to nobody: what it misses is not missed by these tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HTTPX_CASSETTE")}


def write_project(text: str) -> None:
    """Write the table of the project."""
    Path("pyproject.toml").write_text(f"[tool.httpx_cassette]\n{text}\n")


# -- --cassette-mode -----------------------------------------------------------------------------------

MODES = {
    "replay": "1 replayed, 0 recorded, 0 missed, 0 real calls",
    "record": "1 replayed, 0 recorded, 0 missed, 0 real calls",
    "rerecord": "0 replayed, 1 recorded, 0 missed, 1 real call",
    "live": "0 replayed, 0 recorded, 0 missed, 1 real call",
}


@pytest.mark.parametrize(("mode", "counts"), MODES.items(), ids=MODES)
@pytest.mark.parametrize("said", ["record", "live", "replay"])
def test_the_command_line_decides_the_mode(tested: Tested, mode: str, counts: str, said: str) -> None:
    """Whatever the marker says; but a test that says replay may expect a miss, and is not paid for."""
    record("cassettes/test_it.jsonl", "a")

    ended = tested(
        f"--cassette-mode={mode}",
        conftest=CONFTEST,
        test_it=ASKS.replace("cassette\n", f"cassette(mode='{said}')\n"),
    )

    assert 0 == ended.status, ended.text
    assert (MODES["replay"] if said == "replay" else counts) in ended.told.splitlines()


def test_the_mode_is_that_of_the_run_only(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that the tests start see it; whoever started pytest does not."""
    import os

    ended = tested(
        "--cassette-mode=record",
        test_it="import os\n\ndef test_it():\n    assert 'record' == os.environ['HTTPX_CASSETTE_MODE']\n",
    )

    assert (0, None) == (ended.status, os.environ.get("HTTPX_CASSETTE_MODE"))


def test_the_ceiling_of_the_environment_wins(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may not pay is told so at once."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replay")

    ended = tested("--cassette-mode=record", test_it=ASKS)

    assert 4 == ended.status
    assert (
        "ERROR: --cassette-mode=record under HTTPX_CASSETTE_MODE=replay, which wins; unset the variable\n"
        == ended.stderr
    )


def test_a_mode_that_does_not_exist_is_refused(tested: Tested) -> None:
    """By pytest, with those that do."""
    assert 4 == tested("--cassette-mode=rewind", test_it=ASKS).status


# -- --cassette-dir ------------------------------------------------------------------------------------


def test_another_folder_is_written_and_the_one_beside_is_looked_up(tested: Tested) -> None:
    """A small seed in git, and the full cassette outside; below it the folders are those of the tests."""
    record("deeper/cassettes/test_it.jsonl", "a")
    test = ASKS.replace("ask()", "ask('a'), ask('b')")
    Path("deeper/test_it.py").write_text(f"import pytest; from calls import *\n{test}")

    ended = tested("--cassette-dir=full", "--cassette-mode=record", conftest=CONFTEST)

    assert "1 replayed, 1 recorded, 0 missed, 1 real call" in ended.told.splitlines(), ended.text
    assert [1, 1] == [len(Cassette(f"{each}/test_it.jsonl")) for each in ("deeper/cassettes", "full/deeper")]


def test_the_project_names_the_folder_from_its_own(tested: Tested, monkeypatch: pytest.MonkeyPatch) -> None:
    """``dir`` is meant from the folder of the pyproject.toml, wherever pytest is started."""
    write_project('dir = "kept"')
    Path("deeper").mkdir()
    monkeypatch.chdir("deeper")

    ended = tested("--cassette-mode=record", "--rootdir=..", "..", conftest=CONFTEST, test_it=ASKS)

    assert 0 == ended.status, ended.text
    assert 1 == len(Cassette("../kept/test_it.jsonl"))


@pytest.mark.parametrize("value", ["7", '" "'])
def test_a_folder_that_is_none_is_refused(tested: Tested, value: str) -> None:
    """The table is named, as the value stands nowhere else."""
    write_project(f"dir = {value}")

    ended = tested(test_it=ASKS)

    shown = value.strip('"') if value == "7" else "' '"
    assert (
        f"OptionError: dir={shown} in [tool.httpx_cassette] is not understood; it takes a folder"
        in ended.told.splitlines()
    )


# -- --cassette-strict ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "table", "status"),
    [((), "", 0), (("--cassette-strict",), "", 2), ((), "strict = true", 2), ((), "strict = false", 0)],
)
def test_damaged_lines_are_refused_where_it_is_strict(
    tested: Tested, arguments: tuple[str, ...], table: str, status: int
) -> None:
    """A damaged line that no call asks for is no fault, unless somebody wants to know."""
    write_project(table)
    record("cassettes/test_it.jsonl", "a")
    with open("cassettes/test_it.jsonl", "a") as file:
        file.write("{damaged\n")
    gc.collect()  # The transport that recorded has read the file as it was before.

    assert status == tested(*arguments, test_it=ASKS).status


# -- --cassette-guard ----------------------------------------------------------------------------------

CONNECTS = """
import socket

@pytest.mark.cassette(allow_unused=True)
def test_it():
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", 9), timeout=1)
    sys_audit("192.0.2.1")

def sys_audit(host):
    import sys
    sys.audit("socket.connect", None, (host, 443))
"""

#: As a program of its own: the network of these tests is closed otherwise.
GUARDED = [
    ((), "", 0),
    (("--cassette-guard",), "", 2),
    ((), "guard = true", 2),
    ((), 'guard = ["192.0.2.1"]', 0),
    (("--cassette-guard",), 'guard = ["192.0.2.1"]', 0),
    (("--cassette-guard", "--cassette-mode=live"), "", 0),
]


@pytest.mark.parametrize(("arguments", "table", "status"), GUARDED)
def test_connections_to_other_machines_are_refused(
    folder: Path, arguments: tuple[str, ...], table: str, status: int
) -> None:
    """Only while a cassette is replayed, and but for loopback and the hosts that the project names."""
    write_project(table)
    Path("test_it.py").write_text(f"import pytest\n{CONNECTS}")

    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "httpx_cassette", *arguments],
        env=of_its_own(),
        capture_output=True,
        text=True,
    )

    assert status == ended.returncode, ended.stdout
    assert (status == 2) == ("NetworkRefused: a connection to 192.0.2.1:443 was refused" in ended.stdout)


# -- what a run costs that uses no cassette ------------------------------------------------------------


def test_an_empty_run_imports_next_to_nothing(folder: Path) -> None:
    """No client, no SDK, no command, and of the package its first modules only."""
    Path("test_it.py").write_text("def test_it():\n    pass\n")

    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pytest", "-q", "-p", "httpx_cassette"],
        env=of_its_own(),
        capture_output=True,
        text=True,
        cwd=folder,
    )

    imported = {
        line.rpartition("|")[2].strip()
        for line in ended.stderr.splitlines()
        if line.startswith("import time:")
    }
    heavy = {"anthropic", "click", "genai_prices", "httpx", "httpx2", "openai", "orjson", "rich", "vcr"}
    assert set() == heavy & imported
    # pytest's own way to import costs by the module.
    assert {
        *("httpx_cassette._exit", "httpx_cassette._process", "httpx_cassette.pytest_plugin._waking"),
    } == {name for name in imported if name.startswith("httpx_cassette.")} - {"httpx_cassette.pytest_plugin"}


def test_a_run_without_cassettes_looks_as_ever(folder: Path) -> None:
    """But for the list of plugins, nothing that pytest prints differs."""
    Path("test_it.py").write_text("def test_it():\n    pass\n")

    def printed(*arguments: str) -> list[str]:
        command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
        told = subprocess.run(command, env=of_its_own(), capture_output=True, text=True).stdout.splitlines()
        return [line for line in told if not line.startswith("plugins:")][:-1]

    assert printed() == printed("-p", "httpx_cassette")


def test_the_options_have_help_and_one_name(tested: Tested) -> None:
    """All of them begin alike, and the marker is listed."""
    ended = tested("--help")

    group = ended.stdout.partition("httpx_cassette: calls of language models, recorded and replayed:\n")[2]
    options = [
        line.split()[0].partition("=")[0]
        for line in group.partition("\n\n")[0].splitlines()
        if "  --" in line
    ]
    assert [
        "--cassette-mode",
        "--cassette-dir",
        "--cassette-strict",
        "--cassette-guard",
        "--cassette-report",
        "--cassette-prune",
        "--cassette-used",
    ] == options
    assert "@pytest.mark.cassette(name=None, *, allow_unused=False" in tested("--markers").stdout
