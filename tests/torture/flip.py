"""Flip bits of every byte of the middle one of three recordings.

The recording must not be answered from, whatever the flip made of it, its neighbours must be, and the damage
must be named: by the error, or where the line no longer names its key by ``check`` and the miss.

A flip of one digit makes a line of a later format of it, which no release can tell from a real one: there the
error that says so is all that is asked. And without its newline the line runs into the next one, which is
lost with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx

from httpx_cassette import (
    Cassette,
    CassetteError,
    CassetteMiss,
    CassetteStop,
    CassetteUnusable,
    CassetteVersionError,
)

from ._calls import ask, client, said
from ._store import CarelessStore
from ._trial import Account, Setting, Trial
from .cut import QUESTIONS, record_three, say

__all__ = ["TRIALS"]


def _flip(setting: Setting, account: Account) -> None:
    path = setting.folder / "flipped.jsonl"
    data = record_three(path)
    start = data.index(b"\n") + 1
    end = data.index(b"\n", start)
    version = data.index(b'{"v":1,', start) + len(b'{"v":')
    for at, mask in _flips(start, end + 1, setting):
        path.write_bytes(_flipped(data, at, mask))
        where = f"byte {at - start} of the line, {data[at : at + 1]!r} ^ {mask:#04x}"
        with client(Cassette(path), "replay") as asker:
            _ask_neighbours(asker, account, where, is_joined=at == end, is_version=at == version)
            _ask_middle(asker, account, where)
        _check(path, account, where)
        account.see("flips")
    # Both, but for the bits of the version and of the newline.
    account.need("neighbours answered", 2 * account.counts["flips"] - 3 * 8)
    account.need("refused", 1)
    account.need("missed", 1)
    account.control(partial(_flip_careless, setting))


def _flips(start: int, end: int, setting: Setting) -> Iterator[tuple[int, int]]:
    """Yield byte and bit: every bit, or in the short form one for every third byte."""
    for at in range(start, end):
        if not setting.is_short:
            yield from ((at, 1 << bit) for bit in range(8))
        elif at % 3 == 0 or at == end - 1:
            yield at, 1 << setting.random.randrange(8)


def _flipped(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def _ask_neighbours(
    asker: httpx.Client, account: Account, where: str, *, is_joined: bool, is_version: bool
) -> None:
    for words in ("the first", "the third"):
        try:
            account.expect(said(ask(asker, words)) == say(words), f"{where}: {words!r} has another answer")
            account.see("neighbours answered")
        except CassetteStop as stop:
            is_later = is_version and isinstance(stop.__cause__, CassetteVersionError)
            account.see("called a later format", is_later)
            if not is_later and not (is_joined and words == "the third"):
                account.fault(f"{where}: {words!r} is not answered: {stop!r}")


def _ask_middle(asker: httpx.Client, account: Account, where: str) -> None:
    words = list(QUESTIONS)[1]
    try:
        heard = said(ask(asker, words, stream=True))
    except CassetteUnusable as stop:
        account.see("refused")
        account.expect(stop.line == 2, f"{where}: the error names line {stop.line}")
    except CassetteMiss as stop:
        account.see("missed")
        is_named = "damaged" in str(stop) or "key version" in str(stop).replace("(key version 1", "")
        account.expect(is_named, f"{where}: the miss does not speak of the damage:\n{stop}")
    else:
        is_wrong = heard != say(words)
        account.fault(
            f"{where}: the line is answered from, {'wrongly' if is_wrong else 'as if nothing had been'}"
        )


def _check(path: Path, account: Account, where: str) -> None:
    """See whether the damage is found by whoever looks for it."""
    try:
        found = Cassette(path).check()
    except CassetteError as error:
        account.expect(error.line == 2, f"{where}: the error names line {error.line}")
        return
    numbers = {damage.number for damage in found}
    account.expect(2 in numbers, f"{where}: check names the lines {sorted(numbers)}")
    account.expect(numbers <= {2, 3}, f"{where}: check names the lines {sorted(numbers)}")


def _flip_careless(setting: Setting, account: Account) -> None:
    """The same with the careless store."""
    path, keys = setting.folder / "control.jsonl", [bytes([number]) * 32 for number in range(3)]
    store = CarelessStore(path)
    for key in keys:
        store.put(key, f"the text of {key[0]}")
    store.close()
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    for at, mask in _flips(start, data.index(b"\n", start), setting):
        path.write_bytes(_flipped(data, at, mask))
        found = CarelessStore(path).get(keys[1])
        account.expect(found in (None, "the text of 1"), "a wrong answer")


TRIALS = (Trial("every-byte", "0 wrong answers; neighbours served, damage named", _flip),)
