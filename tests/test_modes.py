"""What each mode does with a call, and every option that decides whether a call is really made."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from httpx_cassette import (
    CallLimitReached,
    CassetteMiss,
    CassetteTransport,
    Mode,
    OptionError,
    SystemPromptMissing,
    _budget,
    _ledger,
)
from httpx_cassette._call import Call
from httpx_cassette._settings import read_settings

from .colours import CHAT, URL, Colour, answer, chat, events, in_every_colour, lines, router, sse, tokens

BATCH = "https://api.openai.com/v1/batches/1"


def said(response: Any) -> str:
    """Return the text of a plain chat answer."""
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def served(response: Any) -> Any:
    """Return where a response comes from."""
    return response.extensions["httpx_cassette"]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings logged so far, without the report at closing."""
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return [message for message in found if not message.startswith("answers that")]


# --- the four modes -----------------------------------------------------------------------------------


@in_every_colour
async def test_record_pays_once_and_replay_answers_for_ever(colour: Colour, tmp_path: Path) -> None:
    """The first call is real and stored; every later one, in either mode, is answered from the file."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    route = upstream.post(URL).mock(side_effect=[answer("one")])
    async with colour.client(path, upstream, mode="record") as client:
        first, second = await client.ask(), await client.ask()

        stats = client.transport.stats
        assert (1, 1, 1) == (stats.live, stats.recorded, stats.replayed)
        assert () == _ledger.entries()
    async with colour.client(path) as client:
        third = await client.ask()

        assert Mode.REPLAY is client.transport.mode

    assert 1 == route.call_count
    assert ["one", "one", "one"] == [said(first), said(second), said(third)]
    assert ["recorded", "replayed", "replayed"] == [served(each).outcome for each in (first, second, third)]
    (line,) = lines(path)
    for response in (first, second, third):
        where = served(response)
        assert (line["key"], str(path), 1, 0) == (where.fingerprint, where.file, where.line, where.sample)
        assert line["at"] == where.at


@in_every_colour
async def test_a_streamed_and_a_plain_answer_are_two_recordings(colour: Colour, tmp_path: Path) -> None:
    """``stream`` is part of the key: an answer of one kind never stands in for the other."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer("plain"), sse(events("in pieces"))])
    async with colour.client(path, upstream, mode="record") as client:
        await client.ask()
        await client.streamed()
    async with colour.client(path) as client:
        assert "plain" == said(await client.ask())
        assert "in pieces" == tokens(await client.streamed())


@in_every_colour
async def test_rerecord_pays_once_for_each_call_and_supersedes(colour: Colour, tmp_path: Path) -> None:
    """A fresh answer is bought once, replayed for the rest of the session, and wins in every later one."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    route = upstream.post(URL).mock(side_effect=[answer("old"), answer("new"), answer("newest")])
    async with colour.client(path, upstream, mode="record") as client:
        await client.ask()
    async with colour.client(path, upstream, mode="rerecord") as client:
        answers = [said(await client.ask()) for _ in range(3)]

        assert ["new", "new", "new"] == answers
        assert (1, 1, 2) == (
            client.transport.stats.live,
            client.transport.stats.recorded,
            client.transport.stats.replayed,
        )
    assert 2 == route.call_count
    assert [0, 1] == [line["gen"] for line in lines(path)]
    async with colour.client(path) as client:
        assert "new" == said(await client.ask())


@pytest.mark.parametrize(("since", "calls"), [("2026-01-01T00:00:00Z", 0), ("2999-01-01T00:00:00Z", 1)])
@in_every_colour
async def test_rerecord_takes_what_another_process_of_the_run_has_recorded(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: str, calls: int
) -> None:
    """What was recorded since the run began is fresh, whoever recorded it; what is older is bought anew."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer("another's"), answer("own")])
    async with colour.client(path, upstream, mode="record") as client:
        await client.ask()
    monkeypatch.setenv("HTTPX_CASSETTE_FRESH_SINCE", since)
    async with colour.client(path, upstream, mode="rerecord") as client:
        answers = [said(await client.ask()) for _ in range(2)]

        assert [["another's", "own"][calls]] * 2 == answers
        assert calls == client.transport.stats.live


@in_every_colour
async def test_rerecord_keeps_the_samples_of_a_generation_together(colour: Colour, tmp_path: Path) -> None:
    """A new generation has its own set of samples; the old set is superseded as a whole."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer(str(number)) for number in range(5)])
    async with colour.client(path, upstream, mode="record", samples=3) as client:
        for _ in range(3):
            await client.ask()
    async with colour.client(path, upstream, mode="rerecord", samples=2) as client:
        assert ["3", "4", "4"] == [said(await client.ask()) for _ in range(3)]

    assert [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)] == [(line["gen"], line["sample"]) for line in lines(path)]
    async with colour.client(path, samples=3) as client:
        assert ["3", "4", "4"] == [said(await client.ask()) for _ in range(3)]


@in_every_colour
async def test_live_neither_reads_nor_writes(colour: Colour, tmp_path: Path) -> None:
    """Every call is real, a missing system prompt is the caller's business, and no file appears."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer("one"), answer("two")])
    async with colour.client(path, upstream, mode="live") as client:
        first = await client.ask({"model": "gpt-5", "messages": []})
        second = await client.ask()

        assert 2 == client.transport.stats.live

    assert ["one", "two"] == [said(first), said(second)]
    assert ("live", "", None) == (served(first).outcome, served(first).fingerprint, served(first).file)
    assert not path.exists()


@pytest.mark.parametrize("mode", ["record", "rerecord", "live"])
def test_the_environment_is_a_ceiling(mode: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``HTTPX_CASSETTE_MODE=replay`` wins over every argument, so that CI cannot pay by accident."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replay")
    transport = CassetteTransport(tmp_path / "chat.jsonl", mode=mode)

    assert Mode.REPLAY is transport.mode
    with httpx.Client(transport=transport) as client, pytest.raises(CassetteMiss):
        client.post(URL, json=CHAT)


@pytest.mark.parametrize(
    ("argument", "variable", "expected"),
    [
        (None, None, "replay"),
        (None, "record", "record"),
        (None, " Rerecord ", "rerecord"),
        (None, "live", "live"),
        (None, "", "replay"),
        ("record", "live", "record"),
        ("replay", "record", "replay"),
        (Mode.RERECORD, None, "rerecord"),
        ("LIVE", None, "live"),
    ],
)
def test_other_values_apply_where_no_mode_is_given(
    argument: Any, variable: str | None, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The environment fills in what the code leaves open, and only that."""
    if variable is not None:
        monkeypatch.setenv("HTTPX_CASSETTE_MODE", variable)

    assert expected == CassetteTransport(tmp_path / "chat.jsonl", mode=argument).mode.value


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "reccord"}, "mode='reccord' is not a mode (did you mean 'record'?)"),
        (
            {"recrod_statuses": 200},
            "CassetteTransport has no option 'recrod_statuses' (did you mean 'record_statuses'?)",
        ),
        ({"samples": 0}, "samples=0 is not understood; it takes a whole number from 1"),
        ({"chunk_size": True}, "chunk_size=True is not understood; it takes a whole number from 1"),
        ({"wire_chunk_size": -1}, "wire_chunk_size=-1 is not understood; it takes a whole number from 1"),
        ({"max_calls": "3"}, "max_calls='3' is not understood; it takes a whole number, 0 for none at all"),
        (
            {"record_statuses": [200, "9xx"]},
            "record_statuses cannot hold '9xx'; it takes status codes and classes such as '4xx'",
        ),
        (
            {"passthrough": [3]},
            "passthrough cannot hold 3; it takes hosts, URL prefixes and callables on the call",
        ),
        (
            {"on_miss": "ignore"},
            "on_miss='ignore' is not understood; it takes a callable on the CassetteMiss, or None",
        ),
        (
            {"require_system": "somewhere"},
            "require_system='somewhere' is not understood; "
            "it takes True, False, 'anywhere' or a callable on the call",
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """A mistake is met when the transport is built, and the nearest right word is named."""
    with pytest.raises(OptionError) as caught:
        CassetteTransport(tmp_path / "chat.jsonl", **options)

    assert message == str(caught.value)


def test_an_unknown_mode_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message says where the word stands."""
    monkeypatch.setenv("HTTPX_CASSETTE_MODE", "replya")
    with pytest.raises(OptionError) as caught:
        CassetteTransport(tmp_path / "chat.jsonl", mode="record")

    assert "HTTPX_CASSETTE_MODE='replya' is not a mode (did you mean 'replay'?)" == str(caught.value)


@in_every_colour
async def test_a_chat_call_without_a_system_prompt_is_stopped(colour: Colour, tmp_path: Path) -> None:
    """It is stopped before a real call is made, in every mode but live, unless that is switched off."""
    bare = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello"}]}
    late = {"model": "gpt-5", "messages": [*bare["messages"], {"role": "system", "content": "Be brief."}]}
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=lambda request: answer())
    for mode in ("replay", "record", "rerecord"):
        async with colour.client(path, mode=mode) as client:
            with pytest.raises(SystemPromptMissing) as caught:
                await client.ask(bare)

    assert (
        f"no system prompt in POST {URL}\n"
        "  dialect      openai-chat\n"
        f"  looked at    {caught.value.looked_at}\n"
        f"  found        {caught.value.found}\n"
        "  to accept a later position: require_system='anywhere'\n"
        "  to switch this off: require_system=False, or in pyproject.toml\n"
        "    [tool.httpx_cassette]\n"
        "    require_system = false"
    ) == str(caught.value)
    async with colour.client(path, upstream, mode="record", require_system=False) as client:
        assert "Hi." == said(await client.ask(bare))
    async with colour.client(path, upstream, mode="record", require_system="anywhere") as client:
        assert "Hi." == said(await client.ask(late))
        with pytest.raises(SystemPromptMissing):
            await client.ask(bare)
    async with colour.client(path, require_system=lambda call: b"bare" in call.body) as client:
        with pytest.raises(SystemPromptMissing) as caught:
            await client.ask(bare)
        assert "a call that require_system refuses" == caught.value.found


# --- several answers to one call ----------------------------------------------------------------------


@in_every_colour
async def test_samples_are_kept_and_replayed_in_order(colour: Colour, tmp_path: Path) -> None:
    """The n-th call of a transport gets the n-th answer, and the last one repeats."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    route = upstream.post(URL).mock(side_effect=[answer(str(number)) for number in range(3)])
    async with colour.client(path, upstream, mode="record", samples=3) as client:
        assert ["0", "1", "2", "2"] == [said(await client.ask()) for _ in range(4)]
    assert 3 == route.call_count
    for _ in range(2):
        # Each transport counts for itself: what ran before changes nothing.
        async with colour.client(path, samples=3) as client:
            assert ["0", "1", "2", "2"] == [said(await client.ask()) for _ in range(4)]
    async with colour.client(path) as client:
        assert ["0", "0"] == [said(await client.ask()) for _ in range(2)]


@in_every_colour
async def test_samples_that_are_missing_are_recorded(colour: Colour, tmp_path: Path) -> None:
    """Asking for more samples later buys only those that are not there."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer(str(number)) for number in range(3)])
    async with colour.client(path, upstream, mode="record") as client:
        await client.ask()
    async with colour.client(path, samples=3) as client:
        assert ["0", "0"] == [said(await client.ask()) for _ in range(2)]
    async with colour.client(path, upstream, mode="record", samples=3) as client:
        assert ["0", "1", "2"] == [said(await client.ask()) for _ in range(3)]
        assert 2 == client.transport.stats.live


@in_every_colour
async def test_a_failed_attempt_takes_no_place_among_the_samples(colour: Colour, tmp_path: Path) -> None:
    """A retry gets the place of the try before it: what is kept is the final success."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(
        side_effect=[
            httpx.Response(429),
            colour.library.ConnectError("down"),
            answer("0"),
            httpx.Response(500),
            answer("1"),
        ]
    )
    async with colour.client(path, upstream, mode="record", samples=2) as client:
        assert 429 == (await client.ask()).status_code
        with pytest.raises(colour.library.ConnectError):
            await client.ask()
        assert "0" == said(await client.ask())
        assert 500 == (await client.ask()).status_code
        assert "1" == said(await client.ask())
    assert [0, 1] == [line["sample"] for line in lines(path)]


@in_every_colour
async def test_gets_are_a_sequence(colour: Colour, tmp_path: Path) -> None:
    """Polling: the n-th GET is really made and stored, replayed in order, and the last repeats."""
    path = tmp_path / "batch.jsonl"
    upstream = router()
    states = ["validating", "in_progress", "completed", "expired"]
    route = upstream.get(BATCH).mock(
        side_effect=[
            httpx.Response(200, json={"status": states[0]}),
            httpx.Response(503),
            *(httpx.Response(200, json={"status": state}) for state in states[1:]),
        ]
    )
    async with colour.client(path, upstream, mode="record") as client:
        polled = [await client.get(BATCH) for _ in range(4)]
    assert [200, 503, 200, 200] == [response.status_code for response in polled]
    for _ in range(2):
        async with colour.client(path) as client:
            replayed = [(await client.get(BATCH)).json()["status"] for _ in range(4)]
        assert [*states[:3], states[2]] == replayed
    async with colour.client(path, upstream, mode="record") as client:
        assert states == [(await client.get(BATCH)).json()["status"] for _ in range(4)]
        assert 1 == client.transport.stats.live
    assert 5 == route.call_count


# --- calls that are not stored ------------------------------------------------------------------------


def call(url: str, method: str = "GET") -> Call:
    """Return a call as plain data."""
    return Call(method, url, (), b"")


@pytest.mark.parametrize(
    ("matcher", "url", "expected"),
    [
        ("localhost", "http://localhost/x", True),
        ("localhost", "http://localhost:8080/x", True),
        ("localhost:8080", "http://localhost:8080/x", True),
        ("localhost:8080", "http://localhost:8081/x", False),
        ("localhost", "http://LOCALHOST", True),
        ("localhost", "http://user:pw@localhost/x", True),
        ("localhost", "http://localhost.evil/x", False),
        ("localhost", "http://localhost@evil/x", False),
        ("localhost", "http://localhost:pw@evil/x", False),
        ("localhost", "http://evil/localhost", False),
        ("localhost", "http://evil?://localhost/", False),
        ("*.example.com", "https://a.example.com/", True),
        ("*.example.com", "https://example.com/", True),
        ("*.example.com", "https://notexample.com/", False),
        ("https://a.com", "https://a.com/x?y", True),
        ("https://a.com", "https://a.com?y", True),
        ("https://a.com", "https://a.com", True),
        ("https://a.com", "https://a.com.evil/x", False),
        ("https://a.com", "https://a.com@evil/x", False),
        ("https://a.com", "https://a.com:pw@evil/x", False),
        ("https://a.com", "http://a.com/x", False),
        ("https://a.com/v1", "https://a.com/v1/files", True),
        ("https://a.com/v1", "https://a.com/v10", False),
        ("https://a.com/v1/", "https://a.com/v1/files", True),
    ],
)
def test_passthrough_is_not_fooled(matcher: str, url: str, expected: bool, tmp_path: Path) -> None:
    """A host is the host and a prefix ends where a part of the URL ends, whatever else the URL says."""
    passes = read_settings(tmp_path / "a.jsonl", {"passthrough": matcher}).passthrough

    assert passes is not None
    assert expected is passes(call(url))


@in_every_colour
async def test_passthrough_is_really_called_and_never_stored(colour: Colour, tmp_path: Path) -> None:
    """A webhook, a local database: real in every mode, however it is named."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.route(host="db.test").mock(side_effect=lambda request: httpx.Response(503, text="busy"))
    upstream.route(host="hooks.test").mock(side_effect=lambda request: httpx.Response(200, text="done"))
    given: list[str | Callable[[Call], bool]] = ["db.test", lambda call: "hooks" in call.url]
    for mode in ("replay", "record", "rerecord", "live"):
        async with colour.client(path, upstream, mode=mode, passthrough=given, max_calls=0) as client:
            busy = await client.get("http://db.test/query")
            done = await client.request("POST", "https://hooks.test/x", content=b"payload")

            assert (503, "busy", "done") == (busy.status_code, busy.text, done.text)
            assert ("live", "") == (served(done).outcome, served(done).fingerprint)
            assert (2, 0) == (client.transport.stats.passed, client.transport.stats.live)
    assert not path.exists()


@in_every_colour
async def test_known_probes_and_own_ones_are_answered_here(colour: Colour, tmp_path: Path) -> None:
    """What an SDK asks unasked gets a 404 without a call, in every mode."""
    path = tmp_path / "chat.jsonl"
    probes = [
        "https://huggingface.co/api/agent-harnesses",
        "https://api.cerebras.ai/v1/tcp_warming",
        "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
    ]
    for mode in ("replay", "record", "live"):
        async with colour.client(path, mode=mode, ignore="telemetry.test") as client:
            for url in (*probes, "https://telemetry.test/ping"):
                response = await client.get(url)

                assert (404, {}, "ignored") == (
                    response.status_code,
                    response.json(),
                    served(response).outcome,
                )
            assert 4 == client.transport.stats.ignored
    assert not path.exists()
    async with colour.client(path, ignore=None) as client:
        with pytest.raises(CassetteMiss):
            await client.get(probes[0])


@in_every_colour
async def test_one_real_call_too_many_stops_loudly(colour: Colour, tmp_path: Path) -> None:
    """The limit of a transport holds in record and live; what is recorded is still answered."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(url__startswith=URL).mock(side_effect=lambda request: answer())
    async with colour.client(path, upstream, mode="record", max_calls=1) as client:
        await client.ask()
        await client.ask()
        with pytest.raises(CallLimitReached) as caught:
            await client.ask(chat("More"))
        with pytest.raises(CallLimitReached):
            await client.ask(chat("More"))

        assert 1 == client.transport.stats.live

    expected = f"one more real call would exceed max_calls=1: POST {URL}\n  to allow it: max_calls=2"
    assert expected == str(caught.value)
    assert (1, URL) == (caught.value.limit, caught.value.url)
    assert not isinstance(caught.value, Exception)
    async with colour.client(path, upstream, mode="live", max_calls=1) as client:
        await client.ask()
        with pytest.raises(CallLimitReached) as caught:
            await client.ask(url=f"{URL}?key=sk-secret")
    assert expected == str(caught.value)


@pytest.mark.parametrize("counted", ["transports of this process", "processes that share it"])
@in_every_colour
async def test_the_environment_limits_all_transports_together(
    colour: Colour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: str
) -> None:
    """Whatever each transport was given: two calls are made in all, and a third one stops."""
    path = tmp_path / "chat.jsonl"
    monkeypatch.setattr(_budget, "_made", 0)
    monkeypatch.setenv("HTTPX_CASSETTE_MAX_CALLS", "2")
    if counted == "processes that share it":
        monkeypatch.setenv("HTTPX_CASSETTE_BUDGET", str(tmp_path / "budget"))
    upstream = router()
    route = upstream.post(URL).mock(side_effect=lambda request: answer())
    async with colour.client(path, upstream, mode="record", max_calls=9) as client:
        await client.ask()
        await client.ask()
    async with colour.client(path, upstream, mode="live") as client:
        await client.ask()
        with pytest.raises(CallLimitReached) as caught:
            await client.ask()

        assert 1 == client.transport.stats.live

    assert 2 == route.call_count
    assert (
        f"one more real call would exceed HTTPX_CASSETTE_MAX_CALLS=2: POST {URL}\n"
        f"  counted      the real calls of all {counted}\n"
        "  to allow it: HTTPX_CASSETTE_MAX_CALLS=3"
    ) == str(caught.value)
    assert (2, URL) == (caught.value.limit, caught.value.url)


def test_max_calls_outside_is_read_carefully(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It holds beside the argument, and what is no number is refused."""
    monkeypatch.setenv("HTTPX_CASSETTE_MAX_CALLS", "7")
    found = read_settings(tmp_path / "a.jsonl", {"max_calls": 3})

    assert (3, 7) == (found.max_calls, found.max_calls_of_all)
    monkeypatch.setenv("HTTPX_CASSETTE_MAX_CALLS", "many")
    with pytest.raises(OptionError) as caught:
        read_settings(tmp_path / "a.jsonl", {"max_calls": 3})
    assert "HTTPX_CASSETTE_MAX_CALLS='many' is not understood; it takes a whole number" == str(caught.value)


@in_every_colour
async def test_an_answer_that_is_not_recordable_passes_with_one_warning(
    colour: Colour, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A status that is not stored reaches the caller as it is, so that retries work; it is named once."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(
        side_effect=[
            *(httpx.Response(429, headers={"retry-after": "7"}, text="slow down") for _ in range(3)),
            httpx.Response(401, json={"error": {"message": "no"}}),
            answer("at last"),
        ]
    )
    async with colour.client(path, upstream, mode="record") as client:
        slow = [await client.ask() for _ in range(3)]
        refused = await client.ask()

        assert [(429, "slow down", "7")] * 3 == [
            (response.status_code, response.text, response.headers["retry-after"]) for response in slow
        ]
        assert ("live", None) == (served(refused).outcome, served(refused).file)
        assert {"401": 1, "429": 3} == client.transport.stats.unrecorded
        assert "at last" == said(await client.ask())

    advice = "only finished 2xx and 3xx answers are stored (record_statuses= stores others)"
    assert [
        f"not recorded: POST {URL} answered 429; {advice}",
        f"not recorded: POST {URL} answered 401; {advice}",
    ] == warnings(caplog)
    assert "answers that were not recorded: 1 401, 3 429" == caplog.messages[-1]
    assert [200] == [line["response"]["status"] for line in lines(path)]


@in_every_colour
async def test_a_status_stored_on_request_does_not_make_an_sdk_wait(colour: Colour, tmp_path: Path) -> None:
    """It is replayed with ``x-should-retry: false`` and without advice to come back later."""
    path = tmp_path / "chat.jsonl"
    upstream = router()
    error = {"error": {"message": "slow down", "type": "rate_limit_error"}}
    upstream.post(URL).mock(
        side_effect=[
            httpx.Response(429, headers={"retry-after": "7", "retry-after-ms": "7000"}, json=error),
            httpx.Response(
                400, headers={"content-type": "text/event-stream"}, text='data: {"error": {}}\n\n'
            ),
        ]
    )
    async with colour.client(path, upstream, mode="record", record_statuses=["2xx", "4xx"]) as client:
        live = await client.ask()
        await client.streamed()

        assert ("7", False) == (live.headers["retry-after"], "x-should-retry" in live.headers)
    async with colour.client(path) as client:
        replayed = await client.ask()
        streamed = await client.streamed()

    assert (429, error) == (replayed.status_code, replayed.json())
    assert {"content-type", "content-length", "x-should-retry"} == set(replayed.headers)
    assert "false" == replayed.headers["x-should-retry"]
    assert b'data: {"error": {}}\n\n' == streamed


@pytest.mark.parametrize(
    ("given", "stored", "left"),
    [
        (None, [200, 204, 302, 399], [101, 400, 404, 500]),
        (404, [404], [200, 405]),
        ("4xx", [400, 499], [200, 500]),
        ([200, "5xx"], [200, 500, 599], [201, 404]),
    ],
)
def test_record_statuses_says_what_is_stored(
    given: Any, stored: list[int], left: list[int], tmp_path: Path
) -> None:
    """Codes and classes, alone or in a list."""
    is_recordable = read_settings(tmp_path / "a.jsonl", {"record_statuses": given}).is_recordable

    assert all(map(is_recordable, stored))
    assert not any(map(is_recordable, left))


@in_every_colour
async def test_an_error_of_the_network_passes_unrecorded(
    colour: Colour, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The library's own error reaches the caller as it is, named once; the next success is what is kept."""
    path = tmp_path / "chat.jsonl"
    down = colour.library.ConnectTimeout("nobody there")
    upstream = router()
    upstream.post(URL).mock(side_effect=[down, down, answer("back")])
    async with colour.client(path, upstream, mode="record") as client:
        for _ in range(2):
            with pytest.raises(colour.library.ConnectTimeout) as caught:
                await client.ask()
            assert down is caught.value
        assert "back" == said(await client.ask())
        assert {"ConnectTimeout": 2} == client.transport.stats.unrecorded

    assert [f"not recorded: POST {URL} raised ConnectTimeout"] == warnings(caplog)
    assert 1 == len(lines(path))


# --- several cassettes --------------------------------------------------------------------------------


@in_every_colour
async def test_several_cassettes_are_looked_up_and_the_last_is_written(
    colour: Colour, tmp_path: Path
) -> None:
    """A small seed in git, the full one outside: the seed is read, never changed."""
    seed, full = tmp_path / "seed.jsonl", tmp_path / "full.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[answer("seed"), answer("full"), answer("fresh")])
    async with colour.client(seed, upstream, mode="record") as client:
        await client.ask()
    before = seed.read_bytes()
    async with colour.client([seed, full], upstream, mode="record") as client:
        assert ["seed", "full"] == [said(await client.ask()), said(await client.ask(chat("More")))]
        assert [str(seed), str(full)] == [cassette.path for cassette in client.transport.cassettes]
    async with colour.client([seed, full]) as client:
        assert ["seed", "full"] == [said(await client.ask()), said(await client.ask(chat("More")))]
    async with colour.client([seed, full], upstream, mode="rerecord") as client:
        assert "fresh" == said(await client.ask())

    assert before == seed.read_bytes()
    assert [0, 1] == [line["gen"] for line in lines(full)]
    for order in ([seed, full], [full, seed]):
        # The highest generation wins over all of them, whatever their order.
        async with colour.client(order) as client:
            assert "fresh" == said(await client.ask())


def test_an_empty_list_names_no_cassette() -> None:
    """There would be nothing to look up."""
    with pytest.raises(OptionError, match="an empty list names no cassette"):
        CassetteTransport([])


@in_every_colour
async def test_what_a_checkout_brought_is_not_paid_for_again(colour: Colour, tmp_path: Path) -> None:
    """Before a real call the file is looked at that the path names by now."""
    path, other = tmp_path / "chat.jsonl", tmp_path / "other.jsonl"
    upstream = router()
    route = upstream.post(URL).mock(side_effect=lambda request: answer())
    async with colour.client(path, upstream, mode="record") as here:
        await here.ask(chat("One"))
        async with colour.client(other, upstream, mode="record") as there:
            await there.ask(chat("Two"))
        os.replace(other, path)

        response = await here.ask(chat("Two"))

    assert "replayed" == response.extensions["httpx_cassette"].outcome
    assert 2 == route.call_count
