"""Record each exchange with a language model once, replay it offline for ever."""

from __future__ import annotations

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
from ._explain import Explanation
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
