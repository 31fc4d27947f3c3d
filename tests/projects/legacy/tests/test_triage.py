"""Sorting."""

import pytest
from support.triage import CATEGORIES, triage


@pytest.mark.parametrize(
    "ticket",
    [
        "I was charged twice.",
        "The page stays white after I log in.",
        pytest.param("Ihr seid großartig! 🎉", id="praise"),
    ],
)
def test_a_ticket_is_sorted(ticket: str) -> None:
    """There is no fourth category."""
    assert triage(ticket) in CATEGORIES


def test_a_fixture_is_sorted(tickets: list[str]) -> None:
    """Every ticket gets its category."""
    assert len(tickets) == len([triage(ticket) for ticket in tickets])


def test_nothing_is_other() -> None:
    """The model is not asked."""
    assert triage("   ") == "other"
