"""The stability probe: real calls through a client of the user's, and how their answers differ."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import httpx_cassette
from httpx_cassette import CassetteTransport, OptionError, Probe, WrongClientError, stability_probe
from httpx_cassette.stand_in import Asked, Reply, StandInServer

BODY = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hi"}]}
HEADERS = {"authorization": "Bearer stand-in"}


def answer(asked: Asked, number: int) -> str | Reply:
    """Answer in turn: alike, otherwise, not at all."""
    return Reply(429, b"{}") if number == 3 else ("Yes", "Yes", "No\nnever")[number % 3]


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server whose third call fails."""
    with StandInServer(answer=answer) as made:
        yield made


@pytest.fixture(params=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> Any:
    """Give each of the client libraries that is installed."""
    return pytest.importorskip(str(request.param))


def request_of(client: Any, server: StandInServer, **body: object) -> Any:
    """Return a request to the server."""
    return client.build_request(
        "POST", f"{server.url}/chat/completions", json={**BODY, **body}, headers=HEADERS
    )


@pytest.mark.parametrize("stream", [False, True])
def test_answers_are_counted_and_compared(library: Any, server: StandInServer, stream: bool) -> None:
    """The commonest first, the others by how they differ from it; failed calls are told."""
    with library.Client() as client:
        found = stability_probe(client, request_of(client, server, stream=stream), n=6)

    assert 6 == server.calls
    assert (3 / 5, [429]) == (found.share, found.failures)
    assert [(("Yes",), 3, 0.6, ()), (("No", "never"), 2, 0.4, ("-Yes", "+No", "+never"))] == [
        (each.lines, each.count, each.share, each.difference) for each in found.answers
    ]
    assert "gpt-4o-mini" == found.answers[0].exchange.model
    assert (
        "6 calls, 2 different answers\n"
        "  failed: status 429\n"
        "    3   60%  Yes\n"
        "    2   40%  No / never\n"
        "              -Yes\n"
        "              +No\n"
        "              +never"
    ) == str(found)


def test_a_body_that_comes_from_an_iterator_is_sent_each_time(server: StandInServer) -> None:
    """It is read before the first call."""
    with httpx.Client() as client:
        content = iter([b'{"model": "m", "messages": ', b'[{"role": "user", "content": "a"}]}'])
        request = client.build_request(
            "POST", f"{server.url}/chat/completions", content=content,
            headers={**HEADERS, "content-type": "application/json"},
        )  # fmt: skip
        stability_probe(client, request, n=2)

    assert 1 == len({each.body for each in server.requests})
    assert 2 == len(server.requests)


def test_the_client_is_the_users_own(server: StandInServer) -> None:
    """Its authentication is used, and it stays open."""
    with httpx.Client(auth=("ann", "word")) as client:
        request = client.build_request("POST", f"{server.url}/chat/completions", json=BODY)
        stability_probe(client, request, n=1)
        stability_probe(client, request, n=1)

    assert ["Basic YW5uOndvcmQ="] * 2 == [each.headers["authorization"] for each in server.requests]


def test_nothing_is_left_behind(
    server: StandInServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a cassette nor a folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with httpx.Client() as client:
        stability_probe(client, request_of(client, server), n=2)

    assert [] == os.listdir(tmp_path)


def test_under_the_ceiling_nothing_is_sent(server: StandInServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """``HTTPX_CASSETTE_MODE=replay`` is stronger than a probe."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replay")
    with httpx.Client() as client, pytest.raises(OptionError) as caught:
        stability_probe(client, request_of(client, server))

    assert 0 == server.calls
    assert "HTTPX_CASSETTE_MODE=replay is a ceiling, and a probe makes real calls; unset it first" == str(
        caught.value
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_an_answer_from_a_cassette_is_no_probe(server: StandInServer, tmp_path: Path) -> None:
    """A client that replays would answer alike each time."""
    cassette = tmp_path / "a.jsonl"
    with httpx.Client(transport=CassetteTransport(cassette, mode="record", require_system=False)) as client:
        client.send(request_of(client, server))
        with pytest.raises(OptionError) as caught:
            stability_probe(client, request_of(client, server))

    assert 1 == server.calls
    assert "the client answers from a cassette; probe with one that does not" == str(caught.value)


def test_an_answer_that_a_project_passes_through_cannot_be_told(
    server: StandInServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls that the project ignores are answered here and are no answers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.httpx_cassette]\nignore = ["127.0.0.1"]\n')
    with httpx.Client() as client, pytest.raises(OptionError) as caught:
        stability_probe(client, request_of(client, server))

    assert "the answer could not be kept, so that nothing can be said of it" == str(caught.value)


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "5"])
def test_a_number_that_is_none_is_an_error(n: Any) -> None:
    """Before anything is sent."""
    with httpx.Client() as client, pytest.raises(OptionError) as caught:
        stability_probe(client, client.build_request("GET", "https://a.b"), n)

    assert f"n={n!r} is not understood; it takes a whole number from 1" == str(caught.value)


def test_a_client_of_another_kind_is_an_error() -> None:
    """An async one, and what is no client."""
    request = httpx.Request("GET", "https://a.b")
    for client in (httpx.AsyncClient(), httpx):
        with pytest.raises(WrongClientError) as caught:
            stability_probe(client, request)
        assert f"a request of httpx is probed through a httpx.Client, not a {type(client).__name__}" == str(
            caught.value
        )


def test_a_client_of_the_other_library_is_an_error() -> None:
    """A request is sent by a client of its own library."""
    other = pytest.importorskip("httpx2")
    with other.Client() as client, pytest.raises(WrongClientError) as caught:
        stability_probe(client, httpx.Request("GET", "https://a.b"))

    assert "a request of httpx is probed through a httpx.Client, not a Client" == str(caught.value)


def test_a_probe_without_answers_has_no_share() -> None:
    """And says so."""
    assert (0.0, [], "0 calls, 0 different answers") == (
        Probe(()).share, Probe(()).failures, str(Probe(()))
    )  # fmt: skip


def test_long_differences_are_cut_and_nothing_invisible_is_shown(tmp_path: Path) -> None:
    """Twelve lines of each."""
    from .example_cassette import chat, chat_answer, exchange_line, said

    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b"".join(
            exchange_line(
                "https://api.openai.com/v1/chat/completions", chat("m", user),
                chat_answer("m", said(text), "stop", (1, 1)),
            ) + b"\n"
            for user, text in (("a", "\x1b[2J"), ("b", "\n".join(map(str, range(20)))))
        )
    )  # fmt: skip
    lines = str(Probe(tuple(httpx_cassette.open(path)))).split("\n")

    assert "    1   50%  \\u001b[2J" == lines[1]
    assert 16 == len(lines)
    assert "              ... and 10 more lines" == lines[-1]
