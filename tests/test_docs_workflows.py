"""The page ``docs/workflows.md``: its blocks are executed in order, in one folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from httpx_cassette.stand_in import StandInServer

from .blocks import Outcome, find_blocks, shell

PAGE = Path(__file__).parent.parent / "docs" / "workflows.md"
BLOCKS = find_blocks(PAGE.read_text(encoding="utf-8"))

#: A command of a console, with what it prints and its status.
_COMMAND = re.compile(
    r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ |# exit).*\n)*)(?:# exit status (\d)\n)?", re.M
)


def test_the_workflows_do_what_the_page_says(
    loopback: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command ends and prints as shown; those in blocks without output end with 0."""
    monkeypatch.delenv("HTTPX_CASSETTE_MODE", raising=False)
    wrong: list[tuple[str, Outcome]] = []
    with StandInServer() as server:
        for block in BLOCKS:
            if block.note.startswith("file: "):
                (tmp_path / block.note.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
                continue
            shown = _COMMAND.findall(block.text) if block.language == "console" else []
            for command, output, status in shown or [(block.text, None, "")]:
                outcome = shell(f"set -e; {command}", tmp_path, server.url)
                if int(status or 0) != outcome.status or (
                    output is not None and _without_columns(output) != _without_columns(outcome.output)
                ):
                    wrong.append((command, outcome))

    assert [] == wrong


def _without_columns(output: str) -> str:
    """Return what was printed without the columns, which depend on how long a call took."""
    return re.sub(r"(\.jsonl:\d+):\d+:", r"\1:", output)


def test_every_block_is_a_file_or_run() -> None:
    """In no other language, and every command of a console is read as one."""
    assert {"sh", "console"} == {block.language for block in BLOCKS if not block.note}
    for block in BLOCKS:
        if block.language == "console":
            assert block.text.count("$ ") == len(_COMMAND.findall(block.text))
