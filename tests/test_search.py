"""What a miss is told about: the cassettes as they are, the nearest recording, and never a crash instead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import CassetteMiss, Redaction, _search
from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteChanged
from httpx_cassette._flow import exchange
from httpx_cassette._line import seal
from httpx_cassette._shelf import Shelf

from .colours import CHAT, URL, chat
from .test_flow import ME, asked, record, session, tell

OPENAI = {"dialect": "openai-chat"}


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every program with the same words."""
    monkeypatch.setattr("sys.orig_argv", ["python", "triage.py", "--key", "sk-proj-" + "a1B2" * 10])


def missed(path: Any, body: dict[str, Any] = CHAT, **options: Any) -> CassetteMiss:
    """Return the miss of a call."""
    with pytest.raises(CassetteMiss) as caught:
        tell(exchange(asked(body), session(path, **options), ME))
    return caught.value


def report(miss: CassetteMiss, path: Path) -> str:
    """Return the report with what differs from run to run replaced."""
    text = str(miss).replace(str(path), "TMP").replace(miss.fingerprint, "KEY")
    for line in text.splitlines():
        if ", recorded " in line:
            at = line.split(", recorded ")[1].partition(": ")[0]
            text = text.replace(at, "AT")
    return text


def test_a_cassette_that_does_not_exist_says_so(tmp_path: Path) -> None:
    """Every call misses, the file is not made, and the command to record stands there without its secret."""
    miss = missed(tmp_path / "chat.jsonl")

    assert (
        f"no recording for POST {URL} in TMP/chat.jsonl\n"
        "  model        gpt-5\n"
        "  fingerprint  KEY (key version 1, dialect openai-chat)\n"
        "  cassette     TMP/chat.jsonl: does not exist\n"
        "  nearest      none: there is no recording to compare with\n"
        "  to record it: HTTPX_CASSETTE_MODE=record python triage.py --key '<redacted:openai-key:DIGEST>'"
    ) == _without_digest(report(miss, tmp_path))
    assert ((str(tmp_path / "chat.jsonl"),), None, ()) == (miss.cassettes, miss.nearest, miss.changed)
    assert not (tmp_path / "chat.jsonl").exists()


def test_a_relative_path_says_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder that was the working one when the transport was made; an absolute path says it itself."""
    monkeypatch.chdir(tmp_path)

    line = (
        f"  cassette     cassettes/a.jsonl: does not exist (looked in {tmp_path.resolve() / 'cassettes'})\n"
    )
    assert line in str(missed("cassettes/a.jsonl"))
    assert f"  cassette     {tmp_path / 'a.jsonl'}: does not exist\n" in str(missed(tmp_path / "a.jsonl"))
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_cassette_that_cannot_be_written_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    """The file is asked, or the folder that it would be made in."""
    path = tmp_path / "chat.jsonl"
    if locked == "file":
        record(session(path, mode="record"))
    else:
        path = tmp_path / "none" / "none" / "chat.jsonl"
    closed = str(path if locked == "file" else tmp_path)
    monkeypatch.setattr(os, "access", lambda where, mode: os.fspath(where) != closed)

    assert f"to record it: {path} cannot be written: " in str(missed(path, chat("More")))


def _without_digest(text: str) -> str:
    head, _, rest = text.partition("openai-key:")
    return f"{head}openai-key:DIGEST{rest[16:]}"


def test_the_nearest_recording_is_shown_with_every_difference(tmp_path: Path) -> None:
    """Of all cassettes, with what exists in each: recordings, damage, other key versions, other policies."""
    seed, full = tmp_path / "seed.jsonl", tmp_path / "full.jsonl"
    record(session(seed, mode="record"), asked(chat("Hello there", model="gpt-4")))
    record(session(seed, mode="record", key_policy={"host": False}), asked(chat("Hello")))
    record(session(seed, mode="record", redact=Redaction(strong=False)), asked(chat("Hi")))
    first, *rest = seed.read_bytes().splitlines(keepends=True)
    old = seal(first.rpartition(b',"sum"')[0].replace(b'"kv":1', b'"kv":9', 1)) + b"\n"
    torn = b"broken\n"
    seed.write_bytes(b"".join([first, *rest, old, torn]))
    record(session(full, mode="record"), asked(chat("Good-bye", temperature=0.5, seed=1)))
    miss = missed([seed, full])

    assert (
        f"no recording for POST {URL} in TMP/seed.jsonl and TMP/full.jsonl\n"
        "  model        gpt-5\n"
        "  fingerprint  KEY (key version 1, dialect openai-chat)\n"
        "  cassette     TMP/seed.jsonl: 3 recordings; damaged line 5; 1 line of key version 9; "
        "2 recordings under another key policy\n"
        "  cassette     TMP/full.jsonl: 1 recording\n"
        "  nearest      TMP/seed.jsonl:2, recorded AT: "
        "the same request, keyed under another policy or key version; record once more under this one\n"
        "  to record it: HTTPX_CASSETTE_MODE=record python triage.py --key '<redacted:openai-key:DIGEST>'"
    ) == _without_digest(report(miss, tmp_path))


def test_what_changed_is_named(tmp_path: Path) -> None:
    """Prompt files and ``extra`` are compared by their content, not as another policy."""
    path, prompt = tmp_path / "chat.jsonl", tmp_path / "prompt.txt"
    prompt.write_text("one")
    files = {"main": prompt}
    record(session(path, mode="record", prompt_files=files, key_policy={"extra": {"prompt": "7"}}), asked())
    prompt.write_text("two")
    miss = missed(path, chat("Hello", seed=7), prompt_files=files, key_policy={"extra": {"prompt": "8"}})

    assert {"extra.prompt", "prompt_files.main", "seed"} == set(miss.changed)
    assert f"{path}:1" == miss.nearest
    assert "another key policy" not in str(miss)
    plain = missed(path)
    assert {"extra", "prompt_files"} == {change.partition(".")[0] for change in plain.changed}


def test_a_call_without_a_model_has_none(tmp_path: Path) -> None:
    """A body of another kind, or none at all, is no reason to stumble."""
    for body in (b"", b"text", b"[1]", b'{"model": 7}'):
        with pytest.raises(CassetteMiss) as caught:
            tell(
                exchange(
                    asked()._replace(body=body, url="https://api.test/x"), session(tmp_path / "a.jsonl"), ME
                )
            )
        assert caught.value.model is None


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": " a\n b "}]}, "a b"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}, {"text": "c"}, {"text": "d"}]}]}, "c"),
        ({"contents": [{"parts": [{"text": "e"}]}, {"parts": [{"inlineData": {}}]}]}, "e"),
        ({"messages": [], "input": "f" * 100}, "f" * 80),
        ({"prompt": " "}, ""),
        ([], ""),
    ],
    ids=["chat", "parts", "gemini", "input", "blank", "no-object"],
)
def test_the_first_words_of_a_call_tell_it_apart(members: Any, words: str, tmp_path: Path) -> None:
    """Those of its last text, in one line, whatever its format."""
    miss = missed(tmp_path / "chat.jsonl", members, require_system=False)

    assert words == miss.words


def test_words_with_a_credential_are_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of no known shape that stands anywhere in the text, cut or not."""
    monkeypatch.setenv("MY_SECRET", "correct horse battery staple")
    miss = missed(
        tmp_path / "chat.jsonl", {"model": "m", "input": f"{'w' * 70} correct horse battery staple"}
    )

    assert "" == miss.words


def test_a_recording_that_cannot_be_compared_is_passed_over(tmp_path: Path) -> None:
    """It was edited by hand and sealed again, or imported; the others still count."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"), asked(chat("First")))
    record(session(path, mode="record"), asked(chat("Second")))
    good, odd = path.read_bytes().splitlines()
    sealed = seal(odd.rpartition(b',"sum"')[0].replace(b'"url":', b'"uri":', 1))
    path.write_bytes(good + b"\n" + sealed + b"\n")
    miss = missed(path, chat("Third"))

    assert f"{path}:1" == miss.nearest


def test_a_search_that_fails_is_a_miss_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary exception would be retried, wrapped or swallowed; the report says what happened."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))

    def fail(*arguments: object) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr(_search, "nearest", fail)

    assert "\n  the nearest recording was not found: RecursionError" in str(missed(path, chat("More")))


def test_a_file_that_is_cut_during_the_search_is_a_miss_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen until then has to do."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))
    real = Shelf.newest_first

    def newest_first(shelf: Shelf) -> Any:
        yield from real(shelf)
        raise CassetteChanged("the file was cut", str(path))

    def gone(cassette: Cassette) -> int:
        raise CassetteChanged("the file was cut", str(path))

    monkeypatch.setattr(Shelf, "newest_first", newest_first)
    monkeypatch.setattr(Cassette, "__len__", gone)
    miss = missed(path, chat("More"))

    assert f"{path}:1" == miss.nearest
    assert f"  cassette     {path}: 0 recordings\n" in str(miss)
