"""A curl command line, as pages of documentation show it and browsers copy it, as a call.

What curl would send is worked out, nothing is sent. An option that is not known is refused by its name, as it
could change what is sent; what only says how curl goes about it is passed over. No value is ever told: one of
them is the key.
"""

from __future__ import annotations

import base64
import codecs
import mimetypes
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath
from urllib.parse import quote_plus

from .._call import Call
from .._errors import OptionError

__all__ = ["is_curl", "read_curl"]

#: Short name -> long name, of all options that are known.
_SHORT = {
    "X": "request", "H": "header", "d": "data", "F": "form", "u": "user", "A": "user-agent", "e": "referer",
    "b": "cookie", "G": "get", "I": "head", "o": "output", "m": "max-time", "x": "proxy", "w": "write-out",
    "E": "cert", "c": "cookie-jar", "D": "dump-header", "s": "silent", "S": "show-error", "f": "fail",
    "L": "location", "k": "insecure", "v": "verbose", "i": "include", "N": "no-buffer", "g": "globoff",
    "#": "progress-bar", "0": "http1.0", "4": "ipv4", "6": "ipv6", "q": "disable", "O": "remote-name",
}  # fmt: skip

#: Options that change what is sent, and take a value.
_SENT = frozenset(
    "request header data data-ascii data-raw data-binary data-urlencode json form form-string url user "
    "user-agent referer cookie oauth2-bearer".split()
)

#: Options that take a value, and say only how curl goes about it.
_PASSED_OVER_WITH_VALUE = frozenset(
    "output max-time proxy write-out cert cookie-jar dump-header cacert key connect-timeout retry "
    "retry-delay retry-max-time max-redirs resolve limit-rate stderr".split()
)

#: The others that do.
_PASSED_OVER = frozenset(
    "silent show-error fail fail-with-body location insecure verbose include no-buffer globoff progress-bar "
    "no-progress-meter http1.0 http1.1 http2 http2-prior-knowledge http3 ipv4 ipv6 disable compressed "
    "remote-name tlsv1.2 tlsv1.3 retry-all-errors retry-connrefused tcp-nodelay".split()
)

#: Words with which a shell begins something else.
_ENDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1", "2>/dev/null"})

_FORM = "application/x-www-form-urlencoded"
_BOUNDARY = "httpx-cassette-explains"


def is_curl(text: str) -> bool:
    """Tell whether a text begins like a curl command line."""
    return _CURL.match(text) is not None


_CURL = re.compile(r"\s*(?:\$\s+)?curl(?:\.exe)?(?=[\s\\])")


def read_curl(text: str, read_file: Callable[[str], bytes]) -> Call:
    """Return the call that a curl command line makes.

    Args:
        text: The command line; of several lines, where each but the last ends with a backslash.
        read_file: Gives what is in a file that ``@`` names.

    Raises:
        OptionError: It cannot be read.
    """
    begin = _CURL.match(text)
    assert begin is not None  # is_curl has told
    try:
        words = shlex.split(_plain_quotes(text[begin.end() :]))
    except ValueError as error:
        raise OptionError("the curl command line has a quote that does not end") from error
    request = _Asked(read_file)
    for name, value in _options(words):
        request.take(name, value)
    return request.call()


# -- words ---------------------------------------------------------------------------------------------

#: A stretch in single quotes, in double quotes, or in those of bash; an escape; a line that goes on.
_QUOTED = re.compile(
    r"""(?P<single>(?<!\$)'[^']*')|(?P<double>"(?:[^"\\]|\\.)*")|\$'(?P<bash>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<goes_on>\\\r?\n)|(?P<escape>\\.)""",
    re.DOTALL,
)


def _plain_quotes(text: str) -> str:
    """Return a command line without what shlex does not know: lines that go on, and ``$'...'`` of bash."""

    def plain(found: re.Match[str]) -> str:
        if found["goes_on"]:
            return " "
        return found[0] if found["bash"] is None else shlex.quote(_unescaped(found["bash"]))

    return _QUOTED.sub(plain, text)


_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|x([0-9a-fA-F]{1,2})|([0-7]{1,3})|(.))", re.DOTALL
)


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        digits = found[1] or found[2] or found[3]
        if digits is not None:
            code = int(digits, 16)
            return chr(code) if code <= 0x10FFFF else "\ufffd"
        if found[4] is not None:
            return chr(int(found[4], 8))
        return str(codecs.decode(found[0], "unicode_escape")) if found[5] in "abfnrtv" else found[5]

    return _ESCAPE.sub(character, text)


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield each option by its long name with its value; a word that belongs to none is a URL."""
    waiting = iter(words)
    for word in waiting:
        if word in _ENDS:
            return
        if word == "--" or not word.strip():
            continue
        if word.startswith("--"):
            name = word[2:]
            yield name, _value(word, waiting) if _takes_value(name, word) else ""
        elif word.startswith("-") and word != "-":
            yield from _short_options(word[1:], waiting)
        else:
            yield "url", word


def _short_options(letters: str, waiting: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a word such as ``-sSd``; what follows one that takes a value is its value."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter, "")
        if _takes_value(name, f"-{letter}"):
            yield name, letters or _value(f"-{letter}", waiting)
            return
        yield name, ""


def _takes_value(name: str, shown: str) -> bool:
    if name in _SENT or name in _PASSED_OVER_WITH_VALUE:
        return True
    if name not in _PASSED_OVER and name not in ("get", "head"):
        # Its value may be attached, and is not told.
        raise OptionError(f"the curl option {shown.partition('=')[0]} is not known here; leave it out")
    return False


def _value(option: str, waiting: Iterator[str]) -> str:
    value = next(waiting, None)
    if value is None:
        raise OptionError(f"the curl option {option} has no value")
    return value


# -- the call ------------------------------------------------------------------------------------------


@dataclass
class _Asked:
    """What the options of a command line ask for, one after the other."""

    read_file: Callable[[str], bytes]
    method: str = ""
    urls: list[str] = field(default_factory=list)
    headers: list[tuple[str, str]] = field(default_factory=list)
    data: list[bytes] = field(default_factory=list)
    json: list[bytes] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)
    is_get: bool = False
    is_head: bool = False

    def take(self, name: str, value: str) -> None:
        """Take an option into account."""
        if name == "request":
            self.method = value
        elif name == "url":
            self.urls.append(value)
        elif name == "header":
            self._take_header(value)
        elif name in _NAMED_HEADERS:
            self.headers.append((_NAMED_HEADERS[name], value))
        elif name == "oauth2-bearer":
            self.headers.append(("Authorization", f"Bearer {value}"))
        elif name == "user":
            secret = base64.b64encode(value.encode("utf-8", "replace")).decode()
            self.headers.append(("Authorization", f"Basic {secret}"))
        elif name == "json":
            self.json.append(self._content(value))
        elif name in ("data", "data-ascii"):
            # As curl does, which sends the lines of a file as one.
            named = self._content(value)
            self.data.append(named.translate(None, b"\r\n\0") if value.startswith("@") else named)
        elif name in ("data-raw", "data-binary"):
            self.data.append(_encoded(value) if name == "data-raw" else self._content(value))
        elif name == "data-urlencode":
            self.data.append(self._url_encoded(value))
        elif name in ("form", "form-string"):
            self.parts.append(self._part(value, is_plain=name == "form-string"))
        elif name in ("get", "head"):
            self.is_get, self.is_head = self.is_get or name == "get", self.is_head or name == "head"

    def call(self) -> Call:
        """Return what would be sent.

        Raises:
            OptionError: There is no address, or several, or bodies of two kinds.
        """
        if len(self.urls) != 1:
            raise OptionError(
                f"the curl command line names {len(self.urls) or 'no'} addresses, and one is due"
            )
        kinds = [kind for kind in (self.data, self.json, self.parts) if kind]
        if len(kinds) > 1:
            raise OptionError("the curl command line has bodies of two kinds; one is due")
        url = self.urls[0] if "://" in self.urls[0] else f"http://{self.urls[0]}"
        body, content_type = self._body()
        if self.is_get and body:
            address, mark, fragment = url.partition("#")
            url = (
                f"{address}{'&' if '?' in address else '?'}{body.decode('utf-8', 'replace')}{mark}{fragment}"
            )
            body = b""
        elif body and not any(name.lower() == "content-type" for name, _ in self.headers):
            self.headers.append(("Content-Type", content_type))
        method = self.method or ("HEAD" if self.is_head else "POST" if body else "GET")
        headers = tuple((_encoded(name), _encoded(value)) for name, value in self.headers)
        return Call(method.upper(), url, headers, body)

    def _body(self) -> tuple[bytes, str]:
        if self.parts:
            delimiter = f"--{_BOUNDARY}".encode()
            pieces = (delimiter + b"\r\n" + part + b"\r\n" for part in self.parts)
            return b"".join(pieces) + delimiter + b"--\r\n", f"multipart/form-data; boundary={_BOUNDARY}"
        if self.json:
            return b"".join(self.json), "application/json"
        return b"&".join(self.data), _FORM

    def _take_header(self, value: str) -> None:
        if value.startswith("@"):
            raise OptionError("headers in a file are not read; write them out")
        name, _, text = value.partition(":")
        # ``-H 'Name:'`` has curl leave one out, ``Name;`` has it send an empty one.
        if text.strip():
            self.headers.append((name.strip(), text.strip()))

    def _content(self, value: str) -> bytes:
        return self._file(value[1:]) if value.startswith("@") else _encoded(value)

    def _file(self, name: str) -> bytes:
        if name == "-":
            raise OptionError("the body of the curl command line comes from a pipe; write it to a file")
        return self.read_file(name)

    def _url_encoded(self, value: str) -> bytes:
        name, mark, text = value.partition("=")
        if not mark and "@" in value:
            name, _, file = value.partition("@")
            content = self._file(file).decode("utf-8", "replace")
        else:
            name, content = (name, text) if mark else ("", value)
        return f"{name}{'=' if name else ''}{quote_plus(content, errors='surrogatepass')}".encode(
            "utf-8", "surrogatepass"
        )

    def _part(self, value: str, *, is_plain: bool) -> bytes:
        name, mark, text = value.partition("=")
        if not mark:
            raise OptionError("a form field of the curl command line has no =")
        head = f'Content-Disposition: form-data; name="{name}"'
        if is_plain:
            return _encoded(f"{head}\r\n\r\n{text}")
        text, *more = text.split(";")
        said = dict(each.strip().partition("=")[::2] for each in more)
        if not text.startswith(("@", "<")):
            kind = f"\r\nContent-Type: {said['type']}" if "type" in said else ""
            return _encoded(f"{head}{kind}\r\n\r\n{text}")
        content = self._file(text[1:])
        if text.startswith("<"):
            return _encoded(f"{head}\r\n\r\n") + content
        file = said.get("filename", PurePath(text[1:]).name)
        kind = said.get("type") or mimetypes.guess_type(file)[0] or "application/octet-stream"
        return _encoded(f'{head}; filename="{file}"\r\nContent-Type: {kind}\r\n\r\n') + content


_NAMED_HEADERS = {"user-agent": "User-Agent", "referer": "Referer", "cookie": "Cookie"}


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
