"""Streams of small formats of the tests' own: every rule of a table, assembled and cut again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import pytest

from httpx_cassette._call import Json
from httpx_cassette._errors import OptionError
from httpx_cassette.dialects._framing import FRAMINGS, Event, load_event_json
from httpx_cassette.dialects._reading import table_reader
from httpx_cassette.dialects._script import (
    StreamTable,
    assemble,
    cut,
    cut_bytes,
    prove,
    replay_verbatim,
    texts,
    verbatim,
)


class NoProgress:
    """Recognises nothing."""

    is_complete = False
    is_terminated = False
    error: str | None = None
    finish: Json = None

    def observe(self, event: Event, value: Json) -> None: ...


#: A typed format, in the manner of OpenAI's responses.
TYPED = StreamTable(
    progress=NoProgress,
    text=("delta",),
    lists=("logprobs",),
    padding=("obfuscation",),
    scope=("output_index",),
    slot=("content_index",),
    types=frozenset({"text.delta", "arguments.delta"}),
    sequence="sequence_number",
)

#: A format of parts without index, in the manner of Gemini.
PARTS = StreamTable(
    progress=NoProgress,
    text=("candidates[*].parts[*].text",),
    last=("usage",),
    ends=("candidates[*].finish", "candidates[*].parts[*].signature"),
    scope=("candidates[*].index",),
    by_position=True,
    before_last="absent",
)

#: A format whose parts are appended one to another, in the manner of Gemini.
APPENDED = StreamTable(
    progress=NoProgress,
    framing="json-array",
    text=("turns[*].parts[*].text",),
    last=("usage",),
    ends=("turns[*].*", "turns[*].parts[*].signature"),
    scope=("turns[*].index",),
    alone=("turns[*].parts",),
    before_last="absent",
)

#: The same, where no event may be overtaken.
IN_ORDER = replace(APPENDED, in_order=True)

#: One document a line, in the manner of Ollama.
LINES = StreamTable(
    progress=NoProgress, framing="ndjson", text=("message.content", "message.thinking"), first=("message.*",)
)

#: The same, where every line says when it was made, and texts are told by another member than the type.
STAMPED = StreamTable(
    progress=NoProgress,
    framing="ndjson",
    text=("text",),
    stamps=("at",),
    kind="event",
    types=frozenset({"said", "False"}),
)

#: A running copy beside the text.
TOTALS = StreamTable(
    progress=NoProgress,
    text=("delta.text", "delta.other"),
    totals=(("total", "delta.text"),),
    last=("usage",),
    scope=("lane",),
)

#: A text that may also come in parts.
MIXED = StreamTable(
    progress=NoProgress, text=("content", "content[*].text", "content.out", "content.err"), by_position=True
)

#: A typed format with a running copy.
TYPED_TOTALS = StreamTable(
    progress=NoProgress, text=("delta",), totals=(("total", "delta"),), slot=("n",), types=frozenset({"t"})
)


class Case(NamedTuple):
    """Events as received, and the script that they are."""

    id: str
    table: StreamTable
    events: list[Json]
    script: list[Json]


def delta(text: str, number: int, index: int = 0, **more: Json) -> dict[str, Json]:
    return {"type": "text.delta", "output_index": index, "delta": text, "sequence_number": number, **more}


def turn(*parts: Json, index: int = 0, **more: Json) -> dict[str, Json]:
    """Return an event with one turn; a part that is a text has nothing else."""
    listed: list[Json] = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"turns": [{"index": index, "parts": listed, **more}]}


def part(text: str, **more: Json) -> dict[str, Json]:
    return {"candidates": [{"index": 0, "parts": [{"text": text}], **more}]}


CASES = [
    Case(
        "the-stamp-of-a-text-is-that-of-its-first-piece",
        STAMPED,
        [{"event": "said", "text": text, "at": at} for at, text in enumerate(["ab", "", "cd", "ef"])],
        [{"event": "said", "text": "abcdef", "at": 0}],
    ),
    Case(
        "what-has-no-stamp-does-not-join-what-has-one",
        STAMPED,
        [{"event": "said", "text": "ab", "at": "x"}, {"event": "said", "text": "cd"}],
        [{"event": "said", "text": "ab", "at": "x"}, {"event": "said", "text": "cd"}],
    ),
    Case(
        "text-is-told-by-the-kind-of-its-event",
        STAMPED,
        [
            {"event": "said", "text": "a"},
            {"event": "heard", "text": "b"},
            {"event": "heard", "text": "c"},
            {"event": False, "text": "d"},
            {"event": False, "text": "e"},
            {"text": "f"},
            {"text": "g"},
        ],
        [
            {"event": "said", "text": "a"},
            {"event": "heard", "text": "b"},
            {"event": "heard", "text": "c"},
            {"event": False, "text": "de"},
            {"text": "f"},
            {"text": "g"},
        ],
    ),
    Case(
        "texts-that-stand-alone-are-joined",
        APPENDED,
        [turn("ab"), turn("cd"), turn("ef", finish="stop"), turn("")],
        [turn("abcdef", finish="stop"), turn("")],
    ),
    Case(
        "texts-beside-others-are-whole",
        APPENDED,
        [turn("ab"), turn("cd", "ef"), turn("gh", {"call": 1}), turn({"call": 2}, "ij"), turn("kl")],
        [turn("ab"), turn("cd", "ef"), turn("gh", {"call": 1}), turn({"call": 2}, "ij"), turn("kl")],
    ),
    Case(
        "other-parts-end-the-text",
        APPENDED,
        [turn("ab"), turn({"call": 1}), turn("cd"), turn({"text": "ef", "thought": True}), turn("gh")],
        [turn("ab"), turn({"call": 1}), turn("cd"), turn({"text": "ef", "thought": True}), turn("gh")],
    ),
    Case(
        "a-signature-ends-the-text",
        APPENDED,
        [
            turn("ab"),
            turn({"text": "cd", "signature": "x"}),
            turn("ef"),
            turn({"text": "", "signature": "y"}),
        ],
        [turn({"text": "abcd", "signature": "x"}), turn("ef"), turn({"text": "", "signature": "y"})],
    ),
    Case(
        "whatever-else-a-turn-says-ends-the-text",
        APPENDED,
        [turn("ab", meta={}), turn("cd", meta={}), turn("ef", meta={"a": 1}), turn("gh", meta={"a": 1})],
        [turn("abcd", meta={}), turn("ef", meta={"a": 1}), turn("gh", meta={"a": 1})],
    ),
    Case(
        "turns-side-by-side",
        APPENDED,
        [turn("ab"), turn("xy", index=1), turn("cd"), turn("z", index=1, finish="stop")],
        [turn("abcd"), turn("xyz", index=1, finish="stop")],
    ),
    Case(
        "turns-in-order",
        IN_ORDER,
        [turn("ab"), turn("cd"), turn("xy", index=1), turn("z", index=1), turn("ef")],
        [turn("abcd"), turn("xyz", index=1), turn("ef")],
    ),
    Case(
        "the-end-of-one-turn-behind-another",
        APPENDED,
        [
            {**turn("ab"), "usage": 1},
            {**turn("xy", index=1), "usage": 2},
            {**turn("cd", finish="stop"), "usage": 3},
        ],
        # A client takes the last usage, which is now that of the event sent last.
        [{**turn("abcd", finish="stop"), "usage": 3}, {**turn("xy", index=1), "usage": 3}],
    ),
    Case(
        "parts-that-are-no-list",
        APPENDED,
        [{"turns": [{"parts": "ab"}]}, turn(1, None, [])],
        [{"turns": [{"parts": "ab"}]}, turn(1, None, [])],
    ),
    Case(
        "sequence-numbers-are-counted-anew",
        TYPED,
        [{"type": "created", "sequence_number": 3}, delta("ab", 4), delta("cd", 5), {"sequence_number": 9}],
        [{"type": "created", "sequence_number": 3}, delta("abcd", 4), {"sequence_number": 5}],
    ),
    Case(
        "events-without-number",
        TYPED,
        [{"type": "created"}, {"type": "text.delta", "delta": "a"}, {"type": "text.delta", "delta": "b"}],
        [{"type": "created"}, {"type": "text.delta", "delta": "ab"}],
    ),
    Case(
        "only-listed-types",
        TYPED,
        [{"type": "audio.delta", "delta": "abc"}] * 2,
        [{"type": "audio.delta", "delta": "abc"}] * 2,
    ),
    Case(
        "lanes-interleave",
        TYPED,
        [delta("a", 0), delta("x", 1, 1), delta("b", 2), delta("y", 3, 1)],
        [delta("ab", 0), delta("xy", 1, 1)],
    ),
    Case(
        "slot-members-tell-slots-apart",
        TYPED,
        [delta("a", 0, content_index=0), delta("x", 1, content_index=1), delta("b", 2, content_index=0)],
        [delta("ab", 0, content_index=0), delta("x", 1, content_index=1)],
    ),
    Case(
        "another-type-ends-the-text",
        TYPED,
        [delta("a", 0), {**delta("{", 1), "type": "arguments.delta"}, delta("b", 2)],
        [delta("a", 0), {**delta("{", 1), "type": "arguments.delta"}, delta("b", 2)],
    ),
    Case(
        "an-event-of-the-lane-ends-the-text",
        TYPED,
        [
            delta("a", 0),
            delta("x", 1, 1),
            {"type": "done", "output_index": 0},
            delta("b", 2),
            delta("y", 3, 1),
        ],
        [delta("a", 0), delta("xy", 1, 1), {"type": "done", "output_index": 0}, delta("b", 2)],
    ),
    Case(
        "an-event-of-no-lane-ends-all",
        TYPED,
        [delta("a", 0), {"type": "ping"}, delta("b", 1)],
        [delta("a", 0), {"type": "ping"}, delta("b", 1)],
    ),
    Case(
        "lists-go-with-the-first-piece",
        TYPED,
        [delta("a", 0, logprobs=[1]), delta("b", 1, logprobs=[]), delta("c", 2, logprobs=[2, 3])],
        [delta("abc", 0, logprobs=[1, 2, 3])],
    ),
    Case(
        "padding-is-dropped",
        TYPED,
        [
            delta("a", 0, obfuscation="xyz"),
            delta("b", 1, obfuscation=None),
            {"type": "x", "obfuscation": "y"},
        ],
        [delta("ab", 0), {"type": "x"}],
    ),
    Case(
        "running-values-go-with-the-last-piece",
        PARTS,
        [{**part("ab"), "usage": {"n": 1}}, part("cd"), {**part("ef"), "usage": {"n": 2}}],
        [{**part("abcdef"), "usage": {"n": 2}}],
    ),
    Case(
        "nothing-is-joined-after-an-end",
        PARTS,
        [part("ab"), part("cd", finish="STOP"), part("ef"), part("gh", finish="STOP")],
        [part("abcd", finish="STOP"), part("efgh", finish="STOP")],
    ),
    Case(
        "an-end-in-the-first-event",
        PARTS,
        [part("abc", finish="STOP"), part("def")],
        [part("abc", finish="STOP"), part("def")],
    ),
    Case(
        "an-end-without-text-stands-alone",
        PARTS,
        [part("ab"), part("", finish="STOP"), part("cd")],
        [part("ab"), part("", finish="STOP"), part("cd")],
    ),
    Case(
        "an-empty-end-is-none",
        PARTS,
        [part("ab", finish=""), part("cd", finish="")],
        [part("abcd", finish="")],
    ),
    Case("empty-texts-join-as-nothing", PARTS, [part("ab"), part(""), part("cd")], [part("abcd")]),
    Case(
        "empty-texts-begin-nothing", PARTS, [part(""), part(""), part("ab")], [part(""), part(""), part("ab")]
    ),
    Case(
        "parts-are-told-apart-by-position",
        PARTS,
        [{"candidates": [{"parts": [{"text": "ab"}, {"text": "c"}]}]}] * 2,
        [{"candidates": [{"parts": [{"text": "abab"}, {"text": "cc"}]}]}],
    ),
    Case(
        "not-objects",
        PARTS,
        [
            part("a"),
            ["a"],
            part("b"),
            "text",
            None,
            12345678901234567890123,
            {"candidates": ["a", {"parts": "b"}]},
        ],
        [
            part("a"),
            ["a"],
            part("b"),
            "text",
            None,
            12345678901234567890123,
            {"candidates": ["a", {"parts": "b"}]},
        ],
    ),
    Case(
        "said-once",
        LINES,
        [{"message": {"role": "a", "content": "ab"}}, {"message": {"content": "cd"}}],
        [{"message": {"role": "a", "content": "abcd"}}],
    ),
    Case(
        "said-again-and-again",
        LINES,
        [{"message": {"role": "a", "content": text}} for text in ("ab", "cd", "ef")],
        [{"message": {"role": "a", "content": "ab"}}, {"message": {"role": "a", "content": "cdef"}}],
    ),
    Case(
        "said-otherwise",
        LINES,
        [{"message": {"role": role, "content": "ab"}} for role in "aabb"],
        [{"message": {"role": role, "content": "ab"}} for role in "aabb"],
    ),
    Case(
        "null-and-empty-are-not-said",
        LINES,
        [{"message": {"role": None, "name": "", "tools": [], "content": text}} for text in ("ab", "cd")],
        [{"message": {"role": None, "name": "", "tools": [], "content": "abcd"}}],
    ),
    Case(
        "one-text-after-another",
        LINES,
        [
            {"message": {"thinking": "ab", "content": ""}},
            {"message": {"thinking": "c", "content": ""}},
            {"message": {"thinking": "", "content": "x"}},
            {"message": {"thinking": "", "content": "yz"}},
        ],
        [{"message": {"thinking": "abc", "content": ""}}, {"message": {"thinking": "", "content": "xyz"}}],
    ),
    Case(
        "two-texts-side-by-side",
        LINES,
        [{"message": {"thinking": "abc", "content": "x"}}, {"message": {"thinking": "d", "content": ""}}],
        [{"message": {"thinking": "abcd", "content": "x"}}],
    ),
    Case(
        "a-running-copy",
        TOTALS,
        [
            {"delta": {"text": "ab"}, "total": "xyab"},
            {"delta": {"text": "c"}, "total": "xyabc"},
            {"delta": {"text": "\n"}, "total": "xyabc\n"},
        ],
        [{"delta": {"text": "abc\n"}, "total": "xyabc\n"}],
    ),
    Case(
        "a-running-copy-that-leaps",
        TOTALS,
        [{"delta": {"text": "ab"}, "total": "ab"}, {"delta": {"text": "d"}, "total": "abcd"}],
        [{"delta": {"text": "ab"}, "total": "ab"}, {"delta": {"text": "d"}, "total": "abcd"}],
    ),
    Case(
        "a-running-copy-of-something-else",
        TOTALS,
        [
            {"delta": {"text": "ab"}, "total": "zz"},
            {"delta": {"other": "ab"}, "total": "ab"},
            {"total": "ab"},
        ],
        [
            {"delta": {"text": "ab"}, "total": "zz"},
            {"delta": {"other": "ab"}, "total": "ab"},
            {"total": "ab"},
        ],
    ),
    Case(
        "a-running-copy-that-comes-late",
        TOTALS,
        [{"delta": {"text": "ab"}}, {"delta": {"text": "c"}, "total": "abc"}],
        [{"delta": {"text": "ab"}}, {"delta": {"text": "c"}, "total": "abc"}],
    ),
    Case(
        "a-running-copy-in-a-typed-event",
        TYPED_TOTALS,
        [
            {"type": "t", "n": 1, "delta": "ab", "total": "ab"},
            {"type": "t", "n": 1, "delta": "c", "total": "abc"},
        ],
        [{"type": "t", "n": 1, "delta": "abc", "total": "abc"}],
    ),
    Case(
        "a-text-or-a-list-of-them",
        MIXED,
        [{"content": "a"}, {"content": "b"}, {"content": [{"text": "c"}]}, {"content": [{"text": "d"}]}],
        [{"content": "ab"}, {"content": [{"text": "cd"}]}],
    ),
    Case(
        "a-text-or-an-object-of-them",
        MIXED,
        [{"content": "a"}, {"content": {"out": "b"}}, {"content": {"out": "c"}}, {"content": {"err": "d"}}],
        [{"content": "a"}, {"content": {"out": "bc"}}, {"content": {"err": "d"}}],
    ),
    Case(
        "two-texts-in-one-object",
        MIXED,
        [{"content": {"out": "b", "err": "x"}}, {"content": {"out": "c", "err": ""}}],
        [{"content": {"out": "bc", "err": "x"}}],
    ),
    Case(
        "values-of-another-kind",
        TOTALS,
        [{"delta": {"text": 1, "other": None}, "total": 2, "lane": [3]}, {"delta": ["a"]}],
        [{"delta": {"text": 1, "other": None}, "total": 2, "lane": [3]}, {"delta": ["a"]}],
    ),
    Case(
        "a-list-of-another-kind",
        TYPED,
        [delta("a", 0, logprobs=7), delta("b", 1, logprobs=7)],
        [delta("ab", 0, logprobs=7)],
    ),
    Case(
        "null-before-the-last-piece",
        TOTALS,
        [{"delta": {"text": "ab"}, "usage": None}, {"delta": {"text": "cd"}, "usage": 7}],
        [{"delta": {"text": "abcd"}, "usage": 7}],
    ),
]

SIZES = [1, 2, 7, 64, 10**9]


def received(case: Case) -> list[Event]:
    return [Event(json.dumps(event, ensure_ascii=False)) for event in case.events]


def stored(case: Case) -> list[Json]:
    return [{"json": event} for event in case.script]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_stream_is_assembled(case: Case) -> None:
    """Each run of text becomes one event, and the rest stays as it was."""
    script = assemble(received(case), case.table)

    assert script == stored(case)
    assert texts(script, case.table) == texts(received(case), case.table)
    assert prove(received(case), script, case.table) is None


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_cutting_is_the_inverse_of_assembling(case: Case, size: int) -> None:
    """A script that is cut and assembled is the same script, and cutting does not change it."""
    script = stored(case)

    events = list(cut(script, case.table, size))

    assert assemble(events, case.table) == script == stored(case)
    framing = FRAMINGS[case.table.framing]
    assert list(cut_bytes(script, case.table, size)) == list(framing.frame(map(framing.render, events)))


def test_what_a_piece_carries() -> None:
    """Lists and what is said once come first, running values last, numbers run through."""
    table = StreamTable(
        progress=NoProgress, text=("text",), lists=("list",), first=("id",), last=("usage",), sequence="n"
    )
    script: list[Json] = [
        {"json": {"n": 5, "id": "x", "text": "ab@0c", "list": [1], "usage": 7, "note": "@1"}},
        {"json": {"n": 6}},
    ]

    events = [json.loads(event.data) for event in cut(script, table, 2)]

    assert events == [
        {"n": 5, "id": "x", "text": "ab", "list": [1], "usage": None, "note": "@1"},
        {"n": 6, "text": "@0", "list": [], "usage": None, "note": "@1"},
        {"n": 7, "text": "c", "list": [], "usage": 7, "note": "@1"},
        {"n": 8},
    ]


@pytest.mark.parametrize(
    "text",
    [
        'quotes ",", and \\ and "',
        "\x00\x01\x02\x1f\x7f\t\r\n",
        "a\\u0001b",
        "\x85\u2028\u2029",
        "👩\u200d👩\u200d👧 é漢",
        "lone \ud800 and \udc00 halves",
        "data: [DONE]\n\n",
        "delta",
        "x" * 5000 + "\n" + "y" * 5000,
    ],
    ids=ascii,
)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_any_text_survives(text: str, size: int) -> None:
    """Whatever the model writes comes back, in pieces of as many code points as asked for."""
    table = StreamTable(progress=NoProgress, text=("delta",))
    script: list[Json] = [{"json": {"delta": text, "n": 1}}]

    events = list(cut(script, table, size))

    assert [json.loads(event.data)["delta"] for event in events] == [
        text[start : start + size] for start in range(0, len(text), size)
    ]
    assert all(len(event.data.splitlines()) == 1 for event in events)
    assert assemble(events, table) == script


@pytest.mark.parametrize("note", ["\ud800", 2**70, "é漢x"], ids=ascii)
def test_the_rest_of_an_event_may_be_hard_to_write(note: Json) -> None:
    """What orjson cannot write, and a copy of the text elsewhere, change nothing in the pieces."""
    table = StreamTable(progress=NoProgress, text=("delta",))
    script: list[Json] = [{"json": {"note": note, "delta": "é漢x"}}]

    events = list(cut(script, table, 2))

    assert [load_event_json(event.data) for event in events] == [
        {"note": note, "delta": "é漢"},
        {"note": note, "delta": "x"},
    ]
    assert assemble(events, table) == script


def test_a_character_sent_in_two_halves_is_one() -> None:
    """Some servers divide a surrogate pair; stored as halves, it would be one after the next reading."""
    table = StreamTable(progress=NoProgress, text=("delta",))
    events = [Event('{"delta":"a\\ud83d"}'), Event('{"delta":"\\ude00b"}')]

    script = assemble(events, table)

    assert script == [{"json": {"delta": "a😀b"}}]
    assert prove(events, script, table) is None


def test_the_fields_of_an_event_are_kept() -> None:
    """Name, id and unknown fields are stored where sent, and events join only where they are equal."""
    events = [
        Event('{"delta":"a"}', "delta", "1"),
        Event('{"delta":"b"}', "delta", "1"),
        Event('{"delta":"c"}', "delta"),
        Event('{"delta":"d"}', "delta", None, (("retry", "3"),)),
        Event("", extra=(("error", "no"),)),
        Event("[DONE]"),
    ]
    table = StreamTable(progress=NoProgress, text=("delta",))

    script = assemble(events, table)

    assert script == [
        {"event": "delta", "id": "1", "json": {"delta": "ab"}},
        {"event": "delta", "json": {"delta": "c"}},
        {"event": "delta", "extra": [["retry", "3"]], "json": {"delta": "d"}},
        {"extra": [["error", "no"]], "text": ""},
        {"text": "[DONE]"},
    ]
    assert prove(events, script, table) is None
    assert list(cut(script, table, 1))[2:] == events[2:]
    assert b"".join(cut_bytes(script, table, 1)) == b"".join(
        map(FRAMINGS["sse"].render, cut(script, table, 1))
    )


def test_a_ping_is_dropped_and_ends_nothing() -> None:
    """With its name or without; an event that carries more than a ping is kept, and ends the run."""
    ping = Event('{"type": "ping"}', "ping")
    table = StreamTable(progress=NoProgress, text=("delta",), ping=ping)
    others = [
        ping._replace(event="other"),
        ping._replace(id="7"),
        ping._replace(extra=(("retry", "3"),)),
        ping._replace(data='{"type": "ping", "n": 1}'),
        ping._replace(data='["ping"]'),
    ]
    events = [ping, Event('{"delta":"a"}'), ping, ping._replace(event=None), Event('{"delta":"b"}'), ping]

    assert [{"json": {"delta": "ab"}}] == assemble(events, table)
    for other in others:
        script = assemble([*events, other, *events], table)

        assert [{"json": {"delta": "ab"}}, *verbatim([other]), {"json": {"delta": "ab"}}] == script
    assert 4 == len(assemble(events[1:3] * 2, StreamTable(progress=NoProgress, text=("delta",))))


def test_a_verbatim_script_is_its_events() -> None:
    """Nothing is joined, nothing dropped."""
    events = [
        Event('{"delta":"a"}'),
        Event('{"delta":"b"}', "x", "1", (("retry", "3"),)),
        Event("[DONE]"),
        Event("NaN"),
    ]

    script = verbatim(events)

    assert script[0] == {"json": {"delta": "a"}}
    assert script[3] == {"text": "NaN"}
    assert list(replay_verbatim(script)) == events


def test_events_alike_but_for_their_text_are_recognised_unparsed() -> None:
    """The quick way and the slow way give the same script, also where a text looks like the rest."""
    table = StreamTable(progress=NoProgress, text=("delta",))
    words = ["a", "b", "delta", "x", "x", '"', '\\"', "", "é\n", "b", "x", ",", "c"]

    def written() -> Iterator[Event]:
        for word in words:
            yield Event(json.dumps({"note": "x", "delta": word, "more": "é"}))
        yield Event('{"note": "x", "delta": "d", "delta": "e", "more": "\\u00e9"}')
        yield Event('{"note": "x", "delta": "f", "more": "\\u00e9"}', "name")
        yield Event('{"note": "x", "delta": ')

    assert assemble(written(), table) == [
        {"json": {"note": "x", "delta": "".join(words) + "e", "more": "é"}},
        {"event": "name", "json": {"note": "x", "delta": "f", "more": "é"}},
        {"text": '{"note": "x", "delta": '},
    ]


@pytest.mark.parametrize("text", [":", ": ", ",", "}", "note", "null"])
def test_a_text_may_look_like_json(text: str) -> None:
    """A colon between two strings is not taken for the text that is a colon."""
    table = StreamTable(progress=NoProgress, text=("delta",), last=("note",))
    events = [Event(f'{{"note": null, "delta": "{text}"}}')] * 5

    assert assemble(events, table) == [{"json": {"note": None, "delta": text * 5}}]
    assert assemble([Event(event.data.replace(" ", "")) for event in events], table) == [
        {"json": {"note": None, "delta": text.strip() * 5}}
    ]


def test_a_text_written_with_escapes_is_not_taken_for_another_member() -> None:
    """The text of the second event stands in plain characters in ``note`` alone."""
    table = StreamTable(progress=NoProgress, text=("delta",))
    events = [Event(f'{{"delta": "{text}", "note": "A"}}') for text in ("x", "\\u0041", "\\u0041", "y")]

    assert assemble(events, table) == [{"json": {"delta": "xAAy", "note": "A"}}]
    running = StreamTable(progress=NoProgress, text=("delta",), last=("note",))
    assert assemble([*events, Event('{"delta": "\\u0041", "note": "B"}')], running) == [
        {"json": {"delta": "xAAyA", "note": "B"}}
    ]


def test_the_first_event_comes_before_the_rest_is_rendered() -> None:
    """A long answer does not make its first piece wait: only so much is rendered as is asked for."""
    table = StreamTable(progress=NoProgress, text=("delta",))
    broken: list[Json] = [{"json": {"delta": "x" * 1_000_000}}, {"neither": 1}]

    assert next(cut(broken, table, 1)).data == '{"delta":"x"}'


def test_proving_a_long_running_copy_does_not_cost_its_square() -> None:
    """A copy of 100,000 characters would be five gigabytes, were it sent again with each character."""
    events = [Event(json.dumps({"delta": {"text": "x" * 100_000}, "total": "x" * 100_000}))]
    started = time.process_time()

    assert prove(events, assemble(events, TOTALS), TOTALS) is None
    assert time.process_time() - started < 120


def test_proof_names_a_slot_whose_text_differs() -> None:
    """The sentence names the slot and quotes none of its text."""
    events = [Event(json.dumps(delta("secret", 0, content_index=3)))]

    assert prove(events, [{"json": delta("public", 0, content_index=3)}], TYPED) == (
        "the joined text of text.delta: delta (output_index 0, content_index 3) "
        "differs from the text received"
    )


@pytest.mark.parametrize(
    ("script", "place"),
    [
        ([{"obfuscation": "x"}], "[0].json"),
        ([delta("a", 0), delta("b", 1)], "[0].json.delta"),
        ([delta("a", 0), delta("", 1)], "event 1"),
        ([delta("a", 0, logprobs=[1]), delta("", 1, logprobs=[2])], "[0].json.logprobs"),
        ([{"a": [1, 2.5], "sequence_number": 1}, {"sequence_number": 5}], "[1].json.sequence_number"),
    ],
    ids=["member", "value", "event", "list", "later"],
)
def test_proof_names_the_first_difference(script: list[Json], place: str) -> None:
    """A script that no stream assembles to is found out."""
    events = [Event(json.dumps(value)) for value in script]

    assert prove(events, [{"json": value} for value in script], TYPED) == (
        f"cut into pieces of 1 and assembled again, the script differs at {place}"
    )


@pytest.mark.parametrize("path", ["choices[0].text", "**.text"])
def test_a_table_may_not_name_positions(path: str) -> None:
    """The paths of a table hold for every element or none."""
    with pytest.raises(OptionError, match="may hold names and"):
        table_reader(StreamTable(progress=NoProgress, text=(path,)))
