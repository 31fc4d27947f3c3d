"""Record each exchange with a language model once, replay it offline for ever."""

from __future__ import annotations

import typing

from ._answer import Served
from ._call import Call
from ._cassette import Cassette
from ._errors import (
    CallLimitReached,
    CassetteChanged,
    CassetteDamaged,
    CassetteError,
    CassetteMiss,
    CassetteReadOnly,
    CassetteStop,
    CassetteUnusable,
    CassetteVersionError,
    CassetteWriteError,
    OptionError,
    SystemPromptMissing,
    WrongClientError,
)
from ._fingerprint import KEY_VERSION, KeyPolicy
from ._flow import Stats
from ._ledger import expected_miss
from ._mode import Mode
from ._redact import Redaction
from ._transport import CassetteTransport

__all__ = [
    "KEY_VERSION",
    "Call",
    "CallLimitReached",
    "Cassette",
    "CassetteChanged",
    "CassetteDamaged",
    "CassetteError",
    "CassetteMiss",
    "CassetteReadOnly",
    "CassetteStop",
    "CassetteTransport",
    "CassetteUnusable",
    "CassetteVersionError",
    "CassetteWriteError",
    "Explanation",
    "KeyPolicy",
    "Mode",
    "OptionError",
    "Redaction",
    "Served",
    "Stats",
    "SystemPromptMissing",
    "WrongClientError",
    "expected_miss",
]

__version__ = "0.1.0"

if typing.TYPE_CHECKING:
    from ._explain import Explanation


def __getattr__(name: str) -> typing.Any:
    # A class that is only named in annotations, in a module that only explanations need.
    if name == "Explanation":
        from ._explain import Explanation

        return Explanation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
