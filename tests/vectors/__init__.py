"""Golden vectors: a call, options, and what the key of it is made of. The files are the contract.

Each ``<topic>/<name>.json`` holds ``title``, ``call`` (``method``, ``url``, ``headers``, and ``body`` or
``body_b64``), ``options`` (``key_policy``, ``redact``, and ``prompt_files`` with their contents), and what
follows from them: ``key_document``, ``canonical`` and ``fingerprint``.

``frozen.json`` holds, for each version of the key, a seal of every vector: of what goes in and of the
fingerprint that comes out. A vector that is listed for the version in force does not change any more.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import httpx

import httpx_cassette

__all__ = [
    "FROZEN",
    "VECTORS",
    "Vector",
    "derive",
    "read_frozen",
    "read_vector",
    "request_body",
    "seal_of",
    "settled",
]

ROOT = Path(__file__).parent

#: Every vector, by topic and name.
VECTORS = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in sorted(ROOT.glob("*/*.json"))}


#: Key version -> name of a vector -> its seal.
FROZEN = "frozen.json"


class Vector(NamedTuple):
    """One golden vector.

    Args:
        title: What it shows, in one sentence.
        call: The call as it stands in the file.
        options: Options of the transport, prompt files with their contents.
        expected: The key document, canonical text and fingerprint, as far as they are in the file.
    """

    title: str
    call: dict[str, Any]
    options: dict[str, Any]
    expected: dict[str, Any]


def read_vector(path: Path) -> Vector:
    """Read the vector of a file."""
    members = json.loads(path.read_text("utf-8"))
    return Vector(members.pop("title"), members.pop("call"), members.pop("options", {}), members)


def read_frozen(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Return the seals of the vectors in a folder, by version and name."""
    path = root / FROZEN
    seals: dict[str, dict[str, str]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return seals


def seal_of(vector: Vector) -> str:
    """Return what changes when a vector's call, options or fingerprint does: 16 hex digits of SHA-256."""
    sealed = [vector.call, vector.options, vector.expected["fingerprint"]]
    return hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()[:16]


def request_body(vector: Vector) -> bytes:
    """Return the bytes of the request body."""
    if "body_b64" in vector.call:
        return base64.b64decode(vector.call["body_b64"])
    return str(vector.call.get("body", "")).encode()


def settled(vector: Vector, folder: Path) -> dict[str, Any]:
    """Return the options as a transport takes them, prompt files written into a folder."""
    options = dict(vector.options)
    if "prompt_files" in options:
        paths = {name: folder / str(number) for number, name in enumerate(options["prompt_files"])}
        for name, path in paths.items():
            path.write_bytes(options["prompt_files"][name].encode())
        options["prompt_files"] = paths
    return options


def derive(vector: Vector, folder: Path) -> dict[str, Any]:
    """Return what follows from a vector's call and options, found through the public interface.

    Args:
        vector: The vector.
        folder: An empty folder for prompt files.
    """
    call = vector.call
    transport = httpx_cassette.CassetteTransport(folder / "vectors.jsonl", **settled(vector, folder))
    request = httpx.Request(
        call["method"], call["url"], headers=call.get("headers", []), content=request_body(vector)
    )
    explanation = transport.explain(request)
    return {
        "key_document": explanation.key_document,
        "canonical": explanation.canonical.decode(),
        "fingerprint": explanation.fingerprint,
    }
