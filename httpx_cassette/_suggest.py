"""The nearest of the names that would have been understood, for errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest_name"]


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return `` (did you mean 'date'?)``, or what there is when nothing is near.

    Args:
        name: What was given.
        names: What would have been understood.
    """
    known = sorted(names)
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.6)
    return f" (did you mean {near[0]!r}?)" if near else f"; there are {', '.join(known)}"
