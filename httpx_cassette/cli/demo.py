"""``httpx-cassette demo``: the main job on this machine, against a stand-in model server on loopback."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx

from .. import CassetteTransport
from .._allowed import ONLY_VARIABLE
from .._budget import BUDGET_VARIABLE
from .._errors import OptionError
from .._ledger import LEDGER_VARIABLE
from .._mode import MODE_VARIABLE
from .._settings import MAX_CALLS_VARIABLE
from ..stand_in import StandInServer

__all__ = ["command", "run_demo"]

RUNS = 40
SYSTEM = "You are a patient librarian."
QUESTIONS = ("Which book should I read first?", "What is a cassette?", "Is this answer free?")

#: The program whose prompt is edited at the end; small enough to be read in full.
PROGRAM = """\
import httpx
from httpx_cassette import CassetteTransport

client = httpx.Client(transport=CassetteTransport("chat.jsonl"))
answer = client.post(
    "{url}/chat/completions",
    json={{
        "model": "stand-in-1",
        "messages": [
            {{"role": "system", "content": "{system}"}},
            {{"role": "user", "content": "{question}"}},
        ],
    }},
).json()
print(answer["choices"][0]["message"]["content"])
"""


@click.command(epilog="Example: httpx-cassette demo")
@click.option("--keep", metavar="FOLDER", help="leave the program and its cassette in this folder")
def command(keep: str | None) -> int:
    """Ask a stand-in model twice, record, stop it, replay 40 runs, edit the prompt and miss."""
    return run_demo(keep)


def run_demo(keep: str | None = None) -> int:
    """Show the main job and return the exit status.

    Args:
        keep: A folder to leave the program and its cassette in; a temporary one by default.
    """
    for variable in (MODE_VARIABLE, MAX_CALLS_VARIABLE, ONLY_VARIABLE, BUDGET_VARIABLE):
        os.environ.pop(variable, None)  # What is set for the user's own runs must not stop the demo.
    with _folder(keep) as folder:
        cassette = folder / "chat.jsonl"
        if cassette.exists():
            print(f"Error: {cassette} exists already; name an empty folder.", file=sys.stderr)
            return 1
        with StandInServer() as server:
            url = server.url
            _ask_twice(url)
            _record(url, cassette, server)
        print("   The server is stopped now.\n")
        calls = _replay(url, cassette)
        status = _edit_the_prompt(url, folder)
        _say_what_next(keep)
        return 0 if calls == 0 and status == 2 else 1


@contextlib.contextmanager
def _folder(keep: str | None) -> Iterator[Path]:
    if keep is not None:
        try:
            Path(keep).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OptionError(
                f"--keep {keep} cannot be made a folder: {error.strerror}; name an empty one"
            ) from error
        yield Path(keep)
        return
    with tempfile.TemporaryDirectory(prefix="httpx-cassette-demo-") as folder:
        yield Path(folder)


def _ask(client: httpx.Client, url: str, question: str) -> str:
    answer = client.post(f"{url}/chat/completions", json=_body(question))
    return str(answer.raise_for_status().json()["choices"][0]["message"]["content"])


def _ask_streaming(client: httpx.Client, url: str, question: str) -> str:
    body = {**_body(question), "stream": True}
    with client.stream("POST", f"{url}/chat/completions", json=body) as answer:
        return "\n".join(answer.iter_lines())


def _body(question: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    return {"model": "stand-in-1", "messages": messages}


def _suite(client: httpx.Client, url: str) -> int:
    """Make every call of the suite, plain and streamed; return how many there are."""
    for question in QUESTIONS:
        _ask(client, url, question)
        _ask_streaming(client, url, question)
    return 2 * len(QUESTIONS)


def _title(number: int, text: str) -> None:
    print(f"{number}. {text}")


def _show(text: str) -> None:
    print(textwrap.indent(textwrap.fill(text, 96), "   | "))


def _show_line(line: str, rows: int) -> None:
    """Print the beginning of a line as it stands, in rows of a terminal's width."""
    for start in range(0, min(len(line), rows * 96), 96):
        print(f"   | {line[start : start + 96]}")
    print("   | ...")


def _ask_twice(url: str) -> None:
    _title(1, "The problem: a stand-in model server on this machine, asked the same question twice.")
    with httpx.Client(headers={"authorization": "Bearer demo"}) as client:
        for _ in range(2):
            _show(_ask(client, url, QUESTIONS[0]))
    print("   Was it the prompt, the code, or chance? Nobody can tell, and both answers were paid for.\n")


def _record(url: str, cassette: Path, server: StandInServer) -> None:
    _title(2, "Record: the same client, with CassetteTransport('chat.jsonl', mode='record').")
    before = server.calls
    transport = CassetteTransport(cassette, mode="record")
    with httpx.Client(transport=transport, headers={"authorization": "Bearer demo"}) as client:
        calls = _suite(client, url)
        _suite(client, url)
    real, replayed = server.calls - before, transport.stats.replayed
    print(f"   A suite of {calls} calls, run twice: {real} real calls, {replayed} replayed.")
    lines = cassette.read_text("utf-8").splitlines()
    print(f"   The cassette has {len(lines)} lines, {cassette.stat().st_size:,} bytes. One of them:")
    _show_line(lines[0], 4)


def _replay(url: str, cassette: Path) -> int:
    _title(3, f"Replay: the suite {RUNS} times, offline.")
    transport = CassetteTransport(cassette)
    calls = 0
    started = time.perf_counter()
    with httpx.Client(transport=transport) as client:
        for _ in range(RUNS):
            calls += _suite(client, url)
    each = (time.perf_counter() - started) / calls * 1e6
    print(f"   {calls} answers, real calls made: {transport.stats.live}, {each:.0f} microseconds each.\n")
    return transport.stats.live


def _edit_the_prompt(url: str, folder: Path) -> int:
    _title(4, "Change something that the model would see: 'patient' becomes 'terse' in the system prompt.")
    program = folder / "app.py"
    as_recorded = PROGRAM.format(url=url, system=SYSTEM, question=QUESTIONS[0])
    program.write_text(as_recorded.replace("patient", "terse"), "utf-8")
    # Without this demo's ledger: the status to be seen is the program's own, not ours.
    environment = {name: value for name, value in os.environ.items() if name != LEDGER_VARIABLE}
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    print(f"   $ {Path(sys.executable).name} app.py")
    program.write_text(as_recorded, "utf-8")
    for line in done.stderr.partition("\nTraceback")[0].splitlines():
        print(f"   | {line}")
    print(f"   exit status {done.returncode}: no retry, no except Exception, no fallback hides it.\n")
    return done.returncode


def _say_what_next(keep: str | None) -> None:
    print("Next, in your own code:")
    print('   client = httpx.Client(transport=CassetteTransport("tests/cassettes/chat.jsonl"))')
    print("   HTTPX_CASSETTE_MODE=record python your_app.py     pay once")
    print("   python your_app.py                                replay for ever")
    if keep is not None:
        print(f"In {keep}: app.py as it was recorded (python app.py replays, offline) and its cassette.")
