"""One page of HTML with answers side by side.

It is made of recordings that nobody vouches for, and opened by people who trust it: everything recorded is
escaped, there is no script and no link in it, and a policy forbids the browser to load or run anything, or to
send a form, should something get past that.
Nothing here reads recordings, or knows what is compared.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from .._call import Json
from .._notebook import safe_html

__all__ = ["Answer", "page"]


class Answer(NamedTuple):
    """One of the answers that are compared.

    Args:
        values: The fields in which the calls differ.
        question: What was asked.
        exchange: Which recording it is: ``fingerprint``, ``file``, ``line``, ``model`` and more.
        finish: The finish reason.
        input_tokens: Tokens of the prompt.
        output_tokens: Tokens of the answer.
        ms: How many milliseconds it took.
        cost: What it cost in US dollars, ``None`` where that is not known.
        said: What it says.
    """

    values: dict[str, Json]
    question: str
    exchange: dict[str, Any]
    finish: str
    input_tokens: int | None
    output_tokens: int | None
    ms: int | None
    cost: Decimal | None
    said: str


_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff }
section { margin: 2rem 0; border-top: 1px solid #ccc }
.answers { display: flex; gap: 1rem; overflow-x: auto; align-items: flex-start }
article { flex: 1 0 18rem; min-width: 0 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f4f4f4; padding: .6rem; margin: .4rem 0 }
small { color: #666 }
"""

#: Of all there may be, only this style.
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    + "'"
)


def page(title: str, names: Sequence[str], groups: Iterable[Sequence[Answer]]) -> Iterator[str]:
    """Yield the page, piece by piece.

    Args:
        title: The cassette.
        names: The fields in which the calls differ.
        groups: Answers that belong side by side.
    """
    what = f"{title} by {', '.join(names)}"
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{safe_html(what)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{safe_html(what)}</h1>\n"
    )
    for number, group in enumerate(groups, 1):
        articles = "".join(map(_article, group))
        yield (
            f"<section>\n<h2>{number}</h2>\n<pre>{safe_html(group[0].question)}</pre>\n"
            f'<div class="answers">\n{articles}</div>\n</section>\n'
        )
    yield "</body>\n</html>\n"


def _article(answer: Answer) -> str:
    values = ((name, _text(value)) for name, value in answer.values.items())
    shown = "".join(f"<p><b>{safe_html(name)}</b></p><pre>{safe_html(text)}</pre>" for name, text in values)
    where = answer.exchange
    facts = [
        f"finish {answer.finish}" if answer.finish else "",
        f"{answer.input_tokens:,} tokens in" if answer.input_tokens is not None else "",
        f"{answer.output_tokens:,} out" if answer.output_tokens is not None else "",
        f"{answer.ms:,} ms" if answer.ms is not None else "",
        f"${answer.cost:.6f}" if answer.cost is not None else "",
    ]
    said = ", ".join(filter(None, facts))
    named = f"{where['fingerprint'][:12]}  {where['file']}:{where['line']}  {where['at']}"
    return (
        f"<article>{shown or '<p>(absent)</p>'}<pre>{safe_html(answer.said)}</pre>"
        f"<p>{safe_html(said)}</p><p><small>{safe_html(named)}</small></p></article>\n"
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
