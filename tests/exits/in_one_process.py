"""Programs that miss in the main thread of their only process.

Each prints what the code round the call saw; "kept" where it is only shown that the output is not lost.
"""

from __future__ import annotations

import os

import pytest

from tests.exits._programs import Row

__all__ = ["CAUGHT", "ENDINGS", "PLACES", "REPLACED", "STDERR"]

NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")

#: How the error is caught, wrapped, or followed by something else.
CAUGHT = {
    "plain": Row("""
        print("kept")
        ask()
    """),
    "except-exception": Row("""
        print("kept")
        try:
            ask()
        except Exception:
            print("swallowed")
    """),
    "except-exception-in-a-loop": Row("""
        print("kept")
        for attempt in range(3):
            try:
                ask()
            except Exception:
                print("retried")
    """),
    "bare-except-in-a-loop": Row("""
        for attempt in range(3):
            try:
                ask()
            except:
                print("retried")
    """),
    "suppressed": Row("""
        import contextlib
        with contextlib.suppress(BaseException):
            ask()
        print("kept")
    """),
    "wrapped-from": Row("""
        print("kept")
        try:
            ask()
        except BaseException as error:
            raise RuntimeError("the model is unavailable") from error
    """),
    "raised-while-handling": Row("""
        print("kept")
        try:
            ask()
        finally:
            raise RuntimeError("clean-up failed")
    """),
    "uncaught-afterwards": Row("""
        print("kept")
        try:
            ask()
        except BaseException:
            pass
        raise ValueError("something else")
    """),
    "logged": Row("""
        import logging
        try:
            ask()
        except BaseException:
            logging.exception("the call failed")
        print("kept")
    """),
    "in-a-stream-block": Row("""
        import httpx, httpx_cassette
        with httpx.Client(transport=httpx_cassette.CassetteTransport(MISSING)) as client:
            try:
                with client.stream("POST", URL, json={**body("a"), "stream": True}) as response:
                    print("never")
            except BaseException as error:
                print(type(error).__name__)
    """),
}

#: How the program ends after the error was lost.
ENDINGS = {
    "sys-exit-0": Row("""
        import sys
        try:
            ask()
        except BaseException:
            pass
        print("kept")
        sys.exit(0)
    """),
    "sys-exit-3": Row("""
        import sys
        try:
            ask()
        finally:
            print("kept")
            sys.exit(3)
    """),
    "sys-exit-in-the-handler": Row("""
        import sys
        try:
            ask()
        except BaseException as error:
            print("kept")
            sys.exit("gave up")
    """),
    "foreign-hook-before": Row("""
        import sys
        from httpx_cassette import CassetteMiss
        sys.excepthook = lambda kind, value, trace: print("kept" if issubclass(kind, CassetteMiss) else kind)
        ask()
    """),
    "foreign-hook-after": Row("""
        import sys
        try:
            ask()
        except BaseException as error:
            sys.excepthook = lambda kind, value, trace: print("kept")
            raise
    """),
    "interrupt-that-is-only-shown": Row("""
        import sys
        try:
            ask()
        except BaseException:
            pass
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            sys.excepthook(*sys.exc_info())
        print("kept")
    """),
    "forked-in-between": Row(
        """
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
        marks=(NEEDS_FORK,),
    ),
    "exit-handlers": Row("""
        import atexit, sys, _ask
        for name in [name for name in sys.modules if name.startswith("httpx_cassette")]:
            del sys.modules[name]
        atexit.register(print, "before the import")
        import httpx_cassette
        _ask.httpx_cassette = httpx_cassette
        atexit.register(print, "after the import")
        try:
            ask()
        except BaseException:
            pass
        atexit.register(print, "after the miss")
    """),
    "unflushed-file": Row("""
        file = open("answers.txt", "w")
        file.write("paid for")
        ask()
    """),
    "two-copies-of-the-package": Row("""
        import sys
        try:
            ask()
        except BaseException:
            pass
        for name in [name for name in sys.modules if name.startswith("httpx_cassette")]:
            del sys.modules[name]
        import httpx_cassette
        print("kept")
    """),
}

#: The same process goes on as another program, which learns of the miss by its environment alone.
REPLACED = {
    "exec-after-a-miss": Row(
        """
        import os, sys
        try:
            ask()
        except BaseException:
            pass
        print("kept", flush=True)
        os.execv(sys.executable, [sys.executable, "-c", "import _ask; print('the next program')"])
        """,
        marks=(NEEDS_FORK,),
    ),
    "exec-twice-after-a-miss": Row(
        """
        import os, sys
        if "again" not in sys.argv:
            try:
                ask()
            except BaseException:
                pass
            os.execv(sys.executable, [sys.executable, __file__, "again"])
        print("kept", flush=True)
        os.execv(sys.executable, [sys.executable, "-c", "import _ask; print('the last program')"])
        """,
        marks=(NEEDS_FORK,),
    ),
}

#: Places where Python itself swallows what is raised.
PLACES = {
    "collected-generator": Row("""
        def generate():
            try:
                yield
            finally:
                ask()
        generator = generate()
        next(generator)
        del generator
        print("kept")
    """),
    "finaliser": Row("""
        class Conversation:
            def __del__(self):
                ask()
        conversation = Conversation()
        del conversation
        print("kept")
    """),
    "exit-handler": Row("""
        import atexit
        atexit.register(ask)
        print("kept")
    """),
    "weak-reference": Row("""
        import weakref
        class Conversation: pass
        conversation = Conversation()
        weakref.finalize(conversation, ask)
        print("kept")
    """),
}

#: What there is to write the report to.
STDERR = {
    "stderr-none": Row("import sys; sys.stderr = None; print('kept'); ask()"),
    "stderr-closed": Row("import sys; sys.stderr.close(); print('kept'); ask()"),
    "stderr-descriptor-closed": Row("import os; os.close(2); print('kept'); ask()"),
    "stderr-broken-pipe": Row("""
        import os
        end, pipe = os.pipe()
        os.close(end)
        os.dup2(pipe, 2)
        print("kept")
        ask()
    """),
}
