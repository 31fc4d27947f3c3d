"""The page ``docs/pytest.md``: its blocks are executed in order, in one folder; see ``page_of_pytest``.

Those that turn over a suite are executed by ``test_legacy.py``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from httpx_cassette import CassetteTransport

from .blocks import Outcome, find_blocks, is_installed, shell
from .page_of_pytest import API, BLOCKS, PAGE, Api, Done, summary, write

COMMANDS = [block for block in BLOCKS if block.language == "sh"]
OUTPUTS = [block for block in BLOCKS if block.note.startswith("output: ")]
STATUSES = dict(zip([block.name for block in OUTPUTS], [2, 1, 0], strict=True))

_EDITED = re.compile(r'output: (?P<file>\S+) with "(?P<old>.*)" replaced by "(?P<new>.*)"')


class Run(NamedTuple):
    """The page, executed."""

    folder: Path
    url: str
    done: dict[str, Done]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Execute the blocks, and give what came of those that are commands, or show what one prints."""
    folder = tmp_path_factory.mktemp("page") / "project"
    folder.mkdir()
    api = Api()
    done = {}
    for block in BLOCKS:
        kind, _, rest = block.note.partition(": ")
        if kind == "file":
            write(block, folder, api.url)
        elif edited := _EDITED.fullmatch(block.note):
            file = folder / edited["file"]
            before = file.read_text(encoding="utf-8")
            file.write_text(before.replace(edited["old"], edited["new"]), encoding="utf-8")
            done[block.name] = api.run(block, folder, f"python -m pytest -q {file.name}")
            file.write_text(before, encoding="utf-8")
        elif kind == "output":
            command = rest if rest.startswith("python") else f"python -m pytest -q {rest}"
            done[block.name] = api.run(block, folder, command)
        elif kind != "needs" or is_installed(rest):
            done[block.name] = api.run(block, folder)
    return Run(folder, api.url, done)


@pytest.fixture
def page(loopback: None, request: pytest.FixtureRequest) -> Run:
    """Give the executed page; its server is started while the first test asks."""
    if not is_installed("pytest-xdist>=3"):  # Some twenty runs of pytest, which the unit tests need not take.
        pytest.skip("pytest-xdist is not installed; nox -s docs has it, and runs the page")
    found: Run = request.getfixturevalue("run")
    return found


@pytest.mark.parametrize("block", COMMANDS, ids=[block.name for block in COMMANDS])
def test_a_command_does_what_the_page_says(block: object, page: Run) -> None:
    """It succeeds, and whatever does not record does so without a server."""
    done = page.done[block.name]  # type: ignore[attr-defined]  # a parameter

    assert 0 == done.outcome.status, done.outcome.output


def test_two_blocks_lead_from_nothing_to_green(page: Run) -> None:
    """The summaries that the page quotes are those that are printed, and one call was made."""
    done = page.done[COMMANDS[0].name]
    quoted = re.findall(r"`(\d+ replayed[^`]*)`", PAGE)

    assert ["file: test_triage.py", ""] == [block.note for block in BLOCKS[:2]]
    assert quoted == summary(done.outcome.output)
    assert 1 == done.calls


@pytest.mark.parametrize("block", OUTPUTS, ids=[block.name for block in OUTPUTS])
def test_what_is_shown_is_what_is_printed(block: object, page: Run) -> None:
    """Word for word, but for the key, the time and the width of the terminal."""
    done = page.done[block.name]  # type: ignore[attr-defined]  # a parameter
    shown = settled(done.block.text, page.url)

    assert STATUSES[done.block.name] == done.outcome.status
    assert shown in settled(done.outcome.output, page.url)


def settled(text: str, url: str) -> str:
    """Return a text without what differs from run to run: the port is in the key."""
    text = re.sub(r"([=-])\1{2,}", r"\1", text.replace(url, API))
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", re.sub(r"\b[0-9a-f]{64}\b", "<key>", text))
    return re.sub(r"\b[0-9a-f]{12}\b", "<short key>", text)


def test_the_fingerprints_shown_are_real(tmp_path: Path) -> None:
    """One is the key of the edited call, and the other begins that of the call before it was edited."""
    transport = CassetteTransport(tmp_path / "chat.jsonl")
    keys = []
    for last in ("spam", "other"):
        system = f"You sort support tickets into: billing, bug, {last}."
        messages = [
            {"role": "system", "content": system},
            {"role": "user", "content": "I was charged twice."},
        ]
        body = {"model": "gpt-4o-mini", "messages": messages}
        keys.append(transport.fingerprint(httpx.Request("POST", f"{API}/chat/completions", json=body)))

    assert keys[:1] == re.findall(r"\b[0-9a-f]{64}\b", PAGE)
    assert [keys[1][:12]] == re.findall(r"\b[0-9a-f]{12}\b", PAGE)


def test_the_cassettes_lie_where_the_page_says(page: Run) -> None:
    """A file for each module, and those that marks name; nothing below the folder outside of the project."""
    found = {str(file.relative_to(page.folder)) for file in page.folder.rglob("cassettes/**/*.jsonl")}

    assert {
        "cassettes/TestBilling-test_a_refund.jsonl",
        "cassettes/billing/invoices.jsonl",
        "cassettes/test_fixtures.jsonl",
        "cassettes/test_marks.jsonl",
        "cassettes/test_stream.jsonl",
        "cassettes/test_triage.jsonl",
    } == found


def test_a_folder_outside_repeats_those_of_the_tests(loopback: None, tmp_path: Path) -> None:
    """What is not in the seed is written there, and the seed stays as it was."""
    (folder := tmp_path / "project").mkdir()
    api = Api()
    (block,) = (block for block in BLOCKS if block.note == "file: test_triage.py")
    write(block._replace(note="file: tests/test_triage.py"), folder, api.url)
    for command in [block for block in BLOCKS if "--cassette-dir" in block.text and block.language == "sh"]:
        outcome = api.run(command, folder).outcome

        assert 0 == outcome.status, outcome.output
    assert (tmp_path / "full" / "tests" / "test_triage.jsonl").exists()
    assert not (folder / "tests" / "cassettes").exists()


def test_the_jobs_run_command_lines_that_the_plugin_takes(page: Run) -> None:
    """What GitHub runs is tried here, under the variables of its job, as far as collecting the tests."""
    tried = []
    for block in BLOCKS:
        variables = dict(re.findall(r"^      (HTTPX_CASSETTE_\w+): \"?(\w+)", block.text, re.M))
        for command in re.findall(r"- run: (python -m pytest.*)", block.text):
            here = command if is_installed("pytest-xdist>=3") else command.replace(" -n auto", "")
            setting = " ".join(f"{name}={value}" for name, value in variables.items())
            outcome = shell(f"{setting} {here} --collect-only -q", page.folder, page.url)
            tried.append((setting, command, outcome.status))

    assert [
        ("HTTPX_CASSETTE_MODE=replay", "python -m pytest -n auto", 0),
        ("HTTPX_CASSETTE_MAX_CALLS=100", "python -m pytest --cassette-mode=rerecord", 0),
    ] == tried


def test_every_option_is_in_the_table(page: Run) -> None:
    """The page lists the options that pytest lists."""
    listed: Outcome = shell("python -m pytest --help", page.folder, page.url)
    rows = re.findall(r"^\| `(--cassette-\w+)", PAGE, re.M)

    assert sorted(rows) == sorted(re.findall(r"^  (--cassette-\w+)", listed.output, re.M))


def test_the_line_for_git_is_that_of_the_readme() -> None:
    """It is tried out there."""
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (line,) = (block.text for block in BLOCKS if block.note == "file: .gitattributes")

    assert line in [block.text for block in find_blocks(readme)]
