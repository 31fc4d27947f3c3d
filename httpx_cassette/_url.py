"""Where a call goes: the URL as it is stored, and as it enters the key.

Nothing here knows which API stands behind a URL.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from ._redact import Redaction
from ._secret_names import is_secret_query

__all__ = ["Target", "host_of", "normal_url", "read_target"]


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


#: URLs that were taken apart: programs call few of them. Each entry holds its redaction, so that no other can
#: take its identity; two that are equal may still have different keys.
_TARGETS: dict[tuple[str, int], tuple[Redaction, Target]] = {}
_MOST_TARGETS = 512


def read_target(url: str, redaction: Redaction) -> Target:
    """Return where a URL leads, redacted and normal."""
    known = _TARGETS.get((url, id(redaction)))
    if known is not None:
        return known[1]
    if len(_TARGETS) >= _MOST_TARGETS:
        _TARGETS.clear()
    target = _take_apart(url, redaction)
    _TARGETS[url, id(redaction)] = redaction, target
    return target


def _take_apart(url: str, redaction: Redaction) -> Target:
    stored = redaction.url(url)
    parts = urlsplit(stored)
    return Target(
        path=parts.path,
        host=host_of(stored),
        stored=stored,
        normal=normal_url(stored),
        normal_without_host=normal_url(stored, host=False),
    )


def host_of(stored: str) -> str:
    """Return the host of a URL as it is stored, in lower case and without a port."""
    return (urlsplit(stored).hostname or "").lower()


@lru_cache(maxsize=512)
def normal_url(url: str, host: bool = True) -> str:
    """Return a URL as it enters the key (rule 1).

    Scheme and host in lower case; default port, userinfo and fragment dropped; the path as sent; the query
    decoded and encoded again, sorted by name with the order of repeats and blanks kept.

    Args:
        url: An absolute URL.
        host: ``False`` leaves scheme, host and port out, for a gateway on a random port.
    """
    parts = urlsplit(url)
    query = _normal_query(parts.query)
    origin = f"{parts.scheme.lower()}://{_authority(parts)}" if host else ""
    return f"{origin}{parts.path or '/'}{'?' if query else ''}{query}"


def _normal_query(query: str) -> str:
    # With surrogateescape ``%FF`` and ``%FE``, which are no UTF-8, stay what they are.
    sent = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    pairs = [(name, value) for name, value in sent if not is_secret_query(name, value)]
    pairs.sort(key=lambda pair: pair[0])
    return urlencode(pairs, quote_via=quote, errors="surrogateescape")


_DEFAULT_PORTS = {"http": 80, "https": 443}


def _authority(parts: SplitResult) -> str:
    name = (parts.hostname or "").lower()
    name = f"[{name}]" if ":" in name else name
    try:
        port = parts.port
    except ValueError:  # A port that is no number: the URL is somebody else's mistake, the key is not.
        return parts.netloc.rpartition("@")[2].lower()
    return name if port is None or port == _DEFAULT_PORTS.get(parts.scheme.lower()) else f"{name}:{port}"
