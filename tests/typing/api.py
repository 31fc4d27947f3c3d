"""Never executed: it must type-check, as a user's file would."""

from __future__ import annotations

from pathlib import Path

import httpx
import httpx2

import httpx_cassette
import httpx_cassette.httpx2
from httpx_cassette import Call, Cassette, CassetteMiss, CassetteTransport, KeyPolicy, Mode, Redaction


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
