"""Where secrets stand in a text, as they are and encoded: percent-encoded, escaped, in base64.

Redaction replaces what it finds in strings that were taken out of their JSON; this looks at text as it stands
in a file, and says where. Each encoding is undone by itself, in a view of the text that knows which character
of it came from where; base64 is looked for in each view, at each of the four places where it can begin.
No finding holds a value: only its kind, and a digest where the value cannot be guessed.

Nothing here opens a file, or knows what becomes of what is found.
"""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from ._redact import compiled_rule, free_spans, keyed_digest, public_digest, rules_for
from ._secret_rules import WEAK_RULES, key_material

__all__ = ["NAMES", "PII", "Found", "Search"]

#: The weak kinds that are personal data, and the one that a name gives away.
PII = ("card", "email", "iban", "phone")
NAMES = ("name-value",)

#: Hex digits of a digest that are shown: those with which a placeholder of the value begins.
_SHOWN = 8


class Found(NamedTuple):
    """A secret in a text.

    Args:
        start: Where it begins, as it stands there.
        kind: What it is.
        encoding: How it is encoded: ``base64``, ``percent-encoded``, ``escaped``, or empty.
        digest: How its placeholder's digest begins; empty where the value could be guessed by it.
    """

    start: int
    kind: str
    encoding: str
    digest: str


class _View(NamedTuple):
    """A text with one encoding undone.

    Args:
        text: The text.
        encoding: What was undone.
        starts: Where runs begin in it that came without a change.
        origins: Where the same begin in the text as it was.
    """

    text: str
    encoding: str
    starts: list[int]
    origins: list[int]

    def origin(self, place: int) -> int:
        """Return where a character came from."""
        run = bisect_right(self.starts, place) - 1
        return self.origins[run] + place - self.starts[run]


class Search:
    """What is looked for.

    Args:
        weak: Kinds of ``WEAK_RULES``.
        patterns: Own kinds, and their expressions; a group named ``secret`` is what is secret of a match.
        guessable: Those of the own kinds whose values could be guessed.
        key: The key for digests of values that could be guessed; without one they have none.
    """

    def __init__(
        self,
        weak: tuple[str, ...] = (),
        patterns: Mapping[str, str] | None = None,
        guessable: frozenset[str] = frozenset(),
        key: bytes = b"",
    ) -> None:
        self._key = key
        self._own = [
            (kind, re.compile(pattern), None, kind in guessable) for kind, pattern in (patterns or {}).items()
        ]
        self._weak = [
            (kind, re.compile(rule.pattern), rule.accept, True)
            for kind, rule in WEAK_RULES.items()
            if kind in weak
        ]

    def find(self, text: str) -> list[Found]:
        """Return what is found, each place once, in the order of the text."""
        found: dict[tuple[int, str], Found] = {}
        # What is found as it is stands there in the other views too.
        is_plain = bytearray(len(text))
        for view in _views(text):
            for start, stop, kind, digest in self._in_view(view.text):
                if not view.encoding:
                    is_plain[start:stop] = b"\1" * (stop - start)
                place = view.origin(start)
                if not (view.encoding and is_plain[place]):
                    found.setdefault((place, kind), Found(place, kind, view.encoding, digest))
            for start, kind, digest in self._in_base64(view.text):
                place = view.origin(start)
                if not is_plain[place]:
                    found.setdefault((place, kind), Found(place, kind, "base64", digest))
        return sorted(found.values())

    def _in_view(self, text: str) -> Iterator[tuple[int, int, str, str]]:
        """Yield start, end, kind and digest; of what overlaps, what the first rule finds."""
        spans = [*free_spans(text)]
        is_taken = bytearray(len(text))
        for kind, pattern, accept, is_guessable in self._rules(text):
            group: str | int = "secret" if "secret" in pattern.groupindex else 0
            for first, last in spans:
                for match in pattern.finditer(text, first, last):
                    value = match[group]
                    secret = accept(value) if accept is not None and value else value
                    if not secret:
                        continue
                    start = match.start(group)
                    stop = start + len(secret)
                    if 1 in is_taken[start:stop]:
                        continue
                    is_taken[start:stop] = b"\1" * (stop - start)
                    yield start, stop, kind, self._digest(kind, secret, is_guessable)

    def _rules(
        self, text: str
    ) -> Iterator[tuple[str, re.Pattern[str], Callable[[str], str | None] | None, bool]]:
        for rule in rules_for(text.encode("utf-8", "surrogatepass")):
            yield rule.kind, compiled_rule(rule.pattern), rule.accept, False
        yield from self._own
        yield from self._weak

    def _digest(self, kind: str, secret: str, is_guessable: bool) -> str:
        material = key_material(secret) if kind == "private-key" else secret
        if not is_guessable:
            return public_digest(material)[:_SHOWN]
        return keyed_digest(self._key, material)[:_SHOWN] if self._key else ""

    def _in_base64(self, text: str) -> Iterator[tuple[int, str, str]]:
        """Yield start, kind and digest of what base64 hides; only strong kinds, as bytes may be a date."""
        for run in chain(_BASE64.finditer(text), _WRAPPED.finditer(text)):
            letters = _BLANKS.sub("", run[0].rstrip("=").translate(_STANDARD))
            for shift in range(4):
                for start, kind, digest in _in_bytes(_decoded(letters[shift:])):
                    # In several lines, a little before.
                    yield run.start() + shift + start * 4 // 3, kind, digest


_STANDARD = str.maketrans("-_", "+/")

#: The shortest credential has some twenty characters, which base64 makes a third longer.
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{26,}={0,2}")

#: In lines, as in a mail or in YAML.
_WRAPPED = re.compile(r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{60,}\r?\n[ \t]{0,32})+[A-Za-z0-9+/_-]+={0,2}")
_BLANKS = re.compile(r"\s+")


def _decoded(letters: str) -> bytes:
    # One letter over says nothing.
    whole = letters[: len(letters) - (len(letters) % 4 == 1)]
    return binascii.a2b_base64(whole + "=" * (-len(whole) % 4))


def _in_bytes(data: bytes) -> Iterator[tuple[int, str, str]]:
    rules = rules_for(data)
    if not rules:
        return
    text = data.decode("latin-1")
    is_taken = bytearray(len(text))
    for rule in rules:
        pattern = compiled_rule(rule.pattern)
        group: str | int = "secret" if "secret" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            secret = rule.accept(match[group]) if rule.accept is not None else match[group]
            # What was drawn at random and looks like a credential has letters of any kind round it.
            start = match.start(group)
            stop = start + len(secret or "")
            if secret and secret.isascii() and 1 not in is_taken[start:stop]:
                is_taken[start:stop] = b"\1" * (stop - start)
                material = key_material(secret) if rule.kind == "private-key" else secret
                yield start, rule.kind, public_digest(material)[:_SHOWN]


# -- encodings -----------------------------------------------------------------------------------------


#: ASCII as JSON, JavaScript and Python write it where they escape it, and slashes; the escape itself may be
#: escaped, where JSON stands in a string.
_ESCAPED = re.compile(r"(?<!\\)\\{1,64}(?:u00([2-7][0-9A-Fa-f]|0[9AaDd])|x([2-7][0-9A-Fa-f])|/)")

#: The same in a URL, and in one that is a parameter of another.
_PERCENT = re.compile(r"%(?:25)*([2-7][0-9A-Fa-f])")


def _views(text: str) -> Iterator[_View]:
    yield _View(text, "", [0], [0])
    if "\\" in text and _ESCAPED.search(text):
        yield _undone(text, _ESCAPED, "escaped")
    if "%" in text and _PERCENT.search(text):
        yield _undone(text, _PERCENT, "percent-encoded")


def _undone(text: str, pattern: re.Pattern[str], encoding: str) -> _View:
    parts: list[str] = []
    starts, origins = [0], [0]
    length = done = 0
    for match in pattern.finditer(text):
        plain = text[done : match.start()]
        digits = next(filter(None, match.groups()), "2f")
        parts += (plain, chr(int(digits, 16)))
        length += len(plain)
        starts += (length, length + 1)
        origins += (match.start(), match.end())
        length += 1
        done = match.end()
    parts.append(text[done:])
    return _View("".join(parts), encoding, starts, origins)
