"""Programs that miss in a child process: the parent builds no client, it only imports the package.

``quietly`` loses the error in the child; ``ask`` lets it out of there.
"""

from __future__ import annotations

import os

import pytest

from tests.exits._programs import Row

__all__ = ["CHILDREN", "HANGING", "POOLS", "PROCESSES", "QUIET_PROCESSES"]

METHODS = ("fork", "spawn", "forkserver")

NEEDS_FORK = (pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork"),)

#: A call whose error nobody sees.
_SWALLOW = """
def quietly(prompt="a"):
    try:
        ask(prompt)
    except BaseException:
        return "swallowed"
"""

_PROCESS = """
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context("{method}").Process(target={target})
    process.start()
    process.join()
    print("the child ended with", process.exitcode)
"""

_READ_POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("{method}")) as pool:
        print("kept")
        pool.submit(ask).result()
"""

_UNREAD_POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("{method}")) as pool:
        pool.submit(ask)
    print("kept")
"""

_QUIET_POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("{method}")) as pool:
        print(*pool.map(quietly, "aaa"))
"""


def _rows(kind: str, program: str, **target: str) -> dict[str, Row]:
    return {
        f"{kind}-{method}": Row(_SWALLOW + program.format(method=method, **target), marks=NEEDS_FORK)
        for method in METHODS
    }


PROCESSES = _rows("process", _PROCESS, target="ask")

QUIET_PROCESSES = _rows("process-quiet", _PROCESS, target="quietly")

POOLS = {
    **_rows("process-pool-read", _READ_POOL),
    **_rows("process-pool-unread", _UNREAD_POOL),
    **_rows("process-pool-quiet", _QUIET_POOL),
}

_CHILDREN = {
    "os-fork": """
        import os
        if os.fork() == 0:
            try:
                ask()
            except BaseException:
                os._exit(0)
        os.wait()
        print("kept")
    """,
    # What several processes miss is added up, each key once.
    "several-forks": """
        import os
        for prompt in "abc":
            if os.fork() == 0:
                for attempt in range(2):
                    try:
                        ask(prompt)
                    except BaseException:
                        pass
                os._exit(0)
            os.wait()
        print("kept")
    """,
    "subprocess": """
        import subprocess, sys
        child = subprocess.run([sys.executable, "-c", "from _ask import ask; ask()"])
        print("the child ended with", child.returncode)
    """,
    "grandchild": """
        import subprocess, sys
        again = "import subprocess as s, sys; s.run([sys.executable, '-c', 'from _ask import ask; ask()'])"
        subprocess.run([sys.executable, "-c", f"import _ask; {again}"])
        print("kept")
    """,
    "killed-child": """
        import os, signal
        if os.fork() == 0:
            try:
                ask()
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        print("the child ended with", os.waitstatus_to_exitcode(os.wait()[1]))
    """,
    "exec": """
        import os, sys
        if "again" not in sys.argv:
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        if os.fork() == 0:
            try:
                ask()
            except BaseException:
                os._exit(0)
        os.wait()
        print("kept")
    """,
}

CHILDREN = {name: Row(program, marks=NEEDS_FORK) for name, program in _CHILDREN.items()}

#: Both kinds of pool wait for ever for a task that is stopped.
HANGING = {
    "pools-that-hang": Row(
        """
        import multiprocessing, multiprocessing.pool
        pools = {"a": multiprocessing.get_context("fork").Pool, "b": multiprocessing.pool.ThreadPool}
        for prompt, pool in pools.items():
            with pool(1) as workers:
                try:
                    workers.apply_async(ask, [prompt]).get(timeout=1)
                except multiprocessing.TimeoutError:
                    print("it hangs")
        """,
        marks=NEEDS_FORK,
    )
}
