"""Run talks here or as programs, with every framework pointed at a server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette.stand_in import StandInServer

from ._rows import SYSTEM
from ._server import answer
from ._talk import talk

__all__ = ["Recorded", "connections", "listen", "run_as_a_program"]

#: To whom something connected, by whichever library; the tests of a run have one list.
connections: list[str] = []


def listen() -> None:
    """Write down every connection and every question for an address, from now on, until the process ends."""
    sys.addaudithook(_notice)


def _notice(event: str, arguments: tuple[Any, ...], heard: list[str] = connections) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        heard.append(str(arguments[1][0]))
    elif event == "socket.getaddrinfo":
        heard.append(str(arguments[0]))


class Recorded:
    """A talk that was recorded; the server is gone.

    Args:
        folder: An empty folder.
        program: The framework's program.
        colour: Sync or async.
        way: Whether the recording client was given, or made in a block.

    Attributes:
        said: What came of the talk.
        calls: How many requests the server got.
        url: Where it was.
        hosts: To whom something connected meanwhile.
    """

    def __init__(self, folder: Path, program: str, colour: str, way: str) -> None:
        self.folder = folder
        self._program = program
        self._colour = colour
        connections.clear()
        with StandInServer(answer=answer) as server:
            self.url = server.url
            self.said = self._talk(way, "record")
            self.calls = server.calls
        self.hosts = set(connections)

    def replay(self, way: str) -> Any:
        """Return what comes of the talk without the server."""
        connections.clear()
        return self._talk(way, "replay")

    def _talk(self, way: str, mode: str) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            for name, value in environment(self.url, mode).items():
                patch.setenv(name, value)
            return talk(self._program, self._colour, way, SYSTEM)


def run_as_a_program(
    folder: Path, url: str, *arguments: str, mode: str = "replay"
) -> subprocess.CompletedProcess[str]:
    """Run a module of the tests in a folder, as a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HTTPX_CASSETTE")}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**inherited, **environment(url, mode), "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=120,
    )


def environment(url: str, mode: str) -> dict[str, str]:
    """Return the variables by which frameworks find a server."""
    return {
        "HTTPX_CASSETTE_MODE": mode,
        "OPENAI_API_KEY": "stand-in",
        "OPENAI_BASE_URL": url,
        "ANTHROPIC_API_KEY": "stand-in",
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        # Or litellm asks GitHub for the prices of models when it is imported outside of a block, and waits.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
