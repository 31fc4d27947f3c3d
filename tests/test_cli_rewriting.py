"""``merge``, ``compact``, ``reseal`` and ``rekey``: what is written anew, and what never is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import Cassette, KeyPolicy, _verification
from httpx_cassette._line import is_intact, seal
from httpx_cassette.cli import main

from ._recordings import exchange
from ._recordings import line as bare_line
from .damaged_cassettes import DAMAGED, ONE, OTHER
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said, write_example

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the status of a run, and what it wrote."""
    status = main(words)
    return status, *capsys.readouterr()


#: Command -> its words for a file.
WORDS = {
    "compact": ("compact", "a.jsonl"),
    "reseal": ("reseal", "a.jsonl"),
    "rekey": ("rekey", "a.jsonl"),
    "merge": ("merge", "a.jsonl", "b.jsonl", "-o", "out.jsonl"),
}

#: Command and file -> status, output, error.
EXPECTED: dict[tuple[str, str], tuple[int, str, str]] = {
    ("compact", "empty"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 0 kept\n",
        "",
    ),
    ("compact", "torn tail"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "",
    ),
    ("compact", "torn and noted"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "",
    ),
    ("compact", "damaged"): (
        0,
        "a.jsonl: 1 superseded recording dropped, 2 kept\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("compact", "edited"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 2 kept\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("compact", "zeros"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("compact", "merge"): (
        1,
        "",
        (
            "Error: a.jsonl:2: an unresolved merge; keep the lines of both sides and delete the "
            "marker lines (a .gitattributes line with merge=union does that by itself)\n"
        ),
    ),
    ("compact", "crlf"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 2 kept\n",
        "",
    ),
    ("compact", "mark"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "",
    ),
    ("compact", "utf-16"): (
        1,
        "",
        "Error: a.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark\n",
    ),
    ("compact", "same twice"): (
        0,
        "a.jsonl: 1 superseded recording dropped, 1 kept\n",
        "",
    ),
    ("compact", "conflict"): (
        2,
        (
            "a.jsonl:2: another answer than line 1 gives to the same call; the last line of them is "
            "replayed\n"
            "a.jsonl: 0 superseded recordings dropped, 2 kept\n"
        ),
        "",
    ),
    ("compact", "newer"): (
        1,
        "",
        ("Error: a.jsonl:1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette\n"),
    ),
    ("compact", "unknown kind"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "",
    ),
    ("compact", "other key version"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "",
    ),
    ("compact", "no newline"): (
        0,
        "a.jsonl: 0 superseded recordings dropped, 1 kept\n",
        "",
    ),
    ("reseal", "empty"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "torn tail"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "torn and noted"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "damaged"): (
        2,
        (
            "a.jsonl:2: kept as it is: the line cannot be read: not JSON at character 289: "
            "Unterminated string starting at\n"
            "a.jsonl: 0 edited recordings accepted\n"
        ),
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("reseal", "edited"): (
        0,
        "a.jsonl: 1 edited recording accepted\n",
        "",
    ),
    ("reseal", "zeros"): (
        2,
        (
            "a.jsonl:2: kept as it is: the line cannot be read: not JSON at character 0: Expecting "
            "value\n"
            "a.jsonl: 0 edited recordings accepted\n"
        ),
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("reseal", "merge"): (
        1,
        "",
        (
            "Error: a.jsonl:2: an unresolved merge; keep the lines of both sides and delete the "
            "marker lines (a .gitattributes line with merge=union does that by itself)\n"
        ),
    ),
    ("reseal", "crlf"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "mark"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "utf-16"): (
        1,
        "",
        "Error: a.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark\n",
    ),
    ("reseal", "same twice"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "conflict"): (
        2,
        (
            "a.jsonl:2: another answer than line 1 gives to the same call; the last line of them is "
            "replayed\n"
            "a.jsonl: 0 edited recordings accepted\n"
        ),
        "",
    ),
    ("reseal", "newer"): (
        1,
        "",
        ("Error: a.jsonl:1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette\n"),
    ),
    ("reseal", "unknown kind"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "other key version"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("reseal", "no newline"): (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "",
    ),
    ("rekey", "empty"): (
        0,
        "a.jsonl: 0 of 0 recordings rekeyed\n",
        "",
    ),
    ("rekey", "torn tail"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "",
    ),
    ("rekey", "torn and noted"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "",
    ),
    ("rekey", "damaged"): (
        0,
        "a.jsonl: 0 of 2 recordings rekeyed\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("rekey", "edited"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("rekey", "zeros"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ),
    ("rekey", "merge"): (
        1,
        "",
        (
            "Error: a.jsonl:2: an unresolved merge; keep the lines of both sides and delete the "
            "marker lines (a .gitattributes line with merge=union does that by itself)\n"
        ),
    ),
    ("rekey", "crlf"): (
        0,
        "a.jsonl: 0 of 2 recordings rekeyed\n",
        "",
    ),
    ("rekey", "mark"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "",
    ),
    ("rekey", "utf-16"): (
        1,
        "",
        "Error: a.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark\n",
    ),
    ("rekey", "same twice"): (
        0,
        "a.jsonl: 0 of 2 recordings rekeyed\n",
        "",
    ),
    ("rekey", "conflict"): (
        2,
        (
            "a.jsonl:2: another answer than line 1 gives to the same call; the last line of them is "
            "replayed\n"
            "a.jsonl: 0 of 2 recordings rekeyed\n"
        ),
        "",
    ),
    ("rekey", "newer"): (
        1,
        "",
        ("Error: a.jsonl:1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette\n"),
    ),
    ("rekey", "unknown kind"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "",
    ),
    ("rekey", "other key version"): (
        0,
        "a.jsonl: 1 of 2 recordings rekeyed\n",
        "",
    ),
    ("rekey", "no newline"): (
        0,
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "",
    ),
    ("merge", "empty"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 0 there twice\n",
        "",
    ),
    ("merge", "torn tail"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "",
    ),
    ("merge", "torn and noted"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "",
    ),
    ("merge", "damaged"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 2 there twice\n",
        "out.jsonl: 1 damaged line kept; see httpx-cassette verify out.jsonl\n",
    ),
    ("merge", "edited"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "out.jsonl: 1 damaged line kept; see httpx-cassette verify out.jsonl\n",
    ),
    ("merge", "zeros"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "out.jsonl: 1 damaged line kept; see httpx-cassette verify out.jsonl\n",
    ),
    ("merge", "merge"): (
        1,
        "",
        (
            "Error: a.jsonl:2: an unresolved merge; keep the lines of both sides and delete the "
            "marker lines (a .gitattributes line with merge=union does that by itself)\n"
        ),
    ),
    ("merge", "crlf"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 2 there twice\n",
        "",
    ),
    ("merge", "mark"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "",
    ),
    ("merge", "utf-16"): (
        1,
        "",
        "Error: a.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark\n",
    ),
    ("merge", "same twice"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 2 there twice\n",
        "",
    ),
    ("merge", "conflict"): (
        2,
        (
            "out.jsonl:2: another answer than line 1 gives to the same call; the last line of them "
            "is replayed\n"
            "out.jsonl: 9 recordings of 2 files written, 1 there twice\n"
        ),
        "",
    ),
    ("merge", "newer"): (
        1,
        "",
        ("Error: a.jsonl:1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette\n"),
    ),
    ("merge", "unknown kind"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "",
    ),
    ("merge", "other key version"): (
        0,
        "out.jsonl: 9 recordings of 2 files written, 1 there twice\n",
        "",
    ),
    ("merge", "no newline"): (
        0,
        "out.jsonl: 8 recordings of 2 files written, 1 there twice\n",
        "",
    ),
}


@pytest.mark.parametrize(("command", "name"), EXPECTED)
def test_every_damaged_file_is_answered(
    command: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read is kept to the byte or refused as a whole; a refused file is as it was."""
    (folder / "a.jsonl").write_bytes(DAMAGED[name])
    write_example(folder / "b.jsonl")

    assert EXPECTED[command, name] == told(capsys, *WORDS[command])
    if EXPECTED[command, name][0] == 1:
        assert DAMAGED[name] == (folder / "a.jsonl").read_bytes()
        assert ["a.jsonl", "b.jsonl"] == sorted(each.name for each in folder.iterdir())


def test_every_damaged_file_is_tried_with_every_command() -> None:
    """No row of the table is left out."""
    assert {(command, name) for command in WORDS for name in DAMAGED} == set(EXPECTED)


MISUSE = {
    (
        "compact",
        "absent.jsonl",
    ): "Error: absent.jsonl: there is no such file; name one that is there, or record it first\n",
    ("compact", "-"): "Error: a cassette cannot be read from a pipe; name its file\n",
    ("compact", "."): "Error: .: the path is a folder; name a file in it, such as chat.jsonl\n",
    (
        "reseal",
        "absent.jsonl",
    ): "Error: absent.jsonl: there is no such file; name one that is there, or record it first\n",
    (
        "reseal",
        "absent.jsonl:3",
    ): "Error: absent.jsonl: there is no such file; name one that is there, or record it first\n",
    ("reseal", "-"): "Error: a cassette cannot be read from a pipe; name its file\n",
    ("reseal", "a.jsonl:0"): "Error: lines are counted from 1, so that 'a.jsonl:0' names none\n",
    ("reseal", "a.jsonl:99"): "Error: a.jsonl has no line 99; it has 8 lines\n",
    ("rekey", "-"): "Error: a cassette cannot be read from a pipe; name its file\n",
    ("rekey", "a.jsonl", "--policy", "{"): (
        "Error: --policy is no JSON: Expecting property name enclosed in double quotes: line 1 column 2 "
        "(char 1)\n"
    ),
    ("rekey", "a.jsonl", "--policy", "7"): (
        'Error: --policy is no object; write it like {"ignore": ["metadata.run_id"]}\n'
    ),
    ("rekey", "a.jsonl", "--policy", '{"mask": []}'): (
        "Error: KeyPolicy has no option 'mask' (did you mean 'masks'?)\n"
    ),
    ("merge", "a.jsonl"): (
        "Error: the following arguments are required: --out; see httpx-cassette merge --help\n"
    ),
    ("merge", "a.jsonl", "-", "-o", "b.jsonl"): (
        "Error: a cassette cannot be read from a pipe; name its file\n"
    ),
    ("merge", "a.jsonl", "-o", "-"): (
        "Error: a cassette cannot be written to a pipe; name a file: -o seed.jsonl\n"
    ),
    (
        "merge",
        "a.jsonl",
        "-o",
        ".",
    ): "Error: .: the path is a folder; name a file in it, such as chat.jsonl\n",
    ("merge", "a.jsonl", "-o", "none/b.jsonl"): (
        "Error: none/b.jsonl: there is no such folder to write the cassette to\n"
    ),
    ("merge", "a.jsonl", "-o", "there.jsonl"): (
        "Error: there.jsonl: there is such a file already; --force replaces it\n"
    ),
}


@pytest.mark.parametrize("words", MISUSE)
def test_what_cannot_be_done_is_one_sentence(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with status 1, and nothing is changed."""
    before = write_example(folder / "a.jsonl").read_bytes()
    (folder / "there.jsonl").write_bytes(b"")

    assert (1, "", MISUSE[words]) == told(capsys, *words)
    assert before == (folder / "a.jsonl").read_bytes()
    assert ["a.jsonl", "there.jsonl"] == sorted(each.name for each in folder.iterdir())


# -- compact -------------------------------------------------------------------------------------------


def test_compact_drops_what_is_superseded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All other lines stay to the byte; tried only, the file stays as well."""
    file = write_example(folder / "a.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)

    would = "a.jsonl: 1 superseded recording would be dropped, 7 kept\n"
    assert (0, would, "") == told(capsys, "compact", "a.jsonl", "--dry-run")
    assert b"".join(lines) == file.read_bytes()
    fact = '{"file": "a.jsonl", "dropped": [1], "kept": 7, "dry_run": false}\n'
    assert (0, fact, "") == told(capsys, "compact", "a.jsonl", "--json")
    assert b"".join(lines[1:]) == file.read_bytes()
    assert ["a.jsonl"] == [each.name for each in folder.iterdir()]


def test_a_damaged_line_supersedes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was meant to replace a recording cannot be read, so the recording stays."""
    newer = example_lines()[6].replace(b"Invoice", b"Nothing")
    file = folder / "a.jsonl"
    file.write_bytes(ONE + b"\n" + newer + b"\n")

    assert (
        0,
        "a.jsonl: 0 superseded recordings dropped, 2 kept\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ) == told(capsys, *WORDS["compact"])
    assert ONE + b"\n" + newer + b"\n" == file.read_bytes()


# -- reseal --------------------------------------------------------------------------------------------


def test_an_edit_is_accepted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line is replayed again, as it was edited and to the byte; ``verify`` finds nothing."""
    file = write_example(folder / "a.jsonl")
    edited = file.read_bytes().replace(b'"content":"Complaint"', b'"content":"Compl\xc2\x85iment"')
    file.write_bytes(edited)

    assert (
        0,
        "a.jsonl: 0 edited recordings accepted\n",
        "a.jsonl: 1 damaged line kept; see httpx-cassette verify a.jsonl\n",
    ) == told(capsys, "reseal", "a.jsonl:1")
    assert (0, "a.jsonl: 1 edited recording accepted\n", "") == told(capsys, "reseal", "a.jsonl:2")
    line = file.read_bytes().splitlines()[1]
    assert (
        edited.splitlines()[1].rpartition(b',"sum"')[0].replace(b"\xc2\x85", b"\\u0085")
        == line.rpartition(b',"sum"')[0]
    )
    assert (0, "8 recordings in 1 file: nothing found\n", "") == told(capsys, "verify", "a.jsonl")


def test_an_edited_request_gets_its_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told, and the recording answers the call that stands in it."""
    (folder / "a.jsonl").write_bytes(ONE.replace(b"order 1042", b"order 1043") + b"\n")

    status, out, err = told(capsys, "reseal", "a.jsonl")
    body = chat("gpt-5", "I was charged twice for order 1043, see the invoice.")
    line = exchange_line(
        "https://api.openai.com/v1/chat/completions", body,
        chat_answer("gpt-5", said("Billing"), "stop", (31, 2)), finish="stop",
    )  # fmt: skip
    key = json.loads(line)["key"][:12]
    assert (
        0,
        f"a.jsonl:1: a new key, {key}, as the request was edited\na.jsonl: 1 edited recording accepted\n",
        "",
    ) == (status, out, err)
    assert line + b"\n" == (folder / "a.jsonl").read_bytes()


def test_a_line_that_was_written_anew_is_accepted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A program may have put the members in another order, and left out the seal; unknown ones stay."""
    members = {**dict(sorted(json.loads(ONE).items())), "note": {"by": "hand"}}
    del members["sum"]
    (folder / "a.jsonl").write_text(json.dumps(members) + "\n")

    assert (0, "a.jsonl: 1 edited recording accepted\n", "") == told(capsys, "reseal", "a.jsonl")
    line = (folder / "a.jsonl").read_bytes().removesuffix(b"\n")
    assert is_intact(line)
    assert members == {name: value for name, value in json.loads(line).items() if name != "sum"}


UNREADABLE = {
    "no JSON": (
        b"{nonsense",
        "the line cannot be read: not JSON at character 1: Expecting property name enclosed in double quotes",
    ),
    "no recording": (b'{"v":1,"response":7}', "the line is no recording"),
    "another kind": (b"7", "the line is no recording"),
    "no request any more": (
        ONE.replace(b'"request":', b'"request":7,"former":'),
        "it holds no request that a key can be computed of",
    ),
    "no request": (
        b'{"v":1,"key":"' + b"ab" * 32 + b'","response":7}',
        "it holds no request that a key can be computed of",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_recording_is_not_accepted(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line that was named, and why."""
    line, reason = UNREADABLE[name]
    (folder / "a.jsonl").write_bytes(ONE + b"\n" + line + b"\n")

    assert (1, "", f"Error: a.jsonl:2: {reason}\n") == told(capsys, "reseal", "a.jsonl:2")
    assert ONE + b"\n" + line + b"\n" == (folder / "a.jsonl").read_bytes()


# -- rekey ---------------------------------------------------------------------------------------------


def test_another_policy_gives_other_keys_and_the_former_one_the_former(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is lost by it; what the new policy makes one call of is named."""
    file = write_example(folder / "a.jsonl")
    before = file.read_bytes()

    status, out, err = told(capsys, "rekey", "a.jsonl", "--policy", '{"ignore": ["model"]}')
    assert (
        2,
        "a.jsonl:2: another answer than line 1 gives to the same call; the last line of them is replayed\n"
        "a.jsonl: 8 of 8 recordings rekeyed\n",
        "",
    ) == (status, out, err)
    assert (
        2,
        "a.jsonl:2: another answer than line 1 gives to the same call\n8 recordings in 1 file: 1 finding\n",
        "",
    ) == told(capsys, "verify", "a.jsonl")
    assert (0, "a.jsonl: 8 of 8 recordings rekeyed\n", "") == told(capsys, "rekey", "a.jsonl")
    assert before == file.read_bytes()


def test_the_policy_of_the_project_is_the_default(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As it is for transports."""
    write_example(folder / "a.jsonl")
    (folder / "pyproject.toml").write_text("[tool.httpx_cassette]\nkey_policy = {host = false}\n")

    assert (
        0,
        '{"file": "a.jsonl", "rekeyed": [1, 2, 3, 4, 5, 6, 7, 8], "recordings": 8, "dry_run": true}\n',
        "",
    ) == told(capsys, "rekey", "a.jsonl", "--dry-run", "--json")


def stored(policy: dict[str, object], headers: dict[str, str]) -> bytes:
    """Return a line with a policy and stored headers under its real key, written by way of rekeying."""
    from httpx_cassette._rekeying import rebuilt

    members = json.loads(ONE)
    members["request"]["headers"] = headers
    members["policy"] = policy
    del members["sum"]
    return rebuilt(members, "a.jsonl", 1)


def test_headers_leave_the_key_and_cannot_enter_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that was not stored is not known; prompt files stay as they were recorded."""
    files = {"prompt.txt": {"$sha256": "ab" * 32, "$bytes": 9}}
    line = stored({"headers": ["x-tenant"], "prompt_files": files}, {"x-tenant": "t", "openai-beta": "a"})
    (folder / "a.jsonl").write_bytes(line + b"\n")

    assert (0, "a.jsonl: 1 of 1 recording rekeyed\n", "") == told(capsys, "rekey", "a.jsonl")
    after = (folder / "a.jsonl").read_bytes()
    assert {"prompt_files": files} == json.loads(after)["policy"]
    assert {"openai-beta": "a"} == json.loads(after)["request"]["headers"]
    assert (
        2,
        "a.jsonl:1: kept as it is: the header 'x-tenant' was not stored with the request, so that it cannot "
        "enter the key; record the call again\n"
        "a.jsonl: 0 of 1 recording rekeyed\n",
        "",
    ) == told(capsys, "rekey", "a.jsonl", "--policy", json.dumps(KeyPolicy(headers=["x-tenant"]).as_json()))
    assert after == (folder / "a.jsonl").read_bytes()


def resealed(line: bytes, old: bytes, new: bytes) -> bytes:
    """Return a line that was changed and sealed."""
    return seal(line.replace(old, new).rpartition(b',"sum":')[0])


def test_a_recording_without_a_request_keeps_its_key(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, whatever is wrong with what it is computed of."""
    lines = [
        resealed(ONE, b'"request":', b'"request":7,"former":'),
        resealed(ONE, b',"sum"', b',"policy":{"nonsense":1},"sum"'),
    ]
    (folder / "a.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))

    kept = "kept as it is: it holds no request that a key can be computed of"
    assert (
        2,
        f"a.jsonl:1: {kept}\na.jsonl:2: {kept}\na.jsonl: 0 of 2 recordings rekeyed\n",
        "",
    ) == told(capsys, "rekey", "a.jsonl")


# -- merge ---------------------------------------------------------------------------------------------


def test_a_file_may_be_merged_into(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it is one of the files, it is replaced by all of them; what was there twice is there once."""
    (folder / "a.jsonl").write_bytes(ONE + b"\n")
    (folder / "b.jsonl").write_bytes(ONE + b"\n" + OTHER + b"\n")

    assert (
        2,
        '{"file": "a.jsonl", "line": 2, "finding": "another answer than line 1 gives to the same call; '
        'the last line of them is replayed"}\n'
        '{"file": "a.jsonl", "recordings": 2, "dropped": 1, "dry_run": false}\n',
        "",
    ) == told(capsys, "merge", "a.jsonl", "b.jsonl", "-o", "a.jsonl", "--json")
    assert ONE + b"\n" + OTHER + b"\n" == (folder / "a.jsonl").read_bytes()


def test_a_torn_line_stays_one_of_its_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next file does not continue it, and a note says what it is."""
    (folder / "a.jsonl").write_bytes(ONE + b"\n" + OTHER[:99])
    write_example(folder / "b.jsonl")
    assert 0 == told(capsys, "merge", "a.jsonl", "b.jsonl", "-o", "c.jsonl")[0]

    assert (
        0,
        "c.jsonl: 1 line torn by a crash, which counts as not there\n8 recordings in 1 file: nothing found\n",
        "",
    ) == told(capsys, "verify", "c.jsonl")


def test_empty_lines_are_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They say nothing."""
    (folder / "a.jsonl").write_bytes(b"\n\n" + ONE + b"\n\n")
    told(capsys, "merge", "a.jsonl", "-o", "b.jsonl")

    assert ONE + b"\n" == (folder / "b.jsonl").read_bytes()


def test_a_new_file_has_the_usual_permissions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the umask, and not those of a temporary file; a replaced one keeps its own."""
    write_example(folder / "a.jsonl")
    (folder / "b.jsonl").touch(0o640)
    (folder / "b.jsonl").chmod(0o640)
    told(capsys, "merge", "a.jsonl", "-o", "c.jsonl")
    told(capsys, "merge", "a.jsonl", "-o", "b.jsonl", "--force")

    assert (folder / "a.jsonl").stat().st_mode == (folder / "c.jsonl").stat().st_mode
    assert 0o640 == (folder / "b.jsonl").stat().st_mode & 0o777


# -- what goes wrong on the way ------------------------------------------------------------------------


def test_what_is_appended_meanwhile_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who records while a cassette is written anew waits, and appends to the new file."""
    file = write_example(folder / "a.jsonl")
    recorder = Cassette(file)
    len(recorder)
    thread = threading.Thread(target=recorder.append, args=(exchange("meanwhile"),))
    verify = _verification.verify

    def verify_late(cassette: Cassette) -> Any:
        thread.start()
        return verify(cassette)

    monkeypatch.setattr("httpx_cassette._verification.verify", verify_late)
    lines = file.read_bytes().splitlines()
    assert (0, "a.jsonl: 1 superseded recording dropped, 7 kept\n", "") == told(capsys, *WORDS["compact"])
    thread.join()

    assert [*lines[1:], bare_line("meanwhile")] == file.read_bytes().splitlines()


def test_a_line_that_is_too_long_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not loaded, and the file stays as it is."""
    file = write_example(folder / "a.jsonl")
    before = file.read_bytes()
    monkeypatch.setattr("httpx_cassette._rewrite.MAX_LINE", 600)

    assert (1, "", "Error: a.jsonl:1: the line is longer than 0 MiB; take it out of the file\n") == told(
        capsys, "compact", "a.jsonl"
    )
    assert before == file.read_bytes()


def test_a_fault_of_the_disk_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While reading or writing; the file stays as it is."""
    file = write_example(folder / "a.jsonl")
    before = file.read_bytes()

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(5, "Input/output error")

    def fail_to_read(name: Any, *arguments: Any) -> Any:
        return fail() if isinstance(name, str) else open(name, *arguments)

    places = {
        "fsync": ("os.fsync", fail, "the cassette could not be rewritten"),
        "read": ("httpx_cassette._rewrite.open", fail_to_read, "the cassette cannot be read"),
        "folder": ("tempfile.mkstemp", fail, "nothing can be written beside the cassette"),
    }
    for place, function, text in places.values():
        with monkeypatch.context() as patched:
            patched.setattr(place, function, raising=False)
            expected = f"Error: a.jsonl: {text}: Input/output error\n"
            assert (1, "", expected) == told(capsys, "compact", "a.jsonl")
    assert before == file.read_bytes()


def test_a_new_file_that_is_wrong_is_thrown_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The old one is kept until the new one passes; here every key that is computed is wrong."""
    file = write_example(folder / "a.jsonl")
    before = file.read_bytes()
    monkeypatch.setattr("httpx_cassette._rekeying.recomputed_key", lambda *arguments: bytes(32))

    assert (
        1,
        "",
        "Error: a.jsonl:1: the new file would not pass verify (its key is not that of its request: edited by "
        "hand, or written by something else; restore the line, or record the call again with "
        "HTTPX_CASSETTE_MODE=rerecord), so the old one was kept\n",
    ) == told(capsys, "rekey", "a.jsonl")
    assert before == file.read_bytes()
    assert ["a.jsonl"] == [each.name for each in folder.iterdir()]


#: Ends the process by a signal in the middle: when the new file is written, and when it would get its name.
_KILLED = """\
import os, signal, sys
from httpx_cassette.cli import main

def end(*arguments):
    os.kill(os.getpid(), int(sys.argv[1]))

setattr(os, sys.argv[2], end)
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
@pytest.mark.parametrize(
    "words", [WORDS["rekey"], ("merge", "a.jsonl", "-o", "a.jsonl")], ids=lambda it: it[0]
)
def test_a_signal_in_the_middle_loses_nothing(
    words: tuple[str, ...], number: signal.Signals, moment: str, folder: Path
) -> None:
    """The file is as it was; interrupted, nothing lies beside it either, and the status is a shell's."""
    file = write_example(folder / "a.jsonl")
    before = file.read_bytes()
    (folder / "pyproject.toml").write_text("[tool.httpx_cassette]\nkey_policy = {host = false}\n")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(int(number)), moment, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert before == file.read_bytes()
    assert "" == done.stderr
    if number == signal.SIGINT:
        assert 130 == done.returncode
        assert ["a.jsonl", "pyproject.toml"] == sorted(each.name for each in folder.iterdir())
    else:
        assert -signal.SIGKILL == done.returncode
