"""The service in the process of the test, as its own tests have it: without a server, and in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi.testclient import TestClient

from httpx_cassette import CassetteMiss, expected_miss
from httpx_cassette.stand_in import StandInServer

from ._service import PATIENCE, Question, ask_at_once
from .apps.app import app

TICKETS = [f"The export of report {number} does nothing." for number in range(5)]
QUESTIONS = [Question(text, is_stream) for text in TICKETS for is_stream in (False, True)]
MISSING = {"text": "Nobody has asked this before."}

#: What a test client raises in place of a miss, and when it is closed after one: its event loop has ended.
LOST = (CancelledError, CassetteMiss, RuntimeError)

PATHS = ["/triage", "/triage/stream"]


@pytest.fixture
def answers(loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[Question, str]:
    """Give what was recorded through a test client; the settings of the service are those to replay it."""
    monkeypatch.setenv("TRIAGE_CASSETTE", str(tmp_path / "cassettes" / "triage.jsonl"))
    with StandInServer() as server, monkeypatch.context() as recording:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        recording.setenv("HTTPX_CASSETTE_MODE", "record")
        recording.setenv("OPENAI_API_KEY", "stand-in")
        with TestClient(app) as client:
            return {question: said(client, question) for question in QUESTIONS}


def said(client: TestClient, question: Question) -> str:
    """Return what the service answers to a question."""
    response = client.post(PATHS[question.is_stream], json={"text": question.text})
    assert 200 == response.status_code
    return response.text


@pytest.mark.anyio
async def test_through_an_asgi_transport_the_service_is_replayed(answers: dict[Question, str]) -> None:
    """The service opens its own client within the test's loop; the test is a client of the service."""
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
            replayed = {
                question: (await client.post(PATHS[question.is_stream], json={"text": question.text})).text
                for question in QUESTIONS
            }

    assert answers == replayed


@pytest.mark.anyio
@pytest.mark.parametrize("path", PATHS)
async def test_through_an_asgi_transport_a_miss_is_an_error_of_the_test(
    answers: dict[Question, str], path: str
) -> None:
    """It comes out as it was raised, and ``expected_miss()`` takes it back."""
    async with app.router.lifespan_context(app):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
            with expected_miss() as miss:
                await client.post(path, json=MISSING)

    assert ("messages[1].content",) == miss.changed


@pytest.mark.parametrize("path", PATHS)
def test_a_miss_ends_a_test_client_and_is_taken_back_too(answers: dict[Question, str], path: str) -> None:
    """The test client loses it, and its event loop with it; the block knows of it all the same."""
    with expected_miss() as miss:
        with pytest.raises(LOST):
            with TestClient(app) as client:
                with pytest.raises(LOST):
                    client.post(path, json=MISSING)

    assert ("messages[1].content",) == miss.changed


def test_a_server_in_a_thread_answers_50_requests_at_once(answers: dict[Question, str]) -> None:
    """One cassette serves them all, and a miss among them is answered 500."""
    crowd = [*QUESTIONS * 5, *[Question(MISSING["text"], is_stream) for is_stream in (False, True)]]
    with expected_miss() as miss, in_a_thread() as url:
        came = ask_at_once(url, crowd)

    expected = [answers.get(question, "Internal Server Error") for question in crowd]
    assert expected == [each.text for each in came]
    assert [200] * 50 + [500] * 2 == [each.status for each in came]
    assert 2 == len(miss.errors)


@contextmanager
def in_a_thread() -> Iterator[str]:
    """Give the URL of the service in a thread of its own, with an event loop of its own."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
