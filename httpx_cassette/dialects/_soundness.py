"""Whether a dialect that somebody wrote can be used, and whether two of them are one.

Decides what is refused when a dialect is registered: what would otherwise fail, or be passed over, in the
middle of a call. Whether the format is really like this only its streams can show.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from types import CellType, FunctionType, MethodType
from typing import Any, NoReturn

from .._errors import OptionError
from .._paths import Paths
from ._dialect import Dialect, Endpoint, Folds, Pieces, SystemPrompt
from ._framing import FRAMINGS, Event
from ._reading import Noise, StreamTable, table_reader

__all__ = ["check_sound", "is_same"]

#: As a recording, a report and a command line can hold it.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

#: What a stream's progress must have.
_PROGRESS = ("awaits_more", "error", "expect", "finish", "is_complete", "is_terminated", "observe")


def check_sound(dialect: object) -> None:
    """Refuse what is no dialect that can be used.

    Raises:
        OptionError: The message says what is wrong and what to write instead.
    """
    if not isinstance(dialect, Dialect):
        raise OptionError(
            f"a dialect is a Dialect, not {dialect!r}; write Dialect(name='my-gateway', endpoints=(...))"
        )
    name: Any = dialect.name
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise OptionError(
            f"the name {name!r} of a dialect is not understood; it takes up to 64 lower-case letters, "
            "digits, '-', '_' and '.', such as 'my-gateway'"
        )
    try:
        _check_members(dialect)
    except OptionError as error:
        raise OptionError(f"the dialect {name!r}: {error.message}") from None


# The types say all this; who writes a dialect need not have them checked.


def _check_members(dialect: Any) -> None:
    _check_endpoints(dialect.endpoints)
    for name in ("text", "references", "media", "credentials", "opaque", "answer_opaque"):
        _check_paths(name, getattr(dialect, name))
    for name in ("turns", "prefill_roles", "signed"):
        _check_names(name, getattr(dialect, name))
    for name in ("held", "finish", "is_failure"):
        _check_callable(name, getattr(dialect, name))
    _check_folds(dialect.folds)
    _check_kind("pieces", dialect.pieces, Pieces, "Pieces(...) or None")
    _check_kind("system", dialect.system, SystemPrompt, "SystemPrompt(...) or None")
    if dialect.system is not None:
        _check_callable("system.missing", dialect.system.missing)
    _check_kind("stream", dialect.stream, StreamTable, "StreamTable(...) or None")
    if not isinstance(dialect.other_streams, tuple):
        _refuse("other_streams", dialect.other_streams, "a tuple of StreamTable(...)")
    framings = set()
    for table in filter(None, (dialect.stream, *dialect.other_streams)):
        _check_kind("other_streams", table, StreamTable, "a tuple of StreamTable(...)")
        _check_stream(table)
        if table.framing in framings:
            raise OptionError(f"two stream tables have the framing {table.framing!r}; make them one")
        framings.add(table.framing)


def _refuse(name: str, value: object, takes: str) -> NoReturn:
    raise OptionError(f"{name}={value!r} is not understood; it takes {takes}")


def _check_kind(name: str, value: object, kind: type, takes: str) -> None:
    if value is not None and not isinstance(value, kind):
        _refuse(name, value, takes)


def _check_callable(name: str, value: object) -> None:
    if not callable(value):
        _refuse(name, value, "a function")


def _check_names(name: str, value: Any) -> None:
    # A text is a collection of texts as well: of its letters.
    is_listed = isinstance(value, Collection) and not isinstance(value, (str, Mapping))
    if not is_listed or not all(isinstance(each, str) for each in value):
        _refuse(name, value, "a collection of texts, such as ('messages',)")


def _check_paths(name: str, value: Any) -> None:
    if not isinstance(value, Paths):
        _refuse(name, value, "Paths([...])")
    value.places({})  # Those that are read late are read now.


def _check_endpoints(endpoints: Any) -> None:
    if not isinstance(endpoints, tuple) or not endpoints:
        _refuse("endpoints", endpoints, "a tuple with at least one Endpoint('/path', has={'member': type})")
    for endpoint in endpoints:
        if not isinstance(endpoint, Endpoint):
            _refuse("endpoints", endpoint, "a tuple of Endpoint('/path', has={'member': type})")
        path: Any = endpoint.path
        if not (isinstance(path, str) and path):
            _refuse("Endpoint.path", path, "how the path of the URL ends, such as '/v1/generate'")
        try:
            re.compile(path)
        except re.error as error:
            raise OptionError(
                f"the path {path!r} of an endpoint is no regular expression: {error.msg}"
            ) from None
        for name in ("has", "has_one"):
            _check_types(f"Endpoint.{name}", getattr(endpoint, name))


def _check_types(name: str, value: Any) -> None:
    takes = "a mapping of members of the body to types, such as {'messages': list}"
    if not isinstance(value, Mapping):
        _refuse(name, value, takes)
    for types in value.values():
        try:
            isinstance(None, types)
        except TypeError:
            _refuse(name, value, takes)


def _check_folds(folds: Any) -> None:
    if not isinstance(folds, Folds):
        _refuse("folds", folds, "Folds(...)")
    for name in ("defaults", "only_with"):
        if not isinstance(getattr(folds, name), Mapping):
            _refuse(f"folds.{name}", getattr(folds, name), "a mapping by member of the body")
    for name in ("null", "empty", "sampling"):
        _check_names(f"folds.{name}", getattr(folds, name))
    for name in ("null_below", "empty_below", "single_text"):
        _check_paths(f"folds.{name}", getattr(folds, name))
    for name in ("decides_sampling", "is_own_host"):
        _check_callable(f"folds.{name}", getattr(folds, name))
    below: Any = folds.below
    for pair in below if isinstance(below, tuple) else (below,):
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Mapping)):
            _refuse("folds.below", below, "pairs of Paths([...]) and a mapping of defaults")
        _check_paths("folds.below", pair[0])


#: Members of a stream table that list paths or names.
_LISTS = (
    *("text", "lists", "last", "ends", "first", "padding", "stamps", "scope", "slot", "alone", "whole"),
    "opaque",
)


def _check_stream(table: Any) -> None:
    if table.framing not in FRAMINGS:
        _refuse("stream.framing", table.framing, f"one of {', '.join(map(repr, FRAMINGS))}")
    for name in _LISTS:
        value = getattr(table, name)
        if not isinstance(value, tuple) or not all(isinstance(each, str) for each in value):
            _refuse(f"stream.{name}", value, "a tuple of texts, such as ('choices[*].delta.content',)")
    if table.types is not None and not isinstance(table.types, frozenset):
        _refuse("stream.types", table.types, "a frozenset of texts, or None")
    for pair in table.totals if isinstance(table.totals, tuple) else (table.totals,):
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[1] not in table.text:
            _refuse("stream.totals", pair, "pairs of a path and of the path of stream.text that it sums up")
    _check_kind("stream.ping", table.ping, Event, "Event(...) or None")
    if not isinstance(table.noise, Noise):
        _refuse("stream.noise", table.noise, "Noise(...)")
    if not table.text:
        raise OptionError("a stream table joins and cuts text; name where it stands: text=('response',)")
    _check_progress(table.progress)
    try:
        hash(table)
    except TypeError as error:
        # What is made of a table is made once, and found by it.
        raise OptionError(f"a stream table holds what cannot be hashed: {error}; write a tuple") from None
    table_reader(table)
    Paths(table.opaque)


def _check_progress(progress: Any) -> None:
    takes = "Ends(...), or what makes an object with the members of StreamProgress"
    if not callable(progress):
        _refuse("stream.progress", progress, takes)
    made = progress()
    missing = [name for name in _PROGRESS if not hasattr(made, name)]
    if missing:
        raise OptionError(
            f"stream.progress made {made!r}, which has no {', '.join(missing)}; it takes {takes}"
        )


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two values were written alike, also where their module was loaded twice."""
    return _is_same(one, other, {})


def _is_same(one: Any, other: Any, begun: dict[tuple[int, int], tuple[Any, Any]]) -> bool:
    """Compare two values.

    Args:
        one: A value.
        other: Another.
        begun: The pairs whose comparison has begun: what holds itself differs elsewhere, or nowhere. The
            dictionary keeps them, so that no other object gets their identity meanwhile.
    """
    if (id(one), id(other)) in begun:
        return True
    begun[id(one), id(other)] = one, other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[name], other[name], begun) for name in one)
    if isinstance(one, (list, tuple)) and type(one) is type(other):
        return len(one) == len(other) and all(
            _is_same(each, another, begun) for each, another in zip(one, other, strict=True)
        )
    parts, others = _parts(one), _parts(other)
    if parts is None or others is None:
        # Of one type as well: ``1`` equals ``True``.
        return type(one) is type(other) and bool(one == other)
    return _is_same(parts, others, begun)


def _parts(value: Any) -> tuple[Any, ...] | None:
    """Return what a value was made of, ``None`` where it is compared as it is."""
    if isinstance(value, Paths):
        return value.__reduce__()
    if isinstance(value, FunctionType):
        cells = tuple(map(_held, value.__closure__ or ()))
        return FunctionType, value.__code__, value.__defaults__, value.__kwdefaults__, cells
    if isinstance(value, MethodType):
        return MethodType, value.__func__, value.__self__
    if isinstance(value, functools.partial):
        return functools.partial, value.func, value.args, value.keywords
    if isinstance(value, type):
        return "type", value.__module__, value.__qualname__
    if is_dataclass(value):
        return type(value), *(getattr(value, field.name) for field in fields(value))
    return None


class _Empty:
    """Stands for what a cell holds that was not filled yet."""


def _held(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _Empty
