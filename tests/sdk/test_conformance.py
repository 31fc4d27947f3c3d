"""The conformance run passes what is right, fails what is not, and says what it found."""

from __future__ import annotations

import base64
import importlib.util
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance.__main__ import JUDGES, main
from tests.conformance._compatible import VENDORS, vendor_of
from tests.conformance._library import CassetteTransport, http
from tests.conformance._sabotage import SABOTAGES

FOLDER = Path(__file__).parents[1] / "conformance"
CASES = str(FOLDER / "cases")
CORPUS = FOLDER.parents[1].parent / "shared" / "corpus"


class Expected(NamedTuple):
    """What a run over the cases of one format says.

    Args:
        equal: How many are equal.
        refused: Why the others are not stored.
        not_kept: What a recording does not keep.
        falsified: Sabotage -> what it shows in at chunk size 1, and how the path begins that differs.
        every: Every how many of the cases are enough to find each out.
        is_joined: Whether fewer events are stored than were received.
    """

    equal: int
    refused: dict[str, int]
    not_kept: dict[str, int]
    falsified: dict[str, tuple[str, str]]
    every: str = "2"
    is_joined: bool = True


EXPECTED = {
    "gemini": Expected(
        42,
        {"error event": 2, "error in a success": 1, "status 404": 1, "status 429": 1, "truncated": 2},
        {},
        {
            "drop-a-character": ("SDK object", "candidates.0.parts[0].text"),
            "swap-two-deltas": ("SDK object", "candidates.0.parts[0].text"),
            "repeat-a-tool-id": ("SDK object", "candidates.0.parts["),
            "drop-the-usage": ("SDK object", "usage_metadata"),
        },
    ),
    "gemini-interactions": Expected(
        10,
        {"error event": 1, "error in a success": 1, "status 429": 1, "truncated": 1},
        {},
        {
            "drop-a-character": ("SDK object", "steps.0.deltas[0].text"),
            "swap-two-deltas": ("SDK object", "steps.0.deltas[0].text"),
            "repeat-a-tool-id": ("SDK object", "steps.1.deltas[0].arguments"),
            "drop-the-usage": ("SDK object", "events[4].interaction.usage"),
        },
    ),
    "anthropic-bedrock": Expected(
        7,
        {"error event": 2, "status 429": 1, "truncated": 1},
        {"p": 135, "ping": 1},
        {
            "drop-a-character": ("SDK object", "content[0].text"),
            "swap-two-deltas": ("SDK object", "content[0].text"),
            "repeat-a-tool-id": (
                "fields",
                "content_block_delta 1: delta.id beside content_block_delta 1: delta.partial_json",
            ),
            "drop-the-usage": ("fields", "message_delta: usage.output_tokens"),
        },
    ),
    "bedrock": Expected(
        37,
        {"error event": 4, "error in a success": 1, "status 400": 1, "status 429": 1, "truncated": 2},
        {"p": 291},
        {
            "drop-a-character": ("SDK object", "output.message.content[0].text"),
            "swap-two-deltas": ("SDK object", "output.message.content[0].text"),
            # botocore takes no notice of what a delta has no business to say.
            "repeat-a-tool-id": (
                "fields",
                "contentBlockDelta 1: delta.toolUse.id beside contentBlockDelta 1: delta.toolUse.input",
            ),
            "drop-the-usage": ("SDK object", "usage"),
        },
        every="12",
    ),
    "cohere": Expected(
        26,
        {"error event": 3, "error in a success": 1, "status 404": 1, "truncated": 2},
        {},
        {
            "drop-a-character": ("SDK object", "content.0.text"),
            "swap-two-deltas": ("SDK object", "content.0.text"),
            "repeat-a-tool-id": (
                "fields",
                "tool-call-delta 0: delta.message.tool_calls.id beside "
                "tool-call-delta 0: delta.message.tool_calls.function.arguments",
            ),
            "drop-the-usage": ("SDK object", "usage"),
        },
    ),
    "cohere-v1": Expected(
        14,
        {"error event": 2, "error in a success": 1, "status 429": 1, "truncated": 2},
        {},
        {
            "drop-a-character": ("SDK object", "text"),
            "swap-two-deltas": ("SDK object", "text"),
            "repeat-a-tool-id": ("SDK object", "calls.0.name"),
            "drop-the-usage": ("SDK object", "events[1].response.meta"),
        },
    ),
    "huggingface": Expected(
        28,
        {"error event": 2, "error in a success": 1, "status 429": 1, "truncated": 2},
        {},
        {
            "drop-a-character": ("SDK object", "tokens[0].token.text"),
            "swap-two-deltas": ("SDK object", "tokens[0].token.text"),
            "repeat-a-tool-id": ("SDK object", "tokens[1].token.id"),
            "drop-the-usage": ("SDK object", "tokens[8].details"),
        },
        is_joined=False,
    ),
    "anthropic-completions": Expected(
        7,
        {"error event": 1, "status 429": 1, "truncated": 1},
        {"ping": 1},
        {
            "drop-a-character": ("SDK object", "completion"),
            "swap-two-deltas": ("SDK object", "completion"),
            "repeat-a-tool-id": ("fields", "stop_reason beside completion"),
            "drop-the-usage": ("SDK object", "stop"),
        },
    ),
    "writer": Expected(
        7,
        {"error event": 1, "status 429": 1, "truncated": 1},
        {},
        {
            "drop-a-character": ("SDK object", "choices[0].message.content"),
            "swap-two-deltas": ("SDK object", "choices[0].message.content"),
            "repeat-a-tool-id": ("SDK object", "choices[0].message.tool_calls[0].id"),
            "drop-the-usage": ("SDK object", "usage"),
        },
    ),
    "openai-completions": Expected(
        21,
        {"error event": 1, "error in a success": 1, "status 404": 1, "truncated": 2},
        {"obfuscation": 10},
        {
            "drop-a-character": ("SDK object", "choices[0].text"),
            "swap-two-deltas": ("SDK object", "choices[0].text"),
            "repeat-a-tool-id": ("fields", "choices[0].finish_reason"),
            "drop-the-usage": ("SDK object", "usage"),
        },
    ),
    "ollama": Expected(
        31,
        {"error event": 2, "error in a success": 1, "status 404": 1, "truncated": 2},
        {},
        {
            "drop-a-character": ("SDK object", "message.content"),
            "swap-two-deltas": ("SDK object", "message.content"),
            "repeat-a-tool-id": ("SDK object", "message.tool_calls[1]"),
            "drop-the-usage": ("SDK object", "eval_count"),
        },
    ),
    "anthropic-messages": Expected(
        46,
        {
            "error event": 2,
            "error in a success": 1,
            "status 429": 1,
            "truncated": 2,
        },
        {"ping": 13},
        {
            "drop-a-character": ("SDK object", "content[0].text"),
            "swap-two-deltas": ("SDK object", "content[0].text"),
            # The SDK takes no notice of what a delta has no business to say.
            "repeat-a-tool-id": (
                "fields",
                "content_block_delta 1: delta.id beside content_block_delta 1: delta.partial_json",
            ),
            "drop-the-usage": ("fields", "message_delta: usage.output_tokens"),
        },
    ),
    "mistral": Expected(
        24,
        {"error event": 1, "error in a success": 1, "status 429": 1, "truncated": 1},
        {"p": 43},
        {
            "drop-a-character": ("SDK object", "choices[0].message.content"),
            "swap-two-deltas": ("SDK object", "choices[0].message.content"),
            # What comes whole is sent twice.
            "repeat-a-tool-id": ("SDK object", "choices[0].message.tool_calls[2]"),
            "drop-the-usage": ("SDK object", "usage"),
        },
    ),
    "mistral-conversations": Expected(
        13,
        {"error event": 1, "error in a success": 1, "status 429": 1, "truncated": 1},
        {},
        {
            "drop-a-character": ("SDK object", "entries[0].content"),
            "swap-two-deltas": ("SDK object", "entries[0].content"),
            "repeat-a-tool-id": ("SDK object", "entries[1].arguments"),
            # mistralai 1 raises without it, mistralai 3 takes the event for one that it does not know.
            "drop-the-usage": ("fields", "conversation.response.done: usage."),
        },
        every="3",
    ),
    "openai-chat": Expected(
        42,
        {
            "error event": 3,
            "error in a success": 1,
            "status 429": 1,
            "truncated": 2,
        },
        {"obfuscation": 7},
        {
            "drop-a-character": ("SDK object", "choices[0].message.content"),
            "swap-two-deltas": ("SDK object", "choices[0].message.content"),
            "repeat-a-tool-id": ("SDK object", "choices[0].message.tool_calls[0].id"),
            "drop-the-usage": ("SDK object", "usage"),
        },
    ),
    "openai-responses": Expected(
        41,
        {
            "error event": 3,
            "error in a success": 2,
            "status 429": 1,
            "truncated": 2,
        },
        {"obfuscation": 299},
        {
            "drop-a-character": ("SDK object", "said.response.output_text.delta 0 0.text"),
            "swap-two-deltas": ("SDK object", "said.response.output_text.delta 0 0.text"),
            "repeat-a-tool-id": ("SDK object", "said.response.function_call_arguments.delta 0.members[0]"),
            "drop-the-usage": ("SDK object", "answer.usage"),
        },
        every="9",
    ),
}


#: Those whose SDK is here; cohere, the hub and botocore are not in the session of old SDKs.
NAMES = [name for name in EXPECTED if name in JUDGES]


def test_every_judge_has_cases() -> None:
    """And every file of cases says what is expected of it."""
    names = {path.stem for path in (FOLDER / "cases").glob("*.jsonl")}
    absent = set() if importlib.util.find_spec("cohere") else {"cohere", "cohere-v1", "huggingface"}
    if not importlib.util.find_spec("botocore"):
        absent |= {"anthropic-bedrock", "bedrock"}

    assert names == set(EXPECTED)
    assert names - absent == set(JUDGES)


@pytest.mark.parametrize("name", NAMES)
def test_the_cases_hold_the_invariants(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Every stream is assembled and equal, and what must not be stored is not stored."""
    status = main([CASES, "--full", "--json", "--files", f"{name}.jsonl"])
    (report,) = json.loads(capsys.readouterr().out)
    expected = EXPECTED[name]

    assert [] == [outcome for outcome in report["outcomes"] if outcome["faults"]]
    assert (0, expected.equal, 0) == (status, report["equal"], report["verbatim"])
    assert report["tried"] == expected.equal + sum(expected.refused.values())
    assert (expected.refused, expected.not_kept) == (report["refused for"], report["not kept"])
    assert expected.is_joined is (report["events stored"] < report["events received"])


# By the table of the run itself: a new sabotage must be entered above.
@pytest.mark.parametrize("sabotage", SABOTAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_falsified_replay_is_found(capsys: pytest.CaptureFixture[str], name: str, sabotage: str) -> None:
    """Each sabotage ends the run with 1, and the exchange, the chunk size and the path are named."""
    what, path = EXPECTED[name].falsified[sabotage]
    every = EXPECTED[name].every
    # One way of cutting is enough: a judge that is fooled by it is seen to be.
    status = main(
        [CASES, "--every", every, "--sabotage", sabotage, "--chunk-size", "1", "--files", f"{name}.jsonl"]
    )
    lines = capsys.readouterr().out.splitlines()
    found = [line for line in lines if f"{what} at chunk size 1" in line and f": {path}" in line]

    assert 1 == status
    assert found
    assert all(line.strip().startswith("case-") for line in found)


#: One host for each SDK.
HOSTS = {module: ending for ending, (module, _) in VENDORS.items()}


@pytest.mark.parametrize("vendor", HOSTS.values())
def test_the_sdk_of_a_vendor_judges_its_own_host(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, vendor: str
) -> None:
    """What is equal to openai is equal to it, and what is falsified is found by both."""
    url = f"https://api{vendor}/v1/chat/completions"
    if not vendor_of(url):
        pytest.skip(f"the SDK of {vendor} is not installed here")
    cases = (FOLDER / "cases" / "openai-chat.jsonl").read_text(encoding="utf-8").split("\n")
    lines = [json.loads(line) for line in cases if line]
    for line in lines:
        line["request"]["url"] = url
    (tmp_path / "openai-chat.jsonl").write_text("\n".join(map(json.dumps, lines)))
    right = main([str(tmp_path), "--full", "--chunk-size", "7", "--json"])
    (report,) = json.loads(capsys.readouterr().out)
    wrong = main([str(tmp_path), "--chunk-size", "1", "--sabotage", "drop-a-character", "--json"])
    (falsified,) = json.loads(capsys.readouterr().out)
    found = Counter(
        outcome["id"]
        for outcome in falsified["outcomes"]
        for fault in outcome["faults"]
        if fault["what"] == "SDK object"
    )

    assert [] == [outcome for outcome in report["outcomes"] if outcome["faults"]]
    assert (0, EXPECTED["openai-chat"].equal) == (right, report["equal"])
    # Of events with names, groq reads none.
    assert (1, 2) == (wrong, found["case-text"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-folder"], "Error: no-such-folder is not a folder; name one that holds files of recorded"),
        ([CASES, "--files", "x*"], "holds no file x*"),
        ([CASES, "--every", "0"], "argument --every: '0' is no count; give 1 or more"),
        ([CASES, "--sabotage", "x"], "argument --sabotage: invalid choice: 'x'"),
        ([], "the following arguments are required: FOLDER"),
    ],
)
def test_misuse_is_told_apart(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    """Status 2, and one sentence on stderr."""
    try:
        status: object = main(arguments)
    except SystemExit as ended:
        status = ended.code
    printed = capsys.readouterr()

    assert (2, "") == (status, printed.out)
    assert message in printed.err


def test_a_file_of_something_else_is_misuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line that is no exchange is named."""
    (tmp_path / "some.jsonl").write_text('{"id": "x"}\n')

    assert 2 == main([str(tmp_path)])
    assert f"{tmp_path / 'some.jsonl'}:1 is not a recorded exchange: it has no 'request'" in (
        capsys.readouterr().err
    )


def test_a_format_without_a_judge_is_said_to_be_unjudged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no success: a run that judged nothing is misuse, and one that left some says so."""
    monkeypatch.delitem(JUDGES, "openai-chat")
    alone = main([CASES, "--every", "100", "--files", "openai-chat.jsonl"])
    complaint = capsys.readouterr().err
    together = main([CASES, "--every", "100", "--files", "o*.jsonl"])

    assert (2, 0) == (alone, together)
    formats = ", ".join(sorted(set(NAMES) - {"openai-chat"}))
    assert f"no exchange of a format that is judged ({formats}) was found" in complaint
    assert capsys.readouterr().out.splitlines()[-1] == (
        "not judged, for want of a dialect: openai-chat (1 openai-chat)"
    )


def unknown(path: str, answer: bytes, content_type: str, status: int = 200, **more: Any) -> dict[str, Any]:
    """Return an exchange of no known format."""
    request = {"method": "POST", "url": f"https://example.com/{path}", "headers": {}, "body": {"a": 1}}
    return {
        "id": path,
        "request": request | more,
        "response": {
            "status": status,
            "headers": {"content-type": content_type},
            "body_b64": base64.b64encode(answer).decode(),
        },
        "tags": ["stream"] if "event-stream" in content_type else [],
    }


JSON = "application/json"

#: Bytes that are sent, a number that has no layout, bytes, lines, events, and what is not to be stored.
UNKNOWN = [
    unknown("form", b'{"a" : 1.50}', JSON, body_b64="LS0tLQ0K", headers={"content-type": "a/b"}),
    unknown("spaced", b'{"a": 1}\n', JSON),
    unknown("speech", b"\xff\xfb" * 5000, "audio/mpeg"),
    unknown("lines", b'{"a": 1}\n{"a":2}', "application/x-jsonl", method="GET", body=None),
    unknown("stream", b'event: x\ndata: {"a": 1}\n\ndata: [DONE]\n\n', "text/event-stream"),
    unknown("failed", b"event: error\ndata: {}\n\n", "text/event-stream"),
    unknown("responses/resp_1", b'{\n "deleted": true}', JSON, method="DELETE", body=None),
    unknown("missing", b"{}", JSON, 404),
]


def run_unknown(
    folder: Path, capsys: pytest.CaptureFixture[str], transport: type[CassetteTransport] = CassetteTransport
) -> dict[str, Any]:
    """Try the exchanges of no known format, and return what was found."""
    (folder / "some.jsonl").write_text("".join(json.dumps(each) + "\n" for each in UNKNOWN))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.conformance.__main__.CassetteTransport", transport)
        status = main([str(folder), "--full", "--json"])
    (report,) = json.loads(capsys.readouterr().out)
    return {"status": status, **report}


def test_what_no_dialect_knows_comes_back_byte_for_byte(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In pieces of one size, or as events; what is deleted, and what failed, is tried as well."""
    report = run_unknown(tmp_path, capsys)

    assert [] == [outcome for outcome in report["outcomes"] if outcome["faults"]]
    assert (0, 6, {}) == (report["status"], report["equal"], report["not judged"])
    assert {"status 404": 1, "error event": 1} == report["refused for"]
    assert ["stream"] == report["stored event by event"]


class Falsifying(CassetteTransport):
    """Says another letter, in pieces of another size."""

    def handle_request(self, request: Any) -> Any:
        """Answer a request, of replays falsely."""
        answer = super().handle_request(request)
        if answer.extensions["httpx_cassette"].outcome != "replayed":
            return answer
        body = answer.read().replace(b"a", b"b").replace(b"true", b"false").replace(b"\xfb", b"\xfa")
        return http.Response(answer.status_code, headers={"x": "y"}, content=iter([body[:7], body[7:]]))


def test_other_bytes_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each exchange that is stored has its fault, with the place and what stands there."""
    report = run_unknown(tmp_path, capsys, Falsifying)
    found = {
        outcome["id"]: [fault["what"] for fault in outcome["faults"]]
        for outcome in report["outcomes"]
        if outcome["stored"]
    }

    assert 1 == report["status"]
    assert {
        "form": ["bytes", "wire chunks"],
        "spaced": ["bytes"],
        "speech": ["wire chunks", "bytes"],
        "lines": ["bytes", "wire chunks"],
        "stream": ["events", "wire chunks"],
        "responses/resp_1": ["document"],
    } == {name: sorted(set(whats), key=whats.index) for name, whats in found.items()}


#: File of recorded exchanges -> every how many of them are tried.
RECORDED = {
    "anthropic-messages": "15",
    "bedrock-converse": "14",
    "cohere-chat": "10",
    "gemini-generate": "15",
    "groq-chat": "7",
    "mistral-chat": "15",
    "ollama-chat": "3",
    "embeddings": "8",
    "openai-chat": "15",
    "openai-responses": "15",
    "other": "14",
}

#: What is stored event by event there: streams that no dialect knows.
VERBATIM = {"other": 1}


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no recorded exchanges lie at {CORPUS.name}")
@pytest.mark.parametrize(("name", "every"), RECORDED.items())
def test_recorded_exchanges_hold_the_invariants(
    capsys: pytest.CaptureFixture[str], name: str, every: str
) -> None:
    """A few of the real ones; ``nox -s conformance`` tries more, and with ``--full`` all."""
    if name == "cohere-chat" and "cohere" not in JUDGES:
        pytest.skip("cohere is not installed here")
    if name in ("bedrock-converse", "other") and "bedrock" not in JUDGES:
        pytest.skip("botocore is not installed here")
    status = main([str(CORPUS), "--files", f"{name}.jsonl", "--every", every, "--json"])
    (report,) = json.loads(capsys.readouterr().out)

    assert [] == [outcome for outcome in report["outcomes"] if outcome["faults"]]
    assert (0, VERBATIM.get(name, 0)) == (status, report["verbatim"])
    assert 10 <= report["tried"] <= 11


def test_a_next_request_that_would_miss_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key counts, also where its body is the same to the eye."""
    numbers = itertools.count()
    monkeypatch.setattr(CassetteTransport, "fingerprint", lambda transport, request: str(next(numbers)))

    assert 1 == main([CASES, "--every", "9", "--files", "openai-chat.jsonl"])
    assert "next request: keys of the same body" in capsys.readouterr().out
