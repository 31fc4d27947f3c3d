"""``docs/cli.md``: each command is there as it is, with an example that was run."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from httpx_cassette.cli._group import COMMANDS, GROUP

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


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_is_run_elsewhere_is(name: str) -> None:
    """The command stands in the file that is said to run it, or in the page that this file runs."""
    text = Path(ROOT, ELSEWHERE[name]).read_text(encoding="utf-8")
    page = (ROOT / "README.md").read_text(encoding="utf-8") if "readme" in ELSEWHERE[name] else text

    assert f"httpx-cassette {name}" in page or f'"{name}"' in page


def test_every_command_is_a_module_of_its_own() -> None:
    """And each module without an underscore is a command."""
    modules = {path.stem for path in (ROOT / "httpx_cassette" / "cli").glob("[!_]*.py")}

    assert {name.replace("-", "_") for name in COMMANDS} == modules
