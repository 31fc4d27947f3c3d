"""``httpx-cassette seed``: out of a full cassette the small one that a suite needs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from .._errors import CassetteError, OptionError
from ._command import counted, say
from ._parameters import file_argument, json_option, open_file
from ._redaction import advice, redaction_of, redaction_options
from ._rewriting import Teller, dry_run_option, finish, force_option, out_option, write
from ._terminal import progress

if TYPE_CHECKING:
    from .._cassette import Cassette, Spot

__all__ = ["command"]


@click.command(epilog="Example: httpx-cassette seed full.jsonl -o seed.jsonl --used-by used.jsonl")
@file_argument()
@out_option()
@click.option(
    "--used-by", "used_by", metavar="FILE", required=True, help="what pytest --cassette-used=FILE has written"
)
@redaction_options()
@force_option()
@dry_run_option()
@json_option("print what was done as one object")
def command(
    file: str,
    out: str,
    used_by: str,
    has_pii: bool,
    has_names: bool,
    is_forced: bool,
    is_dry: bool,
    as_json: bool,
) -> int:
    """Cut the recordings that a test run used out of a cassette, redacted by today's rules.

    Of each call the newest generation with all its samples; nothing that was superseded. A recording that was
    used and is not there is an error, and nothing is written. FILE stays as it is.
    """  # fmt: skip
    from .._cleaning import cleaned

    redaction, is_usual = redaction_of(has_pii, has_names)
    cassette = open_file(file)
    if os.path.exists(out) and os.path.samefile(file, out):
        raise OptionError(f"{out} is the full cassette; name another file with -o")
    wanted = _used(used_by, file, out)
    spots = sorted(_wanted(cassette, wanted), key=lambda each: each[1].line)
    teller = Teller(as_json)
    with progress(f"seed {out}", os.path.getsize(cassette.real_path)) as bar:

        def lines() -> Iterator[tuple[bytes, bool]]:
            for key, spot in spots:
                recording = cassette.load(spot, key)
                assert recording is not None  # It was intact a moment ago, and the file stays open.
                bar.advance(len(recording.line))
                yield cleaned(recording, redaction), True

        write(out, lines(), teller, is_dry=is_dry, replaces=is_forced)
    if not is_usual:
        say(advice(redaction))
    verb = "would be written" if is_dry else "written"
    text = f"{out}: {counted(len(spots), 'recording')} of {counted(len(wanted), 'call')} {verb}"
    facts: dict[str, Any] = {
        "file": out,
        "recordings": len(spots),
        "calls": len(wanted),
        "dry_run": is_dry,
    }
    return finish(teller, facts, text)


def _used(path: str, *ours: str) -> list[str]:
    """Return the fingerprints that a run used, of these cassettes if it names them, else of all."""
    places = {os.path.realpath(each) for each in ours}
    found: dict[str, bool] = {}
    try:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                fingerprint, cassette = _read_used(line, path, number)
                found[fingerprint] = found.get(fingerprint, False) or os.path.realpath(cassette) in places
    except OSError as error:
        raise CassetteError(f"it cannot be read: {error.strerror}", path) from error
    return [each for each in found if found[each]] or list(found)


def _read_used(line: bytes, path: str, number: int) -> tuple[str, str]:
    try:
        facts = json.loads(line)
        return str(bytes.fromhex(facts["fingerprint"]).hex()), str(facts["cassette"])
    except (KeyError, TypeError, ValueError):
        raise CassetteError(
            "the line names no recording; the file is what pytest --cassette-used=FILE writes", path, number
        ) from None


def _wanted(cassette: Cassette, fingerprints: list[str]) -> Iterator[tuple[bytes, Spot]]:
    """Yield the keys and places of the recordings that calls are answered from.

    Raises:
        CassetteError: One is not there, or damaged.
    """
    missing = []
    for fingerprint in fingerprints:
        key = bytes.fromhex(fingerprint)
        spots = cassette.spots(key)
        newest = max((spot.gen for spot in spots), default=0)
        samples: dict[int, Spot] = {}
        for spot in spots:
            if spot.gen == newest and cassette.load(spot, key) is not None:
                # The last line of a sample comes first, and is the one that counts.
                samples.setdefault(spot.sample, spot)
        if not samples:
            missing.append(fingerprint[:12])
        yield from ((key, spot) for spot in samples.values())
    if missing:
        more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        raise CassetteError(
            f"{counted(len(missing), 'call')} of the run cannot be answered from it: "
            f"{', '.join(missing[:3])}{more}; record them, or merge the cassette that they are in",
            cassette.path,
        )
