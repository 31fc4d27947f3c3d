"""``httpx-cassette stand-in``: a server to record against where there is no key.

It listens on the same port each time, because the address is part of every key.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Sequence

import click

from .._exit import LEDGER_VARIABLE, is_named_for
from ..stand_in import StandInServer
from ._command import run_command, say, say_error
from ._parameters import command_to_run

__all__ = ["command", "run_stand_in"]

_EXAMPLE = "HTTPX_CASSETTE_MODE=record httpx-cassette stand-in -- python app.py"


@command_to_run("[--port PORT] [-- COMMAND ...]", example=_EXAMPLE)
@click.option(
    "--port", metavar="PORT", type=int, default=8377, show_default=True, help="where to listen; 0 is anywhere"
)
def command(words: Sequence[str], port: int) -> int:
    """Run a command with OPENAI_BASE_URL set to a stand-in for a model; or serve till Ctrl-C."""
    return run_stand_in(words, port)


def run_stand_in(command: Sequence[str], port: int) -> int:
    """Serve while a command runs, or until Ctrl-C; return the exit status.

    Args:
        command: A program and its arguments, which finds the server in ``OPENAI_BASE_URL``; none waits for
            Ctrl-C.
        port: The port of 127.0.0.1 to listen on; 0 takes a free one.

    Raises:
        CannotRun: There is no such program, or it cannot be run.
    """
    try:
        server = StandInServer(port=port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        say_error(f"port {port} cannot be listened on: {reason}; give another: --port")
        return 1
    with server:
        settings = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "stand-in"}
        if command:
            # A server beside the command, and no part of it: what the command missed is told by itself.
            if is_named_for(os.environ.get(LEDGER_VARIABLE, ""), os.getpid()):
                settings[LEDGER_VARIABLE] = ""
            return run_command(command, settings)
        for name, value in settings.items():
            print(f"export {name}={value}", flush=True)
        say("no model, but it answers in OpenAI's chat format; Ctrl-C ends it")
        # A shell that starts it in the background lets it ignore Ctrl-C, and ends it in this way.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0
