"""The store as the trials see it, and beside it a careless one that keeps no promise.

This is the one module that knows the package's insides: how a recording is made, appended and found.
What a recording says is derived from its key, so that whoever has an acknowledged key can tell whether the
answer is the right one, without having seen the writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from pathlib import Path
from typing import Any, Protocol

from httpx_cassette import Cassette, CassetteError
from httpx_cassette._recording import NewRecording
from httpx_cassette._secret_rules import strong_rules
from httpx_cassette._shelf import Shelf

__all__ = [
    "KEY",
    "CarelessStore",
    "CassetteStore",
    "Store",
    "Unreadable",
    "credential_kinds",
    "key_of",
    "sealed",
    "text_of",
]

#: Bytes of a key.
KEY = 32

#: What a store raises where it will not answer from what it found.
Unreadable = CassetteError


class Store(Protocol):
    """Keeps texts by key and sample."""

    def put(self, key: bytes, text: str, sample: int = 0, *, supersede: bool = False) -> bool:
        """Keep a text unless there is one; tell whether it was kept. Acknowledged when this returns."""
        ...

    def get(self, key: bytes, sample: int = 0) -> str | None:
        """Return the text of the highest generation, or ``None`` where there is none."""
        ...

    def refresh(self) -> None:
        """See what others put since."""
        ...

    def problems(self) -> list[str]:
        """Check everything; return what is wrong."""
        ...

    def close(self) -> None: ...


class CassetteStore:
    """The store under test.

    Args:
        path: Its file.
        fsync: Whether an acknowledged text is durable.
    """

    def __init__(self, path: Path, fsync: bool = False) -> None:
        self.cassette = Cassette(path, fsync=fsync)
        self._shelf = Shelf([self.cassette])

    def put(self, key: bytes, text: str, sample: int = 0, *, supersede: bool = False) -> bool:
        gen = None if supersede else self._shelf.newest_gen(key)
        return self._shelf.append(new_recording(key, text, sample), gen=gen).is_new

    def get(self, key: bytes, sample: int = 0) -> str | None:
        recording = self._shelf.find(key, sample, exact=True)
        return None if recording is None else recording.response().content.decode("utf-8")

    def refresh(self) -> None:
        self._shelf.refresh()

    def problems(self) -> list[str]:
        return [f"line {number}: {reason}" for number, reason in self.cassette.check()]

    def close(self) -> None:
        self.cassette.close()

    @property
    def torn(self) -> int:
        """How many lines a crash tore off."""
        return self.cassette.torn

    def __len__(self) -> int:
        return len(self.cassette)


def new_recording(key: bytes, text: str, sample: int = 0) -> NewRecording:
    """Return an exchange whose answer is a text."""
    return NewRecording(
        key=key,
        sample=sample,
        at="2026-01-02T03:04:05Z",
        dialect="generic",
        finish=None,
        milliseconds=1,
        response={"status": 200, "headers": {"content-type": "text/plain"}, "text": text},
        request={"method": "POST", "url": "https://api.example.com/v1/ask"},
    )


def sealed(members: bytes) -> bytes:
    """Return the line of members that were written by hand, which are all of it but the closing brace."""
    return b'%b,"sum":"%b"}' % (members, hashlib.sha256(members).hexdigest()[:16].encode())


def credential_kinds() -> set[str]:
    """Return the kinds of credentials that the package knows by their shape."""
    return {rule.kind for rule in strong_rules()}


class CarelessStore:
    """What a recorder is that was written without a thought of crashes: the control of every trial.

    One JSON object a line, an index in memory, no lock, no seal, no look at the end of the file.

    Args:
        path: Its file.
        is_buffered: Whether what is put may stay in a buffer for a while.
    """

    def __init__(self, path: Path, *, is_buffered: bool = False) -> None:
        self._path = path
        self._is_buffered = is_buffered
        self._buffer = b""
        self._number = -1
        self._gens: dict[bytes, int] = {}
        self._texts: dict[bytes, dict[int, str]] = {}
        self._bad: list[str] = []
        self.refresh()

    def put(self, key: bytes, text: str, sample: int = 0, *, supersede: bool = False) -> bool:
        if sample in self._texts.get(key, {}) and not supersede:
            return False
        members = {
            "key": key.hex(),
            "sample": sample,
            "gen": self._gens.get(key, 0) + supersede,
            "text": text,
        }
        self._buffer += json.dumps(members, ensure_ascii=False).encode() + b"\n"
        whole = len(self._buffer)
        self._write(whole - whole % 8192 if self._is_buffered else whole)
        self._enter(members)
        return True

    def _enter(self, members: dict[str, Any]) -> None:
        """Let a line replace all of its key that is of another generation: the last line wins."""
        key, gen = bytes.fromhex(members["key"]), members["gen"]
        sample, text = members["sample"], members["text"]
        if self._gens.setdefault(key, gen) != gen:
            self._gens[key] = gen
            del self._texts[key]
        self._texts.setdefault(key, {})[sample] = text

    def _write(self, length: int) -> None:
        if self._number == -1:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._number = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        if length:
            os.write(self._number, self._buffer[:length])
            self._buffer = self._buffer[length:]

    def get(self, key: bytes, sample: int = 0) -> str | None:
        return self._texts.get(key, {}).get(sample)

    def refresh(self) -> None:
        self._bad.clear()
        data = self._path.read_bytes() if self._path.exists() else b""
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                members = json.loads(line) if line else None
                if members:
                    self._enter(members)
            except (ValueError, KeyError, TypeError):
                self._bad.append(f"line {number}: not JSON")

    def problems(self) -> list[str]:
        self.refresh()
        return self._bad

    def close(self) -> None:
        if self._number != -1:
            self._write(len(self._buffer))
            os.close(self._number)
            self._number = -1


# -- what is put ---------------------------------------------------------------------------------------

_WORDS = "the model answers a question about trains, parsers and rivers in many words\n".split(" ")
_ASCII = " ".join(random.Random(3).choices(_WORDS, k=20_000)) * 20
_POOL = _ASCII + " ".join(random.Random(4).choices([*_WORDS, "für", "雨"], k=20_000)) * 4


def key_of(chance: random.Random) -> bytes:
    """Return a key that nobody else has."""
    return chance.randbytes(KEY)


def text_of(key: bytes, least: int, most: int) -> str:
    """Return the text of a key, of a random length in characters."""
    chance = random.Random(key)
    length = chance.randint(least, most)
    start = chance.randrange(len(_POOL) - length)
    return _POOL[start : start + length]
