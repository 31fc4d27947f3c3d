"""Writes a cassette anew without some of its lines: the one thing that does not only append.

The new file is written beside the old one, made durable, and takes its place in one step, under the lock of
writers: whoever dies on the way leaves the old file, and whoever appends next sees the new one.
Every other line is kept to the byte, unknown and damaged ones included.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from ._errors import CassetteError, CassetteReadOnly
from ._line import bare, read_head
from ._open_file import OpenFile, open_file, sync_folder

__all__ = ["delete_cassette", "remove_lines"]


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
    folder = os.path.dirname(real)
    with _locked(real, path):
        try:
            number, temporary = tempfile.mkstemp(
                prefix=f".{os.path.basename(real)}.", suffix=".tmp", dir=folder
            )
        except OSError as error:
            raise CassetteReadOnly(
                f"nothing can be written beside the cassette: {error.strerror}", path
            ) from error
        try:
            with open(real, "rb") as old, open(number, "wb") as new:
                removed = 0
                for position, line in enumerate(old, 1):
                    if position in lines and _is_of(line, lines[position]):
                        removed += 1
                    else:
                        new.write(line)
                new.flush()
                os.fsync(new.fileno())
            shutil.copymode(real, temporary)
            os.replace(temporary, real)
        except OSError as error:
            raise CassetteError(f"the cassette could not be rewritten: {error.strerror}", path) from error
        finally:
            with suppress(OSError):  # Gone, as a rule: it has taken the place of the old one.
                os.unlink(temporary)
    sync_folder(folder)
    return removed


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
