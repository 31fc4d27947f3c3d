"""The process of one target: the package is loaded so that its coverage is seen; libFuzzer takes over."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-untyped]  # it has no types


def main() -> None:
    """Run the target that the first argument names; libFuzzer reads the others, and ends the process."""
    name, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["httpx_cassette"]):
        target = importlib.import_module(f"tests.fuzz.{name}")
    with tempfile.TemporaryDirectory(prefix="fuzz-seeds-") as folder:
        for number, seed in enumerate(target.SEEDS):
            (Path(folder) / str(number)).write_bytes(seed)
        is_one = bool(options) and not options[0].startswith("-")
        atheris.Setup([sys.argv[0], *options, *([] if is_one else [folder])], target.check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
