"""Where the recordings of a cassette are: key to lines, built by scanning the heads of lines.

A head says what a line claims to be. It counts only once its line has been checked, which the cassette does
when it first reads the line; the index keeps what came of it.
Nothing here opens a file: bytes are fed, in order, in whole lines.
"""

from __future__ import annotations

import re
from array import array
from binascii import unhexlify
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from ._errors import CassetteDamaged, CassetteVersionError
from ._fingerprint import KEY_VERSION
from ._recording import HEAD, MAX_LINE, Head, read_head

__all__ = ["Damage", "Index", "State"]


class State(IntEnum):
    """What is known of a line."""

    UNCHECKED = 0
    INTACT = 1
    DAMAGED = 2
    #: Torn off by a crash, as a note behind it says: as good as not there.
    TORN = 3


class Damage(NamedTuple):
    """A line that cannot be answered from.

    Args:
        number: The line's number, from 1.
        reason: What is wrong with it.
    """

    number: int
    reason: str


_TEAR = re.compile(rb'\{"v":1,"tear":\[(\d{1,18}),(\d{1,18})\]\}')
_MERGE_MARKS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")


class Index:
    """Key to lines. Lines of one key are chained, the latest first.

    Arrays rather than objects: 100,000 recordings must cost kilobytes each thousand, not megabytes.

    Args:
        path: The cassette file, for errors.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.offsets = array("Q")
        self.lengths = array("Q")
        self.numbers = array("I")
        self.samples = array("I")
        self.gens = array("I")
        self.states = bytearray()
        self.damage: list[Damage] = []
        self.torn = 0
        self.other_versions: dict[int, int] = {}
        self.end = 0
        self.lines = 0
        self._earlier = array("q")
        self._latest: dict[bytes, int] = {}
        self._last_length = -1
        self._last_entry = -1

    def __len__(self) -> int:
        return len(self.offsets) - self.torn_entries

    @property
    def torn_entries(self) -> int:
        """How many entries turned out to be torn."""
        return self.states.count(State.TORN)

    @property
    def keys(self) -> int:
        """How many different keys there are."""
        return len(self._latest)

    def entries(self, key: bytes) -> Iterator[int]:
        """Yield the entries of a key, the last line first."""
        entry = self._latest.get(key, -1)
        while entry != -1:
            yield entry
            entry = self._earlier[entry]

    def feed(self, data: bytes) -> None:
        """Add whole lines that stand at :attr:`end`.

        Args:
            data: Bytes that end with a newline.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted: an unresolved merge, or not UTF-8.
            CassetteVersionError: A line was written in a newer format.
        """
        position, base, match = 0, self.end, HEAD.match
        while position < len(data):
            stop = data.find(b"\n", position)
            self.lines += 1
            found = match(data, position)
            if found is not None and found.end() < stop:
                version, key, sample, gen = found.groups()
                head = Head(unhexlify(key), int(sample), int(gen), int(version))
                # Git or an editor may have turned the end of the line into CRLF: the CR is not the line's.
                self._add(head, base + position, stop - position - (data[stop - 1] == 13))
                self._last_length = stop - position
            else:
                self._add_odd(data[position:stop], base + position)
            position = stop + 1
        self.end = base + len(data)

    def skip(self, length: int, reason: str) -> None:
        """Step over one line that cannot even be looked at."""
        self.lines += 1
        self.damage.append(Damage(self.lines, reason))
        self.end += length
        self._last_length, self._last_entry = length - 1, -1

    def _add(self, head: Head, offset: int, length: int) -> None:
        if head.key_version != KEY_VERSION:
            self.other_versions[head.key_version] = self.other_versions.get(head.key_version, 0) + 1
            self._last_entry = -1
            return
        entry = self._last_entry = len(self.offsets)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.numbers.append(self.lines)
        self.samples.append(head.sample)
        self.gens.append(head.gen)
        self.states.append(State.UNCHECKED)
        self._earlier.append(self._latest.get(head.key, -1))
        # Last, so that a thread that reads without a lock never finds an entry half made.
        self._latest[head.key] = entry

    def _add_odd(self, line: bytes, offset: int) -> None:
        whole = len(line)
        if self.lines == 1:
            line, offset = self._without_mark(line, offset)
        line = line[:-1] if line.endswith(b"\r") else line
        if line.startswith(_MERGE_MARKS):
            raise CassetteDamaged(
                "an unresolved merge; keep the lines of both sides and delete the marker lines "
                "(a .gitattributes line with merge=union does that by itself)",
                self.path,
                self.lines,
            )
        tear = _TEAR.fullmatch(line)
        if tear is not None:
            self._explain(int(tear[2]))
            return
        head = self._odd_head(line)
        if head is not None:
            self._add(head, offset, len(line))
            self._last_length = whole
            return
        self._last_length, self._last_entry = whole, -1
        if line.strip() and not _is_foreign(line):
            self.damage.append(Damage(self.lines, _reason(line)))

    def _odd_head(self, line: bytes) -> Head | None:
        if len(line) > MAX_LINE:
            return None
        try:
            return read_head(line)
        except CassetteVersionError as error:
            raise CassetteVersionError(error.message, self.path, self.lines) from None

    def _without_mark(self, line: bytes, offset: int) -> tuple[bytes, int]:
        """Strip a UTF-8 mark at the start of the file; refuse other encodings."""
        if line.startswith(b"\xef\xbb\xbf"):
            return line[3:], offset + 3
        if line.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in line[:4]:
            raise CassetteDamaged("the file is not UTF-8; save it as UTF-8 without a mark", self.path, 1)
        return line, offset

    def _explain(self, length: int) -> None:
        """Take a tear note: the line before it was torn, and is as good as not there."""
        if length != self._last_length:
            return  # A merge moved the note away from its line: the line stays listed as damaged.
        self.torn += 1
        if self._last_entry != -1:
            self.states[self._last_entry] = State.TORN
        elif self.damage and self.damage[-1].number == self.lines - 1:
            self.damage.pop()


def _is_foreign(line: bytes) -> bool:
    """Tell whether a line is JSON of a kind that this release does not know."""
    return line.startswith(b"{") and line.endswith(b"}") and b'"v":' in line[:64] and b'"key":' not in line


def _reason(line: bytes) -> str:
    return "zero bytes" if not line.strip(b"\0") else "not a recording"
