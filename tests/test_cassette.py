"""The cassette: what a file answers, what an append leaves, and what neither may do."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from httpx_cassette import _open_file
from httpx_cassette._call import Json
from httpx_cassette._cassette import Cassette, shared_cassette
from httpx_cassette._errors import CassetteDamaged, CassetteError, CassetteReadOnly
from httpx_cassette._index import Damage
from httpx_cassette._line import MAX_LINE, MAX_NUMBER, is_intact, seal, tear_note
from httpx_cassette._recording import NewRecording
from httpx_cassette._shelf import Shelf

from ._recordings import ask, exchange, key_of, line, make_file, said

A, B, C = line("a"), line("b"), line("c")


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``c.jsonl`` be the cassette of the test."""
    monkeypatch.chdir(tmp_path)


PATH = Path("c.jsonl")


def content() -> list[bytes]:
    """Return the lines of the cassette; the last is empty where the file ends at a recording."""
    return PATH.read_bytes().split(b"\n")


def recorder() -> Cassette:
    return Cassette(PATH, fsync=False)


# -- what is in the file, and what it answers ----------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A file, what ``a`` and ``b`` are answered from it, and what is said about it.

    ``strict`` is the error of ``strict=True``; where ``both`` is given, it is the error in any case.
    """

    data: bytes | None
    a: str = "a"
    b: str = "b"
    torn: int = 0
    damage: tuple[Damage, ...] = ()
    strict: str = ""
    both: str = ""


def lines(*those: bytes, end: bytes = b"\n") -> bytes:
    return b"".join(one + end for one in those)


EDITED = A.replace(b'"says":"a"', b'"says":"A"')
FLIPPED = A.replace(b'"says":"a"', b'"says":\x01a"')


def edited(number: int) -> str:
    return (
        f"CassetteDamaged: c.jsonl:{number}: the recording is edited by hand, or damaged; "
        f"accept an edit with httpx-cassette reseal c.jsonl:{number}, restore the file, "
        "or record the call again with HTTPX_CASSETTE_MODE=rerecord"
    )


def damaged(number: int) -> str:
    return (
        f"CassetteDamaged: c.jsonl:{number}: the recording is damaged; "
        "restore the file, or record the call again with HTTPX_CASSETTE_MODE=rerecord"
    )


def strict(number: int, reason: str, count: int = 1) -> str:
    return f"c.jsonl:{number}: {reason}; strict=True accepts no such line, and there are {count} of them"


MERGE = (
    "CassetteDamaged: c.jsonl:2: an unresolved merge; keep the lines of both sides and delete the marker "
    "lines (a .gitattributes line with merge=union does that by itself)"
)
ENCODING = "CassetteDamaged: c.jsonl:1: the file is not UTF-8; save it as UTF-8 without a mark"
NEWER = (
    "CassetteVersionError: c.jsonl:2: the line has format 2 and this release reads up to 1; "
    "upgrade httpx_cassette"
)

ROWS: dict[str, Row] = {
    "no-file": Row(None, a="miss", b="miss"),
    "empty-file": Row(b"", a="miss", b="miss"),
    "two-lines": Row(lines(A, B)),
    "torn-last-line": Row(lines(A) + B[:-1], b="miss", torn=1),
    "torn-within-the-head": Row(lines(A) + B[:40], b="miss", torn=1),
    "torn-after-one-byte": Row(lines(A) + B[:1], b="miss", torn=1),
    "torn-first-line": Row(A[:-1], a="miss", b="miss", torn=1),
    "newline-missing": Row(lines(A) + B),
    "zero-filled-tail": Row(lines(A) + b"\0" * 300, b="miss", torn=1),
    "tear-note": Row(lines(A, B[:99], tear_note(len(A) + 1, 99)), b="miss", torn=1),
    "tear-note-and-recorded-again": Row(lines(A, B[:150], tear_note(len(A) + 1, 150), B), torn=1),
    "tear-note-of-a-newer-generation": Row(
        lines(A, B, line("b", "new", gen=1)[:150], tear_note(0, 150)), torn=1
    ),
    "tear-note-moved-by-a-merge": Row(
        lines(A, B[:99], C, tear_note(len(A) + 1, 99)),
        b="miss",
        damage=(Damage(2, "not a recording"),),
        strict=strict(2, "not a recording"),
    ),
    "tear-note-moved-behind-an-intact-line": Row(lines(A, B, tear_note(0, len(B)))),
    "zero-filled-block": Row(
        lines(A, b"\0" * 512, B), damage=(Damage(2, "zero bytes"),), strict=strict(2, "zero bytes")
    ),
    "garbage": Row(
        lines(b"?", A, B, b"!"),
        damage=(Damage(1, "not a recording"), Damage(4, "not a recording")),
        strict=strict(1, "not a recording", 2),
    ),
    "failed-checksum": Row(
        lines(FLIPPED, B), a=damaged(1), damage=(Damage(1, "damaged"),), strict=strict(1, "damaged")
    ),
    "edited-by-hand": Row(
        lines(B, EDITED),
        a=edited(2),
        damage=(Damage(2, "edited by hand, or damaged"),),
        strict=strict(2, "edited by hand, or damaged"),
    ),
    "edited-last-line-without-newline": Row(
        lines(B) + EDITED,
        a=edited(2),
        damage=(Damage(2, "edited by hand, or damaged"),),
        strict=strict(2, "edited by hand, or damaged"),
    ),
    "merge-ours": Row(lines(A, b"<<<<<<< HEAD", B), both=MERGE),
    "merge-base": Row(lines(A, b"||||||| 1234567", B), both=MERGE),
    "merge-middle": Row(lines(A, b"=======", B), both=MERGE),
    "merge-theirs": Row(lines(A) + b">>>>>>> topic", both=MERGE),
    "crlf": Row(lines(A, B, end=b"\r\n")),
    "crlf-torn": Row(lines(A, B[:99], tear_note(0, 99), B, end=b"\r\n"), torn=1),
    "utf-8-mark": Row(b"\xef\xbb\xbf" + lines(A, B)),
    "utf-8-mark-without-newline": Row(b"\xef\xbb\xbf" + A, b="miss"),
    "utf-16": Row(lines(A, B).decode().encode("utf-16"), both=ENCODING),
    "utf-16-without-newline": Row(A.decode().encode("utf-16-le"), both=ENCODING),
    "utf-32": Row(lines(A, B).decode().encode("utf-32-be"), both=ENCODING),
    "same-answer-twice": Row(lines(A, B, A)),
    "other-answer": Row(
        lines(A, B, line("a", "other")),
        a="other",
        strict=strict(3, "another answer than line 1 gives to the same call"),
    ),
    "other-answer-damaged": Row(
        lines(A, B, line("a", "other").replace(b"other", b"\x01ther")),
        damage=(Damage(3, "damaged"),),
        strict=strict(3, "damaged"),
    ),
    "newer-format": Row(lines(A, b'{"v":2,"key":"?"}', B), both=NEWER),
    "other-key-version": Row(lines(A, line("b", key_version=2)), b="miss"),
    "other-key-version-by-damage": Row(
        lines(A, B.replace(b'"kv":1', b'"kv":3')),
        b="miss",
        strict=strict(2, "edited by hand, or damaged"),
    ),
    "unknown-kind": Row(lines(A, b'{"v":1,"note":"of a later release"}', B)),
    "unknown-members": Row(lines(A, seal(B.rpartition(b',"sum"')[0] + b',"more":[1]'))),
    "another-order": Row(
        lines(
            A, seal(b'{"response":{"json":{"says":"b"}},"key":"%b","kv":1,"v":1' % key_of("b").hex().encode())
        )
    ),
    "blank-lines": Row(lines(b"", A, b" ", B, b"")),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_is_in_the_file_decides_the_answer(row: Row) -> None:
    """Each row of the contract: what is answered, what is listed, and what ``strict`` says."""
    if row.data is not None:
        PATH.write_bytes(row.data)
    cassette = Cassette(PATH)

    for _ in range(2):  # An error is no less an error the second time.
        expected: tuple[Json, ...] = (row.both,) * 2 if row.both else (row.a, row.b)
        assert expected == (ask(cassette, "a"), ask(cassette, "b"))
    if not row.both:
        assert (list(row.damage), row.torn) == (cassette.damage, cassette.torn)
    severe = row.both or (f"CassetteDamaged: {row.strict}" if row.strict else row.a)
    for _ in range(2):
        assert severe == ask(Cassette(PATH, strict=True), "a")
    assert row.data == (PATH.read_bytes() if PATH.exists() else None)


@pytest.mark.parametrize(
    "row", [row for row in ROWS.values() if not row.both], ids=[n for n in ROWS if not ROWS[n].both]
)
def test_an_append_heals_whatever_it_finds(row: Row) -> None:
    """After one append the file ends at a recording, old lines answer as before, a torn tail has its note."""
    before = row.data or b""
    PATH.write_bytes(before)
    cassette = recorder()
    assert cassette.append(exchange("new")).is_new

    for reader in (cassette, Cassette(PATH)):
        assert (row.a, row.b, "new") == (ask(reader, "a"), ask(reader, "b"), ask(reader, "new"))
        assert row.torn == reader.torn
    assert b"" == content()[-1]
    assert is_intact(content()[-2])
    assert PATH.read_bytes().startswith(before)
    assert not Cassette(PATH).append(exchange("new")).is_new


def test_strict_goes_on_raising() -> None:
    """A damaged file is no less damaged at the second look; a line that comes later is looked at too."""
    cassette = Cassette(make_file(PATH, A), strict=True)
    assert ("a", "miss") == (ask(cassette, "a"), ask(cassette, "b"))

    with PATH.open("ab") as file:
        file.write(EDITED + b"\n")
    expected = strict(2, "edited by hand, or damaged")
    for _ in range(2):
        with pytest.raises(CassetteDamaged) as caught:
            cassette.refresh()
        assert expected == str(caught.value)
    assert f"CassetteDamaged: {expected}" == ask(cassette, "a")

    make_file(PATH, A)
    cassette.close()
    assert "a" == ask(cassette, "a")


def test_a_merge_that_was_resolved_is_read() -> None:
    """An error of the whole file ends when its cause does, with the right line numbers."""
    cassette = Cassette(make_file(PATH, A, b"=======", B))
    assert [MERGE] * 3 == [ask(cassette, "a") for _ in range(3)]

    make_file(PATH, A, B)
    assert "b" == ask(cassette, "b")
    assert [1, 2] == [cassette.spots(key_of(name))[0].line for name in ("a", "b")]


def test_merge_markers_that_come_later_are_seen() -> None:
    """A file that was merged under an open cassette is refused at the next look."""
    cassette = Cassette(make_file(PATH, A))
    assert "a" == ask(cassette, "a")

    with PATH.open("ab") as file:
        file.write(b"=======\n" + B + b"\n")
    with pytest.raises(CassetteDamaged):
        cassette.refresh()
    assert MERGE == ask(cassette, "a")


def test_every_line_can_be_checked() -> None:
    """A check names each line that is damaged, and each that contradicts another."""
    make_file(PATH, A, FLIPPED, B, line("b", "other"), b"?")

    assert [
        Damage(2, "damaged"),
        Damage(4, "another answer than line 3 gives to the same call"),
        Damage(5, "not a recording"),
    ] == Cassette(PATH).check()
    assert [] == Cassette("none.jsonl").check()


# -- generations and samples ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Choice:
    """Lines, and what samples 0, 1 and 2 of ``a`` are answered."""

    lines: tuple[bytes, ...]
    answers: tuple[str, ...]


def a(says: str, *, gen: int = 0, sample: int = 0) -> bytes:
    return line("a", says, gen=gen, sample=sample)


def broken(data: bytes) -> bytes:
    return data.replace(b'"ms":812', b'"ms":\x0112')


CHOICES: dict[str, Choice] = {
    "newest-last": Choice((a("old"), a("new", gen=1)), ("new",) * 3),
    "newest-first": Choice((a("new", gen=1), a("old")), ("new",) * 3),
    "ten-is-more-than-nine": Choice((a("ten", gen=10), a("nine", gen=9)), ("ten",) * 3),
    "samples": Choice((a("0"), a("1", sample=1)), ("0", "1", "1")),
    "samples-with-a-gap": Choice((a("0"), a("2", sample=2)), ("0", "0", "2")),
    "first-sample-missing": Choice((a("1", sample=1),), ("1",) * 3),
    "a-generation-is-a-set": Choice(
        (a("0"), a("1", sample=1), a("2", sample=2), a("new", gen=1)), ("new",) * 3
    ),
    "a-generation-is-a-set-in-any-order": Choice(
        (a("new-1", gen=1, sample=1), a("0"), a("1", sample=1), a("new-0", gen=1)),
        ("new-0", "new-1", "new-1"),
    ),
    "damaged-newest": Choice((a("old"), broken(a("new", gen=1))), (damaged(2),) * 3),
    "damaged-newest-first": Choice((broken(a("new", gen=1)), a("old")), (damaged(1),) * 3),
    "damaged-newest-twice": Choice((a("new", gen=1), a("old"), broken(a("new", gen=1))), ("new",) * 3),
    "damaged-older": Choice((broken(a("old")), a("new", gen=1)), ("new",) * 3),
    "damaged-sample": Choice((a("0"), broken(a("1", sample=1))), ("0", damaged(2), damaged(2))),
    "torn-newest": Choice((a("old"), a("new", gen=1)[:150], tear_note(0, 150)), ("old",) * 3),
    "torn-and-recorded-again": Choice(
        (a("old"), a("new", gen=1)[:150], tear_note(0, 150), a("again", gen=1)), ("again",) * 3
    ),
}


OLDER, TORN_NEWEST = a("old"), a("new", gen=1)[:150]
TORN_NEWEST_NOTE = tear_note(len(OLDER) + 1, len(TORN_NEWEST))


@pytest.mark.parametrize("length", range(1, len(TORN_NEWEST_NOTE) + 1))
def test_a_note_that_is_torn_itself_explains_its_line(length: int) -> None:
    """As soon as it is known for one, and anew with the next append; the generation was never begun."""
    path = make_file(PATH, OLDER, TORN_NEWEST)
    path.write_bytes(path.read_bytes() + TORN_NEWEST_NOTE[:length])
    cassette = Cassette(path)
    is_known = length >= len(b'{"v":1,"t')

    assert ("old" if is_known else damaged(2)) == ask(cassette, "a")
    assert is_known == (cassette.check() == [])
    appended = cassette.append(exchange("a", "again"), supersede=True)
    cassette.close()

    assert (2 - is_known, True) == (appended.recording.head.gen, appended.is_new)
    assert "again" == ask(cassette, "a")
    assert [] == cassette.check()
    assert path.read_bytes().startswith(lines(OLDER, TORN_NEWEST, TORN_NEWEST_NOTE))


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_the_newest_generation_answers_or_nothing_does(choice: Choice) -> None:
    """The highest generation wins as a set with its samples; where it is damaged, no older one answers."""
    cassette = Cassette(make_file(PATH, *choice.lines))

    assert choice.answers == tuple(ask(cassette, "a", sample=sample) for sample in range(3))


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_generations_win_over_several_cassettes(choice: Choice) -> None:
    """It does not matter over how many files the lines of a key are spread."""
    cassettes: list[Cassette] = []
    for number, one in enumerate(choice.lines):
        if b'"tear"' in one:
            cassettes.pop()
            one = choice.lines[number - 1] + b"\n" + one
        cassettes.append(Cassette(make_file(Path(f"{number}.jsonl"), one)))
    shelf = Shelf(cassettes)

    for sample, answer in enumerate(choice.answers):
        found = ask(shelf, "a", sample=sample)
        if answer.startswith("CassetteDamaged"):
            number = next(number for number, one in enumerate(choice.lines) if b"\x01" in one)
            answer = answer.replace("c.jsonl:1", f"{number}.jsonl:1").replace(
                "c.jsonl:2", f"{number}.jsonl:1"
            )
        assert answer == found


def test_cassettes_can_be_concatenated_and_merged_in_any_order() -> None:
    """The same lines give the same answers, whichever branch git puts first."""
    ours = lines(a("old"), a("new", gen=1), B)
    theirs = lines(C, a("newest", gen=2), a("another", gen=2, sample=1))

    for data in (ours + theirs, theirs + ours):
        PATH.write_bytes(data)
        cassette = Cassette(PATH)
        assert ("newest", "another", "b", "c") == (
            ask(cassette, "a"),
            ask(cassette, "a", sample=1),
            ask(cassette, "b"),
            ask(cassette, "c"),
        )


def test_rerecording_supersedes_by_the_next_generation() -> None:
    """An append with ``supersede`` is one generation above all that is there, and that others have."""
    cassette = recorder()
    gens = [
        cassette.append(exchange("a", 0)).recording.head.gen,
        cassette.append(exchange("a", 1), supersede=True).recording.head.gen,
        cassette.append(exchange("a", 2), supersede=True, gen_floor=7).recording.head.gen,
        cassette.append(exchange("a", 3, sample=1), gen_floor=3).recording.head.gen,
        cassette.append(exchange("b", 4), gen_floor=5).recording.head.gen,
    ]

    assert [0, 1, 8, 8, 5] == gens
    assert [2, 3] == [ask(Cassette(PATH), "a", sample=sample) for sample in range(2)]


def test_what_was_recorded_anew_is_remembered() -> None:
    """``rerecord`` pays once for each sample, and the samples of one session are one generation."""
    cassette = recorder()
    assert (False, None) == (cassette.is_fresh(key_of("a"), 0), cassette.fresh_gen(key_of("a")))

    cassette.mark_fresh(key_of("a"), 0, 4)
    cassette.mark_fresh(key_of("a"), 1, 5)
    assert [True, True, False] == [cassette.is_fresh(key_of("a"), sample) for sample in range(3)]
    assert 4 == cassette.fresh_gen(key_of("a"))
    assert not cassette.is_fresh(key_of("b"), 0)


@pytest.mark.parametrize(
    ("new", "there"),
    [(exchange("a", sample=MAX_NUMBER + 1), A), (exchange("a"), line("a", gen=MAX_NUMBER))],
    ids=["sample", "generation"],
)
def test_numbers_that_no_head_can_hold_are_refused(new: NewRecording, there: bytes) -> None:
    """A line that could not be found again is not written."""
    make_file(PATH, there)

    with pytest.raises(CassetteError) as caught:
        recorder().append(new, supersede=True)

    assert "c.jsonl: a generation or sample is higher than 999,999,999" == str(caught.value)
    assert [there, b""] == content()


# -- appending -----------------------------------------------------------------------------------------


def test_the_first_to_append_wins() -> None:
    """A second append of one key and sample stores nothing and returns what is there."""
    first, second = recorder(), recorder()
    stored = first.append(exchange("a", 1))
    again = second.append(exchange("a", 2))

    assert (True, False) == (stored.is_new, again.is_new)
    assert [1, 1] == [said(stored.recording), said(again.recording)]
    assert [stored.recording.line, b""] == content()
    assert (1, 1) == (stored.recording.number, again.recording.number)


def test_a_damaged_line_does_not_count_as_present() -> None:
    """What cannot be answered from is recorded again, and answers from then on."""
    make_file(PATH, FLIPPED)
    cassette = recorder()

    assert (True, 2) == ((appended := cassette.append(exchange("a"))).is_new, appended.recording.number)
    assert "a" == ask(cassette, "a")


def test_an_append_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tear note, line and newline go to the system at once: a reader and a crash find all of them or none."""
    PATH.write_bytes(lines(A) + B[:50])
    written: list[bytes] = []

    def write(number: int, data: bytes, real: Callable[[int, bytes], int] = os.write) -> int:
        written.append(data)
        return real(number, data)

    monkeypatch.setattr(os, "write", write)

    recorder().append(exchange("c"))

    assert [b"\n" + tear_note(len(A) + 1, 50) + b"\n" + C + b"\n"] == written


NOTE = tear_note(len(A) + 1, 150)


@pytest.mark.parametrize("length", [1, 8, 20, len(NOTE) - 1, len(NOTE)])
def test_a_tear_note_that_was_torn_itself_is_completed(length: int) -> None:
    """A crash while a torn line is healed leaves nothing that no note explains, and blocks no key."""
    PATH.write_bytes(lines(A, B[:150]) + NOTE[:length])

    assert recorder().append(exchange("b")).is_new

    assert [A, B[:150], NOTE, B, b""] == content()
    assert ([], 1) == (Cassette(PATH).check(), Cassette(PATH).torn)


def test_what_begins_like_a_tear_note_behind_an_intact_line_is_torn() -> None:
    """The note is completed only where the line before it was torn."""
    PATH.write_bytes(lines(A) + tear_note(0, len(A))[:12])

    recorder().append(exchange("b"))

    assert [A, tear_note(0, len(A))[:12], tear_note(len(A) + 1, 12), B, b""] == content()


def test_a_fault_of_the_unlocking_harms_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recording is acknowledged, and neither this cassette nor another waits for ever at the next one."""
    cassette = recorder()

    def fail(number: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(_open_file, "_unlock", fail)
        assert cassette.append(exchange("a")).is_new

    assert recorder().append(exchange("b")).is_new
    assert cassette.append(exchange("c")).is_new


def test_durability_includes_the_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``fsync`` the data, the new file's name and those of new folders are on the disk at the return."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_ino))
    monkeypatch.setattr(_open_file, "_sync", os.fsync)
    cassette = Cassette("deep/down/c.jsonl")

    cassette.append(exchange("a"))
    folders = [
        path.stat().st_ino for path in (Path(), Path("deep"), Path("deep/down/c.jsonl"), Path("deep/down"))
    ]
    assert folders == synced
    cassette.append(exchange("b"))
    assert [*folders, folders[2]] == synced
    Cassette("deep/down/d.jsonl", fsync=False).append(exchange("a"))
    assert [*folders, folders[2]] == synced


def test_a_failed_append_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a short write the file ends where it did, the index too, and the next append succeeds."""
    cassette = recorder()
    cassette.append(exchange("a"))
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda number, data: write(number, data[:100]))
        with pytest.raises(CassetteError) as caught:
            cassette.append(exchange("b"))

    assert "c.jsonl: the recording could not be written: only a part of the line could be written" == str(
        caught.value
    )
    assert [A, b""] == content()
    assert "miss" == ask(cassette, "b")
    assert cassette.append(exchange("b")).is_new
    assert [A, B, b""] == content()


def test_a_line_beyond_the_limit_is_not_written() -> None:
    """What would be stepped over when reading is refused when writing, with the way out."""
    cassette = recorder()

    with pytest.raises(CassetteError) as caught:
        cassette.append(exchange("a", "x" * MAX_LINE))

    size = len(exchange("a", "x").line(0, 1)) + MAX_LINE - 1
    assert (
        f"c.jsonl: the recording has {size:,} bytes and a line holds at most 67,108,864; "
        "let such calls pass with passthrough="
    ) == str(caught.value)
    assert [b""] == content()


def test_a_file_that_was_replaced_gets_the_next_append() -> None:
    """After a checkout the line goes to the file that the path names now, and what that holds is known."""
    cassette = recorder()
    cassette.append(exchange("a"))

    make_file(Path("other.jsonl"), C).replace(PATH)
    assert not cassette.append(exchange("c")).is_new
    assert cassette.append(exchange("b")).is_new
    assert [C, B, b""] == content()
    assert ("miss", "b", "c") == (ask(cassette, "a"), ask(cassette, "b"), ask(cassette, "c"))

    PATH.unlink()
    assert cassette.append(exchange("a")).is_new
    assert [A, b""] == content()


def test_a_file_that_was_cut_is_read_anew_before_appending() -> None:
    """Lines that are gone do not count as present."""
    cassette = recorder()
    for name in "abc":
        cassette.append(exchange(name))

    PATH.write_bytes(lines(B))
    assert [True, False] == [cassette.append(exchange(name)).is_new for name in "cb"]
    assert [B, C, b""] == content()


def test_a_file_that_was_edited_in_place_is_read_anew_before_appending() -> None:
    """Neither the old lines nor the old places count after an editor has saved over the file."""
    cassette = recorder()
    cassette.append(exchange("a"))
    longer = line("b", "x" * 5000)

    PATH.write_bytes(lines(longer, C))
    assert [True, False] == [cassette.append(exchange(name)).is_new for name in "ac"]
    assert [longer, C, A, b""] == content()


def test_a_file_that_is_replaced_all_the_time_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append is tried again until the file it has locked is the one that the path names."""
    cassette = recorder()
    seen = []
    current = Cassette._scan_current

    def replace_first(self: Cassette, writer: _open_file.OpenFile) -> object:
        seen.append(writer)
        if len(seen) < 4:
            make_file(Path("other.jsonl"), line(len(seen))).replace(PATH)
        return current(self, writer)

    monkeypatch.setattr(Cassette, "_scan_current", replace_first)
    cassette.append(exchange("a"))

    assert 4 == len(seen)
    assert [line(3), A, b""] == content()


# -- others append too ---------------------------------------------------------------------------------


def test_lines_of_others_are_seen_after_a_refresh() -> None:
    """A reader sees what was there when it first looked, and what was added when it looks again."""
    reader, other = Cassette(PATH), recorder()
    assert ("miss", False, False) == (ask(reader, "a"), reader.exists, reader.refresh())

    other.append(exchange("a"))
    assert ("miss", True, True, "a") == (ask(reader, "a"), reader.exists, reader.refresh(), ask(reader, "a"))

    other.append(exchange("b"))
    assert ("miss", True, False, "b") == (
        ask(reader, "b"),
        reader.refresh(),
        reader.refresh(),
        ask(reader, "b"),
    )
    assert 2 == len(reader)


def test_a_line_that_is_being_written_is_seen_when_it_is_whole() -> None:
    """A refresh that meets half a line waits for the other half."""
    reader = Cassette(make_file(PATH, A))
    assert "a" == ask(reader, "a")
    with PATH.open("ab", buffering=0) as file:
        file.write(B[:70])
        assert (False, 1, "miss") == (reader.refresh(), reader.torn, ask(reader, "b"))
        file.write(B[70:])
        assert (True, 0, "b") == (reader.refresh(), reader.torn, ask(reader, "b"))
        file.write(b"\n")
        assert (True, 2) == (reader.refresh(), len(reader))
        assert [2] == [spot.line for spot in reader.spots(key_of("b"))]


def test_readers_are_not_kept_waiting_by_an_append(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one thread writes and syncs, another looks up, and sees the line once it is there."""
    make_file(PATH, A)
    cassette = Cassette(PATH)
    reached, go_on = threading.Event(), threading.Event()

    def sync(number: int) -> None:
        reached.set()
        assert go_on.wait(10)

    monkeypatch.setattr(_open_file, "_sync", sync)
    appended: list[int] = []
    thread = threading.Thread(target=lambda: appended.append(cassette.append(exchange("b")).recording.number))
    thread.start()
    assert reached.wait(10)
    seen = (ask(cassette, "a"), cassette.refresh(), ask(cassette, "b"))
    go_on.set()
    thread.join()

    assert ("a", True, "b") == seen
    assert ([2], 2) == (appended, len(cassette))


def test_threads_may_share_a_cassette() -> None:
    """However many threads append and look up at once, every line is there once."""
    cassette = recorder()
    failures: list[object] = []

    def work(number: int) -> None:
        for turn in range(40):
            cassette.append(exchange((number, turn)))
            cassette.append(exchange(turn))
            failures.extend(name for name in ((number, turn), turn) if ask(cassette, name) != str(name))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failures
    assert (5 * 40, 5 * 40, []) == (len(cassette), len(Cassette(PATH)), Cassette(PATH).check())


# -- replay --------------------------------------------------------------------------------------------


def snapshot(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in [folder, *folder.rglob("*")]
    )


@pytest.mark.parametrize(
    "data",
    [None, b"", lines(A, B), lines(A) + B[:50], lines(A) + B],
    ids=[
        "no-file",
        "empty",
        "two-lines",
        "torn",
        "newline-missing",
    ],
)
def test_replay_writes_nothing(data: bytes | None, tmp_path: Path) -> None:
    """Opening, looking up, listing and closing leave no lock, no index and no trace."""
    if data is not None:
        PATH.write_bytes(data)
    before = snapshot(tmp_path)
    for is_strict in (False, True):
        cassette = Cassette(PATH, strict=is_strict)
        ask(cassette, "a")
        ask(cassette, "c")
        cassette.refresh()
        list(cassette.newest_first())
        _ = cassette.check(), cassette.damage, cassette.torn, len(cassette), cassette.other_versions
        cassette.close()

    assert before == snapshot(tmp_path)


def test_replay_goes_on_with_the_file_that_it_has_open() -> None:
    """A file that is replaced or removed answers as long as it is open."""
    cassette = Cassette(make_file(PATH, A, B))
    assert "a" == ask(cassette, "a")

    make_file(Path("other.jsonl"), C).replace(PATH)
    assert ("a", "b", "miss") == (ask(cassette, "a"), ask(cassette, "b"), ask(cassette, "c"))
    assert not cassette.refresh()
    PATH.unlink()
    assert "b" == ask(cassette, "b")


def test_a_file_that_was_cut_answers_as_far_as_it_goes() -> None:
    """Lines that are there still answer; one that is gone is an error, and no miss."""
    cassette = Cassette(make_file(PATH, A, B))
    assert ("a", "b") == (ask(cassette, "a"), ask(cassette, "b"))

    PATH.write_bytes(lines(A))
    assert ("a", False) == (ask(cassette, "a"), cassette.refresh())
    assert (
        "CassetteChanged: c.jsonl: the file was cut under an open cassette; restore it, or open it again"
    ) == ask(cassette, "b")
    assert [1] == [recording.number for recording in cassette.newest_first()]


@pytest.mark.parametrize("other", [line("c"), line("a", "a longer one"), B[:-10] + b"x" * 10, b"x" * len(A)])
def test_a_file_that_was_changed_in_place_never_answers_wrongly(other: bytes) -> None:
    """Where another line stands at the place of one that was checked, that is an error."""
    cassette = Cassette(make_file(PATH, A))
    assert "a" == ask(cassette, "a")

    with PATH.open("r+b") as file:
        file.write(other + b"\n")
    assert "CassetteChanged: c.jsonl:1: the line changed under an open cassette; open it again" == ask(
        cassette, "a"
    )


def test_recordings_are_listed_from_the_newest_line() -> None:
    """What a miss is compared with: every recording that can be read, and the damage is named on the way."""
    odd = seal(b'{"response":{"json":{"says":"odd"}},"key":"%b","kv":1,"v":1' % key_of("a").hex().encode())
    cassette = Cassette(
        make_file(PATH, A, B, FLIPPED, C[:150], tear_note(0, 150), line("a", key_version=2), odd)
    )

    assert [(7, "odd"), (2, "b"), (1, "a")] == [
        (found.number, said(found)) for found in cassette.newest_first()
    ]
    assert [Damage(3, "damaged")] == cassette.damage
    assert ({2: 1}, 4) == (cassette.other_versions, len(cassette))
    assert [] == list(Cassette("none.jsonl").newest_first())


def test_a_spot_stays_good_after_the_cassette_is_closed() -> None:
    """A thread that has looked up does not lose its file to another that closes the cassette."""
    cassette = Cassette(make_file(PATH, A))
    (spot,) = cassette.spots(key_of("a"))
    cassette.close()
    cassette.close()

    recording = cassette.load(spot, key_of("a"))
    assert recording is not None
    assert ("a", "a") == (said(recording), ask(cassette, "a"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open descriptors are counted in /proc")
def test_descriptors_are_given_back() -> None:
    """Closing, replacing and forgetting leave no file open."""
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    cassette = recorder()
    for turn in range(5):
        cassette.append(exchange("a"))
        make_file(Path("other.jsonl"), line(turn)).replace(PATH)
        assert not cassette.append(exchange(turn)).is_new
    cassette.close()
    del cassette
    other = Cassette(PATH)
    ask(other, "a")
    del other
    gc.collect()

    assert before == len(os.listdir("/proc/self/fd"))


# -- paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "a\0b", b"c.jsonl", 7, None, "\ud800.jsonl"])
def test_what_is_no_path_is_refused(path: Any) -> None:
    """A mistake is named where it is made, however the cassette is opened."""
    expected = f"{path!r} is not the path of a cassette file; write it like 'tests/cassettes/chat.jsonl'"
    for make in (Cassette, shared_cassette):
        with pytest.raises(CassetteError) as caught:
            make(path)
        assert expected == str(caught.value)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """A cassette is a file."""
    with pytest.raises(CassetteError) as caught:
        Cassette(tmp_path)

    assert f"{tmp_path}: the path is a folder; name a file in it, such as chat.jsonl" == str(caught.value)


def test_a_path_below_a_file_is_an_error() -> None:
    """In replay a folder that is a file is no miss: it is a fault, and says which."""
    PATH.touch()

    assert "CassetteError: c.jsonl/d.jsonl: the cassette cannot be opened: Not a directory" == ask(
        Cassette("c.jsonl/d.jsonl"), "a"
    )


def test_two_names_of_a_file_are_one_cassette(tmp_path: Path) -> None:
    """Transports on one file share one index, by whatever path they name it."""
    Path("link.jsonl").symlink_to(PATH)
    cassette = shared_cassette(PATH)

    assert cassette is shared_cassette(str(tmp_path / "c.jsonl")) is shared_cassette("link.jsonl")
    assert cassette is shared_cassette(cassette)
    assert cassette is not Cassette(PATH)
    assert str(tmp_path / "c.jsonl") == cassette.real_path
    assert "<Cassette c.jsonl>" == repr(cassette)


def test_a_cassette_goes_where_its_path_led_when_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing the folder of the process changes nothing."""
    cassette = recorder()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    cassette.append(exchange("a"))

    assert (tmp_path / "c.jsonl").exists()


def test_a_folder_that_is_gone_names_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path in a folder that was removed is an error of the tree."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    with pytest.raises(CassetteError):
        Cassette(PATH)


# -- where nothing can be written ----------------------------------------------------------------------


def test_recording_below_a_file_is_refused_before_it_is_paid_for() -> None:
    """The folder cannot be made, and the check says so before any call."""
    PATH.touch()
    cassette = Cassette("c.jsonl/below/d.jsonl")

    for act in (cassette.check_writable, lambda: cassette.append(exchange("a"))):
        with pytest.raises(CassetteReadOnly) as caught:
            act()
        assert "c.jsonl/below/d.jsonl: the folder of the cassette cannot be made: Not a directory" == str(
            caught.value
        )


@pytest.mark.parametrize(("is_there", "name"), [(True, "file"), (False, "folder")])
def test_a_file_or_folder_without_permission_is_refused(
    is_there: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recording is refused before a call is paid for; looking up goes on."""
    if is_there:
        make_file(PATH, A)
    # Permissions do not stop root, who may run this.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    cassette = recorder()

    for act in (cassette.check_writable, lambda: cassette.append(exchange("b"))):
        with pytest.raises(CassetteReadOnly) as caught:
            act()
        assert f"c.jsonl: the {name} cannot be written, so nothing can be recorded" == str(caught.value)
    assert ("a" if is_there else "miss") == ask(cassette, "a")


def test_a_file_that_cannot_be_opened_for_appending_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the check did not foresee is the same error."""
    cassette = recorder()
    monkeypatch.setattr(Cassette, "check_writable", lambda self: None)

    Path("c.jsonl").mkdir()
    with pytest.raises(CassetteReadOnly) as caught:
        cassette.append(exchange("a"))
    assert "c.jsonl: the cassette cannot be opened: Is a directory, so nothing can be recorded" == str(
        caught.value
    )

    cassette = Cassette("none/d.jsonl")
    with pytest.raises(CassetteReadOnly) as caught:
        cassette.append(exchange("a"))
    assert "none/d.jsonl: the folder of the cassette is gone, so nothing can be recorded" == str(caught.value)


# -- what it costs -------------------------------------------------------------------------------------


def test_opening_costs_nothing_at_any_size() -> None:
    """A cassette is read when it is first asked."""
    with PATH.open("wb") as file:
        file.truncate(10**12)
    start = time.process_time()
    cassettes = [Cassette(PATH) for _ in range(1000)]

    assert time.process_time() - start < 20
    assert 1000 == len(cassettes)


def test_a_file_that_is_gone_is_not_answered_from_by_a_new_transport(tmp_path: Path) -> None:
    """Who deletes a cassette, or puts another in its place, means it; what is open already goes on."""
    path = tmp_path / "c.jsonl"
    old = shared_cassette(path)
    old.append(exchange("a"))
    assert old is shared_cassette(path)
    path.unlink()

    new = shared_cassette(path)

    assert new is not old
    assert (1, 0) == (len(old), len(new))
    path.write_bytes(b"")
    assert shared_cassette(path) is new
