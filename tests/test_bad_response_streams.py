"""Responses streams as bad servers send them, through the real transport: what is stored and replayed.

A stream is stored so that a replay says the same, or it is not stored, for a reason that is told; never a cut
stream as a whole one. The caller gets every byte either way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from httpx_cassette import CassetteMiss, CassetteTransport, SystemPromptMissing

from .colours import lines
from .plain_reader import PlainEvent, read_sse
from .served import KINDS, exchange, kind_of

URL = "https://api.openai.com/v1/responses"
ASKED = {"model": "gpt-5", "instructions": "Be brief.", "input": "hi", "stream": True}
SSE, JSON = "text/event-stream", "application/json"
BOM = b"\xef\xbb\xbf"

ANSWER: dict[str, Any] = {"id": "resp_1", "object": "response", "status": "completed", "output": []}


class Row(NamedTuple):
    """A body, and what becomes of it.

    Args:
        id: What is bad about it.
        body: Its bytes.
        kept: How it is stored, or why it is not stored.
        texts: The joined text of each place, for ``json`` the document.
        content_type: The header.
    """

    id: str
    body: bytes
    kept: str
    texts: Any = None
    content_type: str | None = SSE


def event(kind: str, name: str | None = "", **members: object) -> bytes:
    """Return one event; its name is its type where none is given, and ``None`` for no name."""
    head = "" if name is None else f"event: {name or kind}\n"
    return f"{head}data: {json.dumps({'type': kind, **members})}\n\n".encode()


def say(text: object, output: int = 0, item: str = "msg_1", name: str | None = "", **more: object) -> bytes:
    place = {"item_id": item, "output_index": output, "content_index": 0}
    return event("response.output_text.delta", name, **place, delta=text, **more)


def arguments(text: str, output: int, item: str = "fc_1") -> bytes:
    return event("response.function_call_arguments.delta", item_id=item, output_index=output, delta=text)


def said(text: str, output: int = 0) -> dict[str, str]:
    return {f"response.output_text.delta {output} 0": text}


def added(item: str, output: int = 0) -> bytes:
    return event("response.output_item.added", output_index=output, item={"type": "message", "id": item})


def done(item: str, text: str, output: int = 0) -> bytes:
    whole = {"type": "message", "id": item, "content": [{"type": "output_text", "text": text}]}
    return event("response.output_item.done", output_index=output, item=whole)


CREATED = event("response.created", response={"id": "resp_1", "status": "in_progress", "output": []})
END = event("response.completed", response=ANSWER)
DONE = b"data: [DONE]\n\n"
ERROR = {"code": "server_error", "message": "overloaded"}
FAILED = event("response.failed", response={"id": "resp_1", "status": "failed", "error": ERROR})
HI = CREATED + added("msg_1") + say("Hi ") + say("there") + done("msg_1", "Hi there") + END

ROWS = [
    # How it ends.
    Row("whole", HI, "assembled", said("Hi there")),
    Row("no end", CREATED + say("Hel") + say("lo"), "truncated"),
    Row("no end, though the item is done", HI.removesuffix(END), "truncated"),
    Row("torn in the last event", HI[:-20], "truncated"),
    Row("no final blank line", HI[:-1], "truncated"),
    Row("no final line end", HI[:-2], "truncated"),
    Row("[DONE] in place of the end", CREATED + say("Hi") + DONE, "truncated"),
    Row("[DONE] behind the end", HI + DONE, "assembled", said("Hi there")),
    Row("only the end", END, "assembled", {}),
    Row("empty", b"", "truncated"),
    Row("only comments", b": keepalive\n\n" * 3, "truncated"),
    Row("two ends", HI + END, "assembled", said("Hi there")),
    Row(
        "two ends that differ",
        HI + event("response.incomplete", response={"status": "incomplete"}),
        "assembled",
        said("Hi there"),
    ),
    Row("text behind the end", HI + say(" and more"), "assembled", said("Hi there")),
    Row("an error behind the end", HI + event("error", **ERROR), "assembled", said("Hi there")),
    Row(
        "a failure under the name of success",
        CREATED + say("Hi") + event("response.completed", response={"id": "resp_1", "status": "failed"}),
        "failed",
    ),
    Row(
        "incomplete",
        CREATED
        + say("Hi")
        + event(
            "response.incomplete",
            response={"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        ),
        "assembled",
        said("Hi"),
    ),
    # Errors inside a 200.
    Row("failed", CREATED + say("Hi") + FAILED, "failed"),
    Row("failed, without a reason", CREATED + event("response.failed"), "failed"),
    Row("an error", CREATED + say("Hi") + event("error", **ERROR), "failed"),
    Row("an error, and the end", CREATED + event("error", **ERROR) + END, "failed"),
    Row("an error without a name", CREATED + event("error", None, **ERROR), "failed"),
    Row("an error by its name alone", CREATED + b"event: error\ndata: overloaded\n\n" + END, "failed"),
    Row("an error of a gateway", CREATED + b'data: {"error": {"code": 503}}\n\n', "failed"),
    Row("a field error", CREATED + say("Hi") + b'error: {"code": 503}\n\n', "failed"),
    Row("an error in the end", CREATED + event("response.completed", response={"error": ERROR}), "failed"),
    Row(
        "a tool that failed",
        CREATED + event("response.mcp_call.failed", output_index=0) + say("Hi", 1) + END,
        "assembled",
        said("Hi", 1),
    ),
    # Whose text it is.
    Row(
        "an id that changes between added and done",
        CREATED
        + added("msg_1")
        + say("Hi ", item="msg_2")
        + say("there", item="msg_2")
        + done("msg_3", "")
        + END,
        "assembled",
        said("Hi there"),
    ),
    Row(
        "an id that changes in every event",
        CREATED + b"".join(say(text, item=f"m{n}") for n, text in enumerate("abcd")) + END,
        "assembled",
        said("abcd"),
    ),
    Row(
        "ids by turns",
        CREATED + b"".join(say(text, item=item) for text, item in zip("abcd", "xyxy", strict=True)) + END,
        "assembled",
        said("abcd"),
    ),
    Row(
        "one id for two items",
        CREATED + b"".join(say(text, output) for text in "ab" for output in (0, 1)) + END,
        "assembled",
        {**said("ab"), **said("ab", 1)},
    ),
    Row(
        "items by turns",
        CREATED
        + b"".join(arguments(text, output, f"fc_{output}") for text in '{"}' for output in (0, 1))
        + END,
        "assembled",
        {f"response.function_call_arguments.delta {output} None": '{"}' for output in (0, 1)},
    ),
    Row(
        "no indexes",
        CREATED + event("response.output_text.delta", delta="a") * 2 + END,
        "assembled",
        {"response.output_text.delta None None": "aa"},
    ),
    # Numbers.
    Row(
        "numbers that are missing now and then",
        CREATED + say("a", sequence_number=1) + say("b") + say("c", sequence_number=9) + END,
        "assembled",
        said("abc"),
    ),
    Row(
        "one number for all",
        CREATED + b"".join(say(text, sequence_number=0) for text in "abc") + END,
        "assembled",
        said("abc"),
    ),
    Row(
        "numbers that go back",
        CREATED
        + b"".join(say(text, sequence_number=n) for text, n in zip("abc", (5, 3, 4), strict=True))
        + END,
        "assembled",
        said("abc"),
    ),
    # Names.
    Row("no names", CREATED + say("a", name=None) + say("b", name=None) + END, "assembled", said("ab")),
    Row("a name now and then", CREATED + say("a") + say("b", name=None) + END, "assembled", said("ab")),
    Row(
        "names that contradict",
        CREATED + say("a", name="response.completed") + say("b", name="odd") + END,
        "assembled",
        said("ab"),
    ),
    Row(
        "the end by its name alone",
        CREATED + say("a") + b'event: response.completed\ndata: {"response": {"id": "resp_1"}}\n\n',
        "assembled",
        said("a"),
    ),
    # What is in an event.
    Row(
        "unknown events",
        CREATED
        + say("a")
        + event("keepalive", sequence_number=3)
        + say("b")
        + event("response.odd.delta", delta={"x": 1})
        + event("response.odd.delta", delta="text")
        + END,
        "assembled",
        said("ab"),
    ),
    Row(
        "deltas that are no text",
        CREATED + say("a") + say(None) + say(7) + say(["b"]) + say({"c": "d"}) + say("e") + END,
        "assembled",
        said("ae"),
    ),
    *(
        Row(
            f"JSON that is {value}",
            CREATED + say("a") + f"data: {value}\n\n".encode() + say("b") + END,
            "assembled",
            said("ab"),
        )
        for value in ("7", "1e400", "[1]", "null", '"text"', "{oops")
    ),
    Row(
        "types that are no text",
        CREATED + b'data: {"type": ["response.completed"]}\n\ndata: {"type": null}\n\n' + say("a") + END,
        "assembled",
        said("a"),
    ),
    Row(
        "halves of a character",
        CREATED + say("\ud83d") + say("\ude86") + END,
        "assembled",
        said("\U0001f686"),
    ),
    Row("half of a character", CREATED + say("a\ud83d") + END, "assembled", said("a\ud83d")),
    Row(
        "line ends of Unicode",
        CREATED + say("a\u2028") + say("b\u2029c\x85") + END,
        "assembled",
        said("a\u2028b\u2029c\x85"),
    ),
    Row("empty deltas", CREATED + say("") + say("a") + say("") + END, "assembled", said("a")),
    # Lines and bytes.
    Row("CRLF", HI.replace(b"\n", b"\r\n"), "assembled", said("Hi there")),
    Row("CR", HI.replace(b"\n", b"\r"), "assembled", said("Hi there")),
    Row("a mark of UTF-8", BOM + HI, "assembled", said("Hi there")),
    Row(
        "comments", HI.replace(b"event:", b": OPENROUTER PROCESSING\n\nevent:"), "assembled", said("Hi there")
    ),
    Row("ids", HI.replace(b"data:", b"id: 7\ndata:"), "assembled", said("Hi there")),
    Row("no UTF-8", CREATED + say("Hi") + b"data: caf\xe9\n\n" + END, "base64", said("Hi")),
    # Content types lie.
    Row("SSE as JSON", HI, "assembled", said("Hi there"), JSON),
    Row("SSE without a type", HI, "assembled", said("Hi there"), None),
    Row("SSE as JSON, torn", HI[:-20], "truncated", None, JSON),
    Row("JSON as SSE", json.dumps(ANSWER).encode(), "json", ANSWER),
    Row("JSON for a stream", json.dumps(ANSWER).encode(), "json", ANSWER, JSON),
    Row("JSON, torn", json.dumps(ANSWER).encode()[:-1], "truncated", None, JSON),
    Row(
        "JSON, failed",
        json.dumps({**ANSWER, "status": "failed", "error": ERROR}).encode(),
        "failed",
        None,
        JSON,
    ),
    Row("JSON, an error", json.dumps({"error": ERROR}).encode(), "failed", None, JSON),
    Row("a page", b"<html>Welcome</html>", "failed", None, "text/html"),
]


def ask(
    path: Path, sent: bytes | None, size: int = 10**9, content_type: str | None = SSE, **options: Any
) -> tuple[bytes, Any]:
    """Make the call, or replay it where nothing is sent; return body and stats.

    Options are those of :func:`exchange`.
    """
    asked = {"url": URL, "json": ASKED, "fsync": False, **options}
    return exchange(path, sent, None if sent is None else size, content_type, **asked)


def texts_of(events: list[PlainEvent]) -> dict[str, str]:
    """Return the text of each place, put together by the numbers that clients go by."""
    found: dict[str, str] = {}
    for value in map(_load, (each.data for each in events)):
        if isinstance(value, dict) and isinstance(value.get("delta"), str) and _is_text(value.get("type")):
            place = f"{value['type']} {value.get('output_index')} {value.get('content_index')}"
            joined = (found.get(place, "") + value["delta"]).encode("utf-16-le", "surrogatepass")
            found[place] = joined.decode("utf-16-le", "surrogatepass")
    return {place: text for place, text in found.items() if text}


def others_of(events: list[PlainEvent]) -> list[str]:
    """Return everything else, in order, without the numbers and without what is said again and again."""
    said: list[str] = []
    for each in events:
        value = _load(each.data)
        if isinstance(value, dict):
            value = {
                name: item for name, item in value.items() if name not in ("sequence_number", "obfuscation")
            }
            if isinstance(value.get("delta"), str) and _is_text(value.get("type")):
                value["delta"] = ""
        shown = repr((each.event, each.id, each.extra, value))
        if said[-1:] != [shown]:
            said.append(shown)
    return said


def _is_text(kind: object) -> bool:
    return kind in ("response.output_text.delta", "response.function_call_arguments.delta")


def _load(data: str) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data


def up_to_the_end(body: bytes) -> list[PlainEvent]:
    """Return the events of a body, read without the package, up to the one that ends it."""
    events, _ = read_sse(body)
    for place, each in enumerate(events, 1):
        value = _load(each.data)
        kind = value.get("type", each.event) if isinstance(value, dict) else None
        if kind in ("response.completed", "response.incomplete"):
            return events[:place]
    return events


REPLAYS: tuple[dict[str, Any], ...] = (
    {},
    {"chunk_size": 1},
    {"chunk_size": 10**9, "wire_chunk_size": 3},
    {"chunk_size": 2, "noise": True},
)

#: Rows in which items come by turns: their events may come by other turns.
BY_TURNS = ("items by turns", "one id for two items")


@pytest.mark.parametrize("size", [1, 3, 5, 10**9], ids=["1", "3", "5", "whole"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_bad_stream_is_stored_as_it_is_or_not_at_all(row: Row, size: int, tmp_path: Path) -> None:
    """However its bytes were cut, the same is stored, and the replay says what the server said."""
    path = tmp_path / "bad.jsonl"
    sent, stats = ask(path, row.body, size, row.content_type)
    assert row.body == sent
    if row.kept not in KINDS:
        assert ({row.kept: 1}, []) == (stats.unrecorded, lines(path))
        with pytest.raises(CassetteMiss):
            ask(path, None)
        return

    assert {} == stats.unrecorded
    (line,) = lines(path)
    assert row.kept == kind_of(line["response"])
    for options in REPLAYS:
        replayed, _ = ask(path, None, **options)
        if row.kept == "json":
            assert row.texts == json.loads(replayed)
            continue
        received, again = up_to_the_end(row.body), up_to_the_end(replayed)
        assert row.texts == texts_of(received) == texts_of(again)
        if row.id in BY_TURNS:
            assert sorted(set(others_of(received))) == sorted(set(others_of(again)))
        else:
            assert others_of(received) == others_of(again)


ANSWERED = f"{URL}/resp_1"


@pytest.mark.parametrize("content_type", [SSE, JSON, None])
def test_a_stream_that_is_taken_up_again_must_end_too(content_type: str | None, tmp_path: Path) -> None:
    """A GET asks for it in the query, and needs no system prompt."""
    get = {"method": "GET", "url": f"{ANSWERED}?stream=true&starting_after=4", "json": None}
    rest = say("there", sequence_number=5) + event("response.completed", sequence_number=6, response=ANSWER)
    path = tmp_path / "taken-up.jsonl"

    _, stats = ask(path, rest[:-20], 7, content_type, **get)
    assert {"truncated": 1} == stats.unrecorded
    _, stats = ask(path, rest, 7, content_type, **get)
    assert {} == stats.unrecorded
    replayed, _ = ask(path, None, chunk_size=2, **get)

    assert said("there") == texts_of(up_to_the_end(replayed))
    numbers = [json.loads(each.data)["sequence_number"] for each in up_to_the_end(replayed)]
    assert [5, 6, 7, 8] == numbers


def test_a_background_answer_is_polled_until_its_end(tmp_path: Path) -> None:
    """Each state is stored, that it failed too: the program that polls must come to its end."""
    states = [
        {**ANSWER, "background": True, "status": state} for state in ("queued", "in_progress", "failed")
    ]
    states[-1]["error"] = ERROR
    path = tmp_path / "polled.jsonl"
    upstream = httpx.MockTransport(lambda request: httpx.Response(200, json=left.pop(0)))

    def poll(mode: str) -> list[Any]:
        transport = CassetteTransport(path, mode=mode, next_transport=upstream)
        with httpx.Client(transport=transport) as client:
            asked = {**ASKED, "stream": False, "background": True}
            return [client.post(URL, json=asked).json(), *(client.get(ANSWERED).json() for _ in range(2))]

    left = list(states)

    assert states == poll("record") == poll("replay")
    assert ["queued", "in_progress", "failed"] == [line["finish"] for line in lines(path)]


@pytest.mark.parametrize("below", ["/input_tokens", "/compact", "/resp_1/cancel", ""])
def test_only_the_call_itself_needs_a_system_prompt(below: str, tmp_path: Path) -> None:
    """Counting, compacting and cancelling do not."""
    asked: dict[str, Any] = {"json": {"model": "gpt-5", "input": "hi"}, "url": URL + below}
    path = tmp_path / "below.jsonl"
    body = json.dumps({"object": "x"}).encode()
    if below:
        ask(path, body, content_type=JSON, **asked)
        assert "generic" == lines(path)[0]["dialect"]
    else:
        with pytest.raises(SystemPromptMissing):
            ask(path, body, content_type=JSON, on_miss=None, **asked)
