"""Which cassette a test gets, with which options: of its markers, ``cassette_config`` and the command line.

What is nearer to the test wins: the project's table, ``cassette_config``, the markers from the module to the
test. The command line wins over all of them.
Nothing here knows about pytest's hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._block import OpenCassette
from .._cassette import Cassette, shared_cassette
from .._errors import OptionError
from .._guard import read_guard
from .._project import project_defaults
from .._settings import OPTIONS
from .._suggest import nearest_name
from .._use import use_cassette
from ._naming import Place, cassette_files

__all__ = ["Choice", "Opener", "choose"]

#: What a marker and ``cassette_config`` may say beside the options of a transport.
_OWN = ("name", "allow_unused", "guard", "next_transport")

#: What stands for a rule of which nothing was said.
_DEFAULT = "the default"


class Choice(NamedTuple):
    """The cassette of a test.

    Args:
        name: What names the file.
        allow_unused: Whether the test may make no call.
        guard: As for :class:`use_cassette`; ``None`` where nothing was said.
        options: The options of the transport.
    """

    name: str | None
    allow_unused: bool
    guard: Any
    options: dict[str, Any]


def choose(config: object, markers: Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]]) -> Choice:
    """Put together what was said of the cassette of a test.

    Args:
        config: What ``cassette_config`` gives.
        markers: The arguments of the markers, the outermost first.

    Raises:
        OptionError: Something is not understood.
    """
    if not isinstance(config, Mapping):
        raise OptionError(f"cassette_config gives {config!r}; it is to give a dict of options")
    said: dict[str, Any] = {}
    _add(said, (), config, "cassette_config")
    for args, kwargs in markers:
        _add(said, args, kwargs, "@pytest.mark.cassette")
    allow_unused = said.pop("allow_unused", False)
    if not isinstance(allow_unused, bool):
        raise OptionError(f"allow_unused={allow_unused!r} is not understood; it takes True or False")
    return Choice(said.pop("name", None), allow_unused, said.pop("guard", None), said)


def _add(said: dict[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], whose: str) -> None:
    known = (*_OWN, *OPTIONS)
    for name in kwargs:
        if name not in known:
            raise OptionError(f"{whose} has no option {name!r}{nearest_name(name, known)}")
    if len(args) > 1 or (args and "name" in kwargs):
        raise OptionError(f"{whose} takes one name and options by name, not {len(args)} names")
    said.update(kwargs)
    if args:
        said["name"] = args[0]


class Opener:
    """Opens the cassettes of a run.

    Args:
        here: The folder that it was started in: files in it are shown as seen from here.
        mode: What the command line says, if anything.
        folder: The folder of the command line, if any.
        strict: Whether damaged lines are refused; ``None`` where the command line says nothing.
        guard: Whether connections to other machines are refused; ``None`` likewise.
    """

    def __init__(
        self, here: Path, *, mode: str | None, folder: str | None, strict: bool | None, guard: bool | None
    ) -> None:
        self._here = here
        self._mode = mode
        self._strict = strict
        self._guard = guard
        self._folder = here / folder if folder is not None else None
        # Kept, so that a file is read once for a run and not once for a test.
        self._cassettes: dict[str, Cassette] = {}
        self._first: dict[str, tuple[str, dict[str, Any]]] = {}

    def enter(self, choice: Choice, place: Place, test: str) -> tuple[use_cassette, OpenCassette]:
        """Open the cassette of a test; return it, and what closes it.

        Raises:
            OptionError: An option is not understood, or another test opened the file with other ones.
            CassetteError: A file cannot be opened.
        """
        project = project_defaults()
        folder = self._folder
        if folder is None and project.suite.get("dir") is not None:
            folder = Path(project.file or "").parent / _read_folder(project.suite["dir"])
        files = [self._shown(file) for file in cassette_files(choice.name, place, folder)]
        if len(files) > 1 and not Path(files[0]).exists():
            del files[0]
        strict = _read_strict(project.suite.get("strict", False)) if self._strict is None else self._strict
        for file in files:
            cassette = shared_cassette(file)
            cassette.strict = strict
            self._cassettes[cassette.real_path] = cassette
        options = dict(choice.options)
        if self._mode == "replay":
            options.pop("mode", None)  # The environment says it: a miss need not explain an argument.
        elif self._mode is not None and options.get("mode") != "replay":
            # A test that says replay means it: it may expect a miss.
            options["mode"] = self._mode
        use = use_cassette(files, guard=self._read_guard(choice, project.suite), **options)
        block = use.__enter__()
        try:
            self._check_alike(block, test)
        except BaseException:
            use.__exit__()
            raise
        return use, block

    def _read_guard(self, choice: Choice, suite: Mapping[str, Any]) -> Any:
        said = [each for each in (self._guard, choice.guard, suite.get("guard")) if each is not None]
        if not said:
            return False
        # The hosts that are named anywhere are let through, whoever switches the guard on.
        hosts = next((each for each in said if not isinstance(each, bool) and read_guard(each)), True)
        return hosts if said[0] is True else said[0]

    def _shown(self, file: Path) -> str:
        # A test that changes the folder, and does not change it back, must not move the files of the next.
        if Path.cwd() == self._here and file.is_relative_to(self._here):
            return str(file.relative_to(self._here))
        return str(file)

    def _check_alike(self, block: OpenCassette, test: str) -> None:
        """Make sure that all tests of a file would store the same call alike.

        Raises:
            OptionError: Another test has other rules.
        """
        rules = block.rules
        for cassette in block.cassettes:
            other, others = self._first.setdefault(cassette.real_path, (test, rules))
            for name in sorted(rules.keys() | others.keys()):
                if rules.get(name) != others.get(name):
                    raise OptionError(
                        f"{name} is {rules.get(name, _DEFAULT)} here and {others.get(name, _DEFAULT)} "
                        f"in {other}, for one file: what is recorded under one is not found under the "
                        "other; give this test a file of its own, cassette('name'), or say it for all "
                        "in cassette_config",
                        cassette.path,
                    )


def _read_strict(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise OptionError(f"strict={value!r} in [tool.httpx_cassette] is not understood; it takes true or false")


def _read_folder(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise OptionError(f"dir={value!r} in [tool.httpx_cassette] is not understood; it takes a folder")
