"""Which wire format a call speaks: by path and shape, whatever the host."""

from __future__ import annotations

from typing import Any

import pytest

from httpx_cassette.dialects import GENERIC, OPENAI_CHAT, Dialect, Endpoint, recognise

ENDPOINT = Endpoint(
    "/a", has={"list": list, "one": object, "two": object}, has_one={"this": int, "that": (int, str)}
)
FITTING = {"list": [], "one": None, "two": 0, "that": 1}


@pytest.mark.parametrize(
    ("body", "fits"),
    [
        (FITTING, True),
        (FITTING | {"more": 1}, True),
        (FITTING | {"list": {}}, False),
        (FITTING | {"that": None}, False),
        (FITTING | {"that": None, "this": 1}, True),
        ({"list": [], "one": 1, "this": 1}, False),
        ({"list": [], "one": 1, "two": 2}, False),
        ({}, False),
    ],
)
def test_a_call_fits_an_endpoint_by_the_members_of_its_body(body: Any, fits: bool) -> None:
    """All conditions hold, or it does not fit."""
    assert fits is ENDPOINT.fits(body)


@pytest.mark.parametrize(
    ("path", "body", "dialect"),
    [
        ("/v1/chat/completions", {"messages": []}, OPENAI_CHAT),
        ("/other/completions", {"messages": []}, GENERIC),
        ("chat", {"messages": []}, GENERIC),
        ("", {}, GENERIC),
        ("/v1/chat/completions", [], GENERIC),
        ("/v1/chat/completions", None, GENERIC),
    ],
)
def test_a_call_that_fits_nowhere_is_generic(path: str, body: Any, dialect: Dialect) -> None:
    """A path alone says nothing, and neither does a body."""
    assert dialect is recognise(path, body)


@pytest.mark.parametrize(
    ("path", "body", "wants_stream"),
    [
        ("/plain", {"stream": True}, True),
        ("/plain", {"stream": 1}, False),
        ("/plain", {}, False),
        ("/streaming", {}, True),
        ("/streaming", {"stream": False}, True),
        ("/streaming", None, False),
        ("/streaming", [], False),
        ("/lines", {}, True),
        ("/lines", {"stream": None}, True),
        ("/lines", {"stream": False}, False),
        ("/lines", {"stream": 1}, False),
        ("/lines", None, False),
    ],
)
def test_a_stream_is_asked_for_by_the_body_or_by_the_path(path: str, body: Any, wants_stream: bool) -> None:
    """Some providers have an address of its own for it, and some stream unless they are told not to."""
    endpoints = (
        Endpoint("/plain"),
        Endpoint("/streaming", wants_stream=True),
        Endpoint("/lines", streams_by_default=True),
    )
    dialect = Dialect("any", endpoints=endpoints)

    assert wants_stream is dialect.wants_stream(path, body)


def test_an_endpoint_may_be_called_without_a_body() -> None:
    """An answer that was made before is fetched by its address alone."""
    fetched = Endpoint("/a/[^/]+", has_body=False)

    assert [True, False] == [fetched.is_at("/v1/a/b1"), fetched.is_at("/v1/a/b1/c")]
    assert [True, False] == [fetched.fits(None), fetched.fits({})]
    assert not ENDPOINT.fits(None)
