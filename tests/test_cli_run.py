"""``httpx-cassette run``: whatever becomes of a miss, and in whichever process, the status is 2."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from httpx_cassette._ledger import read_entries
from httpx_cassette.cli import _command, main
from httpx_cassette.stand_in import StandInServer

from .asking import Ended, Folder, report

NO_COMMAND = (
    "no command is given; write it after --, such as: "
    "httpx-cassette run --misses misses.jsonl -- python app.py"
)

WORKER = "set HTTPX_CASSETTE_MODE=record for the program that started this process"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Give a folder with programs."""
    return Folder(tmp_path)


def ending(calls: str, processes: str = "1 process", own: str = "") -> str:
    return f"httpx-cassette: {calls}, in {processes}, so the exit status is 2{own}\n"


# --- what is missed -----------------------------------------------------------------------------------


def test_what_is_recorded_is_replayed(tmp_path: Path, stand_in: StandInServer) -> None:
    """A run that misses nothing says nothing, ends as the command does, and leaves no file behind."""
    folder = Folder(tmp_path, stand_in.url)
    folder.write("app.py", "import sys; from asking import ask; ask('a'); sys.exit(int(sys.argv[1]))")

    first = folder.run("run", "--mode", "record", "--", "python", "app.py", "0")
    assert (Ended(0, "a recorded\n", ""), 1) == (first, stand_in.calls)
    assert Ended(0, "a replayed\n", "") == folder.run("run", "--", "python", "app.py", "0")
    assert Ended(7, "a replayed\n", "") == folder.run("run", "python", "app.py", "7")
    assert ([], 1) == (folder.leftovers, stand_in.calls)


PROGRAMS = {
    "swallowed": (
        "from asking import ask; ask('a', 'b', 'a')",
        ("a lost\nb lost\na lost\n", report() + report(), ending("2 calls missed")),
    ),
    "paying-mode-in-the-code": (
        "from asking import ask; ask('a', mode='record')",
        ("a lost\n", report(), ending("1 call missed")),
    ),
    "thread": (
        """
        import threading
        from asking import ask
        thread = threading.Thread(target=ask, args=("a",))
        thread.start()
        thread.join()
        """,
        ("a lost\n", report(), ending("1 call missed")),
    ),
    "no-system-prompt": (
        "from asking import ask; ask('a', system='')",
        (
            "a lost\n",
            "no system prompt in POST <url>/chat/completions\n"
            "  dialect      openai-chat\n"
            "  looked at    messages[0] with the role system or developer\n"
            "  found        a system message whose content is blank\n"
            "  to accept a later position: require_system='anywhere'\n"
            "  to switch this off: require_system=False, or in pyproject.toml\n"
            "    [tool.httpx_cassette]\n"
            "    require_system = false\n",
            ending("1 call stopped"),
        ),
    ),
    "spawned": (
        """
        import multiprocessing
        from asking import ask
        if __name__ == "__main__":
            context = multiprocessing.get_context("spawn")
            for prompt in ("a", "b"):
                process = context.Process(target=ask, args=(prompt,))
                process.start()
                process.join()
        """,
        (
            "a lost\nb lost\n",
            report(WORKER) * 2,
            ending("2 calls missed", "2 processes", " (the command ended with 0)"),
        ),
    ),
    "grandchild": (
        """
        import subprocess, sys
        child = "import subprocess, sys; subprocess.run([sys.executable, 'grandchild.py'])"
        subprocess.run([sys.executable, "-c", child])
        """,
        (
            "a lost\n",
            report("HTTPX_CASSETTE_MODE=record python grandchild.py"),
            ending("1 call missed", own=" (the command ended with 0)"),
        ),
    ),
    "replaced": (
        """
        import os, sys
        from asking import ask
        ask("a")
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-c", "print('another program')"])
        """,
        ("a lost\nanother program\n", report(), ending("1 call missed", own=" (the command ended with 0)")),
    ),
    "killed": (
        "import os; from asking import ask; ask('a'); os.kill(os.getpid(), 9)",
        ("a lost\n", report(), ending("1 call missed", own=" (the command ended with 137)")),
    ),
    "ended-at-once": (
        "import os; from asking import ask; ask('a'); os._exit(0)",
        ("a lost\n", report(), ending("1 call missed", own=" (the command ended with 0)")),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_miss_ends_the_run_with_2(name: str, folder: Folder) -> None:
    """The report is printed once by the process that missed, and the last line says how many there were."""
    program, (stdout, reports, last) = PROGRAMS[name]
    folder.write("app.py", program)
    folder.write("grandchild.py", "from asking import ask; ask('a')")

    assert Ended(2, stdout, reports + last) == folder.run("run", "--", "python", "app.py")
    assert [] == folder.leftovers


@pytest.mark.parametrize(
    "program",
    [
        "from asking import ask, expected_miss\nwith expected_miss(): ask('a')",
        "from asking import ask; ask('a', on_miss=None)",
    ],
    ids=["expected", "hooks-off"],
)
def test_a_miss_that_does_not_count_changes_no_status(program: str, folder: Folder) -> None:
    """What the program takes back, or wants no hooks for, is its own business."""
    folder.write("app.py", program)
    ended = folder.run("run", "--misses", "misses.jsonl", "--", "python", "app.py")

    assert (0, "a lost\n") == ended[:2]


def test_misses_of_several_kinds_are_told_apart(folder: Folder) -> None:
    """A call that was stopped for another reason is none that could be recorded."""
    folder.write("app.py", "from asking import ask; ask('a', 'b'); ask('c', system='')")
    ended = folder.run("run", "--", "python", "app.py")

    assert (2, "a lost\nb lost\nc lost\n") == ended[:2]
    # The reports themselves are held above.
    assert (
        "httpx-cassette: 2 calls missed and 1 stopped otherwise"
        == ended.stderr.splitlines()[-1].split(",")[0]
    )


def test_a_suite_of_pytest_ends_with_2(folder: Folder) -> None:
    """Where a plugin took the ledger over it is read all the same; the report is pytest's to print."""
    folder.write("test_app.py", "from asking import ask\ndef test_a():\n    ask('a')\n")
    alone = ("-p", "no:cacheprovider", "-p", "no:asyncio")
    ended = folder.run("run", "--", "python", "-m", "pytest", "-q", "--no-header", *alone)

    assert (2, ending("1 call missed")) == (ended.status, ended.stderr)


def test_a_run_in_a_run_hands_its_status_on(folder: Folder) -> None:
    """Each has a ledger of its own, and the outer one ends as the inner one did."""
    folder.write("app.py", "from asking import ask; ask('a')")
    inner = ("python", "-m", "httpx_cassette", "run", "--", "python", "app.py")

    assert Ended(2, "a lost\n", report() + ending("1 call missed") * 2) == folder.run("run", "--", *inner)
    assert [] == folder.leftovers


def test_a_run_in_a_run_is_not_lost_with_its_status(folder: Folder) -> None:
    """A shell that hides the status of the inner one does not hide what it missed."""
    folder.write("app.py", "from asking import ask; ask('a')")
    inner = f"'{sys.executable}' -m httpx_cassette run -- '{sys.executable}' app.py; true"
    ended = folder.run("run", "--", "sh", "-c", inner)

    told = ending("1 call missed") + ending("1 call missed", own=" (the command ended with 0)")
    assert Ended(2, "a lost\n", report() + told) == ended


def test_an_inherited_ledger_is_told_as_well(folder: Folder) -> None:
    """Whoever started the run learns what was missed, also where the status does not reach him."""
    inherited = folder.path / "inherited.jsonl"
    folder.write("app.py", "from asking import ask; ask('a')")
    ended = folder.run("run", "--", "python", "app.py", HTTPX_CASSETTE_LEDGER=str(inherited))

    assert (2, 1) == (ended.status, len(read_entries(str(inherited))))


# --- how the command ends -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("python", "-c", "raise SystemExit(3)"), 3, ""),
        (("python", "-c", "import os; os.kill(os.getpid(), 9)"), 137, ""),
        (("no-such-program",), 127, "Error: no-such-program cannot be run: No such file or directory\n"),
        (("./asking.py",), 126, "Error: ./asking.py cannot be run: Permission denied\n"),
        ((".",), 126, "Error: . cannot be run: Permission denied\n"),
    ],
    ids=["status", "signal", "absent", "not-executable", "folder"],
)
def test_the_status_is_the_commands(words: tuple[str, ...], status: int, said: str, folder: Folder) -> None:
    """As a shell tells it: its own, 128 and a signal, 127 for no such program, 126 for none that runs."""
    assert Ended(status, "", said) == folder.run("run", "--", *words)


WAITS = """
    import signal, sys, time
    def end(number, frame):
        print("got", signal.Signals(number).name, flush=True)
        {end}
    for name in {names!r}:
        signal.signal(getattr(signal, name), end)
    print("ready", flush=True)
    # Not in one piece: a signal that comes just before it begins to sleep would be handled when it wakes.
    for _ in range(600):
        time.sleep(0.1)
"""


#: Where the tests run in the background, Ctrl-C is ignored, and so it would be by what they start.
STARTS = """
    import os, signal, sys
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    words = [sys.executable, "-m", "httpx_cassette", "run", "--", sys.executable, "app.py"]
    os.execv(sys.executable, words)
"""


@pytest.mark.parametrize(
    ("name", "handled", "end", "status", "printed"),
    [
        ("SIGINT", ["SIGINT"], "sys.exit(5)", 5, "got SIGINT\n"),
        ("SIGINT", [], "", 130, ""),
        ("SIGQUIT", ["SIGQUIT"], "sys.exit(8)", 8, "got SIGQUIT\n"),
        ("SIGTERM", ["SIGTERM"], "sys.exit(6)", 6, "got SIGTERM\n"),
        ("SIGTERM", [], "", 143, ""),
        ("SIGHUP", ["SIGHUP"], "sys.exit(7)", 7, "got SIGHUP\n"),
    ],
    ids=["int-handled", "int", "quit-handled", "term-handled", "term", "hangup"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_a_signal_reaches_the_command(
    name: str, handled: list[str], end: str, status: int, printed: str, folder: Folder
) -> None:
    """One that was sent to the run alone is passed on, and the run waits for what the command does."""
    folder.write("app.py", WAITS.format(end=end, names=handled))
    folder.write("start.py", STARTS)
    with subprocess.Popen(
        [sys.executable, "start.py"],
        cwd=folder.path,
        env=folder.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert "ready\n" == process.stdout.readline()
        os.kill(process.pid, getattr(signal, name))
        stdout, stderr = process.communicate(timeout=60)

    assert (status, printed) == (process.returncode, stdout)
    # Python itself says what Ctrl-C interrupted.
    assert stderr.endswith("KeyboardInterrupt\n") if (status, handled) == (130, []) else "" == stderr
    assert [] == folder.leftovers


COUNTS = """
    import signal, sys, time
    got = []
    signal.signal(signal.SIGINT, lambda number, frame: got.append(number))
    for number in range(8):
        print("ready", flush=True)
        while len(got) <= number:
            time.sleep(0.01)
        time.sleep(0.05)
    print("got", len(got), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="terminals are other ones there")
def test_ctrl_c_of_a_terminal_reaches_the_command_once(folder: Folder) -> None:
    """The terminal sends it to both, so it is not passed on: a server that gets two does not end in order."""
    import pty

    folder.write("app.py", COUNTS)
    # The session that is begun here has the terminal for its own, as that of a shell has.
    folder.write("start.py", f"import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{dedent(STARTS)}")
    keyboard, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "start.py"],
        cwd=folder.path,
        env=folder.environment(),
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        # More than once: two signals that come at the same moment count as one.
        for _ in range(8):
            assert "ready\n" == process.stdout.readline()
            os.write(keyboard, b"\x03")
        stdout, stderr = process.communicate(timeout=60)
    os.close(terminal)
    os.close(keyboard)

    assert (0, "got 8\n", "") == (process.returncode, stdout, stderr)


def test_a_signal_that_comes_before_the_command_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, folder: Folder
) -> None:
    """It is not lost between the start of the command and the moment at which it is known."""
    start = subprocess.Popen

    def start_late(*given: object, **more: object) -> object:
        process = start(*given, **more)  # type: ignore[call-overload]  # as it came
        signal.raise_signal(signal.SIGTERM)
        return process

    monkeypatch.setattr(subprocess, "Popen", start_late)
    before = signal.getsignal(signal.SIGTERM)

    assert 143 == _command.run_command([sys.executable, "-c", "import time; time.sleep(60)"], {})
    assert before == signal.getsignal(signal.SIGTERM)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there")
def test_what_was_to_be_ignored_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """``nohup`` holds for the command, too."""
    program = "import signal; raise SystemExit(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert 1 == _command.run_command([sys.executable, "-c", program], {})
    finally:
        signal.signal(signal.SIGHUP, before)
    assert 0 == _command.run_command([sys.executable, "-c", program], {})


@pytest.mark.parametrize("stderr", [None, "closed"])
def test_nobody_need_listen(stderr: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a stderr the status is the same."""
    closed = (tmp_path / "stderr").open("w")
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed if stderr else None)

    assert 127 == main(["run", "--", "no-such-program"])


# --- the misses ---------------------------------------------------------------------------------------


def test_misses_are_written_down(folder: Folder) -> None:
    """Each call is there, whichever process missed it; the last line says what to do next."""
    folder.write("app.py", "from asking import ask; ask('a', 'b', 'a')")
    folder.write(
        "two.py",
        "import asking, subprocess, sys; subprocess.run([sys.executable, 'app.py']); asking.ask('a')",
    )
    command = ("--", "python", "two.py", "with a blank")
    ended = folder.run("run", "--misses", "my misses.jsonl", *command)

    advice = "HTTPX_CASSETTE_MODE=record python two.py 'with a blank'"
    assert (
        Ended(
            2,
            "a lost\nb lost\na lost\na lost\n",
            report() * 2
            + report(advice)
            + ending("2 calls missed", "2 processes")
            + "httpx-cassette: 2 misses written to my misses.jsonl; record them with: "
            "httpx-cassette record --from 'my misses.jsonl' -- <python> two.py 'with a blank'\n",
        )
        == ended
    )
    path = folder.path / "my misses.jsonl"
    assert [("CassetteMiss", "gpt-5")] * 3 == [
        (entry.kind, entry.facts["model"]) for entry in read_entries(str(path))
    ]
    assert 0o600 == path.stat().st_mode & 0o777


def test_misses_are_written_anew(folder: Folder) -> None:
    """An earlier run's are gone; a run that misses nothing leaves an empty file; a link is followed."""
    path = folder.path / "misses.jsonl"
    (folder.path / "link.jsonl").symlink_to(path)
    folder.write("app.py", "import sys; from asking import ask; ask(*sys.argv[1:])")
    sizes = []
    for prompts in (("a", "b"), ("a",), ()):
        folder.run("run", "--misses", "link.jsonl", "--", "python", "app.py", *prompts)
        sizes.append(len(read_entries(str(path))))

    assert ([2, 1, 0], b"") == (sizes, path.read_bytes())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--misses", "absent/misses.jsonl", "--", "python", "app.py"),
            "absent/misses.jsonl cannot be written: No such file or directory",
        ),
        (("--misses", ".", "--", "python", "app.py"), ". cannot be written: Is a directory"),
        (
            ("--misses", "app.py", "--", "python", "app.py"),
            "app.py holds something else than misses; name another file",
        ),
        (
            ("--mode", "nonsense", "--", "python", "app.py"),
            "mode='nonsense' is not a mode; there are live, record, replay, rerecord",
        ),
        (("--mode", "reccord", "--", "app.py"), "mode='reccord' is not a mode (did you mean 'record'?)"),
        ((), NO_COMMAND),
        (("--",), NO_COMMAND),
        (
            ("--nonsense", "--", "app.py"),
            "there is no option --nonsense; there are --help, --misses, --mode, -h; "
            "see httpx-cassette run --help",
        ),
        (("--misses",), "argument --misses: expected one argument; see httpx-cassette run --help"),
    ],
    ids=[
        "no-folder", "a-folder", "another-file", "mode", "nearly-a-mode", "nothing", "no-command", "option",
        "half-an-option",
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(words: tuple[str, ...], said: str, folder: Folder) -> None:
    """The status is 1, which is no miss, and nothing was run."""
    folder.write("app.py", "print('this program was run')")

    assert Ended(1, "", f"Error: {said}\n") == folder.run("run", *words)
    assert "print('this program was run')" == (folder.path / "app.py").read_text()
    assert [] == folder.leftovers


@pytest.mark.parametrize("mode", ["record", "rerecord", "live"])
def test_the_ceiling_is_not_lifted(mode: str, folder: Folder) -> None:
    """Where CI sets it, no word of a command line pays."""
    ended = folder.run("run", "--mode", mode, "--", "python", "asking.py", HTTPX_CASSETTE_MODE=" Replay")
    said = f"HTTPX_CASSETTE_MODE=replay is a ceiling, and --mode {mode} would make real calls; unset it first"

    assert Ended(1, "", f"Error: {said}\n") == ended


def test_another_mode_outside_is_no_matter(folder: Folder) -> None:
    """A run replays unless it is told otherwise by its own option."""
    folder.write("app.py", "from asking import ask; ask('a')")
    ended = folder.run("run", "--", "python", "app.py", HTTPX_CASSETTE_MODE="record")

    assert Ended(2, "a lost\n", report() + ending("1 call missed")) == ended


def test_a_limit_holds_for_all_processes(tmp_path: Path, stand_in: StandInServer) -> None:
    """``HTTPX_CASSETTE_MAX_CALLS`` counts what any process of a paying run calls."""
    folder = Folder(tmp_path, stand_in.url)
    folder.write("app.py", "from asking import ask; ask('a', 'b')")
    folder.write(
        "two.py", "import subprocess, sys\nfor _ in range(2): subprocess.run([sys.executable, 'app.py'])"
    )
    ended = folder.run("run", "--mode", "live", "--", "python", "two.py", HTTPX_CASSETTE_MAX_CALLS="3")

    assert (
        Ended(
            2,
            "a live\nb live\na live\nb lost\n",
            "one more real call would exceed HTTPX_CASSETTE_MAX_CALLS=3: POST <url>/chat/completions\n"
            "  counted      the real calls of all processes that share it\n"
            "  to allow it: HTTPX_CASSETTE_MAX_CALLS=4\n"
            + ending("1 call stopped", own=" (the command ended with 0)"),
        )
        == ended
    )
    assert 3 == stand_in.calls


def test_no_temporary_folder_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is run where nobody could tell what was missed."""

    def fail(**options: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryDirectory", fail)

    assert 1 == main(["run", "--", "no-such-program"])
    assert "Error: there is no folder for temporary files: No usable temporary directory found\n" == (
        capsys.readouterr().err
    )


def test_ctrl_c_before_the_command_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status is that of an interrupted program."""

    def interrupt(*words: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("httpx_cassette.cli.run.run_run", interrupt)

    assert 130 == main(["run", "--", "no-such-program"])
