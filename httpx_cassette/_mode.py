"""Which of the four modes is in force.

``HTTPX_CASSETTE_MODE=replay`` is a ceiling: it wins over any argument, so that a CI run cannot pay by
accident. Its other values apply where no mode is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ._errors import OptionError
from ._suggest import nearest_name

__all__ = ["MODE_VARIABLE", "Mode", "mode_outside", "resolve_mode"]

MODE_VARIABLE = "HTTPX_CASSETTE_MODE"


class Mode(str, Enum):
    """What happens to a call.

    ``replay`` answers from the cassette, and a call that is not there is a miss. ``record`` makes the real
    call where nothing is recorded, and stores it. ``rerecord`` makes every call once more and supersedes what
    was stored. ``live`` makes the real call and neither reads nor writes.
    """

    REPLAY = "replay"
    RECORD = "record"
    RERECORD = "rerecord"
    LIVE = "live"


_NAMES = {mode.value: mode for mode in Mode}


def resolve_mode(argument: Mode | str | None, environ: Mapping[str, str]) -> Mode:
    """Return the mode in force.

    Args:
        argument: What the transport was given, if anything.
        environ: The environment.

    Raises:
        OptionError: There is no such mode; the nearest is named.
    """
    given = None if argument is None else _read_mode(argument, "mode")
    from_outside = mode_outside(environ)
    if from_outside is Mode.REPLAY:
        return Mode.REPLAY
    return given or from_outside or Mode.REPLAY


def mode_outside(environ: Mapping[str, str]) -> Mode | None:
    """Return the mode that the environment sets, ``None`` where it sets none.

    Raises:
        OptionError: There is no such mode; the nearest is named.
    """
    set_outside = environ.get(MODE_VARIABLE, "").strip()
    return _read_mode(set_outside, MODE_VARIABLE) if set_outside else None


def _read_mode(value: Mode | str, source: str) -> Mode:
    name = value.value if isinstance(value, Mode) else str(value).strip().lower()
    if name not in _NAMES:
        raise OptionError(f"{source}={value!r} is not a mode{nearest_name(name, _NAMES)}")
    return _NAMES[name]
