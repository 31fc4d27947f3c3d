"""google-genai records conversations against a server, the server is stopped, and all of it is replayed."""

from __future__ import annotations

import inspect
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from httpx_cassette import CassetteMiss, CassetteStop, expected_miss
from httpx_cassette.stand_in import Asked, Reply, StandInServer

genai = pytest.importorskip("google.genai", reason="google-genai is not installed here; nox -s sdk has it")

from google.genai import types  # noqa: E402 - only where it is installed

#: Since 3 it takes clients of httpx2, too.
LIBRARIES = ["httpx", "httpx2"] if int(genai.__version__.partition(".")[0]) >= 3 else ["httpx"]

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK and its client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator 'httpcore2?[.]:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Async generator 'google[.]genai[.]:ResourceWarning"),
    # Of the older SDK, about the names that it uses itself.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:google[.]genai"),
    pytest.mark.filterwarnings("ignore:Interactions usage is experimental:UserWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]

SYSTEM = "You are a careful assistant."

NOTES = b"some notes here\x00\r\n"

WEATHER = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="get_weather",
            parameters=types.Schema(
                type=types.Type.OBJECT, properties={"city": types.Schema(type=types.Type.STRING)}
            ),
        )
    ]
)


# -- the server ----------------------------------------------------------------------------------------


def answer(asked: Asked, nth: int) -> Reply:
    """Answer with thoughts, with calls where tools are offered for the first time, and with words."""
    if "/upload/" in asked.path:
        return _uploaded(asked)
    body = json.loads(asked.body)
    if asked.path.partition("?")[0].endswith("/interactions"):
        return _interaction(body, nth)
    last = body["contents"][-1]["parts"]
    usage = {"promptTokenCount": 9, "totalTokenCount": 9 + nth, "thoughtsTokenCount": nth}
    parts: list[dict[str, Any]] = [{"text": f"Let me think, {nth}.\n", "thought": True}]
    if body.get("tools") and "functionResponse" not in last[0]:
        for city in ("Paris", "Oslo"):
            call = {"id": f"call-{nth}-{city}", "name": "get_weather", "args": {"city": city}}
            signature = {"thoughtSignature": "c2lnbmF0dXJl"} if city == "Paris" else {}
            parts.append({"functionCall": call, **signature})
        parts.append({"text": ""})
    else:
        parts += [{"text": word} for word in (f"Answer {nth}: \n", "a café", ",\u2028東京", " 👩\u200d👧.")]
        parts.append({"text": "", "thoughtSignature": f"c2ln{nth:04}"})
    if ":streamGenerateContent" not in asked.path:
        content = {"role": "model", "parts": parts}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        return Reply(200, json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode())
    events = [
        {
            "candidates": [
                {
                    "content": {"role": "model", "parts": [part]},
                    "index": 0,
                    **({"finishReason": "STOP"} if number == len(parts) else {}),
                }
            ],
            "usageMetadata": usage,
            "responseId": f"r{nth}",
        }
        for number, part in enumerate(parts, 1)
    ]
    chunks = [b"data: " + json.dumps(event).encode() + b"\r\n\r\n" for event in events]
    return Reply(200, iter(chunks), {"content-type": "text/event-stream"})


def _uploaded(asked: Asked) -> Reply:
    """Tell where a file goes, or that all of it has come."""
    command = asked.headers["x-goog-upload-command"]
    if command == "start":
        where = f"http://{asked.headers['host']}{asked.path.partition('?')[0]}?upload_id=AB12"
        return Reply(200, b"", {"x-goog-upload-status": "active", "x-goog-upload-url": where})
    assert ("upload, finalize", NOTES) == (command, asked.body)
    assert asked.path.endswith("?upload_id=AB12")
    told = {"content-type": "application/json", "x-goog-upload-status": "final"}
    return Reply(200, b'{"file": {"name": "files/1", "mimeType": "text/plain"}}', told)


def _interaction(body: dict[str, Any], nth: int) -> Reply:
    words = [f"Answer {nth}: \n", "a café", ",\u2028東京"]
    whole = {
        "id": f"v1_{nth}",
        "object": "interaction",
        "model": "stand-in",
        "status": "completed",
        "created": "2026-01-01T00:00:00Z",
        "updated": "2026-01-01T00:00:01Z",
    }
    if not body.get("stream"):
        step = {"type": "model_output", "content": [{"type": "text", "text": "".join(words)}]}
        return Reply(200, json.dumps({**whole, "steps": [step], "outputs": step["content"]}).encode())
    events = [
        {"event_type": "interaction.created", "interaction": {**whole, "status": "in_progress"}},
        {"event_type": "step.start", "index": 0, "step": {"type": "model_output"}},
        *(
            {"event_type": "step.delta", "index": 0, "delta": {"type": "text", "text": word}}
            for word in words
        ),
        {"event_type": "step.stop", "index": 0},
        {"event_type": "interaction.completed", "interaction": whole},
    ]
    chunks = [f"event: {each['event_type']}\ndata: {json.dumps(each)}\n\n".encode() for each in events]
    headers = {"content-type": "text/event-stream"}
    return Reply(200, iter([*chunks, b"event: done\ndata: [DONE]\n\n"]), headers)


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give a server that speaks Google's format."""
    with StandInServer(answer=answer) as server:
        yield server


# -- the SDK -------------------------------------------------------------------------------------------


class Sdk:
    """Makes clients of one library in one colour, over one cassette."""

    def __init__(self, is_async: bool, library: str, server: StandInServer, cassette: Path) -> None:
        self.is_async = is_async
        self._library = library
        self._url = server.url.removesuffix("/v1")
        self._cassette = cassette
        self.transport: Any = None

    @asynccontextmanager
    async def client(self, mode: str, **options: Any) -> AsyncIterator[Any]:
        """Give a client in one mode, and close it."""
        if self._library == "httpx2":
            import httpx2 as library

            from httpx_cassette.httpx2 import CassetteTransport as Transport
        else:
            import httpx as library  # type: ignore[no-redef]

            from httpx_cassette import CassetteTransport as Transport  # type: ignore[assignment]

        self.transport = Transport(self._cassette, mode=mode, **options)
        http_client = (library.AsyncClient if self.is_async else library.Client)(transport=self.transport)
        name = "httpx_async_client" if self.is_async else "httpx_client"
        # Bound, because a client that is collected closes.
        client = genai.Client(
            api_key="any", http_options=types.HttpOptions(base_url=self._url, **{name: http_client})
        )
        try:
            yield client.aio if self.is_async else client
        finally:
            await self.result(http_client.aclose() if self.is_async else http_client.close())

    async def result(self, given: Any) -> Any:
        """Return what a call gives."""
        return await given if inspect.isawaitable(given) else given

    async def items(self, stream: Any) -> list[Any]:
        """Return the items of a stream, read to its end."""
        stream = await self.result(stream)
        return [item async for item in stream] if hasattr(stream, "__aiter__") else list(stream)


@pytest.fixture(params=["sync", "asyncio"])
def colour(request: pytest.FixtureRequest) -> str:
    """Run each test with the sync and with the async client: google-genai is made for asyncio."""
    return str(request.param)


@pytest.fixture(params=LIBRARIES)
def sdk(request: pytest.FixtureRequest, colour: str, server: StandInServer, cassette: Path) -> Sdk:
    """Give the SDK on each library that it takes."""
    return Sdk(colour != "sync", request.param, server, cassette)


# -- conversations -------------------------------------------------------------------------------------

#: A conversation: what it gives must be the same from the server and from the cassette.
Talk: TypeAlias = Callable[[Sdk, Any, str], Awaitable[Any]]


def what_is_said(responses: list[Any]) -> dict[str, Any]:
    """Return what an answer comes to, however it was divided."""
    parts = [part for each in responses for part in each.candidates[0].content.parts or ()]
    return {
        "text": "".join(part.text or "" for part in parts if not part.thought),
        "thoughts": "".join(part.text or "" for part in parts if part.thought),
        "calls": [part.function_call.model_dump() for part in parts if part.function_call],
        "signatures": [part.thought_signature for part in parts if part.thought_signature],
        "finish": responses[-1].candidates[0].finish_reason,
        "usage": responses[-1].usage_metadata.total_token_count,
    }


def results(said: dict[str, Any]) -> list[Any]:
    """Return what a user's tools say to the calls of an answer."""
    return [
        types.Part(
            function_response=types.FunctionResponse(
                id=call["id"], name=call["name"], response={"weather": f"rain in {call['args']['city']}"}
            )
        )
        for call in said["calls"]
    ]


def config(system: str) -> Any:
    return types.GenerateContentConfig(
        system_instruction=system,
        tools=[WEATHER],
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )


async def chat(sdk: Sdk, client: Any, system: str = SYSTEM) -> Any:
    """Three turns with tools and thoughts, in one piece."""
    talk = client.chats.create(model="stand-in", config=config(system))
    first = what_is_said([await sdk.result(talk.send_message("How is it in Paris and Oslo?"))])
    assert 2 == len(first["calls"])
    second = what_is_said([await sdk.result(talk.send_message(results(first)))])
    assert second["text"].startswith("Answer")
    third = what_is_said([await sdk.result(talk.send_message("And tomorrow?"))])
    return [first, second, third]


async def chat_streamed(sdk: Sdk, client: Any, system: str = SYSTEM) -> Any:
    """The same, streamed: the chat keeps each event as a content of its own, and sends all of them back."""
    talk = client.chats.create(model="stand-in", config=config(system))
    first = what_is_said(await sdk.items(talk.send_message_stream("How is it in Paris and Oslo?")))
    assert 2 == len(first["calls"])
    second = what_is_said(await sdk.items(talk.send_message_stream(results(first))))
    assert second["text"].startswith("Answer")
    assert second["text"].endswith("a café,\u2028東京 👩\u200d👧.")
    third = what_is_said(await sdk.items(talk.send_message_stream("And tomorrow?")))
    return [first, second, third]


async def joined_by_hand(sdk: Sdk, client: Any, system: str = SYSTEM) -> Any:
    """A stream whose parts go back as one content, and a plain turn after it."""
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="What is a café?")])]
    asked = {"model": "stand-in", "config": types.GenerateContentConfig(system_instruction=system)}
    chunks = await sdk.items(client.models.generate_content_stream(contents=contents, **asked))
    parts = [part for each in chunks for part in each.candidates[0].content.parts]
    contents += [
        types.Content(role="model", parts=parts),
        types.Content(role="user", parts=[types.Part(text="And a bar?")]),
    ]
    last = await sdk.result(client.models.generate_content(contents=contents, **asked))
    return [what_is_said(chunks), what_is_said([last])]


async def automatic(sdk: Sdk, client: Any, system: str = SYSTEM) -> Any:
    """A function that the SDK calls by itself."""
    cities: list[str] = []

    def get_weather(city: str) -> str:
        """Tell the weather of a city."""
        cities.append(city)
        return f"rain in {city}"

    # The older SDK does not read annotations that are text.
    get_weather.__annotations__ = {"city": str, "return": str}
    asked = types.GenerateContentConfig(system_instruction=system, tools=[get_weather])
    answered = await sdk.result(
        client.models.generate_content(model="stand-in", contents="How is it?", config=asked)
    )
    assert ["Paris", "Oslo"] == cities
    return what_is_said([answered])


async def interactions(sdk: Sdk, client: Any, system: str = SYSTEM) -> Any:
    """One interaction streamed, and one that goes on from it."""
    asked = {"model": "stand-in", "system_instruction": system}
    events = await sdk.items(client.interactions.create(input="What is a café?", stream=True, **asked))
    dumped = [event.model_dump(mode="json", exclude_none=True) for event in events]
    text = "".join(event["delta"]["text"] for event in dumped if "delta" in event)
    assert text.endswith("a café,\u2028東京")
    ident = dumped[-1]["interaction"]["id"]
    last = await sdk.result(
        client.interactions.create(input="And a bar?", previous_interaction_id=ident, **asked)
    )
    return [text, dumped[-1], last.model_dump(mode="json", exclude_none=True)]


TALKS = (chat, chat_streamed, joined_by_hand, automatic, interactions)


@pytest.mark.parametrize("size", [1, 16])
@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk.__name__)
async def test_what_was_recorded_is_replayed_without_the_server(
    sdk: Sdk, server: StandInServer, talk: Talk, size: int
) -> None:
    """However small its pieces, each turn goes on from the turn before."""
    async with sdk.client("record") as client:
        recorded = await talk(sdk, client, SYSTEM)
        calls = server.calls
        # What is there is not asked for again, though its pieces are others now.
        again = await talk(sdk, client, SYSTEM)
    server.close()
    async with sdk.client("replay", chunk_size=size) as client:
        replayed = await talk(sdk, client, SYSTEM)

    assert [recorded, recorded] == [again, replayed]
    assert (calls, 0) == (server.calls, sdk.transport.stats.live)


async def test_noise_is_borne(sdk: Sdk, server: StandInServer) -> None:
    """Empty texts and CRLF are what the SDK gets from Google, too."""
    async with sdk.client("record") as client:
        recorded = await chat_streamed(sdk, client)
    server.close()
    async with sdk.client("replay", chunk_size=3, noise=True) as client:
        assert recorded == await chat_streamed(sdk, client)


@pytest.mark.parametrize("talk", [chat, chat_streamed], ids=["plain", "stream"])
async def test_a_changed_system_prompt_misses(sdk: Sdk, server: StandInServer, talk: Talk) -> None:
    """The SDK asks once, and an ``except Exception`` does not catch it."""
    async with sdk.client("record") as client:
        await talk(sdk, client, SYSTEM)
    calls = server.calls
    async with sdk.client("replay") as client:
        with expected_miss() as missed:
            with pytest.raises(CassetteMiss) as caught:
                try:
                    await talk(sdk, client, "You are a careless assistant.")
                except Exception as error:
                    pytest.fail(f"an Exception came through: {error!r}")

    assert missed.error is caught.value
    changed = tuple(path.removeprefix("body.") for path in missed.changed)
    assert ("systemInstruction.parts[0].text",) == changed
    assert (1, calls) == (sdk.transport.stats.missed, server.calls)


async def test_a_call_without_a_system_prompt_is_stopped(sdk: Sdk, server: StandInServer) -> None:
    """Before the server is asked; a count of tokens needs none."""
    async with sdk.client("record", on_miss=None) as client:
        with pytest.raises(CassetteStop, match="no systemInstruction"):
            await sdk.result(client.models.generate_content(model="stand-in", contents="Hello?"))

    assert 0 == server.calls


async def test_an_upload_is_replayed(sdk: Sdk, server: StandInServer) -> None:
    """It is two calls: by a header of the first the SDK learns where the bytes go, which nobody else may."""

    async def upload(client: Any) -> Any:
        given = {"file": io.BytesIO(NOTES), "config": {"mime_type": "text/plain"}}
        return (await sdk.result(client.files.upload(**given))).model_dump(exclude={"sdk_http_response"})

    async with sdk.client("record") as client:
        recorded = await upload(client)
    server.close()
    async with sdk.client("replay") as client:
        replayed = await upload(client)

    assert "files/1" == recorded["name"]
    assert recorded == replayed
    assert (2, 0) == (server.calls, sdk.transport.stats.live)
    assert b"AB12" not in sdk._cassette.read_bytes()
