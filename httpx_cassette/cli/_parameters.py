"""Arguments and options that several commands have, so that they are named, read and completed alike."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
from click.shell_completion import CompletionItem

import httpx_cassette

from .._errors import CassetteError, OptionError
from ._command import counted, say

if TYPE_CHECKING:
    from .._cassette import Cassette
    from .._exchange import Exchange
    from .._opened import Recordings

__all__ = [
    "COUNT",
    "Callback",
    "command_to_run",
    "file_argument",
    "find_exchange",
    "import_option",
    "json_option",
    "key_argument",
    "needed",
    "open_cassette",
    "open_file",
    "read_time",
    "tell_what_is_left_out",
]

_F = TypeVar("_F", bound=Callable[..., Any])

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


# -- cassettes and recordings ---------------------------------------------------------------------------


def open_cassette(path: str) -> Recordings:
    """Open a cassette that a command was given.

    Raises:
        OptionError: It is ``-``: a cassette is read here and there, which a pipe cannot be.
        CassetteError: There is no such file, or it is none.
    """
    return httpx_cassette.open(_file_name(path))


def open_file(path: str) -> Cassette:
    """Open a cassette whose lines are looked at one by one.

    Raises:
        OptionError: It is ``-``.
        CassetteError: There is no such file, or it is none.
    """
    from .._opened import cassette_at

    return cassette_at(_file_name(path))


def _file_name(path: str) -> str:
    if path == "-":
        raise OptionError("a cassette cannot be read from a pipe; name its file")
    return path


def tell_what_is_left_out(recordings: Recordings) -> None:
    """Say on stderr which lines of a cassette were passed over; it was read before."""
    path = recordings.path
    # All lines were read by now: this reads none.
    damaged = recordings.damaged
    if damaged:
        say(f"{path}: {counted(len(damaged), 'damaged line')} left out; see httpx-cassette verify {path}")
    for version, count in sorted(recordings.other_versions.items()):
        say(f"{path}: {counted(count, 'recording')} of key version {version} left out")


def read_time(text: str) -> datetime | None:
    """Return the time of ``2026-11-29``, ``2026-11-29T12:00:00Z``, or ``7d`` or ``12h`` ago, if it is one."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return datetime.now(timezone.utc) - timedelta(hours=int(ago[1]) * (24 if ago[2] == "d" else 1))
    try:
        # ``Z`` is not read before Python 3.11.
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)


_AGO = re.compile(r"(\d{1,5})([dh])")


def find_exchange(recordings: Recordings, key: str, sample: int | None = None) -> Exchange:
    """Return the one recording that a key names.

    Args:
        recordings: The cassette.
        key: The first digits of a fingerprint, or ``:`` and the number of a line.
        sample: Which of several answers; the first by default.

    Raises:
        OptionError: It names none, or recordings of several fingerprints.
        UsageError: A sample is asked for, and the key is a line, which is one answer.
    """
    line = _LINE.fullmatch(key)
    if line is not None:
        if sample is not None:
            raise click.UsageError(
                f"argument --sample: not allowed with {key}, which is the line of one answer"
            )
        return _at_line(recordings, int(line[1]))
    fingerprints: dict[str, None] = {}
    there: list[int] = []
    first = wanted = last = None
    for exchange in recordings.find(key) if key else ():
        # Nothing but the one that is meant is kept: a beginning may fit a large part of a file.
        fingerprints[exchange.fingerprint] = None
        if exchange.superseded or len(fingerprints) > 1:
            last = exchange.line
            continue
        there.append(exchange.sample)
        first = first or exchange
        if exchange.sample == (sample or 0):
            wanted = wanted or exchange
    if len(fingerprints) > 1:
        shown = ", ".join(_apart(list(fingerprints))[:_LISTED])
        more = f" and {len(fingerprints) - _LISTED:,} more" if len(fingerprints) > _LISTED else ""
        raise OptionError(
            f"{len(fingerprints):,} calls of {recordings.path} begin with {key!r}: {shown}{more}"
        )
    if not fingerprints:
        raise OptionError(f"no recording of {recordings.path} begins with {key!r}{_nearest(recordings, key)}")
    if first is None:
        raise OptionError(
            f"what {next(iter(fingerprints))[:12]} is answered with is damaged; an older answer is shown by "
            f"its line, such as :{last}"
        )
    if wanted is None and sample is None:
        wanted = first
    if wanted is None:
        samples = ", ".join(map(str, there))
        raise OptionError(f"{next(iter(fingerprints))[:12]} has no sample {sample}; there are {samples}")
    return wanted


_LINE = re.compile(r":(\d{1,9})")

#: Fingerprints that are listed where several could be meant.
_LISTED = 10


def _at_line(recordings: Recordings, number: int) -> Exchange:
    for exchange in recordings:
        if exchange.line == number:
            return exchange
    reason = next((damage.reason for damage in recordings.damaged if damage.number == number), "")
    raise OptionError(f"line {number} of {recordings.path} is {reason or 'no recording'}")


def _apart(fingerprints: Sequence[str]) -> list[str]:
    """Return fingerprints as short as they can be told apart, 12 digits or more."""
    length = 12
    while length < 64 and len({each[:length] for each in fingerprints}) < len(fingerprints):
        length += 4
    return [each[:length] for each in fingerprints]


def _nearest(recordings: Recordings, key: str) -> str:
    from .._difference import common_prefix

    known = {each[: max(12, len(key))] for each in recordings.fingerprints}
    if not known:
        return "; it has none"
    near = difflib.get_close_matches(key.lower().ljust(12), known, n=3, cutoff=0.4)
    # By what they begin with alike, where nothing is similar.
    near = near or sorted(known, key=lambda each: (-common_prefix(each, key.lower()), each))[:3]
    return f"; the nearest: {', '.join(each[:12] for each in near)}"


def _complete_key(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the fingerprints of the file that stands before, with what they are."""
    path = context.params.get("file")
    if not isinstance(path, str):
        return []
    from .._excerpt import cut

    try:
        recordings = open_cassette(path)
        # By the index: of what begins so, only what is offered is read, one line of each.
        keys = (each for each in recordings.fingerprints if each.startswith(incomplete.lower()))
        found = islice(filter(None, (next(recordings.find(key), None) for key in keys)), _COMPLETED)
        items = {each.fingerprint[:12]: f"{each.model} {cut(each.question, 40)}".strip() for each in found}
    except CassetteError:
        return []
    return [CompletionItem(key, help=text) for key, text in items.items()]


#: Fingerprints that a shell is offered.
_COMPLETED = 50


def file_argument(name: str = "file", **options: Any) -> Callable[[_F], _F]:
    """Make an argument that is a cassette; the callback opens it with :func:`open_cassette`."""
    return click.argument(
        name,
        metavar="FILE..." if options.get("nargs") == -1 else "FILE",
        type=click.Path(allow_dash=True),
        **options,
    )


def key_argument(name: str = "key", **options: Any) -> Callable[[_F], _F]:
    """Make an argument that names a recording of the file before it; see :func:`find_exchange`."""
    return click.argument(name, metavar="KEY", shell_complete=_complete_key, **options)


def json_option(text: str) -> Callable[[_F], _F]:
    """Make the option ``--json``, which is ``as_json`` in the callback."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def import_option() -> Callable[[_F], _F]:
    """Make the option ``--import``; the modules are imported before the callback runs."""
    return click.option(
        "--import",
        "modules",
        metavar="MODULE",
        multiple=True,
        expose_value=False,
        callback=_import,
        help="import this module first, such as one that registers a wire format; may be repeated",
    )


def _import(context: click.Context, parameter: click.Parameter, modules: Sequence[str]) -> None:
    """Import what the project registers, from the folder that the command is run in, as Python would.

    Raises:
        OptionError: One of the modules cannot be imported.
    """
    if not modules or context.resilient_parsing:
        return
    if not {"", os.getcwd()} & set(sys.path):  # An installed command has its own folder there instead.
        sys.path.insert(0, os.getcwd())
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise OptionError(
                f"{name} cannot be imported: {type(error).__name__}: {error}; give --import the name of a "
                "module that can be imported from this folder, such as tests.conftest"
            ) from error
