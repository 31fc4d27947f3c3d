"""The project's own files keep their promises to whoever clones it."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import httpx_cassette

ROOT = Path(__file__).parent.parent

#: Issue and README promise these; each is a function in noxfile.py.
SESSIONS = {
    "bench", "build", "conformance", "demo", "docs", "lint", "plugin", "sdk", "sdk_old", "tests", "typing",
}  # fmt: skip


def read(name: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture
def about() -> importlib.metadata.PackageMetadata:
    """Give the metadata of the package as installed."""
    try:
        return importlib.metadata.metadata("httpx_cassette")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is imported from its folder, not installed")


def sessions() -> set[str]:
    """Return the names of nox's sessions."""
    return {
        node.name
        for node in ast.parse(read("noxfile.py")).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator).startswith("nox.session") for decorator in node.decorator_list)
    }


def test_the_readmes_commands_are_what_ci_runs() -> None:
    """Both set-up commands stand in the README, and .ci/run runs them word for word."""
    commands = re.findall(r"pip install nox && nox -s [a-z_]+", read("README.md"))

    assert {"pip install nox && nox -s demo", "pip install nox && nox -s tests"} == set(commands)
    for command in set(commands):
        assert f"run '{command}'\n" in read(".ci/run")


def test_every_session_is_there_and_documented() -> None:
    """The sessions promised exist, and CONTRIBUTING.md lists each session."""
    documented = set(re.findall(r"^\| `nox -s (\w+)", read("CONTRIBUTING.md"), re.MULTILINE))

    assert sessions() >= SESSIONS
    assert documented == sessions()


def test_ci_runs_sessions_that_exist() -> None:
    """What .ci/run names is a session."""
    named = [name for line in re.findall(r"nox -s ([a-z_ ]+)'", read(".ci/run")) for name in line.split()]

    assert {"demo", "tests", "sdk", "sdk_old", "lint", "typing"} <= set(named) <= sessions()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_ci_is_a_valid_script() -> None:
    """Bash can read .ci/run."""
    subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT, check=True)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no bash")
@pytest.mark.parametrize(
    ("log", "status", "last"),
    [
        ("1 passed in 1s\n= 2 passed, 1 skipped in 61.0s (0:01) =\n", 0, "3 passed, 0 failed, 1 skipped"),
        ("= 1 failed, 2 passed in 0.10s =\n", 1, "2 passed, 1 failed, 0 skipped"),
        ("nothing ran\n", 1, "0 passed, 0 failed, 0 skipped"),
    ],
    ids=["passed", "failed", "none"],
)  # fmt: skip
def test_ci_counts_the_tests(tmp_path: Path, log: str, status: int, last: str) -> None:
    """The last line of .ci/run adds up the summaries, and a run without tests is no success."""
    program = re.search(r"<<'COUNT'\n(.*)^COUNT$", read(".ci/run"), re.DOTALL | re.MULTILINE)
    assert program is not None
    for number, line in enumerate(log.splitlines()):
        (tmp_path / f"log.{number}").write_text(f"{line}\n")
    done = subprocess.run(
        [sys.executable, "-", str(tmp_path)], input=program[1], capture_output=True, text=True
    )

    assert (status, last + "\n") == (done.returncode, done.stdout)


def test_the_version_is_one(about: importlib.metadata.PackageMetadata) -> None:
    """The installed metadata and the package name the same version."""
    assert httpx_cassette.__version__ == about["Version"]


def test_the_classifiers_start_at_the_oldest_python(about: importlib.metadata.PackageMetadata) -> None:
    """``requires-python`` and the classifiers agree."""
    minors = [
        int(found[1])
        for classifier in about.get_all("Classifier") or ()
        if (found := re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", classifier))
    ]

    assert f">=3.{min(minors)}" == about["Requires-Python"]
    assert list(range(min(minors), max(minors) + 1)) == sorted(minors)


def test_the_core_needs_few_packages(about: importlib.metadata.PackageMetadata) -> None:
    """What is neither httpx, nor comes with it, nor is the hot path, is an extra or for an old Python."""
    needed = [
        re.split(r"[^\w-]", requirement)[0].replace("-", "_")
        for requirement in about.get_all("Requires-Dist") or ()
        if ";" not in requirement
    ]

    assert ["ahocorasick_rs", "anyio", "httpx", "orjson"] == sorted(needed)


def test_the_package_is_typed_and_licensed() -> None:
    """Type checkers find the types; the licence is the one that the metadata name."""
    assert (ROOT / "httpx_cassette" / "py.typed").exists()
    assert read("LICENSE").startswith(
        "BSD 3-Clause License\n\nCopyright (c) 2026, the httpx_cassette authors\n"
    )
    assert 'license = "BSD-3-Clause"\n' in read("pyproject.toml")


def test_the_changelog_has_a_place_for_what_comes() -> None:
    """The first section is the one for the next release."""
    assert "[Unreleased]" == re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0]


@pytest.mark.parametrize("file", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda path: path.stem)
def test_every_test_states_its_promise(file: Path) -> None:
    """Each test has a docstring that begins with one line, the promise."""
    tests = [
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test_")
    ]

    assert [] == [f"{test.name}, line {test.lineno}" for test in tests if not ast.get_docstring(test)]


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("socket.connect", ("socket", ("192.0.2.1", 443))),
        ("socket.connect", ("socket", ("2001:db8::1", 443, 0, 0))),
        ("socket.connect", ("socket", ("127.0.0.1", 443))),
        ("socket.sendto", ("socket", ("192.0.2.1", 53))),
        ("socket.getaddrinfo", ("api.example.com", 443, 0, 0, 0)),
        ("socket.getaddrinfo", (b"api.example.com", 443, 0, 0, 0)),
        ("socket.gethostbyname", ("api.example.com",)),
    ],
)
def test_the_network_is_closed(event: str, arguments: tuple[object, ...]) -> None:
    """A test that goes for the network fails, and nothing that catches ``Exception`` can hide it."""
    # The event alone: were the guard broken, a real connect would go out.
    with pytest.raises(pytest.fail.Exception, match=rf"^.*{re.escape(event)}"):
        sys.audit(event, *arguments)


@pytest.mark.parametrize("host", ["192.0.2.1", "api.example.com"])
def test_loopback_opens_loopback_alone(loopback: None, host: str) -> None:
    """With the fixture a server on this machine can be reached, and still no other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()

    with pytest.raises(pytest.fail.Exception, match=r"^a test went for the network"):
        sys.audit("socket.connect", "socket", (host, 443))
