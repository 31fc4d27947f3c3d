"""What a miss says: what was asked, what exists, the nearest recording, and what to do.

Everything arrives as plain data that was redacted before; nothing here reads files or knows httpx.
The report is meant for a terminal and for a log alike. Its first line says it all, the rest is indented,
every value is escaped, and the whole is bounded whatever the values are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePath

from ._call import Json
from ._errors import CassetteMiss
from ._excerpt import cut, show_change
from ._hints import Hint, Mask, Masks, body_path, hint
from ._nearest import Nearest

__all__ = [
    "CassetteFacts",
    "MissFacts",
    "command_line",
    "compose",
    "miss",
    "shown_path",
    "tally",
]

#: The most bytes a report has: a run with hundreds of misses must still fit into a log.
MAX_REPORT = 16_384

_MAX_CHANGES = 20
_MAX_CASSETTES = 8
_MAX_NOTES = 4
_MAX_LINES = 10

# A longer command line, or one with invisible characters, is not pasted by anybody.
_MAX_COMMAND = 1000
_UNKNOWN_COMMAND = "<this command>"

# What the words of a worker begin with, after its interpreter and the options of that: nobody can start one,
# as it waits for the program that did. multiprocessing's (spawn and forkserver), execnet's for pytest-xdist,
# and loky's for joblib.
_WORKER = re.compile(
    r"-c from multiprocessing\.|-c import sys;exec\(eval\(sys\.stdin\.readline\(\)\)\)"
    r"|-m \S*\bloky\.backend\."
)

_NAMES_IN_DOCUMENT = frozenset({"method", "url", "headers", "body", "prompt_files", "extra"})


@dataclass(frozen=True, slots=True)
class CassetteFacts:
    """One cassette that was looked up.

    Args:
        path: The file as the user named it.
        recordings: How many recordings it holds; ``None`` when there is no such file.
        damaged: The numbers of the lines that cannot be read.
        other_versions: How many lines there are of each other key version.
        other_policies: How many recordings were keyed under another policy.
        folder: Where a relative path was looked for, as programs are run from other folders.
        is_writable: Whether a recording could be stored in it.
    """

    path: str
    recordings: int | None
    damaged: tuple[int, ...] = ()
    other_versions: Mapping[int, int] = field(default_factory=dict)
    other_policies: int = 0
    folder: str | None = None
    is_writable: bool = True


@dataclass(frozen=True, slots=True)
class MissFacts:
    """Everything a report is made of.

    Args:
        method: The HTTP method.
        url: The URL, redacted.
        dialect: The wire format that was recognised.
        model: The model asked for, if the call names one.
        fingerprint: The key of the call, 64 hex digits.
        cassettes: What was looked up, in that order.
        asked: The comparison document: the key document before long strings became digests, redacted.
        mask: Applies the built-in mask of a name to a text.
        nearest: The nearest recording, if there is any.
        words: The first words of what was asked last, so that calls can be told apart.
        argv: The command as it was started, redacted: ``sys.orig_argv``, or words like it.
        command: A command that records, where somebody knows a better one.
        ignore: Paths that the policy in force ignores.
        masks: The masks of the policy in force, as it was given them.
        key_version: The version of the key.
        is_mode_given: Whether the mode was an argument, which the environment variable does not override.
        refusal: Why the call may not be made, where the mode would have made it.
        notes: More lines for the end of the report.
    """

    method: str
    url: str
    dialect: str
    model: str | None
    fingerprint: str
    cassettes: tuple[CassetteFacts, ...]
    asked: Json
    mask: Mask
    nearest: Nearest | None = None
    words: str = ""
    argv: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    masks: Masks = ()
    key_version: int = 1
    is_mode_given: bool = False
    refusal: str | None = None
    notes: tuple[str, ...] = ()


def miss(facts: MissFacts) -> CassetteMiss:
    """Return the error of a miss, its report and its facts."""
    found = facts.nearest
    return CassetteMiss(
        compose(facts),
        {
            "fingerprint": facts.fingerprint,
            "cassettes": tuple(cassette.path for cassette in facts.cassettes),
            "method": facts.method,
            "url": facts.url,
            "dialect": facts.dialect,
            "model": facts.model,
            "changed": tuple(shown_path(change.path) for change in found.changes) if found else (),
            "nearest": found.candidate.where if found else None,
            "words": facts.words,
        },
    )


def compose(facts: MissFacts) -> str:
    """Return the report of a miss: at most 16 KiB of UTF-8, nothing invisible in it."""
    head = [_first_line(facts), *_asked_lines(facts), *_cassette_lines(facts.cassettes)]
    tail = _advice_lines(facts)
    room = MAX_REPORT - _size(head) - _size(tail)
    return "\n".join([*head, *_nearest_lines(facts, room), *tail])


def command_line(argv: Sequence[str]) -> str:
    """Return the command to type again, quoted for a POSIX shell.

    Args:
        argv: ``sys.orig_argv`` or ``sys.argv``; empty when nobody knows.
    """
    words = _as_typed(list(argv))
    text = shlex.join(words)
    is_short = 0 < len(text.encode(errors="replace")) <= _MAX_COMMAND
    return text if is_short and text.isprintable() else _UNKNOWN_COMMAND


def _how_to_record(argv: Sequence[str], command: Sequence[str]) -> str:
    if command and shlex.join(command).isprintable():
        return shlex.join(command)
    if _is_worker(argv):
        return "set HTTPX_CASSETTE_MODE=record for the program that started this process"
    return f"HTTPX_CASSETTE_MODE=record {command_line(argv)}"


def _how_to_allow(argv: Sequence[str]) -> str:
    command = "COMMAND" if _is_worker(argv) else command_line(argv)
    return f"have a run miss it first: httpx-cassette run --misses FILE -- {command}"


def _is_worker(argv: Sequence[str]) -> bool:
    return any(_WORKER.match(f"{option} {code}") for option, code in pairwise(argv))


def _size(lines: Sequence[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _first_line(facts: MissFacts) -> str:
    paths = [cut(cassette.path, 160) for cassette in facts.cassettes[:2]]
    where = " and ".join(paths) if len(facts.cassettes) <= 2 else f"{len(facts.cassettes)} cassettes"
    return f"no recording for {cut(facts.method, 20)} {cut(facts.url, 300)} in {where or 'any cassette'}"


def _asked_lines(facts: MissFacts) -> list[str]:
    model = [_fact("model", cut(facts.model, 100))] if facts.model else []
    key = f"{cut(facts.fingerprint, 64)} (key version {facts.key_version}, dialect {cut(facts.dialect, 40)})"
    refused = [_fact("refused", cut(facts.refusal, 400))] if facts.refusal else []
    return [*model, _fact("fingerprint", key), *refused]


def _fact(label: str, text: str) -> str:
    return f"  {label:<11}  {text}"


def _cassette_lines(cassettes: Sequence[CassetteFacts]) -> list[str]:
    lines = [_fact("cassette", _cassette_line(cassette)) for cassette in cassettes[:_MAX_CASSETTES]]
    more = len(cassettes) - len(lines)
    return [*lines, f"  ... and {more} more"] if more else lines


def _cassette_line(cassette: CassetteFacts) -> str:
    path = cut(cassette.path, 160)
    if cassette.recordings is None:
        looked_in = f" (looked in {cut(cassette.folder, 160)})" if cassette.folder else ""
        return f"{path}: does not exist{looked_in}"
    said = [_count(cassette.recordings, "recording")]
    if cassette.damaged:
        shown = ", ".join(f"{line}" for line in cassette.damaged[:_MAX_LINES])
        more = len(cassette.damaged) - _MAX_LINES
        ending = f" and {more} more" if more > 0 else ""
        said.append(f"damaged line{'s' if cassette.damaged[1:] else ''} {shown}{ending}")
    for version, lines in sorted(cassette.other_versions.items())[:_MAX_LINES]:
        said.append(f"{_count(lines, 'line')} of key version {version}")
    if cassette.other_policies:
        said.append(f"{_count(cassette.other_policies, 'recording')} under another key policy")
    return f"{path}: {'; '.join(said)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _nearest_lines(facts: MissFacts, room: int) -> list[str]:
    found = facts.nearest
    if found is None:
        return [_fact("nearest", "none: there is no recording to compare with")]
    where = f"{cut(found.candidate.where, 200)}, recorded {cut(found.candidate.at, 40)}"
    lines = [_fact("nearest", f"{where}: {tally(found, bool(facts.refusal))}")]
    if found.is_partial:
        lines.append(
            _fact("", f"of the newest {_count(found.looked_at, 'recording')}: looking at more takes too long")
        )
    room -= _size(lines) + len("    ... and 1,000,000 more\n")
    shown = 0
    for change in found.changes[:_MAX_CHANGES]:
        block = [f"    {line}" for line in show_change(shown_path(change.path), change)]
        room -= _size(block)
        if room < 0:
            break
        lines += block
        shown += 1
    more = len(found.changes) - shown
    return [*lines, f"    ... and {more:,} more"] if more else lines


def tally(found: Nearest, is_refused: bool) -> str:
    """Return how much of the nearest recording differs, in words."""
    number, fields = len(found.changes), found.fields
    if not number and is_refused:  # In rerecord: what is recorded would be asked once more.
        return "the same request"
    if not number:
        return "the same request, keyed under another policy or key version; record once more under this one"
    if number > fields:
        return _count(number, "difference")
    return f"{number:,} of {_count(fields, 'field')} {'differs' if number == 1 else 'differ'}"


def shown_path(path: str) -> str:
    """Return a path as options name it, except where that would name another part of the key."""
    short = body_path(path) or path
    first = re.split(r"[.\[]", short, maxsplit=1)[0]
    return (path if first in _NAMES_IN_DOCUMENT else short) or "(all of it)"


def _advice_lines(facts: MissFacts) -> list[str]:
    how = _how_to_allow(facts.argv) if facts.refusal else _how_to_record(facts.argv, facts.command)
    written = facts.cassettes[-1] if facts.cassettes else None
    if written is not None and not written.is_writable:
        path = cut(written.path, 160)
        how = f"{path} cannot be written: make it writable, or list another after it, and: {how}"
    if facts.is_mode_given and not facts.refusal:
        how = (
            "mode='record' in place of the mode='replay' that the code gives, or give none there and: " + how
        )
    lines = [f"  to record it: {how}"]
    found = facts.nearest
    if found is not None:
        documents = (found.candidate.document, facts.asked)
        advice = hint(found.changes, facts.mask, documents=documents, ignore=facts.ignore, masks=facts.masks)
        if advice is not None and len(advice.option) <= _MAX_COMMAND:
            lines.append(f"  {_introduction(advice, len(found.changes))}: {advice.option}")
    return [*lines, *(f"  {cut(note, 400)}" for note in facts.notes[:_MAX_NOTES])]


def _introduction(advice: Hint, changes: int) -> str:
    covered = len(advice.paths)
    if covered == changes:
        return "to leave it out of the key, and record once more"
    return f"to leave {covered} of these {changes} differences out of the key, and record once more"


def _as_typed(words: list[str]) -> list[str]:
    """Return the words of a command as a person types them: ``pytest -x``, not the path of its script."""
    program = PurePath(words[0]) if words else PurePath()
    if re.fullmatch(r"python[0-9.]*w?(?:\.exe)?", program.name):
        is_installed = PurePath(words[1]).parent.name in {"bin", "Scripts"} if words[1:] else False
        return _as_typed(words[1:]) if is_installed else [program.name, *words[1:]]
    if not program.name or words[0] in {"-c", "-m"}:
        return []
    if program.name == "__main__.py":
        module = program.parent.name
        return ["python", "-m", module, *words[1:]]
    if program.suffix == ".py":
        return ["python", *words]
    return [program.name.removesuffix(".exe"), *words[1:]]
