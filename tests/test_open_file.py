"""One open file: what a fault of the system becomes, and what stays in the file."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from httpx_cassette import _open_file
from httpx_cassette._errors import CassetteError
from httpx_cassette._open_file import OpenFile, open_file, sync_folder

ENOSPC = OSError(errno.ENOSPC, "No space left on device")
EIO = OSError(errno.EIO, "Input/output error")


def opened(path: Path, *, appends: bool = False) -> OpenFile:
    file = open_file(str(path), "c.jsonl", appends=appends)
    assert file is not None
    return file


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


# -- opening and closing -------------------------------------------------------------------------------


def test_a_missing_file_is_none_and_appending_makes_it(tmp_path: Path) -> None:
    """Reading makes no file; appending makes one, with the permissions that the umask leaves."""
    path = tmp_path / "c.jsonl"
    umask = os.umask(0o027)
    try:
        assert open_file(str(path), "c.jsonl") is None
        assert [] == list(tmp_path.iterdir())
        assert 0 == opened(path, appends=True).size
    finally:
        os.umask(umask)

    assert 0o640 == path.stat().st_mode & 0o777


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """A named pipe and a device are refused at once; opening a pipe waits for nobody."""
    os.mkfifo(tmp_path / "pipe")

    for path in (str(tmp_path / "pipe"), os.devnull):
        with pytest.raises(CassetteError) as caught:
            open_file(path, "c.jsonl")
        assert "c.jsonl: the path is no regular file; name one, such as chat.jsonl" == str(caught.value)


def test_a_path_below_a_file_is_an_error(tmp_path: Path) -> None:
    """What cannot be opened says why."""
    (tmp_path / "file").touch()

    with pytest.raises(CassetteError) as caught:
        open_file(str(tmp_path / "file" / "c.jsonl"), "c.jsonl")

    assert "c.jsonl: the cassette cannot be opened: Not a directory" == str(caught.value)


def test_a_file_is_closed_when_nobody_holds_it(tmp_path: Path) -> None:
    """A descriptor lives as long as its object, and is closed once: the number may be another's by then."""
    file = opened(tmp_path / "c.jsonl", appends=True)
    number = file.number
    assert is_open(number)

    file.close()
    other = os.open(tmp_path, os.O_RDONLY)
    assert other == number
    file.close()
    del file
    assert is_open(other)
    os.close(other)

    file = opened(tmp_path / "c.jsonl")
    number = file.number
    del file
    assert not is_open(number)


def test_a_descriptor_is_not_inherited_by_programs(tmp_path: Path) -> None:
    """A program that is started gets no hold of the file or its lock."""
    assert not os.get_inheritable(opened(tmp_path / "c.jsonl", appends=True).number)


# -- reading -------------------------------------------------------------------------------------------


def test_reading_does_not_move_anything(tmp_path: Path) -> None:
    """Any place is read from any thread; behind the end there is nothing."""
    (tmp_path / "c.jsonl").write_bytes(b"0123456789")
    file = opened(tmp_path / "c.jsonl")

    assert (b"345", b"012", b"89", b"") == tuple(file.read(3, at) for at in (3, 0, 8, 20))
    assert 10 == file.size


def test_a_short_read_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that gives a few bytes at a time gives all of them in the end."""
    (tmp_path / "c.jsonl").write_bytes(b"0123456789")
    file = opened(tmp_path / "c.jsonl")
    real = _open_file._read
    monkeypatch.setattr(
        _open_file, "_read", lambda number, length, offset: real(number, min(length, 3), offset)
    )

    assert (b"12345678", b"89") == (file.read(8, 1), file.read(8, 8))


ON_FAULT: dict[str, tuple[Callable[[OpenFile], object], str]] = {
    "size": (lambda file: file.size, "the cassette cannot be looked at: Input/output error"),
    "read": (lambda file: file.read(1, 0), "the cassette cannot be read: Input/output error"),
    "lock": (
        lambda file: file.exclusive().__enter__(),
        "the cassette cannot be locked: Input/output error; keep it on a local disk",
    ),
}


@pytest.mark.parametrize(("act", "expected"), ON_FAULT.values(), ids=ON_FAULT)
def test_a_fault_of_the_system_is_a_cassette_error(
    act: Callable[[OpenFile], object], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the system says about a file, nothing but a ``CassetteError`` comes out."""
    file = opened(tmp_path / "c.jsonl", appends=True)

    def fail(*arguments: object) -> None:
        raise EIO

    monkeypatch.setattr(_open_file, "_read", fail)
    monkeypatch.setattr(_open_file, "_lock", fail)
    with monkeypatch.context() as patch, pytest.raises(CassetteError) as caught:
        patch.setattr(os, "fstat", fail)
        act(file)

    assert f"c.jsonl: {expected}" == str(caught.value)


# -- the lock ------------------------------------------------------------------------------------------


def test_two_descriptors_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """The lock separates threads too, as long as each has a descriptor of its own."""
    first, second = (opened(tmp_path / "c.jsonl", appends=True) for _ in range(2))
    seen: list[str] = []

    def wait() -> None:
        with second.exclusive():
            seen.append("second")

    with first.exclusive():
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.05)
        seen.append("first")
    thread.join()

    assert ["first", "second"] == seen


def test_the_lock_is_given_back_after_an_error(tmp_path: Path) -> None:
    """An append that fails keeps nobody out."""
    first, second = (opened(tmp_path / "c.jsonl", appends=True) for _ in range(2))

    with pytest.raises(ZeroDivisionError), first.exclusive():
        raise ZeroDivisionError

    with second.exclusive():
        pass


def test_a_lock_that_cannot_be_undone_is_given_back_by_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the unlocking keeps nobody out, and takes nothing back of what was done."""
    first, second = (opened(tmp_path / "c.jsonl", appends=True) for _ in range(2))

    def fail(number: int) -> None:
        raise EIO

    with monkeypatch.context() as patch:
        patch.setattr(_open_file, "_unlock", fail)
        with first.exclusive():
            pass

    assert first.is_closed
    with second.exclusive():
        pass
    assert not second.is_closed


# -- appending -----------------------------------------------------------------------------------------


class Faulty:
    """``os`` with faults: what each call to write does, in order; then all goes well."""

    def __init__(
        self, *writes: int | OSError, sync: OSError | None = None, truncate: OSError | None = None
    ) -> None:
        self.writes = list(writes)
        self.sync_error = sync
        self.truncate_error = truncate
        self.syncs = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(os, "write", self.write)
        patch.setattr(os, "ftruncate", self.truncate)
        patch.setattr(_open_file, "_sync", self.sync)

    def write(self, number: int, data: bytes, real: Callable[[int, bytes], int] = os.write) -> int:
        fault = self.writes.pop(0) if self.writes else len(data)
        if isinstance(fault, OSError):
            raise fault
        return real(number, data[:fault])

    def sync(self, number: int) -> None:
        self.syncs += 1
        if self.sync_error is not None:
            raise self.sync_error

    def truncate(self, number: int, size: int, real: Callable[[int, int], None] = os.ftruncate) -> None:
        if self.truncate_error is not None:
            raise self.truncate_error
        real(number, size)


FAULTS: dict[str, tuple[Faulty, str]] = {
    "enospc-at-once": (Faulty(ENOSPC), "No space left on device"),
    "short-then-enospc": (Faulty(3, ENOSPC), "No space left on device"),
    "short-twice": (Faulty(3, 2), "only a part of the line could be written"),
    "nothing-written": (Faulty(0, 0), "only a part of the line could be written"),
    "eio": (Faulty(EIO), "Input/output error"),
    "fsync": (Faulty(sync=EIO), "Input/output error"),
    "no-text": (Faulty(OSError("odd")), "odd"),
}


@pytest.mark.parametrize(("faulty", "why"), FAULTS.values(), ids=FAULTS)
def test_a_failed_append_leaves_the_file_as_it_was(
    faulty: Faulty, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, a broken one and a failed fsync take back what was written, and say why."""
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"before\n")
    file = opened(path, appends=True)
    with monkeypatch.context() as patch:
        faulty.install(patch)
        with pytest.raises(CassetteError) as caught:
            file.append(b"a whole line\n", fsync=True)

    assert f"c.jsonl: the recording could not be written: {why}" == str(caught.value)
    assert b"before\n" == path.read_bytes()
    file.append(b"next\n", fsync=True)
    assert b"before\nnext\n" == path.read_bytes()


def test_a_short_write_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that was cut short for a moment costs nothing: the rest of the line follows."""
    file = opened(tmp_path / "c.jsonl", appends=True)
    Faulty(4).install(monkeypatch)

    file.append(b"a whole line\n", fsync=False)

    assert b"a whole line\n" == (tmp_path / "c.jsonl").read_bytes()


def test_a_line_that_cannot_be_taken_back_stays_torn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even the truncation fails the error is still that of the write."""
    file = opened(tmp_path / "c.jsonl", appends=True)
    Faulty(4, ENOSPC, truncate=EIO).install(monkeypatch)

    with pytest.raises(CassetteError) as caught:
        file.append(b"a whole line\n", fsync=True)

    assert "c.jsonl: the recording could not be written: No space left on device" == str(caught.value)
    assert b"a wh" == (tmp_path / "c.jsonl").read_bytes()


@pytest.mark.parametrize("fsync", [True, False])
def test_a_line_is_made_durable_where_that_is_asked_for(
    fsync: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ``fsync`` an append returns after the data are on the disk; without it nothing is synced."""
    file = opened(tmp_path / "c.jsonl", appends=True)
    faulty = Faulty()
    faulty.install(monkeypatch)

    file.append(b"line\n", fsync=fsync)

    assert int(fsync) == faulty.syncs


def test_the_name_of_a_new_file_is_made_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is synced; where the platform does not let it be opened or synced, that is no error."""
    synced: list[int] = []

    def sync(number: int) -> None:
        synced.append(os.fstat(number).st_ino)
        raise EIO

    monkeypatch.setattr(os, "fsync", sync)

    sync_folder(str(tmp_path))
    sync_folder(str(tmp_path / "none"))

    assert [tmp_path.stat().st_ino] == synced
