"""One call over a real transport, to a server that sends exactly these bytes, or from the cassette."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import httpx

from httpx_cassette import CassetteTransport

from .colours import never, sse

__all__ = ["KINDS", "exchange", "kind_of", "zip_up"]

#: How a response is stored.
KINDS = ("assembled", "verbatim", "base64", "json", "text")


def exchange(
    path: Path,
    sent: bytes | None,
    size: int | None = 10**9,
    content_type: str | None = "text/event-stream",
    encoding: str = "",
    *,
    url: str,
    json: Any,
    method: str = "POST",
    **options: Any,
) -> tuple[bytes, Any]:
    """Make a call; return its body as it was sent, and the stats of the transport.

    Args:
        path: The cassette.
        sent: What the server sends, encoded as ``encoding`` says.
        size: Bytes of each of its chunks, or ``None`` to replay.
        content_type: The header, ``None`` for none.
        encoding: The header ``Content-Encoding``, empty for none.
        url: What is asked.
        json: The body of the request, ``None`` for none.
        method: Its method.
        options: Further options of the transport.
    """

    def serve(request: httpx.Request) -> httpx.Response:
        assert sent is not None
        assert size is not None
        chunks = [sent[start : start + size] for start in range(0, len(sent), size)]
        return sse(chunks, content_type, **({"content-encoding": encoding} if encoding else {}))

    upstream = httpx.MockTransport(never().handler if size is None else serve)
    mode = "replay" if size is None else "record"
    transport = CassetteTransport(path, mode=mode, next_transport=upstream, **options)
    with httpx.Client(transport=transport) as client:
        with client.stream(method, url, json=json) as response:
            return b"".join(response.iter_raw()), transport.stats


def kind_of(response: dict[str, Any]) -> str:
    """Return what a stored response is."""
    return response["stored"] if "stored" in response else next(kind for kind in KINDS if kind in response)


def zip_up(body: bytes) -> bytes:
    return gzip.compress(body, mtime=0)
