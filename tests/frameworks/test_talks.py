"""Each framework talks to a server, has a tool called and streams the rest; then the server is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..blocks import is_installed
from ._rows import ROWS
from ._running import Recorded, connections
from ._talk import CASSETTE, COLOURS, WAYS

pytestmark = [
    pytest.mark.loopback,
    # Of each other's ways, and of clients that frameworks make and never close.
    pytest.mark.filterwarnings("ignore"),
]

INSTALLED = [name for name, row in ROWS.items() if is_installed(row.needs)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("program", INSTALLED)
def test_a_talk_is_replayed_without_the_server(
    recorded: Callable[[str, str, str], Recorded], program: str, colour: str, way: str
) -> None:
    """Tool calls, text and usage are the same by a client that is given and in a block; nothing connects."""
    recording = recorded(program, colour, way)

    replayed = [(recording.replay(each), list(connections)) for each in WAYS]

    assert (ROWS[program].recordings, {"127.0.0.1"}) == (recording.calls, recording.hosts)
    assert recording.calls == len((recording.folder / CASSETTE).read_bytes().splitlines())
    assert [(recording.said, [])] * 2 == replayed
