"""How a service ends after a miss: by Ctrl-C or a supervisor's SIGTERM, in one process or with workers.

Each program misses once, plain, and is then sent a signal. ``docs/services.md`` has the table; what a row
says twice for one reason is asked once here.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ._service import Ended, Question, Said, ask, serve, uvicorn

pytestmark = pytest.mark.loopback

CTRL_C, TERM = signal.SIGINT, signal.SIGTERM

SERVED = Said(500, "Internal Server Error", 1)

#: A program of one's own that serves, as ``main.py`` and ``workers.py`` of the documentation do.
_RUN = """
import signal
import uvicorn
{before}
if __name__ == "__main__":
    {start}
"""


class Ending(NamedTuple):
    """A way to serve, and how it ends.

    Args:
        command: What starts it.
        program: The text of ``program.py``.
        interrupted: The status after Ctrl-C, ``None`` where that is not asked.
        terminated: The status after SIGTERM, ``None`` likewise.
        needs: Packages beside those that all of them need.
    """

    command: tuple[str, ...]
    program: str
    interrupted: int | None
    terminated: int | None
    needs: tuple[str, ...] = ()


def own(start: str, *before: str) -> tuple[tuple[str, ...], str]:
    """Return command and text of a program of one's own."""
    return (sys.executable, "program.py"), _RUN.format(before="\n".join(before), start=start)


IMPORT = "import httpx_cassette"
SERVER = 'uvicorn.Server(uvicorn.Config("app:app", port=0)).run()'
HANDLER = "signal.signal(signal.SIGTERM, signal.default_int_handler)"
RUN_BY = (sys.executable, "-m", "httpx_cassette", "run", "--")
GUNICORN = (
    *(sys.executable, "-m", "gunicorn", "app:app", "-k", "uvicorn_worker.UvicornWorker"),
    *("-w", "2", "-b", "127.0.0.1:0", "--no-control-socket"),
)

ENDINGS = {
    "uvicorn app:app": Ending(uvicorn("app"), "", 2, -TERM),
    "uvicorn.run": Ending(*own('uvicorn.run("app:app", port=0)'), 2, None),
    "uvicorn.run, SIGTERM handled": Ending(*own('uvicorn.run("app:app", port=0)', HANDLER), None, 2),
    "uvicorn.Server.run": Ending(*own(SERVER), -CTRL_C, None),
    "uvicorn.Server.run, Ctrl-C caught": Ending(
        *own(f"with contextlib.suppress(KeyboardInterrupt): {SERVER}", "import contextlib"), 2, None
    ),
    "uvicorn app:app --workers": Ending((*uvicorn("app"), "--workers", "2"), "", 0, 0),
    "httpx-cassette run": Ending((*RUN_BY, *uvicorn("app"), "--workers", "2"), "", 2, 2),
    "uvicorn.run, workers": Ending(*own('uvicorn.run("app:app", port=0, workers=2)', IMPORT), 2, 2),
    "uvicorn app:app --reload": Ending((*uvicorn("app"), "--reload"), "", 0, None),
    "uvicorn.run, reload": Ending(*own('uvicorn.run("app:app", port=0, reload=True)', IMPORT), 2, 2),
    # Of Ctrl-C nothing is said: gunicorn 27 with uvicorn-worker 0.4 does not end then, whatever it serves.
    "gunicorn": Ending(GUNICORN, "", None, 0, ("gunicorn", "uvicorn_worker")),
    "gunicorn, imported": Ending(
        (*GUNICORN, "-c", "program.py"), IMPORT, None, 2, ("gunicorn", "uvicorn_worker")
    ),
}

CASES = [
    pytest.param(
        name,
        signal_number,
        status,
        marks=pytest.mark.skipif(
            not all(map(importlib.util.find_spec, ending.needs)), reason=f"needs {' and '.join(ending.needs)}"
        ),
        id=f"{name}-{signal_number.name}",
    )
    for name, ending in ENDINGS.items()
    for signal_number, status in ((CTRL_C, ending.interrupted), (TERM, ending.terminated))
    if status is not None
]

Result = Callable[[str, signal.Signals], "tuple[Said, Ended]"]


@pytest.fixture(scope="module")
def ended(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Result]:
    """Give how a program ended; those that are asked for run a few at a time, as each mostly waits."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    asked: list[tuple[Any, Any]] = [
        (item.callspec.params["name"], item.callspec.params["signal_number"])
        for item in items
        if item.module is request.module and not any(mark.args[0] for mark in item.iter_markers("skipif"))
    ]
    pool = ThreadPoolExecutor(3)
    folder = tmp_path_factory.mktemp("endings")
    try:
        futures = {each: pool.submit(miss_and_end, folder, *each) for each in asked}
        yield lambda name, signal_number: futures[name, signal_number].result()
    finally:
        pool.shutdown(cancel_futures=True)


def miss_and_end(folder: Path, name: str, signal_number: signal.Signals) -> tuple[Said, Ended]:
    """Run a program, make it miss, and end it."""
    ending = ENDINGS[name]
    folder = folder / f"{[*ENDINGS].index(name)}-{signal_number.name}"
    folder.mkdir()
    (folder / "program.py").write_text(ending.program, encoding="utf-8")
    with serve(folder, ending.command, {"TRIAGE_CASSETTE": "missing.jsonl"}) as service:
        (said,) = ask(service.url, Question("Is there anybody?"))
        return said, service.end(signal_number)


@pytest.mark.parametrize(("name", "signal_number", "status"), CASES)
def test_a_service_that_missed_ends_as_the_table_says(
    ended: Result, name: str, signal_number: signal.Signals, status: int
) -> None:
    """The client gets a 500, the report is printed once, and the status is the one of the table."""
    said, end = ended(name, signal_number)

    assert SERVED == said
    assert (status, 1) == (end.status, end.reports), end.stderr
