"""What the tests of frameworks have in common: recordings, made once for each talk."""

from __future__ import annotations

import gc
import importlib.util
import warnings
from collections.abc import Callable, Iterator

import pytest

from ._running import Recorded, listen

# The frameworks live in environments of their own (nox -s frameworks).
_ARE_HERE = any(map(importlib.util.find_spec, ("litellm", "instructor")))
collect_ignore_glob = [] if _ARE_HERE else ["test_*.py"]
# instructor alone goes round nothing.
collect_ignore = [] if importlib.util.find_spec("litellm") else ["test_ways_round.py"]

if _ARE_HERE:
    listen()


@pytest.fixture(scope="session")
def recorded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str, str, str], Recorded]]:
    """Give the recording of a talk, by program, colour and way."""
    made: dict[tuple[str, str, str], Recorded] = {}

    def record(program: str, colour: str, way: str) -> Recorded:
        if (program, colour, way) not in made:
            folder = tmp_path_factory.mktemp(f"{program}-{colour}-{way}")
            made[program, colour, way] = Recorded(folder, program, colour, way)
        return made[program, colour, way]

    yield record
    # Frameworks leave clients and event loops to the collector; here nobody minds.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()
