"""``httpx-cassette compare``: answers to calls that differ in one field, side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from .._errors import CassetteError
from ._command import say
from ._page import Answer, page
from ._parameters import file_argument, json_option, open_cassette, tell_what_is_left_out
from ._terminal import Column, show_bytes, show_json, show_table

if TYPE_CHECKING:
    from .._exchange import Exchange
    from .._grouping import Variant
    from .._price import PriceTable

__all__ = ["command"]

#: Characters of an answer, and of a value, that are shown in a row.
_WORDS = 200
_VALUE = 40

#: What a value is cut before: what differs stands here.
_BEFORE = 12


@click.command(epilog="Example: httpx-cassette compare chat.jsonl --by model")
@file_argument()
@click.option(
    "--by", "names", metavar="PATH", multiple=True, required=True,
    help="a field of the request in which the calls differ, such as model, messages[0].content or url; "
    "may be given several times",
)  # fmt: skip
@click.option("--html", "as_html", is_flag=True, help="print a page, with the answers in full")
@json_option("print an object for each group in a line")
def command(file: str, names: Sequence[str], as_html: bool, as_json: bool) -> int:
    """Compare the answers to calls that differ in one field only: two models, two prompts.

    A row for each answer: number of the group, value of the field, fingerprint, finish reason, tokens of the
    prompt and of the answer, milliseconds, US dollars, and the answer. The last rows have the sum for each
    value. What an answer cost is looked up where the extra cost is installed, and left empty where no price
    is known.
    """
    from .._grouping import Fields, groups
    from .._price import price_table

    if as_html and as_json:
        raise click.UsageError("--html and --json are two forms of the same; one is due")
    recordings = open_cassette(file)
    table = price_table()
    found = ([_answer(each, table) for each in group] for group in groups(recordings, Fields(names)))
    first = next(found, None)
    if first is None:
        by = " and ".join(map(repr, names))
        raise CassetteError(f"no two recordings differ in {by} and in nothing else", recordings.path)
    rest = _chained(first, found)
    if as_html:
        for piece in page(recordings.path, names, rest):
            show_bytes(piece.encode())
    elif as_json:
        for number, group in enumerate(rest, 1):
            show_json({"group": number, "question": group[0].question, "answers": list(map(_facts, group))})
    else:
        show_table(_COLUMNS, _rows(rest))
    if table is None:
        say("what the answers cost is not shown; install it with: pip install 'httpx_cassette[cost]'")
    tell_what_is_left_out(recordings)
    return 0


def _chained(first: list[Answer], others: Iterable[list[Answer]]) -> Iterator[list[Answer]]:
    yield first
    yield from others


def _answer(variant: Variant, table: PriceTable | None) -> Answer:
    exchange = variant.exchange
    usage = exchange.usage
    return Answer(
        values=variant.values,
        question=exchange.question,
        exchange=_named(exchange),
        finish=exchange.finish_words,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        ms=exchange.ms,
        cost=None if table is None else table.cost(usage, exchange.at),
        said=_said(exchange),
    )


def _named(exchange: Exchange) -> dict[str, Any]:
    return {
        "file": exchange.path,
        "line": exchange.line,
        "fingerprint": exchange.fingerprint,
        "sample": exchange.sample,
        "at": exchange.at,
        "model": exchange.model,
    }


def _said(exchange: Exchange) -> str:
    from .._comparison import said_lines

    return "\n".join(said_lines(exchange))


def _facts(answer: Answer) -> dict[str, Any]:
    return {
        "values": answer.values,
        **answer.exchange,
        "finish": answer.finish,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens,
        "ms": answer.ms,
        "cost": None if answer.cost is None else float(answer.cost),
        "answer": answer.said,
    }


# -- rows ----------------------------------------------------------------------------------------------

_COLUMNS = (
    Column("group", is_number=True),
    Column("value", most=_VALUE),
    Column("key", dropped=2),
    Column("finish", most=12, dropped=4),
    Column("in", is_number=True, dropped=5),
    Column("out", is_number=True, dropped=5),
    Column("ms", is_number=True, dropped=6),
    Column("cost", is_number=True, dropped=3),
    Column("answer"),
)


def _rows(found: Iterable[list[Answer]]) -> Iterator[list[object]]:
    sums: dict[str, tuple[int, int, Answer]] = {}
    for number, group in enumerate(found, 1):
        values = [value_text(answer) for answer in group]
        start = _start(values)
        for answer, value in zip(group, values, strict=True):
            key = answer.exchange["fingerprint"][:12]
            said = " ".join(answer.said[: 4 * _WORDS].split())[:_WORDS]
            yield [number, _cut(value, start), key, answer.finish, *_figures(answer), said]
            first, count, so_far = sums.get(value, (start, 0, None))
            bare = answer._replace(said="", question="", values={}, exchange={})
            sums[value] = first, count + 1, bare if so_far is None else summed(so_far, bare)
    for value, (start, count, answer) in sums.items():
        what = f"{count:,} answer{'' if count == 1 else 's'}"
        yield ["all", _cut(value, start), None, None, *_figures(answer), what]


def value_text(answer: Answer) -> str:
    """Return the fields of an answer as text: one as it is, several as JSON."""
    values = [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for value in answer.values.values()
    ]
    return ", ".join(values) or "(absent)"


def summed(one: Answer, other: Answer) -> Answer:
    """Return what two answers took together; nothing, where one of them does not say."""

    def added(left: Any, right: Any) -> Any:
        return None if left is None or right is None else left + right

    return one._replace(
        input_tokens=added(one.input_tokens, other.input_tokens),
        output_tokens=added(one.output_tokens, other.output_tokens),
        ms=added(one.ms, other.ms),
        cost=added(one.cost, other.cost),
    )


def _figures(answer: Answer) -> list[object]:
    return [answer.input_tokens, answer.output_tokens, answer.ms, dollars(answer.cost)]


def dollars(cost: Decimal | None) -> str | None:
    """Return a price; those of single answers are fractions of a cent."""
    return None if cost is None else f"{cost:.6f}"


def _start(values: Sequence[str]) -> int:
    """Return where texts are shown from, so that what differs is in sight."""
    if max(map(len, values)) <= _VALUE:
        return 0
    from .._difference import common_prefix

    return max(0, min(common_prefix(values[0], value) for value in values if value != values[0]) - _BEFORE)


def _cut(value: str, start: int) -> str:
    text = " ".join(value[start : start + 4 * _VALUE].split())
    return f"{'…' if start else ''}{text[: _VALUE - 2]}{'…' if len(text) > _VALUE - 2 else ''}"
