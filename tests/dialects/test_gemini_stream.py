"""Streams of Gemini's generateContent: what real servers send, assembled and cut again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects import GEMINI
from httpx_cassette.dialects._framing import Event, dump_event_json, load_event_json
from httpx_cassette.dialects._script import cut, texts
from httpx_cassette.dialects.gemini import STREAM, GenerateProgress

from ..stream_proof import (
    SIZES,
    WIRE_SIZES,
    Case,
    cases,
    check_any,
    check_assembled,
    check_cut,
    recorded,
    share_kept,
    watched,
    with_corpus,
)

ARRAY = GEMINI.stream_in("json-array")
assert ARRAY is not None
TABLES = {table.framing: table for table in (STREAM, ARRAY)}


def event(*parts: Json, finish: Json = None, index: int | None = 0, usage: int = 1, **more: Json) -> Json:
    """Return an event as Google sends it; a part that is a text is alone, ``more`` is the candidate's."""
    listed: list[Json] = [{"text": part} if isinstance(part, str) else part for part in parts]
    candidate: dict[str, Json] = {"content": {"parts": listed, "role": "model"}}
    if finish is not None:
        candidate["finishReason"] = finish
    if index is not None:
        candidate["index"] = index
    return {
        "candidates": [{**candidate, **more}],
        "usageMetadata": {"totalTokenCount": usage},
        "modelVersion": "m",
        "responseId": "r",
    }


def both(one: str, two: str, **more: Json) -> Json:
    """Return an event with two candidates."""
    return {
        "candidates": [
            {"index": index, "content": {"parts": [{"text": text}]}, **more}
            for index, text in enumerate((one, two))
        ]
    }


def thought(text: str, **more: Json) -> Json:
    return {"text": text, "thought": True, **more}


def signed(text: str) -> Json:
    return {"text": text, "thoughtSignature": "c2ln"}


CALL: Json = {"functionCall": {"name": "f", "args": {"text": "a"}}, "thoughtSignature": "c2ln"}
CODE: Json = {"executableCode": {"language": "PYTHON", "code": "1"}}
RESULT: Json = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
GROUNDS: Json = {"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "u"}}]}
END = event("", finish="STOP")


def same(ident: str, *events: Json, has_whole: bool = False) -> Case:
    """Return a case in which nothing is joined."""
    return Case(ident, events, events, has_whole)


CASES = [
    Case(
        "text",
        [event("Hel"), event("lo", usage=2), event(" there.", usage=3, finish="STOP")],
        [event("Hello there.", usage=3, finish="STOP")],
    ),
    Case(
        "the-end-by-itself",
        [event("Hel"), event("lo"), END, {"usageMetadata": {"totalTokenCount": 7}}],
        [event("Hello"), END, {"usageMetadata": {"totalTokenCount": 7}}],
    ),
    Case("without-index", [event("a", index=None), event("b", index=None)], [event("ab", index=None)]),
    Case("numbers-for-names", [event("a"), event("b", finish=1)], [event("ab", finish=1)]),
    Case(
        "thoughts",
        [event(thought("a")), event(thought("b")), event("c"), event("d"), event(signed(""), finish="STOP")],
        [event(thought("ab")), event("cd"), event(signed(""), finish="STOP")],
    ),
    same("thoughts-and-answers-by-turns", event(thought("a")), event("b"), event(thought("c")), event("d")),
    Case(
        "a-signature-ends-a-text",
        [event("a"), event(signed("b")), event("c"), event("d", finish="STOP")],
        [event(signed("ab")), event("cd", finish="STOP")],
    ),
    Case(
        "a-signed-thought",
        [event(thought("a")), event(thought("b", thoughtSignature="x")), event(thought("c"))],
        [event(thought("ab", thoughtSignature="x")), event(thought("c"))],
    ),
    same("a-call", event(CALL), END),
    same("calls", event(CALL), event(CALL), event(CALL, CALL, finish="STOP", finishMessage="x")),
    Case(
        "text-around-a-call",
        [event("a"), event("b"), event(CALL), event("c")],
        [event("ab"), event(CALL), event("c")],
    ),
    same("text-beside-a-call", event("a"), event("b", CALL), event(CALL, "c"), event("d")),
    same(
        "several-texts-in-one-event",
        *(event("a"), event("b", "c"), event("d"), event(thought("e"), "f")),
        has_whole=True,
    ),
    same("code", event(CODE), event(RESULT), END),
    Case(
        "grounding-at-the-end",
        [
            event("a", groundingMetadata={}),
            event("b", groundingMetadata={}),
            event("c", groundingMetadata=GROUNDS),
        ],
        [event("ab", groundingMetadata={}), event("c", groundingMetadata=GROUNDS)],
    ),
    Case(
        "grounding-once",
        [event("a"), event("b"), event("c", groundingMetadata=GROUNDS, finish="STOP")],
        [event("abc", groundingMetadata=GROUNDS, finish="STOP")],
    ),
    same("what-a-candidate-says-in-each", event("a", avgLogprobs=0), event("b", avgLogprobs=0)),
    Case(
        "candidates-by-turns",
        [event("a"), event("b"), event("x", index=1), event("y", index=1), event("c")],
        [event("ab"), event("xy", index=1), event("c")],
    ),
    Case(
        "candidates-side-by-side",
        [both("a", "xx"), both("b", "y"), both("c", "", finishReason="STOP")],
        [both("abc", "xxy", finishReason="STOP")],
    ),
    same(
        "a-call-beside-the-text-of-another",
        {"candidates": [*both("a long text", "")["candidates"][:1], *event(CALL, index=1)["candidates"]]},
        has_whole=True,
    ),
    same("two-candidates-without-index", {"candidates": [{"content": {"parts": [{"text": "a"}]}}] * 2}),
    same("without-content", {"candidates": [{"finishReason": "UNEXPECTED_TOOL_CALL", "index": 0}]}),
    same("without-parts", {"candidates": [{"content": {"role": "model"}, "index": 0}]}, {"candidates": []}),
    same("a-refused-prompt", {"promptFeedback": {"blockReason": "SAFETY"}}),
    same("a-picture", event({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})),
    Case("unknown-members", [event("a", odd=None), event("b", odd=None)], [event("ab", odd=None)]),
    same(
        "unknown-members-of-a-part",
        event({"text": "a", "odd": 1}),
        event("b"),
        event({"text": "c", "odd": 1}),
    ),
    same("odd", {"candidates": {}}, {"candidates": [None, 1]}, {"candidates": [{"content": {"parts": "a"}}]}),
    Case("empty-texts", [event(""), event("a"), event(""), event("b"), event("")], [event(""), event("ab")]),
]


def as_event(value: Json) -> Event:
    return Event(dump_event_json(value))


@pytest.mark.parametrize("framing", TABLES)
@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CASES)
def test_a_stream_is_assembled_however_it_arrives(case: Case, size: int, framing: str) -> None:
    """As events or as an array, the script is the same."""
    check_assembled(case, as_event, TABLES[framing], size)


@pytest.mark.parametrize("framing", TABLES)
@pytest.mark.parametrize("size", SIZES)
@cases(CASES)
def test_a_script_is_cut_into_a_stream_that_assembles_to_it(case: Case, size: int, framing: str) -> None:
    """Cut, written and read, it is the same script."""
    check_cut(case, as_event, TABLES[framing], size)


def test_what_ends_a_text_comes_with_its_last_piece() -> None:
    """Usage, finish reason, grounding and signature are said once, as Google says them."""
    whole = event(signed("abc"), finish="STOP", groundingMetadata=GROUNDS, usage=9)
    plain = event("ab")
    del plain["usageMetadata"]  # type: ignore[index, call-overload, union-attr]

    events = [load_event_json(each.data) for each in cut([{"json": whole}], STREAM, 2)]

    assert [plain, event(signed("c"), finish="STOP", groundingMetadata=GROUNDS, usage=9)] == events


def test_a_text_beside_other_parts_is_not_cut() -> None:
    """A client would append the pieces of the two to one another."""
    whole = event("a long text", CALL, "another long text")

    assert [whole] == [load_event_json(each.data) for each in cut([{"json": whole}], STREAM, 1)]


def test_texts_are_named_by_their_candidate() -> None:
    """Of one event and of many, in their order."""
    events = [
        Event(json.dumps(each)) for each in (event("a", CALL, "b"), event(thought("c")), event("x", index=1))
    ]

    assert texts(events, STREAM) == {
        "candidates[0].content.parts[0].text": "abc",
        "candidates[1].content.parts[0].text": "x",
    }


# --- how far a stream has come ----------------------------------------------------------------------


def watch(*events: Json | Event) -> GenerateProgress:
    sent = (each if isinstance(each, Event) else Event(json.dumps(each)) for each in events)
    return watched(GenerateProgress(), sent)


def test_a_stream_is_complete_when_every_candidate_has_finished() -> None:
    """One gives its reason, several give a list by index; a later event takes nothing back."""
    assert not watch().is_complete
    assert watch().finish is None
    assert not watch(event("a")).is_complete
    assert watch(event("a"), END).is_complete
    assert watch(END, event("b")).is_complete
    assert "STOP" == watch(END, {"usageMetadata": {}}).finish
    assert 1 == watch(event("", finish=1)).finish
    assert not watch(event("a"), END, {"usageMetadata": {}}).awaits_more
    assert watch(END, event("b")).awaits_more

    by_turns = watch(event("x", index=1), END)

    assert not by_turns.is_complete
    assert ["STOP", None] == by_turns.finish
    by_turns.observe(Event(""), event("", finish="SAFETY", index=1))
    assert by_turns.is_complete
    assert ["STOP", "SAFETY"] == by_turns.finish


@pytest.mark.parametrize("reason", [None, "", 0, "FINISH_REASON_UNSPECIFIED"])
def test_a_reason_that_says_nothing_finishes_nothing(reason: Json) -> None:
    """By name and by number."""
    assert not watch({"candidates": [{"index": 0, "finishReason": reason}]}).is_complete


def test_a_refused_prompt_is_a_whole_answer() -> None:
    """It has no candidates; feedback without a reason is none."""
    refused = watch({"promptFeedback": {"blockReason": "SAFETY"}})

    assert (True, "SAFETY") == (refused.is_complete, refused.finish)
    assert not watch({"promptFeedback": {"safetyRatings": []}}).is_complete
    assert not watch({"promptFeedback": {"blockReason": 0}}).is_complete
    assert not watch(event("a"), {"promptFeedback": {"blockReason": "OTHER"}}).is_complete


def test_an_index_that_is_left_out_is_zero() -> None:
    """ProtoJSON leaves out what is zero; where all have none, the position counts."""
    assert ["STOP", None] == watch({"candidates": [{"index": 1}, {"finishReason": "STOP"}]}).finish
    assert ["STOP", None] == watch({"candidates": [{"finishReason": "STOP"}, {}]}).finish


def test_nothing_terminates() -> None:
    """Not even what ends other streams."""
    assert not watch(event("a"), END, Event("[DONE]")).is_terminated


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}, "overloaded"),
        ({"error": {"code": 503}}, "{'code': 503}"),
        ({"error": "overloaded"}, "overloaded"),
        ([{"error": {"message": "overloaded"}}], "overloaded"),
        (Event("overloaded", "error"), "overloaded"),
        (Event("", extra=(("{", ""), ('  "error"', "{"), ('    "code"', "503,"))), "an error without data"),
        (Event("", extra=(('{"error"', '{"code":503}}'),)), '"code":503}}'),
        ({"error": None}, None),
        (END, None),
        (event('"error"'), None),
    ],
    ids=[
        "object",
        "no-message",
        "text",
        "array",
        "name",
        "bare-lines",
        "bare-line",
        "null",
        "none",
        "in-text",
    ],
)
def test_an_error_inside_a_200_is_seen(sent: Json | Event, error: str | None) -> None:
    """However it is announced, and the first one counts."""
    assert error == watch(sent, END).error
    assert "first" == watch({"error": "first"}, sent).error


# --- any stream -------------------------------------------------------------------------------------

TEXT = st.text(max_size=6) | st.lists(
    st.sampled_from(
        [
            "\u2028",
            "\u2029",
            "\x85",
            "\ud83d",
            "\ude00",
            '"',
            "\\",
            ",",
            ":",
            "\n",
            "👩\u200d👧",
            "\x01",
            "@0",
            "],[{",
        ]
    ),
    max_size=5,
).map("".join)
PARTS: st.SearchStrategy[Json] = st.one_of(
    TEXT.map(lambda text: {"text": text}),
    TEXT.map(lambda text: {"text": text}),
    TEXT.map(thought),
    TEXT.map(signed),
    st.sampled_from([CALL, CODE, RESULT, {"text": None}, {"text": 1}, None, {}]),
)
CANDIDATES: st.SearchStrategy[dict[str, Json]] = st.builds(
    lambda parts, index, more: {"content": {"role": "model", "parts": parts}, **index, **more},
    st.one_of(PARTS.map(lambda part: [part]), PARTS.map(lambda part: [part]), st.lists(PARTS, max_size=3)),
    st.sampled_from([{"index": 0}, {"index": 0}, {"index": 1}, {}]),
    st.sampled_from(
        [
            {},
            {},
            {},
            {"finishReason": "STOP"},
            {"finishReason": 1},
            {"groundingMetadata": {}},
            {"groundingMetadata": GROUNDS},
        ]
    ),
)
EVENTS: st.SearchStrategy[dict[str, Json]] = st.builds(
    lambda candidates, more: {"candidates": candidates, **more},
    CANDIDATES.map(lambda candidate: [candidate]) | st.lists(CANDIDATES, max_size=2),
    st.sampled_from(
        [{}, {"usageMetadata": {"n": 1}}, {"usageMetadata": {"n": 2}}, {"responseId": "r"}, {"odd": [1]}]
    ),
)


def accumulated(events: Sequence[Json]) -> list[Json]:
    """Return what a client has at the end that appends part to part: of each candidate, and of each event."""
    parts: dict[object, list[Json]] = {}
    ends: dict[object, Json] = {}
    for each in events:
        assert isinstance(each, dict)
        listed = each.get("candidates")
        for position, candidate in enumerate(listed if isinstance(listed, list) else []):
            assert isinstance(candidate, dict)
            for key in (candidate.get("index", position), "chat" if position == 0 else "others"):
                known = parts.setdefault(key, [])
                for part in candidate["content"]["parts"]:  # type: ignore[index, call-overload]
                    append(known, part)
            for name in candidate.keys() - {"content"}:
                ends[candidate.get("index", position), name] = candidate[name]
        if "usageMetadata" in each:
            ends["usage"] = each["usageMetadata"]
    # A client sees halves of a character as one as soon as both are there.
    return [json.loads(json.dumps([*parts.items()])), [*sorted(map(str, ends.items()))]]


def append(known: list[Json], part: Json) -> None:
    before = known[-1] if known else None
    if isinstance(part, dict) and isinstance(before, dict) and isinstance(part.get("text"), str):
        rest = {name: value for name, value in part.items() if name not in ("text", "thoughtSignature")}
        if {**rest, "text": before.get("text")} == before:
            known[-1] = {**part, "text": f"{before['text']}{part['text']}"}
            return
    known.append(part)


@given(st.lists(EVENTS, max_size=10), st.sampled_from([1, 2, 3, 7, 64, 10**9]), st.sampled_from([*TABLES]))
def test_any_stream_is_assembled_and_cut_without_loss(
    sent: list[dict[str, Json]], size: int, framing: str
) -> None:
    """Cutting is the inverse of assembling, and a client that appends has the same at the end."""
    again = check_any([as_event(each) for each in sent], TABLES[framing], size)

    assert accumulated(sent) == accumulated([load_event_json(each.data) for each in again])


# --- recorded traffic -------------------------------------------------------------------------------


@with_corpus
def test_every_recorded_stream_is_proved() -> None:
    """What real servers sent is assembled, all of it, into less than half of as many events."""
    assert 0 < share_kept(recorded("gemini-generate.jsonl"), *TABLES.values()) < 0.5
