"""An application in a process of its own, served by uvicorn on loopback, and clients that ask it all at once.

Nothing here knows what is recorded, or how a process should end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import httpx

__all__ = ["APPS", "Ended", "Question", "Said", "Service", "ask", "ask_at_once", "serve", "uvicorn"]

#: Where the applications are: on the module path of every service.
APPS = Path(__file__).parent / "apps"

#: Seconds after which something hangs.
PATIENCE = 60.0

#: What uvicorn and gunicorn say when they listen.
_LISTENING = re.compile(r"(?:running on|Listening at:) (http://127\.0\.0\.1:\d+)")


class Question(NamedTuple):
    """What a client asks the service.

    Args:
        text: The ticket.
        is_stream: Whether the answer is to come token by token.
    """

    text: str
    is_stream: bool = False


class Said(NamedTuple):
    """What came back.

    Args:
        status: The status code.
        text: The body.
        chunks: In how many pieces it came.
    """

    status: int
    text: str
    chunks: int


class Ended(NamedTuple):
    """How a service ended.

    Args:
        status: The exit status; a signal is a negative one.
        stderr: All of it.
    """

    status: int
    stderr: str

    @property
    def reports(self) -> int:
        """How many reports the package printed; those in tracebacks stand after the name of the error."""
        return len(re.findall(r"^no recording for POST ", self.stderr, re.MULTILINE))


@dataclass(frozen=True)
class Service:
    """A service that answers.

    Args:
        url: Its base URL.
        process: The process that was started.
        log: The file that its stderr goes to.
    """

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def end(self, signal_number: int = signal.SIGINT) -> Ended:
        """Send a signal, as Ctrl-C or a supervisor does, and tell how the process ended."""
        self.process.send_signal(signal_number)
        status = self.process.wait(PATIENCE)
        return Ended(status, self.log.read_text(encoding="utf-8"))


def uvicorn(app: str) -> tuple[str, ...]:
    """Return the command line that serves an application; whatever it leaves open, it says."""
    return (sys.executable, "-W", "always::ResourceWarning", "-m", "uvicorn", f"{app}:app", "--port", "0")


@contextlib.contextmanager
def serve(folder: Path, command: Iterable[str], variables: Mapping[str, str]) -> Iterator[Service]:
    """Give a service once it answers; it is killed at the end, if it was not ended before.

    Args:
        folder: The working folder; its modules go before those of ``APPS``.
        command: What starts it.
        variables: The environment, beside what is inherited.
    """
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HTTPX_CASSETTE", "OPENAI", "PYTEST", "PYTHON"))
    }
    path = os.pathsep.join(map(str, (folder, APPS)))
    log = folder / f"stderr-{time.monotonic_ns()}.txt"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env={**inherited, "PYTHONPATH": path, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            # Ctrl-C in the shell of a developer is for pytest.
            start_new_session=True,
        )
    try:
        yield Service(_address(process, log), process, log)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(PATIENCE)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until the service answers: a parent process names its address before its workers listen."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        found = _LISTENING.search(log.read_text(encoding="utf-8"))
        with contextlib.suppress(httpx.ConnectError):
            if found and httpx.get(f"{found[1]}/health", timeout=PATIENCE).is_success:
                return found[1]
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))


def ask_at_once(url: str, questions: Iterable[Question]) -> list[Said]:
    """Ask all questions at the same time, each on a connection of its own."""

    async def main() -> list[Said]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=PATIENCE) as client:
            return await asyncio.gather(*(_ask(client, question) for question in questions))

    return asyncio.run(main())


def ask(url: str, *questions: Question) -> list[Said]:
    """Ask one question after the other."""
    return [said for question in questions for said in ask_at_once(url, [question])]


async def _ask(client: httpx.AsyncClient, question: Question) -> Said:
    path = "/triage/stream" if question.is_stream else "/triage"
    async with client.stream("POST", path, json={"text": question.text}) as response:
        pieces = [piece async for piece in response.aiter_raw()]
        return Said(response.status_code, b"".join(pieces).decode(), len(pieces))
