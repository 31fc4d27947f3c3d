"""``httpx-cassette diff``: how two recordings differ, or two cassettes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ._command import counted
from ._parameters import find_exchange, json_option, open_cassette, tell_what_is_left_out
from ._terminal import progress, show_json, show_lines

if TYPE_CHECKING:
    from .._alignment import Pair
    from .._comparison import Contrast
    from .._difference import Change
    from .._exchange import Exchange

__all__ = ["command"]

#: The status of a finding.
_FINDING = 2

#: Characters of a question that are shown.
_WORDS = 60


class _Diff(click.Command):
    """Shows the three ways in which two recordings, or two cassettes, are named."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[OPTIONS]", "FILE FILE | FILE KEY KEY | FILE KEY FILE KEY"]


@click.command(cls=_Diff, epilog="Example: httpx-cassette diff old.jsonl new.jsonl")
@click.argument("words", metavar="FILE", nargs=-1, required=True)
@json_option("print the facts as one object; of two cassettes, an object in each line")
def command(words: Sequence[str], as_json: bool) -> int:
    """Compare two recordings, or two cassettes: requests by field, answers by line.

    Two files are compared recording by recording: those of one fingerprint first, then each that remains with
    the nearest one, where at most half of the fields differ. Requests are compared as stored. Answers are
    compared by what they say, with status and finish reason; ids, tokens and times differ each time.
    The exit status is 0 where nothing differs, and 2 where something does.
    """
    if len(words) == 2:
        return _compare_cassettes(words[0], words[1], as_json)
    if len(words) not in (3, 4):
        raise click.UsageError("two cassettes are needed, or one or two with two keys")
    right_file, right_key = words[-2:] if len(words) == 4 else (words[0], words[2])
    left = find_exchange(open_cassette(words[0]), words[1])
    right = find_exchange(open_cassette(right_file), right_key)
    return _compare_recordings(left, right, as_json)


# -- two recordings ------------------------------------------------------------------------------------


def _compare_recordings(left: Exchange, right: Exchange, as_json: bool) -> int:
    from .._comparison import contrast

    found = contrast(left, right)
    if as_json:
        sides = {"left": _named(left), "right": _named(right)}
        show_json({**sides, **_contrast_facts(found)}, is_indented=True)
    else:
        show_lines(f"{_title(left)}\n{_title(right)}", style="bold")
        _show_contrast(found)
        if not any(found):
            show_lines("nothing differs")
    return _FINDING if any(found) else 0


def _title(exchange: Exchange) -> str:
    facts = (exchange.fingerprint[:12], f"{exchange.path}:{exchange.line}", exchange.at, exchange.model)
    return "  ".join(filter(None, facts))


def _show_contrast(found: Contrast) -> None:
    from .._excerpt import show_change

    for change in (*found.request, *found.response):
        show_lines("\n".join(show_change(_path(change), change)), indent="  ")
    if found.answer:
        show_lines("  answer")
        for line in found.answer:
            # Each by itself, in the colour of what it says.
            style = {"-": "red", "+": "green", "@": "cyan"}.get(line[:1], "")
            show_lines(line, indent="    ", style=style)


def _path(change: Change) -> str:
    """Return a path as a person names it: within the body, whose kind says itself."""
    path = change.path.removeprefix("body.")
    return path.removeprefix("json.") or path


# -- two cassettes -------------------------------------------------------------------------------------


def _compare_cassettes(left_path: str, right_path: str, as_json: bool) -> int:
    from .._alignment import align

    left, right = open_cassette(left_path), open_cassette(right_path)
    counts = dict.fromkeys(("alike", "same", "nearest", "left", "right"), 0)
    with progress(f"diff {left.path} {right.path}", left.size) as bar:
        for pair in align(left, right):
            if pair.left is not None:
                bar.advance(pair.left.size + 1)
            counts[_tell(pair, as_json)] += 1
    if not as_json:
        _show_tally(counts, left.path, right.path)
    for recordings in (left, right):
        tell_what_is_left_out(recordings)
    return _FINDING if sum(counts.values()) > counts["alike"] else 0


def _tell(pair: Pair, as_json: bool) -> str:
    """Show a pair, if it differs; return what it is counted as."""
    from .._comparison import contrast

    found = None
    if pair.left is not None and pair.right is not None:
        found = contrast(pair.left, pair.right)
        if pair.kind == "same" and not any(found):
            return "alike"
    if as_json:
        sides = {"left": pair.left and _named(pair.left), "right": pair.right and _named(pair.right)}
        show_json({"kind": pair.kind, **sides, **(_contrast_facts(found) if found else {})})
        return pair.kind
    for sign, exchange in (("-", pair.left), ("+", pair.right)):
        if exchange is not None:
            words = " ".join(exchange.question[: 4 * _WORDS].split())[:_WORDS]
            show_lines(f"{sign} {_title(exchange)}  {words}", style="bold")
    if found is not None:
        _show_contrast(found)
    return pair.kind


def _show_tally(counts: dict[str, int], left: str, right: str) -> None:
    said = [f"{counted(counts['alike'], 'recording')} alike"]
    for kind, text in (
        ("same", "otherwise"), ("nearest", "beside the nearest one"),
        ("left", f"only in {left}"), ("right", f"only in {right}"),
    ):  # fmt: skip
        said += [f"{counts[kind]:,} {text}"] if counts[kind] else []
    show_lines(", ".join(said))


# -- facts ---------------------------------------------------------------------------------------------


def _named(exchange: Exchange) -> dict[str, Any]:
    return {
        "file": exchange.path,
        "line": exchange.line,
        "fingerprint": exchange.fingerprint,
        "sample": exchange.sample,
        "at": exchange.at,
        "model": exchange.model,
    }


def _contrast_facts(found: Contrast) -> dict[str, Any]:
    return {
        "request": [_change_facts(change) for change in found.request],
        "response": [_change_facts(change) for change in found.response],
        "answer": found.answer,
    }


def _change_facts(change: Change) -> dict[str, Any]:
    from .._difference import MISSING

    sides = {"old": change.old, "new": change.new}
    # What is absent is left out: null is a value.
    return {"path": _path(change), **{name: each for name, each in sides.items() if each is not MISSING}}
