"""A call is plain data."""

from __future__ import annotations

import pickle

from httpx_cassette import Call


def test_a_header_is_found_in_any_case() -> None:
    """Repeats are joined, and one that was not sent is ``None``."""
    call = Call("GET", "https://h/", ((b"X-A", b"1"), (b"x-b", b"\xe9"), (b"x-a", b"2")), b"")

    assert "1, 2" == call.header(b"x-a")
    assert "é" == call.header(b"x-b")
    assert call.header(b"x-c") is None


def test_a_call_is_equal_to_its_copy() -> None:
    """It is compared by value, and goes from one process to another."""
    call = Call("GET", "https://h/", ((b"x-a", b"1"),), b"\xff")

    assert call == pickle.loads(pickle.dumps(call))
    assert call != call._replace(body=b"")
