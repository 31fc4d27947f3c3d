"""Fill the disk, and take away the right to write.

The answer that was paid for must be returned, or carried by the error; the file must end at a recording, or
at a torn tail that the next append heals; and when there is room again everything goes on.
"""

from __future__ import annotations

import gc
import os
import random
from functools import partial
from pathlib import Path

import httpx

from httpx_cassette import Cassette, CassetteMiss, CassetteReadOnly, CassetteStop, CassetteWriteError

from ._calls import Upstream, answer_to, ask, client, said, said_in
from ._children import in_child
from ._mount import Mount
from ._trial import Account, Setting, Skipped, Trial

__all__ = ["TRIALS"]

#: Answers of 3 to 6 KB.
SIZE = (2_500, 5_500)

#: Bytes of the file system.
ROOM = 1024 * 1024


def _say(words: str) -> str:
    return answer_to(words, *SIZE)


def _mounted(setting: Setting, account: Account, run: str) -> None:
    """Run a trial on a file system of its own, in a process of its own."""
    folder = setting.folder / "disk"
    folder.mkdir()
    # Imports that a first call makes are made here: a child without rights could not.
    with client(setting.folder / "warm-up.jsonl", "record", Upstream(_say)) as warm:
        ask(warm, "warm-up", stream=True)

    def work(inner: Account) -> None:
        try:
            mount = Mount(folder, f"{ROOM}")
        except Skipped as reason:
            inner.voids.append(f"skipped: {reason}")
            return
        try:
            _RUNS[run](mount, setting, inner)
        finally:
            mount.close()

    in_child(work, account)
    skipped = [reason.removeprefix("skipped: ") for reason in account.voids if reason.startswith("skipped: ")]
    if skipped:
        raise Skipped(skipped[0])


# -- full ----------------------------------------------------------------------------------------------


def _fill(mount: Mount, setting: Setting, account: Account) -> None:
    runs = setting.of(20, 200)
    for number in range(runs):
        _fill_once(mount.folder, number, setting.random, account)
        for path in mount.folder.iterdir():
            path.unlink()
        gc.collect()  # What is held open keeps its room.
        account.see("runs")
    account.need("answers carried", runs)
    account.need("answers returned", runs)
    account.need("short writes", runs / 4)


def _fill_once(folder: Path, number: int, chance: random.Random, account: Account) -> None:
    """Leave a little room, record until it is used up and a little further, make room, and go on."""
    path, ballast = folder / "chat.jsonl", folder / "ballast"
    room = chance.randint(1, 60_000)
    with open(ballast, "wb") as file:
        file.write(bytes(ROOM - room))
    upstream = Upstream(_say)
    stream = bool(number % 2)
    asked: list[str] = []
    told: dict[str, list[str]] = {"returned": [], "carried": [], "lost": []}
    with _counted_writes(account), client(Cassette(path, fsync=number % 4 < 2), "record", upstream) as asker:
        for nth in range(40):
            asked.append(f"{number} {nth}")
            told[_record(asker, asked[-1], stream, account)].append(asked[-1])
            _check_end(path, account)
            if len(told["carried"]) == 3:
                break
    kept, carried = told["returned"], told["carried"]
    account.expect(upstream.paid == asked, f"{asked} were asked, and {upstream.paid} paid")
    lost = [words for words in upstream.paid if words not in [*kept, *carried]]
    account.expect(not lost, f"the answer to {lost} was paid, and neither returned nor carried")
    account.expect(len(carried) > 0, "the disk was never full")
    _replay(path, kept, stream, account)
    ballast.unlink()
    with client(Cassette(path), "record", upstream) as asker:
        for words in carried:
            told_now = _record(asker, words, stream, account)
            account.expect(told_now == "returned", f"{words!r} is {told_now} with room enough")
    _replay(path, [*kept, *carried], stream, account)
    account.expect(not (found := Cassette(path).check()), f"damage that no note explains: {found}")


class _counted_writes:
    """A block in which writes that were cut short are counted."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def __enter__(self) -> None:
        self._write = write = os.write

        def counted(number: int, data: bytes) -> int:
            written = write(number, data)
            self._account.see("short writes", written < len(data))
            return written

        os.write = counted  # type: ignore[assignment]

    def __exit__(self, *error: object) -> None:
        os.write = self._write


def _record(asker: httpx.Client, words: str, stream: bool, account: Account) -> str:
    """Record one answer; tell whether it is returned, carried by the error, or lost (or another one)."""
    try:
        outcome, heard = "returned", said(ask(asker, words, stream=stream))
    except CassetteWriteError as stop:
        outcome, heard = "carried", said_in(stop.content)
    except CassetteStop:
        outcome, heard = "refused", ""
    account.see(f"answers {outcome}")
    return outcome if heard == _say(words) else "lost"


def _check_end(path: Path, account: Account) -> None:
    data = path.read_bytes() if path.exists() else b""
    account.expect(not data or data.endswith(b"\n"), "the file ends in the middle of a line")


def _replay(path: Path, asked: list[str], stream: bool, account: Account) -> None:
    with client(Cassette(path), "replay") as asker:
        for words in asked:
            try:
                account.expect(
                    said(ask(asker, words, stream=stream)) == _say(words), f"{words!r} has another answer"
                )
            except CassetteStop as stop:
                account.fault(f"{words!r} was recorded and cannot be replayed: {stop!r}")


# -- no right to write ---------------------------------------------------------------------------------


def _read_only_mount(mount: Mount, setting: Setting, account: Account) -> None:
    _record_some(mount.folder)
    gc.collect()  # What is open for writing keeps a mount from becoming read-only.
    mount.make_read_only()
    account.expect(not os.access(mount.folder, os.W_OK), "the file system can be written")
    _use_without_right(mount.folder, account)


def _read_only_folder(setting: Setting, account: Account) -> None:
    """Use a cassette in a folder of somebody else's; root is nobody for a while."""
    folder = setting.folder / "theirs"
    folder.mkdir()
    _record_some(folder)
    (folder / "chat.jsonl").chmod(0o444)
    folder.chmod(0o555)
    setting.folder.chmod(0o755)
    if not all(above.stat().st_mode & 0o001 for above in setting.folder.parents):
        raise Skipped(f"nobody but root may enter {setting.folder.parent}")

    def work(inner: Account) -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        _use_without_right(folder, inner)

    in_child(work, account)


def _record_some(folder: Path) -> None:
    with client(Cassette(folder / "chat.jsonl"), "record", Upstream(_say)) as asker:
        for number in range(3):
            ask(asker, f"some {number}", stream=number == 1)


def _use_without_right(folder: Path, account: Account) -> None:
    path = folder / "chat.jsonl"
    before = _state(folder)
    with client(Cassette(path), "replay") as asker:
        for number in range(3):
            account.expect(
                said(ask(asker, f"some {number}", stream=number == 1)) == _say(f"some {number}"),
                "another answer",
            )
            account.see("answers replayed")
        try:
            ask(asker, "some 3")
            account.fault("what was never recorded is answered")
        except CassetteMiss:
            account.see("misses")
    upstream = Upstream(_say)
    for name in ("chat.jsonl", "new.jsonl", "deeper/new.jsonl"):
        try:
            with client(Cassette(folder / name), "record", upstream) as asker:
                ask(asker, "some 4")
            account.fault(f"{name} can be recorded to")
        except CassetteReadOnly:
            account.see("refused to record")
    account.expect(not upstream.paid, "a call was paid that could not be recorded")
    account.expect(_state(folder) == before, "something was written")


def _state(folder: Path) -> list[tuple[str, bytes, int]]:
    return [(path.name, path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*"))]


_RUNS = {"full": _fill, "read-only": _read_only_mount}

TRIALS = (
    Trial(
        "full", "0 paid answers lost, 0 acknowledged lost, ends at a recording", partial(_mounted, run="full")
    ),
    Trial("read-only-mount", "replays, refuses to record", partial(_mounted, run="read-only")),
    Trial("read-only-folder", "replays, refuses to record", _read_only_folder),
)
