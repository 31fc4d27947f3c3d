"""Every error that this package raises, as one tree.

Misuse and file faults met outside a call are ordinary exceptions:

- CassetteError(Exception)
    - OptionError           an option, mode or argument that is not understood   (also a ValueError)
    - WrongClientError      a transport given to a client of the other library (also a TypeError)
    - CassetteDamaged       a file, or a line of it, that cannot be trusted
    - CassetteChanged       the file was replaced under a reader and the old one is gone
    - CassetteReadOnly      recording was asked for where nothing can be written
    - CassetteVersionError  a line written by a newer release
    - CassetteUnused        a test was to use a cassette, and none of its calls came by

What stops a call is not:

- CassetteStop(BaseException)
    - CassetteMiss          replay has no recording for this call
    - SystemPromptMissing   a chat call without a system prompt
    - CassetteUnusable      the recording exists but cannot be answered from
    - CassetteWriteError    a paid answer could not be stored, and the error carries it; or a call was not
                            made because its answer could not be
    - CallLimitReached      one more real call would exceed ``max_calls``, or what the environment allows
    - CassetteAmbiguous     a call that could be answered from several cassettes that are open at once
    - NetworkRefused        a connection that goes round the cassette, while one is replayed

``CassetteStop`` derives from ``BaseException`` on purpose.
SDKs retry, wrap or swallow ``Exception`` (openai before 3.20 and anthropic 2.14 turn any of them into
their own connection error after three tries), ``SystemExit`` tears event loops down and disappears in
threads, and an error of the transport family makes litellm go round the transport to the network.

Every error keeps its facts as attributes and survives pickling, which worker processes need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "CallLimitReached",
    "CassetteAmbiguous",
    "CassetteChanged",
    "CassetteDamaged",
    "CassetteError",
    "CassetteMiss",
    "CassetteReadOnly",
    "CassetteStop",
    "CassetteUnusable",
    "CassetteUnused",
    "CassetteVersionError",
    "CassetteWriteError",
    "NetworkRefused",
    "OptionError",
    "SystemPromptMissing",
    "WrongClientError",
    "is_stop",
]


class CassetteError(Exception):
    """Misuse, or a fault of a cassette file, met outside a call.

    Args:
        message: One sentence that says what happened, and what to do next.
        path: The cassette file concerned, if there is one.
        line: The line of it, counted from 1.
    """

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message, path, line)
        self.message = message
        self.path = path
        self.line = line

    def __str__(self) -> str:
        where = "" if self.path is None else self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.message}" if where else self.message


class OptionError(CassetteError, ValueError):
    """An option, a mode or an argument that is not understood."""


class WrongClientError(CassetteError, TypeError):
    """A transport given to a client of the other library."""


class CassetteDamaged(CassetteError):
    """A cassette file, or one line of it, that cannot be trusted."""


class CassetteChanged(CassetteError):
    """The file was replaced or cut while it was being read, and the old data are gone."""


class CassetteReadOnly(CassetteError):
    """Recording was asked for, and the file or its folder cannot be written."""


class CassetteVersionError(CassetteError):
    """A line whose format is newer than this release knows."""


class CassetteUnused(CassetteError):
    """A test was to use a cassette, and none of its calls came by: its client goes round the transport."""


class CassetteStop(BaseException):
    """Stops a call, whatever an SDK or an ``except Exception`` makes of ordinary errors.

    Args:
        message: The report: a first line that says what happened, then indented detail.
        facts: What the report is made of; each is an attribute of the error.
    """

    def __init__(self, message: str, facts: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.facts: dict[str, Any] = dict(facts or {})
        self.__dict__.update(self.facts)

    def __reduce__(self) -> tuple[Callable[..., CassetteStop], tuple[str, dict[str, Any]], dict[str, Any]]:
        # Not by ``args``: what prints those, such as an error tracker, would print a paid answer.
        return type(self), (self.message, self.facts), self.__dict__

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        # Not the whole report, and not the facts: event loops print this, and a fact may be a paid answer.
        return f"{type(self).__name__}({self.message.partition(chr(10))[0]!r})"


class CassetteMiss(CassetteStop):
    """Replay was asked for a call that no cassette holds.

    Attributes:
        fingerprint: The key of the call, 64 hex digits.
        cassettes: The files that were looked up.
        method: The HTTP method.
        url: The URL, redacted.
        dialect: The wire format that was recognised.
        model: The model asked for, if the body names one.
        changed: Paths that differ from the nearest recording.
        nearest: ``FILE:LINE`` of the nearest recording, if there is any.
        words: The first words of what was asked last, as far as the body says it in words.
    """

    fingerprint: str
    cassettes: tuple[str, ...]
    method: str
    url: str
    dialect: str
    model: str | None
    changed: tuple[str, ...]
    nearest: str | None
    words: str


class SystemPromptMissing(CassetteStop):
    """A chat call whose first message is not a system prompt, or whose system prompt is blank.

    Attributes:
        dialect: The wire format that was recognised.
        looked_at: The places where the system prompt of that format lives.
        found: What stood there instead.
    """

    dialect: str
    looked_at: str
    found: str


class CassetteUnusable(CassetteStop):
    """The newest recording of a call exists and cannot be trusted; ``__cause__`` says why.

    Attributes:
        fingerprint: The key of the call, 64 hex digits; empty when the file could not be read at all.
        path: The cassette file.
        line: The line of it, counted from 1, or ``None`` for the file as a whole.
    """

    fingerprint: str
    path: str
    line: int | None


class CassetteWriteError(CassetteStop):
    """An answer that was paid for could not be stored.

    The answer is not lost: it is in the attributes.

    Attributes:
        fingerprint: The key of the call, 64 hex digits.
        status: The status code of the answer.
        headers: Its headers as pairs of text.
        content: Its body, content encoding undone.
    """

    fingerprint: str
    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes


class CallLimitReached(CassetteStop):
    """One more real call would exceed ``max_calls``, or what the environment allows.

    Attributes:
        limit: The number of real calls allowed.
        url: The URL that would have been called, redacted.
    """

    limit: int
    url: str


class CassetteAmbiguous(CassetteStop):
    """A call that has no context could be answered from several cassettes that are open at once.

    Attributes:
        cassettes: Their files.
    """

    cassettes: tuple[str, ...]


class NetworkRefused(CassetteStop):
    """Something goes round the cassette to another machine, while a guarded cassette is replayed.

    Attributes:
        host: The host name or address.
        port: The port, where it is known.
    """

    host: str
    port: int | None


def is_stop(info: Any) -> bool:
    """Tell pytest to leave frames out of the traceback of a stop: the report says all, and its user's lines.

    Modules through which one passes name it ``__tracebackhide__``.

    Args:
        info: The ``pytest.ExceptionInfo`` that is shown.
    """
    return isinstance(info.value, CassetteStop)


# Tracebacks, and the short summary of pytest, name what people import.
for _name in __all__:
    if _name != is_stop.__name__:
        globals()[_name].__module__ = __package__
