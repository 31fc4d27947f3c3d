"""The mistralai SDK records against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import StandInServer

from ._mistral import HARD, MistralSdk, answer
from ._replaying import check_replayed, check_replayed_as_a_whole

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK's client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator '(httpcore2?|mistralai)[.]:ResourceWarning"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[MistralSdk, Any], Awaitable[Any]]

SYSTEM = {"role": "system", "content": "You are a careful assistant."}

ASK: dict[str, Any] = {
    "model": "stand-in-large",
    "messages": [SYSTEM, {"role": "user", "content": "What is a café?"}],
}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


@pytest.fixture(params=["sync", "asyncio"])
def colour(request: pytest.FixtureRequest) -> str:
    """Run each test with the sync methods, and with the async ones where the SDK can run: under asyncio."""
    return str(request.param)


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as Mistral does."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Path) -> MistralSdk:
    """Give the mistralai SDK in one colour, talking to the server."""
    return MistralSdk(colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


async def plain(sdk: MistralSdk, client: Any) -> Any:
    """One answer in one piece."""
    found = await sdk.result(sdk.method(client.chat, "complete")(**ASK))
    assert HARD in found.choices[0].message.content
    return dump(found)


async def streamed(sdk: MistralSdk, client: Any) -> Any:
    """One answer as a stream, of which the text and the last usage count."""
    chunks = await sdk.data(sdk.method(client.chat, "stream")(**ASK))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert HARD in text
    return [text, chunks[-1].choices[0].finish_reason, dump(chunks[-1].usage)]


async def turns(sdk: MistralSdk, client: Any) -> Any:
    """Three turns with tool calls and thoughts, plain; the answers go back as the SDK gave them."""
    messages = [*ASK["messages"]]
    said = []
    for _ in range(3):
        asked = {**ASK, "messages": messages, "tools": [WEATHER]}
        found = await sdk.result(sdk.method(client.chat, "complete")(**asked))
        message = found.choices[0].message
        said.append(dump(found))
        messages += [message, *results(dump(message).get("tool_calls"))]
    return said


async def turns_streamed(sdk: MistralSdk, client: Any) -> Any:
    """The same, streamed, put together by hand."""
    messages = [*ASK["messages"]]
    for _ in range(3):
        asked = {**ASK, "messages": messages, "tools": [WEATHER]}
        message = together(await sdk.data(sdk.method(client.chat, "stream")(**asked)))
        messages += [message, *results(message.get("tool_calls"))]
    assert ["Paris", "Oslo"] == [
        json.loads(call["function"]["arguments"])["city"]
        for each in messages
        if each["role"] == "assistant"
        for call in each.get("tool_calls", ())
    ]
    return messages


async def agent(sdk: MistralSdk, client: Any) -> Any:
    """An agent's completion, whose system prompt is at the server; plain and streamed."""
    asked = {"agent_id": "ag_1", "messages": ASK["messages"][1:]}
    found = await sdk.result(sdk.method(client.agents, "complete")(**asked))
    chunks = await sdk.data(sdk.method(client.agents, "stream")(**asked))
    return [dump(found), together(chunks)]


async def fill(sdk: MistralSdk, client: Any) -> Any:
    """Code between a prompt and a suffix, which has no system prompt; plain and streamed."""
    asked = {"model": "stand-in-code", "prompt": "def f(a): ", "suffix": "\nprint(f(1))"}
    found = await sdk.result(sdk.method(client.fim, "complete")(**asked))
    chunks = await sdk.data(sdk.method(client.fim, "stream")(**asked))
    return [dump(found), together(chunks)]


async def conversation(sdk: MistralSdk, client: Any) -> Any:
    """A conversation that the server keeps, and that goes on."""
    asked = {"model": "stand-in-large", "instructions": SYSTEM["content"]}
    start, append = (sdk.method(client.beta.conversations, name) for name in ("start", "append"))
    first = await sdk.result(start(**asked, inputs="What is a café?"))
    last = await sdk.result(append(conversation_id=first.conversation_id, inputs="And tea?"))
    assert HARD in last.outputs[0].content
    return [dump(first), dump(last)]


async def conversation_streamed(sdk: MistralSdk, client: Any) -> Any:
    """The same, streamed, with a call whose arguments come in pieces."""
    conversations = client.beta.conversations
    start, append = (sdk.method(conversations, name) for name in ("start_stream", "append_stream"))
    asked = {"model": "stand-in-large", "instructions": SYSTEM["content"], "tools": [WEATHER]}
    events = await sdk.data(start(**asked, inputs="How is the weather?"))
    pieces = [event for event in events if event.type == "function.call.delta"]
    assert {"city": "Paris"} == json.loads("".join(event.arguments for event in pieces))
    result = {"type": "function.result", "tool_call_id": pieces[0].tool_call_id, "result": "Rain."}
    more = await sdk.data(append(conversation_id=events[0].conversation_id, inputs=[result]))
    text = "".join(event.content for event in more if event.type == "message.output.delta")
    assert HARD in text
    return [dump(events[0]), dump(pieces[-1])["id"], text, dump(more[0]), dump(more[-1])]


async def ocr(sdk: MistralSdk, client: Any) -> Any:
    """A document that is read: a call that has no table, and no system prompt."""
    document = {"type": "document_url", "document_url": "https://example.com/a.pdf"}
    return dump(await sdk.result(sdk.method(client.ocr, "process")(model="stand-in-ocr", document=document)))


TALKS = (plain, streamed, turns, turns_streamed, agent, fill, conversation, conversation_streamed, ocr)


def dump(value: Any) -> Any:
    """Return an object of the SDK as plain data."""
    return value.model_dump(mode="json", by_alias=True)


def together(chunks: list[Any]) -> dict[str, Any]:
    """Return the message that chunks come to."""
    message: dict[str, Any] = {"role": "assistant"}
    for chunk in chunks:
        delta = dump(chunk.choices[0].delta)
        if delta.get("tool_calls"):
            message.setdefault("tool_calls", []).extend(delta["tool_calls"])
        content = delta.get("content") or ""
        before = message.get("content", "")
        if isinstance(content, list):
            thought = before[0]["thinking"][0]["text"] if before else ""
            thought += content[0]["thinking"][0]["text"]
            parts = [{"type": "text", "text": thought}]
            message["content"] = [{"type": "thinking", "thinking": parts, "closed": True}]
        elif isinstance(before, str):
            message["content"] = before + content
        elif content:
            text = "".join(part.get("text", "") for part in before) + content
            message["content"] = [before[0], {"type": "text", "text": text}]
    return message


def results(calls: Any) -> list[dict[str, Any]]:
    """Return what the tools say to calls."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "name": call["function"]["name"],
            "content": f"It rains in {json.loads(call['function']['arguments'])['city']}.",
        }
        for call in calls or ()
    ]


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: MistralSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: MistralSdk, server: StandInServer
) -> None:
    """All of it in one cassette, streams assembled: no answer is mistaken for another."""
    lines = await check_replayed_as_a_whole(sdk, server, TALKS)

    assert {"openai-chat", "mistral", "mistral-conversations", "generic"} == {
        line["dialect"] for line in lines
    }
    assert {"assembled"} == {line["response"].get("stored", "assembled") for line in lines}


async def test_a_changed_system_prompt_misses(sdk: MistralSdk, server: StandInServer) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        await streamed(sdk, client)
    calls = server.calls
    changed = {"role": "system", "content": "You are a careless assistant."}
    asked = {**ASK, "messages": [changed, *ASK["messages"][1:]]}
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss):
                try:
                    await sdk.data(sdk.method(client.chat, "stream")(**asked))
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert ("messages[0].content",) == tuple(path.removeprefix("body.") for path in missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


@pytest.mark.parametrize("kind", ["chat", "conversation"])
async def test_a_call_without_a_system_prompt_is_stopped(
    sdk: MistralSdk, server: StandInServer, kind: str
) -> None:
    """The guard goes through the SDK as a miss does, and the server is not asked."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            if kind == "chat":
                asked = {**ASK, "messages": ASK["messages"][1:]}
                await sdk.result(sdk.method(client.chat, "complete")(**asked))
            else:
                start = sdk.method(client.beta.conversations, "start")
                await sdk.result(start(model="stand-in-large", inputs="Hello?"))

    assert 0 == server.calls
