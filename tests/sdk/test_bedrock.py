"""Clients of Bedrock record against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import pytest

from httpx_cassette import CassetteMiss, SystemPromptMissing, expected_miss
from httpx_cassette.stand_in import Asked, Reply, StandInServer
from tests.aws_messages import EVENTSTREAM, chunk, exception

from ._anthropic import HARD as HARD_MESSAGE
from ._bedrock import ACCESS_KEY, HARD, SECRET_KEY, SESSION_TOKEN, BedrockSdk, answer
from ._replaying import check_replayed, check_replayed_as_a_whole

pytest.importorskip("boto3", reason="boto3, which signs, is not installed here")

import httpx2  # what the SDK is built on where boto3 is
from botocore.eventstream import EventStreamBuffer

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK's client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator 'httpcore2?[.]:ResourceWarning"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[BedrockSdk, Any], Awaitable[Any]]

SYSTEM = "You are a careful assistant."

ASK: dict[str, Any] = {
    "model": "anthropic.claude-stand-in-v1:0",
    "max_tokens": 2000,
    "system": SYSTEM,
    "messages": [{"role": "user", "content": "What is a café?"}],
}

TALK: dict[str, Any] = {
    **ASK,
    "messages": [{"role": "user", "content": "How is the weather?"}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [
        {
            "name": "get_weather",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        }
    ],
}

CONVERSE = {"system": [{"text": SYSTEM}], "messages": [{"role": "user", "content": [{"text": "A café?"}]}]}


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as Bedrock does."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Any) -> BedrockSdk:
    """Give the client in one colour, talking to the server."""
    return BedrockSdk(colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


async def plain(sdk: BedrockSdk, client: Any) -> Any:
    """One answer in one piece."""
    message = await sdk.result(client.messages.create(**ASK))
    assert HARD_MESSAGE in message.content[0].text
    return message.to_dict()


async def streamed(sdk: BedrockSdk, client: Any) -> Any:
    """One answer as a stream, read event by event."""
    events = await sdk.items(await sdk.result(client.messages.create(**ASK, stream=True)))
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    assert HARD_MESSAGE in text
    return [text, events[0].to_dict(), events[-2].to_dict(), events[-1].to_dict()]


async def conversation(sdk: BedrockSdk, client: Any) -> Any:
    """Three turns with thinking and tools, plain; the answers go back as the SDK gave them."""
    return await _converse(sdk, client, is_streamed=False)


async def conversation_streamed(sdk: BedrockSdk, client: Any) -> Any:
    """The same, streamed."""
    return await _converse(sdk, client, is_streamed=True)


async def _converse(sdk: BedrockSdk, client: Any, *, is_streamed: bool) -> list[Any]:
    messages = [*TALK["messages"]]
    said = []
    for _ in range(3):
        asked = {**TALK, "messages": messages}
        if is_streamed:
            async with sdk.opened(client.messages.stream(**asked)) as stream:
                message = await sdk.result(stream.get_final_message())
        else:
            message = await sdk.result(client.messages.create(**asked))
        said.append(message.to_dict())
        messages.append({"role": "assistant", "content": message.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"It rains in {block.input['city']}."}
            for block in message.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results or "And then?"})
    assert ["tool_use", "end_turn", "end_turn"] == [message["stop_reason"] for message in said]
    return said


async def converse(sdk: BedrockSdk, client: Any) -> Any:
    """Converse, called with a client of httpx2 alone and a key of Bedrock's own."""
    response = await _post(sdk, "converse")
    document = response.json()
    assert HARD in document["output"]["message"]["content"][0]["text"]
    return document


async def converse_stream(sdk: BedrockSdk, client: Any) -> Any:
    """The same, streamed, and read with botocore."""
    buffer = EventStreamBuffer()
    buffer.add_data((await _post(sdk, "converse-stream")).content)
    said = [(event.headers[":event-type"], json.loads(event.payload)) for event in buffer]
    text = "".join(members["delta"]["text"] for kind, members in said if kind == "contentBlockDelta")
    assert HARD in text
    return [text, said[-1][0], said[-1][1]["usage"]]


async def _post(sdk: BedrockSdk, called: str) -> Any:
    url = f"{sdk.url}/model/stand-in-v1%3A0/{called}"
    headers = {"authorization": f"Bearer ABSK{'k' * 60}"}
    make_client: Any = httpx2.AsyncClient if sdk.is_async else httpx2.Client
    # The transport is the client's that is open, and is left to it.
    client = make_client(transport=sdk.transport)
    return await sdk.result(client.post(url, json=CONVERSE, headers=headers))


TALKS = (plain, streamed, conversation, conversation_streamed, converse, converse_stream)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: BedrockSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: BedrockSdk, server: StandInServer
) -> None:
    """All of it in one cassette, streams assembled; nothing with which a call was signed is in it."""
    read = await check_replayed_as_a_whole(sdk, server, TALKS)
    kinds = {(each["dialect"], each["response"].get("stored", "plain")) for each in read}
    written = sdk.cassette.read_text(encoding="utf-8")

    assert {
        (dialect, kind) for dialect in ("anthropic-messages", "bedrock") for kind in ("plain", "assembled")
    } == kinds
    assert {"eventstream", None} == {each["response"].get("framing") for each in read}
    for secret in (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN, "AWS4-HMAC-SHA256", "x-amz-", "ABSKkkk"):
        assert secret not in written


# -- what goes wrong -----------------------------------------------------------------------------------


async def test_a_changed_system_prompt_misses_straight_through_the_retries(
    sdk: BedrockSdk, server: StandInServer
) -> None:
    """The SDK retries what it takes for a connection error; a miss is none."""
    async with sdk.client("record") as client:
        await streamed(sdk, client)
    server.close()
    async with sdk.client("replay") as client:
        with expected_miss() as miss:
            with pytest.raises(CassetteMiss):
                await sdk.result(client.messages.create(**{**ASK, "system": "You are terse."}, stream=True))

    assert miss.changed == ("system",)
    assert 1 == sdk.transport.stats.missed


async def test_a_call_without_a_system_prompt_is_stopped(sdk: BedrockSdk, server: StandInServer) -> None:
    """Before anything else happens."""
    asked = {name: value for name, value in ASK.items() if name != "system"}
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(SystemPromptMissing) as stopped:
            await sdk.result(client.messages.create(**asked, stream=True))

    assert ("anthropic-messages", 0) == (stopped.value.dialect, server.calls)


async def test_an_exception_in_the_stream_is_the_callers_and_is_not_stored(
    colour: str, loopback: None, cassette: Any
) -> None:
    """The SDK raises it; the next call is a real one."""

    def fail(asked: Asked, nth: int) -> Reply:
        begun = {"type": "message_start", "message": {"id": "a", "usage": {}, "content": []}}
        return Reply(
            200,
            chunk(begun) + exception("throttlingException", "Slow down."),
            {"content-type": EVENTSTREAM},
        )

    with StandInServer(answer=fail) as server:
        sdk = BedrockSdk(colour != "sync", server.url, cassette)
        async with sdk.client("record", max_retries=0) as client:
            stream = await sdk.result(client.messages.create(**ASK, stream=True))
            with pytest.raises(Exception, match=r"Slow down[.]"):
                await sdk.items(stream)

    assert {"failed": 1} == sdk.transport.stats.unrecorded
    assert not cassette.exists() or b"" == cassette.read_bytes()
