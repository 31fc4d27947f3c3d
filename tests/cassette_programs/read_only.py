"""Open cassettes in a folder that is mounted read-only: ``read_only.py FOLDER``; ``a`` is in ``c.jsonl``.

Prints what looking up says, and what recording says of a file that is there, one that is not, and one in a
folder that is not.
"""

from __future__ import annotations

import os
import sys

from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteReadOnly
from tests._recordings import ask, exchange


def main(folder: str) -> None:
    """Try each of them."""
    os.chdir(folder)
    print(ask(Cassette("c.jsonl"), "a"))
    for path in ("c.jsonl", "new.jsonl", "new/new.jsonl"):
        cassette = Cassette(path)
        for act in (cassette.check_writable, lambda cassette=cassette: cassette.append(exchange("b"))):
            try:
                act()
            except CassetteReadOnly as error:
                print(error)


if __name__ == "__main__":  # pragma: no branch
    main(sys.argv[1])
