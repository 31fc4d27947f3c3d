"""Append until the disk is full, again and again: ``full_disk.py FOLDER RUNS``; the folder is a small disk.

Prints how many appends were acknowledged, how many of these are lost, how many runs ended with an error, how
many files did not end at a recording, and the error.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteError
from tests._recordings import ask, exchange


def fill(path: Path) -> tuple[list[str], str]:
    """Append recordings of random sizes until that fails; return what was acknowledged, and the error."""
    cassette = Cassette(path)
    names: list[str] = []
    while True:
        name = f"{len(names)}"
        try:
            cassette.append(exchange(name, size=random.randrange(1_000, 60_000)))
        except CassetteError as error:
            return names, error.message
        names.append(name)


def main(folder: Path, runs: int) -> None:
    """Fill the disk so many times."""
    appended = lost = unfinished = 0
    errors: list[str] = []
    for run in range(runs):
        path = folder / "c.jsonl"
        names, error = fill(path)
        errors.append(error)
        appended += len(names)
        unfinished += not path.read_bytes().endswith(b'"}\n')
        reader = Cassette(path)
        lost += sum(ask(reader, name) != name for name in names)
        assert ([], 0) == (reader.check(), reader.torn)
        reader.close()  # An open file keeps its room.
        if run % 2:
            # Room is made: the same cassette goes on.
            os.truncate(path, 0)
            Cassette(path).append(exchange("after"))
        path.unlink()
    assert 1 == len({*errors}), errors
    print(f"appended {appended} lost {lost} errors {len(errors)} unfinished {unfinished}: {errors[0]}")


if __name__ == "__main__":  # pragma: no branch
    main(Path(sys.argv[1]), int(sys.argv[2]))
