"""``docs/modes.md``, executed: its commands in order, in one folder, against a stand-in.

``python -m tests.page_of_modes`` writes what they print into the page.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from httpx_cassette.stand_in import StandInServer

from .blocks import Block, Outcome, find_blocks, shell

__all__ = ["PAGE", "execute", "render", "statuses"]

PAGE = Path(__file__).parent.parent / "docs" / "modes.md"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

#: Said where prices are not installed, and no part of the page.
_NO_PRICES = re.compile(r"^what .* is not shown; install it with: .*\n", re.M)


def statuses(blocks: list[Block]) -> list[int]:
    """Return the exit statuses that the page promises for its commands."""
    return [int(block.note.removeprefix("status: ") or 0) for block in blocks if block.language == "sh"]


def execute(page: str, folder: Path) -> list[Outcome]:
    """Write the files of the page, run its commands, and return what came of these.

    Args:
        page: The page.
        folder: Where to; it is empty.
    """
    outcomes = []
    with StandInServer() as server:
        for block in find_blocks(page):
            if block.note.startswith("file: "):
                (folder / block.note.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
            elif block.language == "sh":
                outcomes.append(_told(shell(block.text, folder, server.url), server.url))
    return outcomes


def _told(outcome: Outcome, url: str) -> Outcome:
    """Return an outcome without what differs from run to run."""
    text = _NO_PRICES.sub("", outcome.output).replace(url, "http://127.0.0.1:8377/v1")
    return Outcome(outcome.status, _TIME.sub("2026-11-30T12:00:00Z", text))


def render(page: str, outcomes: list[Outcome]) -> str:
    """Return a page with what its commands print; those that print nothing have no block for it."""
    shown = iter([outcome.output for outcome in outcomes if outcome.output])
    return re.sub(r"^```text\n.*?^```$", lambda _: f"```text\n{next(shown)}```", page, flags=re.M | re.S)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(render(text, execute(text, Path(made))), encoding="utf-8")
