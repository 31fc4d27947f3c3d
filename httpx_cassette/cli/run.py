"""``httpx-cassette run``: any command under the replay ceiling, which ends with 2 if anything missed.

The processes of the command leave what they missed in a ledger of this run alone, whichever of them reads it
otherwise: workers of a pool, children of a child, a program that replaces itself by another.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

import click

from .._errors import OptionError
from .._ledger import MISSES_VARIABLE, read_entries
from .._mode import Mode
from ._command import counted, say, told, watched
from ._parameters import command_to_run, needed

__all__ = ["command", "run_run"]

_EXAMPLE = "httpx-cassette run --misses misses.jsonl -- python app.py"

#: What a file of misses begins with: an entry, or one that is taken back.
_BEGINNINGS = (b'{"pid": ', b'-{"pid":')


@command_to_run("[--mode MODE] [--misses FILE] -- COMMAND ...", example=_EXAMPLE)
@click.option(
    "--mode",
    metavar="MODE",
    help="replay (the default); or record, rerecord or live, and then there is no ceiling",
)
@click.option("--misses", metavar="FILE", help="write what was missed to this file, anew")
def command(words: Sequence[str], mode: str | None, misses: str | None) -> int:
    """Run a command under the replay ceiling: nothing is paid for by httpx.

    If any process of it missed a call, the exit status is 2, whatever became of the error; otherwise it is
    the command's. Calls that go round httpx, by aiohttp or sockets of one's own, are not seen: docs/sdks.md
    names them under "What goes round the transport".
    """
    return run_run(needed(words, _EXAMPLE), mode, misses)


def run_run(command: Sequence[str], mode: str | None, misses: str | None) -> int:
    """Run a command and return its exit status, or 2 if anything missed in one of its processes.

    Args:
        command: A program and its arguments.
        mode: The mode, by default ``replay``.
        misses: The file to write the misses to, if any.

    Raises:
        OptionError: The mode is none, or must not be, or the file cannot be written; nothing was run.
        CassetteError: There is no folder for temporary files, or no such program; nothing was run.
    """
    with watched(mode or Mode.REPLAY.value, f"--mode {mode}") as watch:
        variables = {}
        if misses is not None:
            variables[MISSES_VARIABLE] = _begin(misses)
        status, stopped = watch.run(command, variables)
        status = told(status, stopped, names_misses=True)
    if misses is not None:
        _tell_how_to_record(command, misses, variables[MISSES_VARIABLE])
    return status


def _begin(misses: str) -> str:
    """Empty a file of misses, or make one; return its path.

    Raises:
        OptionError: It cannot be written, or holds something else.
    """
    # The processes do not follow a link, which in a folder for all might be another user's.
    path = os.path.realpath(misses)
    try:
        with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            begins = file.read(len(_BEGINNINGS[0]))
            if begins and begins not in _BEGINNINGS:
                # Such as a cassette, whose answers were paid for.
                raise OptionError(f"{misses} holds something else than misses; name another file")
            file.truncate(0)
    except OSError as error:
        raise OptionError(f"{misses} cannot be written: {error.strerror or error}") from error
    return path


def _tell_how_to_record(command: Sequence[str], misses: str, path: str) -> None:
    found = {entry.key for entry in read_entries(path) if entry.kind == "CassetteMiss"}
    if found:
        say(
            f"httpx-cassette: {counted(len(found), 'miss', 'es')} written to {misses}; record "
            f"{'it' if len(found) == 1 else 'them'} with: "
            f"httpx-cassette record --from {shlex.quote(misses)} -- {shlex.join(command)}"
        )
