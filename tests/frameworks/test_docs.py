"""The page about frameworks: every program records, the server goes, and it says the same again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from httpx_cassette.stand_in import StandInServer

from ..blocks import Program, find_programs, is_installed, run_program
from ._server import answer

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"

PROGRAMS = find_programs([PAGE])

INSTALLED = [program for program in PROGRAMS if is_installed(program.needs)]


@pytest.mark.parametrize("program", INSTALLED, ids=[program.name for program in INSTALLED])
def test_a_program_says_the_same_without_the_server(program: Program, loopback: None, tmp_path: Path) -> None:
    """What was recorded is replayed: another answer would be worded differently."""
    (tmp_path / "program.py").write_text(program.text, encoding="utf-8")
    options = {"API_KEY": "stand-in", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    with StandInServer(answer=answer) as server:
        recorded = run_program(tmp_path, server.url, HTTPX_CASSETTE_MODE="record", **options)
        calls = server.calls
    replayed = run_program(tmp_path, server.url, **options)

    assert calls > 0
    assert "Venus" in recorded
    assert recorded == replayed


def test_every_framework_has_programs_of_both_colours() -> None:
    """Sync and async; a block without the comment that says what it needs would never be run."""
    needed = {re.split("[->]", program.needs)[0] for program in PROGRAMS}

    assert PAGE.read_text(encoding="utf-8").count("```python\n") == len(PROGRAMS)
    assert {"langchain", "pydantic", "openai", "litellm", "dspy", "instructor"} == needed
    for name in needed:
        texts = [program.text for program in PROGRAMS if program.needs.startswith(name)]
        assert {True, False} == {"asyncio.run" in text for text in texts}, name


def test_every_framework_says_how_it_is_installed() -> None:
    """The line stands below the title, and names what the programs import."""
    sections = re.findall(r"^## ([a-z-]+)\n\n(.*)\n", PAGE.read_text(encoding="utf-8"), re.M)
    install = "Install it with `pip install '.[httpx2]' {}`."

    assert [
        ("langchain", install.format("langchain langchain-openai langchain-anthropic")),
        ("pydantic-ai", install.format("'pydantic-ai-slim[openai,anthropic]'")),
        ("openai-agents", install.format("openai-agents")),
        ("litellm", install.format("litellm")),
        ("dspy", install.format("dspy")),
        ("instructor", install.format("instructor")),
    ] == sections
