"""Do anything to the store in any order, and compare it with a plain list after every step.

Hypothesis chooses the steps: put, supersede, get, put by another process, kill a writer, cut the tail off,
concatenate with another cassette, reopen. The list holds what the file must hold, line by line, and a plain
dictionary made of it says what must be answered.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from ._children import Child, Doom
from ._store import KEY, CarelessStore, CassetteStore, Store, Unreadable
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

#: By number, so that the steps of a failure can be read.
KEYS = [bytes([number]) * KEY for number in range(4)]
SAMPLES = (0, 1)

#: Bytes of a number, by which a child says which of its puts are safe.
WORD = 4

keys = st.integers(0, len(KEYS) - 1)
samples = st.sampled_from(SAMPLES)


class Line(NamedTuple):
    """A recording that must be in the file.

    Args:
        key: Its key.
        gen: Its generation.
        sample: Which of several answers it is.
        text: What it says.
        end: Where it ends in the file, its newline included.
    """

    key: int
    gen: int
    sample: int
    text: str
    end: int


class Put(NamedTuple):
    """Something that a child process is to put."""

    key: int
    sample: int
    supersede: bool
    text: str


class Machine(RuleBasedStateMachine):
    """The store, and the list of what must be in it. ``prepare`` makes a class of it that can be run."""

    account: Account
    folder: Path
    open_store: Callable[[Path], Store]
    serial = 0

    def __init__(self) -> None:
        super().__init__()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.path = self.folder / "chat.jsonl"
        self.lines: list[Line] = []
        self.store = type(self).open_store(self.path)

    # -- what must be ------------------------------------------------------------------------------

    def newest(self, key: int) -> tuple[int, dict[int, str]]:
        """Return the highest generation of a key and its texts by sample; of equal lines the last counts."""
        gens: dict[int, dict[int, str]] = {}
        for line in self.lines:
            if line.key == key:
                gens.setdefault(line.gen, {})[line.sample] = line.text
        best = max(gens, default=0)
        return best, gens.get(best, {})

    def text(self, length: int) -> str:
        """Return a text that there was never before."""
        Machine.serial += 1
        return f"{Machine.serial} " + "x雨"[length % 2] * length

    def expect_put(self, key: int, sample: int, text: str, is_new: bool, *, supersede: bool) -> None:
        """Enter what a put must have done."""
        gen, texts = self.newest(key)
        assert is_new == (supersede or sample not in texts)
        if is_new:
            written, end = _lines(self.path).get(text, (gen + supersede, self.path.stat().st_size))
            # Where the file was cut meanwhile, generations may be left out.
            assert written >= gen + supersede
            self.lines.append(Line(key, written, sample, text, end))
        self.step("put")

    def step(self, name: str) -> None:
        self.account.see("steps")
        self.account.see(name)

    # -- steps -------------------------------------------------------------------------------------

    @rule(key=keys, sample=samples, length=st.integers(0, 4_000))
    def put(self, key: int, sample: int, length: int) -> None:
        text = self.text(length)
        self.expect_put(key, sample, text, self.store.put(KEYS[key], text, sample), supersede=False)

    @rule(key=keys, sample=samples, length=st.integers(0, 4_000))
    def supersede(self, key: int, sample: int, length: int) -> None:
        text = self.text(length)
        self.expect_put(
            key, sample, text, self.store.put(KEYS[key], text, sample, supersede=True), supersede=True
        )

    @rule(key=keys, sample=samples, supersede=st.booleans())
    def another_puts(self, key: int, sample: int, supersede: bool) -> None:
        """Another opens the file, puts, and closes it; this one sees it when it looks again."""
        other, text = type(self).open_store(self.path), self.text(10)
        is_new = other.put(KEYS[key], text, sample, supersede=supersede)
        other.close()
        self.expect_put(key, sample, text, is_new, supersede=supersede)
        self.store.refresh()

    @rule(key=keys, sample=samples)
    def get(self, key: int, sample: int) -> None:
        assert self.store.get(KEYS[key], sample) == self.newest(key)[1].get(sample)
        self.step("get")

    @rule()
    def get_all(self) -> None:
        self.check(self.store)
        self.step("get")

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = type(self).open_store(self.path)
        self.step("reopen")

    @rule(seed=st.integers(0, 10**6), delay=st.floats(10e-6, 40e-6), write=st.integers(1, 3))
    def kill(self, seed: int, delay: float, write: int) -> None:
        """A child puts some texts and dies while it writes one of them, which may be there then or not."""
        chance = random.Random(seed)
        puts = [
            Put(
                chance.randrange(len(KEYS)),
                chance.choice(SAMPLES),
                True,
                self.text(chance.randint(2_000, 8_000)),
            )
            for _ in range(4)
        ]
        child = Child(
            partial(_put_all, partial(type(self).open_store, self.path), puts), WORD, Doom(write, delay)
        )
        safe = len(child.bury())
        data = self.path.read_bytes()
        os.truncate(self.path, len(data) - _unclear(data))
        self.store.refresh()
        there = _lines(self.path)
        for number, put in enumerate(puts):
            if put.text in there:
                gen, end = there[put.text]
                assert gen == self.newest(put.key)[0] + 1
                self.lines.append(Line(put.key, gen, put.sample, put.text, end))
            else:
                assert number >= safe, "an acknowledged text is lost"
        self.account.see("torn", not _ends_at_a_line(self.path))
        self.step("kill")

    # No preconditions: what a kill leaves differs from run to run, and Hypothesis repeats its choices.
    @rule(length=st.integers(1, 2_000), goes_on=st.booleans(), key=keys)
    def cut_tail(self, length: int, goes_on: bool, key: int) -> None:
        """The end of the file is lost; who has it open puts something next, or opens it again."""
        if not self.path.exists():
            return
        size = max(0, self.path.stat().st_size - length)
        size -= _unclear(self.path.read_bytes()[:size])
        os.truncate(self.path, size)
        # A line that only lacks its newline is whole.
        self.lines = [line for line in self.lines if line.end - 1 <= size]
        self.step("cut tail")
        self.go_on(goes_on, key)

    @rule(
        puts=st.lists(st.tuples(keys, samples, st.booleans()), max_size=5),
        first=st.booleans(),
        goes_on=st.booleans(),
        key=keys,
    )
    def merge(self, puts: list[tuple[int, int, bool]], first: bool, goes_on: bool, key: int) -> None:
        """A union merge with another cassette: its lines come before those here, or behind."""
        if not _ends_at_a_line(self.path):
            self.supersede(key, 0, 10)  # Git gives a file that ends without a newline one before it merges.
        theirs = Machine.__new__(type(self))
        theirs.path, theirs.lines = self.folder / "theirs.jsonl", []
        theirs.path.unlink(missing_ok=True)
        theirs.path.touch()
        store = type(self).open_store(theirs.path)
        for their_key, sample, supersede in puts:
            text = self.text(10)
            is_new = store.put(KEYS[their_key], text, sample, supersede=supersede)
            theirs.expect_put(their_key, sample, text, is_new, supersede=supersede)
        store.close()
        files = [theirs.path, self.path] if first else [self.path, theirs.path]
        lines = [theirs.lines, self.lines] if first else [self.lines, theirs.lines]
        contents = [path.read_bytes() if path.exists() else b"" for path in files]
        merged = self.folder / "merged.jsonl"
        merged.write_bytes(b"".join(contents))
        merged.replace(self.path)
        moved = [line._replace(end=line.end + len(contents[0])) for line in lines[1]]
        self.lines = [*lines[0], *moved]
        self.step("merge")
        self.go_on(goes_on, key)

    def go_on(self, goes_on: bool, key: int) -> None:
        """Put something with the store that was open when the file changed, or open it again."""
        if goes_on:
            try:
                self.supersede(key, 0, 10)
            except Unreadable:
                self.step("refused")  # A file that was cut may say so, as long as it is not opened again.
            else:
                return
        self.reopen()

    # -- after the last step -----------------------------------------------------------------------

    def check(self, store: Store) -> None:
        for key in range(len(KEYS)):
            texts = self.newest(key)[1]
            for sample in SAMPLES:
                assert store.get(KEYS[key], sample) == texts.get(sample)

    def teardown(self) -> None:
        self.store.close()
        fresh = type(self).open_store(self.path)
        self.check(fresh)
        # Two branches may have recorded one generation each; nothing else may be wrong.
        assert [problem for problem in fresh.problems() if "another answer" not in problem] == []
        fresh.close()


def _put_all(open_store: Callable[[], Store], puts: list[Put], acknowledge: Callable[[bytes], None]) -> None:
    store = open_store()
    for number, put in enumerate(puts):
        store.put(KEYS[put.key], put.text, put.sample, supersede=put.supersede)
        acknowledge(number.to_bytes(WORD, "big"))


def _lines(path: Path) -> dict[str, tuple[int, int]]:
    """Return the texts of the lines that are JSON, with the generation of each and where its line ends."""
    found, position = {}, 0
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        position += len(line) + 1
        try:
            members: Any = json.loads(line)
        except ValueError:
            continue
        if "key" in members:
            text = members.get("text") or members["response"]["text"]
            found[text] = members.get("gen", 0), position
    return found


def _unclear(data: bytes) -> int:
    """Return how many bytes stand behind a torn line that are too few for a note.

    Cut just there, nothing tells the line from one that was damaged.
    """
    *_, line, rest = (b"", *data.split(b"\n"))
    is_torn = bool(line) and not line.endswith(b"}")
    return len(b"\n" + rest) if is_torn and len(rest) < len(b'{"v":1,"t') else 0


def _ends_at_a_line(path: Path) -> bool:
    data = path.read_bytes() if path.exists() else b""
    return not data or data.endswith(b"\n")


def prepare(account: Account, folder: Path, open_store: Callable[[Path], Store]) -> type[Machine]:
    """Return the machine for one store."""
    members = {"account": account, "folder": folder, "open_store": staticmethod(open_store)}
    return type("Machine", (Machine,), members)


def _run(setting: Setting, account: Account) -> None:
    steps = setting.of(400, 10_000)
    machine = prepare(account, setting.folder / "machine", CassetteStore)
    while account.counts["steps"] < steps:
        _run_machine(machine, examples=10 if setting.is_short else 100, is_repeatable=setting.is_short)
    for name in ("put", "get", "kill", "reopen", "merge", "cut tail"):
        account.need(name, steps / 50)
    account.need("torn", steps / 1_000)
    account.control(lambda other: _control(setting, other))


def _control(setting: Setting, account: Account) -> None:
    machine = prepare(Account(), setting.folder / "control", CarelessStore)
    try:
        _run_machine(machine, examples=20, is_repeatable=True)
    except (AssertionError, Flaky) as error:  # Flaky, where it did not fail in the same way once more.
        account.fault(repr(error))


def _run_machine(machine: type[Machine], *, examples: int, is_repeatable: bool) -> None:
    settings = hypothesis.settings(
        max_examples=examples,
        stateful_step_count=100,
        deadline=None,
        database=None,
        # Not shrunk: each try forks, and what a kill leaves cannot be repeated.
        phases=[hypothesis.Phase.generate],
        derandomize=is_repeatable,
        # One is enough, and comes as itself rather than in a group.
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    run_state_machine_as_test(machine, settings=settings)


TRIALS = (Trial("any-order", "equal to a dictionary after every step", _run),)
