"""``httpx-cassette scan``: which files are looked at, what is told of a secret, and what never is."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from httpx_cassette._call import Json
from httpx_cassette._redact import Redaction
from httpx_cassette.cli import main
from httpx_cassette.cli._group import COMMANDS

from .damaged_cassettes import DAMAGED
from .example_cassette import chat, chat_answer, exchange_line, said, write_example

ROOT = Path(__file__).parent.parent
KEY = "sk-proj-" + "aB3dE6gH9jK2" * 4
DIGEST = Redaction().text(KEY)[-17:-9]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own, which no repository is round."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.delenv("HTTPX_CASSETTE_HMAC_KEY", raising=False)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the status of a run, and what it wrote, which is never the value."""
    status = main(["scan", *words])
    out, err = capsys.readouterr()
    assert KEY not in out + err
    return status, out, err


def line_with(secret: str) -> bytes:
    """Return a recording in which the user says a secret."""
    return exchange_line(
        "https://api.openai.com/v1/chat/completions",
        chat("gpt-5", f"My key is {secret}, does it work?"),
        chat_answer("gpt-5", said("Yes"), "stop", (1, 1)),
    )


def test_a_secret_is_told_by_place_and_kind(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a cassette by its JSON path, in other text by line and column; the status is 2."""
    inside = base64.b64encode(KEY.encode()).decode()
    (folder / "a.jsonl").write_bytes(line_with("none") + b"\n" + line_with(KEY) + b"\n" + line_with(inside))
    (folder / "b.py").write_text(f'"""é"""\nKEY = "{KEY}"\n')
    column = line_with(KEY).index(KEY.encode()) + 1

    assert (
        2,
        f"a.jsonl:2:{column}: openai-key at request.json.messages[1].content [{DIGEST}]\n"
        f"a.jsonl:3:{column}: openai-key (base64) at request.json.messages[1].content [{DIGEST}]\n"
        f"b.py:2:8: openai-key [{DIGEST}]\n"
        "2 files scanned: 3 findings\n",
        "",
    ) == told(capsys, "a.jsonl", "b.py")
    fact = {
        "file": "b.py", "line": 2, "column": 8, "path": None, "kind": "openai-key", "encoding": None,
        "digest": DIGEST,
    }  # fmt: skip
    assert (2, json.dumps(fact) + "\n", "") == told(capsys, "b.py", "--json")


def test_what_holds_none_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With status 0."""
    write_example(folder / "a.jsonl")

    assert (0, "1 file scanned: nothing found\n", "") == told(capsys, "a.jsonl")
    assert (0, "", "") == told(capsys, "a.jsonl", "--json")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_cassette_is_text_all_the_same(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A secret is found behind any damage, and in UTF-16 too."""
    wide = name == "utf-16"
    tail = f"\n{KEY}\n".encode("utf-16-le" if wide else "utf-8")
    (folder / "a.jsonl").write_bytes(DAMAGED[name] + tail)
    number = (DAMAGED[name].decode("utf-16") if wide else DAMAGED[name].decode("latin-1")).count("\n") + 2

    assert (2, f"a.jsonl:{number}:1: openai-key [{DIGEST}]\n1 file scanned: 1 finding\n", "") == told(
        capsys, "a.jsonl"
    )


def test_a_secret_in_pieces_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stream that is stored event by event holds it in no event; one that an event holds is told once."""
    pieces: list[Json] = [
        {"json": {"choices": [{"index": 0, "delta": {"content": text}}]}}
        for text in (KEY[:9], KEY[9:30], KEY[30:])
    ]
    whole: list[Json] = [
        {"json": {"choices": [{"index": 0, "delta": {"content": text}}]}} for text in ("a ", KEY)
    ]
    lines = [
        exchange_line(
            "https://api.openai.com/v1/chat/completions", chat("gpt-5", "a"),
            {"framing": "sse", "stored": "verbatim", "script": script},
        )
        for script in (pieces, whole)
    ]  # fmt: skip
    (folder / "a.jsonl").write_bytes(b"\n".join([b'{"stored":"verbatim"}', *lines]))
    column = lines[1].index(KEY.encode()) + 1

    assert (
        2,
        f"a.jsonl:3:{column}: openai-key at response.script[1].json.choices[0].delta.content [{DIGEST}]\n"
        f"a.jsonl:2:1: openai-key (in pieces) at response.script [{DIGEST}]\n"
        "1 file scanned: 2 findings\n",
        "",
    ) == told(capsys, "a.jsonl")


def test_personal_data_are_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the values of names; no digest by which they could be guessed, unless there is a key for it."""
    (folder / "a.txt").write_text("ada@example.com\npassword=hunter22\n")

    assert (0, "1 file scanned: nothing found\n", "") == told(capsys, "a.txt")
    assert (2, "a.txt:1:1: email\na.txt:2:10: name-value\n1 file scanned: 2 findings\n", "") == told(
        capsys, "a.txt", "--pii", "--names"
    )
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "k" * 16)
    _, out, _ = told(capsys, "a.txt", "--pii")
    assert re.fullmatch(r"a\.txt:1:1: email \[[0-9a-f]{8}\]\n1 file scanned: 1 finding\n", out)


def test_own_patterns_of_the_project_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No key is needed to look for what could be guessed, as nothing is stored."""
    (folder / "pyproject.toml").write_text(
        "[tool.httpx_cassette.redact]\npatterns = {customer = 'C-[0-9]{4}'}\nweak = ['customer', 'email']\n"
    )
    (folder / "a.txt").write_text("C-1234\n")

    assert (2, "a.txt:1:1: customer\n1 file scanned: 1 finding\n", "") == told(capsys, "a.txt")


def test_standard_input_is_scanned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in ``git diff | httpx-cassette scan -``."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"+{KEY}\n".encode())))

    assert (2, f"-:1:2: openai-key [{DIGEST}]\n1 file scanned: 1 finding\n", "") == told(capsys, "-")


def test_what_cannot_be_read_keeps_nothing_from_being_scanned(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file is named; the status is that of a finding, or 1."""
    (folder / "a.txt").write_text(KEY)
    os.mkfifo(folder / "pipe")
    failed = (
        "Error: absent.txt: there is no such file\n"
        "Error: pipe: it is no regular file\n"
        "Error: a.txt/b: it cannot be read: Not a directory\n"
    )

    assert (2, f"a.txt:1:1: openai-key [{DIGEST}]\n1 file scanned: 1 finding\n", failed) == told(
        capsys, "absent.txt", "pipe", "a.txt/b", "a.txt", "./a.txt"
    )
    assert (1, "0 files scanned: nothing found\n", "Error: absent.txt: there is no such file\n") == told(
        capsys, "absent.txt"
    )


def test_a_fault_of_the_disk_is_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the file that it is about."""
    (folder / "a.txt").touch()

    def fail(*arguments: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("httpx_cassette.cli.scan.open", fail, raising=False)
    assert (
        1,
        "0 files scanned: nothing found\n",
        "Error: a.txt: it cannot be read: Input/output error\n",
    ) == (told(capsys, "a.txt"))


# -- folders -------------------------------------------------------------------------------------------


def write_folder(folder: Path) -> None:
    """Write a folder with files of every kind, each with a secret in it."""
    for name in ("src/a.py", "src/b.bin", "node_modules/c.js", "env/bin/d.py", "out/e.log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((b"\0" if name.endswith("bin") else b"") + KEY.encode())
    (folder / "env" / "pyvenv.cfg").touch()
    (folder / "src" / "link.py").symlink_to("a.py")


def test_a_folder_is_scanned_without_what_tools_make(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is left out is said, by its kind; a file that is named is looked at, whatever it is."""
    write_folder(folder)

    assert (
        2,
        f"./out/e.log:1:1: openai-key [{DIGEST}]\n"
        f"./src/a.py:1:1: openai-key [{DIGEST}]\n"
        "2 files scanned: 2 findings\n"
        "left out: 1 binary, 2 folders of tools, 1 links and special files\n",
        "",
    ) == told(capsys, ".")
    assert (2, f"src/b.bin:1:2: openai-key [{DIGEST}]\n1 file scanned: 1 finding\n", "") == told(
        capsys, "src/b.bin"
    )


def test_what_git_ignores_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not committed; what is deleted and tracked still is no error."""
    write_folder(folder)
    (folder / ".gitignore").write_text("out\nnode_modules\nenv\n")
    (folder / "gone.py").touch()
    for words in (("init", "-q"), ("add", "."), ("init", "-q", "inner")):
        subprocess.run(["git", *words], check=True, capture_output=True)
    (folder / "gone.py").unlink()

    assert (
        2,
        f"./src/a.py:1:1: openai-key [{DIGEST}]\n"
        "2 files scanned: 1 finding\n"
        "left out: 1 binary, 3 ignored by git, 1 links and special files\n",
        "",
    ) == told(capsys, ".")


def test_without_git_all_is_walked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A machine need not have it."""
    (folder / "a.txt").write_text("nothing")
    monkeypatch.setenv("PATH", str(folder))

    assert (0, "1 file scanned: nothing found\n", "") == told(capsys, ".")


# -- long files, and what must not be shown ------------------------------------------------------------


def test_a_long_file_is_scanned_in_pieces(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each secret is told once, with its place, wherever the pieces end."""
    monkeypatch.setattr("httpx_cassette.cli.scan._PIECE", 1000)
    monkeypatch.setattr("httpx_cassette.cli.scan._OVERLAP", 400)
    monkeypatch.setattr("httpx_cassette.cli.scan._LINE", 700)
    filler = ["x" * (37 * number % 301) for number in range(60)]
    lines = [f"{text} {KEY} {text}" for text in filler]
    (folder / "a.txt").write_text("\n".join(lines))
    (folder / "b.txt").write_text(" ".join(lines))
    places = [match.start() + 1 for match in re.finditer(re.escape(KEY), " ".join(lines))]

    assert [
        *(f"a.txt:{number}:{len(text) + 2}: openai-key [{DIGEST}]" for number, text in enumerate(filler, 1)),
        "1 file scanned: 60 findings",
    ] == told(capsys, "a.txt")[1].splitlines()
    assert [
        *(f"b.txt:1:{place}: openai-key [{DIGEST}]" for place in places),
        "1 file scanned: 60 findings",
    ] == told(capsys, "b.txt")[1].splitlines()


def test_a_secret_in_a_name_is_not_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither in that of a member, nor in that of a file; what a terminal obeys is escaped."""
    (folder / "a.json").write_text(json.dumps({KEY: 1, "\x1b]0;x\x07\n": [KEY]}))
    (folder / f"{KEY}.txt").write_text(KEY)

    assert (
        2,
        f"a.json:1:3: openai-key [{DIGEST}]\n"
        f"a.json:1:{(folder / 'a.json').read_text().rindex(KEY) + 1}: openai-key at "
        f'["\\u001b]0;x\\u0007\\n"][0] [{DIGEST}]\n'
        f"<name left out>:1:1: openai-key [{DIGEST}]\n"
        "2 files scanned: 2 findings\n".replace("2 findings", "3 findings"),
        "",
    ) == told(capsys, "a.json", f"{KEY}.txt")


def test_the_hooks_of_pre_commit_run_commands_that_are_there() -> None:
    """Each entry is a command of this package."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^  entry: httpx-cassette (\S+)$", text, re.MULTILINE)

    assert ["scan", "verify"] == entries
    assert set(entries) <= set(COMMANDS)
