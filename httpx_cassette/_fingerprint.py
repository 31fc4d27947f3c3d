r"""The key of a call: what is hashed, and how to see it.

``fingerprint = sha256(b"httpx-cassette key 1\n" + canonical bytes of the key document)``

The key document is ``{"method", "url", "headers"?, "body"?, "prompt_files"?, "extra"?}``, computed from the
request as it is stored. One function applies the rules for recording, replaying, explaining and verifying:
:func:`key_document`.
Nothing here knows about transports or cassettes, and no provider is named: a dialect is handed in.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ._call import Json
from ._canonical import canonical_key_bytes
from ._digests import escape_names
from ._masking import Masker
from ._paths import Paths
from ._policy import KeyPolicy
from ._request import KEY_HEADERS
from ._rules import fold_defaults, remove_places, rename_references, single_text, strip_places
from ._survey import BELOW, EMPTY, EVERYTHING, REFERENCE, SINGLE, TEXT, Survey, survey_for
from ._url import normal_url
from .dialects._blame import blame

if TYPE_CHECKING:
    from .dialects._dialect import Dialect

__all__ = ["KEY_VERSION", "RULES", "Draft", "Key", "assemble_document", "hash_document", "key_document"]

#: The version of the rules. A change of meaning is a new version, golden vectors and a changelog entry.
KEY_VERSION = 1

PREFIX = f"httpx-cassette key {KEY_VERSION}\n".encode()


class Key(NamedTuple):
    """The key of one call.

    Args:
        digest: The fingerprint, 32 bytes.
        folded: Members of the body that were sent and left out because they say what the default says.
    """

    digest: bytes
    folded: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """The fingerprint, 64 hex digits."""
        return self.digest.hex()


@dataclass(slots=True)
class Draft:
    """A stored request on its way to the key document; the rules change it in place.

    Args:
        request: The request as stored.
        dialect: The wire format of the call.
        policy: What the project changes.
        host: The host of the call in lower case.
        may_have_dollar: ``False`` where it is known that no member name begins with ``$``.
        folded: Members dropped because they say what the default says.
        occurs: What a survey found in the body; without one, everything there is to find.
    """

    request: dict[str, Json]
    dialect: Dialect
    policy: KeyPolicy
    host: str
    may_have_dollar: bool = True
    folded: list[str] = field(default_factory=list)
    occurs: int = EVERYTHING


# -- the rules -----------------------------------------------------------------------------------------


def apply_ignore(draft: Draft) -> None:
    """Remove what the policy ignores."""
    if draft.policy.ignore:
        remove_places(draft.request.get("json"), draft.policy.ignore_paths)


def apply_strip(draft: Draft) -> None:
    """Strip trailing blanks, line by line, in conversational text; not in a prefill."""
    body = draft.request.get("json")
    if draft.policy.strip and draft.occurs & TEXT:
        kept, signed = _containers_of_prefill(body, draft.dialect), draft.dialect.signed
        strip_places(
            place
            for place in draft.dialect.text.places(body)
            if id(place[0]) not in kept and not (signed and _is_signed(place[0], signed))
        )


def _is_signed(container: Json, signed: frozenset[str]) -> bool:
    return isinstance(container, dict) and not signed.isdisjoint(container)


def _is_prefill(turn: Json, dialect: Dialect) -> bool:
    role = turn.get("role") if isinstance(turn, dict) else None
    return isinstance(role, str) and role in dialect.prefill_roles


def _containers_of_prefill(body: Json, dialect: Dialect) -> set[int]:
    """Return the identities of a last turn that the model goes on writing, and of all containers in it."""
    if not isinstance(body, dict):
        return set()
    listed = [body[name] for name in dialect.turns if name in body]
    last_turns = [turns[-1] for turns in listed if isinstance(turns, list) and turns]
    found: list[Json] = [last for last in last_turns if _is_prefill(last, dialect)]
    for container in found:  # It grows while it is walked.
        if isinstance(container, (dict, list)):
            found += container.values() if isinstance(container, dict) else container
    return {id(container) for container in found if isinstance(container, (dict, list))}


def apply_masks(draft: Draft) -> None:
    """Replace what the policy masks, in string values; never in names of members, fields and parts."""
    if not draft.policy.mask_patterns:
        return
    masker = Masker(draft.policy.mask_patterns)
    for kind in ("json", "text"):
        if kind in draft.request:
            draft.request[kind] = masker.document(draft.request[kind])
    if "form" in draft.request:  # In the order of the key, or placeholders would be numbered otherwise.
        draft.request["form"] = _sorted_form(draft.request["form"])
    for pair in _items(draft.request.get("form")):
        assert isinstance(pair, list)
        pair[1] = masker.document(pair[1])
    for part in _items(draft.request.get("parts")):
        assert isinstance(part, dict)
        part.update({name: masker.document(part[name]) for name in ("filename", "text") if name in part})


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def apply_folds(draft: Draft) -> None:
    """Drop what says the same as nothing: documented defaults, nulls, empty members, one-part lists."""
    body, policy = draft.request.get("json"), draft.policy
    if not isinstance(body, dict) or policy.defaults is False:
        return
    if draft.occurs & (SINGLE | EMPTY | BELOW):
        _fold_below(body, draft)
    defaults = draft.dialect.folds.defaults if policy.defaults is True else policy.defaults
    for name, value in body.items():
        if not value or (name in defaults and value == defaults[name]):
            # Something may have to go; to look closer at every member of every call would cost more.
            _fold_members(body, defaults, draft)
            break


def _fold_below(body: dict[str, Json], draft: Draft) -> None:
    folds = draft.dialect.folds
    if draft.occurs & EMPTY:
        _drop_below(body, folds.null_below, lambda value: value is None)
        _drop_below(body, folds.empty_below, _is_empty)
    if draft.occurs & BELOW and draft.policy.defaults is True:
        for paths, defaults in folds.below:
            for container, step in paths.places(body):
                members = container[step]  # type: ignore[index]  # the step is the container's
                if isinstance(members, dict):
                    draft.folded += fold_defaults(members, defaults)
    # Last: a part whose other members have gone is one ``{type, text}``.
    for container, step in folds.single_text.places(body) if draft.occurs & SINGLE else ():
        container[step] = single_text(container[step], folds.text_part)  # type: ignore[index]  # as above


def _drop_below(body: dict[str, Json], paths: Paths, is_absent: Callable[[Json], bool]) -> None:
    for container, step in paths.places(body):
        # Two paths may name one place, which is gone the second time.
        if isinstance(container, dict) and step in container and is_absent(container[step]):
            del container[step]


def _fold_members(body: dict[str, Json], defaults: Mapping[str, Json], draft: Draft) -> None:
    folds, is_documented = draft.dialect.folds, draft.policy.defaults is True
    for name, value in [*body.items()]:
        if (value is None and name in folds.null) or (_is_empty(value) and name in folds.empty):
            del body[name]
    draft.folded += fold_defaults(
        body, defaults, lambda name: not is_documented or _has_default(name, body, draft)
    )


def _is_empty(value: Json) -> bool:
    return value is None or value == [] or value == {}


def _has_default(name: str, body: dict[str, Json], draft: Draft) -> bool:
    """Tell whether the documented default of a member holds for this call."""
    folds = draft.dialect.folds
    if name in folds.only_with and folds.only_with[name] not in body:
        return False
    # Without the host in the key, it must not decide about the key in this way either.
    if name not in folds.sampling:
        return True
    try:
        return draft.policy.host and not folds.decides_sampling(draft.host)
    except Exception as error:
        raise blame(error, draft.dialect.name) from None


def apply_rename(draft: Draft) -> None:
    """Rename the ids that only tie a call to its result."""
    if draft.occurs & REFERENCE:
        body, dialect = draft.request.get("json"), draft.dialect
        try:
            held = dialect.held(body)
        except Exception as error:
            raise blame(error, dialect.name) from None
        rename_references(dialect.references.places(body), held)


def apply_names(draft: Draft) -> None:
    """Escape member names that begin with ``$``: the digests of long strings need that space."""
    if draft.may_have_dollar and "json" in draft.request:
        draft.request["json"] = escape_names(draft.request["json"], reserved_only=False)


#: The rules of the key that change a body, in order, under the names that explanations use.
RULES: tuple[tuple[str, Callable[[Draft], None]], ...] = (
    ("ignore", apply_ignore),
    ("strip", apply_strip),
    ("mask", apply_masks),
    ("fold", apply_folds),
    ("rename", apply_rename),
    ("names", apply_names),
)
_AFTER_IGNORE = RULES[1:]


# -- the key document ----------------------------------------------------------------------------------


def key_document(draft: Draft, prompt_files: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Apply the rules and return the key document, before long strings become digests.

    Args:
        draft: The stored request. It is used up: its parts become parts of the document.
        prompt_files: Digest of every prompt file by name.
    """
    apply_ignore(draft)
    if "json" in draft.request:
        # After what is ignored is gone, because an element less can leave one or none; no other rule makes
        # work for a later one.
        draft.occurs = _survey_of(draft.dialect)(draft.request["json"])
    if draft.occurs or draft.may_have_dollar or not draft.policy.is_default:
        for _, rule in _AFTER_IGNORE:
            rule(draft)
    else:  # As most calls are: nothing occurs that the other rules work on.
        apply_folds(draft)
    return assemble_document(draft, prompt_files)


@cache
def _survey_of(dialect: Dialect) -> Survey:
    folds = dialect.folds
    below = [text for paths, _ in folds.below for text in paths.texts]
    return survey_for(
        [
            (TEXT, dialect.text.texts),
            (SINGLE, folds.single_text.texts),
            (EMPTY, folds.null_below.texts),
            (EMPTY, folds.empty_below.texts),
            (BELOW, below),
            (REFERENCE, dialect.references.texts),
        ]
    )


#: How a body that is not JSON can be stored; ``bytes`` with its ``encoding`` where that could not be undone.
_BODY_KINDS = ("text", "form", "parts", "bytes", "encoding")


def assemble_document(draft: Draft, prompt_files: Mapping[str, Json] | None = None) -> dict[str, Json]:
    """Return the key document of a draft as it stands."""
    request, policy = draft.request, draft.policy
    document: dict[str, Json] = {
        "method": request["method"],
        "url": normal_url(str(request["url"]), policy.host),
    }
    if "headers" in request:
        headers = _key_headers(request["headers"])
        if headers:
            document["headers"] = headers
    if "json" in request:
        document["body"] = {"json": request["json"]}
    elif body := {kind: request[kind] for kind in _BODY_KINDS if kind in request}:
        document["body"] = body
        if "form" in body:
            body["form"] = _sorted_form(body["form"])
    if prompt_files:
        document["prompt_files"] = dict(prompt_files)
    if policy.extra:
        extra = escape_names(copy.deepcopy(dict(policy.extra)), reserved_only=True)
        document["extra"] = escape_names(extra, reserved_only=False)
    return document


def _sorted_form(pairs: Json) -> Json:
    """Return form fields sorted by name, the order of repeats kept."""
    assert isinstance(pairs, list)
    return sorted(pairs, key=lambda pair: str(pair[0]))  # type: ignore[index]  # a pair is a list


def _key_headers(headers: Json) -> dict[str, Json]:
    """Return the headers of the key: lists of betas as sorted lists, none if empty; others as sent."""
    assert isinstance(headers, dict)
    kept: dict[str, Json] = {}
    for name, value in headers.items():
        if name not in KEY_HEADERS:
            kept[name] = value
        elif betas := sorted(filter(None, map(str.strip, str(value).split(",")))):
            kept[name] = list(betas)
    return kept


def hash_document(document: dict[str, Json]) -> bytes:
    """Return the fingerprint of a key document, 32 bytes. The document is used up."""
    return hashlib.sha256(PREFIX + canonical_key_bytes(document)).digest()
