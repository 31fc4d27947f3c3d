"""A cassette file that is open, and what is known of it: read the file into the index, read and check lines.

Nothing here writes, and nothing takes a lock: one thread at a time scans, any may read lines meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._canonical import canonical_bytes
from ._errors import CassetteChanged, CassetteError
from ._index import Damage, Index, State
from ._line import MAX_LINE, bare, has_seal, is_intact, parse_line
from ._open_file import OpenFile
from ._parsing import NotJson

__all__ = ["View", "answer_of"]

#: Bytes read at once while scanning. Larger pieces cost more: the allocator maps fresh pages for each.
_CHUNK = 512 * 1024

_OPEN_QUESTIONS = (State.UNCHECKED, State.NOTED)


class View:
    """A file and what is known of it. A file that is replaced while recording gets another view.

    Args:
        path: The path as the user wrote it, for errors.
        file: The open file.
    """

    __slots__ = ("file", "index", "path")

    def __init__(self, path: str, file: OpenFile) -> None:
        self.path = path
        self.file = file
        self.index = Index(path)

    @property
    def extent(self) -> tuple[View, int, int]:
        """What changes when something was read that was not known before."""
        return self, self.index.end, len(self.index.states)

    # -- scanning ----------------------------------------------------------------------------------

    @property
    def is_usable(self) -> bool:
        """Whether the index can be brought up to date, rather than be built anew.

        It cannot where an error or a fork broke it off, nor where the file was changed in place, as some
        editors do: then no line ends any more where one did.
        """
        end = self.index.end
        if self.index.is_broken:
            return False
        return end == 0 or self.file.size <= end or self.file.read(1, end - 1) == b"\n"

    def scan(self) -> bool:
        """Bring the index up to the end of the file; tell whether there was anything beyond it.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted.
            CassetteVersionError: A line was written in a newer format.
        """
        index, file = self.index, self.file
        start, size, most = index.end, file.size, _CHUNK
        while index.end < size:
            data = file.read(min(most, size - index.end), index.end)
            stop = data.rfind(b"\n") + 1
            if stop:
                index.feed(data, stop)
                most = min(most, 8 * _CHUNK)
            elif index.end + len(data) >= size:
                break  # A tail without its newline: still being written, or torn.
            elif len(data) < most:
                size = self._smaller_size(index.end + len(data))
            elif most <= MAX_LINE:
                most = min(most * 4, MAX_LINE + len("\r\n"))
            elif not self._skip_long_line(size):
                break
        tail = size - index.end
        if tail > 0 or index.has_torn_tail:
            # Of one that is too long for a line, the beginning is enough.
            index.feed_tail(file.read(tail if tail <= MAX_LINE else 64, index.end) if tail > 0 else b"")
        return tail > 0 or index.end > start

    def _smaller_size(self, end: int) -> int:
        """Return the size of a file that ended before it should: a writer has taken back a line.

        Raises:
            CassetteError: It did not; a fault of the disk is no end of a file.
        """
        size = self.file.size
        if size > end:
            raise CassetteError("the cassette cannot be read: it gives fewer bytes than it has", self.path)
        return size

    def _skip_long_line(self, size: int) -> bool:
        """Step over a line without loading it; tell whether it has an end."""
        index, length = self.index, MAX_LINE
        while data := self.file.read(min(_CHUNK, size - index.end - length), index.end + length):
            stop = data.find(b"\n") + 1
            if stop:
                index.skip(length + stop, f"longer than {MAX_LINE // 1024 // 1024} MiB")
                return True
            length += len(data)
        return False

    # -- lines -------------------------------------------------------------------------------------

    def line(self, entry: int) -> bytes:
        """Return the line of an entry.

        Raises:
            CassetteChanged: The file was cut, and the line is gone.
        """
        index = self.index
        length = index.lengths[entry]
        line = self.file.read(length, index.offsets[entry])
        if len(line) < length:
            raise CassetteChanged(
                "the file was cut under an open cassette; restore it, or open it again", self.path
            )
        return line

    def has_last_seal(self) -> bool:
        """Tell whether the last line that was scanned ends in a seal, right or wrong; a torn one does not."""
        start, length = self.index.last_line
        ending = min(length, 64)
        return has_seal(bare(self.file.read(ending, start + length - ending)))

    def is_good(self, entry: int, line: bytes | None = None) -> bool:
        """Tell whether a line is intact. Its seal is looked at once.

        Args:
            entry: The entry of the line.
            line: The line, where it has been read.
        """
        index = self.index
        if index.states[entry] in _OPEN_QUESTIONS:
            line = self.line(entry) if line is None else line
            if is_intact(line):
                index.confirm(entry)
            else:
                index.refuse(entry, _reason(line))
        return index.states[entry] == State.INTACT

    def check(self) -> list[Damage]:
        """Check every line; return those that are damaged, and those that contradict another."""
        for entry in range(len(self.index.states)):
            self.is_good(entry)
        return sorted([*self.index.damage, *self._damaged_others(), *self._conflicts()])

    def _damaged_others(self) -> Iterator[Damage]:
        """Yield the lines of other key versions whose seal is wrong: the version may be what is damaged."""
        for offset, length, number in self.index.others:
            line = bare(self.file.read(length, offset))
            if not is_intact(line):
                yield Damage(number, _reason(line))

    def _conflicts(self) -> Iterator[Damage]:
        """Yield the lines whose answer differs from an earlier one of the same key, sample and gen."""
        index = self.index
        for entries in index.repeated():
            first: dict[tuple[int, int], tuple[int, bytes]] = {}
            for entry in reversed(entries):
                if index.states[entry] != State.INTACT:
                    continue
                here = index.numbers[entry], answer_of(self.line(entry))
                number, answer = first.setdefault(index.sample_and_gen(entry), here)
                if answer != here[1]:
                    yield Damage(here[0], f"another answer than line {number} gives to the same call")


def _reason(line: bytes) -> str:
    try:
        parse_line(line)
    except NotJson:
        return "damaged"
    return "edited by hand, or damaged"


def answer_of(line: bytes) -> bytes:
    """Return what two lines are compared by: one that is sealed and yet no JSON is like no other."""
    try:
        members = parse_line(line)
    except NotJson:
        return line
    return canonical_bytes(members.get("response") if isinstance(members, dict) else None)
