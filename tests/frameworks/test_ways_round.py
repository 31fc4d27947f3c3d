"""What goes round a transport, or by a client of the framework's own, is refused or missed, and loud.

Each program is replayed in a block with a guard, and nothing has been recorded.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from ..blocks import is_installed
from ._running import run_as_a_program

pytestmark = pytest.mark.loopback


class Round(NamedTuple):
    """A program, what it needs, and the first line that it prints to stderr."""

    needs: str
    program: str
    said: str


_REFUSED = "a connection to {}:443 was refused: it goes round the cassette that is replayed"
_MISSED = "no recording for {} in none.jsonl"

ROUNDS = {
    "litellm's async route to openai, over aiohttp": Round(
        "litellm>=1",
        """
        import asyncio, litellm

        asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}]
        asyncio.run(litellm.acompletion("openai/gpt-5-mini", messages=asked))
        """,
        _REFUSED.format("api.openai.com"),
    ),
    "litellm's other async routes, over aiohttp": Round(
        "litellm>=1",
        """
        import asyncio, litellm

        asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}]
        asyncio.run(litellm.acompletion("anthropic/claude-sonnet-5", messages=asked))
        """,
        _REFUSED.format("api.anthropic.com"),
    ),
    "dspy's default engine, over sockets": Round(
        "dspy>=3",
        """
        import dspy

        dspy.LM("openai/gpt-4o-mini", cache=False)("Who are you?")
        """,
        _REFUSED.format("api.openai.com"),
    ),
    "the uploader of openai-agents' traces": Round(
        "openai-agents>=0",
        """
        from agents import trace

        with trace("a run"):
            pass
        """,
        _MISSED.format("POST https://api.openai.com/v1/traces/ingest"),
    ),
}

INSTALLED = [name for name, each in ROUNDS.items() if is_installed(each.needs)]

PROGRAM = """
import os

del os.environ["OPENAI_BASE_URL"], os.environ["ANTHROPIC_BASE_URL"]
from httpx_cassette import use_cassette

with use_cassette("none.jsonl", guard=True):
    try:
{}
    except Exception as error:
        print("went on after", error)
"""


@pytest.mark.parametrize("name", INSTALLED)
def test_what_goes_round_ends_with_2(tmp_path: Path, name: str) -> None:
    """The first thing that is said is which connection was refused, or which call was missed."""
    program = textwrap.indent(textwrap.dedent(ROUNDS[name].program), " " * 8)
    (tmp_path / "program.py").write_text(PROGRAM.format(program))

    ended = run_as_a_program(tmp_path, "http://127.0.0.1:9/v1", "program")

    told = [
        line for line in ended.stderr.splitlines() if line.startswith(("a connection to", "no recording"))
    ]
    assert (2, "") == (ended.returncode, ended.stdout), ended.stderr
    assert [ROUNDS[name].said] == told[:1]


PRICES = """
import os

del os.environ["LITELLM_LOCAL_MODEL_COST_MAP"]
from httpx_cassette import use_cassette

with use_cassette("none.jsonl", guard=True) as block:
    import threading

    import litellm

    for thread in threading.enumerate():
        if thread.daemon:
            thread.join(20)
    print(block.stats.ignored > 0, block.stats.live, len(litellm.model_cost) > 100)
"""


@pytest.mark.skipif(not is_installed("litellm>=1"), reason="litellm is not installed")
def test_the_prices_that_litellm_fetches_are_no_miss(tmp_path: Path) -> None:
    """They are asked for at its import and again in a thread: it gets a 404 and takes its own."""
    (tmp_path / "program.py").write_text(PRICES)

    ended = run_as_a_program(tmp_path, "http://127.0.0.1:9/v1", "program")

    assert (0, "True 0 True\n") == (ended.returncode, ended.stdout), ended.stderr
