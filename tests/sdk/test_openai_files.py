"""The openai SDK on what is no conversation: speech, images, files and batches, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette.stand_in import Asked, Reply, StandInServer

from ._openai import Sdk
from .conftest import FILE

pytestmark = [
    pytest.mark.anyio,
    # Left to the collector by the SDK's client, with and without a cassette.
    pytest.mark.filterwarnings("ignore:Async generator 'httpcore2?[.]:ResourceWarning"),
]

SPEECH = b"\xff\xfb\x90\x00" + bytes(range(256)) * 40
RESULTS = b'{"custom_id": "b", "error": null}\n{"custom_id":"a"}\r\n\x00\xff'
PNG = "iVBORw0KGgo="

BATCH = {
    "id": "batch_1",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "input_file_id": "file-standin1",
    "completion_window": "24h",
    "created_at": 1_767_225_600,
    "output_file_id": "file-standin2",
}


def reply(document: Any, indent: int | None = 2) -> Reply:
    """Return an answer as OpenAI's servers write it."""
    return Reply(200, f"{json.dumps(document, indent=indent)}\n".encode())


class Server:
    """Answers what the stand-in does not know."""

    def __init__(self) -> None:
        self._statuses = iter(["validating", "in_progress", "completed"])

    def __call__(self, asked: Asked, nth: int) -> Reply:
        path = asked.path.removeprefix("/v1/")
        if path == "audio/speech":
            # While it is spoken, its length is not known.
            pieces = iter([SPEECH[:10], SPEECH[10:5000], SPEECH[5000:]])
            return Reply(200, pieces, {"content-type": "audio/mpeg"})
        if path == "audio/transcriptions":
            assert SPEECH in asked.body
            return reply({"text": f"Hello, {nth}."}, indent=None)
        if path in ("images/generations", "images/edits"):
            return reply({"created": nth, "data": [{"b64_json": PNG}]})
        if path == "files/file-standin2/content":
            return Reply(200, RESULTS, {"content-type": "application/octet-stream"})
        if path == "files":
            return reply(FILE)
        if path == "batches":
            return reply({**BATCH, "status": "validating"})
        assert path == "batches/batch_1"
        return reply({**BATCH, "status": next(self._statuses)})


@pytest.fixture
def server(loopback: None) -> Iterator[StandInServer]:
    """Give the server."""
    with StandInServer(answer=Server()) as server:
        yield server


@pytest.fixture
def sdk(colour: str, server: StandInServer, cassette: Path) -> Sdk:
    """Give the openai SDK in one colour, talking to it."""
    return Sdk(colour != "sync", server.url, cassette)


async def speech(sdk: Sdk, client: Any) -> Any:
    """Speech that is played while it comes, and what is heard in it."""
    asked = {"model": "gpt-4o-mini-tts", "voice": "alloy", "input": "Hello."}
    async with sdk.opened(client.audio.speech.with_streaming_response.create(**asked)) as response:
        streamed = b"".join(await sdk.items(response.iter_bytes()))
    whole = await sdk.result(client.audio.speech.create(**asked))
    heard = client.audio.transcriptions.create(model="whisper-1", file=("hello.mp3", SPEECH))
    assert SPEECH == streamed == whole.content
    return [whole.response.headers["content-type"], (await sdk.result(heard)).to_dict()]


async def images(sdk: Sdk, client: Any) -> Any:
    """An image of a prompt, and one of another image."""
    made = await sdk.result(client.images.generate(model="gpt-image-1", prompt="A cat."))
    image = ("cat.png", b"\x89PNG\r\n\x1a\n", "image/png")
    edited = await sdk.result(client.images.edit(model="gpt-image-1", prompt="A hat.", image=image))
    assert PNG == made.data[0].b64_json == edited.data[0].b64_json
    raw = await sdk.result(client.images.with_raw_response.generate(model="gpt-image-1", prompt="A cat."))
    return [made.to_dict(), edited.to_dict(), raw.http_response.content]


async def batches(sdk: Sdk, client: Any) -> Any:
    """A file of requests, a batch that is waited for, and its results."""
    requests = ("requests.jsonl", b'{"custom_id": "a"}\n')
    uploaded = await sdk.result(client.files.create(file=requests, purpose="batch"))
    batch = await sdk.result(
        client.batches.create(
            input_file_id=uploaded.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
    )
    looks = []
    while batch.status != "completed":
        batch = await sdk.result(client.batches.retrieve(batch.id))
        looks.append(batch.status)
    results = await sdk.result(client.files.content(batch.output_file_id))
    assert RESULTS == results.content
    return [uploaded.to_dict(), looks, batch.to_dict()]


@pytest.mark.parametrize("talk", [speech, images, batches], ids=lambda talk: talk.__name__)
async def test_it_is_replayed_byte_for_byte(sdk: Sdk, server: StandInServer, talk: Any) -> None:
    """Recorded once; without the server the SDK gives the same, in pieces of any size."""
    async with sdk.client("record") as client:
        recorded = await talk(sdk, client)
    calls = server.calls
    server.close()
    replayed = []
    for options in ({}, {"wire_chunk_size": 7}):
        async with sdk.client("replay", **options) as client:
            replayed.append(await talk(sdk, client))

    assert [recorded] * 2 == replayed
    assert (sdk.lines(), 0) == (calls, sdk.transport.stats.live)
    lines = [json.loads(line) for line in sdk.cassette.read_bytes().splitlines()]
    assert {"generic"} == {line["dialect"] for line in lines}
