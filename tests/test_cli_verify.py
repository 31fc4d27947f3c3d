"""``httpx-cassette verify``: every kind of damage is named by file and line."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from httpx_cassette import CassetteTransport, KeyPolicy, OptionError, dialects
from httpx_cassette._line import seal, tear_note
from httpx_cassette.cli import main

from ._recordings import line as bare_line
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said, write_example

URL = "https://api.openai.com/v1/chat/completions"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def resealed(line: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a line that was changed and sealed anew."""
    return seal(change(line).rpartition(b',"sum":')[0])


def verified(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """Return status and lines of a run that writes no error."""
    status = main(["verify", *words])
    out, err = capsys.readouterr()
    assert "" == err
    return status, out.splitlines()


ONE = example_lines()[0]
OTHER = exchange_line(
    URL, chat("gpt-5", "I was charged twice for order 1042, see the invoice."),
    chat_answer("gpt-5", said("Other"), "stop", (31, 2)), finish="stop",
)  # fmt: skip
DEEP = b'{"v":1,"kv":1,"key":"%b","sample":0,"gen":0,"response":%b' % (b"ab" * 32, b"[" * 300 + b"]" * 300)
HEAD = b'{"v":1,"kv":1,"key":"%b","sample":0,"gen":0,"at":"","dialect":"openai-chat","response":' % (
    b"ab" * 32
)
REQUEST = b',"request":{"method":"POST","url":"https://api.openai.com/v1/chat/completions","json":{}}'
UNREADABLE = "the recording has no answer that can be read"
UNMADE = "the recording has no answer that can be made"
ANEW = "record the call again with HTTPX_CASSETTE_MODE=rerecord"
NO_KEY = (
    "its key is not that of its request: edited by hand, or written by something else; "
    f"restore the line, or {ANEW}"
)
NO_REQUEST = f"it holds no request that a key can be computed of; restore the line, or {ANEW}"

#: What is in a file -> what is found, with its line.
DAMAGE: dict[str, tuple[bytes, list[str]]] = {
    "edited": (ONE.replace(b"Billing", b"Invoice") + b"\n", ["1: edited by hand, or damaged"]),
    "cut": (ONE + b"\n" + ONE[:300] + b"\n" + ONE + b"\n", ["2: damaged"]),
    "zeros": (ONE + b"\n" + b"\0" * 4096 + b"\n", ["2: zero bytes"]),
    "no recording": (b'{"v":1,"note":"other"}\n' + ONE + b"\nnonsense\n", ["3: not a recording"]),
    "conflict": (
        ONE + b"\n" + OTHER + b"\n",
        ["2: another answer than line 1 gives to the same call"],
    ),
    "same twice": (ONE + b"\n" + ONE + b"\n", []),
    "crlf": (ONE + b"\r\n" + example_lines()[1] + b"\r\n", []),
    "mark": (b"\xef\xbb\xbf" + ONE + b"\n", []),
    "merge": (
        ONE + b"\n<<<<<<< HEAD\n" + OTHER + b"\n=======\n",
        [
            "2: an unresolved merge; keep the lines of both sides and delete the marker lines "
            "(a .gitattributes line with merge=union does that by itself)"
        ],
    ),
    "utf-16": (
        ONE.decode().encode("utf-16"),
        ["1: the file is not UTF-8; save it as UTF-8 without a mark"],
    ),
    "newer": (
        ONE.replace(b'{"v":1', b'{"v":9') + b"\n",
        ["1: the line has format 9 and this release reads up to 1; upgrade httpx_cassette"],
    ),
    "key": (resealed(ONE, lambda line: line.replace(b"order 1042", b"order 1043")) + b"\n", [f"1: {NO_KEY}"]),
    "dialect": (
        resealed(bare_line("a"), lambda line: line.replace(b"/v1/chat", b"/v1/chat/completions")) + b"\n",
        [f"1: {NO_KEY}"],
    ),
    "names": (
        resealed(ONE, lambda line: line.replace(b'"index":0,', b'"index":0,"index":0,')) + b"\n",
        ["1: the name 'index' stands twice in an object"],
    ),
    "escapes": (resealed(ONE, lambda line: line.replace(b"Billing", b"B\\u0069lling")) + b"\n", []),
    "big": (resealed(ONE, lambda line: line.replace(b'"ms":812', b'"ms":' + b"9" * 400)) + b"\n", []),
    "deep": (
        seal(DEEP) + b"\n",
        ["1: the recording cannot be read: nesting deeper than 108"],
    ),
    "no response": (
        seal(HEAD + b'7' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: it is no object", f"1: {NO_KEY}"],
    ),
    "no status": (
        seal(HEAD + b'{"json":7}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: it has no status", f"1: {NO_KEY}"],
    ),
    "no body": (
        seal(HEAD + b'{"status":200}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: 'script'", f"1: {NO_KEY}"],
    ),
    "headers": (
        seal(HEAD + b'{"status":200,"headers":[],"text":""}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: 'list' object has no attribute 'items'", f"1: {NO_KEY}"],
    ),
    "header": (
        seal(HEAD + b'{"status":200,"headers":{"\\u2026":""},"text":""}' + REQUEST) + b"\n",
        [
            f"1: {UNMADE}: 'latin-1' codec can't encode character '\\u2026' in position 0: "
            "ordinal not in range(256)",
            f"1: {NO_KEY}",
        ],
    ),
    "layout": (
        seal(HEAD + b'{"status":200,"json":7,"layout":"nope"}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: a document with the layout 'nope'", f"1: {NO_KEY}"],
    ),
    "framing": (
        seal(HEAD + b'{"status":200,"script":[],"framing":"nope"}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: a script with the framing 'nope'", f"1: {NO_KEY}"],
    ),
    "no events": (
        seal(HEAD + b'{"status":200,"script":[7]}' + REQUEST) + b"\n",
        [f"1: {UNMADE}: an event is no object", f"1: {NO_KEY}"],
    ),
    "event": (
        seal(HEAD + b'{"status":200,"script":[{"text":"","event":7}]}' + REQUEST) + b"\n",
        [f"1: {UNMADE}: the event of an event is no text", f"1: {NO_KEY}"],
    ),
    "no text": (
        seal(HEAD + b'{"status":200,"text":7}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: 'int' object has no attribute 'encode'", f"1: {NO_KEY}"],
    ),
    "no base64": (
        seal(HEAD + b'{"status":200,"base64":"YQ"}' + REQUEST) + b"\n",
        [f"1: {UNREADABLE}: Incorrect padding", f"1: {NO_KEY}"],
    ),
    "two bodies": (
        seal(HEAD + b'{"status":200,"json":7,"text":""}' + REQUEST) + b"\n",
        [
            "1: its answer has json and text, and exactly one of json, text, base64, script is due",
            f"1: {NO_KEY}",
        ],
    ),
    "no request": (
        seal(HEAD + b'{"status":200,"text":""},"request":7') + b"\n",
        [f"1: {NO_REQUEST}"],
    ),
    "no policy": (
        resealed(ONE, lambda line: line.replace(b',"sum"', b',"policy":{"nonsense":1},"sum"')) + b"\n",
        [f"1: {NO_REQUEST}"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_what_is_wrong_is_named(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row of the table of damage: the status is 2 for a finding, 0 for what is harmless."""
    data, findings = DAMAGE[name]
    (folder / "a.jsonl").write_bytes(data)
    status, lines = verified(capsys, "a.jsonl")

    assert [f"a.jsonl:{each}" for each in findings] == lines[:-1]
    assert (2 if findings else 0) == status


def test_torn_lines_and_other_versions_are_no_findings(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are counted; a torn tail, too."""
    torn = ONE[:200]
    note = tear_note(0, len(torn))
    data = b"\n".join([torn, note, *example_lines(), bare_line("old", key_version=7), ONE[:90]])
    (folder / "a.jsonl").write_bytes(data)

    assert (
        0,
        [
            "a.jsonl: 2 lines torn by a crash, which counts as not there",
            "a.jsonl: 1 recording of key version 7, not looked up",
            "8 recordings in 1 file: nothing found",
        ],
    ) == verified(capsys, "a.jsonl")


def test_all_files_are_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is not there keeps none from it; a finding is what the status says."""
    write_example(folder / "good.jsonl")
    (folder / "bad.jsonl").write_bytes(b"\n".join([ONE[:300], b""]))

    assert 2 == main(["verify", "absent.jsonl", "bad.jsonl", "-", "good.jsonl"])
    assert (
        "bad.jsonl:1: damaged\n9 recordings in 2 files: 1 finding\n",
        "Error: absent.jsonl: there is no such file; name one that is there, or record it first\n"
        "Error: a cassette cannot be read from a pipe; name its file\n",
    ) == capsys.readouterr()
    (folder / "empty").mkdir()
    assert 1 == main(["verify", "good.jsonl", "empty"])
    assert (
        "8 recordings in 1 file: nothing found\n",
        "Error: empty: the path is a folder; name a file in it, such as chat.jsonl\n",
    ) == capsys.readouterr()
    assert 1 == main(["verify", "absent.jsonl"])
    assert (
        "",
        "Error: absent.jsonl: there is no such file; name one that is there, or record it first\n",
    ) == capsys.readouterr()


def test_a_folder_stands_for_all_cassettes_below_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the order of their paths; what has another name is left out, and so are the folders of tools."""
    for name in ("b/c.jsonl", "b/a/d.jsonl", "b/notes.txt", "b/.venv/e.jsonl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\n".join([ONE[:300], b""]))

    assert (
        2,
        ["b/a/d.jsonl:1: damaged", "b/c.jsonl:1: damaged", "2 recordings in 2 files: 2 findings"],
    ) == verified(capsys, "b")


def test_findings_are_objects(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--json`` there is nothing else; of a file that is well, nothing."""
    write_example(folder / "good.jsonl")
    (folder / "bad.jsonl").write_bytes(b"\n".join([ONE[:300], b""]))
    status, lines = verified(capsys, "bad.jsonl", "good.jsonl", "--json")

    assert (2, [{"file": "bad.jsonl", "line": 1, "finding": "damaged"}]) == (
        status,
        [*map(json.loads, lines)],
    )


POLICIES = {
    "default": KeyPolicy(),
    "ignore": KeyPolicy(ignore=["metadata.run_id"], host=False),
    "masks": KeyPolicy(masks=["date", "uuid"], strip=False),
    "own masks": KeyPolicy(masks={"order": r"order \d+", "date": None}),
    "headers": KeyPolicy(headers=["x-tenant"], extra={"prompt_version": "7"}),
    "defaults": KeyPolicy(defaults={"temperature": 0.5}),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_what_was_recorded_passes(policy: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A key is computed anew as it was when the call was recorded, whatever the policy of the project."""
    (folder / "prompt.txt").write_text("Be brief.")
    upstream = httpx.MockTransport(lambda request: httpx.Response(200, json={"choices": []}))
    transport = CassetteTransport(
        "a.jsonl", mode="record", key_policy=POLICIES[policy], prompt_files=["prompt.txt"],
        next_transport=upstream,
    )  # fmt: skip
    body = chat(
        "gpt-5", "Order order 1042 of 2026-11-29 \n", temperature=0.5, metadata={"run_id": "1", "$a": 1}
    )
    with httpx.Client(transport=transport) as client:
        client.post(
            "https://API.openai.com:443/v1/chat/completions?b=2&a=1", json=body, headers={"x-tenant": "t"}
        )
        client.get("https://api.openai.com/v1/models")
        client.post("https://api.example.com/form", data={"b": "2", "a": "1"})
        client.post("https://api.example.com/parts", files={"file": ("a.txt", b"abc")})
        client.post("https://api.example.com/bytes", content=b"\xff\xfe")

    assert (0, ["5 recordings in 1 file: nothing found"]) == verified(capsys, "a.jsonl")


def test_a_call_that_has_a_table_by_now_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Recorded as generic when its format was not known, it has another key today."""
    members = json.loads(exchange_line("https://api.example.com/v1/thing", chat("gpt-5", "a"), {"json": {}}))
    from httpx_cassette._fingerprint import Draft, hash_document, key_document
    from httpx_cassette._policy import DEFAULT_POLICY
    from httpx_cassette.dialects import GENERIC

    body = chat("gpt-5", "a", temperature=1)
    request = {"method": "POST", "url": URL, "json": body}
    copy = json.loads(json.dumps(request))
    key = hash_document(key_document(Draft(copy, GENERIC, DEFAULT_POLICY, "api.openai.com")))
    members |= {"key": key.hex(), "request": request}
    del members["sum"]
    data = json.dumps(members, separators=(",", ":")).encode()[:-1]
    (folder / "a.jsonl").write_bytes(seal(data) + b"\n")

    said_ = (
        "a.jsonl:1: recorded as generic, and such a call is openai-chat by now: none finds it any more; "
        f"{ANEW}"
    )
    assert (2, [said_, "1 recording in 1 file: 1 finding"]) == verified(capsys, "a.jsonl")


def test_it_can_be_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing was written, so nothing is lost; the status is a shell's."""
    write_example(folder / "a.jsonl")

    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("httpx_cassette._verification.verify", interrupt)
    assert 130 == main(["verify", "a.jsonl"])


GATEWAY = """
from httpx_cassette import dialects

dialects.register(dialects.Dialect(
    "gateway", endpoints=(dialects.Endpoint("/ask"),), folds=dialects.Folds(defaults={"depth": 3})
))
"""
NOT_CHECKED = (
    "a.jsonl: 2 keys of the dialect 'gateway' not checked, as it is not registered here; "
    "name the module that registers it: --import MODULE"
)


@pytest.fixture
def of_a_gateway(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a cassette of a dialect that its module registers, which is not imported any more."""
    (folder / "its_gateway.py").write_text(GATEWAY)
    url = "https://gateway.example.com/ask"
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("its_gateway")
    lines = [exchange_line(url, {"question": each, "depth": 3}, {"json": {}}) for each in ("a", "b")]
    (folder / "a.jsonl").write_bytes(b"\n".join([*lines, b""]))
    dialects.unregister("gateway")
    del sys.modules["its_gateway"]
    yield folder
    sys.modules.pop("its_gateway", None)
    with suppress(OptionError):
        dialects.unregister("gateway")


def test_a_key_of_a_dialect_that_is_not_known_is_not_judged(
    of_a_gateway: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is counted and the dialect named, which is no finding; as objects, on stderr."""
    assert (0, [NOT_CHECKED, "2 recordings in 1 file: nothing found"]) == verified(capsys, "a.jsonl")
    assert 0 == main(["verify", "a.jsonl", "--json"])
    assert ("", f"{NOT_CHECKED}\n") == capsys.readouterr()


@pytest.mark.parametrize("is_on_path", [True, False])
def test_a_module_that_registers_is_imported_first(
    is_on_path: bool,
    of_a_gateway: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From the folder that the command is run in; then keys are judged, those that are wrong as well."""
    if not is_on_path:
        monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", str(of_a_gateway))])
    lines = (of_a_gateway / "a.jsonl").read_bytes().splitlines()
    edited = resealed(lines[1], lambda line: line.replace(b'"question":"b"', b'"question":"c"'))
    (of_a_gateway / "a.jsonl").write_bytes(b"\n".join([lines[0], edited, b""]))

    assert (2, [f"a.jsonl:2: {NO_KEY}", "2 recordings in 1 file: 1 finding"]) == verified(
        capsys, "a.jsonl", "--import", "its_gateway", "--import", "json"
    )


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("its_absent_module", "ModuleNotFoundError: No module named 'its_absent_module'"),
        ("its_fault", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_module_that_cannot_be_imported_is_one_sentence(
    module: str, why: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file is looked at, and the status is 1."""
    monkeypatch.syspath_prepend(folder)
    (folder / "its_fault.py").write_text("1 / 0")

    assert 1 == main(["verify", "a.jsonl", "--import", module])
    assert (
        "",
        f"Error: {module} cannot be imported: {why}; give --import the name of a module that can be imported "
        "from this folder, such as tests.conftest\n",
    ) == capsys.readouterr()
