"""``httpx-cassette ls``: one row for each recording, filtered and sorted.

Rows are printed as they are read, unless they are sorted; then they are all that is kept.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ._files import cassettes_in
from ._parameters import file_argument, json_option, open_cassette, read_time, tell_what_is_left_out
from ._terminal import Column, show_json, show_table

if TYPE_CHECKING:
    from .._exchange import Exchange

__all__ = ["command"]

#: Characters of the question that are shown.
_WORDS = 100


class _Row(NamedTuple):
    """What is shown of a recording."""

    file: str
    line: int
    fingerprint: str
    sample: int
    superseded: bool
    at: str
    dialect: str
    model: str
    finish: Any
    input_tokens: int | None
    output_tokens: int | None
    ms: int | None
    size: int
    words: str


#: Name on the command line -> member of a row.
_SORTED_BY = {
    "file": "file", "at": "at", "dialect": "dialect", "model": "model", "finish": "finish",
    "in": "input_tokens", "out": "output_tokens", "ms": "ms", "size": "size", "key": "fingerprint",
}  # fmt: skip


@click.command(epilog="Example: httpx-cassette ls chat.jsonl --grep invoice --sort out --reverse")
@file_argument("files", nargs=-1, required=True)
@click.option("--model", metavar="NAME", help="only this model; * stands for anything")
@click.option("--dialect", metavar="NAME", help="only this wire format; * stands for anything")
@click.option(
    "--since", metavar="WHEN", help="recorded since 2026-11-29, 2026-11-29T12:00:00Z, or 7d, 12h ago"
)
@click.option(
    "--grep", metavar="PATTERN", help="only where this stands in a message or an answer, in any case"
)
@click.option("--finish", metavar="REASON", help="only with this finish reason; * stands for anything")
@click.option("--sort", type=click.Choice(list(_SORTED_BY)), help="sort, instead of by file and line")
@click.option("--reverse", is_flag=True, help="the last one first")
@json_option("print an object in each line")
def command(
    files: Sequence[str],
    model: str | None,
    dialect: str | None,
    since: str | None,
    grep: str | None,
    finish: str | None,
    sort: str | None,
    reverse: bool,
    as_json: bool,
) -> int:
    """List the recordings of cassettes, one in a row.

    Fingerprint, when it was recorded, wire format, model, finish reason, tokens of the prompt and of the
    answer, milliseconds, bytes, and the first words of the last turn of the user; tab-separated where it is
    no terminal. Of several files, the name comes first; a folder stands for all *.jsonl below it.
    """
    filters = [
        _named(model, lambda exchange: exchange.model),
        _named(dialect, lambda exchange: exchange.dialect),
        _named(finish, lambda exchange: exchange.finish_words),
        _since(since),
        _grep(grep),
    ]
    opened = [open_cassette(path) for path in cassettes_in(files)]
    wanted = [each for each in filters if each is not None]
    rows: Iterable[_Row] = (
        _row(exchange)
        for recordings in opened
        for exchange in recordings
        if all(is_wanted(exchange) for is_wanted in wanted)
    )
    if sort is not None or reverse:
        rows = _sorted(rows, sort, reverse)
    if as_json:
        for row in rows:
            show_json(row._asdict())
    else:
        _show(rows, with_file=len(opened) > 1)
    for recordings in opened:
        tell_what_is_left_out(recordings)
    return 0


def _row(exchange: Exchange) -> _Row:
    usage = exchange.usage
    return _Row(
        file=exchange.path,
        line=exchange.line,
        fingerprint=exchange.fingerprint,
        sample=exchange.sample,
        superseded=exchange.superseded,
        at=exchange.at,
        dialect=exchange.dialect,
        model=exchange.model,
        finish=exchange.finish,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        ms=exchange.ms,
        size=exchange.size,
        words=" ".join(exchange.question[: 4 * _WORDS].split())[:_WORDS],
    )


_COLUMNS = (
    Column("file", dropped=5),
    Column("key"),
    Column("at", most=20, dropped=4),
    Column("dialect", most=20, dropped=6),
    Column("model", most=24),
    Column("finish", most=12, dropped=2),
    Column("in", is_number=True, dropped=3),
    Column("out", is_number=True, dropped=3),
    Column("ms", is_number=True, dropped=8),
    Column("bytes", is_number=True, dropped=7),
    Column("question"),
)


def _show(rows: Iterable[_Row], *, with_file: bool) -> None:
    first = 0 if with_file else 1
    show_table(_COLUMNS[first:], (_cells(row)[first:] for row in rows))


def _cells(row: _Row) -> list[object]:
    from .._exchange import words_of_finish

    return [
        row.file, row.fingerprint[:12], row.at, row.dialect, row.model, words_of_finish(row.finish),
        row.input_tokens, row.output_tokens, row.ms, row.size, row.words,
    ]  # fmt: skip


def _sorted(rows: Iterable[_Row], sort: str | None, reverse: bool) -> Iterable[_Row]:
    """Return rows in order; those without a value come last either way."""
    listed = list(rows)
    if sort is None:
        return listed[::-1]
    name = _SORTED_BY[sort]
    there = [row for row in listed if getattr(row, name) not in (None, "")]
    absent = [row for row in listed if getattr(row, name) in (None, "")]
    return [*sorted(there, key=lambda row: _rank(row, name), reverse=reverse), *absent]


def _rank(row: _Row, name: str) -> Any:
    value = getattr(row, name)
    return value if isinstance(value, int) else str(value)


def _named(pattern: str | None, read: Callable[[Exchange], str]) -> Callable[[Exchange], bool] | None:
    if pattern is None:
        return None
    return lambda exchange: fnmatch.fnmatchcase(read(exchange).lower(), pattern.lower())


def _grep(pattern: str | None) -> Callable[[Exchange], bool] | None:
    if pattern is None:
        return None
    try:
        expression = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        raise click.UsageError(f"argument --grep: {pattern!r} is no regular expression: {error}") from error
    return lambda exchange: any(map(expression.search, _texts(exchange)))


def _texts(exchange: Exchange) -> Iterator[str]:
    for message in (*exchange.messages, *exchange.answers):
        yield message.text
        yield message.thinking
        for call in message.tool_calls:
            yield f"{call.name} {call.arguments}"
    if not exchange.messages:
        yield exchange.question
    if not exchange.answers:
        yield exchange.text


def _since(when: str | None) -> Callable[[Exchange], bool] | None:
    if when is None:
        return None
    first = read_time(when)
    if first is None:
        raise click.UsageError(
            f"argument --since: {when!r} is no time; write 2026-11-29, or 7d for seven days ago"
        )

    def is_since(exchange: Exchange) -> bool:
        at = read_time(exchange.at)
        return at is not None and at >= first

    return is_since
