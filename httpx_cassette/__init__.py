"""Record each exchange with a language model once, replay it offline for ever."""

from __future__ import annotations

import importlib
import typing

from . import _exit
from ._process import LOADING as _LOADING

if typing.TYPE_CHECKING:
    from . import dialects
    from ._answer import Served
    from ._block import OpenCassette
    from ._call import Call
    from ._cassette import Cassette
    from ._errors import (
        CallLimitReached,
        CassetteAmbiguous,
        CassetteChanged,
        CassetteDamaged,
        CassetteError,
        CassetteMiss,
        CassetteReadOnly,
        CassetteStop,
        CassetteUnusable,
        CassetteUnused,
        CassetteVersionError,
        CassetteWriteError,
        NetworkRefused,
        OptionError,
        SystemPromptMissing,
        WrongClientError,
    )
    from ._exchange import Exchange
    from ._explain import Explanation
    from ._fingerprint import KEY_VERSION
    from ._ledger import expected_miss
    from ._mode import Mode
    from ._opened import Recordings
    from ._opened import open as open  # noqa: A004  # people write httpx_cassette.open
    from ._policy import KeyPolicy
    from ._probe import Probe, ProbedAnswer, stability_probe
    from ._redact import Redaction
    from ._session import Stats
    from ._transport import CassetteTransport
    from ._use import use_cassette

# ``open`` is no part of it, though it is public: ``from httpx_cassette import *`` would put it in the place
# of Python's own.
__all__ = [
    "KEY_VERSION",
    "Call",
    "CallLimitReached",
    "Cassette",
    "CassetteAmbiguous",
    "CassetteChanged",
    "CassetteDamaged",
    "CassetteError",
    "CassetteMiss",
    "CassetteReadOnly",
    "CassetteStop",
    "CassetteTransport",
    "CassetteUnusable",
    "CassetteUnused",
    "CassetteVersionError",
    "CassetteWriteError",
    "Exchange",
    "Explanation",
    "KeyPolicy",
    "Mode",
    "NetworkRefused",
    "OpenCassette",
    "OptionError",
    "Probe",
    "ProbedAnswer",
    "Recordings",
    "Redaction",
    "Served",
    "Stats",
    "SystemPromptMissing",
    "WrongClientError",
    "dialects",
    "expected_miss",
    "stability_probe",
    "use_cassette",
]

__version__ = "0.1.0"

#: Where the names stand that are imported when they are first asked for: a program that imports the package,
#: such as a test run in which no cassette is used, pays for none of them.
_HOMES = {
    "Call": "_call",
    "Cassette": "_cassette",
    "CassetteTransport": "_transport",
    "Exchange": "_exchange",
    "Explanation": "_explain",
    "KEY_VERSION": "_fingerprint",
    "KeyPolicy": "_policy",
    "Mode": "_mode",
    "OpenCassette": "_block",
    "Probe": "_probe",
    "ProbedAnswer": "_probe",
    "Recordings": "_opened",
    "Redaction": "_redact",
    "Served": "_answer",
    "Stats": "_session",
    "dialects": "dialects",
    "expected_miss": "_ledger",
    "open": "_opened",
    "stability_probe": "_probe",
    "use_cassette": "_use",
}


if not typing.TYPE_CHECKING:  # A checker is to find names that do not exist.

    def __getattr__(name: str) -> typing.Any:
        if name not in __all__ and name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with _LOADING:
            home = importlib.import_module(f".{_HOMES.get(name, '_errors')}", __name__)
        # A module that is asked for itself is what was imported.
        value = globals()[name] = home if name == "dialects" else getattr(home, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES})


# At import, not at the first transport: a program whose workers alone build clients must learn of their
# misses too. It sets one variable and one attribute of ``sys``; no hook is installed before something missed.
_exit.arm()
