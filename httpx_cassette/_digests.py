"""Digests that stand for strings too long, or too large, to stand in a key or a cassette themselves.

``{"$sha256": "<64 hex>", "$bytes": n}``. A request can hold such members too, so names are escaped: what
somebody sent is never taken for a digest of ours.
Nothing here knows which strings of a request are meant.
"""

from __future__ import annotations

import hashlib
import re

from ._call import Json

__all__ = ["DIGEST_ABOVE", "SHORT", "digest_long_strings", "digest_of", "escape_names", "is_digest"]

#: Strings of more UTF-8 bytes than this enter the key as their digest (rule 6 of the key).
DIGEST_ABOVE = 1024

#: Strings of so many characters are never above it: no character takes more than four bytes.
SHORT = DIGEST_ABOVE // 4


def _encode(text: str) -> bytes:
    """Return UTF-8, with a lone surrogate as the three bytes that it would have."""
    return text.encode("utf-8", "surrogatepass")


def digest_of(data: bytes | str) -> dict[str, Json]:
    """Return what stands in the key for data that are too long to stand there themselves."""
    raw = _encode(data) if isinstance(data, str) else data
    return {"$sha256": hashlib.sha256(raw).hexdigest(), "$bytes": len(raw)}


_HEX64 = re.compile(r"[0-9a-f]{64}")


def is_digest(value: Json) -> bool:
    """Tell whether a value is what :func:`digest_of` gives."""
    if not (isinstance(value, dict) and len(value) == 2):
        return False
    digest, length = value.get("$sha256"), value.get("$bytes")
    return isinstance(digest, str) and type(length) is int and _HEX64.fullmatch(digest) is not None


def digest_long_strings(value: Json) -> Json:
    """Replace, below a value and in place, every string of more than 1,024 UTF-8 bytes by its digest."""
    if isinstance(value, str):
        return digest_of(value) if len(value) > SHORT and len(_encode(value)) > DIGEST_ABOVE else value
    if isinstance(value, dict):
        for name, child in value.items():
            value[name] = digest_long_strings(child)
    elif isinstance(value, list):
        value[:] = map(digest_long_strings, value)
    return value


# ``$sha256`` and ``$bytes`` as member names of a request would read like a digest of ours. The stored form
# escapes just those; the key document escapes every name that begins with ``$``.
_RESERVED = re.compile(r"\$+(sha256|bytes)")


def escape_names(value: Json, *, reserved_only: bool) -> Json:
    """Return the value with one more ``$`` before names that need it; digests are left as they are.

    Args:
        value: A document. It is not changed.
        reserved_only: ``True`` for a document as sent that is to be stored: only the names of a digest are
            escaped. ``False`` for a stored document that is to be hashed: all other ``$`` names are.
    """
    if isinstance(value, list):
        return [escape_names(child, reserved_only=reserved_only) for child in value]
    if not isinstance(value, dict):
        return value
    return {
        _escape_name(name, reserved_only): escape_names(child, reserved_only=reserved_only)
        for name, child in value.items()
    }


def _escape_name(name: str, reserved_only: bool) -> str:
    is_meant = name.startswith("$") and (_RESERVED.fullmatch(name) is not None) is reserved_only
    return f"${name}" if is_meant else name
