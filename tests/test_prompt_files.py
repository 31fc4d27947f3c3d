"""Prompt files: their bytes are part of the key, under names that hold on any machine."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from httpx_cassette import CassetteTransport, CassetteUnusable, OptionError, expected_miss
from httpx_cassette._prompt_files import PromptFiles

from .keying import CHAT


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project with prompts, and work in it."""
    (tmp_path / "prompts" / "deep").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("")
    for name in ("prompts/a.md", "prompts/deep/b.md", "prompts/deep/a.md"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(files: Any) -> list[str]:
    return [*PromptFiles(files).named]


def test_names_are_relative_to_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the program runs and however a path is spelt, one file has one name, with ``/``."""
    for path in ("prompts/a.md", project / "prompts" / "a.md", "prompts/deep/../a.md", "./prompts//a.md"):
        assert ["prompts/a.md"] == names(path) == names([path])

    monkeypatch.chdir(project / "prompts" / "deep")
    assert ["prompts/a.md", "prompts/deep/b.md"] == names(["../a.md", "b.md"])


def test_the_nearest_project_counts(project: Path) -> None:
    """A project inside another names its own files."""
    (project / "prompts" / "pyproject.toml").write_text("")

    assert ["deep/b.md"] == names(project / "prompts/deep/b.md")


def test_without_a_project_names_are_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path names itself; an absolute one would name the machine, so its last part does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "is_file", lambda path: False)

    assert ["prompts/a.md"] == names("./prompts/x/../a.md")
    assert ["a.md"] == names(tmp_path / "prompts" / "a.md")


def test_names_can_be_given(project: Path) -> None:
    """A mapping names its files, whatever they are called."""
    assert ["one", "two"] == names(MappingProxyType({"one": "prompts/a.md", "two": project / "prompts/a.md"}))


def test_none_is_none() -> None:
    """Without files there is nothing to read."""
    assert not PromptFiles()
    assert {} == PromptFiles(()).digests()


def test_bytes_are_read_at_each_call(project: Path) -> None:
    """An edited file has another digest from then on."""
    files = PromptFiles(["prompts/a.md"])
    before = files.digests()
    (project / "prompts" / "a.md").write_bytes(b"caf\xe9\r\n")

    assert files
    assert {"prompts/a.md": {"$sha256": hashlib.sha256(b"prompts/a.md").hexdigest(), "$bytes": 12}} == before
    assert {
        "prompts/a.md": {"$sha256": hashlib.sha256(b"caf\xe9\r\n").hexdigest(), "$bytes": 6}
    } == files.digests()


def test_a_file_is_found_after_the_program_changed_its_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is meant from where the program was when it said so."""
    files = PromptFiles("prompts/a.md")
    monkeypatch.chdir(project / "prompts")

    assert ["prompts/a.md"] == [*files.digests()]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            ["prompts/a.md", "prompts/deep/../a.md"],
            "two prompt files are named 'prompts/a.md'; give them names: prompt_files={'a': ...}",
        ),
        (5, "prompt_files=5 is not understood; it takes paths, or a mapping of names to paths"),
        ([5], "prompt_files cannot hold 5; it takes paths"),
        ([""], "prompt_files cannot hold ''; it takes paths"),
        ({"a": None}, "prompt_files cannot hold None; it takes paths"),
        ({5: "a"}, "the name of a prompt file is a text, not 5"),
    ],
    ids=["same-name", "number", "number-in-a-list", "empty", "no-path", "no-name"],
)
def test_a_mistake_is_met_where_it_is_made(project: Path, files: Any, message: str) -> None:
    """The error says what is not understood."""
    with pytest.raises(OptionError) as caught:
        PromptFiles(files)

    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("path", "reason"),
    [("missing.md", os.strerror(2)), ("prompts", os.strerror(21)), ("a\0b", "embedded null byte")],
    ids=["missing", "folder", "nul"],
)
def test_a_file_that_cannot_be_read_is_named(project: Path, path: str, reason: str) -> None:
    """The error has the name, the path and the reason."""
    with pytest.raises(OptionError) as caught:
        PromptFiles({"triage": path}).digests()

    assert str(project / path) == caught.value.path
    assert f"the prompt file 'triage' cannot be read: {reason}" == caught.value.message


# -- in the key ----------------------------------------------------------------------------------------


def test_one_edited_character_is_another_key(project: Path) -> None:
    """The key changes with the file, and comes back with it."""
    transport = CassetteTransport("none.jsonl", prompt_files=["prompts/a.md"])
    request = httpx.Request("POST", CHAT, json={"messages": []})
    file = project / "prompts" / "a.md"
    before = transport.fingerprint(request)
    text = file.read_text()
    file.write_text(text.replace("a", "b", 1))
    edited = transport.fingerprint(request)
    file.write_text(text)

    assert before != edited
    assert before == transport.fingerprint(request)
    assert before != CassetteTransport("none.jsonl").fingerprint(request)


def test_a_missing_file_stops_the_call(project: Path) -> None:
    """A call whose key cannot be known is neither answered nor made."""
    transport = CassetteTransport("none.jsonl", prompt_files={"triage": "missing.md"}, require_system=False)
    request = httpx.Request("POST", CHAT, json={"messages": []})

    with pytest.raises(OptionError, match="the prompt file 'triage' cannot be read"):
        transport.fingerprint(request)
    with pytest.raises(OptionError, match="the prompt file 'triage' cannot be read"):
        transport.explain(request)
    with pytest.raises(CassetteUnusable, match="the prompt file 'triage' cannot be read"):
        with expected_miss(), httpx.Client(transport=transport) as client:
            client.send(request)
