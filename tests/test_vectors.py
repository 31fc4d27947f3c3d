"""The golden vectors hold: what is hashed, its bytes, and the fingerprint."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

import httpx_cassette
from httpx_cassette._call import Call, Json
from httpx_cassette._canonical import canonical_bytes
from httpx_cassette._fingerprint import KEY_VERSION, Draft, hash_document, key_document
from httpx_cassette._line import dump_json
from httpx_cassette._parsing import MAX_DEPTH, is_same_json, parse_json
from httpx_cassette._policy import KeyPolicy
from httpx_cassette._prompt_files import PromptFiles
from httpx_cassette._redact import Redaction
from httpx_cassette._request import read_call, stored_request
from httpx_cassette.dialects import recognise

from .key_by_the_page import fingerprint
from .vectors import VECTORS, Vector, derive, read_frozen, read_vector, request_body, seal_of, settled
from .vectors.regenerate import main as regenerate

#: The rules of the key, each with vectors of its own.
TOPICS = (
    "body canonical digest extra fold headers ignore join mask media mistral parse prompt-files redact "
    "rename responses stream strip url"
).split()

every_vector = pytest.mark.parametrize("name", VECTORS)


@pytest.fixture
def vector(name: str) -> Vector:
    """Give the vector of a name."""
    return read_vector(VECTORS[name])


def library(name: str) -> tuple[Any, Any]:
    """Return a client library and the transport for it."""
    if name == "httpx":
        return httpx, httpx_cassette.CassetteTransport
    httpx2 = pytest.importorskip("httpx2")
    return httpx2, pytest.importorskip("httpx_cassette.httpx2").CassetteTransport


@every_vector
def test_a_vector_follows_from_its_call_and_options(vector: Vector, tmp_path: Path) -> None:
    """Key document, canonical bytes and fingerprint of a request are those of the vector."""
    derived = derive(vector, tmp_path)

    assert vector.expected["canonical"] == derived["canonical"]
    assert vector.expected["fingerprint"] == derived["fingerprint"]
    assert is_same_json(vector.expected["key_document"], derived["key_document"])


@every_vector
@pytest.mark.parametrize("client", ["httpx", "httpx2"])
def test_a_transport_of_either_library_gives_the_fingerprint(
    vector: Vector, client: str, tmp_path: Path
) -> None:
    """``transport.fingerprint`` of a request gives the fingerprint."""
    module, transport = library(client)
    call = vector.call
    request = module.Request(
        call["method"], call["url"], headers=call["headers"], content=request_body(vector)
    )
    serving = transport(tmp_path / "none.jsonl", **settled(vector, tmp_path))

    assert vector.expected["fingerprint"] == serving.fingerprint(request)


@every_vector
def test_a_call_without_any_client_gives_the_fingerprint(vector: Vector, tmp_path: Path) -> None:
    """What a client writes into a request, such as a host header, has no part in the key."""
    assert vector.expected["fingerprint"] == hash_document(document(vector, tmp_path, stored(vector))).hex()


@every_vector
def test_the_page_alone_gives_the_fingerprint(vector: Vector) -> None:
    """What docs/key.md says is enough: a second implementation, written from it, gives the fingerprint."""
    assert vector.expected["fingerprint"] == fingerprint(vector.call, vector.options)


@every_vector
def test_what_is_stored_gives_the_fingerprint(vector: Vector, tmp_path: Path) -> None:
    """The request as it stands in a cassette, read back, has the key of the call."""
    # A body stands one level down in a request, and a few in a line.
    request = parse_json(dump_json(stored(vector)), MAX_DEPTH + 1)
    assert isinstance(request, dict)

    assert vector.expected["fingerprint"] == hash_document(document(vector, tmp_path, request)).hex()


@every_vector
def test_a_fingerprint_is_the_hash_of_the_canonical_bytes(vector: Vector) -> None:
    """Version, newline, canonical bytes of the key document: SHA-256 over these and nothing else."""
    canonical = canonical_bytes(vector.expected["key_document"])

    assert vector.expected["canonical"].encode() == canonical
    hashed = hashlib.sha256(b"httpx-cassette key 1\n" + canonical)
    assert vector.expected["fingerprint"] == hashed.hexdigest()


def test_every_rule_has_vectors() -> None:
    """Each topic has two vectors or more, and each vector has a title of its own."""
    topics = [name.partition("/")[0] for name in VECTORS]

    assert TOPICS == sorted(set(topics))
    assert [] == [topic for topic in TOPICS if topics.count(topic) < 2]
    assert len(VECTORS) == len({read_vector(path).title for path in VECTORS.values()})


def test_a_frozen_vector_has_not_changed() -> None:
    """Another fingerprint for a call is another version of the key: raise ``KEY_VERSION``, and say so."""
    seals = read_frozen()[str(KEY_VERSION)]

    assert {name: seal_of(read_vector(VECTORS[name])) for name in seals} == seals


def test_every_vector_is_frozen() -> None:
    """A new one is frozen with ``python -m tests.vectors.regenerate --freeze``."""
    assert set(VECTORS) == set(read_frozen()[str(KEY_VERSION)])


def options(vector: Vector) -> tuple[KeyPolicy, Redaction]:
    """Return policy and redaction of a vector."""
    return KeyPolicy(**vector.options.get("key_policy", {})), Redaction.of(vector.options.get("redact"))


def stored(vector: Vector) -> dict[str, Json]:
    """Return the request of a vector as it is stored."""
    policy, redaction = options(vector)
    headers = tuple((name.encode(), value.encode()) for name, value in vector.call["headers"])
    reading = read_call(
        Call(vector.call["method"], vector.call["url"], headers, request_body(vector)), redaction
    )
    dialect = recognise(reading.target.path, reading.body if reading.kind == "json" else None)
    return stored_request(reading, redaction, dialect, policy.key_headers)[0]


def document(vector: Vector, folder: Path, request: dict[str, Json]) -> dict[str, Json]:
    """Return the key document of a stored request under the options of a vector."""
    policy, _ = options(vector)
    url = httpx.URL(str(request["url"]))
    files = PromptFiles(settled(vector, folder).get("prompt_files", ()))
    dialect = recognise(url.path, request.get("json"))
    return key_document(Draft(request, dialect, policy, url.host), files.digests())


# -- filling them in -----------------------------------------------------------------------------------

CALL = {"method": "GET", "url": "https://api.example.com/v1/models", "headers": []}


def write(path: Path, **members: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"title": "A title.", "call": CALL, "options": {}, **members}), "utf-8")


def test_a_new_vector_is_filled_in(tmp_path: Path) -> None:
    """A vector without a fingerprint gets what follows from it, and keeps what it has."""
    path = tmp_path / "topic" / "new.json"
    write(path)

    assert 0 == regenerate([], tmp_path)
    canonical = '{"method":"GET","url":"https://api.example.com/v1/models"}'
    assert {
        "title": "A title.",
        "call": CALL,
        "options": {},
        "key_document": {"method": "GET", "url": "https://api.example.com/v1/models"},
        "canonical": canonical,
        "fingerprint": hashlib.sha256(f"httpx-cassette key 1\n{canonical}".encode()).hexdigest(),
    } == json.loads(path.read_text("utf-8"))


def test_a_fingerprint_that_would_change_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A vector is not given another fingerprint, unless that is asked for."""
    path = tmp_path / "topic" / "old.json"
    write(path, fingerprint="0" * 64)
    before = path.read_bytes()

    assert 1 == regenerate([], tmp_path)
    assert before == path.read_bytes()
    assert (
        f"{path}: the fingerprint would change\n"
        "1 vectors were left as they are; --accept writes what is not frozen\n"
    ) == capsys.readouterr().err

    assert 0 == regenerate(["--accept"], tmp_path)
    assert "0" * 64 != read_vector(path).expected["fingerprint"]


def test_what_is_frozen_is_not_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither with another call nor with another fingerprint, and not by ``--accept`` or ``--freeze``."""
    path = tmp_path / "topic" / "kept.json"
    write(path)
    assert 0 == regenerate(["--freeze"], tmp_path)
    before = read_vector(path)
    assert {"1": {"topic/kept": seal_of(before)}} == read_frozen(tmp_path)

    write(path, call={**CALL, "url": "https://api.example.com/v2/models"})
    for options in ([], ["--accept"], ["--freeze", "--accept"]):
        assert 1 == regenerate(options, tmp_path)
        assert "frozen as key version 1; a change needs a new KEY_VERSION" in capsys.readouterr().err
    assert {"1": {"topic/kept": seal_of(before)}} == read_frozen(tmp_path)
