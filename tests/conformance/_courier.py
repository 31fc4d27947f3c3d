"""The way from an SDK that is built on httpx to the transport under test, of whichever library that is.

The request of a recorded exchange is not always the SDK's to make (most were made by others): a courier sends
it in place of the one that the SDK makes, and hands the answer over. Knows no wire format.
"""

from __future__ import annotations

import httpx

from ._exchanges import Exchange
from ._library import http

__all__ = ["Courier", "Keeper"]


class Courier(httpx.BaseTransport):
    """Sends the recorded request whatever is asked.

    Args:
        transport: What records and replays.
        exchange: The exchange.
    """

    def __init__(self, transport: http.BaseTransport, exchange: Exchange) -> None:
        self._transport = transport
        self.exchange = exchange

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request of the SDK."""
        exchange = self.exchange
        sent = http.Request(exchange.method, exchange.url, json=exchange.body)
        answer = self._transport.handle_request(sent)
        names = ("content-type", "content-encoding")
        headers = {name: answer.headers[name] for name in names if name in answer.headers}
        return httpx.Response(answer.status_code, headers=headers, content=answer.iter_raw())


class Keeper(httpx.BaseTransport):
    """Keeps what is asked and sends nothing.

    Args:
        answer: What it says to everything.
    """

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self._asked: httpx.Request | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a request of the SDK."""
        self._asked = request
        return httpx.Response(200, json=self._answer)

    @property
    def asked(self) -> http.Request:
        """The request, as one of the library under test."""
        assert self._asked is not None
        return http.Request(
            self._asked.method,
            str(self._asked.url),
            headers={"content-type": "application/json"},
            content=self._asked.content,
        )
