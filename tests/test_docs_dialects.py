"""The page ``docs/dialects.md``: its files are written to one folder, and its commands run there in order."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from httpx_cassette.stand_in import StandInServer

from .blocks import Block, Outcome, find_blocks, shell
from .other_formats import answer

BLOCKS = find_blocks((Path(__file__).parent.parent / "docs" / "dialects.md").read_text(encoding="utf-8"))
FILES = [block for block in BLOCKS if block.language == "python"]
COMMANDS = [block for block in BLOCKS if block.language == "sh"]


class Run(NamedTuple):
    """The page, executed."""

    folder: Path
    calls: list[int]
    outcomes: dict[str, Outcome]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Write the files, run the commands, and close the server after the first of them."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "pyproject.toml").touch()  # Of no project whose options would count.
    for block in FILES:
        (folder / block.note.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
    outcomes, calls = {}, []
    with StandInServer(answer=answer) as server:
        for block in COMMANDS:
            account = f"export WORKERS_AI={server.url.removesuffix('/v1')}/client/v4/accounts/ACCOUNT\n"
            outcomes[block.name] = shell(account + block.text, folder, server.url)
            calls.append(server.calls)
            server.close()
    return Run(folder, calls, outcomes)


@pytest.mark.parametrize("block", COMMANDS, ids=[block.name for block in COMMANDS])
def test_the_commands_end_as_the_page_says(block: Block, loopback: None, run: Run) -> None:
    """The status is the one in the comment before the command."""
    outcome = run.outcomes[block.name]

    assert int(block.note.removeprefix("status: ")) == outcome.status, outcome.output


def test_the_program_says_the_same_without_a_server(loopback: None, run: Run) -> None:
    """Two calls are really made; streams come in pieces of the size that is asked for, and say one text."""
    recorded, replayed = (run.outcomes[block.name].output.splitlines() for block in COMMANDS[:2])
    plain, words = (f"Venus, I would say, for the {nth}th time; ask a book." for nth in (1, 2))

    # In the first run the first stream came in the pieces of the server, a word each.
    assert f"{len(words.split(' ')) + 1} {words}" == recorded[1]
    counts = [-(-len(words) // size) + 1 for size in (1, 7, 1000)]
    assert [line for count in counts for line in (plain, f"{count} {words}")] == replayed
    assert replayed[2:] == recorded[2:]
    assert [2, 2, 2] == run.calls


def test_the_recordings_are_of_the_dialect(loopback: None, run: Run) -> None:
    """The stream is one text, and nothing of the padding is kept."""
    lines = [json.loads(line) for line in (run.folder / "planets.jsonl").read_bytes().splitlines()]
    script = lines[1]["response"]["script"]

    assert ["workers-ai"] * 2 == [line["dialect"] for line in lines]
    assert "assembled" == lines[1]["response"]["stored"]
    assert [["response"], ["response", "usage"], None] == [
        sorted(event["json"]) if "json" in event else None for event in script
    ]


def test_a_format_takes_about_thirty_lines() -> None:
    """As the page promises; lines of code, without blank ones, comments and docstrings."""
    (block,) = (block for block in FILES if block.note == "file: workers_ai.py")
    tree = ast.parse(block.text)
    docstrings = {
        node.body[0].lineno for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.FunctionDef))
    }
    lines = [
        line
        for number, line in enumerate(block.text.splitlines(), 1)
        if line.strip() and not line.strip().startswith("#") and number not in docstrings
    ]

    assert len(lines) <= 32


def test_every_block_is_a_file_or_a_command() -> None:
    """One without the comment that says which would never be run."""
    assert all(block.note.startswith("file: ") for block in FILES)
    assert all(block.note.startswith("status: ") for block in COMMANDS)
    assert len(FILES) + len(COMMANDS) == len(BLOCKS)
