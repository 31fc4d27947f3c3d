"""The transport for httpx2, which the current openai, anthropic, google-genai and mistralai SDKs use."""

from __future__ import annotations

try:
    import httpx2
except ImportError as error:
    raise ImportError(
        "httpx2 is not installed; it comes with: pip install 'httpx_cassette[httpx2]'. "
        "For an SDK that is built on httpx: from httpx_cassette import CassetteTransport"
    ) from error

from ._bodies import RecordingStream, ReplayStream
from ._errors import is_stop
from ._library import Library
from ._transport import Serving, describe

__all__ = ["CassetteTransport"]

__tracebackhide__ = is_stop


class _Httpx2ReplayStream(ReplayStream, httpx2.SyncByteStream, httpx2.AsyncByteStream):
    pass


class _Httpx2RecordingStream(RecordingStream, httpx2.SyncByteStream, httpx2.AsyncByteStream):
    pass


class CassetteTransport(Serving, httpx2.BaseTransport, httpx2.AsyncBaseTransport):  # noqa: D101 - below
    __doc__ = describe("httpx2")

    _library = Library(
        "httpx2",
        httpx2,
        _Httpx2ReplayStream,
        _Httpx2RecordingStream,
        "from httpx_cassette.httpx2 import CassetteTransport",
    )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx2.Response = self._driver.serve(request)
        return response

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request from the cassette, or as the mode says."""
        response: httpx2.Response = await self._driver.serve_async(request)
        return response
