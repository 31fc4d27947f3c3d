"""All programs, in the order of the table."""

from __future__ import annotations

from tests.exits import (
    in_children,
    in_one_process,
    in_other_ways,
    in_pytest,
    in_retries,
    in_servers,
    in_threads_and_tasks,
)
from tests.exits._programs import Row

__all__ = ["ALL", "GROUPS"]

GROUPS: dict[str, dict[str, Row]] = {
    "caught, wrapped, or followed by something else": in_one_process.CAUGHT,
    "what else stops a call, and the other library": in_other_ways.STOPS,
    "how the program ends": in_one_process.ENDINGS,
    "a program that replaces itself": in_one_process.REPLACED,
    "where Python itself swallows what is raised": in_one_process.PLACES,
    "what there is to write the report to": in_one_process.STDERR,
    "before an expected_miss(), and beside it": in_other_ways.BESIDE,
    "threads": in_threads_and_tasks.THREADS,
    "event loops": in_threads_and_tasks.TASKS,
    "child processes": {**in_children.CHILDREN, **in_children.HANGING},
    "multiprocessing.Process": {**in_children.PROCESSES, **in_children.QUIET_PROCESSES},
    "ProcessPoolExecutor": in_children.POOLS,
    "applications without a server": in_servers.APPS,
    "a server on loopback": in_servers.SERVERS,
    "a server that dies of a signal": in_servers.KILLED,
    "retrying libraries": in_retries.RETRIES,
    "pytest without a plugin of ours": in_pytest.TESTS,
    "workers of pytest-xdist": in_pytest.WORKERS,
    "what does not count": {**in_other_ways.UNTOUCHED, **in_pytest.UNTOUCHED},
}

ALL = {name: row for rows in GROUPS.values() for name, row in rows.items()}
