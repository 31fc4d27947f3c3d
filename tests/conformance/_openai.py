"""The openai SDK that is installed, turned to the server of one exchange. Knows no wire format."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import openai

from ._exchanges import Exchange
from ._library import IS_HTTPX2, http

__all__ = ["make_openai"]


def make_openai(exchange: Exchange, ending: str, transport: http.BaseTransport) -> openai.OpenAI:
    """Return a client that calls what an exchange called.

    Args:
        exchange: The exchange.
        ending: What the SDK itself adds to its base URL.
        transport: What the client goes through.
    """
    parts = urlsplit(exchange.url)
    path = parts.path.removesuffix(ending)
    make_client = openai.DefaultHttpx2Client if IS_HTTPX2 else openai.DefaultHttpxClient
    return openai.OpenAI(
        api_key="none",
        base_url=f"{parts.scheme}://{parts.netloc}{path}",
        default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        max_retries=0,
        http_client=make_client(transport=transport),
    )
