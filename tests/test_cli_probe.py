"""``httpx-cassette probe``: what it will spend, what it sends where, and what it says of the answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from httpx_cassette import _price
from httpx_cassette._call import Call, Json
from httpx_cassette._errors import OptionError
from httpx_cassette._usage import Usage
from httpx_cassette.cli import main
from httpx_cassette.cli._sending import sendable, sent_headers
from httpx_cassette.stand_in import Asked, Reply, StandInServer

from ._recordings import make_file
from .example_cassette import chat, chat_answer, exchange_line, said

CEILING = "Error: HTTPX_CASSETTE_MODE=replay is a ceiling, and a probe makes real calls; unset it first\n"
BOTH = "Error: either FILE and KEY are needed, or --request; see httpx-cassette probe --help\n"
GONE = (
    "the recording holds no longer all that was sent: credentials are redacted, and media kept as digests; "
    "give the request itself: --request"
)


class Prices:
    """A cent for each token of models that begin so."""

    known = "gpt"

    def cost(self, usage: Usage, at: str) -> Decimal | None:
        """Return what an answer cost."""
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        return Decimal(tokens) / 100 if usage.model.startswith(self.known) else None


def answer(asked: Asked, number: int) -> str | Reply:
    """Answer in turn, and to some with an error."""
    if b"fails" in asked.body:
        return Reply(429, b"{}")
    words = "Billing" if number % 3 else "Complaint"
    usage = {"prompt_tokens": 10, "completion_tokens": 10 * number}
    message = {"role": "assistant", "content": words}
    body = {"model": "gpt-5", "choices": [{"index": 0, "message": message}], "usage": usage}
    return Reply(200, json.dumps(body).encode())


@pytest.fixture
def server(loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInServer]:
    """Give a server, and a folder with a cassette of it; without prices."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_price, "price_table", lambda: None)
    with StandInServer(answer=answer) as made:
        body = chat("gpt-5", "Where is my parcel?")
        done = chat_answer("gpt-5", said("Shipping"), "stop", (18, 2))
        make_file(tmp_path / "a.jsonl", exchange_line(f"{made.url}/chat/completions", body, done))
        yield made


def port_of(server: StandInServer) -> str:
    """Return the server's address as it is told."""
    return f"POST {server.url}/chat/completions"


def test_the_request_of_a_recording_is_made_again(
    server: StandInServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live, with the headers that are given; what it will cost is said first, what came then."""
    monkeypatch.setenv("SECRET", "open-sesame")
    header = ("-H", "Authorization: Bearer $SECRET", "-H", "X: ${SECRET}")

    assert 0 == main(["probe", "a.jsonl", ":1", *header])
    out, err = capsys.readouterr()
    assert f"5 calls: {port_of(server)}; what they will cost is not known\n" == err
    assert (
        "5 calls, 2 different answers\n"
        "    4   80%  Billing\n"
        "    1   20%  Complaint\n"
        "              -Billing\n"
        "              +Complaint\n"
    ) == out
    assert [("Bearer open-sesame", "open-sesame")] * 5 == [
        (each.headers["authorization"], each.headers["x"]) for each in server.requests
    ]
    assert chat("gpt-5", "Where is my parcel?") == json.loads(server.requests[0].body)


def test_a_request_is_given(
    server: StandInServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As JSON, with its own headers, or as a curl command line."""
    url, body = f"{server.url}/chat/completions", chat("gpt-5", "a")
    asked = {"method": "POST", "url": url, "headers": {"Authorization": "Bearer t"}, "body": body}
    (tmp_path / "r.json").write_text(json.dumps(asked))
    (tmp_path / "c.sh").write_text(f"curl {url} -H 'Authorization: Bearer t' --json '{json.dumps(body)}'")

    for name in ("r.json", "c.sh"):
        assert 0 == main(["probe", "--request", name, "-n", "1"])
        assert "1 call, 1 different answer\n" == capsys.readouterr().out.split("    1")[0]
    assert ["Bearer t"] * 2 == [each.headers["authorization"] for each in server.requests]


def test_the_facts_are_one_object(server: StandInServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers with their counts and differences."""
    assert 0 == main(["probe", "a.jsonl", ":1", "-n", "3", "--json"])

    assert {
        "calls": 3,
        "failures": [],
        "share": 2 / 3,
        "cost": None,
        "answers": [
            {"answer": "Billing", "count": 2, "share": 2 / 3, "difference": []},
            {"answer": "Complaint", "count": 1, "share": 1 / 3, "difference": ["-Billing", "+Complaint"]},
        ],
    } == json.loads(capsys.readouterr().out)


def test_calls_that_fail_have_the_status_1(
    server: StandInServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """And are told by their status."""
    body = chat("gpt-5", "It fails.")
    line = exchange_line(f"{server.url}/chat/completions", body, chat_answer("m", said("a"), "stop", (1, 1)))
    make_file(tmp_path / "b.jsonl", line)

    assert 1 == main(["probe", "b.jsonl", ":1", "-n", "2"])
    assert "2 calls, 0 different answers\n  failed: status 429, 429\n" == capsys.readouterr().out


# -- what it costs -------------------------------------------------------------------------------------


@pytest.fixture
def prices(server: StandInServer, monkeypatch: pytest.MonkeyPatch) -> type[Prices]:
    """Have prices."""
    table = type("Table", (Prices,), {})
    monkeypatch.setattr(_price, "price_table", table)
    return table


def test_what_it_costs_is_said_before_and_after(
    server: StandInServer, prices: type[Prices], capsys: pytest.CaptureFixture[str]
) -> None:
    """Before by what the recorded answer cost, afterwards by what came."""
    assert 0 == main(["probe", "a.jsonl", ":1", "-n", "2", "--max-cost", "$0.5"])
    out, err = capsys.readouterr()
    assert f"2 calls: {port_of(server)}; about $0.200000 each, $0.400000 together\n" == err
    assert "spent $0.500000" == out.splitlines()[-1]


def test_no_more_is_spent_than_is_allowed(
    server: StandInServer, prices: type[Prices], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is sent that is expected to cost more; where answers are dearer than that, it stops."""
    assert 1 == main(["probe", "a.jsonl", ":1", "-n", "3", "--max-cost", "0.5"])
    assert [
        f"3 calls: {port_of(server)}; about $0.200000 each, $0.600000 together",
        "Error: that is more than --max-cost 0.5 allows; nothing was sent",
    ] == capsys.readouterr().err.splitlines()
    assert 0 == server.calls
    assert 0 == main(["probe", "a.jsonl", ":1", "-n", "3", "--max-cost", ".6"])
    out, err = capsys.readouterr()
    assert "stopped after 2 calls: another may cost more than --max-cost allows" == err.splitlines()[-1]
    assert (2, "2 calls, 1 different answer") == (server.calls, out.splitlines()[0])


def test_a_limit_needs_prices(
    server: StandInServer, prices: type[Prices], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Without one nothing is sent; where an answer turns out to have none, it is the last."""
    line = exchange_line(
        f"{server.url}/chat/completions", chat("o", "a"), chat_answer("other", said("a"), "stop", (1, 1))
    )
    make_file(tmp_path / "b.jsonl", line)
    sentence = (
        "Error: --max-cost cannot be held to, as the price is not known: it takes the extra cost, and a "
        "recording of a model that has a price"
    )

    assert 1 == main(["probe", "b.jsonl", ":1", "--max-cost", "1"])
    assert sentence == capsys.readouterr().err.splitlines()[-1]
    assert 0 == server.calls
    prices.known = "other"
    assert 0 == main(["probe", "b.jsonl", ":1", "--max-cost", "1"])
    assert 1 == server.calls


# -- what is sent --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("https://api.openai.com/v1/chat/completions", {"authorization": "Bearer one"}),
        ("https://api.anthropic.com/v1/messages", {"x-api-key": "two", "anthropic-version": "2023-06-01"}),
        ("https://api.mistral.ai/v1/chat/completions", {}),
        ("http://api.openai.com/v1/chat/completions", {}),
        ("https://api.openai.com.evil.example/v1", {}),
        ("https://evil.example/https://api.openai.com/", {}),
        ("https://api.openai.com@evil.example/v1", {}),
    ],
    ids=["openai", "anthropic", "not-set", "plain", "longer", "path", "user"],
)
def test_a_key_goes_to_its_own_host(url: str, names: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Over https, and to no host that a cassette makes look like it."""
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "two")
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)

    assert names == dict(sent_headers(Call("POST", url, (), b""), []))


def test_headers_that_are_given_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the key of the environment; what the connection has of its own is left out."""
    monkeypatch.setenv("OPENAI_API_KEY", "one")
    call = Call("POST", "https://api.openai.com/v1", ((b"Host", b"a"), (b"Content-Length", b"7")), b"")

    assert [("Authorization", "x")] == sent_headers(call, ["Authorization: x"])


@pytest.mark.parametrize(
    ("stored", "headers", "body"),
    [
        ({"json": {"a": "ü"}}, [("content-type", "application/json")], b'{"a": "\\u00fc"}'),
        ({"headers": {"openai-beta": "x"}, "text": "ü"}, [("openai-beta", "x")], "ü".encode()),
        ({"headers": 7}, [], b""),
        ({"form": [["a b", "1"]]}, [("content-type", "application/x-www-form-urlencoded")], b"a+b=1"),
    ],
    ids=["json", "text", "nothing", "form"],
)
def test_what_was_stored_is_sent(
    stored: dict[str, Json], headers: list[tuple[str, str]], body: bytes
) -> None:
    """In each form in which a request is stored."""
    expected = tuple((name.encode(), value.encode()) for name, value in headers)

    assert Call("PUT", "https://a.b", expected, body) == sendable(
        {"method": "PUT", "url": "https://a.b", **stored}
    )


@pytest.mark.parametrize(
    ("stored", "sentence"),
    [
        ({"json": {"a": "<redacted:openai-key:0123456789abcdef>"}}, GONE),
        ({"json": {"a": {"$sha256": "ab", "$bytes": 7}}}, GONE),
        ({"json": {"$$sha256": "ab"}}, GONE),
        ({"parts": []}, GONE),
        ({"bytes": {}}, GONE),
        ({"form": 7}, "the recording holds a form that is none"),
    ],
    ids=["redacted", "digest", "escaped", "parts", "bytes", "form"],
)
def test_what_is_not_stored_is_not_made_up(stored: dict[str, Json], sentence: str) -> None:
    """A request is sent whole or not at all."""
    with pytest.raises(OptionError) as caught:
        sendable({"method": "POST", "url": "https://a.b", **stored})

    assert sentence == str(caught.value)


# -- what cannot be done -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), BOTH),
        (("a.jsonl",), BOTH),
        (("a.jsonl", ":1", "--request", "r.json"), BOTH),
        (("a.jsonl", ":9"), "Error: line 9 of a.jsonl is no recording\n"),
        (
            ("absent.jsonl", ":1"),
            "Error: absent.jsonl: there is no such file; "
            "name one that is there, or record it first\n",
        ),
        (("-", ":1"), "Error: a cassette cannot be read from a pipe; name its file\n"),
        (
            ("--request", "absent.json"),
            "Error: absent.json: it cannot be read: No such file or directory\n",
        ),
        (("--request", "nowhere.json"), "Error: the request has no address that can be called\n"),
        (("--request", "broken.json"), "Error: the request has no address that can be called\n"),
        (
            ("a.jsonl", ":1", "-H", "nonsense"),
            "Error: argument --header: write NAME:VALUE; see httpx-cassette probe --help\n",
        ),
        (
            ("a.jsonl", ":1", "-H", "A: $ABSENT_VARIABLE"),
            "Error: the variable ABSENT_VARIABLE is not set, and a header names it\n",
        ),
        (
            ("a.jsonl", ":1", "--max-cost", "much"),
            "Error: argument --max-cost: 'much' is no number of dollars; see httpx-cassette probe --help\n",
        ),
        (
            ("a.jsonl", ":1", "-n", "0"),
            "Error: argument -n: 0 is not in the range x>=1; see httpx-cassette probe --help\n",
        ),
        (("--request", "closed.json"), "Error: the call failed: ConnectError\n"),
        (("a.jsonl", ":1", "-H", "A: ü"), "Error: the call failed: UnicodeEncodeError\n"),
    ],
    ids=[
        "nothing", "no-key", "both", "line", "absent", "pipe", "no-request", "nowhere", "broken", "header",
        "variable", "cost", "number", "closed", "no-ascii",
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(
    words: tuple[str, ...], sentence: str, server: StandInServer, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """After what it will spend, if it came to that; with the status 1, and nothing sent."""
    urls = {"nowhere.json": "/v1", "broken.json": "https://[a", "closed.json": "http://127.0.0.1:9/v1"}
    for name, url in urls.items():
        (tmp_path / name).write_text(json.dumps({"url": url}))

    assert 1 == main(["probe", *words])
    out, err = capsys.readouterr()
    assert ("", sentence) == (out, err.splitlines(keepends=True)[-1])
    assert 0 == server.calls


def test_under_the_ceiling_nothing_is_sent(
    server: StandInServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor is anything read."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replay")

    assert 1 == main(["probe", "a.jsonl", ":1"])
    assert ("", CEILING) == capsys.readouterr()
    assert 0 == server.calls
