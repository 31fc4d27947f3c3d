"""Where an answer ends, and how: for formats that say it at one place, which is most of them.

A stream that says it otherwise has a class of its own, with the members of :class:`StreamProgress`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from .._call import Json
from .._errors import OptionError
from .._parsing import is_same_json
from .._paths import Paths
from ._framing import Event
from ._reading import StreamProgress

__all__ = ["At", "Ends"]


@dataclass(frozen=True, slots=True)
class At:
    """Finds what stands at a path of an answer; for ``Dialect(finish=At("results[0].stop_reason"))``.

    Called with a parsed answer, it returns the value, a list where there are several, ``None`` where there is
    none; ``null`` is none.

    Args:
        path: Where it stands, as everywhere: ``choices[*].finish_reason``.

    Raises:
        OptionError: The path cannot be read.
    """

    path: str

    def __post_init__(self) -> None:
        _check_path("At", self.path)

    def __call__(self, answer: Json) -> Json:
        """Return what stands there."""
        found = _find(self.path, answer)
        return found[0] if len(found) == 1 else found or None


def _find(path: str, document: Json) -> list[Json]:
    places = cast("list[tuple[dict[str, Json], str]]", _read(path).places(document))
    return [holder[name] for holder, name in places if holder[name] is not None]


def _check_path(whose: str, path: object) -> None:
    if not isinstance(path, str):
        raise OptionError(f"{whose}({path!r}) is not understood; it takes a path, such as 'stop_reason'")
    _read(path)  # Now, not with the first answer.


@lru_cache(maxsize=256)
def _read(path: str) -> Paths:
    return Paths([path])


@dataclass(frozen=True, slots=True)
class Ends:
    """How a stream says that it is over; for ``StreamTable(progress=Ends(...))``.

    At least one of the first four must be said. Without ``marks``, ``events`` and ``members`` nothing comes
    behind the finish reason but the end of the body.

    Args:
        finish: The path of the finish reason in an event, such as ``choices[*].finish_reason``; that of one
            choice, as the stream counts as finished with the first.
        marks: Data that end a stream: ``("[DONE]",)``.
        events: Names of events that end it: ``("done",)``.
        members: Path -> the value with which it ends: ``{"done": True}``, ``{"type": "message_stop"}``; not
            ``None``, because ``null`` is nothing.
        unfinished: What stands at ``finish`` and finishes nothing, beside ``null`` and the empty text.
        error: Paths of what an event says of a failure, where that is neither empty nor false.
        failures: Names of events that say that it failed.

    Raises:
        OptionError: Nothing says that it is over, or only what never stands in a stream; or a path cannot be
            read.
    """

    finish: str = ""
    marks: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    members: Mapping[str, Json] = field(default_factory=dict, hash=False)
    unfinished: Collection[Json] = field(default=(), hash=False)
    error: tuple[str, ...] = ("error",)
    failures: tuple[str, ...] = ("error",)

    def __post_init__(self) -> None:
        for name in ("marks", "events", "error", "failures"):
            if not isinstance(getattr(self, name), tuple):
                raise OptionError(f"Ends({name}={getattr(self, name)!r}) is not understood; it takes a tuple")
        # The types say this; who writes a dialect need not have them checked.
        members: Any = self.members
        if not isinstance(members, Mapping) or any(last is None for last in members.values()):
            raise OptionError(
                f"Ends(members={members!r}) is not understood; it takes a mapping of paths to the values "
                "with which a stream ends, such as {'done': True}, and null is none"
            )
        unfinished: Any = self.unfinished
        if not isinstance(unfinished, Collection) or isinstance(unfinished, (str, Mapping)):
            raise OptionError(
                f"Ends(unfinished={unfinished!r}) is not understood; it takes a collection of values, such "
                "as ('in_progress',)"
            )
        if not (self.finish or self.marks or self.events or self.members):
            raise OptionError(
                "Ends() says nothing of how a stream ends; give it finish, marks, events or members"
            )
        for path in (*([] if self.finish == "" else [self.finish]), *self.members, *self.error):
            _check_path("Ends", path)

    def __call__(self) -> StreamProgress:
        """Return what watches one stream."""
        return _Progress(self)


class _Progress:
    """How far one stream has come."""

    awaits_more = False

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self.is_terminated = False
        self.error: str | None = None
        self.finish: Json = None

    @property
    def is_complete(self) -> bool:
        """It has its finish reason, or says that it is over."""
        return self.is_terminated or self.finish is not None

    def expect(self, request: Json) -> None:
        """Nothing in a request changes what ends the stream."""

    def observe(self, event: Event, value: Json) -> None:
        """Take note of one event and its parsed data."""
        ends = self._ends
        if event.data in ends.marks or event.event in ends.events:
            self.is_terminated = True
        if event.event in ends.failures:
            self.error = self.error or event.data or event.event
        if not isinstance(value, dict):
            return
        for path, last in ends.members.items():
            self.is_terminated |= _is_among(last, _find(path, value))
        for path in ends.error:
            for said in _find(path, value):
                self.error = self.error or (_message(said) if said else None)
        for reason in _find(ends.finish, value) if ends.finish else ():
            if reason != "" and not _is_among(reason, ends.unfinished):
                self.finish = reason


def _is_among(value: Json, values: Collection[Json]) -> bool:
    """Tell whether a value is there as JSON has it: ``1`` is not ``true``, and a list needs no hash."""
    return any(is_same_json(value, each) for each in values)


def _message(said: Json) -> str:
    message = said.get("message") if isinstance(said, dict) else said
    return message if isinstance(message, str) else str(said)
