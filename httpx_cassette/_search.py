"""What a miss is told about: the cassettes, and the recording that comes nearest."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from . import _ledger
from ._call import Call, Json
from ._cassette import Cassette
from ._errors import CassetteError, CassetteMiss
from ._fingerprint import KEY_VERSION
from ._masking import mask_text
from ._miss import CassetteFacts, MissFacts, miss
from ._nearest import Candidate, nearest
from ._recording import INCOMPARABLE, Recording
from ._settings import Settings
from ._stored_key import document_of
from ._tripwire import Tripwire
from .dialects import by_name, is_known

__all__ = ["Candidates", "comparison_document", "find_miss"]


def find_miss(
    asked: dict[str, Json], call: Call, fingerprint: str, dialect: str, settings: Settings
) -> CassetteMiss:
    """Return the error of a miss. A recording that cannot be compared changes nothing about it.

    Args:
        asked: The key document of the call before long strings became digests.
        call: The call as it was sent, for the credentials that a report must not show.
        fingerprint: Its key, 64 hex digits.
        dialect: The wire format that was recognised.
        settings: The options of the transport.
    """
    candidates = Candidates(settings)
    notes: tuple[str, ...] = ()
    try:
        found = nearest(asked, candidates)
    except Exception as error:  # A miss is a miss: an ordinary exception would be retried or swallowed.
        found, notes = None, (f"the nearest recording was not found: {type(error).__name__}",)
    notes += tuple(
        f"recordings of the dialect {name!r} are there, which is not registered in this process; import the "
        "module that calls httpx_cassette.dialects.register"
        for name in sorted(candidates.unknown_dialects)
    )
    text = _last_text(asked)
    facts = MissFacts(
        method=str(asked["method"]),
        url=str(asked["url"]),
        dialect=dialect,
        model=_model(asked),
        fingerprint=fingerprint,
        cassettes=tuple(
            _facts(cassette, candidates.under_other_policy) for cassette in settings.shelf.cassettes
        ),
        asked=asked,
        mask=mask_text,
        nearest=found,
        words=" ".join(text[: 4 * _WORDS].split())[:_WORDS],
        argv=tuple(settings.redaction.text(word) for word in sys.orig_argv),
        command=tuple(settings.redaction.text(word) for word in _ledger.recording_command()),
        ignore=tuple(settings.policy.ignore),
        masks=settings.policy.masks,
        key_version=KEY_VERSION,
        is_mode_given=settings.is_mode_given,
        refusal=settings.allowed.refusal if settings.allowed is not None else None,
        notes=notes,
    )
    made = miss(facts)
    # Of no known shape, and yet a credential: the call's own, or one of the environment.
    shown = Tripwire(call, os.environ).find(f"{made.message}\n{text}".encode("utf-8", "surrogatepass"))
    if shown is None:
        return made
    note = f"the difference and the command are not shown, because {shown} stands in them"
    return miss(replace(facts, nearest=None, words="", argv=(), command=(), model=None, notes=(*notes, note)))


def _model(document: dict[str, Json]) -> str | None:
    body = document.get("body")
    members = body.get("json") if isinstance(body, dict) else None
    model = members.get("model") if isinstance(members, dict) else None
    return model if isinstance(model, str) else None


#: Where a body of any format says what is asked, and where in it the text stands.
_ASKED = ("messages", "contents", "input", "inputs", "prompt", "message", "query")
_TEXT = ("content", "parts", "text")

#: Characters of it that are kept.
_WORDS = 80


def _last_text(document: dict[str, Json]) -> str:
    """Return the last text of a call: the question, or the result of a tool."""
    body = document.get("body")
    members = body.get("json") if isinstance(body, dict) else None
    if not isinstance(members, dict):
        return ""
    texts = (text for name in _ASKED for text in _texts(members.get(name), reverse=True))
    return next(texts, "")


def _texts(value: Json, reverse: bool = False) -> Iterator[str]:
    """Yield the texts of a member: of several messages the last first, of one its parts in their order."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif isinstance(value, list):
        for each in reversed(value) if reverse else value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name in _TEXT:
            yield from _texts(value.get(name))


def _facts(cassette: Cassette, under_other_policy: Mapping[str, int]) -> CassetteFacts:
    is_writable = _is_writable(cassette.real_path)
    if not cassette.exists:
        folder = None if os.path.isabs(cassette.path) else os.path.dirname(cassette.real_path)
        return CassetteFacts(cassette.path, None, folder=folder, is_writable=is_writable)
    try:
        return CassetteFacts(
            path=cassette.path,
            recordings=len(cassette),
            damaged=tuple(sorted(damage.number for damage in cassette.damage)),
            other_versions=dict(cassette.other_versions),
            other_policies=under_other_policy.get(cassette.path, 0),
            is_writable=is_writable,
        )
    except CassetteError:  # Cut or replaced in this moment; that it is there is all that is known.
        return CassetteFacts(cassette.path, 0)


def _is_writable(path: str) -> bool:
    """Tell whether recording could write a file, or make it and the folders that it lacks; makes nothing."""
    while not os.path.exists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return os.access(path, os.W_OK)


class Candidates:
    """The recordings to compare with, newest first; notes on the way what of them is not as it is here.

    Args:
        settings: The options in force.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._policy = _keying_policy(settings.policy_on_line())
        self.under_other_policy: Counter[str] = Counter()
        self.unknown_dialects: set[str] = set()

    def __iter__(self) -> Iterator[Candidate]:
        try:
            for recording in self._settings.shelf.newest_first():
                candidate = self._read(recording)
                if candidate is not None:
                    yield candidate
        except CassetteError:
            return  # The file was cut or replaced while it was read: what was seen has to do.

    def _read(self, recording: Recording) -> Candidate | None:
        try:
            document = comparison_document(recording, self._settings)
            if not is_known(recording.dialect):
                self.unknown_dialects.add(recording.dialect)
            if self._policy != _keying_policy(recording.policy):
                self.under_other_policy[recording.path] += 1
        except INCOMPARABLE:
            return None
        where = f"{os.fspath(recording.path)}:{recording.number}"
        return Candidate(where, recording.number, recording.at, document)


def _keying_policy(policy: Mapping[str, Json]) -> dict[str, Json]:
    """Return a policy without what enters the key by its content, and shows as a difference."""
    return {name: value for name, value in policy.items() if name not in ("prompt_files", "extra")}


def comparison_document(recording: Recording, settings: Settings) -> dict[str, Json]:
    """Return the key document of a recording under the options in force; long strings are no digests yet."""
    policy = recording.policy
    document = document_of(recording, settings.policy, by_name(recording.dialect))
    if "extra" in policy or "extra" in document:
        document["extra"] = policy.get("extra", {})
    return document
