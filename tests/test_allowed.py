"""Which real calls the environment allows: a list in a file, and what a call that is not on it comes to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import CallLimitReached, CassetteMiss, CassetteTransport, OptionError, _flow, _ledger
from httpx_cassette._allowed import Allowed, allowed_text, read_allowed
from httpx_cassette._call import LiveHead

from .colours import URL, Colour, answer, chat, in_every_colour, lines, never, router
from .test_flow import JSON, ME, asked, record, session, tell

FINGERPRINT = "9f2c" * 16


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every program with the same words."""
    monkeypatch.setattr("sys.orig_argv", ["python", "app.py"])


@pytest.fixture
def allow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Allow some calls and no others."""
    path = tmp_path / "only.txt"
    monkeypatch.setenv("HTTPX_CASSETTE_ONLY", str(path))

    def write(*bodies: dict[str, Any]) -> None:
        transport = session(tmp_path / "any.jsonl").settings
        keys = [_flow.key_of(*_flow.read(asked(body), transport), transport).fingerprint for body in bodies]
        path.write_text(allowed_text("misses.jsonl", keys))

    return write


@in_every_colour
async def test_what_is_listed_is_made_and_nothing_else(
    colour: Colour, tmp_path: Path, allow: Callable[..., None]
) -> None:
    """A call that is not on the list is a miss that says so; a listed one may be tried again and again."""
    allow(chat("one"), chat("two"))
    path = tmp_path / "chat.jsonl"
    upstream = router()
    upstream.post(URL).mock(side_effect=[colour.library.ConnectError("down"), answer("1"), answer("2")])
    async with colour.client(path, upstream, mode="record") as client:
        with pytest.raises(colour.library.ConnectError):
            await client.ask(chat("one"))
        await client.ask(chat("one"))
        with pytest.raises(CassetteMiss) as caught:
            await client.ask(chat("three"))
        await client.ask(chat("two"))
        await client.ask(chat("one"))

        assert (3, 2, 1, 1) == tuple(
            getattr(client.transport.stats, name) for name in ("live", "recorded", "replayed", "missed")
        )
    report = str(caught.value).replace(caught.value.fingerprint, "KEY").replace(str(path), "chat.jsonl")
    assert [
        f"no recording for POST {URL} in chat.jsonl",
        "  model        gpt-5",
        "  fingerprint  KEY (key version 1, dialect openai-chat)",
        "  refused      not among the 2 calls that HTTPX_CASSETTE_ONLY allows (misses.jsonl)",
        "  cassette     chat.jsonl: 1 recording",
    ] == report.splitlines()[:5]
    assert (
        "  to record it: have a run miss it first: httpx-cassette run --misses FILE -- python app.py"
        == report.splitlines()[-1]
    )
    assert ["CassetteMiss"] == [entry.kind for entry in _ledger.entries()]
    assert 2 == len(lines(path))


def test_a_rerecording_is_refused_too(tmp_path: Path, allow: Callable[..., None]) -> None:
    """What is recorded is not asked once more unless it is on the list."""
    path = tmp_path / "chat.jsonl"
    allow(chat("one"))
    record(session(path, mode="record"), asked(chat("one")))
    # Read once for each process: what is allowed does not grow while a program runs.
    allow(chat("one"), chat("two"))
    where = session(path, mode="rerecord")

    record(where, asked(chat("one")))
    with pytest.raises(CassetteMiss) as caught:
        tell(_flow.exchange(asked(chat("two")), where, ME))

    assert (
        "  refused      not the one call that HTTPX_CASSETTE_ONLY allows (misses.jsonl)"
        == (str(caught.value).splitlines()[3])
    )
    assert 2 == len(lines(path))


def test_a_recorded_call_that_is_refused_is_the_same_request(
    tmp_path: Path, allow: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report does not say that another policy keyed it."""
    path = tmp_path / "chat.jsonl"
    with monkeypatch.context() as without:
        without.delenv("HTTPX_CASSETTE_ONLY")
        record(session(path, mode="record"), asked(chat("one")))
    allow(chat("two"))
    with pytest.raises(CassetteMiss) as caught:
        tell(_flow.exchange(asked(chat("one")), session(path, mode="rerecord"), ME))

    assert "the same request" == str(caught.value).splitlines()[5].rpartition("Z: ")[2]


@in_every_colour
async def test_a_live_call_is_refused(colour: Colour, tmp_path: Path, allow: Callable[..., None]) -> None:
    """It has no key by which it could be on the list."""
    allow(chat())
    async with colour.client(tmp_path / "chat.jsonl", never(), mode="live") as client:
        with pytest.raises(CallLimitReached) as caught:
            await client.ask()

    assert (
        f"a live call is not allowed: POST {URL}\n"
        "  refused      not the one call that HTTPX_CASSETTE_ONLY allows (misses.jsonl); "
        "in mode live a call has no fingerprint\n"
        "  to allow it: mode='record', or run without HTTPX_CASSETTE_ONLY"
    ) == str(caught.value)
    assert (0, URL) == (caught.value.limit, caught.value.url)
    assert ["CallLimitReached"] == [entry.kind for entry in _ledger.entries()]


def test_what_is_passed_through_is_not_asked_about(tmp_path: Path, allow: Callable[..., None]) -> None:
    """The user named the host, and nothing of it is stored."""
    allow(chat("one"))
    where = session(tmp_path / "chat.jsonl", mode="record", passthrough=["api.openai.com"])
    _, answered = tell(_flow.exchange(asked(), where, ME), LiveHead(200, JSON))

    assert "live" == answered.served.outcome


def test_replay_does_not_look_at_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no real call to refuse, so a file that is gone is nobody's business."""
    monkeypatch.setenv("HTTPX_CASSETTE_ONLY", str(tmp_path / "absent"))

    assert session(tmp_path / "chat.jsonl").settings.allowed is None


def test_a_report_that_cannot_be_made_says_why(
    tmp_path: Path, allow: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours in the report leaves the fingerprint, and the reason of the refusal."""
    allow(chat("one"))

    def fail(facts: object) -> CassetteMiss:
        raise RuntimeError("a fault")

    monkeypatch.setattr("httpx_cassette._search.miss", fail)
    with pytest.raises(CassetteMiss) as caught:
        tell(_flow.exchange(asked(), session(tmp_path / "chat.jsonl", mode="record"), ME))

    assert [
        "  refused      not the one call that HTTPX_CASSETTE_ONLY allows (misses.jsonl)",
        "  the report could not be made: RuntimeError; please report it",
    ] == str(caught.value).splitlines()[2:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "holds no fingerprint, so no call could be made"),
        ("# misses.jsonl\n\n", "holds no fingerprint, so no call could be made"),
        (
            f"{FINGERPRINT}\n{FINGERPRINT[:-1]}\n",
            f"holds {FINGERPRINT[:-1]!r}, which is no fingerprint; it takes one of 64 hex digits a line; "
            "the misses of a run are for: httpx-cassette record --from FILE",
        ),
        (
            '{"pid": 1}\n',
            "holds '{\"pid\": 1}', which is no fingerprint; it takes one of 64 hex digits a line; "
            "the misses of a run are for: httpx-cassette record --from FILE",
        ),
    ],
    ids=["absent", "empty", "comments-only", "short", "misses"],
)
@pytest.mark.parametrize("mode", ["record", "rerecord", "live"])
def test_a_list_of_no_use_is_refused_before_anything_is_paid(
    text: str | None, message: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the variable; the transport is not built."""
    path = tmp_path / "only.txt"
    monkeypatch.setenv("HTTPX_CASSETTE_ONLY", str(path))
    if text is not None:
        path.write_text(text)
    with pytest.raises(OptionError) as caught:
        CassetteTransport(tmp_path / "chat.jsonl", mode=mode)

    assert f"HTTPX_CASSETTE_ONLY={str(path)!r} {message}" == str(caught.value)


def test_a_list_without_a_comment_is_named_by_its_path(tmp_path: Path) -> None:
    """A list written by hand works as well."""
    path = tmp_path / "only.txt"
    path.write_text(f"{FINGERPRINT}\n")

    assert Allowed(frozenset([FINGERPRINT]), str(path)) == read_allowed(str(path))
