"""Which real calls the environment allows: those whose fingerprints stand in a file, and no other.

``HTTPX_CASSETTE_ONLY`` names the file. It holds one fingerprint a line; a line that begins with ``#`` is a
comment, and the first one says where the fingerprints come from.
Only a mode that makes real calls reads it, when a transport is built, once for each process: what is allowed
does not grow while a program runs.

Nothing here knows what a call is, or what a refused one comes to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from ._errors import OptionError

__all__ = ["ONLY_VARIABLE", "Allowed", "allowed_outside", "allowed_text", "is_fingerprint", "read_allowed"]

#: Names the file.
ONLY_VARIABLE = "HTTPX_CASSETTE_ONLY"

is_fingerprint = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True, slots=True)
class Allowed:
    """The real calls that may be made.

    Args:
        fingerprints: Their keys.
        source: Where they come from, as a user knows it.
    """

    fingerprints: frozenset[str]
    source: str

    @property
    def refusal(self) -> str:
        """Why another call is refused."""
        number = len(self.fingerprints)
        those = f"among the {number:,} calls" if number > 1 else "the one call"
        return f"not {those} that {ONLY_VARIABLE} allows ({self.source})"


@cache
def read_allowed(path: str) -> Allowed:
    """Return what a file allows.

    Raises:
        OptionError: It cannot be read, or is no such file, or allows nothing.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError as error:
        raise OptionError(f"{ONLY_VARIABLE}={path!r} cannot be read: {error.strerror}") from error
    fingerprints = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    for fingerprint in fingerprints:
        if not is_fingerprint(fingerprint):
            raise OptionError(
                f"{ONLY_VARIABLE}={path!r} holds {fingerprint[:80]!r}, which is no fingerprint; it takes one "
                "of 64 hex digits a line; the misses of a run are for: httpx-cassette record --from FILE"
            )
    if not fingerprints:
        raise OptionError(f"{ONLY_VARIABLE}={path!r} holds no fingerprint, so no call could be made")
    source = next((line[1:].strip() for line in lines if line.startswith("#")), path)
    return Allowed(frozenset(fingerprints), source)


def allowed_text(source: str, fingerprints: Iterable[str]) -> str:
    """Return the text of such a file.

    Args:
        source: Where the fingerprints come from, in one line.
        fingerprints: The keys.
    """
    return "\n".join([f"# {source}", *fingerprints, ""])


def allowed_outside() -> Allowed | None:
    """Return what the environment allows, ``None`` for any call.

    Raises:
        OptionError: The file that it names is of no use.
    """
    path = os.environ.get(ONLY_VARIABLE)
    return read_allowed(path) if path else None
