"""What every program whose exit status is tested begins with: a call that has no recording.

The programs know these names alone, so how a call comes to miss is said in this one place.
Nothing here makes a transport before ``ask`` is called: a program whose workers alone call has none.

Two witnesses tell whether the end of the process was a clean one: ``witness.txt`` in the working folder gets
a line from an ``atexit`` handler and one that a logging handler held back, each with the process's id.
"""

from __future__ import annotations

import atexit
import logging.handlers
import os
from pathlib import Path

import httpx

import httpx_cassette
from httpx_cassette import expected_miss

__all__ = ["MISSING", "URL", "ask", "ask_async", "body", "expected_miss"]

URL = "https://api.openai.com/v1/chat/completions"

#: A cassette that does not exist.
MISSING = "missing.jsonl"


def body(prompt: str) -> dict[str, object]:
    """Return a request that passes the guard for system prompts."""
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": prompt}]
    return {"model": "gpt-5", "messages": messages}


def ask(prompt: str = "a", cassette: str = MISSING) -> None:
    """Make a call that misses."""
    with httpx.Client(transport=httpx_cassette.CassetteTransport(cassette)) as client:
        client.post(URL, json=body(prompt))


async def ask_async(prompt: str = "a", cassette: str = MISSING) -> None:
    """Make a call that misses, in an event loop."""
    async with httpx.AsyncClient(transport=httpx_cassette.CassetteTransport(cassette)) as client:
        await client.post(URL, json=body(prompt))


# --- witnesses ----------------------------------------------------------------------------------------


#: The working folder may be another one at the end.
_WITNESS = Path("witness.txt").absolute()


def _testify(witness: str) -> None:
    with _WITNESS.open("a") as file:
        file.write(f"{os.getpid()} {witness}\n")


class _Testimony(logging.Handler):
    """What is held back until logging is shut down, in whichever process."""

    def emit(self, record: logging.LogRecord) -> None:
        _testify(record.getMessage())


atexit.register(_testify, "atexit")

_held_back = logging.handlers.MemoryHandler(1_000, logging.CRITICAL, _Testimony())
_logger = logging.getLogger("witness")
_logger.propagate = False
_logger.addHandler(_held_back)
_logger.error("logging")
