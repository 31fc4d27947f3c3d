"""Refuses connections to other machines while a guarded cassette is replayed.

A transport sees nothing of what goes round it: aiohttp, sockets of one's own, another process. All but the
last raise an audit event, which no patch of a library can hide; what connects without Python's own sockets,
as uvloop, grpc and other compiled code does, raises none.
Refused are connections, datagrams and the questions for addresses that come before them. This machine is let
through: loopback, addresses that mean all of its own, its own name, Unix sockets. So are the real calls of a
transport: those of ``passthrough`` hosts.
Whoever names hosts names their addresses as well. They are looked up when something connects to an address
that is not known, as names have others from one minute to the next.
"""

from __future__ import annotations

import ipaddress
import sys
from collections.abc import Iterable
from typing import Any

from . import _ledger
from ._block import LOCK
from ._driver import FORWARDING
from ._errors import NetworkRefused, OptionError, is_stop

__all__ = ["Guard", "read_guard"]

__tracebackhide__ = is_stop

#: Audit events of a socket that sends something to an address.
_SENDING = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg"))

#: Those of a question for the addresses of a name, and for the name of an address.
_ASKING = frozenset(("socket.getaddrinfo", "socket.gethostbyname"))
_ASKING_BACK = frozenset(("socket.gethostbyaddr", "socket.getnameinfo"))
_EVENTS = _SENDING | _ASKING | _ASKING_BACK


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
        self.hosts = frozenset(map(_name_of, hosts))
        self._addresses: set[str] = set()

    def begin(self) -> None:
        """Refuse from now on."""
        with LOCK:
            _install()
            _guards.append(self)

    def end(self) -> None:
        """Refuse no more, unless another guard does; ending one that did not begin does nothing."""
        with LOCK:
            if self in _guards:
                _guards.remove(self)

    def lets_through(self, host: str) -> bool:
        """Tell whether a host was named, or is an address of one that was."""
        if host in self.hosts or host in self._addresses:
            return True
        if not self.hosts or _address(host) is None:
            return False
        # By the names themselves, which are let through: this asks, and connects to nothing.
        for name in self.hosts:
            self._addresses.update(_resolve(name))
        return host in self._addresses


_guards: list[Guard] = []
_is_installed = False


def _install() -> None:
    global _is_installed
    if not _is_installed:
        _is_installed = True
        # It stays for ever, as audit hooks do; without a guard it costs a look at a list.
        sys.addaudithook(_audit)


def _resolve(host: str) -> list[str]:
    """Return the addresses of a host that is let through, whatever other guards say."""
    import socket  # Late: only who names hosts needs it.

    token = FORWARDING.set(True)
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None)]
    except (OSError, UnicodeError):  # Whoever connects to it learns that it is not there.
        return []
    finally:
        FORWARDING.reset(token)


def _audit(
    event: str, arguments: tuple[Any, ...], events: frozenset[str] = _EVENTS, guards: list[Guard] = _guards
) -> None:
    # Defaults, not globals: the hook outlives the names of this module.
    if guards and event in events:
        _check(event, arguments)


def _check(event: str, arguments: tuple[Any, ...]) -> None:
    host, port = _target(event, arguments)
    # Nothing: a wildcard, or the peer of a connected socket.
    if not host or FORWARDING.get():
        return
    name = _name_of(host)
    if not (_is_here(name, event) or all(guard.lets_through(name) for guard in list(_guards))):
        raise _refusal(name, port if isinstance(port, int) else None)


def _target(event: str, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the host and the port that an event leads to."""
    if event == "socket.getnameinfo":
        return arguments[0][0], arguments[0][1]
    if event not in _SENDING:
        return arguments[0], arguments[1] if event == "socket.getaddrinfo" else None
    socket, address = arguments
    # Other families than those of the internet stay on the machine; a path is no tuple, either.
    is_internet = getattr(getattr(socket, "family", None), "name", "AF_INET").startswith("AF_INET")
    return address[:2] if is_internet and isinstance(address, tuple) else (None, None)


def _name_of(host: Any) -> str:
    """Return a host as it is compared: a name in lower case, as it is asked for."""
    text = host if isinstance(host, str) else bytes(host).decode("ascii", "replace")
    try:
        text = text if text.isascii() else text.encode("idna").decode("ascii")
    except UnicodeError:  # No name: whoever asks for it learns so.
        pass
    return text.lower().rstrip(".")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _is_here(host: str, event: str) -> bool:
    """Tell whether this leads to no other machine."""
    address = _address(host)
    if address is None:
        import socket

        return host == "localhost" or host.endswith(".localhost") or host == _name_of(socket.gethostname())
    if event in _ASKING:
        return True  # It needs no answer: this is how a server learns where to listen.
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or address.is_unspecified


def _refusal(host: str, port: int | None) -> NetworkRefused:
    where = host if port is None else f"{host}:{port}"
    error = NetworkRefused(
        f"a connection to {where} was refused: it goes round the cassette that is replayed\n"
        "  because      a guard is on, and only loopback and passthrough hosts are let through\n"
        "  to close it: give the client a CassetteTransport, or have it use httpx's own transport;\n"
        "               aiohttp, boto3 and sockets of one's own never come by a cassette\n"
        f"  to allow it: guard=[{host!r}] where the cassette is opened",
        {"host": host, "port": port},
    )
    _ledger.enter(error, key=f"network {where}")
    return error
