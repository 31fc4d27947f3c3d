"""Project-wide defaults: the table ``[tool.httpx_cassette]`` of the nearest ``pyproject.toml``.

Nothing here knows which options there are, but for those of test runs and for the paths among them: these are
meant from the folder of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ._errors import OptionError

__all__ = ["OF_SUITES", "Project", "project_defaults"]

#: What the table says to test runs, and not to transports.
OF_SUITES = ("dir", "guard", "strict")


class Project(NamedTuple):
    """What a project sets.

    Args:
        options: The options of transports, by name.
        file: The ``pyproject.toml`` that they stand in.
        suite: What it says to test runs: ``dir``, ``guard``, ``strict``.
    """

    options: Mapping[str, Any]
    file: str | None
    suite: Mapping[str, Any] = MappingProxyType({})


def project_defaults() -> Project:
    """Return the options that the project of the working folder sets, empty where it sets none.

    Raises:
        OptionError: The file cannot be read as TOML.
    """
    try:
        folder = Path.cwd()
    except OSError:  # The working folder was deleted: it belongs to no project any more.
        return Project({}, None)
    return _defaults_below(folder)


@lru_cache(maxsize=32)
def _defaults_below(folder: Path) -> Project:
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file():
            table = _read_table(file)
            suite = {name: table.pop(name) for name in OF_SUITES if name in table}
            return Project(table, str(file), suite)
    return Project({}, None)


def _read_table(file: Path) -> dict[str, Any]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise OptionError(f"the file cannot be read: {error.strerror}", str(file)) from error
    if b"httpx_cassette" not in data and b"httpx-cassette" not in data:
        return {}  # Most projects set nothing, and the parser costs a millisecond to import.
    if sys.version_info >= (3, 11):
        import tomllib
    else:  # pragma: no cover  # whichever Python runs, one of the two
        import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # installed on 3.10 only
    try:
        document = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"the file is not TOML: {error}", str(file)) from error
    tool = document.get("tool", {})
    tool = tool if isinstance(tool, dict) else {}
    if "httpx-cassette" in tool:
        raise OptionError(
            "the table [tool.httpx-cassette] is not read; write [tool.httpx_cassette]", str(file)
        )
    table = tool.get("httpx_cassette", {})
    if not isinstance(table, dict):
        raise OptionError("tool.httpx_cassette must be a table: [tool.httpx_cassette]", str(file))
    if "prompt_files" in table:
        table["prompt_files"] = _from_folder(table["prompt_files"], file.parent)
    return table


def _from_folder(files: Any, folder: Path) -> Any:
    """Return prompt files as they are meant: from the folder of the project, wherever it is run."""
    if isinstance(files, str):
        return str(folder / files)
    if isinstance(files, Mapping):
        return {name: _from_folder(path, folder) for name, path in files.items()}
    return [_from_folder(path, folder) for path in files] if isinstance(files, list) else files
