"""Kill a writer with ``kill -9`` in the middle of its work, and look for what it was told is safe.

A child appends lines of random length, as fast as it can, and reports each key that was acknowledged. Three
kills of ten come at a random moment, the others while a line is being written. Files are carried on by the
next child, so that torn lines are healed and written behind; after each kill what was acknowledged since is
looked up, and at the end of a file everything that ever was.

Without ``fsync`` the share of kills that tear a line says whether the trial could have failed. (Lines that
end at a page never tear; hence the random lengths.) With it a kill falls into the waiting for the disk, as a
rule, and tears few.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ._children import Child, Doom
from ._store import KEY, CarelessStore, CassetteStore, Store, Unreadable, key_of, text_of
from ._trial import Account, Setting, Trial

__all__ = ["SMALL", "TRIALS", "Aim", "append_for_ever", "look_up", "strike", "trained_aim"]


class Size(NamedTuple):
    """How long the lines are.

    Args:
        least: Characters of the shortest text.
        most: Of the longest.
        pause: Seconds until a kill at a random moment, at most.
        delay: Seconds from the beginning of a write until a kill in its middle, at most.
        per_file: Kills for each file.
    """

    least: int
    most: int
    pause: float
    delay: float
    per_file: int


SMALL = Size(2_700, 5_500, 0.002, 80e-6, 50)
LARGE = Size(850_000, 1_050_000, 0.04, 800e-6, 10)

#: Torn tails that must be seen among the kills of the half without ``fsync``.
SHARES = {SMALL: 0.03, LARGE: 0.50}


class Aim:
    """How long after the beginning of a write to kill, so that the line is torn; learns from what it hit.

    How long a write takes, and a timer, depends on the machine. Of some delays it tries each as often as it
    may be the best, by what was seen so far.

    Args:
        chance: Chooses.
        most: The longest delay, in seconds.
    """

    def __init__(self, chance: random.Random, most: float) -> None:
        self._chance = chance
        self._delays = [most * 0.75**step for step in range(10)]
        self._hits = [1] * len(self._delays)
        # None is thought to be good before it has hit: of small lines few are torn by the best.
        self._misses = [6] * len(self._delays)

    def next(self) -> float:
        """Return the delay to try."""
        drawn = map(self._chance.betavariate, self._hits, self._misses)
        _, delay = max(zip(drawn, self._delays, strict=True))
        return delay * self._chance.uniform(0.9, 1.1)

    def learn(self, delay: float, is_hit: bool) -> None:
        """Take note of whether a delay tore a line."""
        nearest = min(range(len(self._delays)), key=lambda at: abs(self._delays[at] - delay))
        (self._hits if is_hit else self._misses)[nearest] += 1


def _kill(setting: Setting, account: Account, size: Size, fsync: bool, kills: int) -> None:
    aim = Aim(setting.random, size.delay)
    _kill_many(setting, account, size, kills, aim, partial(CassetteStore, fsync=fsync))
    # Where nothing was acknowledged, nothing can be lost.
    account.need("acknowledged", account.counts["kills"] / 4)
    if fsync:
        return
    share = SHARES[size]
    while not _has_share(account, share) and account.counts["kills"] < 3 * kills:
        # A machine that is busy with something else tears less at first.
        _kill_many(setting, account, size, size.per_file, aim, partial(CassetteStore, fsync=fsync))
    account.need("torn tails", share * account.counts["kills"])
    account.control(lambda other: _kill_many(setting, other, size, min(kills, 150), aim, CarelessStore))


def _has_share(account: Account, share: float) -> bool:
    return account.counts["torn tails"] >= share * account.counts["kills"]


def _kill_many(
    setting: Setting, account: Account, size: Size, kills: int, aim: Aim, open_store: Callable[[Path], Store]
) -> None:
    for first in range(0, kills, size.per_file):
        path = setting.folder / f"{first}.jsonl"
        number = min(size.per_file, kills - first)
        _kill_on_one_file(aim, setting.random, account, size, number, path, partial(open_store, path))
        path.unlink()


def _kill_on_one_file(
    aim: Aim,
    chance: random.Random,
    account: Account,
    size: Size,
    kills: int,
    path: Path,
    open_store: Callable[[], Store],
) -> None:
    acknowledged: set[bytes] = set()
    reader = open_store()
    tails: set[int] = set()
    for _ in range(kills):
        work = partial(append_for_ever, open_store, random.Random(chance.random()), size)
        keys = strike(
            partial(Child, work, KEY),
            path,
            tails,
            aim,
            chance,
            is_aimed=chance.random() < 0.7,
            pause=size.pause,
        )
        account.see("kills")
        reader.refresh()
        look_up(reader, keys, size, account)
        acknowledged.update(keys)
    reader.close()
    account.see("torn tails", len(tails))
    account.see("acknowledged", len(acknowledged))
    last = open_store()
    last.put(bytes(KEY), "the last word")  # Heals what the last kill tore.
    last.close()
    fresh = open_store()
    look_up(fresh, acknowledged, size, account)
    account.expect(
        fresh.get(bytes(KEY)) == "the last word", "the recording behind the last torn line is lost"
    )
    for problem in fresh.problems():
        account.fault(f"damage that no note explains: {problem}")
    if isinstance(fresh, CassetteStore):
        account.expect(
            fresh.torn == len(tails), f"{len(tails)} lines were torn and the file tells of {fresh.torn}"
        )
    fresh.close()


def strike(
    begin: Callable[[Doom | None], Child],
    path: Path,
    tails: set[int],
    aim: Aim,
    chance: random.Random,
    *,
    is_aimed: bool,
    pause: float,
    most: int = 3,
) -> list[bytes]:
    """Start a child and kill it; return what it acknowledged.

    Args:
        begin: Starts it, with or without a doom.
        path: The file that it writes to.
        tails: Where torn lines begin in it; one that was torn now is added.
        aim: Chooses the moment of a write, and learns from what came of it.
        chance: Chooses.
        is_aimed: Whether it dies in a write, rather than at a random moment.
        pause: Seconds until a random moment, at most.
        most: Words that are waited for before, at most.
    """
    delay = aim.next() if is_aimed else 0.0
    child = begin(Doom(chance.randint(1, 4), delay) if is_aimed else None)
    words: list[bytes] = []
    if not is_aimed:
        words = child.words(at_least=chance.randint(0, most))
        time.sleep(chance.random() * pause)
    words += child.die()
    tail = torn_tail(path)
    # A child that died before its first write leaves the tail of the one before.
    is_torn = tail is not None and tail not in tails
    tails.update([tail] if tail is not None else [])
    if is_aimed:
        aim.learn(delay, is_torn)
    return words


def trained_aim(chance: random.Random, folder: Path) -> Aim:
    """Return an aim at small lines that has learned from some kills of its own."""
    aim, path = Aim(chance, SMALL.delay), folder / "training.jsonl"
    _kill_on_one_file(aim, chance, Account(), SMALL, 100, path, partial(CassetteStore, path))
    path.unlink()
    return aim


def append_for_ever(
    open_store: Callable[[], Store],
    chance: random.Random,
    size: Size,
    acknowledge: Callable[[bytes], None],
    *,
    pause: float = 0.0,
) -> None:
    """Put text after text, and acknowledge each key.

    Args:
        open_store: Opens the store.
        chance: Makes the keys.
        size: How long the texts are.
        acknowledge: Given each key once it is safe.
        pause: Seconds between two texts, at most.
    """
    store = open_store()
    while True:
        key = key_of(chance)
        store.put(key, text_of(key, size.least, size.most))
        acknowledge(key)
        if pause:
            time.sleep(chance.random() * pause)


def look_up(store: Store, keys: list[bytes] | set[bytes], size: Size, account: Account) -> None:
    """Look for acknowledged keys, and whether the answer is theirs."""
    for key in keys:
        try:
            found = store.get(key)
        except Unreadable as error:
            account.fault(f"an acknowledged recording cannot be read: {error}")
            continue
        if found is None:
            account.fault("an acknowledged recording is lost")
        elif found != text_of(key, size.least, size.most):
            account.fault("an acknowledged recording has another answer")


def torn_tail(path: Path) -> int | None:
    """Return where the line begins in whose middle a file ends, or ``None`` where it ends with a line."""
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        start = end
        data = b""
        while start > 0 and b"\n" not in data:
            start = max(0, start - (1 << 16))
            file.seek(start)
            data = file.read(end - start)
    tail = data[data.rfind(b"\n") + 1 :]
    # The kill may have taken nothing but the newline.
    return None if not tail or _is_whole(tail) else end - len(tail)


def _is_whole(tail: bytes) -> bool:
    try:
        json.loads(tail)
    except ValueError:
        return False
    return True


def _trial(name: str, size: Size, fsync: bool, short: int, full: int) -> Trial:
    share = "" if fsync else f"; torn >= {SHARES[size]:.0%}"

    def run(setting: Setting, account: Account) -> None:
        _kill(setting, account, size, fsync, setting.of(short, full))

    return Trial(name, f"0 acknowledged lost{share}", run)


TRIALS = (
    _trial("3-6-KB", SMALL, False, 200, 5_000),
    _trial("3-6-KB-fsync", SMALL, True, 100, 5_000),
    _trial("1-MB", LARGE, False, 20, 150),
    _trial("1-MB-fsync", LARGE, True, 10, 150),
)
