"""Writes a cassette anew without some of its lines, or with other ones: what does not only append.

The new file is written beside the old one, made durable, and takes its place in one step, under the lock of
writers: whoever dies on the way leaves the old file, and whoever appends next sees the new one.
Every other line is kept to the byte, unknown and damaged ones included.
What becomes of a line, and whether the new file is right, is asked of whoever wants it; not known here.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import BinaryIO, TypeAlias

from ._errors import CassetteDamaged, CassetteError, CassetteReadOnly
from ._line import MAX_LINE, bare, read_head
from ._open_file import OpenFile, open_file, sync_folder

__all__ = ["Change", "Check", "delete_cassette", "plain_lines", "remove_lines", "rewrite_lines", "write_new"]

#: Gets the number of a line and the line without its newline; returns it, another one, or ``None`` for none.
#: The very same object is kept to the byte, its ending too.
Change: TypeAlias = Callable[[int, bytes], "bytes | None"]

#: Gets the path of the new file and the numbers of the lines in it that are new; raises where it is wrong.
Check: TypeAlias = Callable[[str, "list[int]"], None]


def rewrite_lines(path: str, plan: Callable[[], Change], check: Check) -> None:
    """Change lines of a cassette; the old file is kept until the new one was looked at.

    Args:
        path: The file.
        plan: Called under the lock of writers, when nothing is appended any more; says what becomes of lines.
        check: Looks at the new file before it takes the place of the old one.

    Raises:
        CassetteReadOnly: The file or its folder cannot be written.
        CassetteDamaged: A line is too long to be looked at.
        CassetteError: It could not be rewritten, or ``check`` refused it; it is as it was before.
    """
    real = os.path.realpath(path)
    with _locked(real, path), _replacing(real, path, check) as (new, numbers):
        change = plan()
        written = 0
        for number, line in plain_lines(path):
            text = bare(line.removesuffix(b"\n"))
            changed = change(number, text)
            if changed is None:
                continue
            written += 1
            new.write(line if changed is text else changed + b"\n")
            if changed is not text:
                numbers.append(written)


def write_new(path: str, lines: Iterator[tuple[bytes, bool]], check: Check, *, replaces: bool) -> None:
    """Write a cassette out of lines.

    Args:
        path: The file.
        lines: Its lines without their newlines, and whether each is new, and no copy of another one.
        check: Looks at the new file before it has its name.
        replaces: Whether it takes the place of one that is there. It is locked meanwhile.

    Raises:
        CassetteReadOnly: The folder cannot be written.
        CassetteError: It could not be written, ``check`` refused it, or there is one; nothing has changed.
    """
    real = os.path.realpath(path)
    if not os.path.isdir(os.path.dirname(real)):
        raise CassetteError("there is no such folder to write the cassette to", path)
    if os.path.exists(real):
        if not replaces:
            raise CassetteError("there is such a file already; --force replaces it", path)
        with _locked(real, path):
            _write(real, path, lines, check)
    else:
        _write(real, path, lines, check)


def _write(real: str, path: str, lines: Iterator[tuple[bytes, bool]], check: Check) -> None:
    with _replacing(real, path, check) as (new, numbers):
        for number, (line, is_new) in enumerate(lines, 1):
            new.write(line + b"\n")
            if is_new:
                numbers.append(number)


def plain_lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of every line, its newline included.

    Raises:
        CassetteDamaged: A line is too long to be looked at.
        CassetteError: The file cannot be read.
    """
    most = MAX_LINE + len(b"\xef\xbb\xbf\r\n")
    number = 0
    try:
        with open(path, "rb") as file:
            while line := file.readline(most + 1):
                number += 1
                if len(line) > most:
                    raise CassetteDamaged(
                        f"the line is longer than {MAX_LINE // 1024 // 1024} MiB; take it out of the file",
                        path,
                        number,
                    )
                yield number, line
    except OSError as error:
        raise CassetteError(f"the cassette cannot be read: {error.strerror}", path) from error


def remove_lines(path: str, lines: Mapping[int, str]) -> int:
    """Remove recordings from a cassette, and return how many.

    Args:
        path: The file.
        lines: The fingerprint on each line that is to go, by the number of the line. Where there is another
            one by now, the line stays.

    Raises:
        CassetteReadOnly: The file or its folder cannot be written.
        CassetteError: It could not be rewritten; it is as it was before.
    """
    real = os.path.realpath(path)
    removed = 0
    with _locked(real, path), _replacing(real, path, lambda new, numbers: None) as (new, _):
        with open(real, "rb") as old:
            for position, line in enumerate(old, 1):
                if position in lines and _is_of(line, lines[position]):
                    removed += 1
                else:
                    new.write(line)
    return removed


@contextmanager
def _replacing(real: str, path: str, check: Check) -> Iterator[tuple[BinaryIO, list[int]]]:
    """Give a file that takes the place of another one when the block is left, and not if it raises.

    Beside it a list, for the numbers of the lines that ``check`` is to look at.
    """
    folder = os.path.dirname(real)
    try:
        number, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(real)}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise CassetteReadOnly(
            f"nothing can be written beside the cassette: {error.strerror}", path
        ) from error
    numbers: list[int] = []
    try:
        with open(number, "wb") as new:
            yield new, numbers
            new.flush()
            os.fsync(new.fileno())
        check(temporary, numbers)
        if os.path.exists(real):
            shutil.copymode(real, temporary)
        else:
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, real)
    except OSError as error:
        raise CassetteError(f"the cassette could not be rewritten: {error.strerror}", path) from error
    finally:
        with suppress(OSError):  # Gone, as a rule: it has taken the place of the old one.
            os.unlink(temporary)
    sync_folder(folder)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def delete_cassette(path: str, size: int) -> None:
    """Delete a cassette.

    Args:
        path: The file.
        size: Its length when it was looked at: one that has changed since is kept.

    Raises:
        CassetteError: It cannot be deleted, or has changed.
    """
    real = os.path.realpath(path)
    with _locked(real, path):
        try:
            if os.stat(real).st_size != size:
                raise CassetteError("the cassette has changed, and was not deleted", path)
            os.unlink(real)
        except OSError as error:
            raise CassetteError(f"the cassette cannot be deleted: {error.strerror}", path) from error


def _is_of(line: bytes, fingerprint: str) -> bool:
    head = read_head(bare(line.rstrip(b"\n")))
    return head is not None and head.key.hex() == fingerprint


@contextmanager
def _locked(real: str, path: str) -> Iterator[OpenFile]:
    """Hold the lock of writers on the file that the path names."""
    while True:
        writer = open_file(real, path, appends=True) if os.path.exists(real) else None
        if writer is None:
            raise CassetteError("the cassette is gone", path)
        with writer.exclusive():
            # Another may have put a new file in its place while this one waited.
            if os.path.exists(real) and os.path.samestat(os.stat(real), writer.status()):
                yield writer
                return
