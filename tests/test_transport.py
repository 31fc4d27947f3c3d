"""The transport in its place: in clients of both libraries, with everything that they do around it."""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib.util
import json
import os
import random
import runpy
import shutil
import subprocess
import sys
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import brotli
import httpx
import pytest
import respx

import httpx_cassette
from httpx_cassette import (
    CassetteMiss,
    CassetteTransport,
    CassetteUnusable,
    CassetteWriteError,
    OptionError,
    WrongClientError,
    _ledger,
    expected_miss,
)
from httpx_cassette.stand_in import StandInServer

from .colours import (
    CHAT,
    COLOURS,
    URL,
    Body,
    Client,
    Colour,
    answer,
    chat,
    colour_of,
    delta,
    events,
    in_every_colour,
    lines,
    router,
    sse,
    tokens,
)

if importlib.util.find_spec("httpx2"):  # pragma: no branch  # the oldest httpx cannot be installed beside it
    import httpx2

    import httpx_cassette.httpx2

needs_httpx2 = pytest.mark.skipif("httpx2" not in globals(), reason="httpx2 is not installed")

OTHER = {"httpx": "httpx2", "httpx2": "httpx"}


def said(response: Any) -> str:
    """Return the text of a plain chat answer."""
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


async def record(colour: Colour, path: Path, *answers: Any) -> None:
    """Record answers to calls that differ in their number."""
    upstream = router()
    upstream.post(URL).mock(side_effect=list(answers))
    async with colour.client(path, upstream, mode="record") as client:
        for number, found in enumerate(answers):
            is_stream = "event-stream" in found.headers.get("content-type", "")
            await client.streamed(chat(str(number), stream=is_stream))


# --- in a client --------------------------------------------------------------------------------------


@in_every_colour
async def test_a_mount_serves_its_hosts(colour: Colour, tmp_path: Path) -> None:
    """``mounts=`` takes the transport as ``transport=`` does; other hosts go their own way."""
    path = tmp_path / "chat.jsonl"
    await record(colour, path, answer("recorded"))
    elsewhere = router()
    elsewhere.get("https://other.test/").mock(return_value=httpx.Response(200, text="live"))
    mounts = {"all://api.openai.com": colour.transport(path)}
    async with Client(colour, colour.next_transport(elsewhere), mounts=mounts) as client:
        assert "recorded" == said(await client.ask(chat("0", stream=False)))
        assert "live" == (await client.get("https://other.test/")).text


@in_every_colour
async def test_event_hooks_see_every_call(colour: Colour, tmp_path: Path) -> None:
    """Request hooks, and response hooks that read a replayed answer."""
    path = tmp_path / "chat.jsonl"
    await record(colour, path, answer("recorded"), sse(events("in pieces")))
    seen: list[Any] = []

    def before(request: Any) -> None:
        seen.append(request.method)

    def after(response: Any) -> None:
        seen.append((response.status_code, response.read()[:1]))

    async def before_async(request: Any) -> None:
        before(request)

    async def after_async(response: Any) -> None:
        seen.append((response.status_code, (await response.aread())[:1]))

    hooks = (
        {"request": [before_async], "response": [after_async]}
        if colour.is_async
        else {
            "request": [before],
            "response": [after],
        }
    )
    async with Client(colour, colour.transport(path), event_hooks=hooks) as client:
        await client.ask(chat("0", stream=False))
        assert "in pieces" == tokens(await client.streamed(chat("1", stream=True)))

    assert ["POST", (200, b"{"), "POST", (200, b"d")] == seen


@in_every_colour
async def test_each_hop_of_a_redirect_is_a_recording(colour: Colour, tmp_path: Path) -> None:
    """The way is replayed as it was, its secrets gone from the file."""
    path = tmp_path / "files.jsonl"
    first, second = "https://api.test/file", "https://files.test/x"
    upstream = router()
    signed = f"{second}?a=1&X-Amz-Signature=0123456789abcdef0123"
    upstream.get(first).mock(return_value=httpx.Response(302, headers={"location": signed}))
    upstream.get(url__startswith=second).mock(return_value=httpx.Response(200, text="content"))
    for mode in ("record", "replay"):
        transport = colour.transport(path, upstream if mode == "record" else None, mode=mode)
        async with Client(colour, transport, follow_redirects=True) as client:
            response = await client.get(first)

        assert "content" == response.text
        assert [302] == [hop.status_code for hop in response.history]
    assert [302, 200] == [line["response"]["status"] for line in lines(path)]
    assert b"Signature" not in path.read_bytes()


@in_every_colour
async def test_a_client_that_signs_in_replays_without_the_refusal(colour: Colour, tmp_path: Path) -> None:
    """Digest auth asks twice while recording; the refusal is not kept, and no credential is."""
    path = tmp_path / "auth.jsonl"
    challenge = {"www-authenticate": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'}
    upstream = router()
    route = upstream.get("https://api.test/").mock(
        side_effect=[httpx.Response(401, headers=challenge), httpx.Response(200, text="in")]
    )
    auth = colour.library.DigestAuth("me", "swordfish-swordfish")
    for mode in ("record", "replay"):
        transport = colour.transport(path, upstream if mode == "record" else None, mode=mode)
        async with Client(colour, transport, auth=auth) as client:
            assert "in" == (await client.get("https://api.test/")).text
            assert {"record": {"401": 1}, "replay": {}}[mode] == transport.stats.unrecorded
    assert 2 == route.call_count
    assert 1 == len(lines(path))


WAYS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("iter_raw", ()),
    ("iter_raw", (5,)),
    ("iter_bytes", ()),
    ("iter_bytes", (5,)),
    ("iter_text", ()),
    ("iter_text", (5,)),
    ("iter_lines", ()),
)


@pytest.mark.parametrize("kind", ["plain", "stream"])
@pytest.mark.parametrize("mode", ["record", "replay"])
@in_every_colour
async def test_every_way_of_reading_works(colour: Colour, tmp_path: Path, mode: str, kind: str) -> None:
    """Whole or in pieces, as bytes, text or lines, of a live answer and of a replayed one."""
    path = tmp_path / "chat.jsonl"
    text, body = "Grüße aus Köln", chat("0", stream=kind == "stream")

    def reply(request: httpx.Request) -> httpx.Response:
        return sse(Body([b"".join(events(text))])) if kind == "stream" else answer(text)

    def said_in(raw: bytes) -> str:
        return tokens(raw) if kind == "stream" else said(httpx.Response(200, content=raw))

    upstream = router()
    upstream.post(URL).mock(side_effect=reply)
    if mode == "replay":
        await colour.client(path, upstream, mode="record").streamed(body)
    client = colour.client(path, upstream if mode == "record" else None, mode=mode, wire_chunk_size=7)
    for method, args in WAYS:
        async with client.stream(body) as response, client.each(response, method, *args) as items:
            found = [item async for item in items]
        joined = "\n".join(found) if method == "iter_lines" else found[0][:0].join(found)
        assert text == said_in(joined if isinstance(joined, bytes) else joined.encode())
    async with client.stream(body) as response:
        whole = await client.read(response)
        assert whole == response.content == await client.read(response)
        assert text == said_in(response.text.encode())
    response = await client.ask(body)
    assert text == said_in(response.content)
    assert response.elapsed is not None


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "gzip, br"])
@in_every_colour
async def test_an_encoding_is_the_callers_while_recording_and_gone_afterwards(
    colour: Colour, tmp_path: Path, encoding: str
) -> None:
    """The caller gets the bytes as they were sent; the file holds what they say, and so does the replay."""
    pack: dict[str, Callable[[bytes], bytes]] = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli.compress,
        "gzip, br": lambda data: brotli.compress(gzip.compress(data)),
    }
    path = tmp_path / "chat.jsonl"
    packed = pack[encoding](answer("Hi.").content)
    streamed = pack[encoding](b"".join(events("Hello there")))
    headers = {"content-encoding": encoding}
    upstream = router()
    upstream.post(URL).mock(
        side_effect=[
            httpx.Response(
                200, headers={**headers, "content-type": "application/json"}, stream=Body([packed])
            ),
            sse(Body([streamed]), **headers),
        ]
    )
    async with colour.client(path, upstream, mode="record") as client:
        plain = await client.ask()
        assert ("Hi.", encoding) == (said(plain), plain.headers["content-encoding"])
        assert [streamed] == await client.chunks()
    async with colour.client(path) as client:
        replayed = await client.ask()
        assert ("Hi.", False) == (said(replayed), "content-encoding" in replayed.headers)
        assert "Hello there" == tokens(b"".join(await client.chunks()))


@in_every_colour
async def test_bodies_that_come_in_pieces_are_keyed_and_sent_whole(colour: Colour, tmp_path: Path) -> None:
    """Multipart, whose boundary is random, and generators: read once, recorded, replayed."""
    path = tmp_path / "files.jsonl"
    url = "https://api.test/files"
    sent: list[bytes] = []

    def reply(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        return httpx.Response(200, json={"bytes": len(request.content)})

    upstream = router()
    upstream.post(url).mock(side_effect=reply)

    def pieces() -> Any:
        def generate() -> Iterator[bytes]:
            yield b"in "
            yield b"pieces"

        async def generate_async() -> AsyncIterator[bytes]:
            for piece in generate():
                yield piece

        return generate_async() if colour.is_async else generate()

    for mode in ("record", "replay"):
        async with colour.client(path, upstream if mode == "record" else None, mode=mode) as client:
            form = await client.request(
                "POST", url, data={"purpose": "x"}, files={"file": ("a.txt", b"\x00\xff")}
            )
            generated = await client.request("POST", url, content=pieces())

            assert [len(sent[0]), 9] == [form.json()["bytes"], generated.json()["bytes"]]
    assert b"in pieces" == sent[1]
    assert 2 == len(sent)


@in_every_colour
async def test_live_leaves_a_body_in_pieces_to_the_wire(colour: Colour, tmp_path: Path) -> None:
    """Nothing is read into memory that nobody looks at; a predicate sees what is at hand."""
    seen: list[bytes] = []
    upstream = router()
    upstream.post("https://api.test/").mock(
        side_effect=lambda request: httpx.Response(200, text=str(len(request.content)))
    )

    def look(call: httpx_cassette.Call) -> bool:
        seen.append(call.body)
        return False

    client = colour.client(tmp_path / "a.jsonl", upstream, mode="live", passthrough=look)
    plain = await client.request("POST", "https://api.test/", content=b"whole")
    form = await client.request("POST", "https://api.test/", files={"file": ("a.txt", b"in pieces")})

    assert ("5", True) == (plain.text, int(form.text) > 9)
    assert [b"whole", b""] == seen


# --- opened late, closed once -------------------------------------------------------------------------


@in_every_colour
async def test_replay_opens_nothing(colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even a connection pool, which costs tens of milliseconds; record opens one at its first call."""
    path = tmp_path / "chat.jsonl"
    await record(colour, path, answer("recorded"))
    made: list[str] = []

    def refuse(*arguments: Any, **given: Any) -> None:
        made.append("a pool")
        raise RuntimeError("a pool was built")

    for name in ("HTTPTransport", "AsyncHTTPTransport"):
        monkeypatch.setattr(colour.library, name, refuse)
    async with Client(colour, colour.transport_class(path)) as client:
        assert "recorded" == said(await client.ask(chat("0", stream=False)))
        with pytest.raises(CassetteMiss):
            await client.ask()
    async with Client(colour, colour.transport_class(path, mode="record")) as client:
        assert "recorded" == said(await client.ask(chat("0", stream=False)))
        assert [] == made
        with pytest.raises(RuntimeError):
            await client.ask()
    assert ["a pool"] == made


@in_every_colour
async def test_the_librarys_own_transport_makes_the_real_calls(
    colour: Colour, tmp_path: Path, stand_in: StandInServer
) -> None:
    """Where none is given; closed it is opened again for the next call, and closing twice does nothing."""
    path = tmp_path / "chat.jsonl"
    url, headers = f"{stand_in.url}/chat/completions", {"authorization": "Bearer any"}
    transport = colour.transport_class(path, mode="record")
    async with Client(colour, transport, trust_env=False, headers=headers) as client:
        first = await client.ask(url=url)
        await client.streamed(chat(stream=True), url)
    for _ in range(2):
        await client.close()
    async with Client(colour, transport, trust_env=False, headers=headers) as client:
        assert first.json() == (await client.ask(url=url)).json()
        await client.ask(chat("More"), url=url)

    assert (3, 3, 1) == (stand_in.calls, transport.stats.recorded, transport.stats.replayed)


@in_every_colour
async def test_closing_closes_what_was_given(colour: Colour, tmp_path: Path) -> None:
    """Once, used or not; it may be used again if it bears that."""
    inner = colour.next_transport(router())
    closed: list[str] = []

    def close() -> None:
        closed.append("sync")

    async def aclose() -> None:
        closed.append("async")

    inner.close, inner.aclose = close, aclose
    client = Client(colour, colour.transport_class(tmp_path / "a.jsonl", next_transport=inner))
    for _ in range(2):
        await client._do(client.transport.aclose if colour.is_async else client.transport.close)

    assert ["async" if colour.is_async else "sync"] == closed


@pytest.fixture
def loops() -> Iterator[ThreadPoolExecutor]:
    """Give one thread for event loops: a real connection in a loop here would end coverage's tracing."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        yield pool


@pytest.mark.parametrize("colour", [c for c in COLOURS if c.backend == "asyncio"], ids=repr)
@pytest.mark.filterwarnings("ignore:unclosed (transport|<socket):ResourceWarning")
def test_one_client_serves_two_event_loops_in_turn(
    colour: Colour, tmp_path: Path, stand_in: StandInServer, loops: ThreadPoolExecutor
) -> None:
    """Connections of a loop that is gone are not used again, and replay holds nothing of a loop at all."""
    path = tmp_path / "chat.jsonl"
    url, headers = f"{stand_in.url}/chat/completions", {"authorization": "Bearer any"}
    client = Client(colour, colour.transport_class(path, mode="record"), trust_env=False, headers=headers)

    async def ask(number: int) -> None:
        for text in (str(number), f"{number} again"):
            assert 200 == (await client.ask(chat(text), url)).status_code

    for number in range(3):
        loops.submit(asyncio.run, ask(number)).result()
    loops.submit(asyncio.run, client.close()).result()
    assert 6 == stand_in.calls
    # What the loops that are gone left open is found now, and not by some other test.
    gc.collect()
    replaying = colour.client(path)

    async def replay(number: int) -> None:
        assert (
            "replayed" == (await replaying.ask(chat(str(number)), url)).extensions["httpx_cassette"].outcome
        )

    for number in range(3):
        loops.submit(asyncio.run, replay(number)).result()


def test_a_pool_of_another_loop_is_left_alone(
    tmp_path: Path, stand_in: StandInServer, loops: ThreadPoolExecutor
) -> None:
    """Closing under another loop must not touch connections of the first."""
    client = Client(
        colour_of("httpx-asyncio"),
        CassetteTransport(tmp_path / "chat.jsonl", mode="record"),
        trust_env=False,
        headers={"authorization": "Bearer any", "connection": "close"},
    )
    for coroutine in (client.get(f"{stand_in.url}/models"), client.close(), client.close()):
        loops.submit(asyncio.run, coroutine).result()

    assert client.transport._driver._async_inner is None


@pytest.mark.parametrize("colour", [c for c in COLOURS if not c.is_async], ids=repr)
def test_threads_share_one_transport(colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """32 of them record and replay at once; one pool is built, every answer is the right one."""
    path = tmp_path / "chat.jsonl"
    upstream = router()

    def reply(request: httpx.Request) -> httpx.Response:
        return answer(json.loads(request.content)["messages"][1]["content"])

    upstream.post(URL).mock(side_effect=reply)
    pools: list[Any] = []

    def pool() -> Any:
        pools.append(colour.next_transport(upstream))
        return pools[-1]

    monkeypatch.setattr(colour.library, "HTTPTransport", pool)
    client = Client(colour, colour.transport_class(path, mode="record", fsync=False))
    wrong: list[str] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(20):
            text = f"question {chance.randrange(40)}"
            if said(colour.run(client.ask, chat(text))) != text:  # pragma: no cover  # that is the fault
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    stats = client.transport.stats
    assert ([], 1, 40) == (wrong, len(pools), len(lines(path)))
    assert (40, 40, 600) == (stats.live, stats.recorded, stats.replayed)


# --- the wrong library --------------------------------------------------------------------------------


@needs_httpx2
@in_every_colour
async def test_a_client_of_the_other_library_is_told_the_right_import(colour: Colour, tmp_path: Path) -> None:
    """A ``TypeError`` that names the line to write, where the library would fail with a bare assertion."""
    other = colour_of(f"{OTHER[colour.library.__name__]}-{colour.backend}")
    client = Client(other, colour.transport_class(tmp_path / "a.jsonl"))
    with pytest.raises(WrongClientError) as caught:
        await client.ask()

    line = {
        "httpx": "from httpx_cassette import CassetteTransport",
        "httpx2": "from httpx_cassette.httpx2 import CassetteTransport",
    }
    used, wanted = other.library.__name__, colour.library.__name__
    assert (
        f"this CassetteTransport serves {wanted}, and a client of {used} was given it; write: {line[used]}"
    ) == str(caught.value)
    assert isinstance(caught.value, TypeError)


@needs_httpx2
def test_a_transport_of_the_other_library_is_refused_at_once(tmp_path: Path) -> None:
    """Its answers would be none for the client."""
    with pytest.raises(WrongClientError) as caught:
        CassetteTransport(tmp_path / "a.jsonl", next_transport=httpx2.MockTransport(lambda request: None))  # type: ignore[arg-type]

    assert str(caught.value).endswith(
        "is a transport of httpx2, and this CassetteTransport serves httpx; "
        "write: from httpx_cassette.httpx2 import CassetteTransport"
    )
    with pytest.raises(
        WrongClientError, match="is a transport of httpx, and this CassetteTransport serves httpx2"
    ):
        httpx_cassette.httpx2.CassetteTransport(tmp_path / "a.jsonl", next_transport=httpx.HTTPTransport())


@in_every_colour
async def test_a_transport_of_the_wrong_kind_is_named(colour: Colour, tmp_path: Path) -> None:
    """A synchronous one under an asynchronous client, or the reverse; one that answers with anything."""

    class OnlyAsync:
        async def handle_async_request(self, request: Any) -> Any:
            return "an answer"

    class OnlySync:
        def handle_request(self, request: Any) -> Any:
            return "an answer"

    right, wrong = (OnlyAsync(), OnlySync()) if colour.is_async else (OnlySync(), OnlyAsync())
    async with Client(
        colour, colour.transport_class(tmp_path / "a.jsonl", mode="live", next_transport=wrong)
    ) as client:
        with pytest.raises(OptionError) as refused:
            await client.ask()
    async with Client(
        colour, colour.transport_class(tmp_path / "a.jsonl", mode="live", next_transport=right)
    ) as client:
        with pytest.raises(WrongClientError) as caught:
            await client.ask()

    sides = ("Client only", "an AsyncClient") if colour.is_async else ("AsyncClient only", "a Client")
    assert f"next_transport={wrong!r} serves {sides[0]}, and {sides[1]} made this call" == str(refused.value)
    assert (
        f"next_transport={right!r} answered with 'an answer', "
        f"which is no response of {colour.library.__name__}"
    ) == str(caught.value)


@needs_httpx2
def test_without_httpx2_its_transport_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra; the rest of the package does not need it."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ImportError) as caught:
        runpy.run_path(str(httpx_cassette.httpx2.__file__))

    assert (
        "httpx2 is not installed; it comes with: pip install 'httpx_cassette[httpx2]'. "
        "For an SDK that is built on httpx: from httpx_cassette import CassetteTransport"
    ) == str(caught.value)


ALIAS = """
import sys, httpx2
httpx2.alias_httpx()
import httpx
assert httpx is httpx2
import httpx_cassette, httpx_cassette.httpx2
upstream = httpx2.MockTransport(lambda request: httpx2.Response(200, json={"a": 1}))
for transport in (httpx_cassette.CassetteTransport, httpx_cassette.httpx2.CassetteTransport):
    for mode, options in (("record", {"next_transport": upstream}), ("replay", {})):
        with httpx.Client(transport=transport(sys.argv[1], mode=mode, **options)) as client:
            assert {"a": 1} == client.post("https://api.test/", json={}).json()
print("served")
"""


@needs_httpx2
def test_both_transports_serve_where_one_library_stands_for_the_other(tmp_path: Path) -> None:
    """With ``httpx2.alias_httpx()`` the two names are one library."""
    assert "served\n" == program(ALIAS, tmp_path / "a.jsonl").stdout


def test_respx_may_stand_round_the_default_transport(tmp_path: Path) -> None:
    """It patches httpx's own transport, which is what makes the real calls."""
    path = tmp_path / "chat.jsonl"
    with respx.mock() as mocked:
        route = mocked.post(URL).mock(return_value=answer("mocked"))
        with httpx.Client(transport=CassetteTransport(path, mode="record")) as client:
            assert "mocked" == said(client.post(URL, json=CHAT))
    assert 1 == route.call_count
    with httpx.Client(transport=CassetteTransport(path)) as client:
        assert "mocked" == said(client.post(URL, json=CHAT))


# --- looked at from outside ---------------------------------------------------------------------------


@in_every_colour
async def test_a_key_can_be_asked_for(colour: Colour, tmp_path: Path) -> None:
    """Without a call; the derivation ends in the same key, and a request that was asked about can be sent."""
    path = tmp_path / "chat.jsonl"
    await record(colour, path, answer("recorded"))
    client = colour.client(path)
    request = client.real.build_request("POST", URL, json=chat("0", stream=False))
    fingerprint = client.transport.fingerprint(request)

    assert fingerprint == client.transport.explain(request).fingerprint
    response = await client.send(request)
    assert fingerprint == response.extensions["httpx_cassette"].fingerprint == lines(path)[0]["key"]


def test_a_body_that_only_a_loop_can_read_is_named(tmp_path: Path) -> None:
    """``request.read()`` would fail with a bare assertion."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"in pieces"

    request = httpx.Request("POST", URL, content=pieces())
    transport = CassetteTransport(tmp_path / "a.jsonl")
    for ask in (transport.fingerprint, transport.explain):
        with pytest.raises(
            OptionError, match=r"the body is an async stream; first: await request\.aread\(\)"
        ):
            ask(request)
    asyncio.run(request.aread())
    assert 64 == len(transport.fingerprint(request))


def test_a_transport_shows_what_it_is(tmp_path: Path) -> None:
    """Its mode and its files."""
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]

    assert f"<CassetteTransport replay {paths[0]}, {paths[1]}>" == repr(CassetteTransport(paths))


@in_every_colour
async def test_a_transport_says_whom_it_serves(colour: Colour) -> None:
    """Its docstring names the clients of its own library."""
    documented = str(colour.transport_class.__doc__)

    assert f"Record and replay for ``{colour.library.__name__}.Client``" in documented


# --- misses, and nothing instead ----------------------------------------------------------------------


@in_every_colour
async def test_a_miss_passes_what_swallows_errors(colour: Colour, tmp_path: Path) -> None:
    """It is no ``Exception``, it is in the ledger, and ``expected_miss`` takes it back."""
    client = colour.client(tmp_path / "chat.jsonl")
    with pytest.raises(CassetteMiss) as caught:
        try:
            await client.ask()
        except Exception:  # pragma: no cover  # that is the point
            pass

    assert [str(caught.value)] == [entry.report for entry in _ledger.entries()]
    assert (caught.value.fingerprint, "POST", URL, "openai-chat", "gpt-5") == (
        _ledger.entries()[0].key,
        caught.value.method,
        caught.value.url,
        caught.value.dialect,
        caught.value.model,
    )
    assert 1 == client.transport.stats.missed
    with expected_miss() as miss:
        await client.ask(chat("Another"))
    assert miss.fingerprint != caught.value.fingerprint
    assert 1 == len(_ledger.entries())


@in_every_colour
async def test_pytest_shows_no_frame_of_the_package_for_a_miss(colour: Colour, tmp_path: Path) -> None:
    """What missed is the user's line; a fault of the package itself is shown whole."""
    client = colour.client(tmp_path / "chat.jsonl")
    with pytest.raises(CassetteMiss) as caught:
        await client.ask()
    with pytest.raises(WrongClientError) as mistaken:
        client.transport.handle_request("no request of any library")

    assert [] == [entry.path for entry in caught.traceback.filter(caught) if is_of_the_package(entry)]
    assert any(is_of_the_package(entry) for entry in mistaken.traceback.filter(mistaken))


def is_of_the_package(entry: Any) -> bool:
    return Path(httpx_cassette.__file__).parent in Path(entry.path).parents


@in_every_colour
async def test_nothing_in_replay_leads_to_a_real_call(colour: Colour, tmp_path: Path) -> None:
    """A hit, a miss, a damaged recording, a file that is no cassette: ``next_transport`` is never reached."""
    path, intact = tmp_path / "chat.jsonl", tmp_path / "intact.jsonl"
    await record(colour, intact, answer("plain"), sse(events("in pieces")), answer("to be damaged"))
    path.write_bytes(intact.read_bytes().replace(b"to be damaged", b"was damaged!!"))
    # The upstream of this client fails the test past every ``except``.
    client = colour.client(path)

    assert "plain" == said(await client.ask(chat("0", stream=False)))
    assert "in pieces" == tokens(await client.streamed(chat("1", stream=True)))
    with pytest.raises(CassetteUnusable) as caught:
        await client.ask(chat("2", stream=False))
    assert (str(path), 3) == (caught.value.path, caught.value.line)
    assert isinstance(caught.value.__cause__, httpx_cassette.CassetteDamaged)
    with pytest.raises(CassetteMiss):
        await client.ask()
    for content in (b"<<<<<<< HEAD\n", "UTF-16\n".encode("utf-16")):
        other = tmp_path / f"{len(content)}.jsonl"
        other.write_bytes(content)
        with pytest.raises(CassetteUnusable):
            await colour.client(other).ask()
    assert 0 == client.transport.stats.live


@in_every_colour
async def test_a_story_that_fails_behind_the_call_closes_the_answer(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it was: the connection goes back, and nobody is left waiting."""

    def fail(*arguments: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr("httpx_cassette._sink.Sink", fail)
    body = Body(events("Hello"))
    upstream = router()
    upstream.post(URL).mock(return_value=sse(body))
    client = colour.client(tmp_path / "chat.jsonl", upstream, mode="record")
    with pytest.raises(RuntimeError):
        await client.streamed()

    assert 1 == body.closed


# --- secrets ------------------------------------------------------------------------------------------

SECRET = "sk-proj-" + "a1B2c3D4" * 6
PASSWORD = "swordfish-swordfish-swordfish"


@in_every_colour
async def test_no_credential_reaches_the_file(colour: Colour, tmp_path: Path) -> None:
    """Neither those of headers and URL nor those in a prompt or an answer, whole or in pieces."""
    path = tmp_path / "chat.jsonl"
    body, url = chat(f"My key is {SECRET}."), f"{URL}?api_key={PASSWORD}"
    upstream = router()
    pieces = [delta(SECRET[start : start + 5]) for start in range(0, len(SECRET), 5)]
    upstream.post(url__startswith=URL).mock(
        side_effect=[answer(f"Your key is {SECRET}."), sse([*pieces, *events("Hi")[1:]])]
    )
    headers = {"authorization": f"Bearer {PASSWORD}", "cookie": f"session={PASSWORD}"}
    async with Client(colour, colour.transport(path, upstream, mode="record"), headers=headers) as client:
        live = await client.ask(body, url)
        streamed = await client.streamed({**body, "stream": True}, url)

        assert SECRET == tokens(streamed)
        assert f"Your key is {SECRET}." == said(live)
    content = path.read_bytes()
    assert not [word for word in (SECRET, PASSWORD) if word.encode() in content]
    # Another key finds the same recording: a dummy in CI, say.
    async with colour.client(path) as client:
        assert "<redacted:openai-key:" in said(await client.ask(body, f"{URL}?api_key=dummy"))


@in_every_colour
async def test_an_answer_that_repeats_a_credential_is_refused(colour: Colour, tmp_path: Path) -> None:
    """Its shape says nothing, but the request carried it: nothing is written or answered silently."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer(f"You sent {PASSWORD}.")])
    transport = colour.transport(path, upstream, mode="record")
    async with Client(colour, transport, headers={"authorization": f"Bearer {PASSWORD}"}) as client:
        with pytest.raises(CassetteWriteError) as caught:
            await client.ask()

    assert b"You sent" in caught.value.content
    assert PASSWORD not in f"{caught.value!s} {caught.value!r} {_ledger.entries()[0].report}"
    assert [] == lines(path)


ESCAPED_S = "\\u0073"
ESCAPED = SECRET.replace("-", "\\u002d")

#: Bodies that are not quite JSON, so that they are redacted as text: what JSON would say in them.
HIDING = {
    "a path": '{"metadata": {"user_id": "u-1"}, "x": NaN}',
    "a path in a line": '{"n": 1}\n{"metadata": {"user_id": "u-1"}}',
    "an escape": f'{{"prompt": "{ESCAPED}", "x": NaN}}',
    "an escape of a token": f'{{"prompt": "{PASSWORD.replace("s", ESCAPED_S, 1)}", "x": NaN}}',
}


@pytest.mark.parametrize("body", HIDING.values(), ids=HIDING)
def test_a_body_that_hides_a_secret_from_whoever_reads_text_is_refused(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is paid; and one that hides none is recorded."""
    monkeypatch.setenv("HTTPX_CASSETTE_HMAC_KEY", "a key of the tests")
    redact = httpx_cassette.Redaction(paths=["metadata.user_id"])
    upstream = respx.MockRouter()
    route = upstream.post("https://api.test/v1/other").respond(200, json={})
    transport = CassetteTransport(
        tmp_path / "c.jsonl",
        mode="record",
        redact=redact,
        next_transport=httpx.MockTransport(upstream.handler),
    )
    headers = {"authorization": f"Bearer {PASSWORD}"}
    with httpx.Client(transport=transport, headers=headers) as client:
        with pytest.raises(CassetteWriteError) as caught:
            client.post("https://api.test/v1/other", content=body)
        assert (0, []) == (route.call_count, lines(tmp_path / "c.jsonl"))
        client.post("https://api.test/v1/other", content='{"prompt": "hello", "x": NaN}')

    assert not [word for word in ("u-1", SECRET, PASSWORD) if word in str(caught.value)]
    assert 1 == len(lines(tmp_path / "c.jsonl"))


# --- programs of their own ----------------------------------------------------------------------------


def program(
    source: str, *arguments: object, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a program that must succeed."""
    words = [*prefix, sys.executable, "-W", "error", "-c", source, *map(str, arguments)]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("HTTPX_CASSETTE_")
    }
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert 0 == done.returncode, done.stderr
    return done


# One process for each number of calls: it makes them, and kills itself with the last answer in its hands.
KILLED = """
import asyncio, importlib.util, os, signal, sys
import httpx
import httpx_cassette
sides = [(httpx, httpx_cassette)]
if importlib.util.find_spec("httpx2"):
    import httpx2, httpx_cassette.httpx2
    sides.append((httpx2, httpx_cassette.httpx2))

URL = "https://api.test/v1/chat/completions"
PLAIN = b'{"choices": [{"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}]}'
TOKEN = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"}]}\\n\\n'
MORE = b"data: never reached\\n\\n"


def asked(number, is_stream):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": str(number)}]
    return {"model": "m", "messages": messages, "stream": is_stream}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def work(library, package, path, count, is_stream):
    class Body(library.SyncByteStream):
        def __iter__(self):
            yield from (TOKEN, b"data: [DONE]\\n\\n", MORE)

    def reply(request):
        if is_stream:
            return library.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())
        return library.Response(200, headers={"content-type": "application/json"}, content=PLAIN)

    transport = package.CassetteTransport(path, mode="record", next_transport=library.MockTransport(reply))
    client = library.Client(transport=transport)
    for number in range(count):
        if not is_stream:
            client.post(URL, json=asked(number, False))
            continue
        with client.stream("POST", URL, json=asked(number, True)) as response:
            for chunk in response.iter_raw():
                if number == count - 1 and b"DONE" in chunk:
                    die()
    die()


async def work_async(library, package, path, count, is_stream):
    class Body(library.AsyncByteStream):
        async def __aiter__(self):
            for chunk in (TOKEN, b"data: [DONE]\\n\\n", MORE):
                yield chunk

    def reply(request):
        if is_stream:
            return library.Response(200, headers={"content-type": "text/event-stream"}, stream=Body())
        return library.Response(200, headers={"content-type": "application/json"}, content=PLAIN)

    transport = package.CassetteTransport(path, mode="record", next_transport=library.MockTransport(reply))
    client = library.AsyncClient(transport=transport)
    for number in range(count):
        if not is_stream:
            await client.post(URL, json=asked(number, False))
            continue
        async with client.stream("POST", URL, json=asked(number, True)) as response:
            async for chunk in response.aiter_raw():
                if number == count - 1 and b"DONE" in chunk:
                    die()
    die()


children = []
for count in range(1, 21):
    for is_stream in (False, True):
        path = f"{sys.argv[1]}/{count}-{is_stream}.jsonl"
        side = sides[count % len(sides)]
        child = os.fork()
        if child == 0:
            if count % 4 < 2:
                work(*side, path, count, is_stream)
            else:
                asyncio.run(work_async(*side, path, count, is_stream))
        children.append(child)
for child in children:
    _, status = os.waitpid(child, 0)
    assert signal.SIGKILL == os.WTERMSIG(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_an_answer_in_the_callers_hands_survives_his_death(tmp_path: Path) -> None:
    """Killed with the n-th answer, or with the chunk that ends it and before any close: n recordings."""
    program(KILLED, tmp_path)

    for count in range(1, 21):
        for is_stream in (False, True):
            path = tmp_path / f"{count}-{is_stream}.jsonl"
            assert count == len(lines(path))
            assert {"m"} == {line["request"]["json"]["model"] for line in lines(path)}


OFFLINE = """
import asyncio, importlib.util, json, sys
import httpx, trio
import httpx_cassette
sides = [(httpx, httpx_cassette)]
if importlib.util.find_spec("httpx2"):
    import httpx2, httpx_cassette.httpx2
    sides.append((httpx2, httpx_cassette.httpx2))

FORBIDDEN = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.bind"}
seen = []


def forbid(event, arguments):
    # A wildcard: the pair of sockets that an event loop wakes itself with is no address.
    if event in FORBIDDEN:
        seen.append(event)
        raise PermissionError(f"offline: {event}")


sys.addaudithook(forbid)
path, url = sys.argv[1], sys.argv[2]


def asked(text, **more):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    return {"model": "gpt-5", "messages": messages, **more}


def check(plain, streamed):
    assert "plain" == plain.json()["choices"][0]["message"]["content"]
    assert b"[DONE]" in streamed.content


def replay(library, package):
    with library.Client(transport=package.CassetteTransport(path)) as client:
        check(client.post(url, json=asked("0", stream=False)), client.post(url, json=asked("1", stream=True)))
        with httpx_cassette.expected_miss():
            client.post(url, json=asked("2"))


async def replay_async(library, package):
    async with library.AsyncClient(transport=package.CassetteTransport(path)) as client:
        plain = await client.post(url, json=asked("0", stream=False))
        check(plain, await client.post(url, json=asked("1", stream=True)))
        with httpx_cassette.expected_miss():
            await client.post(url, json=asked("2"))


for side in sides:
    replay(*side)
    asyncio.run(replay_async(*side))
    trio.run(replay_async, *side)
assert [] == seen, seen
print("replayed")
with httpx.Client(transport=httpx_cassette.CassetteTransport(path, mode="record")) as client:
    try:
        client.post(url, json=asked("2"))
    except Exception as error:
        print(f"stopped: {error}")
"""


@pytest.mark.parametrize("prefix", [(), ("unshare", "-rn")], ids=["audit hook", "no network"])
def test_replay_needs_no_network(prefix: tuple[str, ...], tmp_path: Path) -> None:
    """Under a hook that forbids sockets, and where there is no network; the same hook stops a recording."""
    if prefix and not _works(*prefix):  # pragma: no cover  # it depends on the machine
        pytest.skip("this machine does not let a user make a network namespace")
    path = tmp_path / "chat.jsonl"
    colour = colour_of("httpx-sync")
    colour.run(record, colour, path, answer("plain"), sse(events("in pieces")))
    done = program(OFFLINE, path, URL, prefix=prefix)

    assert "replayed\nstopped: offline: socket.getaddrinfo\n" == done.stdout


def _works(*command: str) -> bool:
    return (
        shutil.which(command[0]) is not None
        and not subprocess.run([*command, "true"], check=False).returncode
    )


FORKED = """
import os, sys, threading, time, warnings
import httpx
from httpx_cassette import CassetteTransport

# Python 3.12 warns of any fork beside a thread: this is one.
warnings.simplefilter("ignore", DeprecationWarning)


def build():
    CassetteTransport(sys.argv[1])


thread = threading.Thread(target=build)
thread.start()
time.sleep(float(sys.argv[2]))
child = os.fork()
if child == 0:
    build()
    os._exit(7)
thread.join()
for _ in range(200):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        assert 7 == os.waitstatus_to_exitcode(status)
        sys.exit()
    time.sleep(0.05)
os.kill(child, 9)
sys.exit("the child waits for an import that never ends")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("delay", ["0", "0.004", "0.01"])
def test_a_fork_waits_for_what_is_imported_late(tmp_path: Path, delay: str) -> None:
    """A thread that builds the first transport leaves no lock of an import in a child."""
    program(FORKED, tmp_path / "chat.jsonl", delay)


CROSSED = """
import os, sys
import httpx
from httpx_cassette import CassetteTransport
path, url = sys.argv[1], sys.argv[2]


def ask(text):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]
    body = {"model": "m", "messages": messages}
    said = client.post(url + "/chat/completions", json=body, headers={"authorization": "Bearer any"}).text
    assert text in said, (text, said)


client = httpx.Client(transport=CassetteTransport(path, mode="record"), trust_env=False, timeout=20)
ask("the parent's question")
children = []
for number in range(4):
    child = os.fork()
    if child == 0:
        try:
            for again in range(5):
                ask(f"question {number} {again}")
        except BaseException as error:
            print(type(error), error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    children.append(child)
ask("the parent's other question")
assert [0] * 4 == [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_processes_do_not_share_a_connection(tmp_path: Path, stand_in: StandInServer) -> None:
    """Children of a process that has made a real call get the answers to their own questions."""
    program(CROSSED, tmp_path / "chat.jsonl", stand_in.url)

    recorded = lines(tmp_path / "chat.jsonl")
    assert 22 == len(recorded)
    for line in recorded:
        question = line["request"]["json"]["messages"][1]["content"]
        assert question in line["response"]["json"]["choices"][0]["message"]["content"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@in_every_colour
async def test_a_transport_that_the_parent_has_used_is_refused_in_a_child(
    colour: Colour, tmp_path: Path, stand_in: StandInServer
) -> None:
    """Nothing can be opened in the place of ``next_transport``; in the parent it goes on."""
    given = colour.library.AsyncHTTPTransport() if colour.is_async else colour.library.HTTPTransport()
    client = Client(
        colour,
        colour.transport_class(tmp_path / "chat.jsonl", mode="record", next_transport=given),
        trust_env=False,
        headers={"authorization": "Bearer any", "connection": "close"},
    )
    await client.get(f"{stand_in.url}/models")
    driver = client.transport._driver
    parent, driver._caller = driver._caller, 1

    with pytest.raises(
        OptionError, match="was used by process 1, from which this one was forked; make client"
    ):
        await client.get(f"{stand_in.url}/models/other")
    driver._caller = parent
    await client.get(f"{stand_in.url}/models")
    await client.close()


@in_every_colour
async def test_what_could_not_be_stored_is_not_called(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A credential of the environment in the prompt is met before anything is paid, and is not shown."""
    monkeypatch.setenv("MY_API_TOKEN", "correct-horse-battery-staple-71")
    async with colour.client(tmp_path / "chat.jsonl", mode="record") as client:
        with pytest.raises(CassetteWriteError) as caught:
            await client.ask(chat("My token is correct-horse-battery-staple-71."))

    assert 0 == client.transport.stats.live
    assert f"POST {URL} was not called, because it could not be stored: the environment variable" in str(
        caught.value
    )
    assert "staple" not in str(caught.value)
    assert (None, b"") == (caught.value.status, caught.value.content)
    assert [] == lines(tmp_path / "chat.jsonl")


@in_every_colour
async def test_a_credential_that_is_lent_is_not_stored_where_the_answer_repeats_it(
    colour: Colour, tmp_path: Path
) -> None:
    """A token for a server of tools has no shape to be known by; the request's own copy is left out."""
    path, token = tmp_path / "responses.jsonl", "just any words 77"
    server = {"type": "mcp", "server_label": "s", "server_url": "https://m/", "authorization": token}
    body = {"model": "gpt-5", "instructions": "Be brief.", "input": "Hi", "tools": [server]}
    said = {"id": "resp_1", "object": "response", "status": "completed", "output": [], "tools": [server]}
    upstream = router()
    url = URL.replace("/chat/completions", "/responses")
    upstream.post(url).mock(return_value=httpx.Response(200, json=said))
    async with colour.client(path, upstream, mode="record") as client:
        live = await client.ask(body, url)
    async with colour.client(path) as client:
        replayed = await client.ask(body, url)

    assert token == live.json()["tools"][0]["authorization"]
    assert token not in path.read_text("utf-8")
    assert replayed.json()["tools"][0]["authorization"].startswith("<redacted:credential:")
