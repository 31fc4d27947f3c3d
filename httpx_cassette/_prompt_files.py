"""Prompt files: files whose bytes are part of the key, so that an edited prompt is a miss.

Nothing here knows what is in them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ._call import Json
from ._digests import digest_of
from ._errors import OptionError

__all__ = ["PromptFiles"]

_File: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True)
class PromptFiles:
    """Files whose bytes enter the key, read at each call.

    Args:
        files: A mapping of names to paths, or paths, which are named relative to the folder of the nearest
            ``pyproject.toml`` above each file, with ``/`` between folders, so that two machines give one key.
            A file with none above it is named as it was given, or by its last part if that was absolute.

    Attributes:
        named: The absolute path of every file by its name in the key.

    Raises:
        OptionError: It holds something else, or two files have one name.
    """

    files: Mapping[str, _File] | Sequence[_File] | _File = ()
    named: dict[str, Path] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named: dict[str, Path] = {}
        # Settled now: the program may change its folder later, and a mistake is met where it was made.
        for name, path in _pairs(self.files):
            if name in named:
                raise OptionError(
                    f"two prompt files are named {name!r}; give them names: prompt_files={{'a': ...}}"
                )
            named[name] = path
        object.__setattr__(self, "named", named)

    def __bool__(self) -> bool:
        return bool(self.named)

    def digests(self) -> dict[str, Json]:
        """Return the digest of every file's bytes as they are now, by name.

        Raises:
            OptionError: A file cannot be read; the message names it.
        """
        return {name: digest_of(_read_file(name, path)) for name, path in self.named.items()}


def _pairs(files: object) -> Iterator[tuple[str, Path]]:
    """Yield name and path of every file."""
    if isinstance(files, Mapping):
        for name, path in files.items():
            if not isinstance(name, str):
                raise OptionError(f"the name of a prompt file is a text, not {name!r}")
            yield name, _absolute(path)
    elif isinstance(files, (str, os.PathLike)):
        yield _name_from_project(files), _absolute(files)
    elif isinstance(files, Sequence):
        for path in files:
            yield _name_from_project(path), _absolute(path)
    else:
        raise OptionError(
            f"prompt_files={files!r} is not understood; it takes paths, or a mapping of names to paths"
        )


def _absolute(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise OptionError(f"prompt_files cannot hold {path!r}; it takes paths")
    # Without ``..``, so that one file has one name; links stay, because they may lead out of the project.
    return Path(os.path.abspath(path))


def _name_from_project(path: _File) -> str:
    whole = _absolute(path)
    for folder in whole.parents:
        if (folder / "pyproject.toml").is_file():
            return whole.relative_to(folder).as_posix()
    return whole.name if os.path.isabs(path) else Path(os.path.normpath(path)).as_posix()


def _read_file(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path.
        reason = error.strerror if isinstance(error, OSError) else error
        raise OptionError(f"the prompt file {name!r} cannot be read: {reason}", str(path)) from error
