"""Cassettes whose bytes were changed, some sealed anew: a recorded answer, or a documented error."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from httpx_cassette import Cassette, CassetteError
from httpx_cassette._answer import Served, replay
from httpx_cassette._call import Json
from httpx_cassette._line import seal
from httpx_cassette._recording import NewRecording
from httpx_cassette._settings import Settings, read_settings
from httpx_cassette._shelf import Shelf

__all__ = ["SEEDS", "check"]

_KEYS = [bytes([number]) * 32 for number in range(3)]
_REQUEST: dict[str, Json] = {"method": "POST", "url": "https://api.test/v1/ask", "json": {"messages": []}}
_SCRIPT: list[Json] = [
    {"json": {"choices": [{"index": 0, "delta": {"content": "für 雨"}, "finish_reason": None}]}},
    {"event": "x", "id": "1", "extra": [["retry", "9"]], "text": "[DONE]"},
]
_BODIES: list[dict[str, Json]] = [
    {"json": {"choices": [{"message": {"content": "für 雨"}, "finish_reason": "stop"}]}},
    {"framing": "sse", "stored": "assembled", "script": _SCRIPT},
    {"base64": "//4="},
]


def _line(number: int, body: dict[str, Json], gen: int = 0) -> bytes:
    response: dict[str, Json] = {"status": 200, "headers": {"content-type": "text/plain"}, **body}
    new = NewRecording(
        _KEYS[number], 0, "2026-01-02T03:04:05Z", "openai-chat", "stop", 7, response, dict(_REQUEST)
    )
    return new.line(gen, 1)


_LINES = [*map(_line, range(3), _BODIES), _line(0, {"text": "anew"}, 1)]

#: Of each line, some bytes of what it answers.
_SAID = ("für".encode(), b"[DONE]", b"//4=", b"anew")

#: The first byte says whether the lines are sealed anew.
SEEDS = [
    *(flag + b"\n".join(_LINES) + b"\n" for flag in (b"\0", b"\1")),
    *(b"\1" + line + b"\n" for line in _LINES),
    *(b"\0" + line.replace(said, b"else") + b"\n" for line, said in zip(_LINES, _SAID, strict=True)),
    b"\0" + _LINES[0][:40] + b'\n{"v":1,"tear":[0,40]}\n' + _LINES[1] + b"\r\n",
]

_FOLDER = tempfile.TemporaryDirectory(prefix="fuzz-lines-")
_PATH = Path(_FOLDER.name) / "fuzz.jsonl"
_SETTINGS: Settings = read_settings(_PATH, {})


def _said(cassette: Cassette, key: bytes) -> bytes | None:
    found = Shelf([cassette]).find(key, 0, exact=True)
    if found is None:
        return None
    answer = replay(found, Served("replayed"), _SETTINGS)
    return answer.content if answer.chunks is None else b"".join(answer.chunks())


def _recorded() -> list[list[bytes]]:
    """Return what was recorded under each key."""
    found: list[list[bytes]] = [[] for _ in _KEYS]
    for line in _LINES:
        _PATH.write_bytes(line + b"\n")
        cassette = Cassette(_PATH)
        for key, answers in zip(_KEYS, found, strict=True):
            said = _said(cassette, key)
            if said is not None:
                answers.append(said)
        cassette.close()
    return found


_ANSWERS = _recorded()


def check(data: bytes) -> None:
    """Write a cassette and read it in every way."""
    is_sealed_anew, data = data[:1] > b"\0", data[1:]
    if is_sealed_anew:
        data = re.sub(rb'(?m)^(.*),"sum":"[^"\n]*"\}$', lambda found: seal(found[1]), data)
    _PATH.write_bytes(data)
    for strict in (False, True):
        try:
            cassette = Cassette(_PATH, strict=strict)
            cassette.check()
        except CassetteError:
            continue
        try:
            for key, answers in zip(_KEYS, _ANSWERS, strict=True):
                try:
                    said = _said(cassette, key)
                except CassetteError:
                    continue
                assert said is None or is_sealed_anew or said in answers, "another answer than was recorded"
            for recording in cassette.newest_first():
                try:
                    _ = recording.at, recording.dialect, recording.policy, recording.request
                    _ = recording.response()
                except CassetteError:
                    pass
            _ = len(cassette), cassette.damage, cassette.torn, cassette.other_versions, cassette.refresh()
        except CassetteError:
            pass
        finally:
            cassette.close()
