"""Run ``httpx-cassette`` in a folder, as a person does, on programs that ask a model.

Each program may import ``asking``, which swallows whatever becomes of a call: the status must hold all the
same. What a program prints is compared in full, so what differs from run to run is replaced by a name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

__all__ = ["Ended", "Folder", "report"]

_ASKING = """\
import os
import httpx
from httpx_cassette import CassetteTransport, expected_miss

def ask(*prompts, cassette="chat.jsonl", system="Be brief.", **options):
    with httpx.Client(transport=CassetteTransport(cassette, **options)) as client:
        for prompt in prompts:
            messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
            try:
                answer = client.post(
                    os.environ["ASKED_URL"] + "/chat/completions",
                    json={"model": "gpt-5", "messages": messages},
                    headers={"authorization": "Bearer any"},
                )
                print(prompt, answer.extensions["httpx_cassette"].outcome, flush=True)
            except:
                print(prompt, "lost", flush=True)
"""


class Ended(NamedTuple):
    """How a command ended, with names for what differs from run to run."""

    status: int
    stdout: str
    stderr: str


class Folder:
    """A folder with programs, in which commands are run.

    Args:
        path: Where it is.
        url: What the programs ask; nobody listens there by default.
    """

    def __init__(self, path: Path, url: str = "http://127.0.0.1:9/v1") -> None:
        self.path = path
        self.url = url
        self.temporary = path / "temporary"
        self.temporary.mkdir()
        self.write("asking.py", _ASKING)

    def write(self, name: str, program: str) -> None:
        """Write a program."""
        (self.path / name).write_text(dedent(program), encoding="utf-8")

    def environment(self, **variables: str) -> dict[str, str]:
        """Return what a command is started with."""
        # The second one is that of the test that is running here, in which nothing is missed.
        ours = ("HTTPX_CASSETTE", "PYTEST_CURRENT_TEST")
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
        set_here = {"ASKED_URL": self.url, "TMPDIR": str(self.temporary), "COLUMNS": "100", "NO_COLOR": "1"}
        return {**inherited, **set_here, **variables}

    def start(self, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start ``httpx-cassette`` with words, as the leader of a group of its own, as a shell does.

        Args:
            words: What follows its name; ``python`` is the interpreter of the tests.
            variables: Variables to set.
        """
        python = [sys.executable if word == "python" else word for word in words]
        return subprocess.Popen(
            [sys.executable, "-m", "httpx_cassette", *python],
            cwd=self.path,
            env=self.environment(**variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, **variables: str) -> Ended:
        """Run ``httpx-cassette`` to its end."""
        return self.end(self.start(*words, **variables))

    def end(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for a command."""
        with process:
            stdout, stderr = process.communicate(timeout=60)
        return Ended(process.returncode, stdout, self.plain(stderr))

    def plain(self, text: str) -> str:
        """Return a text with names for what differs from run to run."""
        text = re.sub(r"\b[0-9a-f]{64}\b", "<key>", text.replace(self.url, "<url>"))
        text = re.sub(r" [0-9a-f]{12}$", " <short key>", text, flags=re.MULTILINE)
        for path in (os.path.realpath(self.path), str(self.path)):
            text = text.replace(path, "<folder>")
        text = text.replace(sys.executable, "<python>")
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", text)
        return text.replace(f" {Path(sys.executable).name} ", " python ")

    @property
    def leftovers(self) -> list[str]:
        """What lies where temporary files are."""
        return sorted(os.listdir(self.temporary))


def report(
    advice: str = "HTTPX_CASSETTE_MODE=record python app.py",
    *,
    cassette: str = "does not exist (looked in <folder>)",
    refused: str = "",
    nearest: str = "none: there is no recording to compare with",
) -> str:
    """Return the report of a miss."""
    return (
        "no recording for POST <url>/chat/completions in chat.jsonl\n"
        "  model        gpt-5\n"
        "  fingerprint  <key> (key version 1, dialect openai-chat)\n"
        f"{f'  refused      {refused}' + chr(10) if refused else ''}"
        f"  cassette     chat.jsonl: {cassette}\n"
        f"  nearest      {nearest}\n"
        f"  to record it: {advice}\n"
    )
