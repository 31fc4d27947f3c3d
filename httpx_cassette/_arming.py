"""Child processes report to their outermost parent: through a file, whose path they inherit in a variable.

The outermost process makes the path up, reads the file at its end and deletes it; nobody makes the file
before something was missed.
Every process that imports the package does this much, at once; all else of the ledger comes with the first
transport.
"""

from __future__ import annotations

import os
from contextlib import suppress

from . import _exit

__all__ = ["BLOCKS_VARIABLE", "LEDGER_VARIABLE", "STARTED_IN", "arm", "is_named_for", "new_path"]

#: Names the file in which child processes leave their entries.
LEDGER_VARIABLE = "HTTPX_CASSETTE_LEDGER"

#: Names the ``expected_miss`` blocks that are open, the one opened last at the end.
BLOCKS_VARIABLE = "HTTPX_CASSETTE_EXPECTING"

#: Those in which this process was started. Later the variable names its own.
STARTED_IN = tuple(os.environ.get(BLOCKS_VARIABLE, "").split())

#: A ledger named for its owner; see ``is_named_for``.
_PREFIX = "httpx-cassette-"


def arm() -> str | None:
    """Have child processes that are started from now on report to this one, or to its own ancestor.

    Returns:
        The path of the file; ``None`` where there is no folder for it, and children report to nobody.
    """
    path = os.environ.get(LEDGER_VARIABLE)
    if not path:
        with suppress(OSError):
            path = os.environ[LEDGER_VARIABLE] = new_path()
    if path and is_named_for(path, os.getpid()):
        _exit.guard().ledger = path
    return path or None


def new_path() -> str:
    """A path that does not exist, named for this process and not to be guessed by another user.

    Raises:
        OSError: There is no usable folder for temporary files.
    """
    import tempfile  # Late: an inherited path needs none.

    return os.path.join(tempfile.gettempdir(), f"{_PREFIX}{os.getpid()}-{os.urandom(16).hex()}.jsonl")


def is_named_for(path: str, pid: int) -> bool:
    """Whether the process ``pid`` made this path up: after ``exec`` the name is all that is left of it."""
    return os.path.basename(path).startswith(f"{_PREFIX}{pid}-")
