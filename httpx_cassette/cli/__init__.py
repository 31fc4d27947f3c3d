"""The command ``httpx-cassette``. Exit status 0 is fine, 1 could not do it, 2 a miss or a finding.

``run``, ``record`` and ``stand-in`` run another command, and where nothing was missed end as it did.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from .._errors import CassetteError, OptionError
from ._command import CannotRun, say

__all__ = ["main"]

#: What is typed, for help and for whoever forgets the command.
_EXAMPLES = {
    "run": "httpx-cassette run --misses misses.jsonl -- python app.py",
    "record": "httpx-cassette record --from misses.jsonl -- python app.py",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Args:
        arguments: The words after the command's name; those of the process by default.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.main(options)
    except CassetteError as error:
        say(f"Error: {error}")
        return error.status if isinstance(error, CannotRun) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read the output has seen enough (``| head``); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one sentence. Not with argparse's status 2, which is that of a miss."""
        self.exit(1, f"Error: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    from .. import __version__

    parser = _Parser(
        prog="httpx-cassette",
        description="Record each exchange with a language model once, replay it offline for ever.",
        epilog="Exit status: 0 fine, 1 could not do it, 2 a miss.",
    )
    parser.add_argument("--version", action="version", version=f"httpx_cassette {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="show the whole thing on this machine: no key, no network, under ten seconds",
        description="Ask a stand-in model twice, record, stop it, replay 40 runs, edit the prompt and miss.",
    )
    demo.add_argument("--keep", metavar="FOLDER", help="leave the program and its cassette in this folder")
    demo.set_defaults(main=_demo)
    run = commands.add_parser(
        "run",
        help="run a command in replay, and end with 2 if any process of it missed",
        usage="httpx-cassette run [--mode MODE] [--misses FILE] -- COMMAND ...",
        description="Run a command under the replay ceiling: nothing is paid for. If any process of it "
        "missed a call, the exit status is 2, whatever became of the error; otherwise it is the command's.",
        epilog=f"Example: {_EXAMPLES['run']}",
    )
    run.add_argument(
        "--mode", help="replay (the default); or record, rerecord or live, and then there is no ceiling"
    )
    run.add_argument("--misses", metavar="FILE", help="write what was missed to this file, anew")
    _add_command(run, _EXAMPLES["run"])
    run.set_defaults(main=_run)
    record = commands.add_parser(
        "record",
        help="run a command and make the real calls that an earlier run missed, none other",
        description="Show the calls that an earlier run missed, then run a command that may make and record "
        "these. Any other real call in any process of it is refused, and the exit status is 2.",
        usage="httpx-cassette record --from FILE [--max-calls N] -- COMMAND ...",
        epilog=f"Example: {_EXAMPLES['record']}",
    )
    record.add_argument(
        "--from", dest="misses", metavar="FILE", required=True, help="what httpx-cassette run --misses wrote"
    )
    record.add_argument(
        "--max-calls",
        type=_count,
        metavar="N",
        help="the most real calls of all processes together, those that are tried again included",
    )
    _add_command(record, _EXAMPLES["record"])
    record.set_defaults(main=_record)
    stand_in = commands.add_parser(
        "stand-in",
        help="serve answers that look like OpenAI's, to record against where there is no key",
        usage="httpx-cassette stand-in [--port PORT] [-- COMMAND ...]",
        description="Run a command with OPENAI_BASE_URL set to a stand-in for a model; or serve till Ctrl-C.",
    )
    stand_in.add_argument("--port", type=int, default=8377, help="where to listen (default: %(default)s)")
    _add_command(stand_in)
    stand_in.set_defaults(main=_stand_in)
    return parser


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of calls")
    return int(text)


def _add_command(parser: _Parser, example: str | None = None) -> None:
    """Have a parser take a command: all that stands after ``--``; with an example it must be there."""
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="what to run")
    parser.set_defaults(example=example)


def _command_of(options: argparse.Namespace) -> list[str]:
    command: list[str] = options.words[options.words[:1] == ["--"] :]
    if options.example and not command:
        raise OptionError(f"no command is given; write it after --, such as: {options.example}")
    return command


# Each command is imported when it is run: the demo and the stand-in bring a server.


def _demo(options: argparse.Namespace) -> int:
    from .demo import run_demo

    return run_demo(options.keep)


def _run(options: argparse.Namespace) -> int:
    from .run import run_run

    return run_run(_command_of(options), options.mode, options.misses)


def _record(options: argparse.Namespace) -> int:
    from .record import run_record

    return run_record(_command_of(options), options.misses, options.max_calls)


def _stand_in(options: argparse.Namespace) -> int:
    from .stand_in import run_stand_in

    return run_stand_in(_command_of(options), options.port)
