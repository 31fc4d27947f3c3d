"""Every command that reads a cassette, on every kind of damage: it says what it can, and never breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from httpx_cassette._line import seal
from httpx_cassette.cli import main

from .example_cassette import chat, example_lines, write_example
from .test_cli_verify import DAMAGE

COMMANDS = {
    "ls": "ls FILE",
    "show": "show FILE :1",
    "explain": "explain r.json --cassette FILE",
    "diff-left": "diff FILE chat.jsonl",
    "diff-right": "diff chat.jsonl FILE",
    "diff-recordings": "diff chat.jsonl :1 FILE :1",
    "compare": "compare FILE --by model",
    "compare-html": "compare FILE --by model --by url --html",
    "stats": "stats FILE",
}

#: Members of a sealed line that are not what they should be.
ODD = {
    "response": [b"7", b"null", b"[]", b'{"status":"x","json":{}}', b'{"status":200,"script":7}'],
    "request": [
        b"7",
        b"null",
        b'{"method":7,"url":7,"json":7}',
        b'{"url":"https://[a","json":{"model":[1]}}',
    ],
    "at": [b"7", b'"never"', b'"9999-99-99T00:00:00Z"'],
    "finish": [b"{}", b'[null,7,"\\u001b"]'],
    "ms": [b'"x"', b"-1", b"1e300"],
    "policy": [b"7", b'{"ignore":7}', b'{"nonsense":1}'],
}


def odd_lines() -> list[bytes]:
    """Return sealed lines with one odd member each."""
    members = json.loads(example_lines()[1])
    members.pop("sum")
    found = []
    for name, values in ODD.items():
        for value in values:
            written = {each: json.dumps(member).encode() for each, member in members.items()} | {name: value}
            found.append(seal(b"{" + b",".join(b'"%b":%b' % (n.encode(), v) for n, v in written.items())))
    return found


FILES = {
    **{name: data for name, (data, _) in DAMAGE.items()},
    **{f"odd-{number}": line + b"\n" for number, line in enumerate(odd_lines())},
    "odd-all": b"".join(line + b"\n" for line in odd_lines()),
    "empty": b"",
    "torn": example_lines()[0][:-7],
}


@pytest.mark.parametrize("name", FILES)
def test_damage_is_told_and_breaks_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each command ends with a status of its own; where it could not, with one sentence."""
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "chat.jsonl")
    (tmp_path / "a.jsonl").write_bytes(FILES[name])
    request = {"url": "https://api.openai.com/v1/chat/completions", "body": chat("gpt-5", "a")}
    (tmp_path / "r.json").write_text(json.dumps(request))

    for words in COMMANDS.values():
        status = main(words.replace("FILE", "a.jsonl").split())
        out, err = capsys.readouterr()
        errors = [line for line in err.splitlines() if line.startswith("Error: ")]
        assert (status in (0, 1, 2), len(errors)) == (True, int(status == 1)), words
        assert (out + err).replace("\n", "").replace("\t", "").isprintable(), words
