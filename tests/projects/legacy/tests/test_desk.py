"""The desk, as it was tested before we had pytest."""

import unittest

from support.desk import Case, open_case
from support.digest import Digest


class DeskTest(unittest.TestCase):
    def setUp(self) -> None:
        self.tickets = ["I was charged three times.", "Where is the dark mode?"]

    def test_case_is_opened(self) -> None:
        """It knows its ticket."""
        case = open_case("Where do I find my invoices?")
        self.assertEqual(case.ticket, "Where do I find my invoices?")
        self.assertTrue(case.language)

    def test_digest_is_written(self) -> None:
        """Something is, in the background."""
        self.assertNotEqual(Digest(self.tickets).text(), "")

    def test_bug_is_urgent(self) -> None:
        """Whatever it says."""
        self.assertTrue(Case("It crashes.", category="bug").is_urgent)
