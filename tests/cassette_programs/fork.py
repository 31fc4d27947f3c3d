"""Fork while threads hold the locks of a cassette, and kill the parent: ``fork.py CASSETTE``.

The child must neither wait for locks that no thread of it will release, nor keep the file locked when its
parent is dead. Prints what the child finds after an append of its own.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import warnings

from httpx_cassette import _open_file
from httpx_cassette._cassette import Cassette
from tests._recordings import ask, exchange


def parent(path: str, pipe: int) -> None:  # pragma: no cover - killed
    """Fork while one thread is within an append and another reads, and die."""
    cassette = Cassette(path)
    cassette.append(exchange("a"))
    is_writing, is_reading, never = threading.Event(), threading.Event(), threading.Event()

    def sync(number: int) -> None:
        is_writing.set()
        never.wait()

    def read() -> None:
        with cassette._scanning:
            is_reading.set()
            never.wait()

    _open_file._sync, real_sync = sync, _open_file._sync
    threading.Thread(target=cassette.append, args=[exchange("b")], daemon=True).start()
    assert is_writing.wait(10)
    threading.Thread(target=read, daemon=True).start()
    assert is_reading.wait(10)
    warnings.simplefilter("ignore", DeprecationWarning)  # Forking with threads is what this is about.
    if os.fork() == 0:
        _open_file._sync = real_sync
        appended = cassette.append(exchange("c"))  # Waits for the file's lock until the parent is dead.
        os.write(pipe, f"{[ask(cassette, name) for name in 'abc']} {appended.is_new}".encode())
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def main(path: str) -> None:
    """Start the parent, and print what its child says."""
    reading, writing = os.pipe()
    if os.fork() == 0:  # pragma: no cover - killed
        parent(path, writing)
    os.wait()
    is_said, _, _ = select.select([reading], [], [], 10)
    print(os.read(reading, 1000).decode() if is_said else "nothing within ten seconds")


if __name__ == "__main__":  # pragma: no branch
    main(sys.argv[1])
