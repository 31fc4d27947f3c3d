"""``httpx-cassette show``: one recording, as a person reads it or as it is stored."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from .._errors import OptionError
from ._command import counted
from ._parameters import file_argument, find_exchange, json_option, key_argument, open_cassette
from ._terminal import show_bytes, show_json, show_lines

if TYPE_CHECKING:
    from .._exchange import Exchange
    from ..readers import Message

__all__ = ["command"]


@click.command(epilog="Example: httpx-cassette show chat.jsonl 9f2c")
@file_argument()
@key_argument()
@click.option("--raw", "part", flag_value="raw", help="the line as it stands in the file")
@click.option("--request", "part", flag_value="request", help="the request as stored")
@click.option("--response", "part", flag_value="response", help="the response as stored")
@click.option("--stream", "part", flag_value="stream", help="the events of a stream as they are replayed")
@click.option(
    "--chunk-size",
    metavar="N",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="characters of text in each event of --stream",
)
@click.option("--sample", metavar="N", type=click.IntRange(min=0), help="which of several answers, from 0")
@json_option("print the facts as one object")
def command(file: str, key: str, part: str | None, chunk_size: int, sample: int | None, as_json: bool) -> int:
    """Show one recording: messages, calls of tools, the assembled answer, usage.

    KEY is how its fingerprint begins, or : and the number of its line. Where a call was recorded anew, the
    answer is shown that is replayed; an older one is shown by its line.
    """
    if part is not None and as_json:
        raise click.UsageError(f"argument --json: not allowed with argument --{part}")
    exchange = find_exchange(open_cassette(file), key, sample)
    if part == "raw":
        show_bytes(exchange.raw + b"\n")
    elif part == "request":
        _show_stored(exchange.request)
    elif part == "response":
        _show_stored(exchange.response)
    elif part == "stream":
        return _show_stream(exchange, chunk_size)
    elif as_json:
        show_json(_facts(exchange), is_indented=True)
    else:
        _show(exchange)
    return 0


def _show_stored(value: dict[str, Any]) -> None:
    show_lines(json.dumps(value, indent=2, ensure_ascii=False))


def _show_stream(exchange: Exchange, chunk_size: int) -> int:
    is_empty = True
    for chunk in exchange.stream(chunk_size):
        is_empty = False
        show_bytes(chunk)
    if is_empty:
        raise OptionError(f"{exchange.fingerprint[:12]} is no stream; --response shows its answer")
    return 0


def _facts(exchange: Exchange) -> dict[str, Any]:
    usage = exchange.usage
    return {
        "fingerprint": exchange.fingerprint,
        "file": exchange.path,
        "line": exchange.line,
        "sample": exchange.sample,
        "gen": exchange.gen,
        "superseded": exchange.superseded,
        "at": exchange.at,
        "dialect": exchange.dialect,
        "model": exchange.model,
        "method": exchange.request.get("method"),
        "url": exchange.request.get("url"),
        "status": exchange.response.get("status"),
        "finish": exchange.finish,
        "ms": exchange.ms,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "messages": [asdict(message) for message in exchange.messages],
        "answers": [asdict(message) for message in exchange.answers],
    }


# -- for people ----------------------------------------------------------------------------------------


def _show(exchange: Exchange) -> None:
    request = exchange.request
    show_lines(
        _joined(exchange.fingerprint[:12], f"{exchange.path}:{exchange.line}", exchange.at), style="bold"
    )
    show_lines(f"{request.get('method', '')} {request.get('url', '')}".strip())
    show_lines(_joined(exchange.dialect, exchange.model, _taken(exchange)))
    if marks := _marks(exchange):
        show_lines(marks)
    for message in exchange.messages:
        _show_message(message.role, message)
    answers = exchange.answers
    for number, message in enumerate(answers):
        _show_message("answer" if len(answers) == 1 else f"answer {number + 1}", message)
    if not answers:
        _show_part("answer", exchange.text)


def _joined(*words: str) -> str:
    return "  ".join(filter(None, words))


def _taken(exchange: Exchange) -> str:
    usage = exchange.usage
    facts = [
        f"finish {exchange.finish_words}" if exchange.finish_words else "",
        f"{counted(usage.input_tokens, 'token')} in" if usage.input_tokens is not None else "",
        f"{usage.cached_tokens:,} of them cached" if usage.cached_tokens else "",
        f"{usage.output_tokens:,} out" if usage.output_tokens is not None else "",
        f"{exchange.ms:,} ms" if exchange.ms is not None else "",
    ]
    return ", ".join(filter(None, facts))


def _marks(exchange: Exchange) -> str:
    return ", ".join(
        filter(
            None,
            (
                f"sample {exchange.sample}" if exchange.sample else "",
                f"recorded anew {counted(exchange.gen, 'time')}" if exchange.gen else "",
                "superseded: another recording is replayed" if exchange.superseded else "",
            ),
        )
    )


def _show_message(title: str, message: Message) -> None:
    if message.answers:
        title = f"{title} (of {message.answers})"
    if message.thinking:
        _show_part(f"{title}, thinking", message.thinking)
    if message.text or not (message.thinking or message.tool_calls):
        _show_part(title, message.text)
    for call in message.tool_calls:
        tie = f" ({call.id})" if call.id else ""
        _show_part(f"{title}, call of {call.name}{tie}", call.arguments)


def _show_part(title: str, text: str) -> None:
    print()
    # A title may hold what a server said: it is one line.
    show_lines(" ".join(title.split("\n")), style="bold cyan")
    show_lines(text, indent="  ")
