"""How many real calls were made: by this process, or by all processes that share a file.

``HTTPX_CASSETTE_BUDGET`` names that file. Each real call appends one line to it, of a fixed length, before it
is made: the fingerprint of the call, or zeros where it has none. Whoever appends holds the lock of the file,
so that the limit is exact: no two processes take the last place, and no call is refused while one is left.
Without the file a process counts for itself; one that was forked begins with the count of its parent.

Nothing here knows what a call is, or what a refused one comes to.
"""

from __future__ import annotations

import os
import threading

from ._errors import CassetteError
from ._open_file import open_file

__all__ = ["BUDGET_VARIABLE", "NO_FINGERPRINT", "calls_made", "is_shared", "take"]

#: Names the file.
BUDGET_VARIABLE = "HTTPX_CASSETTE_BUDGET"

#: Stands in the file for a call without a fingerprint: in mode live none is computed.
NO_FINGERPRINT = "0" * 64

#: Bytes of a line: the fingerprint and its end.
_LINE = 65

_lock = threading.RLock()  # re-entrant: a finaliser may make a call
_made = 0


def take(limit: int | None, fingerprint: str = NO_FINGERPRINT) -> bool:
    """Count one real call that is about to be made, and tell whether it may be.

    Args:
        limit: How many there may be; ``None`` for any number.
        fingerprint: The key of the call.

    Raises:
        CassetteError: The file cannot be counted in, so nobody knows how many there were.
    """
    global _made
    with _lock:
        path = os.environ.get(BUDGET_VARIABLE)
        if path:
            may_call = _take_line(path, limit, fingerprint)
        else:
            may_call = limit is None or _made < limit
        _made += may_call
    return may_call


def is_shared() -> bool:
    """Tell whether other processes count in the same file."""
    return bool(os.environ.get(BUDGET_VARIABLE))


def calls_made(path: str, offset: int = 0) -> list[str]:
    """Return the fingerprints of the real calls that a file counts, in their order.

    Args:
        path: The file; one that does not exist counts none.
        offset: Where to begin: the size that the file had then.

    Raises:
        CassetteError: It cannot be read.
    """
    try:
        file = open_file(path, path)
        data = b"" if file is None else file.read(file.size - offset, offset)
    except CassetteError as error:
        raise _uncountable(path, error) from error
    return data.decode("ascii", "replace").split()


def _take_line(path: str, limit: int | None, fingerprint: str) -> bool:
    # Opened anew each time: the lock separates descriptors, so also the threads and the forks of a process.
    try:
        file = open_file(path, path, appends=True)
        if file is None:
            raise CassetteError("its folder does not exist")
        with file.exclusive():
            if limit is not None and file.size >= limit * _LINE:
                return False
            file.append(f"{fingerprint}\n".encode(), fsync=False)
    except CassetteError as error:
        raise _uncountable(path, error) from error
    return True


def _uncountable(path: str, error: CassetteError) -> CassetteError:
    # What an open file says when it fails, it says of a cassette.
    cause = error.__cause__
    reason = cause.strerror if isinstance(cause, OSError) else error.message
    return CassetteError(f"real calls cannot be counted in {BUDGET_VARIABLE}={path!r}: {reason}")


def _after_fork() -> None:
    """Give a forked child a lock of its own: another thread may have held it at the fork."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_after_fork)
