"""Which redaction the commands apply: the project's, and what is asked for beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from .._redact import Redaction

__all__ = ["advice", "redaction_of", "redaction_options"]

_F = TypeVar("_F", bound=Callable[..., Any])


def redaction_options() -> Callable[[_F], _F]:
    """Make the options ``--pii`` and ``--names``, which are ``has_pii`` and ``has_names`` in the callback."""
    pii = click.option("--pii", "has_pii", is_flag=True, help="e-mail, phone, card and account numbers too")
    names = click.option("--names", "has_names", is_flag=True, help="values of names such as password= too")
    return lambda callback: pii(names(callback))


def redaction_of(has_pii: bool, has_names: bool) -> tuple[Redaction, bool]:
    """Return a redaction, and whether it is the one that calls have without further words.

    Raises:
        OptionError: It needs the key of ``HTTPX_CASSETTE_HMAC_KEY``, and there is none.
    """
    from .._redact import Redaction
    from .._secret_search import NAMES, PII
    from .._settings import project_rules

    project = project_rules()[1]
    asked = (PII if has_pii else ()) + (NAMES if has_names else ())
    weak = tuple(sorted({*project.weak, *asked}))
    if weak == tuple(project.weak):
        return project, True
    return (
        Redaction(strong=project.strong, patterns=project.patterns, paths=project.paths, weak=weak),
        False,
    )


def advice(redaction: Redaction) -> str:
    """Return what must stand in pyproject.toml for calls to find what was redacted so."""
    weak = ", ".join(f'"{kind}"' for kind in redaction.weak)
    return f"calls find these recordings with: [tool.httpx_cassette.redact] weak = [{weak}]"
