"""The openai SDK records Responses against a server, the server is stopped, and everything is replayed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pydantic
import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss

from ._openai import Sdk, user
from ._responses_server import ResponsesServer

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK's client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator 'httpcore2?[.]:ResourceWarning"),
    # openai 2 says so of parsed answers, whose types it made itself.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[Sdk, Any], Awaitable[Any]]

INSTRUCTIONS = "You are a careful assistant."
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
ASK: dict[str, Any] = {"model": "gpt-5", "instructions": INSTRUCTIONS, "tools": [WEATHER]}


class Forecast(pydantic.BaseModel):
    """What structured output is parsed into."""

    city: str
    degrees: int


@pytest.fixture
def server(loopback: None) -> Iterator[ResponsesServer]:
    """Give a server that answers in this format."""
    server = ResponsesServer()
    server.start()
    yield server
    server.close()


@pytest.fixture
def sdk(colour: str, server: ResponsesServer, cassette: Path) -> Any:
    """Give the openai SDK in one colour, talking to the server."""
    return Sdk(colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


async def create(sdk: Sdk, client: Any, **asked: Any) -> Any:
    """One answer in one piece."""
    return await sdk.result(client.responses.create(**asked))


async def stream(sdk: Sdk, client: Any, **asked: Any) -> Any:
    """One answer from its last event, whose text came piece by piece before."""
    events = await sdk.items(await sdk.result(client.responses.create(**asked, stream=True)))
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert events[-1].response.output_text == said
    return events[-1].response


async def helper(sdk: Sdk, client: Any, **asked: Any) -> Any:
    """One answer of the helper that accumulates a stream."""
    async with sdk.opened(client.responses.stream(**asked)) as opened:
        await sdk.items(opened)
        return await sdk.result(opened.get_final_response())


def results(response: Any) -> list[Any]:
    """Return what the tools say to an answer's calls."""
    calls = [item for item in response.output if item.type == "function_call"]
    assert ["Paris", "Oslo"] == [json.loads(call.arguments)["city"] for call in calls]
    return [
        {"type": "function_call_output", "call_id": call.call_id, "output": f"Rain in {call.arguments}."}
        for call in calls
    ]


def three_turns(ask: Any, echo: Callable[[Any], list[Any]]) -> Talk:
    """Return a conversation of three turns, with tools and thinking, the history sent by the program."""

    async def talk(sdk: Sdk, client: Any) -> Any:
        items: list[Any] = [user("What is the weather in Paris and Oslo?")]
        first = await ask(sdk, client, **ASK, input=items)
        items += [*echo(first), *results(first)]
        second = await ask(sdk, client, **ASK, input=items)
        assert "Rain in" in second.output_text
        items += [*echo(second), user("Thanks!")]
        third = await ask(sdk, client, **ASK, input=items)
        return [response.to_dict() for response in (first, second, third)]

    return talk


async def by_name(sdk: Sdk, client: Any) -> Any:
    """The same with the history kept by the server."""
    first = await create(sdk, client, **ASK, input="What is the weather in Paris and Oslo?")
    second = await stream(sdk, client, **ASK, previous_response_id=first.id, input=results(first))
    third = await create(sdk, client, model="gpt-5", previous_response_id=second.id, input="Thanks!")
    return [response.to_dict() for response in (first, second, third)]


async def parsed(sdk: Sdk, client: Any) -> Any:
    """Structured output, plain, streamed, and sent back."""
    asked = {
        "model": "gpt-5",
        "instructions": INSTRUCTIONS,
        "input": [user("Paris?")],
        "text_format": Forecast,
    }
    plain = await sdk.result(client.responses.parse(**asked))
    streamed = await helper(sdk, client, **asked)
    assert Forecast(city="Paris", degrees=20) == plain.output_parsed == streamed.output_parsed
    asked["input"] = [*asked["input"], *plain.output, user("And Oslo?")]
    answers = [plain, streamed, await sdk.result(client.responses.parse(**asked))]
    return [answer.to_dict() for answer in answers]


async def in_the_background(sdk: Sdk, client: Any) -> Any:
    """An answer that is polled, and whose stream is taken up in its middle."""
    asked = {"model": "gpt-5", "instructions": INSTRUCTIONS, "input": "Take your time.", "background": True}
    states = [await create(sdk, client, **asked)]
    while states[-1].status != "completed":
        states.append(await sdk.result(client.responses.retrieve(states[0].id)))
    taken_up = client.responses.retrieve(states[0].id, stream=True, starting_after=5)
    events = await sdk.items(await sdk.result(taken_up))
    assert ["queued", "in_progress", "completed"] == [state.status for state in states]
    assert [*range(6, 6 + len(events))] == [event.sequence_number for event in events]
    said = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    return [*(state.to_dict() for state in states), said, events[-1].to_dict()["response"]]


async def stored_prompt(sdk: Sdk, client: Any) -> Any:
    """A system prompt that the server has."""
    prompt = {"id": "pmpt_1", "version": "2", "variables": {"city": "Paris"}}
    return (await create(sdk, client, model="gpt-5", prompt=prompt, input="Hello.")).to_dict()


async def raw_lines(sdk: Sdk, client: Any) -> Any:
    """A body that is read line by line, as it comes."""
    asked = client.responses.with_streaming_response.create(model="m", instructions=INSTRUCTIONS, input="Hi.")
    async with sdk.opened(asked) as response:
        return json.loads("".join(await sdk.items(response.iter_lines())))


def as_objects(response: Any) -> list[Any]:
    return list(response.output)


def as_dumped(response: Any) -> list[Any]:
    return [item.model_dump(exclude_none=True) for item in response.output]


TALKS: dict[str, Talk] = {
    "plain": three_turns(create, as_objects),
    "plain-dumped": three_turns(create, as_dumped),
    "streamed": three_turns(stream, as_objects),
    "helper": three_turns(helper, as_objects),
    "by-name": by_name,
    "parsed": parsed,
    "background": in_the_background,
    "stored-prompt": stored_prompt,
    "raw-lines": raw_lines,
}


@pytest.mark.parametrize("name", TALKS)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: Sdk, server: ResponsesServer, name: str
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    talk = TALKS[name]
    async with sdk.client("record") as client:
        recorded = await talk(sdk, client)
    calls = server.calls
    async with sdk.client("record") as client:
        # What is there is not asked for again.
        again = await talk(sdk, client)
    assert calls == server.calls
    server.close()
    async with sdk.client("replay", chunk_size=2, noise=True) as client:
        replayed = await talk(sdk, client)

    assert [recorded, recorded] == [again, replayed]
    assert 0 == sdk.transport.stats.live


async def test_conversations_of_one_cassette_are_told_apart(sdk: Sdk, server: ResponsesServer) -> None:
    """No answer is mistaken for another; streamed and plain ones never mix."""
    async with sdk.client("record") as client:
        recorded = [await talk(sdk, client) for talk in TALKS.values()]
    server.close()
    async with sdk.client("replay") as client:
        replayed = [await talk(sdk, client) for talk in reversed(TALKS.values())]

    assert recorded == replayed[::-1]


async def test_a_new_answer_does_not_change_the_turns_after_it(sdk: Sdk, server: ResponsesServer) -> None:
    """The ids of another answer only tie it to what follows: the next turn is found all the same."""
    items = [user("What is the weather in Paris and Oslo?")]
    async with sdk.client("record") as client:
        first = await create(sdk, client, **ASK, input=items)
        second = await create(sdk, client, **ASK, input=[*items, *first.output[1:], *results(first)])
    async with sdk.client("live") as client:
        other = await create(sdk, client, **ASK, input=items)
    assert first.output[1].call_id != other.output[1].call_id
    async with sdk.client("replay") as client:
        found = await create(sdk, client, **ASK, input=[*items, *other.output[1:], *results(other)])

    assert second.to_dict() == found.to_dict()


# -- the miss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses(sdk: Sdk, server: ResponsesServer, is_stream: bool) -> None:
    """The SDK asks once, and an ``except Exception`` does not catch it."""
    ask = stream if is_stream else create
    asked = {"model": "gpt-5", "instructions": INSTRUCTIONS, "input": "Hello."}
    async with sdk.client("record") as client:
        await ask(sdk, client, **asked)
    calls = server.calls
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    await ask(sdk, client, **{**asked, "instructions": "You are a careless assistant."})
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    assert ("instructions",) == tuple(path.removeprefix("body.") for path in missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


async def test_a_call_without_a_system_prompt_is_stopped(sdk: Sdk, server: ResponsesServer) -> None:
    """The guard goes through the SDK as a miss does, and the server is not asked."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            await create(sdk, client, model="gpt-5", input="Hello?")

    assert 0 == server.calls


# -- the end of a stream -------------------------------------------------------------------------------


async def test_a_stream_is_stored_before_its_last_event_is_handed_on(
    sdk: Sdk, server: ResponsesServer
) -> None:
    """Many programs never read past it and never close: the recording must be there by then."""
    asked = {"model": "gpt-5", "instructions": INSTRUCTIONS, "input": "Hello.", "stream": True}
    async with sdk.client("record") as client:
        events = await sdk.result(client.responses.create(**asked))
        stored = []
        kind = ""
        while kind != "response.completed":
            kind = (await sdk.next(events)).type
            stored.append(sdk.lines())
        await sdk.result(events.close())

    assert [0] * (len(stored) - 1) == stored[:-1]
    assert 1 == stored[-1]


async def test_a_stream_that_is_left_early_is_not_stored(sdk: Sdk) -> None:
    """All of its text is not the answer."""
    asked = {"model": "gpt-5", "instructions": INSTRUCTIONS, "input": "Hello.", "stream": True}
    async with sdk.client("record") as client:
        events = await sdk.result(client.responses.create(**asked))
        while (await sdk.next(events)).type != "response.output_item.done":
            pass
        await sdk.result(events.close())

    assert (0, {"abandoned": 1}) == (sdk.lines(), sdk.transport.stats.unrecorded)
