"""Which recording is nearest, and what finding it costs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from httpx_cassette._call import Json
from httpx_cassette._nearest import Candidate, nearest, nearest_few

URL = "https://api.openai.com/v1/chat/completions"


def document(*contents: str, url: str = URL, **body: Json) -> Json:
    roles = ["system", *["user", "assistant"] * len(contents)]
    messages: list[Json] = [{"role": roles[k], "content": text} for k, text in enumerate(contents)]
    return {"method": "POST", "url": url, "body": {"json": {"model": "m", "messages": messages, **body}}}


def candidates(*documents: Json) -> Iterator[Candidate]:
    """Give the documents as recordings, the first one as the newest."""
    for number, each in enumerate(documents):
        line = len(documents) - number
        yield Candidate(f"c.jsonl:{line}", line, "2026-03-02T10:00:00Z", each)


LONG = " ".join(f"word{k}" for k in range(200))
OTHER = " ".join(f"term{k}" for k in range(200))

# Name: what is asked, the recordings newest first, the number of the nearest one.
CASES: dict[str, tuple[Json, list[Json], int]] = {
    "only-one": (document("s", "u"), [document("x")], 0),
    "newest-of-equals": (document("s", "u"), [document("s", "v"), document("s", "w")], 0),
    "same-endpoint-first": (
        document("s", "u"),
        [document("s", "u", url="https://api.openai.com/v1/other"), document("a", "b", temperature=0)],
        1,
    ),
    "same-path-on-another-host-next": (
        document("s", "u"),
        [
            document("s", "u", url="https://x.com/v2"),
            document("a", "b", url="http://localhost:1/v1/chat/completions"),
        ],
        1,
    ),
    "fewest-fields": (document("s", "u"), [document("s", "v", user="x"), document("s", "w")], 1),
    "fewest-members": (
        document("s", "u", metadata={"a": 1, "b": 2}),
        [document("s", "u", metadata={"a": 0, "b": 0}), document("s", "u", metadata={"a": 1, "b": 0})],
        1,
    ),
    "a-change-of-model-is-nearer-than-another-prompt": (
        document("s", LONG, model="new"),
        [document("s", OTHER, model="new"), document("s", LONG, model="old")],
        1,
    ),
    "nearest-text": (document("s", LONG), [document("s", OTHER), document("s", LONG + "!")], 1),
    "edited-at-both-ends": (
        document("s", f"a{LONG}b"),
        [document("s", OTHER), document("s", f"c{LONG}d")],
        1,
    ),
    "edited-in-two-messages": (
        document(f"1 {LONG}", f"2 {OTHER}"),
        [document(OTHER, LONG), document(f"3 {LONG}", f"4 {OTHER}")],
        1,
    ),
    "earlier-turn-of-the-conversation": (
        document("s", "u", "a", "v", "b", "w"),
        [document("t", "x", "y", "z", "1", "2"), document("s", "u", "a", "v")],
        1,
    ),
    "inserted-in-the-middle": (
        document("s", "new", "one", "u", "a"),
        [document("s", "x", "y", "z", "w"), document("s", "u", "a")],
        1,
    ),
    "absent-members": (
        document("s", "u"),
        [document("s", "u", tools=[{}, {}]), document("s", "u", stop="x")],
        1,
    ),
    "no-integer-of-64-bits": (
        document("s", "u", seed=2**70),
        [document("s", "v"), document("s", "u", seed=2**71)],
        1,
    ),
    "lone-surrogates": (document("s", "\ud800"), [document("s", "x" * 99), document("s", "\ud801")], 1),
    "another-kind-of-body": (
        {"method": "POST", "url": URL, "body": {"text": "a"}},
        [document("s"), {"method": "POST", "url": URL, "body": {"text": "b"}}],
        1,
    ),
    "another-kind-of-body-recorded": (
        document("s", "u"),
        [{"method": "GET", "url": URL}, document("s", "v")],
        1,
    ),
    "no-object": (1, [[], 2], 0),
}


@pytest.mark.parametrize(("asked", "recorded", "expected"), CASES.values(), ids=CASES)
def test_the_nearest_recording(asked: Json, recorded: list[Json], expected: int) -> None:
    """The recording is chosen by endpoint, then fields, then text, then age, whatever stands before it."""
    found = nearest(asked, candidates(*recorded), seconds=60)

    assert found is not None
    assert recorded[expected] is found.candidate.document
    assert (len(recorded), False) == (found.looked_at, found.is_partial)


def test_no_recordings() -> None:
    """Without recordings nothing is nearest."""
    assert nearest({}, []) is None


def test_the_better_ones_are_kept_among_many() -> None:
    """A near recording is found before, between and after hundreds of worse ones."""
    rng = random.Random(1)
    near = document("s", LONG.replace("word7 ", "word "))
    worse = [
        document("s", OTHER[rng.randrange(900) :], **({"user": "x"} if k % 3 else {})) for k in range(300)
    ]
    longer = [document("s", *[f"{k}"] * (k % 90)) for k in range(300)]
    for place in (0, 150, 300):
        found = nearest(
            document("s", LONG), candidates(*worse[:place], near, *worse[place:], *longer), seconds=60
        )

        assert found is not None
        assert near is found.candidate.document


def test_recordings_that_get_better_and_better() -> None:
    """The last of many is found when each shares more of the conversation than the one before."""
    turns = [f"turn {k}" for k in range(100)]
    found = nearest(document(*turns), candidates(*(document(*turns[:k]) for k in range(100))), seconds=60)

    assert found is not None
    assert found.candidate.line == 1
    assert [change.path for change in found.changes] == ["body.json.messages[99]"]


def test_time_is_bounded() -> None:
    """When time is up, the best so far is given and said to be partial; one is always looked at."""
    ticks = iter(range(100))
    found = nearest(
        document("s", "u"),
        candidates(*(document("s", f"{k}") for k in range(10))),
        seconds=3,
        clock=lambda: float(next(ticks)),
    )

    assert found is not None
    assert (3, True) == (found.looked_at, found.is_partial)
    assert found.candidate.line == 10


def test_the_last_recording_is_not_left_out() -> None:
    """A budget that ends with the last recording has left nothing out."""
    found = nearest(document("s"), candidates(document("t")), seconds=0)

    assert found is not None
    assert (1, False) == (found.looked_at, found.is_partial)


def test_a_hundred_thousand_recordings() -> None:
    """Among 100,000 recordings of 2 KB the nearest is found within the budget, or the answer says not."""
    rng = random.Random(7)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(2000)]
    system = " ".join(rng.choices(words, k=60))
    pool = [document(system, " ".join(rng.choices(words, k=250)), temperature=0.2) for _ in range(5000)]
    seeded = " ".join(rng.choices(words, k=250))
    lazily = (
        Candidate(f"c.jsonl:{k}", k, "", document(system, seeded) if k == 60_000 else pool[k % 5000])
        for k in range(100_000, 0, -1)
    )
    started = time.perf_counter()
    found = nearest(document(system, seeded + " today"), lazily, seconds=1)
    took = time.perf_counter() - started

    assert found is not None
    assert found.is_partial or found.looked_at == 100_000
    assert found.candidate.line == 60_000 or found.looked_at <= 40_000
    assert took < 60


def test_huge_recordings_are_bounded() -> None:
    """Conversations of 10,000 messages and texts of a megabyte end near the budget."""
    asked = document(*(f"turn {k}" for k in range(10_000)), big="x\u202e" * 500_000)
    started = time.perf_counter()
    found = nearest(
        asked, candidates(*(document(*(f"t {k} {n}" for k in range(10_000))) for n in range(20))), seconds=0.2
    )

    assert found is not None
    assert time.perf_counter() - started < 60


def test_several_are_ranked_by_how_near_they_are() -> None:
    """The nearest first, as many as were asked for, each with what differs."""
    documents: list[Json] = [{"a": 1, "b": 2, "c": 9}, {"a": 1, "b": 2, "c": 3}, {"a": 8, "b": 9, "c": 9}]
    candidates = [Candidate(f"a:{line}", line, "", document) for line, document in enumerate(documents)]
    found = nearest_few({"a": 1, "b": 2, "c": 4}, candidates, 2)

    assert [(0, ["c"]), (1, ["c"])] == [
        (each.candidate.line, [change.path for change in each.changes]) for each in found
    ]
    assert [] == nearest_few({}, [], 2)
