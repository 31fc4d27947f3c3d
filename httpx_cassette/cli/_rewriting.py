"""What the commands share that write a cassette anew: the new file is verified before it takes a name.

Until then the old file is as it was, whatever ends the command. ``--dry-run`` goes all the way up to there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .._errors import CassetteError
from .._rewrite import Change, rewrite_lines, write_new
from ._command import counted, say
from ._parameters import open_file
from ._terminal import progress, show_json, show_lines

if TYPE_CHECKING:
    from .._cassette import Cassette
    from .._index import Damage

__all__ = ["FINDING", "Teller", "dry_run_option", "finish", "force_option", "out_option", "rewrite", "write"]

_F = TypeVar("_F", bound=Callable[..., Any])

#: The status of a finding.
FINDING = 2


class _Dry(Exception):
    """Ends a rewriting that is only tried, when all is done but the last step."""


class Teller:
    """Counts what is found, and tells it: by file and line, or as JSON.

    Args:
        as_json: Whether facts are printed for programs.
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.found = 0

    def finding(self, path: str, number: int, text: str) -> None:
        """Tell something that makes the status 2."""
        self.found += 1
        self.fact(path, number, text, "finding")

    def fact(self, path: str, number: int, text: str, kind: str = "done") -> None:
        """Tell something else."""
        if self.as_json:
            show_json({"file": path, "line": number, kind: text})
        else:
            show_lines(f"{path}:{number}: {text}")


def dry_run_option() -> Callable[[_F], _F]:
    """Make the option ``--dry-run``."""
    return click.option("--dry-run", "is_dry", is_flag=True, help="say what would be done, and write nothing")


def out_option() -> Callable[[_F], _F]:
    """Make the option ``-o``, which is ``out`` in the callback."""
    return click.option("-o", "--out", metavar="FILE", required=True, help="the cassette that is written")


def force_option() -> Callable[[_F], _F]:
    """Make the option ``--force``."""
    return click.option("--force", "is_forced", is_flag=True, help="replace the file where there is one")


def rewrite(
    what: str, path: str, plan: Callable[[Cassette], Change], teller: Teller, *, is_dry: bool
) -> None:
    """Change lines of a cassette.

    Args:
        what: What is done, for the progress bar.
        path: The file.
        plan: Gets the cassette when nothing is appended any more, and says what becomes of each line.
        teller: Is told of recordings that contradict each other afterwards.
        is_dry: Leave the file as it is.

    Raises:
        CassetteError: It cannot be done; the file is as it was.
    """
    open_file(path)
    with progress(f"{what} {path}", os.path.getsize(path)) as bar:

        def planned() -> Change:
            change = plan(open_file(path))

            def counted(number: int, line: bytes) -> bytes | None:
                bar.advance(len(line) + 1)
                return change(number, line)

            return counted

        with suppress(_Dry):
            rewrite_lines(path, planned, lambda new, numbers: _check(new, path, numbers, teller, is_dry))


def write(
    path: str, lines: Iterator[tuple[bytes, bool]], teller: Teller, *, is_dry: bool, replaces: bool
) -> None:
    """Write a cassette out of lines; as :func:`rewrite`."""
    if path == "-":
        raise CassetteError("a cassette cannot be written to a pipe; name a file: -o seed.jsonl")
    if os.path.isdir(path):
        raise CassetteError("the path is a folder; name a file in it, such as chat.jsonl", path)
    with suppress(_Dry):
        write_new(
            path,
            lines,
            lambda new, numbers: _check(new, path, numbers, teller, is_dry),
            replaces=replaces,
        )


#: How the reason begins where two recordings contradict each other.
_CONFLICT = "another answer than line "


def _check(new: str, path: str, numbers: Sequence[int], teller: Teller, is_dry: bool) -> None:
    """Refuse a new file in which a line that was written is not as it should be."""
    from .._cassette import Cassette
    from .._verification import verify

    written = frozenset(numbers)
    conflicts: list[Damage] = []
    cassette = Cassette(new)
    for damage in verify(cassette):
        if damage.reason.startswith(_CONFLICT):
            conflicts.append(damage)
        elif damage.number in written:
            raise CassetteError(
                f"the new file would not pass verify ({damage.reason}), so the old one was kept",
                path,
                damage.number,
            )
    if damaged := len(cassette.damage):
        say(f"{path}: {counted(damaged, 'damaged line')} kept; see httpx-cassette verify {path}")
    for damage in conflicts:
        teller.finding(path, damage.number, f"{damage.reason}; the last line of them is replayed")
    if is_dry:
        raise _Dry


def finish(teller: Teller, facts: dict[str, Any], text: str) -> int:
    """Tell what was done, and return the exit status.

    Args:
        teller: Knows what was found.
        facts: For programs.
        text: For people.
    """
    if teller.as_json:
        show_json(facts)
    else:
        show_lines(text)
    return FINDING if teller.found else 0
