"""``docs/cli.md``: each command is there as it is, with an example that was run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click
import pytest

from httpx_cassette.cli._group import COMMANDS, GROUP

from .blocks import find_blocks
from .cli_page import ELSEWHERE, EXAMPLES, FILE, render

ROOT = FILE.parent.parent


def command_of(name: str) -> click.Command:
    """Return a command."""
    command = GROUP.get_command(click.Context(GROUP), name)
    assert command is not None
    return command


def test_the_page_is_that_of_the_commands() -> None:
    """``python -m tests.cli_page`` writes it anew: help, options, examples and what they print."""
    assert render() == FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_an_example(name: str) -> None:
    """Each option too; the help ends with a line that can be typed."""
    command = command_of(name)
    silent = [each.name for each in command.params if isinstance(each, click.Option) and not each.help]

    assert command.help
    assert [] == silent
    assert "Example: " == (command.epilog or "")[: len("Example: ")]
    assert (name in EXAMPLES) != (name in ELSEWHERE)


def run_in_the_readme() -> set[str]:
    """Return the commands that stand in the README to be run, as ``tests/test_readme.py`` runs it."""
    blocks = find_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    shell = [block.text for block in blocks if block.language == "sh"]
    return {name for text in shell for name in re.findall(r"(?m)^(?:\w+=\S+ )*httpx-cassette ([\w-]+)", text)}


def run_in(path: Path) -> set[str]:
    """Return the commands that a file of tests runs: the first words of ``run(...)`` and ``main([...])``."""
    calls = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
    given = [(call.func.id, call.args[0]) for call in calls if isinstance(call.func, ast.Name) and call.args]
    given = [(name, word.elts[0] if isinstance(word, ast.List) else word) for name, word in given]
    return {
        str(word.value) for name, word in given if name in ("main", "run") and isinstance(word, ast.Constant)
    }


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_run_elsewhere_is(name: str) -> None:
    """Where it is said to be: in a block of the README, or in a file of tests."""
    is_readme = ELSEWHERE[name] == "tests/test_readme.py"

    assert name in (run_in_the_readme() if is_readme else run_in(ROOT / ELSEWHERE[name]))


def test_every_command_is_a_module_of_its_own() -> None:
    """And each module without an underscore is a command."""
    modules = {path.stem for path in (ROOT / "httpx_cassette" / "cli").glob("[!_]*.py")}

    assert {name.replace("-", "_") for name in COMMANDS} == modules
