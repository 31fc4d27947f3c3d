"""``httpx-cassette record``: exactly what an earlier run missed is paid for, any other real call is refused.

Which calls these are is shown before the command is run. They may be tried again, as SDKs do after a failure,
or asked for more than once, for several samples; a limit holds for all processes of the command together.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import click

from .._allowed import ONLY_VARIABLE, allowed_text, is_fingerprint
from .._budget import calls_made
from .._errors import OptionError
from .._excerpt import cut, escape
from .._ledger import Entry, read_entries
from .._mode import Mode
from .._settings import MAX_CALLS_VARIABLE
from ._command import counted, say, told, watched
from ._parameters import COUNT, command_to_run, needed

__all__ = ["command", "run_record"]

_EXAMPLE = "httpx-cassette record --from misses.jsonl -- python app.py"

#: Calls that are shown: what more there is stands in the file. Of each, so many paths.
_SHOWN = 10
_PATHS = 3


@command_to_run("--from FILE [--max-calls N] -- COMMAND ...", example=_EXAMPLE)
@click.option(
    "--from", "misses", metavar="FILE", required=True, help="what httpx-cassette run --misses wrote"
)
@click.option(
    "--max-calls",
    metavar="N",
    type=COUNT,
    help="the most real calls of all processes together, those that are tried again included",
)
def command(words: Sequence[str], misses: str, max_calls: int | None) -> int:
    """Run a command and make the real calls that an earlier run missed, none other.

    Shows the calls, then runs a command that may make and record these. Any other real call in any process
    of it is refused, and the exit status is 2.
    """
    return run_record(needed(words, _EXAMPLE), misses, max_calls)


def run_record(command: Sequence[str], misses: str, max_calls: int | None) -> int:
    """Run a command and return its exit status, or 2 if a call was stopped in one of its processes.

    Args:
        command: A program and its arguments.
        misses: The file of the misses that are recorded.
        max_calls: How many real calls there may be in all, those that are tried again included.

    Raises:
        OptionError: The file holds no misses, or real calls must not be made; nothing was run.
        CassetteError: There is no folder for temporary files, or no such program; nothing was run.
    """
    with watched(Mode.RECORD.value, "record") as watch:
        if os.environ.get(ONLY_VARIABLE):
            raise OptionError(f"{ONLY_VARIABLE} allows some calls already, such as those of another record")
        missed = _read_misses(misses)
        before = len(calls_made(watch.budget))
        _show(missed, misses, max_calls)
        # A copy of the fingerprints, not the misses themselves: a call that is refused is a miss, too, and
        # where the processes append their misses to the same file, it would allow itself the next time.
        only = watch.folder / "only.txt"
        only.write_text(allowed_text(escape(misses), missed), encoding="utf-8", errors="backslashreplace")
        variables = {ONLY_VARIABLE: str(only)}
        if max_calls is not None:
            variables[MAX_CALLS_VARIABLE] = str(max_calls)
        status, stopped = watch.run(command, variables)
        _tell_what_was_made(missed, Counter(calls_made(watch.budget)[before:]))
    return told(status, stopped, names_misses=False)


def _read_misses(misses: str) -> dict[str, str]:
    """Return the calls that were missed, by fingerprint, each in a line or two.

    Raises:
        OptionError: There are none.
    """
    if not os.path.exists(misses):
        name = shlex.quote(misses)
        raise OptionError(
            f"{misses} does not exist; it is written by: httpx-cassette run --misses {name} -- COMMAND"
        )
    try:
        entries = read_entries(os.path.realpath(misses))
    except OSError as error:
        raise OptionError(f"{misses} cannot be read: {error.strerror or error}") from error
    found: dict[str, list[Entry]] = {}
    for entry in filter(_is_miss, entries):
        found.setdefault(entry.key, []).append(entry)
    if not found:
        kinds = sorted({str(entry.kind) for entry in entries})
        others = f", only what no recording helps against: {cut(', '.join(kinds), 200)}" if kinds else ""
        raise OptionError(f"{misses} holds no misses, so there is nothing to record{others}")
    return {key: _described(same) for key, same in found.items()}


def _is_miss(entry: Entry) -> bool:
    # The file may have been written by anybody.
    return entry.kind == "CassetteMiss" and bool(is_fingerprint(str(entry.key)))


def _described(same: Sequence[Entry]) -> str:
    """Return what was called, and below it what tells it from other calls, as far as that is known."""
    entry = same[0]
    found: object = entry.facts
    facts = found if isinstance(found, dict) else {}
    words = [str(facts[name]) for name in ("method", "url", "model") if facts.get(name) is not None]
    call = f"{cut(' '.join(words), 200)} {entry.key[:12]}".lstrip()
    details = "; ".join(filter(None, (_asked(facts), _where(same))))
    return f"{call}\n    {details}" if details else call


def _asked(facts: Mapping[str, object]) -> str:
    said = facts.get("words")
    words = f'"{cut(said, 60)}"' if isinstance(said, str) and said else ""
    paths = facts.get("changed")
    changed = _some(map(str, paths), _PATHS) if isinstance(paths, list) and paths else ""
    return ", ".join(filter(None, (words, changed and f"changed: {changed}")))


def _where(same: Iterable[Entry]) -> str:
    tests = {str(entry.test): None for entry in same if entry.test}
    return f"in {_some(tests, 1)}" if tests else ""


def _some(names: Iterable[str], number: int) -> str:
    names = list(names)
    more = f" and {len(names) - number:,} more" if len(names) > number else ""
    return ", ".join(cut(name, 120) for name in names[:number]) + more


def _show(missed: Mapping[str, str], misses: str, max_calls: int | None) -> None:
    most = "" if max_calls is None else f", with {counted(max_calls, 'request')} at most"
    often = f"{'each ' if len(missed) > 1 else ''}as often as it is asked for{most}"
    say(f"httpx-cassette: {counted(len(missed), 'call')} may be made, {often}, and no other: {misses}")
    _list(list(missed.values()))


def _tell_what_was_made(missed: Mapping[str, str], made: Counter[str]) -> None:
    # What was tried: whether it was answered, and the answer stored, its process has told.
    left = [described for fingerprint, described in missed.items() if fingerprint not in made]
    done = len(missed) - len(left)
    in_all = f", in {counted(made.total(), 'request')}" if made.total() != done else ""
    more = "; not tried, as they were recorded before, not asked for, or stopped:" if left else ""
    say(f"httpx-cassette: {done:,} of {counted(len(missed), 'call')} tried{in_all}{more}")
    _list(left)


def _list(described: Sequence[str]) -> None:
    for lines in described[:_SHOWN]:
        say(f"  {lines}")
    if len(described) > _SHOWN:
        say(f"  ... and {len(described) - _SHOWN:,} more")
