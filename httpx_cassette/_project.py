"""Project-wide defaults: the table ``[tool.httpx_cassette]`` of the nearest ``pyproject.toml``."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from ._errors import OptionError

__all__ = ["project_defaults"]


def project_defaults() -> dict[str, Any]:
    """Return the options that the project of the working folder sets, empty where it sets none.

    Raises:
        OptionError: The file cannot be read as TOML.
    """
    return dict(_defaults_below(Path.cwd()))


@lru_cache(maxsize=32)
def _defaults_below(folder: Path) -> dict[str, Any]:
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file():
            return _read_table(file)
    return {}


def _read_table(file: Path) -> dict[str, Any]:
    text = file.read_text("utf-8")
    if "httpx_cassette" not in text:
        return {}  # Most projects set nothing, and the parser costs a millisecond to import.
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        table = tomllib.loads(text).get("tool", {}).get("httpx_cassette", {})
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"the file is not TOML: {error}", str(file)) from error
    if not isinstance(table, dict):
        raise OptionError("tool.httpx_cassette must be a table: [tool.httpx_cassette]", str(file))
    return table
