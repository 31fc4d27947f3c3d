"""Check another branch out under an open cassette, which replaces the file, in replay and while recording.

A reader goes on with what it had, or sees what is there now, and never answers wrongly. A writer must notice:
an append to the file that was replaced would go nowhere, and nobody would say a word.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx

from httpx_cassette import Cassette, CassetteMiss, CassetteStop

from ._calls import Upstream, answer_to, ask, client, said
from ._git import Repository
from ._store import CarelessStore, CassetteStore, Store, key_of, text_of
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

SIZE = (100, 400)


def _repository(setting: Setting) -> Repository:
    """Return one with two branches: both have some recordings, and each has some of its own."""
    repository = Repository(setting.folder / "repository")
    _record(repository.path, "both")
    repository.commit()
    for branch in ("one", "two"):
        repository.branch(branch)
        _record(repository.path, f"only {branch}")
        repository.commit()
    return repository


def _record(path: Path, name: str) -> None:
    with client(Cassette(path, fsync=False), "record", Upstream()) as asker:
        for number in range(5):
            ask(asker, f"{name} {number}")


# -- in replay -----------------------------------------------------------------------------------------


def _replay(setting: Setting, account: Account) -> None:
    repository = _repository(setting)
    for _ in range(setting.of(10, 150)):
        repository.switch("one")
        cassette = Cassette(repository.path)
        with client(cassette, "replay") as asker:
            _ask(asker, "both 0", account, may_miss=False)
            before = os.stat(repository.path).st_ino
            repository.switch("two")
            account.see("files replaced", os.stat(repository.path).st_ino != before)
            # Known from before; a file that was replaced is held on to.
            for name in ("both", "only one"):
                for number in range(5):
                    _ask(asker, f"{name} {number}", account, may_miss=False)
            for number in range(5):
                _ask(asker, f"only two {number}", account, may_miss=True)
        account.see("checkouts")
    _change_in_place(repository, setting, account)
    account.need("files replaced", 1)
    account.need("answers", 10)


def _ask(asker: httpx.Client, words: str, account: Account, *, may_miss: bool) -> None:
    try:
        heard = said(ask(asker, words))
    except CassetteStop as stop:
        account.see("misses" if isinstance(stop, CassetteMiss) else "refused")
        account.expect(may_miss, f"{words!r} was in the file that was open: {stop!r}")
    else:
        account.see("answers")
        account.expect(heard == answer_to(words), f"{words!r} has another answer")


def _change_in_place(repository: Repository, setting: Setting, account: Account) -> None:
    """Write the file of the other branch over the open one, as some editors and syncing programs do."""
    repository.switch("one")
    one = repository.path.read_bytes()
    repository.switch("two")
    two = repository.path.read_bytes()
    path = setting.folder / "changed.jsonl"
    for first, then in (
        (one, two),
        (two, one),
        (one, one[: len(one) // 2]),
        (one, b""),
        (one, b"\0" * len(one)),
    ):
        path.write_bytes(first)
        with client(Cassette(path), "replay") as asker:
            _ask(asker, "both 0", account, may_miss=False)
            path.write_bytes(then)
            for name in ("both", "only one", "only two"):
                for number in range(5):
                    _ask(asker, f"{name} {number}", account, may_miss=True)
        account.see("changes in place")


# -- while recording -----------------------------------------------------------------------------------


def _write(setting: Setting, account: Account) -> None:
    rounds = setting.of(10, 150)
    repository = _repository(setting)
    _write_on(setting, account, repository, rounds, CassetteStore)
    account.need("checkouts between two puts", rounds)
    other = Repository(setting.folder / "control")
    for branch in ("one", "two"):
        other.branch(branch)
        CarelessStore(other.path).put(key_of(setting.random), branch)
        other.commit()
    account.control(lambda control: _write_on(setting, control, other, 5, CarelessStore))


def _write_on(
    setting: Setting,
    account: Account,
    repository: Repository,
    rounds: int,
    open_store: Callable[[Path], Store],
) -> None:
    """Put, commit, check the other branch out, put again: each text must be in the file of its branch."""
    chance = setting.random
    put: dict[str, list[bytes]] = {"one": [], "two": []}
    store = open_store(repository.path)
    repository.switch("two")
    for number in range(rounds):
        branch = ("one", "two")[number % 2]
        repository.switch(branch)
        account.see("checkouts between two puts")
        for _ in range(chance.randint(1, 4)):
            key = key_of(chance)
            account.expect(store.put(key, text_of(key, *SIZE)), "a key that nobody else has was there before")
            account.expect(
                key.hex().encode() in repository.path.read_bytes(), "what was put is not in the file"
            )
            put[branch].append(key)
        repository.commit()
    store.close()
    for branch, keys in put.items():
        repository.switch(branch)
        fresh = open_store(repository.path)
        account.see("texts", len(keys))
        for key in keys:
            is_there = fresh.get(key) == text_of(key, *SIZE)
            account.expect(is_there, "a text is not on the branch on which it was put")
        account.expect(not fresh.problems(), f"damage: {fresh.problems()}")


def _record_through(setting: Setting, account: Account) -> None:
    """Record through one client while the file is replaced, removed, and made anew between the calls."""
    repository = _repository(setting)
    path, rounds = repository.path, setting.of(10, 150)
    upstream = Upstream()
    with client(Cassette(path, fsync=False), "record", upstream) as asker:
        for number in range(rounds):
            change = (
                partial(repository.switch, "one", force=True),
                partial(repository.switch, "two", force=True),
                path.unlink,
                partial(path.write_bytes, b""),
                partial(repository.switch, "main", force=True),
            )[number % 5]
            change()
            words = f"round {number}"
            account.expect(said(ask(asker, words)) == answer_to(words), f"{words!r} has another answer")
            with client(Cassette(path), "replay") as replays:
                _ask(replays, words, account, may_miss=False)
            repository.git("checkout", "--force", "--quiet", "HEAD")
            account.see("changes")
    account.expect(len(upstream.paid) == rounds, f"{len(upstream.paid)} calls were paid, not {rounds}")
    account.need("answers", rounds)


TRIALS = (
    Trial("replay", "0 wrong answers; what was open is answered", _replay),
    Trial("append", "every text on the branch it was put on", _write),
    Trial("record", "every answer in the file of its time", _record_through),
)
