"""Masks: what changes from run to run becomes one, and nothing else does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette import KeyPolicy, OptionError
from httpx_cassette._call import Json
from httpx_cassette._digests import digest_of
from httpx_cassette._masking import MASKS, Masker, mask_text

ONE, TWO = "0f8fad5b-d9cb-469f-a165-70867728950e", "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def masker(*names: str, **own: str) -> Masker:
    return Masker(KeyPolicy(masks={**dict.fromkeys(names), **own}).mask_patterns)


DATES = {
    "on 2026-03-02.": "on <date>.",
    "2026-03-02T10:15": "<date>T10:15",
    "20260302": "20260302",
    "2026-13-02": "2026-13-02",
    "12026-03-02": "12026-03-02",
    "2026-03-021": "2026-03-021",
    "1826-03-02": "1826-03-02",
    "2 March 2026": "<date>",
    "02. Mar 2026": "<date>",
    "March 2, 2026": "<date>",
    "Sept. 2nd, 2026": "<date>",
    "March 2026": "March 2026",
    "32 March 2026": "32 March 2026",
}
TIMES = {
    "at 10:15": "at <time>",
    "23:59:59": "<time>",
    "23:59:59.123456 UTC": "<time>",
    "10:15Z": "<time>",
    "10:15+01:00": "<time>",
    "10:15 -0500": "<time>",
    "24:00": "24:00",
    "10:60": "10:60",
    "110:15": "110:15",
}
UUIDS = {
    f"id {ONE}!": "id <uuid:1>!",
    ONE.upper(): "<uuid:1>",
    f"{ONE}{TWO}": f"{ONE}{TWO}",
    f"{ONE},{TWO},{ONE}": "<uuid:1>,<uuid:2>,<uuid:1>",
    ONE.replace("-", ""): ONE.replace("-", ""),
}
PORTS = {
    "http://localhost:49152/a": "http://localhost:<port:1>/a",
    "127.0.0.1:80 and [::1]:81 and 0.0.0.0:82": "127.0.0.1:<port:1> and [::1]:<port:2> and 0.0.0.0:<port:3>",
    "example.com:443": "example.com:443",
    "localhost:123456": "localhost:123456",
}
FILES = {
    "see /tmp/a/b.txt.": "see <path:1>",
    "'/var/folders/x/y' /private/tmp/z": "'<path:1>' <path:2>",
    "/home/ann/x, /Users/ann/x; /root/y": "<path:1>, <path:2>; <path:3>",
    "C:\\Users\\Ann\\x": "<path:1>",
    "/usr/lib/x /etc/y": "/usr/lib/x /etc/y",
    "/home": "/home",
}

MASKED = [
    (name, text, masked)
    for name, table in (("date", DATES), ("time", TIMES), ("uuid", UUIDS), ("port", PORTS), ("path", FILES))
    for text, masked in table.items()
]


@pytest.mark.parametrize(("name", "text", "masked"), MASKED)
def test_a_built_in_mask_takes_what_it_says(name: str, text: str, masked: str) -> None:
    """Each kind in the shapes it comes in, and what only looks like it stays."""
    assert masked == mask_text(name, text)


def test_every_built_in_mask_is_tried_here() -> None:
    """A new mask comes with a table of its own."""
    assert sorted(MASKS) == sorted({name for name, _, _ in MASKED})


def test_an_unknown_mask_names_the_nearest() -> None:
    """The error offers what was likely meant."""
    with pytest.raises(OptionError) as caught:
        mask_text("dates", "")

    assert "there is no mask 'dates' (did you mean 'date'?)" == str(caught.value)


def test_numbers_run_over_the_whole_document() -> None:
    """First appearance counts in the order of sorted names, and one value is one placeholder everywhere."""
    document: Json = {"b": [TWO, {"z": ONE, "a": f"{ONE} {TWO}"}], "a": ONE, ONE: 1}

    masked: Json = {"b": ["<uuid:2>", {"z": "<uuid:1>", "a": "<uuid:1> <uuid:2>"}], "a": "<uuid:1>", ONE: 1}
    assert masked == masker("uuid").document(document)


def test_own_masks_apply_in_their_order() -> None:
    """What an earlier mask took is atomic for a later one."""
    masking = masker("date", ticket="T-[0-9]+", year=r"20\d\d", digit="[0-9]")

    assert "<date> <year:1> <ticket:1> <year:2> <digit:1>" == masking.text("2026-03-02 2026 T-2026 2027 7")


def test_a_mask_of_nothing_changes_nothing() -> None:
    """An empty match is none, and no mask leaves every text alone."""
    assert "abc" == masker(empty="x*").text("abc")
    assert "<> <date> 2026-03-02" == masker().text("<> <date> 2026-03-02")


def test_digests_and_placeholders_of_the_redaction_are_atomic() -> None:
    """What stands for something is not taken apart."""
    digest = digest_of("x")
    masking = masker(digits="[0-9a-f]{4,}")
    placeholder = "<redacted:openai-key:0123456789abcdef>"

    assert [digest, placeholder] == masking.document([{**digest}, placeholder])
    # What only looks like one is text.
    assert "<r<digits:1>ted:<digits:2>>" == masking.text("<redacted:0123456789abcdef>")


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("<date>", "<literal:date>"),
        ("<literal:date>", "<literal:literal:date>"),
        ("<uuid:1> <uuid:12>", "<literal:uuid:1> <literal:uuid:12>"),
        ("<uuid:x> <uuid> <date:1> <time>", "<uuid:x> <uuid> <date:1> <time>"),
        ("<2026-03-02>", "<<date>>"),
        ("<literal:2026-03-02>", "<literal:<date>>"),
    ],
)
def test_a_literal_placeholder_is_marked(text: str, masked: str) -> None:
    """Only the placeholders that the masks at hand would make."""
    assert masked == masker("date", "uuid").text(text)


#: Words with a value or a placeholder in them, each between characters that are no letters or digits.
_WORDS = st.sampled_from(
    [
        *(
            ONE,
            TWO,
            "2026-03-02",
            "x",
            "<date>",
            "<uuid:1>",
            "<uuid:2>",
            "<literal:date>",
            "<literal:uuid:1>",
        ),
        *(
            "<2026-03-02>",
            "<<date>>",
            "<literal:2026-03-02>",
            "<literal:<date>>",
            f"<{ONE}",
            "<<uuid:1>",
            "<",
        ),
        *("<literal:", "literal:", ">", "<literal:literal:date>"),
    ]
)
_TEXTS = st.lists(_WORDS, max_size=6).flatmap(
    lambda words: st.sampled_from([" ".join(words), "<".join(words)])
)


def said(text: str) -> str:
    """Return the text with what a mask takes as characters that no text here holds: what should be left."""
    values = sorted((ONE, TWO), key=lambda value: text.find(value) % 10_000)
    for mark, value in zip("\0\1", [value for value in values if value in text], strict=False):
        text = text.replace(value, mark)
    return text.replace("2026-03-02", "\2")


@given(_TEXTS, _TEXTS)
def test_only_what_is_masked_becomes_one(left: str, right: str) -> None:
    """Two texts are masked alike only if they are alike but for dates, and UUIDs that change places."""
    masked = [masker("date", "uuid").text(text) for text in (left, right)]

    assert (said(left) == said(right)) == (masked[0] == masked[1])


def test_many_values_are_numbered_in_no_time() -> None:
    """Ten thousand different UUIDs take less than a second."""
    text = " ".join(f"{number:08x}-d9cb-469f-a165-70867728950e" for number in range(10_000))
    started = time.process_time()
    masked = masker("uuid").text(text)

    assert time.process_time() - started < 20
    assert masked.endswith("<uuid:9999> <uuid:10000>")
