"""Eight writers at once on one file, each of them killed, again and again.

What one tears the others must heal, and none may lose what it was told is safe.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ._children import Child, Doom
from ._store import KEY, CassetteStore, Store
from ._trial import Account, Setting, Trial
from .kill import SMALL, Aim, append_for_ever, look_up, trained_aim

__all__ = ["TRIALS"]

WRITERS = 8
PER_FILE = 100


def _kill(setting: Setting, account: Account, fsync: bool) -> None:
    chance, kills = setting.random, setting.of(100, 2_000)
    aim = trained_aim(chance, setting.folder)
    path = setting.folder / "crowd.jsonl"
    least = 0.0 if fsync else 0.01
    while (done := account.counts["kills"]) < kills or (
        account.counts["torn lines"] < least * done and done < 3 * kills
    ):
        _kill_on_one_file(chance, aim, account, path, fsync)
        path.unlink()
    # Each is told of some lines before it is killed; of none, none can be lost.
    account.need("acknowledged", account.counts["kills"])
    if not fsync:
        account.need("torn lines", least * account.counts["kills"])


def _kill_on_one_file(chance: random.Random, aim: Aim, account: Account, path: Path, fsync: bool) -> None:
    open_store = partial(CassetteStore, path, fsync)
    acknowledged: set[bytes] = set()
    crowd = [_begin(chance, aim, open_store) for _ in range(WRITERS)]
    for _ in range(PER_FILE):
        time.sleep(chance.random() * 0.0003)
        for child in crowd:
            acknowledged.update(child.words())
        at = chance.randrange(WRITERS)
        acknowledged.update(crowd[at].die())
        account.see("kills")
        crowd[at] = _begin(chance, aim, open_store)
    for child in crowd:
        acknowledged.update(child.kill())
    last = open_store()
    last.put(bytes(KEY), "the last word")
    last.close()
    fresh = open_store()
    account.see("acknowledged", len(acknowledged))
    account.see("lines", len(fresh))
    account.see("torn lines", fresh.torn)
    look_up(fresh, acknowledged, SMALL, account)
    account.expect(
        fresh.get(bytes(KEY)) == "the last word", "the recording behind the last torn line is lost"
    )
    for problem in fresh.problems():
        account.fault(f"damage that no note explains: {problem}")
    fresh.close()


def _begin(chance: random.Random, aim: Aim, open_store: Callable[[], Store]) -> Child:
    """Start a writer; most die by their own hand."""
    doom = Doom(chance.randint(1, 8), aim.next()) if chance.random() < 0.8 else None
    work = partial(append_for_ever, open_store, random.Random(chance.random()), SMALL, pause=0.004)
    return Child(work, KEY, doom)


TRIALS = (
    Trial("8-writers", "0 acknowledged lost; torn >= 1%", partial(_kill, fsync=False)),
    Trial("8-writers-fsync", "0 acknowledged lost", partial(_kill, fsync=True)),
)
