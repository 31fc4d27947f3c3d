"""Where the cassette of a test lies, and how a name becomes that of a file on every system.

``cassettes/<test module>.jsonl`` beside the test, or what the marker names in that folder. ``{module}``,
``{class}`` and ``{test}`` stand for the names of the test, made safe: it may be parametrised with anything.
With a folder of one's own (``--cassette-dir``) the file in it is written, and the one beside the test, where
there is one, is looked up as well: a small seed in git, and the full cassette outside.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from .._errors import OptionError

__all__ = ["Place", "cassette_files", "safe_name"]

#: Characters that a name in a file system may hold everywhere, letters of any script included.
_UNSAFE = re.compile(r"[^\w.=+,@#~()\[\]-]+")

#: Names that Windows takes for devices, whatever the suffix.
_DEVICES = re.compile(r"(?i:con|prn|aux|nul|com[\d¹²³]|lpt[\d¹²³])(?=\.|$)")

#: Characters of a name, of the 255 bytes that file systems allow: other scripts take up to four bytes each.
_LONGEST = 50

_FIELD = re.compile(r"\{(\w*)\}")


class Place:
    """Where a test stands.

    Args:
        file: The test file.
        root: The folder that the run is for: a folder of one's own repeats the folders below it.
        names: What ``{module}``, ``{class}`` and ``{test}`` stand for.
    """

    def __init__(self, file: Path, root: Path, names: dict[str, str]) -> None:
        self.file = file
        self.root = root
        self.names = names


def cassette_files(name: Any, place: Place, folder: Path | None) -> list[Path]:
    """Return the files of a cassette, the one that is written last.

    Args:
        name: What the marker names; the module by default.
        place: Where the test stands.
        folder: The folder of one's own, if there is one.

    Raises:
        OptionError: The name leaves the folder, or is none on every system.
    """
    relative = _relative("{module}" if name is None else name, place.names)
    beside = place.file.parent / "cassettes" / relative
    if folder is None:
        return [beside]
    return [beside, folder / _below(place.file.parent, place.root) / relative]


def safe_name(text: str) -> str:
    """Return a text as the name of a file: the same for the same text, and different for different ones."""
    safe = _UNSAFE.sub("-", text).strip(". ")
    if _DEVICES.match(safe):
        safe = f"_{safe}"
    if safe and safe == text and len(safe) <= _LONGEST:
        return safe
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{safe[:_LONGEST].rstrip('. -')}-{digest}".lstrip("-")


def _relative(name: Any, names: dict[str, str]) -> Path:
    if not isinstance(name, str):
        raise OptionError(f"cassette({name!r}) names no file; write it like cassette('triage')")
    if not name.strip():
        raise OptionError(f"cassette({name!r}) names no file; write it like cassette('triage')")
    filled = _FIELD.sub(lambda match: _fill(match[1], name, names), name)
    parts = re.split(r"[/\\]", filled)
    if os.path.isabs(filled) or ":" in parts[0] or any(part in ("", ".", "..") for part in parts):
        raise OptionError(
            f"cassette({name!r}) leaves the folder of the cassettes; name a file in it, such as 'triage' or "
            "'triage/refunds', and another folder with --cassette-dir"
        )
    for part in parts:
        if not _is_name_everywhere(part):
            raise OptionError(
                f"cassette({name!r}) is no file name on every system, because of {part!r}; "
                "use letters, digits, '-' and '_', 200 bytes at most"
            )
    last = parts[-1] if parts[-1].endswith(".jsonl") else f"{parts[-1]}.jsonl"
    return Path(*parts[:-1], last)


def _is_name_everywhere(part: str) -> bool:
    # Windows takes blanks and dots off the end; file systems hold 255 bytes, the suffix among them.
    is_whole = part == part.strip().rstrip(".") and len(part.encode("utf-8", "surrogatepass")) <= 200
    return is_whole and not _UNSAFE.search(part.replace(" ", "")) and not _DEVICES.match(part)


def _fill(field: str, name: str, names: dict[str, str]) -> str:
    if field not in names:
        known = ", ".join(f"{{{each}}}" for each in names)
        raise OptionError(f"cassette({name!r}) has {{{field}}}, and a name may hold {known}")
    return safe_name(names[field])


def _below(folder: Path, root: Path) -> Path:
    """Return a folder as seen from the root; one outside of it by a name made of its path."""
    try:
        return folder.relative_to(root)
    except ValueError:
        return Path(safe_name(str(folder)))
