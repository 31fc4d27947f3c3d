"""The pages in ``docs``: every program is run twice; it records, the server goes, and it says the same again.

Programs whose SDK is not installed, or too old, are skipped; ``nox -s docs`` has them all.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import pytest

from httpx_cassette.stand_in import StandInServer

from .key_tables import FILE, render
from .other_formats import answer

DOCS = Path(__file__).parent.parent / "docs"


class Program(NamedTuple):
    """A fenced block of Python, and the SDK that it needs."""

    name: str
    needs: str
    text: str


def find_programs() -> list[Program]:
    """Return the programs of all pages, named by page and line."""
    pattern = re.compile(r"<!-- needs: (?P<needs>\S+) -->\n```python\n(?P<text>.*?)^```$", re.M | re.S)
    found = []
    for page in sorted(DOCS.glob("*.md")):
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


PROGRAMS = find_programs()


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_program_says_the_same_without_server_and_key(
    program: Program, loopback: None, tmp_path: Path
) -> None:
    """What was recorded is replayed: another answer would be worded differently."""
    if not is_installed(program.needs):
        pytest.skip(f"{program.needs} is not installed here; nox -s docs runs this")
    (tmp_path / "program.py").write_text(program.text, encoding="utf-8")
    with StandInServer(answer=answer) as server:
        recorded = run(tmp_path, server.url, HTTPX_CASSETTE_MODE="record", API_KEY="stand-in")
        calls = server.calls
    replayed = run(tmp_path, server.url)

    assert calls > 0
    assert "Venus" in recorded
    assert recorded == replayed


def test_every_block_of_python_is_a_program() -> None:
    """One without the comment that says what it needs would never be run."""
    blocks = sum(page.read_text(encoding="utf-8").count("```python\n") for page in DOCS.glob("*.md"))

    assert len(PROGRAMS) == blocks


def test_every_sdk_has_a_program_in_an_event_loop() -> None:
    """Sync and async, for each SDK of the page."""
    for name in ("openai", "anthropic", "google-genai"):
        texts = [program.text for program in PROGRAMS if program.needs.startswith(name)]

        assert {True, False} == {"asyncio.run" in text for text in texts}, name


def test_the_tables_of_the_key_are_those_of_the_code() -> None:
    """``python -m tests.key_tables`` writes them; a change of one may be a new version of the key."""
    assert render() == FILE.read_text(encoding="utf-8")


def run(folder: Path, url: str, **variables: str) -> str:
    """Run the program and return what it prints; every SDK is pointed at the server."""
    key = variables.pop("API_KEY", None)
    keys = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")
    environment = {name: value for name, value in os.environ.items() if name not in keys}
    environment.pop("HTTPX_CASSETTE_LEDGER", None)
    environment |= {
        "OPENAI_BASE_URL": url,
        "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
        "GOOGLE_GEMINI_BASE_URL": url.removesuffix("/v1"),
        **variables,
    }
    if key is not None:
        environment |= dict.fromkeys(keys[:3], key)
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
