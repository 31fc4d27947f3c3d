"""What a miss says, to the letter."""

from __future__ import annotations

import pickle
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._masking import mask_text
from httpx_cassette._miss import MAX_REPORT, CassetteFacts, MissFacts, command_line, compose, miss
from httpx_cassette._nearest import Candidate, nearest

URL = "https://api.openai.com/v1/chat/completions"
KEY = "9f2c41d0" * 8
PATH = "tests/cassettes/triage.jsonl"
OLD_FILE: Json = {"$sha256": "ab12" * 16, "$bytes": 52113}
NEW_FILE: Json = {"$sha256": "cd34" * 16, "$bytes": 52113}


def key_document(system: str, *contents: str, files: Json = None, **body: Json) -> Json:
    messages: list[Json] = [{"role": "system", "content": system}]
    messages += [{"role": "user", "content": text} for text in contents]
    document: dict[str, Json] = {"method": "POST", "url": URL}
    document["body"] = {"json": {"model": "gpt-4o-mini", "messages": messages, **body}}
    return {**document, "prompt_files": files} if files else document


def body_of(members: dict[str, Json]) -> Json:
    return {"body": {"json": members}}


def facts_of(asked: Json, *recorded: Json) -> MissFacts:
    """Give the facts of a miss among recordings, the last one the newest."""
    lines = [
        Candidate(f"{PATH}:{line}", line, "2026-03-02T10:00:00Z", document)
        for line, document in enumerate(recorded, 1)
    ]
    return MissFacts(
        method="POST",
        url=URL,
        dialect="openai-chat",
        model="gpt-4o-mini",
        fingerprint=KEY,
        cassettes=(CassetteFacts(PATH, len(recorded)),),
        asked=asked,
        mask=mask_text,
        nearest=nearest(asked, reversed(lines), seconds=60),
        argv=("/venv/bin/python", "-m", "pytest", "tests/test_triage.py", "-k", "a or b"),
    )


HEAD = f"""\
no recording for POST {URL} in {PATH}
  model        gpt-4o-mini
  fingerprint  {KEY} (key version 1, dialect openai-chat)
"""
TAIL = "  to record it: HTTPX_CASSETTE_MODE=record python -m pytest tests/test_triage.py -k 'a or b'"


def test_a_mode_given_in_the_code_is_named() -> None:
    """The variable does not override an argument, so the advice is to change the argument."""
    facts = replace(facts_of(key_document("You are kind.", "Hi")), is_mode_given=True)

    assert (
        "  to record it: mode='record' in place of the mode='replay' that the code gives, "
        "or give none there and: HTTPX_CASSETTE_MODE=record python -m pytest tests/test_triage.py -k 'a or b'"
    ) == compose(facts).splitlines()[-1]


@pytest.mark.parametrize(
    "argv",
    [
        (
            "-B",
            "-c",
            "from multiprocessing.spawn import spawn_main; spawn_main(5)",
            "--multiprocessing-fork",
        ),
        ("-s", "-c", "from multiprocessing.forkserver import main; main(7, 9, ['__main__'])"),
        ("-u", "-c", "import sys;exec(eval(sys.stdin.readline()))"),
        ("-W", "error", "-m", "joblib.externals.loky.backend.popen_loky_posix", "--process-name", "a"),
    ],
    ids=["spawn", "forkserver", "execnet", "loky"],
)
def test_a_worker_is_not_started_by_hand(argv: tuple[str, ...]) -> None:
    """What can be started again is the program that started the worker."""
    facts = replace(facts_of({}), argv=("/v/bin/python", *argv))

    assert (
        "  to record it: set HTTPX_CASSETTE_MODE=record for the program that started this process"
        == compose(facts).splitlines()[-1]
    )
    assert (
        "or give none there and: set HTTPX_CASSETTE_MODE=record for the program that started this process"
    ) in compose(replace(facts, is_mode_given=True)).splitlines()[-1]


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (("python", "app.py"), "python app.py"),
        (("python", "-c", "from multiprocessing.spawn import spawn_main"), "COMMAND"),
    ],
    ids=["program", "worker"],
)
@pytest.mark.parametrize("is_mode_given", [True, False])
def test_a_call_that_may_not_be_made_says_why(
    argv: tuple[str, ...], command: str, is_mode_given: bool
) -> None:
    """The mode would have made it, so the advice is not to change the mode."""
    refused = replace(facts_of({}), argv=argv, refusal="not on the list", is_mode_given=is_mode_given)

    assert (
        HEAD + "  refused      not on the list\n"
        f"  cassette     {PATH}: 0 recordings\n"
        "  nearest      none: there is no recording to compare with\n"
        f"  to record it: have a run miss it first: httpx-cassette run --misses FILE -- {command}"
    ) == compose(refused)


def test_one_text_was_changed() -> None:
    """A short text is shown inline."""
    facts = facts_of(
        key_document("You are a terse assistant.", "Hi"),
        key_document("You answer in French.", "Hi"),
        key_document("You are a helpful assistant.", "Hi"),
    )

    assert f"""\
{HEAD}\
  cassette     {PATH}: 2 recordings
  nearest      {PATH}:2, recorded 2026-03-02T10:00:00Z: 1 of 7 fields differs
    messages[0].content   "You are a helpful assistant." -> "You are a terse assistant."
{TAIL}""" == compose(facts)


def test_everything_at_once() -> None:
    """Diffs, files, members and hints stand in one report, in order."""
    facts = facts_of(
        key_document(
            "You triage.\nToday is 2026-03-05.\nBe brief.",
            "Hi",
            files={"prompts/system.md": NEW_FILE},
            url="x",
            metadata={"run_id": "b"},
            tools=[{"type": "function"}],
        ),
        key_document(
            "You triage.\nToday is 2026-03-02.\nBe brief.",
            "Hi",
            files={"prompts/system.md": OLD_FILE},
            metadata={"run_id": "a"},
            stop=None,
        ),
    )
    facts = replace(
        facts,
        model=None,
        cassettes=(
            CassetteFacts("seed.jsonl", None),
            CassetteFacts(PATH, 1, (3,), {2: 1, 0: 12}, 1),
            CassetteFacts("big.jsonl", 1234, tuple(range(1, 15)), {}, 2),
        ),
        notes=("a multiprocessing.Pool waits for ever for a worker that missed",),
    )

    assert f"""\
no recording for POST {URL} in 3 cassettes
  fingerprint  {KEY} (key version 1, dialect openai-chat)
  cassette     seed.jsonl: does not exist
  cassette     {PATH}: 1 recording; damaged line 3; 12 lines of key version 0; 1 line of key version 2; \
1 recording under another key policy
  cassette     big.jsonl: 1,234 recordings; damaged lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 4 more; \
2 recordings under another key policy
  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: 6 of 10 fields differ
    messages[0].content
      @@ -1,3 +1,3 @@
       You triage.
      -Today is 2026-03-02.
      +Today is 2026-03-05.
       Be brief.
    metadata.run_id   "a" -> "b"
    stop   null -> (absent)
    body.json.url   (absent) -> "x"
    tools   (absent) -> [{{"type": "function"}}]
    prompt_files["prompts/system.md"]   its bytes changed: \
52,113 bytes, sha256 ab12ab12ab12.. -> 52,113 bytes, sha256 cd34cd34cd34..
{TAIL}
  to leave 2 of these 6 differences out of the key, and record once more: \
key_policy=KeyPolicy(ignore=("metadata.run_id",), masks=("date",))
  a multiprocessing.Pool waits for ever for a worker that missed""" == compose(facts)


def test_only_the_date_moved() -> None:
    """A difference that one option takes away comes with that option."""
    facts = facts_of(key_document("It is 2026-03-05.", "Hi"), key_document("It is 2026-03-02.", "Hi"))

    assert f"""\
{HEAD}\
  cassette     {PATH}: 1 recording
  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: 1 of 7 fields differs
    messages[0].content   "It is 2026-03-02." -> "It is 2026-03-05."
{TAIL}
  to leave it out of the key, and record once more: key_policy=KeyPolicy(masks=("date",))""" == compose(facts)


def test_only_a_final_newline_was_added() -> None:
    """A difference that cannot be seen is put into words."""
    facts = facts_of(key_document("Be brief.\n", "Hi"), key_document("Be brief.", "Hi"))

    assert f"""\
{HEAD}\
  cassette     {PATH}: 1 recording
  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: 1 of 7 fields differs
    messages[0].content   differs only in the final newline, which only this call has
{TAIL}""" == compose(facts)


def test_the_cassette_does_not_exist() -> None:
    """Without a file there is nothing to compare with, and the report says so."""
    facts = replace(facts_of({}), cassettes=(CassetteFacts(PATH, None),), argv=())

    assert f"""\
{HEAD}\
  cassette     {PATH}: does not exist
  nearest      none: there is no recording to compare with
  to record it: HTTPX_CASSETTE_MODE=record <this command>""" == compose(facts)


def test_a_relative_path_says_where_it_was_looked_for() -> None:
    """A program is run from another folder than the one it was written for."""
    facts = replace(facts_of({}), cassettes=(CassetteFacts(PATH, None, folder="/src\n/app/tests/cassettes"),))

    assert (
        f"  cassette     {PATH}: does not exist (looked in /src\\n/app/tests/cassettes)"
        == compose(facts).splitlines()[3]
    )


def test_a_cassette_that_cannot_be_written_is_not_to_be_recorded() -> None:
    """The last one is written; whether the others could be is not asked."""
    locked = CassetteFacts(PATH, 2, is_writable=False)
    seed = CassetteFacts("seed.jsonl", 2)

    assert (
        f"  to record it: {PATH} cannot be written: make it writable, or list another after it, and: "
        "HTTPX_CASSETTE_MODE=record python -m pytest tests/test_triage.py -k 'a or b'"
    ) == compose(replace(facts_of({}), cassettes=(seed, locked))).splitlines()[-1]
    assert TAIL == compose(replace(facts_of({}), cassettes=(locked, seed))).splitlines()[-1]


def test_no_cassette_at_all() -> None:
    """Two cassettes are both named in the first line, and none is said to be none."""
    two = (CassetteFacts("a.jsonl", 0), CassetteFacts("b.jsonl", 0))

    assert (
        f"no recording for POST {URL} in any cassette"
        == compose(replace(facts_of({}), cassettes=())).split("\n")[0]
    )
    assert (
        f"no recording for POST {URL} in a.jsonl and b.jsonl"
        == compose(replace(facts_of({}), cassettes=two)).split("\n")[0]
    )


def test_another_policy_or_version() -> None:
    """A recording of the same request explains why it is not the same key."""
    facts = facts_of(key_document("s"), key_document("s"))

    assert f"""\
{HEAD}\
  cassette     {PATH}: 1 recording
  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: \
the same request, keyed under another policy or key version; record once more under this one
{TAIL}""" == compose(facts)


def test_many_differences_are_counted() -> None:
    """After twenty differences the rest is a number."""
    asked, recorded = (body_of({f"m{k:02}": k + n for k in range(27)}) for n in (0, 1))
    lines = "\n".join(f"    m{k:02}   {k + 1} -> {k}" for k in range(20))

    assert f"""\
{HEAD}\
  cassette     {PATH}: 1 recording
  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: 27 of 27 fields differ
{lines}
    ... and 7 more
{TAIL}""" == compose(facts_of(asked, recorded))


def test_a_partial_search_says_so() -> None:
    """When time ran out, the report says how many recordings it speaks of."""
    facts = facts_of({"a": 1, "b": 2}, 1)
    assert facts.nearest is not None
    facts = replace(facts, nearest=replace(facts.nearest, is_partial=True, looked_at=12345))

    assert f"""\
{HEAD}\
  cassette     {PATH}: 1 recording
  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: 1 of 1 field differs
               of the newest 12,345 recordings: looking at more takes too long
    (all of it)   1 -> {{"a": 1, "b": 2}}
{TAIL}""" == compose(facts)


def test_more_differences_than_fields() -> None:
    """Against a small recording the differences are counted on their own."""
    assert (
        f"  nearest      {PATH}:1, recorded 2026-03-02T10:00:00Z: 3 differences"
        == (compose(facts_of({"a": 1, "b": 2, "c": 3}, {})).split("\n")[4])
    )


HOSTILE = "\x1b[2J\u202e\ud800\n\x85" * 200


def test_a_hostile_call_is_escaped() -> None:
    """Whatever a call or a cassette holds, a terminal sees printable text only."""
    facts = MissFacts(
        method="GET\r",
        url="https://x/\u202e",
        dialect="generic\0",
        model="m\x1b[31m",
        fingerprint="f",
        cassettes=(CassetteFacts("a\nb.jsonl", 1),),
        asked={"body": {"json": {"x\u2066": "\ud800"}}},
        mask=mask_text,
        nearest=nearest(
            {"body": {"json": {"x\u2066": "\ud800"}}},
            [Candidate("a\nb.jsonl:1", 1, "\x9b", {"body": {"json": {}}})],
        ),
        argv=("app\x1b.py",),
        notes=("note\u200b",),
    )

    assert r"""no recording for GET\r https://x/\u202e in a\nb.jsonl
  model        m\u001b[31m
  fingerprint  f (key version 1, dialect generic\u0000)
  cassette     a\nb.jsonl: 1 recording
  nearest      a\nb.jsonl:1, recorded \u009b: 1 of 1 field differs
    ["x\u2066"]   (absent) -> "\ud800"
  to record it: HTTPX_CASSETTE_MODE=record <this command>
  note\u200b""" == compose(facts)


texts = st.text(max_size=40) | st.sampled_from([HOSTILE, "漢" * 3000, "\U000e0041" * 3000, "a\n" * 3000])
bodies = st.dictionaries(texts, texts | st.integers() | st.lists(texts, max_size=3), max_size=30)


@given(texts, texts, bodies, bodies, st.lists(texts, max_size=12), st.booleans())
def test_the_report_is_bounded(
    url: str, path: str, old: Json, new: Json, more: list[str], is_there: bool
) -> None:
    """No call and no cassette makes the report longer than its limit, or any line of it unprintable."""
    asked: Json = {"body": {"json": new}}
    facts = MissFacts(
        url,
        url,
        url,
        url,
        url,
        tuple(
            CassetteFacts(
                name,
                3 if is_there else None,
                tuple(range(99)),
                dict.fromkeys(range(99), 1),
                folder=name,
                is_writable=False,
            )
            for name in [path, *more]
        ),
        asked,
        mask_text,
        nearest(asked, [Candidate(path, 1, path, {"body": {"json": old}})]),
        tuple(more),
        notes=tuple(more),
    )
    report = compose(facts)

    assert len(report.encode()) <= MAX_REPORT
    assert all(line.isprintable() for line in report.split("\n"))


def test_the_longest_report_is_bounded() -> None:
    """Everything in it has the length at which it is cut."""
    wide = "漢" * 500
    facts = replace(
        facts_of(key_document(f"{wide} on 2026-03-05"), key_document(f"{wide} on 2026-03-02")),
        method=wide,
        url=wide,
        dialect=wide,
        model=wide,
        cassettes=tuple([CassetteFacts(wide, None, folder=wide, is_writable=False)] * 9),
        argv=("a.py", *["x"] * 400),
        is_mode_given=True,
        notes=(wide,) * 5,
    )

    assert len(compose(facts).encode()) <= MAX_REPORT


def test_a_report_that_is_full_counts_the_rest() -> None:
    """Differences that do not fit are counted, and what to do still stands at the end."""
    wide = {f"m{k:02}": "\n".join(f"漢字漢字{k}{j}" * 30 for j in range(20)) for k in range(18)}
    other = {name: text.replace("字", "語") for name, text in wide.items()}
    report = compose(facts_of({"body": {"json": dict(wide)}}, {"body": {"json": dict(other)}}))
    lines = report.split("\n")
    shown = sum(line.startswith("    m") for line in lines)

    assert 0 < shown < 18
    assert [f"    ... and {18 - shown} more", TAIL] == lines[-2:]
    assert MAX_REPORT - 5000 < len(report.encode()) <= MAX_REPORT


def test_a_hint_that_is_too_long_is_left_out() -> None:
    """An option that nobody would paste is not printed."""
    asked, recorded = (key_document("s", metadata={f"member{k:03}": n for k in range(99)}) for n in (1, 2))

    assert TAIL == compose(facts_of(asked, recorded)).split("\n")[-1]


def test_huge_requests_are_reported_in_bounded_time() -> None:
    """10,000 messages and a megabyte of text are compared and shown within seconds."""
    old = key_document("x\u202e\n" * 300_000, *(f"turn {k} on 2026-03-02" for k in range(10_000)))
    new = key_document("x\u202e\n" * 300_000 + "!", *(f"turn {k} on 2026-03-05" for k in range(10_000)))
    started = time.perf_counter()
    report = compose(facts_of(new, old))

    assert time.perf_counter() - started < 90
    assert len(report) < MAX_REPORT


def test_the_error_carries_its_facts() -> None:
    """A miss has its facts as attributes, and survives pickling."""
    facts = facts_of(key_document("s", "new"), key_document("s", "old"))
    error = pickle.loads(pickle.dumps(miss(facts)))

    assert compose(facts) == str(error)
    assert {
        "fingerprint": KEY,
        "cassettes": (PATH,),
        "method": "POST",
        "url": URL,
        "dialect": "openai-chat",
        "model": "gpt-4o-mini",
        "changed": ("messages[1].content",),
        "nearest": f"{PATH}:1",
        "words": "",
    } == error.facts
    assert error.facts["changed"] == error.changed


def test_the_error_without_a_recording() -> None:
    """Without anything to compare with, nothing is nearest and nothing has changed."""
    error = miss(facts_of({}))

    assert ((), None) == (error.changed, error.nearest)


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ((), "<this command>"),
        (("",), "<this command>"),
        (("-c",), "<this command>"),
        (("-m", "x"), "<this command>"),
        (("app.py", "--name", "a b"), "python app.py --name 'a b'"),
        (("/v/bin/pytest", "-x"), "pytest -x"),
        (("/v/lib/site-packages/pytest/__main__.py", "-x"), "python -m pytest -x"),
        (("/src/app/__main__.py", "-x"), "python -m app -x"),
        (("/v/Scripts/pytest.exe", "-x"), "pytest -x"),
        # Not shortened: only so does the working folder stand in front of the import path.
        (("/v/bin/python3.12", "-m", "pytest", "-x"), "python3.12 -m pytest -x"),
        (("/v/bin/python", "/v/bin/pytest", "-x"), "pytest -x"),
        (("/v/bin/python", "/v/bin/serve", "-x"), "serve -x"),
        (("/v/bin/python", "-m", "app", "$HOME"), "python -m app '$HOME'"),
        (("python3", "-c", "print(1)"), "python3 -c 'print(1)'"),
        (("python3", "bot.py"), "python3 bot.py"),
        (("python3",), "python3"),
        (("app.py", "a\nb"), "<this command>"),
        (("app.py", "\ud800"), "<this command>"),
        (("app.py", "x" * 2000), "<this command>"),
    ],
)
def test_the_command_is_what_a_person_types(argv: tuple[str, ...], expected: str) -> None:
    """The command line can be pasted, or is not shown."""
    assert expected == command_line(argv)
