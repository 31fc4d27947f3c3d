"""How a value, or the difference between two, is shown in a terminal.

Everything shown comes from files and requests that nobody vouches for: control, bidirectional, format and
other invisible characters are written as escapes, lone surrogates too, and every text has a limit.
Nothing here knows what the values mean.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator
from difflib import SequenceMatcher

from ._call import Json
from ._difference import MISSING, Change, Missing, common_prefix
from ._digests import is_digest

__all__ = ["cut", "escape", "escape_lines", "remark", "show_change"]

# A line of a report is read in a terminal of 80 to 120 columns.
_WIDTH = 110
_VALUE = 72

_LINE = 96

# How much is shown before the first character that differs.
_BEFORE = 20

# How many lines of one text are shown, and how many of one stretch that was replaced.
_DIFF_LINES = 14
_BLOCK_LINES = 5

# Lines that meet the quadratic comparison; more of them could not be shown anyway.
_COMPARED_LINES = 200

_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(text: str) -> str:
    r"""Return the text with everything invisible written as ``\n``, ``\uXXXX`` or ``\UXXXXXXXX``."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def escape_lines(text: str) -> str:
    """Return a text of several lines with everything invisible in them written as an escape."""
    return text if text.isprintable() else "\n".join(map(escape, text.split("\n")))


def cut(text: str, limit: int) -> str:
    """Return the text escaped, at most ``limit`` characters of it, ending in ``...`` where it was cut."""
    return _fit(text, limit)[0]


def remark(old: str, new: str) -> str | None:
    """Return a sentence for texts that look alike, or ``None`` when they differ in what can be seen."""
    if old + "\n" == new or new + "\n" == old:
        owner = "the recording" if len(old) > len(new) else "this call"
        return f"differs only in the final newline, which only {owner} has"
    for what, fold in _LOOKS:
        if fold(old) == fold(new):
            return f"differs only in {what}, first at character {common_prefix(old, new) + 1:,}"
    return None


def show_change(path: str, change: Change) -> list[str]:
    """Return the lines that show one change: one line if it fits, else old and new below the path.

    Args:
        path: The place as the reader knows it.
        change: What differs there.
    """
    path = cut(path, 160)
    old, new = change.old, change.new
    if isinstance(old, str) and isinstance(new, str):
        return _show_texts(path, old, new)
    if isinstance(old, dict) and isinstance(new, dict) and is_digest(old) and is_digest(new):
        said = "its bytes changed" if change.path.startswith("prompt_files") else "differs"
        return [f"{path}   {said}: {_digest(old)} -> {_digest(new)}"]
    return _side_by_side(path, show_value(old), show_value(new))


def _fit(text: str, limit: int) -> tuple[str, bool]:
    """Return the text escaped within a limit, and whether something had to be left out."""
    shown = escape(text[:limit])
    if len(text) <= limit and len(shown) <= limit:
        return shown, False
    kept = limit - 3
    while (excess := len(shown := escape(text[:kept])) - limit + 3) > 0:
        # No escape is longer than ten characters, so this never takes off more than it must.
        kept -= (excess + 9) // 10
    return f"{shown}...", True


def _escaped(character: str) -> str:
    code = ord(character)
    return _SHORT_ESCAPES.get(character) or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def _without_trailing_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip()


def _with_plain_spaces(text: str) -> str:
    return text.replace("\u00a0", " ").replace("\u202f", " ").replace("\u2007", " ")


# From the narrowest to the widest: the first that makes two texts equal names their difference best.
_LOOKS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("line ends", lambda text: text.replace("\r\n", "\n").replace("\r", "\n")),
    ("trailing white space", _without_trailing_blanks),
    ("non-breaking spaces", _with_plain_spaces),
    ("Unicode normalisation", lambda text: unicodedata.normalize("NFC", text)),
    ("white space", lambda text: "".join(text.split())),
)


def _show_texts(path: str, old: str, new: str) -> list[str]:
    said = remark(old, new)
    if said:
        return [f"{path}   {said}"]
    if "\n" in old or "\n" in new:
        return [path, *(f"  {line}" for line in _line_diff(old.split("\n"), new.split("\n")))]
    start = _window_start(old, new, _VALUE)
    return _side_by_side(path, _quote(old, start), _quote(new, start))


def _side_by_side(path: str, old: str, new: str) -> list[str]:
    line = f"{path}   {old} -> {new}"
    return [line] if len(line) <= _WIDTH else [path, f"  - {old}", f"  + {new}"]


def show_value(value: Json | Missing) -> str:
    if value is MISSING:
        return "(absent)"
    text = ""
    for piece in _pieces(value):
        text += piece
        if len(text) > _VALUE and isinstance(value, (dict, list)):
            kind = "members" if isinstance(value, dict) else "items"
            return f"{text[:_VALUE]}... ({len(value):,} {kind})"
    return _fit(text, 2 * _VALUE)[0]


def _pieces(value: Json) -> Iterator[str]:
    """Yield the text of a value piece by piece, so that a large one is not built only to be cut."""
    if isinstance(value, dict) and is_digest(value):
        yield _digest(value)
    elif isinstance(value, dict):
        yield "{"
        for number, (name, child) in enumerate(value.items()):
            yield f"{', ' if number else ''}{_quote(name)}: "
            yield from _pieces(child)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, child in enumerate(value):
            yield ", " if number else ""
            yield from _pieces(child)
        yield "]"
    else:
        yield _quote(value) if isinstance(value, str) else json.dumps(value)


def _quote(text: str, start: int = 0) -> str:
    """Return a text in quotes, from a position on, and its length when that is not all of it."""
    part = text[start : start + _VALUE + 1].replace("\\", "\\\\").replace('"', '\\"')
    shown, is_cut = _fit(part, _VALUE)
    quoted = f'"{"..." if start else ""}{shown}"'
    return f"{quoted} ({len(text):,} characters)" if start or is_cut else quoted


def _digest(value: dict[str, Json]) -> str:
    return f"{value['$bytes']:,} bytes, sha256 {str(value['$sha256'])[:12]}.."


def _window_start(old: str, new: str, width: int) -> int:
    """Return where to begin so that the first difference of two texts is in sight."""
    return max(0, common_prefix(old, new) - _BEFORE) if max(len(old), len(new)) > width else 0


def _line_diff(old: list[str], new: list[str]) -> list[str]:
    """Return the lines of a unified diff with one line of context, not more than can be read."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    first = max(0, start - 1)
    old = old[first : len(old) - end + 1][:_COMPARED_LINES]
    new = new[first : len(new) - end + 1][:_COMPARED_LINES]
    lines: list[str] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(1):
        _, i1, _, j1, _ = group[0]
        _, _, i2, _, j2 = group[-1]
        lines.append(f"@@ -{first + i1 + 1},{i2 - i1} +{first + j1 + 1},{j2 - j1} @@")
        for tag, a, b, c, d in group:
            if tag == "equal":
                lines.append(f" {_line(old[a])}")
            else:
                lines += _replaced(old[a:b], new[c:d])
    more = len(lines) - _DIFF_LINES
    return lines if more <= 0 else [*lines[:_DIFF_LINES], f"... {more} more lines of this difference"]


def _replaced(old: list[str], new: list[str]) -> list[str]:
    """Return removed and added lines; where they pair up, long ones begin near what differs."""
    pairs = zip(old, new, strict=True) if len(old) == len(new) else ()
    starts = [_window_start(a, b, _LINE) for a, b in pairs] or [0] * _BLOCK_LINES
    lines: list[str] = []
    for sign, side in (("-", old), ("+", new)):
        lines += [
            f"{sign}{_line(text, start)}" for text, start in zip(side[:_BLOCK_LINES], starts, strict=False)
        ]
        if len(side) > _BLOCK_LINES:
            lines.append(f"{sign}... {len(side) - _BLOCK_LINES} more lines")
    return lines


def _line(text: str, start: int = 0) -> str:
    return f"{'...' if start else ''}{cut(text[start:], _LINE)}"
