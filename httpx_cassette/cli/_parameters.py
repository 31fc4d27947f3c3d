"""Arguments and options that several commands have, so that they are named, read and completed alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from .._errors import OptionError

__all__ = ["COUNT", "Callback", "command_to_run", "needed"]

#: What becomes a command; it returns the exit status.
Callback: TypeAlias = Callable[..., "int | None"]


class _Count(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not str(value).isdecimal():
            self.fail(f"{value!r} is no number of calls", param, ctx)
        return int(value)


#: A number of calls.
COUNT = _Count()


# -- a command that is run ------------------------------------------------------------------------------


class _RunsAnother(click.Command):
    """Shows where the words of the other command stand, which click cannot know."""

    def __init__(self, *words: Any, usage: str, **options: Any) -> None:
        super().__init__(*words, **options)
        self.usage = usage

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [self.usage]


def command_to_run(usage: str, *, example: str) -> Callable[[Callback], click.Command]:
    """Make a command that takes another one, ``words``: all that stands after ``--``.

    Args:
        usage: What follows the name of the command.
        example: A line that can be typed.
    """

    def make(callback: Callback) -> click.Command:
        return click.command(
            cls=_RunsAnother,
            usage=usage,
            epilog=f"Example: {example}",
            # The options of the other command are its own.
            context_settings={"allow_interspersed_args": False},
        )(click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND")(callback))

    return make


def needed(words: Sequence[str], example: str) -> Sequence[str]:
    """Return the words of a command that must be there.

    Raises:
        OptionError: There are none.
    """
    if not words:
        raise OptionError(f"no command is given; write it after --, such as: {example}")
    return words
