"""Ways to change a cassette that no store would: its bytes, its lines, and the JSON of sealed lines."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from ._store import sealed

__all__ = ["mutate_bytes", "mutate_json"]

#: What a mutation may put in: bytes that mean something to a line, to JSON, to UTF-8 or to git.
_PIECES = (
    *(b"\n", b"\r\n", b"\0", b"\0" * 600, b'"', b"\\", b"{", b"}", b"[" * 300, b","),
    *(b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"NaN", b"1e999", b"9" * 1_200),
    *(b"<<<<<<< ours\n", b"\n=======\n", b"\n>>>>>>> theirs\n"),
    *(b'{"v":1,"tear":[0,10]}\n', b'{"v":2}\n', b'{"v":1,"kv":1,"key":"', b'"sum":"0000000000000000"}'),
)


def mutate_bytes(data: bytes, chance: random.Random) -> bytes:
    """Return a file with some bytes changed, lost, added or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        data = chance.choice(_MUTATIONS)(data, chance)
    return data


def _flip(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) or 1)
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if data else data


def _remove(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + data[at + chance.choice((1, 1, 7, 300)) :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    return data[:at] + chance.choice(_PIECES) + data[at:]


def _truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _copy(data: bytes, chance: random.Random) -> bytes:
    """Put a piece of the file somewhere else, too."""
    start, at = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    return data[:at] + data[start : start + chance.randrange(1, 400)] + data[at:]


def _zero(data: bytes, chance: random.Random) -> bytes:
    """Lose a block, as a file system does that had not written it yet."""
    at = chance.randrange(len(data) + 1)
    length = min(chance.randrange(1, 600), len(data) - at)
    return data[:at] + bytes(length) + data[at + length :]


def _shuffle(data: bytes, chance: random.Random) -> bytes:
    """Drop, double and reorder lines."""
    lines = data.split(b"\n")
    return b"\n".join(chance.choices(lines, k=len(lines)))


def _encode(data: bytes, chance: random.Random) -> bytes:
    encoding = chance.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252"))
    return data.decode("utf-8", "replace").encode(encoding, "replace")


_FREQUENT = (_flip, _remove, _insert)
_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *_FREQUENT, *_FREQUENT, _truncate, _copy, _zero, _shuffle, _encode,
)  # fmt: skip


def mutate_json(data: bytes, chance: random.Random) -> bytes:
    """Return a file with the JSON of some lines changed, and these sealed anew."""
    lines = data.split(b"\n")[:-1]
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(lines))
        members = json.loads(lines[at])
        members.pop("sum", None)
        _change(members, chance)
        text = json.dumps(members, ensure_ascii=chance.random() < 0.3, separators=(",", ":"))
        lines[at] = sealed(text.encode("utf-8", "surrogatepass")[:-1])
    return b"\n".join(lines) + b"\n"


def _change(value: Any, chance: random.Random) -> None:
    """Change one value somewhere below."""
    while True:
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not names:
            return
        # Downwards, as a rule: the head of a line is a few members of many, and the answer stands far below.
        deeper = [name for name in names if isinstance(value[name], (dict, list)) and value[name]]
        if deeper and chance.random() < 0.75:
            value = value[chance.choice(deeper)]
            continue
        name = chance.choice(names)
        if chance.random() < 0.2:
            del value[name]
        elif chance.random() < 0.1 and isinstance(value, dict):
            value[_odd(chance, str)] = value.pop(name)
        else:
            value[name] = _odd(chance)
        return


def _odd(chance: random.Random, kind: type | None = None) -> Any:
    deep: Any = []
    for _ in range(chance.choice((3, 150))):
        deep = [deep]
    numbers = [0, -1, 10**9, 10**30, 1.5, 1e308, float("nan")]
    texts = [
        "",
        "x",
        "\ud800",
        "\u2028\x85",
        "json",
        "script",
        "text",
        "headers",
        "\0",
        "a" * 2_000,
        "0" * 64,
        "//4=",
    ]
    nested = [[], {}, [None], {"": None}, deep, {"json": 1}, {"text": []}, [[[]]], {"status": 200}]
    odd = [None, True, *numbers, *texts, *nested]
    return chance.choice([each for each in odd if kind is None or isinstance(each, kind)])
