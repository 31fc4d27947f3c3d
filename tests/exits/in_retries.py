"""Programs that miss in the loops of retrying libraries: a stop is not tried again."""

from __future__ import annotations

from tests.exits._programs import Row

__all__ = ["RETRIES"]

#: Prints how many calls were made.
_COUNTED = """
        calls = 0
        def counted():
            global calls
            calls += 1
            ask()
        async def counted_async():
            global calls
            calls += 1
            await ask_async()
"""

_PROGRAMS = {
    "tenacity": """
        import tenacity
        try:
            tenacity.Retrying(stop=tenacity.stop_after_attempt(3))(counted)
        finally:
            print("calls:", calls)
    """,
    "tenacity-block": """
        import tenacity
        try:
            for attempt in tenacity.Retrying(stop=tenacity.stop_after_attempt(3), reraise=True):
                with attempt:
                    counted()
        finally:
            print("calls:", calls)
    """,
    "tenacity-async": """
        import asyncio, tenacity
        try:
            asyncio.run(tenacity.AsyncRetrying(stop=tenacity.stop_after_attempt(3))(counted_async))
        finally:
            print("calls:", calls)
    """,
    "tenacity-returns-a-default": """
        import tenacity
        retrying = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(3), retry_error_callback=lambda state: "a default"
        )
        try:
            print(retrying(counted))
        finally:
            print("calls:", calls)
    """,
    "stamina": """
        import stamina
        try:
            stamina.retry(on=Exception, attempts=3)(counted)()
        finally:
            print("calls:", calls)
    """,
    "stamina-async": """
        import asyncio, stamina
        try:
            asyncio.run(stamina.retry(on=Exception, attempts=3)(counted_async)())
        finally:
            print("calls:", calls)
    """,
}

RETRIES = {name: Row(_COUNTED + program) for name, program in _PROGRAMS.items()}
