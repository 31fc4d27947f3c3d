"""One open file: read at a place, lock, append the whole or nothing. What is in it is not known here.

Every error of the operating system becomes a ``CassetteError`` here and nowhere else.

The lock is ``flock``, not ``lockf``: a POSIX record lock vanishes when any other descriptor of the file is
closed, and does not separate threads. Locks on NFS and SMB cannot be relied on; the documentation says so.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ._errors import CassetteError

__all__ = ["OpenFile", "open_file", "sync_folder"]

# O_NONBLOCK has no effect on files, and keeps the opening of a named pipe from waiting for a writer.
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_READ = os.O_RDONLY | _ALWAYS
_APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | _ALWAYS

if sys.platform == "win32":  # pragma: no cover - held by the same tests on that platform
    import msvcrt
    import threading

    # Far behind any data: a lock on Windows is mandatory, and readers must not meet it.
    _FAR = 2**62
    _POSITION = threading.Lock()

    def _lock(number: int) -> None:
        while True:
            os.lseek(number, _FAR, os.SEEK_SET)
            try:
                return msvcrt.locking(number, msvcrt.LK_LOCK, 1)
            except OSError as error:
                if error.errno != errno.EDEADLK:  # It gives up after ten seconds.
                    raise

    def _unlock(number: int) -> None:
        os.lseek(number, _FAR, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_UNLCK, 1)

    def _read(number: int, length: int, offset: int) -> bytes:
        with _POSITION:
            os.lseek(number, offset, os.SEEK_SET)
            return os.read(number, length)

else:
    import fcntl

    def _lock(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_EX)

    def _unlock(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_UN)

    _read = os.pread


def open_file(path: str, shown: str, *, appends: bool = False) -> OpenFile | None:
    """Open a cassette file, or return ``None`` where it, or for appending its folder, does not exist.

    Args:
        path: The file.
        shown: Its path as the user wrote it, for errors.
        appends: Whether to append; creates the file.

    Raises:
        CassetteError: It cannot be opened, or is no regular file.
    """
    try:
        return OpenFile(os.open(path, _APPEND if appends else _READ, 0o666), shown)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CassetteError(f"the cassette cannot be opened: {_reason(error)}", shown) from error


class OpenFile:
    """A descriptor. It is closed when nobody holds this object any more, so a reader never loses it.

    Args:
        number: The descriptor; this object owns it.
        path: The path as the user wrote it, for errors.
        pid: The process that opened it. A descriptor that came by fork shares its lock with the parent.
    """

    __slots__ = ("__weakref__", "_close", "number", "path", "pid")

    def __init__(self, number: int, path: str) -> None:
        self.number = number
        self.path = path
        self.pid = os.getpid()
        self._close: Callable[[int], None] = os.close  # ``os`` may be gone when the interpreter ends.
        if not stat.S_ISREG(self.status().st_mode):
            raise CassetteError("the path is no regular file; name one, such as chat.jsonl", path)

    @property
    def is_closed(self) -> bool:
        return self.number == -1

    def close(self) -> None:
        """Close the descriptor, whoever still holds this object. Closing twice does nothing."""
        number, self.number = self.number, -1
        if number != -1:
            self._close(number)

    __del__ = close

    def status(self) -> os.stat_result:
        try:
            return os.fstat(self.number)
        except OSError as error:
            raise CassetteError(f"the cassette cannot be looked at: {_reason(error)}", self.path) from error

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return self.status().st_size

    def read(self, length: int, offset: int) -> bytes:
        """Return the bytes at an offset; fewer only where the file ends before."""
        try:
            data = _read(self.number, length, offset)
            while len(data) < length:
                more = _read(self.number, length - len(data), offset + len(data))
                if not more:
                    break
                data += more
            return data
        except OSError as error:
            raise CassetteError(f"the cassette cannot be read: {_reason(error)}", self.path) from error

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the lock of the file, between processes and between descriptors; waits for it."""
        try:
            _lock(self.number)
        except OSError as error:
            raise CassetteError(
                f"the cassette cannot be locked: {_reason(error)}; keep it on a local disk", self.path
            ) from error
        try:
            yield
        finally:
            try:
                _unlock(self.number)
            except OSError:
                self.close()  # Which gives the lock back, too: others must not wait for ever.

    def append(self, data: bytes, *, fsync: bool) -> None:
        """Append with one write, or leave the file as it was. The caller holds the lock.

        Raises:
            CassetteError: It could not be written, or not be made durable.
        """
        size = self.size
        try:
            written = os.write(self.number, data)
            if written < len(data):
                # A full disk writes what fits and says why only at the next call.
                written += os.write(self.number, data[written:])
            if written < len(data):
                raise OSError(errno.ENOSPC, "only a part of the line could be written")
            if fsync:
                _sync(self.number)
        except OSError as error:
            self._truncate(size)
            raise CassetteError(f"the recording could not be written: {_reason(error)}", self.path) from error

    def _truncate(self, size: int) -> None:
        try:
            os.ftruncate(self.number, size)
        except OSError:
            pass  # The line stays torn: the next append says so with a note.


def sync_folder(folder: str) -> None:
    """Make the names in a folder durable, where the platform lets a folder be opened."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(number)
    except OSError:
        pass
    finally:
        os.close(number)


_sync: Callable[[int], None] = getattr(os, "fdatasync", os.fsync)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
