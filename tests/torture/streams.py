"""Kill a program in the middle of the streams that it records, sync and async, and ask again offline.

An answer counts as acknowledged when the caller has been handed the end of its stream: by then it must be
in the file. Half of the kills come at a random moment, which falls into a stream on its way as a rule, the
other half into the write of a line.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import httpx

from httpx_cassette import CassetteMiss, CassetteStop

from ._calls import URL, Upstream, answer_to, ask, async_client, client, question, said
from ._children import Child
from ._trial import Account, Setting, Trial
from .kill import Aim, strike, trained_aim

__all__ = ["TRIALS"]

#: Characters of an answer: a line of a few pages, in some dozen deltas.
SHORTEST, LONGEST = 3_000, 7_000

#: Bytes of a question, which is the word that a child acknowledges by.
WORD = 12

#: Seconds until a kill at a random moment, at most: of some streams.
PAUSE = 0.08

PER_FILE = 25

#: The share of the kills asked for that must tear a line, or the trial could not have failed.
TORN = 0.03


def _kill(setting: Setting, account: Account, record: Callable[..., None]) -> None:
    chance, kills = setting.random, setting.of(30, 600)
    aim = trained_aim(chance, setting.folder)
    # Imports, once for all children.
    record(setting.folder / "warm-up.jsonl", False, "warm", lambda word: None, 1)
    path = setting.folder / "streams.jsonl"
    # On a busy machine a child may not come to its first write; of few kills a share says nothing.
    torn = 1 if setting.is_short else TORN * kills
    while (done := account.counts["kills"]) < kills or (
        account.counts["torn tails"] < torn and done < 3 * kills
    ):
        _kill_on_one_file(chance, aim, account, min(PER_FILE, kills), path, record)
        path.unlink()
    # Where no stream came to its end, none can be lost.
    account.need("acknowledged", account.counts["kills"] / 10)
    account.need("killed in a stream", 0.05 * account.counts["kills"])
    account.need("torn tails", torn)


def _kill_on_one_file(
    chance: random.Random, aim: Aim, account: Account, kills: int, path: Path, record: Callable[..., None]
) -> None:
    finished: list[str] = []
    tails: set[int] = set()
    for number in range(kills):
        fsync = bool(number % 2)
        work = partial(record, path, fsync, f"{number:03}")
        begin = partial(Child, work, WORD)
        words = strike(begin, path, tails, aim, chance, is_aimed=number % 4 >= 2, pause=PAUSE, most=6)
        account.see("kills")
        begun = [word for word in words if word.startswith(b"begun")]
        ended = [word.decode()[6:] for word in words if word.startswith(b"ended")]
        account.see("killed in a stream", len(begun) > len(ended))
        finished += ended
    account.see("acknowledged", len(finished))
    account.see("torn tails", len(tails))
    _ask_again(path, finished, account)


def _ask_again(path: Path, finished: list[str], account: Account) -> None:
    with client(path, "record", Upstream(_say)) as heals:
        ask(heals, "the last", stream=True)
    with client(path, "replay") as replays:
        for words in [*finished, "the last"]:
            try:
                heard = said(ask(replays, words, stream=True))
            except CassetteStop as stop:
                kind = "is lost" if isinstance(stop, CassetteMiss) else "cannot be read"
                account.fault(f"an answer whose end was handed on {kind}: {stop}")
            else:
                account.expect(heard == _say(words), f"the answer to {words!r} is another one")


def _say(words: str) -> str:
    return answer_to(words, SHORTEST, LONGEST)


# -- what the children do ------------------------------------------------------------------------------


def _record(
    path: Path, fsync: bool, prefix: str, acknowledge: Callable[[bytes], None], times: int = 1_000_000
) -> None:
    with client(path, "record", Upstream(_say), fsync=fsync) as asker:
        for number in range(times):
            words = f"{prefix}{number:03}"
            acknowledge(b"begun " + words.encode())
            with asker.stream("POST", URL, json=question(words, stream=True)) as response:
                for chunk in response.iter_raw():
                    if chunk.endswith(b"[DONE]\n\n"):
                        acknowledge(b"ended " + words.encode())


def _record_async(
    path: Path, fsync: bool, prefix: str, acknowledge: Callable[[bytes], None], times: int = 1_000_000
) -> None:
    """Record several streams at a time."""

    async def one(asker: httpx.AsyncClient, words: str) -> None:
        acknowledge(b"begun " + words.encode())
        async with asker.stream("POST", URL, json=question(words, stream=True)) as response:
            async for chunk in response.aiter_raw():
                if chunk.endswith(b"[DONE]\n\n"):
                    acknowledge(b"ended " + words.encode())

    async def several() -> None:
        async with async_client(path, "record", Upstream(_say), fsync=fsync) as asker:
            for first in range(0, times, 3):
                async with anyio.create_task_group() as tasks:
                    for number in range(first, first + 3):
                        tasks.start_soon(one, asker, f"{prefix}{number:03}")

    anyio.run(several)


TRIALS = (
    Trial("sync", "0 acknowledged lost; killed in streams and writes", partial(_kill, record=_record)),
    Trial("async", "0 acknowledged lost; killed in streams and writes", partial(_kill, record=_record_async)),
)
