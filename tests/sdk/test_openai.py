"""The openai SDK records against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import openai
import pydantic
import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import Reply, StandInServer

from ._openai import IS_ON_HTTPX2, SYSTEM, Sdk, user

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK's client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator 'httpcore2?[.]:ResourceWarning"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[Sdk, Any], Awaitable[Any]]

ASK: dict[str, Any] = {"model": "stand-in-large", "messages": [SYSTEM, user("What is a café?")]}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


class Forecast(pydantic.BaseModel):
    """What structured output is parsed into."""

    city: str
    degrees: int


# -- conversations -------------------------------------------------------------------------------------


async def plain(sdk: Sdk, client: Any) -> Any:
    """One answer in one piece."""
    answer = await sdk.result(client.chat.completions.create(**ASK))
    assert answer.choices[0].message.content
    return answer.to_dict()


async def streamed(sdk: Sdk, client: Any) -> Any:
    """One answer as a stream, of which the text and the last usage count."""
    options = {"include_usage": True}
    stream = await sdk.result(client.chat.completions.create(**ASK, stream=True, stream_options=options))
    chunks = await sdk.items(stream)
    assert chunks[-1].usage.total_tokens > 0
    return [_text(chunks, 0), chunks[-1].to_dict()]


async def stream_helper(sdk: Sdk, client: Any) -> Any:
    """The helper that accumulates a stream."""
    async with sdk.opened(client.chat.completions.stream(**ASK)) as stream:
        events = await sdk.items(stream)
        final = await sdk.result(stream.get_final_completion())
    said = "".join(event.delta for event in events if event.type == "content.delta")
    assert final.choices[0].message.content == said
    return final.to_dict()


async def several_choices(sdk: Sdk, client: Any) -> Any:
    """Two answers, plain."""
    answer = await sdk.result(client.chat.completions.create(**ASK, n=2))
    one, other = (choice.message.content for choice in answer.choices)
    assert one != other
    return answer.to_dict()


async def several_choices_streamed(sdk: Sdk, client: Any) -> Any:
    """Two answers, whose deltas come by turns."""
    chunks = await sdk.items(await sdk.result(client.chat.completions.create(**ASK, n=2, stream=True)))
    one, other = _text(chunks, 0), _text(chunks, 1)
    assert one != other
    return [one, other]


async def tools(sdk: Sdk, client: Any) -> Any:
    """A turn with parallel tool calls, streamed, then a turn with their results."""
    messages: list[Any] = [SYSTEM, user("What is the weather in Paris and Oslo?")]
    asked = {"model": "stand-in-large", "messages": messages, "tools": [WEATHER]}
    async with sdk.opened(client.chat.completions.stream(**asked)) as stream:
        first = (await sdk.result(stream.get_final_completion())).choices[0]
    assert first.finish_reason == "tool_calls"
    messages.append(first.message)
    for call in first.message.tool_calls:
        city = json.loads(call.function.arguments)["city"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"It rains in {city}."})
    last = await sdk.result(client.chat.completions.create(**asked))
    return [first.to_dict(), last.to_dict()]


async def tools_plain(sdk: Sdk, client: Any) -> Any:
    """The same with plain answers, the message dumped as many programs do."""
    messages: list[Any] = [SYSTEM, user("What is the weather in Lima?")]
    asked = {"model": "stand-in-large", "messages": messages, "tools": [WEATHER]}
    first = (await sdk.result(client.chat.completions.create(**asked))).choices[0].message
    messages.append(first.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "Fog."})
    last = await sdk.result(client.chat.completions.create(**asked))
    return [first.to_dict(), last.to_dict()]


async def parsed(sdk: Sdk, client: Any) -> Any:
    """Structured output, plain."""
    answer = await sdk.result(client.chat.completions.parse(**ASK, response_format=Forecast))
    assert isinstance(answer.choices[0].message.parsed, Forecast)
    return answer.choices[0].message.parsed


async def parsed_streamed(sdk: Sdk, client: Any) -> Any:
    """Structured output, streamed."""
    async with sdk.opened(client.chat.completions.stream(**ASK, response_format=Forecast)) as stream:
        final = await sdk.result(stream.get_final_completion())
    assert isinstance(final.choices[0].message.parsed, Forecast)
    return final.choices[0].message.parsed


async def embeddings(sdk: Sdk, client: Any) -> Any:
    """Vectors, which the SDK asks for in base64."""
    asked = {"model": "stand-in-small", "input": ["one text", "another"]}
    answer = await sdk.result(client.embeddings.create(**asked))
    one, other = (item.embedding for item in answer.data)
    assert one != other
    return [one, other]


async def models(sdk: Sdk, client: Any) -> Any:
    """A list, which is a GET, and a page that can be iterated."""
    return [model.to_dict() for model in (await sdk.result(client.models.list())).data]


async def upload(sdk: Sdk, client: Any) -> Any:
    """A file, whose body has another boundary each time."""
    file = ("notes.txt", b"some notes here", "text/plain")
    return (await sdk.result(client.files.create(file=file, purpose="assistants"))).to_dict()


async def raw_response(sdk: Sdk, client: Any) -> Any:
    """The response itself, with its headers and the request id."""
    response = await sdk.result(client.chat.completions.with_raw_response.create(**ASK))
    answer = await sdk.result(response.parse())
    assert response.status_code == 200
    return [response.headers["content-type"], response.headers["x-request-id"], answer.to_dict()]


async def streaming_response(sdk: Sdk, client: Any) -> Any:
    """A body that is read line by line, as it comes."""
    asked = client.chat.completions.with_streaming_response.create(**ASK)
    async with sdk.opened(asked) as response:
        lines = await sdk.items(response.iter_lines())
    return json.loads("".join(lines))


TALKS = (
    plain,
    streamed,
    stream_helper,
    several_choices,
    several_choices_streamed,
    tools,
    tools_plain,
    parsed,
    parsed_streamed,
    embeddings,
    models,
    upload,
    raw_response,
    streaming_response,
)


def _text(chunks: list[Any], index: int) -> str:
    deltas = (each.delta for chunk in chunks for each in chunk.choices if each.index == index)
    return "".join(delta.content or "" for delta in deltas)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: Sdk, stand_in: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    async with sdk.client("record") as client:
        recorded = await talk(sdk, client)
        # What is there is not asked for again.
        again = await talk(sdk, client)
    stand_in.close()
    async with sdk.client("replay", chunk_size=3) as client:
        replayed = await talk(sdk, client)

    assert [recorded, recorded] == [again, replayed]
    assert 0 == sdk.transport.stats.live


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: Sdk, stand_in: StandInServer
) -> None:
    """All of it in one cassette: no answer is mistaken for another."""
    async with sdk.client("record") as client:
        recorded = [await talk(sdk, client) for talk in TALKS]
    stand_in.close()
    async with sdk.client("replay") as client:
        replayed = [await talk(sdk, client) for talk in reversed(TALKS)]

    assert recorded == replayed[::-1]


# -- the miss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses_straight_through_the_retries(
    sdk: Sdk, stand_in: StandInServer, stream: bool
) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        answer = await sdk.result(client.chat.completions.create(**ASK, stream=stream))
        if stream:
            await sdk.items(answer)
    calls = stand_in.calls
    changed = {"role": "system", "content": "You are a careless assistant."}
    asked = {**ASK, "messages": [changed, *ASK["messages"][1:]], "stream": stream}
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    await sdk.result(client.chat.completions.create(**asked))
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    assert ("messages[0].content",) == tuple(path.removeprefix("body.") for path in missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, stand_in.calls)


async def test_a_call_without_a_system_prompt_is_stopped(sdk: Sdk, stand_in: StandInServer) -> None:
    """The guard goes through the SDK as a miss does, and the server is not asked."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            await sdk.result(client.chat.completions.create(model="m", messages=[user("Hello?")]))

    assert 0 == stand_in.calls


# -- streams that end otherwise ------------------------------------------------------------------------


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "lost"])
async def test_a_stream_that_is_left_early_is_not_stored(sdk: Sdk, is_closed: bool) -> None:
    """What was abandoned is not the answer; whether it is closed or only forgotten."""
    async with sdk.client("record") as client:
        stream = await sdk.result(client.chat.completions.create(**ASK, stream=True))
        await sdk.next(stream)
        if is_closed:
            await sdk.result(stream.close())
        del stream
        gc.collect()
    unrecorded = sdk.transport.stats.unrecorded

    assert (0, {"abandoned": 1}) == (sdk.lines(), unrecorded)


async def test_a_stream_is_stored_before_its_end_marker_is_handed_on(
    sdk: Sdk, stand_in: StandInServer
) -> None:
    """Many programs never read past it and never close: the recording must be there by then."""
    async with sdk.client("record") as client:
        asked = client.chat.completions.with_streaming_response.create(**ASK, stream=True)
        async with sdk.opened(asked) as response:
            lines = response.iter_lines()
            recorded: list[str] = []
            while not recorded or recorded[-1] != "data: [DONE]":
                recorded.append(await sdk.next(lines))
            stored = sdk.lines()
            del lines
    stand_in.close()
    async with sdk.client("replay") as client:
        chunks = await sdk.items(await sdk.result(client.chat.completions.create(**ASK, stream=True)))
    events = [json.loads(line.removeprefix("data: ")) for line in recorded[:-1] if line]
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in events)

    assert 1 == stored
    assert text == _text(chunks, 0)


# -- statuses ------------------------------------------------------------------------------------------

LIMIT = Reply(
    429,
    json.dumps({"error": {"message": "Slow down.", "type": "requests", "code": None}}).encode(),
    {"content-type": "application/json", "retry-after-ms": "1"},
)

LONG_LIMIT = LIMIT._replace(headers={"content-type": "application/json", "retry-after": "30"})

UNKNOWN_KEY = Reply(401, b'{"error":{"message":"Incorrect API key provided.","code":"invalid_api_key"}}')


@pytest.mark.loopback
async def test_an_answer_after_a_retry_is_what_is_stored(sdk: Sdk) -> None:
    """The refusal goes to the SDK, which asks again; only the success is kept."""
    with StandInServer(answer=lambda asked, nth: LIMIT if nth == 1 else None) as server:
        sdk = Sdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            recorded = await plain(sdk, client)
        stats, calls = sdk.transport.stats, server.calls
    async with sdk.client("replay") as client:
        replayed = await plain(sdk, client)

    assert recorded == replayed
    assert (2, 1, {"429": 1}) == (calls, stats.recorded, stats.unrecorded)
    assert (1, 1) == (sdk.lines(), sdk.transport.stats.replayed)


@pytest.mark.loopback
async def test_a_refusal_that_is_stored_on_request_is_replayed_without_waiting(sdk: Sdk) -> None:
    """The SDK neither sleeps for the server's half minute nor asks again."""
    with StandInServer(answer=lambda asked, nth: LONG_LIMIT) as server:
        sdk = Sdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record", max_retries=0, record_statuses=(200, "4xx")) as client:
            with pytest.raises(openai.RateLimitError, match="Slow down"):
                await plain(sdk, client)
    started = time.monotonic()
    async with sdk.client("replay") as client:
        with pytest.raises(openai.RateLimitError, match="Slow down"):
            await plain(sdk, client)
    took = time.monotonic() - started

    assert 1 == sdk.transport.stats.replayed
    assert took < 5


@pytest.mark.loopback
async def test_a_wrong_key_is_the_callers_and_is_not_stored(sdk: Sdk) -> None:
    """The SDK raises what it always raises."""
    with StandInServer(answer=lambda asked, nth: UNKNOWN_KEY) as server:
        sdk = Sdk(sdk.is_async, server.url, sdk.cassette)
        async with sdk.client("record") as client:
            with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
                await plain(sdk, client)
            calls = server.calls

    assert (1, 0, {"401": 1}) == (calls, sdk.lines(), sdk.transport.stats.unrecorded)


# -- the wrong library ---------------------------------------------------------------------------------


@pytest.mark.skipif(not IS_ON_HTTPX2, reason="without httpx2 there is no second library")
async def test_a_transport_of_the_other_library_says_which_import_is_right(sdk: Sdk) -> None:
    """The user sees the TypeError itself, not a connection error after three tries."""
    from httpx_cassette import CassetteTransport

    transport: Any = CassetteTransport(sdk.cassette, mode="record")
    kinds: Any = (
        (openai.AsyncOpenAI, openai.DefaultAsyncHttpx2Client)
        if sdk.is_async
        else (openai.OpenAI, openai.DefaultHttpx2Client)
    )
    make_client, make_http_client = kinds
    client = make_client(api_key="any", http_client=make_http_client(transport=transport))
    async with sdk.opened(client):
        with pytest.raises(TypeError, match=r"from httpx_cassette\.httpx2 import CassetteTransport"):
            await plain(sdk, client)


@pytest.mark.skipif(IS_ON_HTTPX2, reason="httpx2 is installed here")
async def test_without_httpx2_the_import_says_what_to_install(colour: str) -> None:
    """The extra is named."""
    with pytest.raises(ImportError, match=r"pip install 'httpx_cassette\[httpx2\]'"):
        import httpx_cassette.httpx2  # noqa: F401


@pytest.mark.skipif(not IS_ON_HTTPX2, reason="openai 2 knows httpx alone")
async def test_openai_3_takes_a_client_of_httpx_too(sdk: Sdk, stand_in: StandInServer) -> None:
    """Then the transport is httpx's, and the recordings are the same."""
    import httpx

    from httpx_cassette import CassetteTransport

    async with sdk.client("record") as client:
        recorded = [await talk(sdk, client) for talk in (plain, stream_helper)]
    stand_in.close()
    transport: Any = CassetteTransport(sdk.cassette)
    make_client: Any = openai.AsyncOpenAI if sdk.is_async else openai.OpenAI
    http_client = (httpx.AsyncClient if sdk.is_async else httpx.Client)(transport=transport)
    async with sdk.opened(
        make_client(api_key="any", base_url=stand_in.url, http_client=http_client)
    ) as client:
        replayed = [await talk(sdk, client) for talk in (plain, stream_helper)]

    assert recorded == replayed
