"""Every block of the README is executed, in order, in one folder, against the stand-in server.

The one thing that is changed before a block runs is the address of the API.
A block that is done instead of another (``<!-- instead: ... -->``) runs in a copy of the folder.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from httpx_cassette import CassetteTransport
from httpx_cassette.stand_in import StandInServer

from .blocks import Block, Outcome, find_blocks, shell

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
API = "https://api.openai.com/v1"

#: Commands that another check runs: .ci/run (held word for word by test_project.py), and the build session.
RUN_ELSEWHERE = (
    "pip install nox && nox -s demo",
    "pip install nox && nox -s tests",
    "pip install '.[cli,httpx2]'",
)


BLOCKS = find_blocks(README)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome | None]:
    """Run every block in order and give what came of each; ``None`` where its SDK is not installed."""
    folder = tmp_path_factory.mktemp("readme")
    with StandInServer() as server:
        return {block.name: run(block, folder, server.url) for block in BLOCKS}


def run(block: Block, folder: Path, url: str) -> Outcome | None:
    """Run one block in a folder."""
    text = block.text.replace(API, url)
    if block.text.strip() in RUN_ELSEWHERE:
        return Outcome(0, "")
    if block.note.startswith("needs: openai") and importlib.util.find_spec("openai") is None:
        return None
    if block.note.startswith("file: "):
        (folder / block.note.removeprefix("file: ")).write_text(text, encoding="utf-8")
        if block.language == "toml":
            return shell(
                "python -c 'import httpx_cassette; httpx_cassette.CassetteTransport([\"a.jsonl\"])'",
                folder,
                url,
            )
        return Outcome(0, "")
    if block.language == "python":
        (folder / "block.py").write_text(text, encoding="utf-8")
        return shell("python block.py", folder, url)
    if block.note.startswith("instead: "):
        copy = folder.parent / f"{folder.name}-{block.name}"
        copy.mkdir()
        shutil.copy(folder / "app.py", copy)
        return shell(text, copy, url)
    if block.language == "sh":
        return shell(text, folder, url)
    if block.note.startswith("output: app.py"):
        app = (folder / "app.py").read_text(encoding="utf-8")
        (folder / "app.py").write_text(app.replace("helpful", "terse"), encoding="utf-8")
        outcome = shell("python app.py", folder, url)
        return outcome._replace(output=outcome.output.replace(url, API))
    return gitattributes(text, folder)


def gitattributes(text: str, folder: Path) -> Outcome:
    """Ask git what the line does to a cassette."""
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    (folder / ".gitattributes").write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["git", "check-attr", "merge", "eol", "--", "tests/cassettes/chat.jsonl"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Outcome(0 if ": merge: union" in done.stdout and ": eol: lf" in done.stdout else 1, done.stdout)


@pytest.fixture
def loopback_server(loopback: None) -> None:
    """Let the stand-in be started in a fixture of the module."""


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.name)
def test_block_runs(block: Block, loopback_server: None, outcomes: dict[str, Outcome | None]) -> None:
    """Each block does what the text around it says, and the one that misses exits with status 2."""
    outcome = outcomes[block.name]
    if outcome is None:
        pytest.skip("openai is not installed here; nox -s docs runs this block")

    assert (2 if block.note.startswith("output: app.py") else 0) == outcome.status, outcome.output


def test_the_first_recording_is_replayed(loopback_server: None, outcomes: dict[str, Outcome | None]) -> None:
    """The first run of app.py records, the second prints the same answer and replays."""
    first, second, *_ = (
        outcomes[block.name]
        for block in BLOCKS
        if block.text.endswith("python app.py\n") and block.language == "sh"
    )

    assert first is not None
    assert second is not None
    assert ["recorded", "replayed"] == [outcome.output.split()[-1] for outcome in (first, second)]
    assert first.output.splitlines()[:-1] == second.output.splitlines()[:-1]


def test_without_a_key_the_stand_in_is_recorded(
    loopback_server: None, outcomes: dict[str, Outcome | None]
) -> None:
    """Both runs say the same; the second one has no server."""
    (block,) = (block for block in BLOCKS if block.note == "instead: no key")
    outcome = outcomes[block.name]

    assert outcome is not None
    first, recorded, second, replayed = outcome.output.splitlines()
    assert (first, "recorded", "replayed") == (second, recorded, replayed)


def test_the_miss_reads_as_shown(loopback_server: None, outcomes: dict[str, Outcome | None]) -> None:
    """The report in the README is the one that the edited program prints, but for key and time."""
    (shown,) = (block for block in BLOCKS if block.note.startswith("output: app.py"))
    printed = outcomes[shown.name]

    assert printed is not None
    assert settled(shown.text) == settled(printed.output.partition("Traceback")[0])


def settled(report: str) -> str:
    """Return a report without what differs from run to run: the port is in the key."""
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", re.sub(r"[0-9a-f]{64}", "<key>", report)).strip()


def test_the_fingerprint_shown_is_the_real_one(tmp_path: Path) -> None:
    """The fingerprint in the README's report is the key of the call that the edited app.py makes."""
    transport = CassetteTransport(tmp_path / "chat.jsonl")
    body = {
        "model": "gpt-4o-mini",
        "messages": [
            {"role": "system", "content": "You are a terse assistant."},
            {"role": "user", "content": "Which book should I read first?"},
        ],
    }
    request = httpx.Request("POST", f"{API}/chat/completions", json=body)

    assert re.findall(r"[0-9a-f]{64}", README) == [transport.fingerprint(request)]
