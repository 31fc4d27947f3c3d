"""How recordings look in a notebook: HTML that loads nothing, and in which nothing recorded is a tag.

Everything shown comes from files that nobody vouches for: all of it is escaped here, invisible characters
too. Nothing here knows what is shown.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ._excerpt import escape_lines
from .readers import Message

__all__ = ["exchange_html", "safe_html", "table_html"]


def safe_html(text: str) -> str:
    """Return text as HTML: nothing in it is a tag or an attribute, and nothing invisible is left."""
    return html.escape(escape_lines(text))


def table_html(title: str, names: Sequence[str], rows: Iterable[Sequence[str]], more: str = "") -> str:
    """Return a table.

    Args:
        title: What stands above it.
        names: The names of the columns.
        rows: The cells of each row.
        more: What stands below it.
    """
    lines = [_row("th", names), *(_row("td", row) for row in rows)]
    below = f"<p>{safe_html(more)}</p>" if more else ""
    return f"<p>{safe_html(title)}</p><table>{''.join(lines)}</table>{below}"


def exchange_html(title: str, messages: Iterable[Message]) -> str:
    """Return a conversation.

    Args:
        title: What stands above it.
        messages: Its turns, by their roles.
    """
    return f"<p><b>{safe_html(title)}</b></p>{''.join(map(_message, messages))}"


def _row(kind: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{kind}>{safe_html(cell)}</{kind}>' for cell in cells)}</tr>"


def _message(message: Message) -> str:
    calls = "\n".join(f"{call.name}({call.arguments})" for call in message.tool_calls)
    parts = (("<i>thinking</i>", message.thinking), ("", message.text), ("<i>calls</i>", calls))
    said = (f"{name}<pre>{safe_html(text)}</pre>" for name, text in parts if text)
    return f"<p>{safe_html(message.role)}</p>{''.join(said)}"
