"""The cohere SDK records against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import Reply, StandInServer

from ._replaying import check_replayed, check_replayed_as_a_whole

pytest.importorskip("cohere", reason="it brings httpx2, and is not in the session of old SDKs")

from ._cohere import HARD, CohereSdk, answer

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK and its client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator '(cohere|httpcore)[.]:ResourceWarning"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[CohereSdk, Any], Awaitable[Any]]

SYSTEM = {"role": "system", "content": "You are a careful assistant."}

ASK: dict[str, Any] = {
    "model": "stand-in",
    "messages": [SYSTEM, {"role": "user", "content": "What is a café?"}],
}

ASK_FIRST = {"model": "stand-in", "preamble": SYSTEM["content"], "message": "What is a café?"}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as Cohere does."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Path) -> CohereSdk:
    """Give the cohere SDK in one colour, talking to the server."""
    return CohereSdk(colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


async def plain(sdk: CohereSdk, client: Any) -> Any:
    """One answer in one piece."""
    response = await sdk.result(client.chat(**ASK))
    assert HARD in response.message.content[1].text
    return response.model_dump()


async def streamed(sdk: CohereSdk, client: Any) -> Any:
    """One answer as a stream, read event by event."""
    events = await sdk.items(client.chat_stream(**ASK))
    message = _join(events)
    assert HARD in message["content"][1]["text"]
    return [message, events[0].model_dump(), events[-1].model_dump()]


async def first_version(sdk: CohereSdk, client: Any) -> Any:
    """Two turns of the first version, plain."""
    first = await sdk.result(sdk.first_version(client).chat(**ASK_FIRST))
    asked: Any = {**ASK_FIRST, "message": "And?", "chat_history": first.chat_history}
    second = await sdk.result(sdk.first_version(client).chat(**asked))
    assert HARD in second.text
    return [first.model_dump(), second.model_dump()]


async def first_version_streamed(sdk: CohereSdk, client: Any) -> Any:
    """The same, streamed."""
    events = await sdk.items(sdk.first_version(client).chat_stream(**ASK_FIRST))
    text = "".join(event.text for event in events if event.event_type == "text-generation")
    assert events[-1].response.text == text
    asked: Any = {**ASK_FIRST, "message": "And?", "chat_history": events[-1].response.chat_history}
    second = await sdk.result(sdk.first_version(client).chat(**asked))
    return [text, events[-1].model_dump(), second.model_dump()]


async def rerank(sdk: CohereSdk, client: Any) -> Any:
    """A ranking, for which nobody needs a system prompt."""
    response = await sdk.result(client.rerank(model="stand-in", query="a café", documents=["a", "b"]))
    return response.model_dump()


async def embedding(sdk: CohereSdk, client: Any) -> Any:
    """Nor for an embedding."""
    asked = {"texts": ["a café"], "input_type": "search_query", "embedding_types": ["float"]}
    response = await sdk.result(client.embed(model="stand-in", **asked))
    return response.embeddings.float_


async def conversation(sdk: CohereSdk, client: Any) -> Any:
    """Three turns with a plan, thoughts and tools, plain; the answers go back as the SDK gave them."""
    return await _converse(sdk, client, is_streamed=False)


async def conversation_streamed(sdk: CohereSdk, client: Any) -> Any:
    """The same, streamed."""
    return await _converse(sdk, client, is_streamed=True)


def _join(events: list[Any]) -> dict[str, Any]:
    """Return the message that the events of a stream come to, as users put it together."""
    message: dict[str, Any] = {"role": "assistant", "tool_plan": "", "tool_calls": [], "content": []}
    for event in events:
        delta = getattr(event, "delta", None)
        said = getattr(delta, "message", None)
        if event.type == "tool-plan-delta":
            message["tool_plan"] += said.tool_plan
        elif event.type == "tool-call-start":
            message["tool_calls"].append(said.tool_calls.model_dump())
        elif event.type == "tool-call-delta":
            call = message["tool_calls"][event.index]
            call["function"]["arguments"] += said.tool_calls.function.arguments
        elif event.type == "content-start":
            message["content"].append(said.content.model_dump(exclude_none=True))
        elif event.type == "content-delta":
            content = message["content"][event.index]
            content[content["type"]] += getattr(said.content, content["type"])
    return message


async def _converse(sdk: CohereSdk, client: Any, *, is_streamed: bool) -> list[Any]:
    messages: list[Any] = [SYSTEM, {"role": "user", "content": "How is the weather?"}]
    said = []
    for _ in range(3):
        asked: dict[str, Any] = {"model": "stand-in", "messages": messages, "tools": TOOLS}
        if is_streamed:
            message: Any = _join(await sdk.items(client.chat_stream(**asked)))
            calls = message["tool_calls"]
            said.append(message)
        else:
            message = (await sdk.result(client.chat(**asked))).message
            said.append(message.model_dump())
            calls = said[-1]["tool_calls"] or []
        messages.append(message)
        messages += [
            {"role": "tool", "tool_call_id": call["id"], "content": call["function"]["arguments"]}
            for call in calls
        ] or [{"role": "user", "content": "And then?"}]
    assert [2, 0, 0] == [len(message["tool_calls"] or ()) for message in said]
    return said


TALKS = (
    plain,
    streamed,
    first_version,
    first_version_streamed,
    rerank,
    embedding,
    conversation,
    conversation_streamed,
)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: CohereSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: CohereSdk, server: StandInServer
) -> None:
    """All of it in one cassette, streams assembled: no answer is mistaken for another."""
    read = await check_replayed_as_a_whole(sdk, server, TALKS)
    dialects = [recording["dialect"] for recording in read]
    forms = {recording["response"].get("stored", "plain") for recording in read}

    # Ranking and embedding are no chats.
    assert {"cohere", "cohere-v1", "generic"} == set(dialects)
    assert (2, {"plain", "assembled"}) == (dialects.count("generic"), forms)


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses_straight_through_the_retries(
    sdk: CohereSdk, server: StandInServer, stream: bool
) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""

    async def ask(client: Any, **asked: Any) -> None:
        if stream:
            await sdk.items(client.chat_stream(**asked))
        else:
            await sdk.result(client.chat(**asked))

    async with sdk.client("record") as client:
        await ask(client, **ASK)
    calls = server.calls
    messages = [{"role": "system", "content": "You are a careless assistant."}, ASK["messages"][1]]
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    await ask(client, model="stand-in", messages=messages)
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    assert ("messages[0].content",) == tuple(missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


async def test_a_call_without_a_system_prompt_is_stopped(sdk: CohereSdk, server: StandInServer) -> None:
    """Of either version; the guard goes through the SDK as a miss does, and the server is not asked."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            await sdk.result(client.chat(model="stand-in", messages=[{"role": "user", "content": "hi"}]))
        with pytest.raises(CassetteStop, match="no preamble"):
            await sdk.result(sdk.first_version(client).chat(model="stand-in", message="hi"))

    assert 0 == server.calls


@pytest.mark.loopback
async def test_an_error_at_the_end_of_a_stream_is_not_stored(sdk: CohereSdk) -> None:
    """The status was 200, and the SDK hands it on as the end of any message."""
    end = {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": "an invalid tool generation"}}
    body = f"event: message-end\ndata: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode()
    reply = Reply(200, body, {"content-type": "text/event-stream"})
    with StandInServer(answer=lambda asked, nth: reply) as server:
        sdk = CohereSdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            events = await sdk.items(client.chat_stream(**ASK))

    assert "an invalid tool generation" == events[-1].delta.error
    assert (0, {"failed": 1}) == (sdk.lines(), sdk.transport.stats.unrecorded)
