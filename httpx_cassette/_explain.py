"""How the key of a call comes about: what was hashed, and what each rule changed.

An explanation is made of the redacted request: where something was redacted it says so, never what.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ._call import Call, Json
from ._canonical import canonical_bytes
from ._difference import Change, Missing, differences
from ._digests import digest_long_strings, is_digest
from ._excerpt import cut, show_value
from ._fingerprint import KEY_VERSION, RULES, Draft, assemble_document, hash_document
from ._request import Reading, join_answers, read_call, stored_request
from ._settings import Settings
from ._url import read_target
from .dialects import recognise

__all__ = ["Derivation", "Explanation", "RuleEffect", "derive", "derive_stored", "explain"]


@dataclass(frozen=True, slots=True)
class RuleEffect:
    """What one rule changed.

    Args:
        rule: The name of the rule.
        changes: One line for each place it changed.
    """

    rule: str
    changes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The derivation of a key; ``print`` shows all of it.

    Args:
        fingerprint: The key, 64 hex digits.
        dialect: The wire format that was recognised.
        key_document: What is hashed, as JSON.
        canonical: The bytes that are hashed, after ``httpx-cassette key 1`` and a newline.
        rules: Every rule in order, with what it changed.
    """

    fingerprint: str
    dialect: str
    key_document: dict[str, Json]
    canonical: bytes
    rules: tuple[RuleEffect, ...]

    def __str__(self) -> str:
        lines = [f"fingerprint  {self.fingerprint} (key version {KEY_VERSION}, dialect {self.dialect})"]
        for effect in self.rules:
            first, *more = effect.changes or ("nothing changed",)
            lines.append(f"  {effect.rule:<10} {first}")
            lines += [f"  {'':<10} {change}" for change in more]
        # The standard library, because it takes any integer; escapes, because a terminal takes no surrogate.
        shown = json.dumps(self.key_document, indent=2, sort_keys=True)
        return "\n".join([*lines, "key document", shown])


class Derivation(NamedTuple):
    """How a key comes about, and what is compared with recordings where there is none of that key.

    Args:
        explanation: The derivation.
        compared: The key document before long strings became digests.
    """

    explanation: Explanation
    compared: dict[str, Json]


def explain(call: Call, settings: Settings) -> Explanation:
    """Return the derivation of a call's key.

    Args:
        call: The call.
        settings: The options in force.

    Raises:
        CassetteError: A prompt file cannot be read.
    """
    return derive(call, settings).explanation


def derive(call: Call, settings: Settings) -> Derivation:
    """Return the derivation of a call's key, and what is compared; see :func:`explain`."""
    reading = read_call(call, settings.redaction)
    dialect = recognise(reading.target.path, reading.body if reading.kind == "json" else None)
    policy = settings.policy
    effects: list[RuleEffect] = []
    if dialect.pieces is not None:
        sent = copy.deepcopy(reading.body)
        join_answers(reading.body, dialect.pieces)
        effects.append(RuleEffect("join", tuple(_lines(differences(sent, reading.body)))))
    sent = copy.deepcopy(reading.body)
    request, _ = stored_request(reading, settings.redaction, dialect, policy.key_headers)
    draft = Draft(request, dialect, policy, reading.target.host)
    effects += _effects_of_storing(sent, request, reading)
    return _derive(draft, settings, effects, reading.call.url)


def derive_stored(request: dict[str, Json], settings: Settings) -> Derivation:
    """Return the derivation of the key of a request as it is stored: redacted, media as digests.

    Args:
        request: The request; it is used up.
        settings: The options in force.

    Raises:
        CassetteError: A prompt file cannot be read.
        Exception: One of ``INCOMPARABLE``: it is no request.
    """
    target = read_target(str(request["url"]), settings.redaction)
    dialect = recognise(target.path, request.get("json"))
    draft = Draft(request, dialect, settings.policy, target.host)
    return _derive(draft, settings, [], str(request["url"]))


def _derive(draft: Draft, settings: Settings, effects: list[RuleEffect], sent_url: str) -> Derivation:
    request = dict(draft.request)
    for name, rule in RULES:
        before = copy.deepcopy(draft.request)
        rule(draft)
        effects.append(RuleEffect(name, tuple(_lines(differences(before, draft.request)))))
    document = assemble_document(draft, settings.prompt_files.digests())
    digested = digest_long_strings(copy.deepcopy(document))
    assert isinstance(digested, dict)
    effects.append(RuleEffect("digest", tuple(_lines(differences(document, digested)))))
    headers = differences(request.get("headers", {}), document.get("headers", {}))
    effects[:0] = [
        RuleEffect("url", _url_lines(sent_url, str(request["url"]), document)),
        RuleEffect("headers", tuple(_lines(headers))),
    ]
    explanation = Explanation(
        fingerprint=hash_document(copy.deepcopy(digested)).hex(),
        dialect=draft.dialect.name,
        key_document=digested,
        canonical=canonical_bytes(digested),
        rules=tuple(effects),
    )
    return Derivation(explanation, document)


def _url_lines(sent: str, stored: str, document: dict[str, Json]) -> tuple[str, ...]:
    # The URL as sent is not shown: it may hold a password.
    if document["url"] == sent:
        return ()
    return (f"{show_value(stored)} -> {show_value(document['url'])}",)


def _effects_of_storing(sent: Json, request: dict[str, Json], reading: Reading) -> list[RuleEffect]:
    """Return what was redacted, and which media became digests; of what was there before, nothing."""
    changes = differences({reading.kind: sent}, {reading.kind: request.get(reading.kind)})
    redacted: list[str] = []
    media: list[str] = []
    removed = 0
    for change in changes:
        if isinstance(change.new, Missing):
            removed += reading.kind == "form"  # A member of JSON is there again, under its redacted name.
        else:
            line = f"{_path(change)} is now {show_value(change.new)}"
            (media if is_digest(change.new) else redacted).append(line)
    if removed:
        redacted.append(f"{removed} fields left out, whose names say that they are secret")
    return [RuleEffect("redact", tuple(redacted)), RuleEffect("media", tuple(media))]


def _lines(changes: Iterable[Change]) -> Iterable[str]:
    for change in changes:
        old, new = change.old, change.new
        if isinstance(new, Missing):
            yield f"{_path(change)} left out: {show_value(old)}"
        elif isinstance(old, Missing):
            yield f"{_path(change)} added: {show_value(new)}"
        else:
            yield f"{_path(change)} {show_value(old)} -> {show_value(new)}"


def _path(change: Change) -> str:
    return cut(change.path.removeprefix("body.").removeprefix("json."), 160)
