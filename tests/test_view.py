"""An open cassette file and what is known of it: scanning, reading lines, checking them."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpx_cassette import _open_file, _view
from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteChanged, CassetteError
from httpx_cassette._index import Damage
from httpx_cassette._line import MAX_LINE, seal
from httpx_cassette._open_file import open_file
from httpx_cassette._view import View

from ._recordings import ask, exchange, key_of, line, make_file

A, B = line("a"), line("b")


def view_of(path: Path) -> View:
    file = open_file(str(path), "c.jsonl")
    assert file is not None
    return View("c.jsonl", file)


def scanned(path: Path, *lines: bytes) -> View:
    view = view_of(make_file(path / "c.jsonl", *lines))
    view.scan()
    return view


def entry_of(view: View, name: str) -> int:
    return view.index.entries(key_of(name))[0]


# -- scanning ------------------------------------------------------------------------------------------


def test_only_what_is_new_is_scanned(tmp_path: Path) -> None:
    """A scan tells whether there was anything, and goes on where the last one ended."""
    path = make_file(tmp_path / "c.jsonl", A)
    view = view_of(path)

    assert (True, False) == (view.scan(), view.scan())
    with path.open("ab") as file:
        file.write(B + b"\n")
    assert (True, False) == (view.scan(), view.scan())
    assert (2, B) == (len(view.index), view.line(entry_of(view, "b")))


def test_an_empty_file_has_nothing(tmp_path: Path) -> None:
    """A file without a byte is a valid cassette."""
    view = scanned(tmp_path)

    assert (0, [], False) == (len(view.index), view.check(), view.index.has_tail)


def test_lines_larger_than_a_piece_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not matter how much is read at once."""
    monkeypatch.setattr(_view, "_CHUNK", 100)
    view = scanned(tmp_path, A, exchange("big", size=200_000).line(0, 1), B)

    assert [1, 2, 3] == [view.index.numbers[entry_of(view, name)] for name in ("a", "big", "b")]
    assert [] == view.check()


def with_hole(path: Path, before: bytes, hole: int, behind: bytes) -> Path:
    """Write a file with a hole, which takes no time and no room on the disk."""
    with path.open("wb") as file:
        file.write(before)
        file.seek(hole, 1)
        file.write(behind)
    return path


def test_a_line_longer_than_64_mib_is_stepped_over(tmp_path: Path) -> None:
    """What is too long is not loaded; it is named, and the lines behind it are found."""
    view = view_of(with_hole(tmp_path / "c.jsonl", A + b"\n", MAX_LINE + 1_000_000, b"\n" + B + b"\n"))
    view.scan()

    assert [Damage(2, "longer than 64 MiB")] == view.check()
    assert B == view.line(entry_of(view, "b"))


def test_a_line_of_64_mib_is_read(tmp_path: Path) -> None:
    """The limit itself is within the limit, where git made CRLF of the newline too."""
    view = view_of(with_hole(tmp_path / "c.jsonl", A + b"\n", MAX_LINE, b"\r\n" + B + b"\r\n"))
    view.scan()

    assert [Damage(2, "zero bytes")] == view.index.damage
    assert B == view.line(entry_of(view, "b"))


def test_a_tail_longer_than_64_mib_stays_a_tail(tmp_path: Path) -> None:
    """A line without an end is torn, however long; an append makes a line of it that is stepped over."""
    path = with_hole(tmp_path / "c.jsonl", A + b"\n", MAX_LINE + 1_000_000, b"\0")
    view = view_of(path)
    view.scan()
    assert (True, len(A) + 1, 1) == (view.index.has_torn_tail, view.index.end, len(view.index))

    cassette = Cassette(path, fsync=False)
    assert 4 == cassette.append(exchange("b")).recording.number
    for reader in (cassette, Cassette(path)):
        assert (["a", "b"], 1, []) == ([ask(reader, name) for name in "ab"], reader.torn, reader.check())


def test_a_file_that_is_cut_while_it_is_scanned_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file ends before its size said so, there is a tail or nothing."""
    monkeypatch.setattr(_view, "_CHUNK", len(A) + 1)
    path = make_file(tmp_path / "c.jsonl", A, B, B)
    view = view_of(path)
    feed = view.index.feed

    def feed_and_cut(data: bytes, stop: int) -> None:
        feed(data, stop)
        path.write_bytes(A + b"\n" + B[:20])

    monkeypatch.setattr(view.index, "feed", feed_and_cut)
    view.scan()

    assert (1, True) == (len(view.index), view.index.has_torn_tail)


def test_a_disk_that_gives_less_than_it_has_is_no_end_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the store is not a miss: bytes that the size promises and nobody gives are an error."""
    view = view_of(make_file(tmp_path / "c.jsonl", A, B))
    monkeypatch.setattr(_open_file, "_read", lambda number, length, offset: b"")

    with pytest.raises(CassetteError) as caught:
        view.scan()

    assert "c.jsonl: the cassette cannot be read: it gives fewer bytes than it has" == str(caught.value)


def test_a_file_that_was_changed_in_place_is_read_anew(tmp_path: Path) -> None:
    """Where no line ends any more at the place that was reached, what is known is of no use."""
    intact, changed, broken = (scanned(tmp_path, A, B) for _ in range(3))
    assert [True] * 3 == [view.is_usable for view in (intact, changed, broken)]

    broken.index.is_broken = True
    assert [True, False] == [view.is_usable for view in (intact, broken)]
    (tmp_path / "c.jsonl").write_bytes(line("a", "x" * 1000) + b"\n")
    assert [False, False] == [view.is_usable for view in (changed, broken)]


# -- lines ---------------------------------------------------------------------------------------------


def test_a_line_that_was_cut_off_is_gone(tmp_path: Path) -> None:
    """Where the file has become shorter, its lines are read as far as they are there."""
    view = scanned(tmp_path, A, B)
    (tmp_path / "c.jsonl").write_bytes(A + b"\n" + B[:50])

    assert A == view.line(entry_of(view, "a"))
    with pytest.raises(CassetteChanged) as caught:
        view.line(entry_of(view, "b"))
    assert "c.jsonl: the file was cut under an open cassette; restore it, or open it again" == str(
        caught.value
    )


REASONS: dict[str, tuple[bytes, str]] = {
    "edited": (A.replace(b'"says":"a"', b'"says":"A"'), "edited by hand, or damaged"),
    "bytes-flipped": (A.replace(b'"says":"a"', b'"says":\x00a"'), "damaged"),
    "cut": (A[:-5], "damaged"),
}


@pytest.mark.parametrize(("damaged", "reason"), REASONS.values(), ids=REASONS)
def test_what_is_wrong_with_a_line_is_said(damaged: bytes, reason: str, tmp_path: Path) -> None:
    """A line that is still JSON may have been edited on purpose; each line is named once."""
    view = scanned(tmp_path, B, damaged)

    assert not view.is_good(entry_of(view, "a"))
    assert [Damage(2, reason)] == view.check() == view.check()


def test_a_line_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found intact is not looked at again."""
    view = scanned(tmp_path, A)
    assert view.is_good(0)
    monkeypatch.setattr(_view, "is_intact", None)

    assert view.is_good(0)
    assert view.is_good(0, A)


# -- conflicts -----------------------------------------------------------------------------------------

ANSWER = b'"response":{"status":200,"headers":{},"json":{"a":1,"b":[2]}}'
HEAD = b'{"v":1,"kv":1,"key":"%b","sample":0,"gen":0,' % key_of("a").hex().encode()

SAME: dict[str, tuple[bytes, bytes]] = {
    "the-same-line": (A, A),
    "another-date": (A, seal(A.rpartition(b',"sum"')[0].replace(b"2026-11-29", b"2026-12-24"))),
    "another-order": (
        seal(HEAD + ANSWER),
        seal(HEAD + b'"response":{"json":{"b":[2],"a":1},"headers":{},"status":200}'),
    ),
    "another-sample": (A, line("a", "other", sample=1)),
    "another-generation": (A, line("a", "other", gen=1)),
    "a-damaged-line": (A, line("a", "other")[:-3] + b'0"}'),
    "no-answer-at-all": (seal(HEAD + b'"a":1'), seal(HEAD + b'"a":2')),
}


@pytest.mark.parametrize(("first", "second"), SAME.values(), ids=SAME)
def test_lines_that_answer_alike_are_harmless(first: bytes, second: bytes, tmp_path: Path) -> None:
    """What was recorded twice, and came together in a merge, is no conflict unless the answers differ."""
    assert [] == [found for found in scanned(tmp_path, first, B, second).check() if "another" in found.reason]


OTHER: dict[str, tuple[bytes, bytes]] = {
    "another-answer": (A, line("a", "other")),
    "another-status": (seal(HEAD + ANSWER), seal(HEAD + ANSWER.replace(b"200", b"201"))),
    "no-json": (seal(HEAD + b'"x'), seal(HEAD + b'"y')),
}


@pytest.mark.parametrize(("first", "second"), OTHER.values(), ids=OTHER)
def test_lines_that_contradict_each_other_are_named(first: bytes, second: bytes, tmp_path: Path) -> None:
    """Two answers to one call, sample and generation are a conflict: the later line names the earlier."""
    expected = Damage(3, "another answer than line 1 gives to the same call")

    assert [expected] == scanned(tmp_path, first, B, second).check()
