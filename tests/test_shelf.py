"""Several cassettes looked up as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteChanged, CassetteDamaged
from httpx_cassette._shelf import Shelf

from ._recordings import ask, exchange, key_of, line, make_file, said


@pytest.fixture(autouse=True)
def in_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``0.jsonl`` and ``1.jsonl`` be the cassettes of the test."""
    monkeypatch.chdir(tmp_path)


def shelf(*files: list[bytes]) -> Shelf:
    """Return a shelf of cassettes with these lines."""
    for number, lines in enumerate(files):
        make_file(Path(f"{number}.jsonl"), *lines)
    return Shelf([Cassette(f"{number}.jsonl", fsync=False) for number in range(len(files))])


def test_all_are_looked_up_and_the_last_is_written() -> None:
    """A small seed in git answers beside the full cassette; what is new goes to the full one."""
    both = shelf([line("a"), line("b", "seed")], [line("b", "full"), line("c")])

    assert ["a", "full", "c", "miss"] == [ask(both, name) for name in "abcd"]
    assert both.append(exchange("d"), gen=0).is_new
    assert "1.jsonl" == both.written.path
    assert ["miss", "d"] == [ask(cassette, "d") for cassette in both.cassettes]


def test_an_exact_sample_is_that_sample_or_none() -> None:
    """While recording, a sample that is missing is recorded; replaying repeats the last there is."""
    one = shelf([line("a", "0"), line("a", "2", sample=2)])

    exact = [one.find(key_of("a"), sample, exact=True) for sample in range(4)]
    assert ["0", None, "2", None] == [found and said(found) for found in exact]
    assert ["0", "0", "2", "2"] == [ask(one, "a", sample=sample) for sample in range(4)]
    assert one.find(key_of("b"), 0, exact=True) is None


def test_an_only_line_answers_its_own_sample() -> None:
    """The usual case, one line of a key, gives what the general one gives."""
    one = shelf([line("a", "1", sample=1)])

    assert one.find(key_of("a"), 0, exact=True) is None
    assert ["1", "1", "1"] == [ask(one, "a", sample=sample) for sample in range(3)]


def test_a_sample_is_added_to_the_generation_of_the_list() -> None:
    """A generation is one set over all cassettes: a new sample joins the newest, wherever that is."""
    both = shelf([line("a", "new", gen=3)], [line("a", "old")])
    assert 3 == both.newest_gen(key_of("a"))

    appended = both.append(exchange("a", "1", sample=1), gen=both.newest_gen(key_of("a")))
    assert 3 == appended.recording.head.gen
    assert ["new", "1"] == [ask(both, "a", sample=sample) for sample in range(2)]


def test_a_new_generation_is_above_that_of_every_cassette() -> None:
    """What is recorded anew wins at once, also where only the seed had the call."""
    both = shelf([line("a", gen=3)], [])

    assert 4 == both.append(exchange("a", "new"), gen=None).recording.head.gen
    assert "new" == ask(both, "a")
    assert 0 == both.newest_gen(key_of("none"))


def test_every_cassette_is_refreshed() -> None:
    """News in one file does not keep the others from being read."""
    both = shelf([], [])
    assert ["miss", "miss"] == [ask(both, name) for name in "ab"]
    assert not both.refresh()

    make_file(Path("0.jsonl"), line("a"))
    make_file(Path("1.jsonl"), line("b"))
    assert both.refresh()
    assert ["a", "b"] == [ask(both, name) for name in "ab"]
    assert not both.refresh()


def test_recordings_are_listed_from_the_last_cassette_on() -> None:
    """What is compared with a miss begins with what was recorded last."""
    both = shelf([line("a"), line("b")], [line("c"), line("d")])

    assert ["d", "c", "b", "a"] == [said(found) for found in both.newest_first()]


BROKEN = line("a", "new", gen=1).replace(b'"ms"', b'"m\x01"')


def test_a_damaged_line_is_made_good_by_an_intact_one_elsewhere() -> None:
    """Another line of the same key, sample and generation answers, in whichever file it stands."""
    for files in ([[BROKEN], [line("a", "new", gen=1)]], [[line("a", "new", gen=1)], [BROKEN]]):
        assert "new" == ask(shelf(*files), "a")


def test_damage_in_one_cassette_is_no_answer_from_another() -> None:
    """An older generation never stands in for a newer one, over several files either."""
    both = shelf([line("a", "old")], [line("b"), BROKEN])

    with pytest.raises(CassetteDamaged) as caught:
        both.find(key_of("a"), 0, exact=False)

    assert ("1.jsonl", 2) == (caught.value.path, caught.value.line)
    assert (
        "1.jsonl:2: the recording is damaged; "
        "restore the file, or record the call again with HTTPX_CASSETTE_MODE=rerecord"
    ) == str(caught.value)


def test_a_line_that_is_gone_is_made_good_by_another() -> None:
    """A file that was cut is an error only where no other line can answer."""
    both = shelf([line("a"), line("b")], [line("a")])
    assert ["a", "b"] == [ask(both, name) for name in "ab"]

    Path("1.jsonl").write_bytes(b"")
    Path("0.jsonl").write_bytes(line("a") + b"\n")
    assert "a" == ask(both, "a")
    with pytest.raises(CassetteChanged) as caught:
        both.find(key_of("b"), 0, exact=False)
    assert "0.jsonl: the file was cut under an open cassette; restore it, or open it again" == str(
        caught.value
    )


def test_the_first_of_several_faults_is_told() -> None:
    """Where every line of an answer is gone or damaged, the newest fault is the error."""
    both = shelf([line("a")], [line("a")])
    assert "a" == ask(both, "a")
    for name in ("0.jsonl", "1.jsonl"):
        Path(name).write_bytes(b"")

    with pytest.raises(CassetteChanged) as caught:
        both.find(key_of("a"), 0, exact=False)
    assert "1.jsonl" == caught.value.path
