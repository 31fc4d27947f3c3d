"""Which mode is in force."""

from __future__ import annotations

import pytest

from httpx_cassette import Mode, OptionError
from httpx_cassette._mode import MODE_VARIABLE, resolve_mode


@pytest.mark.parametrize(
    ("argument", "variable", "mode"),
    [
        (None, None, Mode.REPLAY),
        (None, "", Mode.REPLAY),
        (None, "record", Mode.RECORD),
        (None, " Rerecord ", Mode.RERECORD),
        (None, "live", Mode.LIVE),
        ("record", None, Mode.RECORD),
        (" LIVE ", None, Mode.LIVE),
        (Mode.RERECORD, None, Mode.RERECORD),
        ("record", "live", Mode.RECORD),
        ("replay", "record", Mode.REPLAY),
        ("record", "replay", Mode.REPLAY),
        (Mode.LIVE, "REPLAY", Mode.REPLAY),
    ],
)
def test_replay_outside_is_a_ceiling(argument: Mode | str | None, variable: str | None, mode: Mode) -> None:
    """``replay`` in the environment wins over any argument; its other values apply where none is given."""
    environment = {} if variable is None else {MODE_VARIABLE: variable}

    assert mode is resolve_mode(argument, environment)


@pytest.mark.parametrize(
    ("argument", "variable", "message"),
    [
        ("recrod", None, "mode='recrod' is not a mode (did you mean 'record'?)"),
        ("play", None, "mode='play' is not a mode (did you mean 'replay'?)"),
        ("none", None, "mode='none' is not a mode; there are live, record, replay, rerecord"),
        ("", None, "mode='' is not a mode; there are live, record, replay, rerecord"),
        (None, "liv", "HTTPX_CASSETTE_MODE='liv' is not a mode (did you mean 'live'?)"),
        ("record", "x", "HTTPX_CASSETTE_MODE='x' is not a mode; there are live, record, replay, rerecord"),
        ("x", "replay", "mode='x' is not a mode; there are live, record, replay, rerecord"),
    ],
)
def test_an_unknown_mode_names_the_nearest(argument: str | None, variable: str | None, message: str) -> None:
    """The error says where it was given, and what was likely meant."""
    with pytest.raises(OptionError) as caught:
        resolve_mode(argument, {} if variable is None else {MODE_VARIABLE: variable})

    assert message == str(caught.value)


def test_a_mode_is_its_name() -> None:
    """A mode compares and reads like the text that names it."""
    assert ["replay", "record", "rerecord", "live"] == [mode.value for mode in Mode]
