"""Fill in the vectors: ``python -m tests.vectors.regenerate``.

A vector without its fingerprint gets one. One whose fingerprint would change is left alone, and the exit
status is 1: that is a new version of the key, and a line in the changelog. ``--accept`` writes it all the
same, but for those that are frozen. ``--freeze`` freezes those that are not yet.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from httpx_cassette import KEY_VERSION

from . import FROZEN, ROOT, derive, read_frozen, read_vector, seal_of

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Rewrite every vector, and return the exit status.

    Args:
        arguments: The words of the command line.
        root: The folder of the vectors.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.vectors.regenerate", description="Fill in the vectors."
    )
    parser.add_argument("--accept", action="store_true", help="write vectors whose fingerprint changes, too")
    parser.add_argument("--freeze", action="store_true", help="freeze what is not frozen yet")
    options = parser.parse_args(arguments)
    frozen = read_frozen(root)
    seals = frozen.setdefault(str(KEY_VERSION), {})
    refused = 0
    for path in sorted(root.glob("*/*.json")):
        vector = read_vector(path)
        with tempfile.TemporaryDirectory() as folder:
            derived = derive(vector, Path(folder))
        name = path.relative_to(root).with_suffix("").as_posix()
        derived_vector = vector._replace(expected=derived)
        known = vector.expected.get("fingerprint", derived["fingerprint"])
        if seals.get(name, seal_of(derived_vector)) != seal_of(derived_vector):
            print(
                f"{path}: frozen as key version {KEY_VERSION}; a change needs a new KEY_VERSION",
                file=sys.stderr,
            )
            refused += 1
            continue
        if known != derived["fingerprint"] and not options.accept:
            print(f"{path}: the fingerprint would change", file=sys.stderr)
            refused += 1
            continue
        if options.freeze:
            seals[name] = seal_of(derived_vector)
        members = {"title": vector.title, "call": vector.call, "options": vector.options, **derived}
        # Escapes, so that invisible characters can be seen, and lone surrogates written.
        path.write_text(json.dumps(members, indent=2) + "\n", "utf-8")
    if options.freeze:
        (root / FROZEN).write_text(json.dumps(frozen, indent=2, sort_keys=True) + "\n", "utf-8")
    if refused:
        print(f"{refused} vectors were left as they are; --accept writes what is not frozen", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":  # pragma: no cover  # as the tests call it
    sys.exit(main())
