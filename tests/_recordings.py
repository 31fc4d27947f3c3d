"""Recordings to put into cassettes, and cassette files by hand: what the tests of the store share."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from httpx_cassette._call import Json
from httpx_cassette._cassette import Cassette
from httpx_cassette._errors import CassetteError
from httpx_cassette._line import Head, read_head
from httpx_cassette._recording import NewRecording, Recording
from httpx_cassette._shelf import Shelf

__all__ = ["ask", "exchange", "head_of_line", "key_of", "line", "make_file", "said"]

AT = "2026-11-29T12:00:00Z"


def key_of(name: object) -> bytes:
    """Return the fingerprint that stands for a call in these tests."""
    return hashlib.sha256(str(name).encode()).digest()


def exchange(name: object, says: Json = None, *, sample: int = 0, size: int = 0) -> NewRecording:
    """Return an exchange that is to be recorded.

    Args:
        name: What makes its key.
        says: What the answer says; the name, if nothing else is wanted.
        sample: Which of several answers it is.
        size: How many bytes of text the answer carries besides.
    """
    answer: dict[str, Json] = {"says": str(name) if says is None else says}
    if size:
        answer["text"] = os.urandom(size // 2).hex()
    return NewRecording(
        key=key_of(name),
        sample=sample,
        at=AT,
        dialect="openai-chat",
        finish="stop",
        milliseconds=812,
        response={"status": 200, "headers": {"content-type": "application/json"}, "json": answer},
        request={
            "method": "POST",
            "url": "https://api.example.com/v1/chat",
            "body": {"json": {"q": str(name)}},
        },
    )


def line(name: object, says: Json = None, *, sample: int = 0, gen: int = 0, key_version: int = 1) -> bytes:
    """Return a line as the store writes it, without its newline."""
    return exchange(name, says, sample=sample).line(gen, key_version)


def make_file(path: Path, *lines: bytes) -> Path:
    """Write a cassette by hand: every line gets its newline."""
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    return path


def head_of_line(data: bytes) -> Head:
    """Return the head of a line that has one."""
    head = read_head(data)
    assert head is not None
    return head


def said(recording: Recording) -> Json:
    """Return what the answer of a recording says."""
    answer: Json = recording.members["response"]["json"]["says"]
    return answer


def ask(cassette: Cassette | Shelf, name: object, *, sample: int = 0) -> Json:
    """Return what a cassette answers to a call, as text: ``miss``, or the name of the error and its text."""
    shelf = Shelf([cassette]) if isinstance(cassette, Cassette) else cassette
    try:
        recording = shelf.find(key_of(name), sample, exact=False)
        return "miss" if recording is None else said(recording)
    except CassetteError as error:
        return f"{type(error).__name__}: {error}"
