"""One client, and so one transport, in the hands of many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai

from httpx_cassette.stand_in import StandInServer

from ._openai import IS_ON_HTTPX2, SYSTEM, make_transport, user

QUESTIONS = [f"What is {number} times {number}?" for number in range(40)]


def make_client(transport: Any, url: str) -> openai.OpenAI:
    library: Any = openai.DefaultHttpx2Client if IS_ON_HTTPX2 else openai.DefaultHttpxClient
    return openai.OpenAI(api_key="any", base_url=url, http_client=library(transport=transport))


def ask(client: openai.OpenAI, question: str) -> str:
    """Ask plainly or as a stream, depending on the question; some are asked by several threads."""
    messages: Any = [SYSTEM, user(question)]
    if len(question) % 2:
        plain = client.chat.completions.create(model="stand-in-small", messages=messages)
        return plain.choices[0].message.content or ""
    chunks = client.chat.completions.create(model="stand-in-small", messages=messages, stream=True)
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def ask_all(transport: Any, url: str) -> list[str]:
    with make_client(transport, url) as client, ThreadPoolExecutor(8) as threads:
        return list(threads.map(lambda question: ask(client, question), QUESTIONS * 3))


def test_threads_share_a_transport(stand_in: StandInServer, cassette: Path) -> None:
    """Each question is paid for once, whichever threads ask it, and every thread gets its own answer."""
    recording = make_transport(cassette, mode="record")
    recorded = ask_all(recording, stand_in.url)
    calls = stand_in.calls
    stand_in.close()
    replaying = make_transport(cassette)
    replayed = ask_all(replaying, stand_in.url)

    assert recorded == replayed
    assert recorded[: len(QUESTIONS)] * 3 == recorded
    assert len(QUESTIONS) == len(set(recorded)) == calls == recording.stats.recorded
    assert (len(recorded), 0) == (replaying.stats.replayed, replaying.stats.live)
