"""The desk: what happens to a ticket, from the first look to the reply."""

from dataclasses import dataclass

from .language import language
from .triage import triage


@dataclass
class Case:
    """A ticket, and what is known of it."""

    ticket: str
    category: str = "other"
    language: str = "unknown"

    @property
    def is_urgent(self) -> bool:
        """Tell whether somebody is charged, or cannot work."""
        return self.category != "other" or "!" in self.ticket


def open_case(ticket: str) -> Case:
    """Look at a ticket."""
    return Case(ticket, category=triage(ticket), language=language(ticket))
