"""A recording: what is written on its line, and what is read back."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._errors import CassetteDamaged, CassetteError
from httpx_cassette._line import is_intact, seal
from httpx_cassette._recording import NewRecording, Recording, StoredResponse

from ._recordings import AT, exchange, head_of_line, key_of, line

ANSWER: dict[str, Json] = {
    "status": 200,
    "headers": {"content-type": "application/json"},
    "json": {"a": [1, "é"]},
}
REQUEST: dict[str, Json] = {"method": "POST", "url": "https://api.example.com/v1"}
HEADERS = (("content-type", "application/json"),)


def new(response: Any = ANSWER, request: Any = REQUEST, **members: Any) -> NewRecording:
    usual: dict[str, Any] = {"at": AT, "dialect": "openai-chat", "finish": "stop", "milliseconds": 812}
    return NewRecording(key_of("a"), 0, response=response, request=request, **{**usual, **members})


def read(data: bytes) -> Recording:
    return Recording(data, "c.jsonl", 7, head_of_line(data))


def by_hand(members: dict[str, Any]) -> Recording:
    """Return the recording of a line that another program wrote and sealed."""
    return read(seal(json.dumps(members, separators=(",", ":")).encode()[:-1]))


# -- writing -------------------------------------------------------------------------------------------


def test_the_members_stand_in_a_fixed_order() -> None:
    """A person and a scanner find what they look for at the same place of every line."""
    data = new(policy={"host": False}).line(3, 1)

    assert (
        '{"v":1,"kv":1,"key":"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb","sample":0,"gen":3,'
        '"at":"2026-11-29T12:00:00Z","dialect":"openai-chat","finish":"stop","ms":812,'
        '"response":{"status":200,"headers":{"content-type":"application/json"},"json":{"a":[1,"é"]}},'
        '"request":{"method":"POST","url":"https://api.example.com/v1"},"policy":{"host":false},"sum":"2f1df7bb85507fcf"}'
    ) == data.decode()
    assert is_intact(data)


def test_a_default_policy_is_not_written() -> None:
    """A line says only what differs."""
    assert "policy" not in json.loads(new().line(0, 1))


def test_an_exchange_that_could_not_be_read_back_is_refused() -> None:
    """A paid answer is not stored in a line that replay would choke on; the error names why."""
    with pytest.raises(CassetteError) as caught:
        _ = new({**ANSWER, "json": float("inf")}).body

    assert (
        "the exchange cannot be written as a line of a cassette: JSON cannot hold NaN or an infinity"
        == str(caught.value)
    )


@pytest.mark.parametrize("depth", [1, 100])
@pytest.mark.parametrize("odd", [1, 2**70, "\ud800"], ids=["plain", "big-integer", "surrogate"])
def test_bodies_may_be_nested_as_deep_as_anywhere(depth: int, odd: Json) -> None:
    """The levels of the line itself do not count: a request and an answer of 100 levels are read back."""
    deep: Json = odd
    for _ in range(depth):
        deep = [deep]
    script: list[Json] = [{"event": "e", "json": deep}]
    whole, stream = (
        read(new(answer, {"method": "POST", "url": "u", "body": {"json": deep}}).line(0, 1))
        for answer in ({**ANSWER, "json": deep}, {"status": 200, "headers": {}, "script": script})
    )

    assert {"method": "POST", "url": "u", "body": {"json": deep}} == whole.request
    assert deep == json.loads(whole.response().content)
    assert script == stream.response().script


# -- reading -------------------------------------------------------------------------------------------


def test_a_recording_gives_what_was_written() -> None:
    """Every member is there, unknown ones included, whatever the order of the line."""
    usual = read(new(policy={"host": False}).line(0, 1))
    other = by_hand(
        {"new": [1], **dict(reversed(json.loads(new(policy={"host": False}).line(0, 1)).items()))}
    )

    for recording in (usual, other):
        assert (AT, "openai-chat", REQUEST, {"host": False}, 812) == (
            recording.at,
            recording.dialect,
            recording.request,
            recording.policy,
            recording.members["ms"],
        )
        assert (
            StoredResponse(200, HEADERS, "json", '{"a":[1,"é"]}'.encode(), [], "", True)
            == recording.response()
        )
    assert [1] == other.members["new"]
    assert "<Recording ca978112ca1b c.jsonl:7>" == repr(usual)


def test_a_request_is_a_fresh_copy_each_time() -> None:
    """Who reads a request may use it up."""
    recording = read(new().line(0, 1))
    recording.request.clear()

    assert REQUEST == recording.request


def test_what_a_line_does_not_say_has_a_default() -> None:
    """A line that was written elsewhere may be short of everything but its answer."""
    recording = by_hand({"v": 1, "kv": 1, "key": key_of("a").hex(), "response": {"status": 200}, "policy": 1})

    assert ("", "generic", {}) == (recording.at, recording.dialect, recording.policy)


KINDS: dict[str, tuple[dict[str, Json], StoredResponse]] = {
    "json": (ANSWER, StoredResponse(200, HEADERS, "json", '{"a":[1,"é"]}'.encode(), [], "", True)),
    "json-null": (
        {"status": 200, "headers": {}, "json": None},
        StoredResponse(200, (), "json", b"null", [], "", True),
    ),
    "no-headers": ({"status": 201, "json": 1}, StoredResponse(201, (), "json", b"1", [], "", True)),
    "text": (
        {"status": 200, "headers": {"content-type": "text/plain"}, "text": "né\u2028"},
        StoredResponse(200, (("content-type", "text/plain"),), "text", "né\u2028".encode(), [], "", True),
    ),
    "base64": (
        {"status": 200, "headers": {}, "base64": base64.b64encode(b"\0\xff").decode()},
        StoredResponse(200, (), "base64", b"\0\xff", [], "", True),
    ),
    "sse": (
        {"status": 200, "headers": {}, "framing": "sse", "stored": "assembled", "script": [{"json": {}}]},
        StoredResponse(200, (), "script", b"", [{"json": {}}], "sse", True),
    ),
    "ndjson-verbatim": (
        {"status": 200, "headers": {}, "framing": "ndjson", "stored": "verbatim", "script": []},
        StoredResponse(200, (), "script", b"", [], "ndjson", False),
    ),
}


@pytest.mark.parametrize(("response", "expected"), KINDS.values(), ids=KINDS)
def test_each_kind_of_answer_is_read_back(response: dict[str, Json], expected: StoredResponse) -> None:
    """JSON, text, bytes and scripts come back as they were, with status and headers."""
    assert expected == read(new(response).line(0, 1)).response()


UNREADABLE: dict[str, tuple[Json, str]] = {
    "no-status": ({"json": 1}, "it has no status"),
    "status-is-text": ({"status": "OK", "json": 1}, "invalid literal for int() with base 10: 'OK'"),
    "status-is-null": (
        {"status": None, "json": 1},
        "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'",
    ),
    "headers-are-a-list": ({"status": 200, "headers": []}, "'list' object has no attribute 'items'"),
    "no-body": ({"status": 200, "headers": {}}, "'script'"),
    "text-is-a-number": ({"status": 200, "text": 1}, "'int' object has no attribute 'encode'"),
    "not-base64": ({"status": 200, "base64": "YQ"}, "Incorrect padding"),
    "script-is-text": ({"status": 200, "script": "data"}, "a script with the framing 'sse'"),
    "unknown-framing": ({"status": 200, "script": [], "framing": "x"}, "a script with the framing 'x'"),
    "not-an-object": ([], "it is no object"),
}


@pytest.mark.parametrize(("response", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_answer_that_was_edited_to_nonsense_is_damage(response: Json, why: str) -> None:
    """A line that was sealed by hand around no answer raises what damage raises, with file and line."""
    recording = by_hand({"v": 1, "kv": 1, "key": key_of("a").hex(), "response": response})

    with pytest.raises(CassetteDamaged) as caught:
        recording.response()

    assert f"c.jsonl:7: the recording has no answer that can be read: {why}" == str(caught.value)


def test_a_sealed_line_that_is_no_json_is_damage() -> None:
    """Whatever was sealed, nothing but damage comes out."""
    recording = read(seal(line("a")[:150]))

    for act in (
        lambda: recording.members,
        lambda: recording.request,
        lambda: recording.dialect,
        recording.response,
    ):
        with pytest.raises(CassetteDamaged) as caught:
            act()
        expected = "the recording cannot be read: not JSON at character 152: Expecting ',' delimiter"
        assert f"c.jsonl:7: {expected}" == str(caught.value)


def test_a_recording_without_a_request_still_answers() -> None:
    """Only who asks for the request is told that there is none."""
    recording = by_hand({"v": 1, "kv": 1, "key": key_of("a").hex(), "response": ANSWER})

    assert b'{"a":[1,"\\u00e9"]}' != recording.response().content
    with pytest.raises(CassetteDamaged) as caught:
        _ = recording.request
    assert "c.jsonl:7: the recording holds no request" == str(caught.value)


# -- the answer that is cut out of its line ------------------------------------------------------------

#: What a server sends that echoes its request.
ECHO: Json = {"status": 200, "headers": {}, "json": {}, "request": {"method": "POST", "json": 1}}

QUICK: dict[str, Json] = {
    "plain": {"a": 1},
    "text": "text",
    "number": 1.5,
    "list": [[]],
    "marks-in-text": '},"request":{"method":"POST"},"json":{"a":1},"response":{"status":200',
    "an-echo": {"echo": ECHO},
    "three-echoes": [ECHO, ECHO, ECHO],
    "many-echoes": [ECHO] * 40,
    "members-named-so": {
        "request": {"method": {"request": {"method": 1}}},
        "response": {"json": {"json": 1}},
    },
}


layouts = st.sampled_from([{}, {"layout": "compact+newline"}, {"layout": "indented"}])


def test_an_answer_in_a_layout_is_served_without_a_look_at_its_request() -> None:
    """The request may be long, and each replay would pay for it."""
    data = new({"status": 200, "headers": {}, "layout": "indented", "json": {"a": 2**70}}).line(0, 1)
    recording = read(data.replace(b'"url":', b'"url",'))

    assert (200, b'{\n  "a": 1180591620717411303424\n}') == (
        recording.response().status,
        recording.response().content,
    )


@pytest.mark.parametrize("depth", [100, 300])
def test_an_answer_in_a_layout_may_be_nested_as_deep_as_any(depth: int) -> None:
    """What is deeper than can be written is damaged, whoever wrote the line, and no other error."""
    nested = "[" * depth + "]" * depth
    data = new({"status": 200, "headers": {}, "layout": "compact", "json": 7}).line(0, 1)
    recording = read(data.replace(b'"json":7', f'"json":{nested}'.encode()))

    if depth == 100:
        assert nested.encode() == recording.response().content
    else:
        with pytest.raises(CassetteDamaged):
            recording.response()


def test_an_answer_in_an_unknown_layout_is_damaged() -> None:
    """It was written by a later release, or by hand; the quick way leaves the message to the slow one."""
    recording = read(new({"status": 200, "headers": {}, "layout": "wide", "json": {}}).line(0, 1))
    with pytest.raises(CassetteDamaged) as caught:
        recording.response()

    assert (
        "c.jsonl:7: the recording has no answer that can be read: a document with the layout 'wide'"
    ) == str(caught.value)


def compare(recording: Recording) -> None:
    """Hold the answer that is cut out against the one that is parsed."""
    cut, stored = recording.response(), recording.members["response"]

    assert (stored["status"], tuple(stored["headers"].items())) == cut[:2]
    assert stored["json"] == orjson.loads(cut.content)


@pytest.mark.parametrize("answer", QUICK.values(), ids=QUICK)
def test_an_echo_does_not_cut_an_answer_short(answer: Json) -> None:
    """Wherever the end of an answer seems to stand inside it, the whole answer is served."""
    compare(read(new({"status": 200, "headers": {}, "json": answer}).line(0, 1)))


names = st.sampled_from(["request", "response", "json", "method", "status", "headers", "a"])
echoes = st.recursive(
    st.sampled_from(["", '},"request":{"method":', ',"json":', '\\"', "{", "}"])
    | st.integers(0, 9)
    | st.just(ECHO),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=15,
)


@given(
    answer=echoes,
    request=st.dictionaries(names, echoes, max_size=3),
    headers=st.dictionaries(
        names | st.sampled_from(['"', ',"json":', "é", "{}"]), st.text(max_size=5), max_size=3
    ),
    finish=st.none() | st.sampled_from(["stop", '"', "é"]) | st.lists(st.just("stop"), max_size=2),
    at=st.sampled_from([AT, "", "2026 é", '"', '","dialect":"']),
    layout=layouts,
)
def test_the_answer_that_is_cut_is_the_answer_that_is_parsed(
    answer: Json,
    request: dict[str, Json],
    headers: dict[str, str],
    finish: Json,
    at: str,
    layout: dict[str, Json],
) -> None:
    """The quick way and the slow way give the same answer and date, whatever stands in the line."""
    recording = read(
        new(
            {"status": 200, "headers": headers, **layout, "json": answer}, request, finish=finish, at=at
        ).line(0, 1)
    )

    compare(recording)
    assert at == recording.at


ORDER = ["v", "kv", "key", "sample", "gen", "at", "dialect", "finish", "ms", "response", "request"]


@given(
    members=st.just(ORDER) | st.permutations(ORDER),
    answer=st.permutations(["status", "headers", "json"]),
    extra=st.sampled_from([{}, {"more": ECHO}, {"request": {"method": 1}}]),
)
def test_an_answer_is_found_in_any_order(
    members: list[str], answer: list[str], extra: dict[str, Json]
) -> None:
    """Members that another program has put in another order change nothing."""
    whole = json.loads(new({"status": 200, "headers": {}, "json": ECHO}).line(0, 1))
    whole["response"] = {**extra, **{name: whole["response"][name] for name in answer}}

    compare(by_hand({name: whole[name] for name in members}))


def test_many_echoes_cost_no_more_than_a_few() -> None:
    """An answer that repeats the mark of its end a hundred thousand times is read once, not as often."""
    recording = read(new({"status": 200, "headers": {}, "json": [ECHO] * 20_000}).line(0, 1))
    start = time.process_time()

    compare(recording)

    assert time.process_time() - start < 40


def test_an_exchange_is_rendered_once() -> None:
    """Whoever waits for the lock of a file does not wait for JSON to be written."""
    recording = exchange("a")

    assert recording.body is recording.body
