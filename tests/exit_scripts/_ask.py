"""What every script of ``test_exit_status`` begins with: a call that has no recording.

The scripts know ``ask`` alone, so how a call comes to miss is said in this one place.
"""

from __future__ import annotations

from httpx_cassette._errors import CassetteMiss
from httpx_cassette._ledger import arm, enter, expected_miss

__all__ = ["REPORT", "ask", "expected_miss"]

REPORT = "no recording for POST /v1/chat/completions\n  fingerprint  {}\n  nearest      none"

#: What the first transport of a process does.
arm()


def ask(prompt: str = "a") -> str:
    """Make a call that misses."""
    fingerprint = prompt * 64
    miss = CassetteMiss(
        REPORT.format(fingerprint), {"fingerprint": fingerprint, "method": "POST", "changed": ()}
    )
    enter(miss, key=fingerprint)
    raise miss
