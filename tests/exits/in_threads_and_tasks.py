"""Programs that miss in a thread, a pool of threads, a task or a callback of one process.

Each prints what the code round the call saw; "kept" where it is only shown that the output is not lost.
"""

from __future__ import annotations

import sys

import pytest

from tests.exits._programs import Row

__all__ = ["TASKS", "THREADS"]

NEEDS_GROUPS = pytest.mark.skipif(sys.version_info < (3, 11), reason="TaskGroup came with Python 3.11")

THREADS = {
    "to-thread": Row("""
        import asyncio
        async def main():
            print("kept")
            await asyncio.to_thread(ask)
        asyncio.run(main())
    """),
    "read-future": Row("""
        from concurrent.futures import ThreadPoolExecutor
        print("kept")
        with ThreadPoolExecutor() as pool:
            pool.submit(ask).result()
    """),
    "unread-future": Row("""
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            pool.submit(ask)
        print("kept")
    """),
    "pool-map": Row("""
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            print("kept")
            list(pool.map(ask, "aaa"))
    """),
    "unread-pool-map": Row("""
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            pool.map(ask, "aaa")
        print("kept")
    """),
    "as-completed-except-exception": Row("""
        from concurrent.futures import ThreadPoolExecutor, as_completed
        print("kept")
        with ThreadPoolExecutor() as pool:
            for future in as_completed([pool.submit(ask)]):
                try:
                    future.result()
                except Exception:
                    print("swallowed")
    """),
    "thread": Row("""
        import threading
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        print("kept")
    """),
    "timer": Row("""
        import threading
        threading.Timer(0.01, ask).start()
        print("kept")
    """),
    "daemon-thread-at-exit": Row("""
        import threading, time
        has_missed = threading.Event()
        def wait():
            try:
                ask()
            except BaseException:
                has_missed.set()
                time.sleep(60)
        threading.Thread(target=wait, daemon=True).start()
        has_missed.wait()
        print("kept")
    """),
}

TASKS = {
    "asyncio-run": Row("""
        import asyncio
        async def main():
            print("kept")
            await ask_async()
        asyncio.run(main())
    """),
    "trio-run": Row("""
        import trio
        async def main():
            print("kept")
            await ask_async()
        trio.run(main)
    """),
    "gather": Row("""
        import asyncio
        async def sibling():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                print("the sibling is cancelled")
                raise
        async def main():
            await asyncio.gather(ask_async(), sibling())
        asyncio.run(main())
    """),
    "gather-return-exceptions": Row("""
        import asyncio
        async def main():
            for result in await asyncio.gather(ask_async(), ask_async(), return_exceptions=True):
                print(type(result).__name__)
        asyncio.run(main())
    """),
    "task-group": Row(
        """
        import asyncio
        async def main():
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(ask_async())
            except BaseException as error:
                print(type(error).__name__)
                raise
        asyncio.run(main())
        """,
        marks=(NEEDS_GROUPS,),
    ),
    "anyio-task-group": Row("""
        import anyio
        async def main():
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(ask_async)
            except BaseException as error:
                print(type(error).__name__)
                raise
        anyio.run(main)
    """),
    "anyio-task-group-on-trio": Row("""
        import anyio
        async def main():
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(ask_async)
            except BaseException as error:
                print(type(error).__name__)
                raise
        anyio.run(main, backend="trio")
    """),
    "trio-nursery": Row("""
        import trio
        async def main():
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(ask_async)
            except BaseException as error:
                print(type(error).__name__)
                raise
        trio.run(main)
    """),
    "task-never-awaited": Row("""
        import asyncio
        async def main():
            task = asyncio.ensure_future(ask_async())
            await asyncio.sleep(0.5)
        asyncio.run(main())
        print("kept")
    """),
    "asyncio-as-completed": Row("""
        import asyncio
        async def main():
            print("kept")
            for future in asyncio.as_completed([ask_async()]):
                try:
                    await future
                except Exception:
                    print("swallowed")
        asyncio.run(main())
    """),
    "unread-executor-call": Row("""
        import asyncio
        async def main():
            asyncio.get_running_loop().run_in_executor(None, ask)
        asyncio.run(main())
        print("kept")
    """),
    "callback": Row("""
        import asyncio
        async def main():
            print("kept")
            asyncio.get_running_loop().call_soon(ask)
            await asyncio.sleep(0.5)
        asyncio.run(main())
    """),
    "async-generator-left-open": Row("""
        import asyncio
        async def generate():
            try:
                yield
            finally:
                await ask_async()
        async def main():
            async for _ in generate():
                break
        asyncio.run(main())
        print("kept")
    """),
}
