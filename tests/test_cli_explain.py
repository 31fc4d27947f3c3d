"""``httpx-cassette explain``: the key of a request, given in three ways, and whether it is answered."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from httpx_cassette import CassetteTransport
from httpx_cassette._call import Json
from httpx_cassette.cli import main

from .example_cassette import chat, exchange_line, write_example

URL = "https://api.openai.com/v1/chat/completions"
INVOICE = "I was charged twice for order 1042, see the invoice."
BODY = {**chat("gpt-5-mini", INVOICE), "temperature": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with the example cassette."""
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "chat.jsonl")
    return tmp_path


def explained(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """Return what ``explain`` prints, and nothing else."""
    assert status == main(["explain", *words])
    out, err = capsys.readouterr()
    assert "" == err
    return out


def piped(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    """Have something come from a pipe."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def har(*requests: Any) -> str:
    """Return a HAR file."""
    return json.dumps({"log": {"version": "1.2", "entries": [{"request": each} for each in requests]}})


def failed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the sentence of a run that could not."""
    assert 1 == main(["explain", *words])
    out, err = capsys.readouterr()
    assert "" == out
    return err


RULES = """\
  url        nothing changed
  headers    nothing changed
  redact     nothing changed
  media      nothing changed
  ignore     nothing changed
  strip      nothing changed
  mask       nothing changed
  fold       temperature left out: 1
  rename     nothing changed
  names      nothing changed
  digest     nothing changed
key document
{
  "body": {
    "json": {
      "messages": [
        {
          "content": "You sort messages to a shop. Answer with one word.",
          "role": "system"
        },
        {
          "content": "I was charged twice for order 1042, see the invoice.",
          "role": "user"
        }
      ],
      "model": "gpt-5-mini"
    }
  },
  "method": "POST",
  "url": "https://api.openai.com/v1/chat/completions"
}
"""


def test_the_derivation_is_shown_and_where_the_answer_is(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The key, each rule, what is hashed; with a cassette, the line that answers."""
    (folder / "r.json").write_text(json.dumps({"method": "POST", "url": URL, "body": BODY}))
    request = httpx.Request("POST", URL, json=BODY)
    key = CassetteTransport("chat.jsonl").fingerprint(request)
    text = f"fingerprint  {key} (key version 1, dialect openai-chat)\n{RULES}"

    assert text == explained(capsys, "r.json")
    hit = "hit          chat.jsonl:2, recorded 2026-11-29T12:00:00Z\n"
    assert text + hit == explained(capsys, "r.json", "--cassette", "chat.jsonl")


NEAREST = """\
miss         no recording in chat.jsonl
nearest      chat.jsonl:2, recorded 2026-11-29T12:00:00Z: 1 of 7 fields differs
    messages[1].content
      - "I was charged twice for order 1042, see the invoice."
      + "I was charged twice for order 1043, see the invoice. Please help."
nearest      chat.jsonl:8, recorded 2026-11-30T09:00:02Z: 2 of 7 fields differ
    model   "gpt-5" -> "gpt-5-mini"
    messages[1].content
      - "I was charged twice for order 1042, see the invoice."
      + "I was charged twice for order 1043, see the invoice. Please help."
nearest      chat.jsonl:3, recorded 2026-11-29T12:00:00Z: 3 of 10 fields differ
    model   "gpt-5" -> "gpt-5-mini"
    messages[1].content
      - "What became of order 1042?"
      + "I was charged twice for order 1043, see the invoice. Please help."
    tools   [{"type": "function", "function": {"name": "find_order", "parameters": {... \
(1 items) -> (absent)
"""


def test_a_miss_shows_the_nearest_recordings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each request once, the nearest first, and the status is 2."""
    body = chat("gpt-5-mini", "I was charged twice for order 1043, see the invoice. Please help.")
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": body}))

    text = explained(capsys, "r.json", "--cassette", "chat.jsonl", status=2)
    assert NEAREST == text[text.index("miss ") :]


def test_many_differences_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twenty are shown."""
    old: Json = {**chat("gpt-5", "a"), "metadata": {f"n{number:02}": "1" for number in range(25)}}
    new = {**chat("gpt-5", "a"), "metadata": {f"n{number:02}": "2" for number in range(25)}}
    (folder / "a.jsonl").write_bytes(exchange_line(URL, old, {"json": {}}) + b"\n")
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": new}))

    lines = explained(capsys, "r.json", "--cassette", "a.jsonl", status=2).splitlines()
    assert ['    metadata.n19   "1" -> "2"', "    ... and 5 more"] == lines[-2:]


def test_several_cassettes_are_looked_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In an empty one there is nothing to compare with."""
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": BODY}))
    (folder / "empty.jsonl").touch()
    (folder / "other.jsonl").touch()
    two = ("--cassette", "chat.jsonl", "--cassette", "empty.jsonl")
    empty = ("--cassette", "other.jsonl", "--cassette", "empty.jsonl")

    assert (
        "hit          chat.jsonl:2, recorded 2026-11-29T12:00:00Z"
        == (explained(capsys, "r.json", *two).splitlines()[-1])
    )
    assert [
        "miss         no recording in other.jsonl and empty.jsonl",
        "nearest      none: there is no recording to compare with",
    ] == explained(capsys, "r.json", *empty, status=2).splitlines()[-2:]


def test_the_facts_are_one_object(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The derivation; with a cassette, what answers, or what comes near and how it differs."""
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": BODY}))
    (folder / "m.json").write_text(json.dumps({"url": URL, "body": {**BODY, "n": 2, "model": None}}))
    alone = json.loads(explained(capsys, "r.json", "--json"))
    hit = json.loads(explained(capsys, "r.json", "--json", "--cassette", "chat.jsonl"))
    miss = json.loads(explained(capsys, "m.json", "--json", "--cassette", "chat.jsonl", status=2))

    assert {"fingerprint", "key_version", "dialect", "key_document", "rules"} == alone.keys()
    assert {"rule": "fold", "changes": ["temperature left out: 1"]} == alone["rules"][7]
    assert {"file": "chat.jsonl", "line": 2, "at": "2026-11-29T12:00:00Z"} == hit["hit"]
    assert (None, []) == (miss["hit"], hit["nearest"])
    assert {
        "file": "chat.jsonl",
        "line": 8,
        "at": "2026-11-30T09:00:02Z",
        "changes": [{"path": "model", "old": "gpt-5", "new": None}, {"path": "n", "new": 2}],
    } == miss["nearest"][0]


# -- in which ways a request is given ------------------------------------------------------------------

KEPT = {"method": "POST", "url": URL, "json": chat("gpt-5-mini", INVOICE)}
CURL = f"curl {URL} \\\n  -H 'Authorization: Bearer sk-secret' \\\n  --json '{json.dumps(BODY)}'"
HEADERS = [{"name": ":method", "value": "POST"}, {"name": "Content-Encoding", "value": "gzip"}]
POSTED = {"mimeType": "application/json", "text": json.dumps(BODY)}

#: Name -> what is given, and with which options: all are one request.
WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "stored": (json.dumps(KEPT), ()),
    "body": (json.dumps({"method": "post", "url": URL, "headers": {"X-A": "b"}, "body": BODY}), ()),
    "text": (json.dumps({"url": URL, "body": json.dumps(BODY)}), ()),
    "typed": (
        json.dumps({"url": URL, "headers": [["Content-Type", "application/json"]], "body": BODY}),
        (),
    ),
    "curl": (CURL, ()),
    "har": (har({"method": "POST", "url": URL, "headers": HEADERS, "postData": POSTED}), ()),
    "har-second": (har({"url": "https://a"}, {"url": URL, "postData": POSTED}), ("--entry", "2")),
    "har-base64": (
        har(
            {
                "url": URL,
                "postData": {
                    **POSTED,
                    "encoding": "base64",
                    "text": base64.b64encode(json.dumps(BODY).encode()).decode(),
                },
            }
        ),
        (),
    ),
    "mark": ("\ufeff" + json.dumps({"url": URL, "body": BODY}), ()),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_request_is_given_in_several_ways(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """JSON as stored or as sent, curl, HAR: from a pipe, one key."""
    text, words = WAYS[name]
    piped(monkeypatch, text.encode())

    facts = json.loads(explained(capsys, "-", *words, "--json", "--cassette", "chat.jsonl"))
    assert {"file": "chat.jsonl", "line": 2, "at": "2026-11-29T12:00:00Z"} == facts["hit"]


def test_what_show_prints_has_its_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every recording of the example, through ``show --request``."""
    for number in range(1, 9):
        assert 0 == main(["show", "chat.jsonl", f":{number}", "--request"])
        piped(monkeypatch, capsys.readouterr().out.encode())
        assert 0 == main(["explain", "-", "--json", "--cassette", "chat.jsonl"])
        capsys.readouterr()


def test_media_that_are_digests_stay_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stored image is a digest already, which is no member that somebody sent."""
    image = {"url": f"data:image/png;base64,{'A' * 1100}"}
    content = [{"type": "image_url", "image_url": image}]
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": content}]}
    (folder / "sent.json").write_text(json.dumps({"url": URL, "body": body}))
    sent = json.loads(explained(capsys, "sent.json", "--json"))
    digest = sent["key_document"]["body"]["json"]["messages"][0]["content"][0]["image_url"]["url"]
    image["url"] = digest
    (folder / "kept.json").write_text(json.dumps({"method": "POST", "url": URL, "json": body}))

    assert {"$sha256", "$bytes"} == digest.keys()
    assert sent["fingerprint"] == json.loads(explained(capsys, "kept.json", "--json"))["fingerprint"]


def test_a_form_of_a_har_is_encoded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Browsers write its fields instead of its text."""
    posted = {
        "mimeType": "application/x-www-form-urlencoded",
        "params": [{"name": "a b", "value": "1&2"}, {"name": "\ud800"}],
    }
    (folder / "a.har").write_text(har({"method": "POST", "url": "https://a.b/c", "postData": posted}))

    facts = json.loads(explained(capsys, "a.har", "--json"))
    assert {
        "body": {"form": [["a b", "1&2"], ["\udced\udca0\udc80", ""]]},
        "method": "POST",
        "url": "https://a.b/c",
    } == facts["key_document"]


def test_files_that_curl_names_are_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As curl reads them, from where the command runs."""
    (folder / "b.json").write_text(json.dumps(BODY))
    (folder / "c.sh").write_text(f"curl {URL} --json @b.json")
    (folder / "d.sh").write_text(f"curl {URL} --json @absent.json")

    assert "hit " == explained(capsys, "c.sh", "--cassette", "chat.jsonl").splitlines()[-1][:4]
    assert "Error: absent.json: it cannot be read: No such file or directory\n" == failed(capsys, "d.sh")
    (folder / "e.sh").write_text(f"curl {URL} --json '@a\0b'")
    assert "Error: a\\u0000b: it cannot be read: it is no name of a file\n" == failed(capsys, "e.sh")


def test_no_secret_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither credentials of the request, nor those in its texts and its address."""
    key = "sk-proj-" + "a1B2" * 12
    body = chat("gpt-5", f"My key is {key}.")
    line = f"curl 'https://ann:{key}@api.openai.com/v1/chat/completions?key={key}' -H 'X: {key}' -u ann:{key}"
    (folder / "c.sh").write_text(f"{line} --json '{json.dumps(body)}'")

    for words in ((), ("--json",)):
        text = explained(capsys, "c.sh", *words)
        assert 0 == text.count(key)
        assert 0 < text.count("<redacted:openai-key:")


def test_the_options_of_the_project_are_in_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What pyproject.toml ignores is not in the key."""
    (folder / "pyproject.toml").write_text('[tool.httpx_cassette.key_policy]\nignore = ["user"]\n')
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": {**BODY, "user": "ann"}}))

    lines = explained(capsys, "r.json", "--cassette", "chat.jsonl").splitlines()
    assert '  ignore     user left out: "ann"' == lines[5]
    assert "hit          chat.jsonl:2, recorded 2026-11-29T12:00:00Z" == lines[-1]


def test_a_prompt_file_that_is_absent_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It would be in the key."""
    (folder / "pyproject.toml").write_text('[tool.httpx_cassette]\nprompt_files = ["absent.md"]\n')
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": BODY}))

    assert (
        f"Error: {folder / 'absent.md'}: the prompt file 'absent.md' cannot be read: "
        "No such file or directory\n" == failed(capsys, "r.json")
    )


# -- what cannot be explained --------------------------------------------------------------------------

NO_KEY = "it holds no request that a key can be computed of"
NO_URL = 'it has no "url"; a request is {"method": …, "url": …, "headers": …, "body": …}'
NOTHING = "it holds no request: neither JSON nor HAR, which begin with {, nor a curl command"

#: What is in the file -> what is wrong.
BAD = {
    "empty": (b"", NOTHING),
    "list": (b"[]", NOTHING),
    "binary": (b"\xff\xfe{", "it is not UTF-8; save it as UTF-8"),
    "cut": (b'{"url":\n "sk-secret', "it is no JSON that can be read at line 2"),
    "deep": (b'{"a":' + b"[" * 100_000, "it is no JSON that can be read"),
    "digits": (b'{"a":' + b"9" * 5000 + b"}", "it is no JSON that can be read"),
    "no-url": (b'{"model": "gpt-5"}', NO_URL),
    "url": (b'{"url": 7}', NO_URL),
    "method": (b'{"url": "https://a", "method": 7}', 'its "method" is no text'),
    "headers": (b'{"url": "https://a", "headers": {"a": 7}}', 'its "headers" are no names with values'),
    "pairs": (b'{"url": "https://a", "headers": 7}', 'its "headers" are no names with values'),
    "stored": (b'{"url": "https://a", "form": 7}', NO_KEY),
    "address": (b'{"url": "https://[a", "json": 7}', NO_KEY),
    "no-entries": (b'{"log": {}}', "the HAR file has 0 entries, and no entry 1"),
    "entries": (b'{"log": {"entries": 7}}', "the HAR file has 0 entries, and no entry 1"),
    "entry": (b'{"log": {"entries": [7]}}', "entry 1 of the HAR file has no request"),
    "base64": (
        har({"url": "https://a", "postData": {"text": "sk-secret", "encoding": "base64"}}).encode(),
        "the body of entry 1 is said to be base64 and is not",
    ),
    "curl": (b"curl --sk-secret", "the curl option --sk-secret is not known here; leave it out"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_request_is_one_sentence(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file, and shows nothing of what is in it."""
    data, sentence = BAD[name]
    (folder / "r").write_bytes(data)

    assert f"Error: r: {sentence}\n" == failed(capsys, "r")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("absent",), "absent: it cannot be read: No such file or directory"),
        ((".",), ".: it cannot be read: Is a directory"),
        (
            ("r.json", "--cassette", "absent.jsonl"),
            "absent.jsonl: there is no such file; "
            "name one that is there, or record it first",
        ),
        (("r.json", "--cassette", "-"), "a cassette cannot be read from a pipe; name its file"),
        (("r.json", "--entry", "1"), "r.json: --entry chooses from a HAR file, and this is none"),
        (("a.har", "--entry", "3"), "a.har: the HAR file has 1 entry, and no entry 3"),
        ((), "the following arguments are required: FILE; see httpx-cassette explain --help"),
    ],
    ids=["absent", "folder", "cassette", "pipe", "entry", "entries", "nothing"],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(
    words: tuple[str, ...], sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with the status 1."""
    (folder / "r.json").write_text(json.dumps({"url": URL}))
    (folder / "a.har").write_text(har({"url": URL}))

    assert f"Error: {sentence}\n" == failed(capsys, *words)


def test_a_pipe_without_a_request_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As what was piped in."""
    piped(monkeypatch, b"nonsense")

    assert f"Error: what is piped in: {NOTHING}\n" == failed(capsys, "-")


def test_a_damaged_cassette_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the newest answer is damaged, there is neither a hit nor a miss."""
    data = (folder / "chat.jsonl").read_bytes()
    (folder / "chat.jsonl").write_bytes(data.replace(b"Complaint", b"Compliment"))
    (folder / "r.json").write_text(json.dumps({"url": URL, "body": BODY}))

    assert (
        "Error: chat.jsonl:2: the recording is edited by hand, or damaged; "
        "accept an edit with httpx-cassette reseal chat.jsonl:2, restore the file, or record the "
        "call again with HTTPX_CASSETTE_MODE=rerecord\n"
    ) == failed(capsys, "r.json", "--cassette", "chat.jsonl")
