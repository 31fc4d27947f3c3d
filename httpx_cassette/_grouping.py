"""Which recordings of a cassette differ in some fields only, so that their answers can be put side by side.

Two recordings belong together where their keys would be one without these fields: defaults, volatile ids and
trailing blanks tell them apart as little as they tell calls apart.
What stays in memory is a key and a name of each recording; nothing here knows how anything is shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ._call import Json
from ._exchange import Exchange
from ._opened import Recordings
from ._paths import Paths
from ._recording import INCOMPARABLE, Recording
from ._verification import recognised, recomputed_key

__all__ = ["Fields", "Variant", "groups"]

#: The field that stands beside the body.
_URL = "url"


class Variant(NamedTuple):
    """A recording of a group.

    Args:
        values: The fields in which it may differ; those that it does not have are left out.
        exchange: The recording.
    """

    values: dict[str, Json]
    exchange: Exchange


class Fields:
    """The fields in which recordings may differ.

    Args:
        names: Paths of the JSON body, and ``url``.

    Raises:
        OptionError: A path cannot be read.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._has_url = _URL in names
        self._names = [name for name in dict.fromkeys(names) if name != _URL]
        self._paths = [Paths([name]) for name in self._names]
        for paths in self._paths:
            paths.places({})  # Paths are read when they are first used.

    def values(self, exchange: Exchange) -> dict[str, Json]:
        """Return what stands in the fields of a recording; of several places a list."""
        found: dict[str, Json] = {}
        for name, paths in zip(self._names, self._paths, strict=True):
            places = paths.places(exchange.request.get("json"))
            listed: list[Json] = [container[step] for container, step in places]  # type: ignore[index]  # its own
            if listed:
                found[name] = listed[0] if len(listed) == 1 else listed
        if self._has_url:
            found[_URL] = str(exchange.request.get("url", ""))
        return found

    def rest(self, exchange: Exchange) -> bytes | None:
        """Return what is equal where recordings differ in nothing else; ``None`` where nobody can tell."""
        read = exchange.recording
        # The request is used up: it is read once more.
        again = Recording(read.line, read.path, read.number, read.head, read.real_path)
        try:
            request = again.members["request"]
            dialect = recognised(request)
            if self._has_url:
                request["url"] = ""
            return dialect.name.encode() + recomputed_key(again, dialect, self._names, request=request)
        except INCOMPARABLE:  # What it holds is no request, or its policy is none.
            return None


def groups(recordings: Recordings, fields: Fields) -> Iterator[list[Variant]]:
    """Yield recordings that differ in nothing but some fields, and in these; in the order of their lines.

    Those with the same values stand together. What another recording supersedes is left out.

    Args:
        recordings: The cassette.
        fields: The fields.

    Raises:
        CassetteDamaged: The file as a whole cannot be trusted.
    """
    members: dict[bytes, list[tuple[bytes, bytes, int]]] = {}
    for exchange in recordings:
        rest = None if exchange.superseded else fields.rest(exchange)
        if rest is not None:
            name = _digest(fields.values(exchange)), bytes.fromhex(exchange.fingerprint), exchange.sample
            members.setdefault(rest, []).append(name)
    for found in members.values():
        order = list(dict.fromkeys(value for value, _, _ in found))
        if len(order) > 1:
            found.sort(key=lambda each: order.index(each[0]))
            loaded = (_load(recordings, fingerprint, sample) for _, fingerprint, sample in found)
            yield [Variant(fields.values(exchange), exchange) for exchange in loaded]


def _digest(values: dict[str, Json]) -> bytes:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).digest()[:16]


def _load(recordings: Recordings, fingerprint: bytes, sample: int) -> Exchange:
    return next(each for each in recordings.current(fingerprint.hex()) if each.sample == sample)
