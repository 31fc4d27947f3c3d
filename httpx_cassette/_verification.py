"""What is wrong with the recordings of a cassette: line by line, whatever it is, with the number of the line.

The seal of a line says that it is as it was written. What is looked for beside that: that it can be read
within the limits, that no name stands twice in an object, that an answer can be made of it, that its key is
that of its request, and that no other line gives another answer to the same call.
Nothing here writes, and only the index stays in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson

from ._answer import check_answer
from ._call import Json
from ._cassette import Cassette
from ._errors import CassetteDamaged
from ._fingerprint import hash_document
from ._index import Damage
from ._policy import DEFAULT_POLICY, KeyPolicy
from ._recording import INCOMPARABLE, Recording
from ._stored_key import document_of
from .dialects import Dialect, by_name, is_known, recognise

__all__ = ["recognised", "recomputed_key", "verify"]


def verify(
    cassette: Cassette,
    tell: Callable[[int], None] = lambda size: None,
    *,
    unjudged: Counter[str] | None = None,
) -> Iterator[Damage]:
    """Yield what is wrong, as it is found; a line may be named more than once.

    Args:
        cassette: The cassette.
        tell: Told of the size of each line when it was looked at.
        unjudged: Counts the recordings of each dialect that is not registered in this process: without its
            rules nothing can be said about their keys.

    Raises:
        CassetteError: The file as a whole cannot be trusted, or cannot be read.
    """
    unjudged = Counter() if unjudged is None else unjudged
    for recording in cassette.oldest_first():
        for reason in _faults(recording, unjudged):
            yield Damage(recording.number, reason)
        tell(len(recording.line) + 1)
    # Damaged lines, and those that contradict each other: most of it is known by now.
    yield from cassette.check()


def _faults(recording: Recording, unjudged: Counter[str]) -> Iterator[str]:
    try:
        members = recording.members
    except CassetteDamaged as error:
        yield error.message
        return
    if not _is_as_written(members, recording.line) and (name := _repeated_name(recording.line)) is not None:
        yield f"the name {name!r} stands twice in an object"
    if (fault := _fault_of_response(recording)) is not None:
        yield fault
    if not is_known(recording.dialect):
        unjudged[recording.dialect] += 1
    elif (fault := _fault_of_key(recording)) is not None:
        yield fault


# -- names that stand twice ----------------------------------------------------------------------------


def _is_as_written(members: dict[str, Any], line: bytes) -> bool:
    """Tell whether JSON is written as it was read: nothing was lost on the way. The usual, fast case."""
    try:
        return orjson.dumps(members) == line
    except TypeError:
        return False


def _repeated_name(line: bytes) -> str | None:
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        names: set[str] = set()
        for name, _ in pairs:
            if name in names:
                found.append(name)
            names.add(name)

    json.loads(line.decode("utf-8"), object_pairs_hook=look, parse_int=str, parse_float=str)
    return found[0] if found else None


# -- the answer ----------------------------------------------------------------------------------------

_BODIES = ("json", "text", "base64", "script")


def _fault_of_response(recording: Recording) -> str | None:
    """Return why a replay would stop, or why another reader could take the answer for another one."""
    response = recording.members.get("response")
    bodies = [name for name in _BODIES if name in response] if isinstance(response, dict) else []
    if len(bodies) > 1:
        return f"its answer has {' and '.join(bodies)}, and exactly one of {', '.join(_BODIES)} is due"
    try:
        check_answer(recording)
    except CassetteDamaged as error:
        return error.message
    return None


# -- the key -------------------------------------------------------------------------------------------


def _fault_of_key(recording: Recording) -> str | None:
    key, written = recording.head.key, by_name(recording.dialect)
    try:
        request = recording.members["request"]
        now = recognised(request)
        if recomputed_key(recording, now, request=request) == key:
            return None
        if now is not written and recomputed_key(recording, written) == key:
            return (
                f"recorded as {written.name}, and such a call is {now.name} by now: none finds it any more; "
                f"{_ANEW}"
            )
    except INCOMPARABLE:
        return f"it holds no request that a key can be computed of; restore the line, or {_ANEW}"
    return (
        "its key is not that of its request: edited by hand, or written by something else; "
        f"restore the line, or {_ANEW}"
    )


#: What can be done about a recording that no call finds.
_ANEW = "record the call again with HTTPX_CASSETTE_MODE=rerecord"


def recognised(request: dict[str, Json]) -> Dialect:
    """Return the wire format of a stored request, as it is recognised today."""
    return recognise(urlsplit(str(request["url"])).path, request.get("json"))


def recomputed_key(
    recording: Recording,
    dialect: Dialect,
    without: Sequence[str] = (),
    *,
    request: dict[str, Json] | None = None,
) -> bytes:
    """Return the key of a stored request under the policy on its line.

    Args:
        recording: The recording.
        dialect: The wire format that it is taken for.
        without: Paths of the body that are left out besides.
        request: Its request, where it has been read and may be used up.

    Raises:
        Exception: One of ``INCOMPARABLE``: its request or its policy is none.
    """
    # Prompt files enter by their content, and redaction was done before the request was stored.
    policy = {name: each for name, each in recording.policy.items() if name not in ("prompt_files", "redact")}
    if without:
        policy["ignore"] = [*(policy.get("ignore") or ()), *without]  # type: ignore[misc]  # it checks them
    # To make one for each line takes as long as all the rest.
    settled = KeyPolicy(**policy) if policy else DEFAULT_POLICY  # type: ignore[arg-type]  # it checks them
    return hash_document(document_of(recording, settled, dialect, request=request))
