"""Merge branches that recorded the same calls anew, with git's union merge.

Such a merge keeps the lines of both sides, in an order that says nothing about time. Of each key the highest
generation must be answered from, whatever the order; of equal ones the last line, with the other named as a
contradiction; and recording anew must go beyond all of them.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from pathlib import Path

from ._git import Repository
from ._store import CarelessStore, CassetteStore, Store, key_of
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

KEYS = 12


def _merge(setting: Setting, account: Account) -> None:
    merges = setting.of(6, 100)
    for number in range(merges):
        repository = Repository(setting.folder / f"{number}")
        keys = [key_of(setting.random) for _ in range(KEYS)]
        expected, clashing = _two_branches(repository, keys, setting.random)
        for order in (("one", "two"), ("two", "one")):
            repository.branch(f"into-{order[0]}", order[0])
            repository.merge(order[1])
            _check(repository.path, expected, clashing, account)
            account.see("merges")
        _go_on(repository.path, keys, account)
    account.need("answered from a line that is not the last of its key", merges)
    account.need("contradictions named", merges / 2)
    account.control(lambda other: _control(setting, other))


def _two_branches(
    repository: Repository, keys: list[bytes], chance: random.Random
) -> tuple[dict[bytes, str], dict[bytes, set[str]]]:
    """Record on two branches; return the answer of each key, and the possible ones where two are equal."""
    base = CassetteStore(repository.path)
    for key in keys:
        base.put(key, f"main {key.hex()[:6]}")
    base.close()
    repository.commit()
    reached: dict[bytes, dict[str, int]] = defaultdict(dict)
    for branch in ("one", "two"):
        repository.branch(branch)
        store = CassetteStore(repository.path)
        # In an order of its own, so that merged lines stand in any.
        for key in chance.sample(keys, KEYS):
            reached[key][branch] = chance.randint(0, 3)
            for gen in range(reached[key][branch]):
                store.put(key, f"{branch} {gen + 1}", supersede=True)
        store.close()
        repository.commit()
    expected, clashing = {}, {}
    for key, gens in reached.items():
        best = max(gens.values())
        winners = {f"{branch} {best}" for branch in gens if gens[branch] == best}
        if best == 0:
            expected[key] = f"main {key.hex()[:6]}"
        elif len(winners) == 1:
            (expected[key],) = winners
        else:
            clashing[key] = winners
    return expected, clashing


def _check(path: Path, expected: dict[bytes, str], clashing: dict[bytes, set[str]], account: Account) -> None:
    store = CassetteStore(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    for key, text in expected.items():
        account.expect(store.get(key) == text, f"{store.get(key)!r} is answered, and {text!r} is the newest")
        last = next(line for line in reversed(lines) if key.hex() in line)
        account.see("answered from a line that is not the last of its key", f'"{text}"' not in last)
    problems = store.problems()
    for key, texts in clashing.items():
        newest = [line for line in lines if key.hex() in line and any(f'"{text}"' in line for text in texts)]
        found = store.get(key)
        account.expect(
            found is not None and f'"{found}"' in newest[-1],
            f"{found!r} is answered, and not the last of {texts}",
        )
    named = _contradictions(lines)
    account.see("contradictions named", len(problems))
    account.expect(problems == named, f"{problems} is said of the file, and not {named}")


def _contradictions(lines: list[str]) -> list[str]:
    """Return what must be said of a file: each line whose call and generation an earlier one has, too."""
    first: dict[tuple[str, int], int] = {}
    found = []
    for number, line in enumerate(filter(None, lines), 1):
        members = json.loads(line)
        earlier = first.setdefault((members["key"], members["gen"]), number)
        if earlier != number:
            found.append(f"line {number}: another answer than line {earlier} gives to the same call")
    return found


def _go_on(path: Path, keys: list[bytes], account: Account) -> None:
    """Record anew on what was merged: the new answer must win."""
    store = CassetteStore(path)
    for key in keys:
        store.put(key, "the newest", supersede=True)
    store.close()
    fresh = CassetteStore(path)
    account.expect(
        all(fresh.get(key) == "the newest" for key in keys), "an answer recorded after the merge lost"
    )


def _control(setting: Setting, account: Account) -> None:
    """Merge what a store wrote for which the last line wins."""
    for number in range(3):
        repository = Repository(setting.folder / f"control-{number}")
        keys = [key_of(setting.random) for _ in range(KEYS)]
        gens: dict[bytes, dict[str, int]] = defaultdict(dict)
        for branch in ("one", "two"):
            repository.branch(branch)
            store: Store = CarelessStore(repository.path)
            for key in keys:
                gens[key][branch] = setting.random.randint(1, 3)
                for gen in range(gens[key][branch]):
                    store.put(key, f"{branch} {gen + 1}", supersede=True)
            store.close()
            repository.commit()
        repository.merge("one")
        store = CarelessStore(repository.path)
        for key in keys:
            best = max(gens[key].values())
            winners = {f"{branch} {best}" for branch, gen in gens[key].items() if gen == best}
            account.expect(store.get(key) in winners, "an older answer won")


TRIALS = (Trial("union", "highest generation wins in any order", _merge),)
