"""An exclusive lock on an open file, between processes and between descriptors.

``flock``, not ``lockf``: a POSIX record lock vanishes when any other descriptor of the file is closed, and
does not separate threads. Locks on NFS and SMB cannot be relied on; the documentation says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["exclusive", "read_at"]

if sys.platform == "win32":  # pragma: no cover - held by the same tests on that platform
    import msvcrt

    # Far behind any data: a lock on Windows is mandatory, and readers must not meet it.
    _FAR = 2**62

    @contextmanager
    def exclusive(descriptor: int) -> Iterator[None]:
        """Hold the lock while the block runs; waits for it."""
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    def read_at(descriptor: int, length: int, offset: int) -> bytes:
        """Return up to ``length`` bytes from an offset; call it under the owner's lock."""
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, length)

else:
    import fcntl

    @contextmanager
    def exclusive(descriptor: int) -> Iterator[None]:
        """Hold the lock while the block runs; waits for it."""
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)

    def read_at(descriptor: int, length: int, offset: int) -> bytes:
        """Return up to ``length`` bytes from an offset."""
        return os.pread(descriptor, length, offset)
