"""How values and differences are shown."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._difference import MISSING, Change, Missing
from httpx_cassette._excerpt import cut, escape, remark, show_change

OLD_IMAGE: Json = {"$sha256": "ab" * 32, "$bytes": 52113}
NEW_IMAGE: Json = {"$sha256": "cd" * 32, "$bytes": 52113}
NUMBERED = [f"line {k}" for k in range(40)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain äöü 漢字 😀", "plain äöü 漢字 😀"),
        ("\n\r\t\0\x1b[31m\x7f", "\\n\\r\\t\\u0000\\u001b[31m\\u007f"),
        ("\x85\x9b", "\\u0085\\u009b"),
        ("\u202e\u2066\u200b\ufeff\u00a0", "\\u202e\\u2066\\u200b\\ufeff\\u00a0"),
        ("\u2028\ud800", "\\u2028\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
    ids=["plain", "control", "c1", "bidi-and-format", "separator-and-surrogate", "tag"],
)
def test_what_cannot_be_seen_is_escaped(text: str, expected: str) -> None:
    """Control, bidirectional, format and lone surrogate characters are written as escapes."""
    assert expected == escape(text)


@given(st.text(), st.integers(4, 40))
def test_a_cut_text_fits(text: str, limit: int) -> None:
    """What is shown fits the limit, is printable, and is the whole when it could be."""
    shown = cut(text, limit)

    assert len(shown) <= limit
    assert shown.isprintable()
    assert shown == escape(text) or shown.endswith("...")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a", "a\n", "differs only in the final newline, which only this call has"),
        ("a\n", "a", "differs only in the final newline, which only the recording has"),
        ("a\nb", "a\r\nb", "differs only in line ends, first at character 2"),
        ("a\nb", "a  \nb \n\n", "differs only in trailing white space, first at character 2"),
        ("a b", "a\u00a0b", "differs only in non-breaking spaces, first at character 2"),
        ("caf\u00e9", "cafe\u0301", "differs only in Unicode normalisation, first at character 4"),
        ("a b", "a  b", "differs only in white space, first at character 3"),
        ("a", "b", None),
    ],
)
def test_texts_that_look_alike_are_told_apart(old: str, new: str, expected: str | None) -> None:
    """A difference that nobody can see is put into words."""
    assert expected == remark(old, new)


CASES: dict[str, tuple[Json | Missing, Json | Missing, str]] = {
    "short": ("old", "new", 'p   "old" -> "new"'),
    "quotes": ('say "x"', "a\\b", 'p   "say \\"x\\"" -> "a\\\\b"'),
    "added": (
        MISSING,
        {"a": [1, None, True, "x"], "b": {}},
        'p   (absent) -> {"a": [1, null, true, "x"], "b": {}}',
    ),
    "removed": (0.5, MISSING, "p   0.5 -> (absent)"),
    "added-digest": (
        MISSING,
        {"i": OLD_IMAGE},
        'p   (absent) -> {"i": 52,113 bytes, sha256 abababababab..}',
    ),
    "digests": (
        OLD_IMAGE,
        NEW_IMAGE,
        "p   differs: 52,113 bytes, sha256 abababababab.. -> 52,113 bytes, sha256 cdcdcdcdcdcd..",
    ),
    "looks-alike": ("a", "a\n", "p   differs only in the final newline, which only this call has"),
    "hostile": ("\x1b[2J", "\u202e", 'p   "\\u001b[2J" -> "\\u202e"'),
    "long-object": (
        MISSING,
        {f"member{k}": k for k in range(1000)},
        'p   (absent) -> {"member0": 0, "member1": 1, "member2": 2, "member3": 3, "member4": 4, "... '
        "(1,000 members)",
    ),
    "long-list": (
        list[Json](range(100)),
        1,
        "p   [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 2... (100 items) -> 1",
    ),
    "long-number": (10**400, 1, "p\n  - 1" + "0" * 140 + "...\n  + 1"),
    "long-text-added": (
        MISSING,
        "x" * 5000,
        'p   (absent) -> "' + "x" * 69 + '..." (5,000 characters)',
    ),
    "far-into-a-long-text": (
        "a" * 500 + " old " + "b" * 500,
        "a" * 500 + " new " + "b" * 500,
        "p\n"
        '  - "...aaaaaaaaaaaaaaaaaaa old ' + "b" * 45 + '..." (1,005 characters)\n'
        '  + "...aaaaaaaaaaaaaaaaaaa new ' + "b" * 45 + '..." (1,005 characters)',
    ),
    "lines": (
        "\n".join(NUMBERED),
        "\n".join([*NUMBERED[:10], "new 10", *NUMBERED[11:30], "added", *NUMBERED[30:]]),
        "p\n"
        "  @@ -10,3 +10,3 @@\n"
        "   line 9\n"
        "  -line 10\n"
        "  +new 10\n"
        "   line 11\n"
        "  @@ -30,2 +30,3 @@\n"
        "   line 29\n"
        "  +added\n"
        "   line 30",
    ),
    "one-line-and-many": ("a", "a\nb", "p\n  @@ -1,1 +1,2 @@\n   a\n  +b"),
    "long-lines": (
        "first\n" + "a" * 300 + "old",
        "first\n" + "a" * 300 + "new",
        "p\n  @@ -1,2 +1,2 @@\n   first\n  -..." + "a" * 20 + "old\n  +..." + "a" * 20 + "new",
    ),
    "many-lines-replaced": (
        "\n".join(f"old {k}" for k in range(300)),
        "\n".join(f"new {k}" for k in range(7)),
        "p\n  @@ -1,200 +1,7 @@\n"
        + "".join(f"  -old {k}\n" for k in range(5))
        + "  -... 195 more lines\n"
        + "".join(f"  +new {k}\n" for k in range(5))
        + "  +... 2 more lines",
    ),
    "many-places": (
        "\n".join(NUMBERED),
        "\n".join(f"new {k}" if k % 5 == 0 else line for k, line in enumerate(NUMBERED)),
        "p\n"
        "  @@ -1,2 +1,2 @@\n  -line 0\n  +new 0\n   line 1\n"
        "  @@ -5,3 +5,3 @@\n   line 4\n  -line 5\n  +new 5\n   line 6\n"
        "  @@ -10,3 +10,3 @@\n   line 9\n  -line 10\n  +new 10\n   line 11\n"
        "  ... 25 more lines of this difference",
    ),
}


@pytest.mark.parametrize(("old", "new", "expected"), CASES.values(), ids=CASES)
def test_a_change_is_shown(old: Json | Missing, new: Json | Missing, expected: str) -> None:
    """Short values stand side by side, long ones below each other, texts of several lines as a diff."""
    assert expected == "\n".join(show_change("p", Change("p", old, new)))


def test_a_prompt_file_is_named() -> None:
    """A changed prompt file is said to have other bytes."""
    shown = show_change('prompt_files["a.md"]', Change('prompt_files["a.md"]', OLD_IMAGE, NEW_IMAGE))

    assert [
        'prompt_files["a.md"]   its bytes changed: '
        "52,113 bytes, sha256 abababababab.. -> 52,113 bytes, sha256 cdcdcdcdcdcd.."
    ] == shown


@given(st.text(), st.text(), st.text())
def test_what_is_shown_is_printable(path: str, old: str, new: str) -> None:
    """Nothing of a path or a value reaches the terminal as it is."""
    assert all(line.isprintable() for line in show_change(path, Change(path, old, new)))


@pytest.mark.parametrize("unit", ["x", "x\n", "\ud800", "\u202e\n", "a b "])
def test_huge_texts_are_shown_in_bounded_time(unit: str) -> None:
    """Texts of a megabyte are shown within two seconds, and in few characters."""
    old = unit * (1_000_000 // len(unit))
    started = time.perf_counter()
    shown = show_change("p", Change("p", old, old[: len(old) // 2] + "!" + old[len(old) // 2 :] + "\n?"))

    assert time.perf_counter() - started < 30
    assert len("\n".join(shown)) < 2500
