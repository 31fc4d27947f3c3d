"""Redaction: what becomes of a secret before anything is hashed, stored or reported.

A secret becomes ``<redacted:KIND:16 hex>``, which keeps two different values apart and one value the same
in every file.
The rules of this file:

- *One function* for recording and replaying, requests and answers, keys and reports.
- *A placeholder is atomic*: nothing matches in it or across its edges, and redacting twice changes
  nothing, so that a redacted answer that comes back in the next request still matches.
- *Strong kinds* (keys that a provider drew at random) are digested in public: SHA-256 over a fixed prefix
  and the value.  No salt, or concatenated cassettes would stop matching; nobody searches through the
  values of a random 20-character key.
- *Weak kinds* (a user id, an address, whatever stands at a path) can be guessed, and with a public digest
  a guess can be tested.  They are digested with the key in ``HTTPX_CASSETTE_HMAC_KEY``, and refused
  without one: a number or a fixed word in their place would let two requests share one answer.
- The password of a URL and of basic authentication is a strong kind here although it can be weak: it is
  redacted by default, and by default there is no key.  A public digest of it is better than the password
  in the file, and better than two databases becoming one.

Nothing here knows what a provider's request looks like, or what is done with the result.
What a secret looks like is the table of ``_secret_rules``; ``_tripwire`` looks at what is left.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import hmac
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import IntFlag
from typing import TypeAlias, cast
from urllib.parse import quote, unquote_plus

import orjson

from ._call import Json
from ._errors import OptionError
from ._paths import Paths
from ._process import LOADING
from ._secret_names import is_secret_query
from ._secret_rules import WEAK_RULES, Rule, key_material, strong_rules, without_edges
from ._suggest import nearest_name
from ._tripwire import HMAC_KEY_VARIABLE

__all__ = [
    "DEFAULT",
    "Gate",
    "Redaction",
    "compiled_rule",
    "free_spans",
    "keyed_digest",
    "public_digest",
    "rules_for",
    "scan",
    "scan_json",
    "without_values",
]


class Gate(IntFlag):
    """What occurs in a body, and therefore which slow paths it needs."""

    SECRET = 1
    """The head of a credential, followed by enough characters to be one."""
    DATA_URL = 2
    """``;base64,``"""
    DOLLAR = 4
    """A string or member name that begins with a dollar sign."""
    MEDIA = 8
    """A member or string that base64 without a data URL comes with: OpenAI's ``input_audio``, ``file_data``
    and ``image_generation_call``, Anthropic's ``base64``, Google's ``mimeType`` in both spellings, Ollama's
    ``images``, Bedrock's ``bytes``."""


#: Members of an enumeration are slow to combine; a table of all sixteen is not.
_GATES = tuple(Gate(number) for number in range(16))
_CLEAN = _GATES[0]

_MARKS = {
    b";base64,": Gate.DATA_URL,
    b'"$': Gate.DOLLAR,
    b'"input_audio"': Gate.MEDIA,
    b'"file_data"': Gate.MEDIA,
    b'"image_generation_call"': Gate.MEDIA,
    b'"base64"': Gate.MEDIA,
    b'"data"': Gate.MEDIA,
    b'"mimeType"': Gate.MEDIA,
    b'"mime_type"': Gate.MEDIA,
    b'"images"': Gate.MEDIA,
    b'"bytes"': Gate.MEDIA,
}


def scan(data: bytes) -> Gate:
    r"""Return what occurs in the bytes of a JSON body, in one pass.

    The escapes ``\uXXXX`` must have been undone; other escapes hide nothing.
    """
    found = _automaton().find(data, True)
    if not found:
        return _CLEAN
    heads = _automaton().heads
    gate = 0
    for index, _, end in found:
        flag, tail, _ = heads[index]
        if not gate & flag and (tail is None or _tail(tail).match(data, end)):
            gate |= flag
    return _GATES[gate]


def scan_json(value: Json) -> Gate:
    """Return what occurs in a JSON value; everything where that cannot be told."""
    try:
        # Written anew, because an escape of the bytes as sent could hide the head of a credential, and to
        # look for escapes takes longer than this.
        return scan(orjson.dumps(value))
    except TypeError:  # Integers beyond 64 bits, and lone surrogates.
        return _GATES[-1]


#: For one literal: the gate it opens, what must follow it, and the rules it belongs to.
_Head: TypeAlias = "tuple[int, str | None, tuple[int, ...]]"


class _Automaton:
    """The matcher for every literal, and what each of them means."""

    __slots__ = ("find", "heads")

    def __init__(self) -> None:
        # Imported at first use: the import costs more than the whole package may.
        with LOADING:
            from ahocorasick_rs import BytesAhoCorasick, Implementation

        rules = strong_rules()
        literals: dict[bytes, list[int]] = {}
        for number, rule in enumerate(rules):
            literals.setdefault(rule.literal.encode(), []).append(number)
        self.heads: list[_Head] = [
            (
                int(Gate.SECRET),
                "|".join(dict.fromkeys(rules[number].tail for number in numbers)),
                tuple(numbers),
            )
            for numbers in literals.values()
        ]
        self.heads.extend((int(gate), None, ()) for gate in _MARKS.values())
        # Searched with overlaps, because some literals are the end of another: ``sk-`` of ``csk-``.
        # A DFA looks up 2 KB in 3.1 us, whatever the number of literals; the library's own choice for as
        # many as these takes 4.6 us.  It is built in 0.2 ms, once.
        matcher = BytesAhoCorasick([*literals, *_MARKS], implementation=Implementation.DFA)
        self.find = matcher.find_matches_as_indexes


@functools.cache
def _automaton() -> _Automaton:
    return _Automaton()


@functools.cache
def _tail(expression: str) -> re.Pattern[bytes]:
    return re.compile(expression.encode())


@functools.cache
def compiled_rule(expression: str) -> re.Pattern[str]:
    """Compile an expression when it is first needed: the table as a whole costs tens of milliseconds."""
    return re.compile(expression)


def rules_for(data: bytes) -> list[Rule]:
    """Return the rules whose literal occurs with something behind it, in the order of the table."""
    automaton = _automaton()
    numbers: set[int] = set()
    for index, _, end in automaton.find(data, True):
        _, tail, wanted = automaton.heads[index]
        if wanted and not numbers.issuperset(wanted) and tail is not None and _tail(tail).match(data, end):
            numbers.update(wanted)
    rules = strong_rules()
    return [rules[number] for number in sorted(numbers)]


_PLACEHOLDER = r"<redacted:[a-z][a-z0-9-]{0,31}:[0-9a-f]{16}>"
_QUOTED_PLACEHOLDER = r"%3C(redacted:[a-z][a-z0-9-]{0,31}:[0-9a-f]{16})%3E"
_KIND = r"[a-z][a-z0-9-]{0,31}"

#: Shorter than any credential: ``://a:b@`` has seven characters and a host.
_SHORTEST = 8

#: Rounds in which each credential frees the next one that is glued to it.  A text with more of them would
#: take as many rounds as it has credentials, and a time that grows with the square of its length.
_PATIENCE = 3

#: Changing it changes every placeholder, and with them keys: a new version of the rules.
_DIGEST_PREFIX = b"httpx-cassette redaction 1\n"


def public_digest(value: str) -> str:
    """Return the digest of a value that nobody can guess."""
    return hashlib.sha256(_DIGEST_PREFIX + value.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def keyed_digest(key: bytes, value: str) -> str:
    """Return the digest of a value that could be guessed."""
    data = _DIGEST_PREFIX + value.encode("utf-8", "surrogatepass")
    return hmac.digest(key, data, "sha256").hex()[:16]


#: Gets what a pattern found, returns how much of it is secret and the placeholder, or ``None``.
_Stamp: TypeAlias = Callable[[str], "tuple[int, str] | None"]

#: Places that are left alone: the identity of the container, and the step in it.
_Kept: TypeAlias = "AbstractSet[tuple[int, str | int]]"

#: A pattern, the same without edges, and what becomes of what it finds.
_OwnRule: TypeAlias = "tuple[re.Pattern[str], re.Pattern[str], _Stamp]"

#: Gets a text, and yields the spans of it in which a pattern is looked for.
_Spans: TypeAlias = Callable[[str], "Iterator[tuple[int, int]]"]


def _substitute(text: str, pattern: re.Pattern[str], stamp: _Stamp, spans: _Spans) -> str:
    """Return the text with every match replaced; itself if there is none."""
    group: str | int = "secret" if "secret" in pattern.groupindex else 0
    parts: list[str] = []
    done = 0
    for start, stop in spans(text):
        for match in pattern.finditer(text, start, stop):
            found = match[group]
            stamped = stamp(found) if found else None
            if stamped is not None:
                length, placeholder = stamped
                first = match.start(group)
                parts += (text[done:first], placeholder)
                done = first + length
    if not parts:
        return text
    parts.append(text[done:])
    return "".join(parts)


def free_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between placeholders."""
    start = 0
    for placeholder in compiled_rule(_PLACEHOLDER).finditer(text):
        yield start, placeholder.start()
        start = placeholder.end()
    yield start, len(text)


def _glued_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield of each span between placeholders what has no blank between it and one of them."""
    for start, stop in free_spans(text):
        first = compiled_rule("[ \\t\\r\\n]").search(text, start, stop)
        if first is None:
            yield start, stop
            continue
        if start > 0:
            yield start, first.start()
        if stop < len(text):
            yield max(text.rfind(blank, start, stop) for blank in " \t\r\n") + 1, stop


def _stamp_strong(rule: Rule) -> _Stamp:
    def stamp(found: str) -> tuple[int, str] | None:
        secret = rule.accept(found) if rule.accept is not None else found
        if secret is None:
            return None
        material = key_material(secret) if rule.kind == "private-key" else secret
        return len(secret), f"<redacted:{rule.kind}:{public_digest(material)}>"

    return stamp


@dataclass(frozen=True, kw_only=True, slots=True)
class Redaction:
    """What is replaced in requests and answers before they are hashed and stored.

    Args:
        strong: Replace the credential shapes that are known (provider keys, cloud and code-host tokens,
            JSON web tokens, private keys, passwords in URLs, ...).
        patterns: Own rules: a kind, which the placeholder carries, and a regular expression.  A group
            named ``secret`` says what of a match is replaced; without one the whole match is.  The values
            are taken to be random, and digested in public, unless ``weak`` names the kind.
        paths: Own rules by place: ``metadata.user_id``, ``messages[*].name``.  What stands there never
            reaches the file, whatever it is, ``null`` aside.  Such values are weak.
        weak: Kinds whose values can be guessed: own kinds of ``patterns``, and the ones offered here,
            ``card``, ``email``, ``iban``, ``name-value`` (``password=...``) and ``phone``.

    Weak kinds and paths need a key of 16 characters or more in the environment variable
    ``HTTPX_CASSETTE_HMAC_KEY``, the same one wherever the cassette is used.  It is read once, here.

    Raises:
        OptionError: An argument is not understood, or the key is missing.
    """

    strong: bool = True
    patterns: Mapping[str, str | re.Pattern[str]] = field(default_factory=dict, hash=False)
    paths: Sequence[str] = ()
    weak: Sequence[str] = ()
    _rules: tuple[_OwnRule, ...] = field(default=(), init=False, repr=False, compare=False)
    _places: Paths | None = field(default=None, init=False, repr=False, compare=False)
    _key: bytes = field(default=b"", init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_types(self.strong, self.patterns, self.paths, self.weak)
        compiled = {kind: _compile(kind, pattern) for kind, pattern in self.patterns.items()}
        _check_weak(self.weak, compiled)
        settings: dict[str, object] = {
            "patterns": {kind: _source(pattern) for kind, pattern in compiled.items()},
            "paths": tuple(self.paths),
            "weak": tuple(sorted(set(self.weak))),
            "_places": Paths(self.paths) if self.paths else None,
            "_key": _hmac_key(self.paths, self.weak) if self.paths or self.weak else b"",
        }
        for name, value in settings.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_rules", tuple(self._own_rules(compiled)))

    def __reduce__(self) -> tuple[Callable[[Mapping[str, Json]], Redaction], tuple[dict[str, Json]]]:
        # Without the HMAC key: a pickle may be written somewhere, and the other process has its own.
        return _from_arguments, (self.as_json(),)

    @classmethod
    def of(cls, option: object) -> Redaction:
        """Return the redaction that an option means.

        Args:
            option: ``True`` or ``None`` for the default, ``False`` for no strong shapes, a ``Redaction``,
                or a mapping of its arguments, such as ``as_json`` returns.

        Raises:
            OptionError: The option is not understood; the message names the nearest argument.
        """
        if isinstance(option, cls):
            return option
        if option is None or option is True:
            return DEFAULT
        if option is False:
            return cls(strong=False)
        if isinstance(option, Mapping):
            return _from_arguments(option)
        raise OptionError(
            f"redact cannot be a {type(option).__name__}; write True, False, "
            "a Redaction, or a table of its arguments (strong, patterns, paths, weak)"
        )

    @property
    def is_default(self) -> bool:
        """Whether this is what applies when nothing is said."""
        return self.strong and not (self._rules or self.paths)

    def concerns(self, gate: Gate) -> bool:
        """Say whether ``json`` could change a body in which ``scan`` found this."""
        return bool(self._rules or self.paths) or (self.strong and bool(gate & Gate.SECRET))

    def as_json(self) -> dict[str, Json]:
        """Return the arguments that differ from the default, for a line of the cassette.

        With weak kinds there is a ``key_id``, which tells one HMAC key from another and nothing else.
        """
        document: dict[str, Json] = {}
        if not self.strong:
            document["strong"] = False
        if self.patterns:
            document["patterns"] = {kind: str(source) for kind, source in self.patterns.items()}
        if self.paths:
            document["paths"] = list(self.paths)
        if self.weak:
            document["weak"] = list(self.weak)
        if self._key:
            document["key_id"] = keyed_digest(self._key, "key id")
        return document

    def text(self, value: str) -> str:
        """Return the text with its secrets replaced: the very same object if it holds none."""
        rounds = 0
        while (redacted := self._once(value)) is not value:
            # A placeholder is an edge that was not there before, so look again until nothing changes; each
            # round leaves fewer characters outside placeholders.
            rounds += 1
            value = redacted if rounds <= _PATIENCE else self._once(redacted, is_glued=True)
        return value

    def json(self, value: Json, opaque: Paths | None = None) -> Json:
        """Return the document with the secrets in its strings and member names replaced.

        The very same object if there is none; the argument is never changed.

        Args:
            value: The document.
            opaque: Where something stands that must come back to the byte, such as a signature: random
                characters, among which a credential's shape is an accident. Only own ``paths`` apply there.
        """
        value = self.at_paths(value)
        # One look at all of it costs less than one at each of its strings, and most hold no secret.
        if not self._rules and not (self.strong and scan_json(value) & Gate.SECRET):
            return value
        kept = {(id(place[0]), place[1]) for place in opaque.places(value)} if opaque else frozenset()
        return self._walk(value, kept)

    def at_paths(self, value: Json) -> Json:
        """Return the document with what stands at own ``paths`` replaced; itself if nothing does."""
        return value if self._places is None else self._without_paths(self._places, value)

    def url(self, url: str) -> str:
        """Return the URL without userinfo, fragment, secret parameters and secrets in path and values.

        The order of the parameters stays, and everything else is as it was to the byte.
        Placeholders are percent-encoded, so that the result is a URL.
        """
        base, mark, query = url.partition("#")[0].partition("?")
        base = self._encoded(_without_userinfo(base))
        if not mark:
            return base
        pieces = query.split("&")
        kept = [piece for piece in pieces if not _is_secret_piece(piece)]
        if not kept:
            return base
        return f"{base}?{'&'.join(map(self._parameter, kept))}"

    def _own_rules(self, compiled: dict[str, re.Pattern[str]]) -> Iterator[_OwnRule]:
        """Yield own patterns in the order given, then the offered weak kinds in the order of the table."""
        for kind, pattern in compiled.items():
            yield pattern, pattern, self._stamp(kind, kind in self.weak)
        for kind, rule in WEAK_RULES.items():
            if kind in self.weak and kind not in compiled:
                loose = re.compile(without_edges(rule.pattern))
                yield re.compile(rule.pattern), loose, self._stamp(kind, True, rule.accept)

    def _stamp(self, kind: str, is_weak: bool, accept: Callable[[str], str | None] | None = None) -> _Stamp:
        key = self._key if is_weak else b""

        def stamp(found: str) -> tuple[int, str] | None:
            secret = accept(found) if accept is not None else found
            if secret is None:
                return None
            digest = keyed_digest(key, secret) if key else public_digest(secret)
            return len(secret), f"<redacted:{kind}:{digest}>"

        return stamp

    def _once(self, value: str, *, is_glued: bool = False) -> str:
        """Run every rule once; on what is glued to placeholders without regard to the edges of a match."""
        spans = _glued_spans if is_glued else free_spans
        if self.strong and len(value) >= _SHORTEST:
            for rule in rules_for(value.encode("utf-8", "surrogatepass")):
                pattern = compiled_rule(without_edges(rule.pattern) if is_glued else rule.pattern)
                value = _substitute(value, pattern, _stamp_strong(rule), spans)
        for pattern, loose, stamp in self._rules:
            value = _substitute(value, loose if is_glued else pattern, stamp, spans)
        return value

    def _walk(self, value: Json, kept: _Kept) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._walk_object(value, kept)
        if isinstance(value, list):
            return self._walk_list(value, kept)
        return value

    def _walk_object(self, value: dict[str, Json], kept: _Kept) -> Json:
        redacted: dict[str, Json] = {}
        is_changed = False
        for name, member in value.items():
            is_kept = bool(kept) and isinstance(member, str) and (id(value), name) in kept
            new_name, new_member = self.text(name), member if is_kept else self._walk(member, kept)
            is_changed = is_changed or new_name is not name or new_member is not member
            redacted[new_name] = new_member
        return redacted if is_changed else value

    def _walk_list(self, value: list[Json], kept: _Kept) -> Json:
        redacted = [self._walk(item, kept) for item in value]
        is_changed = any(new is not old for new, old in zip(redacted, value, strict=True))
        return redacted if is_changed else value

    def _without_paths(self, paths: Paths, value: Json) -> Json:
        if not any(_may_replace(container[place]) for container, place in paths.places(value)):  # type: ignore[index]
            return value
        value = copy.deepcopy(value)
        for container, place in paths.places(value):
            there: Json = container[place]  # type: ignore[index]
            if _may_replace(there):
                container[place] = self._placeholder_for(there)  # type: ignore[index]
        return value

    def _placeholder_for(self, value: Json) -> str:
        # The sign before other values than strings keeps 7 and "7" apart.
        text = value if isinstance(value, str) else f"\0{json.dumps(value, sort_keys=True)}"
        return f"<redacted:path:{keyed_digest(self._key, text)}>"

    def _encoded(self, text: str) -> str:
        """Redact percent-encoded text, in which placeholders are encoded as well."""
        plain = re.sub(_QUOTED_PLACEHOLDER, r"<\1>", text) if "%3Credacted:" in text else text
        redacted = self.text(plain)
        if redacted is text:
            return text
        return re.sub(_PLACEHOLDER, lambda match: f"%3C{match[0][1:-1]}%3E", redacted)

    def _parameter(self, piece: str) -> str:
        redacted = self._encoded(piece)
        name, sign, value = redacted.partition("=")
        if "%" not in value and "+" not in value:
            return redacted
        # A value that is a URL itself shows its secrets only when it is decoded.
        decoded = unquote_plus(value)
        further = self.text(decoded)
        if further is decoded:
            return redacted
        return f"{name}{sign}{quote(further, safe=':', errors='surrogatepass')}"


def without_values(value: Json, values: frozenset[str]) -> Json:
    """Return a document in which no string is one of these values; itself where they are none."""
    if not values:
        return value
    if isinstance(value, str):
        return f"<redacted:credential:{public_digest(value)}>" if value in values else value
    if isinstance(value, dict):
        return {name: without_values(child, values) for name, child in value.items()}
    return [without_values(item, values) for item in value] if isinstance(value, list) else value


def _may_replace(value: Json) -> bool:
    """Not ``null``, which says no more than an absent member, and not what was replaced before."""
    return value is not None and not (isinstance(value, str) and re.fullmatch(_PLACEHOLDER, value))


def _without_userinfo(base: str) -> str:
    head, _, rest = base.partition("//")
    if "@" not in rest or not (head.endswith(":") or not head):
        return base
    authority, slash, path = rest.partition("/")
    return f"{head}//{authority.rpartition('@')[2]}{slash}{path}"


def _is_secret_piece(piece: str) -> bool:
    name, _, value = piece.partition("=")
    return is_secret_query(unquote_plus(name), unquote_plus(value))


def _from_arguments(option: Mapping[str, object]) -> Redaction:
    known = ("strong", "patterns", "paths", "weak")
    arguments = {name: value for name, value in option.items() if name != "key_id"}
    for name in arguments:
        if name not in known:
            raise OptionError(f"redact has no argument {name!r}{nearest_name(str(name), known)}")
    redaction = Redaction(**arguments)  # type: ignore[arg-type]
    wanted = option.get("key_id")
    if wanted is not None and wanted != redaction.as_json().get("key_id"):
        raise OptionError(
            f"the key in {HMAC_KEY_VARIABLE} is not the one that was used to redact (key id {wanted!r}); "
            "set the same key wherever the cassette is used"
        )
    return redaction


def _check_types(strong: object, patterns: object, paths: object, weak: object) -> None:
    if not isinstance(strong, bool):
        raise OptionError(f"redact: strong is {strong!r}; write True or False")
    if not isinstance(patterns, Mapping):
        raise OptionError('redact: patterns is no table; write {"customer": r"C-[0-9]{8}"}')
    for name, value in (("paths", paths), ("weak", weak)):
        if not _is_strings(value):
            raise OptionError(f"redact: {name} is {value!r}; write a list of strings")


def _is_strings(value: object) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(item, str) for item in value)


def _compile(kind: object, pattern: object) -> re.Pattern[str]:
    if not isinstance(kind, str) or not re.fullmatch(_KIND, kind):
        raise OptionError(
            f"redact: {kind!r} is no name for a kind; write up to 32 small letters, digits and hyphens"
        )
    if not isinstance(getattr(pattern, "pattern", pattern), str):
        raise OptionError(
            f"redact: the pattern of {kind!r} is {pattern!r}; write a regular expression for text"
        )
    try:
        return re.compile(cast("str | re.Pattern[str]", pattern))
    except re.error as error:
        raise OptionError(f"redact: the pattern of {kind!r} cannot be read: {error}") from error


_LEADING_FLAGS = r"\A\(\?[aimsux]+\)"


def _source(pattern: re.Pattern[str]) -> str:
    """Return the expression as text, flags given apart written into it."""
    flags = "".join(letter for letter, flag in _FLAGS.items() if pattern.flags & flag)
    bare = re.sub(_LEADING_FLAGS, "", pattern.pattern)
    return f"(?{flags}){bare}" if flags else bare


_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


def _check_weak(weak: Sequence[str], patterns: Mapping[str, object]) -> None:
    known = [*WEAK_RULES, *patterns]
    for kind in weak:
        if kind not in known:
            raise OptionError(
                f"redact: no weak kind is named {kind!r}{nearest_name(kind, known)}; "
                "an own one needs a pattern"
            )


def _hmac_key(paths: Sequence[str], weak: Sequence[str]) -> bytes:
    value = os.environ.get(HMAC_KEY_VARIABLE, "")
    if len(value) < 16:
        asked = [f"the path {path!r}" for path in paths] + [f"the kind {kind!r}" for kind in weak]
        state = "too short" if value else "not set"
        raise OptionError(
            f"redact: values of {', '.join(asked)} can be guessed from a public digest, and "
            f"{HMAC_KEY_VARIABLE} is {state}; "
            "set it to a secret of 16 characters or more, the same one wherever the cassette is used"
        )
    return value.encode("utf-8", "surrogateescape")


#: What applies when nothing is said.
DEFAULT = Redaction()
