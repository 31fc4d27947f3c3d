"""``httpx-cassette reseal``: accept what somebody edited by hand."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from .._errors import CassetteError, OptionError
from .._line import is_intact, read_head
from ._command import counted
from ._parameters import json_option
from ._rewriting import Teller, dry_run_option, finish, rewrite

if TYPE_CHECKING:
    from .._cassette import Cassette
    from .._rewrite import Change

__all__ = ["command"]


@click.command(epilog="Example: httpx-cassette reseal chat.jsonl:2")
@click.argument("place", metavar="FILE[:LINE]")
@dry_run_option()
@json_option("print an object in each line, what was done last")
def command(place: str, is_dry: bool, as_json: bool) -> int:
    """Accept recordings that were edited by hand: they are sealed again, and replayed.

    All lines that can be read and whose seal is wrong, or the one that is named. Where the request was
    edited, the recording gets the key of it. Lines that cannot be read stay as they are, and are named.
    """
    file, wanted = _read_place(place)
    teller = Teller(as_json)
    done: list[int] = []

    def plan(cassette: Cassette) -> Change:
        # Those that a crash has torn are no damage, and nobody's edit.
        numbers = {wanted} if wanted else {damage.number for damage in cassette.check()}
        if wanted:
            _require(cassette, wanted)
        return lambda number, line: (
            _accepted(file, number, line, teller, done, is_wanted=bool(wanted)) if number in numbers else line
        )

    rewrite("reseal", file, plan, teller, is_dry=is_dry)
    verb = "would be accepted" if is_dry else "accepted"
    facts = {"file": file, "resealed": done, "dry_run": is_dry}
    return finish(teller, facts, f"{file}: {counted(len(done), 'edited recording')} {verb}")


def _read_place(place: str) -> tuple[str, int]:
    """Return the file, and the line or 0 for all."""
    found = re.fullmatch(r"(.+):(\d{1,9})", place)
    if found is None or os.path.exists(place):
        return place, 0
    if found[2] == "0":
        raise OptionError(f"lines are counted from 1, so that {place!r} names none")
    return found[1], int(found[2])


def _require(cassette: Cassette, number: int) -> None:
    with open(cassette.real_path, "rb") as file:
        lines = sum(1 for _ in file)
    if number > lines:
        raise OptionError(f"{cassette.path} has no line {number}; it has {counted(lines, 'line')}")


def _accepted(
    file: str, number: int, line: bytes, teller: Teller, done: list[int], *, is_wanted: bool
) -> bytes:
    from .._rekeying import resealed

    if is_intact(line):  # One that contradicts another is, too.
        return line
    try:
        new = resealed(line, file, number)
    except CassetteError as error:
        if is_wanted:
            raise
        teller.finding(file, number, f"kept as it is: {error.message}")
        return line
    done.append(number)
    before, after = read_head(line), read_head(new)
    if before is not None and after is not None and before.key != after.key:
        teller.fact(file, number, f"a new key, {after.key.hex()[:12]}, as the request was edited")
    return new
