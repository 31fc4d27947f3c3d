"""What a project changes about the key, checked where it is written.

Nothing here knows how the options are applied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

from ._call import Json
from ._canonical import canonical_bytes
from ._errors import OptionError
from ._masking import MASKS
from ._parsing import NotJson, parse_json
from ._paths import Paths
from ._request import KEY_HEADERS
from ._suggest import nearest_name

__all__ = ["DEFAULT_POLICY", "KeyPolicy"]


@dataclass(frozen=True)
class KeyPolicy:
    """What a project changes about the key.

    Args:
        ignore: Paths of the JSON body that do not enter the key: ``metadata.run_id``, ``messages[*].name``.
        masks: Kinds of text that change from run to run and are replaced by a placeholder: names out of
            ``date``, ``time``, ``uuid``, ``path`` and ``port``, or a mapping of own names to regular
            expressions (a value of ``None`` takes the built-in one of that name).
        headers: Further request headers that enter the key, by name.
        defaults: ``True`` folds the documented defaults of the dialect, ``False`` folds none, a mapping of
            members to values replaces the dialect's table.
        extra: JSON that enters the key beside the request: ``{"prompt_version": "7"}``.
        host: ``False`` leaves scheme, host and port out of the key (a gateway on a random port).
        strip: ``False`` keeps trailing blanks in conversational text.

    Raises:
        OptionError: An argument is not understood; the message says what it takes.
    """

    ignore: Sequence[str] = ()
    masks: Sequence[str] | Mapping[str, str | None] = ()
    headers: Sequence[str] = ()
    defaults: Mapping[str, Json] | bool = True
    extra: Mapping[str, Json] = field(default_factory=dict)
    host: bool = True
    strip: bool = True

    def __post_init__(self) -> None:
        _check_names("ignore", self.ignore)
        _check_names("headers", self.headers)
        for name in ("host", "strip"):
            if not isinstance(getattr(self, name), bool):
                raise OptionError(f"KeyPolicy({name}={getattr(self, name)!r}) takes True or False")
        # Settled now, so that a mistake is met where it was made, a call pays nothing for it, and what the
        # caller does to a mapping later changes no key.
        settled = {
            "defaults": self.defaults
            if isinstance(self.defaults, bool)
            else _snapshot("defaults", self.defaults),
            "extra": _snapshot("extra", self.extra),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        _ = self.ignore_paths, self.mask_patterns, self.key_headers, self.is_default

    @cached_property
    def ignore_paths(self) -> Paths:
        """The paths of ``ignore``, ready to walk."""
        return Paths(self.ignore)

    @cached_property
    def mask_patterns(self) -> dict[str, re.Pattern[str]]:
        """Name and pattern of every mask, in the order they apply."""
        masks = [self.masks] if isinstance(self.masks, str) else self.masks
        if not isinstance(masks, (Mapping, list, tuple)):
            raise OptionError(f"KeyPolicy(masks={masks!r}) takes names, or a mapping of names to patterns")
        pairs = masks.items() if isinstance(masks, Mapping) else [(name, None) for name in masks]
        return {name: _mask_pattern(name, pattern) for name, pattern in pairs}

    @cached_property
    def key_headers(self) -> tuple[str, ...]:
        """Names in lower case of every header that enters the key, each once."""
        return tuple(dict.fromkeys([*KEY_HEADERS, *map(str.lower, self.headers)]))

    @cached_property
    def is_default(self) -> bool:
        """Whether nothing was changed."""
        return not self._changed()

    def as_json(self) -> dict[str, Json]:
        """Return what differs from the default, as it is stored beside a recording."""
        return {} if self.is_default else self._changed()

    def _changed(self) -> dict[str, Json]:
        changed: dict[str, Json] = {}
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name == "masks":
                value = dict(value) if isinstance(value, Mapping) else list(self.mask_patterns)
            elif isinstance(value, Mapping):
                value = dict(value)
            elif not isinstance(value, bool):
                value = list(value)
            if value not in (True, [], {}) or (option.name == "defaults" and value == {}):
                changed[option.name] = value
        return changed


def _check_names(option: str, value: object) -> None:
    if isinstance(value, str):
        raise OptionError(f"KeyPolicy({option}={value!r}) takes a list of names; write [{value!r}]")
    if not isinstance(value, (list, tuple)):
        raise OptionError(f"KeyPolicy({option}={value!r}) takes a list of names")
    for name in value:
        if not isinstance(name, str) or (option == "headers" and not _HEADER.fullmatch(name)):
            raise OptionError(f"KeyPolicy({option}=...) cannot hold {name!r}; it takes names")


# A token of RFC 9110: other names cannot be sent.
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _snapshot(option: str, value: object) -> dict[str, Json]:
    """Return a copy of what was given, as the JSON that it will be stored as.

    Raises:
        OptionError: It is no mapping of names to JSON.
    """
    if not isinstance(value, Mapping):
        wanted = "True, False or a mapping" if option == "defaults" else "a mapping"
        raise OptionError(f"KeyPolicy({option}={value!r}) takes {wanted} of names to JSON values")
    try:
        copy = parse_json(canonical_bytes(_plain(value)))
    except (NotJson, TypeError, ValueError, RecursionError) as error:
        raise OptionError(f"KeyPolicy({option}=...) holds what is not JSON: {error}") from error
    assert isinstance(copy, dict)
    return copy


def _plain(value: object) -> Json:
    """Return mappings and sequences of any class as those of JSON.

    Raises:
        TypeError: Something else stands there.
    """
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"the name {name!r} is no text")
        return {name: _plain(child) for name, child in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(child) for child in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{value!r} is a {type(value).__name__}")


_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def _mask_pattern(name: object, pattern: object) -> re.Pattern[str]:
    if not isinstance(name, str) or not isinstance(pattern, (str, type(None))):
        raise OptionError(
            f"KeyPolicy(masks=...) cannot hold {name!r}: {pattern!r}; it takes names, and patterns as text"
        )
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


#: What applies when nothing is said.
DEFAULT_POLICY = KeyPolicy()
