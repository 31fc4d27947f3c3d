"""What is sent when a recorded request is made live: its body, and a key for the host that it goes to.

A key from the environment is sent over https, and to the host alone that it belongs to: a cassette may name
any host, and nobody vouches for it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

import click

from .._call import Call
from .._errors import OptionError

__all__ = ["sendable", "sent_headers"]

#: Host -> headers that it takes a key in; the variables in which keys stand, and what else it asks for.
_KEYS: Mapping[str, Mapping[str, str]] = {
    "api.openai.com": {"authorization": "Bearer $OPENAI_API_KEY"},
    "api.anthropic.com": {"x-api-key": "$ANTHROPIC_API_KEY", "anthropic-version": "2023-06-01"},
    "generativelanguage.googleapis.com": {"x-goog-api-key": "$GEMINI_API_KEY"},
    "api.mistral.ai": {"authorization": "Bearer $MISTRAL_API_KEY"},
    "api.cohere.com": {"authorization": "Bearer $CO_API_KEY"},
}


def sendable(request: dict[str, Any]) -> Call:
    """Return a stored request as it can be sent.

    Raises:
        OptionError: Something of it was not stored.
    """
    method, url = str(request.get("method", "POST")), str(request.get("url", ""))
    stored = json.dumps(request)
    # Also names that begin with two dollars, which were escaped.
    if (
        any(mark in stored for mark in ("<redacted:", '"$sha256"', '"$$'))
        or {"parts", "bytes"} & request.keys()
    ):
        raise OptionError(
            "the recording holds no longer all that was sent: credentials are redacted, and media kept as "
            "digests; give the request itself: --request"
        )
    headers = request.get("headers")
    names = [
        (str(name).encode(), str(value).encode())
        for name, value in (headers.items() if isinstance(headers, dict) else ())
    ]
    if "json" in request:
        names.append((b"content-type", b"application/json"))
        return Call(method, url, tuple(names), json.dumps(request["json"]).encode())
    if "form" in request:
        names.append((b"content-type", b"application/x-www-form-urlencoded"))
        return Call(method, url, tuple(names), _form(request["form"]))
    return Call(method, url, tuple(names), str(request.get("text", "")).encode("utf-8", "surrogatepass"))


def _form(fields: Any) -> bytes:
    try:
        return urlencode([tuple(pair) for pair in fields], errors="surrogateescape").encode()
    except (TypeError, ValueError) as error:
        raise OptionError("the recording holds a form that is none") from error


def sent_headers(call: Call, headers: Sequence[str]) -> list[tuple[str, str]]:
    """Return the headers that are sent: those of the call, those that are given, and the key of the host."""
    found = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in call.headers]
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.UsageError("argument --header: write NAME:VALUE")
        found.append((name.strip(), _with_variables(value.strip())))
    names = {name.lower() for name, _ in found}
    parts = urlsplit(call.url)
    known = _KEYS.get(parts.hostname or "", {}) if parts.scheme == "https" else {}
    for name, value in known.items():
        variable = value.partition("$")[2]
        if name not in names and (not variable or os.environ.get(variable)):
            found.append((name, _with_variables(value)))
    return [(name, value) for name, value in found if name.lower() not in ("host", "content-length")]


def _with_variables(text: str) -> str:
    def value(found: re.Match[str]) -> str:
        name = found[1]
        if name not in os.environ:
            raise OptionError(f"the variable {name} is not set, and a header names it")
        return os.environ[name]

    return re.sub(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?", value, text)
