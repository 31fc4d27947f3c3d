"""Never executed: it must type-check, as a user's file would."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import httpx2

import httpx_cassette
import httpx_cassette.httpx2
from httpx_cassette import (
    Call,
    Cassette,
    CassetteAmbiguous,
    CassetteMiss,
    CassetteTransport,
    KeyPolicy,
    Mode,
    NetworkRefused,
    OpenCassette,
    Probe,
    Redaction,
    dialects,
    stability_probe,
    use_cassette,
)

if TYPE_CHECKING:
    from typing_extensions import assert_type


def clients() -> None:
    """Each class fits the two clients of its library."""
    httpx.Client(transport=CassetteTransport("chat.jsonl"))
    httpx.AsyncClient(transport=CassetteTransport(Path("chat.jsonl")))
    httpx2.Client(transport=httpx_cassette.httpx2.CassetteTransport("chat.jsonl"))
    httpx2.AsyncClient(transport=httpx_cassette.httpx2.CassetteTransport(["seed.jsonl", Path("full.jsonl")]))
    httpx.Client(mounts={"all://": CassetteTransport(Cassette("chat.jsonl", strict=True))})


def is_recorded_by_us(call: Call) -> bool:
    """A predicate on the call."""
    return call.url.startswith("https://api.openai.com/") and call.header(b"x-team") == "us"


def read() -> None:
    """A cassette is opened by a name of the package that ``__all__`` leaves out."""
    for exchange in httpx_cassette.open(Path("chat.jsonl")):
        assert_type(exchange.text, str)


def options() -> None:
    """Every option is known by name and type."""
    CassetteTransport(
        "chat.jsonl",
        mode=Mode.RECORD,
        next_transport=httpx.HTTPTransport(retries=2),
        require_system="anywhere",
        prompt_files={"system": "prompts/system.md"},
        key_policy=KeyPolicy(
            ignore=["metadata.run_id"], masks=["date"], headers=["x-tenant"], extra={"version": 7}
        ),
        redact=Redaction(patterns={"ticket": r"TICKET-\d+"}),
        passthrough=["localhost", is_recorded_by_us],
        ignore=None,
        samples=3,
        record_statuses=(200, "4xx"),
        max_calls=10,
        chunk_size=1,
        wire_chunk_size=3,
        noise=True,
        on_miss=lambda miss: print(miss.fingerprint, miss.changed),
        fsync=False,
    )
    CassetteTransport("chat.jsonl", nonsense=True)  # type: ignore[call-arg]


def facts(transport: CassetteTransport, request: httpx.Request) -> None:
    """What can be asked of a transport, and of a miss."""
    fingerprint: str = transport.fingerprint(request)
    canonical: bytes = transport.explain(request).canonical
    replayed: int = transport.stats.replayed
    httpx_cassette.CassetteMist  # type: ignore[attr-defined]  # noqa: B018
    print(fingerprint, canonical, replayed, transport.mode is Mode.REPLAY, transport.cassettes[-1].path)
    with httpx_cassette.expected_miss() as expected:
        httpx.Client(transport=transport).send(request)
    print(expected.fingerprint)
    try:
        httpx.Client(transport=transport).send(request)
    except CassetteMiss as miss:
        nearest: str | None = miss.nearest
        print(nearest, miss.dialect, miss.cassettes)


def block() -> None:
    """What a block gives, and that its options are known by name and type."""
    with use_cassette("chat.jsonl", mode="record", samples=2, guard=True) as cassette:
        assert_type(cassette, OpenCassette)
        served: list[tuple[str, str | None]] = [(each.outcome, each.file) for each in cassette.recordings]
        print(cassette.hits + cassette.recorded + cassette.stats.live, cassette.calls, cassette.unrecorded)
        print(served, cassette.path, cassette.mode is Mode.RECORD, cassette.cassettes[-1].path)
    with use_cassette(["seed.jsonl", Path("full.jsonl"), Cassette("x.jsonl")], guard=["db.example.com"]):
        pass
    use_cassette("chat.jsonl", next_transport=httpx2.HTTPTransport(), on_miss=None)
    use_cassette("chat.jsonl", nonsense=True)  # type: ignore[call-arg]
    use_cassette("chat.jsonl", samples="two")  # type: ignore[arg-type]
    use_cassette("chat.jsonl", guard=7)  # type: ignore[arg-type]


async def async_block() -> None:
    """The same, in an event loop."""
    async with use_cassette("chat.jsonl") as cassette:
        assert_type(cassette, OpenCassette)


@use_cassette("chat.jsonl")
def plain(number: int, *, name: str = "") -> str:
    """A function keeps its type."""
    return name * number


@use_cassette("chat.jsonl", mode=Mode.LIVE)
async def coroutine(number: int) -> str:
    """So does a coroutine function."""
    return plain(number)


@use_cassette("chat.jsonl")
def fixture() -> Iterator[int]:
    """So does a generator function."""
    yield 1


@use_cassette("chat.jsonl")
async def async_fixture() -> AsyncIterator[int]:
    """So does an async one."""
    yield 1


async def decorated() -> None:
    """What is decorated is called as before."""
    assert_type(plain(1, name="a"), str)
    assert_type(await coroutine(1), str)
    assert_type(list(fixture()), list[int])
    assert_type([each async for each in async_fixture()], list[int])
    plain("1")  # type: ignore[arg-type]


class Progress:
    """What watches a stream that says in a way of its own that it is over."""

    awaits_more = False

    def __init__(self) -> None:
        self.is_complete = self.is_terminated = False
        self.error: str | None = None
        self.finish: dialects.Json = None

    def expect(self, request: dialects.Json) -> None:
        """Any progress is told what was asked."""

    def observe(self, event: dialects.Event, value: dialects.Json) -> None:
        """And every event."""
        self.is_complete |= isinstance(value, dict) and value.get("left") == 0


def has_failed(answer: dialects.Json) -> bool:
    """A predicate on a whole answer."""
    return isinstance(answer, dict) and answer.get("success") is False


def dialect() -> None:
    """A wire format of one's own."""
    stream = dialects.StreamTable(text=("say",), last=("usage",), progress=dialects.Ends(marks=("[DONE]",)))
    mine = dialects.register(
        dialects.Dialect(
            "my-gateway",
            endpoints=(dialects.Endpoint("/ask", has={"q": str}, has_one={"n": (int, str)}),),
            text=dialects.Paths(["q"]),
            system=dialects.SYSTEM_MESSAGE,
            folds=dialects.Folds(defaults={"n": 1}, is_own_host=lambda host: host == "example.com"),
            stream=stream,
            other_streams=(dialects.StreamTable(progress=Progress, framing="ndjson", text=("say",)),),
            finish=dialects.At("why"),
            is_failure=has_failed,
        )
    )
    assert_type(mine, dialects.Dialect)
    assert_type(dialects.check_stream(mine, b"").texts, dict[str, str])
    httpx_cassette.dialects.unregister(mine)
    dialects.unregister("my-gateway")
    dialects.register("my-gateway")  # type: ignore[arg-type]
    dialects.Ends(mark="[DONE]")  # type: ignore[call-arg]
    dialects.StreamTable(text=("say",))  # type: ignore[call-arg]


def probed() -> None:
    """A probe takes a client of either library, and says what came."""
    with httpx.Client() as client:
        found = stability_probe(client, client.build_request("GET", "https://api.example.com"), n=3)
    assert_type(found, Probe)
    assert_type(found.share, float)
    assert_type([each.lines for each in found.answers], list[tuple[str, ...]])


def block_errors() -> None:
    """What stops a call in a block, and its facts."""
    try:
        plain(1)
    except CassetteAmbiguous as ambiguous:
        cassettes: tuple[str, ...] = ambiguous.cassettes
    except NetworkRefused as refused:
        host: str = refused.host
        port: int | None = refused.port
