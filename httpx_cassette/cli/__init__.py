"""The command ``httpx-cassette``. Exit status 0 is fine, 1 could not do it, 2 a miss or a finding."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Args:
        arguments: The words after the command's name; those of the process by default.
    """
    from .. import __version__

    parser = argparse.ArgumentParser(
        prog="httpx-cassette",
        description="Record each exchange with a language model once, replay it offline for ever.",
    )
    parser.add_argument("--version", action="version", version=f"httpx_cassette {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="show the whole thing on this machine: no key, no network, under ten seconds",
        description="Ask a stand-in model twice, record, stop it, replay 40 runs, edit the prompt and miss.",
    )
    demo.add_argument("--keep", metavar="FOLDER", help="leave the program and its cassette in this folder")
    stand_in = commands.add_parser(
        "stand-in",
        help="serve answers that look like OpenAI's, to record against where there is no key",
        description="Run a command with OPENAI_BASE_URL set to a stand-in for a model; or serve till Ctrl-C.",
    )
    stand_in.add_argument("--port", type=int, default=8377, help="where to listen (default: %(default)s)")
    stand_in.add_argument("run", nargs=argparse.REMAINDER, metavar="[--] COMMAND", help="what to run")
    options = parser.parse_args(arguments)
    try:
        if options.command == "stand-in":
            from .stand_in import run_stand_in

            return run_stand_in(options.run[options.run[:1] == ["--"] :], options.port)
        from .demo import run_demo

        return run_demo(options.keep)
    except BrokenPipeError:
        # Whoever read the output has seen enough (``| head``); what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
