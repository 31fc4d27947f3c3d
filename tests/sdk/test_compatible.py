"""SDKs of OpenAI's chat format record against a server, the server is stopped, and all of it is replayed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import StandInServer
from tests.blocks import is_installed

from ._compatible import HARD, KINDS, CompatibleSdk, Kind, answer_as
from ._openai import SYSTEM, user
from ._replaying import check_replayed, check_replayed_as_a_whole

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDKs and their clients, with and without a cassette.
    pytest.mark.filterwarnings(
        "ignore:Async generator '(httpcore|groq|together|fireworks|cerebras|huggingface_hub)2?[.]"
        ":ResourceWarning"
    ),
]

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[CompatibleSdk, Any], Awaitable[Any]]

ASK: dict[str, Any] = {"model": "stand-in", "messages": [SYSTEM, user("What is a café?")]}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tell how the weather is.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}

INSTALLED = [kind for kind in KINDS if is_installed(f"{kind.distribution}>=0")]


@pytest.fixture(params=["sync", "asyncio"])
def colour(request: pytest.FixtureRequest) -> str:
    """Run each test with both clients; of trio these SDKs know nothing, and openai is tried under it."""
    return str(request.param)


@pytest.fixture(params=INSTALLED, ids=lambda kind: kind.distribution)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Run each test with each of the SDKs."""
    return request.param  # type: ignore[no-any-return]  # pytest does not know of what


@pytest.fixture
def server(kind: Kind, loopback: None) -> Iterator[StandInServer]:
    """Give a server that answers as the one of the SDK does."""
    with StandInServer(answer=answer_as(kind)) as server:
        yield server


@pytest.fixture
def sdk(kind: Kind, colour: str, server: StandInServer, cassette: Path) -> CompatibleSdk:
    """Give one of the SDKs in one colour, talking to the server."""
    return CompatibleSdk(kind, colour != "sync", server.url, cassette)


# -- conversations -------------------------------------------------------------------------------------


async def plain(sdk: CompatibleSdk, client: Any) -> Any:
    """One answer in one piece."""
    answer = await sdk.result(client.chat.completions.create(**ASK))
    assert HARD in answer.choices[0].message.content
    return answer


async def streamed(sdk: CompatibleSdk, client: Any) -> Any:
    """One answer as a stream."""
    chunks = await sdk.items(await sdk.result(client.chat.completions.create(**ASK, stream=True)))
    message = _joined(chunks)
    assert HARD in message["content"]
    return [message, chunks[0].id, chunks[-1]]


async def conversation(sdk: CompatibleSdk, client: Any) -> Any:
    """Three turns with two calls of a tool, plain."""
    return await _converse(sdk, client, is_streamed=False)


async def conversation_streamed(sdk: CompatibleSdk, client: Any) -> Any:
    """The same, streamed."""
    return await _converse(sdk, client, is_streamed=True)


async def _converse(sdk: CompatibleSdk, client: Any, *, is_streamed: bool) -> list[Any]:
    messages: list[Any] = [SYSTEM, user("How is the weather in Paris and in Oslo?")]
    said = []
    for _ in range(3):
        asked = {"model": "stand-in", "messages": messages, "tools": [WEATHER], "stream": is_streamed}
        answer = await sdk.result(client.chat.completions.create(**asked))
        if is_streamed:
            message = _joined(await sdk.items(answer))
        else:
            message = _message(answer.choices[0].message)
        said.append(message)
        messages.append({name: value for name, value in message.items() if value})
        calls = message["tool_calls"]
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "Rain."} for call in calls] or [
            user("And then?")
        ]
    assert [2, 0, 0] == [len(message["tool_calls"]) for message in said]
    assert ['{"city": "Paris"}', '{"city": "Oslo"}'] == [
        call["function"]["arguments"] for call in said[0]["tool_calls"]
    ]
    return said


def _message(message: Any) -> dict[str, Any]:
    """Return a message as users send it back."""
    return {
        "role": "assistant",
        "content": message.content or "",
        "tool_calls": [_call(call) for call in message.tool_calls or ()],
    }


def _joined(chunks: list[Any]) -> dict[str, Any]:
    """Return the message that a stream comes to, as users put it together; these SDKs join nothing."""
    content = ""
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["id"] += piece.id or ""
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""
    return {"role": "assistant", "content": content, "tool_calls": [*calls.values()]}


def _call(call: Any) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


TALKS = (plain, streamed, conversation, conversation_streamed)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: CompatibleSdk, server: StandInServer, talk: Talk
) -> None:
    """Whatever is asked, the answer is the recorded one, and nothing is sent."""
    await check_replayed(sdk, server, talk)


async def test_a_conversation_is_recorded_once_and_replayed_as_a_whole(
    sdk: CompatibleSdk, server: StandInServer
) -> None:
    """All of it in one cassette, streams assembled: no answer is mistaken for another."""
    read = await check_replayed_as_a_whole(sdk, server, TALKS)

    assert {"openai-chat"} == {recording["dialect"] for recording in read}
    assert {"plain", "assembled"} == {recording["response"].get("stored", "plain") for recording in read}


# -- the miss ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses_straight_through_the_retries(
    sdk: CompatibleSdk, server: StandInServer, stream: bool
) -> None:
    """The SDK asks once, does not wrap the error, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        given = await sdk.result(client.chat.completions.create(**ASK, stream=stream))
        if stream:
            await sdk.items(given)
    calls = server.calls
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
    assert ("messages[0].content",) == tuple(missed.changed)
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


async def test_a_call_without_a_system_prompt_is_stopped(sdk: CompatibleSdk, server: StandInServer) -> None:
    """The guard goes through the SDK as a miss does, and the server is not asked."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no system prompt"):
            await sdk.result(client.chat.completions.create(model="stand-in", messages=[user("hi")]))

    assert 0 == server.calls


# -- the exit status, at the address that the SDK calls by itself ----------------------------------------

HTTP_CLIENTS = """
from {module} import {client}, {async_client}, DefaultAsyncHttpxClient, DefaultHttpxClient
from httpx_cassette import CassetteTransport

client = {client}(api_key="any", http_client=DefaultHttpxClient(transport=CassetteTransport("none.jsonl")))
async_client = {async_client}(
    api_key="any", http_client=DefaultAsyncHttpxClient(transport=CassetteTransport("none.jsonl"))
)
"""

#: Another key than one of its own it would send to no router.
FACTORIES = """
import httpx2
from huggingface_hub import {client}, {async_client}, set_async_client_factory, set_client_factory
from httpx_cassette.httpx2 import CassetteTransport

set_client_factory(lambda: httpx2.Client(transport=CassetteTransport("none.jsonl")))
set_async_client_factory(lambda: httpx2.AsyncClient(transport=CassetteTransport("none.jsonl")))
client, async_client = {client}(api_key="hf_any"), {async_client}(api_key="hf_any")
"""

STREAMED_AND_SWALLOWED = """
import asyncio

asked = {
    "model": "some/model",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}],
}
try:
    try:
        for chunk in client.chat.completions.create(**asked, stream=True):
            print(chunk)
    except Exception as error:
        print("wrapped", error)
except:
    pass


async def main():
    calls = (async_client.chat.completions.create(**asked) for _ in range(2))
    await asyncio.gather(*calls, return_exceptions=True)


asyncio.run(main())
"""


@pytest.mark.parametrize("kind", INSTALLED, ids=lambda kind: kind.distribution)
def test_a_program_that_misses_ends_with_2(tmp_path: Path, kind: Kind) -> None:
    """Whatever it catches. It says what was asked, each once: no retry, and no probe that an SDK makes."""
    set_up = FACTORIES if kind.library == "httpx2" else HTTP_CLIENTS
    client, async_client = kind.client
    head = set_up.format(module=kind.module, client=client, async_client=async_client)
    ended = run(tmp_path, head + STREAMED_AND_SWALLOWED)
    reports = [line for line in ended.stderr.splitlines() if line.startswith("no recording for ")]

    assert 2 == ended.returncode, ended.stderr
    assert [f"no recording for POST {kind.called} in none.jsonl"] * 2 == reports
    assert "" == ended.stdout


#: The async client of fireworks makes its calls there, where it is given no other.
THROUGH_AIOHTTP = """
import asyncio
import fireworks
from httpx_cassette import use_cassette


async def main():
    async with fireworks.AsyncFireworks(api_key="any") as client:
        await client.chat.completions.create(model="some/model", messages=[])


with use_cassette("none.jsonl", guard=True):
    asyncio.run(main())
"""


def test_calls_through_aiohttp_are_refused_under_a_guard(tmp_path: Path) -> None:
    """No transport sees them, and they are told by the host that they went for."""
    pytest.importorskip("fireworks", reason="fireworks-ai is not installed here; nox -s sdk has it")
    ended = run(tmp_path, THROUGH_AIOHTTP)
    told = "a connection to api.fireworks.ai:443 was refused: it goes round the cassette that is replayed"

    assert 2 == ended.returncode, ended.stderr
    assert told in ended.stderr.splitlines()


def run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    # Not the ledger of this process: the misses are the program's own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HTTPX_CASSETTE")}
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        # What the hub said of agents is kept there for a day: without it, it is asked again.
        env={**environment, "HF_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
