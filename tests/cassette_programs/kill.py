"""Kill a process while it appends, again and again: ``kill.py CASSETTE TRIALS SIZE``.

Each trial forks a writer, which acknowledges every append by a byte in a pipe. When a write begins, an alarm
is set that kills the writer a moment later, at any point of the write: an alarm that nobody handles kills as
SIGKILL does. Prints how many appends were acknowledged, how many of these are not in the file at the end, and
how many lines were torn.
"""

from __future__ import annotations

import os
import random
import signal
import sys

from httpx_cassette._cassette import Cassette
from httpx_cassette._recording import NewRecording
from tests._recordings import exchange

#: Appends that a writer would make; it is killed at one of them, or a little later.
APPENDS = 3

#: Seconds that the kernel takes for 1 MB, and a little more.
WRITE_SECONDS = 0.0005


def write(path: str, news: list[NewRecording], pipe: int) -> None:  # pragma: no cover - killed
    """Append until killed; never returns."""
    fatal, writes, real_write = random.randrange(APPENDS), 0, os.write

    def write_and_be_killed(number: int, data: bytes) -> int:
        nonlocal writes
        if writes == fatal:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, WRITE_SECONDS))
        writes += 1
        return real_write(number, data)

    cassette = Cassette(path, fsync=False)
    os.write = write_and_be_killed  # type: ignore[assignment]  # given bytes and nothing else
    for new in news:
        cassette.append(new)
        real_write(pipe, b"!")
    os._exit(0)


def run(path: str, news: list[NewRecording]) -> int:
    """Let a writer run until it is killed; return how many appends it has acknowledged."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - killed
        write(path, news, writing)
    os.close(writing)
    os.waitpid(child, 0)
    acknowledged = len(os.read(reading, 100))
    os.close(reading)
    return acknowledged


def main(path: str, trials: int, size: int) -> None:
    """Run the trials on one file, and print what was lost."""
    # Of random lengths: lines that fill whole pages never tear. Rendered once: writers do nothing but write.
    bodies = [exchange(turn, size=size + random.randrange(size // 4)).body for turn in range(APPENDS)]
    names: list[object] = []
    for trial in range(trials):
        news = []
        for turn, body in enumerate(bodies):
            news.append(exchange((trial, turn)))
            news[-1].__dict__["body"] = body
        names += [(trial, turn) for turn in range(run(path, news))]
    cassette = Cassette(path, fsync=False)
    cassette.append(exchange("the last one heals"))
    assert [] == cassette.check()
    lost = sum(not is_there(cassette, name) for name in names)
    print(f"appended {len(names)} lost {lost} torn {cassette.torn}")


def is_there(cassette: Cassette, name: object) -> bool:
    """Tell whether an intact line of a key is in the file."""
    key = exchange(name).key
    return any(cassette.load(spot, key) is not None for spot in cassette.spots(key))


if __name__ == "__main__":  # pragma: no branch
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
