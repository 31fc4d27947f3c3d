"""One stopped call as plain data, and the file of them that processes share.

The file holds one JSON object per line, each appended with one write, so that any number of processes can
leave their entries in it without a lock.
A line begins with what tells it from others, the process, the key, the kind and the test, so that they can be
found without a parser: the exit guard has none left.
The same after a ``-`` takes that entry back.
Nothing here knows who reads the file, or when.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass

from ._call import Json
from ._errors import CassetteStop

__all__ = ["Entry", "Reader", "append", "plain_facts", "read_entries", "size", "take_back"]

#: Characters of a text and elements of a list that are kept of a fact: enough for any URL or list of
#: changed paths, and a bound on what a runaway process can write.
FACT_LIMIT = 4_096

#: The answer that was paid for, carried by a ``CassetteWriteError``: it may hold the very secret that kept
#: it from being written, so it never reaches a file.
UNWRITTEN = frozenset({"content", "headers"})

#: What a line begins with, in this order; the exit guard knows it.
_HEAD = ("pid", "key", "kind", "test")

#: The folder is shared with other users, so a link found there is not to be trusted.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One stopped call as the ledger keeps it.

    Attributes:
        key: What makes two stops of one kind the same one: the fingerprint of the call, where there is one.
        kind: The name of the error class.
        report: The text of the error, cut at a limit.
        facts: The attributes of the error that JSON can hold.
        pid: The process that made the call.
        started_in: The ``expected_miss`` blocks that were open when that process was started, by name.
        thread: The name of the thread that made it.
        count: How many times it was made.
        test: The test of pytest in whose time it was made, by its id; empty outside of tests. A process that
            a test starts inherits it.
    """

    key: str
    kind: str
    report: str
    facts: dict[str, Json]
    pid: int
    started_in: tuple[str, ...]
    thread: str
    count: int = 1
    test: str = ""


def plain_facts(stop: CassetteStop) -> dict[str, Json]:
    """What ``stop`` knows, as far as JSON can hold it and a file may."""
    return {name: _plain(value) for name, value in stop.facts.items() if name not in UNWRITTEN}


def append(path: str, entry: Entry) -> None:
    """Append one entry with one write; the file is created for its owner alone.

    Raises:
        OSError: The file cannot be opened or written.
    """
    facts = {name: value for name, value in asdict(entry).items() if name not in _HEAD}
    _write(path, b"%b, %b\n" % (_head(entry), json.dumps(facts).encode()[1:]))


def take_back(path: str, entries: Iterable[Entry]) -> None:
    """Append a line for each of ``entries`` that takes it back.

    Raises:
        OSError: The file cannot be opened or written.
    """
    _write(path, b"".join(b"-%b}\n" % _head(entry) for entry in entries))


def size(path: str) -> int:
    """The length of the file, 0 where there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def read_entries(path: str, offset: int = 0) -> tuple[Entry, ...]:
    """The entries after ``offset`` that were not taken back; lines that cannot be read are left out.

    A file that does not exist has none: nobody has missed.

    Raises:
        OSError: The file exists and cannot be read.
    """
    if size(path) <= offset:
        return ()
    with open(os.open(path, os.O_RDONLY | _NO_LINK), "rb") as file:
        file.seek(offset)
        return _parse(file)


class Reader:
    """Reads the entries of a file again and again, each line once.

    Args:
        path: The file; it need not exist yet.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._entries: list[Entry] = []
        self._offset = 0

    def read(self) -> tuple[Entry, ...]:
        """The entries that were not taken back so far.

        Raises:
            OSError: The file exists and cannot be read.
        """
        length = size(self.path)
        if length < self._offset:  # Deleted, and begun anew.
            self._entries, self._offset = [], 0
        if length > self._offset:
            with open(os.open(self.path, os.O_RDONLY | _NO_LINK), "rb") as file:
                file.seek(self._offset)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]  # The last line may be on its way.
            _parse_into(self._entries, whole.splitlines(keepends=True))
            self._offset += len(whole)
        return tuple(self._entries)


def _head(entry: Entry) -> bytes:
    """The beginning of the line of an entry, and of the one that takes it back."""
    return json.dumps({name: getattr(entry, name) for name in _HEAD}).encode()[:-1]


def _parse(lines: Iterable[bytes]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    _parse_into(entries, lines)
    return tuple(entries)


def _parse_into(entries: list[Entry], lines: Iterable[bytes]) -> None:
    for line in lines:
        # Torn by a kill, or written by another release.
        with suppress(KeyError, TypeError, ValueError):
            if line.startswith(b"-"):
                _drop_last(entries, json.loads(line[1:]))
            else:
                found = json.loads(line)
                entries.append(Entry(**{**found, "started_in": tuple(found["started_in"])}))


def _drop_last(entries: list[Entry], head: dict[str, Json]) -> None:
    for index in range(len(entries) - 1, -1, -1):
        if all(getattr(entries[index], name) == head[name] for name in _HEAD):
            del entries[index]
            return


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _NO_LINK, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def _plain(value: object) -> Json:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(name)[:FACT_LIMIT]: _plain(member) for name, member in list(value.items())[:FACT_LIMIT]}
    if isinstance(value, (list, tuple)):
        return [_plain(element) for element in value[:FACT_LIMIT]]
    return (value if isinstance(value, str) else repr(value))[:FACT_LIMIT]
