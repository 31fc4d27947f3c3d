"""A request is read as what it is, whatever that is, and stored without what must not reach a file."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from httpx_cassette import Redaction
from httpx_cassette import _request as request_module
from httpx_cassette._call import Call, Json
from httpx_cassette._digests import digest_of
from httpx_cassette._paths import Paths
from httpx_cassette._redact import Gate
from httpx_cassette._request import read_call, sent_headers, stored_request
from httpx_cassette.dialects import Dialect

from .keying import OTHER, call, chat, reading_of

SECRET = "postgres://ann:open-sesame-7@db.example.com/x"
REDACTED = "postgres://<redacted:url-userinfo:d02f278f9886fd24>@db.example.com/x"

NO_MEDIA = Paths(())


def read(body: Any, content_type: str | None = "application/json", **headers: str) -> tuple[str, Any]:
    reading = reading_of(call(body, content_type=content_type, headers=headers))
    return reading.kind, reading.body


def store(made: Call, redaction: Redaction | None = None, media: Paths = NO_MEDIA, *headers: str) -> Any:
    redaction = redaction or Redaction()
    dialect = Dialect("any", media=media)
    return stored_request(read_call(made, redaction), redaction, dialect, headers)[0]


# -- reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "content_type", "kind", "read_as"),
    [
        pytest.param(b"", "application/json", "", None, id="empty"),
        pytest.param(b"", None, "", None, id="empty-without-a-type"),
        pytest.param(b'{"a": 1}', "application/json", "json", {"a": 1}, id="json"),
        pytest.param(
            b'{"a": 1}', "Application/JSON; charset=utf-8", "json", {"a": 1}, id="json-with-a-charset"
        ),
        pytest.param(b"[1]", "application/vnd.api+json", "json", [1], id="json-suffix"),
        pytest.param(b"null", "application/json", "json", None, id="null"),
        pytest.param(
            b'{"a": 1}\n{"a": 2}\n', "application/jsonl", "text", '{"a": 1}\n{"a": 2}\n', id="lines-of-json"
        ),
        pytest.param(b"{'a': 1}", "application/json", "text", "{'a': 1}", id="invalid-json"),
        pytest.param(b'{"a": NaN}', "application/json", "text", '{"a": NaN}', id="nan"),
        pytest.param(b'{"a": 1e400}', "application/json", "text", '{"a": 1e400}', id="overflow"),
        pytest.param(b"1" * 10_000, "application/json", "text", "1" * 10_000, id="10000-digits"),
        pytest.param(
            b"[" * 100_000 + b"]" * 100_000,
            "application/json",
            "text",
            "[" * 100_000 + "]" * 100_000,
            id="deep",
        ),
        pytest.param(b'{"a": "\\ud800"}', "application/json", "json", {"a": "\ud800"}, id="lone-surrogate"),
        pytest.param(
            b'{"a": "\xed\xa0\x80"}',
            "application/json",
            "bytes",
            digest_of(b'{"a": "\xed\xa0\x80"}'),
            id="encoded-surrogate",
        ),
        pytest.param(
            b'{"a": "\xff"}', "application/json", "bytes", digest_of(b'{"a": "\xff"}'), id="json-not-utf-8"
        ),
        pytest.param(
            '{"a": 1}'.encode("utf-16-le"),
            "application/json",
            "text",
            "".join(f"{c}\0" for c in '{"a": 1}'),
            id="json-utf-16",
        ),
        pytest.param(b' \n{"a": 1}', None, "json", {"a": 1}, id="object-without-a-type"),
        pytest.param(b"[]", None, "json", [], id="list-without-a-type"),
        pytest.param(b"1.0", None, "text", "1.0", id="number-without-a-type"),
        pytest.param(b"{", None, "text", "{", id="brace-without-a-type"),
        pytest.param(b'{"a": 1}', "text/plain", "text", '{"a": 1}', id="json-as-text"),
        pytest.param(b"caf\xc3\xa9", "text/plain", "text", "café", id="text"),
        pytest.param(
            b"caf\xe9", "text/plain; charset=latin-1", "bytes", digest_of(b"caf\xe9"), id="text-not-utf-8"
        ),
        pytest.param(b"\x00\xff", "application/octet-stream", "bytes", digest_of(b"\x00\xff"), id="binary"),
        pytest.param(
            b"b=1&a=x+y&a=&c",
            "application/x-www-form-urlencoded",
            "form",
            [["b", "1"], ["a", "x y"], ["a", ""], ["c", ""]],
            id="form",
        ),
        pytest.param(
            b"a=%FF\xfe",
            "APPLICATION/X-WWW-FORM-URLENCODED",
            "form",
            [["a", "\udcff\udcfe"]],
            id="form-not-utf-8",
        ),
        pytest.param(
            b"--B\r\n\r\nx\r\n--B--",
            "multipart/form-data; boundary=B",
            "parts",
            [{"text": "x"}],
            id="multipart",
        ),
        pytest.param(
            b"--b\r\n\r\nx\r\n--b--",
            "multipart/form-data; boundary=B",
            "text",
            "--b\r\n\r\nx\r\n--b--",
            id="multipart-broken",
        ),
        pytest.param(
            b"--b\xff",
            "multipart/form-data; boundary=B",
            "bytes",
            digest_of(b"--b\xff"),
            id="multipart-broken-binary",
        ),
    ],
)
def test_a_body_is_read_as_what_it_is(
    body: bytes, content_type: str | None, kind: str, read_as: Json
) -> None:
    """JSON, form, parts, text or bytes; and never a failure."""
    assert (kind, read_as) == read(body, content_type)


JSON_BODY = b'{"a": [1, 2]}'


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        pytest.param(JSON_BODY, "identity", id="identity"),
        pytest.param(gzip.compress(JSON_BODY), "gzip", id="gzip"),
        pytest.param(gzip.compress(JSON_BODY), " GZip ", id="upper-case"),
        pytest.param(gzip.compress(JSON_BODY), "x-gzip", id="x-gzip"),
        pytest.param(gzip.compress(JSON_BODY[:5]) + gzip.compress(JSON_BODY[5:]), "gzip", id="two-members"),
        pytest.param(zlib.compress(JSON_BODY), "deflate", id="zlib"),
        pytest.param(raw_deflate(JSON_BODY), "deflate", id="raw-deflate"),
    ],
)
def test_a_compressed_body_is_read_decoded(body: bytes, encoding: str) -> None:
    """Gzip and deflate are undone, to the last member."""
    reading = reading_of(call(body, headers={"Content-Encoding": encoding}))

    assert ("json", {"a": [1, 2]}, JSON_BODY, "") == (
        reading.kind,
        reading.body,
        reading.raw,
        reading.encoding,
    )


BROKEN = {
    "not-gzip": (JSON_BODY, "gzip"),
    "cut": (gzip.compress(JSON_BODY)[:-5], "gzip"),
    "wrong-sum": (gzip.compress(JSON_BODY)[:-8] + bytes(8), "gzip"),
    "more-behind": (gzip.compress(JSON_BODY) + b"x", "gzip"),
    "raw-deflate-as-gzip": (raw_deflate(JSON_BODY), "gzip"),
    "not-deflate": (JSON_BODY, "deflate"),
    "brotli": (b"\x0b\x02\x80{}\x03", "br"),
    "twice": (gzip.compress(gzip.compress(JSON_BODY)), "gzip, gzip"),
}


@pytest.mark.parametrize(("body", "encoding"), BROKEN.values(), ids=BROKEN)
def test_an_encoding_that_cannot_be_undone_is_part_of_the_body(body: bytes, encoding: str) -> None:
    """Bytes that are not what the header says stay bytes, with the encoding beside them."""
    reading = reading_of(call(body, headers={"content-encoding": encoding}))

    assert ("bytes", digest_of(body), body, encoding) == (
        reading.kind,
        reading.body,
        reading.raw,
        reading.encoding,
    )
    assert {"bytes": digest_of(body), "encoding": encoding}.items() <= store(
        call(body, headers={"content-encoding": encoding})
    ).items()


def test_a_body_that_grows_too_large_stays_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes cannot become gigabytes, in one member or in many."""
    monkeypatch.setattr(request_module, "MAX_BODY", 1000)
    whole, bomb = gzip.compress(b"[" + b" " * 998 + b"]"), gzip.compress(b"[" + b" " * 999 + b"]")

    assert ("json", []) == read(whole, **{"content-encoding": "gzip"})
    assert ("bytes", digest_of(bomb)) == read(bomb, **{"content-encoding": "gzip"})
    assert ("bytes", digest_of(whole * 2)) == read(whole * 2, **{"content-encoding": "gzip"})


def test_the_last_content_type_counts() -> None:
    """A header sent twice is no failure."""
    made = call(
        b"a=1", content_type="application/x-www-form-urlencoded", headers=[("content-type", "text/plain")]
    )

    assert ("form", [["a", "1"]]) == reading_of(made)[2:4]


# -- headers -------------------------------------------------------------------------------------------


def test_named_headers_are_kept_as_sent() -> None:
    """In any case, repeats joined in their order, and no other header."""
    made = call(headers=[("X-A", "1"), ("x-b", "é"), ("X-a", "2, 3"), ("x-c", "4"), ("x_a", "5")])

    assert {"x-a": "1, 2, 3", "x-b": "é"} == sent_headers(made, ("x-a", "x-b", "x-d"))
    assert {} == sent_headers(made, ())


def test_a_stored_request_has_what_was_sent_and_no_credentials() -> None:
    """Method, redacted URL, the headers of the key, the body; nothing else of the request."""
    made = call(
        {"a": SECRET},
        url=f"https://u:p@h/x?key=1&q={SECRET}",
        headers={"X-Tag": SECRET, "Authorization": "Bearer abc", "OpenAI-Beta": "b"},
    )

    assert {
        "method": "POST",
        "url": "https://h/x?q=postgres://%3Credacted:url-userinfo:d02f278f9886fd24%3E@db.example.com/x",
        "headers": {"x-tag": REDACTED, "openai-beta": "b"},
        "json": {"a": REDACTED},
    } == store(made, None, NO_MEDIA, "x-tag", "openai-beta")
    assert {"method": "GET", "url": "https://h/"} == store(call(url="https://h/", method="GET"))


# -- the stored body -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"a": [f"see {SECRET}"], SECRET: 1}),
        # An escape would hide what the gate looks for.
        json.dumps({"a": [f"see {SECRET}"], SECRET: 1})
        .replace("/", "\\/")
        .replace("postgres:", "postgres\\u003a"),
        json.dumps({"a": [f"see {SECRET}"], SECRET: 1, "big": 2**70})[:-1] + ', "odd": "\\ud800"}',
    ],
    ids=["plain", "escaped", "slow-path"],
)
def test_credentials_in_json_are_redacted(body: str) -> None:
    """In strings and names at any depth, however they were escaped."""
    stored = store(call(body, url=OTHER))

    assert {"a": [f"see {REDACTED}"], REDACTED: 1}.items() <= stored["json"].items()
    assert "open-sesame" not in str(stored)


@pytest.mark.parametrize(
    ("body", "content_type", "stored"),
    [
        pytest.param(f"a {SECRET}", "text/plain", {"text": f"a {REDACTED}"}, id="text"),
        pytest.param(
            f"a={SECRET}", "application/x-www-form-urlencoded", {"form": [["a", REDACTED]]}, id="form"
        ),
        pytest.param(
            SECRET, "application/x-www-form-urlencoded", {"form": [[REDACTED, ""]]}, id="form-that-is-text"
        ),
        pytest.param(
            "password=x&client_secret=y&a=1",
            "application/x-www-form-urlencoded",
            {"form": [["a", "1"]]},
            id="form-names",
        ),
        pytest.param(
            f'--B\r\nContent-Disposition: form-data; name="{SECRET}"\r\nX: {SECRET}\r\n\r\n{SECRET}\r\n--B--',
            "multipart/form-data; boundary=B",
            {"parts": [{"name": REDACTED, "headers": [["x", REDACTED]], "text": REDACTED}]},
            id="parts",
        ),
        pytest.param(
            f'--B\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\n{SECRET}\r\n--B--',
            "multipart/form-data; boundary=B",
            {"parts": [{"name": "f", "filename": "x", "bytes": digest_of(REDACTED)}]},
            id="file",
        ),
        pytest.param(
            f"--B\r\n\r\n{SECRET}{'x' * 1024}\r\n--B--",
            "multipart/form-data; boundary=B",
            {"parts": [{"bytes": digest_of(REDACTED + "x" * 1024)}]},
            id="long-part",
        ),
        pytest.param(
            b"--B\r\n\r\n\xff\r\n--B--",
            "multipart/form-data; boundary=B",
            {"parts": [{"bytes": digest_of(b"\xff")}]},
            id="binary-part",
        ),
    ],
)
def test_credentials_in_other_bodies_are_redacted(
    body: Any, content_type: str, stored: dict[str, Json]
) -> None:
    """The digest of a file is that of its redacted text, so that no guess can be tested."""
    made = store(call(body, url=OTHER, content_type=content_type))

    assert {"method": "POST", "url": OTHER, **stored} == made


def test_own_rules_apply_where_no_shape_is_known() -> None:
    """A redaction of a project's own looks at every body; one that is off at none."""
    made = call({"a": "C-1", "b": SECRET}, url=OTHER)

    own = store(made, Redaction(patterns={"customer": "C-[0-9]+"}))
    assert ["<redacted:customer:", REDACTED] == [own["json"]["a"][:19], own["json"]["b"]]
    assert {"a": "C-1", "b": SECRET} == store(made, Redaction(strong=False))["json"]


def test_a_digest_of_a_binary_part_is_not_redacted() -> None:
    """Its digits stay what they are, or two files could become one."""
    own = Redaction(patterns={"hex": "[0-9a-f]{16,}"})
    made = call(b"--B\r\n\r\n\xff\r\n--B--", content_type="multipart/form-data; boundary=B")

    assert [{"bytes": digest_of(b"\xff")}] == store(made, own)["parts"]


def test_names_of_a_digest_are_escaped_before_media_become_digests() -> None:
    """What was sent with such names stays apart from what is made here."""
    url = f"data:image/png;base64,{'A' * 1100}"
    stored = store(call({"$sha256": "x", "a": {"$bytes": 1}, "b": url, "$ref": "#"}, url=OTHER))

    assert {"$$sha256": "x", "a": {"$$bytes": 1}, "b": digest_of(url), "$ref": "#"} == stored["json"]


MEDIA = Paths(["input_audio.data", "list[*].file_data"])


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        pytest.param(
            {"input_audio": {"data": "A" * 1025}},
            {"input_audio": {"data": digest_of("A" * 1025)}},
            id="at-a-path",
        ),
        pytest.param(
            {"input_audio": {"data": "A" * 1024}}, {"input_audio": {"data": "A" * 1024}}, id="short"
        ),
        pytest.param(
            {"input_audio": {"data": ["A" * 1025]}}, {"input_audio": {"data": ["A" * 1025]}}, id="no-text"
        ),
        pytest.param(
            {"list": [{"file_data": "A" * 1025}, {"x": "A" * 1025}]},
            {"list": [{"file_data": digest_of("A" * 1025)}, {"x": "A" * 1025}]},
            id="elsewhere",
        ),
        pytest.param(
            {"x": [["data:a;base64," + "A" * 1100]]},
            {"x": [[digest_of("data:a;base64," + "A" * 1100)]]},
            id="data-url",
        ),
        pytest.param({"x": "data:a;base64,AAAA"}, {"x": "data:a;base64,AAAA"}, id="short-data-url"),
        pytest.param(
            {"x": "see data:a;base64," + "A" * 1100}, {"x": "see data:a;base64," + "A" * 1100}, id="in-a-text"
        ),
        pytest.param(
            {"x": "data:" + "a" * 300 + ";base64," + "A" * 1100},
            {"x": "data:" + "a" * 300 + ";base64," + "A" * 1100},
            id="no-data-url",
        ),
        pytest.param("data:a;base64," + "A" * 1100, "data:a;base64," + "A" * 1100, id="the-whole-body"),
        pytest.param({"x": "ACGT" * 500}, {"x": "ACGT" * 500}, id="letters"),
    ],
)
def test_media_are_stored_as_digests(body: Json, stored: Json) -> None:
    """At the paths of the dialect, and in data URLs anywhere; never by their alphabet alone."""
    assert stored == store(call(json.dumps(body), url=OTHER), None, MEDIA)["json"]


def test_what_may_be_in_a_body_is_told() -> None:
    """A clean body needs no slow rule, any other kind may hold anything."""

    def gate(made: Call) -> Gate:
        return stored_request(reading_of(made), Redaction(), Dialect("any"), ())[1]

    assert Gate(0) == gate(chat("hi"))
    assert Gate.DOLLAR == gate(chat("hi", tools={"$ref": 1}))
    assert Gate.DOLLAR in gate(chat("hi", seed=2**70))
    assert Gate.DOLLAR in gate(call("x", content_type="text/plain"))
    assert Gate.DOLLAR in gate(call())
