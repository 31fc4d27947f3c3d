"""A recording under today's redaction: what was stored before a rule was there, and lines of other kinds.

The request, the answer and what else stands on the line are redacted by the functions that recording uses,
and the key is that of the redacted request: a call that is redacted alike finds it.
What cannot be redacted is refused, never left. Nothing here opens a file.
"""

from __future__ import annotations

import base64
import os
from typing import Any

from ._call import Call, Json
from ._errors import CassetteDamaged, CassetteError
from ._line import dump_json, dump_members, has_seal, parse_line, seal
from ._live_stream import opaque_in, redacted_answer, redacted_script, stored_bytes
from ._parsing import NotJson
from ._pieces import pieced_texts
from ._recording import INCOMPARABLE, Recording
from ._redact import Redaction
from ._rekeying import NO_KEY, rebuilt, with_member
from ._request import redacted_request
from ._rules import join_text
from ._sink import redacted_header
from ._tripwire import Tripwire
from ._verification import recognised
from .dialects import Dialect, by_name

__all__ = ["cleaned", "cleaned_other", "spelled_texts"]

#: Members that say nothing that was said in the call.
_FACTS = frozenset({"v", "kv", "key", "sample", "gen", "at", "dialect", "ms", "policy", "sum"})


def cleaned(recording: Recording, redaction: Redaction) -> bytes:
    """Return the line of a recording under a redaction; the very same bytes where nothing changes.

    Args:
        recording: The recording.
        redaction: What must not stay in it.

    Raises:
        CassetteError: It cannot be redacted, or a credential of the environment would still stand in it.
    """
    path, number = recording.path, recording.number
    try:
        members = _members(recording, redaction)
    except CassetteError as error:
        raise type(error)(error.message, path, number) from error
    except INCOMPARABLE as error:
        raise CassetteError(NO_KEY, path, number) from error
    line = recording.line if members == recording.members else rebuilt(members, path, number)
    found = Tripwire(Call("GET", "", (), b""), os.environ).find(line)
    if found is not None:
        raise CassetteError(
            f"{found} would still stand in it; have it redacted by a pattern of your own: "
            "[tool.httpx_cassette.redact] patterns = {my-secret = '...'}",
            path,
            number,
        )
    return line


def _members(recording: Recording, redaction: Redaction) -> dict[str, Any]:
    request = recording.request
    now, then = recognised(request), by_name(recording.dialect)
    members: dict[str, Any] = {}
    for name, value in recording.members.items():
        if name == "request":
            members[name] = redacted_request(request, redaction, now)
        elif name == "response":
            members[name] = _response(value, then, redaction)
        else:
            members[name] = value if name in _FACTS else redaction.json(value)
    return _with_redaction(members, recording.policy, redaction)


def _with_redaction(members: dict[str, Any], old: dict[str, Json], redaction: Redaction) -> dict[str, Any]:
    """Return the members with what a call must be redacted by to find them."""
    former = old.get("redact")
    former_key = former.get("key_id") if isinstance(former, dict) else None
    if former_key is not None and former_key != redaction.as_json().get("key_id"):
        raise CassetteError(
            f"it was redacted with another key (key id {former_key!r}), and can only be with that one again"
        )
    policy = {name: value for name, value in old.items() if name != "redact"}
    if not redaction.is_default:
        policy["redact"] = redaction.as_json()
    if policy:
        return with_member(members, "policy", policy)
    return {name: value for name, value in members.items() if name != "policy"}


def _response(response: Any, dialect: Dialect, redaction: Redaction) -> dict[str, Json]:
    if not isinstance(response, dict):
        raise CassetteDamaged("no answer can be made of it: there is no response")
    stored: dict[str, Json] = {}
    for name, value in response.items():
        if name == "headers" and isinstance(value, dict):
            stored[name] = {each: redacted_header(each, str(text), redaction) for each, text in value.items()}
        elif name == "json":
            stored[name] = redacted_answer(value, redaction, dialect.answer_opaque)
        elif name == "script":
            stored[name] = _script(response, dialect, redaction)
        elif name == "base64":
            stored.update(stored_bytes(base64.b64decode(value, validate=True), redaction))
        else:
            stored[name] = redaction.json(value)
    return stored


def _script(response: dict[str, Any], dialect: Dialect, redaction: Redaction) -> Json:
    table = dialect.stream_in(str(response.get("framing", "sse")))
    is_assembled = response.get("stored") != "verbatim"
    return redacted_script(response["script"], table, is_assembled, redaction, opaque_in(table))


def cleaned_other(line: bytes, redaction: Redaction) -> bytes | None:
    """Return a line of another kind than a recording without its secrets, or ``None`` where it is no JSON."""
    try:
        members = parse_line(line)
    except NotJson:
        return None
    if not isinstance(members, dict):
        return None
    redacted = redaction.json(members)
    if redacted is members or not isinstance(redacted, dict):
        return line
    if not has_seal(line):
        return dump_json(redacted)
    return seal(b"{" + dump_members({name: value for name, value in redacted.items() if name != "sum"}))


def spelled_texts(line: bytes) -> list[str]:
    """Return what a stream says that is stored event by event, each text in one: no event holds all of it.

    Nothing, where the line is no such recording.
    """
    try:
        members: Any = parse_line(line)
        response = members["response"]
        table = by_name(members["dialect"]).stream_in(response["framing"])
        pieces = pieced_texts(response["script"], table, False, opaque_in(table))
    except INCOMPARABLE:
        return []
    return [join_text(each) for each in pieces]
