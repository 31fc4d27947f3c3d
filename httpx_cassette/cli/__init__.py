"""The command ``httpx-cassette``. Exit status 0 is fine, 1 could not do it, 2 a miss or a finding.

``run``, ``record`` and ``stand-in`` run another command, and where nothing was missed end as it did.
The command comes with the extra ``cli``: without it, one sentence says so. Importing this module imports
neither click nor rich.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

__all__ = ["main"]

#: What the extra installs.
_EXTRA = ("click", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Args:
        arguments: The words after the command's name; those of the process by default.
    """
    # Both at once, not each where it is needed: half of an extra would fail in the middle of a command.
    absent = [name for name in _EXTRA if importlib.util.find_spec(name) is None]
    if absent:
        print(
            f"Error: the command needs {' and '.join(absent)}; install it with: "
            "pip install 'httpx_cassette[cli]'",
            file=sys.stderr,
        )
        return 1
    from ._group import run_command_line

    return run_command_line(sys.argv[1:] if arguments is None else arguments)
