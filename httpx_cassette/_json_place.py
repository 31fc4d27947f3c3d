"""Where in a JSON document a character of its text stands: the path that people look for it by.

Nothing is parsed as a whole, so that the document may be long, and its end damaged.
"""

from __future__ import annotations

import json
import re

__all__ = ["json_place"]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{},:]', re.DOTALL)

#: A name that needs no quotes.
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def json_place(text: str, offset: int) -> str:
    """Return the path of what stands at an offset: ``request.json.messages[1].content``.

    Empty where that is the document itself, or where the text is no JSON up to there.

    Args:
        text: The document.
        offset: A place in it.
    """
    steps: list[str | int] = []
    waiting = ""  # The last string, which a colon makes a name.
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if token.start() > offset or (token.start() == offset and mark[0] != '"'):
            break
        if mark[0] == '"':
            waiting = mark
            if token.end() > offset:
                if steps and isinstance(steps[-1], str) and steps[-1] == "":
                    steps[-1] = _name(mark)  # The name itself.
                break
        elif mark == ":":
            if steps and isinstance(steps[-1], str):
                steps[-1] = _name(waiting)
        elif mark == ",":
            if steps:
                steps[-1] = steps[-1] + 1 if isinstance(steps[-1], int) else ""
        elif mark in "[{":
            steps.append(0 if mark == "[" else "")
        elif not steps:
            return ""
        else:
            steps.pop()
    return _path(steps)


def _name(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token


def _path(steps: list[str | int]) -> str:
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            path += f".{step}" if path else step
        else:
            path += f"[{json.dumps(step)}]"
    return path
