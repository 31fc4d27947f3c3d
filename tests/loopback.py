"""A server on a raw loopback socket, for what a polite server would not do: wait, hang up, say nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

__all__ = ["Connection", "serve"]

#: Nothing here takes this long unless it hangs.
PATIENCE = 10.0


class Connection:
    """One request, and the way to answer it.

    Args:
        peer: The socket.
        request: The bytes of the request.
    """

    def __init__(self, peer: socket.socket, request: bytes) -> None:
        self._peer = peer
        self.request = request

    def head(self, content_type: str = "text/event-stream", *headers: str) -> None:
        """Begin a chunked answer."""
        named = [f"content-type: {content_type}", "transfer-encoding: chunked", *headers]
        self._peer.sendall("\r\n".join(["HTTP/1.1 200 OK", *named, "", ""]).encode())

    def chunk(self, data: bytes) -> None:
        """Send a piece of it at once."""
        self._peer.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        """End the answer."""
        self._peer.sendall(b"0\r\n\r\n")

    def wait_for_the_client(self) -> None:
        """Say nothing until the client goes away."""
        with contextlib.suppress(OSError):
            while self._peer.recv(4096):
                pass  # pragma: no cover  # it has nothing to say


@contextlib.contextmanager
def serve(answer: Callable[[Connection], None]) -> Iterator[str]:
    """Give the URL of a server that answers each request as told, each connection in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def handle(peer: socket.socket) -> None:
        peer.settimeout(PATIENCE)
        with peer, contextlib.suppress(OSError):
            while request := _read_request(peer):
                answer(Connection(peer, request))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = listener.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threads.append(threading.Thread(target=handle, args=(peer,), daemon=True))
                threads[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(PATIENCE)


def _read_request(peer: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = peer.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += peer.recv(65536)
    return head + b"\r\n\r\n" + body
