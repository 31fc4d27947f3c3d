"""``httpx-cassette redact``: an old cassette by today's rules, found by calls that are redacted alike."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from httpx_cassette import CassetteTransport, Redaction, expected_miss
from httpx_cassette._call import Json
from httpx_cassette._line import is_intact, seal, tear_note
from httpx_cassette.cli import main

from .damaged_cassettes import DAMAGED, ONE
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said, write_example

ROOT = Path(__file__).parent.parent
URL = "https://api.openai.com/v1/chat/completions"
KEY = "sk-proj-" + "aB3dE6gH9jK2" * 4
PLACEHOLDER = Redaction().text(KEY)
ASKED = f"My key is {KEY}, and I am ada@example.com."


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own, without a key for what could be guessed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HTTPX_CASSETTE_HMAC_KEY", raising=False)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Return the status of a run, and what it wrote."""
    status = main(words)
    return status, *capsys.readouterr()


def old_line(answer: dict[str, Json] | None = None, **options: Json) -> bytes:
    """Return a recording from before there was a rule for its secret."""
    answered = answer or chat_answer("gpt-5", said(f"You said {KEY}"), "stop", (1, 1))
    return exchange_line(URL, chat("gpt-5", ASKED, **options), answered, finish="stop")


WORDS = {
    "redact": ("redact", "a.jsonl"),
    "seed": ("seed", "a.jsonl", "-o", "seed.jsonl", "--used-by", "used.jsonl"),
}

#: Command and file -> status, output, error.
EXPECTED: dict[tuple[str, str], tuple[int, str, str]] = {
    ("redact", "empty"): (
        0,
        "a.jsonl: 0 of 0 recordings redacted\n",
        "",
    ),
    ("redact", "torn tail"): (
        0,
        "a.jsonl: 0 of 1 recording redacted, 1 unreadable line dropped\n",
        "",
    ),
    ("redact", "torn and noted"): (
        0,
        "a.jsonl: 0 of 1 recording redacted, 1 unreadable line dropped\n",
        "",
    ),
    ("redact", "damaged"): (
        1,
        "",
        (
            "Error: a.jsonl:2: the line is damaged, so that nothing in it can be redacted; repair or "
            "reseal it, or drop it with --drop-damaged\n"
        ),
    ),
    ("redact", "edited"): (
        1,
        "",
        (
            "Error: a.jsonl:1: the line is edited by hand, or damaged, so that nothing in it can be "
            "redacted; repair or reseal it, or drop it with --drop-damaged\n"
        ),
    ),
    ("redact", "zeros"): (
        1,
        "",
        (
            "Error: a.jsonl:2: the line is zero bytes, so that nothing in it can be redacted; repair "
            "or reseal it, or drop it with --drop-damaged\n"
        ),
    ),
    ("redact", "merge"): (
        1,
        "",
        (
            "Error: a.jsonl:2: an unresolved merge; keep the lines of both sides and delete the "
            "marker lines (a .gitattributes line with merge=union does that by itself)\n"
        ),
    ),
    ("redact", "crlf"): (
        0,
        "a.jsonl: 0 of 2 recordings redacted\n",
        "",
    ),
    ("redact", "mark"): (
        0,
        "a.jsonl: 0 of 1 recording redacted\n",
        "",
    ),
    ("redact", "utf-16"): (
        1,
        "",
        "Error: a.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark\n",
    ),
    ("redact", "same twice"): (
        0,
        "a.jsonl: 0 of 2 recordings redacted\n",
        "",
    ),
    ("redact", "conflict"): (
        2,
        (
            "a.jsonl:2: another answer than line 1 gives to the same call; the last line of them is "
            "replayed\n"
            "a.jsonl: 0 of 2 recordings redacted\n"
        ),
        "",
    ),
    ("redact", "newer"): (
        1,
        "",
        ("Error: a.jsonl:1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette\n"),
    ),
    ("redact", "unknown kind"): (
        0,
        "a.jsonl: 0 of 1 recording redacted\n",
        "",
    ),
    ("redact", "other key version"): (
        0,
        "a.jsonl: 0 of 2 recordings redacted\n",
        "",
    ),
    ("redact", "no newline"): (
        0,
        "a.jsonl: 0 of 1 recording redacted\n",
        "",
    ),
    ("seed", "empty"): (
        1,
        "",
        (
            "Error: a.jsonl: 1 call of the run cannot be answered from it: b8697e75a59f; record "
            "them, or merge the cassette that they are in\n"
        ),
    ),
    ("seed", "torn tail"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "torn and noted"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "damaged"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "edited"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "zeros"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "merge"): (
        1,
        "",
        (
            "Error: a.jsonl:2: an unresolved merge; keep the lines of both sides and delete the "
            "marker lines (a .gitattributes line with merge=union does that by itself)\n"
        ),
    ),
    ("seed", "crlf"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "mark"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "utf-16"): (
        1,
        "",
        "Error: a.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark\n",
    ),
    ("seed", "same twice"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "conflict"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "newer"): (
        1,
        "",
        ("Error: a.jsonl:1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette\n"),
    ),
    ("seed", "unknown kind"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "other key version"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
    ("seed", "no newline"): (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "",
    ),
}


@pytest.mark.parametrize(("command", "name"), EXPECTED)
def test_every_damaged_file_is_answered(
    command: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be read could hold a secret: it is refused or not taken, and the file is as it was."""
    (folder / "a.jsonl").write_bytes(DAMAGED[name])
    prepare(folder)

    assert EXPECTED[command, name] == told(capsys, *WORDS[command])
    if EXPECTED[command, name][0] == 1:
        assert DAMAGED[name] == (folder / "a.jsonl").read_bytes()
        assert ["a.jsonl", "used.jsonl"] == sorted(each.name for each in folder.iterdir())


def prepare(folder: Path) -> None:
    """Write what a run used: the first recording of the example."""
    write_used(folder, ONE, cassette="a.jsonl")


def test_every_damaged_file_is_tried() -> None:
    """No row of the table is left out."""
    assert {(command, name) for command in WORDS for name in DAMAGED} == set(EXPECTED)


def replayed(text: str, **options: object) -> str:
    """Return what a replay answers to a user."""
    transport = CassetteTransport("a.jsonl", **options)  # type: ignore[arg-type]  # as a user's file would
    with httpx.Client(transport=transport) as client:
        answer = client.post(URL, json=chat("gpt-5", text))
    return str(answer.json()["choices"][0]["message"]["content"])


def test_a_secret_goes_and_the_call_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is redacted as well; once more changes nothing; other lines stay to the byte."""
    file = folder / "a.jsonl"
    file.write_bytes(old_line() + b"\n" + ONE + b"\n")

    would = "a.jsonl: 1 of 2 recordings would be redacted\n"
    assert (0, would, "") == told(capsys, "redact", "a.jsonl", "--dry-run")
    assert old_line() + b"\n" + ONE + b"\n" == file.read_bytes()
    assert (0, "a.jsonl: 1 of 2 recordings redacted\n", "") == told(capsys, "redact", "a.jsonl")
    after = file.read_bytes()
    assert KEY.encode() not in after
    assert ONE == after.splitlines()[1]
    assert f"You said {PLACEHOLDER}" == replayed(ASKED)
    fact = '{"file": "a.jsonl", "redacted": [], "recordings": 2, "dropped": [], "dry_run": false}\n'
    assert (0, fact, "") == told(capsys, "redact", "a.jsonl", "--json")
    assert after == file.read_bytes()
    assert (0, "2 recordings in 1 file: nothing found\n", "") == told(capsys, "verify", "a.jsonl")


def test_personal_data_need_a_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one they go, and a call that is redacted alike is found; with another one nothing is done."""
    file = folder / "a.jsonl"
    file.write_bytes(old_line() + b"\n")

    assert (
        1,
        "",
        "Error: redact: values of the kind 'card', the kind 'email', the kind 'iban', the kind 'phone' can "
        "be guessed from a public digest, and HTTPX_CASSETTE_HMAC_KEY is not set; set it to a secret of 16 "
        "characters or more, the same one wherever the cassette is used\n",
    ) == told(capsys, "redact", "a.jsonl", "--pii")
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "k" * 16)
    assert (
        0,
        "a.jsonl: 1 of 1 recording redacted\n",
        "calls find these recordings with: [tool.httpx_cassette.redact] weak = "
        '["card", "email", "iban", "phone"]\n',
    ) == told(capsys, "redact", "a.jsonl", "--pii")
    assert b"ada@example.com" not in file.read_bytes()
    weak = ("card", "email", "iban", "phone")
    assert f"You said {PLACEHOLDER}" == replayed(ASKED, redact=Redaction(weak=weak))

    before = file.read_bytes()
    key_id = json.loads(before)["policy"]["redact"]["key_id"]
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "l" * 16)
    assert (
        1,
        "",
        f"Error: a.jsonl:1: it was redacted with another key (key id {key_id!r}), and can only be with that "
        "one again\n",
    ) == told(capsys, "redact", "a.jsonl", "--pii")
    assert before == file.read_bytes()


def test_own_rules_of_the_project_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Patterns and paths, as transports in the same folder have them: no word is needed to find a call."""
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "k" * 16)
    (folder / "pyproject.toml").write_text(
        "[tool.httpx_cassette.redact]\npatterns = {customer = 'C-[0-9]{4}'}\npaths = ['user']\n"
    )
    body = {**chat("gpt-5", "I am C-1234"), "user": "ada"}
    (folder / "a.jsonl").write_bytes(
        exchange_line(URL, body, chat_answer("gpt-5", said("Hi C-1234"), "stop", (1, 1))) + b"\n"
    )
    assert (0, "a.jsonl: 1 of 1 recording redacted\n", "") == told(capsys, "redact", "a.jsonl")

    members = json.loads((folder / "a.jsonl").read_bytes())
    with httpx.Client(transport=CassetteTransport("a.jsonl")) as client:
        answer = client.post(URL, json=body).json()
    assert answer == members["response"]["json"]
    assert "ada" not in json.dumps(members)
    assert "C-1234" not in json.dumps(members)


def test_personal_data_are_redacted_alike_when_recorded_and_replayed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The answer that comes back in the next request is found; another address is another call."""
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "k" * 16)
    redact = Redaction(weak=("email", "phone", "card", "iban", "name-value"))
    asked = (
        "I am ada@example.com, +44 20 7946 0958, card 4111 1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00, "
        "password=hunter22"
    )
    upstream = httpx.MockTransport(
        lambda request: httpx.Response(200, json=chat_answer("gpt-5", said(asked), "stop", (1, 1))["json"])
    )
    recording = CassetteTransport("a.jsonl", mode="record", redact=redact, next_transport=upstream)
    with httpx.Client(transport=recording) as client:
        first = client.post(URL, json=chat("gpt-5", asked)).json()["choices"][0]["message"]["content"]
        client.post(URL, json=chat("gpt-5", f"You said: {first}"))

    answer = replayed(asked, redact=redact)
    assert ["email", "phone", "card", "iban", "name-value"] == re.findall(r"<redacted:([a-z-]+):", answer)
    assert answer == replayed(f"You said: {answer}", redact=redact)
    with expected_miss():
        replayed(asked.replace("ada@", "eve@"), redact=redact)
    assert 0 == told(capsys, "scan", "a.jsonl", "--pii", "--names")[0]


BODIES: dict[str, dict[str, Json]] = {
    "text": {"text": f"You said {KEY}"},
    "stream": {
        "framing": "sse",
        "stored": "assembled",
        "script": [{"json": {"choices": [{"index": 0, "delta": {"content": f"You said {KEY}"}}]}}],
    },
    "unknown members": {"json": {}, "note": [KEY]},
}


@pytest.mark.parametrize("name", BODIES)
def test_every_kind_of_answer_is_redacted(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its form stays as it was."""
    (folder / "a.jsonl").write_bytes(old_line(BODIES[name]) + b"\n")
    told(capsys, "redact", "a.jsonl")

    response = json.loads((folder / "a.jsonl").read_bytes())["response"]
    expected = json.loads(json.dumps(BODIES[name]).replace(KEY, PLACEHOLDER))
    assert expected == {member: response[member] for member in expected}


#: Other requests than JSON, and what is left of them.
REQUESTS: dict[str, tuple[dict[str, Json], dict[str, Json]]] = {
    "text": ({"text": KEY}, {"text": PLACEHOLDER}),
    "form": (
        {"form": [["client_secret", "x"], ["q", KEY]]},
        {"form": [["q", PLACEHOLDER]]},
    ),
    "parts": (
        {"parts": [{"name": "f", "type": "text/plain", "text": KEY}]},
        {"parts": [{"name": "f", "type": "text/plain", "text": PLACEHOLDER}]},
    ),
    "headers": ({"headers": {"openai-beta": KEY}}, {"headers": {"openai-beta": PLACEHOLDER}}),
    "url": (
        {"url": f"https://u:p@api.openai.com/v1/files/{KEY}?key=abc&b=1"},
        {"url": f"https://api.openai.com/v1/files/%3C{PLACEHOLDER[1:-1]}%3E?b=1"},
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_every_part_of_a_request_is_redacted(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the key that comes of it."""
    before, after = REQUESTS[name]
    members = json.loads(ONE)
    del members["request"]["json"], members["sum"]
    members["request"] |= before
    line = seal(json.dumps(members, separators=(",", ":")).encode()[:-1])
    (folder / "a.jsonl").write_bytes(line + b"\n")

    assert (0, "a.jsonl: 1 of 1 recording redacted\n", "") == told(capsys, "redact", "a.jsonl")
    request = json.loads((folder / "a.jsonl").read_bytes())["request"]
    assert after == {member: request[member] for member in after}
    assert 0 == told(capsys, "verify", "a.jsonl")[0]


def resealed(line: bytes, old: bytes, new: bytes) -> bytes:
    """Return a line that was changed and sealed."""
    return seal(line.replace(old, new).rpartition(b',"sum":')[0])


#: What cannot be redacted -> the reason.
REFUSED: dict[str, tuple[bytes, str]] = {
    "no request": (
        resealed(ONE, b'"request":', b'"request":7,"former":'),
        "the recording holds no request",
    ),
    "no URL": (
        resealed(ONE, b'"url":', b'"uri":'),
        "it holds no request that a key can be computed of",
    ),
    "no response": (
        resealed(ONE, b'"response":', b'"response":7,"former":'),
        "no answer can be made of it: there is no response",
    ),
    "bytes": (
        old_line({"base64": "LS1zay1wcm9qLWFCM2RFNmdIOWpLMmFCM2RFNmdIOWpLMmFCM2RFNmdIOWpLMi0t"}),
        "a credential stands in an answer that is no text",
    ),
    "pieces": (
        old_line({
            "framing": "sse", "stored": "verbatim",
            "script": [{"text": KEY[:20]}, {"text": KEY[20:]}],
        }),
        "a credential stands in the text of the stream, in pieces that were not joined",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_redacted_is_refused(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With file and line, and nothing is written."""
    line, reason = REFUSED[name]
    (folder / "a.jsonl").write_bytes(ONE + b"\n" + line + b"\n")

    assert (1, "", f"Error: a.jsonl:2: {reason}\n") == told(capsys, "redact", "a.jsonl")
    assert ONE + b"\n" + line + b"\n" == (folder / "a.jsonl").read_bytes()


def test_a_credential_of_the_environment_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No rule knows its shape; it is named by its variable."""
    monkeypatch.setenv("SHOP_API_KEY", "Zq83-vvLw-0192-mmXY")
    (folder / "a.jsonl").write_bytes(resealed(ONE, b"1042", b"Zq83-vvLw-0192-mmXY") + b"\n")

    assert (
        1,
        "",
        "Error: a.jsonl:1: the environment variable SHOP_API_KEY would still stand in it; have it redacted "
        "by a pattern of your own: [tool.httpx_cassette.redact] patterns = {my-secret = '...'}\n",
    ) == told(capsys, "redact", "a.jsonl")


def test_lines_that_cannot_be_read_are_dropped_when_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Torn ones always are, with their notes; lines of other kinds are redacted too."""
    torn = old_line()[:600]
    note = b'{"v":1,"note":"' + KEY.encode() + b'"}'
    lines = [torn, tear_note(0, len(torn)), note, b'{"v":1,"other":1}', b"nonsense " + KEY.encode(), ONE, b""]
    (folder / "a.jsonl").write_bytes(b"\n".join([*lines, torn]))

    assert (
        1,
        "",
        "Error: a.jsonl:5: the line is not a recording, so that nothing in it can be redacted; repair or "
        "reseal it, or drop it with --drop-damaged\n",
    ) == told(capsys, "redact", "a.jsonl")
    assert (0, "a.jsonl: 1 of 1 recording redacted, 3 unreadable lines dropped\n", "") == told(
        capsys, "redact", "a.jsonl", "--drop-damaged"
    )
    assert [
        f'{{"v":1,"note":"{PLACEHOLDER}"}}'.encode(), b'{"v":1,"other":1}', ONE,
    ] == [line for line in (folder / "a.jsonl").read_bytes().splitlines() if line]  # fmt: skip


def test_a_sealed_line_of_another_kind_is_sealed_again(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By those who know it, it is to be trusted as before."""
    (folder / "a.jsonl").write_bytes(seal(b'{"v":1,"note":"%b"' % KEY.encode()) + b"\n[7]\n")
    told(capsys, "redact", "a.jsonl", "--drop-damaged")

    line = (folder / "a.jsonl").read_bytes().removesuffix(b"\n")
    assert is_intact(line)
    assert {"v": 1, "note": PLACEHOLDER} == {
        name: value for name, value in json.loads(line).items() if name != "sum"
    }


_KILLED = """\
import os, signal, sys
from httpx_cassette.cli import main

def end(*arguments):
    os.kill(os.getpid(), int(sys.argv[1]))

os.fsync = end
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["SIGINT", "SIGKILL"])
def test_a_signal_in_the_middle_loses_nothing(number: signal.Signals, folder: Path) -> None:
    """The file is as it was until the new one is whole."""
    (folder / "a.jsonl").write_bytes(old_line() + b"\n")
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(int(number)), "redact", "a.jsonl"],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert (130 if number == signal.SIGINT else -int(number), "") == (done.returncode, done.stderr)
    assert old_line() + b"\n" == (folder / "a.jsonl").read_bytes()


# -- seed ----------------------------------------------------------------------------------------------


def write_used(folder: Path, *lines: bytes, cassette: str = "full.jsonl") -> None:
    """Write what the plugin of pytest does."""
    facts = [{"fingerprint": json.loads(line)["key"], "cassette": cassette, "line": 1} for line in lines]
    (folder / "used.jsonl").write_text("".join(f"{json.dumps(fact)}\n" for fact in facts))


SEED = ("seed", "full.jsonl", "-o", "seed.jsonl", "--used-by", "used.jsonl")


def test_a_seed_holds_what_was_used_and_no_secret(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest generation with its samples, in the order of the lines; the full cassette stays as it is."""
    lines = example_lines()
    full = write_example(folder / "full.jsonl", old_line()).read_bytes()
    write_used(folder, lines[7], lines[1], old_line())

    would = "seed.jsonl: 4 recordings of 3 calls would be written\n"
    assert (0, would, "") == told(capsys, *SEED, "--dry-run")
    assert (0, "seed.jsonl: 4 recordings of 3 calls written\n", "") == told(capsys, *SEED)
    seed = (folder / "seed.jsonl").read_bytes()
    assert [lines[1], lines[6], lines[7]] == seed.splitlines()[:3]
    assert KEY.encode() not in seed
    assert full == (folder / "full.jsonl").read_bytes()
    (folder / "seed.jsonl").rename(folder / "a.jsonl")
    assert f"You said {PLACEHOLDER}" == replayed(ASKED)


def test_a_seed_is_redacted_as_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What must stand in pyproject.toml for its recordings to be found is told."""
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "k" * 16)
    write_example(folder / "full.jsonl", old_line())
    write_used(folder, old_line())

    assert (
        0,
        "seed.jsonl: 1 recording of 1 call written\n",
        "calls find these recordings with: [tool.httpx_cassette.redact] weak = "
        '["card", "email", "iban", "phone"]\n',
    ) == told(capsys, *SEED, "--pii")
    assert b"ada@example.com" not in (folder / "seed.jsonl").read_bytes()


def test_a_seed_is_replaced_when_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And only then; the facts are there for programs."""
    lines = example_lines()
    write_example(folder / "full.jsonl")
    (folder / "seed.jsonl").write_bytes(ONE)
    write_used(folder, lines[1])

    assert (1, "", "Error: seed.jsonl: there is such a file already; --force replaces it\n") == told(
        capsys, *SEED
    )
    fact = '{"file": "seed.jsonl", "recordings": 1, "calls": 1, "dry_run": false}\n'
    assert (0, fact, "") == told(capsys, *SEED, "--force", "--json")
    assert lines[1] + b"\n" == (folder / "seed.jsonl").read_bytes()


def test_recordings_of_other_cassettes_are_not_asked_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A suite has many; where none is named so, as the file was moved, all count."""
    lines = example_lines()
    write_example(folder / "full.jsonl")
    write_used(folder, old_line(), cassette="other.jsonl")
    used = (folder / "used.jsonl").read_text()
    write_used(folder, lines[1])
    with (folder / "used.jsonl").open("a") as file:
        file.write(used)

    assert (0, "seed.jsonl: 1 recording of 1 call written\n", "") == told(capsys, *SEED)
    write_used(folder, lines[2], cassette="moved.jsonl")
    assert (0, "seed.jsonl: 1 recording of 1 call written\n", "") == told(capsys, *SEED, "--force")


def test_what_is_not_there_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A seed that is not whole would miss; a damaged recording is not there."""
    lines = example_lines()
    (folder / "full.jsonl").write_bytes(ONE.replace(b"Billing", b"Other") + b"\n")
    write_used(folder, *lines[:6])
    keys = ", ".join(json.loads(line)["key"][:12] for line in lines[:3])

    assert (
        1,
        "",
        f"Error: full.jsonl: 6 calls of the run cannot be answered from it: {keys} and 3 more; record them, "
        "or merge the cassette that they are in\n",
    ) == told(capsys, *SEED)
    assert not (folder / "seed.jsonl").exists()


SEED_MISUSE: dict[tuple[str, ...], str] = {
    ("seed", "full.jsonl", "-o", "full.jsonl", "--used-by", "used.jsonl"): (
        "full.jsonl is the full cassette; name another file with -o"
    ),
    ("seed", "full.jsonl", "-o", "-", "--used-by", "used.jsonl"): (
        "a cassette cannot be written to a pipe; name a file: -o seed.jsonl"
    ),
    ("seed", "-", "-o", "seed.jsonl", "--used-by", "used.jsonl"): (
        "a cassette cannot be read from a pipe; name its file"
    ),
    ("seed", "absent.jsonl", "-o", "seed.jsonl", "--used-by", "used.jsonl"): (
        "absent.jsonl: there is no such file; name one that is there, or record it first"
    ),
    ("seed", "full.jsonl", "-o", "seed.jsonl", "--used-by", "absent"): (
        "absent: it cannot be read: No such file or directory"
    ),
    ("seed", "full.jsonl", "-o", "seed.jsonl", "--used-by", "full.jsonl"): (
        "full.jsonl:1: the line names no recording; the file is what pytest --cassette-used=FILE writes"
    ),
}


@pytest.mark.parametrize("words", SEED_MISUSE)
def test_misuse_of_seed_is_one_sentence(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With status 1, and nothing is written."""
    write_example(folder / "full.jsonl")
    write_used(folder, ONE)

    assert (1, "", f"Error: {SEED_MISUSE[words]}\n") == told(capsys, *words)
    assert ["full.jsonl", "used.jsonl"] == sorted(each.name for each in folder.iterdir())
