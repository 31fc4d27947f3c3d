"""Let processes append to one cassette at the same time: ``race.py CASSETTE PROCESSES DISTINCT SHARED``.

Each process appends so many recordings of its own and so many that all of them want to append. Half of the
processes share the cassette that was open before the fork, the others open their own.
Prints how many appends said that they were the first.
"""

from __future__ import annotations

import multiprocessing
import sys
from multiprocessing.queues import SimpleQueue

from httpx_cassette._cassette import Cassette
from tests._recordings import exchange


def work(
    cassette: Cassette | None, path: str, number: int, distinct: int, shared: int, first: SimpleQueue[int]
) -> None:
    """Append, and tell how often this process was the first."""
    mine = Cassette(path, fsync=False) if cassette is None else cassette
    names: list[object] = [*((number, turn) for turn in range(distinct)), *range(shared)]
    first.put(sum(mine.append(exchange(name, number)).is_new for name in names))


def main(path: str, processes: int, distinct: int, shared: int) -> None:
    """Start the processes, and print how often one of them was the first."""
    fork = multiprocessing.get_context("fork")
    first: SimpleQueue[int] = fork.SimpleQueue()
    inherited = Cassette(path, fsync=False)
    inherited.append(exchange("before the fork"))
    workers = [
        fork.Process(
            target=work, args=(inherited if number % 2 else None, path, number, distinct, shared, first)
        )
        for number in range(1, processes)
    ]
    for worker in workers:
        worker.start()
    work(None, path, processes, distinct, shared, first)
    for worker in workers:
        worker.join()
    assert {0} == {worker.exitcode for worker in workers}
    print(sum(first.get() for _ in range(processes)))


if __name__ == "__main__":  # pragma: no branch
    main(sys.argv[1], *map(int, sys.argv[2:]))
