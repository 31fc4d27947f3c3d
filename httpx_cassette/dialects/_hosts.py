"""Who runs a server, as far as its name tells.

Formats are spoken by servers of all kinds, and the defaults that a provider documents hold for its own.
Nothing here knows a format, and nothing asks the network.
"""

from __future__ import annotations

import ipaddress

__all__ = ["is_local"]

_NAMES = frozenset({"localhost", "host.docker.internal"})
_ENDINGS = (".local", ".internal", ".lan")


def is_local(host: str) -> bool:
    """Tell whether a host is one of the user's own: what it serves, and how, is set there."""
    return host in _NAMES or host.endswith(_ENDINGS) or _is_private(host)


def _is_private(host: str) -> bool:
    if not host[-1:].isdigit() and ":" not in host:
        return False  # Not an address: settled without parsing one.
    try:
        return ipaddress.ip_address(host.strip("[]")).is_private
    except ValueError:
        return False
