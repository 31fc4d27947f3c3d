"""``docs/dialects.json``, made from the tables of the dialects: ``python -m tests.key_tables`` writes it.

What enters a key stands in these tables, so the file that another implementation reads is made of them and
cannot lag behind; ``tests/test_docs.py`` compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from httpx_cassette._paths import Paths
from httpx_cassette.dialects import DIALECTS, Dialect

__all__ = ["FILE", "render"]

FILE = Path(__file__).parent.parent / "docs" / "dialects.json"


def render() -> str:
    """Return the tables of all dialects as JSON, in the order in which they are tried."""
    return json.dumps({dialect.name: _table(dialect) for dialect in DIALECTS}, indent=1) + "\n"


def _table(dialect: Dialect) -> dict[str, Any]:
    folds, pieces = dialect.folds, dialect.pieces
    table: dict[str, Any] = {
        "endpoints": [
            {
                "path": endpoint.path,
                "has": {name: _types(types) for name, types in endpoint.has.items()},
                "has_one": {name: _types(types) for name, types in endpoint.has_one.items()},
                **({} if endpoint.has_body else {"has_body": False}),
            }
            for endpoint in dialect.endpoints
        ],
        "text": dialect.text.texts,
        "closed": sorted(dialect.text._closed),
        "turns": dialect.turns,
        "prefill_roles": sorted(dialect.prefill_roles),
        "signed": sorted(dialect.signed),
        "pieces": pieces
        and {
            "turns": pieces.turns,
            "roles": sorted(pieces.roles),
            "parts": pieces.parts,
            "ends": sorted(pieces.ends),
        },
        "credentials": dialect.credentials.texts,
        "opaque": dialect.opaque.texts,
        "media": dialect.media.texts,
        "null": sorted(folds.null),
        "empty": sorted(folds.empty),
        "null_below": folds.null_below.texts,
        "empty_below": folds.empty_below.texts,
        "below": [{"paths": _texts(paths), "defaults": dict(defaults)} for paths, defaults in folds.below],
        "single_text": folds.single_text.texts,
        "text_part": folds.text_part if folds.single_text else None,
        "defaults": dict(folds.defaults),
        "only_with": dict(folds.only_with),
        "sampling": sorted(folds.sampling),
        "references": dialect.references.texts,
    }
    return {name: value for name, value in table.items() if value}


def _texts(paths: Paths) -> tuple[str, ...]:
    return paths.texts


_NAMES = {str: "text", list: "list", dict: "object", object: "any"}


def _types(types: Any) -> str:
    return " or ".join(_NAMES[each] for each in (types if isinstance(types, tuple) else (types,)))


if __name__ == "__main__":  # pragma: no cover  # as the test calls it
    FILE.write_text(render(), encoding="utf-8")
