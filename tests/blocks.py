"""The fenced blocks of a page, and how one is run.

Nothing here knows which page it is, or what a block should do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

__all__ = ["Block", "Outcome", "find_blocks", "is_installed", "shell"]

_BLOCK = re.compile(r"(?:<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block of a page, and what stands in the comment before it."""

    name: str
    language: str
    text: str
    note: str


class Outcome(NamedTuple):
    """What came of a block."""

    status: int
    output: str


def find_blocks(page: str) -> list[Block]:
    """Return the blocks of a page in order, named by their line."""
    return [
        Block(
            f"line-{page.count(chr(10), 0, found.start()) + 1}",
            found["language"],
            found["text"],
            found["note"] or "",
        )
        for found in _BLOCK.finditer(page)
    ]


def is_installed(needs: str) -> bool:
    """Tell whether a distribution is there in a version that is new enough: ``openai>=3``."""
    name, _, least = needs.partition(">=")
    try:
        return int(version(name).partition(".")[0]) >= int(least)
    except PackageNotFoundError:
        return False


def shell(command: str, folder: Path, url: str) -> Outcome:
    """Run a command line with the SDK pointed at a stand-in."""
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "stand-in",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    environment.pop("HTTPX_CASSETTE_LEDGER", None)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Outcome(done.returncode, done.stdout + done.stderr)
