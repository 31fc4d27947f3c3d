"""``httpx-cassette scan``: secrets in files, by place and kind; no value is ever printed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import click

from .._errors import CassetteError
from .._secret_search import Found
from ._command import counted, say_error
from ._files import Chosen
from ._parameters import json_option
from ._terminal import progress, show_json, show_lines

if TYPE_CHECKING:
    from .._secret_search import Search

__all__ = ["command"]

_FINDING = 2

#: Bytes that are looked at together, and how many of them are looked at again with what follows: a private
#: key may begin in the ones and end in the others.
_PIECE = 1024 * 1024
_OVERLAP = 16 * 1024

#: Bytes of a line that is looked at as a whole, so that its JSON path can be told.
_LINE = 8 * 1024 * 1024


@click.command(epilog="Example: httpx-cassette scan tests/cassettes --pii")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--pii", "has_pii", is_flag=True, help="look for e-mail, phone, card and account numbers too")
@click.option("--names", "has_names", is_flag=True, help="look for values of names such as password= too")
@json_option("print an object in each line")
def command(paths: Sequence[str], has_pii: bool, has_names: bool, as_json: bool) -> int:
    """Look for secrets in files and folders: any text, cassettes or not; - is the standard input.

    A secret is found as it is, percent-encoded, escaped as in JSON, and in base64. It is told by its place,
    its kind and the beginning of its digest, never by its value; the exit status is 2 then. Own patterns
    of redact in pyproject.toml count too. In folders, what git ignores and binary files are left out.
    """
    search = _search(has_pii, has_names)
    chosen = Chosen(paths)
    found = files = 0
    for path in chosen:
        try:
            for finding in _scan(path, search):
                found += 1
                _tell(path, finding, search, as_json)
            files += 1
        except CassetteError as error:
            chosen.failed.append(error)
    for failure in chosen.failed:
        say_error(str(failure))
    if not as_json:
        well = counted(found, "finding") if found else "nothing found"
        show_lines(f"{counted(files, 'file')} scanned: {well}")
        skipped = [f"{number:,} {reason}" for reason, number in sorted(chosen.skipped.items()) if number]
        if skipped:
            show_lines(f"left out: {', '.join(skipped)}")
    return _FINDING if found else 1 if chosen.failed else 0


def _search(has_pii: bool, has_names: bool) -> Search:
    from .._project import project_defaults
    from .._redact import Redaction
    from .._secret_search import NAMES, PII, Search
    from .._tripwire import HMAC_KEY_VARIABLE

    table = project_defaults().options.get("redact")
    own = table if isinstance(table, dict) else {}
    patterns = Redaction(patterns=own.get("patterns", {})).patterns
    return Search(
        (PII if has_pii else ()) + (NAMES if has_names else ()),
        {kind: str(pattern) for kind, pattern in patterns.items()},
        frozenset(own.get("weak", ())),
        os.environ.get(HMAC_KEY_VARIABLE, "").encode("utf-8", "surrogateescape"),
    )


# -- one file ------------------------------------------------------------------------------------------


class _Finding(NamedTuple):
    """A secret in a file: line and column from 1, and where it stands in the JSON of its line."""

    line: int
    column: int
    place: str
    found: Found


class _Piece(NamedTuple):
    """Some bytes of a file.

    Args:
        data: The bytes.
        line: The number of the line in which they begin.
        column: How many bytes of that line stand before them.
        done: How many of them were looked at before: what begins there was told.
        stop: How many of them are looked at now; the others come again, with what follows.
    """

    data: bytes
    line: int
    column: int
    done: int
    stop: int


def _scan(path: str, search: Search) -> Iterator[_Finding]:
    try:
        if path == "-":
            for piece in _pieces(sys.stdin.buffer.readline, lambda size: None):
                yield from _in_piece(piece, search)
                yield from _in_events(piece, search)
            return
        with open(path, "rb") as file, progress(f"scan {path}", os.fstat(file.fileno()).st_size) as bar:
            with _reader(file) as readline:
                for piece in _pieces(readline, bar.advance):
                    yield from _in_piece(piece, search)
                    yield from _in_events(piece, search)
    except OSError as error:
        raise CassetteError(f"it cannot be read: {error.strerror}", path) from error


@contextmanager
def _reader(file: BinaryIO) -> Iterator[Callable[[int], bytes]]:
    """Give what reads lines of a file as UTF-8."""
    is_wide = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
    file.seek(0)
    if not is_wide:
        yield file.readline
        return
    text = TextIOWrapper(file, encoding="utf-16", errors="replace", newline="")
    try:
        yield lambda most: text.readline(most).encode("utf-8", "surrogatepass")
    finally:
        text.detach()


def _pieces(readline: Callable[[int], bytes], advance: Callable[[int], None]) -> Iterator[_Piece]:
    """Yield a file in pieces of whole lines, as far as these are not too long."""
    data, line, column, done = b"", 1, 0, 0
    is_last = False
    while not is_last:
        lines, size = [data], len(data)
        while size < _PIECE and not is_last:
            lines.append(readline(_LINE))
            size += len(lines[-1])
            advance(len(lines[-1]))
            is_last = not lines[-1]
        data = b"".join(lines)
        yield _Piece(data, line, column, done, size if is_last else size - _OVERLAP // 2)
        dropped, data, done = data[:-_OVERLAP], data[-_OVERLAP:], _OVERLAP // 2
        newlines = dropped.count(b"\n")
        line += newlines
        column = len(dropped) - dropped.rfind(b"\n") - 1 + (0 if newlines else column)


def _in_piece(piece: _Piece, search: Search) -> Iterator[_Finding]:
    text = piece.data.decode("utf-8", "surrogateescape")
    for found in search.find(text):
        before = text[: found.start].encode("utf-8", "surrogateescape")
        if not piece.done <= len(before) < piece.stop:
            continue
        newlines = before.count(b"\n")
        start = text.rfind("\n", 0, found.start) + 1
        column = found.start - start + 1 + (0 if newlines else piece.column)
        is_cut = not newlines and piece.column > 0
        place = "" if is_cut else _place(text, start, found.start, search)
        yield _Finding(piece.line + newlines, column, place, found)


#: What stands on the line of a stream whose texts were not joined.
_IN_EVENTS = b'"stored":"verbatim"'


def _in_events(piece: _Piece, search: Search) -> Iterator[_Finding]:
    """Yield what streams say that are stored event by event, and none of their events holds."""
    from .._cleaning import spelled_texts

    place = -1
    while (place := piece.data.find(_IN_EVENTS, place + 1)) != -1:
        start = piece.data.rfind(b"\n", 0, place) + 1
        end = piece.data.find(b"\n", place)
        line = piece.data[start : end if end != -1 else len(piece.data)]
        if not piece.done <= place < piece.stop:
            continue
        known = {found.digest for found in search.find(line.decode("utf-8", "surrogateescape"))}
        found = [each for text in spelled_texts(line) for each in search.find(text)]
        for kind, digest in dict.fromkeys((each.kind, each.digest) for each in found):
            if digest not in known:
                number = piece.line + piece.data.count(b"\n", 0, start)
                whole = Found(place - start, kind, "in pieces", digest)
                yield _Finding(number, 1, "response.script", whole)


def _place(text: str, start: int, offset: int, search: Search) -> str:
    """Return the JSON path in a line, if it is JSON and the path itself says nothing that is secret."""
    from .._json_place import json_place

    if text[start : start + 1] not in ("{", "["):
        return ""
    end = text.find("\n", offset)
    path = json_place(text[start : end if end != -1 else len(text)], offset - start)
    return "" if search.find(path) else path


# -- for people ----------------------------------------------------------------------------------------


def _tell(path: str, finding: _Finding, search: Search, as_json: bool) -> None:
    found = finding.found
    shown = "<name left out>" if search.find(path) else path
    if as_json:
        facts = {"file": shown, "line": finding.line, "column": finding.column, "path": finding.place or None}
        show_json(
            {**facts, "kind": found.kind, "encoding": found.encoding or None, "digest": found.digest or None}
        )
        return
    words = [f"{shown}:{finding.line}:{finding.column}: {found.kind}"]
    if found.encoding:
        words.append(f"({found.encoding})")
    if finding.place:
        words.append(f"at {finding.place}")
    if found.digest:
        words.append(f"[{found.digest}]")
    show_lines(" ".join(words))
