"""A request as it is stored: as sent, redacted, media as digests.

The stored form is what every key is computed from, so that a new key version or another policy can give
old recordings new keys without a call.
Nothing here hashes, and nothing here knows which parts of a request matter.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from ._call import Call, Json
from ._canonical import DIGEST_ABOVE, NotJson, digest_of, escape_names, parse_json
from ._paths import Paths
from ._redact import Gate, Redaction, is_secret_query_name, scan

__all__ = ["KEY_HEADERS", "MAX_BODY", "Reading", "Target", "normal_url", "read_call", "stored_request"]

#: Headers that change what is answered. Never ``x-stainless-*``, ``user-agent`` or ``anthropic-version``:
#: an SDK upgrade must not miss.
KEY_HEADERS = ("anthropic-beta", "openai-beta")

#: Bytes that a compressed body may grow to. A few kilobytes of gzip can become gigabytes.
MAX_BODY = 256 * 1024 * 1024


class Target(NamedTuple):
    """Where a call goes.

    Args:
        path: The path of the URL as sent.
        host: The host in lower case, without a port.
        stored: The URL as it is stored: redacted.
        normal: The URL as it enters the key.
        normal_without_host: The same without scheme, host and port.
    """

    path: str
    host: str
    stored: str
    normal: str
    normal_without_host: str


class Reading(NamedTuple):
    """A call whose body has been read.

    Args:
        call: The call.
        target: Where it goes.
        kind: What the body is: ``json``, ``text``, ``form``, ``parts``, ``bytes``, or empty for no body.
        body: The body, as sent; for ``bytes`` the digest of it.
        raw: The bytes that were read, content encoding undone.
    """

    call: Call
    target: Target
    kind: str
    body: Any
    raw: bytes


# -- reading -------------------------------------------------------------------------------------------


def read_call(call: Call, redaction: Redaction) -> Reading:
    """Read the body of a call as what it is; never fails.

    A body that claims to be JSON and is not, or that no JSON document can hold (``NaN``, ``1e400``, nesting
    of 100,000), is text; what is not UTF-8 is bytes.
    """
    target = read_target(call.url, redaction)
    raw = call.body
    if not raw:
        return Reading(call, target, "", None, raw)
    kind = encoding = ""
    for name, value in call.headers:
        lowered = name.lower()
        if lowered == b"content-type":
            kind = value.decode("latin-1").lower()
        elif lowered == b"content-encoding":
            encoding = value.decode("latin-1").lower()
    if encoding in ("gzip", "x-gzip", "deflate"):
        raw = _inflate(raw)
    return Reading(call, target, *_read_body(raw, kind), raw)


def _read_body(raw: bytes, content_type: str) -> tuple[str, Any]:
    if "json" in content_type or not content_type:
        try:
            return "json", parse_json(raw)
        except NotJson:
            pass
    elif content_type.startswith("application/x-www-form-urlencoded"):
        pairs = parse_qsl(raw.decode("utf-8", "replace"), keep_blank_values=True)
        return "form", [[name, value] for name, value in pairs]
    elif content_type.startswith("multipart/"):
        parts = _split_parts(raw, content_type)
        if parts is not None:
            return "parts", parts
    try:
        return "text", raw.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes", digest_of(raw)


def _inflate(raw: bytes) -> bytes:
    """Undo gzip or deflate; bytes that are not what the header says are kept as they are."""
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        unpacker = zlib.decompressobj(window)
        try:
            data = unpacker.decompress(raw, MAX_BODY)
        except zlib.error:
            continue
        return data if unpacker.eof else raw
    return raw


_BOUNDARY = re.compile(r'boundary="?([^";,]+)"?', re.IGNORECASE)
_PARAMETER = re.compile(r'(name|filename\*?)=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))')


def _split_parts(raw: bytes, content_type: str) -> list[Json] | None:
    """Return the parts of a multipart body without their boundary, or ``None`` where it cannot be split."""
    found = _BOUNDARY.search(content_type)
    # The content type was lowered for comparing; the boundary itself is case-sensitive, so it is taken from
    # the body's first line, and the header's must agree with it.
    first = raw.partition(b"\r\n")[0]
    if found is None or first.lower() != b"--" + found[1].encode("latin-1"):
        return None
    pieces = (b"\r\n" + raw).split(b"\r\n" + first)
    return [_read_part(piece[2:]) for piece in pieces[1:] if piece[:2] == b"\r\n"]


def _read_part(piece: bytes) -> Json:
    head, _, content = piece.partition(b"\r\n\r\n")
    part: dict[str, Json] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-disposition":
            for label, quoted, bare in _PARAMETER.findall(value):
                part[label.rstrip("*")] = quoted or bare
        elif name.lower() == "content-type":
            part["type"] = value.strip()
    try:
        part["text"] = content.decode("utf-8")
    except UnicodeDecodeError:
        part["bytes"] = digest_of(content)
    return part


# -- the URL -------------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def read_target(url: str, redaction: Redaction) -> Target:
    """Take a URL apart once; programs call few of them."""
    stored = redaction.url(url)
    parts = urlsplit(stored)
    host = (parts.hostname or "").lower()
    normal = normal_url(stored)
    return Target(parts.path, host, stored, normal, normal_url(stored, host=False))


_DEFAULT_PORTS = {"http": 80, "https": 443}


def normal_url(url: str, *, host: bool = True) -> str:
    """Return a URL as it enters the key (rule 1).

    Scheme and host in lower case; default port, userinfo and fragment dropped; the path as sent; the query
    decoded and encoded again, sorted by name with the order of repeats and blanks kept.

    Args:
        url: An absolute URL.
        host: ``False`` leaves scheme, host and port out, for a gateway on a random port.
    """
    parts = urlsplit(url)
    pairs = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True, max_num_fields=None)
        if not is_secret_query_name(name)
    ]
    query = urlencode(sorted(pairs, key=lambda pair: pair[0]), quote_via=quote)
    origin = f"{parts.scheme.lower()}://{_authority(parts)}" if host else ""
    return f"{origin}{parts.path or '/'}{'?' + query if query else ''}"


def _authority(parts: SplitResult) -> str:
    name = (parts.hostname or "").lower()
    name = f"[{name}]" if ":" in name else name
    try:
        port = parts.port
    except ValueError:  # A port that is no number: the URL is somebody else's mistake, the key is not.
        return parts.netloc.rpartition("@")[2].lower()
    return name if port is None or port == _DEFAULT_PORTS.get(parts.scheme.lower()) else f"{name}:{port}"


# -- the stored form -----------------------------------------------------------------------------------


def stored_body(reading: Reading, redaction: Redaction, media: Paths) -> tuple[Json, Gate]:
    """Return the body as it is stored, and what may be in it; for JSON it may be the reading's own document.

    Args:
        reading: The call as read.
        redaction: What must not reach the file.
        media: Where base64 stands that is stored as its digest.
    """
    body: Json = reading.body
    if reading.kind == "json":
        raw = reading.raw
        # An escape could hide the prefix of a credential from the gate.
        gates = scan(raw) if b"\\u" not in raw and b"\\/" not in raw else _ANYTHING
        if redaction.concerns(gates):
            body = redaction.json(body)
        if gates & Gate.DOLLAR:
            # Before media become digests: those are ours, and their names are not escaped.
            body = escape_names(body, reserved_only=True)
        if gates & _MEDIA:
            body = _digest_media(body, media)
        return body, gates
    if reading.kind == "text":
        body = redaction.text(reading.body)
    elif reading.kind == "form":
        body = [[name, redaction.text(value)] for name, value in reading.body if not is_secret_query_name(name)]
    elif reading.kind == "parts":
        body = [_stored_part(part, redaction) for part in reading.body]
    return body, _ANYTHING


_MEDIA = Gate.DATA_URL | Gate.AUDIO
_ANYTHING = Gate.SECRET | Gate.DATA_URL | Gate.DOLLAR | Gate.AUDIO


def stored_request(
    reading: Reading, redaction: Redaction, media: Paths, headers: Sequence[str]
) -> tuple[dict[str, Json], Gate]:
    """Return the request as it stands in a recording, and what may be in its body.

    Args:
        reading: The call as read; its body may be shared with the result.
        redaction: What must not reach the file.
        media: Where base64 stands that is stored as its digest.
        headers: Names in lower case of the headers that enter the key.
    """
    stored: dict[str, Json] = {"method": reading.call.method, "url": reading.target.stored}
    found = sent_headers(reading.call, headers)
    if found:
        stored["headers"] = {name: redaction.text(value) for name, value in found.items()}
    gates = _ANYTHING
    if reading.kind:
        stored[reading.kind], gates = stored_body(reading, redaction, media)
    return stored, gates


def sent_headers(call: Call, names: Sequence[str]) -> dict[str, str]:
    """Return those of the named headers that were sent, repeats joined with a comma."""
    found: dict[str, str] = {}
    wanted = {name.encode("latin-1"): name for name in names}
    for sent, value in call.headers:
        name = wanted.get(sent.lower())
        if name is not None:
            text = value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _stored_part(part: Json, redaction: Redaction) -> Json:
    """Return a part with its text redacted, or as a digest where it is a file or long."""
    assert isinstance(part, dict)
    text = part.get("text")
    if not isinstance(text, str):
        return part
    text = redaction.text(text)
    kept = {name: redaction.text(value) if isinstance(value, str) else value for name, value in part.items()}
    if "filename" in part or len(text) > DIGEST_ABOVE:
        # The digest is of the redacted text: one of the text as sent would let a guess be tested.
        del kept["text"]
        return {**kept, "bytes": digest_of(text)}
    return {**kept, "text": text}


def _digest_media(value: Json, media: Paths) -> Json:
    """Replace base64 at the media paths, and data URLs anywhere, by their digest; in place."""
    for container, step in media.places(value):
        data = container[step]  # type: ignore[index]
        if isinstance(data, str) and len(data) > DIGEST_ABOVE:
            container[step] = digest_of(data)  # type: ignore[index]
    _digest_data_urls(value)
    return value


def _digest_data_urls(value: Json) -> None:
    for step, child in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(child, str):
            if len(child) > DIGEST_ABOVE and child.startswith("data:") and ";base64," in child[:256]:
                value[step] = digest_of(child)  # type: ignore[index,call-overload]
        elif isinstance(child, (dict, list)):
            _digest_data_urls(child)
