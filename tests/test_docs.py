"""The pages in ``docs``: every program is run twice; it records, the server goes, and it says the same again.

The blocks of ``services.md`` belong together: files and commands, which are run in order in one folder.
Programs whose SDK is not installed, or too old, are skipped; ``nox -s docs`` has them all.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
from pathlib import Path

import pytest

from httpx_cassette.stand_in import StandInServer

from .blocks import Block, Outcome, Program, find_blocks, find_programs, is_installed, run_program, shell
from .key_tables import FILE, render
from .other_formats import answer

DOCS = Path(__file__).parent.parent / "docs"

#: Those whose blocks belong together are executed by a test of their own, ``test_docs_pytest.py`` for
#: example; those of ``frameworks.md`` are in ``tests/frameworks``, and ``cli.md`` is made.
ELSEWHERE = ("cli.md", "dialects.md", "frameworks.md", "modes.md", "pytest.md", "workflows.md")

PAGES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in ELSEWHERE]

SERVICES = find_blocks((DOCS / "services.md").read_text(encoding="utf-8"))

COMMANDS = [block for block in SERVICES if block.language == "sh"]


PROGRAMS = find_programs(PAGES)


SDKS = (
    *("openai", "anthropic", "google-genai", "mistralai", "cohere", "ollama"),
    *("groq", "together", "fireworks-ai", "cerebras_cloud_sdk", "huggingface_hub", "boto3"),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_program_says_the_same_without_server_and_key(
    program: Program, loopback: None, tmp_path: Path
) -> None:
    """What was recorded is replayed: another answer would be worded differently."""
    if not is_installed(program.needs):
        pytest.skip(f"{program.needs} is not installed here; nox -s docs runs this")
    (tmp_path / "program.py").write_text(program.text, encoding="utf-8")
    with StandInServer(answer=answer) as server:
        recorded = run_program(tmp_path, server.url, HTTPX_CASSETTE_MODE="record", API_KEY="stand-in")
        calls = server.calls
    replayed = run_program(tmp_path, server.url)

    assert calls > 0
    assert "Venus" in recorded
    assert recorded == replayed


def test_every_block_of_python_is_a_program() -> None:
    """One without the comment that says what it needs, or what file it is, would never be run."""
    blocks = sum(page.read_text(encoding="utf-8").count("```python\n") for page in PAGES)

    assert blocks == len(PROGRAMS) + sum(block.language == "python" for block in SERVICES)
    assert {"python", "sh"} == {block.language for block in SERVICES}
    assert all(block.note.startswith("file: ") for block in SERVICES if block.language == "python")


def test_every_sdk_has_a_program_in_an_event_loop() -> None:
    """Sync and async, for each SDK of the page."""
    for name in SDKS:
        texts = [program.text for program in PROGRAMS if program.needs.startswith(name)]

        assert {True, False} == {"asyncio.run" in text for text in texts}, name


def test_the_tables_of_the_key_are_those_of_the_code() -> None:
    """``python -m tests.key_tables`` writes them; a change of one may be a new version of the key."""
    assert render() == FILE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Run the blocks of ``services.md``, and give what came of the commands; the first records."""
    if not all(map(importlib.util.find_spec, ("fastapi", "uvicorn"))) or not shutil.which("curl"):
        pytest.skip("the services need fastapi, uvicorn and curl, which are not all installed here")
    folder = tmp_path_factory.mktemp("services")
    port = free_port()
    outcomes = {}
    with StandInServer() as server:
        for block in SERVICES:
            text = block.text.replace("8000", port)
            if block.language == "python":
                (folder / block.note.removeprefix("file: ")).write_text(text, encoding="utf-8")
            else:
                outcomes[block.name] = shell(text, folder, server.url)
                server.close()
    return outcomes


def free_port() -> str:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@pytest.mark.parametrize("block", COMMANDS, ids=[block.name for block in COMMANDS])
def test_the_commands_of_the_services_end_as_the_page_says(
    block: Block, loopback: None, services: dict[str, Outcome]
) -> None:
    """Recorded once, the service is replayed without the model; where something missed, the status is 2."""
    outcome = services[block.name]

    assert int(block.note.removeprefix("status: ") or 0) == outcome.status, outcome.output
    assert block.text.count("asked this before") == outcome.output.count('HTTP/1.1" 500')
    assert block.text.count("charged twice") == outcome.output.count("“I was charged twice.”")


def test_the_service_of_the_page_is_the_one_under_load() -> None:
    """What is shown is, word for word, what 200 requests at once are made to."""
    (shown,) = (block.text for block in SERVICES if block.note == "file: app.py")

    assert (DOCS.parent / "tests" / "services" / "apps" / "app.py").read_text(encoding="utf-8") == shown
