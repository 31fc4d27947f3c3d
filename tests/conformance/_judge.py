"""What a judge is: the SDK of one wire format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from ._library import http
from ._said import Rules, Said

__all__ = ["Judge", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """What an SDK makes of one answer.

    Args:
        document: Its final object as plain data, empty where it makes none.
        messages: What the SDK would send for each message of it, when the conversation goes on.
        raised: The name of what it raises.
    """

    document: dict[str, Any] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    raised: str | None = None

    @property
    def final(self) -> dict[str, Any]:
        """What is compared."""
        return {"raised": self.raised} if self.raised else self.document


class Judge(Protocol):
    """Lets an SDK make the calls of one exchange."""

    rules: Rules
    is_stream: bool

    def is_error(self, document: Any) -> bool:
        """Tell whether the document of a successful answer says that something failed."""

    def ask(self, transport: http.BaseTransport) -> Verdict:
        """Make the call and return what the SDK makes of the answer, a stream read to its end."""

    def normalise(self, verdict: Verdict, received: Said) -> Verdict:
        """Return a verdict without what the SDK makes of how a server divides its events.

        Args:
            verdict: The verdict; it may be changed.
            received: What the stream says as it was received.
        """

    def next_requests(self, verdict: Verdict) -> Iterator[http.Request]:
        """Yield requests with which the conversation can go on from a verdict."""
