"""A multipart body is its parts, or is not taken apart at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from httpx_cassette._call import Json
from httpx_cassette._digests import digest_of
from httpx_cassette._multipart import split_parts

TYPE = "multipart/form-data; boundary=B"


def body(*pieces: bytes, end: bytes = b"--B--\r\n") -> bytes:
    return b"".join(b"--B\r\n" + piece + b"\r\n" for piece in pieces) + end


FIELD = b'Content-Disposition: form-data; name="a"\r\n\r\nx'


@pytest.mark.parametrize(
    ("piece", "part"),
    [
        pytest.param(FIELD, {"name": "a", "text": "x"}, id="field"),
        pytest.param(
            b'content-disposition:form-data; name="f"; filename="a b.txt"\r\n'
            b"CONTENT-TYPE:  text/plain \r\n\r\nx\r\n",
            {"name": "f", "filename": "a b.txt", "type": "text/plain", "text": "x\r\n"},
            id="file",
        ),
        pytest.param(
            b'Content-Disposition: form-data; name="f"; filename=""\r\n\r\n\xff',
            {"name": "f", "filename": "", "bytes": digest_of(b"\xff")},
            id="binary",
        ),
        pytest.param(b"\r\nx", {"text": "x"}, id="no-headers"),
        pytest.param(b"A: b\r\n\r\n", {"headers": [["a", "b"]], "text": ""}, id="no-content"),
        pytest.param(
            'Content-Disposition: form-data; name="é"\r\n\r\nx'.encode(),
            {"name": "é", "text": "x"},
            id="utf-8-name",
        ),
        pytest.param(
            b'Content-Disposition: form-data; name="\xff"\r\n\r\nx',
            {"name": "\udcff", "text": "x"},
            id="odd-name",
        ),
        pytest.param(
            b"Content-Disposition: form-data; filename*=utf-8''a; name=\"f\"\r\n\r\nx",
            {"headers": [["content-disposition", "form-data; filename*=utf-8''a; name=\"f\""]], "text": "x"},
            id="another-disposition",
        ),
        pytest.param(
            b'Content-Disposition: form-data; name="a\\"b"\r\n\r\nx',
            {"headers": [["content-disposition", 'form-data; name="a\\"b"']], "text": "x"},
            id="escaped-quote",
        ),
        pytest.param(
            b'Content-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"\r\n'
            b"Content-Type: c\r\nContent-Type: d\r\nContent-Transfer-Encoding: base64\r\n\r\nx",
            {
                "name": "a",
                "type": "c",
                "headers": [
                    ["content-disposition", 'form-data; name="b"'],
                    ["content-type", "d"],
                    ["content-transfer-encoding", "base64"],
                ],
                "text": "x",
            },
            id="repeats-and-others",
        ),
    ],
)
def test_a_part_is_what_its_headers_and_content_say(piece: bytes, part: Json) -> None:
    """Name, file name, type and other headers, and the content as text or as a digest."""
    assert [part] == split_parts(body(piece), TYPE)


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data; boundary=B",
        'multipart/mixed; charset=utf-8; boundary="B"',
        "Multipart/Form-Data;BOUNDARY=B;x=y",
    ],
)
def test_the_boundary_is_found(content_type: str) -> None:
    """Quoted or not, wherever it stands among the parameters."""
    assert [{"name": "a", "text": "x"}, {"text": ""}] == split_parts(body(FIELD, b"\r\n"), content_type)


@pytest.mark.parametrize("end", [b"--B--", b"--B--\r\n"])
def test_no_parts_are_parts(end: bytes) -> None:
    """A body can be empty but for its end."""
    assert [] == split_parts(end, TYPE)
    assert [{"text": "x"}] == split_parts(body(b"\r\nx", end=end), TYPE)


@pytest.mark.parametrize(
    ("raw", "content_type"),
    [
        pytest.param(body(FIELD), "multipart/form-data", id="no-boundary"),
        pytest.param(body(FIELD), "multipart/form-data; boundary=b", id="other-case"),
        pytest.param(body(FIELD), "multipart/form-data; boundary=BB", id="other-boundary"),
        pytest.param(body(FIELD), "multipart/form-data; xboundary=B", id="other-parameter"),
        pytest.param(b"preamble\r\n" + body(FIELD), TYPE, id="preamble"),
        pytest.param(body(FIELD, end=b""), TYPE, id="cut"),
        pytest.param(body(FIELD, end=b"--B-"), TYPE, id="cut-in-the-end"),
        pytest.param(body(FIELD, end=b"--B--\r\nepilogue"), TYPE, id="epilogue"),
        pytest.param(body(FIELD, end=b"--B--\r\n--B--\r\n"), TYPE, id="two-ends"),
        pytest.param(body(b"no blank line"), TYPE, id="no-blank-line"),
        pytest.param(body(FIELD + b"\r\n--Bx"), TYPE, id="boundary-that-goes-on"),
        pytest.param(b"--B \r\n" + FIELD + b"\r\n--B--", TYPE, id="padding"),
        pytest.param(body(FIELD).replace(b"\r\n", b"\n"), TYPE, id="bare-newlines"),
        pytest.param(b"", TYPE, id="empty"),
        pytest.param(b"--B", TYPE, id="only-a-delimiter"),
    ],
)
def test_what_does_not_read_exactly_is_not_taken_apart(raw: bytes, content_type: str) -> None:
    """Nothing that was sent may be lost on the way to the key."""
    assert split_parts(raw, content_type) is None


_CONTENTS = st.lists(
    st.lists(
        st.sampled_from([b"x", b"\r\n", b"--B", b"--", b"B", b"\xff", b"\r\n\r\n", b"A: b"]), max_size=5
    ).map(b"".join),
    max_size=2,
)


@given(_CONTENTS, _CONTENTS)
def test_two_bodies_are_one_only_if_their_parts_are(left: list[bytes], right: list[bytes]) -> None:
    """Whatever stands in the contents: equal parts were equal bytes, or differed in the boundary alone."""
    bodies = [body(*(b"\r\n" + content for content in contents)) for contents in (left, right)]
    parts = [split_parts(each, TYPE) for each in bodies]

    assert parts[0] is None or (parts[0] == parts[1]) == (bodies[0] == bodies[1])


def test_the_boundary_is_gone() -> None:
    """The same parts in another boundary are the same."""
    assert split_parts(body(FIELD), TYPE) == split_parts(
        body(FIELD).replace(b"--B", b"--7f3a"), "multipart/form-data; boundary=7f3a"
    )
