"""JSON as docs/key.md has it: walks, places that paths name, and canonical bytes.

The half of ``key_by_the_page.py`` that knows nothing of calls. It uses nothing of the package.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

__all__ = [
    "Json",
    "Place",
    "at",
    "canonical",
    "children",
    "depth",
    "digest",
    "encode",
    "members",
    "objects",
    "places_of",
    "remove",
    "same",
    "texts",
    "walk",
]

Json: TypeAlias = Any
Place: TypeAlias = "tuple[Any, ...]"
Step: TypeAlias = "tuple[str, Any]"


# -- documents -----------------------------------------------------------------------------------------


def children(value: Json) -> dict[Any, Json]:
    """Return what stands in a list or an object, by index or name."""
    return value if isinstance(value, dict) else dict(enumerate(value)) if isinstance(value, list) else {}


def depth(value: Json) -> int:
    """Return how deep lists and objects are nested."""
    return 1 + max(map(depth, children(value).values()), default=0) if isinstance(value, (dict, list)) else 0


def at(value: Json, place: Place) -> Json:
    """Return what stands at a place."""
    for key in place:
        value = value[key]
    return value


def remove(value: Json, places: list[Place]) -> None:
    """Remove what stands at some places, the last first, so that indices stay true."""
    for place in sorted(places, reverse=True):
        del at(value, place[:-1])[place[-1]]


def walk(
    value: Json,
    change: Callable[[str, Place], Json] = lambda text, _: text,
    rename: Callable[[str], str] = str,
    place: Place = (),
) -> Json:
    """Return a document with its strings and member names changed, members in the order of their names."""
    if isinstance(value, str):
        return change(value, place)
    if isinstance(value, dict):
        return {rename(key): walk(value[key], change, rename, (*place, key)) for key in sorted(value)}
    if isinstance(value, list):
        return [walk(child, change, rename, (*place, index)) for index, child in enumerate(value)]
    return value


def texts(items: Json, *names: str) -> set[str]:
    """Return the texts that members of some objects are."""
    return {text for name in names for text in members(items, name) if isinstance(text, str)}


def members(items: Json, name: str) -> list[Json]:
    """Return the members of a name of the objects in what may be a list."""
    return [item.get(name) for item in objects(items)]


def objects(value: Json) -> list[dict[str, Json]]:
    """Return the objects in what may be a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# -- paths -----------------------------------------------------------------------------------------------


QUOTED = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
STEP = re.compile(
    r"\.?(?:(\*\*)|(\*|\[ *\* *\])|\[ *(-?\d+) *\]|"
    rf"\[ *{QUOTED} *\]|\[ *\? *@\.(\w+) *== *{QUOTED} *\]|([^.\[\]]+))"
)


def parse_path(path: str) -> list[Step]:
    """Return the steps of a path."""
    return [read_step(*found) for found in STEP.findall(re.sub(r"^\$(?=[.\[])", "", path))]


def read_step(deep: str, every: str, index: str, quoted: str, member: str, text: str, name: str) -> Step:
    """Return the step that a part of a path is, of which one is not empty."""
    inner = (quoted or text)[1:-1].replace(r"\'", "'")
    inner = inner if (quoted or text)[:1] == '"' else inner.replace('"', r"\"")
    inner = json.loads(f'"{inner}"')
    if deep or every:
        return ("deep" if deep else "any"), None
    return ("where", (member, inner)) if member else ("key", int(index) if index else inner or name)


def keys_of(value: Json, kind: str, wanted: Any) -> list[Any]:
    """Return the names or indices that one step selects."""
    items = children(value)
    if kind == "any":
        return sorted(items)
    if kind == "where":
        return [key for key in sorted(items) if members([items[key]], wanted[0]) == [wanted[1]]]
    if isinstance(value, list) and isinstance(wanted, int) and wanted < 0:
        wanted += len(value)
    return [wanted] if wanted in items else []


def places_of(value: Json, paths: Sequence[str], closed: Sequence[str] = ()) -> list[Place]:
    """Return the places that paths lead to, each once, in the order of one walk on all of them."""
    return list(dict.fromkeys(follow(value, [parse_path(path) for path in paths], closed, ())))


def follow(value: Json, paths: list[list[Step]], closed: Sequence[str], place: Place) -> Iterator[Place]:
    """Yield the places that steps lead to."""
    if [] in paths:
        yield place
    for kind in ("key", "any", "where"):
        steps = [(keys_of(value, *path[0]), path[1:]) for path in paths if path and path[0][0] == kind]
        keys = dict.fromkeys(key for keys, _ in steps for key in keys)
        for key in keys if kind == "key" else sorted(keys):
            below = [rest for keys, rest in steps if key in keys]
            yield from follow(value[key], below, closed, (*place, key))
    if deep := [path for path in paths if path and path[0][0] == "deep"]:
        yield from follow(value, [path[1:] for path in deep], closed, place)
        for key, child in children(value).items():
            if key not in closed or not isinstance(child, dict):
                yield from follow(child, deep, closed, (*place, key))


# -- digests and canonical bytes ---------------------------------------------------------------------------


def digest(content: bytes | str) -> dict[str, Json]:
    """Return the digest of bytes, or of the UTF-8 of a string."""
    content = encode(content) if isinstance(content, str) else content
    return {"$sha256": hashlib.sha256(content).hexdigest(), "$bytes": len(content)}


def encode(text: str) -> bytes:
    """Return the UTF-8 of a text, a lone surrogate as its three bytes."""
    return text.encode("utf-8", "surrogatepass")


def canonical(value: Json) -> bytes:
    """Return the canonical bytes of a document."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        return b"{" + b",".join(canonical(name) + b":" + canonical(value[name]) for name in names) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(canonical, value)) + b"]"
    if isinstance(value, float):
        return ecmascript(value).encode()
    text = json.dumps(value, ensure_ascii=False)
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def ecmascript(value: float) -> str:
    """Return a number as ECMAScript prints it."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).rstrip("0")
    point -= len(digits) - len(digits.lstrip("0"))
    digits = digits.lstrip("0")
    if not digits:
        return "0"
    if 0 < point <= 21:
        text = digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    elif -6 < point <= 0:
        text = "0." + "0" * -point + digits
    else:
        text = f"{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"
    return "-" * (value < 0) + text


def same(one: Json, other: Json) -> bool:
    """Say whether two documents are equal: ``1`` and ``1.0`` are, ``1`` and ``true`` are not."""
    return canonical(one) == canonical(other)
