"""Which option would make a difference go away, where the difference looks like one of every run.

A hint is given only if it works: masked, both sides are equal, numbers of placeholders included.
Nothing here knows how a mask works; the function that applies one is handed in.
Only the JSON body can be masked or ignored, and of the URL the host can be left out of the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ._call import Json
from ._difference import MISSING, Change, Missing
from ._excerpt import escape
from ._paths import Step, render_path, split_path

__all__ = ["Hint", "Mask", "Masks", "body_path", "hint"]

#: Applies the mask of a name to a text.
Mask: TypeAlias = Callable[[str, str], str]

#: Masks as a policy takes them: names of built-in ones, or names with the pattern of own ones.
Masks: TypeAlias = Sequence[str] | Mapping[str, str | None]

# What no built-in mask takes is offered as an own one: name and pattern.
_OWN_MASKS = {
    "random_id": r"(?<![0-9A-Za-z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,64}(?![0-9A-Za-z])",
    "timestamp": r"(?<![0-9A-Za-z])[12][0-9]{9}(?:[0-9]{3})?(?![0-9A-Za-z])",
}

# In the order in which they are tried and applied: the built-in masks first.
_MASK_NAMES = ("date", "time", "uuid", "path", "port", *_OWN_MASKS)

# Their placeholders say when, refer to nothing and carry no number.
_UNNUMBERED = frozenset({"date", "time"})

# Longer texts are not tried, nor documents with more text than this: a report must not take seconds.
_TRIED = 200_000
_TRIED_IN_ALL = 2_000_000

# Cannot be matched by a mask and never changed by one.
_BETWEEN = "\n\x1f\n"

# Members of a request that say who or which run is asking, and not what is asked.
_VOLATILE_MEMBERS = {
    *("metadata", "labels", "user", "user_id", "safety_identifier", "prompt_cache_key"),
    *("previous_response_id", "conversation", "conversation_id", "thread", "thread_id"),
    *("session_id", "run_id", "request_id", "trace_id"),
}

# Members whose value is the question itself: never to be ignored, whatever it looks like.
_CONTENT_MEMBERS = {
    *("content", "contents", "parts", "text", "input", "prompt", "system", "instructions"),
    *("arguments", "data", "model"),
}

_INDEX = re.compile(r"\[\d+\]$")

_RANDOM = re.compile(
    r"""
      [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}   # a UUID
    | (?=[a-f]*[0-9])[0-9a-f]{8,}                   # a hexadecimal id
    | [a-z]{1,16}[-_](?=[a-z]*[0-9])[0-9a-z]{8,}    # an id with a prefix: run_1f9c2b7a
    | \d{4}-\d\d-\d\d(?:[T\ ][0-9:.,]+(?:Z|[+-]\d\d:?\d\d)?)?
    | \d\d:\d\d(?::\d\d(?:[.,]\d+)?)?
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Hint:
    """An option to paste, and what it would do.

    Args:
        option: The option as it is written in a call.
        paths: The changes that it would make go away.
    """

    option: str
    paths: tuple[str, ...]


def hint(
    changes: Sequence[Change],
    mask: Mask,
    *,
    documents: tuple[Json, Json] | None = None,
    ignore: tuple[str, ...] = (),
    masks: Masks = (),
) -> Hint | None:
    """Return the option, ready to paste, that would make volatile differences go away, or ``None``.

    Args:
        changes: Where a recording and a call differ.
        mask: Applies the mask of a name to a text.
        documents: The recorded document and the one asked for; with them the numbers of placeholders are
            checked over the whole document.
        ignore: Paths that the policy in force ignores already; they are kept in the hint.
        masks: The masks of the policy in force; they are kept too.
    """
    plan = _Plan(mask)
    for change in changes:
        plan.consider(change)
    if documents and not plan.holds(changes, documents):
        plan.drop_references()
    return plan.hint(ignore, masks)


def body_path(path: str) -> str | None:
    """Return a path of a key document relative to its JSON body, or ``None`` when it is not in there."""
    if not path.startswith(("body.json.", "body.json[")):
        return None
    return path[len("body.json") :].removeprefix(".")


class _Plan:
    """What to ignore and what to mask, change by change."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.ignored: dict[str, str] = {}
        self.masked: dict[str, tuple[str, ...]] = {}
        self.host: str | None = None

    def consider(self, change: Change) -> None:
        """Find a way to make one change go away."""
        if change.path == "url":
            if _is_other_host(change.old, change.new):
                self.host = change.path
            return
        below = body_path(change.path)
        if below is None:
            return
        steps = split_path(below)
        if steps[0] in _VOLATILE_MEMBERS:
            self._ignore(change.path, steps)
        elif found := self._masks_for(change.old, change.new):
            self.masked[change.path] = found
        elif _looks_random(change.old) and _looks_random(change.new) and _may_be_ignored(steps):
            self._ignore(change.path, steps)

    def holds(self, changes: Sequence[Change], documents: tuple[Json, Json]) -> bool:
        """Tell whether the masks make both documents equal where they are meant to.

        A UUID that stands in two places must have been replaced in both: the numbers of its placeholders
        show that only over the whole document. Where items were inserted, the documents stay different
        and their numbers say nothing.
        """
        if any(map(_shifts_items, changes)):
            return True
        others = [change.path for change in changes if change.path not in self.masked]
        names = self._names()
        recorded, asked = (dict(_texts(document)) for document in documents)
        below = tuple(path + end for path in others for end in (".", "["))
        common = [path for path in asked if path in recorded and not f"{path}.".startswith(below)]
        joined = [_BETWEEN.join(texts[path] for path in common) for texts in (recorded, asked)]
        if len(joined[0]) > _TRIED_IN_ALL:
            return False
        return self._apply(names, joined[0]) == self._apply(names, joined[1])

    def drop_references(self) -> None:
        """Give up the masks whose placeholders are numbered."""
        self.masked = {path: names for path, names in self.masked.items() if _UNNUMBERED.issuperset(names)}

    def hint(self, ignore: tuple[str, ...], masks: Masks) -> Hint | None:
        """Return the option that does all of it."""
        paths = (*self.ignored, *self.masked, *([self.host] if self.host else []))
        if not paths:
            return None
        named = [masks] if isinstance(masks, str) else masks
        in_force = named if isinstance(named, Mapping) else dict.fromkeys(named)
        wanted = {**in_force, **{name: _OWN_MASKS.get(name) for name in self._names()}}
        members = [
            f"ignore={_tuple((*ignore, *self.ignored.values()))}" if ignore or self.ignored else "",
            f"masks={_tuple(wanted) if set(wanted.values()) == {None} else _mapping(wanted)}"
            if wanted
            else "",
            "host=False" if self.host else "",
        ]
        return Hint(f"key_policy=KeyPolicy({', '.join(filter(None, members))})", paths)

    def _ignore(self, path: str, steps: Sequence[Step]) -> None:
        text = ""
        for step in steps:
            # Every index: in the next run the same member stands at another one.
            piece = render_path([step]) if isinstance(step, str) else "[*]"
            text += piece if not text or piece.startswith("[") else f".{piece}"
        self.ignored[path] = text

    def _masks_for(self, old: Json | Missing, new: Json | Missing) -> tuple[str, ...]:
        """Return the fewest masks that make two texts equal, or none."""
        if not (isinstance(old, str) and isinstance(new, str)) or max(len(old), len(new)) > _TRIED:
            return ()
        names: tuple[str, ...] = _MASK_NAMES
        if self._apply(names, old) != self._apply(names, new):
            return ()
        for name in _MASK_NAMES:
            fewer = tuple(other for other in names if other != name)
            if self._apply(fewer, old) == self._apply(fewer, new):
                names = fewer
        return names

    def _apply(self, names: Sequence[str], text: str) -> str:
        for name in names:
            text = _mask_own(name, text) if name in _OWN_MASKS else self._mask(name, text)
        return text

    def _names(self) -> tuple[str, ...]:
        used = {name for names in self.masked.values() for name in names}
        return tuple(name for name in _MASK_NAMES if name in used)


def _tuple(values: Iterable[str]) -> str:
    """Return a tuple of texts, each once, as Python writes it."""
    quoted = [_quoted(text) for text in dict.fromkeys(values)]
    return f"({', '.join(quoted)}{',' if len(quoted) == 1 else ''})"


def _mapping(values: Mapping[str, str | None]) -> str:
    pairs = [f"{_quoted(name)}: {text and _quoted(text)}" for name, text in values.items()]
    return f"{{{', '.join(pairs)}}}"


def _quoted(text: str) -> str:
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escape(plain)}"'


def _mask_own(name: str, text: str) -> str:
    """Apply one of our own patterns as a policy would: numbered, placeholders left alone."""
    seen: dict[str, int] = {}

    def placeholder(found: re.Match[str]) -> str:
        value = found["found"]
        return f"<{name}:{seen.setdefault(value, len(seen) + 1)}>" if value else found[0]

    return re.sub(f"<[^<>]{{1,100}}>|(?P<found>{_OWN_MASKS[name]})", placeholder, text)


def _may_be_ignored(steps: Sequence[Step]) -> bool:
    """Tell whether a place is neither what is asked nor part of the schema of a tool."""
    return "properties" not in steps and steps[-1] not in _CONTENT_MEMBERS and not isinstance(steps[-1], int)


def _shifts_items(change: Change) -> bool:
    return MISSING in (change.old, change.new) and _INDEX.search(change.path) is not None


def _looks_random(value: Json | Missing) -> bool:
    if isinstance(value, str):
        return len(value) <= 200 and (_RANDOM.fullmatch(value) is not None or _is_timestamp(value))
    return isinstance(value, (int, float)) and _is_timestamp(str(value))


def _is_timestamp(text: str) -> bool:
    """Tell whether a number is a Unix time between 2001 and 2096, in seconds or milliseconds."""
    return re.fullmatch(r"[1-3]\d{9}(?:\d{3})?(?:\.\d+)?", text) is not None


def _is_other_host(old: Json | Missing, new: Json | Missing) -> bool:
    ends = [re.sub(r"^[a-z]+://[^/?]*", "", text) for text in (old, new) if isinstance(text, str)]
    return len(ends) == 2 and ends[0] == ends[1]


def _texts(value: Json, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield every text below a value with its path."""
    if isinstance(value, str):
        yield render_path(steps), value
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from _texts(child, (*steps, name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _texts(child, (*steps, index))
