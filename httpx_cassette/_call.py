"""One HTTP request, and the head of a real answer, as plain data.

Nothing here knows about httpx, files or providers.
Every other module reads a call through this type, so that the decision about a call can be tested
with plain values.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

__all__ = ["Call", "Json", "LiveHead"]

#: A value that JSON can hold, as ``orjson.loads`` returns it.
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Call(NamedTuple):
    """One HTTP request: what is keyed, looked up and recorded.

    A named tuple rather than a frozen dataclass: one is built for every request, and it costs a
    third of what a frozen dataclass costs.

    Args:
        method: The HTTP method in upper case.
        url: The absolute URL as the client built it, with userinfo, query and fragment.
        headers: Pairs of raw name and value, in the order sent, repeats kept.
        body: The body bytes as sent, before any content encoding is undone.
    """

    method: str
    url: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes

    def header(self, name: bytes) -> str | None:
        """Return the values of a header joined with ``", "``, or ``None`` when it was not sent.

        Args:
            name: The name in lower case.
        """
        found = [value for sent, value in self.headers if sent.lower() == name]
        return b", ".join(found).decode("latin-1") if found else None


class LiveHead(NamedTuple):
    """What comes before the body of a real answer.

    Args:
        status: The status code.
        headers: Raw name and value of every header.
    """

    status: int
    headers: tuple[tuple[bytes, bytes], ...]

    def header(self, name: bytes) -> str:
        """Return a header, empty where it was not sent; the name in lower case."""
        return ", ".join(value.decode("latin-1") for sent, value in self.headers if sent.lower() == name)
