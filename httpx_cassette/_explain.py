"""How the key of a call comes about: what was hashed, and what each rule changed."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import orjson

from ._call import Call, Json
from ._canonical import canonical_bytes, digest_long_strings
from ._difference import Missing, differences
from ._excerpt import show_value
from ._fingerprint import KEY_VERSION, RULES, Draft, assemble_document, hash_document
from ._request import read_call, stored_request
from ._settings import Settings
from .dialects import recognise

__all__ = ["Explanation", "RuleEffect", "explain"]


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
            lines.append(f"  {effect.rule:<10} {'nothing changed' if not effect.changes else effect.changes[0]}")
            lines += [f"  {'':<10} {change}" for change in effect.changes[1:]]
        shown = orjson.dumps(self.key_document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS, default=str)
        return "\n".join([*lines, "key document", shown.decode()])


def explain(call: Call, settings: Settings) -> Explanation:
    """Return the derivation of a call's key.

    Args:
        call: The call.
        settings: The options in force.

    Raises:
        CassetteError: A prompt file cannot be read.
    """
    reading = read_call(call, settings.redaction)
    dialect = recognise(reading.target.path, reading.body if reading.kind == "json" else None)
    sent = copy.deepcopy(reading.body)
    policy = settings.policy
    request, _ = stored_request(reading, settings.redaction, dialect.media, policy.key_headers)
    effects = [_effect("redact", {reading.kind: sent}, {reading.kind: request.get(reading.kind)})] if reading.kind else []
    draft = Draft(request, dialect, policy, reading.target.host)
    for name, rule in RULES:
        before = copy.deepcopy(draft.request)
        rule(draft)
        effects.append(_effect(name, before, draft.request))
    document = assemble_document(draft, settings.prompt_files.digests())
    digested = digest_long_strings(copy.deepcopy(document))
    effects.append(_effect("digest", document, digested))
    assert isinstance(digested, dict)
    canonical = canonical_bytes(digested)
    digest = hash_document(copy.deepcopy(digested))
    return Explanation(digest.hex(), dialect.name, digested, canonical, tuple(effects))


def _effect(rule: str, before: Json, after: Json) -> RuleEffect:
    lines = []
    for change in differences(before, after):
        path = change.path.removeprefix("json.")
        if isinstance(change.new, Missing):
            lines.append(f"{path} left out: {show_value(change.old)}")
        else:
            lines.append(f"{path} {'added' if isinstance(change.old, Missing) else show_value(change.old)} -> {show_value(change.new)}")
    return RuleEffect(rule, tuple(lines))
