"""Where the recordings of a cassette are: key to lines, built by scanning the heads of lines.

A head says what a line claims to be. It counts only once its line has been checked, which the cassette does
when it first reads the line; the index keeps what came of it.
Nothing here opens a file: bytes are fed, in order, in whole lines.
"""

from __future__ import annotations

from array import array
from binascii import unhexlify
from enum import IntEnum
from typing import NamedTuple

from ._call import Json
from ._errors import CassetteDamaged, CassetteVersionError
from ._fingerprint import KEY_VERSION
from ._line import (
    HEAD,
    MAX_LINE,
    Head,
    bare,
    has_seal,
    head_of,
    is_intact,
    parse_line,
    tear_note,
    torn_length,
)
from ._parsing import NotJson

__all__ = ["Damage", "Index", "State"]


class State(IntEnum):
    """What is known of a line."""

    UNCHECKED = 0
    INTACT = 1
    DAMAGED = 2
    #: A note behind it says that it was torn off by a crash, which is so where its seal is wrong indeed.
    NOTED = 3
    #: Torn off by a crash: as good as not there.
    TORN = 4


class Damage(NamedTuple):
    """A line that cannot be answered from.

    Args:
        number: The line's number, from 1.
        reason: What is wrong with it.
    """

    number: int
    reason: str


# How a file begins in UTF-16 and UTF-32: with a mark, or with ``{"`` and zeros between.
_OTHER_ENCODINGS = (b"\xff\xfe", b"\xfe\xff", b'{\0"\0', b'\0{\0"', b"{\0\0\0", b"\0\0\0{")
_MERGE_MARKS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
_KEY_VERSION = str(KEY_VERSION).encode()
_CR = ord("\r")


class Index:
    """Key to lines. Lines of one key are chained, the latest first.

    Arrays rather than objects, and dictionaries for what few lines have: 100,000 recordings must cost
    kilobytes each thousand, not megabytes.
    One thread feeds; any may look up meanwhile, without a lock: a line enters the chain of its key last.

    Args:
        path: The cassette file, for errors.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.offsets = array("Q")
        self.lengths = array("Q")
        self.numbers = array("I")
        self.states = bytearray()
        self.other_versions: dict[int, int] = {}
        #: Where lines of other key versions stand, their lengths and numbers.
        self.others: list[tuple[int, int, int]] = []
        #: Where the first byte stands that was not fed yet.
        self.end = 0
        #: Whether feeding was broken off, by an error or a fork: nothing more can be fed.
        self.is_broken = False
        #: Whether what stands behind the last newline is a whole line that only lacks its own.
        self.has_whole_tail = False
        #: Whether it is anything else.
        self.has_torn_tail = False
        self._lines = 0
        self._previous = 0
        self._damage: dict[int, str] = {}
        self._torn = 0
        self._latest: dict[bytes, int] = {}
        self._earlier: dict[int, int] = {}
        self._marks: dict[int, tuple[int, int]] = {}
        self._tail_entry = -1

    def __len__(self) -> int:
        return len(self.states) - self._torn_entries

    @property
    def _torn_entries(self) -> int:
        return self.states.count(State.NOTED) + self.states.count(State.TORN)

    @property
    def has_tail(self) -> bool:
        """Whether anything stands behind the last newline."""
        return self.has_whole_tail or self.has_torn_tail

    @property
    def last_line(self) -> tuple[int, int]:
        """Where the last line that was fed begins, and its length without its newline."""
        return self._previous, max(0, self.end - self._previous - len("\n"))

    @property
    def torn(self) -> int:
        """How many lines were torn off by a crash, that at the end of the file included."""
        return self._torn + self._torn_entries + self.has_torn_tail

    @property
    def damage(self) -> list[Damage]:
        """The lines that were found damaged, by their numbers."""
        return sorted(Damage(number, reason) for number, reason in list(self._damage.items()))

    def keys(self) -> list[bytes]:
        """Return every key, in the order of their first lines."""
        return list(self._latest)

    def entries(self, key: bytes) -> list[int]:
        """Return the entries of a key, the last line first."""
        entry = self._latest.get(key)
        found = []
        while entry is not None:
            found.append(entry)
            entry = self._earlier.get(entry)
        return found

    def repeated(self) -> list[list[int]]:
        """Return the entries of each key that has more than one, the last line first."""
        return [self.entries(key) for key, entry in self._latest.items() if entry in self._earlier]

    def sample_and_gen(self, entry: int) -> tuple[int, int]:
        """Return which of several answers an entry is, and its generation."""
        return self._marks.get(entry, _FIRST)

    def confirm(self, entry: int) -> None:
        """Keep that the seal of a line is right; a note that calls it torn belongs to another line then."""
        self.states[entry] = State.INTACT

    def refuse(self, entry: int, reason: str) -> None:
        """Keep that the seal of a line is wrong.

        Args:
            entry: The entry of the line.
            reason: What is wrong with it; a line that was torn off by a crash needs none.
        """
        if self.states[entry] == State.NOTED:
            self.states[entry] = State.TORN
        else:
            self.states[entry] = State.DAMAGED
            self._damage[self.numbers[entry]] = reason

    # -- feeding -----------------------------------------------------------------------------------

    def feed(self, data: bytes, stop: int) -> None:
        """Add the lines that stand at :attr:`end`.

        Args:
            data: The bytes of the file from there on.
            stop: How many of them to take; the last of these is a newline.

        Raises:
            CassetteDamaged: The file as a whole cannot be trusted: an unresolved merge, or not UTF-8.
            CassetteVersionError: A line was written in a newer format.
        """
        self.is_broken = True
        base = self.end
        if base == 0:
            self._refuse_other_encodings(data)
        position = self._pass_whole_tail(data)
        # Opening a large cassette is this loop: about 1.2 us a line, and reading the file another 0.4.
        find, match, add_state = data.find, HEAD.match, self.states.append
        add_offset, add_length, add_number = self.offsets.append, self.lengths.append, self.numbers.append
        latest, earlier, marks = self._latest, self._earlier, self._marks
        while position < stop:
            end = find(b"\n", position)
            self._lines += 1
            found = match(data, position)
            if found is None:
                self._add_odd(data[position:end], base + position)
            else:
                version, digits, sample, gen = found.groups()
                if version == _KEY_VERSION:
                    entry = len(self.states)
                    add_offset(base + position)
                    # Git or an editor may have made CRLF of the end of the line: the CR is not the line's.
                    add_length(end - position - (data[end - 1] == _CR))
                    add_number(self._lines)
                    add_state(0)
                    if sample != b"0" or gen != b"0":
                        marks[entry] = (int(sample), int(gen))
                    key = unhexlify(digits)
                    if key in latest:
                        earlier[entry] = latest[key]
                    latest[key] = entry
                else:
                    self._count_other(int(version), base + position, end - position)
            self._previous = base + position
            position = end + 1
        self.end = base + stop
        self.is_broken = False

    def skip(self, length: int, reason: str) -> None:
        """Step over one line that cannot even be looked at, its newline included."""
        self._lines += 1
        self._damage[self._lines] = reason
        self._previous = self.end
        self.end += length

    def feed_tail(self, tail: bytes) -> None:
        """Look at what stands behind the last newline: a line counts if nothing but its newline is missing.

        Args:
            tail: The bytes of the file from :attr:`end` on; empty where there are none.

        Raises:
            CassetteDamaged: As for :meth:`feed`.
            CassetteVersionError: As for :meth:`feed`.
        """
        if self.end == 0:
            self._refuse_other_encodings(tail)
        text = bare(tail)
        members, head = self._read_odd(text, self._lines + 1)
        self.has_whole_tail = isinstance(members, dict)
        self.has_torn_tail = bool(tail) and not self.has_whole_tail
        # A crash may tear the note of the line before, too; what is shorter may be the next recording.
        if len(text) >= len(_NOTE) and tear_note(*self.last_line).startswith(text):
            self._note_last(self._lines)
        if head is not None and head.key_version == KEY_VERSION and self._tail_entry == -1:
            self._tail_entry = len(self.offsets)
            self._add(head, self.end + tail.find(text), len(text), self._lines + 1)

    def _pass_whole_tail(self, data: bytes) -> int:
        """Return where the first line begins that was not taken from the tail before."""
        entry, self._tail_entry = self._tail_entry, -1
        self.has_whole_tail = self.has_torn_tail = False
        if entry == -1:
            return 0
        end = data.find(b"\n")
        if len(bare(data[:end])) == self.lengths[entry]:
            self._lines += 1
            return end + 1
        # It goes on where it seemed to end, and is looked at anew.
        self.states[entry] = State.TORN
        return 0

    def _refuse_other_encodings(self, data: bytes) -> None:
        if data.startswith(_OTHER_ENCODINGS):
            raise CassetteDamaged("the file is not UTF-8; save it as UTF-8 without a mark", self.path, 1)

    def _count_other(self, key_version: int, offset: int, length: int) -> None:
        self.others.append((offset, length, self._lines))
        self.other_versions[key_version] = self.other_versions.get(key_version, 0) + 1

    def _add(self, head: Head, offset: int, length: int, number: int) -> None:
        entry = len(self.states)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.numbers.append(number)
        self.states.append(State.UNCHECKED)
        self._marks[entry] = (head.sample, head.gen)
        if head.key in self._latest:
            self._earlier[entry] = self._latest[head.key]
        self._latest[head.key] = entry

    # -- lines that do not begin as recordings do --------------------------------------------------

    def _add_odd(self, line: bytes, offset: int) -> None:
        text = bare(line)
        torn = torn_length(text)
        if torn is not None:
            self._explain(torn, offset)
            return
        members, head = self._read_odd(text, self._lines)
        if head is None:
            if text.strip() and not _is_foreign(members, text):
                self._damage[self._lines] = "not a recording" if text.strip(b"\0") else "zero bytes"
        elif head.key_version == KEY_VERSION:
            self._add(head, offset + line.find(text), len(text), self._lines)
        else:
            self._count_other(head.key_version, offset, len(line))

    def _read_odd(self, text: bytes, number: int) -> tuple[Json, Head | None]:
        """Return the members of a line and its head, ``None`` where it has none."""
        if text.startswith(_MERGE_MARKS):
            raise CassetteDamaged(
                "an unresolved merge; keep the lines of both sides and delete the marker lines "
                "(a .gitattributes line with merge=union does that by itself)",
                self.path,
                number,
            )
        try:
            members = parse_line(text) if len(text) <= MAX_LINE else None
            return members, head_of(members)
        except NotJson:
            return None, None
        except CassetteVersionError as error:
            raise CassetteVersionError(error.message, self.path, number) from None

    def _explain(self, length: int, offset: int) -> None:
        """Take a tear note: the line before it was torn."""
        # A newline stands between the two, or what git made of it.
        if offset - self._previous - length not in (len("\n"), len("\r\n")):
            return  # A merge moved the note away from its line: the line stays listed as damaged.
        if not self._note_last(self._lines - 1):
            self._torn += 1

    def _note_last(self, number: int) -> bool:
        """Take the last line for torn, as its note says; tell whether it is an entry."""
        self._damage.pop(number, None)
        entry = len(self.states) - 1
        if entry == -1 or self.offsets[entry] < self._previous:
            return False
        if self.states[entry] == State.UNCHECKED:
            self.states[entry] = State.NOTED
        elif self.states[entry] == State.DAMAGED:
            self.states[entry] = State.TORN
        return True


_FIRST = (0, 0)

#: No recording begins so.
_NOTE = b'{"v":1,"t'


def _is_foreign(members: Json, text: bytes) -> bool:
    """Tell whether a line is of a kind that this release does not know, and no recording that was damaged."""
    if not isinstance(members, dict) or type(members.get("v")) is not int or "response" in members:
        return False
    return is_intact(text) or not has_seal(text)
