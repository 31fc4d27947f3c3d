"""A service that asks a model, under load: recorded against a stand-in, then replayed without it."""

from __future__ import annotations

import importlib.util
import json
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from httpx_cassette.stand_in import Asked, Reply, StandInServer

from ._service import Question, Said, ask, ask_at_once, serve, uvicorn

pytestmark = pytest.mark.loopback

#: Asked in both ways, plain and streamed.
TICKETS = [f"My invoice number {number} shows a wrong amount." for number in range(20)]
QUESTIONS = [Question(text, is_stream) for text in TICKETS for is_stream in (False, True)]

#: The copies of a question stand side by side, so that they are under way together.
CROWD = [question for question in QUESTIONS for _ in range(5)]

#: Its answer has 8 MB, which is more than the buffers between two sockets hold.
LONG_QUESTION = Question("Write all of it down.", is_stream=True)
LONG = [f"{number} {'x' * 80_000} " for number in range(100)]

RECORDING = {"OPENAI_API_KEY": "stand-in", "HTTPX_CASSETTE_MODE": "record"}

EVENTS = {"content-type": "text/event-stream"}

NEVER_RECORDED = "Nobody has asked this before."

SDKS = [
    "app",
    pytest.param(
        "app_openai",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("openai") is None, reason="openai is not installed here"
        ),
    ),
]


class Recorded(NamedTuple):
    """What came of recording.

    Args:
        app: The application.
        folder: Where the cassette is.
        variables: The environment of the service, without a mode.
        said: What each of ``CROWD`` was answered.
        calls: How many calls the stand-in got.
        status: How the recording service ended.
    """

    app: str
    folder: Path
    variables: dict[str, str]
    said: list[Said]
    calls: int
    status: int

    @property
    def answers(self) -> dict[Question, str]:
        """What was answered to each question."""
        return {question: said.text for question, said in zip(CROWD, self.said, strict=True)}


class Gate:
    """Holds every answer back until all the questions have come."""

    def __init__(self) -> None:
        self._has_come = threading.Condition()
        self._bodies: set[bytes] = set()

    def __call__(self, asked: Asked, nth: int) -> str | Reply | None:
        if LONG_QUESTION.text.encode() in asked.body:
            return Reply(200, finished(LONG), EVENTS)
        with self._has_come:
            self._bodies.add(asked.body)
            self._has_come.notify_all()
            self._has_come.wait_for(lambda: len(self._bodies) >= len(QUESTIONS), 30)
        return None


@pytest.fixture(scope="module", params=SDKS)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """Give what 200 requests at once, and then a long one, have recorded; the model server is gone."""
    folder = tmp_path_factory.mktemp(request.param)
    cassette = folder / "cassettes" / "triage.jsonl"
    with StandInServer(answer=Gate()) as server:
        variables = {"OPENAI_BASE_URL": server.url, "TRIAGE_CASSETTE": str(cassette)}
        with serve(folder, uvicorn(request.param), {**variables, **RECORDING}) as service:
            said = ask_at_once(service.url, CROWD)
            calls = server.calls
            (long,) = ask(service.url, LONG_QUESTION)
            ended = service.end()
    assert "".join(LONG) == long.text
    return Recorded(request.param, folder, variables, said, calls, ended.status)


def test_identical_requests_at_once_share_one_real_call(recorded: Recorded) -> None:
    """200 requests at once cost one real call for each question, and the copies get the same answer."""
    assert [200] * len(CROWD) == [said.status for said in recorded.said]
    assert len(QUESTIONS) == recorded.calls
    assert len(QUESTIONS) == len(
        {(question, said.text) for question, said in zip(CROWD, recorded.said, strict=True)}
    )
    assert 0 == recorded.status


def test_each_of_200_requests_at_once_is_replayed_its_own_answer(recorded: Recorded) -> None:
    """No answer is mixed up, the streamed ones come in pieces, and nothing is left open."""
    with serve(
        recorded.folder, uvicorn(recorded.app), {**recorded.variables, "HTTPX_CASSETTE_MODE": "replay"}
    ) as service:
        crowd = CROWD[::2] + CROWD[1::2]
        said = ask_at_once(service.url, crowd)
        ended = service.end()

    assert [(200, recorded.answers[question]) for question in crowd] == [
        (each.status, each.text) for each in said
    ]
    assert {False: {False}, True: {True}} == {
        is_stream: {
            each.chunks > 1
            for question, each in zip(crowd, said, strict=True)
            if question.is_stream is is_stream
        }
        for is_stream in (False, True)
    }
    assert (0, []) == (ended.status, complaints(ended.stderr))


def test_a_miss_is_answered_500_and_the_service_lives(recorded: Recorded) -> None:
    """Plain and streamed, alone and in a crowd; the process ends with 2 and has reported each call once."""
    missing = [Question(NEVER_RECORDED), Question(NEVER_RECORDED, is_stream=True)]
    with serve(recorded.folder, uvicorn(recorded.app), recorded.variables) as service:
        first = ask(service.url, *missing, QUESTIONS[0], QUESTIONS[1])
        crowd = [*missing, *QUESTIONS[:20]] * 5
        said = ask_at_once(service.url, crowd)
        ended = service.end()

    expected = {**dict.fromkeys(QUESTIONS, 200), **dict.fromkeys(missing, 500)}
    assert [500, 500, 200, 200] == [each.status for each in first]
    assert [expected[question] for question in crowd] == [each.status for each in said]
    assert (2, 2) == (ended.status, ended.reports), ended.stderr


def test_a_client_that_hangs_up_while_it_is_replayed_to_leaves_nothing_open(
    recorded: Recorded, tmp_path: Path
) -> None:
    """In the middle of a stream that is larger than all buffers: the next requests are answered."""
    # Large deltas: small ones would take their time to fill the buffers.
    (tmp_path / "pyproject.toml").write_text("[tool.httpx_cassette]\nchunk_size = 65536\n", encoding="utf-8")
    with serve(tmp_path, uvicorn(recorded.app), recorded.variables) as service:
        for _ in range(3):
            hang_up(service.url, LONG_QUESTION)
        said = ask(service.url, LONG_QUESTION, QUESTIONS[0])
        ended = service.end()

    assert ["".join(LONG), recorded.answers[QUESTIONS[0]]] == [each.text for each in said]
    assert (0, []) == (ended.status, complaints(ended.stderr))


def test_a_client_that_hangs_up_while_it_is_recorded_leaves_nothing_open(
    recorded: Recorded, tmp_path: Path
) -> None:
    """The model's stream is closed, nothing is stored of it, and the next one who asks is recorded."""
    question = QUESTIONS[1]
    was_closed = threading.Event()

    def answer(asked: Asked, nth: int) -> str | Reply | None:
        return Reply(200, endless(was_closed), EVENTS) if nth == 1 else None

    with StandInServer(answer=answer) as server:
        variables = {"OPENAI_BASE_URL": server.url, "TRIAGE_CASSETTE": "chat.jsonl"}
        with serve(tmp_path, uvicorn(recorded.app), {**variables, **RECORDING}) as service:
            hang_up(service.url, question)
            assert was_closed.wait(30)
            said = ask(service.url, question, question)
            ended = service.end()

    assert 2 == server.calls
    assert [200, 200] == [each.status for each in said]
    assert said[0].text == said[1].text
    assert 1 == len((tmp_path / "chat.jsonl").read_text(encoding="utf-8").splitlines())
    told = f"not recorded: POST {server.url}/chat/completions was abandoned"
    assert [
        f"{told}: reading the answer raised CancelledError",
        "answers that were not recorded: 1 abandoned",
    ] == complaints(ended.stderr)
    assert 0 == ended.status


def hang_up(url: str, question: Question) -> None:
    """Read the first piece of a stream, and go."""
    with httpx.Client(base_url=url, timeout=30) as client:
        with client.stream("POST", "/triage/stream", json={"text": question.text}) as response:
            next(response.iter_raw())


def endless(was_closed: threading.Event) -> Iterator[bytes]:
    """Give the events of a stream until nobody takes them any more."""
    try:
        while True:
            yield event("word ")
            time.sleep(0.01)
    finally:
        was_closed.set()


def finished(deltas: Iterable[str]) -> Iterator[bytes]:
    """Give the events of a stream that ends."""
    for text in deltas:
        yield event(text)
    yield event("", "stop")
    yield b"data: [DONE]\n\n"


def event(text: str, reason: str | None = None) -> bytes:
    """Return one event of a streamed chat completion."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
    return b"data: %b\n\n" % json.dumps({**chunk, "choices": [choice]}).encode()


def complaints(stderr: str) -> list[str]:
    """Return the lines that a service writes when something is wrong, or left open.

    That asyncio could not send to a client that had gone is neither.
    """
    signs = ("Warning", "Traceback", "Error", "Exception", "never", "not recorded")
    return [line for line in stderr.splitlines() if any(sign in line for sign in signs)]
