"""The client library on which the SDKs of the judges are built: httpx2, or httpx where that is not installed.

The newest SDKs run on httpx2 and the old ones on httpx; an environment holds one set or the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["IS_HTTPX2", "CassetteTransport", "http"]

if TYPE_CHECKING:
    import httpx2 as http

    from httpx_cassette.httpx2 import CassetteTransport

    IS_HTTPX2 = True
else:
    try:
        import httpx2 as http

        from httpx_cassette.httpx2 import CassetteTransport

        IS_HTTPX2 = True
    except ImportError:
        import httpx as http

        from httpx_cassette import CassetteTransport

        IS_HTTPX2 = False
