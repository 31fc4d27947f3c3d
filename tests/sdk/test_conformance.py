"""The conformance run passes what is right, fails what is not, and says what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main
from tests.conformance._sabotage import SABOTAGES

FOLDER = Path(__file__).parents[1] / "conformance"
CASES = str(FOLDER / "cases")
CORPUS = FOLDER.parents[1].parent / "shared" / "corpus"


#: File of cases -> tried, equal, and why the others are not stored.
EXPECTED: dict[str, tuple[int, int, dict[str, int]]] = {
    "openai-chat": (
        49,
        42,
        {"error event": 3, "error in a success": 1, "status 429": 1, "truncated": 2},
    ),
    "openai-responses": (
        49,
        41,
        {"error event": 3, "error in a success": 2, "status 429": 1, "truncated": 2},
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_cases_hold_the_invariants(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """Every stream is assembled and equal, and what must not be stored is not stored."""
    status = main([CASES, "--full", "--json", "--files", f"{name}.jsonl"])
    (report,) = json.loads(capsys.readouterr().out)
    tried, equal, refused = EXPECTED[name]

    assert [] == [outcome for outcome in report["outcomes"] if outcome["faults"]]
    assert (0, tried, equal, 0) == (status, report["tried"], report["equal"], report["verbatim"])
    assert refused == report["refused for"]
    assert ["obfuscation"] == list(report["not kept"])
    assert report["events stored"] < report["events received"]


def test_every_file_of_cases_is_tried() -> None:
    """A new one must be entered above."""
    assert sorted(EXPECTED) == sorted(path.stem for path in Path(CASES).glob("*.jsonl"))


#: File of cases -> every how many of them are enough to be found out.
EVERY = {"openai-chat": "2", "openai-responses": "9"}

#: File of cases -> sabotage -> the first path that differs in what the SDK makes of it.
FALSIFIED = {
    "openai-chat": {
        "drop-a-character": "choices[0].message.content",
        "swap-two-deltas": "choices[0].message.content",
        "repeat-a-tool-id": "choices[0].message.tool_calls[0].id",
        "drop-the-usage": "usage",
    },
    "openai-responses": {
        "drop-a-character": "said.response.output_text.delta 0 0.text",
        "swap-two-deltas": "said.response.output_text.delta 0 0.text",
        "repeat-a-tool-id": "said.response.function_call_arguments.delta 0.members[0]",
        "drop-the-usage": "answer.usage",
    },
}


# By the table of the run itself: a new sabotage must be entered above.
@pytest.mark.parametrize("sabotage", SABOTAGES)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_falsified_replay_is_found(capsys: pytest.CaptureFixture[str], name: str, sabotage: str) -> None:
    """Each sabotage ends the run with 1, and the exchange, the chunk size and the path are named."""
    status = main([CASES, "--every", EVERY[name], "--sabotage", sabotage, "--files", f"{name}.jsonl"])
    lines = capsys.readouterr().out.splitlines()
    found = [
        line
        for line in lines
        if "SDK object at chunk size 1" in line and f": {FALSIFIED[name][sabotage]}: " in line
    ]

    assert 1 == status
    assert found
    assert all(line.strip().startswith("case-") for line in found)


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
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is no success: a run that judged nothing is misuse, and one that left some says so."""
    line, *_ = (FOLDER / "cases" / "openai-chat.jsonl").read_text(encoding="utf-8").splitlines()
    other = json.loads(line)
    other["request"]["url"] = "https://example.com/other"
    (tmp_path / "other.jsonl").write_text(json.dumps(other) + "\n")
    alone = main([str(tmp_path)])
    complaint = capsys.readouterr().err
    together = main([str(tmp_path), CASES, "--every", "100"])

    assert (2, 0) == (alone, together)
    assert "no exchange of a format that is judged (openai-chat, openai-responses) was found" in complaint
    assert capsys.readouterr().out.splitlines()[-1] == (
        "not judged, for want of a dialect: other (1 generic)"
    )


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no recorded exchanges lie at {CORPUS.name}")
@pytest.mark.parametrize("name", EXPECTED)
def test_recorded_exchanges_hold_the_invariants(capsys: pytest.CaptureFixture[str], name: str) -> None:
    """A few of the real ones; ``nox -s conformance`` tries more, and with ``--full`` all."""
    status = main([str(CORPUS), "--files", f"{name}.jsonl", "--every", "15", "--json"])
    (report,) = json.loads(capsys.readouterr().out)

    assert [] == [outcome for outcome in report["outcomes"] if outcome["faults"]]
    assert (0, 10, 0) == (status, report["tried"], report["verbatim"])
