"""What commands print: for people on a terminal, tab-separated and without colour for programs.

Everything shown comes from files that nobody vouches for. So all that is printed of it goes through this
module, and what is said on stderr through ``say`` of ``_command``. Neither lets a control, bidirectional or
format character through, nor a sequence that a terminal obeys: on a terminal and in a pipe alike, as what is
piped is mostly looked at in the end. Bytes that are asked for as they are stored stay so in a pipe only.
rich is imported where something is drawn, and nothing is drawn where nobody looks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple, Protocol

from .._excerpt import escape, escape_lines

__all__ = [
    "Column",
    "Progress",
    "is_terminal",
    "progress",
    "show_bytes",
    "show_json",
    "show_lines",
    "show_table",
]

#: Rows that are laid out together: the widths of columns are those of so many.
_ROWS = 500

#: Blanks between columns, and the least room that the last one has.
_GAP = 2
_LAST = 24

#: Bytes after which a bar moves.
_STEP = 256 * 1024


def is_terminal() -> bool:
    """Tell whether somebody looks at what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


class Column(NamedTuple):
    """A column of a table.

    Args:
        name: What stands above it on a terminal.
        is_number: Whether it is set to the right.
        most: How wide it is at most; the last column takes what room is left.
        dropped: On a narrow terminal, columns are left out by this, the highest first; 0 never is.
    """

    name: str
    is_number: bool = False
    most: int = 40
    dropped: int = 0


def show_table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Print rows: a table on a terminal, else tab-separated lines without a header.

    Args:
        columns: The columns.
        rows: The cells of each row; ``None`` is an empty one.
    """
    texts = (["" if cell is None else escape(str(cell)) for cell in row] for row in rows)
    if not is_terminal():
        for row in texts:
            _print("\t".join(row))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    while part := list(islice(texts, _ROWS)):
        widths = _widths(columns, part, console.width)
        head = _laid_out(columns, [column.name for column in columns], widths)
        console.print(Text(head, style="bold"), soft_wrap=True)
        for row in part:
            # Not a string, in which rich would find markup.
            console.print(Text(_laid_out(columns, row, widths)), soft_wrap=True)


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return how wide each column is; 0 is left out."""
    from rich.cells import cell_len

    widths = [
        min(column.most, max(len(column.name), *(cell_len(row[place]) for row in rows)))
        for place, column in enumerate(columns)
    ]
    *others, last = range(len(columns))
    widths[last] = 0
    for place in sorted(others, key=lambda each: -columns[each].dropped):
        if room - sum(widths[each] + _GAP for each in others if widths[each]) >= _LAST:
            break
        if columns[place].dropped:
            widths[place] = 0
    widths[last] = max(_LAST, room - sum(widths[each] + _GAP for each in others if widths[each]))
    return widths


def _laid_out(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    from rich.cells import cell_len, set_cell_size

    shown = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        if width and cell_len(cell) > width:
            shown.append(f"{set_cell_size(cell, width - 1)}…")
        elif width:
            blanks = " " * (width - cell_len(cell))
            shown.append(f"{blanks}{cell}" if column.is_number else f"{cell}{blanks}")
    return (" " * _GAP).join(shown).rstrip()


def show_lines(text: str, *, indent: str = "", style: str = "") -> None:
    """Print text of any number of lines.

    Args:
        text: The text.
        indent: What stands before each line.
        style: How it looks on a terminal, in the words of rich.
    """
    shown = "\n".join(f"{indent}{line}".rstrip() for line in escape_lines(text).split("\n"))
    if style and is_terminal():
        from rich.console import Console
        from rich.text import Text

        Console(highlight=False).print(Text(shown, style=style), soft_wrap=True)
    else:
        _print(shown)


def _print(text: str) -> None:
    # Not refused by an output that knows fewer characters.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


def show_bytes(data: bytes) -> None:
    """Print bytes: as they are for a program, without what a terminal would obey for a person."""
    if is_terminal():
        show_lines(data.decode("utf-8", "replace").removesuffix("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def show_json(value: Any, *, is_indented: bool = False) -> None:
    """Print facts as JSON: in one line, or indented; everything but ASCII is escaped."""
    print(json.dumps(value, indent=2 if is_indented else None))


class Progress(Protocol):
    """Takes note of how far something is."""

    def advance(self, amount: int) -> None:
        """Say that so much more is done."""


class _Silent:
    def advance(self, amount: int) -> None:
        pass


@contextmanager
def progress(what: str, total: int, *, is_bytes: bool = True) -> Iterator[Progress]:
    """Show how far something is, on stderr, where that is a terminal.

    Args:
        what: What is done.
        total: How much there is to do.
        is_bytes: Whether that is bytes, of which a line has many; or things that each take their time.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(),
        *((DownloadColumn(), TransferSpeedColumn()) if is_bytes else (MofNCompleteColumn(),)),
        TimeRemainingColumn(),
    )  # fmt: skip
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(escape(what), total=total)

        class _Bar:
            waiting = 0

            def advance(self, amount: int) -> None:
                # Not for each line: that would take as long as the work.
                self.waiting += amount
                if self.waiting >= (_STEP if is_bytes else 1):
                    bars.advance(task, self.waiting)
                    self.waiting = 0

        yield _Bar()
