"""``check_stream``: a table is tried on a stream that was received."""

from __future__ import annotations

from dataclasses import replace

import pytest

from httpx_cassette import CassetteError, OptionError
from httpx_cassette.dialects import (
    OPENAI_CHAT,
    CheckedStream,
    Dialect,
    Endpoint,
    Ends,
    Event,
    StreamTable,
    check_stream,
)

TABLE = StreamTable(
    text=("completion",),
    ends=("stop_reason",),
    ping=Event('{"type": "ping"}', "ping"),
    progress=Ends(finish="stop_reason"),
)
COMPLETE = Dialect("my-complete", endpoints=(Endpoint("/v1/complete", has={"prompt": str}),), stream=TABLE)

STREAM = b"""\
event: completion\r
data: {"completion": " Light", "stop_reason": null}\r
\r
event: ping\r
data: {"type": "ping"}\r
\r
event: completion\r
data: {"completion": " scatters", "stop_reason": null }\r
\r
event: completion\r
data: {"completion": "", "stop_reason": "stop_sequence"  }\r
\r
"""


def test_what_would_be_stored_is_returned() -> None:
    """How many events came and are kept, what they say, and how it ended."""
    assert CheckedStream(
        received=4,
        stored=2,
        texts={"completion": " Light scatters"},
        finish="stop_sequence",
        script=[
            {"event": "completion", "json": {"completion": " Light scatters", "stop_reason": None}},
            {"event": "completion", "json": {"completion": "", "stop_reason": "stop_sequence"}},
        ],
    ) == check_stream(COMPLETE, STREAM)


def test_another_framing_has_a_table_of_its_own() -> None:
    """It is named, or there is none; a request may say what ends the stream."""
    lines = replace(COMPLETE, other_streams=(replace(TABLE, framing="ndjson"),))
    body = b'{"completion":"a","stop_reason":null}\n{"completion":"b","stop_reason":"x"}'

    assert {"completion": "ab"} == check_stream(lines, body, framing="ndjson", request={}).texts
    assert {"completion": "ab"} == check_stream(replace(lines, stream=None), body, framing="ndjson").texts


def test_what_comes_behind_the_end_is_not_looked_at() -> None:
    """As it is not recorded."""
    table = replace(TABLE, progress=Ends(marks=("[DONE]",)))
    body = b'data: {"completion":"a"}\n\ndata: [DONE]\n\ndata: {"error":"late"}\n\n'

    assert 2 == check_stream(replace(COMPLETE, stream=table), body).received


NO_END = "the stream does not end and would not be recorded; say in the progress of the table what ends it: "


def test_a_stream_that_says_nothing_may_end() -> None:
    """With its mark, and without a finish reason."""
    chat = replace(OPENAI_CHAT, name="my-chat")

    assert CheckedStream(1, 1, {}, None, [{"text": "[DONE]"}]) == check_stream(chat, b"data: [DONE]\n\n")


#: The dialect, the body -> the message.
FAULTS: dict[str, tuple[Dialect, bytes, str]] = {
    "no table": (
        replace(COMPLETE, stream=None),
        STREAM,
        "the dialect 'my-complete' has no table for streams of the framing 'sse'; give it "
        "stream=StreamTable(framing='sse', ...)",
    ),
    "no end": (
        COMPLETE,
        b'data: {"completion": " Light"}\n\n',
        f"{NO_END}the last event of 1 is an object with the members ['completion']",
    ),
    "a mark that is none": (
        COMPLETE,
        b"data: [1]\n\ndata: [DONE]\n\n",
        f"{NO_END}the last event of 2 is no object, 6 characters",
    ),
    "a list": (COMPLETE, b"data: [1]\n\n", f"{NO_END}the last event of 1 is a list, 3 characters"),
    "an empty object": (COMPLETE, b"data: {}\n\n", f"{NO_END}the last event of 1 is an empty object"),
    "nothing": (COMPLETE, b"", f"{NO_END}it holds no event"),
    # Its words may quote anything: a key, a prompt.
    "an error": (
        COMPLETE,
        b'data: {"completion": "a"}\n\ndata: {"error": {"message": "Incorrect API key: sk-abc"}}\n\n',
        "the stream holds an error and would not be recorded: event 2, an object with the members ['error']",
    ),
}


@pytest.mark.parametrize(("dialect", "body", "message"), FAULTS.values(), ids=FAULTS)
def test_what_would_not_be_recorded_is_said(dialect: Dialect, body: bytes, message: str) -> None:
    """With what to do about it."""
    with pytest.raises(CassetteError) as caught:
        check_stream(dialect, body)

    assert message == str(caught.value)


def test_a_dialect_that_cannot_be_used_is_refused() -> None:
    """As by ``register``."""
    with pytest.raises(OptionError):
        check_stream(replace(COMPLETE, endpoints=()), STREAM)


def test_a_framing_that_there_is_not_is_refused() -> None:
    """Those that there are are named: a table with it would be refused as well."""
    with pytest.raises(OptionError) as caught:
        check_stream(COMPLETE, STREAM, framing="nonsense")

    assert (
        "framing='nonsense' is not understood; it takes one of 'sse', 'ndjson', 'json-array', 'eventstream'"
    ) == str(caught.value)


def test_a_stream_that_cannot_be_put_together_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be stored event by event, and the reason is the one of the warning."""
    monkeypatch.setattr("httpx_cassette.dialects._trial.prove", lambda events, script, table: "it differs")

    with pytest.raises(CassetteError) as caught:
        check_stream(COMPLETE, STREAM)
    assert "the stream would be stored event by event, because it differs" == str(caught.value)


def test_a_reason_that_would_come_too_early_is_told() -> None:
    """One that comes with the last text would be said with each piece of it, unless it is named."""
    body = b'data: {"completion":"Hel"}\n\ndata: {"completion":"lo","stop_reason":"x"}\n\n'
    unnamed = replace(COMPLETE, stream=replace(TABLE, ends=()))

    assert "x" == check_stream(COMPLETE, body).finish
    with pytest.raises(CassetteError) as caught:
        check_stream(unnamed, body)
    assert (
        "a replay in small pieces would go on behind its finish reason, which comes with a text; name it in "
        "ends= of the table, so that it comes with the last piece"
    ) == str(caught.value)
