"""What a provider's wire format is, as far as keys, guards and streams are concerned.

A dialect is tables; this module says which ones and applies none of them.
The rules that interpret them live in ``_fingerprint.py`` and ``_rules.py`` (keys) and in ``_script.py``
(streams), so that a new format is a new table and not new code.
Nothing here knows about transports, files or other dialects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from .._call import Json
from .._paths import Paths

if TYPE_CHECKING:
    from ._reading import StreamTable

__all__ = ["Dialect", "Endpoint", "Folds", "Pieces", "SystemPrompt", "unasked"]

NO_PATHS = Paths(())

#: What ``isinstance`` takes.
Types: TypeAlias = "type | tuple[type, ...]"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a wire format is spoken, on any host, and what a call holds there.

    Args:
        path: How the path ends, a regular expression: ``/chat/completions``.
        has: Members that the body has, and of which type; ``object`` is any.
        has_one: Members of which the body has one or more; none is no condition.
        has_body: Whether there is a body at all; without one, nothing is said about it.
        wants_stream: Whether a stream is asked for here, whatever the body says; ``None`` where that says.
        streams_by_default: Whether a body that does not say asks for one.
        has_binary_streams: Whether a stream comes in AWS's binary messages.
    """

    path: str
    has: Mapping[str, Types] = field(default_factory=dict)
    has_one: Mapping[str, Types] = field(default_factory=dict)
    has_body: bool = True
    wants_stream: bool | None = None
    streams_by_default: bool = False
    has_binary_streams: bool = False

    def is_at(self, path: str) -> bool:
        """Tell whether the path of a URL leads here."""
        return re.search(rf"(?:{self.path})\Z", path) is not None

    def fits(self, body: Json) -> bool:
        """Tell whether a body, ``None`` where there is none, is one of those that are sent here."""
        if not isinstance(body, dict):
            return body is None and not self.has_body
        for name, types in self.has.items():
            if name not in body or not isinstance(body[name], types):
                return False
        return self.has_body and (not self.has_one or self._has_one(body))

    def _has_one(self, body: dict[str, Json]) -> bool:
        return any(name in body and isinstance(body[name], types) for name, types in self.has_one.items())


@dataclass(frozen=True, slots=True)
class Folds:
    """Ways of writing a request that the provider documents as the same request.

    Args:
        defaults: Member of the body -> documented default; a member equal to it is dropped.
        only_with: Member -> member that must be present for the default to mean anything
            (``parallel_tool_calls`` means nothing without ``tools``).
        below: The same further down: path of an object -> its members' defaults.
        null: Members of the body that are absent when ``null``.
        empty: Members of the body that are absent when ``null``, ``[]`` or ``{}``.
        null_below: Paths of members further down that are absent when ``null``.
        empty_below: Paths of members further down that are absent when ``null``, ``[]`` or ``{}``.
        single_text: Paths of lists that equal their text when they hold exactly one ``{type, text}``.
        text_part: The ``type`` of such a part.
        sampling: Members whose default a server may choose per model.
        decides_sampling: Tells whether the server at a host is documented to do so.
        is_own_host: Tells whether a host is the provider's, whose documentation the defaults come from.
    """

    defaults: Mapping[str, Json] = field(default_factory=dict)
    only_with: Mapping[str, str] = field(default_factory=dict)
    below: tuple[tuple[Paths, Mapping[str, Json]], ...] = ()
    null: frozenset[str] = frozenset()
    empty: frozenset[str] = frozenset()
    null_below: Paths = NO_PATHS
    empty_below: Paths = NO_PATHS
    single_text: Paths = NO_PATHS
    text_part: str = "text"
    sampling: frozenset[str] = frozenset()
    decides_sampling: Callable[[str], bool] = lambda host: False
    is_own_host: Callable[[str], bool] = lambda host: True


@dataclass(frozen=True, slots=True)
class Pieces:
    """How clients send a streamed answer back: in the pieces in which it came, one turn for each event.

    Where a stream was cut is nothing that a key may know, so the pieces are one again before anything else is
    done: turns that follow one another, and in them texts that do.

    Args:
        turns: The member that lists the turns of the conversation.
        roles: The roles of the answers.
        parts: The member that lists the parts of a turn.
        ends: Members of a part that end its text: a signature.
    """

    turns: str
    roles: frozenset[str]
    parts: str
    ends: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """Where the system prompt of a chat call lives.

    Args:
        place: The place in words, for the error.
        missing: Given the body and whether any position will do, returns ``None`` when a system prompt that
            is not blank stands there, else what was found instead.
        has_positions: Whether it may stand at a later position, among the messages.
    """

    place: str
    missing: Callable[[dict[str, Json], bool], str | None]
    has_positions: bool = False


def unasked(answers: Paths, calls: Paths) -> Callable[[Json], frozenset[Json]]:
    """Return what finds the ids that are answered in a body and not asked: only the server has their calls.

    Args:
        answers: Where an id names a call that is answered.
        calls: Where a call has its id.
    """

    def find(body: Json) -> frozenset[Json]:
        named, asked = (
            {container[step] for container, step in paths.places(body) if isinstance(container[step], str)}  # type: ignore[index]  # the step is the container's
            for paths in (answers, calls)
        )
        return frozenset(named - asked)

    return find


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One wire format. Each is one object, equal to itself alone.

    Args:
        name: As it stands in recordings and reports: ``openai-chat``.
        endpoints: Where it is spoken.
        text: Paths of conversational text, whose trailing blanks mean nothing.
        turns: The members that may list the turns of the conversation. A last turn of
            ``prefill_roles`` is a prefill: the model goes on after its last character, so its blanks mean
            something.
        prefill_roles: Roles whose last turn is a prefill.
        signed: Members of a part that say that its text must come back as it went: it is not stripped.
        pieces: How clients send streamed answers back in pieces, or ``None`` when they join them.
        folds: Which ways of writing a request are one.
        references: Paths of ids that only tie a call to its result; without ``**``, whose places come in the
            order of members.
        held: Finds in a body those ids at ``references`` that name what only the server has, and so are
            content: two of them are two calls.
        media: Paths of base64 that is stored as its digest. Data URLs are found without a path.
        credentials: Paths of members that hold a credential for somebody else, such as a server of tools:
            neither stored nor in the key, as the headers that hold one are not.
        opaque: Paths of what a server signed or encrypted and wants back to the byte: not redacted.
        answer_opaque: The same in a whole answer; of a stream the table says where.
        system: Where the system prompt lives, or ``None`` for calls that have none.
        stream: How its streams are assembled and cut, or ``None`` when they are stored verbatim.
        other_streams: The same for other ways of dividing them into events.
        finish: Finds the finish reason of a whole answer; a list when there are several choices.
        is_failure: Tells whether a whole answer with a good status is an error all the same.
    """

    name: str
    endpoints: tuple[Endpoint, ...] = ()
    text: Paths = NO_PATHS
    turns: tuple[str, ...] = ()
    prefill_roles: frozenset[str] = frozenset()
    signed: frozenset[str] = frozenset()
    pieces: Pieces | None = None
    folds: Folds = Folds()
    references: Paths = NO_PATHS
    held: Callable[[Json], Collection[Json]] = lambda body: ()
    media: Paths = NO_PATHS
    credentials: Paths = NO_PATHS
    opaque: Paths = NO_PATHS
    answer_opaque: Paths = NO_PATHS
    system: SystemPrompt | None = None
    stream: StreamTable | None = None
    other_streams: tuple[StreamTable, ...] = ()
    finish: Callable[[Json], Json] = lambda answer: None
    is_failure: Callable[[Json], bool] = lambda answer: False

    def wants_stream(self, path: str, body: Json) -> bool:
        """Tell whether a call of this format asks for a stream."""
        if not isinstance(body, dict):
            return False
        here = [endpoint for endpoint in self.endpoints if endpoint.is_at(path)]
        said = [endpoint.wants_stream for endpoint in here]
        if said and None not in said:
            return True in said
        asked = body.get("stream")
        return any(endpoint.streams_by_default for endpoint in here) if asked is None else asked is True

    def has_binary_streams(self, path: str) -> bool:
        """Tell whether a stream that is asked for at a path comes in binary messages."""
        return any(endpoint.has_binary_streams and endpoint.is_at(path) for endpoint in self.endpoints)

    def stream_in(self, framing: str) -> StreamTable | None:
        """Return how its streams of a framing are assembled and cut, if it has any."""
        for table in (self.stream, *self.other_streams):
            if table is not None and table.framing == framing:
                return table
        return None
