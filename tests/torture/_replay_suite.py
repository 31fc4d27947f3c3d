"""``python -m tests.torture._replay_suite CASSETTE MODE``: what ``offline`` runs, with the network watched.

A small suite of calls, as programs make them: sync and async, whole and streamed, several at once. Every
event of a socket of the internet's families is counted and refused. (An event loop makes a pair of connected
sockets for itself; that is none.) Prints what came of each call, and the count, as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import sys
from collections import Counter
from pathlib import Path

import httpx

from httpx_cassette import CassetteStop

from ._calls import URL, ask, async_client, client, question, said, said_in

#: What is asked, and whether the answer is a stream.
QUESTIONS = {
    **{f"whole {number}": False for number in range(8)},
    **{f"stream {number}": True for number in range(8)},
}

_WATCHED = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind", "socket.getaddrinfo")

touched: Counter[str] = Counter()


class Refused(OSError):
    """The network was touched."""


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Count and refuse what goes for the network; to be an audit hook."""
    if event not in _WATCHED:
        return
    family = arguments[0].family if isinstance(arguments[0], socket.socket) else socket.AF_INET
    if family in (socket.AF_INET, socket.AF_INET6):
        touched[event] += 1
        raise Refused(event)


def run(path: Path, mode: str) -> dict[str, str]:
    """Ask everything in every way; return what was said, or the name of the error."""
    told = {}
    with client(path, mode) as asker:
        for words, stream in {**QUESTIONS, "never recorded": False}.items():
            try:
                told[f"sync, {words}"] = said(ask(asker, words, stream=stream))
            except (Refused, CassetteStop, httpx.HTTPError) as error:
                told[f"sync, {words}"] = type(error).__name__
    told.update(asyncio.run(_run_async(path, mode)))
    return told


async def _run_async(path: Path, mode: str) -> dict[str, str]:
    async with async_client(path, mode) as asker:

        async def one(words: str, stream: bool) -> tuple[str, str]:
            try:
                async with asker.stream("POST", URL, json=question(words, stream=stream)) as response:
                    heard = said_in(b"".join([chunk async for chunk in response.aiter_raw()]))
            except (Refused, CassetteStop, httpx.HTTPError) as error:
                heard = type(error).__name__
            return f"async, {words}", heard

        return dict(await asyncio.gather(*(one(words, stream) for words, stream in QUESTIONS.items())))


if __name__ == "__main__":
    sys.addaudithook(watch)
    with contextlib.redirect_stderr(io.StringIO()):
        result = run(Path(sys.argv[1]), sys.argv[2])
    print(json.dumps({"told": result, "touched": dict(touched)}))
