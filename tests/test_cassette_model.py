"""The cassette against a model of it, and against files that were mutated.

The model is a list of what was written. The machine appends, supersedes, reopens, dies in the middle of a
line and concatenates files as git would; after each step every answer must be the model's.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from httpx_cassette._call import Json
from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteError

from ._recordings import ask, exchange, key_of, line, said

NAMES = "abc"


class Written(NamedTuple):
    """An intact line of the file."""

    name: str
    sample: int
    gen: int
    says: Json


class Store(RuleBasedStateMachine):
    """A cassette that one object writes, others too, and another reads."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "c.jsonl"
        self.path.touch()
        self.count = 0
        self.written: list[Written] = []
        self.open()

    def open(self) -> None:
        self.writer, self.reader = Cassette(self.path, fsync=False), Cassette(self.path)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def has_tail(self) -> bool:
        data = self.path.read_bytes()
        return bool(data) and not data.endswith(b"\n")

    # -- the model ---------------------------------------------------------------------------------

    def newest_gen(self, name: str) -> int:
        return max((there.gen for there in self.written if there.name == name), default=0)

    def answer(self, name: str, sample: int) -> Json:
        gen = self.newest_gen(name)
        # Of several lines of one sample the last wins.
        answers = {
            there.sample: there.says for there in self.written if (there.name, there.gen) == (name, gen)
        }
        if not answers:
            return "miss"
        return answers[max((there for there in answers if there <= sample), default=min(answers))]

    # -- what is done ------------------------------------------------------------------------------

    @rule(
        name=st.sampled_from(NAMES),
        sample=st.integers(0, 2),
        supersede=st.booleans(),
        by_another=st.booleans(),
    )
    def append(self, name: str, sample: int, supersede: bool, by_another: bool) -> None:
        self.count += 1
        new = Written(name, sample, self.newest_gen(name) + supersede, self.count)
        before = [there for there in self.written if there[:3] == new[:3]]
        cassette = Cassette(self.path, fsync=False) if by_another else self.writer
        appended = cassette.append(exchange(name, self.count, sample=sample), supersede=supersede)

        expected = before[-1] if before else new
        assert (not before, expected.says) == (appended.is_new, said(appended.recording))
        assert (sample, expected.gen) == (appended.recording.head.sample, appended.recording.head.gen)
        if not before:
            self.written.append(new)

    @rule()
    def reopen(self) -> None:
        self.open()

    # While there is a tail, one has died and nobody has appended since.
    @precondition(lambda self: not self.has_tail)
    @rule(name=st.sampled_from(NAMES), kept=st.integers(0, 350) | st.just(1000))
    def die_while_appending(self, name: str, kept: int) -> None:
        """Leave a part of a line; a line that lacks nothing but its newline counts."""
        self.count += 1
        new = Written(name, 0, self.newest_gen(name) + 1, self.count)
        whole = line(name, self.count, gen=new.gen)
        with self.path.open("ab") as file:
            file.write(whole[:kept])
        if kept >= len(whole):
            self.written.append(new)

    @rule(name=st.sampled_from(NAMES), is_first=st.booleans(), crlf=st.booleans())
    def concatenate(self, name: str, is_first: bool, crlf: bool) -> None:
        """Put another file before or behind this one, as a merge does that keeps the lines of both sides."""
        self.count += 1
        others = [Written(name, 0, gen, f"{self.count} {gen}") for gen in range(2)]
        theirs = b"".join(line(name, there.says, gen=there.gen) + b"\n" for there in others)
        ours = self.path.read_bytes()
        if is_first or self.has_tail:
            data, self.written = theirs + ours, [*others, *self.written]
        else:
            data, self.written = ours + theirs, [*self.written, *others]
        self.path.write_bytes(data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n") if crlf else data)
        self.open()

    # -- what must be so ---------------------------------------------------------------------------

    @invariant()
    def every_answer_is_that_of_the_model(self) -> None:
        expected = {(name, sample): self.answer(name, sample) for name in NAMES for sample in range(4)}
        for cassette in (self.reader, self.writer, Cassette(self.path)):
            cassette.refresh()
            assert expected == {asked: ask(cassette, asked[0], sample=asked[1]) for asked in expected}

    @invariant()
    def nothing_else_is_in_the_file(self) -> None:
        names = {key_of(name): name for name in NAMES}
        found = [
            Written(names[there.head.key], there.head.sample, there.head.gen, said(there))
            for there in self.reader.newest_first()
        ]
        assert self.written == found[::-1]
        assert [] == [damage for damage in self.reader.damage if "another answer" not in damage.reason]


def test_whatever_is_done_the_answers_are_those_of_the_model() -> None:
    """In whatever order a cassette is written, cut, merged and opened, it answers what was written."""
    run_state_machine_as_test(
        Store, settings=settings(max_examples=30, stateful_step_count=20, deadline=None)
    )


# -- mutated files -------------------------------------------------------------------------------------

#: What was recorded for each call, over all generations; another sample answers where one is gone.
ANSWERS: dict[tuple[str, int], list[Json]] = {
    ("a", 0): ["a0", "a1", "a2", "a2-1"],
    ("a", 1): ["a0", "a1", "a2", "a2-1"],
    ("b", 0): ["b0", "b1"],
    ("c", 0): ["c"],
    ("d", 0): [],
}

FILE = b"".join(
    one + b"\n"
    for one in (
        line("a", "a0"),
        line("b", "b1", gen=1),
        line("a", "a2", gen=2),
        b'{"v":1,"note":"of another kind"}',
        line("c", "torn")[:130],
        b'{"v":1,"tear":[1000,130]}',
        line("c", "c"),
        line("a", "a1", gen=1),
        line("a", "a2-1", gen=2, sample=1),
        line("b", "b0"),
    )
)


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Return the file after a few accidents."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        span = slice(at, at + chance.choice([1, 1, 1, 2, 20, 400]))
        what = chance.choice(["flip", "flip", "delete", "insert", "zero", "repeat", "newline", "digit"])
        if what == "flip" and at < len(changed):
            changed[at] ^= 1 << chance.randrange(8)
        elif what == "delete":
            del changed[span]
        elif what == "insert":
            changed[at:at] = chance.randbytes(chance.choice([1, 5, 50]))
        elif what == "zero":
            changed[span] = bytes(len(changed[span]))
        elif what == "repeat":
            changed[at:at] = changed[span]
        elif what == "newline":
            changed[at:at] = b"\n"
        else:
            changed[span] = bytes(
                chance.choice(b"0123456789") if chr(one).isdigit() else one for one in changed[span]
            )
    return bytes(changed)


@pytest.mark.parametrize("seed", range(8))
def test_a_mutated_file_never_answers_wrongly(seed: int, tmp_path: Path) -> None:
    """Whatever was changed, a call gets an answer that was recorded for it, a miss or a named error."""
    chance = random.Random(seed)
    for turn in range(60):
        path = tmp_path / f"{turn}.jsonl"
        path.write_bytes(mutate(FILE, chance))
        before = answers(path)
        try:
            Cassette(path, fsync=False).append(exchange("new"))
        except CassetteError:
            assert before == answers(path)
        else:
            # What could be answered still is, and what was appended too.
            assert (before, "new") == (answers(path), ask(Cassette(path), "new"))


def answers(path: Path) -> list[Json]:
    """Return what each call is answered, and make sure that it was recorded for that call."""
    cassette = Cassette(path)
    found = []
    for (name, sample), recorded in ANSWERS.items():
        answer = ask(cassette, name, sample=sample)
        assert answer in [*recorded, "miss"] or str(answer).startswith("Cassette"), (name, answer)
        found.append(answer)
    try:
        _ = cassette.check(), cassette.torn, len(cassette)
        assert all(said(recording) for recording in cassette.newest_first())
    except CassetteError as error:
        found.append(type(error).__name__)
    return found
