"""The story of one call, told with lists: no client, no network, no event loop."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import orjson
import pytest

from httpx_cassette import (
    CallLimitReached,
    CassetteMiss,
    CassetteStop,
    CassetteUnusable,
    KeyPolicy,
    Stats,
    SystemPromptMissing,
    _flight,
    _flow,
    _ledger,
    _session,
)
from httpx_cassette._answer import Forwarded, Replayed
from httpx_cassette._call import Call, LiveHead
from httpx_cassette._errors import CassetteDamaged, CassetteError
from httpx_cassette._flight import Owner
from httpx_cassette._flow import Forward, Step, Wait, exchange, recall
from httpx_cassette._line import seal
from httpx_cassette._recording import Recording
from httpx_cassette._session import Session
from httpx_cassette._settings import read_settings

from .colours import CHAT, URL, chat, lines

ME, OTHER = Owner(1, 0), Owner(2, 0)
JSON = ((b"content-type", b"application/json"),)
ANSWER = orjson.dumps({"choices": [{"index": 0, "message": {"content": "Hi."}, "finish_reason": "stop"}]})

Flow = Generator[Step, Any, Any]


def asked(body: dict[str, Any] = CHAT, url: str = URL, method: str = "POST") -> Call:
    """Return a call as plain data."""
    return Call(method, url, JSON, orjson.dumps(body))


def session(path: Path, **options: Any) -> Session:
    """Return what a transport remembers."""
    return Session(read_settings(path, options))


def tell(flow: Flow, *outcomes: Any) -> tuple[list[Step], Any]:
    """Run a story with the outcomes of its steps; return the steps and what it returned."""
    steps: list[Step] = []
    try:
        step = flow.send(None)
        for outcome in outcomes:
            steps.append(step)
            step = flow.throw(outcome) if isinstance(outcome, BaseException) else flow.send(outcome)
        raise AssertionError(f"one step too many: {step}")  # pragma: no cover
    except StopIteration as done:
        return steps, done.value


def record(where: Session, call: Call | None = None, body: bytes = ANSWER) -> Forwarded:
    """Record one plain answer."""
    _, forwarded = tell(exchange(call or asked(), where, ME), LiveHead(200, JSON))
    assert forwarded.sink.feed(body) is None
    step = forwarded.sink.end()
    step.run()
    found: Forwarded = forwarded
    return found


# --- steps --------------------------------------------------------------------------------------------


def test_replay_has_no_step_that_leads_to_a_real_call(tmp_path: Path) -> None:
    """A hit is answered, a miss raised, and between them nothing is asked of a driver."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))
    steps, answer = tell(exchange(asked(), session(path), ME))

    assert [] == steps
    assert isinstance(answer, Replayed)
    assert (200, orjson.loads(ANSWER)) == (answer.status, orjson.loads(answer.content))
    with pytest.raises(CassetteMiss):
        tell(exchange(asked(chat("More")), session(path), ME))


def test_a_replay_is_recalled_and_anything_else_is_not(tmp_path: Path) -> None:
    """The short way gives what the story gives, and does nothing where the story could have steps."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))
    _, told = tell(exchange(asked(), session(path), ME))
    recalled = recall(asked(), session(path))

    assert recalled == told
    with pytest.raises(CassetteMiss):
        recall(asked(chat("More")), session(path))
    for options in ({"mode": "record"}, {"mode": "live"}, {"passthrough": ["api.example.com"]}):
        where = session(path, **options)
        assert recall(asked(), where) is None
        assert Stats() == where.stats


def test_record_forwards_once_and_hands_out_a_sink(tmp_path: Path) -> None:
    """The driver is told to make the call, and what watches its answer."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    steps, forwarded = tell(exchange(asked(), where, ME), LiveHead(200, JSON))

    assert [Forward()] == steps
    assert isinstance(forwarded, Forwarded)
    assert forwarded.sink is not None
    assert ("live", None) == (forwarded.served.outcome, forwarded.served.file)
    forwarded.sink.feed(ANSWER)
    step = forwarded.sink.end()
    assert step is not None
    assert (0, "1 still open") == (where.stats.recorded, where.news())
    step.run()
    assert ("recorded", 1) == (forwarded.served.outcome, forwarded.served.line)
    assert (1, None) == (where.stats.recorded, where.news())


def test_an_identical_call_waits_and_is_answered_from_the_first(tmp_path: Path) -> None:
    """The second story yields a wait, not a call, and goes on when the first has been stored."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    _, leader = tell(exchange(asked(), where, ME), LiveHead(200, JSON))
    follower = exchange(asked(), where, OTHER)
    step = follower.send(None)

    assert isinstance(step, Wait)
    leader.sink.feed(ANSWER)
    leader.sink.end().run()
    assert step.flight.is_over
    with pytest.raises(StopIteration) as done:
        follower.send(None)
    assert ("replayed", 1) == (done.value.value.served.outcome, where.stats.waited)


def test_the_next_one_leads_when_the_first_fails(tmp_path: Path) -> None:
    """Whatever becomes of the first, the one that waited makes the call itself."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    leader = exchange(asked(), where, ME)
    assert isinstance(leader.send(None), Forward)
    follower = exchange(asked(), where, OTHER)
    step = follower.send(None)
    assert isinstance(step, Wait)
    with pytest.raises(ConnectionError):
        leader.throw(ConnectionError("down"))

    assert step.flight.is_over
    assert isinstance(follower.send(None), Forward)
    follower.close()
    assert {"ConnectionError": 1, "abandoned": 1} == where.stats.unrecorded


def test_the_same_thread_does_not_wait_for_itself(tmp_path: Path) -> None:
    """Who still holds the first answer open makes a call of its own; what is stored is the first."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    _, first = tell(exchange(asked(), where, ME), LiveHead(200, JSON))
    _, second = tell(exchange(asked(), where, ME), LiveHead(200, JSON))
    for forwarded in (first, second):
        forwarded.sink.feed(ANSWER)
        forwarded.sink.end().run()

    assert (2, 1, {"stored by another": 1}) == (
        where.stats.live,
        where.stats.recorded,
        where.stats.unrecorded,
    )
    assert ("recorded", "live") == (first.served.outcome, second.served.outcome)
    assert 1 == len(lines(tmp_path / "chat.jsonl"))


def test_a_rerecording_waits_for_another_and_takes_its_answer(tmp_path: Path) -> None:
    """Two at once in ``rerecord`` pay once as well; while the answer is news it is not looked up."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))
    where = session(path, mode="rerecord")
    _, leader = tell(exchange(asked(), where, ME), LiveHead(200, JSON))
    follower = exchange(asked(), where, OTHER)
    assert isinstance(follower.send(None), Wait)
    leader.sink.feed(ANSWER.replace(b"Hi.", b"Ho."))
    leader.sink.end().run()
    with pytest.raises(StopIteration) as done:
        follower.send(None)

    assert b"Ho." in done.value.value.content


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_lines_of_another_process_are_seen_before_a_real_call(mode: str, tmp_path: Path) -> None:
    """A cassette that grew since it was read answers, in record and in replay."""
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    record(session(there, mode="record"))
    where = session(here, mode=mode)
    assert 0 == len(where.settings.shelf.written)
    here.write_bytes(there.read_bytes())

    assert isinstance(tell(exchange(asked(), where, ME))[1], Replayed)
    assert 0 == where.stats.live


def test_a_story_that_is_dropped_lets_others_go_on(tmp_path: Path) -> None:
    """A driver that dies between two steps leaves nobody waiting."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    leader = exchange(asked(), where, ME)
    leader.send(None)
    follower = exchange(asked(), where, OTHER)
    step = follower.send(None)
    assert isinstance(step, Wait)
    del leader

    assert step.flight.is_over
    assert isinstance(follower.send(None), Forward)
    follower.close()


def test_what_fails_before_the_call_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording is prepared first: an error in that is met before anything is paid for."""
    where = session(tmp_path / "chat.jsonl", mode="record")

    def fail(*arguments: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr("httpx_cassette._tripwire.Tripwire", fail)
    with pytest.raises(RuntimeError):
        tell(exchange(asked(), where, ME))
    monkeypatch.undo()

    assert 0 == where.stats.live
    assert isinstance(exchange(asked(), where, OTHER).send(None), Forward)


def test_two_samples_rerecorded_at_once_are_one_generation(tmp_path: Path) -> None:
    """The first to be stored begins the generation, the other joins it."""
    path = tmp_path / "chat.jsonl"
    where = session(path, mode="rerecord", samples=2)
    both = [tell(exchange(asked(), where, owner), LiveHead(200, JSON))[1] for owner in (ME, OTHER)]
    for forwarded in reversed(both):
        forwarded.sink.feed(ANSWER)
        forwarded.sink.end().run()

    assert [(1, 1), (1, 0)] == [(line["gen"], line["sample"]) for line in lines(path)]


# --- what stops a call --------------------------------------------------------------------------------


def damage(path: Path) -> None:
    """Change one character of the last line."""
    path.write_bytes(path.read_bytes().replace(b"Hi.", b"Ho."))


@pytest.mark.parametrize("mode", ["replay", "record"])
def test_a_damaged_recording_is_not_answered_from(mode: str, tmp_path: Path) -> None:
    """It stops the call with the reason as its cause; it is no miss and never leads to a real call."""
    path = tmp_path / "chat.jsonl"
    fingerprint = record(session(path, mode="record")).served.fingerprint
    damage(path)
    with pytest.raises(CassetteUnusable) as caught:
        tell(exchange(asked(), session(path, mode=mode), ME))

    cause = caught.value.__cause__
    assert isinstance(cause, CassetteDamaged)
    assert (
        f"the recording of POST {URL} cannot be answered from\n"
        f"  because      {cause}\n"
        f"  fingerprint  {fingerprint}"
    ) == str(caught.value)
    assert (fingerprint, str(path), 1) == (
        caught.value.fingerprint,
        caught.value.path,
        caught.value.line,
    )
    assert "CassetteUnusable" == _ledger.entries()[0].kind


@pytest.mark.parametrize("mode", ["replay", "record"])
def test_a_sealed_line_without_an_answer_is_not_answered_from(mode: str, tmp_path: Path) -> None:
    """Edited and sealed again, or imported: what no answer can be made of stops the call as well."""
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    record(session(there, mode="record"))
    members = (
        there.read_bytes().rpartition(b',"sum"')[0].replace(b'"json":{"choices"', b'"jason":{"choices"', 1)
    )
    here.write_bytes(seal(members) + b"\n")
    with pytest.raises(CassetteUnusable) as caught:
        tell(exchange(asked(), session(here, mode=mode), ME))

    assert isinstance(caught.value.__cause__, CassetteDamaged)


@pytest.mark.parametrize("mode", ["replay", "record"])
def test_a_cassette_that_becomes_unreadable_is_no_ordinary_error(mode: str, tmp_path: Path) -> None:
    """A merge conflict that appears while the program runs stops the call past every ``except Exception``."""
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))
    where = session(path, mode=mode)
    assert 1 == len(where.settings.shelf.written)
    with path.open("ab") as file:
        file.write(b"<<<<<<< HEAD\n")
    with pytest.raises(CassetteUnusable) as caught:
        tell(exchange(asked(chat("More")), where, ME))

    assert "unresolved merge" in str(caught.value.__cause__)
    assert isinstance(caught.value.__cause__, CassetteError)


@pytest.mark.parametrize("mode", ["replay", "record"])
def test_a_prompt_file_that_is_gone_stops_the_call(mode: str, tmp_path: Path) -> None:
    """Without it there is no key; the message says so and names the file."""
    path, prompt = tmp_path / "chat.jsonl", tmp_path / "prompt.txt"
    where = session(path, mode=mode, prompt_files={"main": prompt})
    for number in range(2):
        with pytest.raises(CassetteUnusable) as caught:
            tell(exchange(asked(chat(str(number))), where, ME))

    assert (
        f"the key of POST {URL} cannot be computed\n"
        f"  because      {prompt}: the prompt file 'main' cannot be read: No such file or directory"
    ) == str(caught.value)
    assert ("", str(prompt)) == (caught.value.fingerprint, caught.value.path)
    assert [2] == [entry.count for entry in _ledger.entries()]


def test_a_prompt_file_that_changes_during_the_call_is_stored_as_it_was_keyed(tmp_path: Path) -> None:
    """The digest on the line is the one in the key, whatever an editor did while the model thought."""
    path, prompt = tmp_path / "chat.jsonl", tmp_path / "prompt.txt"
    prompt.write_text("one")
    where = session(path, mode="record", prompt_files={"main": prompt})
    flow = exchange(asked(), where, ME)
    flow.send(None)
    prompt.write_text("two")
    with pytest.raises(StopIteration) as done:
        flow.send(LiveHead(200, JSON))
    sink = done.value.value.sink
    sink.feed(ANSWER)
    sink.end().run()
    prompt.write_text("one")

    assert isinstance(tell(exchange(asked(), session(path, prompt_files={"main": prompt}), ME))[1], Replayed)
    stored = lines(path)[0]["policy"]["prompt_files"]
    assert where.settings.prompt_files.digests() == stored


@pytest.mark.parametrize(
    ("options", "call", "kind"),
    [
        ({}, asked(), CassetteMiss),
        ({}, asked({"messages": []}), SystemPromptMissing),
        ({"mode": "record", "max_calls": 0}, asked(), CallLimitReached),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_stops_a_call_is_in_the_ledger_before_it_is_raised(
    options: dict[str, Any], call: Call, kind: type[CassetteStop], tmp_path: Path
) -> None:
    """No ``except`` can hide it, and none of it is an ``Exception``."""
    with pytest.raises(kind) as caught:
        tell(exchange(call, session(tmp_path / "chat.jsonl", **options), ME))

    assert not isinstance(caught.value, Exception)
    assert [(kind.__name__, str(caught.value))] == [(entry.kind, entry.report) for entry in _ledger.entries()]


def test_on_miss_is_called_after_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A callback that raises itself hides no miss; it is asked about misses alone."""
    seen: list[CassetteMiss] = []

    def refuse(miss: CassetteMiss) -> None:
        seen.append(miss)
        raise RuntimeError("the callback is broken")

    where = session(tmp_path / "chat.jsonl", on_miss=refuse)
    with pytest.raises(CassetteMiss) as caught:
        tell(exchange(asked(), where, ME))
    with pytest.raises(SystemPromptMissing):
        tell(exchange(asked({"messages": []}), where, ME))

    assert [caught.value] == seen
    assert "the callback is broken" == str(caught.value.__cause__)
    assert ["CassetteMiss", "SystemPromptMissing"] == [entry.kind for entry in _ledger.entries()]


def test_on_miss_none_switches_the_hooks_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The miss is raised and known, and the exit status is the program's own business."""
    given: list[bool] = []
    monkeypatch.setattr(_session._ledger, "enter", lambda error, key, hooks: given.append(hooks))
    for on_miss in (None, "exit"):
        with pytest.raises(CassetteMiss):
            tell(exchange(asked(), session(tmp_path / "chat.jsonl", on_miss=on_miss), ME))

    assert [False, True] == given


# --- what is said -------------------------------------------------------------------------------------


def test_a_hit_is_logged_quietly_and_a_real_call_aloud(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """DEBUG for a hit, INFO for a call, in every mode; never a password or a key."""
    caplog.set_level(logging.DEBUG, "httpx_cassette")
    path = tmp_path / "chat.jsonl"
    made = record(session(path, mode="record"))
    tell(exchange(asked(), session(path), ME))
    secret = "https://me:sk-hunter2@api.openai.com/v1/x?api_key=sk-hunter2&a=1"
    tell(exchange(asked(url=secret), session(path, mode="live"), ME), LiveHead(200, ()))
    tell(exchange(asked(url=secret), session(path, passthrough=lambda call: True), ME), LiveHead(503, ()))

    assert [
        ("INFO", f"real call: POST {URL} -> 200"),
        ("DEBUG", f"replayed {made.served.fingerprint[:12]} from {path}:1"),
        ("INFO", "real call: POST https://api.openai.com/v1/x?a=1 -> 200"),
        ("INFO", "real call: POST https://api.openai.com/v1/x?a=1 -> 503"),
    ] == [(found.levelname, found.getMessage()) for found in caplog.records]
    caplog.clear()
    caplog.set_level(logging.WARNING, "httpx_cassette")
    tell(exchange(asked(), session(path), ME))
    tell(exchange(asked(), session(path, mode="live"), ME), LiveHead(200, ()))
    assert [] == caplog.records


def test_what_was_not_recorded_is_told_once(tmp_path: Path) -> None:
    """Closing says it, closing again has nothing new to say, and what came since is told."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    assert where.news() is None
    tell(exchange(asked(), where, ME), LiveHead(500, ()))

    assert "1 500" == where.news()
    assert where.news() is None
    _, forwarded = tell(exchange(asked(), where, ME), LiveHead(200, JSON))
    assert "1 500, 1 still open" == where.news()
    forwarded.sink.forget()
    assert "1 500, 1 abandoned" == where.news()


@pytest.mark.parametrize(
    ("url", "policy", "is_warned"),
    [
        ("https://gateway.test/v1/chat/completions", {}, True),
        (URL, {}, False),
        ("https://gateway.test/v1/chat/completions", {"defaults": {"n": 1}}, False),
    ],
    ids=["another host", "the provider's own", "own defaults"],
)
def test_a_hit_that_rests_on_a_default_is_named_once(
    url: str, policy: dict[str, Any], is_warned: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another host may have other defaults: one side sent the field, the other did not."""
    path = tmp_path / "chat.jsonl"
    options = {"key_policy": KeyPolicy(**policy)}
    record(session(path, mode="record", **options), asked(chat(n=1), url))
    where = session(path, **options)
    for _ in range(2):
        tell(exchange(asked(url=url), where, ME))

    expected = (
        f"{path}:1 answers a call that differs from it in n: one side sent the default that the format's own "
        "provider documents, the other nothing. If gateway.test has other defaults, switch the folding off: "
        "KeyPolicy(defaults=False)"
    )
    assert ([expected] if is_warned else []) == caplog.messages


def test_a_recorded_request_that_cannot_be_read_is_answered_from_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The check for defaults is a courtesy; the answer is what counts."""
    path, url = tmp_path / "chat.jsonl", "https://gateway.test/v1/chat/completions"
    record(session(path, mode="record"), asked(url=url))
    monkeypatch.setattr(Recording, "request", property(lambda self: {}["json"]))

    assert isinstance(tell(exchange(asked(url=url), session(path), ME))[1], Replayed)
    assert [] == caplog.messages


# --- what a session remembers -------------------------------------------------------------------------


def test_positions_that_were_given_back_are_taken_first(tmp_path: Path) -> None:
    """The lowest first, so that no hole stays in a sequence."""
    where = session(tmp_path / "chat.jsonl")
    assert [0, 1, 2] == [where.next_position(b"a") for _ in range(3)]
    where.give_back(b"a", 2)
    where.give_back(b"a", 0)

    assert [0, 2, 3, 0] == [where.next_position(key) for key in (b"a", b"a", b"a", b"b")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_waits_for_no_call_of_its_parent(tmp_path: Path) -> None:
    """Nobody in the child will ever land it, and no lock is held by a thread that is not there."""
    path = tmp_path / "chat.jsonl"
    where = session(path, mode="rerecord")
    leader = exchange(asked(), where, ME)
    leader.send(None)
    with _flow._FRESH_LOCK, _flight._LOCK:
        child = os.fork()
        if child == 0:  # pragma: no cover  # it ends without a word
            status = 1
            try:
                _, forwarded = tell(exchange(asked(), where, OTHER), LiveHead(200, JSON))
                forwarded.sink.feed(ANSWER)
                forwarded.sink.end().run()
                status = 0
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
    leader.close()

    assert 0 == status
    assert 1 == len(lines(path))


def test_what_a_child_forgets(tmp_path: Path) -> None:
    """The same in this process, where it can be seen."""
    where = session(tmp_path / "chat.jsonl", mode="record")
    leader, follower = exchange(asked(), where, ME), exchange(asked(), where, OTHER)
    leader.send(None)
    before = _flow._FRESH_LOCK, _flight._LOCK
    _flow._after_fork()
    _flight._after_fork()

    assert isinstance(follower.send(None), Forward)
    assert all(new is not old for new, old in zip((_flow._FRESH_LOCK, _flight._LOCK), before, strict=True))
    leader.close()
    follower.close()


def test_a_report_that_cannot_be_made_hides_no_miss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of ours in the report leaves a miss with its fingerprint, and no ordinary exception."""

    def fail(facts: object) -> CassetteMiss:
        raise RuntimeError("a fault")

    monkeypatch.setattr("httpx_cassette._search.miss", fail)
    where = session(tmp_path / "chat.jsonl")
    with pytest.raises(CassetteMiss) as caught:
        tell(exchange(asked(), where, ME))

    assert (
        "  the report could not be made: RuntimeError; please report it" == str(caught.value).splitlines()[-1]
    )
    assert caught.value.fingerprint in str(caught.value)
    assert 1 == len(_ledger.entries())


def test_a_report_shows_no_credential_of_the_call(tmp_path: Path) -> None:
    """A credential of no known shape that stands in the prompt too is named, not shown."""
    secret = "qWeRtY-" + "weird-shape-" * 3
    path = tmp_path / "chat.jsonl"
    record(session(path, mode="record"))
    call = asked({"messages": [{"role": "system", "content": f"my key is {secret}"}]})
    call = call._replace(headers=(*call.headers, (b"authorization", f"Bearer {secret}".encode())))
    with pytest.raises(CassetteMiss) as caught:
        tell(exchange(call, session(path), ME))

    assert secret not in str(caught.value)
    assert (
        "  the difference and the command are not shown, because the authorization header stands in them"
        == str(caught.value).splitlines()[-1]
    )


def test_a_forked_child_has_locks_of_its_own(tmp_path: Path) -> None:
    """What another thread held at the fork is free in the child."""
    where = session(tmp_path / "chat.jsonl")
    before = where.lock, where.opening
    _session._after_fork()

    assert where.lock is not before[0]
    assert where.opening is not before[1]
