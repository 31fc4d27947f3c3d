"""Titles, from the SDK."""

import pytest

pytest.importorskip("openai")

from support.titles import title


def test_a_title_is_given() -> None:
    """It has words."""
    assert title("The app asks me to log in again every ten minutes.").split()
