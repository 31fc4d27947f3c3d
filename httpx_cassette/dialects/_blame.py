"""What a function of a dialect raises, as an error of this package that names the dialect.

Somebody wrote the function, and it runs in the middle of a call: an ordinary exception from there would be
retried or swallowed by an SDK. Decides what is told of it; who calls the function decides what stops.
"""

from __future__ import annotations

import traceback
from pathlib import PurePath

from .._errors import CassetteError

__all__ = ["blame"]


def blame(error: Exception, name: str) -> CassetteError:
    """Return the error to raise in the place of one that a function of a dialect raised, ``from None``.

    The text of that one is not told: it may quote a call.

    Args:
        error: What was raised, still with its traceback.
        name: The name of the dialect.
    """
    *_, frame = traceback.extract_tb(error.__traceback__)
    where = f"{PurePath(frame.filename).name}:{frame.lineno}"
    return CassetteError(
        f"a function of the dialect {name!r} raised {type(error).__name__} at {where}; mend it, or report it "
        "where the dialect is not yours"
    )
