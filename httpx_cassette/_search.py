"""What a miss is told about: the cassettes, and the recording that comes nearest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from ._call import Json
from ._canonical import NotJson, mask_text
from ._cassette import Cassette
from ._errors import CassetteError, CassetteMiss
from ._fingerprint import KEY_VERSION, Draft, key_document
from ._miss import CassetteFacts, MissFacts, miss
from ._nearest import Candidate, nearest
from ._recording import Recording
from ._request import read_target
from ._settings import Settings
from .dialects import by_name

__all__ = ["comparison_document", "find_miss"]


def find_miss(asked: dict[str, Json], fingerprint: str, dialect: str, settings: Settings) -> CassetteMiss:
    """Return the error of a miss.

    Args:
        asked: The key document of the call before long strings became digests.
        fingerprint: Its key, 64 hex digits.
        dialect: The wire format that was recognised.
        settings: The options of the transport.
    """
    found = nearest(asked, _candidates(settings))
    return miss(
        MissFacts(
            method=str(asked["method"]),
            url=str(asked["url"]),
            dialect=dialect,
            model=_model(asked),
            fingerprint=fingerprint,
            cassettes=tuple(_facts(cassette) for cassette in settings.shelf.cassettes),
            asked=asked,
            mask=mask_text,
            nearest=found,
            argv=tuple(settings.redaction.text(word) for word in sys.orig_argv),
            ignore=tuple(settings.policy.ignore),
            masks=settings.policy.masks,
            key_version=KEY_VERSION,
        )
    )


def _model(document: dict[str, Json]) -> str | None:
    body = document.get("body")
    members = body.get("json") if isinstance(body, dict) else None
    model = members.get("model") if isinstance(members, dict) else None
    return model if isinstance(model, str) else None


def _facts(cassette: Cassette) -> CassetteFacts:
    if not cassette.exists:
        return CassetteFacts(cassette.path, None)
    return CassetteFacts(
        path=cassette.path,
        recordings=len(cassette),
        damaged=tuple(sorted(damage.number for damage in cassette.damage)),
        other_versions=dict(cassette.other_versions),
    )


def _candidates(settings: Settings) -> Iterator[Candidate]:
    for recording in settings.shelf.newest_first():
        try:
            document = comparison_document(recording, settings)
        except (CassetteError, NotJson, KeyError, TypeError, ValueError, AssertionError):
            continue  # Sealed, and yet no request that can be compared: nothing is nearest to it.
        where = f"{os.fspath(recording.path)}:{recording.number}"
        yield Candidate(where, recording.number, recording.at, document)


def comparison_document(recording: Recording, settings: Settings) -> dict[str, Json]:
    """Return the key document of a recording under the options in force, before long strings became digests."""
    request = recording.request
    host = read_target(str(request["url"]), settings.redaction).host
    policy = recording.policy
    prompt_files = policy.get("prompt_files")
    document = key_document(
        Draft(request, by_name(recording.dialect), settings.policy, host),
        prompt_files if isinstance(prompt_files, dict) else None,
    )
    if "extra" in policy or "extra" in document:
        document["extra"] = policy.get("extra", {})
    return document
