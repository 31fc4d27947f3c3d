"""``docs/modes.md``: each job is done by the commands that the page gives, with what it says they print."""

from __future__ import annotations

from pathlib import Path

from .blocks import find_blocks
from .page_of_modes import PAGE, execute, render, statuses


def test_the_commands_of_the_page_print_what_it_says(loopback: None, tmp_path: Path) -> None:
    """``python -m tests.page_of_modes`` writes it anew; the exit statuses are those of the page."""
    page = PAGE.read_text(encoding="utf-8")
    blocks = find_blocks(page)
    outcomes = execute(page, tmp_path)

    assert statuses(blocks) == [outcome.status for outcome in outcomes]
    assert sum(block.language == "text" for block in blocks) == sum(bool(each.output) for each in outcomes)
    assert page == render(page, outcomes)
