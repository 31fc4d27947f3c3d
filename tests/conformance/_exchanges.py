"""A folder of recorded exchanges, read. Knows the file format and nothing of what the exchanges say."""

from __future__ import annotations

import base64
import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Exchange", "NotExchanges", "find_files", "read_exchanges"]


class NotExchanges(Exception):
    """A folder or a file that does not hold recorded exchanges."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the answer that it got.

    Args:
        id: The short stable name.
        method: The HTTP method.
        url: The URL.
        body: The parsed JSON body of the request; bytes where it is not JSON.
        status: The status of the answer.
        headers: Its headers.
        answer: Its body, byte for byte.
        content_type: That of the request, empty where it is not known.
        tags: What is known about it.
    """

    id: str
    method: str
    url: str
    body: Any
    status: int
    headers: dict[str, str]
    answer: bytes
    tags: frozenset[str]
    content_type: str = ""

    def sent(self) -> tuple[dict[str, str], Iterator[bytes]]:
        """Return headers and body as they went over the wire: what came compressed is compressed again."""
        if "was-gzip" in self.tags:
            return {**self.headers, "content-encoding": "gzip"}, _chunks(gzip.compress(self.answer), self.id)
        return self.headers, _chunks(self.answer, self.id)


def _chunks(body: bytes, seed: str) -> Iterator[bytes]:
    """Yield a body as networks deliver it, in pieces that respect nothing; the same in every run."""
    sizes = random.Random(seed)
    start = 0
    while start < len(body):
        # Up to an Ethernet frame; a quarter are a few bytes, which end within a line or a character.
        size = sizes.randint(1, 9) if sizes.random() < 0.25 else sizes.randint(10, 1448)
        yield body[start : start + size]
        start += size


def find_files(folder: Path, pattern: str) -> list[Path]:
    """Return the exchange files of a folder, by name.

    Raises:
        NotExchanges: The folder does not exist or has none.
    """
    if not folder.is_dir():
        raise NotExchanges(f"{folder} is not a folder; name one that holds files of recorded exchanges")
    found = sorted(path for path in folder.glob(pattern) if path.suffix == ".jsonl")
    if not found:
        raise NotExchanges(f"{folder} holds no file {pattern}")
    return found


def read_exchanges(path: Path) -> list[Exchange]:
    """Return the exchanges of one file.

    Raises:
        NotExchanges: A line of it is not one.
    """
    exchanges = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                exchanges.append(_read(json.loads(line)))
            except (ValueError, TypeError, KeyError) as error:
                reason = f"it has no {error}" if isinstance(error, KeyError) else error
                raise NotExchanges(f"{path}:{number} is not a recorded exchange: {reason}") from None
    return exchanges


def _read(line: dict[str, Any]) -> Exchange:
    request, response = line["request"], line["response"]
    body = request.get("body")
    if "body_b64" in request:
        body = base64.b64decode(request["body_b64"])
    if "body_b64" in response:
        answer = base64.b64decode(response["body_b64"])
    else:
        answer = response["body_text"].encode()
    return Exchange(
        id=line["id"],
        method=request["method"],
        url=request["url"],
        body=body,
        status=response["status"],
        headers=response["headers"],
        answer=answer,
        tags=frozenset(line["tags"]),
        content_type=request.get("headers", {}).get("content-type", ""),
    )
