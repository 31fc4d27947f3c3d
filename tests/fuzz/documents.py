"""JSON read and written: by the fast way and the slow one, as a line and as the data of an event."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from httpx_cassette import _canonical
from httpx_cassette._canonical import canonical_bytes, canonical_key_bytes
from httpx_cassette._digests import digest_long_strings
from httpx_cassette._line import dump_json, parse_line
from httpx_cassette._parsing import MAX_DEPTH, NotJson, parse_json
from httpx_cassette.dialects._framing import dump_event_json, load_event_json

__all__ = ["SEEDS", "check"]

SEEDS = [
    b'{"a":[1,2.5,null,true,-0.0,1e-7,1e21,123456789012345678901234567890],"b":"\\ud83d\\ude00\\ud800\\u2028"}',
    '{"é":"漢","\ue000":1,"\U0001f600":2,"\\ud800":[],"":{}}'.encode(),
    b"[9007199254740993,18446744073709551616,1e400,NaN,[[[[]]]]]",
    b'{"a":1,"a":2.0,"c":"' + b"x" * 1100 + b'"}',
    b'{"messages":[{"role":"user","content":"Hello there, who are we?"}],"temperature":0.2,"seed":null}',
    b"[-" + b"7" * 999 + b"," + b"7" * 1000 + b"]",
    b"[" + b"7" * 1001 + b"]",
    b'{"a":1e400,"a":1}',
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b"[" * 300 + b"]" * 300,
]

#: What a number holds that is beyond the limits: an exponent, or as many digits as an integer may have.
_BEYOND = re.compile(rb"[0-9][eE]|[0-9]{1000}")


def check(data: bytes) -> None:
    """Read a document by every reader and write it by every writer."""
    plain = _read_plainly(data)
    try:
        document = parse_json(data)
    except NotJson:
        assert plain is None or _is_beyond_limits(data, plain[0]), "JSON was refused"
    else:
        assert plain is not None, "what is no JSON was read"
        assert is_same(document, plain[0]), "it was read as something else"
        _write(document)
    _read_event(data, plain)


def _write(document: Any) -> None:
    before = copy.deepcopy(document)
    canonical = canonical_bytes(document)
    assert canonical == "".join(_canonical._write(document)).encode(), "the writers differ"
    assert canonical == canonical_bytes(parse_json(canonical)), "canonical bytes are read as something else"
    assert is_same(parse_line(dump_json(document)), before), "a line says something else"
    assert is_same(document, before), "writing changed it"
    if isinstance(document, dict):
        slow = canonical_bytes(digest_long_strings(copy.deepcopy(document)))
        assert canonical_key_bytes(document) == slow, "the key's bytes differ"


def _read_event(data: bytes, plain: tuple[Any] | None) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    try:
        value = load_event_json(text)
    except ValueError:
        return  # It is kept as text.
    assert plain is None or is_same(value, plain[0]), "an event was read as something else"
    written = dump_event_json(value)
    assert len(written.splitlines()) == 1, "a client would divide the event"
    assert is_same(load_event_json(written), value), "an event is written as something else"


def _read_plainly(data: bytes) -> tuple[Any] | None:
    """Return what the standard library reads, or ``None`` where it is no JSON."""
    try:
        return (json.loads(data.decode(), parse_constant=_refuse),)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> None:
    raise ValueError(name)


def _is_beyond_limits(data: bytes, value: Any) -> bool:
    level, depth = [value], 0
    while level:
        for item in level:
            if isinstance(item, float) and abs(item) == float("inf"):
                return True
            if isinstance(item, int) and abs(item) >= 10**1000:
                return True
        containers = [item for item in level if isinstance(item, (dict, list))]
        depth += bool(containers)
        level = [
            child for each in containers for child in (each.values() if isinstance(each, dict) else each)
        ]
    # A number may also stand in a member that a later one of its name replaces.
    return depth > MAX_DEPTH or data.count(b"[") > MAX_DEPTH or _BEYOND.search(data) is not None


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two documents are the same to the type and the last digit; order counts for nothing."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other) and str(one) == str(other)
