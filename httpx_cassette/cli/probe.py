"""``httpx-cassette probe``: one request made live several times, and how its answers differ.

The one command that spends money by itself: it says how much before it does, and stops at a limit.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from .._call import Call
from .._errors import CassetteError, OptionError
from .._mode import MODE_VARIABLE, Mode, mode_outside
from ._asked import read_asked
from ._command import counted, say
from ._parameters import find_exchange, json_option, key_argument, open_cassette
from ._sending import sendable, sent_headers
from ._terminal import progress, show_json, show_lines

if TYPE_CHECKING:
    from .._exchange import Exchange
    from .._price import PriceTable

__all__ = ["command"]

#: Seconds that an answer may keep silent.
_PATIENCE = 300


class _Dollars(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    name = "dollars"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        if not re.fullmatch(r"\$?(\d+(\.\d*)?|\.\d+)", str(value)):
            self.fail(f"{value!r} is no number of dollars", param, ctx)
        return Decimal(str(value).removeprefix("$"))


@click.command(
    epilog="Example: httpx-cassette probe chat.jsonl 9f2c -n 5 -H 'Authorization: Bearer $OPENAI_API_KEY'"
)
@click.argument("file", metavar="FILE", required=False, type=click.Path(allow_dash=True))
@key_argument(required=False)
@click.option(
    "--request", metavar="FILE", type=click.Path(allow_dash=True),
    help="make this request, not that of a recording: JSON, a curl command line or HAR, as for explain",
)  # fmt: skip
@click.option(
    "-n", "number", metavar="N", type=click.IntRange(min=1), default=5, show_default=True,
    help="how often it is made",
)  # fmt: skip
@click.option(
    "-H", "--header", "headers", metavar="NAME:VALUE", multiple=True,
    help="send this header; $NAME in it is the variable of that name",
)  # fmt: skip
@click.option(
    "--max-cost",
    metavar="DOLLARS",
    type=_Dollars(),
    help="make no call that is expected to bring the sum above so much",
)
@json_option("print the facts as one object")
def command(
    file: str | None,
    key: str | None,
    request: str | None,
    number: int,
    headers: Sequence[str],
    max_cost: Decimal | None,
    as_json: bool,
) -> int:
    """Probe how stable the answers to a request are: make it live several times, and compare.

    The request is that of a recording, or the one of --request. What it will spend is said first: as much as
    the recorded answer did, each time. A limit is held to by that, and later by the dearest answer so far; it
    needs the extra cost, and a recording. Nothing is looked up in a cassette, and none is written. Keys of
    known providers are taken from their usual variables, and go to their own hosts only; other headers are
    given by -H. The exit status is 1 where a call failed.
    """
    if (request is None) == (file is None) or (file is None) != (key is None):
        raise click.UsageError("either FILE and KEY are needed, or --request")
    if mode_outside(os.environ) is Mode.REPLAY:
        raise OptionError(
            f"{MODE_VARIABLE}=replay is a ceiling, and a probe makes real calls; unset it first"
        )
    recorded = None
    if file is not None and key is not None:
        recorded = find_exchange(open_cassette(file), key)
    asked = read_asked(str(request)) if recorded is None else recorded.request
    call = asked if isinstance(asked, Call) else sendable(asked)
    where = _address(call)
    from .._price import price_table

    table = price_table()
    _announce(
        f"{counted(number, 'call')}: {call.method} {where}", number, _estimate(recorded, table), max_cost
    )
    exchanges = list(_made(call, sent_headers(call, headers), number, _Purse(table, max_cost)))
    return _show(exchanges, number, table, as_json)


# -- what it costs -------------------------------------------------------------------------------------


def _estimate(recorded: Exchange | None, table: PriceTable | None) -> Decimal | None:
    """Return what a call will cost, about: what the recorded one did."""
    return None if recorded is None or table is None else table.cost(recorded.usage, recorded.at)


def _address(call: Call) -> str:
    """Return where a call goes, without what may be secret.

    Raises:
        OptionError: Nowhere.
    """
    try:
        parts = urlsplit(call.url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError as error:
        raise OptionError("the request has no address that can be called") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError("the request has no address that can be called")
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"


def _announce(what: str, number: int, each: Decimal | None, most: Decimal | None) -> None:
    if each is None:
        say(f"{what}; what they will cost is not known")
        if most is not None:
            raise OptionError(
                "--max-cost cannot be held to, as the price is not known: it takes the extra cost, and a "
                "recording of a model that has a price"
            )
        return
    say(f"{what}; about ${each:.6f} each, ${each * number:.6f} together")
    if most is not None and each * number > most:
        raise OptionError(f"that is more than --max-cost {most} allows; nothing was sent")


class _Purse:
    """What was spent, and whether there is enough left for another call.

    Args:
        table: The prices, where there are any.
        most: What may be spent, if there is a limit.
    """

    def __init__(self, table: PriceTable | None, most: Decimal | None) -> None:
        self._table, self._most = table, most
        self._spent = self._dearest = Decimal(0)

    def allows_more_after(self, exchange: Exchange) -> bool:
        """Take note of what an answer cost; tell whether another one like the dearest may be paid for."""
        if self._most is None:
            return True
        cost = None if self._table is None else self._table.cost(exchange.usage, exchange.at)
        if cost is None:
            return False  # Nobody knows what is left.
        self._spent += cost
        self._dearest = max(self._dearest, cost)
        return self._spent + self._dearest <= self._most


def _made(call: Call, headers: list[tuple[str, str]], number: int, purse: _Purse) -> Iterator[Exchange]:
    """Make the calls and yield what came; fewer, where the limit would be passed."""
    import httpx

    from .._probe import probe_answers

    # What is told by the log is told here: in one sentence.
    logging.getLogger("httpx_cassette").addHandler(logging.NullHandler())
    try:
        with httpx.Client(timeout=_PATIENCE) as client, progress("probe", number, is_bytes=False) as bar:
            request = httpx.Request(call.method, call.url, headers=headers, content=call.body)
            for exchange in probe_answers(client, request, number):
                bar.advance(1)
                yield exchange
                if not purse.allows_more_after(exchange):
                    return
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise CassetteError(f"the call failed: {type(error).__name__}") from error


# -- what came -----------------------------------------------------------------------------------------


def _show(exchanges: Sequence[Exchange], number: int, table: PriceTable | None, as_json: bool) -> int:
    from .._probe import Probe

    found = Probe(tuple(exchanges))
    costs = [None if table is None else table.cost(each.usage, each.at) for each in exchanges]
    known = [cost for cost in costs if cost is not None]
    if as_json:
        show_json(_facts(found, float(sum(known)) if known else None), is_indented=True)
    else:
        show_lines(str(found))
        if known:
            show_lines(f"spent ${sum(known):.6f}")
    if len(exchanges) < number:
        say(f"stopped after {counted(len(exchanges), 'call')}: another may cost more than --max-cost allows")
    return 1 if found.failures else 0


def _facts(found: Any, cost: float | None) -> dict[str, Any]:
    return {
        "calls": len(found.exchanges),
        "failures": found.failures,
        "share": found.share,
        "cost": cost,
        "answers": [
            {
                "answer": "\n".join(answer.lines),
                "count": answer.count,
                "share": answer.share,
                "difference": list(answer.difference),
            }
            for answer in found.answers
        ],
    }
