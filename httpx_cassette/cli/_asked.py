"""A request that a command is given: as JSON, as a curl command line, or as an entry of a HAR file.

Read into a call as it would be sent, or into the form in which requests are stored, as ``show --request``
prints it. What stands in it is never told in an error: a key may be.
"""

from __future__ import annotations

import json
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

from .._call import Call
from .._errors import CassetteError, OptionError
from ._command import counted
from ._curl import is_curl, read_curl

__all__ = ["Asked", "read_asked"]

#: A call as it is sent, or a request as it is stored.
Asked: TypeAlias = "Call | dict[str, Any]"

#: Where a stored request has its body.
_STORED_BODIES = ("json", "form", "parts", "text", "bytes")


def read_asked(path: str, entry: int | None = None) -> Asked:
    """Return the request that a file holds.

    Args:
        path: The file; ``-`` is what is piped in.
        entry: Which entry of a HAR file, from 1; the first by default.

    Raises:
        CassetteError: There is no such file, or no request in it.
    """
    data = sys.stdin.buffer.read() if path == "-" else _read_file(path)
    name = "what is piped in" if path == "-" else path
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CassetteError("it is not UTF-8; save it as UTF-8", name) from error
    try:
        return _read_text(text, entry)
    except CassetteError as error:
        raise error if error.path else CassetteError(error.message, name) from error


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # A name with a NUL is no name.
        reason = error.strerror if isinstance(error, OSError) else "it is no name of a file"
        raise CassetteError(f"it cannot be read: {reason}", path) from error


def _read_text(text: str, entry: int | None) -> Asked:
    is_har = False
    if is_curl(text):
        asked: Asked = read_curl(text, _read_file)
    elif text.lstrip()[:1] == "{":
        value = _parse(text)
        is_har = isinstance(value.get("log"), dict)
        asked = _of_har(value["log"], entry or 1) if is_har else _of_object(value)
    else:
        raise OptionError("it holds no request: neither JSON nor HAR, which begin with {, nor a curl command")
    if entry is not None and not is_har:
        raise OptionError("--entry chooses from a HAR file, and this is none")
    return asked


def _parse(text: str) -> dict[str, Any]:
    try:
        value: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise OptionError(f"it is no JSON that can be read{where}") from error
    return value


# -- JSON ----------------------------------------------------------------------------------------------


def _of_object(value: dict[str, Any]) -> Asked:
    url = value.get("url")
    if not isinstance(url, str) or not url:
        raise OptionError('it has no "url"; a request is {"method": …, "url": …, "headers": …, "body": …}')
    method = value.get("method", "POST" if "body" in value else "GET")
    if not isinstance(method, str):
        raise OptionError('its "method" is no text')
    if "body" not in value and any(name in value for name in _STORED_BODIES):
        return {**value, "method": method}
    headers = _pairs(value.get("headers") or {})
    body, content_type = _body(value.get("body"))
    if content_type and not any(name.lower() == b"content-type" for name, _ in headers):
        headers.append((b"content-type", content_type))
    return Call(method.upper(), url, tuple(headers), body)


def _body(body: Any) -> tuple[bytes, bytes]:
    """Return the bytes of a body: of text as it stands, of anything else as JSON."""
    if body is None:
        return b"", b""
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass"), b""
    # Escaped, so that a lone surrogate can be in it.
    return json.dumps(body).encode(), b"application/json"


def _pairs(headers: Any) -> list[tuple[bytes, bytes]]:
    """Return headers as pairs: of an object, of pairs, or of objects with ``name`` and ``value``."""
    listed = list(headers.items()) if isinstance(headers, dict) else headers
    found: list[tuple[bytes, bytes]] = []
    for each in listed if isinstance(listed, list) else [None]:
        pair = (each.get("name"), each.get("value")) if isinstance(each, dict) else each
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(isinstance(t, str) for t in pair):
            raise OptionError('its "headers" are no names with values')
        found.append((pair[0].encode("utf-8", "replace"), pair[1].encode("utf-8", "replace")))
    return found


# -- HAR -----------------------------------------------------------------------------------------------


def _of_har(log: dict[str, Any], number: int) -> Call:
    """Return the request of an entry; the format: http://www.softwareishard.com/blog/har-12-spec/."""
    entries = log.get("entries")
    entries = entries if isinstance(entries, list) else []
    if not 1 <= number <= len(entries):
        have = counted(len(entries), "entry") if len(entries) == 1 else f"{len(entries):,} entries"
        raise OptionError(f"the HAR file has {have}, and no entry {number}")
    entry = entries[number - 1]
    request = entry.get("request") if isinstance(entry, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        raise OptionError(f"entry {number} of the HAR file has no request")
    posted = request.get("postData")
    posted = posted if isinstance(posted, dict) else {}
    # Bodies stand there decoded, and names of HTTP/2 that are no headers.
    headers = [
        (name, value)
        for name, value in _pairs(request.get("headers") or [])
        if name.lower() != b"content-encoding" and not name.startswith(b":")
    ]
    if posted.get("mimeType") and not any(name.lower() == b"content-type" for name, _ in headers):
        headers.append((b"content-type", str(posted["mimeType"]).encode("utf-8", "replace")))
    method = str(request.get("method") or ("POST" if posted else "GET"))
    return Call(method.upper(), request["url"], tuple(headers), _posted(posted, number))


def _posted(posted: dict[str, Any], number: int) -> bytes:
    text = posted.get("text")
    if isinstance(text, str):
        if posted.get("encoding") != "base64":
            return text.encode("utf-8", "surrogatepass")
        try:
            return b64decode(text, validate=True)
        except ValueError as error:
            raise OptionError(f"the body of entry {number} is said to be base64 and is not") from error
    params = posted.get("params")
    pairs = [(str(each.get("name", "")), str(each.get("value", ""))) for each in params or [] if each]
    return urlencode(pairs, errors="surrogatepass").encode()
