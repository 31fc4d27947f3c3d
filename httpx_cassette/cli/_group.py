"""The group of all commands: which there are, and what misuse and errors say.

A command is a module of this package that is named for it and has a :class:`click.Command` as ``command``. It
is imported when it is run, or asked for its help: ``run`` must not wait for what ``show`` needs. What a
command's callback returns is its exit status; ``None`` is fine.

Nothing here knows what a command does.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem, shell_complete

from .. import __version__
from .._errors import CassetteError
from .._suggest import nearest_name
from ._command import CannotRun, say_error

__all__ = ["COMMANDS", "GROUP", "run_command_line"]

#: Command -> what it does in a line, in the order of the help, in which they are not imported.
COMMANDS = {
    "run": "run a command in replay, and end with 2 if any process of it missed",
    "record": "run a command and make the real calls that an earlier run missed, none other",
    "ls": "list recordings, one in a row: which, when, the question, how it ended, what it took",
    "show": "show one recording as a person reads it: messages, answer, calls of tools, usage",
    "explain": "show how the key of a request comes about, and whether a cassette answers it",
    "diff": "compare two recordings, or two cassettes: requests by field, answers by line",
    "compare": "show answers to calls side by side that differ in one field: two models, two prompts",
    "stats": "count recordings, models, tokens, seconds and dollars, and when a cassette has paid for itself",
    "probe": "make one request live several times, and show how its answers differ",
    "verify": "check every line: that it parses, its seal, its key, that no two contradict each other",
    "scan": "look for secrets in files, and with --pii for personal data",
    "redact": "apply today's redaction to an old cassette, and give it the keys that come of it",
    "seed": "cut the small, redacted cassette that a suite needs out of a full one",
    "merge": "write several cassettes into one, and name what they answer differently",
    "compact": "drop recordings that were superseded, and those that are there twice",
    "reseal": "accept recordings that were edited by hand",
    "rekey": "compute the keys of recordings anew, under another policy or key version",
    "demo": "show the whole thing on this machine: no key, no network, under ten seconds",
    "stand-in": "serve answers that look like OpenAI's, to record against where there is no key",
}

_NAME = "httpx-cassette"

#: Set by the script that a shell runs at each TAB; ``_HTTPX_CASSETTE_COMPLETE=bash_source httpx-cassette``
#: prints that script.
_COMPLETE = "_HTTPX_CASSETTE_COMPLETE"

#: What a system says where there is no room.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(click.Group):
    """Knows its commands by name, and imports the one that is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".{cmd_name.replace('-', '_')}", __package__)
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            raise click.UsageError(f"there is no command {args[0]!r}{nearest_name(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items()]
        found = [each for each in names if each.value.startswith(incomplete)]
        return found or click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    subcommand_metavar="COMMAND ...",
    context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 fine, 1 could not do it, 2 a miss or a finding.",
)
@click.version_option(__version__, message="httpx_cassette %(version)s")
@click.pass_context
def GROUP(context: click.Context) -> None:
    """Record each exchange with a language model once, replay it offline for ever."""
    if context.invoked_subcommand is None:
        raise click.UsageError("the following arguments are required: COMMAND", context)


def run_command_line(words: Sequence[str]) -> int:
    """Run one command and return its exit status.

    Args:
        words: What follows the command's name.
    """
    if instruction := os.environ.get(_COMPLETE):
        return shell_complete(GROUP, {}, _NAME, _COMPLETE, instruction)
    # Not by click's own ``main``, which has the status of a miss for misuse, and none for Ctrl-C.
    try:
        with GROUP.make_context(_NAME, list(words)) as context:
            status: int | None = GROUP.invoke(context)
            # Not when Python ends, whose words and status for an output that is full are others.
            if sys.stdout is not None:
                sys.stdout.flush()
            return status or 0
    except click.exceptions.Exit as left:  # ``--help`` and ``--version``.
        return left.exit_code
    except click.ClickException as error:
        say_error(_said(error, words))
        return 1
    except CassetteError as error:
        say_error(str(error))
        return error.status if isinstance(error, CannotRun) else 1
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read the output has seen enough (``| head``).
        _leave_output()
        return 1
    except OSError as error:
        say_error(_said_by_system(error))
        return 1


def _leave_output() -> None:
    """Let go of what is still buffered, which has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _said_by_system(error: OSError) -> str:
    """Return what the system refused, and of which file, where it says so."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{error.filename}: {reason}"
    if error.errno in _FULL:
        # Commands that write files tell of these themselves.
        _leave_output()
        return f"the output cannot be written: {reason}"
    return reason


def _said(error: click.ClickException, words: Sequence[str]) -> str:
    """Return what is wrong with a command line, in one sentence that ends with where to read more."""
    if not isinstance(error, click.UsageError):
        return _without_stop(error.format_message())
    # Not by the context of the error: some have none.
    command = " ".join([_NAME, *(words[:1] if words and words[0] in COMMANDS else [])])
    return f"{_sentence(error, error.ctx)}; see {command} --help"


def _sentence(error: click.UsageError, context: click.Context | None) -> str:
    # In words of our own where click's differ from release to release.
    if isinstance(error, click.NoSuchOption):
        options = [option for each in _parameters(context) for option in each.opts if option.startswith("-")]
        return f"there is no option {error.option_name}{nearest_name(error.option_name, options)}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"the following arguments are required: {_named(error.param)}"
    if isinstance(error, click.BadParameter) and error.param is not None:
        return f"argument {_named(error.param)}: {_without_stop(error.message)}"
    if isinstance(error, click.BadOptionUsage) and "requires" in error.message:
        return f"argument {error.option_name}: expected one argument"
    return _without_stop(error.format_message())


def _parameters(context: click.Context | None) -> Sequence[click.Parameter]:
    return [] if context is None else context.command.get_params(context)


def _named(parameter: click.Parameter) -> str:
    """Return a parameter as it is typed: ``--from``, or ``FILE``."""
    if isinstance(parameter, click.Argument):
        return str(parameter.metavar or parameter.human_readable_name).removesuffix("...")
    return max(parameter.opts, key=len)


def _without_stop(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip().removesuffix(".")
