"""Sixteen processes on one file: each with recordings of its own, and all with the same ones.

Nobody is killed here. Every line must be whole, none may be lost, and of several that bring an answer to one
key the first alone is kept.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

from ._children import in_children
from ._store import CarelessStore, CassetteStore, Store, key_of, text_of
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

PROCESSES = 16

#: Keys that all race for before they wait for each other.
AT_ONCE = 20

#: Characters of a text: lines of some hundred bytes, so that many fit into one buffer.
SIZE = (100, 400)


def _own(setting: Setting, account: Account, fsync: bool, short: int, full: int) -> None:
    """Let each process put texts under keys of its own."""
    each = setting.of(short, full)
    path = setting.folder / "own.jsonl"
    _put_own(account, path, each, partial(CassetteStore, path, fsync))
    store = CassetteStore(path)
    account.expect(
        len(store) == PROCESSES * each, f"{PROCESSES * each:,} recordings were put, {len(store):,} are there"
    )
    account.expect(
        path.read_bytes().count(b"\n") == PROCESSES * each, "there are other lines than the recordings"
    )
    account.need("lines between those of others", each / 10)
    other = setting.folder / "control.jsonl"
    account.control(
        lambda control: _put_own(control, other, 1_000, partial(CarelessStore, other, is_buffered=True))
    )


def _put_own(account: Account, path: Path, each: int, open_store: Callable[[], Store]) -> None:
    start = time.time() + 0.3  # All begin together, so that they meet.
    in_children([partial(_put, open_store, number, each, start) for number in range(PROCESSES)], account)
    store = open_store()
    for problem in store.problems():
        account.fault(f"a line that is not whole: {problem}")
    for number in range(PROCESSES):
        for key in _keys(number, each):
            found = store.get(key)
            account.see("good recordings", found is not None)
            account.expect(found == text_of(key, *SIZE), "a recording is lost, or another one")
    account.see("lines between those of others", _changes(path, each))


def _put(open_store: Callable[[], Store], number: int, each: int, start: float, account: Account) -> None:
    store = open_store()
    time.sleep(max(0.0, start - time.time()))
    for key in _keys(number, each):
        account.expect(store.put(key, text_of(key, *SIZE)), "a key that nobody else has was there before")
    store.close()


def _keys(number: int, each: int) -> list[bytes]:
    chance = random.Random(number)
    return [key_of(chance) for _ in range(each)]


def _changes(path: Path, each: int) -> int:
    """Return how often a line is followed by one of another process: that they met at all."""
    owner = {key.hex().encode(): number for number in range(PROCESSES) for key in _keys(number, each)}
    owners = [owner.get(line[21:85]) for line in path.read_bytes().split(b"\n")]
    return sum(one != other for one, other in pairwise(owners))


def _same(setting: Setting, account: Account, fsync: bool) -> None:
    """Let all processes put texts under the same keys, each its own text."""
    keys = _keys(0, setting.of(200, 500))
    path = setting.folder / "same.jsonl"
    _put_same(account, keys, partial(CassetteStore, path, fsync))
    lines = path.read_bytes().count(b"\n")
    account.see("lines", lines)
    account.expect(lines == len(keys), f"{len(keys)} keys were put, and there are {lines} lines")
    account.need("processes that were first somewhere", 2)
    other = setting.folder / "control.jsonl"

    def control(control: Account) -> None:
        _put_same(control, keys, partial(CarelessStore, other))
        control.expect(other.read_bytes().count(b"\n") == len(keys), "one key has several lines")

    account.control(control)


def _put_same(account: Account, keys: list[bytes], open_store: Callable[[], Store]) -> None:
    start = time.time() + 0.3
    works = [partial(_put_race, open_store, keys, number, start) for number in range(PROCESSES)]
    in_children(works, account)
    account.see("keys", len(keys))
    account.expect(account.counts["kept"] == len(keys), f"{account.counts['kept']:,} times a text was kept")
    store = open_store()
    for problem in store.problems():
        account.fault(f"a line that is not whole: {problem}")
    account.see("processes that were first somewhere", len({store.get(key) for key in keys}))


def _put_race(
    open_store: Callable[[], Store], keys: list[bytes], number: int, start: float, account: Account
) -> None:
    store = open_store()
    mine = f"by process {number}"
    for nth, key in enumerate(keys):
        if nth % AT_ONCE == 0:
            # They meet again and again: on a busy machine one alone would be through before the next began.
            time.sleep(max(0.0, start + 0.05 * nth / AT_ONCE - time.time()))
        if store.put(key, mine):
            account.see("kept")
            account.expect(store.get(key) == mine, "what was kept is another text")
        else:
            account.expect(store.get(key) != mine, "what was refused is there")
    store.close()


TRIALS = (
    Trial("own-keys", "every line good", partial(_own, fsync=False, short=300, full=10_000)),
    Trial("own-keys-fsync", "every line good", partial(_own, fsync=True, short=20, full=500)),
    Trial("same-keys", "one line for each key", partial(_same, fsync=False)),
    Trial("same-keys-fsync", "one line for each key", partial(_same, fsync=True)),
)
