"""The exit status of a program in which a call missed, whatever became of the error.

Each row is a program, run as a process of its own; what it prints and how it ends is what a CI job sees.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

TESTS = Path(__file__).parent
SCRIPTS = TESTS / "exit_scripts"

#: The second line of the report that ``ask`` makes: a traceback repeats only the first.
DETAIL = "\n  fingerprint  aaaaaaaa"

needs_groups = pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup came with Python 3.11")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    status: int
    stdout: str
    stderr: str


def run(folder: Path, body: str, *, arguments: tuple[str, ...] = (), **environment: str) -> Ended:
    """Run ``body`` as a script in ``folder``."""
    script = folder / "script.py"
    script.write_text("from _ask import ask, expected_miss\n" + dedent(body))
    return run_file(script, arguments, environment)


def run_file(script: Path, arguments: tuple[str, ...], environment: dict[str, str]) -> Ended:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HTTPX_CASSETTE", "COV", "PYTHON"))
    }
    path = os.pathsep.join(filter(None, (environment.pop("path", ""), str(SCRIPTS), str(TESTS.parent))))
    ended = subprocess.run(
        [sys.executable, *arguments, str(script)],
        cwd=script.parent,
        env={**inherited, "PYTHONPATH": path, "TMPDIR": str(script.parent), **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


#: Programs that print "kept" and miss once in their own process.
ENDINGS = {
    "plain": """
        print("kept")
        ask()
    """,
    "asyncio-run": """
        import asyncio
        async def main():
            print("kept")
            ask()
        asyncio.run(main())
    """,
    "thread": """
        import threading
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        print("kept")
    """,
    "unread-future": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            pool.submit(ask)
        print("kept")
    """,
    "read-future": """
        from concurrent.futures import ThreadPoolExecutor
        print("kept")
        with ThreadPoolExecutor() as pool:
            pool.submit(ask).result()
    """,
    "wrapped-from": """
        print("kept")
        try:
            ask()
        except BaseException as error:
            raise RuntimeError("the model is unavailable") from error
    """,
    "raised-while-handling": """
        print("kept")
        try:
            ask()
        finally:
            raise RuntimeError("clean-up failed")
    """,
    "retried-except-exception": """
        print("kept")
        for attempt in range(3):
            try:
                ask()
            except Exception:
                pass
    """,
    "retried-bare-except": """
        for attempt in range(3):
            try:
                ask()
            except:
                pass
        print("kept")
    """,
    "gather-return-exceptions": """
        import asyncio
        async def call():
            ask()
        async def main():
            await asyncio.gather(call(), call(), return_exceptions=True)
        asyncio.run(main())
        print("kept")
    """,
    "sys-exit-0": """
        import sys
        try:
            ask()
        except BaseException:
            pass
        print("kept")
        sys.exit(0)
    """,
    "sys-exit-3": """
        import sys
        try:
            ask()
        finally:
            print("kept")
            sys.exit(3)
    """,
    "sys-exit-in-handler": """
        import sys
        try:
            ask()
        except BaseException as error:
            print("kept")
            sys.exit("gave up")
    """,
    "uncaught-afterwards": """
        print("kept")
        try:
            ask()
        except BaseException:
            pass
        raise ValueError("something else")
    """,
    "collected-generator": """
        def generate():
            try:
                yield
            finally:
                try:
                    ask()
                except BaseException:
                    pass
        generator = generate()
        next(generator)
        del generator
        print("kept")
    """,
    "foreign-hook-before": """
        import sys
        from httpx_cassette._errors import CassetteMiss
        sys.excepthook = lambda kind, value, trace: print("kept" if issubclass(kind, CassetteMiss) else kind)
        ask()
    """,
    "foreign-hook-after": """
        import sys
        try:
            ask()
        except BaseException as error:
            sys.excepthook = lambda kind, value, trace: print("kept")
            raise
    """,
    "daemon-thread-at-exit": """
        import threading, time
        def wait():
            try:
                ask()
            except BaseException:
                time.sleep(60)
        threading.Thread(target=wait, daemon=True).start()
        time.sleep(0.1)
        print("kept")
    """,
    "forked-in-between": """
        import os
        try:
            ask()
        except BaseException:
            pass
        if os.fork() == 0:
            raise SystemExit(0)
        status = os.waitstatus_to_exitcode(os.wait()[1])
        print("kept" if status == 0 else f"the child ended with {status}")
    """,
    "two-copies-of-the-package": """
        import sys
        try:
            ask()
        except BaseException:
            pass
        for name in [name for name in sys.modules if name.startswith("httpx_cassette")]:
            del sys.modules[name]
        from httpx_cassette import _ledger
        _ledger.arm()
        _ledger._exit.guard()
        print("kept")
    """,
}

MARKS = {"forked-in-between": needs_fork}

#: Programs whose error reaches a place that prints it whole, report included, without asking anybody.
REPEATED = {
    "never-awaited-task": """
        import asyncio
        async def call():
            ask()
        async def main():
            task = asyncio.ensure_future(call())
            await asyncio.sleep(0.01)
        asyncio.run(main())
        print("kept")
    """,
    "logged": """
        import logging
        try:
            ask()
        except BaseException:
            logging.exception("the call failed")
        print("kept")
    """,
}

GROUPS = {
    "task-group": """
        import asyncio
        async def call():
            ask()
        async def main():
            print("kept")
            async with asyncio.TaskGroup() as group:
                group.create_task(call())
        asyncio.run(main())
    """,
    "anyio-task-group": """
        import anyio
        async def call():
            ask()
        async def main():
            print("kept")
            async with anyio.create_task_group() as group:
                group.start_soon(call)
        anyio.run(main)
    """,
}


def table(programs: dict[str, str], *marks: pytest.MarkDecorator) -> list[object]:
    return [
        pytest.param(body, id=name, marks=[*marks, *([MARKS[name]] if name in MARKS else [])])
        for name, body in programs.items()
    ]


@pytest.mark.parametrize("body", [*table(ENDINGS), *table(GROUPS, needs_groups)])
def test_a_miss_ends_the_program_with_2(tmp_path: Path, body: str) -> None:
    """However the error is lost, the status is 2, the report appears once and the output is kept."""
    ended = run(tmp_path, body)

    assert (ended.status, ended.stdout, ended.stderr.count(DETAIL)) == (2, "kept\n", 1), ended.stderr


@pytest.mark.parametrize("body", table(REPEATED))
def test_a_logger_may_repeat_the_report(tmp_path: Path, body: str) -> None:
    """A logger formats the whole error a second time; the status is 2 all the same."""
    ended = run(tmp_path, body)

    assert (ended.status, ended.stdout, ended.stderr.count(DETAIL)) == (2, "kept\n", 2), ended.stderr


def test_the_traceback_points_to_the_report(tmp_path: Path) -> None:
    """The report is printed first; the traceback shows where the call was made and refers to it."""
    ended = run(tmp_path, "ask()")

    report, _, traceback = ended.stderr.partition("Traceback (most recent call last):\n")
    last = "_errors.CassetteMiss: no recording for POST /v1/chat/completions (the report stands above)"
    assert report == (
        f"no recording for POST /v1/chat/completions\n  fingerprint  {'a' * 64}\n  nearest      none\n"
    )
    assert traceback.splitlines()[-1] == f"httpx_cassette.{last}"


#: Programs that end as they would without the package.
UNTOUCHED = {
    "nothing-missed": ("print('kept')", 0),
    "nothing-missed-exit-3": ("print('kept'); raise SystemExit(3)", 3),
    "nothing-missed-uncaught": ("print('kept'); raise ValueError", 1),
    "expected-miss": (
        """
        with expected_miss() as miss:
            ask()
        print("kept" if miss.fingerprint == "a" * 64 else miss.errors)
        """,
        0,
    ),
    "expected-miss-in-a-thread": (
        """
        import threading
        with expected_miss() as miss:
            thread = threading.Thread(target=lambda: ask())
            threading.excepthook = lambda args: None
            thread.start()
            thread.join()
        print("kept")
        """,
        0,
    ),
    "expected-miss-in-a-pool-process": (
        """
        from concurrent.futures import ProcessPoolExecutor
        import multiprocessing
        if __name__ == "__main__":
            with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
                with expected_miss() as miss:
                    pool.submit(ask).result()
            print("kept")
        """,
        0,
    ),
    "expected-miss-then-another-error": (
        """
        print("kept")
        with expected_miss() as miss:
            try:
                ask()
            except BaseException:
                pass
            raise ValueError
        """,
        1,
    ),
    "interrupted": (
        """
        print("kept", flush=True)
        try:
            ask()
        except BaseException:
            pass
        raise KeyboardInterrupt
        """,
        -2 if os.name == "posix" else 1,
    ),
    "taken-over": (
        """
        from httpx_cassette._ledger import take_over
        take_over()
        try:
            ask()
        except BaseException:
            print("kept")
        """,
        0,
    ),
    "guard-deleted": (
        """
        import sys
        try:
            ask()
        except BaseException:
            print("kept")
        del sys._httpx_cassette_exit_guard
        """,
        0,
    ),
}


@pytest.mark.parametrize(
    ("body", "status"), [pytest.param(body, status, id=name) for name, (body, status) in UNTOUCHED.items()]
)
def test_the_status_is_left_alone(tmp_path: Path, body: str, status: int) -> None:
    """A program in which nothing missed, or only what was expected to, ends as it would have."""
    ended = run(tmp_path, body)

    assert (ended.status, ended.stdout) == (status, "kept\n"), ended.stderr


def test_every_exit_handler_runs_once(tmp_path: Path) -> None:
    """Handlers registered before and after the import run exactly once, last registered first."""
    ended = run(
        tmp_path,
        """
        import sys
        for name in [name for name in sys.modules if name.startswith(("httpx_cassette", "_ask"))]:
            del sys.modules[name]
        import atexit
        atexit.register(print, "before the import")
        from _ask import ask
        atexit.register(print, "after the import")
        try:
            ask()
        except BaseException:
            pass
        atexit.register(print, "after the miss")
        """,
    )

    assert ended.status == 2
    assert ended.stdout.splitlines() == ["after the miss", "after the import", "before the import"]


def test_logging_is_shut_down(tmp_path: Path) -> None:
    """Records that a handler still holds reach their file."""
    ended = run(
        tmp_path,
        """
        import logging.handlers
        handler = logging.handlers.MemoryHandler(1_000, target=logging.FileHandler("log.txt"))
        logging.getLogger().addHandler(handler)
        logging.getLogger().error("held back")
        ask()
        """,
    )

    assert (ended.status, (tmp_path / "log.txt").read_text()) == (2, "held back\n")


def test_open_files_are_flushed(tmp_path: Path) -> None:
    """What was written to a file that nobody closed is in it."""
    ended = run(tmp_path, "file = open('answers.txt', 'w'); file.write('paid for'); ask()")

    assert (ended.status, (tmp_path / "answers.txt").read_text()) == (2, "paid for")


def test_coverage_keeps_its_data(tmp_path: Path) -> None:
    """Coverage that was started before the script (as its ``.pth`` file does) saves what it measured."""
    pytest.importorskip("coverage")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import coverage\ncoverage.process_startup()\n")
    (tmp_path / "coveragerc").write_text(f"[run]\ndata_file = {tmp_path / 'measured'}\n")

    ended = run(
        tmp_path,
        "import sys\nassert 'coverage' in sys.modules\nask()",
        path=str(tmp_path / "site"),
        COVERAGE_PROCESS_START=str(tmp_path / "coveragerc"),
    )

    from coverage import CoverageData

    data = CoverageData(str(tmp_path / "measured"))
    data.read()
    assert ended.status == 2, ended.stderr
    assert data.lines(str(tmp_path / "script.py")) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param("import sys; sys.stderr = None", id="none"),
        pytest.param("import sys; sys.stderr.close()", id="closed"),
        pytest.param("import os; os.close(2)", id="descriptor-closed"),
        pytest.param("import os; end, pipe = os.pipe(); os.close(end); os.dup2(pipe, 2)", id="broken-pipe"),
    ],
)
def test_stderr_is_not_needed(tmp_path: Path, prepare: str) -> None:
    """Without a stderr that takes the report the status is still 2."""
    ended = run(tmp_path, f"{prepare}\nprint('kept')\nask()")

    assert (ended.status, ended.stdout) == (2, "kept\n")


SWALLOW = """
def quietly(prompt="a"):
    try:
        ask(prompt)
    except BaseException:
        return "swallowed"
"""

PROCESS = """
import multiprocessing
if __name__ == "__main__":
    process = multiprocessing.get_context("{method}").Process(target=quietly)
    process.start()
    process.join()
    print("kept")
"""

POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
if __name__ == "__main__":
    with ProcessPoolExecutor(1, multiprocessing.get_context("{method}")) as pool:
        print(pool.submit(quietly).result().replace("swallowed", "kept"))
"""

#: Programs that miss once in a child process, and lose the error there.
CHILDREN = {
    **{f"process-{method}": PROCESS.format(method=method) for method in ("fork", "spawn", "forkserver")},
    **{f"pool-{method}": POOL.format(method=method) for method in ("fork", "spawn", "forkserver")},
    "os-fork": """
import os
if os.fork() == 0:
    quietly()
    os._exit(0)
os.wait()
print("kept")
""",
    "subprocess": """
import subprocess, sys
subprocess.run([sys.executable, "-c", "from _ask import ask; ask()"])
print("kept")
""",
    "grandchild": """
import subprocess, sys
again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'from _ask import ask; ask()'])"
subprocess.run([sys.executable, "-c", f"import _ask; {again}"])
print("kept")
""",
    "exec": """
import os, sys
if "again" not in sys.argv:
    os.execv(sys.executable, [sys.executable, __file__, "again"])
if os.fork() == 0:
    quietly()
    os._exit(0)
os.wait()
print("kept")
""",
}


@needs_fork
@pytest.mark.parametrize("body", table(CHILDREN))
def test_a_miss_in_a_child_process_ends_the_parent_with_2(tmp_path: Path, body: str) -> None:
    """The child prints the report, the parent says how many there were and leaves no file behind."""
    ended = run(tmp_path, SWALLOW + body)

    summary = "httpx_cassette: child processes had 1 miss, so the exit status is 2\n"
    assert (ended.status, ended.stdout) == (2, "kept\n"), ended.stderr
    assert (ended.stderr.count(DETAIL), ended.stderr.count(summary)) == (1, 1), ended.stderr
    assert list(tmp_path.glob("httpx-cassette-*")) == []


@needs_fork
def test_misses_of_several_processes_are_added_up(tmp_path: Path) -> None:
    """The parent names the number of misses, one for each key and process."""
    ended = run(
        tmp_path,
        SWALLOW
        + """
import os
for prompt in "abc":
    if os.fork() == 0:
        quietly(prompt)
        quietly(prompt)
        os._exit(0)
    os.wait()
""",
    )

    assert ended.status == 2
    assert ended.stderr.splitlines()[-1] == (
        "httpx_cassette: child processes had 3 misses, so the exit status is 2"
    )


@needs_fork
def test_a_pool_that_will_hang_is_named_in_the_report(tmp_path: Path) -> None:
    """A worker of ``multiprocessing.Pool`` dies of a stop, so its report says what to use instead."""
    ended = run(
        tmp_path,
        """
        import multiprocessing, multiprocessing.pool
        with multiprocessing.get_context("fork").Pool(1) as pool:
            try:
                pool.apply_async(ask).get(timeout=0.5)
            except multiprocessing.TimeoutError:
                print("it hangs")
        with multiprocessing.pool.ThreadPool(1) as pool:
            try:
                pool.apply_async(ask).get(timeout=0.5)
            except multiprocessing.TimeoutError:
                print("it hangs")
        """,
    )

    note = "multiprocessing.{} waits for ever for a task that is stopped: use concurrent.futures.{}"
    assert (ended.status, ended.stdout) == (2, "it hangs\nit hangs\n"), ended.stderr
    for pool, instead in (("Pool", "ProcessPoolExecutor"), ("pool.ThreadPool", "ThreadPoolExecutor")):
        assert ended.stderr.count(note.format(pool, instead)) == 1


def test_the_import_installs_nothing(tmp_path: Path) -> None:
    """Before the first miss the hooks are the interpreter's own."""
    ended = run(
        tmp_path,
        """
        import sys, threading
        assert sys.excepthook is sys.__excepthook__
        assert threading.excepthook is threading.__excepthook__
        print("kept")
        """,
    )

    assert (ended.status, ended.stdout) == (0, "kept\n"), ended.stderr
