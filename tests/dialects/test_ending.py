"""How a stream says that it is over, and a whole answer why it ended: told as data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from httpx_cassette import OptionError
from httpx_cassette.dialects import At, Ends, Event, Json

from ..stream_proof import watched


@pytest.mark.parametrize(
    ("path", "answer", "found"),
    [
        ("why", {"why": "stop"}, "stop"),
        ("why", {"why": None}, None),
        ("why", {}, None),
        ("why", [], None),
        ("why", None, None),
        ("results[0].why", {"results": [{"why": "stop"}, {"why": "length"}]}, "stop"),
        (
            "results[*].why",
            {"results": [{"why": "stop"}, {"why": None}, {"why": "length"}]},
            ["stop", "length"],
        ),
        ("results[*].why", {"results": [{"why": "stop"}]}, "stop"),
        ("done", {"done": False}, False),
    ],
)
def test_a_value_is_found_at_its_path(path: str, answer: Any, found: Json) -> None:
    """One, a list of several, or none."""
    assert found == At(path)(answer)


def event(data: Any, name: str | None = None) -> Event:
    return Event(data if isinstance(data, str) else json.dumps(data), name)


#: Ends, the events -> complete, terminated, finish, error.
CASES: dict[str, tuple[Ends, list[Event], tuple[bool, bool, Json, str | None]]] = {
    "a mark": (Ends(marks=("[DONE]",)), [event("{}"), event("[DONE]")], (True, True, None, None)),
    "no mark": (Ends(marks=("[DONE]",)), [event("{}"), event("[done]")], (False, False, None, None)),
    "an event": (Ends(events=("done",)), [event("{}", "done")], (True, True, None, None)),
    "a member": (
        Ends(members={"done": True}),
        [event({"done": False}), event({"done": True})],
        (True, True, None, None),
    ),
    "no member": (Ends(members={"type": "stop"}), [event({"type": "start"})], (False, False, None, None)),
    "a member that only equals it in Python": (
        Ends(members={"done": True, "left": 0}),
        [event({"done": 1, "left": False})],
        (False, False, None, None),
    ),
    "a number": (Ends(members={"left": 0}), [event({"left": 0.0})], (True, True, None, None)),
    "a list for a reason": (
        Ends(finish="why", unfinished={"not_finished"}),
        [event({"why": ["stop"]})],
        (True, False, ["stop"], None),
    ),
    "a list that is none": (
        Ends(finish="why", unfinished=[["not", "yet"], 0]),
        [event({"why": ["not", "yet"]}), event({"why": 0})],
        (False, False, None, None),
    ),
    "a reason": (Ends(finish="a.why"), [event({"a": {"why": "stop"}})], (True, False, "stop", None)),
    "a reason before the mark": (
        Ends(finish="why", marks=("[DONE]",)),
        [event({"why": "stop"}), event("[DONE]")],
        (True, True, "stop", None),
    ),
    "reasons that are none": (
        Ends(finish="why", unfinished=("not_finished",)),
        [event({"why": None}), event({"why": ""}), event({"why": "not_finished"})],
        (False, False, None, None),
    ),
    "an error": (
        Ends(marks=("x",)),
        [event({"error": {"message": "overloaded"}}), event({"error": "again"})],
        (False, False, None, "overloaded"),
    ),
    "an error of another shape": (
        Ends(marks=("x",), error=("errors[*]",)),
        [event({"errors": [{"code": 7}]})],
        (False, False, None, "{'code': 7}"),
    ),
    "no error": (
        Ends(marks=("x",), error=("errors", "error")),
        [event({"errors": [], "error": False}), event([1])],
        (False, False, None, None),
    ),
    "an event that says error": (
        Ends(marks=("x",)),
        [event("broken", "error")],
        (False, False, None, "broken"),
    ),
    "an empty event that says error": (
        Ends(marks=("x",), failures=("failed",)),
        [event("", "failed")],
        (False, False, None, "failed"),
    ),
}


@pytest.mark.parametrize(("ends", "events", "expected"), CASES.values(), ids=CASES)
def test_a_stream_ends_as_it_is_said(ends: Ends, events: list[Event], expected: Any) -> None:
    """By a mark, an event, a member or a reason; and an error is no end."""
    progress = ends()
    progress.expect({"any": "request"})
    watched(progress, events)

    assert expected == (progress.is_complete, progress.is_terminated, progress.finish, progress.error)
    assert not progress.awaits_more


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Ends() says nothing of how a stream ends; give it finish, marks, events or members"),
        ({"marks": "[DONE]"}, "Ends(marks='[DONE]') is not understood; it takes a tuple"),
        ({"marks": ("x",), "error": "error"}, "Ends(error='error') is not understood; it takes a tuple"),
        (
            {"finish": "a b"},
            "the path 'a b' cannot be read at ' b'; write it like 'metadata.run_id' or 'messages[*].name'",
        ),
        ({"finish": ["why"]}, "Ends(['why']) is not understood; it takes a path, such as 'stop_reason'"),
        (
            {"members": {"next": None}},
            "Ends(members={'next': None}) is not understood; it takes a mapping of paths to the values with "
            "which a stream ends, such as {'done': True}, and null is none",
        ),
        (
            {"members": ("done",)},
            "Ends(members=('done',)) is not understood; it takes a mapping of paths to the values with "
            "which a stream ends, such as {'done': True}, and null is none",
        ),
        *(
            (
                {"finish": "why", "unfinished": unfinished},
                f"Ends(unfinished={unfinished!r}) is not understood; it takes a collection of values, such "
                "as ('in_progress',)",
            )
            for unfinished in ("null", {"null": True}, None)
        ),
    ],
)
def test_what_says_no_end_is_refused(given: Any, message: str) -> None:
    """When it is written, not in the middle of a stream."""
    with pytest.raises(OptionError) as caught:
        Ends(**given)

    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "results[",
            "the path 'results[' cannot be read at '['; write it like 'metadata.run_id' or "
            "'messages[*].name'",
        ),
        (None, "At(None) is not understood; it takes a path, such as 'stop_reason'"),
    ],
)
def test_a_path_that_cannot_be_read_is_refused(path: Any, message: str) -> None:
    """When it is written, not with the first answer."""
    with pytest.raises(OptionError) as caught:
        At(path)

    assert message == str(caught.value)
