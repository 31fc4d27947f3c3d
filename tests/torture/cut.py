"""Cut a file of three recordings at every byte, then open it, replay from it, and append to it.

Whatever stands before the cut must be answered, the line that was cut must miss and nothing else, and the
next recording must heal the file: what is appended can be read, and nothing is called damaged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from httpx_cassette import Cassette, CassetteMiss, CassetteStop

from ._calls import Upstream, answer_to, ask, client, said
from ._store import CarelessStore
from ._trial import Account, Setting, Trial

__all__ = ["QUESTIONS", "TRIALS", "record_three", "say"]

#: The questions, and whether the answer is a stream. The second is not ASCII: a cut may halve a character.
QUESTIONS = {"the first": False, "the second, über 雨 🚆": True, "the third": False}


def record_three(path: Path) -> bytes:
    """Record the three questions; return the bytes of the file."""
    with client(Cassette(path, fsync=False), "record", Upstream(say)) as asker:
        for words, stream in QUESTIONS.items():
            ask(asker, words, stream=stream)
    return path.read_bytes()


def say(words: str) -> str:
    """Return the answer to a question."""
    return answer_to(words, 100, 120) + " für 雨 🚆"


def _cut(setting: Setting, account: Account) -> None:
    data = record_three(setting.folder / "whole.jsonl")
    places = list(_places(data, setting))
    for number, length in enumerate(places):
        path = setting.folder / f"{number}.jsonl"
        path.write_bytes(data[:length])
        _replay(path, data, length, account)
        _append(path, data, length, account)
        path.unlink()
    account.see("cuts", len(places))
    account.need("lines cut", len(places) / 2)
    account.control(partial(_cut_careless, setting.folder, places))


def _places(data: bytes, setting: Setting) -> Iterator[int]:
    """Yield every length; in the short form every seventh, and those about the ends of lines."""
    ends = [at for at, byte in enumerate(data) if byte == ord("\n")]
    for length in range(len(data) + 1):
        if not setting.is_short or length % 7 == 0 or any(abs(length - end) < 4 for end in ends):
            yield length


def _whole(data: bytes, length: int) -> int:
    """Return how many lines are whole; one that only lacks its newline is."""
    return (data[:length] + b"\n" * (data[length : length + 1] == b"\n")).count(b"\n")


def _replay(path: Path, data: bytes, length: int, account: Account) -> None:
    """Ask all three: those before the cut are answered, the others miss."""
    whole, before = _whole(data, length), _traces(path)
    with client(Cassette(path), "replay") as asker:
        for number, (words, stream) in enumerate(QUESTIONS.items()):
            try:
                heard = said(ask(asker, words, stream=stream))
            except CassetteMiss:
                account.expect(number >= whole, f"cut at {length}: line {number + 1} is whole and missed")
                account.see("misses")
            except CassetteStop as stop:
                account.fault(f"cut at {length}: line {number + 1} raised {stop!r}")
            else:
                account.expect(number < whole, f"cut at {length}: line {number + 1} is cut and was answered")
                account.expect(heard == say(words), f"cut at {length}: line {number + 1} has another answer")
                account.see("answers")
    account.expect(_traces(path) == before, "replaying wrote something")


def _traces(path: Path) -> tuple[int, ...]:
    """Return what writing changes about a file and its folder."""
    return tuple(
        fact
        for status in (path.stat(), path.parent.stat())
        for fact in (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    )


def _append(path: Path, data: bytes, length: int, account: Account) -> None:
    """Record all three, and another: what was cut is paid again, the rest is not, and all can be read."""
    whole, is_torn = (
        _whole(data, length),
        not data[:length].endswith(b"\n") and data[length : length + 1] != b"\n",
    )
    upstream = Upstream(say)
    with client(Cassette(path, fsync=False), "record", upstream) as asker:
        for words, stream in {**QUESTIONS, "another": False}.items():
            ask(asker, words, stream=stream)
    paid = [*list(QUESTIONS)[whole:], "another"]
    account.expect(upstream.paid == paid, f"cut at {length}: {upstream.paid} were paid, not {paid}")
    cassette = Cassette(path)
    account.expect(not (found := cassette.check()), f"cut at {length}: damage that no note explains: {found}")
    torn = int(is_torn and length > 0)
    account.expect(
        cassette.torn == torn, f"cut at {length}: {cassette.torn} torn lines are told of, not {torn}"
    )
    account.expect(len(cassette) == 4, f"cut at {length}: {len(cassette)} recordings in the end")
    account.expect(
        path.read_bytes().startswith(data[:length]), f"cut at {length}: what was there was changed"
    )
    account.see("lines cut", torn)
    with client(cassette, "replay") as asker:
        for words, stream in {**QUESTIONS, "another": False}.items():
            with suppress(CassetteStop):
                if said(ask(asker, words, stream=stream)) == say(words):
                    continue
            account.fault(f"cut at {length}: {words!r} cannot be replayed after it was healed")


def _cut_careless(folder: Path, places: list[int], account: Account) -> None:
    """The same with the careless store."""
    whole = folder / "control.jsonl"
    texts = {bytes([number]) * 32: say(words) for number, words in enumerate(QUESTIONS)}
    store = CarelessStore(whole)
    for key, text in texts.items():
        store.put(key, text)
    store.close()
    data = whole.read_bytes()
    for length in (length for length in places if length < len(data)):
        whole.write_bytes(data[:length])
        healing = CarelessStore(whole)
        for key, text in texts.items():
            healing.put(key, text)
        healing.close()
        fresh = CarelessStore(whole)
        account.expect(all(fresh.get(key) == text for key, text in texts.items()), "a text is lost")


TRIALS = (Trial("every-byte", "only the cut line lost, and healed", _cut),)
