"""The cassette: an append-only JSONL file and its index.

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
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ._errors import CassetteChanged, CassetteDamaged, CassetteError, CassetteReadOnly
from ._fingerprint import KEY_VERSION
from ._index import Damage, State
from ._line import MAX_LINE, MAX_NUMBER, Head, is_line_of, read_head, tear_note
from ._open_file import OpenFile, open_file, sync_folder
from ._recording import NewRecording, Recording
from ._view import View

__all__ = ["Appended", "Cassette", "Spot", "shared_cassette"]


class Spot(NamedTuple):
    """Where a recording claims to be.

    Args:
        gen: Its generation.
        sample: Which of several answers it is.
        entry: Its entry in the index.
        view: The file.
        cassette: The cassette.
    """

    gen: int
    sample: int
    entry: int
    view: View
    cassette: Cassette

    @property
    def line(self) -> int:
        """The number of its line, from 1."""
        return self.view.index.numbers[self.entry]


class Appended(NamedTuple):
    """What came of an append.

    Args:
        recording: The recording that is in the file now.
        is_new: ``False`` where another had stored one of this key and sample before.
    """

    recording: Recording
    is_new: bool


#: File -> key -> the generation begun for it, and the samples that are in it. For the process and not for an
#: object: whether a call is paid for again must not depend on the garbage collector.
_FRESH: dict[str, dict[bytes, tuple[int, set[int]]]] = {}


class Cassette:
    """One cassette file.

    Opening is cheap at any size: the index is built when it is first needed. One object may be shared by
    transports, threads and event loops.

    Args:
        path: The file. It need not exist: then every call misses, and recording creates it.
        fsync: Whether a recording is made durable before it is acknowledged.
        strict: Whether lines that are damaged, or contradict each other, raise :class:`CassetteDamaged` when
            the file is read, rather than being listed; every line is then checked at once.

    Raises:
        CassetteError: The path is a folder, or no path at all.
    """

    def __init__(self, path: str | os.PathLike[str], *, fsync: bool = True, strict: bool = False) -> None:
        self.path, self._real = _resolve(path)
        self.fsync = fsync
        self.strict = strict
        if os.path.isdir(self._real):
            raise CassetteError("the path is a folder; name a file in it, such as chat.jsonl", self.path)
        self._view: View | None = None
        self._writer: OpenFile | None = None
        self._is_scanned = False
        self._fresh = _FRESH.setdefault(self._real, {})
        self._scanning = threading.RLock()
        self._appending = threading.Lock()
        _ALL.add(self)

    def __repr__(self) -> str:
        return f"<Cassette {self.path}>"

    # -- what is in it -----------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self._view is not None or os.path.exists(self._real)

    @property
    def real_path(self) -> str:
        """The path with links resolved: two names of one file are one cassette."""
        return self._real

    @property
    def damage(self) -> list[Damage]:
        """Lines that cannot be answered from, as far as they have been looked at."""
        view = self._read()
        return [] if view is None else view.index.damage

    @property
    def torn(self) -> int:
        """How many lines were torn off by a crash: those repaired since, and one at the end that was not."""
        view = self._read()
        return 0 if view is None else view.index.torn

    @property
    def other_versions(self) -> dict[int, int]:
        """How many recordings there are of each other key version."""
        view = self._read()
        return {} if view is None else dict(view.index.other_versions)

    def __len__(self) -> int:
        """How many recordings there are, superseded ones included."""
        view = self._read()
        return 0 if view is None else len(view.index)

    def check(self) -> list[Damage]:
        """Check every line; return those that cannot be answered from, and those that contradict another.

        Two intact lines of one key, sample and generation contradict each other where their answers differ.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted.
        """
        view = self._read()
        return [] if view is None else view.check()

    def refresh(self, *, reopen: bool = False) -> bool:
        """Read what was appended since; tell whether there was anything.

        Args:
            reopen: Look at the file that the path names by now, where another has taken its place, as after
                a checkout. Otherwise what is open is read on.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted.
        """
        with self._scanning:
            before = None if self._view is None else self._view.extent
            if reopen and not self.is_current:
                self._view, self._is_scanned = None, False
            view = self._scan()
            return view is not None and view.extent != before

    def spots(self, key: bytes) -> list[Spot]:
        """Return where recordings of a key claim to be, the last line first; torn lines are left out."""
        view = self._view if self._is_scanned else self._read()
        if view is None:
            return []
        index = view.index
        found = []
        for entry in index.entries(key):
            # After a merge, the note of a torn line may stand behind another one.
            if index.states[entry] < State.NOTED or view.is_good(entry):
                sample, gen = index.sample_and_gen(entry)
                found.append(Spot(gen, sample, entry, view, self))
        return found

    def load(self, spot: Spot, key: bytes) -> Recording | None:
        """Return the recording at a spot, or ``None`` where its line is damaged.

        Raises:
            CassetteChanged: The file was cut or changed in place, and the line is gone.
        """
        view, entry = spot.view, spot.entry
        line = view.line(entry)
        if not view.is_good(entry, line):
            return None
        number = view.index.numbers[entry]
        if not is_line_of(line, key):
            raise CassetteChanged("the line changed under an open cassette; open it again", self.path, number)
        return Recording(line, self.path, number, Head(key, spot.sample, spot.gen, KEY_VERSION), self._real)

    def all_keys(self) -> list[bytes]:
        """Return the key of every recording, in the order of their first lines, damaged ones included."""
        view = self._read()
        return [] if view is None else view.index.keys()

    def newest_first(self) -> Iterator[Recording]:
        """Yield every recording that can be read, the last line first."""
        return self._recordings(lambda count: range(count - 1, -1, -1))

    def oldest_first(self) -> Iterator[Recording]:
        """Yield every recording that can be read, in the order of their lines."""
        return self._recordings(range)

    def _recordings(self, order: Callable[[int], Iterable[int]]) -> Iterator[Recording]:
        view = self._read()
        if view is None:
            return
        for entry in order(len(view.index.states)):
            try:
                line = view.line(entry)
                head = read_head(line) if view.is_good(entry, line) else None
            except CassetteError:
                continue  # The line is gone; what remains can still be read.
            if head is not None:
                yield Recording(line, self.path, view.index.numbers[entry], head, self._real)

    @property
    def is_current(self) -> bool:
        """Whether the path still names the file that was read, and not nothing or another one."""
        view = self._view
        if view is None:
            return True
        try:
            return os.path.samestat(os.stat(self._real), view.file.status())
        except (OSError, CassetteError):
            return False

    # -- what was recorded anew --------------------------------------------------------------------

    def is_fresh(self, key: bytes, sample: int) -> bool:
        """Tell whether this process has recorded this sample anew."""
        return key in self._fresh and sample in self._fresh[key][1]

    def fresh_gen(self, key: bytes) -> int | None:
        """Return the generation that was begun for a key, or ``None`` where none was."""
        return self._fresh[key][0] if key in self._fresh else None

    def mark_fresh(self, key: bytes, sample: int, gen: int) -> None:
        """Remember that a sample was recorded anew: ``rerecord`` pays once, and replays it from then on."""
        self._fresh.setdefault(key, (gen, set()))[1].add(sample)

    # -- reading -----------------------------------------------------------------------------------

    def _read(self) -> View | None:
        """Return the file as far as it was read, or ``None`` where there is none; read it the first time."""
        if not self._is_scanned:
            with self._scanning:
                return self._scan()
        return self._view

    def _scan(self) -> View | None:
        """Read the file up to its end. The caller holds the lock."""
        view = self._view
        if view is None:
            file = open_file(self._real, self.path)
            view = None if file is None else View(self.path, file)
        elif not view.is_usable:
            view = View(self.path, view.file)
        self._view = view
        try:
            is_news = view is not None and view.scan()
            if view is not None and self.strict and (is_news or not self._is_scanned):
                self._raise_damage(view.check())
        except CassetteError:
            self._is_scanned = False  # Said again at the next use.
            raise
        self._is_scanned = True
        return view

    def _raise_damage(self, found: list[Damage]) -> None:
        if found:
            first = found[0]
            raise CassetteDamaged(
                f"{first.reason}; strict=True accepts no such line, and there are {len(found)} of them",
                self.path,
                first.number,
            )

    # -- appending ---------------------------------------------------------------------------------

    def check_writable(self) -> None:
        """Make sure that recording can append, before a call is paid for.

        Raises:
            CassetteReadOnly: The file or its folder cannot be written.
        """
        folder = os.path.dirname(self._real)
        try:
            _make_folder(folder)
        except OSError as error:
            raise CassetteReadOnly(
                f"the folder of the cassette cannot be made: {error.strerror}", self.path
            ) from error
        name, where = ("file", self._real) if os.path.exists(self._real) else ("folder", folder)
        if not os.access(where, os.W_OK):
            raise CassetteReadOnly(f"the {name} cannot be written, so nothing can be recorded", self.path)

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
                writer = self._open_writer()
                with writer.exclusive():
                    appended = self._append_locked(writer, new, supersede, gen_floor)
                if appended is not None:
                    return appended
                self._forget_files()

    def _open_writer(self) -> OpenFile:
        """Return the file to append to; a forked process opens its own, with a lock of its own."""
        writer = self._writer
        if writer is None or writer.is_closed or writer.pid != os.getpid():
            self.check_writable()
            try:
                writer = self._writer = open_file(self._real, self.path, appends=True)
            except CassetteError as error:
                raise CassetteReadOnly(
                    f"{error.message}, so nothing can be recorded", self.path
                ) from error.__cause__
            if writer is None:
                raise CassetteReadOnly(
                    "the folder of the cassette is gone, so nothing can be recorded", self.path
                )
        return writer

    def _append_locked(
        self, writer: OpenFile, new: NewRecording, supersede: bool, gen_floor: int
    ) -> Appended | None:
        """Append, or return ``None`` where the path names another file by now."""
        with self._scanning:
            view = self._scan_current(writer)
            if view is None:
                return None
            spots = self.spots(new.key)
            gen = max([gen_floor, *(spot.gen for spot in spots)])
            if supersede:
                gen += 1
            else:
                there = self._first_good(new.key, [spot for spot in spots if spot[:2] == (gen, new.sample)])
                if there is not None:
                    return Appended(there, False)
            end = view.index.end
            tail = view.file.size - end if view.index.has_tail else 0
        line = self._line(new, gen)
        data = _repair(view, tail) + line + b"\n"
        # Readers are not kept waiting meanwhile.
        writer.append(data, fsync=self.fsync)
        if end == 0 and self.fsync:
            sync_folder(os.path.dirname(self._real))
        with self._scanning:
            if tail or view.index.end != end:
                view.scan()  # Where another thread has read it by now, there is nothing to do.
            else:
                view.index.feed(data, len(data))
            entry = view.index.entries(new.key)[0]
            view.index.confirm(entry)
        head = Head(new.key, new.sample, gen, KEY_VERSION)
        return Appended(Recording(line, self.path, view.index.numbers[entry], head, self._real), True)

    def _scan_current(self, writer: OpenFile) -> View | None:
        """Read what others appended, or return ``None`` where the path names another file by now.

        A write to a file that was replaced, such as by a git checkout, would be lost without a word.
        """
        try:
            named = os.stat(self._real)
        except OSError:
            return None
        opened = writer.status()
        if not os.path.samestat(opened, named):
            return None
        known = self._view
        if known is not None:
            is_other = not os.path.samestat(known.file.status(), opened)
            if is_other or opened.st_size < known.index.end:
                return None
        return self._scan()

    def _first_good(self, key: bytes, spots: list[Spot]) -> Recording | None:
        return next(filter(None, (self.load(spot, key) for spot in spots)), None)

    def _line(self, new: NewRecording, gen: int) -> bytes:
        if max(gen, new.sample) > MAX_NUMBER:
            raise CassetteError(f"a generation or sample is higher than {MAX_NUMBER:,}", self.path)
        line = new.line(gen, KEY_VERSION)
        if len(line) > MAX_LINE:
            raise CassetteError(
                f"the recording has {len(line):,} bytes and a line holds at most {MAX_LINE:,}; "
                "let such calls pass with passthrough=",
                self.path,
            )
        return line

    def _forget_files(self) -> None:
        """Start again with what the path names now."""
        with self._scanning:
            self._view = self._writer = None
            self._is_scanned = False

    def close(self) -> None:
        """Close the file; the next use opens it again. Closing twice does nothing."""
        with self._appending:
            self._forget_files()


def _resolve(path: object) -> tuple[str, str]:
    """Return a path as text, and the file that it names with links resolved."""
    try:
        text = os.fspath(path)  # type: ignore[call-overload]  # whatever it is: that is what is found out
        if isinstance(text, str) and text:
            return text, os.path.realpath(text)
    except (OSError, TypeError, ValueError):  # ValueError: a NUL, or what the file system cannot encode.
        pass
    raise CassetteError(
        f"{path!r} is not the path of a cassette file; write it like 'tests/cassettes/chat.jsonl'"
    )


def _make_folder(folder: str) -> None:
    """Make a folder and those above it, with durable names."""
    if os.path.isdir(folder):
        return
    if os.path.exists(folder):
        raise NotADirectoryError(errno.ENOTDIR, "Not a directory")
    above = os.path.dirname(folder)
    if above != folder:  # pragma: no branch  # a drive that is not there, on Windows
        _make_folder(above)
    os.makedirs(folder, exist_ok=True)
    sync_folder(above)


def _repair(view: View, tail: int) -> bytes:
    """Return what must stand before the next line, so that an unfinished one stays a line of its own."""
    if not tail:
        return b""
    index = view.index
    if index.has_whole_tail:
        return b"\n"
    # A crash may tear the note of the line before, too: it is completed, or nothing would explain that line.
    start, length = index.last_line
    note = tear_note(start, length) + b"\n"
    is_begun = tail < len(note) and note.startswith(view.file.read(tail, index.end))
    if length and is_begun and not view.has_last_seal():
        return note[tail:]
    return b"\n" + tear_note(index.end, tail) + b"\n"


_ALL: weakref.WeakSet[Cassette] = weakref.WeakSet()


def _after_fork() -> None:
    """Give a forked child locks of its own: another thread may have held them at the fork."""
    for cassette in _ALL:
        cassette._scanning, cassette._appending = threading.RLock(), threading.Lock()
        if cassette._writer is not None:
            # It shares its lock with the parent's, and would keep it locked after the parent's death.
            cassette._writer.close()
    global _OPEN_LOCK
    _OPEN_LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # there is no fork on Windows
    os.register_at_fork(after_in_child=_after_fork)


# -- one object per file -------------------------------------------------------------------------------

_OPEN: weakref.WeakValueDictionary[str, Cassette] = weakref.WeakValueDictionary()
_OPEN_LOCK = threading.Lock()


def shared_cassette(cassette: str | os.PathLike[str] | Cassette) -> Cassette:
    """Return the cassette of a path; transports on one path share one index.

    Raises:
        CassetteError: The path is a folder, or no path at all.
    """
    if isinstance(cassette, Cassette):
        return cassette
    _, real = _resolve(cassette)
    with _OPEN_LOCK:
        found = _OPEN.get(real)
        if found is None or not found.is_current:
            found = _OPEN[real] = Cassette(cassette)
        return found
