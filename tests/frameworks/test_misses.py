"""Somebody changes the system prompt: the program ends with status 2, and tells what changed.

Between the miss and the end of the program stand retries, fallbacks, wrappers and an ``except Exception``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from subprocess import CompletedProcess

import pytest

from ..blocks import is_installed
from ._rows import CHANGED, ROWS, Row
from ._running import Recorded, run_as_a_program
from ._talk import COLOURS

pytestmark = [pytest.mark.loopback, pytest.mark.filterwarnings("ignore")]

#: By which way a program is run in each colour, and was recorded.
WAYS = {"sync": "block", "async": "client"}

INSTALLED = [name for name, row in ROWS.items() if is_installed(row.needs)]

Ended = tuple[Recorded, "CompletedProcess[str]"]


@pytest.fixture(scope="module")
def ended(
    request: pytest.FixtureRequest, recorded: Callable[[str, str, str], Recorded]
) -> Iterator[Callable[[str, str], Ended]]:
    """Give how a program ended; all that are asked for run at once, as most of it is importing."""
    chosen = {
        (item.callspec.params["program"], item.callspec.params["colour"])
        for item in request.session.items
        if item.path == request.path and hasattr(item, "callspec")
    }
    with ThreadPoolExecutor(2) as pool:
        running: dict[tuple[str, str], tuple[Recorded, Future[CompletedProcess[str]]]] = {}
        for program, colour in sorted(chosen):
            recording = recorded(program, colour, WAYS[colour])
            arguments = ("tests.frameworks._talk", program, colour, WAYS[colour], CHANGED)
            future = pool.submit(run_as_a_program, recording.folder, recording.url, *arguments)
            running[program, colour] = recording, future

        def result(program: str, colour: str) -> Ended:
            recording, future = running[program, colour]
            return recording, future.result()

        yield result
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("program", INSTALLED)
def test_a_changed_system_prompt_ends_with_2(
    ended: Callable[[str, str], Ended], program: str, colour: str
) -> None:
    """The report names the field; nothing is retried, and another model only where a framework hides it."""
    row = ROWS[program]
    recording, result = ended(program, colour)
    is_hidden = colour == "async" and row.falls_back is not None
    expected = [(row.model, "1 of N fields differs", row.differs)]
    if is_hidden:
        differs = (f'model   "{row.model}" -> "{row.falls_back}"', *row.differs)
        expected.append((row.falls_back, "2 of N fields differ", differs))

    assert 2 == result.returncode, result.stderr
    assert [report(recording, row, *each, program, colour) for each in expected] == reports(result.stderr)
    assert ("went on after AttributeError\n" if is_hidden else "") == result.stdout


def report(
    recording: Recorded, row: Row, model: str, count: str, differs: tuple[str, ...], program: str, colour: str
) -> str:
    """Return the report of a miss, without what is another in each run."""
    command = f"python -m tests.frameworks._talk {program} {colour} {WAYS[colour]} '{CHANGED}'"
    return "\n".join(
        [
            f"no recording for POST {recording.url.removesuffix('/v1')}{row.path} in talk.jsonl",
            f"  model        {model}",
            f"  fingerprint  KEY (key version 1, dialect {row.dialect})",
            f"  cassette     talk.jsonl: {row.recordings} recordings",
            f"  nearest      talk.jsonl:1, recorded THEN: {count}",
            *(f"    {line}" for line in differs),
            f"  to record it: HTTPX_CASSETTE_MODE=record {command}",
        ]
    )


def reports(stderr: str) -> list[str]:
    """Return the reports that were printed."""
    found = re.findall(r"^no recording for .*?^  to record it: [^\n]*", stderr, re.MULTILINE | re.DOTALL)
    for pattern, name in (
        (r"\b[0-9a-f]{64}\b", "KEY"),
        (r"recorded \S+Z", "recorded THEN"),
        (r" of \d+ ", " of N "),
    ):
        found = [re.sub(pattern, name, each) for each in found]
    return found
