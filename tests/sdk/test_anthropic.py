"""The anthropic SDK records against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import anthropic
import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import Asked, Reply, StandInServer

from ._anthropic import HARD, IS_ON_HTTPX2, SIGNATURE, AnthropicSdk, answer
from ._replaying import check_replayed, check_replayed_as_a_whole

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK's client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator 'httpcore2?[.]:ResourceWarning"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[AnthropicSdk, Any], Awaitable[Any]]

SYSTEM = "You are a careful assistant."

ASK: dict[str, Any] = {
    "model": "stand-in-large",
    "max_tokens": 2000,
    "system": SYSTEM,
    "messages": [{"role": "user", "content": "What is a café?"}],
}

WEATHER = {
    "name": "get_weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}

TALK: dict[str, Any] = {
    **ASK,
    "messages": [{"role": "user", "content": "How is the weather?"}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "tools": [
        {
            "name": "get_weather",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
        {"type": "web_search_20250305", "name": "web_search"},
    ],
}


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as Anthropic does."""
    with StandInServer(answer=answer) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Path) -> AnthropicSdk:
    """Give the anthropic SDK in one colour, talking to the server."""
    return AnthropicSdk(colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


async def plain(sdk: AnthropicSdk, client: Any) -> Any:
    """One answer in one piece."""
    message = await sdk.result(client.messages.create(**ASK))
    assert HARD in message.content[0].text
    return message.to_dict()


async def streamed(sdk: AnthropicSdk, client: Any) -> Any:
    """One answer as a stream, read event by event."""
    stream = await sdk.result(client.messages.create(**ASK, stream=True))
    events = await sdk.items(stream)
    text = "".join(event.delta.text for event in events if event.type == "content_block_delta")
    assert HARD in text
    return [text, events[0].to_dict(), events[-2].to_dict(), events[-1].to_dict()]


async def stream_helper(sdk: AnthropicSdk, client: Any) -> Any:
    """The helper that accumulates a stream."""
    async with sdk.opened(client.messages.stream(**ASK)) as stream:
        text = "".join(await sdk.items(stream.text_stream))
        final = await sdk.result(stream.get_final_message())
    assert final.content[0].text == text
    return final.to_dict()


async def beta(sdk: AnthropicSdk, client: Any) -> Any:
    """The beta API, with a beta of its own."""
    message = await sdk.result(client.beta.messages.create(**ASK, betas=["context-management-2025-06-27"]))
    return message.to_dict()


async def beta_stream(sdk: AnthropicSdk, client: Any) -> Any:
    """The helper of the beta API."""
    async with sdk.opened(client.beta.messages.stream(**ASK)) as stream:
        final = await sdk.result(stream.get_final_message())
    return final.to_dict()


async def count(sdk: AnthropicSdk, client: Any) -> Any:
    """A count of tokens, for which nobody needs a system prompt."""
    asked = {"model": ASK["model"], "messages": ASK["messages"]}
    return (await sdk.result(client.messages.count_tokens(**asked))).input_tokens


async def raw_response(sdk: AnthropicSdk, client: Any) -> Any:
    """The response itself."""
    response = await sdk.result(client.messages.with_raw_response.create(**ASK))
    message = await sdk.result(response.parse())
    return [response.headers["content-type"], message.to_dict()]


async def conversation(sdk: AnthropicSdk, client: Any) -> Any:
    """Three turns with thinking and tools, plain; the answers go back as the SDK gave them."""
    return await _converse(sdk, client, is_streamed=False)


async def conversation_streamed(sdk: AnthropicSdk, client: Any) -> Any:
    """The same, streamed."""
    return await _converse(sdk, client, is_streamed=True)


def _as_given(message: Any) -> Any:
    return message.content


async def _converse(
    sdk: AnthropicSdk, client: Any, *, is_streamed: bool, echo: Callable[[Any], Any] = _as_given
) -> list[Any]:
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
        messages.append({"role": "assistant", "content": echo(message)})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"It rains in {block.input['city']}."}
            for block in message.content
            if block.type == "tool_use"
        ]
        messages.append({"role": "user", "content": results or "And then?"})
    assert ["tool_use", "end_turn", "end_turn"] == [message["stop_reason"] for message in said]
    return said


TALKS = (
    plain,
    streamed,
    stream_helper,
    beta,
    beta_stream,
    count,
    raw_response,
    conversation,
    conversation_streamed,
)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: AnthropicSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: AnthropicSdk, server: StandInServer
) -> None:
    """All of it in one cassette, streams assembled: no answer is mistaken for another."""
    read = await check_replayed_as_a_whole(sdk, server, TALKS)
    dialects = [recording["dialect"] for recording in read]
    forms = {recording["response"].get("stored", "plain") for recording in read}

    # The count is not a message.
    assert {"anthropic-messages", "generic"} == set(dialects)
    assert (1, {"plain", "assembled"}) == (dialects.count("generic"), forms)


ECHOES: dict[str, Callable[[Any], Any]] = {
    "objects": _as_given,
    "dumped": lambda message: message.model_dump()["content"],
    "dumped-without-null": lambda message: message.model_dump(exclude_none=True)["content"],
    "dictionaries": lambda message: message.to_dict()["content"],
}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["plain", "streamed"])
async def test_an_answer_may_be_sent_back_in_any_way(
    sdk: AnthropicSdk, server: StandInServer, is_streamed: bool
) -> None:
    """As the SDK's objects, or dumped with every member that was not set, or without."""
    async with sdk.client("record") as client:
        recorded = await _converse(sdk, client, is_streamed=is_streamed)
    server.close()
    for echo in ECHOES.values():
        async with sdk.client("replay", chunk_size=1) as client:
            assert recorded == await _converse(sdk, client, is_streamed=is_streamed, echo=echo)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["plain", "streamed"])
async def test_signatures_come_back_to_the_byte(
    sdk: AnthropicSdk, server: StandInServer, is_streamed: bool
) -> None:
    """Replayed and sent back, a server would take them; what looks like a key in them stays."""
    seen: list[Any] = []

    def answer_and_note(asked: Asked, nth: int) -> Reply:
        seen.append(json.loads(asked.body)["messages"])
        return answer(asked, nth)

    with StandInServer(answer=answer_and_note) as other:
        sdk = AnthropicSdk(sdk.is_async, other.url, sdk.cassette)
        async with sdk.client("record") as client:
            await _converse(sdk, client, is_streamed=is_streamed)
        for mode in ("replay", "live"):
            async with sdk.client(mode) as client:
                said = await _converse(sdk, client, is_streamed=is_streamed)
    thought, redacted = said[0]["content"][0], said[1]["content"][0]

    assert thought["signature"].startswith(SIGNATURE[:-2])
    assert redacted["data"].startswith(SIGNATURE[:-2])
    assert SIGNATURE[:-2] in sdk.cassette.read_text(encoding="utf-8")
    assert seen[2][1]["content"][0]["signature"].startswith(SIGNATURE[:-2])


# -- the miss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses_straight_through_the_retries(
    sdk: AnthropicSdk, server: StandInServer, stream: bool
) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        given = await sdk.result(client.messages.create(**ASK, stream=stream))
        if stream:
            await sdk.items(given)
    calls = server.calls
    asked = {**ASK, "system": "You are a careless assistant.", "stream": stream}
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    await sdk.result(client.messages.create(**asked))
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    assert ("system",) == tuple(path.removeprefix("body.") for path in missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


@pytest.mark.parametrize("system", [{}, {"system": ""}, {"system": [{"type": "text", "text": " "}]}])
async def test_a_call_without_a_system_prompt_is_stopped(
    sdk: AnthropicSdk, server: StandInServer, system: dict[str, Any]
) -> None:
    """The guard goes through the SDK as a miss does, and the server is not asked."""
    asked = {name: value for name, value in ASK.items() if name != "system"}
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            await sdk.result(client.messages.create(**asked, **system))

    assert 0 == server.calls


# -- streams that end otherwise ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "stored"), [("content_block_delta", 0), ("message_delta", 1), ("message_stop", 1)]
)
async def test_a_stream_that_is_left_early_is_stored_if_it_had_its_reason_to_stop(
    sdk: AnthropicSdk, last: str, stored: int
) -> None:
    """Some clients never read ``message_stop``; what was abandoned before is not the answer."""
    async with sdk.client("record") as client:
        stream = await sdk.result(client.messages.create(**ASK, stream=True))
        while (await sdk.next(stream)).type != last:
            pass
        await sdk.result(stream.close())

    assert stored == sdk.lines()
    assert ({} if stored else {"abandoned": 1}) == sdk.transport.stats.unrecorded


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.loopback
async def test_an_error_in_the_stream_is_the_callers_and_is_not_stored(sdk: AnthropicSdk) -> None:
    """The status was 200, and the SDK raises all the same."""
    body = f"event: error\ndata: {json.dumps(OVERLOADED)}\n\n".encode()
    reply = Reply(200, body, {"content-type": "text/event-stream"})
    with StandInServer(answer=lambda asked, nth: reply) as server:
        sdk = AnthropicSdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
                await streamed(sdk, client)

    # anthropic 0.60 neither reads on nor closes, so that nobody learns what became of it.
    assert (0, 0) == (sdk.lines(), sdk.transport.stats.recorded)
    assert sdk.transport.stats.unrecorded in ({"failed": 1}, {})


@pytest.mark.loopback
async def test_an_answer_after_a_retry_is_what_is_stored(sdk: AnthropicSdk) -> None:
    """The refusal goes to the SDK, which asks again; only the success is kept."""
    refusal = Reply(529, json.dumps(OVERLOADED).encode(), {"retry-after-ms": "1"})
    with StandInServer(answer=lambda asked, nth: refusal if nth == 1 else answer(asked, nth)) as server:
        sdk = AnthropicSdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            recorded = await plain(sdk, client)
        stats, calls = sdk.transport.stats, server.calls
    async with sdk.client("replay") as client:
        replayed = await plain(sdk, client)

    assert recorded == replayed
    assert (2, 1, {"529": 1}) == (calls, stats.recorded, stats.unrecorded)


@pytest.mark.skipif(not IS_ON_HTTPX2, reason="anthropic 0 is built on httpx")
async def test_anthropic_2_refuses_a_transport_that_has_to_do_with_httpx(sdk: AnthropicSdk) -> None:
    """The transport for httpx2 has no ancestor there, and the other one says which import is right."""
    from httpx_cassette import CassetteTransport

    kinds: Any = (
        (anthropic.AsyncAnthropic, anthropic.DefaultAsyncHttpxClient)
        if sdk.is_async
        else (anthropic.Anthropic, anthropic.DefaultHttpxClient)
    )
    make_client, make_http_client = kinds
    with pytest.raises(TypeError, match="httpx"):
        make_client(
            api_key="any",
            http_client=make_http_client(transport=CassetteTransport(sdk.cassette, mode="record")),
        )
