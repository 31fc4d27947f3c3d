"""What the runs of ``loud`` are expected to tell: one file each, in ``expected``.

``python -m tests.plugin.expectations`` writes them anew, for whoever changes what is told; each line that
differs then wants a reason.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.plugin._project import Ended, Project, run
from tests.plugin.loud import PROJECTS, WITHOUT_WORKERS

__all__ = ["RUNS", "expected", "told", "unknown_files"]

FOLDER = Path(__file__).with_name("expected")

#: With workers, in the names of runs and of files.
_WORKERS = "-n2"

#: Every project twice, alone and with two workers of pytest-xdist.
RUNS: dict[str, Project] = PROJECTS | {
    f"{name}{_WORKERS}": project.with_workers()
    for name, project in PROJECTS.items()
    if name not in WITHOUT_WORKERS
}


def told(ended: Ended) -> str:
    """Return what is compared."""
    return f"exit status {ended.status}\n\n{ended.told}"


def expected(name: str) -> str:
    """Return what a run is expected to tell: with workers the same, where there is no file of its own."""
    file = FOLDER / f"{name}.txt"
    if not file.exists():
        file = FOLDER / f"{name.removesuffix(_WORKERS)}.txt"
    return file.read_text(encoding="utf-8")


def unknown_files() -> list[str]:
    """Return the files that belong to no run, or say of one with workers what is true without as well."""
    return [
        file.name
        for file in sorted(FOLDER.iterdir())
        if file.stem not in RUNS
        or (file.stem.endswith(_WORKERS) and file.read_text("utf-8") == expected(file.stem[: -len(_WORKERS)]))
    ]


def _regenerate() -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(3) as pool:
        runs = {name: pool.submit(run, Path(folder) / name, project) for name, project in RUNS.items()}
        texts = {name: told(future.result()) for name, future in runs.items()}
    for file in FOLDER.iterdir():
        file.unlink()
    for name, text in texts.items():
        if text != texts.get(name.removesuffix(_WORKERS)) or not name.endswith(_WORKERS):
            (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _regenerate()
