"""Streams of Mistral's: chunks with choices, of chat, agents and FIM, and the events of conversations."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette.dialects import MISTRAL, MISTRAL_CONVERSATIONS, OPENAI_CHAT
from httpx_cassette.dialects._framing import Event, dump_event_json, load_event_json
from httpx_cassette.dialects._script import cut, texts
from httpx_cassette.dialects.mistral_conversations import STREAM, ConversationProgress

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

assert MISTRAL.stream is not None
CHUNKS = MISTRAL.stream


def as_event(value: Json) -> Event:
    """Return a chunk as it is sent; ``None`` is the marker at the end."""
    return Event("[DONE]" if value is None else dump_event_json(value))


# -- chunks --------------------------------------------------------------------------------------------


def chunk(delta: Json, finish: Json = None, index: int = 0, **more: Json) -> dict[str, Json]:
    """Return a chunk as Mistral sends it; ``more`` goes beside the choices."""
    choice: Json = {"index": index, "delta": delta, "finish_reason": finish}
    return {"id": "1", "object": "chat.completion.chunk", "choices": [choice], **more}


def say(content: Json, finish: Json = None, index: int = 0, **more: Json) -> dict[str, Json]:
    return chunk({"content": content}, finish, index, **more)


def thinking(text: str, **more: Json) -> Json:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}], **more}


def part(text: str) -> Json:
    return {"type": "text", "text": text}


def tool(ident: str, name: str, arguments: Json = "{}", **more: Json) -> Json:
    return {"id": ident, "function": {"name": name, "arguments": arguments}, **more}


def calls(*listed: Json, finish: Json = None, **more: Json) -> dict[str, Json]:
    return chunk({"tool_calls": list(listed)}, finish, **more)


ROLE = chunk({"role": "assistant", "content": ""})
USAGE: Json = {"total_tokens": 9}
WHOLE = calls(tool("a", "f"), tool("b", "g"), finish="tool_calls", usage=USAGE)

CHOICES = [
    Case(
        "padding",
        [ROLE, say("Hel", p="abcd"), say("lo", p="ab"), say("!", "stop", p="a", usage=USAGE), None],
        # What comes with the usage is no more of the same: nothing had a member for it before.
        [ROLE, say("Hello"), say("!", "stop", usage=USAGE), None],
    ),
    Case(
        "choices-interleave",
        [say("c", index=0), say("c", index=1), say("obalt", "stop", 0), say("yan", "stop", 1, usage=USAGE)],
        [say("cobalt", "stop", 0), say("c", index=1), say("yan", "stop", 1, usage=USAGE)],
    ),
    Case("whole-calls-in-the-finishing-chunk", [ROLE, WHOLE, None], [ROLE, WHOLE, None], has_whole=True),
    Case(
        "a-call-without-index",
        [calls(tool("a", "f", '{"x": 1}'), finish="tool_calls")],
        [calls(tool("a", "f", '{"x": 1}'), finish="tool_calls")],
        has_whole=True,
    ),
    Case(
        "calls-under-one-index",
        [calls(tool("a", "f", index=0)), calls(tool("b", "f", index=0)), calls(tool("b", "f", index=0))],
        [calls(tool("a", "f", index=0)), calls(tool("b", "f", index=0)), calls(tool("b", "f", index=0))],
        has_whole=True,
    ),
    Case(
        "calls-without-an-id",
        [calls(tool("null", "f", index=0)), calls(tool("null", "f", index=0))],
        [calls(tool("null", "f", index=0)), calls(tool("null", "f", index=0))],
        has_whole=True,
    ),
    Case(
        "arguments-that-are-an-object",
        [calls(tool("a", "f", {"x": 1}, index=0))],
        [calls(tool("a", "f", {"x": 1}, index=0))],
    ),
    Case(
        "text-beside-a-call",
        [say("I "), chunk({"content": "look.", "tool_calls": [tool("a", "f", index=0)]}), say("!")],
        [say("I "), chunk({"content": "look.", "tool_calls": [tool("a", "f", index=0)]}), say("!")],
        has_whole=True,
    ),
    Case(
        "thoughts",
        [
            say([thinking("The")]),
            say([thinking(" user", closed=True)], p="a"),
            say([thinking(" asks.", closed=True)], p="abc"),
            say([thinking("4.", closed=True), part("1")]),
            say("4"),
            say("4", "stop"),
        ],
        [
            say([thinking("The")]),
            say([thinking(" user asks.", closed=True)]),
            say([thinking("4.", closed=True), part("1")]),
            say("44", "stop"),
        ],
        has_whole=True,
    ),
    Case("parts", [say([part("a")]), say([part("b")]), say("c"), say([part("d")])], [
        say([part("ab")]), say("c"), say([part("d")])
    ]),
    Case(
        "a-thought-with-a-signature",
        [say([thinking("a", signature=None)]), say([thinking("b", signature="c2ln")]), say([thinking("c")])],
        [say([thinking("ab", signature="c2ln")]), say([thinking("c")])],
    ),
    Case(
        "references-between",
        [say([part("a")]), say([{"type": "reference", "reference_ids": [1]}]), say([part("b")])],
        [say([part("a")]), say([{"type": "reference", "reference_ids": [1]}]), say([part("b")])],
    ),
    Case(
        "thoughts-of-several-parts",
        [say([{"type": "thinking", "thinking": [part("a"), part("b")]}])] * 2,
        [say([{"type": "thinking", "thinking": [part("a"), part("b")]}])] * 2,
        has_whole=True,
    ),
    Case("empty-lists", [say([]), say([{"type": "thinking", "thinking": []}]), say([])], [
        say([]), say([{"type": "thinking", "thinking": []}]), say([])
    ]),
]  # fmt: skip


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CHOICES)
def test_chunks_are_assembled_however_they_arrive(case: Case, size: int) -> None:
    """The script does not depend on where the chunks of the wire end."""
    check_assembled(case, as_event, CHUNKS, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CHOICES)
def test_a_script_is_cut_into_chunks_that_assemble_to_it(case: Case, size: int) -> None:
    """Cut, written and read, it is the same script, and no piece is longer than asked for."""
    check_cut(case, as_event, CHUNKS, size)


def test_a_thought_is_cut_into_parts_of_its_own() -> None:
    """Clients append the thoughts of one part to those of the part before; a signature comes last."""
    whole = say([thinking("abcd", closed=True, signature="c2ln")], "stop")

    sent = [load_event_json(event.data) for event in cut([{"json": whole}], CHUNKS, 2)]

    assert sent == [
        say([thinking("ab", closed=True, signature=None)]),
        say([thinking("cd", closed=True, signature="c2ln")], "stop"),
    ]


def test_gateways_that_pass_such_streams_on_are_understood() -> None:
    """Chat has the table that agents and FIM have, whatever the host."""
    assert OPENAI_CHAT.stream is CHUNKS


LISTED = st.lists(
    st.one_of(st.builds(thinking, st.text(max_size=4)), st.builds(part, st.text(max_size=4))), max_size=2
)
TOOLS = st.builds(
    tool,
    st.sampled_from(["a", "b", "null"]),
    st.sampled_from(["f", ""]),
    st.text(max_size=4),
    index=st.integers(0, 1),
)
DELTAS: st.SearchStrategy[dict[str, Json]] = st.one_of(
    st.text(max_size=4).map(lambda text: {"content": text}),
    LISTED.map(lambda listed: {"content": cast("Json", listed)}),
    st.lists(TOOLS, max_size=2).map(lambda listed: {"tool_calls": cast("Json", listed)}),
    st.tuples(st.text(max_size=4), TOOLS).map(lambda pair: {"content": pair[0], "tool_calls": [pair[1]]}),
)
SENT = st.builds(
    lambda delta, finish, index, more: chunk(delta, finish, index, **more),
    DELTAS,
    st.sampled_from([None, None, "stop"]),
    st.integers(0, 1),
    st.sampled_from([{}, {"p": "abc"}, {"usage": {"n": 1}}]),
)


@given(st.lists(SENT, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_chunks_are_assembled_and_cut_without_loss(sent: list[dict[str, Json]], size: int) -> None:
    """Whatever comes in whatever order."""
    check_any([as_event(each) for each in sent], CHUNKS, size)


@with_corpus
def test_every_recorded_stream_is_proved() -> None:
    """What Mistral sent is assembled, all of it, into a small part of as many events."""
    assert 0 < share_kept(recorded("mistral-chat.jsonl"), CHUNKS) < 0.33


# -- conversations -------------------------------------------------------------------------------------


def output(content: Json, ident: str = "msg_1", index: int = 0, **more: Json) -> dict[str, Json]:
    named: dict[str, Json] = {"output_index": index, "id": ident, "content_index": 0, "role": "assistant"}
    return {"type": "message.output.delta", **named, "content": content, **more}


def function(arguments: str, ident: str = "fc_1", index: int = 1, **more: Json) -> dict[str, Json]:
    named: dict[str, Json] = {"output_index": index, "id": ident, "name": "f", "tool_call_id": f"c{ident}"}
    return {"type": "function.call.delta", **named, "arguments": arguments, **more}


def search(kind: str, **more: Json) -> dict[str, Json]:
    named: dict[str, Json] = {"output_index": 0, "id": "tool_1", "name": "web_search"}
    return {"type": f"tool.execution.{kind}", **named, **more}


STARTED: Json = {"type": "conversation.response.started", "conversation_id": "conv_1"}
ENDED: Json = {"type": "conversation.response.done", "usage": {"total_tokens": 9}}
REFERENCE = output({"type": "tool_reference", "tool": "web_search", "title": "x", "url": "https://x.test"})

CONVERSATIONS = [
    Case(
        "text",
        [STARTED, output("The"), output(" last"), output("", content_index=0), ENDED],
        [STARTED, output("The last"), ENDED],
    ),
    Case(
        "times",
        [output("a", created_at="1"), output("b", created_at="2"), {**cast("Any", ENDED), "created_at": "3"}],
        [output("ab", created_at="2"), {**cast("Any", ENDED), "created_at": "3"}],
    ),
    Case(
        "a-call-in-pieces",
        [function('{"ci'), function('ty": 1}'), function("{", "fc_2", 2), function("}", "fc_2", 2)],
        [function('{"city": 1}'), function("{}", "fc_2", 2)],
    ),
    Case(
        "calls-by-turns",
        [function("a"), function("x", "fc_2", 2), function("b"), function("y", "fc_2", 2)],
        [function("a"), function("x", "fc_2", 2), function("b"), function("y", "fc_2", 2)],
    ),
    Case(
        "a-server-tool",
        [
            search("started", arguments=""),
            search("delta", arguments='{"q'),
            search("delta", arguments='": 1}'),
            search("done"),
        ],
        [search("started", arguments=""), search("delta", arguments='{"q": 1}'), search("done")],
    ),
    Case(
        "what-a-tool-was-started-with",
        [search("started", arguments="ab"), search("started", arguments="cd")],
        [search("started", arguments="ab"), search("started", arguments="cd")],
    ),
    Case(
        "references",
        [output("a"), output("b"), REFERENCE, output("c"), output("d", content_index=2)],
        [output("ab"), REFERENCE, output("c"), output("d", content_index=2)],
    ),
    Case(
        "thoughts",
        [
            output(cast("Json", thinking("a"))),
            output(cast("Json", thinking("b"))),
            output(part("c")),
            output(part("d")),
            output("e"),
        ],
        [output(thinking("ab")), output(part("cd")), output("e")],
    ),
    Case(
        "a-thought-with-a-signature",
        [output(thinking("a", signature="c2ln")), output(thinking("b"))],
        [output(thinking("a", signature="c2ln")), output(thinking("b"))],
    ),
    Case("messages-of-two-agents", [output("a"), output("b", "msg_2")], [output("a"), output("b", "msg_2")]),
    Case("unknown", [{"odd": 1}, {"type": "x", "content": "x"}], [{"odd": 1}, {"type": "x", "content": "x"}]),
]  # fmt: skip


def named(value: Any) -> Event:
    """Return an event as Mistral sends it."""
    return Event(dump_event_json(value), value.get("type"))


@pytest.mark.parametrize("size", WIRE_SIZES)
@cases(CONVERSATIONS)
def test_events_are_assembled_however_they_arrive(case: Case, size: int) -> None:
    """The script does not depend on where the chunks of the wire end, nor on names of the events."""
    check_assembled(case, named, STREAM, size)
    check_assembled(case, as_event, STREAM, size)


@pytest.mark.parametrize("size", SIZES)
@cases(CONVERSATIONS)
def test_a_script_is_cut_into_events_that_assemble_to_it(case: Case, size: int) -> None:
    """Cut, written and read, it is the same script, and no piece is longer than asked for."""
    check_cut(case, named, STREAM, size)


def test_every_piece_of_an_entry_names_it() -> None:
    """The SDK refuses a piece of a call without its name and its ids; the time comes with the last."""
    sent = [
        load_event_json(event.data)
        for event in cut([{"json": function('{"a": 1}', created_at="1")}], STREAM, 4)
    ]

    assert [function('{"a"'), function(": 1}", created_at="1")] == sent


def test_slots_are_named_by_their_entries() -> None:
    """The name says which entry of the answer, and which part of it."""
    assert {
        "message.output.delta: content (output_index 0, id msg_1, content_index 0)": "a",
        "function.call.delta: arguments (output_index 1, id fc_1, content_index None)": "{}",
    } == texts([named(output("a")), named(function("{}"))], STREAM)


ANY = st.one_of(
    st.builds(output, st.text(max_size=4), st.sampled_from(["msg_1", "msg_2"]), st.integers(0, 1)),
    st.builds(lambda text, at: output(text, created_at=at), st.text(max_size=4), st.sampled_from("12")),
    st.builds(lambda text: output(thinking(text)), st.text(max_size=4)),
    st.builds(lambda text: output(part(text)), st.text(max_size=4)),
    st.builds(function, st.text(max_size=4), st.sampled_from(["fc_1", "fc_2"])),
    st.sampled_from([STARTED, ENDED, REFERENCE, search("started", arguments="x"), {}]),
)


@given(st.lists(ANY, max_size=10), st.sampled_from([1, 2, 7, 10**9]))
def test_any_events_are_assembled_and_cut_without_loss(sent: list[Json], size: int) -> None:
    """Whatever comes in whatever order."""
    check_any([named(each) for each in sent], STREAM, size)


def watch(*events: Json | Event) -> ConversationProgress:
    sent = (each if isinstance(each, Event) else named(each) for each in events)
    return watched(ConversationProgress(), sent)


def test_the_last_event_ends_a_conversation() -> None:
    """There is no marker, and no finish reason."""
    assert not watch(STARTED, output("a")).is_complete
    assert not watch(Event("[DONE]")).is_terminated
    ended = watch(STARTED, output("a"), ENDED)
    assert (True, True, None, None) == (ended.is_complete, ended.is_terminated, ended.finish, ended.error)
    # What the data say counts, as for the SDK.
    assert not watch(Event("{}", "conversation.response.done")).is_terminated


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ({"type": "conversation.response.error", "message": "overloaded", "code": 3505}, "overloaded"),
        ({"type": "error", "code": 3505}, '{"type":"error","code":3505}'),
        ({"object": "error", "message": "overloaded"}, "overloaded"),
        ({"error": {"message": "overloaded"}}, "overloaded"),
        ({"error": "overloaded"}, "overloaded"),
        (Event("overloaded", "error"), "overloaded"),
        (Event('{"message":"overloaded"}', "error"), "overloaded"),
        (Event("overloaded"), None),
        (ENDED, None),
    ],
)  # fmt: skip
def test_an_error_inside_a_200_is_seen(sent: Any, error: str | None) -> None:
    """However it is announced, and the first one counts."""
    event = sent if isinstance(sent, Event) else named(sent)

    assert error == watch(event, ENDED).error
    assert "first" == watch({"error": "first"}, event).error


def test_both_kinds_of_stream_are_of_the_provider() -> None:
    """A conversation has the table of its events."""
    assert STREAM is MISTRAL_CONVERSATIONS.stream
