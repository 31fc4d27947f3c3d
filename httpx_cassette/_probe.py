"""How stable the answers of a model are: one request, made live several times, and what came each time.

Each call goes through the user's own client, with its authentication and its time limits, and is recorded
into a file of its own that is gone afterwards: so answers of every wire format are read, streams assembled
and secrets redacted as everywhere. Nothing is looked up in a cassette, and none is written.
The ceiling holds: where only replay is allowed, nothing is sent.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._comparison import line_diff, said_lines
from ._errors import OptionError, WrongClientError
from ._excerpt import cut, escape
from ._exchange import Exchange
from ._mode import MODE_VARIABLE, Mode
from ._opened import open as open_cassette

__all__ = ["Probe", "ProbedAnswer", "probe_answers", "stability_probe"]

#: From here on a status says that the call failed.
_FAILED = 400

#: Characters of an answer that are shown in a line, and lines of a difference.
_WIDTH = 100
_LINES = 12


@dataclass(frozen=True)
class ProbedAnswer:
    """One of the different answers.

    Args:
        lines: What it says, line by line: text, thinking, calls of tools.
        count: How often it came.
        share: How often that is, of all that came: from 0 to 1.
        difference: How it differs from the commonest, as the lines of a unified diff.
        exchange: The first exchange that had it.
    """

    lines: tuple[str, ...]
    count: int
    share: float
    difference: tuple[str, ...]
    exchange: Exchange


@dataclass(frozen=True)
class Probe:
    """What came of a request that was made several times; ``print`` shows it.

    Args:
        exchanges: What came, in its order.
    """

    exchanges: tuple[Exchange, ...]

    @property
    def failures(self) -> list[int]:
        """The status codes of calls that failed."""
        return [status for each in self.exchanges if (status := _status(each)) >= _FAILED]

    @property
    def answers(self) -> list[ProbedAnswer]:
        """The different answers, the commonest first; calls that failed have none."""
        found: dict[tuple[str, ...], list[Exchange]] = {}
        for exchange in self.exchanges:
            if _status(exchange) < _FAILED:
                found.setdefault(tuple(said_lines(exchange)), []).append(exchange)
        ranked = sorted(found.items(), key=lambda each: -len(each[1]))
        total = sum(len(exchanges) for _, exchanges in ranked)
        return [
            ProbedAnswer(
                lines,
                len(exchanges),
                len(exchanges) / total,
                tuple(line_diff(ranked[0][0], lines)),
                exchanges[0],
            )
            for lines, exchanges in ranked
        ]

    @property
    def share(self) -> float:
        """The share of the commonest answer, from 0 to 1; 0 where none came."""
        answers = self.answers
        return answers[0].share if answers else 0.0

    def __str__(self) -> str:
        answers = self.answers
        calls = f"{len(self.exchanges):,} call{'' if len(self.exchanges) == 1 else 's'}"
        what = f"{len(answers):,} different answer{'' if len(answers) == 1 else 's'}"
        lines = [f"{calls}, {what}"]
        if self.failures:
            lines.append(f"  failed: status {', '.join(map(str, self.failures))}")
        for answer in answers:
            first = cut(" / ".join(answer.lines), _WIDTH)
            lines.append(f"  {answer.count:>3}  {answer.share:>4.0%}  {first}")
            lines += [f"              {escape(line)}" for line in answer.difference[:_LINES]]
            if len(answer.difference) > _LINES:
                lines.append(f"              ... and {len(answer.difference) - _LINES:,} more lines")
        return "\n".join(lines)


def _status(exchange: Exchange) -> int:
    status = exchange.response.get("status")
    return status if isinstance(status, int) else 0


def stability_probe(client: Any, request: Any, n: int = 5) -> Probe:
    """Make one request live several times, and return the different answers.

    Each is a real call, and costs what it costs.

    Args:
        client: An ``httpx.Client`` or ``httpx2.Client``, of whose transport nothing comes from a cassette.
        request: The request, as ``client.build_request`` makes it.
        n: How often it is made.

    Raises:
        OptionError: Only replay is allowed, or the client answers from a cassette.
        WrongClientError: The client is async, or of another library than the request.
    """
    return Probe(tuple(probe_answers(client, request, n)))


def probe_answers(client: Any, request: Any, n: int) -> Iterator[Exchange]:
    """Make one request live several times, and yield each exchange; see :func:`stability_probe`."""
    if type(n) is not int or n < 1:
        raise OptionError(f"n={n!r} is not understood; it takes a whole number from 1")
    transport_class = _transport_class(client, request)
    request.read()  # A body that comes from an iterator is sent several times.
    with tempfile.TemporaryDirectory(prefix="httpx-cassette-", ignore_cleanup_errors=True) as made:
        for number in range(n):
            yield _ask(transport_class, client, request, Path(made, f"{number}.jsonl"))


def _transport_class(client: Any, request: Any) -> Any:
    library = type(request).__module__.partition(".")[0]
    is_its_client = any(each.__module__.partition(".")[0] == library for each in type(client).__mro__)
    if not is_its_client or not hasattr(client, "__enter__"):
        raise WrongClientError(
            f"a request of {library} is probed through a {library}.Client, not a {type(client).__name__}"
        )
    if library == "httpx2":
        from .httpx2 import CassetteTransport as OfHttpx2

        return OfHttpx2
    from ._transport import CassetteTransport

    return CassetteTransport


class _Through:
    """Sends a request by a client as the client would."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def handle_request(self, request: Any) -> Any:
        """Return the answer, whose body was not read yet."""
        response = self._client.send(request, stream=True)
        served = response.extensions.get("httpx_cassette")
        if served is not None and served.outcome in ("replayed", "ignored"):
            response.close()
            raise OptionError("the client answers from a cassette; probe with one that does not")
        return response

    def close(self) -> None:
        """Leave the client open: it is the user's."""


def _ask(transport_class: Any, client: Any, request: Any, path: Path) -> Exchange:
    options: dict[str, Any] = {
        "mode": "record",
        "next_transport": _Through(client),
        "require_system": False,
        "passthrough": (),
        "record_statuses": ("2xx", "3xx", "4xx", "5xx"),
        "fsync": False,
    }
    with closing(transport_class(os.fspath(path), **options)) as transport:
        if transport.mode is not Mode.RECORD:
            raise OptionError(
                f"{MODE_VARIABLE}=replay is a ceiling, and a probe makes real calls; unset it first"
            )
        response = transport.handle_request(request)
        response.read()
        response.close()
    found: Sequence[Exchange] = list(open_cassette(path)) if path.exists() else ()
    if not found:
        raise OptionError("the answer could not be kept, so that nothing can be said of it")
    return found[0]
