"""Have one talk by one framework, in this process, or as a program that goes on after any ``Exception``.

The program is ``python -m tests.frameworks._talk PROGRAM COLOUR WAY SYSTEM``. A talk is recorded or replayed
as the environment says, in the current folder.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from typing import Any

from httpx_cassette import use_cassette

__all__ = ["CASSETTE", "COLOURS", "WAYS", "talk"]

CASSETTE = "talk.jsonl"

COLOURS = ("sync", "async")

#: Whether the framework is given a client, or makes its own in a block.
WAYS = ("client", "block")


def talk(program: str, colour: str, way: str, system: str) -> Any:
    """Return what the user of a framework gets to see, as plain data."""
    if way == "client":
        return _plain(_run(program, colour, system, CASSETTE))
    with use_cassette(CASSETTE, guard=True):
        return _plain(_run(program, colour, system, None))


def _run(program: str, colour: str, system: str, cassette: str | None) -> Any:
    module = importlib.import_module(f"tests.frameworks.programs.{program}")
    if colour == "async":
        return asyncio.run(module.talk_async(system, cassette))
    return module.talk(system, cassette)


def _plain(said: Any) -> Any:
    return json.loads(json.dumps(said))


if __name__ == "__main__":
    try:
        talk(*sys.argv[1:])
    except Exception as error:
        print(f"went on after {type(error).__name__}")
