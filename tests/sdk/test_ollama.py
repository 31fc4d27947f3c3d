"""The ollama SDK records against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import ollama
import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import Reply, StandInServer

from ._ollama import HARD, OllamaSdk, answer
from ._replaying import check_replayed, check_replayed_as_a_whole

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK and its client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator '(httpcore|ollama)[.]:ResourceWarning"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[OllamaSdk, Any], Awaitable[Any]]

SYSTEM = {"role": "system", "content": "You are a careful assistant."}

ASK: dict[str, Any] = {
    "model": "stand-in",
    "messages": [SYSTEM, {"role": "user", "content": "What is a café?"}],
}

PROMPT = {"model": "stand-in", "system": SYSTEM["content"], "prompt": "What is a café?"}


def get_weather(city: str) -> str:
    """Tell how the weather is.

    Args:
        city: Where.
    """
    return f"It rains in {city}."


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as Ollama does."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Path) -> OllamaSdk:
    """Give the ollama SDK in one colour, talking to the server."""
    return OllamaSdk(colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


def _join(parts: list[Any]) -> dict[str, Any]:
    """Return the message that the lines of a stream come to, as users put it together."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "thinking": "", "tool_calls": []}
    for part in parts:
        message["content"] += part.message.content or ""
        message["thinking"] += part.message.thinking or ""
        message["tool_calls"] += part.message.tool_calls or []
    return message


async def plain(sdk: OllamaSdk, client: Any) -> Any:
    """One answer in one piece."""
    response = await sdk.result(client.chat(**ASK))
    assert HARD in response.message.content
    return response.model_dump()


async def streamed(sdk: OllamaSdk, client: Any) -> Any:
    """One answer as a stream, read line by line."""
    parts = await sdk.items(await sdk.result(client.chat(**ASK, stream=True)))
    message = _join(parts)
    assert HARD in message["content"]
    assert all(part.created_at for part in parts)
    assert [False] * (len(parts) - 1) + [True] == [part.done for part in parts]
    return [message, parts[-1].model_dump()]


async def prompt(sdk: OllamaSdk, client: Any) -> Any:
    """The answer to a prompt, and to the next one, which has the context of the first."""
    first = await sdk.result(client.generate(**PROMPT))
    second = await sdk.result(client.generate(model="stand-in", prompt="And?", context=first.context))
    return [first.model_dump(), second.model_dump()]


async def prompt_streamed(sdk: OllamaSdk, client: Any) -> Any:
    """The same, streamed."""
    parts = await sdk.items(await sdk.result(client.generate(**PROMPT, stream=True)))
    text = "".join(part.response for part in parts)
    assert HARD in text
    second = await sdk.result(client.generate(model="stand-in", prompt="And?", context=parts[-1].context))
    return [text, parts[-1].model_dump(), second.model_dump()]


async def embedding(sdk: OllamaSdk, client: Any) -> Any:
    """An embedding, for which nobody needs a system prompt."""
    return (await sdk.result(client.embed(model="stand-in", input="a café"))).embeddings


async def conversation(sdk: OllamaSdk, client: Any) -> Any:
    """Three turns with thoughts and tools, plain; the answers go back as the SDK gave them."""
    return await _converse(sdk, client, is_streamed=False)


async def conversation_streamed(sdk: OllamaSdk, client: Any) -> Any:
    """The same, streamed."""
    return await _converse(sdk, client, is_streamed=True)


async def _converse(sdk: OllamaSdk, client: Any, *, is_streamed: bool) -> list[Any]:
    messages: list[Any] = [SYSTEM, {"role": "user", "content": "How is the weather?"}]
    said = []
    for _ in range(3):
        asked: dict[str, Any] = {"model": "stand-in", "messages": messages, "tools": [get_weather]}
        given = await sdk.result(client.chat(**asked, think=True, stream=is_streamed))
        message = ollama.Message(**_join(await sdk.items(given))) if is_streamed else given.message
        said.append(message.model_dump())
        messages.append(message)
        calls = message.tool_calls or []
        messages += [
            {
                "role": "tool",
                "tool_name": call.function.name,
                "content": get_weather(**call.function.arguments),
            }
            for call in calls
        ] or [{"role": "user", "content": "And then?"}]
    assert [2, 0, 0] == [len(message["tool_calls"] or ()) for message in said]
    return said


TALKS = (plain, streamed, prompt, prompt_streamed, embedding, conversation, conversation_streamed)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: OllamaSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: OllamaSdk, server: StandInServer
) -> None:
    """All of it in one cassette, streams assembled: no answer is mistaken for another."""
    read = await check_replayed_as_a_whole(sdk, server, TALKS)
    dialects = [recording["dialect"] for recording in read]
    forms = {recording["response"].get("stored", "plain") for recording in read}

    # The embedding is no chat.
    assert {"ollama", "generic"} == set(dialects)
    assert (1, {"plain", "assembled"}) == (dialects.count("generic"), forms)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses(sdk: OllamaSdk, server: StandInServer, stream: bool) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        given = await sdk.result(client.chat(**ASK, stream=stream))
        if stream:
            await sdk.items(given)
    calls = server.calls
    messages = [{"role": "system", "content": "You are a careless assistant."}, ASK["messages"][1]]
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    given = await sdk.result(client.chat(model="stand-in", messages=messages, stream=stream))
                    await sdk.items(given)
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    assert ("messages[0].content",) == tuple(missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("chat", {"messages": [{"role": "user", "content": "hi"}]}),
        ("chat", {"messages": [{"role": "system", "content": " "}, {"role": "user", "content": "hi"}]}),
        ("generate", {"prompt": "hi"}),
    ],
)
async def test_a_call_without_a_system_prompt_is_stopped(
    sdk: OllamaSdk, server: StandInServer, method: str, asked: dict[str, Any]
) -> None:
    """The guard goes through the SDK as a miss does, and the server is not asked."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            await sdk.result(getattr(client, method)(model="stand-in", **asked))

    assert 0 == server.calls


@pytest.mark.loopback
async def test_an_error_in_the_stream_is_the_callers_and_is_not_stored(sdk: OllamaSdk) -> None:
    """The status was 200, and the SDK raises all the same."""
    reply = Reply(200, b'{"error":"the model ran away"}\n', {"content-type": "application/x-ndjson"})
    with StandInServer(answer=lambda asked, nth: reply) as server:
        sdk = OllamaSdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            with pytest.raises(ollama.ResponseError, match="the model ran away"):
                await streamed(sdk, client)

    assert (0, {"failed": 1}) == (sdk.lines(), sdk.transport.stats.unrecorded)
