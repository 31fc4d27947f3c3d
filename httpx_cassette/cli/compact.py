"""``httpx-cassette compact``: a cassette without what nothing is answered from any more."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

import click

from ._command import counted
from ._parameters import file_argument, json_option
from ._rewriting import Teller, dry_run_option, finish, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._cassette import Cassette, Spot
    from .._rewrite import Change

__all__ = ["command"]


@click.command(epilog="Example: httpx-cassette compact chat.jsonl --dry-run")
@file_argument()
@dry_run_option()
@json_option("print what was done as one object")
def command(file: str, is_dry: bool, as_json: bool) -> int:
    """Drop recordings that were superseded, and those that are there twice.

    Every other line stays as it is to the byte, damaged ones and those of other kinds too; a recording is
    only superseded by one that is intact. The file is replaced in one step when the new one was verified.
    """
    teller = Teller(as_json)
    dropped: list[int] = []
    kept = 0

    def plan(cassette: Cassette) -> Change:
        nonlocal kept
        dropped.extend(sorted(_superseded(cassette)))
        gone = frozenset(dropped)
        kept = len(cassette) - len(gone)
        return lambda number, line: None if number in gone else line

    rewrite("compact", file, plan, teller, is_dry=is_dry)
    verb = "would be dropped" if is_dry else "dropped"
    text = f"{file}: {counted(len(dropped), 'superseded recording')} {verb}, {kept:,} kept"
    facts = {"file": file, "dropped": dropped, "kept": kept, "dry_run": is_dry}
    return finish(teller, facts, text)


def _superseded(cassette: Cassette) -> Iterator[int]:
    """Yield the lines that nothing is answered from, as another one of the same call is."""
    for key in cassette.all_keys():
        spots = cassette.spots(key)
        if len(spots) > 1:
            # Only what is intact supersedes anything, or is superseded. No line is kept: there may be many.
            intact = [spot for spot in spots if cassette.load(spot, key) is not None]
            yield from _superseded_among(cassette, key, intact)


def _superseded_among(cassette: Cassette, key: bytes, spots: list[Spot]) -> Iterator[int]:
    """Yield the lines of one call that are not needed; the last line comes first."""
    from .._view import answer_of

    newest = max((spot.gen for spot in spots), default=0)
    answers: dict[int, set[bytes]] = {}
    for spot in spots:
        if spot.gen < newest:
            yield spot.line
            continue
        recording = cassette.load(spot, key)
        assert recording is not None  # It was intact a moment ago, and the file is locked.
        known = answers.setdefault(spot.sample, set())
        answer = blake2b(answer_of(recording.line), digest_size=16).digest()
        # One that says something else is no copy: verify names it, and people decide.
        if answer in known:
            yield spot.line
        known.add(answer)
