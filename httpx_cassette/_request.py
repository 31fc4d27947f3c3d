"""A request as it is stored: as sent, redacted, media as digests.

The stored form is what every key is computed from, so that a new key version or another policy can give
old recordings new keys without a call.
Nothing here hashes, and nothing here knows which parts of a request matter.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import parse_qsl

from ._call import Call, Json
from ._digests import DIGEST_ABOVE, digest_of, escape_names, is_digest
from ._multipart import split_parts
from ._parsing import NotJson, parse_json
from ._paths import Paths
from ._redact import Gate, Redaction, scan_json
from ._rules import join_pieces, remove_places
from ._secret_names import is_secret_form_name
from ._url import Target, read_target

if TYPE_CHECKING:
    from .dialects._dialect import Dialect, Pieces

__all__ = [
    "KEY_HEADERS",
    "MAX_BODY",
    "Reading",
    "join_answers",
    "lent_credentials",
    "read_call",
    "redacted_request",
    "stored_request",
]

#: Headers that change what is answered. Never ``x-stainless-*``, ``user-agent`` or ``anthropic-version``:
#: an SDK upgrade must not miss.
KEY_HEADERS = ("anthropic-beta", "openai-beta")

#: Bytes that a compressed body may grow to. A few kilobytes of gzip can become gigabytes.
MAX_BODY = 256 * 1024 * 1024


class Reading(NamedTuple):
    """A call whose body has been read.

    Args:
        call: The call.
        target: Where it goes.
        kind: What the body is: ``json``, ``text``, ``form``, ``parts``, ``bytes``, or empty for no body.
        body: The body, as sent; for ``bytes`` the digest of it.
        raw: The bytes that were read, content encoding undone.
        encoding: The content encoding that could not be undone, if there is one; the body is ``bytes`` then.
    """

    call: Call
    target: Target
    kind: str
    body: Any
    raw: bytes
    encoding: str = ""


# -- reading -------------------------------------------------------------------------------------------

# The length settles most of a dozen headers without making a copy of the name.
_LENGTHS = frozenset({len("content-type"), len("content-encoding")})


def read_call(call: Call, redaction: Redaction) -> Reading:
    """Read the body of a call as what it is; never fails.

    A body that claims to be JSON and is not, or that no JSON document can hold (``NaN``, ``1e400``, nesting
    of 100,000), is text; what is not UTF-8 is bytes.
    """
    target = read_target(call.url, redaction)
    raw = call.body
    if not raw:
        return Reading(call, target, "", None, raw)
    content_type = encoding = ""
    for name, value in [pair for pair in call.headers if len(pair[0]) in _LENGTHS]:
        lowered = name.lower()
        if lowered == b"content-type":
            content_type = value.decode("latin-1")
        elif lowered == b"content-encoding":
            encoding = value.decode("latin-1").strip().lower()
    if encoding and encoding != "identity":
        unpacked = _unpack(raw, encoding)
        if unpacked is None:
            return Reading(call, target, "bytes", digest_of(raw), raw, encoding)
        raw = unpacked
    kind, body = _read_body(raw, content_type)
    return Reading(call, target, kind, body, raw)


def _read_body(raw: bytes, content_type: str) -> tuple[str, Any]:
    lowered = content_type.lower()
    # Without a content type a body is JSON where it cannot be much else: ``1.0`` may be any text.
    if "json" in lowered or (not lowered and raw[:64].lstrip()[:1] in (b"{", b"[")):
        try:
            return "json", parse_json(raw)
        except NotJson:
            pass
    elif lowered.startswith("application/x-www-form-urlencoded"):
        return "form", _read_form(raw)
    elif lowered.startswith("multipart/"):
        parts = split_parts(raw, content_type)
        if parts is not None:
            return "parts", parts
    try:
        return "text", raw.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes", digest_of(raw)


def _read_form(raw: bytes) -> list[list[str]]:
    # With surrogateescape ``%FF`` and ``%FE``, which are no UTF-8, stay two different values.
    text = raw.decode("utf-8", "surrogateescape")
    return [list(pair) for pair in parse_qsl(text, keep_blank_values=True, errors="surrogateescape")]


# The container that zlib is told to expect; some send deflate without any.
_WINDOWS = {
    "gzip": (zlib.MAX_WBITS | 16,),
    "x-gzip": (zlib.MAX_WBITS | 16,),
    "deflate": (zlib.MAX_WBITS, -zlib.MAX_WBITS),
}


def _unpack(raw: bytes, encoding: str) -> bytes | None:
    """Undo gzip or deflate; ``None`` for another encoding, and for bytes that are not what it says."""
    for window in _WINDOWS.get(encoding, ()):
        data = _inflate(raw, window)
        if data is not None:
            return data
    return None


def _inflate(raw: bytes, window: int) -> bytes | None:
    """Undo one compression to the last byte: a second member of a gzip body is part of it."""
    pieces: list[bytes] = []
    room = MAX_BODY
    while raw:
        unpacker = zlib.decompressobj(window)
        try:
            # One byte more than there is room for, because 0 would mean any number.
            pieces.append(unpacker.decompress(raw, room + 1))
        except zlib.error:
            return None
        room -= len(pieces[-1])
        if room < 0 or not unpacker.eof:
            return None
        raw = unpacker.unused_data
    return b"".join(pieces)


# -- the stored form -----------------------------------------------------------------------------------


def stored_request(
    reading: Reading,
    redaction: Redaction,
    dialect: Dialect,
    headers: Sequence[str],
) -> tuple[dict[str, Json], Gate]:
    """Return the request as it stands in a recording, and what may be in its body.

    Args:
        reading: The call as read; its body may be shared with the result.
        redaction: What must not reach the file.
        dialect: Says what comes back in pieces, what is a credential, what must come back to the byte, and
            what becomes a digest.
        headers: Names in lower case of the headers that enter the key.
    """
    stored: dict[str, Json] = {"method": reading.call.method, "url": reading.target.stored}
    found = sent_headers(reading.call, headers)
    if found:
        stored["headers"] = {name: redaction.text(value) for name, value in found.items()}
    if reading.kind == "json":
        join_answers(reading.body, dialect.pieces)
        if dialect.credentials:
            remove_places(reading.body, dialect.credentials)
        stored["json"], gate = _stored_json(reading.body, redaction, dialect)
        return stored, gate
    if reading.encoding:
        stored["encoding"] = reading.encoding
    if reading.kind:
        stored[reading.kind] = _stored_body(reading, redaction)
    return stored, _ANYTHING


def redacted_request(stored: dict[str, Json], redaction: Redaction, dialect: Dialect) -> dict[str, Json]:
    """Return a request that was stored under other rules as it is stored under these.

    What is a digest stays one: what it was made of is not known any more.

    Args:
        stored: The request as it stands in a recording; it is used up.
        redaction: What must not stay in the file.
        dialect: As for :func:`stored_request`.

    Raises:
        Exception: A ``ValueError`` or its like: it was edited by hand, and is no request.
    """
    cleaned = {**stored, "url": redaction.url(str(stored["url"]))}
    if isinstance(headers := stored.get("headers"), dict):
        cleaned["headers"] = {name: redaction.text(str(value)) for name, value in headers.items()}
    if "json" in stored:
        if dialect.credentials:
            remove_places(stored["json"], dialect.credentials)
        cleaned["json"] = redaction.json(stored["json"], dialect.opaque)
    if isinstance(text := stored.get("text"), str):
        cleaned["text"] = redaction.text(text)
    if isinstance(form := stored.get("form"), list):
        cleaned["form"] = [
            [redaction.text(name), redaction.text(value)]
            for name, value in cast("list[tuple[str, str]]", form)
            if not is_secret_form_name(name)
        ]
    if isinstance(parts := stored.get("parts"), list):
        cleaned["parts"] = [_stored_part(part, redaction) for part in cast("list[dict[str, Json]]", parts)]
    return cleaned


def lent_credentials(body: Json, paths: Paths) -> frozenset[str]:
    """Return the texts at and below places that hold credentials, but for those that may be any word."""
    waiting = [container[step] for container, step in paths.places(body)]  # type: ignore[index]  # its own
    found: set[str] = set()
    for value in waiting:  # It grows while it is walked.
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
    return frozenset(text for text in found if len(text) >= _SHORTEST_CREDENTIAL)


_SHORTEST_CREDENTIAL = 8


def join_answers(body: Json, pieces: Pieces | None) -> None:
    """Make one turn again of each answer that comes back in pieces, in place.

    Before anything else is done: what is secret may stand in several.
    """
    if pieces is None:
        return
    turns = body.get(pieces.turns) if isinstance(body, dict) else None
    if isinstance(turns, list):
        join_pieces(turns, pieces.roles, pieces.parts, pieces.ends)


def sent_headers(call: Call, names: Sequence[str]) -> dict[str, str]:
    """Return those of the named headers that were sent, repeats joined with a comma."""
    lengths, wanted = _wanted_headers(tuple(names))
    found: dict[str, str] = {}
    for sent, value in [pair for pair in call.headers if len(pair[0]) in lengths]:
        name = wanted.get(sent.lower())
        if name is not None:
            text = value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
    return found


@lru_cache(maxsize=64)
def _wanted_headers(names: tuple[str, ...]) -> tuple[frozenset[int], dict[bytes, str]]:
    wanted = {name.encode("latin-1"): name for name in names}
    return frozenset(map(len, wanted)), wanted


_ANYTHING = Gate.SECRET | Gate.DATA_URL | Gate.DOLLAR | Gate.MEDIA
_DIGESTED = Gate.DATA_URL | Gate.MEDIA


def _stored_body(reading: Reading, redaction: Redaction) -> Json:
    if reading.kind == "text":
        return redaction.text(reading.body)
    if reading.kind == "form":
        return [
            [redaction.text(name), redaction.text(value)]
            for name, value in reading.body
            if not is_secret_form_name(name)
        ]
    if reading.kind == "parts":
        return [_stored_part(part, redaction) for part in reading.body]
    digest: Json = reading.body
    return digest


def _stored_json(body: Json, redaction: Redaction, dialect: Dialect) -> tuple[Json, Gate]:
    """Return a JSON body as it is stored, and what may be in it; it may be the body itself."""
    gate = scan_json(body)
    # First what costs least: nearly every body is clean, and flags are slow to combine.
    if (gate or not redaction.is_default) and redaction.concerns(gate):
        body = redaction.json(body, dialect.opaque)
    if gate and gate & Gate.DOLLAR:
        # Before media become digests: those are ours, and their names are not escaped.
        body = escape_names(body, reserved_only=True)
    if gate and gate & _DIGESTED:
        body = _digest_media(body, dialect.media)
    return body, gate


def _stored_part(part: dict[str, Json], redaction: Redaction) -> Json:
    """Return a part with its text redacted, or as a digest where it is a file or long."""
    stored = {name: value if is_digest(value) else redaction.json(value) for name, value in part.items()}
    text = stored.get("text")
    if isinstance(text, str) and ("filename" in part or len(text) > DIGEST_ABOVE):
        # The digest is of the redacted text: one of the text as sent would let a guess be tested.
        del stored["text"]
        stored["bytes"] = digest_of(text)
    return stored


def _digest_media(value: Json, media: Paths) -> Json:
    """Replace base64 at the media paths, and data URLs anywhere, by their digest; in place."""
    for container, step in media.places(value):
        data = container[step]  # type: ignore[index]  # the step is the container's
        if isinstance(data, str) and len(data) > DIGEST_ABOVE:
            container[step] = digest_of(data)  # type: ignore[index]  # as above
    _digest_data_urls(value)
    return value


def _digest_data_urls(value: Json) -> None:
    waiting: list[Any] = [value]
    for container in waiting:  # It grows while it is walked.
        if isinstance(container, (dict, list)):
            for step, child in container.items() if isinstance(container, dict) else enumerate(container):
                if isinstance(child, str):
                    if len(child) > DIGEST_ABOVE and child.startswith("data:") and ";base64," in child[:256]:
                        container[step] = digest_of(child)
                else:
                    waiting.append(child)
