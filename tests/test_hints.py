"""Which differences come with an option that makes them go away."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from httpx_cassette._call import Json
from httpx_cassette._difference import differences
from httpx_cassette._hints import Masks, body_path, hint
from httpx_cassette._masking import Masker
from httpx_cassette._policy import KeyPolicy
from httpx_cassette._rules import remove_places

PATTERNS = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d(?::\d\d)?",
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "path": r"/tmp/\S+",
    "port": r"(?<=localhost:)\d+",
}

ONE, TWO = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def mask(name: str, text: str) -> str:
    """Mask as the key does: what says when is one, what refers to something is numbered."""
    seen: dict[str, int] = {}

    def placeholder(found: re.Match[str]) -> str:
        number = "" if name in ("date", "time") else f":{seen.setdefault(found[0], len(seen) + 1)}"
        return f"<{name}{number}>"

    return re.sub(PATTERNS[name], placeholder, text)


def asking(*contents: str, **body: Json) -> Json:
    messages: list[Json] = [{"role": "user", "content": text} for text in contents]
    return {"method": "POST", "url": "https://h/v1", "body": {"json": {"messages": messages, **body}}}


def at(url: str) -> Json:
    return {"method": "POST", "url": url}


# Name: what is recorded, what is asked, the option.
CASES: dict[str, tuple[Json, Json, str | None]] = {
    "nothing": (asking("a"), asking("b"), None),
    "date": (asking("on 2026-03-02."), asking("on 2026-03-05."), 'masks=("date",)'),
    "date-and-time": (
        asking("2026-03-02 10:00"),
        asking("2026-03-05 11:30"),
        'masks=("date", "time")',
    ),
    "date-in-words-that-changed-too": (asking("on 2026-03-02."), asking("at 2026-03-05."), None),
    "a-date-that-is-the-same": (asking("2026-03-02 old"), asking("2026-03-02 new"), None),
    "uuid": (asking(f"id {ONE}"), asking(f"id {TWO}"), 'masks=("uuid",)'),
    "uuid-replaced-everywhere": (asking(ONE, f"again {ONE}"), asking(TWO, f"again {TWO}"), 'masks=("uuid",)'),
    "uuid-replaced-in-one-place": (asking(ONE, f"again {ONE}"), asking(ONE, f"again {TWO}"), None),
    "date-beside-a-uuid-replaced-in-one-place": (
        asking("2026-03-02", ONE, f"again {ONE}"),
        asking("2026-03-05", ONE, f"again {TWO}"),
        'masks=("date",)',
    ),
    "uuid-beside-an-inserted-message": (
        asking(f"id {ONE}"),
        asking(f"id {TWO}", "more"),
        'masks=("uuid",)',
    ),
    "uuid-beside-another-change": (
        asking(f"id {ONE}", stop=["a"]),
        asking(f"id {TWO}", stop=["b"]),
        'masks=("uuid",)',
    ),
    "path": (asking("see /tmp/a1/x"), asking("see /tmp/b2/x"), 'masks=("path",)'),
    "port": (asking("localhost:8001/x"), asking("localhost:9002/x"), 'masks=("port",)'),
    "random-id": (
        asking("run_1f9c2b7a00 ends"),
        asking("run_8e7d6c5b4a ends"),
        'masks={"random_id": "(?<![0-9A-Za-z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,64}(?![0-9A-Za-z])"}',
    ),
    "random-id-and-date": (
        asking("2026-03-02 run 1f9c2b7a00"),
        asking("2026-03-05 run 8e7d6c5b4a"),
        'masks={"date": None, '
        '"random_id": "(?<![0-9A-Za-z])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,64}(?![0-9A-Za-z])"}',
    ),
    "another-redacted-secret": (
        asking("<redacted:openai-key:0123456789abcdef>"),
        asking("<redacted:openai-key:fedcba9876543210>"),
        None,
    ),
    "timestamp": (
        asking("at 1772445600 sharp"),
        asking("at 1772704800 sharp"),
        'masks={"timestamp": "(?<![0-9A-Za-z])[12][0-9]{9}(?:[0-9]{3})?(?![0-9A-Za-z])"}',
    ),
    "run-id": (
        asking("a", metadata={"run_id": "x"}),
        asking("a", metadata={"run_id": "y"}),
        'ignore=("metadata.run_id",)',
    ),
    "metadata-added": (asking("a"), asking("a", metadata={"run_id": "y"}), 'ignore=("metadata",)'),
    "user-removed": (asking("a", user="x"), asking("a"), 'ignore=("user",)'),
    "odd-name": (
        asking("a", metadata={'a "b" \\': 1}),
        asking("a", metadata={'a "b" \\': 2}),
        r'ignore=("metadata[\"a \\\"b\\\" \\\\\"]",)',
    ),
    "several": (
        asking("on 2026-03-02", user="x", metadata={"a": 1}),
        asking("on 2026-03-05", user="y", metadata={"a": 2}),
        'ignore=("user", "metadata.a"), masks=("date",)',
    ),
    "random-member": (asking("a", nonce="1f9c2b7a00"), asking("a", nonce=1772704800), 'ignore=("nonce",)'),
    "random-member-of-every-item": (
        asking("a", items=[{"ref": 1772445600}]),
        asking("a", items=[{"ref": 1772704800.5}]),
        'ignore=("items[*].ref",)',
    ),
    "a-number": (asking("a", n=1), asking("a", n=2), None),
    "content-is-never-ignored": (asking("a", input="1f9c2b7a00"), asking("a", input=1772704800), None),
    "items-are-never-ignored": (asking("a", ids=[1772445600]), asking("a", ids=[1772704800]), None),
    "schemas-are-never-ignored": (
        asking("a", tools=[{"properties": {"x": 1772445600}}]),
        asking("a", tools=[{"properties": {"x": 1772704800}}]),
        None,
    ),
    "port-of-the-url": (at("http://localhost:8001/v1?a=1"), at("http://127.0.0.1:9/v1?a=1"), "host=False"),
    "path-of-the-url": (at("http://localhost:8001/v1"), at("http://localhost:8001/v2"), None),
    "no-url": (at("http://localhost:8001/v1"), {"method": "POST"}, None),
    "text-body": (
        {"body": {"text": "2026-03-02"}},
        {"body": {"text": "2026-03-05"}},
        None,
    ),
    "prompt-file": (
        {"prompt_files": {"a.md": {"$sha256": "a" * 64, "$bytes": 1}}},
        {"prompt_files": {"a.md": {"$sha256": "b" * 64, "$bytes": 1}}},
        None,
    ),
    "too-long": (asking("2026-03-02" + "x" * 200_000), asking("2026-03-05" + "x" * 200_000), None),
    "too-much": (
        asking(f"id {ONE}", *["x" * 100_000] * 21),
        asking(f"id {TWO}", *["x" * 100_000] * 21),
        None,
    ),
}


@pytest.mark.parametrize(("recorded", "asked", "expected"), CASES.values(), ids=CASES)
def test_a_volatile_difference_comes_with_its_option(
    recorded: Json, asked: Json, expected: str | None
) -> None:
    """The option is exact and ready to paste; without one that works there is no hint."""
    found = hint(differences(recorded, asked), mask, documents=(recorded, asked))

    assert (f"key_policy=KeyPolicy({expected})" if expected else None) == (found and found.option)


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        pytest.param(case[0], case[1], id=name)
        for name, case in CASES.items()
        if case[2] and "host" not in case[2] and "beside" not in name
    ],
)
def test_the_option_makes_both_sides_equal(recorded: Any, asked: Any) -> None:
    """Pasted as it stands, the option makes the recording and the call one."""
    found = hint(differences(recorded, asked), mask, documents=(recorded, asked))
    assert found is not None
    policy = eval(found.option.removeprefix("key_policy="), {"KeyPolicy": KeyPolicy})
    sides = []
    # The rules work in place.
    for document in copy.deepcopy((recorded, asked)):
        body = document["body"]["json"]
        remove_places(body, policy.ignore_paths)
        sides.append(Masker(policy.mask_patterns).document(body))

    assert sides[0] == sides[1]


@pytest.mark.parametrize(
    ("masks", "expected"),
    [
        ((), '("date",)'),
        ("uuid", '("uuid", "date")'),
        (("uuid", "date"), '("uuid", "date")'),
        ({"uuid": None}, '("uuid", "date")'),
        ({"run": r"run-\d+"}, r'{"run": "run-\\d+", "date": None}'),
    ],
    ids=["none", "one-name", "names", "mapping", "own-pattern"],
)
def test_what_is_in_force_is_kept(masks: Masks, expected: str) -> None:
    """A hint replaces the policy in force, so it says that again."""
    changes = differences(asking("on 2026-03-02", user="x"), asking("on 2026-03-05", user="y"))
    found = hint(changes, mask, ignore=("seed",), masks=masks)

    assert found is not None
    assert f'key_policy=KeyPolicy(ignore=("seed", "user"), masks={expected})' == found.option


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("body.json.messages[0].content", "messages[0].content"),
        ("body.json[0]", "[0]"),
        ("body.json", None),
        ("body.text", None),
        ("url", None),
    ],
)
def test_paths_of_the_body_are_shortened(path: str, expected: str | None) -> None:
    """Options name places relative to the JSON body, and nothing outside it."""
    assert expected == body_path(path)
