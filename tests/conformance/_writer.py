"""The judge of writer: the openai SDK, because the format is OpenAI's at another path."""

from __future__ import annotations

from dataclasses import replace

import openai

from ._library import http
from ._openai import make_openai
from ._openai_chat import RULES, OpenAIChatJudge

__all__ = ["WriterJudge"]

_COPIES = frozenset(path.replace("].delta", "].message") for path in RULES.texts)


class WriterJudge(OpenAIChatJudge):
    """Lets ``openai.OpenAI`` read the answers of one exchange, and ask what comes next.

    Args:
        exchange: The exchange.
    """

    rules = replace(RULES, texts=RULES.texts | _COPIES, totals={}, sequences={})

    def _client(self, transport: http.BaseTransport) -> openai.OpenAI:
        def carry(request: http.Request) -> http.Response:
            headers = {"content-type": "application/json"}
            return transport.handle_request(
                http.Request(request.method, self._exchange.url, headers=headers, content=request.content)
            )

        return make_openai(self._exchange, "/chat", http.MockTransport(carry))
