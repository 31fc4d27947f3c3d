"""The key of a call: what is hashed, and how to see it.

``fingerprint = sha256(b"httpx-cassette key 1\\n" + canonical bytes of the key document)``

The key document is ``{"method", "url", "headers"?, "body"?, "prompt_files"?, "extra"?}``, computed from the
request as it is stored. One function applies the rules for recording, replaying, explaining and verifying:
:func:`key_document`.
Nothing here knows about transports or cassettes, and no provider is named: a dialect is handed in.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ._canonical import (
    MASKS,
    Masker,
    canonical_key_bytes,
    digest_of,
    escape_names,
    fold_defaults,
    remove_places,
    rename_references,
    strip_places,
)
from ._call import Json
from ._errors import OptionError
from ._paths import Paths
from ._request import KEY_HEADERS, normal_url
from ._suggest import nearest_name

if TYPE_CHECKING:
    from .dialects._dialect import Dialect, Folds

__all__ = [
    "DEFAULT_POLICY",
    "KEY_VERSION",
    "RULES",
    "Draft",
    "Key",
    "KeyPolicy",
    "PromptFiles",
    "assemble_document",
    "hash_document",
    "key_document",
]

#: The version of the rules. A change of meaning is a new version, golden vectors and a changelog entry.
KEY_VERSION = 1

PREFIX = f"httpx-cassette key {KEY_VERSION}\n".encode()


# -- the policy ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyPolicy:
    """What a project changes about the key.

    Args:
        ignore: Paths of the JSON body that do not enter the key: ``metadata.run_id``, ``messages[*].name``.
        masks: Kinds of text that change from run to run and are replaced by a placeholder: names out of
            ``date``, ``time``, ``uuid``, ``path`` and ``port``, or a mapping of own names to regular expressions
            (a value of ``None`` takes the built-in one of that name).
        headers: Further request headers that enter the key, by name.
        defaults: ``True`` folds the documented defaults of the dialect, ``False`` folds none, a mapping of
            members to values replaces the dialect's table.
        extra: JSON that enters the key beside the request: ``{"prompt_version": "7"}``.
        host: ``False`` leaves scheme, host and port out of the key (a gateway on a random port).
        strip: ``False`` keeps trailing blanks in conversational text.

    Raises:
        OptionError: A path, a mask or a pattern cannot be meant.
    """

    ignore: Sequence[str] = ()
    masks: Sequence[str] | Mapping[str, str | None] = ()
    headers: Sequence[str] = ()
    defaults: Mapping[str, Json] | bool = True
    extra: Mapping[str, Json] = field(default_factory=dict)
    host: bool = True
    strip: bool = True

    def __post_init__(self) -> None:
        for name in ("ignore", "headers"):
            if isinstance(getattr(self, name), str):
                raise OptionError(f"KeyPolicy({name}=...) takes a list of names, not one text; write [{getattr(self, name)!r}]")
        # Settled now, so that a mistake is met where it was made and a call pays nothing for it.
        _ = self.ignore_paths, self.mask_patterns, self.key_headers, self.is_default

    @cached_property
    def ignore_paths(self) -> Paths:
        """The paths of ``ignore``, ready to walk."""
        return Paths(self.ignore)

    @cached_property
    def mask_patterns(self) -> dict[str, re.Pattern[str]]:
        """Name and pattern of every mask, in the order they apply."""
        masks = [self.masks] if isinstance(self.masks, str) else self.masks
        pairs = masks.items() if isinstance(masks, Mapping) else [(name, None) for name in masks]
        return {name: _mask_pattern(name, pattern) for name, pattern in pairs}

    @cached_property
    def key_headers(self) -> tuple[str, ...]:
        """Names in lower case of every header that enters the key."""
        return (*KEY_HEADERS, *(name.lower() for name in self.headers if name.lower() not in KEY_HEADERS))

    @cached_property
    def is_default(self) -> bool:
        """Whether nothing was changed."""
        return not self.as_json()

    def as_json(self) -> dict[str, Json]:
        """Return what differs from the default, as it is stored beside a recording."""
        changed: dict[str, Json] = {}
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name == "masks":
                value = dict(self.masks) if isinstance(self.masks, Mapping) else list(self.mask_patterns)
            elif isinstance(value, Mapping):
                value = dict(value)
            elif not isinstance(value, bool):
                value = list(value)
            if value not in (True, [], {}) or (option.name == "defaults" and value == {}):
                changed[option.name] = value
        return changed


_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def _mask_pattern(name: str, pattern: str | None) -> re.Pattern[str]:
    if pattern is None:
        if name not in MASKS:
            raise OptionError(
                f"there is no mask {name!r}{nearest_name(name, MASKS)}; give an own one its pattern: "
                f"KeyPolicy(masks={{{name!r}: r'...'}})"
            )
        return MASKS[name]
    if not _NAME.fullmatch(name):
        raise OptionError(f"the mask name {name!r} must be lower-case letters, digits and underscores")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise OptionError(f"the pattern of the mask {name!r} cannot be read: {error}") from error


DEFAULT_POLICY = KeyPolicy()


# -- the key document ----------------------------------------------------------------------------------

BODY_KINDS = ("json", "text", "form", "parts", "bytes")


class Key(NamedTuple):
    """The key of one call.

    Args:
        digest: The fingerprint, 32 bytes.
        folded: Members of the body that were sent and left out because they say what the default says.
    """

    digest: bytes
    folded: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The fingerprint, 64 hex digits."""
        return self.digest.hex()


@dataclass(slots=True)
class Draft:
    """A stored request on its way to the key document; the rules change it in place.

    Args:
        request: The request as stored.
        dialect: The wire format of the call.
        policy: What the project changes.
        host: The host of the call in lower case.
        may_have_dollar: ``False`` where it is known that no member name begins with ``$``.
        folded: Members dropped because they say what the default says.
    """

    request: dict[str, Json]
    dialect: Dialect
    policy: KeyPolicy
    host: str
    may_have_dollar: bool = True
    folded: list[str] = field(default_factory=list)


def apply_ignore(draft: Draft) -> None:
    """Remove what the policy ignores."""
    if draft.policy.ignore:
        remove_places(draft.request.get("json"), draft.policy.ignore_paths)


def apply_strip(draft: Draft) -> None:
    """Strip trailing blanks, line by line, in conversational text; not in a prefill."""
    body = draft.request.get("json")
    if not draft.policy.strip or not isinstance(body, (dict, list)):
        return
    places = draft.dialect.text.places(body)
    prefill = _prefill(body, draft.dialect)
    if prefill is not None:
        content = prefill.get("content")
        kept = [prefill, *(content if isinstance(content, list) else ())]
        places = [place for place in places if not any(place[0] is part for part in kept)]
    strip_places(places)


def _prefill(body: Json, dialect: Dialect) -> dict[str, Json] | None:
    turns = body.get(dialect.turns) if dialect.turns is not None and isinstance(body, dict) else None
    last = turns[-1] if isinstance(turns, list) and turns else None
    return last if isinstance(last, dict) and last.get("role") in dialect.prefill_roles else None


def apply_masks(draft: Draft) -> None:
    """Replace what the policy masks, in string values."""
    if not draft.policy.mask_patterns:
        return
    masker = Masker(draft.policy.mask_patterns)
    for kind in BODY_KINDS:
        if kind in draft.request:
            draft.request[kind] = masker.document(draft.request[kind])


def apply_folds(draft: Draft) -> None:
    """Drop what says the same as nothing: documented defaults, nulls, empty members, one-part lists."""
    body, folds, policy = draft.request.get("json"), draft.dialect.folds, draft.policy
    if not isinstance(body, dict) or policy.defaults is False:
        return
    replaced = None if policy.defaults is True else policy.defaults
    kept = folds.sampling if replaced is None and folds.sampling and folds.decides_sampling(draft.host) else ()
    for container, step in folds.single_text.places(body):
        container[step] = _single_text(container[step])  # type: ignore[index]
    for container, step in folds.empty_below.places(body):
        if isinstance(container, dict) and _is_empty(container[step]):  # type: ignore[index]
            del container[step]  # type: ignore[arg-type]
    if replaced is None:
        for paths, defaults in folds.below:
            for container, step in paths.places(body):
                members = container[step]  # type: ignore[index]
                if isinstance(members, dict):
                    draft.folded += fold_defaults(members, defaults)
    for name in [name for name, value in body.items() if not value and _says_nothing(name, value, folds)]:
        del body[name]
    only_with = folds.only_with
    draft.folded += fold_defaults(
        body,
        folds.defaults if replaced is None else replaced,
        lambda name: name not in kept and (replaced is not None or name not in only_with or only_with[name] in body),
    )


def _is_empty(value: Json) -> bool:
    return value is None or value == [] or value == {}


def _says_nothing(name: str, value: Json, folds: Folds) -> bool:
    return (value is None and name in folds.null) or (name in folds.empty and _is_empty(value))


def _single_text(value: Json) -> Json:
    """Return the text of a list that holds one text part and nothing else, or the value as it is."""
    if isinstance(value, list) and len(value) == 1:
        part = value[0]
        if isinstance(part, dict) and len(part) == 2 and part.get("type") == "text":
            text = part.get("text")
            return text if isinstance(text, str) else value
    return value


def apply_rename(draft: Draft) -> None:
    """Rename the ids that only tie a call to its result."""
    body = draft.request.get("json")
    if draft.dialect.references and isinstance(body, dict):
        rename_references(draft.dialect.references.places(body))


def apply_names(draft: Draft) -> None:
    """Escape member names that begin with ``$``: the digests of long strings need that space."""
    if draft.may_have_dollar and "json" in draft.request:
        draft.request["json"] = escape_names(draft.request["json"], reserved_only=False)


#: The rules of the key that change a body, in order, under the names that explanations use.
RULES: tuple[tuple[str, Callable[[Draft], None]], ...] = (
    ("ignore", apply_ignore),
    ("strip", apply_strip),
    ("mask", apply_masks),
    ("fold", apply_folds),
    ("rename", apply_rename),
    ("names", apply_names),
)


def key_document(draft: Draft, prompt_files: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Apply the rules and return the key document, before long strings become digests.

    Args:
        draft: The stored request. It is used up: its parts become parts of the document.
        prompt_files: Digest of every prompt file by name.
    """
    for _, rule in RULES:
        rule(draft)
    return assemble_document(draft, prompt_files)


def assemble_document(draft: Draft, prompt_files: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Return the key document of a draft as it stands."""
    request, policy = draft.request, draft.policy
    document: dict[str, Json] = {
        "method": request["method"],
        "url": _cached_url(str(request["url"]), policy.host),
    }
    if "headers" in request:
        document["headers"] = _split_betas(request["headers"])
    for kind in BODY_KINDS:
        if kind in request:
            document["body"] = {kind: sorted_form(request[kind]) if kind == "form" else request[kind]}
    if prompt_files:
        document["prompt_files"] = dict(prompt_files)
    if policy.extra:
        document["extra"] = copy.deepcopy(dict(policy.extra))
    return document


@lru_cache(maxsize=512)
def _cached_url(url: str, host: bool) -> str:
    return normal_url(url, host=host)


def sorted_form(fields: Json) -> Json:
    """Return form fields sorted by name, the order of repeats kept."""
    assert isinstance(fields, list)
    return sorted(fields, key=lambda pair: str(pair[0]))  # type: ignore[index]


def _split_betas(headers: Json) -> Json:
    """Return the headers of the key: lists of betas as sorted lists, others as sent."""
    assert isinstance(headers, dict)
    return {
        name: sorted(filter(None, map(str.strip, str(value).split(",")))) if name in KEY_HEADERS else value
        for name, value in headers.items()
    }


def hash_document(document: dict[str, Json]) -> bytes:
    """Return the fingerprint of a key document, 32 bytes. The document is used up."""
    return hashlib.sha256(PREFIX + canonical_key_bytes(document)).digest()


# -- prompt files --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PromptFiles:
    """Files whose bytes enter the key, read at each call.

    Args:
        files: A mapping of names to paths, or paths, which are named relative to the folder of the nearest
            ``pyproject.toml`` with ``/`` between folders, so that two machines give one key.

    Raises:
        OptionError: Two files have one name.
    """

    files: Mapping[str, str | os.PathLike[str]] | Sequence[str | os.PathLike[str]] | str = ()

    def __bool__(self) -> bool:
        return bool(self.named)

    @cached_property
    def named(self) -> dict[str, Path]:
        """Path of every file by its name in the key."""
        if isinstance(self.files, Mapping):
            return {name: Path(path) for name, path in self.files.items()}
        paths = [self.files] if isinstance(self.files, (str, os.PathLike)) else self.files
        named: dict[str, Path] = {}
        for path in map(Path, paths):
            name = _name_from_project(path)
            if name in named:
                raise OptionError(f"two prompt files are named {name!r}; give them names: prompt_files={{'a': path}}")
            named[name] = path
        return named

    def digests(self) -> dict[str, Json]:
        """Return the digest of every file's bytes as they are now, by name.

        Raises:
            OptionError: A file cannot be read.
        """
        return {name: digest_of(_read_file(name, path)) for name, path in self.named.items()}


def _read_file(name: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OptionError(f"the prompt file {name!r} cannot be read: {error.strerror}", str(path)) from error


def _name_from_project(path: Path) -> str:
    whole = path.absolute()
    for folder in whole.parents:
        if (folder / "pyproject.toml").is_file():
            return whole.relative_to(folder).as_posix()
    return path.as_posix()
