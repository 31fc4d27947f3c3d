"""The hub's text generation and other tasks: recorded against a server, which is stopped, and replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from httpx_cassette import CassetteMiss, expected_miss
from httpx_cassette.stand_in import Asked, Reply, StandInServer

hub = pytest.importorskip(
    "huggingface_hub", reason="huggingface_hub is not installed here; nox -s sdk has it"
)

from ._compatible import KINDS, CompatibleSdk  # noqa: E402 - only where it is installed
from ._replaying import check_replayed, check_replayed_as_a_whole  # noqa: E402

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK and its client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator '(httpcore2|huggingface_hub)[.]:ResourceWarning"),
]

#: What is asked: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[["HubSdk", Any], Awaitable[Any]]

WORDS = [
    " It",
    " is",
    " a",
    " café",
    ":\u2028",
    " 東京",
    ",",
    " 👩\u200d👧",
    ", data: [DONE]",
    "\n\n\x85",
    "!",
    "!",
]


class HubSdk(CompatibleSdk):
    """Makes clients of the hub for one address, where a model is served."""

    def __init__(self, is_async: bool, url: str, cassette: Path) -> None:
        (kind,) = (kind for kind in KINDS if kind.module == "huggingface_hub")
        super().__init__(kind._replace(base=""), is_async, url, cassette)


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer as TGI does at its root, and as other tasks do."""
    body = json.loads(asked.body)
    if not isinstance(body["inputs"], str):
        return _document({"answer": f"Bob {nth}", "score": 0.5, "start": 0, "end": 3})
    words = [f"Answer {nth}:", *WORDS]
    tokens = [
        {"id": number % 3, "text": word, "logprob": -number / 8, "special": False}
        for number, word in enumerate(words)
    ]
    details = {"finish_reason": "length", "generated_tokens": len(words), "seed": None}
    if not body.get("stream"):
        whole = {**details, "prefill": [], "tokens": tokens}
        said = {"generated_text": "".join(words), "details": whole}
        return _document([said] if nth % 2 else said)
    events = [
        {"index": number, "token": token, "generated_text": None, "details": None}
        for number, token in enumerate(tokens, 1)
    ]
    events[-1] |= {"generated_text": "".join(words), "details": details}
    written = (b"data:" + json.dumps(event).encode() + b"\n\n" for event in events)
    return Reply(200, written, {"content-type": "text/event-stream"})


def _document(document: Any) -> Reply:
    return Reply(200, json.dumps(document).encode())


@pytest.fixture(params=["sync", "asyncio"])
def colour(request: pytest.FixtureRequest) -> str:
    """Run each test with both clients; the async one reads documents in a thread of asyncio's."""
    return str(request.param)


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as TGI does."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Path) -> HubSdk:
    """Give the hub in one colour, talking to the server."""
    return HubSdk(colour != "sync", server.url, cassette)


# -- what is asked -------------------------------------------------------------------------------------


async def plain(sdk: HubSdk, client: Any) -> Any:
    """A text."""
    text = await sdk.result(client.text_generation("What is a café?"))
    assert text.endswith("".join(WORDS))
    return text


async def details(sdk: HubSdk, client: Any) -> Any:
    """A text with its tokens."""
    return await sdk.result(client.text_generation("What is a café?", details=True))


async def streamed(sdk: HubSdk, client: Any) -> Any:
    """The texts of the tokens, one by one."""
    given = await sdk.result(client.text_generation("What is a café?", stream=True))
    pieces = await sdk.items(given)
    assert WORDS == pieces[1:]
    return pieces


async def streamed_details(sdk: HubSdk, client: Any) -> Any:
    """The tokens, each with its number and probability; then a text that goes on behind them."""
    asked: dict[str, Any] = {"details": True, "stream": True, "max_new_tokens": 20}
    said = []
    prompt = "What is a café?"
    for _ in range(2):
        tokens = await sdk.items(await sdk.result(client.text_generation(prompt, **asked)))
        assert list(range(len(tokens))) == [round(each.token.logprob * -8) for each in tokens]
        assert tokens[-1].generated_text == "".join(each.token.text for each in tokens)
        prompt += tokens[-1].generated_text
        said.append(tokens)
    return said


async def question(sdk: HubSdk, client: Any) -> Any:
    """Another task, whose inputs are no prompt."""
    return await sdk.result(client.question_answering(question="Who?", context="Bob it is."))


TALKS = (plain, details, streamed, streamed_details, question)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: HubSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, to the token, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_all_is_recorded_once_and_replayed_as_a_whole(sdk: HubSdk, server: StandInServer) -> None:
    """All of it in one cassette: what says that it streams has a table, what may be any task has none."""
    read = await check_replayed_as_a_whole(sdk, server, TALKS)
    dialects = [recording["dialect"] for recording in read]
    forms = {recording["response"].get("stored", "plain") for recording in read}

    assert ({"huggingface", "generic"}, 3) == (set(dialects), dialects.count("generic"))
    assert {"plain", "assembled"} == forms


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_prompt_misses(sdk: HubSdk, server: StandInServer, stream: bool) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        given = await sdk.result(client.text_generation("Be careful. What is it?", stream=stream))
        if stream:
            await sdk.items(given)
    calls = server.calls
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    await sdk.result(client.text_generation("Be careless. What is it?", stream=stream))
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    assert ("inputs",) == tuple(missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


@pytest.mark.loopback
async def test_an_error_in_the_stream_is_the_callers_and_is_not_stored(sdk: HubSdk) -> None:
    """The status was 200, and the SDK raises all the same."""
    error = {"error": "the model ran away", "error_type": "generation"}
    reply = Reply(200, f"data:{json.dumps(error)}\n\n".encode(), {"content-type": "text/event-stream"})
    with StandInServer(answer=lambda asked, nth: reply) as server:
        sdk = HubSdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            with pytest.raises(hub.errors.GenerationError, match="the model ran away"):
                await sdk.items(await sdk.result(client.text_generation("hi", stream=True)))

    assert (0, {"failed": 1}) == (sdk.lines(), sdk.transport.stats.unrecorded)
