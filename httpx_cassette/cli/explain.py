"""``httpx-cassette explain``: how the key of a request comes about, and whether a cassette has an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from .._call import Call
from .._errors import CassetteError, OptionError
from ._asked import Asked, read_asked
from ._parameters import json_option, open_file
from ._terminal import show_json, show_lines

if TYPE_CHECKING:
    from .._difference import Change
    from .._explain import Derivation
    from .._nearest import Nearest
    from .._recording import Recording
    from .._settings import Settings

__all__ = ["command"]

#: The status of a miss.
_MISS = 2

#: How many recordings are shown that come near, and how many differences of each.
_NEAREST = 3
_CHANGES = 20

#: How many are compared in full, some of which may be the same request.
_COMPARED = 8

#: Named where no cassette is: nothing is looked up in it.
_NO_CASSETTE = "none.jsonl"


@click.command(epilog="Example: httpx-cassette explain request.json --cassette chat.jsonl")
@click.argument("file", metavar="FILE", type=click.Path(allow_dash=True))
@click.option(
    "--cassette", "cassettes", metavar="FILE", multiple=True, type=click.Path(),
    help="look the request up in this cassette; may be given several times",
)  # fmt: skip
@click.option("--entry", metavar="N", type=click.IntRange(min=1), help="which entry of a HAR file, from 1")
@json_option("print the facts as one object")
def command(file: str, cassettes: Sequence[str], entry: int | None, as_json: bool) -> int:
    """Explain the key of a request: what is hashed, what each rule changed, whether it would be answered.

    FILE, or - for what is piped in, holds JSON, as show --request prints it or with method, url, headers and
    body; or a curl command line; or a HAR file. The options are those of the project, from pyproject.toml.
    Nothing is sent. With --cassette, the exit status of a miss is 2, and the nearest recordings are shown.
    """
    asked = read_asked(file, entry)
    settings = _settings(cassettes)
    derivation = _derive(asked, settings, file)
    found = nearest = None
    if cassettes:
        key = bytes.fromhex(derivation.explanation.fingerprint)
        found = settings.shelf.find(key, 0, exact=False)
        nearest = [] if found is not None else _nearest(derivation, settings)
    if as_json:
        show_json(_facts(derivation, found, nearest), is_indented=True)
    else:
        show_lines(str(derivation.explanation))
        if nearest is not None:
            _show_found(found, nearest, cassettes)
    return _MISS if cassettes and found is None else 0


def _settings(cassettes: Sequence[str]) -> Settings:
    from .._settings import read_settings

    opened = [open_file(path) for path in cassettes]
    return read_settings(opened or [_NO_CASSETTE], {"mode": "replay", "on_miss": None})


def _derive(asked: Asked, settings: Settings, file: str) -> Derivation:
    from .._explain import derive, derive_stored
    from .._recording import INCOMPARABLE

    try:
        return derive(asked, settings) if isinstance(asked, Call) else derive_stored(asked, settings)
    except CassetteError:
        raise  # A prompt file cannot be read.
    except INCOMPARABLE as error:
        raise OptionError("it holds no request that a key can be computed of", file) from error


def _nearest(derivation: Derivation, settings: Settings) -> list[Nearest]:
    from .._nearest import nearest_few
    from .._search import Candidates

    found: list[Nearest] = []
    for each in nearest_few(derivation.compared, Candidates(settings), _COMPARED):
        # Not the same request once more: its other samples, and what they superseded.
        if all(each.candidate.document != other.candidate.document for other in found):
            found.append(each)
    return found[:_NEAREST]


# -- what is shown -------------------------------------------------------------------------------------


def _show_found(found: Recording | None, nearest: Sequence[Nearest], cassettes: Sequence[str]) -> None:
    from .._excerpt import show_change
    from .._miss import shown_path, tally

    if found is not None:
        show_lines(f"hit          {found.path}:{found.number}, recorded {found.at}")
        return
    show_lines(f"miss         no recording in {' and '.join(cassettes)}")
    for each in nearest:
        where = each.candidate
        show_lines(f"nearest      {where.where}, recorded {where.at}: {tally(each, False)}")
        for change in each.changes[:_CHANGES]:
            show_lines("\n".join(show_change(shown_path(change.path), change)), indent="    ")
        if len(each.changes) > _CHANGES:
            show_lines(f"    ... and {len(each.changes) - _CHANGES:,} more")
    if not nearest:
        show_lines("nearest      none: there is no recording to compare with")


def _facts(
    derivation: Derivation, found: Recording | None, nearest: Sequence[Nearest] | None
) -> dict[str, Any]:
    from .._fingerprint import KEY_VERSION

    explanation = derivation.explanation
    facts: dict[str, Any] = {
        "fingerprint": explanation.fingerprint,
        "key_version": KEY_VERSION,
        "dialect": explanation.dialect,
        "key_document": explanation.key_document,
        "rules": [{"rule": effect.rule, "changes": list(effect.changes)} for effect in explanation.rules],
    }
    if nearest is not None:
        hit = None if found is None else {"file": found.path, "line": found.number, "at": found.at}
        facts |= {"hit": hit, "nearest": [_nearest_facts(each) for each in nearest]}
    return facts


def _nearest_facts(found: Nearest) -> dict[str, Any]:
    file, _, line = found.candidate.where.rpartition(":")
    changes = [_change_facts(change) for change in found.changes]
    return {"file": file, "line": int(line), "at": found.candidate.at, "changes": changes}


def _change_facts(change: Change) -> dict[str, Any]:
    from .._difference import MISSING
    from .._miss import shown_path

    sides = {"old": change.old, "new": change.new}
    # What is absent is left out: null is a value.
    return {"path": shown_path(change.path), **{n: each for n, each in sides.items() if each is not MISSING}}
