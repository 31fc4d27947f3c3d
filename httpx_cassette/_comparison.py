"""What differs between two recordings: of the requests by field, of the answers by line.

Requests are compared as they are stored, so that a field shows that no key heeds. Answers are compared by
what they say: their ids, and the tokens and the time that they took, differ each time.
Nothing here reads files.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import Any, NamedTuple

from ._call import Json
from ._difference import Change, differences
from ._exchange import Exchange
from .readers import Message

__all__ = ["Contrast", "compared_request", "contrast", "line_diff", "said_lines"]

#: Pairs of lines that are compared; more of them are shown as removed and added.
_COMPARED = 4_000_000

#: Lines that are alike, before and after those that differ.
_CONTEXT = 2

#: Lines of a short answer.
_SHORT = 12


class Contrast(NamedTuple):
    """How two recordings differ.

    Args:
        request: The fields of the requests.
        response: The status and the finish reason.
        answer: The lines of a unified diff of the answers.
    """

    request: list[Change]
    response: list[Change]
    answer: list[str]


def contrast(left: Exchange, right: Exchange) -> Contrast:
    """Return how two recordings differ."""
    return Contrast(
        differences(compared_request(left.request), compared_request(right.request)),
        differences(_outcome(left), _outcome(right)),
        line_diff(said_lines(left), said_lines(right)),
    )


def compared_request(request: Mapping[str, Any]) -> dict[str, Json]:
    """Return a stored request with its body where a key document has it."""
    around = {name: request[name] for name in ("method", "url", "headers") if name in request}
    body = {name: value for name, value in request.items() if name not in around}
    return {**around, "body": body} if body else around


def _outcome(exchange: Exchange) -> dict[str, Json]:
    return {"status": exchange.response.get("status"), "finish": exchange.finish}


# -- what is said --------------------------------------------------------------------------------------


def said_lines(exchange: Exchange) -> list[str]:
    """Return what an answer says, line by line: text, thinking and calls of tools; else the whole of it."""
    answers = exchange.answers
    if not answers:
        return list(_whole(exchange))
    lines: list[str] = []
    for number, message in enumerate(answers):
        lines += [f"[answer {number + 1}]"] if len(answers) > 1 else []
        lines += _message_lines(message)
    return lines


def _message_lines(message: Message) -> Iterator[str]:
    if message.thinking:
        yield "[thinking]"
        yield from message.thinking.split("\n")
        yield "[text]"
    if message.text:
        yield from message.text.split("\n")
    for call in message.tool_calls:
        yield f"[call of {call.name}]"
        yield from call.arguments.split("\n")


def _whole(exchange: Exchange) -> Iterator[str]:
    for document in exchange.documents:
        yield from json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False).split("\n")
    response = exchange.response
    if isinstance(response.get("text"), str):
        yield from response["text"].split("\n")
    if isinstance(response.get("base64"), str):
        yield _digest(response["base64"])


def _digest(text: str) -> str:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return "[base64 that is none]"
    return f"[{len(data):,} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}]"


# -- lines ---------------------------------------------------------------------------------------------


def line_diff(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the lines of a unified diff without its header; none where all are alike."""
    if list(old) == list(new):
        return []
    if len(old) * len(new) > _COMPARED:
        return [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    lines = list(unified_diff(list(old), list(new), n=_CONTEXT, lineterm=""))[2:]
    # Where a difference stands is seen without being told, where it is one and the answers are short.
    is_seen = sum(line.startswith("@@") for line in lines) == 1 and max(len(old), len(new)) <= _SHORT
    return lines[1:] if is_seen else lines
