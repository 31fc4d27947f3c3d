"""The index: what is fed to it, and what it says then."""

from __future__ import annotations

import contextlib
import os
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._errors import CassetteDamaged, CassetteError, CassetteVersionError
from httpx_cassette._index import Damage, Index, State
from httpx_cassette._line import seal, tear_note

from ._recordings import key_of, line

A, B = line("a"), line("b")

#: A recording with its members in another order.
ODD = seal(b'{"response":{},"key":"%b","gen":4,"kv":1,"v":1' % key_of("a").hex().encode())


def fed(*lines: bytes, end: bytes = b"\n") -> Index:
    index = Index("c.jsonl")
    data = b"".join(one + end for one in lines)
    index.feed(data, len(data))
    return index


def places(index: Index, name: str = "a") -> list[tuple[int, int, int]]:
    """Return line number, sample and generation of each entry of a key."""
    return [(index.numbers[entry], *index.sample_and_gen(entry)) for entry in index.entries(key_of(name))]


def text(index: Index, data: bytes, name: str = "a") -> list[bytes]:
    """Return the line of each entry of a key."""
    return [
        data[index.offsets[entry] : index.offsets[entry] + index.lengths[entry]]
        for entry in index.entries(key_of(name))
    ]


# -- what is found -------------------------------------------------------------------------------------


def test_the_lines_of_a_key_are_found_the_last_first() -> None:
    """Samples and generations of a key are all there, in the order of the file from its end."""
    index = fed(A, B, line("a", sample=1), line("a", gen=12), ODD)

    assert [(5, 0, 4), (4, 0, 12), (3, 1, 0), (1, 0, 0)] == places(index)
    assert [(2, 0, 0)] == places(index, "b")
    assert [] == places(index, "c")
    assert 5 == len(index)
    assert [index.entries(key_of("a"))] == index.repeated()


LINE_ENDS: dict[str, tuple[bytes, bytes]] = {
    "newline": (b"", b"\n"),
    "crlf": (b"", b"\r\n"),
    "utf-8-mark": (b"\xef\xbb\xbf", b"\n"),
    "mark-and-crlf": (b"\xef\xbb\xbf", b"\r\n"),
}


@pytest.mark.parametrize(("mark", "end"), LINE_ENDS.values(), ids=LINE_ENDS)
def test_marks_and_line_ends_are_not_the_lines_own(mark: bytes, end: bytes) -> None:
    """What git and editors put round lines stays outside them, of usual lines and odd ones alike."""
    data = mark + end.join([A, ODD, B, b""])
    index = Index("c.jsonl")
    index.feed(data, len(data))

    assert [ODD, A] == text(index, data)
    assert [B] == text(index, data, "b")
    assert [] == index.damage


def test_marks_within_a_concatenated_file_are_stripped_too() -> None:
    """Two files with marks make one that is read as well."""
    data = b"\xef\xbb\xbf" + A + b"\n\xef\xbb\xbf" + B + b"\n"
    index = Index("c.jsonl")
    index.feed(data, len(data))

    assert ([A], [B], []) == (text(index, data), text(index, data, "b"), index.damage)


def test_other_key_versions_are_counted_and_not_indexed() -> None:
    """Lines of another key version answer nothing, and a miss can say how many there are."""
    other = seal(b'{"key":"%b","response":{},"kv":3,"v":1' % key_of("a").hex().encode())
    index = fed(line("a", key_version=2), A, line("b", key_version=2), other)

    assert {2: 2, 3: 1} == index.other_versions
    assert [(2, 0, 0)] == places(index)
    assert 1 == len(index)


FOREIGN: dict[str, bytes] = {
    "another-kind": b'{"v":1,"note":"of a later release"}',
    "sealed": seal(b'{"v":1,"note":"of a later release","key":"k"'),
    "blank": b"",
    "spaces": b" \t",
    "a-key-without-answer": b'{"v":1,"key":"%b"}' % key_of("a").hex().encode(),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_lines_of_unknown_kinds_are_skipped(foreign: bytes) -> None:
    """What a later release writes beside recordings is no damage."""
    index = fed(A, foreign, B)

    assert ([], 2, 0) == (index.damage, len(index), index.torn)
    assert [(3, 0, 0)] == places(index, "b")


DAMAGED: dict[str, tuple[bytes, str]] = {
    "text": (b"no JSON", "not a recording"),
    "cut": (A[:100], "not a recording"),
    "zero-bytes": (b"\0" * 4096, "zero bytes"),
    "a-list": (b"[1]", "not a recording"),
    "no-version": (b'{"note":1}', "not a recording"),
    "version-0": (b'{"v":0,"response":{}}', "not a recording"),
    "a-name-was-changed": (
        A.replace(b'"response"', b'"sesponse"').replace(b'{"v":1,"kv"', b'{"v":1,"kw"'),
        "not a recording",
    ),
    "its-key-was-cut": (A.replace(b'"key":"', b'"key":"0'), "not a recording"),
    "nested-too-deep": (b'{"v":1,"a":' + b"[" * 500 + b"]" * 500 + b"}", "not a recording"),
    "not-utf-8": (b'{"v":1,"a":"\xff"}', "not a recording"),
    "utf-16-further-down": ("{}".encode("utf-16"), "not a recording"),
}


@pytest.mark.parametrize(("damaged", "reason"), DAMAGED.values(), ids=DAMAGED)
def test_other_lines_are_listed_as_damaged(damaged: bytes, reason: str) -> None:
    """A line that is no recording of any kind is named by its number and stepped over."""
    index = fed(A, damaged, B)

    assert [Damage(2, reason)] == index.damage
    assert [[(1, 0, 0)], [(3, 0, 0)]] == [places(index), places(index, "b")]


def test_a_zero_filled_block_at_the_start_is_damage_and_no_encoding() -> None:
    """A file whose first block was lost, or whose first bytes were damaged, is read from where it goes on."""
    assert [Damage(1, "zero bytes")] == fed(b"\0" * 512, B).damage
    assert [Damage(1, "zero bytes")] == fed(b"\0\0\0", B).damage
    assert [Damage(1, "not a recording")] == fed(b"\0" + A[1:], B).damage
    assert [Damage(1, "not a recording")] == fed(A[:1] + b"\0" + A[2:], B).damage


# -- files that cannot be trusted ----------------------------------------------------------------------

MERGE = (
    "an unresolved merge; keep the lines of both sides and delete the marker lines "
    "(a .gitattributes line with merge=union does that by itself)"
)


@pytest.mark.parametrize(
    "mark", [b"<<<<<<< ours", b"||||||| base", b"=======", b">>>>>>> theirs", b"=======\r"]
)
def test_merge_markers_are_always_damage(mark: bytes) -> None:
    """A file in which git left markers is not read; the first marker's line is named."""
    with pytest.raises(CassetteDamaged) as caught:
        fed(A, B, mark, A)
    assert f"c.jsonl:3: {MERGE}" == str(caught.value)

    index = fed(A, B)
    with pytest.raises(CassetteDamaged) as caught:
        index.feed_tail(mark)
    assert f"c.jsonl:3: {MERGE}" == str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_other_encodings_are_damage(encoding: str, is_whole: bool) -> None:
    """A file that an editor saved as UTF-16 or UTF-32 is refused, also where its one line has no end."""
    data = (A.decode() + "\n" * is_whole).encode(encoding)
    index = Index("c.jsonl")

    with pytest.raises(CassetteDamaged) as caught:
        index.feed(data, data.rfind(b"\n") + 1) if is_whole else index.feed_tail(data)

    assert "c.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark" == str(caught.value)


def test_a_newer_format_is_an_error_with_file_and_line() -> None:
    """A line of a higher version is neither skipped nor guessed at, wherever it stands."""
    expected = "c.jsonl:2: the line has format 2 and this release reads up to 1; upgrade httpx_cassette"

    with pytest.raises(CassetteVersionError) as caught:
        fed(A, b'{"v":2}', B)
    assert expected == str(caught.value)

    index = fed(A)
    with pytest.raises(CassetteVersionError) as caught:
        index.feed_tail(b'{"v":2}')
    assert expected == str(caught.value)


def test_an_index_knows_that_it_was_broken_off() -> None:
    """After an error within a feed nothing more may be fed: half of the lines would be there twice."""
    index = Index("c.jsonl")
    data = A + b"\n=======\n"
    with pytest.raises(CassetteDamaged):
        index.feed(data, len(data))

    assert index.is_broken
    assert not fed(A).is_broken


# -- torn lines ----------------------------------------------------------------------------------------


def torn(cut: int, *, gen: int = 0) -> tuple[bytes, bytes]:
    """Return a torn line of the key ``a`` and the note that explains it."""
    piece = line("a", gen=gen)[:cut]
    return piece, tear_note(0, len(piece))


@pytest.mark.parametrize(
    "cut", [1, 60, 130, 200], ids=["a-brace", "within-the-key", "behind-the-head", "further"]
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["newline", "crlf"])
def test_a_torn_line_with_its_note_is_no_damage(cut: int, end: bytes) -> None:
    """A line that a crash has torn off is counted, is no damage, and is not among the recordings."""
    index = fed(A, *torn(cut), B, end=end)

    assert ([], 1, 2) == (index.damage, index.torn, len(index))
    assert [(4, 0, 0)] == places(index, "b")


def test_a_torn_line_with_a_head_is_noted_until_it_was_looked_at() -> None:
    """A head alone does not count: its line is torn where its seal is wrong, and intact where it is right."""
    index = fed(A, *torn(130, gen=1))
    entry = index.entries(key_of("a"))[0]
    assert State.NOTED == index.states[entry]

    index.refuse(entry, "unused")
    assert (State.TORN, 1, []) == (index.states[entry], index.torn, index.damage)


def test_a_note_behind_another_line_hides_nothing() -> None:
    """After a merge, the note of a torn line may stand behind an intact one of the same length."""
    index = fed(A, tear_note(0, len(A)))
    assert 1 == index.torn

    index.confirm(0)
    assert (State.INTACT, 0, 1) == (index.states[0], index.torn, len(index))


def test_a_note_behind_a_line_of_another_length_explains_nothing() -> None:
    """The torn line stays listed as damaged, and nothing else becomes torn."""
    index = fed(b"torn", A, tear_note(0, 4), B, tear_note(0, 4))

    assert ([Damage(1, "not a recording")], 0, 2) == (index.damage, index.torn, len(index))


def test_a_note_explains_a_line_that_was_found_damaged_before() -> None:
    """A line that was looked at between its tear and the note is torn all the same."""
    piece, note = torn(130)
    index = fed(B, piece)
    index.refuse(1, "damaged")
    assert [Damage(2, "damaged")] == index.damage

    index.feed(note + b"\n", len(note) + 1)
    assert ([], 1, State.TORN) == (index.damage, index.torn, index.states[1])


def test_a_note_behind_a_line_that_was_found_intact_is_ignored() -> None:
    """What was checked stays as it is."""
    index = fed(A)
    index.confirm(0)
    note = tear_note(0, len(A)) + b"\n"
    index.feed(note, len(note))

    assert (State.INTACT, 0) == (index.states[0], index.torn)


def test_a_note_explains_a_line_that_is_no_entry() -> None:
    """Torn lines of another key version, or of an unknown kind, are counted."""
    assert 1 == fed(A, b"[1", tear_note(0, 2)).torn
    assert 1 == fed(b"[1", tear_note(0, 2)).torn


# -- the tail ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0, 1, 10])
def test_a_note_in_the_tail_explains_its_line(missing: int) -> None:
    """It is not counted once more when it is completed, and hides no line that is intact."""
    piece, note = torn(130)
    index = fed(piece)
    index.feed_tail(note[: len(note) - missing])
    assert (State.NOTED, 0) == (index.states[0], len(index))

    index.feed(note + b"\n", len(note) + 1)
    assert (State.NOTED, 1) == (index.states[0], index.torn)
    index.confirm(0)
    assert (State.INTACT, 0) == (index.states[0], index.torn)


def test_a_tail_of_blanks_is_no_note() -> None:
    """Nothing is left of it that could begin one."""
    index = fed(A)
    index.feed_tail(b" " * 20)

    assert State.UNCHECKED == index.states[0]


def test_a_torn_tail_is_counted_until_it_is_gone() -> None:
    """What is being written, or was torn, is not a line yet."""
    index = fed(A)
    index.feed_tail(B[:-1])
    assert (True, False, 1, 1) == (index.has_torn_tail, index.has_whole_tail, index.torn, len(index))

    index.feed_tail(b"")
    assert (False, False, 0) == (index.has_torn_tail, index.has_whole_tail, index.torn)

    index.feed_tail(B[:-1])
    index.feed(B + b"\n", len(B) + 1)
    assert ([(2, 0, 0)], 0) == (places(index, "b"), index.torn)


WHOLE_TAILS: dict[str, tuple[bytes, int]] = {
    "a-recording": (B, 2),
    "with-a-cr": (B + b"\r", 2),
    "another-order": (seal(b'{"response":{},"key":"%b","kv":1,"v":1' % key_of("b").hex().encode()), 2),
    "another-key-version": (line("b", key_version=2), 1),
    "seal-is-wrong": (B.replace(b'"says"', b'"sayz"'), 2),
    "another-kind": (b'{"v":1,"note":1}', 1),
    "a-tear-note-of-another-line": (tear_note(0, len(A) + 1), 1),
}


@pytest.mark.parametrize(("tail", "entries"), WHOLE_TAILS.values(), ids=WHOLE_TAILS)
def test_a_whole_line_may_lack_its_newline(tail: bytes, entries: int) -> None:
    """An editor that strips the last newline loses no recording; it is counted once, before and after."""
    index = fed(A)
    for _ in range(2):
        index.feed_tail(tail)
        assert (True, False, 0, entries) == (
            index.has_whole_tail,
            index.has_torn_tail,
            index.torn,
            len(index),
        )
    rest = tail + b"\n" + line("c") + b"\n"
    index.feed(rest, len(rest))

    assert [(3, 0, 0)] == places(index, "c")
    assert len({*places(index, "b")}) == len(places(index, "b"))
    assert {2: 1} == index.other_versions if "version" in str(tail) else True


def test_a_tail_that_goes_on_is_looked_at_anew() -> None:
    """What seemed whole and is continued was not whole."""
    index = fed(A)
    index.feed_tail(B)
    rest = B + b"garbage\n"
    index.feed(rest, len(rest))

    assert [State.UNCHECKED, State.TORN] == [index.states[entry] for entry in index.entries(key_of("b"))]


# -- pieces --------------------------------------------------------------------------------------------

pieces = st.lists(
    st.sampled_from(
        [A, B, ODD, *torn(60), *torn(130, gen=1), b"", b"\0\0", b"no JSON", line("b", key_version=9)]
    ),
    max_size=12,
)


def summary(index: Index) -> object:
    return (
        [places(index, name) for name in ("a", "b")],
        index.damage,
        index.torn,
        index.other_versions,
        bytes(index.states),
    )


@given(lines=pieces, cuts=st.sets(st.integers(0, 11)))
def test_it_does_not_matter_in_which_pieces_lines_are_fed(lines: Iterable[bytes], cuts: set[int]) -> None:
    """A file that was read while it grew is indexed like one that was read at once."""
    whole, grown = fed(*lines), Index("c.jsonl")
    batch = b""
    for number, one in enumerate(lines):
        batch += one + b"\n"
        if number in cuts:
            grown.feed(batch, len(batch))
            batch = b""
    grown.feed(batch, len(batch))

    assert summary(whole) == summary(grown)


@given(data=st.binary(max_size=80), start=st.sampled_from([b"", A[:90], A[:150], b'{"v":1,']))
def test_no_bytes_make_it_fail_otherwise_than_documented(data: bytes, start: bytes) -> None:
    """Whatever stands in a file, it is indexed, listed or refused with an error of the tree."""
    index = Index("c.jsonl")
    whole = start + data + b"\n"
    with contextlib.suppress(CassetteError):
        index.feed(whole, len(whole))
        index.feed_tail(data)


@pytest.mark.parametrize("samples", [1, 10], ids=["one-answer", "ten-answers"])
def test_a_line_costs_less_than_400_bytes(samples: int) -> None:
    """The index of 100,000 recordings takes some 20 MB, whatever the recordings take."""
    count = 5_000
    keys = [os.urandom(32).hex().encode() for _ in range(count // samples)]
    head = b'{"v":1,"kv":1,"key":"%b","sample":%d,"gen":0,"at":""}\n'
    data = b"".join(head % (key, sample) for key in keys for sample in range(samples))
    index = Index("c.jsonl")
    tracemalloc.start()
    try:
        index.feed(data, len(data))
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert used / count < 400
