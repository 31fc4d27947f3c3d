"""The defaults of a project stand in its pyproject.toml."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import httpx
import pytest

from httpx_cassette import CassetteTransport, Mode, OptionError
from httpx_cassette._project import project_defaults

from .keying import CHAT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a folder below that of a project, and work in it."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return below


def write(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    return file


@pytest.mark.parametrize(
    ("text", "defaults"),
    [
        ("", {}),
        ("[tool.other]\nx = 1\n", {}),
        ("# httpx_cassette\n", {}),
        ("[tool.httpx_cassette]\n", {}),
        ("tool = 5 # httpx_cassette\n", {}),
        ("[tool.httpx_cassette]\r\nsamples = 3\r\nmode = 'record'\r\n", {"samples": 3, "mode": "record"}),
        ("[tool.httpx_cassette.key_policy]\nignore = ['a.b']\n", {"key_policy": {"ignore": ["a.b"]}}),
    ],
)
def test_the_table_of_the_nearest_project_counts(
    folder: Path, text: str, defaults: dict[str, object]
) -> None:
    """From the working folder upwards, the first file there is; no table sets nothing."""
    write(folder.parent.parent, "[tool.httpx_cassette]\nchunk_size = 99\n")
    write(folder.parent, text)

    assert defaults == project_defaults().options


def test_without_a_project_nothing_is_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder below no project at all has no defaults."""
    monkeypatch.setattr(Path, "is_file", lambda path: False)

    assert {} == project_defaults().options


def test_a_working_folder_that_is_gone_sets_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It belongs to no project any more, and a transport can be made all the same."""

    def fail(kind: type[Path]) -> Path:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "cwd", classmethod(fail))

    assert {} == project_defaults().options


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.httpx_cassette\n",
            "the file is not TOML: Expected ']' at the end of a table declaration (at line 1, column 21)",
        ),
        (
            "# httpx_cassette \udcff\n",
            "the file is not TOML: 'utf-8' codec can't decode byte 0xff in position 17: invalid start byte",
        ),
        ("[tool]\nhttpx_cassette = 5\n", "tool.httpx_cassette must be a table: [tool.httpx_cassette]"),
        (
            "[tool.httpx-cassette]\nsamples = 2\n",
            "the table [tool.httpx-cassette] is not read; write [tool.httpx_cassette]",
        ),
    ],
    ids=["not-toml", "not-utf-8", "no-table", "dash"],
)
def test_a_file_that_cannot_be_meant_is_named(folder: Path, text: str, message: str) -> None:
    """The error has the file and the reason."""
    file = write(folder, text)
    with pytest.raises(OptionError) as caught:
        project_defaults()

    assert str(file) == caught.value.path
    assert message == caught.value.message


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_named(folder: Path) -> None:  # pragma: no cover  # skipped for root
    """The error says so, and names the file."""
    file = write(folder, "[tool.httpx_cassette]\n")
    file.chmod(0)
    with pytest.raises(OptionError, match="the file cannot be read: Permission denied"):
        project_defaults()


def test_a_file_that_cannot_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the reason."""
    file = write(folder, "[tool.httpx_cassette]\n")

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(OptionError) as caught:
        project_defaults()

    assert f"{file}: the file cannot be read: Permission denied" == str(caught.value)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("'prompts/a.md'", "{0}/prompts/a.md"),
        ("['prompts/a.md', '/etc/b.md']", ["{0}/prompts/a.md", "/etc/b.md"]),
        ("{ a = 'prompts/a.md' }", {"a": "{0}/prompts/a.md"}),
        ("5", 5),
    ],
)
def test_prompt_files_are_meant_from_the_projects_folder(folder: Path, option: str, meant: object) -> None:
    """A project's tests may run in any folder of it."""
    write(folder.parent, f"[tool.httpx_cassette]\nprompt_files = {option}\n")

    def placed(value: object) -> object:
        if isinstance(value, dict):
            return {name: placed(each) for name, each in value.items()}
        if isinstance(value, list):
            return [placed(each) for each in value]
        return value.format(folder.parent) if isinstance(value, str) else value

    assert {"prompt_files": placed(meant)} == project_defaults().options


def test_what_is_given_wins_over_the_project(folder: Path) -> None:
    """An argument wins over the table, the table over the default."""
    write(folder, "[tool.httpx_cassette]\nmode = 'live'\nkey_policy = { host = false }\n")
    request = httpx.Request("POST", CHAT, json={})

    assert Mode.LIVE is CassetteTransport("none.jsonl").mode
    assert Mode.REPLAY is CassetteTransport("none.jsonl", mode="replay").mode
    explained = [
        CassetteTransport("none.jsonl", **options).explain(request) for options in ({}, {"key_policy": {}})
    ]  # type: ignore[arg-type]  # a table is as good as a policy
    assert ["/v1/chat/completions", CHAT] == [each.key_document["url"] for each in explained]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sample = 2", "[tool.httpx_cassette] has no option 'sample' (did you mean 'samples'?)"),
        ("samples = 0", "samples=0 is not understood; it takes a whole number from 1"),
        ("mode = 'play'", "mode='play' is not a mode (did you mean 'replay'?)"),
        ("key_policy = { mask = [] }", "KeyPolicy has no option 'mask' (did you mean 'masks'?)"),
        (
            "key_policy = { masks = ['dates'] }",
            "there is no mask 'dates' (did you mean 'date'?); give an own one its pattern: "
            "KeyPolicy(masks={'dates': r'...'})",
        ),
        ("redact = { pattern = {} }", "redact has no argument 'pattern' (did you mean 'patterns'?)"),
        (
            "passthrough = ['a/b']",
            "passthrough='a/b' is no host, because of '/', and no URL; write "
            "'https://a/b', or the host alone",
        ),
        (
            "prompt_files = 5",
            "prompt_files=5 is not understood; it takes paths, or a mapping of names to paths",
        ),
        ("fsync = 0", "fsync=0 is not understood; it takes True or False"),
    ],
)
def test_a_mistake_names_the_file_it_stands_in(folder: Path, text: str, message: str) -> None:
    """The project file may be one of a folder above, which nobody has thought of."""
    file = write(folder.parent, f"[tool.httpx_cassette]\n{text}\n")
    with pytest.raises(OptionError) as caught:
        CassetteTransport("none.jsonl")

    assert f"{file}: {message}" == str(caught.value)


def test_a_mistake_elsewhere_does_not_name_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in the code, or in the environment, is none of the project's."""
    write(folder, "[tool.httpx_cassette]\nsamples = 0\nmode = 'live'\n")
    with pytest.raises(OptionError, match=r"^samples=-1 is not"):
        CassetteTransport("none.jsonl", samples=-1)
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "play")
    with pytest.raises(OptionError, match=r"^HTTPX_CASSETTE_MODE='play' is not"):
        CassetteTransport("none.jsonl", samples=1)
