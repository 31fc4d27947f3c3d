"""One process that does everything at once: threads, event loops, and forks with an open cassette.

All of them record through clients on one file, the same questions among them; each question must have exactly
one line, and everybody who asked it must have been given the answer of that line.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import httpx

from httpx_cassette import Cassette, CassetteStop, CassetteTransport

from ._calls import URL, Upstream, answer_to, ask, async_client, client, question, said, transport
from ._children import in_children
from ._store import CassetteStore, key_of, text_of
from ._trial import Account, Setting, Trial

__all__ = ["TRIALS"]

WORKERS = 8
SIZE = (100, 400)


class Server(Upstream):
    """A server that never says the same twice: who is given which answer can be told."""

    def __init__(self) -> None:
        super().__init__(self._say_anew)
        self._lock = threading.Lock()
        self._asked: Counter[str] = Counter()

    def _say_anew(self, words: str) -> str:
        with self._lock:
            self._asked[words] += 1
            return f"{self._asked[words]} {os.getpid()} {threading.get_ident()}: {answer_to(words)}"


#: What each worker was told: question -> answer.
Told = list[tuple[str, str]]


def _mixed(setting: Setting, account: Account, run: Callable[..., Told]) -> None:
    """Let workers ask the same and other questions at once, and compare what they were told."""
    questions = setting.of(30, 400)
    path, server = setting.folder / "mixed.jsonl", Server()
    told = run(path, server, questions)
    account.see("answers", len(told))
    account.see("questions", len(dict(told)))
    account.see("answers from others' calls", len(told) - len(set(server.paid)))
    _compare(path, told, account)
    account.expect(
        len(server.paid) == len(set(server.paid)),
        f"{len(server.paid) - len(set(server.paid))} questions were paid twice",
    )
    account.need("answers from others' calls", questions)


def _compare(path: Path, told: Told, account: Account) -> None:
    lines = path.read_bytes().count(b"\n")
    account.expect(lines == len(dict(told)), f"{len(dict(told))} questions and {lines} lines")
    with client(Cassette(path), "replay") as replays:
        for words in dict(told):
            kept = said(ask(replays, words))
            given = {answer for asked, answer in told if asked == words}
            account.expect(given == {kept}, f"{words!r} was answered otherwise than it was recorded")


def _words(worker: int, questions: int) -> list[str]:
    """Return what a worker asks: half of it is asked by all, in another order by each."""
    shared = [f"shared {number}" for number in range(questions)]
    at = worker * questions // WORKERS
    own = [f"own {worker} {number}" for number in range(questions)]
    return [each for pair in zip(shared[at:] + shared[:at], own, strict=True) for each in pair]


def _threads(path: Path, server: Upstream, questions: int) -> Told:
    """Threads that share a client, and threads that have their own."""
    with client(path, "record", server, fsync=False) as shared:

        def work(worker: int) -> Told:
            if worker % 2:
                return [(words, said(ask(shared, words))) for words in _words(worker, questions)]
            with client(path, "record", server, fsync=False) as own:
                return [(words, said(ask(own, words))) for words in _words(worker, questions)]

        with ThreadPoolExecutor(WORKERS) as pool:
            return [each for told in pool.map(work, range(WORKERS)) for each in told]


def _loop(path: Path, server: Upstream, questions: int, *, backend: str) -> Told:
    """Tasks of one event loop that share a client."""
    told: Told = []

    async def work() -> None:
        async with async_client(path, "record", server, fsync=False) as asker:

            async def one(worker: int) -> None:
                for words in _words(worker, questions):
                    told.append((words, said(await asker.post(URL, json=question(words)))))

            async with anyio.create_task_group() as tasks:
                for worker in range(WORKERS):
                    tasks.start_soon(one, worker)

    anyio.run(work, backend=backend)
    return told


def _everything(path: Path, server: Upstream, questions: int) -> Told:
    """Threads, an asyncio loop and a trio loop, each in a thread, all at once."""
    with ThreadPoolExecutor(3) as pool:
        works = [_threads, partial(_loop, backend="asyncio"), partial(_loop, backend="trio")]
        found = pool.map(lambda work: work(path, server, questions), works)
        return [each for told in found for each in told]


# -- fork ----------------------------------------------------------------------------------------------


class Scribe(Protocol):
    """Whoever writes and looks up, under keys that nobody else has."""

    def put(self, key: bytes) -> bool:
        """Record; tell whether it went as it should."""
        ...

    def holds(self, key: bytes) -> bool:
        """Tell whether what was recorded is found."""
        ...


class StoreScribe:
    """Writes to the store itself."""

    def __init__(self, path: Path) -> None:
        self._store = CassetteStore(path)

    def put(self, key: bytes) -> bool:
        return self._store.put(key, text_of(key, *SIZE))

    def holds(self, key: bytes) -> bool:
        self._store.refresh()
        return self._store.get(key) == text_of(key, *SIZE)


class TransportScribe:
    """Writes through transports. A client of httpx has a lock of its own, for cookies, that forks badly."""

    def __init__(self, path: Path) -> None:
        self._records = transport(Cassette(path, fsync=False), "record", Upstream())
        self._replays = transport(Cassette(path), "replay")

    def put(self, key: bytes) -> bool:
        return self._ask(self._records, key) == answer_to(key.hex())

    def holds(self, key: bytes) -> bool:
        try:
            return self._ask(self._replays, key) == answer_to(key.hex())
        except CassetteStop:
            return False

    def _ask(self, asked: CassetteTransport, key: bytes) -> str:
        response = asked.handle_request(httpx.Request("POST", URL, json=question(key.hex())))
        response.read()
        return said(response)


def _fork(setting: Setting, account: Account, open_scribe: Callable[[Path], Scribe]) -> None:
    """Fork while threads append, so that a child may be born with any lock held; all go on writing."""
    path, rounds, chance = setting.folder / "fork.jsonl", setting.of(15, 150), setting.random
    scribe = open_scribe(path)
    stop = threading.Event()
    keys = [key_of(chance)]
    # What the first call imports is imported: a fork in the middle of an import is Python's own affair.
    account.expect(scribe.put(keys[0]) and scribe.holds(keys[0]), "the first recording is not found")

    def append(own: random.Random) -> None:
        while not stop.is_set():
            key = key_of(own)
            if scribe.put(key):
                keys.append(key)

    threads = [threading.Thread(target=append, args=(random.Random(chance.random()),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    children = []
    try:
        for _ in range(rounds):
            fresh = [[key_of(chance) for _ in range(5)] for _ in range(2)]
            in_children([partial(_go_on, scribe, each) for each in fresh], account, patience=30)
            children += [key for each in fresh for key in each]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    account.see("forks", 2 * rounds)
    account.see("recordings of children", len(children))
    account.see("recordings of the parent meanwhile", len(keys))
    account.need("recordings of the parent meanwhile", rounds)
    for reader in (scribe, open_scribe(path)):
        for key in [*children, *keys]:
            account.expect(reader.holds(key), "a recording is lost, or another one")
    store = CassetteStore(path)
    account.expect(len(store) == len(children) + len(keys), f"{len(store)} recordings are there")
    for problem in store.problems():
        account.fault(f"a line that is not whole: {problem}")


def _go_on(scribe: Scribe, keys: list[bytes], account: Account) -> None:
    for key in keys:
        account.expect(scribe.put(key), "a child is answered wrongly, or cannot record")
        account.expect(scribe.holds(key), "a child does not find what it has put")


ONE_ANSWER = "one line, one answer for each question"

TRIALS = (
    Trial("threads", ONE_ANSWER, partial(_mixed, run=_threads)),
    Trial("asyncio", ONE_ANSWER, partial(_mixed, run=partial(_loop, backend="asyncio"))),
    Trial("trio", ONE_ANSWER, partial(_mixed, run=partial(_loop, backend="trio"))),
    Trial("everything", ONE_ANSWER, partial(_mixed, run=_everything)),
    Trial("fork", "0 lost with an open cassette", partial(_fork, open_scribe=StoreScribe)),
    Trial("fork-transport", "0 lost with open transports", partial(_fork, open_scribe=TransportScribe)),
)
