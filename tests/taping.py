"""Cassettes that answer one question, each in its own words, and programs of their own that use them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import httpx

from httpx_cassette import CassetteTransport

from .colours import CHAT, URL, Client, Colour, answer, router

__all__ = ["Ended", "ask", "bare_client", "run_program", "said", "tape"]

ROOT = Path(__file__).parents[1]

#: What every program begins with. ``sys.argv[1]`` is the folder that it works in.
_PROLOGUE = """
import os, sys
os.chdir(sys.argv[1])
import httpx_cassette
from httpx_cassette import use_cassette
URL = "https://api.openai.com/v1/chat/completions"
CHAT = {"model": "gpt-5", "messages": [
    {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]}
def said(response):
    return response.json()["choices"][0]["message"]["content"]
"""


class _Lazy:
    """A client that is made once: with the module, but for what that costs."""

    client: httpx.Client | None = None


def said(response: Any) -> str:
    """Return the text of a plain chat answer."""
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def tape(path: Path, *says: str) -> Path:
    """Record answers to ``CHAT``, all to this one question; the name of the file, if nothing else is said."""
    words = says or (path.stem,)
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer(each) for each in words])
    transport = CassetteTransport(
        path, mode="record", samples=len(words), next_transport=httpx.MockTransport(upstream.handler)
    )
    with httpx.Client(transport=transport) as client:
        for _ in words:
            client.post(URL, json=CHAT)
    return path


def bare_client(colour: Colour, **options: Any) -> Client:
    """Return a client that was given no transport."""
    # Nothing that would be checked is ever reached, and reading certificates takes its time.
    return Client(colour, None, **{"verify": False, "trust_env": False, **options})


def ask() -> str:
    """Ask by a client that was there before any cassette, whatever thread this is."""
    if _Lazy.client is None:
        _Lazy.client = httpx.Client(verify=False, trust_env=False)
    return said(_Lazy.client.post(URL, json=CHAT))


class Ended(NamedTuple):
    """How a program ended.

    Args:
        status: The exit status.
        out: What it printed.
        err: What stands in its stderr.
    """

    status: int
    out: str
    err: str


def run_program(folder: Path, text: str, *arguments: object) -> Ended:
    """Run a program in a folder; unlike a test it is not kept from connecting anywhere.

    Args:
        folder: The working folder.
        text: The program, after what all begin with.
        arguments: What it finds in ``sys.argv[2:]``.
    """
    # Those of this run are not its own: its misses are expected.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HTTPX_CASSETTE")}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        [sys.executable, "-c", _PROLOGUE + dedent(text), str(folder), *map(str, arguments)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)
