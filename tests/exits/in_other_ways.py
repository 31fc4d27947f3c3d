"""Programs whose calls are stopped for another reason than a miss, or whose miss is nobody's fault."""

from __future__ import annotations

import importlib.util
import os

import pytest

from tests.exits._programs import Row

__all__ = ["BESIDE", "STOPS", "UNTOUCHED"]

NEEDS_HTTPX2 = pytest.mark.skipif(not importlib.util.find_spec("httpx2"), reason="httpx2 is not installed")

#: Makes a call that is answered, and records it.
_RECORD = """
        import httpx, httpx_cassette
        def record(answer, **options):
            server = httpx.MockTransport(lambda request: httpx.Response(200, json=answer))
            transport = httpx_cassette.CassetteTransport(
                "chat.jsonl", mode="record", next_transport=server, **options
            )
            with httpx.Client(transport=transport) as client:
                headers = {"authorization": "Bearer 9f2Kq-was-paid-for-7Zr1x"}
                client.post(URL, json=body("a"), headers=headers)
"""

#: What else stops a call than a miss, and another library.
STOPS = {
    "no-system-prompt": Row("""
        import httpx, httpx_cassette
        client = httpx.Client(transport=httpx_cassette.CassetteTransport(MISSING))
        try:
            client.post(URL, json={"model": "gpt-5", "messages": [{"role": "user", "content": "a"}]})
        except BaseException as error:
            print(type(error).__name__)
    """),
    "damaged-recording": Row(
        _RECORD
        + """
        record({"choices": []})
        with open("chat.jsonl") as file:
            text = file.read()
        with open("copy.jsonl", "w") as file:
            file.write(text.replace('"choices":[]', '"choices":[0]'))
        try:
            ask(cassette="copy.jsonl")
        except BaseException as error:
            print(type(error).__name__)
        """
    ),
    "call-limit": Row(
        _RECORD
        + """
        try:
            record({"choices": []}, max_calls=0)
        except BaseException as error:
            print(type(error).__name__)
        """
    ),
    "answer-not-stored": Row(
        _RECORD
        + """
        try:
            record({"echo": "9f2Kq-was-paid-for-7Zr1x"})
        except BaseException as error:
            print(type(error).__name__)
        """
    ),
    "missed-then-not-stored": Row(
        _RECORD
        + """
        try:
            ask()
        except BaseException as error:
            print(type(error).__name__)
        try:
            record({"echo": "9f2Kq-was-paid-for-7Zr1x"})
        except BaseException as error:
            print(type(error).__name__)
        """
    ),
    "plain-httpx2": Row(
        """
        import httpx2, httpx_cassette.httpx2
        print("kept")
        httpx2.Client(transport=httpx_cassette.httpx2.CassetteTransport(MISSING)).post(URL, json=body("a"))
        """,
        marks=(NEEDS_HTTPX2,),
    ),
}

#: What ``expected_miss()`` does not take back, as it happens before the block, or beside it.
BESIDE = {
    "missed-before-the-block": Row("""
        try:
            ask("before")
        except BaseException:
            with expected_miss() as miss:
                ask("in it")
        print("kept", len(miss.errors))
    """),
    "missed-by-another-task": Row("""
        import asyncio
        async def expect():
            with expected_miss() as miss:
                await asyncio.sleep(0.5)
                await ask_async("in it")
            return len(miss.errors)
        async def miss():
            await asyncio.sleep(0.1)
            await ask_async("beside it")
        async def main():
            for result in await asyncio.gather(expect(), miss(), return_exceptions=True):
                print(repr(result)[:12])
        asyncio.run(main())
    """),
    "missed-by-an-older-thread": Row("""
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(1) as pool:
            pool.submit(print, "kept").result()
            with expected_miss() as miss:
                pool.submit(ask, "beside it").exception()
                ask("in it")
        print(len(miss.errors))
    """),
    "missed-by-an-older-process": Row(
        """
        import os
        end, pipe = os.pipe()
        if os.fork() == 0:
            os.read(end, 1)
            try:
                ask("beside it")
            except BaseException:
                os._exit(0)
        with expected_miss() as miss:
            os.write(pipe, b"!")
            os.wait()
            ask("in it")
        print("kept", len(miss.errors))
        """,
        marks=(pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork"),),
    ),
}

#: Programs that end as they would without the package.
UNTOUCHED = {
    "nothing-missed": Row("print('kept')"),
    "nothing-missed-exit-3": Row("print('kept'); raise SystemExit(3)"),
    "nothing-missed-uncaught": Row("print('kept'); raise ValueError"),
    "expected-miss": Row("""
        with expected_miss() as miss:
            ask()
        print("kept" if len(miss.fingerprint) == 64 else miss.errors)
    """),
    "expected-miss-in-a-thread": Row("""
        import threading
        with expected_miss() as miss:
            thread = threading.Thread(target=lambda: ask())
            threading.excepthook = lambda args: None
            thread.start()
            thread.join()
        print("kept")
    """),
    "expected-miss-in-a-pool-process": Row("""
        from concurrent.futures import ProcessPoolExecutor
        import multiprocessing
        if __name__ == "__main__":
            with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
                with expected_miss() as miss:
                    pool.submit(ask).result()
            print("kept")
    """),
    "expected-miss-in-a-grandchild": Row("""
        import subprocess, sys
        with expected_miss() as miss:
            program = "from _ask import ask; ask()"
            subprocess.run(f'"{sys.executable}" -c "{program}"; true', shell=True, stderr=subprocess.DEVNULL)
        print("kept", len(miss.errors))
    """),
    "expected-miss-then-another-error": Row("""
        print("kept")
        with expected_miss() as miss:
            try:
                ask()
            except BaseException:
                pass
            raise ValueError
    """),
    "on-miss-none": Row("""
        import httpx, httpx_cassette
        transport = httpx_cassette.CassetteTransport(MISSING, on_miss=None)
        try:
            httpx.Client(transport=transport).post(URL, json=body("a"))
        except httpx_cassette.CassetteMiss:
            print("kept")
    """),
    "interrupted": Row("""
        print("kept", flush=True)
        try:
            ask()
        except BaseException:
            pass
        raise KeyboardInterrupt
    """),
    "taken-over": Row("""
        from httpx_cassette._ledger import take_over
        take_over()
        try:
            ask()
        except BaseException:
            print("kept")
    """),
    "guard-deleted": Row("""
        import sys
        try:
            ask()
        except BaseException:
            print("kept")
        del sys._httpx_cassette_exit_guard
    """),
}
