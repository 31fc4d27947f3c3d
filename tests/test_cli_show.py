"""``httpx-cassette show``: one recording, by the beginning of its fingerprint or by its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import click
import pytest

import httpx_cassette
from httpx_cassette.cli import main
from httpx_cassette.cli._parameters import _complete_key, find_exchange

from ._recordings import exchange, key_of, line, make_file
from .example_cassette import chat, chat_answer, example_lines, exchange_line, said, write_example

URL = "https://api.openai.com/v1/chat/completions"
KEY = "b8697e75a59f5ee1368959f3380d54ea3ed35697675ae0d4c9498ecc536099c4"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder with the example cassette."""
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path / "chat.jsonl")
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return what ``show`` prints, and nothing else."""
    assert 0 == main(["show", *words])
    out, err = capsys.readouterr()
    assert "" == err
    return out


def test_the_answer_that_is_replayed_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The newest generation, and of its samples the first; the whole fingerprint names it as well."""
    text = (
        "b8697e75a59f  chat.jsonl:7  2026-11-30T09:00:00Z\n"
        "POST https://api.openai.com/v1/chat/completions\n"
        "openai-chat  gpt-5  finish stop, 31 tokens in, 2 out, 790 ms\n"
        "recorded anew 1 time\n"
        "\n"
        "system\n"
        "  You sort messages to a shop. Answer with one word.\n"
        "\n"
        "user\n"
        "  I was charged twice for order 1042, see the invoice.\n"
        "\n"
        "answer\n"
        "  Invoice\n"
    )

    assert [text] * 3 == [shown(capsys, "chat.jsonl", key) for key in ("b8", "B869", KEY)]


def test_what_is_superseded_is_shown_by_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    """And says that it is."""
    assert [
        "b8697e75a59f  chat.jsonl:1  2026-11-29T12:00:00Z",
        "POST https://api.openai.com/v1/chat/completions",
        "openai-chat  gpt-5  finish stop, 31 tokens in, 2 out, 812 ms",
        "superseded: another recording is replayed",
    ] == shown(capsys, "chat.jsonl", ":1").splitlines()[:4]


def test_calls_results_thoughts_and_choices_have_titles(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that was said is there, and whose it is; text of several lines is indented."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    body = chat("gpt-5", "One\ntwo")
    body["messages"] = [
        {"role": "user", "content": "One\n\ntwo"},
        {"role": "assistant", "content": None, "reasoning": "Hm.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"},
    ]
    answer: dict[str, Any] = chat_answer("gpt-5", said("Yes"), "stop", (1, 2))
    answer["json"]["choices"].append({"index": 1, "message": said(""), "finish_reason": "length"})
    answer["json"]["usage"]["prompt_tokens_details"] = {"cached_tokens": 1}
    (folder / "a.jsonl").write_bytes(exchange_line(URL, body, answer, finish=["stop", "length"]) + b"\n")

    text = shown(capsys, "a.jsonl", ":1")
    assert (
        "openai-chat  gpt-5  finish stop, length, 1 token in, 1 of them cached, 2 out, 812 ms\n"
        "\n"
        "user\n"
        "  One\n"
        "\n"
        "  two\n"
        "\n"
        "assistant, thinking\n"
        "  Hm.\n"
        "\n"
        "assistant, call of look (call_1)\n"
        "  {}\n"
        "\n"
        "tool (of call_1)\n"
        "  Sunny\n"
        "\n"
        "answer 1\n"
        "  Yes\n"
        "\n"
        "answer 2\n"
        "\n"
    ) == text[text.index("openai-chat") :]


def test_what_is_stored_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """The line to the byte; request and response as indented JSON."""
    members = json.loads(example_lines()[2])

    assert example_lines()[2].decode() + "\n" == shown(capsys, "chat.jsonl", ":3", "--raw")
    assert members["request"] == json.loads(shown(capsys, "chat.jsonl", ":3", "--request"))
    assert members["response"] == json.loads(shown(capsys, "chat.jsonl", ":3", "--response"))


def test_a_stream_is_shown_as_it_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    """Cut into pieces of so many characters."""
    events = shown(capsys, "chat.jsonl", "cfc4", "--stream", "--chunk-size", "10")
    texts = [
        json.loads(each.removeprefix("data: "))["delta"]["text"]
        for each in events.splitlines()
        if '"text_delta"' in each
    ]

    assert ["Billing: t", "he custome", "r was char", "ged twice."] == texts


def test_the_facts_are_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """Messages and answers as they are in Python."""
    assert {
        "fingerprint": "86d3d3c14b0f" + json.loads(example_lines()[2])["key"][12:],
        "file": "chat.jsonl",
        "line": 3,
        "sample": 0,
        "gen": 0,
        "superseded": False,
        "at": "2026-11-29T12:00:00Z",
        "dialect": "openai-chat",
        "model": "gpt-5",
        "method": "POST",
        "url": URL,
        "status": 200,
        "finish": "tool_calls",
        "ms": 1210,
        "input_tokens": 57,
        "output_tokens": 17,
        "cached_tokens": 0,
        "messages": [
            {
                "role": "system",
                "text": "You sort messages to a shop. Answer with one word.",
                "thinking": "",
                "tool_calls": [],
                "answers": "",
            },
            {
                "role": "user",
                "text": "What became of order 1042?",
                "thinking": "",
                "tool_calls": [],
                "answers": "",
            },
        ],
        "answers": [
            {
                "role": "assistant",
                "text": "",
                "thinking": "",
                "tool_calls": [{"name": "find_order", "arguments": '{"id": 1042}', "id": "call_1"}],
                "answers": "",
            }
        ],
    } == json.loads(shown(capsys, "chat.jsonl", "86d3", "--json"))


# --- keys ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("b00",),
            "no recording of chat.jsonl begins with 'b00'; "
            "the nearest: b8697e75a59f, 40f1eb55565b, 61a82813d25e",
        ),
        (("nonsense",), "no recording of chat.jsonl begins with 'nonsense'; the nearest: {first}"),
        (("",), "no recording of chat.jsonl begins with ''; the nearest: {first}"),
        ((":9",), "line 9 of chat.jsonl is no recording"),
        (("b8", "--sample", "2"), "b8697e75a59f has no sample 2; there are 0, 1"),
        (("86", "--stream"), "86d3d3c14b0f is no stream; --response shows its answer"),
        ((), "the following arguments are required: KEY; see httpx-cassette show --help"),
        (
            ("b8", "--chunk-size", "0"),
            "argument --chunk-size: 0 is not in the range x>=1; see httpx-cassette show --help",
        ),
        (
            (":1", "--sample", "7"),
            "argument --sample: not allowed with :1, which is the line of one answer; "
            "see httpx-cassette show --help",
        ),
        (
            (":1", "--raw", "--json"),
            "argument --json: not allowed with argument --raw; see httpx-cassette show --help",
        ),
        (
            ("cfc4", "--json", "--stream"),
            "argument --json: not allowed with argument --stream; see httpx-cassette show --help",
        ),
    ],
    ids=[
        *("near", "not-near", "empty", "line", "sample", "no-stream", "no-key", "chunk-size"),
        *("sample-of-a-line", "json-of-a-line", "json-of-a-stream"),
    ],
)  # fmt: skip
def test_a_key_of_nothing_is_one_sentence(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names what comes near, and the status is 1."""
    first = "40f1eb55565b, 61a82813d25e, 86d3d3c14b0f"

    assert 1 == main(["show", "chat.jsonl", *words])
    assert ("", f"Error: {said.format(first=first)}\n") == capsys.readouterr()


@pytest.mark.parametrize("path", ["-", ".", "absent.jsonl"])
def test_a_file_that_is_none_is_one_sentence(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe, a folder, nothing."""
    reasons = {
        "-": "a cassette cannot be read from a pipe; name its file",
        ".": ".: the path is a folder; name a file in it, such as chat.jsonl",
        "absent.jsonl": "absent.jsonl: there is no such file; name one that is there, or record it first",
    }

    assert 1 == main(["show", path, "b8"])
    assert ("", f"Error: {reasons[path]}\n") == capsys.readouterr()


def test_a_beginning_of_several_lists_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As short as they can be told apart; of many the first ten."""
    names = [name for name in range(4000) if key_of(name)[0] == 0][:12]
    make_file(folder / "a.jsonl", *(line(name) for name in names))
    listed = ", ".join(key_of(name).hex()[:12] for name in names[:10])

    assert 1 == main(["show", "a.jsonl", "00"])
    assert f"Error: 12 calls of a.jsonl begin with '00': {listed} and 2 more\n" == capsys.readouterr().err


def test_fingerprints_that_begin_alike_are_listed_longer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two that share their first 12 digits are told apart."""
    one, two = "ab" * 8 + "0" * 48, "ab" * 7 + "ff" + "0" * 48
    recording = exchange("a")
    made = [type(recording)(**{**vars(recording), "key": bytes.fromhex(key)}) for key in (one, two)]
    make_file(folder / "a.jsonl", *(each.line(0, 1) for each in made))

    assert 1 == main(["show", "a.jsonl", "abab"])
    assert f"Error: 2 calls of a.jsonl begin with 'abab': {one[:16]}, {two[:16]}\n" == capsys.readouterr().err


def test_an_empty_cassette_has_no_recording(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is nothing near."""
    (folder / "a.jsonl").touch()

    assert 1 == main(["show", "a.jsonl", "b8"])
    assert "Error: no recording of a.jsonl begins with 'b8'; it has none\n" == capsys.readouterr().err


def test_a_damaged_line_says_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is not shown."""
    data = (folder / "chat.jsonl").read_bytes()
    (folder / "chat.jsonl").write_bytes(data.replace(b"Complaint", b"Compliment"))

    assert 1 == main(["show", "chat.jsonl", ":2"])
    assert "Error: line 2 of chat.jsonl is edited by hand, or damaged\n" == capsys.readouterr().err


def test_a_sample_alone_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the first answer was lost, the next one is shown unless the first is asked for."""
    make_file(folder / "a.jsonl", line("a", sample=3))

    assert (
        f"{key_of('a').hex()[:12]}  a.jsonl:1  2026-11-29T12:00:00Z"
        == (shown(capsys, "a.jsonl", ":1").splitlines()[0])
    )
    assert shown(capsys, "a.jsonl", ":1") == shown(capsys, "a.jsonl", key_of("a").hex()[:4])
    assert 1 == main(["show", "a.jsonl", key_of("a").hex(), "--sample", "0"])


def test_an_answer_that_is_damaged_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A replay would stop there; what was superseded by it is shown by its line."""
    new = line("a", "one", gen=1).replace(b"one", b"two")
    make_file(folder / "a.jsonl", line("a"), new)
    key = key_of("a").hex()

    assert 1 == main(["show", "a.jsonl", key])
    assert (
        f"Error: what {key[:12]} is answered with is damaged; "
        "an older answer is shown by its line, such as :1\n"
    ) == capsys.readouterr().err


def test_one_recording_is_in_memory_at_a_time(folder: Path) -> None:
    """Of those that a beginning fits one is kept, and a shell is offered keys without reading all lines."""
    large = "x" * 100_000
    make_file(folder / "a.jsonl", *(line("a", large, sample=number) for number in range(100)))
    make_file(folder / "b.jsonl", *(line(number, large) for number in range(100)))
    parameter = click.Argument(["key"])
    context = click.Context(click.Command("show"))
    context.params = {"file": "b.jsonl"}
    tracemalloc.start()
    found = find_exchange(httpx_cassette.open("a.jsonl"), key_of("a").hex()[:4], 50)
    offered = _complete_key(context, parameter, "")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert 51 == found.line
    assert [key_of(number).hex()[:12] for number in range(50)] == [each.value for each in offered]
    assert peak < 3_000_000


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("httpx-cassette show chat.jsonl b", ["b8697e75a59f"]),
        ("httpx-cassette show chat.jsonl 4", ["40f1eb55565b"]),
        ("httpx-cassette show absent.jsonl b", []),
        ("httpx-cassette show chat.jsonl cfc4 --st", ["--stream"]),
    ],
)
def test_a_shell_completes_fingerprints(words: str, completed: list[str], folder: Path) -> None:
    """Those of the file that was named, each once."""
    asked = {
        "_HTTPX_CASSETTE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "httpx_cassette"],
        cwd=folder, env={**os.environ, **asked}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert completed == [each.removeprefix("plain,") for each in done.stdout.split()]
