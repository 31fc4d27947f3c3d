"""The stand-in server speaks OpenAI's chat format well enough to stand in for it."""

from __future__ import annotations

import base64
import concurrent.futures
import json
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from httpx_cassette.stand_in import Asked, Reply, StandInServer

pytestmark = pytest.mark.loopback

KEY = {"authorization": "Bearer any"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"location": {"type": "string"}}},
    },
}


@pytest.fixture
def client(stand_in: StandInServer) -> Iterator[httpx.Client]:
    """Give a client whose base URL is the stand-in's."""
    with httpx.Client(base_url=stand_in.url, headers=KEY, trust_env=False) as client:
        yield client


def ask(text: str, **more: object) -> dict[str, Any]:
    """Return a chat request."""
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def chunks(response: httpx.Response) -> list[dict[str, Any]]:
    """Return the events of a stream, which must end in ``[DONE]``."""
    *events, done, rest = response.text.split("\n\n")

    assert ("data: [DONE]", "") == (done, rest)

    return [json.loads(event.removeprefix("data: ")) for event in events]


def texts(events: list[dict[str, Any]], count: int = 1) -> list[str]:
    """Return the joined text of each choice."""
    joined = [""] * count
    for event in events:
        for choice in event["choices"]:
            joined[choice["index"]] += choice["delta"].get("content") or ""
    return joined


def test_the_same_question_gets_another_wording(client: httpx.Client, stand_in: StandInServer) -> None:
    """Sixty answers to one question are sixty texts, and the calls are counted."""
    answers = [client.post("/chat/completions", json=ask("What is it?")).json() for _ in range(60)]

    assert 60 == len({answer["choices"][0]["message"]["content"] for answer in answers})
    assert 60 == len({answer["id"] for answer in answers})
    assert 60 == stand_in.calls


def test_a_fresh_server_says_the_same_again(stand_in: StandInServer) -> None:
    """The n-th answer is always the same: what a test sees does not depend on the run."""
    with StandInServer() as other, httpx.Client(headers=KEY, trust_env=False) as client:
        first, second = (
            client.post(f"{url}/chat/completions", json=ask("What?")).json()["choices"]
            for url in (stand_in.url, other.url)
        )

    assert first == second


def test_a_plain_answer_has_the_shape_of_openais(client: httpx.Client) -> None:
    """Members, their order and the headers are those of a chat completion."""
    response = client.post("/chat/completions", json=ask("Why {not}?"))
    answer = response.json()

    assert 200 == response.status_code
    assert "application/json" == response.headers["content-type"]
    assert "req_standin00000001" == response.headers["x-request-id"]
    assert abs(time.time() - answer.pop("created")) < 60
    assert {
        "object": "chat.completion",
        "id": "chatcmpl-standin00000001",
        "model": "m",
        "system_fingerprint": "fp_stand_in",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Let me see… As for “Why {not}?”, the short answer is yes and the long one is "
                    "longer. Ask again and I will put it differently; this was answer 1.",
                    "refusal": None,
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 6, "completion_tokens": 33, "total_tokens": 39},
    } == answer


def test_a_stream_carries_role_text_finish_and_usage(client: httpx.Client) -> None:
    """A stream opens with the role, ends with the finish reason, and its usage comes last."""
    body = ask("Why?", stream=True, stream_options={"include_usage": True})
    response = client.post("/chat/completions", json=body)
    events = chunks(response)

    assert "text/event-stream; charset=utf-8" == response.headers["content-type"]
    assert "chunked" == response.headers["transfer-encoding"]
    assert {"role": "assistant", "content": "", "refusal": None} == events[0]["choices"][0]["delta"]
    assert ({}, "stop") == (
        events[-2]["choices"][0]["delta"],
        events[-2]["choices"][0]["finish_reason"],
    )
    assert [] == events[-1]["choices"]
    assert events[-1]["usage"]["completion_tokens"] == len(events) - 3
    assert {None} == {event["usage"] for event in events[:-1]}
    assert "Let me see…" in texts(events)[0]


def test_usage_is_streamed_on_request_only(client: httpx.Client) -> None:
    """Without ``include_usage`` no event mentions usage."""
    events = chunks(client.post("/chat/completions", json=ask("Why?", stream=True)))

    assert not any("usage" in event for event in events)


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
def test_choices_differ(client: httpx.Client, is_stream: bool) -> None:
    """With ``n`` there are as many choices, each worded differently."""
    response = client.post("/chat/completions", json=ask("Why?", n=3, stream=is_stream))
    if is_stream:
        said = texts(chunks(response), 3)
    else:
        said = [choice["message"]["content"] for choice in response.json()["choices"]]

    assert 3 == len(set(said))
    assert all(said)


def test_the_weather_is_a_tool_call_per_city(client: httpx.Client) -> None:
    """A question for the weather calls the tool that was offered, under its own parameter name."""
    body = ask("What is the weather in Paris and in Oslo?", tools=[WEATHER])
    choice = client.post("/chat/completions", json=body).json()["choices"][0]
    calls = choice["message"]["tool_calls"]

    assert ("tool_calls", None) == (choice["finish_reason"], choice["message"]["content"])
    assert [
        ("get_weather", '{"location": "Paris"}'),
        ("get_weather", '{"location": "Oslo"}'),
    ] == [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
    assert 2 == len({call["id"] for call in calls})


def test_a_streamed_tool_call_comes_in_pieces(client: httpx.Client) -> None:
    """Id and name come once, then the arguments in pieces."""
    body = ask("weather in Oslo", tools=[WEATHER], stream=True)
    events = chunks(client.post("/chat/completions", json=body))
    calls = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", ())]

    assert "get_weather" == calls[0]["function"]["name"]
    assert not any("id" in call or "name" in call["function"] for call in calls[1:])
    assert '{"location": "Oslo"}' == "".join(call["function"]["arguments"] for call in calls)
    assert "tool_calls" == events[-1]["choices"][0]["finish_reason"]


NO_PARAMETERS = {"type": "function", "function": {"name": "now"}}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({"tools": [WEATHER], "tool_choice": "none"}, None, id="switched-off"),
        pytest.param({"tools": []}, None, id="none-offered"),
        pytest.param({"tools": [{"type": "web_search"}]}, None, id="no-function"),
        pytest.param(
            {"tools": [NO_PARAMETERS]}, ['{"city": "Paris"}', '{"city": "Oslo"}'], id="no-parameters"
        ),
        pytest.param(
            {"tools": [NO_PARAMETERS, WEATHER], "parallel_tool_calls": False},
            ['{"location": "Paris"}'],
            id="one-at-a-time",
        ),
    ],
)
def test_tools_are_called_as_the_request_allows(
    client: httpx.Client, more: dict[str, object], expected: list[str] | None
) -> None:
    """A tool is called only where one is offered and may be called."""
    body = ask("The weather in Paris and Oslo?", **more)
    message = client.post("/chat/completions", json=body).json()["choices"][0]["message"]
    calls = message.get("tool_calls")

    assert expected == (calls and [call["function"]["arguments"] for call in calls])


def test_a_tool_result_gets_words(client: httpx.Client) -> None:
    """After the tool's answer the stand-in talks, so that a conversation ends."""
    body = ask("The weather?", tools=[WEATHER])
    assistant = client.post("/chat/completions", json=body).json()["choices"][0]["message"]
    result = {
        "role": "tool",
        "tool_call_id": assistant["tool_calls"][0]["id"],
        "content": "18 °C, weather fine",
    }
    body["messages"] += [assistant, result]
    choice = client.post("/chat/completions", json=body).json()["choices"][0]

    assert "stop" == choice["finish_reason"]
    assert "“18 °C, weather fine”" in choice["message"]["content"]


def test_text_parts_and_long_questions_are_understood(client: httpx.Client) -> None:
    """The question is read from text parts as well, and shortened where it is quoted."""
    parts = [{"type": "text", "text": "word " * 20}, {"type": "image_url"}]
    body = {"model": "m", "messages": [{"role": "user", "content": parts}]}
    content = client.post("/chat/completions", json=body).json()["choices"][0]["message"]["content"]

    assert "“" + "word " * 11 + "word…”" in content


def test_the_token_limit_cuts(client: httpx.Client) -> None:
    """``max_tokens`` ends an answer early, with the finish reason for it."""
    answer = client.post("/chat/completions", json=ask("Why?", max_tokens=2)).json()

    assert "length" == answer["choices"][0]["finish_reason"]
    assert "Let me" == answer["choices"][0]["message"]["content"]
    assert 2 == answer["usage"]["completion_tokens"]


def test_embeddings_are_a_function_of_their_input(client: httpx.Client) -> None:
    """Floats and base64 are the same vector, of length 1, and depend on the input alone."""
    body = {"model": "e", "input": ["a", "b"], "dimensions": 4}
    floats = client.post("/embeddings", json=body).json()
    packed = client.post("/embeddings", json={**body, "encoding_format": "base64"}).json()
    vectors = [item["embedding"] for item in floats["data"]]

    assert vectors == [
        list(struct.unpack("<4f", base64.b64decode(item["embedding"]))) for item in packed["data"]
    ]
    assert vectors[0] != vectors[1]
    assert [pytest.approx(1.0)] * 2 == [sum(x * x for x in vector) for vector in vectors]
    assert {"prompt_tokens": 2, "total_tokens": 2} == floats["usage"]


@pytest.mark.parametrize(
    ("given", "count", "tokens"),
    [("abc", 1, 1), ([1, 2, 3], 1, 3), ([[1, 2], [3]], 2, 3)],
    ids=["text", "token-ids", "lists-of-token-ids"],
)
def test_embedding_inputs_come_in_every_form(
    client: httpx.Client, given: object, count: int, tokens: int
) -> None:
    """A text, token ids, and lists of either are inputs."""
    answer = client.post("/embeddings", json={"model": "e", "input": given}).json()

    assert (count, tokens) == (len(answer["data"]), answer["usage"]["prompt_tokens"])
    assert 8 == len(answer["data"][0]["embedding"])


def test_models_are_listed(client: httpx.Client) -> None:
    """The model list says that these are no models."""
    models = client.get("/models").json()["data"]

    assert ["stand-in-large", "stand-in-small"] == [model["id"] for model in models]


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "message"),
    [
        pytest.param(
            "POST", "/chat/completions", b"{", 400, "We could not parse the JSON body of your request."
        ),
        pytest.param("POST", "/chat/completions", b"[]", 400, "The body must be a JSON object."),
        pytest.param("POST", "/chat/completions", b"{}", 400, "You must provide a model parameter."),
        pytest.param(
            "POST", "/chat/completions", b'{"model":"m"}', 400, "'messages' must be a list of objects."
        ),
        pytest.param(
            "POST",
            "/chat/completions",
            b'{"model":"m","messages":[]}',
            400,
            "'messages' must hold at least one message.",
        ),
        pytest.param(
            "DELETE",
            "/files/1?a=b",
            b"",
            404,
            "Invalid URL (DELETE /v1/files/1): this stand-in knows chat, embeddings and models.",
        ),
    ],
    ids=["no-json", "no-object", "no-model", "no-messages", "empty-messages", "unknown-path"],
)
def test_a_wrong_request_is_told_so(
    client: httpx.Client, method: str, path: str, content: bytes, status: int, message: str
) -> None:
    """Errors have OpenAI's shape."""
    response = client.request(method, path, content=content)

    assert status == response.status_code
    assert {
        "error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    } == response.json()


def test_a_key_is_wanted(client: httpx.Client, stand_in: StandInServer) -> None:
    """A request without credentials is refused, and counted."""
    del client.headers["authorization"]

    assert 401 == client.post("/chat/completions", json=ask("Why?")).status_code
    assert 1 == stand_in.calls


def test_a_request_in_chunks_is_read_whole(client: httpx.Client, stand_in: StandInServer) -> None:
    """A body from an iterator arrives as one, and the next request on the connection is read rightly."""
    body = json.dumps(ask("Why?")).encode()

    assert 200 == client.post("/chat/completions", content=iter([body[:7], body[7:]])).status_code
    assert 200 == client.get("/models?after=x").status_code
    assert [("/v1/chat/completions", body), ("/v1/models?after=x", b"")] == [
        (asked.path, asked.body) for asked in stand_in.requests
    ]
    assert "Bearer any" == stand_in.requests[0].headers["authorization"]


def test_an_answer_can_be_given_in_words() -> None:
    """A test chooses the words; ``None`` leaves an answer as it is."""
    with StandInServer(answer=lambda asked, nth: "billing" if nth == 1 else None) as server:
        url = f"{server.url}/chat/completions"
        first, second = (
            httpx.post(url, json=ask("Why?", tools=[WEATHER]), headers=KEY, trust_env=False) for _ in range(2)
        )

    assert "billing" == first.json()["choices"][0]["message"]["content"]
    assert "opinions differ" in second.json()["choices"][0]["message"]["content"]


def test_an_answer_can_be_given_whole() -> None:
    """A test chooses status, headers and body, without a key too."""
    reply = Reply(429, b"{}", {"content-type": "application/json", "retry-after": "1"})
    with StandInServer(answer=lambda asked, nth: reply) as server:
        response = httpx.get(server.url, trust_env=False)

    assert (429, "1", b"{}") == (response.status_code, response.headers["retry-after"], response.content)


def test_pieces_are_sent_when_they_are_there() -> None:
    """A piece reaches the caller before the next one exists."""
    confirmed = threading.Semaphore(0)

    def pieces() -> Iterator[bytes]:
        for number in range(3):
            yield b"%d" % number
            yield b""
            assert confirmed.acquire(timeout=10)

    with (
        StandInServer(answer=lambda asked, nth: Reply(200, pieces())) as server,
        httpx.stream("GET", server.url, trust_env=False) as response,
    ):
        seen = []
        for piece in response.iter_raw():
            seen.append(piece)
            confirmed.release()

    assert [b"0", b"1", b"2"] == seen


def test_a_stream_can_be_cut_short() -> None:
    """An iterable that raises ``ConnectionError`` leaves the answer unfinished."""

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionError

    with (
        StandInServer(answer=lambda asked, nth: Reply(200, pieces())) as server,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        httpx.get(server.url, trust_env=False)


def test_a_fault_of_the_hook_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """An ``answer`` that raises is not silent: its traceback is printed."""

    def answer(asked: Asked, nth: int) -> str:
        raise LookupError("no such answer")

    with StandInServer(answer=answer) as server, pytest.raises(httpx.RemoteProtocolError):
        httpx.get(server.url, trust_env=False)

    assert "LookupError: no such answer" in capsys.readouterr().err


def test_a_delay_spreads_the_tokens() -> None:
    """A streamed answer begins long before it ends; a plain one takes the time of all tokens."""
    with StandInServer(answer=lambda asked, nth: "a b c d e f g h i j", delay=0.02) as server:
        url = f"{server.url}/chat/completions"
        started = time.perf_counter()
        httpx.post(url, json=ask("Why?"), headers=KEY, trust_env=False)
        plain = time.perf_counter() - started
        body = ask("Why?", stream=True)
        with httpx.stream("POST", url, json=body, headers=KEY, trust_env=False) as response:
            arrivals = [time.perf_counter() for _ in response.iter_raw()]

    assert plain >= 0.2
    assert arrivals[-1] - arrivals[0] >= 0.2


def test_after_closing_nothing_answers(client: httpx.Client, stand_in: StandInServer) -> None:
    """Even a connection that the client keeps open is dead: what answers now is a recording."""
    client.get("/models")
    stand_in.close()
    stand_in.close()

    with pytest.raises(httpx.TransportError):
        client.get("/models")

    assert 1 == stand_in.calls


def test_closing_does_not_wait_for_a_slow_answer() -> None:
    """Tokens that are still due are not waited for: the caller is cut off."""
    with StandInServer(delay=30) as server, concurrent.futures.ThreadPoolExecutor() as pool:
        url = f"{server.url}/chat/completions"
        answer = pool.submit(httpx.post, url, json=ask("Why?"), headers=KEY, trust_env=False)
        while not server.calls:
            time.sleep(0.001)
        started = time.perf_counter()
        server.close()

        assert isinstance(answer.exception(), httpx.TransportError)
        assert time.perf_counter() - started < 60


def test_requests_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run keeps the latest requests only, and counts them all."""
    monkeypatch.setattr("httpx_cassette.stand_in.REQUESTS_KEPT", 2)
    with StandInServer() as server, httpx.Client(headers=KEY, trust_env=False) as client:
        for number in range(3):
            client.get(f"{server.url}/{number}")

    assert ["/v1/1", "/v1/2"] == [asked.path for asked in server.requests]
    assert 3 == server.calls


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/openai/v1/chat/completions",
        "/openai/deployments/gpt-5/chat/completions?api-version=2024-10-21",
        "/v1/embeddings",
        "/openai/deployments/small/embeddings?api-version=2024-10-21",
    ],
)
@pytest.mark.parametrize("header", ["authorization", "api-key"])
def test_other_paths_and_another_header_are_known(stand_in: StandInServer, path: str, header: str) -> None:
    """Groq's, and those of Azure, whose key stands in a header of its own."""
    url = stand_in.url.removesuffix("/v1") + path
    body = ask("Why?", input="Why?")
    with httpx.Client(headers={header: "any"}, trust_env=False) as client:
        statuses = [client.post(url, json=body).status_code, client.get(url).status_code]

    assert [200, 404] == statuses
