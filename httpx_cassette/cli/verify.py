"""``httpx-cassette verify``: every line of every file, and what is wrong with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from .._errors import CassetteDamaged, CassetteError, CassetteVersionError
from ._command import counted, say, say_error
from ._files import cassettes_in
from ._parameters import file_argument, import_option, json_option, open_file
from ._terminal import progress, show_json, show_lines

if TYPE_CHECKING:
    from .._cassette import Cassette
    from .._index import Damage

__all__ = ["command"]

#: The status of a finding.
_FINDING = 2


@click.command(epilog="Example: httpx-cassette verify tests/cassettes/*.jsonl")
@file_argument("files", nargs=-1, required=True)
@import_option()
@json_option("print an object in each line")
def command(files: Sequence[str], as_json: bool) -> int:
    """Check every line of cassettes.

    That it parses within the limits, that its seal is right, that its answer can be replayed, that its key is
    that of its request, that no two lines give the same call different answers, that no merge is unresolved;
    recordings of other key versions, and keys of wire formats that are not registered here, are counted. Each
    finding is named with its file and line, and the exit status is 2. A folder stands for all *.jsonl below
    it.
    """
    files = cassettes_in(files)
    found = failed = lines = 0
    for path in files:
        try:
            cassette = open_file(path)
            unjudged: Counter[str] = Counter()
            for damage in _findings(cassette, unjudged):
                found += 1
                _tell(cassette.path, damage, as_json)
            lines += _looked_at(cassette, unjudged, say if as_json else show_lines)
        except CassetteError as error:
            # The other files are looked at all the same.
            failed += 1
            say_error(str(error))
    if not as_json and failed < len(files):
        well = counted(found, "finding") if found else "nothing found"
        show_lines(f"{counted(lines, 'recording')} in {counted(len(files) - failed, 'file')}: {well}")
    return _FINDING if found else 1 if failed else 0


def _findings(cassette: Cassette, unjudged: Counter[str]) -> Iterator[Damage]:
    from .._index import Damage
    from .._verification import verify

    size = os.path.getsize(cassette.real_path)
    with progress(f"verify {cassette.path}", size) as bar:
        try:
            yield from verify(cassette, bar.advance, unjudged=unjudged)
        except (CassetteDamaged, CassetteVersionError) as error:
            # Of the file as a whole.
            yield Damage(error.line or 0, error.message)


def _tell(path: str, damage: Damage, as_json: bool) -> None:
    if as_json:
        show_json({"file": path, "line": damage.number or None, "finding": damage.reason})
    else:
        show_lines(
            f"{path}:{damage.number}: {damage.reason}" if damage.number else f"{path}: {damage.reason}"
        )


def _looked_at(cassette: Cassette, unjudged: Counter[str], note: Callable[[str], None]) -> int:
    """Return how many recordings there are, and tell what is no finding."""
    try:
        count, torn, others = len(cassette), cassette.torn, cassette.other_versions
    except CassetteError:
        return 0  # Of the file as a whole, which has been told.
    if torn:
        note(f"{cassette.path}: {counted(torn, 'line')} torn by a crash, which counts as not there")
    for version, number in sorted(others.items()):
        note(f"{cassette.path}: {counted(number, 'recording')} of key version {version}, not looked up")
    for dialect, number in sorted(unjudged.items()):
        note(
            f"{cassette.path}: {counted(number, 'key')} of the dialect {dialect!r} not checked, as it is not "
            "registered here; name the module that registers it: --import MODULE"
        )
    return count
