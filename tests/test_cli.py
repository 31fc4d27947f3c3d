"""The command, as a person runs it."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import httpx_cassette
from httpx_cassette.cli import main
from httpx_cassette.stand_in import StandInServer

from .asking import Ended, Folder, report
from .example_cassette import write_example


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
    "variables",
    [
        {},
        {"HTTPX_CASSETTE_MODE": "replay", "HTTPX_CASSETTE_MAX_CALLS": "1"},
        {"HTTPX_CASSETTE_ONLY": "absent", "HTTPX_CASSETTE_BUDGET": "absent/budget"},
    ],
    ids=["plain", "under-the-ceiling", "within-a-record"],
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


def test_the_demo_is_kept_in_no_file(tmp_path: Path) -> None:
    """What is there already is no folder: one sentence, and the file stays."""
    file = tmp_path / "notes"
    file.write_text("mine")

    done = run("demo", "--keep", str(file))

    said = f"Error: --keep {file} cannot be made a folder: File exists; name an empty one\n"
    assert (1, "", said, "mine") == (done.returncode, done.stdout, done.stderr, file.read_text())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a disk that is always full")
@pytest.mark.parametrize(
    "words",
    [("ls", "chat.jsonl"), ("ls", "many.jsonl"), ("show", "chat.jsonl", ":4", "--stream"), ("--version",)],
    ids=["little", "much", "bytes", "version"],
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_an_output_that_is_full_is_told(tmp_path: Path, words: tuple[str, ...], unbuffered: str) -> None:
    """In one sentence, whether the output was still buffered or not."""
    write_example(tmp_path / "chat.jsonl")
    lines = (tmp_path / "chat.jsonl").read_bytes()
    (tmp_path / "many.jsonl").write_bytes(lines * 40)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "httpx_cassette", *words],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip

    said = "Error: the output cannot be written: No space left on device\n"
    assert (1, said) == (done.returncode, done.stderr)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EIO, "Input/output error", "chat.jsonl"), "chat.jsonl: Input/output error"),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError("out of luck"), "out of luck"),
    ],
    ids=["file", "no file", "words"],
)
def test_what_the_system_refuses_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: OSError, said: str
) -> None:
    """Whatever a command did not expect of it: one sentence with the file, and no traceback."""

    def refused(*words: object) -> None:
        raise error

    monkeypatch.setattr("httpx_cassette.cli.ls.open_cassette", refused)

    assert 1 == main(["ls", "chat.jsonl"])
    assert ("", f"Error: {said}\n") == tuple(capsys.readouterr())


def test_a_command_finds_the_stand_in_and_its_status_is_kept(loopback: None) -> None:
    """The address is the same each time, unless another port is asked for."""
    program = (
        "import os, sys; print(os.environ['OPENAI_BASE_URL'], os.environ['OPENAI_API_KEY']); sys.exit(7)"
    )
    port = free_port()
    done = run("stand-in", "--port", str(port), "--", sys.executable, "-c", program)

    assert (7, f"http://127.0.0.1:{port}/v1 stand-in\n") == (done.returncode, done.stdout)


def test_the_stand_in_says_where_it_listens() -> None:
    """The port is always the same, because the address is part of every key."""
    assert (
        "Usage: httpx-cassette stand-in [--port PORT] [-- COMMAND ...]\n"
        "\n"
        "  Run a command with OPENAI_BASE_URL set to a stand-in for a model; or serve\n"
        "  till Ctrl-C.\n"
        "\n"
        "Options:\n"
        "  --port PORT  where to listen; 0 is anywhere  [default: 8377]\n"
        "  -h, --help   Show this message and exit.\n"
        "\n"
        "  Example: HTTPX_CASSETTE_MODE=record httpx-cassette stand-in -- python app.py\n"
    ) == run("stand-in", "--help", COLUMNS="80").stdout


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("from asking import ask; ask('a')", 2),
        ("import os; from asking import ask; ask('a'); os._exit(0)", 0),
    ],
    ids=["told", "ended-at-once"],
)
def test_the_stand_in_has_no_part_in_what_its_command_misses(
    program: str, status: int, loopback: None, tmp_path: Path
) -> None:
    """It is a server beside the command, which tells its misses itself, with its own status."""
    folder = Folder(tmp_path)
    folder.write("app.py", program)

    ended = folder.run("stand-in", "--port", "0", "--", "python", "app.py")
    assert Ended(status, "a lost\n", report()) == ended


def test_a_command_beside_the_stand_in_reports_to_whoever_started_both(
    loopback: None, tmp_path: Path
) -> None:
    """A ledger that was inherited is handed on: a run round it has the misses of the command."""
    folder = Folder(tmp_path)
    folder.write("app.py", "import os; from asking import ask; ask('a'); os._exit(0)")
    inner = ("python", "-m", "httpx_cassette", "stand-in", "--port", "0", "--", "python", "app.py")

    ended = folder.run("run", "--", *inner)
    last = "httpx-cassette: 1 call missed, in 1 process, so the exit status is 2 (the command ended with 0)\n"
    assert Ended(2, "a lost\n", report() + last) == ended


def test_what_the_stand_in_cannot_do_is_one_sentence(loopback: None) -> None:
    """A command that does not exist, a port that is taken."""
    with StandInServer() as taken:
        port = taken.url.rpartition(":")[2].removesuffix("/v1")
        second = run("stand-in", "--port", port)
    absent = run("stand-in", "--port", "0", "no-such-program")

    assert (1, 127) == (second.returncode, absent.returncode)
    assert second.stderr.startswith(f"Error: port {port} cannot be listened on: ")
    assert "Error: no-such-program cannot be run: No such file or directory\n" == absent.stderr


def test_the_stand_in_serves_until_it_is_interrupted(loopback: None) -> None:
    """What to set is printed, and the end is no error."""
    command = [sys.executable, "-m", "httpx_cassette", "stand-in", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip().removeprefix("export OPENAI_BASE_URL=")
        models = httpx.get(f"{url}/models", headers={"authorization": "Bearer any"}, trust_env=False)
        # Of Ctrl-C the tests know nothing where they run in the background themselves.
        serving.send_signal(signal.SIGTERM)
        _, said = serving.communicate(timeout=20)

    assert 200 == models.status_code
    assert (0, "no model, but it answers in OpenAI's chat format; Ctrl-C ends it\n") == (
        serving.returncode,
        said,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """``--version`` names the package and its version."""
    assert 0 == main(["--version"])
    assert f"httpx_cassette {httpx_cassette.__version__}\n" == capsys.readouterr().out


def test_every_command_has_help() -> None:
    """Help is one line for each command, and a page of its own."""
    words = {"demo": "--keep FOLDER", "run": "--misses FILE", "record": "--from FILE", "stand-in": "--port"}
    page = run("--help").stdout

    for command, option in words.items():
        assert f"\n  {command} " in page
        assert option in run(command, "--help").stdout


def test_an_unknown_command_is_one_sentence() -> None:
    """Misuse says what there is, without a traceback; its status is not that of a miss."""
    done = run("demmo")

    assert 1 == done.returncode
    said = "there is no command 'demmo' (did you mean 'demo'?); see httpx-cassette --help"
    assert f"Error: {said}\n" == done.stderr


def test_without_its_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence, and no traceback; half of the extra is none."""
    monkeypatch.setitem(sys.modules, "rich", None)
    half = main(["demo"]), capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "click", None)
    none = main(["demo"]), capsys.readouterr().err

    advice = "install it with: pip install 'httpx_cassette[cli]'\n"
    assert (1, f"Error: the command needs rich; {advice}") == half
    assert (1, f"Error: the command needs click and rich; {advice}") == none


def test_nothing_is_imported_that_a_command_does_not_need() -> None:
    """``run`` starts at once: rich, the dialects and the other commands stay away."""
    program = (
        "import sys; from httpx_cassette.cli import main; main(['run', '--', sys.executable, '-c', '']); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unwanted = ("rich", "httpx", "httpx_cassette.dialects", "httpx_cassette.cli.demo")

    assert [] == [name for name in done.stdout.split() if name in unwanted]


def test_the_commands_are_completed() -> None:
    """A shell that asks for the words after ``httpx-cassette r`` is given those, and those of an option."""
    asked = {"_HTTPX_CASSETTE_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    named = run(COMP_WORDS="httpx-cassette r", **asked)
    options = run(COMP_WORDS="httpx-cassette --v", **asked)

    assert ("plain,run\nplain,record\nplain,redact\nplain,reseal\nplain,rekey\n", "plain,--version\n") == (
        named.stdout,
        options.stdout,
    )
