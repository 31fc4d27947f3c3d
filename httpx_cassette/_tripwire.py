"""The last look at a line before it is written: is one of the credentials at hand still in it?

Redaction knows shapes; this knows values: those that the request itself carried, and those that the
environment holds under the name of a credential.
A value is looked for as it is, percent-encoded, escaped for JSON (twice too, as in the arguments of a tool
call), and in base64 at each of the three places where it can begin.

What is found is named, never shown: no message, attribute or ``repr`` holds a value.
Nothing here knows how a line is made or what happens when something is found.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from ._call import Call
from ._process import LOADING
from ._secret_names import is_secret_query

__all__ = ["HMAC_KEY_VARIABLE", "Tripwire"]

#: The environment variable with the key for kinds of secrets that can be guessed.
HMAC_KEY_VARIABLE = "HTTPX_CASSETTE_HMAC_KEY"

#: Shorter values occur by chance, or are words.
_SHORTEST = 16

_HEADER_ENDINGS = (
    b"authorization", b"api-key", b"apikey", b"api_key", b"-auth", b"-token", b"-secret", b"-password",
    b"access-key", b"auth-key", b"functions-key", b"subscription-key",
)  # fmt: skip

#: ``_ACCESS_KEY`` for AWS_SECRET_ACCESS_KEY, the last for AWS_BEARER_TOKEN_BEDROCK.  Not ``_KEY``: names of
#: caches and columns end so.
_VARIABLE_ENDINGS = (
    "API_KEY", "APIKEY", "TOKEN", "SECRET", "SECRET_KEY", "ACCESS_KEY", "PASSWORD", "_PAT", "_TOKEN_BEDROCK"
)  # fmt: skip

#: What people write where a client insists on a key and the server wants none: ``sk-no-key-required``
#: (llama.cpp), ``test-key-for-ci``.  Words and at most four digits, beginning with a word that says so.
_DUMMY = (
    r"(?i)(?:sk-)?(?:dummy|example|fake|local|mock|no|not|placeholder|test|unused|your)"
    r"(?:[-_ ][a-z]{1,12}){1,6}[-_]?[0-9]{0,4}"
    r"|(?:[a-z]{2,4}[-_])?(.)\1*"
)

#: A credential: what it is called, and its value.
_Watched = tuple[str, str]


class Tripwire:
    """The credentials that must not be in a line.

    Which variables hold a credential is remembered for the names of an environment, and the matcher for a set
    of values: a process pays for both once, and each recording for reading the values.

    Args:
        call: The call whose own credentials are looked for, as the client sent it.
        environ: The environment, by name.
    """

    __slots__ = ("_find", "_names")

    def __init__(self, call: Call, environ: Mapping[str, str]) -> None:
        self._find: Callable[[bytes], list[tuple[int, int, int]]] | None
        self._names, self._find = _matcher(tuple(_watched(call, environ)))

    def find(self, data: bytes) -> str | None:
        """Return the name of a credential whose value occurs in the data, or ``None``.

        Args:
            data: The bytes of the line as it would be written.
        """
        if self._find is None:
            return None
        found = self._find(data)
        return self._names[found[0][0]] if found else None


def _watched(call: Call, environ: Mapping[str, str]) -> Iterator[_Watched]:
    seen: set[str] = set()
    for source in (_of_headers(call), _of_url(call.url), _of_environment(environ)):
        for name, untrimmed in source:
            value = untrimmed.strip()
            if len(value) >= _SHORTEST and value not in seen and not re.fullmatch(_DUMMY, value):
                seen.add(value)
                yield name, value


def _of_headers(call: Call) -> Iterator[_Watched]:
    for raw_name, raw_value in call.headers:
        name, value = raw_name.lower(), raw_value.decode("utf-8", "surrogateescape")
        if name == b"cookie":
            for cookie in value.split(";"):
                yield "the cookie header", cookie.partition("=")[2]
        elif name.endswith(_HEADER_ENDINGS):
            title = f"the {name.decode('latin-1')} header"
            yield title, value
            scheme, _, credentials = value.strip().partition(" ")
            yield title, credentials
            if scheme.lower() == "basic":
                yield title, _basic_password(credentials)


def _basic_password(credentials: str) -> str:
    try:
        decoded = base64.b64decode(credentials)
    except (binascii.Error, ValueError):
        return ""
    return decoded.decode("utf-8", "surrogateescape").partition(":")[2]


def _of_url(url: str) -> Iterator[_Watched]:
    base, _, query = url.partition("#")[0].partition("?")
    authority = base.partition("//")[2].partition("/")[0]
    userinfo = authority.rpartition("@")[0]
    if userinfo:
        yield "the password in the URL", unquote(userinfo.partition(":")[2])
    for piece in query.split("&"):
        name, _, value = piece.partition("=")
        decoded = unquote_plus(name)
        if is_secret_query(decoded, unquote_plus(value)):
            yield f"the query parameter {decoded}", unquote_plus(value)


def _of_environment(environ: Mapping[str, str]) -> Iterator[_Watched]:
    for name in _credential_names(tuple(environ)):
        yield f"the environment variable {name}", environ[name]


# A process has one environment; a few more where tests set variables and take them back.
@functools.lru_cache(maxsize=4)
def _credential_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of variables that hold a credential."""
    return tuple(
        name
        for name in names
        if name.upper().endswith(_VARIABLE_ENDINGS) or name.upper() == HMAC_KEY_VARIABLE
    )


# One for each credential that calls are made with: servers that pass on their users' keys have many, and make
# the matcher anew when they come round, in a fraction of a millisecond.
@functools.lru_cache(maxsize=32)
def _matcher(
    watched: tuple[_Watched, ...],
) -> tuple[list[str], Callable[[bytes], list[tuple[int, int, int]]] | None]:
    """Return the name for each form of each value, and the function that finds the forms."""
    forms: dict[bytes, str] = {}
    for name, value in watched:
        for form in _forms(value):
            forms.setdefault(form, name)
    if not forms:
        return [], None
    # Imported at first use: the import costs more than the whole package may.
    with LOADING:
        from ahocorasick_rs import BytesAhoCorasick

    return list(forms.values()), BytesAhoCorasick(list(forms)).find_matches_as_indexes


def _forms(value: str) -> Iterator[bytes]:
    """Yield the ways in which a value may stand in a line."""
    data = value.encode("utf-8", "surrogateescape")
    yield data
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted.encode()
        yield re.sub("%..", lambda match: match[0].lower(), quoted).encode()
    for is_ascii in (False, True):
        text: str = value
        for _ in range(3):
            text = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
            yield text.encode("utf-8", "surrogateescape")
            yield text.replace("/", "\\/").encode("utf-8", "surrogateescape")
    yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterator[bytes]:
    """Yield the characters of base64 that depend on the value alone, for each place it can begin at."""
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + data)
        first, last = -(-shift * 8 // 6), (shift + len(data)) * 8 // 6
        inner = encoded[first:last]
        yield inner
        yield inner.translate(bytes.maketrans(b"+/", b"-_"))
