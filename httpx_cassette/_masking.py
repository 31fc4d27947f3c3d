"""Masks: text that changes from run to run, replaced by a placeholder in the key.

A mask sees strings as they were stored, never its own work. So a text that holds a placeholder word for
word, such as a template that was not filled in, is marked as one: ``<date>`` becomes ``<literal:date>``, and
no text can have the key of another by looking like its mask.
Nothing here knows where the strings stand, or which policy asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ._call import Json
from ._digests import is_digest
from ._errors import OptionError
from ._suggest import nearest_name

__all__ = ["MASKS", "Masker", "mask_text"]

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_YEAR = r"(?:19|20)\d\d"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_FILE = r"[^\s\"'<>:;,]+"

#: The built-in masks: kinds of text that change from run to run.
MASKS: Mapping[str, re.Pattern[str]] = {
    "date": re.compile(
        rf"\b{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)"
        rf"|\b{_DAY}\.? {_MONTH}\.?,? {_YEAR}\b"
        rf"|\b{_MONTH}\.? {_DAY}(?:st|nd|rd|th)?,? {_YEAR}\b"
    ),
    "time": re.compile(
        r"(?<!\d)(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?(?:Z\b|[+-]\d\d:?\d\d\b|UTC\b))?"
    ),
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    "path": re.compile(
        rf"(?:/private)?/(?:tmp|var/folders|var/tmp)/{_FILE}"
        rf"|/(?:home|Users|root)/{_FILE}"
        rf"|[A-Za-z]:\\(?:Users|Temp|TEMP)\\{_FILE}"
    ),
    "port": re.compile(r"(?:(?<=localhost:)|(?<=127\.0\.0\.1:)|(?<=\[::1\]:)|(?<=0\.0\.0\.0:))\d{2,5}\b"),
}

#: Masks whose matches only say when: all are one. Those of the others refer to something and are numbered.
_UNNUMBERED = frozenset({"date", "time"})

# A placeholder of the redaction is atomic: what it stands for is already one thing.
_REDACTED = r"<redacted:[a-z][a-z0-9-]{0,31}:[0-9a-f]{16}>"


class Masker:
    """Replaces what varies from run to run, numbered by first appearance over one document.

    Args:
        masks: Names with their pattern, in the order they apply.
    """

    def __init__(self, masks: Mapping[str, re.Pattern[str]]) -> None:
        self._masks = masks
        self._placeholders: dict[tuple[str, str], str] = {}
        self._counts = dict.fromkeys(masks, 0)
        names = "|".join(name if name in _UNNUMBERED else rf"{name}:\d+" for name in masks) or "(?!)"
        self._literal = re.compile(rf"<((?:literal:)*(?:{names})>)")
        self._atom = re.compile(rf"{_REDACTED}|<(?:literal:)*(?:{names})>")

    def document(self, value: Json) -> Json:
        """Mask every string value below a value, in place, members in sorted order; return it."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            # Sorted: an SDK that reorders its members must not renumber. The digits of a digest say what was
            # there; masked, they would say nothing.
            for name in () if is_digest(value) else sorted(value):
                value[name] = self.document(value[name])
        elif isinstance(value, list):
            for index, child in enumerate(value):
                value[index] = self.document(child)
        return value

    def text(self, text: str) -> str:
        """Return the text with every match of every mask replaced, and with literal placeholders marked."""
        text = self._literal.sub(r"<literal:\1", text)
        for name, pattern in self._masks.items():
            replace = self._replacement(name)
            pieces, position = [], 0
            for atom in self._atom.finditer(text):
                pieces += [pattern.sub(replace, text[position : atom.start()]), atom[0]]
                position = atom.end()
            text = "".join([*pieces, pattern.sub(replace, text[position:])])
        return text

    def _replacement(self, name: str) -> Callable[[re.Match[str]], str]:
        if name in _UNNUMBERED:
            return lambda found: f"<{name}>" if found[0] else ""
        return lambda found: self._numbered(name, found[0]) if found[0] else ""

    def _numbered(self, name: str, value: str) -> str:
        placeholder = self._placeholders.get((name, value))
        if placeholder is None:
            self._counts[name] += 1
            placeholder = self._placeholders[name, value] = f"<{name}:{self._counts[name]}>"
        return placeholder


def mask_text(name: str, text: str) -> str:
    """Return the text with every match of one built-in mask replaced.

    Raises:
        OptionError: There is no such mask.
    """
    if name not in MASKS:
        raise OptionError(f"there is no mask {name!r}{nearest_name(name, MASKS)}")
    return Masker({name: MASKS[name]}).text(text)
