"""Multipart bodies as their parts: what is left when the boundary, drawn anew each time, is gone.

A body that does not read exactly as RFC 2046 and RFC 7578 have it is not taken apart, and keeps its
boundary: nothing that was sent may be lost on the way to the key.
Nothing here knows what the parts mean.
"""

from __future__ import annotations

import re

from ._call import Json
from ._digests import digest_of

__all__ = ["split_parts"]

_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]+)"|([^\s";,]+))', re.IGNORECASE)


def split_parts(raw: bytes, content_type: str) -> list[Json] | None:
    """Return the parts of a multipart body, or ``None`` where it cannot be taken apart without a loss.

    A part is an object with ``name``, ``filename``, ``type`` and other ``headers`` where they were sent, and
    ``text`` or, where the content is not UTF-8, the digest of its ``bytes``.

    Args:
        raw: The body.
        content_type: The header as sent: a boundary is case-sensitive.
    """
    found = _BOUNDARY.search(content_type)
    if found is None:
        return None
    delimiter = b"\r\n--" + (found[1] or found[2]).encode("latin-1")
    first, *pieces = (b"\r\n" + raw).split(delimiter)
    if first or not pieces or pieces.pop() not in (b"--", b"--\r\n"):
        return None
    parts = [_read_part(piece) for piece in pieces]
    return None if None in parts else parts


_FORM_DATA = re.compile(r'form-data; name="([^"\\]*)"(?:; filename="([^"\\]*)")?')


def _read_part(piece: bytes) -> Json:
    """Return a part, or ``None`` where what stands after the delimiter is none."""
    head, blank_line, content = piece.partition(b"\r\n\r\n")
    first, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
    if first or not blank_line:
        return None
    part: dict[str, Json] = {}
    others: list[Json] = []
    for line in lines:
        name, _, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        form_data = _FORM_DATA.fullmatch(value) if name == "content-disposition" else None
        if form_data is not None and "name" not in part:
            part["name"] = form_data[1]
            if form_data[2] is not None:
                part["filename"] = form_data[2]
        elif name == "content-type" and "type" not in part:
            part["type"] = value
        else:
            others.append([name, value])
    if others:
        part["headers"] = others
    try:
        part["text"] = content.decode("utf-8")
    except UnicodeDecodeError:
        part["bytes"] = digest_of(content)
    return part
