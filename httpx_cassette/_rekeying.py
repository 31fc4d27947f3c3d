"""A recording that is written anew: under another key, or accepted as somebody edited it.

The stored request is what every key is computed from, so another policy, other rules or an edited request
give a recording another key without a call. What is not known of a line stays on it.
Nothing here opens a file, and nothing here redacts.
"""

from __future__ import annotations

import re
from typing import Any

from ._call import Json
from ._errors import CassetteDamaged, CassetteError
from ._fingerprint import KEY_VERSION
from ._line import bare, dump_members, has_seal, head_of, parse_line, seal
from ._parsing import NotJson
from ._policy import KeyPolicy
from ._recording import INCOMPARABLE, Recording
from ._verification import recognised, recomputed_key
from .dialects import by_name

__all__ = ["NO_KEY", "rebuilt", "rekeyed", "resealed", "with_member"]

#: What is wrong with a recording whose request is none.
NO_KEY = "it holds no request that a key can be computed of"

#: What a line holds for its key beside the options of a ``KeyPolicy``.
_BESIDE = ("prompt_files", "redact")


def rekeyed(recording: Recording, policy: KeyPolicy) -> bytes:
    """Return the line of a recording under another policy, with the key that it has today.

    The very same bytes where nothing changes. Prompt files and redaction stay as they were recorded.

    Args:
        recording: The recording; it is used up.
        policy: What the key is to depend on.

    Raises:
        CassetteError: No key can be computed of it.
    """
    members = dict(recording.members)
    old = {name: value for name, value in recording.policy.items() if name not in _BESIDE}
    beside = {name: value for name, value in recording.policy.items() if name in _BESIDE}
    new = policy.as_json()
    if old != new:
        members["request"] = _with_headers(recording, old, policy)
        if new or beside:
            members = with_member(members, "policy", {**new, **beside})
        else:
            del members["policy"]
    elif _is_current(recording):
        return recording.line
    else:
        # Read once more: the key uses up what it is computed of.
        again = parse_line(recording.line)
        assert isinstance(again, dict)  # As it was the first time.
        members = again
    return rebuilt(members, recording.path, recording.number)


def _is_current(recording: Recording) -> bool:
    try:
        key = recomputed_key(recording, recognised(recording.members["request"]))
    except INCOMPARABLE as error:
        raise CassetteError(NO_KEY, recording.path, recording.number) from error
    return key == recording.head.key and recording.head.key_version == KEY_VERSION


def _with_headers(recording: Recording, old: dict[str, Json], policy: KeyPolicy) -> Json:
    """Return the request with the headers that the new policy has in the key, and no other."""
    request = recording.members.get("request")
    try:
        stored = KeyPolicy(**old).key_headers  # type: ignore[arg-type]  # it checks them
    except INCOMPARABLE as error:
        raise CassetteError(NO_KEY, recording.path, recording.number) from error
    for name in policy.key_headers:
        if name not in stored:
            raise CassetteError(
                f"the header {name!r} was not stored with the request, so that it cannot enter the key; "
                "record the call again",
                recording.path,
                recording.number,
            )
    if not isinstance(request, dict) or not isinstance(sent := request.get("headers"), dict):
        return request
    kept = {name: value for name, value in sent.items() if name in policy.key_headers}
    return {name: kept if name == "headers" else value for name, value in request.items()}


def with_member(members: dict[str, Any], added: str, value: Json) -> dict[str, Any]:
    """Return members with one more, or another one, where lines have it."""
    if added in members:
        return {**members, added: value}
    placed: dict[str, Any] = {}
    for name, member in members.items():
        placed[name] = member
        if name == "request":
            placed[added] = value
    return placed


def rebuilt(members: dict[str, Any], path: str, number: int) -> bytes:
    """Return the line of members under the key of their request.

    Args:
        members: Everything on the line; its seal and its key are made anew.
        path: The file, for errors.
        number: The line, for errors.

    Raises:
        CassetteError: No key can be computed of them.
    """
    members = {name: value for name, value in members.items() if name != "sum"}
    line = seal(b"{" + dump_members(members))
    head = head_of(members)
    assert head is not None  # It was a recording, and still is.
    try:
        recording = Recording(line, path, number, head)
        key = recomputed_key(recording, recognised(recording.members["request"]))
    except INCOMPARABLE as error:
        raise CassetteError(NO_KEY, path, number) from error
    if key == head.key and head.key_version == KEY_VERSION:
        return line
    # Their places stay: a scanner finds the key without reading the line.
    return seal(b"{" + dump_members({**members, "kv": KEY_VERSION, "key": key.hex()}))


# -- edited by hand ------------------------------------------------------------------------------------


def resealed(line: bytes, path: str, number: int) -> bytes:
    """Return a line that was edited by hand as it is written: with its seal, and the key of its request.

    Where the edit left the order of the members, nothing else changes.

    Args:
        line: The line as it stands in the file, without its ending.
        path: The file, for errors.
        number: The line, for errors.

    Raises:
        CassetteDamaged: It is no recording that can be read.
        CassetteError: No key can be computed of it.
    """
    text = bare(line)
    try:
        members = parse_line(text)
        head = head_of(members)
    except NotJson as error:
        raise CassetteDamaged(f"the line cannot be read: {error}", path, number) from error
    if head is None or not isinstance(members, dict):
        raise CassetteDamaged("the line is no recording", path, number)
    if has_seal(text) and _has_its_key(Recording(text, path, number, head)):
        return seal(_safe(text.rpartition(b',"sum":')[0]))
    return rebuilt(members, path, number)


def _has_its_key(recording: Recording) -> bool:
    """Tell whether the key is that of the request, as it is recognised today or was then."""
    again = Recording(recording.line, recording.path, recording.number, recording.head)
    try:
        return recording.head.key in (
            recomputed_key(recording, recognised(recording.members["request"])),
            recomputed_key(again, by_name(recording.dialect)),
        )
    except INCOMPARABLE as error:
        raise CassetteError(NO_KEY, recording.path, recording.number) from error


# What lines hold as escapes, and what an editor may have written as it is.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def _safe(members: bytes) -> bytes:
    # In JSON such characters stand in strings alone.
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", members.decode("utf-8")).encode("utf-8")
