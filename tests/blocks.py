"""The fenced blocks of a page, and how one is run.

Nothing here knows which page it is, or what a block should do.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "Block",
    "Outcome",
    "Program",
    "find_blocks",
    "find_programs",
    "is_installed",
    "run_program",
    "shell",
]

_BLOCK = re.compile(r"(?:<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block of a page, and what stands in the comment before it."""

    name: str
    language: str
    text: str
    note: str


class Program(NamedTuple):
    """A fenced block of Python, and the SDK that it needs."""

    name: str
    needs: str
    text: str


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


def find_programs(pages: Sequence[Path]) -> list[Program]:
    """Return the programs of pages, named by page and line."""
    pattern = re.compile(r"<!-- needs: (?P<needs>\S+) -->\n```python\n(?P<text>.*?)^```$", re.M | re.S)
    found = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found += [
            Program(f"{page.stem}-{text.count(chr(10), 0, match.start()) + 1}", match["needs"], match["text"])
            for match in pattern.finditer(text)
        ]
    return found


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


def run_program(folder: Path, url: str, **variables: str) -> str:
    """Run the program and return what it prints; every SDK is pointed at the server."""
    key = variables.pop("API_KEY", None)
    keys = (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
        "MISTRAL_API_KEY",
        "CO_API_KEY",
        "GROQ_API_KEY",
        "TOGETHER_API_KEY",
        "FIREWORKS_API_KEY",
        "CEREBRAS_API_KEY",
        "HF_TOKEN",
        "AZURE_OPENAI_API_KEY",
        "AWS_BEARER_TOKEN_BEDROCK",
        "GOOGLE_API_KEY",
    )
    environment = {name: value for name, value in os.environ.items() if name not in keys}
    environment.pop("HTTPX_CASSETTE_LEDGER", None)
    environment |= {
        "OPENAI_BASE_URL": url,
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "GOOGLE_GEMINI_BASE_URL": url.removesuffix("/v1"),
        "MISTRAL_SERVER_URL": url.removesuffix("/v1"),
        "OLLAMA_HOST": url.removesuffix("/v1"),
        "CO_API_URL": url.removesuffix("/v1"),
        "GROQ_BASE_URL": url.removesuffix("/v1"),
        "TOGETHER_BASE_URL": url,
        "FIREWORKS_BASE_URL": url.removesuffix("/v1"),
        "CEREBRAS_BASE_URL": url.removesuffix("/v1"),
        "HF_BASE_URL": url,
        "TGI_URL": url.removesuffix("/v1"),
        "AZURE_OPENAI_ENDPOINT": url.removesuffix("/v1"),
        "ANTHROPIC_BEDROCK_BASE_URL": url.removesuffix("/v1"),
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url.removesuffix("/v1"),
        # What the hub said of agents is kept there for a day: without it, it is asked again.
        "HF_HOME": str(folder),
        **variables,
    }
    if key is not None:
        environment |= dict.fromkeys(keys[:-1], key)
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout
