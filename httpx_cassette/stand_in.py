"""A stand-in for a model server: it answers on loopback in OpenAI's chat format, and it is no model.

It shows the problem that this package solves, and lets an SDK be tested without a key or a network: plain
and streamed chat, several choices, tool calls, usage, embeddings, a model list, errors.
The same question asked twice gets two wordings; the n-th answer of a fresh server is always the same.
Here is only how it listens and sends; what it says is decided in ``_stand_in_answers``.
It knows nothing about recording, and nothing in the package but the commands may import it.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, TracebackType
from typing import NamedTuple, TypeAlias

from ._stand_in_answers import Completion, Refused, encode, find_answer

__all__ = ["Answer", "Asked", "Reply", "StandInServer"]

#: How many requests ``StandInServer.requests`` keeps: enough for a test, bounded for a long run.
REQUESTS_KEPT = 1000

_JSON = MappingProxyType({"content-type": "application/json"})
_EVENTS = MappingProxyType({"content-type": "text/event-stream; charset=utf-8"})


class Asked(NamedTuple):
    """One request as the server saw it.

    Args:
        path: The path with its query.
        headers: The headers by lower-case name; of repeated ones the last.
        body: The body, chunked framing undone.
    """

    path: str
    headers: dict[str, str]
    body: bytes


class Reply(NamedTuple):
    """An HTTP answer, given in full.

    Args:
        status: The status code.
        body: The body. The pieces of an iterable are sent one by one, each in a chunk of its own, as soon
            as it yields them; if it raises ``ConnectionError``, the connection ends there, unfinished.
        headers: Headers beside length, date and request id.
    """

    status: int
    body: bytes | Iterable[bytes]
    headers: Mapping[str, str] = _JSON


#: What ``StandInServer(answer=...)`` takes: it is called with a request and its number, from 1, and returns
#: the words of the answer, or the whole HTTP answer, or ``None`` for the usual one.
Answer: TypeAlias = Callable[[Asked, int], "str | Reply | None"]


class StandInServer:
    """A server on a port of 127.0.0.1, running from construction until ``close``.

    Args:
        answer: Gives words or a whole HTTP answer in place of the usual one.
            It runs in the thread of the connection; what it raises is printed, and ends the connection.
        delay: Seconds for each token; a plain answer takes the time of all its tokens.
        port: The port of 127.0.0.1 to listen on; 0 takes a free one.

    Attributes:
        calls: How many requests came, those with an error for an answer included.
    """

    def __init__(self, *, answer: Answer | None = None, delay: float = 0.0, port: int = 0) -> None:
        self.calls = 0
        self._answer = answer
        self._delay = delay
        self._requests: deque[Asked] = deque(maxlen=REQUESTS_KEPT)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._server = _Server(self, port)
        # Closing takes as long as one poll.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The base URL to give to an SDK: ``http://127.0.0.1:PORT/v1``."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def requests(self) -> list[Asked]:
        """The latest requests, oldest first, 1,000 at most."""
        with self._lock:
            return list(self._requests)

    def close(self) -> None:
        """Stop answering, on connections that a client keeps open too; closing twice does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server.hang_up()

    def __enter__(self) -> StandInServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _reply(self, method: str, asked: Asked) -> tuple[Reply, int]:
        """Return the answer to a request, and the number of the request."""
        with self._lock:
            self.calls += 1
            nth = self.calls
            self._requests.append(asked)
        given = self._answer(asked, nth) if self._answer is not None else None
        if isinstance(given, Reply):
            return given, nth
        route = f"{method} {asked.path.partition('?')[0]}"
        try:
            said = find_answer(route, asked.headers, asked.body, nth, given)
        except Refused as refused:
            return Reply(refused.status, encode(refused.document)), nth
        if isinstance(said, Completion):
            if said.is_stream:
                return Reply(200, self._paced(said.events()), _EVENTS), nth
            self._pause(self._delay * said.tokens)
            said = said.whole()
        return Reply(200, encode(said)), nth

    def _paced(self, events: Iterable[bytes]) -> Iterator[bytes]:
        for event in events:
            self._pause(self._delay)
            yield event

    def _pause(self, seconds: float) -> None:
        if self._closed.wait(seconds):
            raise ConnectionAbortedError("the stand-in was closed while it answered")


class _Server(ThreadingHTTPServer):
    """The listening socket, and the connections that came from it."""

    # A program that forgets to close the server still ends.
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, stand_in: StandInServer, port: int) -> None:
        self.stand_in = stand_in
        self._connections: set[object] = set()
        self._changed = threading.Condition()
        super().__init__(("127.0.0.1", port), _Handler)

    def server_bind(self) -> None:
        # Not HTTPServer's own, which asks the name service for the name of 127.0.0.1.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", self.socket.getsockname()[1]

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client: object) -> None:
        with self._changed:
            self._connections.add(request)
        super().process_request(request, client)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._connections.discard(request)
            self._changed.notify_all()

    def hang_up(self) -> None:
        """End the connections that are open, and wait until their threads have let go of them."""
        with self._changed:
            for connection in self._connections:
                assert isinstance(connection, socket.socket)
                # The client, or the thread of the connection, may have been faster.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            # An ``answer`` that blocks for ever keeps its thread; the program need not wait with it.
            self._changed.wait_for(lambda: not self._connections, timeout=5)

    def handle_error(self, request: object, client: object) -> None:
        """Print what an ``answer`` raised; a client that goes away is no error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client)  # type: ignore[arg-type]  # its types are datagrams', too


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "stand-in-not-a-model"
    sys_version = ""
    # Headers and body are two writes; with Nagle's algorithm the second would wait for an ACK, 40 ms.
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply, nth = self.server.stand_in._reply(self.command, Asked(self.path, headers, self._body()))
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("x-request-id", f"req_standin{nth:08d}")
        if isinstance(reply.body, bytes):
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)
        else:
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for piece in reply.body:
                if piece:
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        pieces = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
