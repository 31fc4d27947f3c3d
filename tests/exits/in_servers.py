"""Programs that miss in an endpoint: called in the process, by a test client, or over loopback.

Each prints what the one who called the endpoint saw: a status code, or the error.
"""

from __future__ import annotations

import os

import pytest

from tests.exits._programs import Row

__all__ = ["APPS", "KILLED", "SERVERS"]

NEEDS_SIGNALS = (pytest.mark.skipif(os.name != "posix", reason="a signal ends the process at once here"),)

_STARLETTE = """
        from starlette.applications import Starlette
        from starlette.background import BackgroundTask, BackgroundTasks
        from starlette.responses import PlainTextResponse, StreamingResponse
        from starlette.routing import Route

        async def in_loop(request):
            await ask_async()

        def in_thread(request):
            ask()

        async def in_background(request):
            return PlainTextResponse("answered", background=BackgroundTask(ask_async))

        async def in_background_thread(request):
            return PlainTextResponse("answered", background=BackgroundTask(ask))

        async def in_stream(request):
            async def parts():
                yield "part"
                await ask_async()
            return StreamingResponse(parts())

        async def alive(request):
            return PlainTextResponse("alive")

        endpoints = in_loop, in_thread, in_background, in_background_thread, in_stream, alive
        app = Starlette(routes=[Route("/" + each.__name__, each) for each in endpoints])
"""

_FASTAPI = """
        from fastapi import BackgroundTasks, Depends, FastAPI
        app = FastAPI()

        @app.get("/in_loop")
        async def in_loop():
            await ask_async()

        @app.get("/in_thread")
        def in_thread():
            ask()

        @app.get("/in_background")
        async def in_background(tasks: BackgroundTasks):
            tasks.add_task(ask)
            return "answered"

        @app.get("/in_dependency")
        async def in_dependency(answer=Depends(ask)):
            return "answered"

        @app.get("/alive")
        def alive():
            return "alive"
"""

_ASGI = """
        import asyncio, httpx
        async def main():
            transport = httpx.ASGITransport(app, raise_app_exceptions={raised})
            async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
                try:
                    print((await client.get("/{endpoint}")).status_code)
                except BaseException as error:
                    print(type(error).__name__)
        asyncio.run(main())
"""

_TEST_CLIENT = """
        import warnings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it takes httpx or httpx2, and says so
            from starlette.testclient import TestClient
        with TestClient(app, raise_server_exceptions={raised}) as client:
            try:
                print(client.get("/{endpoint}").status_code)
            except BaseException as error:
                print(type(error).__name__)
"""

_MIDDLEWARE = """
        @app.middleware("http")
        async def passed_on(request, call_next):
            return await call_next(request)
"""

_UVICORN = """
        import os, signal, threading, httpx, uvicorn
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))

        class Client(threading.Thread):
            seen = ()
            def run(self):
                while not server.started:
                    server_is_up.wait(0.01)
                port = server.servers[0].sockets[0].getsockname()[1]
                # A connection for each request: the server drops one after an error.
                headers = {{"connection": "close"}}
                with httpx.Client(base_url=f"http://127.0.0.1:{{port}}", headers=headers) as client:
                    for path in {paths!r}.split():
                        try:
                            self.seen += (client.get(path).status_code,)
                        except httpx.HTTPError as error:
                            self.seen += (type(error).__name__,)
                print(*self.seen, flush=True)
                {end}

        server_is_up = threading.Event()
        client = Client()
        client.start()
        try:
            server.run()
        except KeyboardInterrupt:  # as uvicorn.run does
            pass
        client.join()
        print("served to the end")
"""


def _asgi(app: str, endpoint: str, *, raised: bool = True) -> Row:
    return Row(app + _ASGI.format(endpoint=endpoint, raised=raised))


def _test_client(app: str, endpoint: str, *, raised: bool = True) -> Row:
    return Row(app + _TEST_CLIENT.format(endpoint=endpoint, raised=raised))


def _uvicorn(
    app: str,
    paths: str,
    end: str = "server.should_exit = True",
    marks: tuple[pytest.MarkDecorator, ...] = (),
) -> Row:
    return Row(app + _UVICORN.format(paths=paths, end=end), marks=marks)


#: Applications without a server.
APPS = {
    "asgi-async": _asgi(_STARLETTE, "in_loop"),
    "asgi-sync": _asgi(_STARLETTE, "in_thread"),
    "asgi-background": _asgi(_STARLETTE, "in_background"),
    "asgi-background-sync": _asgi(_STARLETTE, "in_background_thread"),
    "asgi-stream": _asgi(_STARLETTE, "in_stream"),
    "asgi-async-not-raised": _asgi(_STARLETTE, "in_loop", raised=False),
    "asgi-sync-not-raised": _asgi(_STARLETTE, "in_thread", raised=False),
    "asgi-fastapi-async": _asgi(_FASTAPI, "in_loop"),
    "asgi-fastapi-sync": _asgi(_FASTAPI, "in_thread"),
    "asgi-fastapi-background": _asgi(_FASTAPI, "in_background"),
    "asgi-fastapi-dependency": _asgi(_FASTAPI, "in_dependency"),
    "asgi-fastapi-middleware": _asgi(_FASTAPI + _MIDDLEWARE, "in_loop"),
    "test-client-async": _test_client(_STARLETTE, "in_loop"),
    "test-client-sync": _test_client(_STARLETTE, "in_thread"),
    "test-client-background": _test_client(_STARLETTE, "in_background"),
    "test-client-stream": _test_client(_STARLETTE, "in_stream"),
    "test-client-not-raised": _test_client(_STARLETTE, "in_loop", raised=False),
    "test-client-fastapi": _test_client(_FASTAPI, "in_thread"),
}

#: A server on loopback that lives on, and is then shut down.
SERVERS = {
    "uvicorn-async": _uvicorn(_STARLETTE, "in_loop alive in_loop alive"),
    "uvicorn-sync": _uvicorn(_STARLETTE, "in_thread alive in_thread alive"),
    "uvicorn-background": _uvicorn(_STARLETTE, "in_background alive"),
    "uvicorn-stream": _uvicorn(_STARLETTE, "in_stream alive"),
    "uvicorn-fastapi": _uvicorn(_FASTAPI, "in_loop in_thread in_dependency alive"),
    "uvicorn-middleware": _uvicorn(_FASTAPI + _MIDDLEWARE, "in_loop alive in_thread alive"),
    "uvicorn-interrupted": _uvicorn(
        _STARLETTE, "in_loop alive", "os.kill(os.getpid(), signal.SIGINT)", NEEDS_SIGNALS
    ),
}

#: No exit handler of Python runs after a signal that nobody catches, and uvicorn raises it again.
KILLED = {
    "uvicorn-terminated": _uvicorn(
        _STARLETTE, "in_loop alive", "os.kill(os.getpid(), signal.SIGTERM)", NEEDS_SIGNALS
    ),
}
