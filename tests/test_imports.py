"""Who may import whom: imports go downwards only, and importing the package stays cheap.

A new module is entered in ``PARTS``.
"""

from __future__ import annotations

import ast
import builtins
import fnmatch
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import httpx_cassette
from httpx_cassette import _opened
from httpx_cassette._process import USED_VARIABLE

PACKAGE = Path(httpx_cassette.__file__).parent


class Part(NamedTuple):
    """Modules that belong together.

    Args:
        modules: Their names without the package's, from top to bottom: a module may import those that
            stand after it.
        imports: The other parts that they may import.
    """

    modules: str
    imports: str


#: From top to bottom.
PARTS = {
    "edges": Part(
        "__main__ cli cli.* pytest_plugin pytest_plugin.* _price",
        "package probe reading transport flow miss ledger settings listening key cassette redact data "
        "stand-in",
    ),
    "package": Part(
        "__init__", "probe reading transport flow ledger settings dialects key cassette redact data"
    ),
    "probe": Part("_probe", "reading transport miss settings data"),
    # Recordings as people read them: no key and no replay depends on it.
    "reading": Part(
        "_alignment _comparison _grouping _opened _cleaning _rekeying _verification _exchange _notebook "
        "_usage readers readers.anthropic_messages readers.bedrock readers.cohere readers.gemini "
        "readers.huggingface readers.mistral_conversations readers.ollama readers.openai_responses "
        "readers.chat readers.completions readers._said",
        "flow miss dialects key cassette redact canonical data",
    ),
    "transport": Part(
        "_use _patching _guard _block httpx2 _transport _driver _library _bodies _waiting",
        "flow ledger settings key cassette redact data",
    ),
    "flow": Part(
        "_flow _session _budget _flight _search _explain _answer _sink _live_stream _pieces _decoding "
        "_stored_key",
        "miss ledger settings dialects listening dialect key cassette redact streams canonical data",
    ),
    "miss": Part("_miss _nearest _hints _excerpt _difference", "dialect key cassette redact canonical data"),
    "ledger": Part("_ledger _expected_miss _hooks _exit _ledger_file", "data listening"),
    "settings": Part("_settings _allowed _project _mode", "listening key cassette redact data"),
    "dialects": Part("dialects dialects._registry", "providers dialect streams data"),
    # Never each other, whatever their order here.
    "providers": Part(
        "dialects.openai_chat dialects.openai_responses dialects.anthropic_messages dialects.gemini "
        "dialects.gemini_interactions dialects.mistral dialects.mistral_conversations dialects.generic "
        "dialects.ollama dialects.cohere dialects.cohere_v1 dialects.huggingface dialects.bedrock "
        "dialects.openai_completions dialects.anthropic_completions dialects.writer",
        "dialect streams canonical data",
    ),
    # What processes write for the test run that started them.
    "listening": Part("_used_elsewhere", "cassette"),
    # The key for its version alone: lines of another one are counted, not indexed.
    "cassette": Part(
        "_rewrite _shelf _cassette _view _index _open_file _recording _layout _line", "key canonical data"
    ),
    "key": Part(
        "_fingerprint _prompt_files _policy _request _multipart _url", "dialect redact canonical data"
    ),
    "redact": Part("_secret_search _redact _tripwire _secret_rules _secret_names", "canonical data"),
    "dialect": Part(
        "dialects._chat dialects._trial dialects._soundness dialects._dialect dialects._blame "
        "dialects._hosts",
        "streams canonical data",
    ),
    "streams": Part(
        "dialects._script dialects._cutting dialects._ending dialects._reading dialects._framing "
        "dialects._eventstream",
        "canonical data",
    ),
    "canonical": Part("_canonical _survey _rules _masking _digests _documents _parsing", "data"),
    "stand-in": Part("stand_in _stand_in_answers", "data"),
    "data": Part("_paths _suggest _call _errors _process _json_place", ""),
}

#: Modules from outside that only some may import.
OUTSIDE = {
    # The demo is a program that uses the package, as a user's would.
    "httpx": "_transport cli.demo cli.probe",
    "httpx2": "httpx2",
    "click": "cli cli.*",
    "rich": "cli cli.*",
    "pytest": "pytest_plugin pytest_plugin.*",
    "genai_prices": "_price",
    "botocore": "dialects._eventstream",
    # The flow and everything under it does no network I/O.
    "anyio": "_bodies _waiting",
    "asyncio": "_waiting",
    "http": "stand_in",
    "socket": "stand_in _guard",
    "socketserver": "stand_in",
    "ssl": "",
    "trio": "_waiting",
    "urllib.request": "",
}

#: Who opens files, and which: only these touch the disk.
FILES = {
    "_cassette": "cassettes",
    "_open_file": "cassettes",
    "_rewrite": "cassettes",
    "_budget": "the real calls that processes count together",
    "_allowed": "the fingerprints of the real calls that may be made",
    "_prompt_files": "prompt files",
    "_project": "pyproject.toml",
    "_used_elsewhere": "what processes use that a test run starts",
    "_exit": "the ledger of child processes",
    "_ledger_file": "the ledger of child processes",
    "cli": "the null device, for output that nobody reads",
    "cli.*": "what a command is given",
    "pytest_plugin._suite": "the fingerprints that were used",
}

SDKS = ("anthropic", "cohere", "google.genai", "groq", "litellm", "mistralai", "ollama", "openai", "together")


class Found(NamedTuple):
    """An import in a module of the package: of another one, or of something outside."""

    name: str
    is_inside: bool
    line: int


def module_name(path: Path) -> str:
    """Return the name of a file's module, without the package's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(module: str) -> Iterator[Found]:
    """Yield what a module imports, anywhere in it, for type checking only too."""
    package = ["httpx_cassette", *module.split(".")]
    if MODULES[module].name != "__init__.py" or module == "__init__":
        package.pop()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield resolve(alias.name, None, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = [] if node.level == 0 else package[: len(package) - node.level + 1]
            for alias in node.names:
                yield resolve(".".join([*base, *filter(None, [node.module])]), alias.name, node.lineno)


def resolve(source: str, name: str | None, line: int) -> Found:
    """Return the module that ``import source`` or ``from source import name`` imports."""
    top, _, inner = source.partition(".")
    if top != "httpx_cassette":
        return Found(source, False, line)
    for candidate in (f"{inner}.{name}".lstrip("."), inner or "__init__"):
        if candidate in MODULES:
            return Found(candidate, True, line)
    raise AssertionError(f"line {line} imports {name!r} of {source!r}, which is not there")


def matches(module: str, patterns: str) -> bool:
    """Tell whether a module is one of those named."""
    return any(fnmatch.fnmatchcase(module, pattern) for pattern in patterns.split())


def part_of(module: str) -> str:
    """Return the part that a module belongs to."""
    found = [name for name, part in PARTS.items() if matches(module, part.modules)]

    assert 1 == len(found), f"{module} must stand in PARTS once, not in {found}"

    return found[0]


def may_import(importer: str, imported: str) -> bool:
    """Tell what the table says."""
    here, there = part_of(importer), part_of(imported)
    if here != there:
        return there in PARTS[here].imports.split()
    if here in ("providers", "edges"):
        return here == "edges"
    order = PARTS[here].modules.split()
    return order.index(importer) < order.index(imported)


def test_the_parts_import_downwards() -> None:
    """The table has no circle: each part names only parts that stand below it."""
    names = list(PARTS)

    for position, (name, part) in enumerate(PARTS.items()):
        assert set(part.imports.split()) <= set(names[position + 1 :]), name


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_downwards(module: str) -> None:
    """A module imports what the table lets it."""
    wrong = [
        f"{module}:{found.line} imports {found.name}"
        for found in imports(module)
        if found.is_inside and not may_import(module, found.name)
    ]

    assert [] == wrong


@pytest.mark.parametrize("module", MODULES)
def test_what_is_outside_stays_at_the_edges(module: str) -> None:
    """Client libraries, the network and the extras are imported by those who need them, nobody else."""
    wrong = [
        f"{module}:{found.line} imports {found.name}"
        for found in imports(module)
        for outside, allowed in OUTSIDE.items()
        if not found.is_inside and f"{found.name}.".startswith(f"{outside}.") and not matches(module, allowed)
    ]

    assert [] == wrong


@pytest.mark.parametrize("module", MODULES)
def test_files_are_opened_by_few(module: str) -> None:
    """Only the modules listed open files."""
    opening = ("open", "read_bytes", "read_text", "write_bytes", "write_text")
    lines = [
        f"{module}:{node.lineno}"
        for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr in opening)
        or (isinstance(node, ast.Name) and node.id == "open")
    ]

    assert [] == lines or matches(module, " ".join(FILES)), lines


def test_importing_the_package_is_cheap() -> None:
    """``import httpx_cassette`` adds no SDK, no tool and no server to what ``import httpx`` brings."""
    program = (
        "import sys, httpx; before = set(sys.modules); "
        "import httpx_cassette; print(*set(sys.modules) - before)"
    )
    added = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PACKAGE.parent
    ).stdout.split()
    heavy = ("httpx2", "pytest", "click", "rich", "yaml", "http.server", "multiprocessing", "asyncio", *SDKS)

    assert "httpx_cassette" in added
    assert [] == sorted(name for name in added if name in heavy)
    assert [] == sorted(name for name in added if matches(name, "*.cli *.stand_in *.httpx2"))
    # What serves a call comes with the first transport.
    assert [] == sorted(
        name for name in added if matches(name, "*._driver *._flow *._cassette *.dialects* orjson")
    )


def test_what_a_test_run_wants_to_hear_is_loaded_for_one_alone(tmp_path: Path) -> None:
    """A program that no test run has started pays nothing for it."""
    program = "import sys, httpx_cassette._session; print('httpx_cassette._used_elsewhere' in sys.modules)"
    environ = {name: value for name, value in os.environ.items() if name != USED_VARIABLE}
    alone, started = (
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            cwd=PACKAGE.parent,
            env=environ | more,
        ).stdout
        for more in ({}, {USED_VARIABLE: str(tmp_path / "used")})
    )

    assert ("False\n", "True\n") == (alone, started)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "__main__"])
def test_what_a_module_exports_is_there(module: str) -> None:
    """Each name in ``__all__`` can be imported, and stands there once."""
    if module == "httpx2":
        pytest.importorskip("httpx2")
    name = "httpx_cassette" if module == "__init__" else f"httpx_cassette.{module}"
    loaded = importlib.import_module(name)
    exported = getattr(loaded, "__all__", [])

    assert [] == [each for each in exported if not hasattr(loaded, each)]
    assert len(set(exported)) == len(exported)


def test_the_package_holds_public_names_and_nothing_else() -> None:
    """What can be imported from the package is what ``__all__`` says, and ``open``."""
    public = {
        name
        for name, value in vars(httpx_cassette).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and name != "annotations"
    }

    promised = {*httpx_cassette.__all__, "open"}
    assert public <= promised <= set(dir(httpx_cassette))
    assert promised >= set(httpx_cassette._HOMES)
    assert all(hasattr(httpx_cassette, name) for name in promised)
    assert not hasattr(httpx_cassette, "Nonsense")


def test_a_star_replaces_nothing_of_python() -> None:
    """``from httpx_cassette import *`` gives every name of ``__all__``, and ``open`` stays Python's."""
    given: dict[str, object] = {}
    exec("from httpx_cassette import *", given)
    del given["__builtins__"]

    assert set(httpx_cassette.__all__) == set(given)
    assert set() == set(given) & set(dir(builtins))
    assert httpx_cassette.open is _opened.open
