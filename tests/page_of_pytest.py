"""The page ``docs/pytest.md``: its blocks, and how one is run with or without a server for the model.

The server listens while a command records, and at no other time: what is green otherwise is green offline.
Its port is the same each time, because the address is part of every key.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import NamedTuple

from httpx_cassette.stand_in import StandInServer

from .blocks import Block, Outcome, find_blocks, shell

__all__ = ["API", "BLOCKS", "PAGE", "SUITE", "Api", "Done", "summary", "write"]

API = "https://api.openai.com/v1"

PAGE = (Path(__file__).parent.parent / "docs" / "pytest.md").read_text(encoding="utf-8")

#: The one section whose blocks belong to a project that is there already.
_SUITE = "A suite that exists"


def _title(block: Block) -> str:
    before = PAGE.splitlines()[: int(block.name.removeprefix("line-"))]
    return next((line.removeprefix("## ") for line in reversed(before) if line.startswith("## ")), "")


#: The blocks of that section, and all others.
SUITE = [block for block in find_blocks(PAGE) if _title(block) == _SUITE]
BLOCKS = [block for block in find_blocks(PAGE) if _title(block) != _SUITE]


class Done(NamedTuple):
    """What came of a block, and how many calls the server had."""

    block: Block
    outcome: Outcome
    calls: int


class Api:
    """The address of the model, where something listens only while a command records."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port: int = listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def run(self, block: Block, folder: Path, command: str | None = None) -> Done:
        """Run a command, that of the block if no other is given.

        Args:
            block: What it belongs to.
            folder: Where it runs.
            command: The command.
        """
        command = command or block.text
        if "record" not in command:
            return Done(block, shell(command, folder, self.url), 0)
        with StandInServer(port=self._port) as server:
            return Done(block, shell(command, folder, self.url), server.calls)


def write(block: Block, folder: Path, url: str) -> None:
    """Write the file that a block is, or add the block to it."""
    what, _, name = block.note.partition(": ")
    file = folder / name
    before = file.read_text(encoding="utf-8") + "\n\n" if what == "append" else ""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before + block.text.replace(API, url), encoding="utf-8")


def summary(output: str) -> list[str]:
    """Return the lines in which the plugin sums up the calls of each run."""
    return re.findall(r"^\d+ replayed, \d+ recorded, \d+ missed, \d+ real calls?$", output, re.M)
