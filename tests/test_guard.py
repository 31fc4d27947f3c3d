"""What a guard refuses while a cassette is replayed, and what it lets through.

Events are looked at one by one here; that they are raised, and what becomes of them, is tested by programs of
their own, as the network is closed for this one by other means.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from httpx_cassette import NetworkRefused, OptionError, _guard, _ledger, use_cassette
from httpx_cassette._block import open_blocks
from httpx_cassette._driver import FORWARDING
from httpx_cassette._guard import Guard, read_guard

from .taping import run_program, tape


@contextmanager
def guarded(*hosts: str) -> Iterator[None]:
    """Have a guard be on."""
    guard = Guard(hosts)
    guard.begin()
    try:
        yield
    finally:
        guard.end()


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Give the addresses of names, as they are looked up; changed by the test."""
    known: dict[str, list[str]] = {}

    def look_up(host: str, port: object) -> list[Any]:
        assert FORWARDING.get()
        if host not in known:
            raise OSError(host)
        return [(socket.AF_INET, 1, 6, "", (address, 0)) for address in known[host]]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return known


def outcome(event: str, *arguments: Any) -> str:
    """Return whether an event is refused, and which host and port that names."""
    try:
        _guard._audit(event, arguments)
    except NetworkRefused as refused:
        return f"refused {refused.host} {refused.port}"
    return "let through"


def of_family(name: str) -> Any:
    """Return what a socket of a family is to the hook."""
    return SimpleNamespace(family=SimpleNamespace(name=name))


INET, INET6, UNIX = of_family("AF_INET"), of_family("AF_INET6"), of_family("AF_UNIX")


@pytest.mark.parametrize(
    ("event", "arguments", "expected"),
    [
        ("socket.connect", (INET, ("192.0.2.1", 443)), "refused 192.0.2.1 443"),
        ("socket.connect", (INET6, ("2001:DB8::1", 443, 0, 0)), "refused 2001:db8::1 443"),
        ("socket.connect", (INET6, ("fe80::1%eth0", 443, 0, 0)), "refused fe80::1%eth0 443"),
        ("socket.connect", (INET, ("API.example.com.", 443)), "refused api.example.com 443"),
        ("socket.connect", ("anything", ("192.0.2.1", 443)), "refused 192.0.2.1 443"),
        ("socket.sendto", (INET, ("192.0.2.1", 53)), "refused 192.0.2.1 53"),
        ("socket.sendmsg", (INET, ("192.0.2.1", 53)), "refused 192.0.2.1 53"),
        ("socket.getaddrinfo", ("api.example.com", 443, 0, 0, 0), "refused api.example.com 443"),
        ("socket.getaddrinfo", (b"api.example.com", "https", 0, 0, 0), "refused api.example.com None"),
        ("socket.getaddrinfo", (bytearray(b"a.test"), None, 0, 0, 0), "refused a.test None"),
        ("socket.getaddrinfo", ("b\xfccher.test", 443, 0, 0, 0), "refused xn--bcher-kva.test 443"),
        ("socket.getaddrinfo", ("\xfc" * 80, 443, 0, 0, 0), f"refused {chr(0xFC) * 80} 443"),
        ("socket.getaddrinfo", (b"\xff", 443, 0, 0, 0), "refused \ufffd 443"),
        ("socket.gethostbyname", ("api.example.com",), "refused api.example.com None"),
        ("socket.gethostbyaddr", ("192.0.2.1",), "refused 192.0.2.1 None"),
        ("socket.connect", (INET, ("127.0.0.1", 443)), "let through"),
        ("socket.connect", (INET, ("127.8.9.10", 443)), "let through"),
        ("socket.connect", (INET6, ("::1", 443, 0, 0)), "let through"),
        ("socket.connect", (INET6, ("::ffff:127.0.0.1", 443, 0, 0)), "let through"),
        ("socket.connect", (INET6, ("::ffff:192.0.2.1", 443, 0, 0)), "refused ::ffff:192.0.2.1 443"),
        ("socket.connect", (INET, ("localhost", 443)), "let through"),
        ("socket.connect", (INET, ("db.LOCALHOST", 443)), "let through"),
        ("socket.connect", (INET, ("0.0.0.0", 443)), "let through"),
        ("socket.connect", (INET, ("", 443)), "let through"),
        ("socket.connect", (UNIX, "/run/docker.sock"), "let through"),
        ("socket.connect", (INET, "no tuple"), "let through"),
        ("socket.sendto", (UNIX, b"/run/log"), "let through"),
        ("socket.sendto", (of_family("AF_NETLINK"), (4, 0)), "let through"),
        ("socket.sendmsg", (INET, None), "let through"),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0), "let through"),
        ("socket.getaddrinfo", ("0.0.0.0", 80, 0, 0, 0), "let through"),
        ("socket.getaddrinfo", ("192.0.2.1", 80, 0, 0, 0), "let through"),
        ("socket.gethostbyname", (socket.gethostname(),), "let through"),
        ("socket.gethostbyaddr", ("127.0.0.1",), "let through"),
        ("socket.bind", (INET, ("192.0.2.1", 443)), "let through"),
    ],
)
def test_what_leads_to_another_machine_is_refused(
    event: str, arguments: tuple[Any, ...], expected: str
) -> None:
    """Connections, datagrams and questions; what stays on this machine is let through."""
    with guarded():
        assert expected == outcome(event, *arguments)

    assert "let through" == outcome(event, *arguments)


def test_the_report_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed once, stands in the ledger, and is no ordinary exception."""
    with guarded():
        for _ in range(2):
            with pytest.raises(NetworkRefused) as error:
                _guard._audit("socket.connect", (INET, ("192.0.2.1", 443)))
    report = (
        "a connection to 192.0.2.1:443 was refused: it goes round the cassette that is replayed\n"
        "  because      a guard is on, and only loopback and passthrough hosts are let through\n"
        "  to close it: give the client a CassetteTransport, or have it use httpx's own transport;\n"
        "               aiohttp, boto3 and sockets of one's own never come by a cassette\n"
        "  to allow it: guard=['192.0.2.1'] where the cassette is opened"
    )

    assert (report, report + "\n") == (str(error.value), capsys.readouterr().err)
    assert not isinstance(error.value, Exception)
    assert [("NetworkRefused", 2)] == [(entry.kind, entry.count) for entry in _ledger.entries()]


def test_hosts_that_are_named_are_let_through_with_their_addresses(names: dict[str, list[str]]) -> None:
    """Names are looked up when an unknown address is connected to, as they move, and no sooner."""
    connect = "socket.connect"
    with guarded("API.test", "gone.test", "192.0.2.9"):
        found = [outcome("socket.getaddrinfo", "api.test", 443, 0, 0, 0)]
        found += [outcome(connect, INET, ("192.0.2.9", 1)), outcome(connect, INET, ("192.0.2.1", 1))]
        names["api.test"] = ["192.0.2.1"]
        found += [outcome(connect, INET, ("192.0.2.1", 1)), outcome(connect, INET, ("192.0.2.2", 1))]
        names["api.test"] = ["192.0.2.2"]
        found += [outcome(connect, INET, ("192.0.2.1", 1)), outcome(connect, INET, ("192.0.2.2", 1))]
        found.append(outcome("socket.gethostbyname", "other.test"))

    assert [
        "let through",
        "let through",
        "refused 192.0.2.1 1",
        "let through",
        "refused 192.0.2.2 1",
        "let through",
        "let through",
        "refused other.test None",
    ] == found


def test_of_two_guards_each_has_its_say(names: dict[str, list[str]]) -> None:
    """A host is let through where both name it, until one of them ends."""
    event = ("socket.gethostbyname", "a.test")
    with guarded("a.test"):
        found = [outcome(*event)]
        with guarded("b.test"):
            found.append(outcome(*event))
        found.append(outcome(*event))

    assert ["let through", "refused a.test None", "let through"] == found


def test_real_calls_are_let_through() -> None:
    """They are those of passthrough hosts, and of blocks that record."""
    token = FORWARDING.set(True)
    try:
        with guarded():
            assert "let through" == outcome("socket.connect", INET, ("192.0.2.1", 443))
    finally:
        FORWARDING.reset(token)


def test_a_guard_is_asked_for_in_several_ways() -> None:
    """By a flag, or by hosts."""
    with_hosts = read_guard(["a.test", "B.test"])
    without = read_guard(True)

    assert (None, None) == (read_guard(False), read_guard(None))
    assert without is not None
    assert with_hosts is not None
    assert (set(), {"a.test", "b.test"}) == (set(without.hosts), set(with_hosts.hosts))
    for wrong in ("a.test", 1, [1]):
        with pytest.raises(OptionError) as error:
            read_guard(wrong)
        assert f"guard={wrong!r} is not understood; it takes True, False, or hosts to let through" == str(
            error.value
        )


@pytest.mark.parametrize(("mode", "number"), [("replay", 1), ("record", 0), ("rerecord", 0), ("live", 0)])
def test_only_a_replay_is_guarded(tmp_path: Path, mode: str, number: int) -> None:
    """With the block the guard ends, whatever ends it."""
    with pytest.raises(KeyError):
        with use_cassette(tmp_path / "a.jsonl", mode=mode, guard=True):
            assert number == len(_guard._guards)
            raise KeyError

    assert [] == _guard._guards


def test_a_block_that_cannot_be_guarded_is_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails while a block opens leaves nothing behind."""

    def fail() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("httpx_cassette._use.open_patches", fail)
    with pytest.raises(KeyboardInterrupt):
        use_cassette(tmp_path / "a.jsonl", guard=True).__enter__()

    assert ((), []) == (open_blocks(), _guard._guards)


def test_every_way_out_is_refused(tmp_path: Path) -> None:
    """Sockets of one's own, blocking or in event loops, and what is let through is not disturbed."""
    tape(tmp_path / "a.jsonl")
    ended = run_program(
        tmp_path,
        """
        import asyncio, socket, anyio, httpx, trio
        AWAY = ("192.0.2.1", 443)
        def udp():
            with socket.socket(type=socket.SOCK_DGRAM) as sending:
                sending.sendto(b"", AWAY)
        async def connect():
            await anyio.connect_tcp(*AWAY)
        async def by_name():
            await anyio.connect_tcp("a.test", 443)
        async def streams():
            await asyncio.open_connection("a.test", 443)
        ways = {
            "connect": lambda: socket.create_connection(AWAY),
            "udp": udp,
            "getaddrinfo": lambda: socket.getaddrinfo("a.test", 443),
            "gethostbyname": lambda: socket.gethostbyname("a.test"),
            "asyncio": lambda: asyncio.run(connect()),
            "asyncio name": lambda: asyncio.run(by_name()),
            "asyncio streams": lambda: asyncio.run(streams()),
            "trio": lambda: trio.run(connect),
            "trio name": lambda: trio.run(by_name),
        }
        def find(error):
            while hasattr(error, "exceptions"):
                error = error.exceptions[0]
            return error
        def attempt(name):
            try:
                ways[name]()
            except Exception as error:
                print(name, "swallowed", repr(error))
            except BaseException as error:
                print(name, type(find(error)).__name__)
        with use_cassette("a.jsonl", guard=True, on_miss=None):
            for name in ways:
                attempt(name)
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname()).close()
                socket.create_connection(("localhost", server.getsockname()[1])).close()
            with socket.create_server(("0.0.0.0", 0)):
                pass
            if hasattr(socket, "AF_UNIX"):
                with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
                    server.bind("s")
                    server.listen()
                    client.connect("s")
            print(said(httpx.post(URL, json=CHAT, verify=False, trust_env=False)))
        """,
    )
    names = "connect,udp,getaddrinfo,gethostbyname,asyncio,asyncio name,asyncio streams,trio,trio name"
    refused = [f"{name} NetworkRefused" for name in names.split(",")]

    assert [*refused, "a"] == ended.out.splitlines(), ended.err
    assert 2 == ended.status


def test_passthrough_calls_are_let_through(tmp_path: Path) -> None:
    """Sync, asyncio and trio; also where an event loop looks a name up in a thread of its own."""
    ended = run_program(
        tmp_path,
        """
        import asyncio, socket, httpx, trio
        real = socket.getaddrinfo
        def look_up(host, *args, **given):
            name = host.decode() if isinstance(host, bytes) else host
            if name == "a.test":
                sys.audit("socket.getaddrinfo", host, args[0] if args else None, 0, 0, 0)
                host = "127.0.0.1"
            return real(host, *args, **given)
        socket.getaddrinfo = look_up
        from httpx_cassette.stand_in import StandInServer
        async def ask():
            async with httpx.AsyncClient(trust_env=False, verify=False) as client:
                return (await client.get(url, headers=key)).status_code
        with StandInServer() as server:
            url, key = server.url.replace("127.0.0.1", "a.test") + "/models", {"authorization": "Bearer x"}
            with use_cassette("a.jsonl", guard=True, passthrough="a.test") as cassette:
                print(httpx.get(url, headers=key, trust_env=False, verify=False).status_code)
                print(asyncio.run(ask()))
                print(trio.run(ask))
                print(cassette.stats.passed)
            with use_cassette("a.jsonl", guard=True):
                try:
                    socket.create_connection(("a.test", server.url.split(":")[-1].partition("/")[0]))
                except httpx_cassette.NetworkRefused as error:
                    print(error.host)
        """,
    )

    assert "200\n200\n200\n3\na.test\n" == ended.out, ended.err


@pytest.mark.parametrize(
    ("project", "argument", "hosts"),
    [
        ("guard = true", None, frozenset()),
        ('guard = ["db.internal"]', None, frozenset({"db.internal"})),
        ("guard = true", False, None),
        ("", None, None),
        ("", ["other.internal"], frozenset({"other.internal"})),
    ],
    ids=["on", "hosts", "argument-wins", "nothing", "argument"],
)
def test_a_project_may_set_the_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, project: str, argument: object, hosts: object
) -> None:
    """``[tool.httpx_cassette]`` says whether there is a guard, unless the block says it itself."""
    (tmp_path / "pyproject.toml").write_text(f"[tool.httpx_cassette]\n{project}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    use = use_cassette("chat.jsonl", guard=argument)  # type: ignore[arg-type]  # one of what it takes
    with use:
        found = [guard.hosts for _, guard in use._blocks if guard is not None]

    assert ([] if hosts is None else [hosts]) == found
