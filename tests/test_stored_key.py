"""The key document of a recording: one function gives it to those who verify and those who compare."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from httpx_cassette import Cassette, CassetteTransport, KeyPolicy, Redaction
from httpx_cassette._recording import Recording
from httpx_cassette._search import comparison_document
from httpx_cassette._settings import read_settings
from httpx_cassette._stored_key import document_of
from httpx_cassette._verification import recomputed_key
from httpx_cassette.dialects import by_name

BODY = {"model": "gpt-5", "messages": [{"role": "user", "content": "Order 1042 \n"}], "temperature": 1}


def recorded(path: Path, host: str = "API.example.com:443", **options: object) -> Recording:
    """Record one call and return what is in the file."""
    upstream = httpx.MockTransport(lambda request: httpx.Response(200, json={"choices": []}))
    transport = CassetteTransport(
        path, mode="record", require_system=False, next_transport=upstream, **options  # type: ignore[arg-type]  # by name
    )  # fmt: skip
    with httpx.Client(transport=transport) as client:
        client.post(f"https://{host}/v1/chat/completions?b=2&a=1", json=BODY)
    (recording,) = Cassette(path).oldest_first()
    return recording


@pytest.mark.parametrize("host", [True, False])
def test_comparing_and_verifying_see_the_same_document(host: bool, tmp_path: Path) -> None:
    """Under the policy of the line the two cannot differ; prompt files enter by what is on the line."""
    (tmp_path / "prompt.txt").write_text("Be brief.")
    policy = KeyPolicy(host=host, extra={"version": "7"})
    prompt_files = [tmp_path / "prompt.txt"]
    recording = recorded(tmp_path / "a.jsonl", key_policy=policy, prompt_files=prompt_files)
    settings = read_settings(tmp_path / "a.jsonl", {"key_policy": policy})
    dialect = by_name("openai-chat")
    document = document_of(recording, policy, dialect)

    assert document == comparison_document(recording, settings)
    assert ["prompt.txt"] == [Path(str(name)).name for name in document["prompt_files"]]  # type: ignore[union-attr]  # an object
    assert recording.head.key == recomputed_key(recording, dialect)


def test_the_host_of_a_stored_url_is_not_redacted_again(tmp_path: Path) -> None:
    """What was stored entered the key as it is: a rule that came later hides no host whose models sample."""
    recording = recorded(tmp_path / "a.jsonl", "openrouter.ai")
    redaction = Redaction(patterns={"host": r"openrouter\.ai"})
    document = comparison_document(recording, read_settings(tmp_path / "a.jsonl", {"redact": redaction}))

    assert document == document_of(recording, KeyPolicy(), by_name("openai-chat"))
    assert 1 == document["body"]["json"]["temperature"]  # type: ignore[call-overload, index]  # objects


def test_asking_twice_gives_the_same(tmp_path: Path) -> None:
    """The rules change a copy, unless a request is handed over to be used up."""
    recording = recorded(tmp_path / "a.jsonl")
    dialect = by_name("openai-chat")
    request = recording.request

    assert recomputed_key(recording, dialect) == recomputed_key(recording, dialect) == recording.head.key
    assert recording.head.key == recomputed_key(recording, dialect, request=request)
    assert "temperature" not in request["json"]  # type: ignore[operator]  # an object
