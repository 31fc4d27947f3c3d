"""Refuses connections to other machines while a guarded cassette is replayed.

A transport sees nothing of what goes round it: aiohttp, sockets of one's own, another process. All but the
last raise an audit event, which no patch of a library can hide.
Loopback is let through, and so are the real calls of a transport: those of ``passthrough`` hosts.
"""

from __future__ import annotations

import ipaddress
import sys
import threading
from collections.abc import Iterable
from typing import Any

from . import _ledger
from ._driver import FORWARDING
from ._errors import NetworkRefused, OptionError, is_stop

__all__ = ["Guard", "read_guard"]

__tracebackhide__ = is_stop

#: Audit events that name a host, and which of their arguments does.
_HOSTS = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}


def read_guard(value: Any) -> Guard | None:
    """Return the guard that an option asks for.

    Args:
        value: Whether there is one, or the hosts that it lets through.

    Raises:
        OptionError: It is not understood.
    """
    if isinstance(value, bool) or value is None:
        return Guard(()) if value else None
    if isinstance(value, (list, tuple, set, frozenset)) and all(isinstance(host, str) for host in value):
        return Guard(value)
    raise OptionError(f"guard={value!r} is not understood; it takes True, False, or hosts to let through")


class Guard:
    """Refuses connections between :meth:`begin` and :meth:`end`; several may at once.

    Args:
        hosts: Names and addresses that are let through.
    """

    def __init__(self, hosts: Iterable[str]) -> None:
        self.hosts = frozenset(hosts)
        self._addresses: frozenset[str] = frozenset()

    def begin(self) -> None:
        """Refuse from now on."""
        if self.hosts:
            self._addresses = frozenset(address for host in self.hosts for address in _resolve(host))
        with _LOCK:
            _install()
            _guards.append(self)

    def end(self) -> None:
        """Refuse no more, unless another guard does."""
        with _LOCK:
            _guards.remove(self)

    def lets_through(self, host: str) -> bool:
        """Tell whether a host was named."""
        return host in self.hosts or host in self._addresses


_guards: list[Guard] = []
_LOCK = threading.RLock()
_is_installed = False


def _install() -> None:
    global _is_installed
    if not _is_installed:
        _is_installed = True
        # It stays for ever, as audit hooks do; without a guard it costs a look at a list.
        sys.addaudithook(_audit)


def _resolve(host: str) -> list[str]:
    import socket  # Late: only who names hosts needs it.

    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except OSError:  # Whoever connects to it will learn that it is not there.
        return []


def _audit(  # pragma: no cover  # audit hooks are not traced
    event: str, arguments: tuple[Any, ...], hosts: dict[str, int] = _HOSTS, guards: list[Guard] = _guards
) -> None:
    # Defaults, not globals: the hook outlives the names of this module.
    if not guards or event not in hosts:
        return
    address = arguments[hosts[event]]
    host, port = (address[0], address[1]) if isinstance(address, tuple) else (address, None)
    # Nothing: a wildcard, or the peer of a connected socket. A text for ``connect``: a Unix socket's path.
    if not host or (event == "socket.connect" and not isinstance(address, tuple)):
        return
    name = host.decode("idna") if isinstance(host, bytes) else str(host)
    if event == "socket.getaddrinfo" and isinstance(arguments[1], int):
        port = arguments[1]
    if not (_is_loopback(name) or FORWARDING.get() or all(guard.lets_through(name) for guard in guards)):
        raise _refusal(name, port if isinstance(port, int) else None)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _refusal(host: str, port: int | None) -> NetworkRefused:
    where = host if port is None else f"{host}:{port}"
    error = NetworkRefused(
        f"a connection to {where} was refused: it goes round the cassette that is replayed\n"
        "  because      a guard is on, and only loopback and passthrough hosts are let through\n"
        "  to close it: give the client a CassetteTransport, or have it use httpx's own transport;\n"
        "               aiohttp, boto3 and sockets of one's own never come by a cassette\n"
        f"  to allow it: guard=[{host!r}] in [tool.httpx_cassette] of pyproject.toml",
        {"host": host, "port": port},
    )
    _ledger.enter(error, key=f"network {where}")
    return error
