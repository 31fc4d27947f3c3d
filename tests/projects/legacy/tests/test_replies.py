"""Replies."""

import pytest
from support.replies import reply, reply_to_all

pytestmark = pytest.mark.anyio


async def test_a_reply_is_written() -> None:
    """It is a text."""
    assert await reply("How do I change my password?")


async def test_replies_are_written_at_once(tickets: list[str]) -> None:
    """One for each ticket."""
    assert len(tickets) == len(await reply_to_all(tickets))
