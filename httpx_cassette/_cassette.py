"""The cassette: an append-only JSONL file and its index. Only this module touches the file.

What it promises:

- A recording that was acknowledged survives the death of any process, and with ``fsync`` of the machine.
- A reader sees a whole recording or none.
- One answer per key and sample, one generation per key: the highest generation wins, not the last line, so
  that cassettes can be concatenated and merged line by line.
- Bytes of finished recordings never change. The only truncation undoes one's own short write.
- Damage is named, never guessed at. Reading writes nothing.

Appending, all under one lock: read what others appended, see whether the recording is there by now, repair
a torn tail with a note, write the line with one ``write``, make it durable.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from ._errors import CassetteChanged, CassetteDamaged, CassetteError, CassetteReadOnly
from ._file_lock import exclusive, read_at
from ._fingerprint import KEY_VERSION
from ._index import Damage, Index, State
from ._recording import MAX_LINE, Head, NewRecording, Recording, is_intact, read_head, tear_note

__all__ = ["Appended", "Cassette", "open_cassette"]

#: Bytes read at once while scanning; a line longer than this is read in larger pieces.
_CHUNK = 4 * 1024 * 1024

_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_WRITE = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class Spot(NamedTuple):
    """Where a recording claims to be.

    Args:
        gen: Its generation.
        sample: Which of several answers it is.
        entry: Its entry in the index.
        index: The index; a file that is replaced while recording gets another.
        reader: The descriptor that belongs to the index.
        cassette: The cassette.
    """

    gen: int
    sample: int
    entry: int
    index: Index
    reader: int
    cassette: Cassette

    @property
    def line(self) -> int:
        """The number of its line, from 1."""
        return self.index.numbers[self.entry]


class Appended(NamedTuple):
    """What came of an append.

    Args:
        recording: The recording that is in the file now.
        is_new: ``False`` where another had stored one of this key and sample before.
    """

    recording: Recording
    is_new: bool


class Cassette:
    """One cassette file.

    Opening is cheap at any size: the index is built when it is first needed. One object may be shared by
    transports, threads and event loops.

    Args:
        path: The file. It need not exist: then every call misses, and recording creates it.
        fsync: Whether a recording is made durable before it is acknowledged.
        strict: Whether damaged lines raise :class:`CassetteDamaged` when the file is read, rather than being
            listed; every line is then checked at once.

    Raises:
        CassetteError: The path is a folder.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = True, strict: bool = False) -> None:
        self.path = os.fspath(path)
        self.fsync = fsync
        self.strict = strict
        if not isinstance(self.path, str) or not self.path or "\0" in self.path:
            raise CassetteError(f"{path!r} is not the path of a cassette file; write it like 'tests/cassettes/chat.jsonl'")
        if os.path.isdir(self.path):
            raise CassetteError("the path is a folder; name a file in it, such as chat.jsonl", self.path)
        self._real = os.path.realpath(self.path)
        self._index = Index(self.path)
        self._reader = -1
        self._writer = -1
        self._writer_pid = 0
        self._is_scanned = False
        self._fresh: dict[bytes, tuple[int, set[int]]] = {}
        self._scanning = threading.RLock()
        self._appending = threading.Lock()
        weakref.finalize(self, _close_all, descriptors := [])
        self._descriptors: list[int] = descriptors
        _ALL.add(self)

    def __repr__(self) -> str:
        return f"<Cassette {self.path}>"

    # -- what is in it -----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self._reader != -1 or os.path.exists(self._real)

    @property
    def real_path(self) -> str:
        """The path with links resolved: two names of one file are one cassette."""
        return self._real

    @property
    def damage(self) -> list[Damage]:
        """Lines that cannot be answered from, as far as they have been looked at."""
        self._read()
        return list(self._index.damage)

    @property
    def torn(self) -> int:
        """How many lines were torn off by a crash and repaired since."""
        self._read()
        return self._index.torn

    @property
    def other_versions(self) -> dict[int, int]:
        """How many recordings there are of each other key version."""
        self._read()
        return dict(self._index.other_versions)

    def __len__(self) -> int:
        """How many recordings there are, superseded ones included."""
        self._read()
        return len(self._index)

    def refresh(self) -> bool:
        """Read what was appended since; tell whether there was anything.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted.
        """
        with self._scanning:
            before = self._index.end
            self._is_scanned = False
            self._read()
            return self._index.end != before

    def spots(self, key: bytes) -> list[Spot]:
        """Return where the recordings of a key claim to be, the last line first; torn lines are left out."""
        if not self._is_scanned:
            self._read()
        index, reader = self._index, self._reader
        gens, samples, states = index.gens, index.samples, index.states
        return [
            Spot(gens[entry], samples[entry], entry, index, reader, self)
            for entry in index.entries(key)
            if states[entry] != State.TORN
        ]

    def load(self, spot: Spot, key: bytes) -> Recording | None:
        """Return the recording at a spot, or ``None`` where its line is damaged.

        Raises:
            CassetteChanged: The file was cut or replaced, and the line is gone.
        """
        index, entry = spot.index, spot.entry
        number = index.numbers[entry]
        line = self._read_line(spot.reader, index.offsets[entry], index.lengths[entry])
        state = index.states[entry]
        if state == State.UNCHECKED:
            state = index.states[entry] = State.INTACT if is_intact(line) else State.DAMAGED
            if state == State.DAMAGED:
                index.damage.append(Damage(number, _seal_reason(line)))
        if state != State.INTACT:
            return None
        if line.find(key.hex().encode(), 0, 200) == -1 and read_head(line) is None:
            raise CassetteChanged("the line changed under an open cassette; open it again", self.path, number)
        return Recording(line, self.path, number, Head(key, spot.sample, spot.gen, KEY_VERSION))

    def newest_first(self) -> Iterator[Recording]:
        """Yield every recording that can be read, the last line first."""
        self._read()
        index, reader = self._index, self._reader
        for entry in range(len(index.offsets) - 1, -1, -1):
            line = self._read_line(reader, index.offsets[entry], index.lengths[entry])
            head = read_head(line) if index.states[entry] != State.TORN and is_intact(line) else None
            if head is not None:
                yield Recording(line, self.path, index.numbers[entry], head)

    # -- what was recorded anew --------------------------------------------------------------------

    def is_fresh(self, key: bytes, sample: int) -> bool:
        """Tell whether this sample was recorded anew since this object was made."""
        return key in self._fresh and sample in self._fresh[key][1]

    def fresh_gen(self, key: bytes) -> int | None:
        """Return the generation that was begun for a key, or ``None`` where none was."""
        return self._fresh[key][0] if key in self._fresh else None

    def mark_fresh(self, key: bytes, sample: int, gen: int) -> None:
        """Remember that a sample was recorded anew: ``rerecord`` pays once, and replays it from then on."""
        self._fresh.setdefault(key, (gen, set()))[1].add(sample)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self) -> None:
        """Bring the index up to the end of the file, once until :meth:`refresh`."""
        if self._is_scanned:
            return
        with self._scanning:
            if self._reader == -1:
                self._reader = self._open(_READ)
            if self._reader != -1:
                self._scan(self._reader)
            self._is_scanned = True

    def _open(self, flags: int) -> int:
        try:
            descriptor = os.open(self._real, flags, 0o666)
        except FileNotFoundError:
            return -1
        except OSError as error:
            raise CassetteError(f"the cassette cannot be opened: {error.strerror}", self.path) from error
        self._descriptors.append(descriptor)
        return descriptor

    def _scan(self, descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        index, chunk = self._index, _CHUNK
        while index.end < size:
            data = read_at(descriptor, chunk, index.end)
            cut = data.rfind(b"\n") + 1
            if cut:
                index.feed(data[:cut] if cut < len(data) else data)
                chunk = _CHUNK
            elif len(data) < chunk:
                break  # A tail without its newline: still being written, or torn.
            elif len(data) > MAX_LINE:
                self._skip_long_line(descriptor, size)
            else:
                chunk *= 4
        if self.strict:
            self._check_all()

    def _skip_long_line(self, descriptor: int, size: int) -> None:
        length = 0
        while self._index.end + length < size:
            data = read_at(descriptor, _CHUNK, self._index.end + length)
            stop = data.find(b"\n")
            length += len(data) if stop == -1 else stop + 1
            if stop != -1:
                break
        self._index.skip(length, f"longer than {MAX_LINE // 1024 // 1024} MiB")

    def _check_all(self) -> None:
        index = self._index
        for entry, state in enumerate(index.states):
            if state == State.UNCHECKED:
                line = self._read_line(self._reader, index.offsets[entry], index.lengths[entry])
                index.states[entry] = State.INTACT if is_intact(line) else State.DAMAGED
                if index.states[entry] == State.DAMAGED:
                    index.damage.append(Damage(index.numbers[entry], _seal_reason(line)))
        if index.damage:
            first = min(index.damage)
            raise CassetteDamaged(f"{first.reason}; {len(index.damage)} damaged lines in all", self.path, first.number)

    def _read_line(self, reader: int, offset: int, length: int) -> bytes:
        try:
            if os.name == "nt":  # pragma: no cover - there is no pread, and the position is shared
                with self._scanning:
                    line = read_at(reader, length, offset)
            else:
                line = read_at(reader, length, offset)
        except OSError as error:
            raise CassetteError(f"the cassette cannot be read: {error.strerror}", self.path) from error
        if len(line) < length:
            raise CassetteChanged("the file was cut under an open cassette; restore it, or open it again", self.path)
        return line

    # -- appending ---------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Make sure that recording can append, before a call is paid for.

        Raises:
            CassetteReadOnly: The file or its folder cannot be written.
        """
        folder = os.path.dirname(self._real)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise CassetteReadOnly(f"the folder of the cassette cannot be made: {error.strerror}", self.path) from error
        where = self._real if os.path.exists(self._real) else folder
        if not os.access(where, os.W_OK):
            raise CassetteReadOnly(
                f"the {'file' if where == self._real else 'folder'} cannot be written, so nothing can be recorded", self.path
            )

    def append(self, new: NewRecording, *, supersede: bool = False, gen_floor: int = 0) -> Appended:
        """Store a recording, unless another has stored one of its key and sample by now.

        When this returns, the recording survives the death of the process, and with ``fsync`` of the machine.

        Args:
            new: The exchange.
            supersede: Store it as a new generation, whatever is there.
            gen_floor: The generation that other cassettes of the same list have reached.

        Raises:
            CassetteReadOnly: The file cannot be written.
            CassetteError: It could not be stored; the file is as it was before.
        """
        _ = new.body  # Rendered before the lock is taken: others wait for it.
        with self._appending:
            while True:
                descriptor = self._writable()
                with exclusive(descriptor):
                    if self._is_current(descriptor):
                        return self._append_locked(descriptor, new, supersede, gen_floor)
                self._forget_files()

    def _append_locked(self, descriptor: int, new: NewRecording, supersede: bool, gen_floor: int) -> Appended:
        with self._scanning:
            self._scan(descriptor)
            self._is_scanned = True
            repair = self._repair(descriptor)
            if repair == b"\n":
                # The tail is a whole recording, and may be the very one that is to be stored.
                self._write(descriptor, repair)
                self._scan(descriptor)
                repair = b""
            spots = self.spots(new.key)
            newest = max([gen_floor, *(spot.gen for spot in spots)])
            if not supersede:
                for spot in spots:
                    if (spot.gen, spot.sample) == (newest, new.sample) and (there := self.load(spot, new.key)) is not None:
                        return Appended(there, False)
            line = new.line(newest + (1 if supersede else 0), KEY_VERSION)
            if len(line) > MAX_LINE:
                raise CassetteError(
                    f"the recording has {len(line):,} bytes and a line holds at most {MAX_LINE:,}; "
                    "let such calls pass with passthrough=",
                    self.path,
                )
            self._write(descriptor, repair + line + b"\n")
            self._scan(descriptor)
            stored = self.spots(new.key)[0]
            stored.index.states[stored.entry] = State.INTACT
            head = Head(new.key, stored.sample, stored.gen, KEY_VERSION)
            return Appended(Recording(line, self.path, stored.line, head), True)

    def _writable(self) -> int:
        """Return the descriptor to append with; a forked process opens its own, with a lock of its own."""
        if self._writer != -1 and self._writer_pid != os.getpid():
            self._writer = self._reader = -1  # The parent's; closing them here is left to the end of the process.
        if self._writer == -1:
            self.check_writable()
            is_new = not os.path.exists(self._real)
            try:
                self._writer = self._open(_WRITE)
            except CassetteError as error:
                raise CassetteReadOnly(error.message + ", so nothing can be recorded", self.path) from error.__cause__
            if self._writer == -1:
                raise CassetteReadOnly("the folder of the cassette is gone, so nothing can be recorded", self.path)
            self._writer_pid = os.getpid()
            if is_new and self.fsync:
                _sync_folder(os.path.dirname(self._real))
        if self._reader == -1:
            self._reader = self._writer
        return self._writer

    def _is_current(self, descriptor: int) -> bool:
        """Tell whether the path still names this file: a write to a file that was replaced would be lost."""
        opened = os.fstat(descriptor)
        try:
            named = os.stat(self._real)
        except FileNotFoundError:
            return False
        same_reader = self._reader == descriptor or os.path.samestat(os.fstat(self._reader), opened)
        return os.path.samestat(opened, named) and same_reader and opened.st_size >= self._index.end

    def _forget_files(self) -> None:
        """Start again with what the path names now."""
        with self._scanning:
            self._index = Index(self.path)
            self._reader = self._writer = -1
            self._is_scanned = False

    def _repair(self, descriptor: int) -> bytes:
        """Return what must stand before the next line, so that a torn tail stays a line of its own."""
        start, size = self._index.end, os.fstat(descriptor).st_size
        if size == start:
            return b""
        tail = read_at(descriptor, min(size - start, MAX_LINE + 1), start)
        if is_intact(tail) and read_head(tail) is not None:
            return b"\n"  # Only its newline is missing.
        return b"\n" + tear_note(start, size - start) + b"\n"

    def _write(self, descriptor: int, data: bytes) -> None:
        """Append with one write, or leave the file as it was."""
        size = os.fstat(descriptor).st_size
        try:
            written = os.write(descriptor, data)
            if written < len(data):
                # A full disk writes what fits and says why only at the next call.
                os.ftruncate(descriptor, size)
                written = os.write(descriptor, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, "only part of the line could be written")
            if self.fsync:
                _sync(descriptor)
        except OSError as error:
            _truncate_quietly(descriptor, size)
            raise CassetteError(f"the recording could not be written: {error.strerror}", self.path) from error

    def close(self) -> None:
        """Close the file; the next use opens it again. Closing twice does nothing."""
        with self._appending, self._scanning:
            _close_all(self._descriptors)
            self._forget_files()


def _close_all(descriptors: list[int]) -> None:
    while descriptors:
        try:
            os.close(descriptors.pop())
        except OSError:
            pass


def _sync(descriptor: int) -> None:
    getattr(os, "fdatasync", os.fsync)(descriptor)


def _sync_folder(folder: str) -> None:
    """Make a new file's name durable, where the platform lets a folder be opened."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _truncate_quietly(descriptor: int, size: int) -> None:
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        pass  # The line stays torn: the next append says so with a note.


def _seal_reason(line: bytes) -> str:
    try:
        whole = read_head(line) is not None and line.endswith(b"}")
    except CassetteError:
        whole = False
    return "edited by hand, or damaged" if whole else "damaged"


_ALL: weakref.WeakSet[Cassette] = weakref.WeakSet()


def _after_fork() -> None:
    """Give a forked child locks of its own: another thread may have held them at the fork."""
    for cassette in _ALL:
        cassette._scanning, cassette._appending = threading.RLock(), threading.Lock()
    global _OPEN_LOCK
    _OPEN_LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# -- one object per file -------------------------------------------------------------------------------

_OPEN: weakref.WeakValueDictionary[str, Cassette] = weakref.WeakValueDictionary()
_OPEN_LOCK = threading.Lock()


def open_cassette(cassette: str | os.PathLike[str] | Cassette) -> Cassette:
    """Return the cassette of a path; transports on one path share one index.

    Raises:
        CassetteError: The path is a folder.
    """
    if isinstance(cassette, Cassette):
        return cassette
    real = os.path.realpath(os.fspath(cassette))
    with _OPEN_LOCK:
        found = _OPEN.get(real)
        if found is None:
            found = _OPEN[real] = Cassette(cassette)
        return found
