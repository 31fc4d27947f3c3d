"""``httpx-cassette record``: exactly what an earlier run missed is paid for, nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import _ledger_file as ledger_file
from httpx_cassette.cli import main
from httpx_cassette.stand_in import Asked, Reply, StandInServer

from .asking import Ended, Folder, report

RUN = ("run", "--misses", "misses.jsonl", "--", "python", "app.py")
RECORD = ("record", "--from", "misses.jsonl", "--", "python", "app.py")

APP = "import os; from asking import ask; ask('a', 'b', 'c', *os.environ.get('MORE', ''))"

#: Two processes, one after the other, that ask for the same.
TWICE = """
    import subprocess, sys
    for _ in range(2):
        subprocess.run([sys.executable, "app.py"])
"""

STOPPED = (
    "one more real call would exceed HTTPX_CASSETTE_MAX_CALLS={limit}: POST <url>/chat/completions\n"
    "  counted      the real calls of all processes that share it\n"
    "  to allow it: HTTPX_CASSETTE_MAX_CALLS={next}\n"
)

FINGERPRINT = "9f2c" * 16


@pytest.fixture
def folder(tmp_path: Path, stand_in: StandInServer) -> Folder:
    """Give a folder with a program that asks the stand-in."""
    made = Folder(tmp_path, stand_in.url)
    made.write("app.py", APP)
    return made


def call(*prompts: str) -> str:
    return "".join(f'  POST <url>/chat/completions gpt-5 <short key>\n    "{prompt}"\n' for prompt in prompts)


def shown(*prompts: str, most: str = "") -> str:
    calls, each = (f"{len(prompts)} calls", "each ") if len(prompts) > 1 else ("1 call", "")
    return (
        f"httpx-cassette: {calls} may be made, {each}as often as it is asked for{most}, "
        f"and no other: misses.jsonl\n{call(*prompts)}"
    )


def made(calls: str, *left: str, more: str = "") -> str:
    reason = "; not tried, as they were recorded before, not asked for, or stopped:" if left else ""
    return f"httpx-cassette: {calls} tried{more}{reason}\n{call(*left)}"


def entry(**changed: Any) -> str:
    """Return a line of a file of misses."""
    facts = {"method": "POST", "url": "https://api.example.com/v1", "model": None}
    line = {
        "pid": 1, "key": FINGERPRINT, "kind": "CassetteMiss", "report": "", "facts": facts,
        "started_in": [], "thread": "MainThread", "count": 1, **changed,
    }  # fmt: skip
    return json.dumps(line) + "\n"


# --- what is paid for ---------------------------------------------------------------------------------


def test_what_was_missed_is_paid_for_and_nothing_else(folder: Folder, stand_in: StandInServer) -> None:
    """Three calls were missed, three are made; a fourth one is refused; then all is replayed."""
    missed = folder.run(*RUN)
    assert (2, 0) == (missed.status, stand_in.calls)

    recorded = folder.run(*RECORD, MORE="d")

    assert (
        Ended(
            2,
            "a recorded\nb recorded\nc recorded\nd lost\n",
            shown(*"abc")
            + report(
                "have a run miss it first: httpx-cassette run --misses FILE -- python app.py",
                cassette="3 recordings",
                refused="not among the 3 calls that HTTPX_CASSETTE_ONLY allows (misses.jsonl)",
                nearest="chat.jsonl:3, recorded <time>: 1 of 7 fields differs\n"
                '    messages[1].content   "c" -> "d"',
            )
            + made("3 of 3 calls")
            + "httpx-cassette: 1 call stopped, in 1 process, so the exit status is 2\n",
        )
        == recorded
    )
    assert (3, []) == (stand_in.calls, folder.leftovers)
    replayed = Ended(0, "a replayed\nb replayed\nc replayed\n", "")
    assert (replayed, b"") == (folder.run(*RUN), (folder.path / "misses.jsonl").read_bytes())
    assert 3 == stand_in.calls


def test_a_recording_without_more_ends_as_the_command_does(folder: Folder, stand_in: StandInServer) -> None:
    """What was recorded meanwhile is not paid for twice, and said not to be made."""
    folder.run(*RUN)

    assert Ended(
        0, "a recorded\nb recorded\nc recorded\n", shown(*"abc") + made("3 of 3 calls")
    ) == folder.run(*RECORD)
    assert Ended(
        0, "a replayed\nb replayed\nc replayed\n", shown(*"abc") + made("0 of 3 calls", *"abc")
    ) == folder.run(*RECORD)
    assert 3 == stand_in.calls


def test_the_list_does_not_grow_by_what_is_refused(folder: Folder, stand_in: StandInServer) -> None:
    """Misses are appended to the same file; a process that is started later is refused all the same."""
    folder.run(*RUN)
    folder.write("two.py", TWICE)
    misses = str(folder.path / "misses.jsonl")
    ended = folder.run(*RECORD[:-1], "two.py", MORE="d", HTTPX_CASSETTE_MISSES=misses)

    assert (2, 3) == (ended.status, stand_in.calls)
    assert "a recorded\nb recorded\nc recorded\nd lost\na replayed\nb replayed\nc replayed\nd lost\n" == (
        ended.stdout
    )


def test_a_limit_holds_for_all_processes(folder: Folder, stand_in: StandInServer) -> None:
    """Two processes that want three calls each make two together; what was not made is named."""
    folder.run(*RUN)
    folder.write("two.py", TWICE)
    ended = folder.run(*RECORD[:3], "--max-calls", "2", *RECORD[3:-1], "two.py")

    assert (
        Ended(
            2,
            "a recorded\nb recorded\nc lost\na replayed\nb replayed\nc lost\n",
            shown(*"abc", most=", with 2 requests at most")
            + STOPPED.format(limit=2, next=3) * 2
            + made("2 of 3 calls", "c")
            + "httpx-cassette: 1 call stopped, in 2 processes, so the exit status is 2"
            + " (the command ended with 0)\n",
        )
        == ended
    )
    assert 2 == stand_in.calls


def test_a_limit_that_is_in_force_stays_so(folder: Folder, stand_in: StandInServer) -> None:
    """Calls that were counted in a file of the environment count, and are not told as this command's."""
    folder.run(*RUN)
    (folder.path / "budget").write_text(f"{FINGERPRINT}\n")
    variables = {"HTTPX_CASSETTE_BUDGET": "budget", "HTTPX_CASSETTE_MAX_CALLS": "3"}
    ended = folder.run(*RECORD, **variables)

    assert (
        Ended(
            2,
            "a recorded\nb recorded\nc lost\n",
            shown(*"abc")
            + STOPPED.format(limit=3, next=4)
            + made("2 of 3 calls", "c")
            + "httpx-cassette: 1 call stopped, in 1 process, so the exit status is 2\n",
        )
        == ended
    )
    assert 2 == stand_in.calls
    assert 3 * 65 == (folder.path / "budget").stat().st_size


def test_a_call_that_is_tried_again_is_counted(tmp_path: Path, loopback: None) -> None:
    """A retry is a real call of its own, allowed as the first one was."""

    def busy_at_first(asked: Asked, nth: int) -> Reply | None:
        return Reply(429, b"{}") if nth == 1 else None

    with StandInServer(answer=busy_at_first) as server:
        folder = Folder(tmp_path, server.url)
        folder.write("app.py", "from asking import ask; ask('a', 'a')")
        folder.run(*RUN)
        ended = folder.run(*RECORD)

        assert 2 == server.calls
    assert (
        Ended(
            0,
            "a live\na recorded\n",
            shown("a")
            + "not recorded: POST <url>/chat/completions answered 429; "
            + "only finished 2xx and 3xx answers are stored (record_statuses= stores others)\n"
            + "answers that were not recorded: 1 429\n"
            + made("1 of 1 call", more=", in 2 requests"),
        )
        == ended
    )


def test_a_live_call_is_refused(folder: Folder, stand_in: StandInServer) -> None:
    """A mode that the code gives goes round nothing."""
    folder.run(*RUN)
    folder.write("app.py", "from asking import ask; ask('a', mode='live')")
    ended = folder.run(*RECORD)

    assert (
        Ended(
            2,
            "a lost\n",
            shown(*"abc")
            + "a live call is not allowed: POST <url>/chat/completions\n"
            + "  refused      not among the 3 calls that HTTPX_CASSETTE_ONLY allows (misses.jsonl); "
            + "in mode live a call has no fingerprint\n"
            + "  to allow it: mode='record', or run without HTTPX_CASSETTE_ONLY\n"
            + made("0 of 3 calls", *"abc")
            + "httpx-cassette: 1 call stopped, in 1 process, so the exit status is 2\n",
        )
        == ended
    )
    assert 0 == stand_in.calls


def test_many_calls_are_shown_in_part(folder: Folder) -> None:
    """Ten lines, and how many more there are; a line shows nothing that a terminal would obey."""
    keys = [f"{number:064x}" for number in range(12)]
    strange = {"method": "POST", "url": "\x1b[31mred", "model": "m"}
    (folder.path / "misses.jsonl").write_text(
        "".join(entry(key=key, facts=strange) for key in keys) + entry(key=keys[0])
    )
    folder.write("app.py", "")

    lines = "  POST \\u001b[31mred m <short key>\n" * 10 + "  ... and 2 more\n"
    said = folder.run(*RECORD).stderr
    assert (
        "httpx-cassette: 12 calls may be made, each as often as it is asked for, and no other: misses.jsonl\n"
        f"{lines}"
        "httpx-cassette: 0 of 12 calls tried; "
        f"not tried, as they were recorded before, not asked for, or stopped:\n{lines}"
    ) == said


def test_calls_can_be_told_apart(folder: Folder) -> None:
    """By the words that were asked, by what changed, and by the tests in which they were missed."""
    facts = {"method": "POST", "words": "Why\x1b is it " + "so " * 30}
    changed = {"method": "POST", "changed": ["messages[0].content", "model", "n", "top_p", "seed"]}
    keys = [f"{number:064x}" for number in range(3)]
    lines = [
        entry(key=keys[0], facts=facts, test="test_app.py::test_a"),
        entry(key=keys[1], facts=changed),
        entry(
            key=keys[2], facts={"method": "POST", "words": "a", "changed": ["n"]}, test="test_app.py::test_a"
        ),
        entry(key=keys[0], facts=facts, test="test_app.py::test_b"),
        entry(key=keys[0], facts=facts, test="test_app.py::test_b", pid=2),
    ]
    (folder.path / "misses.jsonl").write_text("".join(lines))
    folder.write("app.py", "")

    assert [
        "  POST <short key>",
        f'    "Why\\u001b is it {"so " * 13}so..."; in test_app.py::test_a and 1 more',
        "  POST <short key>",
        "    changed: messages[0].content, model, n and 2 more",
        "  POST <short key>",
        '    "a", changed: n; in test_app.py::test_a',
    ] == folder.run(*RECORD).stderr.splitlines()[1:7]


def test_what_failed_is_tried_and_not_made(folder: Folder, stand_in: StandInServer) -> None:
    """Without a server there is no answer, and nothing says that there was one."""
    folder.run(*RUN)
    stand_in.close()

    ended = folder.run(*RECORD)
    assert (0, "a lost\nb lost\nc lost\n") == ended[:2]
    assert "httpx-cassette: 3 of 3 calls tried" == ended.stderr.splitlines()[-1]


def test_several_samples_are_as_many_requests(folder: Folder, stand_in: StandInServer) -> None:
    """One call, which is asked for twice, and nothing promised otherwise."""
    folder.write("app.py", "from asking import ask; ask('a', 'a', samples=2)")
    folder.run(*RUN)

    assert Ended(
        0, "a recorded\na recorded\n", shown("a") + made("1 of 1 call", more=", in 2 requests")
    ) == folder.run(*RECORD)


@pytest.mark.parametrize(
    "line",
    [entry(facts=None), entry(facts={}), entry(facts={"url": None})],
    ids=["no-facts", "empty", "null"],
)
def test_what_a_line_does_not_say_is_left_out(line: str, folder: Folder) -> None:
    """The fingerprint is all that is needed."""
    (folder.path / "misses.jsonl").write_text(line)
    folder.write("app.py", "")

    assert f"  {FINGERPRINT[:12]}" == folder.run(*RECORD).stderr.splitlines()[1].replace(
        " <short key>", f" {FINGERPRINT[:12]}"
    )


# --- what cannot be done ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            None,
            "misses.jsonl does not exist; it is written by: "
            "httpx-cassette run --misses misses.jsonl -- COMMAND",
        ),
        ("", "misses.jsonl holds no misses, so there is nothing to record"),
        ("a note\n\xff\n[1]\n{}\n", "misses.jsonl holds no misses, so there is nothing to record"),
        (
            entry(kind="SystemPromptMissing", key="system") + entry(kind="CallLimitReached", key="limit"),
            "misses.jsonl holds no misses, so there is nothing to record, "
            "only what no recording helps against: CallLimitReached, SystemPromptMissing",
        ),
        (
            entry(key=FINGERPRINT[1:]),
            "misses.jsonl holds no misses, so there is nothing to record, "
            "only what no recording helps against: CassetteMiss",
        ),
    ],
    ids=["absent", "empty", "not-json", "other-kinds", "no-fingerprint"],
)
def test_a_file_of_no_use_is_one_sentence(text: str | None, said: str, folder: Folder) -> None:
    """The status is 1, which is no miss, and nothing was run."""
    if text is not None:
        (folder.path / "misses.jsonl").write_text(text, encoding="latin-1")

    assert Ended(1, "", f"Error: {said}\n") == folder.run(*RECORD)
    assert [] == folder.leftovers


def test_what_was_taken_back_is_no_miss(folder: Folder) -> None:
    """A miss that was expected in a child process stands in the file twice: as made, and as taken back."""
    path = str(folder.path / "misses.jsonl")
    missed = ledger_file.Entry(FINGERPRINT, "CassetteMiss", "", {}, 1, (), "MainThread")
    ledger_file.append(path, missed)
    ledger_file.take_back(path, [missed])

    said = "misses.jsonl holds no misses, so there is nothing to record"
    assert Ended(1, "", f"Error: {said}\n") == folder.run(*RECORD)


def test_a_folder_is_no_file(folder: Folder) -> None:
    """One that cannot be read says why."""
    ended = folder.run("record", "--from", ".", "--", "python", "app.py")

    assert Ended(1, "", "Error: . cannot be read: Is a directory\n") == ended


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--from", "misses.jsonl"),
            "no command is given; write it after --, such as: "
            "httpx-cassette record --from misses.jsonl -- python app.py",
        ),
        (
            ("--", "python", "app.py"),
            "the following arguments are required: --from; see httpx-cassette record --help",
        ),
        (
            ("--from", "misses.jsonl", "--max-calls", "-1", "--", "python", "app.py"),
            "argument --max-calls: '-1' is no number of calls; see httpx-cassette record --help",
        ),
        (
            ("--from", "misses.jsonl", "--max-calls", "few", "--", "python", "app.py"),
            "argument --max-calls: 'few' is no number of calls; see httpx-cassette record --help",
        ),
    ],
    ids=["no-command", "no-file", "negative", "no-number"],
)
def test_misuse_is_one_sentence(words: tuple[str, ...], said: str, folder: Folder) -> None:
    """It says what is wrong, with status 1."""
    assert Ended(1, "", f"Error: {said}\n") == folder.run("record", *words)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"HTTPX_CASSETTE_MODE": "replay"},
            "HTTPX_CASSETTE_MODE=replay is a ceiling, and record would make real calls; unset it first",
        ),
        (
            {"HTTPX_CASSETTE_MODE": "replya"},
            "HTTPX_CASSETTE_MODE='replya' is not a mode (did you mean 'replay'?)",
        ),
        (
            {"HTTPX_CASSETTE_ONLY": "only.txt"},
            "HTTPX_CASSETTE_ONLY allows some calls already, such as those of another record",
        ),
        (
            {"HTTPX_CASSETTE_BUDGET": os.curdir},
            "real calls cannot be counted in HTTPX_CASSETTE_BUDGET='<folder>': "
            "the path is no regular file; name one, such as chat.jsonl",
        ),
    ],
    ids=["ceiling", "no-mode", "allowed-already", "budget"],
)
def test_what_is_set_outside_is_not_overruled(
    variables: dict[str, str], said: str, folder: Folder, stand_in: StandInServer
) -> None:
    """Nothing is run, and nothing paid."""
    (folder.path / "misses.jsonl").write_text(entry())

    assert Ended(1, "", f"Error: {said}\n") == folder.run(*RECORD, **variables)
    assert ([], 0) == (folder.leftovers, stand_in.calls)


def test_the_command_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The status is a shell's."""
    misses = tmp_path / "misses.jsonl"
    misses.write_text(entry())

    assert 127 == main(["record", "--from", str(misses), "--", "no-such-program"])
    assert (
        f"httpx-cassette: 1 call may be made, as often as it is asked for, and no other: {misses}\n"
        f"  POST https://api.example.com/v1 {FINGERPRINT[:12]}\n"
        "Error: no-such-program cannot be run: No such file or directory\n"
    ) == capsys.readouterr().err
