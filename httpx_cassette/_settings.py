"""The options of a transport, checked once and ready to use.

A mistake is met where it is made: when the transport is built, with the nearest option named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypeVar

from ._allowed import Allowed, allowed_outside
from ._call import Call, Json
from ._cassette import Cassette, shared_cassette
from ._errors import CassetteMiss, OptionError
from ._mode import Mode, resolve_mode
from ._policy import DEFAULT_POLICY, KeyPolicy
from ._process import RUN
from ._project import OF_SUITES, Project, project_defaults
from ._prompt_files import PromptFiles
from ._redact import Redaction
from ._shelf import Shelf
from ._suggest import nearest_name

__all__ = ["OPTIONS", "Settings", "Source", "project_rules", "read_policy", "read_settings"]

#: What names one cassette.
Source: TypeAlias = "str | os.PathLike[str] | Cassette"

#: What names calls: a host, the beginning of a URL, or a predicate.
Matcher: TypeAlias = "str | Callable[[Call], bool]"

T = TypeVar("T")

#: When the run began that records anew, RFC 3339 in UTC: what any of its processes has recorded since is not
#: to be paid for once more. Set by whoever starts the processes.
FRESH_SINCE_VARIABLE = "HTTPX_CASSETTE_FRESH_SINCE"

#: Limits the real calls of all transports, whatever each was given.
MAX_CALLS_VARIABLE = "HTTPX_CASSETTE_MAX_CALLS"

#: Calls that SDKs make unasked, that nobody wants recorded, and whose failure they shrug off:
#: huggingface_hub asks which agent harnesses there are, cerebras_cloud_sdk warms up its connection, and
#: litellm fetches its table of prices when it is imported, in a thread as well; without an answer it takes
#: the one that comes with it (litellm/litellm_core_utils/get_model_cost_map.py).
KNOWN_PROBES = (
    "https://huggingface.co/api/agent-harnesses",
    "https://api.cerebras.ai/v1/tcp_warming",
    "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option of a transport, and what is set outside; documented at ``CassetteTransport``."""

    shelf: Shelf
    mode: Mode
    is_mode_given: bool
    fresh_since: str
    allowed: Allowed | None
    require_system: bool | Literal["anywhere"] | Callable[[Call], bool]
    prompt_files: PromptFiles
    policy: KeyPolicy
    redaction: Redaction
    passthrough: Callable[[Call], bool] | None
    ignore: Callable[[Call], bool] | None
    samples: int
    is_recordable: Callable[[int], bool]
    max_calls: int | None
    max_calls_of_all: int | None
    chunk_size: int
    wire_chunk_size: int | None
    noise: bool
    on_miss: Callable[[CassetteMiss], object] | Literal["exit"] | None

    def policy_on_line(self, prompt_files: Mapping[str, Json] | None = None) -> dict[str, Json]:
        """Return what the key depends on beside the request, as it stands on the line of a recording.

        Args:
            prompt_files: The digests of the prompt files, by name.
        """
        policy = self.policy.as_json()
        if prompt_files:
            policy["prompt_files"] = dict(prompt_files)
        if not self.redaction.is_default:
            policy["redact"] = self.redaction.as_json()
        return policy


#: The options by name, with their defaults.
OPTIONS: Mapping[str, Any] = {
    "mode": None,
    "require_system": True,
    "prompt_files": (),
    "key_policy": None,
    "redact": True,
    "passthrough": (),
    "ignore": (),
    "samples": 1,
    "record_statuses": None,
    "max_calls": None,
    "chunk_size": 16,
    "wire_chunk_size": None,
    "noise": False,
    "on_miss": "exit",
    "fsync": True,
}


def read_settings(cassette: Source | Sequence[Source], given: Mapping[str, Any]) -> Settings:
    """Check the options and return them ready to use.

    What is given wins over ``[tool.httpx_cassette]`` of pyproject.toml, which wins over the defaults.

    Args:
        cassette: One cassette, or several: all are looked up, the last is written.
        given: Options by name, without those left at their default.

    Raises:
        OptionError: An option does not exist or is not understood.
        CassetteError: The cassette is not understood.
        CassetteReadOnly: Recording was asked for, and nothing can be written.
    """
    options = _Options(given, project_defaults())
    mode = options.read("mode", lambda value, name: value if value is None else resolve_mode(value, {}))
    # What the code gives is in the way of a recording only if it is this: a ceiling is outside.
    is_mode_given = mode is Mode.REPLAY
    # A test run keeps its ceiling, whatever a test does to the environment.
    mode = Mode.REPLAY if RUN.is_ceiling else resolve_mode(mode, os.environ)
    shelf = _read_shelf(cassette, options.read("fsync", _read_flag))
    if mode in (Mode.RECORD, Mode.RERECORD):
        shelf.written.check_writable()
    return Settings(
        shelf=shelf,
        mode=mode,
        is_mode_given=is_mode_given,
        fresh_since=os.environ.get(FRESH_SINCE_VARIABLE, ""),
        # In replay there is no real call to refuse.
        allowed=None if mode is Mode.REPLAY else allowed_outside(),
        require_system=options.read("require_system", _read_require_system),
        prompt_files=options.read("prompt_files", lambda value, name: PromptFiles(value)),
        policy=options.read("key_policy", read_policy),
        redaction=options.read("redact", lambda value, name: Redaction.of(value)),
        passthrough=options.read("passthrough", _read_matchers),
        ignore=options.read("ignore", _read_ignore),
        samples=options.read("samples", _read_count),
        is_recordable=options.read("record_statuses", _read_statuses),
        max_calls=options.read("max_calls", _read_max_calls),
        max_calls_of_all=_read_max_calls_of_all(os.environ),
        chunk_size=options.read("chunk_size", _read_count),
        wire_chunk_size=options.read("wire_chunk_size", _read_optional_count),
        noise=options.read("noise", _read_flag),
        on_miss=options.read("on_miss", _read_on_miss),
    )


class _Options:
    """The options as they are given, set by the project, or by default; a mistake is met where it stands.

    Args:
        given: Options by name, as given in the code.
        project: What the project sets.

    Raises:
        OptionError: An option does not exist.
    """

    def __init__(self, given: Mapping[str, Any], project: Project) -> None:
        _refuse_unknown(given, "CassetteTransport", OPTIONS, None)
        known = (*OPTIONS, *OF_SUITES)
        _refuse_unknown(project.options, "[tool.httpx_cassette]", known, project.file)
        self._values = {**OPTIONS, **project.options, **given}
        self._of_project = project.options.keys() - given.keys()
        self._file = project.file

    def read(self, name: str, reader: Callable[[Any, str], T]) -> T:
        """Return one option as ``reader`` understands it.

        Raises:
            OptionError: It is not understood; the error names the file that it comes from.
        """
        try:
            return reader(self._values[name], name)
        except OptionError as error:
            if name not in self._of_project or error.path is not None:
                raise
            raise OptionError(error.message, self._file) from error.__cause__


def _refuse_unknown(names: Iterable[str], whose: str, known: Iterable[str], file: str | None) -> None:
    for name in names:
        if name not in known:
            raise OptionError(f"{whose} has no option {name!r}{nearest_name(name, known)}", file)


def _read_shelf(cassette: Source | Sequence[Source], fsync: bool) -> Shelf:
    if isinstance(cassette, (str, os.PathLike, Cassette)):
        sources: list[Source] = [cassette]
    elif isinstance(cassette, Sequence):
        sources = list(cassette)
    else:
        raise OptionError(
            f"cassette={cassette!r} is not understood; it takes a path, a Cassette, or a list of them"
        )
    if not sources:
        raise OptionError("an empty list names no cassette; give at least one path")
    shelf = Shelf([shared_cassette(source) for source in sources])
    if not isinstance(sources[-1], Cassette):
        shelf.written.fsync = fsync
    return shelf


def _read_require_system(value: Any, name: str) -> Any:
    if isinstance(value, bool) or value == "anywhere" or callable(value):
        return value
    raise OptionError(
        f"{name}={value!r} is not understood; it takes True, False, 'anywhere' or a callable on the call"
    )


def read_policy(value: Any, name: str) -> KeyPolicy:
    """Return the policy that an option means.

    Raises:
        OptionError: It is not understood.
    """
    if value is None or isinstance(value, KeyPolicy):
        return value or DEFAULT_POLICY
    if isinstance(value, Mapping):
        known = [option.name for option in fields(KeyPolicy)]
        for option in value:
            if option not in known:
                raise OptionError(f"KeyPolicy has no option {option!r}{nearest_name(option, known)}")
        return KeyPolicy(**value)
    raise OptionError(f"{name}={value!r} is not understood; give it a KeyPolicy")


def _read_flag(value: Any, name: str) -> bool:
    # A text such as "false" would be true.
    if not isinstance(value, bool):
        raise OptionError(f"{name}={value!r} is not understood; it takes True or False")
    return value


def _read_count(value: Any, name: str) -> int:
    if type(value) is not int or value < 1:
        raise OptionError(f"{name}={value!r} is not understood; it takes a whole number from 1")
    return value


def _read_optional_count(value: Any, name: str) -> int | None:
    return None if value is None else _read_count(value, name)


def _read_max_calls(value: Any, name: str) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    raise OptionError(f"{name}={value!r} is not understood; it takes a whole number, 0 for none at all")


def _read_max_calls_of_all(environ: Mapping[str, str]) -> int | None:
    text = environ.get(MAX_CALLS_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdecimal():
        raise OptionError(f"{MAX_CALLS_VARIABLE}={text!r} is not understood; it takes a whole number")
    return int(text)


def _read_on_miss(value: Any, name: str) -> Any:
    if value is None or value == "exit" or callable(value):
        return value
    raise OptionError(f"{name}={value!r} is not understood; it takes a callable on the CassetteMiss, or None")


_STATUS_CLASS = re.compile(r"[1-5]xx")


def _read_statuses(value: Any, name: str) -> Callable[[int], bool]:
    if value is None:
        return lambda status: 200 <= status < 400
    wanted: set[int] = set()
    for item in _items(value):
        if isinstance(item, str) and _STATUS_CLASS.fullmatch(item):
            wanted.update(range(int(item[0]) * 100, int(item[0]) * 100 + 100))
        elif type(item) is int and 100 <= item <= 599:
            wanted.add(item)
        else:
            raise OptionError(f"{name} cannot hold {item!r}; it takes status codes and classes such as '4xx'")
    return wanted.__contains__


# -- calls by host, URL or predicate -------------------------------------------------------------------


#: What no host holds, so that a call to one could never be meant.
_NO_HOST = re.compile(r"[/?#@\s]")


def _read_ignore(value: Any, name: str) -> Callable[[Call], bool] | None:
    if value is None or value is False:
        return None
    return _read_matchers([*KNOWN_PROBES, *_items(value)], name)


def _items(value: Any) -> list[Any]:
    """Return the items of an option that takes one or several."""
    is_one = isinstance(value, str) or callable(value) or not isinstance(value, Iterable)
    return [value] if is_one else list(value)


def _read_matchers(value: Any, name: str) -> Callable[[Call], bool] | None:
    items = _items(value)
    if not items:
        return None
    predicates: list[Callable[[Call], bool]] = []
    patterns: list[str] = []
    for item in items:
        if callable(item):
            predicates.append(item)
        elif isinstance(item, str) and item.strip():
            if "://" not in item and (found := _NO_HOST.search(item)) is not None:
                raise OptionError(
                    f"{name}={item!r} is no host, because of {found[0]!r}, and no URL; "
                    f"write 'https://{item.strip()}', or the host alone"
                )
            patterns.append(_url_pattern(item) if "://" in item else _host_pattern(item))
        else:
            raise OptionError(
                f"{name} cannot hold {item!r}; it takes hosts, URL prefixes and callables on the call"
            )
    match = re.compile("|".join(patterns)).match if patterns else lambda url: None
    if not predicates:
        return lambda call: match(call.url) is not None
    return lambda call: match(call.url) is not None or any(predicate(call) for predicate in predicates)


# Nothing that could be the password of another host: ``https://api.example.com@evil.example``.
_USERINFO = r"(?:[^/?#@]*@)?"


def _url_pattern(prefix: str) -> str:
    scheme, _, rest = prefix.partition("://")
    path_at = min((rest.find(mark) for mark in "/?#" if mark in rest), default=len(rest))
    authority, path = rest[:path_at], rest[path_at:]
    # A prefix ends where a part of the URL ends, so that one of ``https://a.com`` is not one of
    # ``a.com.evil``. ``:`` ends nothing: the rest could be a password, the rest of a host. A port is part of
    # the prefix.
    end = "" if prefix.endswith(("/", "?", "=", "&")) else r"(?=[/?#]|\Z)"
    userinfo = "" if "@" in authority else _USERINFO
    # Case means nothing up to the path, and something in it.
    return f"(?i:{re.escape(scheme)}://{userinfo}{re.escape(authority)}){re.escape(path)}{end}"


def _host_pattern(host: str) -> str:
    name = re.escape(host)
    if host.startswith("*."):
        name = r"(?:[^/?#@:]+\.)?" + re.escape(host[2:])
    port = "" if re.search(r":\d+$", host) else r"(?::\d+)?"
    return f"(?i:[a-z][a-z0-9+.-]*://{_USERINFO}{name}{port})(?=[/?#]|\\Z)"


def project_rules() -> tuple[KeyPolicy, Redaction]:
    """Return the key policy and the redaction that the project of the working folder sets, or the defaults.

    Raises:
        OptionError: One of them is not understood.
    """
    options = _Options({}, project_defaults())
    policy = options.read("key_policy", read_policy)
    return policy, options.read("redact", lambda value, name: Redaction.of(value))
