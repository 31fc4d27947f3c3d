"""What can be run here; ``nox --list`` shows it, ``pip install nox && nox -s tests`` is all the set-up."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import nox
from nox.command import CommandFailed

# Sessions run on the interpreter that nox runs on: a machine needs nothing but Python and pip.
# (A matrix over the Pythons of the classifiers is a session of its own, and skips those that are not there.)
nox.options.sessions = ["tests"]
nox.options.error_on_external_run = True
nox.options.error_on_missing_interpreters = False

PROJECT = nox.project.load_toml("pyproject.toml")

#: From the classifiers, the oldest first.
PYTHONS = nox.project.python_versions(PROJECT)

#: Sets of client libraries. httpx 0.25.0 pins an h11 that is too old for any httpx2, so it comes alone.
CLIENTS = ("newest", "oldest httpx", "oldest httpx2")

#: httpx before 0.26 encodes a query again if it finds one character in it that had to be, and sends it so.
#: The key says what was sent, and differs.
ENCODED_TWICE = ("-k", "not url/query-encoding")

#: Imported by tests that talk through a client; no other test can tell its version.
TALKS = re.compile(
    r"^\s*(?:from|import) (?:httpx2?|respx|(?:tests)?[.](?:colours|exits|served))\b", re.MULTILINE
)

#: The package, a user's code, and the programs of the project.
TYPED = (
    *("httpx_cassette", "benchmarks", "noxfile.py"),
    *(f"tests/{name}" for name in ("exits", "fuzz", "plugin", "torture", "typing")),
)

#: Tests of an SDK that need openai and no other.
NO_SDK_BUT_OPENAI = ("tests/sdk/test_exit_status.py", "tests/sdk/test_threads.py")

#: Recorded exchanges that lie beside a checkout, where there are any.
CORPUS = "../shared/corpus"


def install(session: nox.Session, group: str, package: str = ".") -> None:
    """Install the package as it lies here, and a dependency group."""
    session.install("-e", package, *nox.project.dependency_groups(PROJECT, group))


@nox.session
def demo(session: nox.Session) -> None:
    """Show the main job: record, replay offline, miss. Needs no key and no network."""
    session.install(".[cli]")
    # Away from the checkout, so that what was installed is what runs.
    session.chdir(session.create_tmp())
    session.run("python", "-m", "httpx_cassette", "demo", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the unit tests; what follows ``--`` goes to pytest."""
    install(session, "tests")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def exits(session: nox.Session) -> None:
    """Run every program of ``tests/exits``, and the services; print the table of exit statuses."""
    install(session, "exits")
    session.run("python", "-m", "pytest", *(session.posargs or ["tests/exits", "tests/services"]))


@nox.session
def plugin(session: nox.Session) -> None:
    """Test small projects with the plugin of pytest, beside other plugins and in workers of pytest-xdist."""
    install(session, "plugin")
    session.run("python", "-m", "pytest", "tests/plugin", *session.posargs)


@nox.session(python=PYTHONS, download_python="never")
@nox.parametrize("clients", CLIENTS)
def matrix(session: nox.Session, clients: str) -> None:
    """Run the unit tests on each Python, with the oldest and the newest httpx and httpx2.

    With old clients only the tests that talk through one run. The oldest Python with the oldest httpx has the
    oldest of everything that the package needs, and runs all tests.
    """
    files = [str(path) for path in Path("tests").glob("test_*.py") if TALKS.search(path.read_text("utf-8"))]
    group = [*nox.project.dependency_groups(PROJECT, "tests")]
    if clients == "newest":
        session.install("-e", ".", *group)
        chosen = []
    elif clients == "oldest httpx2":
        session.install("-e", ".", *group, *oldest(PROJECT["project"]["optional-dependencies"]["httpx2"]))
        chosen = files
    else:
        is_oldest_python = session.python == PYTHONS[0]
        # The tests run on anyio's plugin, and need a newer one of it.
        needed = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["cli"]]
        pins = [pin for pin in oldest(needed) if not pin.startswith("anyio")]
        # The extras of httpx2 bring what decodes bodies, but httpx 0.25.0 has none for zstd.
        group = [*(each for each in group if not each.startswith("httpx2")), "zstandard"]
        if not is_oldest_python:
            pins = [pin for pin in pins if pin.startswith("httpx==")]
        session.install("-e", ".", *group, *pins)
        chosen = [*ENCODED_TWICE, *([] if is_oldest_python else files)]
    session.run("python", "-m", "pytest", *chosen, *session.posargs)
    if absent := [version for version in PYTHONS if not runs(version)]:
        session.warn(
            f"not tested, as it is not here: Python {', '.join(absent)}; install it, or activate it, with "
            "pyenv for example: PYENV_VERSION=3.11.7:3.10.13:3.12.1:3.13.0 nox -s matrix"
        )


def oldest(requirements: list[str]) -> list[str]:
    """Pin each requirement to the oldest version that it allows."""
    return [each.replace(">=", "==", 1) for each in requirements]


def runs(version: str) -> bool:
    """Tell whether there is such a Python: the stand-ins of pyenv may only say that there is none."""
    command = f"python{version}"
    return bool(shutil.which(command)) and not subprocess.run([command, "-V"], capture_output=True).returncode


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the unit tests and report the lines and branches that none of them reaches."""
    install(session, "tests")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *session.posargs)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def sdk(session: nox.Session) -> None:
    """Let the newest SDKs judge, on httpx2."""
    install(session, "sdk")
    session.run("python", "-m", "pytest", "tests/sdk", *session.posargs)


@nox.session
@nox.parametrize("openai", [2, 1])
def sdk_old(session: nox.Session, openai: int) -> None:
    """Let openai 2, anthropic 0, google-genai 1, mistralai 1 and ollama judge, on httpx; then openai 1 alone.

    Without httpx2. Two versions of one SDK are never in one environment.
    """
    if openai == 1:
        install(session, "sdk-openai-1")
        files = [path.as_posix() for path in Path("tests/sdk").glob("test_*.py") if "openai" in path.stem]
        # That clients run under trio is seen with openai 2, which is built alike.
        session.run("python", "-m", "pytest", *files, *NO_SDK_BUT_OPENAI, "-k", "not trio", *session.posargs)
        return
    install(session, "sdk-old")
    # That the judges find a falsified replay is seen with the newest SDKs.
    session.run("python", "-m", "pytest", "tests/sdk", "-k", "not falsified", *session.posargs)


@nox.session
@nox.parametrize("group", [nox.param(group, id=group) for group in ("frameworks", "instructor")])
def frameworks(session: nox.Session, group: str) -> None:
    """Let frameworks talk over cassettes: agents in one environment, instructor for its pins in another."""
    install(session, group)
    session.run("python", "-m", "pytest", "tests/frameworks", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Hold the stream invariants against recorded exchanges: ``nox -s conformance -- FOLDER [--full]``."""
    install(session, "sdk")
    session.run("python", "-m", "tests.conformance", *(session.posargs or [CORPUS]))


@nox.session
def torture(session: nox.Session) -> None:
    """Attack the store and print a row for each trial: ``nox -s torture [-- --short]``."""
    if not hasattr(os, "fork"):
        session.skip("the trials fork and kill, which this platform cannot")
    install(session, "pytest")
    session.run("python", "-m", "tests.torture", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Look for bad inputs by coverage: ``nox -s fuzz [-- --seconds 120 --target streams]``."""
    session.install("-e", ".")
    try:
        # To build it takes a compiler with libFuzzer, which hardly any machine has.
        session.install("--only-binary=atheris", *nox.project.dependency_groups(PROJECT, "fuzz"), silent=True)
    except CommandFailed:
        session.skip("there is no wheel of atheris for this Python and this platform")
    session.run("python", "-m", "tests.fuzz", *session.posargs)


@nox.session
def browser(session: nox.Session) -> None:
    """Open the page of ``compare --html`` with 50 injections in headless Chromium; takes a minute."""
    names = ("chromium", "chromium-browser", "google-chrome")
    if not (found := next(filter(None, map(shutil.which, names)), None)):
        try:
            # The package of Debian; it takes the rights of root.
            session.run(
                *"apt-get install -y --no-install-recommends chromium".split(), external=True, silent=True
            )
        except CommandFailed:
            session.skip("there is no Chromium here, and apt-get cannot install it")
        found = "chromium"
    session.install("-e", ".[cli]", "pytest")
    session.run("python", "-m", "tests.browser", found)


@nox.session
def docs(session: nox.Session) -> None:
    """Execute the code blocks of the README and of ``docs``, those with an SDK too."""
    install(session, "docs")
    files = [f"tests/test_{name}.py" for name in ("readme", "docs", "docs_dialects", "docs_pytest", "legacy")]
    session.run("python", "-m", "pytest", *files, *session.posargs)


@nox.session
def typing(session: nox.Session) -> None:
    """Check the types of the package and of the project's programs, and a user's code against it."""
    install(session, "typing")
    # What the programs import.
    session.install("nox", *nox.project.dependency_groups(PROJECT, "tests"))
    session.run("mypy", *TYPED, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and layout; ``nox -s lint -- --fix`` repairs what can be repaired."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", ".", *session.posargs)
    session.run("ruff", "format", *([] if "--fix" in session.posargs else ["--check"]), ".")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure against a floor: ``nox -s bench -- hit open record import stream plugin [--quick]``."""
    # Not in place: an editable install costs an import hook that users do not have.
    session.install(".", *nox.project.dependency_groups(PROJECT, "bench"))
    known = sorted(path.stem.removeprefix("bench_") for path in Path("benchmarks").glob("bench_*.py"))
    names = [word for word in session.posargs if word in known] or ["hit"]
    options = [word for word in session.posargs if word not in known]
    for name in names:
        session.run("python", f"benchmarks/bench_{name}.py", *options)


@nox.session
def build(session: nox.Session) -> None:
    """Build wheel and sdist, and use the wheel in an environment that holds nothing else."""
    session.install(*nox.project.dependency_groups(PROJECT, "build"))
    shutil.rmtree("dist", ignore_errors=True)
    # The wheel is built from the sdist, so that the sdist is known to be complete.
    session.run("python", "-m", "build", "--no-isolation", "--outdir", "dist", ".")
    (wheel,) = Path("dist").glob("*.whl")

    bare = Path(session.create_tmp()).resolve() / "bare"
    session.run("python", "-m", "venv", "--clear", str(bare))
    scripts = bare / ("Scripts" if os.name == "nt" else "bin")
    python, wheel_path = str(scripts / "python"), str(wheel.resolve())
    session.run(python, "-m", "pip", "install", "--quiet", wheel_path, external=True)
    session.chdir(bare)
    session.run(python, "-c", "import httpx_cassette; print(httpx_cassette.__version__)", external=True)
    # The package replays without the command, which says what it lacks.
    session.run(python, "-m", "httpx_cassette", "demo", external=True, success_codes=[1])
    session.run(python, "-m", "pip", "install", "--quiet", f"{wheel_path}[cli]", external=True)
    session.run(python, "-m", "httpx_cassette", "demo", external=True)
    session.run(str(scripts / "httpx-cassette"), "--help", external=True)
